"""What a study of indirect bits found, how it reads in proxies.json, and in sentences for terminal and report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fairbits.measure import GroupTable, documents_of, filing_of
from fairbits.proxies.bits import ColumnBits, GuessPair, ScoreBits
from fairbits.proxies.matched import Matching
from fairbits.proxies.periods import Period
from fairbits.proxies.probable import ProbableTable
from fairbits.proxies.usable import UsableBits
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
        names = ", ".join(one.attribute for one in self.attributes)
        return f"<ProxyStudy of {self.subject.name!r}: {names}>"

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
            about = {"row": row, "place": table.place(place), "group": group, "score": score}
            return {**about, "attributes": schema.read(table.codes[place])}

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
        f"(at least {entry['bits_low']:.2f}; shuffled: {entry['placebo']:.2f})"
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
        f"{words}; of two people, one {pair['lower']} and one {pair['higher']}, the score tells which is which in "
        f"{percent(pair['right'])} of cases (a coin: 50 %)"
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
            f"directly the score uses {entry['direct_bits']:.2f} bits of {entry['attribute']} per person (QID); the "
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
        yield f"the bits of the score fall most without {', '.join(parts)}"
    alone = [one for one in sorted(entry["by_column"], key=lambda one: -one["bits"]) if one["bits_low"] > 0]
    if alone:
        yield "by themselves tell " + ", ".join(f"{one['column']} {one['bits']:.2f}" for one in alone[:3]) + " bits"
    if entry["matched"] is not None:
        yield _matched(entry["attribute"], entry["matched"])


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


def _matched(name: str, matched: Mapping[str, Any]) -> str:
    excess = matched["excess"]
    return (
        f"{matched['people']:,} people have somebody alike on the justified attributes in another group of {name}, and "
        f"in their own: scores lie {matched['span']:.3f} apart on average across groups, "
        f"{matched['placebo_span']:.3f} within the own group "
        f"(difference {signed(excess['value'], 3)}, {signed(excess['low'], 3)} to {signed(excess['high'], 3)})"
    )
