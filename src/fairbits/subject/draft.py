"""A first ``subject.toml`` for somebody's own model: what a table tells, with comments for what it cannot tell."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, Unpack

from fairbits.domain import (
    GrantOptions,
    RawTable,
    Schema,
    arrow_of,
    one_hot_groups,
    table_from_arrow,
    with_held,
)
from fairbits.errors import FairbitsError, OptionError, SchemaError
from fairbits.models import ModelOptions, order_note, read_model, speaks_of
from fairbits.subject.checks import against_labels, quality_of
from fairbits.subject.document import subject_of_toml
from fairbits.subject.draft_text import draft_text
from fairbits.subject.quality import Quality
from fairbits.subject.readings import draft_schema, other_schemas, without_unseen
from fairbits.subject.subject import Subject, make_subject

_Made = TypeVar("_Made")
#: Combinations of protected values, unless somebody says otherwise.
MAX_TWINS = 1000


@dataclass(frozen=True, slots=True)
class Draft:
    """What is known about a subject before its file is written."""

    schema: Schema
    table: Path
    model: str | None = None
    delimiter: str = ","
    options: ModelOptions = field(default_factory=ModelOptions)
    said_by_labels: float | None = None
    trouble: str | None = None
    others: tuple[Schema, ...] = ()


@dataclass(frozen=True, slots=True)
class Drafted:
    """What came of a draft: the subject that its file describes, or why there is none yet."""

    draft: Draft
    subject: Subject | None = None
    notes: tuple[str, ...] = ()

    @property
    def trouble(self) -> str | None:
        """Why the model does not fit; None where it does, or none was named."""
        return self.draft.trouble

    @property
    def schema(self) -> Schema:
        """The people, and the classes in the order that was settled."""
        return self.draft.schema if self.subject is None else self.subject.schema


def subject_of_table(
    model: Any,
    table: Any,
    *,
    target: str,
    protected: Iterable[str],
    favourable: object = None,
    ignored: Iterable[str] = (),
    max_twins: int = MAX_TWINS,
    threshold: float | None = None,
    name: str = "subject",
    person: str | None = None,
    options: ModelOptions | None = None,
    as_is: bool = False,
) -> Subject:
    """A subject from a model and a table alone: the schema is inferred, and fitted to what the model takes.

    Where neither the model nor the options say which output speaks of which of two classes, the reading that agrees
    with the labels is taken, and a note says so.
    """
    options = options or ModelOptions()
    file = table if isinstance(table, str | Path) else None
    data = arrow_of(table, max_rows=options.max_rows)
    chosen = (protected,) if isinstance(protected, str) else tuple(protected)
    ignored = (*ignored, *(() if person is None or person in ignored else (person,)))
    asked: dict[str, Any] = {
        "target": target,
        "protected": chosen,
        "favourable": favourable,
        "groups": one_hot_groups(data, leave_out=(target, *ignored)),
        "ignored": tuple(ignored),
        "max_twins": max_twins,
        "threshold": threshold,
    }
    schema = draft_schema(data, **asked)

    raw = RawTable(table, data)

    def made(one: Schema, chosen: ModelOptions = options) -> Subject:
        people = replace(table_from_arrow(data, one, file=file, person=person), index=raw.index)
        one = with_held(one, people.codes, raw)
        loaded = read_model(model, one, chosen)
        subject = make_subject(name, loaded, one, people, options=chosen, original=model, raw=raw)
        subject.model.scores(subject.encoding.encode(people.codes[:2]))  # a function says only here what it misses
        return subject

    subject = _first_fitting(made, schema, lambda: other_schemas(data, schema, **asked))
    narrower = without_unseen(subject.schema, subject.encoding)
    if narrower is not None:
        with suppress(FairbitsError):  # it may want the column, though it makes nothing of it
            subject = made(replace(narrower, order_guessed=schema.order_guessed))
    return subject if as_is else _agreeing(subject, made)


def _agreeing(subject: Subject, made: Callable[[Schema, ModelOptions], Subject]) -> Subject:
    """The subject with its two classes the other way round, where that was a guess and the labels contradict it."""
    subject = _with_quality(subject)
    if against_labels(_quality(subject), subject.model, subject.schema, named=subject.named) is None:
        return subject
    other = _other_way_round(subject.schema, subject.options, subject)
    turned = None if other is None else _with_quality(made(*other))
    if turned is None or _quality(turned).reversed:
        return subject  # refused by whoever checks it
    return replace(turned, notes=(*turned.notes, *_order_notes(subject.options, turned)))


def _with_quality(subject: Subject) -> Subject:
    return replace(
        subject, quality=quality_of(subject.model, subject.encoding, subject.schema, subject.table, test=subject.test)
    )


def _first_fitting(made: Callable[[Schema], _Made], schema: Schema, others: Callable[[], Iterable[Schema]]) -> _Made:
    """What comes of a schema, or of the first other one that the model takes."""
    try:
        return made(schema)
    except FairbitsError as error:
        complaint = error
    strange = "does not describe" in str(complaint)
    for other in others():
        try:
            return made(other)
        except FairbitsError as error:
            wider = strange and len(other) > len(schema)
            if wider or isinstance(error, SchemaError):  # with all columns there it says what is really wrong
                complaint = error
    raise complaint from None


def write_draft(
    draft: Draft, out: Path, *, force: bool = False, as_is: bool = False, **grants: Unpack[GrantOptions]
) -> Drafted:
    """Write the file, with the reason as a comment at the place to edit where the model does not fit.

    Where there are labels and nobody has said which output speaks of which class, the reading that agrees with them
    is taken, and written down.
    """
    if out.exists() and not force:
        raise OptionError(f"{str(out)!r} exists; choose another --out or add --force.")
    trial = out.with_name(f".{out.stem}.{os.getpid()}.toml")

    def loaded(one: Draft) -> Subject:
        trial.write_text(draft_text(one, out), encoding="utf-8")
        subject = subject_of_toml(trial, grants)
        return _with_quality(subject)

    try:
        found = Drafted(draft) if draft.model is None else _tried(draft, loaded, as_is=as_is)
        trial.write_text(draft_text(found.draft, out), encoding="utf-8")
        trial.replace(out)
    except OSError as error:
        raise OptionError(f"cannot write {str(out)!r}: {error.strerror or error}.") from None
    finally:
        trial.unlink(missing_ok=True)
    return found


def _tried(draft: Draft, loaded: Callable[[Draft], Subject], *, as_is: bool) -> Drafted:
    """The draft that loads and agrees with the labels; else as it is, with the trouble."""

    def made(schema: Schema) -> tuple[Draft, Subject]:
        one = replace(draft, schema=schema)
        return one, loaded(one)

    try:
        draft, subject = _first_fitting(made, draft.schema, lambda: draft.others)
    except FairbitsError as error:
        return Drafted(replace(draft, trouble=str(error)))
    draft, subject = _watched(draft, subject, loaded)
    narrower = without_unseen(draft.schema, subject.encoding)
    if narrower is not None:
        try:
            draft, subject = made(narrower)
        except FairbitsError:  # it wants the column, though it makes nothing of it
            narrower = None
    chosen = draft
    against = against_labels(_quality(subject), subject.model, subject.schema, named=subject.named)
    if against is not None and not as_is:
        way = _other_way_round(draft.schema, draft.options, subject)
        other = None if way is None else replace(draft, schema=way[0], options=way[1])
        turned = None if other is None else loaded(other)
        if other is None or turned is None or _quality(turned).reversed:
            return Drafted(replace(draft, trouble=against))
        chosen, subject = other, turned
    notes = (*draft.schema.notes, *_order_notes(draft.options, subject))
    single = speaks_of(subject.model, subject.schema)
    if single is not None and not subject.named:
        chosen = replace(chosen, options=replace(chosen.options, score_of=single))
    settled = replace(chosen.schema, classes=subject.schema.classes, order_guessed=False)
    said = None if draft.options.score_of is not None else _said_by_labels(subject)
    chosen = replace(chosen, schema=settled, said_by_labels=said)
    return Drafted(chosen, subject.checked(as_is=as_is), notes)


def _watched(draft: Draft, subject: Subject, loaded: Callable[[Draft], Subject]) -> tuple[Draft, Subject]:
    """Protected attributes that the model does not take are observed: nobody has twins in them."""
    unseen = {subject.schema.names[i] for i in subject.encoding.unseen}
    watched = [one for one in draft.schema.attributes if one.protected and one.name in unseen]
    if not watched:
        return draft, subject
    left = tuple(one for one in draft.schema.attributes if one not in watched)
    other = replace(draft, schema=replace(draft.schema, attributes=left, observed=(*draft.schema.observed, *watched)))
    try:
        return other, loaded(other)
    except FairbitsError:  # it fits as it was: leave it so
        return draft, subject


def _said_by_labels(subject: Subject) -> float | None:
    """The AUC, where its whole interval says that the model is the right way round."""
    found = _quality(subject)
    return found.auc if found.auc_low is not None and found.auc_low > 0.5 else None


def _order_notes(options: ModelOptions, subject: Subject) -> tuple[str, ...]:
    """How it was settled which output speaks of which class, where neither the user nor the model says it."""
    schema, area = subject.schema, _said_by_labels(subject)
    if options.score_of is not None or subject.named or len(schema.classes) < 2:
        return ()
    single = speaks_of(subject.model, schema)
    if area is None:
        return order_note(replace(schema, order_guessed=True), None, ModelOptions(), single=single is not None)
    what = "its outputs" if single is None else "its one output"
    read = f"in the order {', '.join(schema.classes)}" if single is None else f"as speaking of {single!r}"
    return (
        f"the model does not say which class {what} belong{'' if single is None else 's'} to; read {read}, because so "
        f"its scores agree with the labels (AUC {area:.2f}).",
    )


def _other_way_round(schema: Schema, options: ModelOptions, subject: Subject) -> tuple[Schema, ModelOptions] | None:
    """The two classes the other way round; None where the user or the model has said which is which."""
    classes = subject.schema.classes
    if options.score_of is not None or subject.named or len(classes) != 2:
        return None
    single = speaks_of(subject.model, subject.schema)
    if single is not None:
        other = next(name for name in classes if name != single)
        return schema, replace(options, score_of=other)
    return replace(schema, classes=classes[::-1], order_guessed=False), options


def _quality(subject: Subject) -> Quality:
    assert subject.quality is not None  # noqa: S101 - every trial has it
    return subject.quality
