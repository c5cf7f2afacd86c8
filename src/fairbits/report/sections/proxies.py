"""The section on indirect bits: what proxies.json says, in sentences, tables, portraits and a picture over time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.domain import shortened
from fairbits.numerals import percent
from fairbits.proxies import WHAT_A_BIT_IS, details, sentence_of
from fairbits.report.markup import table, text, value_text
from fairbits.report.section import Section
from fairbits.shape import reading
from fairbits.store import read_json
from fairbits.subject import Subject

if TYPE_CHECKING:
    from fairbits.report.record import ReportData

NAME = "proxies.json"
#: Groups of one table on the page, columns and pairs of one attribute; all are in proxies.json.
MAX_GROUPS, MAX_COLUMNS, MAX_PAIRS = 40, 8, 5
#: Groups whose rates stand below the headline.
MAX_RATES = 6
#: What summary.json takes over from an attribute of proxies.json.
_FIGURES = (
    "attribute",
    "taken",
    "people",
    "unknown",
    "bits",
    "bits_low",
    "bits_guaranteed",
    "placebo",
    "entropy",
    "guess_before",
    "guess_after",
    "guess_pair",
    "usable_bits",
    "usable_low",
    "usable_placebo",
    "direct_bits",
    "indirect_bits",
    "copies",
    "reason",
)


def proxies_of(folder: Path, subject: Subject) -> dict[str, Any] | None:
    """The study of proxies in a run's folder, if it is about this subject."""
    path = folder / NAME
    if not path.is_file():
        return None
    document = read_json(path)
    fits = document.get("subject") == subject.name and document.get("rows") == len(subject.table)
    if not fits or "attributes" not in document:
        return None
    with reading(path, "delete it, and run fairbits proxies again"):  # everything that the page takes from it
        pieces: tuple[Callable[[Mapping[str, Any]], Iterable[Any] | None], ...]
        pieces = (
            indirect_text,
            sentences,
            carriers,
            matches,
            lambda found: lead(found, blind=True),
            lambda found: plainly(found, blind=True),
            summary,
        )
        for take in pieces:
            deque(take(document) or (), maxlen=0)
    return document


def lead(document: Mapping[str, Any] | None, blind: bool) -> str:
    """The first sentence of the page for a model that takes no protected attribute."""
    found = _strongest(document) if document is not None and blind else None
    return "" if found is None else f"{_full(sentence_of(found))} "


def plainly(document: Mapping[str, Any] | None, blind: bool) -> tuple[str, ...]:
    """What :func:`lead` says in everyday words: who is decided about how, and how well the score tells groups apart."""
    found = _strongest(document) if document is not None and blind else None
    if document is None or found is None:
        return ()
    lines: list[str] = []
    for one in document["groups"]:
        if one["attribute"] == found["attribute"]:
            lines += _rates(one)
    pair = found.get("guess_pair")
    if pair is not None and found["bits_low"] > 0:
        lines.append(
            f"Of two people, one {shortened(pair['lower'], 40)} and one {shortened(pair['higher'], 40)}, the score tells "
            f"which is which in {percent(pair['right'])} of cases (a coin: 50 %)."
        )
    return tuple(line.replace(" %", "\N{NO-BREAK SPACE}%") for line in lines)


def _strongest(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The single attribute that the score tells most about."""
    known = [one for one in document["attributes"] if one["bits"] is not None and " × " not in one["attribute"]]
    return max(known, key=lambda one: (one["bits_low"], one["bits"]), default=None)


def _rates(table: Mapping[str, Any]) -> Iterator[str]:
    """Rates of the groups that are large enough, the highest first."""
    large = [one for one in table["groups"] if not one["small"]]
    decided = any(one["selection_rate"] is not None for one in large)
    rate = "selection_rate" if decided else "scoring_rate"
    ordered = sorted((one for one in large if one[rate] is not None), key=lambda one: -one[rate])
    if len(ordered) < 2:
        return
    parts = [f"{shortened(one['group'], 40)} {percent(one[rate])}" for one in ordered]
    if len(parts) > MAX_RATES:
        parts = [*parts[: MAX_RATES // 2], "…", *parts[-MAX_RATES // 2 :]]
    what = "Decided favourably" if decided else "Scored above the median of everybody"
    yield f"{what}, by {shortened(table['attribute'], 40)}: {'; '.join(parts)}."


def sentences(document: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """For every attribute its main sentence, and the others."""
    for entry in document["attributes"]:
        yield _full(sentence_of(entry)), tuple(_full(line) for line in details(entry))


def carriers(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For every attribute that was asked about, the columns that carry it, those that carry most first."""
    return [
        {"attribute": one["attribute"], "columns": one["by_column"][:MAX_COLUMNS]}
        for one in document["attributes"]
        if one["by_column"]
    ]


def matches(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The pairs alike on the justified attributes and most differently scored.

    Only of attributes whose groups are scored further apart than people of one group are: other pairs show no group.
    """
    found = []
    for entry in document["attributes"]:
        matched = entry["matched"]
        pairs = [] if matched is None or matched["excess"]["low"] <= 0 else matched["pairs"][:MAX_PAIRS]
        if pairs:
            found.append({"attribute": entry["attribute"], "pairs": [_pair(pair, document) for pair in pairs]})
    return found


def _pair(pair: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Two people side by side: first what they share a reason in, then the rest; differences are marked."""
    lower, higher = pair["lower"], pair["higher"]
    names = sorted(lower["attributes"], key=lambda name: name not in document["justified"])
    facts = [
        (name, lower["attributes"][name], higher["attributes"].get(name, ""), name in document["justified"])
        for name in names
    ]
    return {"lower": lower, "higher": higher, "gap": higher["score"] - lower["score"], "facts": facts}


def pictures(document: Mapping[str, Any] | None) -> dict[str, str]:
    """The picture over time as inline SVG, where there are periods."""
    if document is None or len(document["periods"]) < 2:
        return {}
    from fairbits.report.figures.periods import over_time
    from fairbits.report.figures.svg import inline_svg

    known = [one for one in document["attributes"] if one["bits"] is not None and " × " not in one["attribute"]]
    named = [table["attribute"] for table in document["groups"]]
    about = max(known, key=lambda one: one["bits"])["attribute"] if known else named[0]
    made = over_time(document["periods"], about)
    if made is None:
        return {}
    parts = []
    for period in document["periods"]:
        bits = [f"{one['attribute']} {one['bits']:.2f} bits" for one in period["bits"] if "bits" in one]
        parts.append(f"{period['period']}: {', '.join(bits) or 'too few people'}")
    return {"periods": inline_svg(made, "pic-periods", f"Over {document['by']}", "; ".join(parts))}


def summary(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The section ``proxies`` of summary.json: headline figures of each attribute; the rest is in proxies.json."""
    if document is None:
        return None
    return {
        "justified": list(document["justified"]),
        "attributes": [{name: one.get(name) for name in _FIGURES} for one in document["attributes"]],
        "groups": [
            {
                "attribute": table["attribute"],
                "unknown": table["unknown"],
                "small_groups": table["small_groups"],
                "groups": [
                    {name: one[name] for name in ("group", "people", "selection_rate", "impact_ratio", "scoring_ratio")}
                    for one in table["groups"]
                ],
            }
            for table in document["groups"]
        ],
        "by": document["by"],
        "notes": list(document["notes"]),
    }


def _full(line: str) -> str:
    return f"{line[:1].upper()}{line[1:].rstrip('.')}."


def indirect_text(document: Mapping[str, Any]) -> Iterator[str]:
    """The section on indirect bits and groups, a line at a time."""
    yield "## Without the columns: indirect bits and groups"
    yield ""
    yield text(WHAT_A_BIT_IS, 400)
    for sentence, more in sentences(document):
        yield ""
        yield f"**{text(sentence, 400)}** " + " ".join(text(line, 600) for line in more)
    for one in document["groups"]:
        yield ""
        yield f"{text(one['attribute'])}: {one['people']:,} people, {one['unknown']:,} of unknown group."
        yield ""
        heads = ["group", "people", "base rate", "selected", "impact ratio", "above median", "TPR", "FPR", "precision"]
        rows = (_group(group) for group in one["groups"][:MAX_GROUPS])
        yield from table([*heads, "calibration"], rows, right=1)
    yield from _pairs_text(document)
    yield from _periods_text(document)
    yield ""
    yield "Groups of fewer than 30 people get no ratio. Four fifths is a rule of thumb, not a verdict."


def _pairs_text(document: Mapping[str, Any]) -> Iterator[str]:
    for entry in matches(document):
        yield ""
        yield f"Alike on the justified attributes, not in {text(entry['attribute'])}:"
        for rank, pair in enumerate(entry["pairs"], 1):
            yield ""
            yield f"{rank}. " + " and ".join(
                f"{side['score']:.3f} {text(side['group'])} ({text(side['place'])})"
                for side in (pair["lower"], pair["higher"])
            )
            yield ""
            rows = ([text(name), value_text(low), value_text(high)] for name, low, high, _ in pair["facts"])
            yield from table(["attribute", text(pair["lower"]["group"]), text(pair["higher"]["group"])], rows)


def _periods_text(document: Mapping[str, Any]) -> Iterator[str]:
    periods = document["periods"]
    if not periods:
        return
    yield ""
    yield f"Over {text(document['by'])}:"
    yield ""
    names = [f"bits about {text(one['attribute'])}" for one in periods[0]["bits"]]
    heads = [text(document["by"]), "people", "selected", "bits used directly, mean", "decisions that flip", *names]
    rows = (
        [
            text(one["period"]),
            f"{one['people']:,}",
            _between(one, "selection_rate"),
            "–" if one["q_inf_mean"] is None else f"{one['q_inf_mean']:.2f}",
            _between(one, "flip_rate"),
            *(f"{b['bits']:.2f} (≥ {b['low']:.2f})" if "bits" in b else "–" for b in one["bits"]),
        ]
        for one in periods
    )
    yield from table(heads, rows, right=1)


def _group(one: Mapping[str, Any]) -> list[str]:
    rates = [_between(one, name) for name in ("base_rate", "selection_rate")]
    others = [_between(one, name) for name in ("scoring_rate", "tpr", "fpr", "precision")]
    ratio = "under 30 people" if one["small"] else "–" if one["impact_ratio"] is None else f"{one['impact_ratio']:.2f}"
    gap = "–" if one["calibration"] is None else f"{one['calibration']:+.3f}".replace("-", "−")
    few = " (under 2 %)" if one["under_two_percent"] else ""
    return [text(one["group"]) + few, f"{one['people']:,}", *rates, ratio, *others, gap]


def _between(one: Mapping[str, Any], name: str) -> str:
    if one.get(name) is None:
        return "–"
    return f"{one[name]:.1%} ({one[f'{name}_low']:.1%} to {one[f'{name}_high']:.1%})"


def _markdown(data: ReportData) -> Iterator[str]:
    assert data.proxies is not None  # noqa: S101 - asked by `shown`
    return indirect_text(data.proxies)


def _values(data: ReportData) -> dict[str, Any]:
    document = data.proxies
    assert document is not None  # noqa: S101 - asked by `shown`
    found = {"indirect": list(sentences(document)), "carriers": carriers(document), "matches": matches(document)}
    return {**found, "what_a_bit_is": WHAT_A_BIT_IS}


SECTION = Section(
    "indirect",
    "Without the columns",
    '{% include "proxies.html" %}',
    _markdown,
    shown=lambda data: data.proxies is not None,
    values=_values,
    first=lambda data: data.about.blind,  # what was found leads, where twins cannot differ
)

__all__ = [
    "MAX_GROUPS",
    "NAME",
    "SECTION",
    "WHAT_A_BIT_IS",
    "carriers",
    "indirect_text",
    "lead",
    "matches",
    "pictures",
    "plainly",
    "proxies_of",
    "sentences",
    "summary",
]
