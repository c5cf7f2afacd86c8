"""A subject: a model, the people it decides about, and the words to read both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import (
    ABOVE_HALF,
    Attribute,
    Encoding,
    RawTable,
    Rule,
    Schema,
    Table,
    check_rules,
    columns_of,
    evaluated,
    people_notes,
    rule_words,
    twin_limits,
)
from fairbits.errors import ModelError, OptionError, SchemaError
from fairbits.language import TextModel
from fairbits.models import (
    DEFAULTS,
    Endpoint,
    FittedModel,
    Loaded,
    Model,
    ModelOptions,
    Network,
    Repeated,
    TwinScores,
    adapt,
    fit_to_schema,
    names_decide,
    output_order,
    own_scale,
    with_model_classes,
)
from fairbits.randomness import sampled_rows
from fairbits.subject.identity import NONE, Identity, identity_of, origin_of, still_answers
from fairbits.subject.quality import MAX_FOREIGN_ROWS, Quality, against_labels, quality_of
from fairbits.subject.round_trip import LIBRARY, RoundTrip, round_trip, scaling_doubt, settled_order


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
        Which file, address or code its model was read from, for its identity.
    round_trip
        How the model's answers about untouched rows agree with those that are measured.
    doubt
        Why the table is probably not what the model was trained on, where the labels say so.
    about
        What its owner says of it: purpose, owner, version. Pages show it; no figure depends on it.
    where
        The rule that names the people it is about, where they are some of those that the model decides about.
    """

    name: str
    schema: Schema
    model: Model
    encoding: Encoding
    table: Table
    test: Table | None = None
    notes: tuple[str, ...] = ()
    source: str | None = None
    original: Any = None
    options: ModelOptions = field(default_factory=ModelOptions)
    named: bool = False
    quality: Quality | None = None
    as_is: bool = False
    origin: str = NONE
    round_trip: RoundTrip = field(default_factory=RoundTrip)
    doubt: str | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    where: str | None = None
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

        Raises
        ------
        ModelError
            If the model decides against the labels: the interval of its AUC lies below one half.
        """
        found = self.quality or quality_of(self.model, self.encoding, self.schema, self.table, test=self.test)
        against = against_labels(found, self.model, self.schema, named=self.named) or self.doubt
        if against is None or self.as_is or self.table.scores is not None:
            return replace(self, quality=found)
        if not as_is:
            raise ModelError(against)
        said = against.partition("; ")[0].partition(", so ")[0]
        note = f"{said}; it is examined as it is, because that was asked for."
        return replace(self, quality=found, as_is=True, notes=(*self.notes, note))

    def with_protected(self, names: Iterable[str]) -> Subject:
        """The same subject with exactly these attributes protected.

        Parameters
        ----------
        names
            Attributes to protect.

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

    def within(self, where: str | None) -> Subject:
        """The same subject about some people only: its rows, its domain, and what is searched, proved and repaired.

        Parameters
        ----------
        where
            A rule about attributes that are not protected, such as ``hours >= 40 and job = "Sales"``; None: everybody.

        Raises
        ------
        OptionError
            If the rule names a protected attribute, or nobody.
        """
        if where is None or where == self.where:
            return self
        schema, rule = region_of(self.schema, where)
        inside = rule.holds(self.table.codes)
        if not inside.any():
            raise OptionError(f"--where {where!r} holds for none of the {len(self.table):,} rows; name other people.")
        if schema.regression and schema.score_range is None and self.table.labels is not None:
            low, high = np.quantile(np.asarray(self.table.training().labels), [0.01, 0.99])
            schema = replace(schema, score_range=float(high - low) or None)  # the tolerance stays that of everybody
        test = None if self.test is None else self.test.rows(rule.holds(self.test.codes))
        table, test = self.table.rows(inside), test if test is not None and len(test) else None
        quality = quality_of(self.model, self.encoding, schema, table, test=test)
        notes = (*self.notes, f"only people with {where} are looked at: {len(table):,} of {len(inside):,} rows.")
        return replace(self, schema=schema, table=table, test=test, quality=quality, notes=notes, where=where)

    def with_repeats(self, repeats: int | None) -> Subject:
        """The same subject with the mean of several answers of the model as its score.

        A native network gives the same answer every time, so it stays as it is.

        Parameters
        ----------
        repeats
            Answers per score, 1 or more.

        Raises
        ------
        OptionError
            If the number is less than 1.
        """
        if repeats is None:
            return self
        inner = self.model.original if isinstance(self.model, Repeated) else self.model
        wrapped = Repeated(inner, repeats)  # refuses a number that makes no sense
        return replace(self, model=inner if repeats == 1 or isinstance(inner, Network) else wrapped)

    def lines(self) -> tuple[str, ...]:
        """Sentences at the head of every output: how it decides, how well, and if it is asked as its owner asks."""
        said = self.notes if self.table.drawn else () if self.quality is None else self.quality.lines()
        return (*said, *self.asked_lines())

    def asked_lines(self) -> tuple[str, ...]:
        """Whether the model is asked as its owner asks it, in a sentence; nothing where it is ours or not here."""
        looked_up = self.scores_only or isinstance(self.model, TwinScores | TextModel)
        if looked_up or (self.original is None and self.source is not None):
            return ()
        said = self.round_trip.sentence()
        return (f"{said[:1].upper()}{said[1:]}.",)

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
        known = self._identity
        if known is not None and still_answers(known.probe, self.model, self.encoding, self.schema, self.table):
            return known
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


def make_subject(
    name: str,
    model: Model | Loaded,
    schema: Schema,
    table: Table,
    *,
    test: Table | None = None,
    encoding: Encoding | None = None,
    options: ModelOptions = DEFAULTS,
    notes: tuple[str, ...] = (),
    source: str | None = None,
    original: Any = None,
    raw: RawTable | None = None,
) -> Subject:
    """A subject whose parts fit each other, and whose model answers through the schema as it does without."""
    loaded = model if isinstance(model, Loaded) else adapt(model, schema, options)
    given = loaded, schema, table, test
    made_from = model if original is None and not isinstance(model, Loaded) else original
    schema, from_model = with_model_classes(schema, loaded)
    stated = schema.threshold is not None
    named = names_decide(schema, loaded.classes)
    loaded = replace(loaded, classes=output_order(schema, loaded.classes, options))
    classes = loaded.classes
    if classes is not None and classes != schema.classes and set(classes) == set(schema.classes):
        moved = np.array([classes.index(one) for one in schema.classes], dtype=np.float64)
        table, test = _with_labels(table, moved), None if test is None else _with_labels(test, moved)
        schema = replace(schema, classes=classes)  # in the order of the model's outputs
    if loaded.threshold is not None and schema.threshold is None and len(schema.classes) == 2:
        schema, more = _with_own_threshold(schema, loaded.threshold)
        from_model = (*from_model, *more)
    if encoding is not None:
        loaded = replace(loaded, encoding=encoding.with_gaps(schema))
    fitted = fit_to_schema(loaded, schema, options=options)
    if encoding is None:
        settled, how = settled_order(loaded, fitted.model, fitted.encoding, schema, table, options)
        fitted = replace(fitted, encoding=settled, notes=(*(() if how else fitted.notes), *how))
    fitted, trip = _compared(loaded, fitted, schema, table, options, raw)
    if trip.cut is not None and not stated and loaded.threshold is None:
        note = (
            f"the model's own predict decides for {schema.favourable!r} from about P = {trip.cut:.4g} on, seen on "
            f"{trip.rows:,} rows, and so do decisions here."
        )
        first, asked, rows, others = given
        return make_subject(
            name,
            first,
            replace(asked, threshold=trip.cut),
            rows,
            test=others,
            encoding=encoding,
            options=options,
            notes=(*notes, note),
            source=source,
            original=made_from,
            raw=raw,
        )
    if trip.otherwise and not stated:
        rule = rule_words(schema.favourable, schema.rule.threshold, probability=schema.probabilities)
        from_model = (
            *from_model,
            f"the model's own predict decides {trip.otherwise:,} of {trip.rows:,} rows otherwise than its "
            f"probabilities do here ({rule}); to measure those decisions, give a function that answers 1 where "
            f"predict says {schema.favourable!r}, and 0 elsewhere.",
        )
    if own_scale(schema, options.output):
        schema = _with_score_range(schema, fitted, table)
    doubt = scaling_doubt(loaded.owner, raw, fitted.model, fitted.encoding, schema, table, options, classes)
    if doubt is not None and loaded.owner is None:  # layers alone, trained or not: nobody knows what goes before them
        notes, doubt = (*notes, f"{doubt.partition('; ')[0]}."), None
    notes = (
        *notes,
        *schema.notes,
        *from_model,
        *fitted.notes,
        *_protected_notes(schema, fitted.encoding),
        *(check_rules(schema, table.codes) if schema.rules else ()),
        *people_notes(schema, table),
    )
    return Subject(
        name,
        schema,
        fitted.model,
        fitted.encoding,
        table,
        test=test,
        notes=notes,
        source=source,
        original=original,
        options=options,
        named=named,
        origin=origin_of(made_from, options),
        round_trip=trip,
        doubt=doubt,
    )


def _with_labels(table: Table, moved: npt.NDArray[np.float64]) -> Table:
    """The table with its labels at other positions."""
    return table if table.labels is None else replace(table, labels=moved[table.labels.astype(np.int64)])


def _compared(
    loaded: Loaded, fitted: FittedModel, schema: Schema, table: Table, options: ModelOptions, raw: RawTable | None
) -> tuple[FittedModel, RoundTrip]:
    """The model that answers as its owner's does: as it was read, else through its own library; refused otherwise."""
    owner = loaded.owner
    if owner is None:
        service = "a service is asked by its contract alone"
        unsaid = "the file holds layers or trees and does not say how its owner makes their inputs"
        return fitted, RoundTrip(compared=f"nothing: {service if isinstance(fitted.model, Endpoint) else unsaid}")
    found = round_trip(owner, raw, fitted.model, fitted.encoding, schema, table, options, loaded.classes)
    if isinstance(found, RoundTrip):
        return fitted, found
    if owner.library is None:
        mend = "mend the table or the schema, so that both are the same"
        ours = "please report this, it is an error of ours"
        raise ModelError(f"{found}; {ours if owner.form in LIBRARY else mend}.")
    other = owner.library(f"as it is read here, it {found.removeprefix('the model ')}.")
    other = replace(other, classes=output_order(schema, other.classes, options))
    return _compared(other, fit_to_schema(other, schema, options=options), schema, table, options, raw)


def _with_own_threshold(schema: Schema, threshold: float) -> tuple[Schema, tuple[str, ...]]:
    """The cut-off that the model was given with it, on the score of the favourable class."""
    if threshold == ABOVE_HALF:  # a tie is the first class's, which is what one half means for it
        return (replace(schema, threshold=threshold) if schema.favourable_index == 1 else schema), ()
    own = threshold if schema.favourable_index == 1 else float(np.nextafter(1 - threshold, np.inf))
    note = f"the model brings its own threshold, {threshold:.6g} for {schema.classes[1]!r}, which decides here too."
    return replace(schema, threshold=own), (note,)


def _with_score_range(schema: Schema, fitted: FittedModel, table: Table) -> Schema:
    """The schema of a model that gives points or hazards: how far they spread, for the tolerance between twins."""
    rows = table.codes[sampled_rows(len(table), MAX_FOREIGN_ROWS, np.random.default_rng(0))]
    scores = np.asarray(fitted.model.scores(fitted.encoding.encode(rows)), np.float64)
    if schema.threshold is None:
        raise SchemaError(
            f"the model's scores are on a scale of their own ({scores.min():g} to {scores.max():g}); say from which "
            f"on a decision is favourable: threshold = … under [table] (in Python threshold=…)."
        )
    if ((scores >= 0) & (scores <= 1)).all():
        if not 0 < schema.threshold < 1:
            raise SchemaError(
                f"the threshold is {schema.threshold:g}, but all scores lie between 0 and 1; it is on their scale: "
                f"give a number between 0 and 1, e.g. 0.5."
            )
        return schema
    low, high = np.quantile(scores, (0.01, 0.99))
    return replace(schema, score_range=float(high - low) or float(np.ptp(scores)) or 1.0)


def _protected_notes(schema: Schema, encoding: Encoding) -> tuple[str, ...]:
    """What must be known about the protected attributes to read the figures."""
    names = [schema.names[i] for i in encoding.unseen if schema.attributes[i].protected]
    blind = (
        f"the model never sees {', '.join(names)}, so twins cannot differ in it; check whether other attributes "
        f"stand in for it.",
    )
    return (*(blind if names else ()), *(limit.note for limit in twin_limits(schema)))


#: Values of a whole number that are listed to narrow it; of more the condition is a rule.
MAX_LISTED = 200_000


def region_of(schema: Schema, where: str) -> tuple[Schema, Rule]:
    """The schema of the people that a rule names, as a domain of their own, and the rule.

    Conditions on one attribute narrow its values, so that searches, samples and proofs stay inside by themselves;
    whatever else the rule says is one more rule of the schema. Model, encoding and tolerance stay as they are.
    """
    rule = Rule.of(where, schema.attributes)
    named = next((i for i in rule.columns if schema.attributes[i].protected), None)
    if named is not None:
        raise OptionError(
            f"--where names {schema.names[named]!r}, which is protected: twins differ in it, so a region cannot; "
            f"leave it out."
        )
    attributes, left = list(schema.attributes), []
    for part in rule.parts():
        columns = set(columns_of(part))
        column = columns.pop()
        narrowed = None if columns else _narrowed(attributes[column], column, part)
        if narrowed is None:
            left.append(part)
        else:
            attributes[column] = narrowed
    # The parts that are left are parts of the whole: where something is left, the whole is the rule.
    rules = (*schema.rules, rule) if left else schema.rules
    return replace(schema, attributes=tuple(attributes), rules=rules), rule


def _narrowed(attribute: Attribute, column: int, part: list[object]) -> Attribute | None:
    """The attribute with the values that keep a condition on it alone; None where they cannot be said."""
    if attribute.discrete or attribute.allowed:
        if not attribute.allowed and attribute.upper - attribute.low >= MAX_LISTED:
            return None
        values = attribute.domain_values()
        kept = values[np.broadcast_to(evaluated(part, lambda _: values), values.shape)]
        if len(kept) == 0:
            raise OptionError(f"--where leaves {attribute.name!r} no value from {values[0]:g} to {values[-1]:g}.")
        return replace(attribute, allowed=tuple(kept.tolist())) if len(kept) < len(values) else attribute
    word, one, other = part if len(part) == 3 else (None, None, None)
    turned = {"<=": ">=", ">=": "<="}
    if one != ["column", column]:
        word, one, other = turned.get(str(word)), other, one
    if word not in turned or one != ["column", column] or attribute.gap is not None or not isinstance(other, list):
        return None
    end = float(evaluated(other, lambda _: np.nan))
    low, high = (
        (max(attribute.low, end), attribute.upper) if word == ">=" else (attribute.low, min(attribute.upper, end))
    )
    if low > high:
        raise OptionError(f"--where leaves {attribute.name!r} no value from {attribute.low:g} to {attribute.upper:g}.")
    return replace(attribute, low=low, high=high)
