"""How an audit gets its subject: from a model and a table, a name, a file, or the run that it goes on with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np

from fairbits.audit.command import SubjectOrigin
from fairbits.data import load_subject
from fairbits.domain import (
    Encoding,
    GrantOptions,
    RawTable,
    Schema,
    Table,
    as_arrow,
    check_domain,
    read_arrow,
    table_from_arrow,
    with_held,
)
from fairbits.errors import OptionError
from fairbits.models import ModelOptions, output_order, read_model
from fairbits.subject import Subject, make_subject


class AuditedSubject:
    """The subject of an audit, checked against the labels of its table. :class:`~fairbits.Audit` explains parameters.

    Attributes
    ----------
    subject
        The model, its table and its schema.
    """

    #: Where the subject came from, for the command that does something again; from Python objects there is none.
    _origin = SubjectOrigin()

    def __init__(
        self,
        model: Any,
        table: Any,
        schema: Schema,
        *,
        encoding: Encoding | None = None,
        name: str = "subject",
        as_is: bool = False,
        **options: Any,
    ):
        chosen = ModelOptions.of(options)
        output_order(schema, None, chosen)  # what score_of cannot mean is said before anything is read
        people, raw = _table_of(table, schema, chosen.max_rows)
        schema = schema if raw is None else with_held(schema, people.codes, raw)
        loaded = read_model(model, schema, chosen)
        subject = make_subject(name, loaded, schema, people, encoding=encoding, options=chosen, original=model, raw=raw)
        self.subject = subject.checked(as_is=as_is)

    @classmethod
    def of(
        cls,
        subject: Subject | str | Path,
        *,
        protected: Iterable[str] | None = None,
        repeats: int | None = None,
        as_is: bool = False,
        **grants: Unpack[GrantOptions],
    ) -> Self:
        """An audit of a built-in subject or a ``subject.toml``.

        Parameters
        ----------
        subject
            The name of a built-in subject, a file, or a loaded subject.
        protected
            Protected attributes, instead of the subject's own.
        repeats
            Take the mean of so many answers of the model as a score; None asks once.
        as_is
            Accept a model that decides against the labels of its table.
        **grants
            What files from outside may do, as for :func:`~fairbits.load_subject`.

        Returns
        -------
        Audit
            The audit.

        Raises
        ------
        ModelError
            If the model decides against the labels and ``as_is`` is not given.
        """
        loaded = subject if isinstance(subject, Subject) else load_subject(subject, **grants)
        names = None if protected is None else _names(protected)
        loaded = loaded if names is None else loaded.with_protected(names)
        loaded = loaded if repeats is None else loaded.with_repeats(repeats)
        name = loaded.source if isinstance(subject, Subject) else str(subject)
        return cls._made(loaded.checked(as_is=as_is), SubjectOrigin(name=name, protected=names, grants=grants))

    @classmethod
    def of_run(
        cls,
        folder: str | Path,
        subject: Subject | str | Path | None = None,
        *,
        protected: Iterable[str] | None = None,
        repeats: int | None = None,
        as_is: bool = False,
        **grants: Unpack[GrantOptions],
    ) -> Self:
        """An audit of what an earlier run is about, to go on with it: ``search`` or ``audit`` with ``resume=True``.

        Parameters
        ----------
        folder
            Folder or address of the run, or folder of the audit of a table of scores.
        subject
            The subject; None takes the one that the run names.
        protected, repeats
            Those of the run; others are refused.
        as_is
            Accept a model that decides against the labels of its table; a run that did is enough.
        **grants
            What files from outside may do, as for :func:`~fairbits.load_subject`.

        Returns
        -------
        Audit
            The audit.

        Raises
        ------
        OptionError
            If there is no run, it was made otherwise, or does not say where its model is.
        """
        kept = _record(folder)
        names = None if protected is None else _names(protected)
        source = kept.get("source") if subject is None else subject
        if source is None:
            raise OptionError(
                f"the run in {str(folder)!r} does not say where its model is, because it was started from Python; "
                f"hand over the subject."
            )
        loaded = source if isinstance(source, Subject) else load_subject(source, **grants)
        _check_same_run(kept, loaded, names, repeats)
        return cls.of(
            loaded,
            protected=names or kept.get("protected"),
            repeats=repeats or kept.get("repeats"),
            as_is=as_is or bool(kept.get("as_is")),
        )._from(SubjectOrigin(name=loaded.source, protected=names, grants=grants))

    @classmethod
    def from_table(
        cls,
        model: Any,
        table: Any,
        *,
        target: str,
        protected: str | Iterable[str],
        favourable: object = None,
        ignored: Iterable[str] = (),
        max_twins: int = 1000,
        threshold: float | None = None,
        person: str | None = None,
        name: str = "subject",
        as_is: bool = False,
        **options: Any,
    ) -> Self:
        """An audit of a model and a table as they are: what people are made of is read off the table.

        Where nobody says which output speaks of which of two classes, the reading that agrees with the labels is taken,
        and a note says so.

        Parameters
        ----------
        model
            Anything that :class:`Audit` takes.
        table
            A file, or an Arrow, pandas or polars table, with the target and the protected attributes.
        target
            The column that the model predicts.
        protected
            The protected attributes.
        favourable
            The value of the target whose probability is the score; by default the last class.
        ignored
            Columns to leave out. Dates, identifiers and what the model never sees are left out anyway, with a note.
        max_twins
            Combinations of protected values at most: protected numbers of many values get ranges.
        threshold
            The probability from which on a decision between two classes is favourable; 0.5 by default.
        person
            The column that says whose a row is, where people have several: intervals and tests then draw people.
        name
            What to call the subject.
        as_is
            Accept a model that decides against the labels of its table.
        **options
            Those of :class:`~fairbits.models.ModelOptions`.

        Returns
        -------
        Audit
            ``audit.subject.notes`` says what was left out and what was guessed.

        Raises
        ------
        FairbitsError
            If the table or the model cannot be read, or do not fit each other.
        """
        from fairbits.subject import subject_of_table

        chosen = ModelOptions.of(options)
        asked: dict[str, Any] = {"target": target, "protected": protected, "favourable": favourable, "ignored": ignored}
        asked |= {"max_twins": max_twins, "threshold": threshold, "name": name, "person": person}
        subject = subject_of_table(model, table, **asked, options=chosen, as_is=as_is)
        return cls._made(subject.checked(as_is=as_is), SubjectOrigin())

    def __repr__(self) -> str:
        return f"<Audit of {self.subject.short()}>"

    @classmethod
    def _made(cls, subject: Subject, origin: SubjectOrigin) -> Self:
        audit = cls.__new__(cls)
        audit.subject = subject
        return audit._from(origin)

    def _from(self, origin: SubjectOrigin) -> Self:
        self._origin = origin
        return self

    def _answering(self, repeats: int | None) -> Subject:
        """The subject with so many answers to a score; None leaves it as it is."""
        return self.subject if repeats is None else self.subject.with_repeats(repeats)


def _names(names: Iterable[str]) -> tuple[str, ...]:
    """Names of attributes; one name alone is no sequence of letters."""
    return (names,) if isinstance(names, str) else tuple(names)


def _record(folder: str | Path) -> Mapping[str, Any]:
    """What a run, or the audit of a table of scores, was made with."""
    from fairbits.audit.scores_only import is_scores_audit, read_scores_record
    from fairbits.store import Run

    if is_scores_audit(folder):
        return read_scores_record(Path(folder))
    return Run.open(folder).manifest


def _check_same_run(
    kept: Mapping[str, Any], subject: Subject, protected: tuple[str, ...] | None, repeats: int | None
) -> None:
    """Refuse to go on with another subject, or with other people as twins."""
    from fairbits.store import check_same

    asked = {"subject": subject.name, "protected": None if protected is None else list(protected), "repeats": repeats}
    said = {name: value for name, value in asked.items() if value is not None and (name == "subject" or name in kept)}
    check_same({name: kept.get(name) for name in said}, said)


def _table_of(table: Any, schema: Schema, max_rows: int) -> tuple[Table, RawTable | None]:
    if isinstance(table, Table):
        check_domain(table.codes, schema, table.place)
        return table.rows(np.arange(len(table))), None  # a copy: whoever handed it over may go on changing theirs
    file = table if isinstance(table, str | Path) else None
    data = as_arrow(table) if file is None else read_arrow(file, max_rows=max_rows)
    raw = RawTable(table, data)
    return replace(table_from_arrow(data, schema, file=file), index=raw.index), raw
