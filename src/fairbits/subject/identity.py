"""Which model, table and schema a figure is about: ingredient by ingredient, and by a probe of the scores themselves.

Every ingredient is a short text in run.json, so that whoever is refused reads which one differs. The probe tells
models apart that have no bytes to be hashed: functions, estimators in memory, services.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairbits.domain import Encoding, Schema, Table, joined
from fairbits.errors import OptionError
from fairbits.models import Model, ModelOptions
from fairbits.shape import fits
from fairbits.subject import ingredients
from fairbits.subject.probe import Probe, ask_probe

#: Of two classes the favourable one is decided from this probability on.
DEFAULT_THRESHOLD = 0.5
#: Ingredient by ingredient: what it belongs to, and what it is called in a sentence.
WORDS: dict[str, tuple[str, str]] = {
    "kind": ("model", "kind differs"),
    "weights": ("model", "weights differ"),
    "biases": ("model", "biases differ"),
    "activations": ("model", "activation differs"),
    "splits": ("model", "splits differ"),
    "thresholds": ("model", "thresholds differ"),
    "missing_ways": ("model", "ways of missing values differ"),
    "category_sets": ("model", "sets of categories differ"),
    "leaves": ("model", "leaves differ"),
    "base_score": ("model", "base score differs"),
    "head": ("model", "head differs"),
    "scored_class": ("model", "scored class differs"),
    "held": ("model", "held neurons differ"),
    "repeats": ("model", "number of repeated answers differs"),
    "model_file": ("model", "file differs"),
    "address": ("model", "address differs"),
    "code": ("model", "code differs"),
    "encoding": ("encoding", "inputs differ"),
    "scaling": ("encoding", "scaling differs"),
    "attributes": ("schema", "attributes differ"),
    "target": ("schema", "target differs"),
    "classes": ("schema", "classes differ"),
    "favourable": ("schema", "favourable value differs"),
    "protected": ("schema", "protected attributes differ"),
    "protected_values": ("schema", "protected values differ"),
    "rules": ("schema", "rules differ"),
    "compared": ("schema", "compared scores differ"),
    "threshold": ("decision rule", "threshold differs"),
    "rows": ("table", "rows differ"),
    "labels": ("table", "labels differ"),
    "held_out": ("table", "held-out rows differ"),
    "test_rows": ("table", "test rows differ"),
    "test_labels": ("table", "test labels differ"),
    "scores": ("table", "scores differ"),
}
#: Hashes say nothing to a reader.
_HASHED = {"weights", "biases", "model_file", "encoding", "scaling", "attributes", "protected_values"}
_HASHED |= {"splits", "thresholds", "missing_ways", "category_sets", "leaves"}
_HASHED |= {"rows", "labels", "held_out", "test_rows", "test_labels", f"{ingredients.OPTION}headers"}
#: Earlier versions kept all options as one, in a hash that nobody can read.
EARLIER = "options"
#: Ingredients that hold all of a model by themselves.
_WHOLE = ("weights", "leaves", "model_file")


@dataclass(frozen=True, slots=True)
class Identity:
    """Everything that can change a score, as hashes, and a sample of the scores themselves."""

    ingredients: Mapping[str, str]
    probe: Probe

    @property
    def id(self) -> str:
        """A short name. Scores are part of it only where nothing else tells two models apart."""
        parts = [f"{name}={value}" for name, value in sorted(self.ingredients.items())]
        whole = any(self.ingredients.get(name, ingredients.NONE) != ingredients.NONE for name in _WHOLE)
        if not whole and not self.probe.varies:
            parts += ["" if score is None else f"{score:.4f}" for score in self.probe.scores]
        return ingredients.digest(*parts)

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
    options: ModelOptions | None = None,
    origin: Mapping[str, str] | None = None,
    threshold: float | None = DEFAULT_THRESHOLD,
) -> Identity:
    """The identity of a subject."""
    found = {
        **ingredients.of_model(model),
        **(ingredients.of_origin(None, ModelOptions()) if origin is None else origin),
        **ingredients.of_options(options or ModelOptions()),
        **ingredients.of_encoding(encoding),
        **ingredients.of_schema(schema),
        "threshold": "none" if threshold is None else f"{threshold:.9g}",
        **ingredients.of_table(table, test),
    }
    return Identity(found, ask_probe(model, encoding, schema, table))


def differences(stored: Mapping[str, Any], here: Identity) -> dict[str, list[str]]:
    """What differs between an identity on record and the one at hand.

    The probe is looked at only where all ingredients agree: with other weights or rows its scores differ anyway.
    """
    there: Mapping[str, str] = stored["ingredients"]
    found: dict[str, list[str]] = {}
    for name, words in _different(there, here.ingredients):
        found.setdefault(_words(name)[0], []).append(words)
    if not found:
        moved = list(Probe.read(stored["probe"]).differences(here.probe))
        if moved:
            found["model"] = moved
    return found


def difference_words(found: Mapping[str, Sequence[str]]) -> str:
    """Differences between two identities in words."""
    return "; ".join(f"the {noun}'s {joined(list(words))}" for noun, words in found.items())


def check_identity(record: Mapping[str, Any], here: Identity, *, what: str) -> None:
    """Refuse to go on with a record that is about something else, naming every ingredient that differs."""
    stored = record.get("identity")
    whole = isinstance(stored, Mapping) and fits(stored.get("ingredients"), dict[str, str])
    if not isinstance(stored, Mapping) or not whole or "probe" not in stored or EARLIER in stored["ingredients"]:
        raise OptionError(
            f"{what} does not say which model it is about (an earlier fairbits wrote it); make it again with this one."
        )
    if not Probe.sound(stored["probe"]):
        raise OptionError(f"{what} is damaged (its probe holds no scores); restore it from a copy, or make it again.")
    found = differences(stored, here)
    if found:
        raise OptionError(
            f"{what} was made with another {joined(list(found))}: {difference_words(found)}; restore what it was, "
            f"or start a new run."
        )


def _different(there: Mapping[str, str], here: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in dict.fromkeys((*WORDS, *there, *here)):
        was, now = there.get(name, ingredients.NONE), here.get(name, ingredients.NONE)
        if was != now:
            words = _words(name)[1]
            yield name, words if name in _HASHED else f"{words} ({was} there, {now} here)"


def _words(name: str) -> tuple[str, str]:
    """What an ingredient belongs to and what it is called; options of the model have no line of their own."""
    return WORDS.get(name, ("model", f"{name} differs"))
