"""Reading a run: its cases, worst first, the figures over all of them, and its subject, loaded and checked again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, Unpack

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairbits.blocks import Shown
from fairbits.data import load_subject
from fairbits.domain import Codes, GrantOptions, Schema, Twins
from fairbits.errors import FairbitsError, OptionError
from fairbits.store.files import RESTORE, place_of, reaching, read_json, record_from_json
from fairbits.store.folder import SUMMARY, TASKS, TaskRecord, manifest_of, read_record, read_records
from fairbits.store.parts import (
    FIGURES,
    Case,
    Layout,
    Part,
    check_parts,
    codes_in,
    find_doubles,
    kept_doubles,
    read_rows,
)
from fairbits.store.query import PLACE, Questions
from fairbits.subject import Quality, Subject, check_identity, document_of_schema, schema_of_document

_OVERVIEW = """
    SELECT k, least(changed, 4) AS changed, count(*) AS cases, count(*) FILTER (flips) AS id_cases,
           coalesce(sum(q_inf::DOUBLE) FILTER (flips), 0) AS q_inf, coalesce(sum(q_1::DOUBLE) FILTER (flips), 0) AS q_1
    FROM cases GROUP BY ALL ORDER BY ALL
"""


class Run(Shown):
    """A run as it is on disk at this moment, finished or not; open one with ``open_run``.

    Parameters
    ----------
    folder
        Where the run lies.
    record
        The content of run.json.

    Attributes
    ----------
    status
        "running", "finished", "interrupted" or "failed".
    manifest
        Settings of the search, as they were written down.
    damaged
        Parts that had to be skipped, with the reason.
    """

    def __init__(self, folder: Path, record: dict[str, Any]):
        self.folder = folder
        self.status: str = record["status"]
        self.manifest = manifest_of(record)
        self.versions: dict[str, str] = record["versions"]
        self.created: str = record["created"]
        #: Who ran the search, as the system called them; runs of earlier versions do not say.
        self.made_by = str(record.get("made_by") or "unknown")
        self._content: str | None = record["content"] if record["status"] != "running" else None
        self.schema: Schema = schema_of_document(record["schema"])
        self.layout = Layout(self.schema)
        self.scale: dict[str, Any] = record["scale"]
        self.tasks: dict[int, TaskRecord] = read_records(folder)
        #: Into how many buckets, by the hash of the person, the rows of every part are cut.
        self.buckets = int(self.manifest.get("buckets", 1))
        # The parts that can be read, in the order of the tasks; and those that had to be skipped, with the reason.
        self.parts_found, self.damaged = self._find_parts()
        #: Tasks that run.json knows to be done and that have no record: a folder that was copied in part.
        self.unrecorded = max(0, self.scale.get("done", 0) - len(self.tasks))
        self._verified = False

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open the run in a folder.

        Parameters
        ----------
        folder
            Folder or address of the run.
        """
        place = place_of(folder)
        with reaching(place):
            return cls(place, read_record(place))

    def __len__(self) -> int:
        return sum(part.rows for part in self.parts_found) - self._doubles.num_rows

    @cached_property
    def _doubles(self) -> pa.Table:
        """The evaluations that found somebody a second time: none where one task knew everybody."""
        if self.buckets > 1 and (kept := kept_doubles(self.folder, self.parts_found)) is not None:
            return kept
        found = find_doubles(self.parts_found if self.buckets > 1 else (), self.layout, buckets=self.buckets)
        return pa.table({"evaluation": pa.array(found, pa.int64())})

    def _find_parts(self, *, deep: bool = False) -> tuple[list[Part], dict[str, str]]:
        names = [name for record in self.tasks.values() for name in record.parts]
        return check_parts(self.folder, names, self.layout, deep=deep)

    def __repr__(self) -> str:
        return f"<Run {str(self.folder)!r}: {len(self):,} cases, {self.status}>"

    @cached_property
    def summary(self) -> dict[str, Any] | None:
        """Every headline figure, once the run has ended."""
        path = self.folder / SUMMARY
        remedy = f"{RESTORE}, or write it again with search --resume"
        return read_json(path, remedy=remedy) if path.is_file() else None

    @cached_property
    def twins(self) -> Twins:
        """The combinations of protected values that everybody was tried under."""
        return Twins(self.schema)

    @property
    def columns(self) -> list[str]:
        """The names that ``where`` may use."""
        return self._questions.columns

    def verify(self) -> None:
        """Read every page of every part against its checksum; damaged parts are skipped from then on.

        Opening a run looks at the ends of its parts only. A byte that has changed inside one need not stop a reader,
        and would change figures without a word: so whatever is said about a run is said after this.
        """
        if not self._verified:
            self._skip_damaged()

    def _skip_damaged(self) -> bool:
        """Look into every part; whether more of them are damaged than was known."""
        good, damaged = self._find_parts(deep=True)
        self._verified = True
        if set(damaged) <= set(self.damaged):
            return False
        self.parts_found, self.damaged = good, damaged
        for stale in ("_questions", "_doubles"):
            self.__dict__.pop(stale, None)
        return True

    def warnings(self) -> list[str]:
        """A sentence about every part that was skipped."""
        found = [
            f"part {name!r} was skipped: {fault}; the others are usable, and search --resume finds its cases again."
            for name, fault in self.damaged.items()
        ]
        if self.unrecorded:
            found.append(
                f"{self.unrecorded:,} of the records in {str(self.folder / TASKS)!r} are missing, and their cases with "
                f"them; restore them from a copy, or go on with search --resume, which finds the cases again."
            )
        return found

    def cases(self, *, where: str | None = None, top: int | None = None, labels: bool = True) -> pa.Table:
        """Cases, most classes first (or most Q1, by the run's measure), then the widest span, then the earliest.

        In ``where``, categories are their labels, integers and reals numbers, and an integer with labels has them as
        ``<name>_label``. Protected attributes are those of the table's row that a case came from (``"race =
        'black'"``).

        Parameters
        ----------
        where
            A condition in SQL, such as "k >= 8 and age < 30"; None takes all cases.
        top
            How many cases; None gives all.
        labels
            Give labels instead of codes, and two more columns with the protected values of the lowest and highest
            score.

        Returns
        -------
        pa.Table
            One row per case.
        """
        return self.batches(where=where, top=top, labels=labels).read_all()

    def batches(self, *, where: str | None = None, top: int | None = None, labels: bool = True) -> pa.RecordBatchReader:
        """The cases of :meth:`cases`, batch after batch, for more than fit in memory.

        Parameters
        ----------
        where
            A condition in SQL; None takes all cases.
        top
            How many cases; None gives all.
        labels
            Give labels instead of codes.
        """
        if top is not None and top < 1:
            raise OptionError(f"top is {top}; ask for at least one case.")
        reader = self._safely(lambda: self._questions.ranked(where=where, top=top), where=where)
        if not labels:
            return reader
        words = self.twins.all_labels
        questions = self._questions
        schema = questions.decoded(reader.schema.empty_table(), words).schema

        def decoded() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                yield from questions.decoded(pa.Table.from_batches([batch]), words).to_batches()

        return pa.RecordBatchReader.from_batches(schema, decoded())

    def worst(self, top: int = 10, *, where: str | None = None) -> list[Case]:
        """The worst cases as records, with names and labels.

        Parameters
        ----------
        top
            How many cases.
        where
            A condition in SQL; None takes all cases.

        Returns
        -------
        list[Case]
            Cases as by :meth:`cases`, each with its attributes in words and its two extreme twins.
        """
        figures = [name for name in FIGURES if name not in ("low_twin", "high_twin")]
        named = list(zip(self.layout.names, self.layout.attributes, strict=True))
        return [
            Case(
                attributes={attribute.name: attribute.read(row[name]) for name, attribute in named},
                worst=self.twins.all_labels[row["low_twin"]],
                best=self.twins.all_labels[row["high_twin"]],
                **{name: row[name] for name in figures},
            )
            for row in self.cases(where=where, top=top, labels=False).to_pylist()
        ]

    def codes(self, *, rows: int = 65_536) -> Iterator[Codes]:
        """Codes of all cases in the order in which they were found.

        Parameters
        ----------
        rows
            Rows in a batch.

        Returns
        -------
        Iterator[Codes]
            People, (rows, attributes), protected attributes at their lowest value.
        """
        if self.buckets > 1:
            reader = self._safely(lambda: self._questions.codes())  # noqa: PLW0108 - asked anew, the questions are others
            return map(self.layout.codes_of, reader)
        return codes_in(self.parts_found, self.layout, rows=rows)

    def codes_at(self, places: npt.NDArray[np.int64]) -> Codes:
        """Codes of some cases, read batch by batch: a run of millions never lies in memory as a whole.

        Parameters
        ----------
        places
            Positions in the order of :meth:`codes`.

        Returns
        -------
        Codes
            People, (places, attributes), in the order of ``places``.
        """
        order = np.argsort(places)
        ascending = places[order]
        found, start = np.empty((len(places), len(self.schema))), 0
        for codes in self.codes():
            low, high = np.searchsorted(ascending, (start, start + len(codes)))
            found[order[low:high]] = codes[ascending[low:high] - start]
            start += len(codes)
        return found

    def seed_rows(self, people: Codes) -> npt.NDArray[np.int64]:
        """The row of the table that each of some cases came from, without reading the others into memory.

        Parameters
        ----------
        people
            Codes of cases, (n, attributes).

        Returns
        -------
        npt.NDArray[np.int64]
            Positions in the table, (n,); -1 where a case came from no row, or there is no such case.
        """
        codes = {name: people[:, i] for name, i in zip(self.layout.names, self.schema.person_columns, strict=True)}
        wanted = pa.table({**codes, PLACE: np.arange(len(people))})
        found = self._safely(lambda: self._questions.seed_rows(wanted))
        rows = np.full(len(people), -1, dtype=np.int64)
        rows[found[PLACE].to_numpy()] = found["seed_row"].to_numpy()
        return rows

    def query(self, sql: str) -> pa.Table:
        """The answer to an SQL query over the view ``cases``; not for text that a stranger wrote.

        Parameters
        ----------
        sql
            A SELECT statement.
        """
        return self._safely(lambda: self._questions.ask(sql))

    def figures(self) -> dict[str, Any]:
        """The figures of ``summary.json`` that follow from the cases alone."""
        groups = self.query(_OVERVIEW).to_pylist()
        ids = sum(group["id_cases"] for group in groups)
        severities = Counter[int]()
        for group in groups:
            severities[group["k"]] += group["cases"]
        near = [max((g["k"] for g in groups if 0 <= g["changed"] <= most), default=None) for most in range(4)]
        return {
            "cases": severities.total(),
            "id_cases": ids,
            "k_max": max(severities, default=None),
            **dict(zip(("k_max_on_data", "k_max_within_1", "k_max_within_2", "k_max_within_3"), near, strict=True)),
            "q_inf_mean_id": sum(group["q_inf"] for group in groups) / ids if ids else None,
            "q_1_mean_id": sum(group["q_1"] for group in groups) / ids if ids else None,
            "top": [{"k": k, "cases": severities[k]} for k in sorted(severities, reverse=True)],
        }

    def content(self, *, anew: bool = False) -> str:
        """A hash of what was found, whatever the order, without the time of day: two runs with one hash are the same.

        The hashes of single cases are DuckDB's, which may change with its version: so that is part of the text.

        Parameters
        ----------
        anew : bool
            Read all cases, even where the search has written the hash down.
        """
        version = f"duckdb-{duckdb.__version__}:"
        known = None if anew or self.damaged or self.unrecorded else self._content
        if known is not None and known.startswith(version):
            return known
        cases, total, mixed = self._safely(lambda: self._questions.content())  # noqa: PLW0108 - asked anew after damage
        return version + hashlib.sha256(f"{cases}:{total}:{mixed}".encode()).hexdigest()[:32]

    @cached_property
    def _questions(self) -> Questions:
        return Questions(
            self.parts_found,
            self.layout,
            doubles=self._doubles,
            rows=read_rows(self.folder),
            measure=self.manifest.get("measure", "q_inf"),
        )

    def _safely(self, ask: Callable[[], Any], *, where: str | None = None) -> Any:
        """Ask; if a part turns out to be damaged inside, skip it from now on and ask once more."""
        try:
            return ask()
        except (duckdb.Error, pa.ArrowException) as error:
            if not self._skip_damaged():
                if where is not None:
                    raise self._questions.explain(error, where) from None
                reason = str(error).strip().splitlines()[0]
                raise FairbitsError(f"the question to the run in {str(self.folder)!r} failed: {reason}") from error
            return ask()


def subject_of(run: Run, given: Subject | None = None, **grants: Unpack[GrantOptions]) -> Subject:
    """The subject of a run, loaded and checked again, with the attributes protected that the run protected.

    The run itself is verified too (:meth:`Run.verify`): this is the door to every stage that speaks about one.
    """
    run.verify()
    source = run.manifest.get("source")
    if given is None and source is None:
        raise OptionError(
            f"the run in {str(run.folder)!r} does not say where its model is, because it was started from Python; "
            f"hand over its model and table, as Audit(…).open(folder) does."
        )
    subject = given if given is not None else load_subject(str(source), **grants)
    subject = subject.with_protected(run.manifest["protected"]).within(run.manifest.get("where"))
    if subject.repeats == 1:
        subject = subject.with_repeats(run.manifest.get("repeats", 1))
    check_identity(run.manifest, subject.identity, what=f"the run in {str(run.folder)!r}")
    if document_of_schema(run.schema) != document_of_schema(subject.schema):
        raise OptionError(
            f"the schema in run.json of {str(run.folder)!r} is not that of its audit file, although both have the same "
            f"identity: it is damaged; restore it from a copy."
        )
    return subject


def accepted_subject(run: Run, given: Subject | None = None, **grants: Unpack[GrantOptions]) -> Subject:
    """The subject of a run as :func:`subject_of` gives it, with the quality that the search found its model to have.

    Whoever began the run has accepted a model that decides against its labels, so it is not refused here.
    """
    subject = subject_of(run, given, **grants)
    kept = run.manifest.get("quality")
    if subject.quality is None and kept is not None:
        subject = replace(subject, quality=record_from_json(Quality, kept))
    return subject.checked(as_is=True)
