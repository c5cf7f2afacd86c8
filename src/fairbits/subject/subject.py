"""A subject: a model, the people it decides about, and the words to read both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairbits.domain import Encoding, Schema, Table, check_rules, people_notes
from fairbits.errors import ModelError
from fairbits.models import (
    Endpoint,
    Loaded,
    Model,
    ModelOptions,
    Network,
    Repeated,
    adapt,
    fit_to_schema,
    names_decide,
    output_order,
    with_model_classes,
)
from fairbits.subject.checks import against_labels, quality_of, quality_of_scores
from fairbits.subject.identity import Identity, identity_of
from fairbits.subject.ingredients import of_origin
from fairbits.subject.probe import Probe, still_answers
from fairbits.subject.quality import Quality

#: Values of a protected number that a note lists.
MAX_SHOWN = 8


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """What a run is about. ``test`` holds people whom the model has never seen, where there is such a table.

    Parameters
    ----------
    name
        What it is called in reports and folders.
    schema, model, encoding
        Who is asked about, what decides, and how codes become the model's inputs.
    table
        The people.
    test
        People whom the model has never seen, where there is such a table.
    notes
        What was guessed or fell back; every output shows them.
    source
        What ``load_subject`` was given, where it was.
    original, options
        What the model was read from (a file, a reference to code, or an object), and how.
    named
        Whether the model itself names its classes, so that their order is no guess.
    quality
        How it agrees with the labels, once it was checked.
    as_is
        Whether it was accepted although it decides against the labels.
    origin
        The ingredients of its identity that were known when it was read.
    """

    name: str
    schema: Schema
    model: Model
    encoding: Encoding
    table: Table
    test: Table | None = None
    notes: tuple[str, ...] = ()
    source: str | None = None  # what load_subject was given, where it was
    original: Any = None  # what the model was read from: a file, a reference to code, or an object
    options: ModelOptions = field(default_factory=ModelOptions)  # and how
    named: bool = False  # whether the model itself names its classes, so that their order is not guessed
    quality: Quality | None = None  # how it agrees with the labels, once it was checked
    as_is: bool = False  # whether it was accepted although it decides against the labels
    origin: Mapping[str, str] | None = None  # the ingredients of its identity that were known when it was read
    _identity: Identity | None = field(default=None, init=False, repr=False)

    def short(self) -> str:
        """Its name, its model and its people, in a line."""
        model = type(self.model.original if isinstance(self.model, Repeated) else self.model).__name__
        return f"{self.name!r}: {model}, {len(self.table):,} people, protected: {', '.join(self.schema.protected)}"

    def __repr__(self) -> str:
        return f"<Subject {self.short()}>"

    def checked(self, *, as_is: bool = False) -> Subject:
        """The same subject, its model held against the labels of its table.

        Parameters
        ----------
        as_is
            Accept a model that decides against the labels, and say so in a note.

        Returns
        -------
        Subject
            With its ``quality``.

        Raises
        ------
        ModelError
            If the model decides against the labels: the interval of its AUC lies below one half.
        """
        if self.table.scores is not None:
            return replace(self, quality=self.quality or quality_of_scores(self.schema, self.table))
        found = self.quality or quality_of(self.model, self.encoding, self.schema, self.table)
        against = against_labels(found, self.model, self.schema, named=self.named)
        if against is None or self.as_is:
            return replace(self, quality=found)
        if not as_is:
            raise ModelError(against)
        note = (
            f"the model decides against the labels (AUC {found.auc:.3f}, 95 % interval {found.auc_low:.3f} to "
            f"{found.auc_high:.3f}); it is examined as it is, because that was asked for."
        )
        return replace(self, quality=found, as_is=True, notes=(*self.notes, note))

    def with_protected(self, names: Iterable[str]) -> Subject:
        """The same subject with exactly these attributes protected.

        Parameters
        ----------
        names
            Attributes to protect.

        Returns
        -------
        Subject
            A new subject.

        Raises
        ------
        SchemaError
            If an attribute is not in the schema.
        """
        schema = self.schema.with_protected(names)
        if schema is self.schema:
            return self
        old, new = (
            (*_protected_notes(one, self.encoding), *people_notes(one, self.table)) for one in (self.schema, schema)
        )
        notes = tuple(note for note in self.notes if note not in old)
        return replace(self, schema=schema, notes=(*notes, *new))

    def with_repeats(self, repeats: int) -> Subject:
        """The same subject with the mean of several answers of the model as its score.

        A native network gives the same answer every time, so it stays as it is.

        Parameters
        ----------
        repeats
            Answers per score, 1 or more.

        Returns
        -------
        Subject
            A new subject.

        Raises
        ------
        OptionError
            If the number is less than 1.
        """
        inner = self.model.original if isinstance(self.model, Repeated) else self.model
        wrapped = Repeated(inner, repeats)  # refuses a number that makes no sense
        return replace(self, model=inner if repeats == 1 or isinstance(inner, Network) else wrapped)

    @property
    def scores_only(self) -> bool:
        """Whether the model is not at hand and the table holds its scores."""
        return self.table.scores is not None

    @property
    def unseen(self) -> Table | None:
        """The people whom the model has never seen, where there are some: a table of their own, or held-out rows."""
        found = self.table.unseen() if self.test is None else self.test
        return found if found is not None and len(found) else None

    @property
    def repeats(self) -> int:
        """How many answers of the model make one score."""
        return self.model.repeats if isinstance(self.model, Repeated) else 1

    @property
    def identity(self) -> Identity:
        """Which model, table and schema this is, with a probe of the scores.

        An object in memory may have been trained again since it was last asked: a few answers are compared each time.
        """
        if self._identity is not None and self._unchanged(self._identity.probe):
            return self._identity
        found = identity_of(
            self.model,
            self.encoding,
            self.schema,
            self.table,
            test=self.test,
            options=self.options,
            origin=self.origin,
            threshold=self.schema.rule.threshold,
        )
        object.__setattr__(self, "_identity", found)
        return found

    def _unchanged(self, probe: Probe) -> bool:
        """Whether the model is still the one that was probed; a network cannot change, and a service is slow to ask."""
        inner = self.model.original if isinstance(self.model, Repeated) else self.model
        if isinstance(inner, Network | Endpoint):
            return True
        return still_answers(probe, self.model, self.encoding, self.schema, self.table)


def make_subject(
    name: str,
    model: Model | Loaded,
    schema: Schema,
    table: Table,
    *,
    encoding: Encoding | None = None,
    options: ModelOptions | None = None,
    notes: tuple[str, ...] = (),
    original: Any = None,
    **rest: Any,
) -> Subject:
    """A subject whose parts fit each other."""
    options = options or ModelOptions()
    loaded = model if isinstance(model, Loaded) else adapt(model, schema, options)
    made_from = model if original is None and not isinstance(model, Loaded) else original
    rest |= {"original": original, "origin": of_origin(made_from, options)}
    schema, from_model = with_model_classes(schema, loaded)
    named = loaded.named or names_decide(schema, loaded.classes)
    loaded = replace(loaded, classes=output_order(schema, loaded.classes, options))
    schema, table = _in_model_order(loaded, schema, table)
    if encoding is not None:
        loaded = replace(loaded, encoding=encoding.with_gaps(schema))
    fitted = fit_to_schema(loaded, schema, options=options)
    assert fitted.encoding is not None  # noqa: S101 - settled by fit_to_schema
    notes = (
        *notes,
        *schema.notes,
        *from_model,
        *fitted.notes,
        *_protected_notes(schema, fitted.encoding),
        *check_rules(schema, table.codes),
        *people_notes(schema, table),
    )
    return Subject(
        name, schema, fitted.model, fitted.encoding, table, notes=notes, options=options, named=named, **rest
    )


def _in_model_order(loaded: Loaded, schema: Schema, table: Table) -> tuple[Schema, Table]:
    """Where the model names its classes, the schema lists them in the order of its outputs, and labels follow."""
    classes = loaded.classes
    if classes is None or classes == schema.classes or set(classes) != set(schema.classes):
        return schema, table
    moved = np.array([classes.index(name) for name in schema.classes])
    labels = None if table.labels is None else moved[table.labels.astype(np.int64)].astype(np.float64)
    return replace(schema, classes=classes), replace(table, labels=labels)


def _protected_notes(schema: Schema, encoding: Encoding) -> tuple[str, ...]:
    """What must be known about the protected attributes to read the figures."""
    return (*_unseen_notes(schema, encoding), *between_notes(schema))


def between_notes(schema: Schema) -> tuple[str, ...]:
    """Notes on protected numbers whose twins leave out values between them, such as a row's own value."""
    notes = []
    for attribute in schema.attributes:
        if attribute.protected and attribute.gap is not None and attribute.missing != "value":
            notes.append(
                f"{attribute.name} may be missing in the table; twins take its values and never lack it "
                f'(missing = "value" makes that a value of twins too).'
            )
        every = attribute.kind == "category" or (attribute.kind == "integer" and attribute.stride == 1)
        if not attribute.protected or not (attribute.ranges or not (every or attribute.allowed)):
            continue
        if attribute.twin_count > schema.max_twins:
            continue  # refused where the twins are made
        values = [attribute.read(code) for code in attribute.twin_values()]
        shown = ", ".join(values if len(values) <= MAX_SHOWN else [*values[: MAX_SHOWN - 1], "…", values[-1]])
        notes.append(
            f"twins take {len(values)} values of {attribute.name} ({shown}); others, even a row's own, are not asked: "
            f"the figures are exact for these values, and lower bounds where all values count."
        )
    return tuple(notes)


def _unseen_notes(schema: Schema, encoding: Encoding) -> tuple[str, ...]:
    names = [schema.names[i] for i in encoding.unseen if schema.attributes[i].protected]
    if not names:
        return ()
    return (
        f"the model never sees {', '.join(names)}, so twins cannot differ in it; check whether other attributes "
        f"stand in for it.",
    )
