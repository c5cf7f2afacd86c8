"""One study of a subject: indirect bits of every protected attribute, through what, for whom, over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Twins
from fairbits.errors import OptionError, SchemaError, rows_named
from fairbits.measure import (
    Decided,
    Grouping,
    GroupTable,
    crossed,
    decided_rows,
    default_epsilon,
    documents_of,
    grouping_of,
    groupings_of,
    intersections,
    qid,
    subject_groups,
)
from fairbits.proxies.bits import ScoreBits, chained_bits, score_bits
from fairbits.proxies.columns import ColumnBits, column_bits, strata_of
from fairbits.proxies.matched import Matching, matched_people
from fairbits.proxies.periods import Period, periods_of
from fairbits.proxies.usable import UsableBits, justified_of, usable_bits
from fairbits.randomness import generator
from fairbits.subject import Subject

#: With fewer people of known value, the only honest answer is that nothing can be known.
MIN_PEOPLE = 200
#: People whom a model is asked about again, column by column, and twin scores for the direct bits.
MAX_COLUMN_ROWS, MAX_TWIN_SCORES = 20_000, 400_000
#: Intersections get usable bits of their own up to so many groups and people.
MAX_CROSSED_GROUPS, MAX_CROSSED_ROWS = 8, 50_000

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class AttributeStudy:
    """One protected attribute, or an intersection.

    Parameters
    ----------
    attribute
        Its name.
    taken
        Whether the model takes it.
    unknown
        People whose value is missing; they are left out.
    score
        What the score tells about it; None where it cannot be known, for the ``reason``.
    usable
        What it tells beyond the justified attributes; None where none were named.
    direct_bits
        Bits that the score uses directly: the mean QID over the twins of this attribute, exactly 0 for a model that
        does not take it, None where the model is not at hand.
    indirect
        What the twin-averaged score tells: what is left without direct use.
    columns
        Through what.
    matched
        People alike on the justified attributes.
    reason
        Why something cannot be known.
    """

    attribute: str
    taken: bool
    unknown: int
    score: ScoreBits | None
    usable: UsableBits | None = None
    direct_bits: float | None = None
    indirect: ScoreBits | None = None
    columns: tuple[ColumnBits, ...] = ()
    matched: Matching | None = None
    reason: str | None = None

    @property
    def copies(self) -> tuple[str, ...]:
        """Columns that are copies of the attribute."""
        return tuple(one.column for one in self.columns if one.copy)

    def document(self, people: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        """The entry of proxies.json.

        Parameters
        ----------
        people
            Matched people.

        Returns
        -------
        dict[str, Any]
            By name.
        """
        score, usable = self.score, self.usable
        return {
            "attribute": self.attribute,
            "taken": self.taken,
            "people": None if score is None else score.people,
            "unknown": self.unknown,
            "bits": None if score is None else score.bits,
            "bits_low": None if score is None else score.low,
            "bits_guaranteed": None if score is None else score.guaranteed,
            "placebo": None if score is None else score.placebo,
            "placebo_high": None if score is None else score.placebo_high,
            "entropy": None if score is None else score.entropy,
            "guess_before": None if score is None else score.guess_before,
            "guess_after": None if score is None else score.guess_after,
            "usable_bits": None if usable is None else usable.bits,
            "usable_low": None if usable is None else usable.low,
            "usable_estimate": None if usable is None else usable.estimate,
            "usable_placebo": None if usable is None else usable.placebo,
            "usable_learnable": None if usable is None else usable.learnable,
            "direct_bits": self.direct_bits,
            "indirect_bits": None if self.indirect is None else self.indirect.bits,
            "indirect_bits_low": None if self.indirect is None else self.indirect.low,
            "by_column": [asdict(one) for one in self.columns],
            "copies": list(self.copies),
            "matched": None if self.matched is None else {**asdict(self.matched), "pairs": list(people)},
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, eq=False)
class ProxyStudy:
    """What was found; ``attributes`` hold single attributes first, then intersections."""

    subject: Subject
    attributes: tuple[AttributeStudy, ...]
    groups: tuple[GroupTable, ...]
    justified: tuple[str, ...]
    by: str | None
    periods: tuple[Period, ...]
    seed: int
    notes: tuple[str, ...]

    @property
    def sees_none(self) -> bool:
        """Whether the model takes no protected attribute at all."""
        return not any(one.taken for one in self.attributes)

    def document(self) -> dict[str, Any]:
        """The content of proxies.json."""
        return {
            "subject": self.subject.name,
            "rows": len(self.subject.table),
            "scores_only": self.subject.scores_only,
            "seed": self.seed,
            "justified": list(self.justified),
            "attributes": [one.document(self._portraits(one)) for one in self.attributes],
            "groups": documents_of(self.groups),
            "by": self.by,
            "periods": [one.document() for one in self.periods],
            "notes": list(self.notes),
        }

    def _portraits(self, study: AttributeStudy) -> list[dict[str, Any]]:
        """Matched pairs as people: two rows with their names and labels."""
        if study.matched is None:
            return []
        table, schema = self.subject.table, self.subject.schema
        found = []
        for pair in study.matched.pairs:
            sides = [
                {
                    "row": place + 1 if table.numbers is None else int(table.numbers[place]),
                    "place": table.place(place),
                    "group": group,
                    "score": score,
                    "attributes": schema.read(table.codes[place]),
                }
                for place, group, score in (
                    (pair.row, pair.group, pair.score),
                    (pair.other, pair.other_group, pair.other_score),
                )
            ]
            found.append({"distance": pair.distance, "lower": sides[0], "higher": sides[1]})
        return found


def study_subject(
    subject: Subject,
    *,
    justified: Sequence[str] | None = None,
    by: str | None = None,
    seed: int = 0,
    columns: bool = True,
    progress: Progress | None = None,
) -> ProxyStudy:
    """Everything that a score tells about protected attributes, whether the model takes them or not.

    Parameters
    ----------
    subject
        A model and its table, or a table of scores.
    justified
        Attributes that may decide; by default those that the subject names.
    by
        A column of periods, such as a month.
    seed
        Same seed, same figures.
    columns
        Whether to ask which columns carry it and to match people.
    progress
        Is told what is done.

    Returns
    -------
    ProxyStudy
        Also where little can be known: every gap has its reason.

    Raises
    ------
    SchemaError
        Where nothing is protected, or a justified attribute is protected or not there.
    OptionError
        Where the column of periods is not there.
    """
    say = progress or _ignored
    schema = subject.schema
    if not schema.protected and not schema.observed:
        raise SchemaError(
            'no attribute is protected; mark one with protected = true, or with protected = "observed" where the model '
            "does not take it."
        )
    chosen = tuple(schema.justified if justified is None else justified)
    schema.check_justified(chosen)
    over = None if by is None else period_grouping(subject, by)
    say("scoring")
    decided = decided_rows(subject)
    groupings = groupings_of(schema, subject.table)
    say("groups")
    groups = subject_groups(subject, generator(seed, "proxies", "groups"), decided=decided)
    work = _Work(subject, decided, chosen, seed, columns, say)
    singles = [work.single(one) for one in groupings]
    several = [work.several(some) for some in intersections(groupings)]
    periods = () if over is None else periods_of(over, groupings, decided, generator(seed, "proxies", "periods"))
    return ProxyStudy(
        subject, (*singles, *several), groups, chosen, by, periods, seed, tuple(work.notes(groupings, singles))
    )


class _Work:
    """What the attributes share: scores, the justified attributes and what they predict."""

    def __init__(
        self, subject: Subject, decided: Decided, justified: tuple[str, ...], seed: int, columns: bool, say: Progress
    ):
        self.subject, self.decided, self.names, self.seed, self.say = subject, decided, justified, seed, say
        self.with_columns = columns
        schema = subject.schema
        places = [schema.column(name) for name in justified]
        self.features = subject.table.codes[:, places]
        self.categorical = tuple(schema.attributes[i].kind == "category" for i in places)
        unseen = set() if subject.scores_only else set(subject.encoding.unseen)
        inputs = {name for i, name in enumerate(schema.names) if i not in unseen}
        #: A score that is a function of justified attributes alone adds nothing to them, exactly.
        self.exact = bool(justified) and not subject.scores_only and inputs <= set(justified)
        self.learned = None
        if justified and len(subject.table) >= MIN_PEOPLE and not self.exact:
            say("the score from justified attributes")
            self.learned = justified_of(self.features, self.categorical, decided.scores, self._rng("justified"))

    def _rng(self, *path: str) -> np.random.Generator:
        return generator(self.seed, "proxies", *path)

    def single(self, groups: Grouping) -> AttributeStudy:
        """One attribute."""
        self.say(f"bits about {groups.name}")
        study = self._told(groups.name, (groups,))
        if study.score is None:
            return study
        direct, indirect = self._apart(groups)
        columns: tuple[ColumnBits, ...] = ()
        matched = None
        if self.with_columns:
            self.say(f"columns that tell {groups.name}")
            columns = self._columns(groups)
            if self.names:
                epsilon = default_epsilon(self.subject.schema, self.subject.table)
                rng = self._rng("matched", groups.name)
                matched = matched_people(
                    groups, self.features, self.categorical, self.decided.scores, rng, epsilon=epsilon
                )
        return replace(study, direct_bits=direct, indirect=indirect, columns=columns, matched=matched)

    def several(self, some: tuple[Grouping, ...]) -> AttributeStudy:
        """An intersection, by the chain rule."""
        name = " × ".join(one.name for one in some)
        self.say(f"bits about {name}")
        return self._told(name, some)

    def _told(self, name: str, some: tuple[Grouping, ...]) -> AttributeStudy:
        known = np.logical_and.reduce([one.known for one in some])
        unknown, people = int((~known).sum()), int(known.sum())
        taken = any(self._takes(one.name) for one in some)
        study = AttributeStudy(name, taken, unknown, None)
        if people < MIN_PEOPLE:
            return replace(
                study,
                reason=f"only {people:,} people have a known value of {name}; bits need at least {MIN_PEOPLE}.",
            )
        lonely = next((one for one in some if (one.counts > 0).sum() < 2), None)
        if lonely is not None:
            return replace(
                study, reason=f"everybody has the same value of {lonely.name}, so there is nothing to know about it."
            )
        told = chained_bits if len(some) > 1 else None
        rng = self._rng("bits", name)
        score = score_bits(some[0], self.decided.scores, rng) if told is None else told(some, self.decided.scores, rng)
        return replace(study, score=score, usable=self._usable(name, some))

    def _usable(self, name: str, some: tuple[Grouping, ...]) -> UsableBits | None:
        if self.exact:
            return UsableBits(0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, len(self.decided.scores))
        if self.learned is None:
            return None
        groups = some[0] if len(some) == 1 else crossed(some)
        if len(some) > 1 and (len(groups.labels) > MAX_CROSSED_GROUPS or len(groups) > MAX_CROSSED_ROWS):
            return None
        self.say(f"usable bits about {name}")
        return usable_bits(groups, self.learned, self._rng("usable", name))

    def _takes(self, name: str) -> bool:
        """Whether the model takes an attribute."""
        schema = self.subject.schema
        if self.subject.scores_only or name not in schema.names:
            return False
        return schema.column(name) not in self.subject.encoding.unseen

    def _apart(self, groups: Grouping) -> tuple[float | None, ScoreBits | None]:
        """Direct bits over the attribute's twins, and indirect bits in the twin-averaged score c(x)."""
        if self.subject.scores_only:
            return None, None
        if not self._takes(groups.name):
            return 0.0, None
        subject = self.subject.with_protected([groups.name])
        twins = Twins(subject.schema)
        table = self.subject.table
        rng = self._rng("direct", groups.name)
        most = max(MIN_PEOPLE, MAX_TWIN_SCORES // twins.m)
        rows = np.arange(len(table))
        if len(rows) > most:
            rows = np.sort(rng.choice(rows, most, replace=False))
        people = table.codes[rows]
        scores = np.empty((len(rows), twins.m))
        with rows_named(place=lambda row: table.place(int(rows[row]))):
            for piece, block in twins.blocks(people):
                inputs = subject.encoding.encode(block.reshape(-1, people.shape[1]))
                scores[piece] = np.asarray(subject.model.scores(inputs)).reshape(-1, twins.m)
        found = qid(scores, epsilon=default_epsilon(subject.schema, table))
        return float(found.q_inf.mean()), score_bits(groups.take(rows), scores.mean(axis=1), rng)

    def _columns(self, groups: Grouping) -> tuple[ColumnBits, ...]:
        subject, schema = self.subject, self.subject.schema
        rng = self._rng("columns", groups.name)
        rows = np.arange(len(subject.table))
        if len(rows) > MAX_COLUMN_ROWS:
            rows = np.sort(rng.choice(rows, MAX_COLUMN_ROWS, replace=False))

        def ask(codes: npt.NDArray[np.float64]) -> npt.NDArray[np.floating]:
            return np.asarray(subject.model.scores(subject.encoding.encode(codes)), dtype=np.float64).reshape(-1)

        return column_bits(
            groups.take(rows),
            subject.table.codes[rows],
            schema.names,
            self.decided.scores[rows],
            rng,
            strata=strata_of(self.features[rows], self.categorical) if self.names else None,
            ask=None if subject.scores_only else ask,
            skip=schema.protected_columns,
        )

    def notes(self, groupings: Sequence[Grouping], singles: Sequence[AttributeStudy]) -> list[str]:
        """What must be known to read the figures."""
        found = []
        values = np.unique(self.decided.scores)
        if len(values) <= 2:
            what = "one value" if len(values) == 1 else "two values"
            found.append(
                f"the score has {what} only: its bits are those of a decision, and a finer score could tell more."
            )
        for groups in groupings:
            unknown = int((~groups.known).sum())
            if unknown:
                found.append(f"{unknown:,} people have no value of {groups.name}; they are counted and left out.")
        found += [
            f"{', '.join(study.copies)} tells {study.attribute} almost completely: a copy of it."
            for study in singles
            if study.copies
        ]
        if self.exact:
            found.append(
                "the model takes justified attributes only, so its score adds nothing to them: usable bits are "
                "exactly 0."
            )
        if self.learned is not None and self.learned.learnable >= 0.5:
            found.append(
                "more people might let the justified attributes explain most of the rest of the score, so no usable "
                "bits are claimed."
            )
        return found


def period_grouping(subject: Subject, by: str) -> Grouping:
    """The periods of a table's rows, in order: an attribute, or any other column of the file it was read from.

    Parameters
    ----------
    subject
        The model, its table and its schema.
    by
        Name of an attribute, or of another column of the file.

    Returns
    -------
    Grouping
        Periods, and the period of each row.
    """
    schema, table = subject.schema, subject.table
    if by in schema.names:
        return _every_value(by, table.codes[:, schema.column(by)], schema[by].read)
    watched = [one.name for one in schema.observed]
    if by in watched and table.observed is not None:
        return grouping_of(schema.observed[watched.index(by)], table.observed[:, watched.index(by)])
    texts = _column_of_file(subject, by)
    known = np.array([text is not None for text in texts])
    present, own = np.unique(np.array([text for text in texts if text is not None]), return_inverse=True)
    codes = np.full(len(texts), -1, dtype=np.int64)
    codes[known] = own
    return Grouping(by, tuple(str(one) for one in present), codes)


def _every_value(name: str, codes: npt.NDArray[np.float64], read: Callable[[float], str]) -> Grouping:
    present, own = np.unique(codes, return_inverse=True)
    return Grouping(name, tuple(read(code) for code in present), own.astype(np.int64))


def _column_of_file(subject: Subject, by: str) -> list[str | None]:
    """A column that the schema does not know, from the file."""
    from fairbits.domain import plain, read_arrow, text_of
    from fairbits.errors import choose_from
    from fairbits.subject import read_document

    table = subject.table
    if table.file is None:
        raise OptionError(
            f"--by names {by!r}, which is no attribute of the subject; {choose_from(by, subject.schema.names)}"
        )
    stated = read_document(subject.source) if subject.source and subject.source.endswith(".toml") else {}
    delimiter = str(stated.get("table", {}).get("delimiter", ","))
    data = read_arrow(table.file, delimiter=delimiter)
    if by not in data.column_names:
        raise OptionError(f"--by names {by!r}, which is not in the table; {choose_from(by, data.column_names)}")
    values = plain(data[by]).to_pylist()
    if table.numbers is not None:
        values = [values[number - 1] for number in table.numbers]
    return [None if value is None else text_of(value) for value in values]


def _ignored(_words: str) -> None:
    """Default callback: ignore progress."""
