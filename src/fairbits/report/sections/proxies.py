"""The section on indirect bits: what proxies.json says, in sentences, tables, portraits and a picture over time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.blocks import (
    Block,
    Bullets,
    Drawing,
    Fold,
    Heading,
    Paragraph,
    Small,
    Strong,
    TableBlock,
    Text,
    between,
    figure,
    label,
    paragraphs,
    shown,
)
from fairbits.domain import shortened
from fairbits.numerals import number, percent, signed
from fairbits.proxies import WHAT_A_BIT_IS, details, sentence_of
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
_GROUP_FIGURES = (
    *("group", "people", "missing", "selection_rate", "impact_ratio", "impact_ratio_low", "impact_ratio_high"),
    *("scoring_ratio", "scoring_ratio_low", "scoring_ratio_high"),
)
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
            indirect_blocks,
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
            f"Of two people, one {shortened(pair['lower'], 40)} and one {shortened(pair['higher'], 40)}, the score "
            f"tells which is which in {percent(pair['right'])} of cases (a coin: 50 %)."
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
                "groups": [{name: one.get(name) for name in _GROUP_FIGURES} for one in table["groups"]],
            }
            for table in document["groups"]
        ],
        "by": document["by"],
        "notes": list(document["notes"]),
    }


def _full(line: str) -> str:
    return f"{line[:1].upper()}{line[1:].rstrip('.')}."


def indirect_blocks(document: Mapping[str, Any]) -> Iterator[Block]:
    """The section on indirect bits and groups."""
    yield Paragraph(WHAT_A_BIT_IS, tone="lead")
    for sentence, more in sentences(document):
        yield Heading(sentence)
        if more:
            yield Bullets(more)
    for i, one in enumerate(document["groups"]):
        title = f"Groups by {one['attribute']}: {one['people']:,} people, {one['unknown']:,} of unknown group"
        yield Fold(title, [_groups(one)], open=i == 0 or " × " not in one["attribute"])
    yield Paragraph(
        "Beside each rate its 95 % interval. Groups of fewer than 30 people are named and get no ratio. The impact "
        "ratio is a group's rate over the highest rate of its table; four fifths is a rule of thumb, not a verdict.",
        tone="small",
    )
    for one in carriers(document):
        yield Fold(f"Columns that carry {one['attribute']}", [_carriers(one["columns"])])
    for entry in matches(document):
        yield Heading(f"Alike on the justified attributes, not in {entry['attribute']}")
        for rank, pair in enumerate(entry["pairs"], 1):
            yield _pair_fold(rank, pair)
    yield from _periods(document)
    yield from paragraphs((f"Note: {line}" for line in document["notes"]), "note")


def _groups(one: Mapping[str, Any]) -> Block:
    heads = [
        "people",
        "base rate",
        "selected",
        "impact ratio",
        "above median",
        "TPR",
        "FPR",
        "precision",
        "calibration",
    ]
    rows = []
    for group in one["groups"][:MAX_GROUPS]:
        name = group["group"]
        few = (name, Small("under 2 %")) if group["under_two_percent"] else name
        rates = [_between(group, rate) for rate in ("base_rate", "selection_rate")]
        others = [_between(group, rate) for rate in ("scoring_rate", "tpr", "fpr", "precision")]
        ratio = "under 30" if group["small"] else _ratio(group)
        rows.append((few, number(group["people"]), *rates, ratio, *others, _calibration(group)))
    return TableBlock([label("group"), *(shown(head) for head in heads)], rows)


def _between(one: Mapping[str, Any], name: str) -> Text:
    """A rate with its interval, which may be missing."""
    if one.get(name) is None:
        return "–"
    return percent(one[name]), Small(f"{number(100 * one[f'{name}_low'], 1)}–{number(100 * one[f'{name}_high'], 1)}")


def _ratio(one: Mapping[str, Any]) -> Text:
    """An impact ratio with its interval, where it has one."""
    value, low, high = (one.get(f"impact_ratio{end}") for end in ("", "_low", "_high"))
    if value is None or low is None or high is None:
        return number(value, 2)
    return number(value, 2), Small(f"{number(low, 2)}–{number(high, 2)}")


def _calibration(one: Mapping[str, Any]) -> Text:
    if one["calibration"] is None:
        return "–"
    return signed(one["calibration"], 3), Small(
        f"{signed(one['calibration_low'], 3)} to {signed(one['calibration_high'], 3)}"
    )


def _carriers(columns: Iterable[Mapping[str, Any]]) -> Block:
    rows = [
        (
            one["column"] + (" (a copy)" if one["copy"] else ""),
            one["bits"],
            one["bits_low"],
            one["fall"],
            None if one["fall"] is None else (one["fall_low"], one["fall_high"]),
        )
        for one in columns
    ]
    heads = [label("column"), figure("bits alone", 3), figure("at least", 3), figure("the score loses without it", 3)]
    return TableBlock([*heads, between("95 % interval", lambda end: number(end, 3))], rows)


def _pair_fold(rank: int, pair: Mapping[str, Any]) -> Block:
    lower, higher = pair["lower"], pair["higher"]
    title = tuple(
        piece
        for side, end in ((lower, ", "), (higher, ""))
        for piece in (Strong(number(side["score"], 3)), f" {side['group']} ({side['place']}){end}")
    )
    rows: list[tuple[Text, str, str]] = [("score", number(lower["score"], 3), number(higher["score"], 3))]
    for name, low, high, justified in pair["facts"]:
        rows.append(((name, Small("justified")) if justified else name, low, "the same" if low == high else high))
    columns = [label("attribute"), label(lower["group"]), label(higher["group"])]
    return Fold((f"{rank}. ", *title), [TableBlock(columns, rows)], open=rank == 1)


def _periods(document: Mapping[str, Any]) -> Iterator[Block]:
    periods = document["periods"]
    if not periods:
        return
    yield Heading(f"Over {document['by']}")
    yield Drawing(
        "periods",
        "Above: what the score tells; the shade ends at its lower bound. Below: rates of the groups with 95 % "
        "intervals.",
        "whole",
    )
    names = [f"bits about {one['attribute']}" for one in periods[0]["bits"]]
    heads = ["people", "selected", "bits used directly, mean", "decisions that flip", *names]
    rows = []
    for one in periods:
        direct: Text = "–"
        if one["q_inf_mean"] is not None:
            ends = f"{number(one['q_inf_mean_low'], 2)} to {number(one['q_inf_mean_high'], 2)}"
            direct = number(one["q_inf_mean"], 2), Small(ends)
        bits = [f"{b['bits']:.2f} (≥ {b['low']:.2f})" if "bits" in b else "too few people" for b in one["bits"]]
        rates = _between(one, "selection_rate"), direct, _between(one, "flip_rate")
        rows.append((one["period"], number(one["people"]), *rates, *bits))
    yield TableBlock([label(document["by"]), *(shown(head) for head in heads)], rows)


def _blocks(data: ReportData) -> Iterator[Block]:
    assert data.proxies is not None  # noqa: S101 - asked by `shown`
    return indirect_blocks(data.proxies)


SECTION = Section(
    "indirect",
    "Group outcomes and proxies",
    _blocks,
    shown=lambda data: data.proxies is not None,
    first=lambda data: data.about.blind,
    kind=lambda _: "statistical",
)
