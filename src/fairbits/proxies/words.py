"""Indirect bits in plain words: the same sentences on a terminal and in a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fairbits.numerals import percent, signed

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
    return (
        f"{entry['bits']:.2f} of {entry['entropy']:.2f} bits: whoever guesses {entry['attribute']} is right "
        f"{percent(before)} of the time without the score, and {percent(after)} with it"
        f"{_pair_words(entry.get('guess_pair'))}"
    )


def _pair_words(pair: Mapping[str, Any] | None) -> str:
    """Where one group is much larger, its name is always the best guess; pairs of people still show the odds."""
    if pair is None:
        return ""
    return (
        f"; of two people, one {pair['lower']} and one {pair['higher']}, the score tells which is which in "
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
    carriers = [one for one in entry["by_column"] if (one["fall_low"] or 0.0) > 0]
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
