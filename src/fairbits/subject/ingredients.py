"""What goes into an identity, piece by piece: each a short text, or the hash of what is too long to read."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from fairbits.domain import Encoding, Lookup, Numeric, Schema, Table
from fairbits.models import (
    Activation,
    ForeignModel,
    Loaded,
    Model,
    ModelOptions,
    Network,
    Repeated,
    TorchModel,
    TreeModel,
    attribute,
    is_reference,
    is_url,
    kind_of,
    side_files,
)

Ingredients = dict[str, str]

#: Texts up to this length are kept as they are, so that a message can show them.
SHOWN = 200
NONE = "none"
#: An option of the model is the ingredient of its name after this.
OPTION = "option "
#: Options that say what is granted and how a model is asked, and not what it answers.
MANNER = frozenset(
    (
        *("trust", "trust_code", "trust_pickle", "credential", "max_model_bytes", "max_rows", "max_seconds"),
        *("batch", "authorization_env", "credential_header", "train"),
        *("timeout", "retries", "wait", "concurrency", "rate", "cache"),
    )
)


def digest(*parts: Any) -> str:
    """A short hash of texts, bytes and arrays; the same on every machine."""
    found = hashlib.sha256()
    for part in parts:
        content = _bytes(part)
        found.update(f"{len(content)}:".encode())
        found.update(content)
    return found.hexdigest()[:16]


def _bytes(part: Any) -> bytes:
    if isinstance(part, bytes):
        return part
    if isinstance(part, np.ndarray):
        plain = np.ascontiguousarray(part)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        return f"{plain.dtype.str}{plain.shape}".encode() + plain.tobytes()
    return str(part).encode(errors="surrogatepass")


def _shown(text: str) -> str:
    """A text that can be read, or its hash where it is too long for a sentence."""
    plain = text.isprintable() and len(text) <= SHOWN
    return text if plain else digest(text)


def of_model(model: Model) -> Ingredients:
    """Ingredients of the model itself: all of a network, the weights of a module, nothing of a black box."""
    if isinstance(model, Repeated):
        return {**of_model(model.original), "repeats": str(model.repeats)}
    found = {"kind": kind_of(model), "repeats": "1"}
    if isinstance(model, Network):
        words = [_activation(one) for one in model.activations_after]
        return found | {
            "weights": digest(*model.weights),
            "biases": digest(*model.biases),
            "activations": _shown(words[0] if len(set(words)) == 1 else ", ".join(words) or NONE),
            "head": model.head,
            "scored_class": str(model.favourable),
        }
    if isinstance(model, TreeModel):
        return found | _of_trees(model)
    if isinstance(model, TorchModel):
        held = ", ".join(f"{do.layer}.{do.neuron}={do.value:.9g}" for do in model.held)
        return found | {
            "weights": _state(model.module),
            "head": f"{model.output}, {model.outputs}",
            "scored_class": str(model.favourable),
            "held": _shown(held or NONE),
        }
    return found


def _of_trees(model: TreeModel) -> Ingredients:
    """What the trees of a model ask, where each answer leads, and what comes out."""
    trees = model.ensemble
    members = [np.asarray(one) for one in trees.members]
    known = [NONE if one is None else np.asarray(one) for one in trees.known]
    return {
        "splits": digest(trees.roots, trees.output, trees.feature, trees.left, trees.right, trees.precision),
        "thresholds": digest(trees.threshold),
        "missing_ways": digest(trees.missing, trees.missing_left),
        "category_sets": digest(trees.sets, *members, "known", *known),
        "leaves": digest(trees.values),
        "base_score": _shown(", ".join(f"{value:.9g}" for value in trees.base.tolist())),
        "head": f"{trees.link}, {trees.slope:.9g}",
        "scored_class": str(model.favourable),
    }


def _activation(one: Activation) -> str:
    return f"{one.name}({one.alpha:.9g})" if one.alpha else one.name


def _state(module: Any) -> str:
    """The parameters and buffers of a PyTorch module, or the weights of the Keras model inside."""
    state = attribute(module, "state_dict")
    if callable(state):
        tensors = {str(name): tensor for name, tensor in state().items()}
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items() if hasattr(tensor, "detach")}
        return digest(*(part for name in sorted(arrays) for part in (name, arrays[name])))
    weights = attribute(module, "get_weights")
    return digest(*(np.asarray(array) for array in weights())) if callable(weights) else NONE


def of_encoding(encoding: Encoding) -> Ingredients:
    """Which inputs every attribute fills, and how numbers are scaled on the way."""
    places: list[Any] = [np.dtype(encoding.dtype).name, json.dumps(sorted(encoding.fixed.items()))]
    scaling: list[str] = []
    for part in encoding.parts:
        if isinstance(part, Numeric):
            places.append(f"number {part.column}")
            scaling.append(f"{part.shift:.9g} {part.scale:.9g}")
            if part.gap is not None:
                scaling.append(f"missing {part.gap:.9g} nan")
        elif isinstance(part, Lookup):
            places += [f"table {part.low}", part.columns.astype(np.int64), part.table.astype(np.float32)]
        else:
            places.append("unseen")
    return {"encoding": digest(*places), "scaling": digest(*scaling)}


def of_schema(schema: Schema) -> Ingredients:
    """Who can exist, what is decided, and which values make twins."""
    described = [
        (
            *(a.name, a.kind, a.low, a.upper, a.stride, a.labels, a.allowed, a.columns, a.immutable),
            *(said for said in (a.missing, a.holds) if said),
        )
        for a in schema.attributes
    ]
    values = [[[float(v) for v in schema[name].twin_values()], schema[name].ranges] for name in schema.protected]
    return {
        "attributes": digest(json.dumps(described)),
        "target": _shown(schema.target or NONE),
        "classes": _shown(", ".join(schema.classes) or NONE),
        "favourable": _shown(schema.favourable or NONE),
        "protected": _shown(", ".join(schema.protected) or NONE),
        "protected_values": digest(json.dumps(values)),
        "rules": _shown("; ".join(rule.text for rule in schema.rules) or NONE),
        "compared": schema.scores,
    }


def of_table(table: Table, test: Table | None) -> Ingredients:
    """The people, what is known of them, and who of them was held out."""
    return {
        "rows": _array(table.codes),
        "labels": _array(table.labels),
        "held_out": _array(table.held_out),
        "test_rows": _array(None if test is None else test.codes),
        "test_labels": _array(None if test is None else test.labels),
        **({} if table.scores is None else {"scores": _array(table.scores)}),
    }


def _array(array: Any) -> str:
    return NONE if array is None else digest(np.asarray(array))


def of_options(options: ModelOptions) -> Ingredients:
    """Options of the model that can change a score, each by itself; those that nobody gave are left out."""
    said = {entry.name: getattr(options, entry.name) for entry in fields(options) if entry.name not in MANNER}
    return {OPTION + name: _plain(value) for name, value in said.items() if value not in (None, {}, ())}


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return digest(json.dumps(dict(value), sort_keys=True))  # headers may hold what nobody else should read
    return _shown(json.dumps(value, ensure_ascii=False))  # with its quotes, so that no text reads like "none"


def of_origin(original: Any, options: ModelOptions) -> Ingredients:
    """Where a model was read from: the bytes of its file, its address, or its code; computed when it is read."""
    found = {"model_file": NONE, "address": NONE, "code": NONE}
    if isinstance(original, str) and is_url(original):
        secret = "@" in original or "?" in original  # where people put names and keys
        found["address"] = digest(original) if secret else _shown(original)
    elif isinstance(original, str) and is_reference(original) and not Path(original).exists():
        found["code"] = _referenced(original)
    elif isinstance(original, str | Path):
        file = Path(original)
        found["model_file"] = _of_file(file) if file.is_file() else NONE
    elif original is not None:
        found["code"] = code_of(original)
    if options.factory is not None:
        found["code"] = f"{found['code']} {_referenced(options.factory)}".removeprefix(f"{NONE} ")
    return found


def _of_file(file: Path) -> str:
    """The bytes of a model's file, and of those beside it that hold its weights."""
    parts: list[Any] = [file.read_bytes()]
    for name in side_files(file):
        beside = file.parent / name
        parts += [name, beside.read_bytes() if beside.is_file() else b""]
    return digest(*parts)


def _referenced(reference: str) -> str:
    """The name of some code, and a hash of the module that it stands in."""
    name = reference.partition(":")[0]
    module = sys.modules.get(name)
    spec = module.__spec__ if module is not None and module.__spec__ is not None else importlib.util.find_spec(name)
    place = None if spec is None else spec.origin
    content = Path(place).read_bytes() if place is not None and Path(place).is_file() else b""
    return f"{reference} {digest(content)}"


def code_of(found: Any) -> str:
    """The module and name of a function, or of an object's class, and a hash of the source where it can be had.

    Installed libraries are named only: their source changes with every release, their scores are probed.
    """
    while isinstance(found, ForeignModel | Repeated | Loaded):
        found = found.model if isinstance(found, Loaded) else found.original
    bound: list[Any] = []
    while isinstance(found, partial | MethodType):
        if isinstance(found, partial):
            bound += [repr(_simple(found.args)), repr(_simple(sorted(found.keywords.items())))]
            found = found.func
        else:
            bound.append(code_of(found.__self__))
            found = found.__func__
    code: Any = found if isinstance(found, FunctionType | type) else type(found)
    module, name = attribute(code, "__module__"), attribute(code, "__qualname__")
    if str(module).partition(".")[0] == "fairbits":
        return NONE
    if _installed(code):
        return f"{module}:{name}"
    if isinstance(code, FunctionType):
        bound += [repr(_simple(code.__defaults__)), repr(_simple(code.__kwdefaults__))]
    return f"{module}:{name} {digest(_source(code), *bound)}"


def _installed(code: Any) -> bool:
    try:
        file = inspect.getfile(code)
    except (TypeError, OSError):
        return attribute(code, "__module__") == "builtins"
    known = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return any(Path(file).is_relative_to(place) for place in known if place)


def _source(code: Any) -> str:
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):  # typed at a prompt, or compiled
        return _compiled(code.__code__) if isinstance(code, FunctionType) else ""


def _compiled(code: CodeType) -> str:
    """What a function does, where nobody kept its source."""
    constants = [_compiled(one) if isinstance(one, CodeType) else repr(_simple(one)) for one in code.co_consts]
    return "\n".join([code.co_code.hex(), *code.co_names, *constants])


def _simple(value: Any) -> Any:
    """A value that reads the same in every process; other objects by the name of their type."""
    if isinstance(value, tuple | list):
        return [_simple(one) for one in value]
    if isinstance(value, Mapping):
        return [[_simple(name), _simple(one)] for name, one in value.items()]
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return value
    return digest(value) if isinstance(value, np.ndarray) and value.dtype != object else type(value).__qualname__
