"""One study of a subject: bits about every protected attribute, direct, indirect and usable, through what, for whom.

Its record says how it reads in proxies.json, and in sentences for terminal and report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fairbits.domain import Integers, Twins, one_row_each, people_of, twin_inputs
from fairbits.errors import SchemaError, rows_named
from fairbits.measure import (
    REGRESSION_SHARE,
    Decided,
    Evaluator,
    Grouping,
    GroupTable,
    crossed,
    decided_rows,
    default_epsilon,
    documents_of,
    filing_of,
    groupings_of,
    intersections,
    qid,
    subject_groups,
)
from fairbits.proxies.bits import (
    ColumnBits,
    GuessPair,
    ScoreBits,
    best_pair,
    chained_bits,
    column_bits,
    score_bits,
    strata_of,
)
from fairbits.proxies.matched import Matching, matched_people
from fairbits.proxies.periods import Period, period_grouping, periods_of
from fairbits.proxies.probable import ProbableTable, probable_table
from fairbits.proxies.usable import MAX_LEARNABLE, UsableBits, justified_of, usable_bits
from fairbits.randomness import generator, sampled_rows
from fairbits.subject import Subject
from fairbits.text import percent, signed


@dataclass(frozen=True, slots=True)
class AttributeStudy:
    """One protected attribute, or an intersection.

    Parameters
    ----------
    attribute, attributes
        Its name, and the attributes that it is made of: one, or those of an intersection.
    taken, unknown
        Whether the model takes it, and people whose value is missing; they are left out.
    score, reason
        What the score tells about it; None where it cannot be known, for the ``reason``.
    usable
        What it tells beyond the justified attributes; None where none were named.
    direct_bits
        Bits that the score uses directly: the mean QID over the twins of this attribute, exactly 0 for a model that
        does not take it, None where the model is not at hand.
    indirect, columns
        What the twin-averaged score tells: what is left without direct use; and through what.
    matched, pair
        People alike on the justified attributes, and the two groups that the score tells apart best.
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
    pair: GuessPair | None = None
    attributes: tuple[str, ...] = ()

    @property
    def copies(self) -> tuple[str, ...]:
        """Columns that are copies of the attribute."""
        return tuple(one.column for one in self.columns if one.copy)

    def document(self, people: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        """The entry of proxies.json, under its fixed names, with matched people."""
        told = {"people": "people", "bits": "bits", "bits_low": "low", "bits_guaranteed": "guaranteed"}
        told |= {name: name for name in ("placebo", "placebo_high", "entropy", "guess_before", "guess_after")}
        usable = {"usable_bits": "bits", "usable_low": "low", "usable_estimate": "estimate"}
        usable |= {"usable_placebo": "placebo", "usable_learnable": "learnable"}
        return {
            "attribute": self.attribute,
            "attributes": list(self.attributes),
            "taken": self.taken,
            "unknown": self.unknown,
            **{name: getattr(self.score, field, None) for name, field in told.items()},
            "guess_pair": None if self.pair is None else asdict(self.pair),
            **{name: getattr(self.usable, field, None) for name, field in usable.items()},
            "direct_bits": self.direct_bits,
            "indirect_bits": getattr(self.indirect, "bits", None),
            "indirect_bits_low": getattr(self.indirect, "low", None),
            "by_column": [asdict(one) for one in self.columns],
            "copies": list(self.copies),
            "matched": None if self.matched is None else {**asdict(self.matched), "pairs": list(people)},
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, eq=False)
class ProxyStudy:
    """What was found; ``attributes`` hold single attributes first, then intersections.

    Parameters
    ----------
    subject, seed
        The model and its people; of folds and placebos.
    attributes, probable
        Indirect bits of single attributes first, then of intersections; attributes known as probabilities only.
    groups, justified
        How decisions fall on groups, and attributes that may decide.
    by, periods
        The column of periods, and the figures of each of them.
    data_source, distributed
        For tables to file.
    notes
        What must be known to read it.
    """

    subject: Subject
    attributes: tuple[AttributeStudy, ...]
    groups: tuple[GroupTable, ...]
    justified: tuple[str, ...]
    by: str | None
    periods: tuple[Period, ...]
    seed: int
    notes: tuple[str, ...]
    data_source: str | None = None
    distributed: str | None = None
    probable: tuple[ProbableTable, ...] = ()

    def __repr__(self) -> str:
        return f"<ProxyStudy of {self.subject.name!r}: {', '.join(one.attribute for one in self.attributes)}>"

    def document(self) -> dict[str, Any]:
        """The content of proxies.json."""
        file = self.subject.table.file
        source = self.data_source or (self.subject.name if file is None else file.name)
        return {
            "subject": self.subject.name,
            "quality": None if self.subject.quality is None else self.subject.quality.figures(),
            "rows": len(self.subject.table),
            "scores_only": self.subject.scores_only,
            "seed": self.seed,
            "justified": list(self.justified),
            "attributes": [one.document(self._portraits(one)) for one in self.attributes],
            "groups": documents_of(self.groups),
            "probable": [asdict(one) for one in self.probable],
            "filing": {"data_source": source, "distributed": self.distributed},
            "by": self.by,
            "periods": [one.document() for one in self.periods],
            "notes": list(self.notes),
        }

    def filing(self) -> dict[str, Any]:
        """The tables that New York City's Local Law 144 asks for, as JSON."""
        return filing_of(self.groups, self.subject, data_source=self.data_source, distributed=self.distributed)

    def _portraits(self, study: AttributeStudy) -> list[dict[str, Any]]:
        """Matched pairs as people: two rows with their names and labels."""
        table, schema = self.subject.table, self.subject.schema

        def portrait(place: int, group: str, score: float) -> dict[str, Any]:
            row = place + 1 if table.numbers is None else int(table.numbers[place])
            people = schema.read(table.codes[place])
            return {"row": row, "place": table.place(place), "group": group, "score": score, "attributes": people}

        return [
            {
                "distance": pair.distance,
                "lower": portrait(pair.row, pair.group, pair.score),
                "higher": portrait(pair.other, pair.other_group, pair.other_score),
            }
            for pair in (() if study.matched is None else study.matched.pairs)
        ]


WHAT_A_BIT_IS = (
    "A bit is one yes-or-no answer. 1 bit about an attribute of two equally common values tells it completely; 0 bits "
    "leave a guess as good as before."
)


def sentence_of(entry: Mapping[str, Any]) -> str:
    """What the score tells about one attribute of proxies.json."""
    if entry["bits"] is None:
        return f"{entry['attribute']}: {entry['reason']}"
    return (
        f"knowing the score tells {entry['bits']:.2f} bits about {entry['attribute']} "
        f"(at least {entry['bits_low']:.2f}; {entry['placebo']:.2f} where it is shuffled)"
    )


def guessed(entry: Mapping[str, Any]) -> str:
    """The bits as odds of guessing right."""
    before, after = entry["guess_before"], entry["guess_after"]
    words = (
        f"{entry['bits']:.2f} of {entry['entropy']:.2f} bits: whoever guesses {entry['attribute']} is right "
        f"{percent(before)} of the time without the score, and {percent(after)} with it"
    )
    pair = entry.get("guess_pair")
    if pair is None:
        return words
    # Where one group is much larger, its name is always the best guess; pairs of people still show the odds.
    return (
        f"{words}; of two people, one {pair['lower']} and one {pair['higher']}, the score tells which is which "
        f"{percent(pair['right'])} of the time (a coin: 50 %)"
    )


def details(entry: Mapping[str, Any]) -> Iterator[str]:
    """Further sentences about one attribute."""
    if entry["bits"] is None:
        return
    yield guessed(entry)
    if entry["usable_bits"] is not None:
        yield _usable(entry)
    if entry["taken"] and entry["direct_bits"] is not None and entry["indirect_bits"] is not None:
        yield (
            f"directly the score uses {entry['direct_bits']:.2f} bits of {entry['attribute']} per person; the "
            f"twin-averaged score still tells {entry['indirect_bits']:.2f} bits (at least "
            f"{entry['indirect_bits_low']:.2f})"
        )
    elif entry["direct_bits"] == 0:
        yield f"the model does not take {entry['attribute']}: direct bits are exactly 0, all of this is indirect"
    if entry["copies"]:
        yield f"a copy of {entry['attribute']} is among the columns: {', '.join(entry['copies'])}"
    carriers = [one for one in entry["by_column"] if (one["fall_low"] or 0.0) > 0 and one["fall"] >= 0.005]
    if carriers:
        parts = [f"{one['column']} (−{one['fall']:.2f})" for one in carriers[:3]]
        yield f"the score tells less without {', '.join(parts)}"
    alone = [one for one in sorted(entry["by_column"], key=lambda one: -one["bits"]) if one["bits_low"] > 0]
    if alone:
        parts = [f"{one['bits']:.2f} bits by {one['column']}" for one in alone[:3]]
        yield f"of single columns, {entry['attribute']} is told best: {', '.join(parts)}"
    if entry["matched"] is not None:
        matched, excess = entry["matched"], entry["matched"]["excess"]
        yield (
            f"{matched['people']:,} people have somebody alike on the justified attributes in another group of "
            f"{entry['attribute']}, and in their own: scores lie {matched['span']:.3f} apart on average across groups, "
            f"{matched['placebo_span']:.3f} within the own group "
            f"(difference {signed(excess['value'], 3)}, {signed(excess['low'], 3)} to {signed(excess['high'], 3)})"
        )


def _usable(entry: Mapping[str, Any]) -> str:
    placebo = entry["usable_placebo"]
    if entry["usable_bits"] > 0:
        return (
            f"to somebody who knows the justified attributes it still tells {entry['usable_bits']:.3f} bits (at least "
            f"{entry['usable_low']:.3f}; placebo {placebo:.3f})"
            + (
                "; that is more than by itself, because what the justified attributes explain can be taken off"
                if entry["usable_low"] > entry["bits"]
                else ""
            )
        )
    return f"beyond the justified attributes nothing can be claimed: 0 usable bits (placebo {placebo:.3f})"


#: With fewer people of known value, the only honest answer is that nothing can be known.
MIN_PEOPLE = 200
#: People whom a model is asked about again, column by column, and twin scores for the direct bits.
MAX_COLUMN_ROWS, MAX_TWIN_SCORES = 20_000, 400_000
#: Intersections get usable bits of their own up to so many groups and people.
MAX_CROSSED_GROUPS, MAX_CROSSED_ROWS = 8, 50_000

Progress = Callable[[str], None]


class AttributeWork:
    """Studies one attribute after the other; they share scores, the justified attributes and what those predict."""

    def __init__(
        self,
        subject: Subject,
        decided: Decided,
        justified: tuple[str, ...],
        seed: int,
        columns: bool,
        say: Progress,
        *,
        rows: Integers,
    ):
        self.subject, self.decided, self.names, self.seed, self.say = subject, decided, justified, seed, say
        self.with_columns, self.rows = columns, rows  # of the whole table, that the people here are
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
        """Study one attribute."""
        self.say(f"bits about {groups.name}")
        study = self._study_of(groups.name, (groups,))
        if study.score is None:
            return study
        direct, indirect = self._apart(groups)
        columns, matched = tuple[ColumnBits, ...](), None
        if self.with_columns:
            self.say(f"columns that tell {groups.name}")
            columns = self._columns(groups)
            if self.names:
                about, rng = (self.features, self.categorical, self.decided.scores), self._rng("matched", groups.name)
                matched = matched_people(groups, *about, rng, epsilon=self._tolerance(), whole=self.rows)
        pair = best_pair(groups, self.decided.scores)
        return replace(study, direct_bits=direct, indirect=indirect, columns=columns, matched=matched, pair=pair)

    def several(self, some: tuple[Grouping, ...]) -> AttributeStudy:
        """Study an intersection of attributes, by the chain rule."""
        name = " × ".join(one.name for one in some)
        self.say(f"bits about {name}")
        return self._study_of(name, some)

    def _study_of(self, name: str, some: tuple[Grouping, ...]) -> AttributeStudy:
        known = np.logical_and.reduce([one.known for one in some])
        unknown, people = int((~known).sum()), int(known.sum())
        taken = any(self._takes(one.name) for one in some)
        study = AttributeStudy(name, taken, unknown, None, attributes=tuple(one.name for one in some))
        lonely = next((one for one in some if (one.counts > 0).sum() < 2), None)
        reason = f"bits about {name} need {MIN_PEOPLE} people with a known value, and would rest on {people:,}."
        if lonely is not None and people >= MIN_PEOPLE:
            reason = f"everybody has the same value of {lonely.name}, so there is nothing to know about it."
        if lonely is not None or people < MIN_PEOPLE:
            return replace(study, reason=reason)
        rng, scores = self._rng("bits", name), self.decided.scores
        return replace(study, score=chained_bits(some, scores, rng), usable=self._usable(name, some))

    def _usable(self, name: str, some: tuple[Grouping, ...]) -> UsableBits | None:
        if self.exact:
            return UsableBits(0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, len(self.decided.scores))
        groups = some[0] if len(some) == 1 else crossed(some)
        many = len(some) > 1 and (len(groups.labels) > MAX_CROSSED_GROUPS or len(groups) > MAX_CROSSED_ROWS)
        if self.learned is None or many:
            return None
        self.say(f"usable bits about {name}")
        return usable_bits(groups, self.learned, self._rng("usable", name))

    def _tolerance(self) -> float:
        """Scores closer than this are one class; without a target the spread of the scores themselves says it."""
        schema, table = self.subject.schema, self.subject.table
        if not schema.regression or (table.labels is not None and not self.subject.scores_only):
            return default_epsilon(schema, table)
        low, high = np.quantile(self.decided.scores, [0.01, 0.99])
        return float(REGRESSION_SHARE * (high - low)) or 1.0  # a score of one value is one class, whatever is said here

    def _takes(self, name: str) -> bool:
        """Whether the model takes an attribute."""
        about = self.subject
        known = not about.scores_only and name in about.schema.names
        return known and about.schema.column(name) not in about.encoding.unseen

    def _apart(self, groups: Grouping) -> tuple[float | None, ScoreBits | None]:
        """Direct bits over the attribute's twins, and indirect bits in the twin-averaged score c(x)."""
        if not self._takes(groups.name):
            return None if self.subject.scores_only else 0.0, None
        subject, table = self.subject.with_protected([groups.name]), self.subject.table
        twins, rng = Twins(subject.schema), self._rng("direct", groups.name)
        rows = sampled_rows(len(table), max(MIN_PEOPLE, MAX_TWIN_SCORES // twins.m), rng)
        scores = np.empty((len(rows), twins.m))
        with rows_named(place=lambda row: table.place(int(rows[row]))):
            for piece, inputs in twin_inputs(subject.encoding, table.codes[rows], twins):
                scores[piece] = np.asarray(subject.model.scores(inputs)).reshape(-1, twins.m)
        found = qid(scores, epsilon=self._tolerance())
        return float(found.q_inf.mean()), score_bits(groups.take(rows), scores.mean(axis=1), rng)

    def _columns(self, groups: Grouping) -> tuple[ColumnBits, ...]:
        subject, schema = self.subject, self.subject.schema
        rng = self._rng("columns", groups.name)
        rows = sampled_rows(len(subject.table), MAX_COLUMN_ROWS, rng)
        return column_bits(
            groups.take(rows),
            subject.table.codes[rows],
            schema.names,
            self.decided.scores[rows],
            rng,
            strata=strata_of(self.features[rows], self.categorical) if self.names else None,
            ask=None
            if subject.scores_only
            else lambda codes: np.asarray(subject.model.scores(subject.encoding.encode(codes)), np.float64).reshape(-1),
            skip=schema.protected_columns,
        )

    def notes(self, groupings: Sequence[Grouping], singles: Sequence[AttributeStudy]) -> list[str]:
        """Notes that a reader needs to read the figures."""
        values, found = len(np.unique(self.decided.scores)), list[str]()
        if values <= 2:
            found.append(
                f"the score has {'one value' if values == 1 else 'two values'} only: its bits are those of a decision, "
                f"and a finer score could tell more."
            )
        found += [
            f"{int((~one.known).sum()):,} people have no value of {one.name}; they are counted and left out."
            for one in groupings
            if not one.known.all()
        ]
        found += [
            f"{', '.join(study.copies)} tells {study.attribute} almost completely: a copy of it."
            for study in singles
            if study.copies
        ]
        found += [
            f"{name} is justified and a copy of {study.attribute}: beyond it the score cannot tell anything about "
            f"{study.attribute}, so 0 usable bits say nothing here."
            for study in singles
            for name in study.copies
            if name in self.names
        ]
        if self.exact:
            found.append(
                "the model takes justified attributes only, so its score adds nothing to them: usable bits are "
                "exactly 0."
            )
        if self.learned is not None and self.learned.learnable >= MAX_LEARNABLE:
            found.append(
                "more people might let the justified attributes explain most of the rest of the score, so no usable "
                "bits are claimed."
            )
        return found


def study_subject(
    subject: Subject,
    *,
    justified: Sequence[str] | None = None,
    by: str | None = None,
    seed: int = 0,
    columns: bool = True,
    data_source: str | None = None,
    distributed: str | None = None,
    evaluator: Evaluator | None = None,
    progress: Progress | None = None,
) -> ProxyStudy:
    """Everything that a score tells about protected attributes, whether the model takes them or not."""
    say = progress or (lambda _: None)
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
    # Bits, placebos and matches are about people: of those with several rows, one is drawn by lot; weights by theirs.
    people, weight = people_of(schema, subject.table), subject.table.weight
    rows = one_row_each(people, len(subject.table), generator(seed, "proxies", "people"), weight)
    own, drawn = replace(subject, table=subject.table.rows(rows)), tuple(one.take(rows) for one in groupings)
    work = AttributeWork(own, decided.take(rows), chosen, seed, columns, say, rows=rows)
    singles = [work.single(one) for one in drawn]
    several = [work.several(some) for some in intersections(drawn)]
    periods = tuple[Period, ...]()
    notes = work.notes(drawn, singles)
    if people is not None or weight is not None:
        how = "one row of each person, drawn at random" if weight is None else "rows drawn by their weight"
        notes.append(f"bits and matches rest on {how}: {len(rows):,} of {len(subject.table):,} rows.")
    found = (
        probable_table(
            about,
            chances,
            decided,
            generator(seed, "proxies", "probable", about.attribute),
            rows=rows,
            people=people,
            weight=weight,
        )
        for about, chances in zip(schema.chances, subject.table.chances, strict=True)
    )
    probable = tuple(one for one in found if one is not None)
    if over is not None:
        say(f"periods of {over.name}")
        rng = generator(seed, "proxies", "periods")
        periods = periods_of(subject, over, groupings, decided, rng, evaluator=evaluator)
        lost = int((~over.known).sum())
        if lost:
            notes.append(f"{lost:,} people have no value of {over.name}; they are in no period.")
    return ProxyStudy(
        subject,
        (*singles, *several),
        groups,
        chosen,
        by,
        periods,
        seed,
        tuple(notes),
        data_source,
        distributed,
        probable,
    )
