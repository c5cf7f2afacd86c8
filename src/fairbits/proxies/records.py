"""What a study of indirect bits found, and how it reads in proxies.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fairbits.measure import Filing, GroupTable, documents_of, filing_of
from fairbits.proxies.bits import GuessPair, ScoreBits
from fairbits.proxies.columns import ColumnBits
from fairbits.proxies.matched import Matching
from fairbits.proxies.periods import Period
from fairbits.proxies.usable import UsableBits
from fairbits.subject import Subject


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
    pair
        The two groups that the score tells apart best.
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

    @property
    def copies(self) -> tuple[str, ...]:
        """Columns that are copies of the attribute."""
        return tuple(one.column for one in self.columns if one.copy)

    def document(self, people: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        """The entry of proxies.json, under its fixed names.

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
            "guess_pair": None if self.pair is None else asdict(self.pair),
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
    """What was found; ``attributes`` hold single attributes first, then intersections.

    Parameters
    ----------
    subject
        The model and its people.
    attributes
        Indirect bits of single attributes first, then of intersections.
    groups
        How decisions fall on groups.
    justified
        Attributes that may decide.
    by, periods
        The column of periods, and the figures of each of them.
    seed
        Of folds and placebos.
    notes
        What must be known to read it.
    data_source, distributed
        For tables to file.
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

    def __repr__(self) -> str:
        names = ", ".join(one.attribute for one in self.attributes)
        return f"<ProxyStudy of {self.subject.name!r}: {names}>"

    @property
    def sees_none(self) -> bool:
        """Whether the model takes no protected attribute at all."""
        return not any(one.taken for one in self.attributes)

    def document(self) -> dict[str, Any]:
        """The content of proxies.json."""
        return {
            "subject": self.subject.name,
            "quality": None if self.subject.quality is None else self.subject.quality.figures(),
            "rows": len(self.subject.table),
            "scores_only": self.subject.scores_only,
            "seed": self.seed,
            "justified": list(self.justified),
            "attributes": [one.document(self._portraits(one)) for one in self.attributes],
            "groups": documents_of(self.groups),
            "filing": {"data_source": self.data_source or _source(self.subject), "distributed": self.distributed},
            "by": self.by,
            "periods": [one.document() for one in self.periods],
            "notes": list(self.notes),
        }

    def filing(self) -> Filing:
        """The tables that New York City's Local Law 144 asks for."""
        return filing_of(self.groups, self.subject, data_source=self.data_source, distributed=self.distributed)

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


def _source(subject: Subject) -> str:
    return subject.name if subject.table.file is None else subject.table.file.name
