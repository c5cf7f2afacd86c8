"""The written file is the audited model: what was promised, what the file says, and a record of the comparison.

The facts that a file holds about a model stand here too: how its owner asks it, the classes with their types, the
twins.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.data import Fitted
from fairbits.domain import (
    MISSING,
    Attribute,
    Category,
    Codes,
    Decoder,
    Doubles,
    Encoding,
    Integers,
    Lookup,
    Numeric,
    Schema,
    Truth,
    Twins,
    Unseen,
    table_columns,
    text_of,
    values_of,
)
from fairbits.errors import MissingDependencyError
from fairbits.measure import qid
from fairbits.models import Endpoint, HasClassScores, Network, Repeated, names_of
from fairbits.models import attribute as attribute_of
from fairbits.repair.judgement import AsksPeople
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.records import FileCheck
from fairbits.repair.writers.checker import TOLERANCE, Answer, Job, apart
from fairbits.subject import Subject

About = dict[str, Any]


def rows_of(subject: Subject, codes: Codes) -> Any:
    """People as the owner's table has them: a frame with its types; without pandas, columns of values by name."""
    decoder = Decoder(subject.schema)
    try:
        return decoder.frame(codes)
    except MissingDependencyError:
        return decoder.mapping(codes)


def class_values(subject: Subject, model: Any = None) -> list[Any]:
    """The classes in the schema's order, with the types that the model or the table gives them."""
    classes = subject.schema.classes
    for known in (attribute_of(model, "classes_"), attribute_of(subject.original, "classes_")):
        own = {} if known is None else {text_of(one): plain(one) for one in np.ravel(known).tolist()}
        if set(own) == set(classes):
            return [own[name] for name in classes]
    return list(values_of(Category(name="class", labels=classes)).tolist()) if classes else []


def plain(value: Any) -> Any:
    """A value as JSON holds it."""
    return value.item() if isinstance(value, np.generic) else value


def attribute_facts(attribute: Attribute, part: Numeric | Lookup | Unseen | None = None) -> About:
    """How the values of one attribute are read as codes, and what these become among the inputs."""
    labels = {label: float(attribute.low + i) for i, label in enumerate(attribute.labels) if label != MISSING}
    facts: About = {
        "name": attribute.name,
        "columns": list(attribute.columns) or None,
        "labels": labels if attribute.labels else None,
        "coded": bool(attribute.labels) and not attribute.numeric_labels,
        "allowed": list(attribute.allowed),
        "low": float(attribute.low),
        "high": float(attribute.upper),
        "whole": attribute.discrete,
        "gap": attribute.gap,
        "lacking": None if attribute.missing == "value" else attribute.gap,
        "part": None,
    }
    if isinstance(part, Numeric):
        facts["part"] = {name: getattr(part, name) for name in ("column", "shift", "scale", "gap")}
    elif isinstance(part, Lookup):
        facts["part"] = {"columns": part.columns.tolist(), "table": part.table.tolist(), "low": part.low}
    return facts


def protected_facts(schema: Schema) -> list[About]:
    """The protected attributes, as a guard reads them."""
    return [attribute_facts(schema.attributes[column]) for column in schema.protected_columns]


def twin_columns(schema: Schema, twins: Twins) -> tuple[list[str], list[list[Any]]]:
    """The table's columns of protected attributes, and what each twin has in them."""
    sample_row = np.array([[attribute.first for attribute in schema.attributes]])
    shown = Decoder(schema).mapping(twins.expand(sample_row)[0])
    names = [name for column in twins.columns for name in schema.attributes[column].own_columns]
    days = {name: np.datetime_as_string(shown[name], unit="D") for name in names if shown[name].dtype.kind == "M"}
    values = [[plain(one) for one in days.get(name, shown[name]).tolist()] for name in names]
    return names, [list(row) for row in zip(*values, strict=True)]


def asked(schema: Schema, classes: list[Any], **facts: Any) -> About:
    """How a model is asked, with what most leave out filled in."""
    return {
        **{
            "network": None,
            "file": None,
            "trusted": False,
            "give": "",
            "classes": classes,
            "columns": [],
            "names": None,
        },
        **{"categories": {}, "attributes": [], "fixed": {}, "width": len(schema), "dtype": "float64", "form": "inputs"},
        **{"call": "call", "read": {"link": None, "order": list(range(len(classes))), "speaks": 1}},
        **facts,
    }


def by_inputs(schema: Schema, encoding: Encoding, classes: list[Any], **facts: Any) -> About:
    """Asked with inputs that the attributes become by an encoding."""
    parts = zip(schema.attributes, encoding.parts, strict=True)
    return asked(
        schema,
        classes,
        attributes=[attribute_facts(attribute, part) for attribute, part in parts],
        fixed={str(column): value for column, value in encoding.fixed.items()},
        width=int(encoding.width),
        dtype=np.dtype(encoding.dtype).name,
        **facts,
    )


def embedded(network: Network, schema: Schema, encoding: Encoding, classes: list[Any]) -> About:
    """A native network in the file itself."""
    held = io.BytesIO()
    arrays = {f"W{i}": w for i, w in enumerate(network.weights)} | {f"b{i}": b for i, b in enumerate(network.biases)}
    np.savez_compressed(held, **arrays)  # type: ignore[arg-type]  # NumPy's stub does not take ** of arrays
    about = {
        "arrays": base64.b64encode(held.getvalue()).decode(),
        "activations": [(a.name, a.alpha) for a in network.activations_after],
        "head": network.head,
    }
    return by_inputs(schema, encoding, classes, network=about)


def ways(subject: Subject, model: Any, classes: list[Any], *, encodings: Iterable[Encoding] = ()) -> list[About]:
    """How the model's owner may ask it, likeliest first: whichever gives back the audited scores is the one."""
    schema, options = subject.schema, subject.options
    names = None if isinstance(model, Path) else names_of(model, schema)
    known = table_columns(schema)
    columns = [str(name) for name in names or options.columns or known]
    found: list[About] = []
    if set(columns) <= set(known):
        tables = {
            attribute.name: [plain(one) for one in values_of(attribute).tolist()]
            for attribute in schema.attributes
            if attribute.kind == "category" and not attribute.columns and attribute.name in columns
            if values_of(attribute).dtype.kind not in "bM"  # neither is ever a category
        }
        frame = asked(schema, classes, form="frame", columns=columns)
        found = [frame, {**frame, "categories": tables}] if tables else [frame]
        array = asked(schema, classes, form="array", columns=columns)
        found = [*found, array] if names is not None else [array, *found]
    seen = [a.name for a in schema.attributes if set(a.own_columns) & set(columns)] or list(schema.names)
    coded = Encoding.identity(schema, columns=seen, dtype=np.float64).with_gaps(schema)
    for encoding in (*encodings, subject.encoding, coded):
        inputs = by_inputs(schema, encoding, classes)
        own = [str(name) for name in names or ()]
        found += [{**inputs, "names": own}, inputs] if len(own) == encoding.width else [inputs]
    if options.input_format == "codes":
        found = found[::-1]
    return found


#: Held-out rows that a file is asked about at most, and people of whom all twins are.
ROWS, PEOPLE = 2_000, 25
#: Share of rows so close to the threshold that rounding decides about them, and may decide otherwise in a file.
TIES = 0.01
#: Scores that a check may cost: a guard asks about all twins of every row. A service is asked far less.
EFFORT, EFFORT_OF_SERVICE = 200_000, 500


@dataclass(frozen=True, eq=False)
class Promise:
    """What the judged model says about people: the file must say the same."""

    model: Any
    subject: Subject
    people: Codes
    classes: list[Any]
    fitted: Fitted | None = None
    k_max: int | None = None
    epsilon: float = 0.025
    partition: str = "constrained"

    @property
    def schema(self) -> Schema:
        """The subject's."""
        return self.subject.schema

    @property
    def affordable(self) -> int:
        """Rows that the check may ask about: a guard scores all twins of each, and a service is asked far less."""
        inner = self.subject.model
        inner = inner.original if isinstance(inner, Repeated) else inner
        effort = EFFORT_OF_SERVICE if isinstance(inner, Endpoint) else EFFORT
        return effort // (self.model.m if isinstance(self.model, Guard) else 1)

    def says(self, codes: Codes) -> Doubles:
        """Probabilities of all classes (n, classes), or values (n, 1)."""
        return table_of(self.model, self.subject, codes, self.fitted)

    @cached_property
    def rows(self) -> Codes:
        """Held-out rows (and cases), evenly over those that are given."""
        count = min(ROWS, len(self.people), max(20, self.affordable))
        return self.people[np.linspace(0, len(self.people) - 1, count).astype(np.int64)]

    @cached_property
    def twins(self) -> Codes:
        """All twins of some of the people, one person after the other."""
        twins = Twins(self.schema)
        some = self.rows[: max(1, min(PEOPLE, self.affordable // (2 * twins.m)))]
        return twins.expand(some).reshape(-1, len(self.schema))

    @cached_property
    def tolerance(self) -> float:
        """How far scores may lie apart; as far as two answers of a model that varies do, and half as far again."""
        varies = isinstance(self.model, Guard) and self.model.varies
        return TOLERANCE + (1.5 * apart(self.says(self.rows), self.wanted["rows"]) if varies else 0.0)

    @cached_property
    def tables(self) -> dict[str, Any]:
        """The rows of every question, as the owner's table has them."""
        return {"rows": rows_of(self.subject, self.rows), "twins": rows_of(self.subject, self.twins)}

    @cached_property
    def wanted(self) -> dict[str, Doubles]:
        """What the judged model says about them."""
        return {"rows": self.says(self.rows), "twins": self.says(self.twins)}

    @cached_property
    def odd_tables(self) -> dict[str, dict[str, Any]]:
        """The same rows with protected values missing, unknown or absent, and with columns in another order."""
        some = Decoder(self.schema).mapping(self.rows[:200])
        size = len(next(iter(some.values())))
        missing, unknown = dict(some), dict(some)
        for one in protected_facts(self.schema):
            text = one["labels"] is not None and not one["columns"]
            kind, nobody = (object, "nobody's") if text else (np.float64, one["high"] + 1e6)
            for name in filter(None, one["columns"] or [one["name"]]):
                missing[name] = np.full(size, None if text else np.nan, kind)
                unknown[name] = np.full(size, nobody, kind)
        return {
            "missing": missing,
            "unknown": unknown,
            "absent": {name: values for name, values in some.items() if missing[name] is values},
            "turned": {"(another column)": np.arange(size)} | dict(reversed(some.items())),
            "one": {name: values[:1] for name, values in some.items()},
            "none": {name: values[:0] for name, values in some.items()},
        }

    def odd_wanted(self) -> dict[str, Doubles]:
        """What a guard says about those: the average where a protected value is nobody's."""
        guard = self.model
        codes, own = self.rows[:200], self.wanted["rows"][:200]
        average = own if guard.tau == 0 else table_of(guard.with_guarantee(1), self.subject, codes, None)
        same = dict.fromkeys(("missing", "unknown", "absent"), average)
        return {**same, "turned": own, "one": own[:1], "none": own[:0]}


def table_of(model: Any, subject: Subject, codes: Codes, fitted: Fitted | None) -> Doubles:
    """What a model says about people: probabilities of all classes (n, classes), or values (n, 1)."""
    schema = subject.schema
    people = isinstance(model, AsksPeople)
    if people and schema.classes:
        return np.asarray(model.people_class_scores(codes), np.float64)
    inputs = codes if people else (subject.encoding if fitted is None else fitted.encoding).encode(codes)
    if len(schema.classes) > 2 and isinstance(model, HasClassScores):
        return np.asarray(model.class_scores(inputs), np.float64)
    scores = np.asarray(model.people_scores(inputs) if people else model.scores(inputs), np.float64)
    return np.asarray(schema.rule.both(scores)) if len(schema.classes) == 2 else scores[:, None]


def judged(answer: Answer, promise: Promise, job: Job, *, fresh: bool) -> FileCheck:
    """What a file said, against what was promised; nothing is raised."""
    name = Path(job["file"]).name
    if answer["fault"]:
        return FileCheck(name, False, fresh=fresh, why=answer["fault"])
    schema, wanted = promise.schema, {**promise.wanted, **job.get("odd", {})}
    compared, faults = ["scores"], []
    found: Mapping[str, Any] = answer["scores"]
    due = wanted["rows"]
    size = max(1.0, float(np.abs(due).max(initial=0.0)))
    given = _alike(found["rows"], due, schema)
    if given.shape != due.shape:
        return FileCheck(name, False, answer["library"], fresh, why=f"it answers an array of shape {given.shape}.")
    off = np.abs(given - due).max(axis=1) / size
    off = np.where(np.isfinite(off), off, np.inf)
    near = off <= promise.tolerance
    if not near.all():
        row = int(np.argmax(off))
        faults.append(f"its scores differ by {off[row]:.2g}, first in row {int(np.argmin(near)) + 1} of those compared")
    if "favourable" in answer and apart(answer["favourable"], due[:, schema.favourable_index]) > promise.tolerance:
        faults.append("its scores are not those of the favourable class")
    for what, (asked_about, complaint) in _QUESTIONS.items():
        if what in found:
            mine, theirs = _alike(found[what], wanted[what], schema), wanted[what]
            if mine.shape != theirs.shape or apart(mine, theirs) > promise.tolerance:
                faults.append(complaint)
            compared.append(asked_about)
    if schema.classes:
        close = _near_cut(due, schema, promise.tolerance)
        wrong = _decisions(answer, given, schema, promise.classes, faults) != _decided(due, schema)
        if (wrong & ~close).any() or wrong.mean() > TIES:
            faults.append(f"it decides {int(wrong.sum()):,} of {len(wrong):,} rows differently")
        near &= ~wrong
        compared += ["decisions", "threshold"]
        if answer["classes"] is not None:
            compared.append("classes")
            _check_classes(answer["classes"], promise.classes, faults, typed=job["by"] == "module")
    k_max = _largest_k(found.get("twins"), promise, faults)
    largest = float(off.max(initial=0.0))
    return FileCheck(
        name,
        not faults,
        answer["library"],
        fresh,
        len(near),
        int(near.sum()),
        promise.tolerance,
        largest if np.isfinite(largest) else None,
        tuple(compared),
        k_max,
        "; ".join(faults),
    )


#: What else a file is asked about: what that is called, and what is said where it answers otherwise.
_QUESTIONS = {
    "twins": ("twins", "it scores twins differently"),
    "missing": ("missing protected values", "somebody without protected values does not get the average"),
    "blank": ("missing protected inputs", "somebody without protected inputs does not get the average"),
    "unknown": ("unknown protected values", "somebody with unknown protected values does not get the average"),
    "absent": ("protected columns left out", "a table without the protected columns does not get the average"),
    "turned": ("columns in another order", "columns in another order give other scores"),
    "one": ("one row", "a single row gives another score"),
    "none": ("no rows", "a table without rows is not answered"),
}


def _alike(found: Any, wanted: Doubles, schema: Schema) -> Doubles:
    """As a table of the wanted columns: of a model that tells one score of three classes, that one."""
    table = np.asarray(found, np.float64)
    table = table[:, None] if table.ndim == 1 else table
    return table[:, [schema.favourable_index]] if wanted.shape[1] == 1 < table.shape[1] else table


def _decided(table: Doubles, schema: Schema) -> Integers:
    return schema.rule.most_likely(table) if table.shape[1] > 1 else schema.rule.decide(table[:, 0])


def _favoured(table: Doubles, schema: Schema) -> Doubles:
    return table[:, 0 if table.shape[1] == 1 else schema.favourable_index]


def _decisions(answer: Answer, given: Doubles, schema: Schema, classes: list[Any], faults: list[str]) -> Integers:
    """The file's own decisions as positions of classes; by the threshold where it leaves deciding to its owner."""
    if answer["decisions"] is None:
        return _decided(given, schema)
    places = {text_of(one): i for i, one in enumerate(classes)}
    said = np.ravel(answer["decisions"]).tolist()
    _check_classes(sorted(set(said), key=str), classes, faults, typed=True, some=True)
    return np.array([places.get(text_of(one), -1) for one in said], np.int64)


def _check_classes(found: list[Any], classes: list[Any], faults: list[str], *, typed: bool, some: bool = False) -> None:
    """Refuse other names of classes, or other types of them."""

    def known(one: Any) -> Any:
        return (type(one).__name__, one) if typed else text_of(one)

    mine, theirs = {known(one) for one in found}, {known(one) for one in classes}
    if (not mine <= theirs) if some else mine != theirs:
        faults.append(f"it calls its classes {found!r}, and the model {classes!r}")


def _near_cut(table: Doubles, schema: Schema, tolerance: float) -> Truth:
    """Rows so close to the threshold (or to a tie) that rounding may decide."""
    if table.shape[1] == 1 or len(schema.classes) == 2:
        return np.asarray(np.abs(_favoured(table, schema) - (schema.rule.threshold or 0.5)) <= tolerance)
    top = np.sort(table, axis=1)
    return np.asarray(top[:, -1] - top[:, -2] <= 2 * tolerance)


def _largest_k(found: Any, promise: Promise, faults: list[str]) -> int | None:
    """The largest k among twins by the file; refused where it exceeds what was proved."""
    schema = promise.schema
    if found is None or schema.scores == "vector":
        return None
    scores = _favoured(_alike(found, promise.wanted["twins"], schema), schema)
    by_person = scores.reshape(-1, Twins(schema).m).astype(np.float32)
    k = int(qid(by_person, epsilon=promise.epsilon, partition=promise.partition).k.max())
    if promise.k_max is not None and k > promise.k_max:
        faults.append(f"twins have k = {k}, and {promise.k_max} was proved")
    return k
