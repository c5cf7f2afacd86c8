"""Which model, table and schema a figure is about: a handful of ingredients, and a probe of the scores themselves.

Every ingredient is a short text in run.json, readable where it is short and a hash where it is long, so that whoever is
refused reads which one differs. The probe tells models apart that have no bytes to be hashed (functions, estimators in
memory, services): the answers about a fixed sample of people and twins, with no randomness in it. A model that is no
native network is asked twice: one that answers otherwise the second time has scores that vary, and its probe is
compared as a sample and not score by score.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from math import sqrt
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import DEFAULT_THRESHOLD, Codes, Encoding, Numeric, Schema, Table, Twins, Unseen
from fairbits.errors import ModelError, OptionError
from fairbits.models import (
    DEFAULTS,
    Endpoint,
    ForeignModel,
    Loaded,
    Model,
    ModelOptions,
    Network,
    Repeated,
    TorchModel,
    TreeModel,
    TwinScores,
    attribute,
    fresh_scores,
    is_reference,
    is_url,
    side_files,
)
from fairbits.shape import fits
from fairbits.text import joined, percent

#: What can differ, as it is called in a sentence.
INGREDIENTS = {
    "model": "another model",
    "origin": "another file or code of the model",
    "options": "other options of the model",
    "encoding": "another encoding",
    "attributes": "other attributes or rules",
    "target": "another target",
    "protected": "other protected attributes",
    "threshold": "another threshold",
    "table": "another table",
}
#: Texts up to this length are kept as they are, so that a message can show them; what is shown is none of these.
SHOWN, _HASHED = 200, ("model", "encoding", "attributes", "table")
NONE = "none"
#: Options that say what is granted and how a model is asked, and not what it answers.
NEUTRAL_OPTIONS = frozenset(
    (
        *("trust", "trust_code", "trust_pickle", "credential", "max_model_bytes", "max_rows", "max_seconds"),
        *("max_requests", "max_cost", "batch", "authorization_env", "credential_header", "train"),
        *("timeout", "retries", "wait", "concurrency", "rate", "cache"),
    )
)
#: Scores in a probe, and twins of one person among them.
PROBED, PROBED_TWINS = 256, 16
#: Scores of it that are asked again before an identity is used a second time.
AGAIN = 16
#: So many of them may come out otherwise on their own: neighbours at the same distance, told apart by rounding.
ACCIDENTS = 3
#: Scores are the same where they differ by no more than this (for a regression: this share of the largest).
ROUNDING = 1e-5
#: Standard errors by which two samples of varying answers may lie apart.
STANDARD_ERRORS = 5.0


@dataclass(frozen=True, slots=True)
class Identity:
    """Everything that can change a score, as short texts and hashes, and a sample of the scores themselves."""

    ingredients: Mapping[str, str]
    probe: Probe

    @property
    def id(self) -> str:
        """A short name. Scores are part of it only where nothing else tells two models apart."""
        parts = [f"{name}={value}" for name, value in sorted(self.ingredients.items())]
        whole = self.ingredients["model"] != NONE or self.ingredients["origin"].startswith("file ")
        if not whole and not self.probe.varies:
            parts += ["" if score is None else f"{score:.4f}" for score in self.probe.scores]
        return digest(*parts)

    def document(self) -> dict[str, Any]:
        """As it is kept in run.json."""
        return {"id": self.id, "ingredients": dict(self.ingredients), "probe": self.probe.document()}


def identity_of(
    model: Model,
    encoding: Encoding,
    schema: Schema,
    table: Table,
    *,
    test: Table | None = None,
    options: ModelOptions = DEFAULTS,
    origin: str = NONE,
    threshold: float | None = DEFAULT_THRESHOLD,
) -> Identity:
    """The identity of a subject; ``origin`` was known when its model was read."""
    described = [
        (a.name, a.kind, a.low, a.upper, a.stride, a.labels, a.allowed, a.columns, a.immutable, a.missing, a.holds)
        for a in schema.attributes
    ]
    # Plausible twins change no score, but figures that a run keeps.
    rules = [rule.text for rule in schema.rules] + [f"plausible: {rule.text}" for rule in schema.plausible]
    values = [[schema[name].twin_values().tolist(), schema[name].ranges] for name in schema.protected]
    target = f"{schema.target}: {schema.favourable or 'a number'} of {', '.join(schema.classes)}"
    known = (table.codes, table.labels, table.held_out, table.scores)
    more: tuple[Any, ...] = (None, None) if test is None else (test.codes, test.labels)
    more += () if table.weight is None else (table.weight,)
    found = {
        "model": _model_digest(model),
        "origin": origin,
        "options": _options_text(options, model.repeats if isinstance(model, Repeated) else 1),
        "encoding": _encoding_digest(encoding),
        "attributes": digest(json.dumps([described, rules, schema.scores])),
        "target": NONE if schema.target is None else _shown(target),
        "protected": f"{_shown(', '.join(schema.protected) or NONE)} {digest(json.dumps(values))}",
        "threshold": NONE if threshold is None else f"{threshold:.9g}",
        "table": digest(*(NONE if one is None else np.asarray(one) for one in (*known, *more))),
    }
    return Identity(found, ask_probe(model, encoding, schema, table))


def differences(stored: Mapping[str, Any], here: Identity) -> list[str]:
    """What differs between an identity on record and the one at hand: "another threshold (0.5 there, 0.4 here)".

    The probe is looked at only where all ingredients agree: with another model or table its scores differ anyway.
    """
    there, found = stored["ingredients"], []
    for name, words in INGREDIENTS.items():
        was, now = there.get(name, NONE), here.ingredients.get(name, NONE)
        if was != now:
            found.append(words if name in _HASHED else f"{words} ({was} there, {now} here)")
    moved = None if found else Probe.read(stored["probe"]).difference(here.probe)
    return found if moved is None else [f"another model ({moved})"]


def check_identity(record: Mapping[str, Any], here: Identity, *, what: str) -> None:
    """Refuse to go on with a record that is about something else, naming every ingredient that differs."""
    stored = record.get("identity")
    if not isinstance(stored, Mapping) or not fits(stored.get("ingredients"), dict[str, str]) or "probe" not in stored:
        raise OptionError(f"{what} does not say which model it is about; make it again.")
    if not Probe.sound(stored["probe"]):
        raise OptionError(f"{what} is damaged (its probe holds no scores); restore it from a copy, or make it again.")
    found = differences(stored, here)
    if found:
        raise OptionError(f"{what} was made with {joined(found)}; restore what it was, or start a new run.")


def digest(*parts: Any) -> str:
    """A short hash of texts, bytes and arrays; the same on every machine."""
    found = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else str(part).encode(errors="surrogatepass")
        if isinstance(part, np.ndarray):
            plain = np.ascontiguousarray(part)
            plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
            content = f"{plain.dtype.str}{plain.shape}".encode() + plain.tobytes()
        found.update(f"{len(content)}:".encode())
        found.update(content)
    return found.hexdigest()[:16]


def _shown(text: str) -> str:
    """A text that can be read, or its hash where it is too long for a sentence."""
    return text if text.isprintable() and len(text) <= SHOWN else digest(text)


def _model_digest(model: Model) -> str:
    """All of a network, the trees of a tree model, the weights of a module; nothing of a black box."""
    if isinstance(model, Repeated):
        return _model_digest(model.original)
    if isinstance(model, Network):
        activations = [f"{one.name} {one.alpha:.9g}" for one in model.activations_after]
        return digest(*model.weights, *model.biases, *activations, model.head, model.favourable)
    if isinstance(model, TreeModel):
        trees = model.ensemble
        nodes = (trees.roots, trees.output, trees.feature, trees.threshold, trees.left, trees.right, trees.missing)
        ends = (trees.missing_left, trees.sets, trees.values, trees.base)
        sets = [NONE if one is None else np.asarray(one) for one in (*trees.members, *trees.known)]
        return digest(*nodes, *ends, *sets, trees.precision, trees.link, f"{trees.slope:.9g}", model.favourable)
    if isinstance(model, TorchModel):
        held = ", ".join(f"{do.layer}.{do.neuron}={do.value:.9g}" for do in model.held)
        return digest(*_state(model.module), model.output, model.outputs, model.favourable, held)
    if isinstance(model, TwinScores):
        return digest(model.pairs, model.pair, model.answers)
    return NONE


def _state(module: Any) -> list[Any]:
    """The parameters and buffers of a PyTorch module, or the weights of the Keras model inside."""
    state, weights = attribute(module, "state_dict"), attribute(module, "get_weights")
    if callable(state):
        tensors = sorted((str(name), one) for name, one in state().items() if hasattr(one, "detach"))
        return [part for name, tensor in tensors for part in (name, tensor.detach().cpu().numpy())]
    return [np.asarray(array) for array in weights()] if callable(weights) else []


def _encoding_digest(encoding: Encoding) -> str:
    """Which inputs every attribute fills, and how numbers are scaled on the way."""
    parts: list[Any] = [np.dtype(encoding.dtype).name, json.dumps(sorted(encoding.fixed.items()))]
    for part in encoding.parts:
        if isinstance(part, Numeric):
            parts.append(f"{part.column} {part.shift:.9g} {part.scale:.9g} {part.gap}")
        elif isinstance(part, Unseen):
            parts.append("unseen")
        else:
            parts += [part.low, part.columns.astype(np.int64), part.table.astype(np.float32)]
    return digest(*parts)


def _options_text(options: ModelOptions, repeats: int) -> str:
    """Options of the model that can change a score; those that nobody gave are left out."""
    said = {entry.name: getattr(options, entry.name) for entry in fields(options) if entry.name not in NEUTRAL_OPTIONS}
    said |= {"headers": digest(json.dumps(dict(options.headers), sort_keys=True))} if options.headers else {}
    said |= {"repeats": repeats} if repeats > 1 else {}
    given = {name: value for name, value in said.items() if value not in (None, {}, ())}
    return _shown(json.dumps(given, ensure_ascii=False, sort_keys=True)) if given else NONE


def origin_of(original: Any, options: ModelOptions) -> str:
    """Where a model was read from: the bytes of its file, its address, or its code; computed when it is read."""
    found = NONE
    if isinstance(original, str) and is_url(original):
        secret = "@" in original or "?" in original  # where people put names and keys
        found = f"address {digest(original) if secret else _shown(original)}"
    elif isinstance(original, str) and is_reference(original) and not Path(original).exists():
        found = _referenced(original)
    elif isinstance(original, str | Path):
        file = Path(original)
        onnx = file.suffix.lower() == ".onnx" and file.is_file()  # weights may lie in files beside it
        beside = [file.parent / name for name in side_files(file)] if onnx else []
        parts = [one.read_bytes() if one.is_file() else b"" for one in (file, *beside)]
        found = f"file {digest(*parts)}" if file.is_file() else NONE
    elif original is not None:
        found = code_of(original)
    return found if options.factory is None else f"{found} {_referenced(options.factory)}"


def _referenced(reference: str) -> str:
    """The name of some code, and a hash of the module that it stands in."""
    name = reference.partition(":")[0]
    module = sys.modules.get(name)
    spec = module.__spec__ if module is not None and module.__spec__ is not None else importlib.util.find_spec(name)
    place = None if spec is None else spec.origin
    content = Path(place).read_bytes() if place is not None and Path(place).is_file() else b""
    return f"code {reference} {digest(content)}"


def code_of(found: Any) -> str:
    """The module and name of a function, or of an object's class, and a hash of the source where it can be had.

    Installed libraries are named only: their source changes with every release, their scores are probed. So are values
    that are bound to a function.
    """
    while isinstance(found, ForeignModel | Repeated | Loaded | partial | MethodType):
        inner = {Loaded: "model", partial: "func", MethodType: "__func__"}.get(type(found), "original")
        found = getattr(found, inner)
    code: Any = found if isinstance(found, FunctionType | type) else type(found)
    name = f"{attribute(code, '__module__')}:{attribute(code, '__qualname__')}"
    if name.startswith("fairbits."):
        return NONE
    try:
        file, source = inspect.getfile(code), inspect.getsource(code)
    except (OSError, TypeError):  # typed at a prompt, or compiled
        file, source = "", code.__code__.co_code.hex() if isinstance(code, FunctionType) else ""
    known = [sysconfig.get_path(one) for one in ("stdlib", "platstdlib", "purelib", "platlib")]
    installed = name.startswith("builtins:") or any(Path(file).is_relative_to(place) for place in known if file)
    return f"code {name}" if installed else f"code {name} {digest(source)}"


@dataclass(frozen=True, slots=True)
class Probe:
    """Scores of a fixed sample, and how far a second answer came out otherwise."""

    scores: tuple[float | None, ...] = ()
    varied: float = 0.0
    mean: float = 0.0
    spread: float = 0.0
    quantile: float = 0.0
    largest: float = 0.0

    @classmethod
    def sound(cls, document: Any) -> bool:
        """Whether a document from a file can be read as a probe."""
        if not isinstance(document, Mapping) or not set(document) <= {one.name for one in fields(cls)}:
            return False
        figures = {name: value for name, value in document.items() if name != "scores"}
        return fits(document.get("scores"), list[float | None]) and fits(figures, dict[str, float])

    @classmethod
    def of(cls, first: npt.ArrayLike, second: npt.ArrayLike | None = None) -> Probe:
        """A probe from one or two rounds of answers."""
        scores = np.asarray(first, dtype=np.float64)
        kept = tuple(float(f"{score:.7g}") if np.isfinite(score) else None for score in scores)
        if second is None or not len(scores):
            return cls(kept)
        away = np.abs(np.nan_to_num(scores) - np.nan_to_num(np.asarray(second, dtype=np.float64)))
        varied = away > _tolerance(scores)
        if not varied.any():
            return cls(kept)
        return cls(
            kept,
            varied=float(varied.mean()),
            mean=float(away.mean()),
            spread=float(np.sqrt((away**2).mean())),
            quantile=float(np.quantile(away, 0.95)),
            largest=float(away.max()),
        )

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Probe:
        """A probe from a document; undoes ``document``."""
        return cls(**{**document, "scores": tuple(document["scores"])})

    @property
    def varies(self) -> bool:
        """Whether the model answered the same question in two ways."""
        return self.varied > 0

    def document(self) -> dict[str, Any]:
        """As it is kept in JSON."""
        return {**asdict(self), "scores": list(self.scores)}

    def difference(self, other: Probe) -> str | None:
        """What tells the two models apart, in a sentence."""
        if len(self.scores) != len(other.scores) or not self.scores:
            return None  # another sample: the tables differ, which is said where tables are compared
        there, here = (
            np.array([np.nan if s is None else s for s in probe.scores], dtype=np.float64) for probe in (self, other)
        )
        away = np.abs(np.nan_to_num(here) - np.nan_to_num(there))
        strange = (away > _tolerance(np.concatenate([there, here]))) | (np.isnan(there) != np.isnan(here))
        if not strange.any():
            return None
        if self.varies or other.varies:
            return self._varying_difference(other, here - there)
        place = int(np.argmax(away))
        return (
            f"scores differ: {int(strange.sum())} of {len(away)} probed, the furthest {there[place]:.4g} there and "
            f"{here[place]:.4g} here"
        )

    def _varying_difference(self, other: Probe, moved: npt.NDArray[np.float64]) -> str | None:
        """Two samples of answers that vary: one model gives both the same mean, spread and share of changes."""
        n = len(moved)
        noise = max(self.spread, other.spread)
        share = (self.varied + other.varied) / 2
        if abs(self.varied - other.varied) > STANDARD_ERRORS * sqrt(2 * share * (1 - share) / n + 1 / n**2):
            there, here = percent(self.varied, 0), percent(other.varied, 0)
            return f"answers vary otherwise ({there} of those probed there, {here} here)"
        if abs(moved.mean()) > STANDARD_ERRORS * noise / sqrt(n):
            return f"mean score differs by {moved.mean():+.3g}, more than its varying answers explain"
        apart = sqrt(float((moved**2).mean()))
        return f"scores differ by {apart:.3g}, more than its varying answers explain" if apart > 2 * noise else None


def ask_probe(model: Model, encoding: Encoding, schema: Schema, table: Table) -> Probe:
    """Ask a model about the sample: twice, unless it is a native network, which answers alike every time."""
    if table.scores is not None:
        return Probe()  # the model is not at hand; its scores are a part of the table
    people = probed_people(schema, table)
    if not len(people):
        return Probe()
    inputs = encoding.encode(people)
    first = np.array(model.scores(inputs), dtype=np.float64)
    if isinstance(model, Network):
        return Probe.of(first)
    found = Probe.of(first, fresh_scores(model, inputs))
    inner = model.original if isinstance(model, Repeated) else model
    if not (found.varies or isinstance(inner, TreeModel | Endpoint | TwinScores)):
        _check_company(model, inputs, first)
    return found


def _check_company(model: Model, inputs: npt.NDArray[Any], first: npt.NDArray[np.float64]) -> None:
    """Refuse a model whose answer about a person depends on who else is in the question: it has no twins to compare.

    A few people are asked again beside nobody but themselves (some models take no single row).
    """
    chosen = _evenly(len(first), AGAIN)
    alone = np.array([model.scores(np.repeat(inputs[i : i + 1], 2, axis=0))[0] for i in chosen], dtype=np.float64)
    apart = ~(np.abs(alone - first[chosen]) <= _tolerance(first))
    if apart.sum() > ACCIDENTS:
        one = int(np.argmax(apart))
        raise ModelError(
            f"the model's score of a person depends on who else is asked about at the same time ({apart.sum()} of "
            f"{len(chosen)} people are scored otherwise on their own, the first {alone[one]:.4g} in place of "
            f"{first[chosen[one]]:.4g}); let it use the codes, means and ranks of its training, and not those of "
            f"the rows in a question."
        )


def still_answers(probe: Probe, model: Model, encoding: Encoding, schema: Schema, table: Table) -> bool:
    """Whether the model still gives the answers of a probe, tried on a few of them.

    A network cannot change, and a service is slow to ask.
    """
    inner = model.original if isinstance(model, Repeated) else model
    if probe.varies or not probe.scores or isinstance(inner, Network | Endpoint):
        return True
    chosen = _evenly(len(probe.scores), AGAIN)
    now = Probe.of(model.scores(encoding.encode(probed_people(schema, table)[chosen])))
    before = Probe(tuple(probe.scores[i] for i in chosen))
    return before.difference(now) is None


def probed_people(schema: Schema, table: Table) -> Codes:
    """The sample: rows spread evenly over the table, each with evenly spread combinations of protected values."""
    if not len(table):
        return np.empty((0, len(schema)))
    if not schema.protected:
        return table.codes[_evenly(len(table), PROBED)].copy()
    twins = Twins(schema)
    chosen = _evenly(twins.m, min(twins.m, PROBED_TWINS))
    rows = _evenly(len(table), PROBED // len(chosen))
    people = np.repeat(table.codes[rows], len(chosen), axis=0)
    people[:, twins.columns] = np.tile(twins.values[chosen], (len(rows), 1))
    return people


def _evenly(count: int, wanted: int) -> npt.NDArray[np.int64]:
    return np.unique(np.rint(np.linspace(0, count - 1, min(count, wanted))).astype(np.int64))


def _tolerance(scores: npt.NDArray[np.float64]) -> float:
    """Probabilities are told apart absolutely, larger numbers beside their size."""
    return ROUNDING * max(1.0, float(np.nanmax(np.abs(scores), initial=0.0)))
