"""Treatment, proxies, impact: bits used directly, bits told without the columns, and what groups get.

Everything but the direct bits is what proxies.json says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fairbits.blocks import (
    Block,
    Bullets,
    Code,
    Drawing,
    Fold,
    Heading,
    Paragraph,
    Small,
    Strong,
    TableBlock,
    Tag,
    Text,
    between,
    figure,
    label,
    paragraphs,
    share,
    shown,
    table_by,
)
from fairbits.measure import Tail
from fairbits.proxies import WHAT_A_BIT_IS, details, sentence_of
from fairbits.report.record import About, Measured, Near, ReportData
from fairbits.shape import reading
from fairbits.store import read_json
from fairbits.subject import Subject, rows_judged_words
from fairbits.text import number, percent, shortened, signed

NAME = "proxies.json"
BLIND = "the model never gets the protected attributes, or gives them no weight"
#: Groups of one table on the page, columns and pairs of one attribute; all are in proxies.json.
MAX_GROUPS, MAX_COLUMNS, MAX_PAIRS = 40, 8, 5
#: Of gaps between scores.
DIGITS = 3
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
        _ = (*study_blocks(document, plainly(document, blind=True)), lead(document, blind=True), summary(document))
    return document


def lead(document: Mapping[str, Any] | None, blind: bool) -> str:
    found = _strongest(document, blind)
    return "" if found is None else f"{_full(sentence_of(found))} "


def plainly(document: Mapping[str, Any] | None, blind: bool) -> tuple[str, ...]:
    """What :func:`lead` says in everyday words: who is decided about how, and how well the score tells groups apart."""
    found = _strongest(document, blind)
    if document is None or found is None:
        return ()
    lines = [line for one in document["groups"] if one["attribute"] == found["attribute"] for line in _rates(one)]
    pair = found.get("guess_pair")
    if pair is not None and found["bits_low"] > 0:
        lines.append(
            f"Of two people, one {shortened(pair['lower'], 40)} and one {shortened(pair['higher'], 40)}, the score "
            f"tells which is which {percent(pair['right'])} of the time (a coin: 50 %)."
        )
    return tuple(line.replace(" %", "\N{NO-BREAK SPACE}%") for line in lines)


def _strongest(document: Mapping[str, Any] | None, blind: bool) -> Mapping[str, Any] | None:
    """The single attribute that the score of a model that takes none tells most about."""
    known = known_attributes(document) if document is not None and blind else []
    return max(known, key=lambda one: (one["bits_low"], one["bits"]), default=None)


def known_attributes(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in document["attributes"] if one["bits"] is not None and is_single(one)]


def _rates(table: Mapping[str, Any]) -> Iterator[str]:
    large = [one for one in table["groups"] if not one["small"]]
    decided = any(one["selection_rate"] is not None for one in large)
    rate = "selection_rate" if decided else "scoring_rate"
    ordered = sorted((one for one in large if one[rate] is not None), key=lambda one: -one[rate])
    parts = [f"{shortened(one['group'], 40)} {percent(one[rate])}" for one in ordered]
    if len(parts) > MAX_RATES:
        parts = [*parts[: MAX_RATES // 2], "…", *parts[-MAX_RATES // 2 :]]
    what = "Decided favourably" if decided else "Scored above the median of everybody"
    if len(parts) > 1:
        yield f"{what}, by {shortened(table['attribute'], 40)}: {'; '.join(parts)}."


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


def treatment_blocks(data: ReportData) -> Iterator[Block]:
    """Three headings that a lawyer knows."""
    yield Heading("Treatment: direct use of protected attributes")
    yield from direct_blocks(data.about, data.measured, data.near, data.direct)
    if data.proxies is None:
        yield Heading("Proxies and impact")
        yield Paragraph(
            ("Not run: ", Code("fairbits proxies MODEL --out RUN"), " adds them to this page."), tone="lead"
        )
    else:
        yield Heading("Proxies: what the score tells without the columns", "statistical")
        yield from study_blocks(data.proxies, ())


def direct_blocks(about: About, measured: Measured, near: Sequence[Near], direct: str) -> Iterator[Block]:
    """The bits: what the rows of the table experience, and the largest k by how real a person is."""
    if about.blind:
        yield Paragraph(f"{direct} That holds for everybody, examined or not: {BLIND}.", kind="proved")
        return
    yield Paragraph(
        "A person is asked about under every combination of protected values. The scores fall into k classes that "
        f"differ by more than ε = {about.epsilon:g}; log2 k is the bits of protected information that the decision "
        f"uses, at most {number(about.bits_limit, 2)} here.",
        tone="lead",
    )
    yield bits_table(measured)
    yield near_table(near, about.bits_limit, varies=measured.noise is not None)
    tail = tuple(tail_blocks(measured.tail, measured.kind))
    if tail:
        yield Fold("The tail: the largest gaps, and what lies beyond those seen", tail)
    yield from paragraphs((limit.text for limit in measured.limits), "small")
    yield from bound_blocks(measured)


def bound_blocks(measured: Measured) -> Iterator[Block]:
    """What nobody examined exceeds, and how many others do at most; nothing where there are no more bits."""
    bound = measured.bound
    rate = percent(bound["rate"], 1 if bound["rate"] >= 0.01 else 4)
    said = (
        f"None of the {number(measured.rows)} rows exceeds {number(bound['bits'], 2)} bits; with "
        f"{percent(bound['confidence'], 0)} confidence, at most {rate} of people drawn like them do."
    )
    if bound["bits"] < measured.figures["bits_limit"]:
        yield Paragraph(said, kind="statistical", tone="small")


def bits_table(measured: Measured) -> Block:
    """Means over the rows, their intervals and the largest."""
    figures = measured.figures
    rows: list[tuple[str, str, tuple[str, str], str]] = []
    for name, key, digits in (("classes k", "k", 0), ("bits Q∞ = log2 k", "q_inf", 2), ("bits Q1 (Shannon)", "q_1", 2)):
        mean, *ends = (number(figures[f"{key}_mean{end}"], 2) for end in ("", "_low", "_high"))
        rows.append((name, mean, (ends[0], ends[1]), number(figures[f"{key}_max"], digits)))
    split = measured.split_rate
    rows.append(("more than one class", percent(split.value), (percent(split.low), percent(split.high)), ""))
    if measured.noise is not None:
        alone, most = (number(figures[f"null_q_inf_{end}"], 2) for end in ("mean", "max"))
        rows.append(("one twin asked again", alone, ("", ""), most))
    interval = between("95 % interval", lambda end: str(end or "–"))
    caption = (f"The {number(measured.rows)} rows examined ", Tag(measured.kind), ", the interval ", Tag("statistical"))
    return TableBlock([label("per row"), shown("mean"), interval, shown("largest")], rows, caption)


def near_table(near: Sequence[Near], bits_limit: float, *, varies: bool = False) -> Block:
    """The largest k by distance from real rows, and whether that is all there can be."""
    return table_by(
        near,
        [
            (label("people"), lambda one: one.people),
            (figure("largest k"), lambda one: one.k),
            (figure("bits", 2), lambda one: one.bits),
            (
                label("kind of figure"),
                lambda one: (
                    Tag(one.kind),
                    ": it cannot be more"
                    if one.exact and one.bits is not None and one.bits >= bits_limit and not varies
                    else "",
                ),
            ),
        ],
        "Largest k by distance to real rows",
    )


def tail_blocks(found: Tail | None, kind: str = "exact") -> Iterator[Block]:
    """Upper quantiles of the gap between twins' scores with their intervals, the largest, and what lies beyond."""
    if found is None or found.largest <= 0:
        return
    estimate, said = Tag("statistical"), found.why
    rows: list[tuple[object, ...]] = [
        (f"{100 * one.level:g} % of people", one.value, (one.low, one.high), estimate) for one in found.quantiles
    ]
    rows.append((f"all {number(found.people)}", found.largest, None, Tag(kind)))
    if found.extreme is not None:
        one, gap = found.extreme, found.extreme.gap
        rows.append((f"all but one in {number(one.one_in)}, extrapolated", gap.value, (gap.low, gap.high), estimate))
        ends = "has no end" if one.end is None else f"ends at {number(one.end, 2)}"
        said = (
            f"Extrapolated by a generalised Pareto distribution fitted to the {number(one.people)} people above "
            f"{number(one.threshold, DIGITS)} (shape {number(one.shape, 2)}, it {ends}; test of fit p = {number(one.p, 2)})."
        )
    columns = [
        label("below it"),
        figure("gap", DIGITS),
        between("95 % interval", lambda end: number(end, DIGITS)),
        label("kind of figure"),
    ]
    yield TableBlock(columns, rows, "The tail: a person's highest score minus the lowest, among twins")
    yield Paragraph(
        f"The intervals of the quantiles rest on order statistics and assume nothing about the gaps. {said}",
        tone="small",
    )


def proxy_blocks(document: Mapping[str, Any]) -> Iterator[Block]:
    """What the score tells about protected attributes, and through which columns."""
    crossed: list[Block] = []
    for entry in document["attributes"]:
        more = [_full(line) for line in details(entry)]
        sentence = Paragraph(Strong(_full(sentence_of(entry))), tone="" if is_single(entry) else "small")
        said: list[Block] = [sentence, Bullets(more)] if more else [sentence]
        if is_single(entry):
            yield from said
        else:
            crossed += said
    yield Paragraph(WHAT_A_BIT_IS, tone="small")
    if crossed:
        yield Fold("Intersections", crossed)
    for entry in document["attributes"]:
        if entry["by_column"]:
            yield Fold(f"Columns that carry {entry['attribute']}", [_carriers(entry["by_column"][:MAX_COLUMNS])])
    for entry in document["attributes"]:
        # Only where groups are scored further apart than people of one group are: other pairs show no group.
        matched = entry["matched"]
        if matched is not None and matched["excess"]["low"] > 0 and matched["pairs"]:
            yield Paragraph(Strong(f"Alike on the justified attributes, not in {entry['attribute']}"))
            for rank, pair in enumerate(matched["pairs"][:MAX_PAIRS], 1):
                yield _pair_fold(rank, pair, document["justified"])
    yield from _periods(document)
    yield from paragraphs((f"Note: {line}" for line in document["notes"]), "note")


def impact_blocks(document: Mapping[str, Any]) -> Iterator[Block]:
    """Rates and impact ratios of groups: single attributes first, intersections folded."""
    for table in document.get("probable", ()):
        yield from _probable(table)
    single = [one for one in document["groups"] if is_single(one)]
    yield _groups(single)
    unknown = [f"{one['attribute']} of {number(one['unknown'])} people is unknown" for one in single if one["unknown"]]
    errors = next((one for one in single if one.get("errors_rows") is not None), None)
    judged = "" if errors is None else rows_judged_words(errors["errors_on"], errors["errors_rows"])
    yield Paragraph(
        f"Beside each rate stands its 95 % interval. {judged and f'TPR, FPR, precision and calibration: {judged}. '}"
        "The impact ratio is a group's rate over the highest rate of its attribute; "
        f"four fifths is a rule of thumb, not a verdict.{''.join(f' The {line}.' for line in unknown)}",
        tone="small",
    )
    for one in document["groups"]:
        if not is_single(one):
            large = [group for group in one["groups"] if not group["small"]]
            blocks = [_groups([{**one, "groups": large}])] if large else []
            if len(large) < len(one["groups"]):
                left = number(len(one["groups"]) - len(large))
                some = f"{left} groups of fewer than 30 people are left out here"
                said = some if large else f"All {left} groups have fewer than 30 people"
                blocks.append(Paragraph(f"{said}; proxies.json has them.", tone="small"))
            yield Fold(f"By {one['attribute']}", blocks)


def _probable(table: Mapping[str, Any]) -> Iterator[Block]:
    """Groups that are known as probabilities only, beside what taking the likeliest group would have said."""
    name, bits, interval, two = table["attribute"], table["bits"], "95 % interval", partial(number, digits=2)
    yield Paragraph(
        f"{name[:1].upper()}{name[1:]} is known as probabilities only. Rates weigh each person by them: they are right where the decision "
        f"tells nothing about {name} beyond what the probabilities were made of. The bounds hold without that. Both take "
        f"the probabilities to be calibrated. In the last column people are in the group of probability one half or "
        f"more; who has none is left out.",
        kind="statistical",
    )
    yield table_by(
        table["groups"],
        [
            (label(name), lambda one: one["group"]),
            (figure("expected"), lambda one: one["people"]),
            (share("selected"), lambda one: one["selection_rate"]["value"]),
            (between(interval, percent), lambda one: (one["selection_rate"]["low"], one["selection_rate"]["high"])),
            (between("bounds", percent), lambda one: one["bounds"]),
            (share("most likely"), lambda one: one["likely_rate"] and one["likely_rate"]["value"]),
        ],
    )
    compared = [one for one in table["groups"] if one["impact_ratio"] is not None]
    if compared:
        yield table_by(
            compared,
            [
                (label(name), lambda one: one["group"]),
                (figure("impact ratio", 2), lambda one: one["impact_ratio"]["value"]),
                (between(interval, two), lambda one: (one["impact_ratio"]["low"], one["impact_ratio"]["high"])),
                (between("bounds", two), lambda one: one["ratio_bounds"]),
                (figure("most likely", 2), lambda one: one["likely_ratio"]),
            ],
        )
    yield Paragraph(
        f"Under the same assumption the score tells {number(bits['bits'], 2)} of {number(bits['entropy'], 2)} bits about "
        f"{name} (at least {number(bits['low'], 2)}; {number(bits['placebo'], 2)} where it is shuffled).",
        tone="small",
    )


def study_blocks(document: Mapping[str, Any], lines: Iterable[str]) -> Iterator[Block]:
    """A study of proxies by itself: how the model decides, what its score tells, what groups get."""
    yield from paragraphs(lines, "small")
    yield from proxy_blocks(document)
    yield Heading("Impact: what groups get", "statistical")
    yield from impact_blocks(document)


def is_single(entry: Mapping[str, Any]) -> bool:
    """Whether an entry of proxies.json is about one attribute, and not about an intersection."""
    return len(entry["attributes"]) == 1


def lowest_ratios(document: Mapping[str, Any] | None) -> list[tuple[str, Mapping[str, Any]]]:
    """By attribute, the group with the lowest impact ratio, where two can be compared."""
    found = []
    for table in [] if document is None else document["groups"]:
        ratios = [one for one in table["groups"] if one["impact_ratio"] is not None]
        if is_single(table) and len(ratios) > 1:
            found.append((table["attribute"], min(ratios, key=lambda one: float(one["impact_ratio"]))))
    return found


def _groups(tables: Sequence[Mapping[str, Any]]) -> Block:
    groups = [
        {**group, "name": f"{table['attribute']}: {group['group']}" if is_single(table) else group["group"]}
        for table in tables
        for group in table["groups"][:MAX_GROUPS]
    ]
    two, three = partial(number, digits=2), partial(signed, digits=3)
    return table_by(
        groups,
        [
            (
                label("group"),
                lambda one: (one["name"], Small("under 2 %")) if one["under_two_percent"] else one["name"],
            ),
            (shown("people"), lambda one: number(one["people"])),
            (shown("selected"), lambda one: _between(one, "selection_rate")),
            (shown("impact ratio"), lambda one: "under 30" if one["small"] else _between(one, "impact_ratio", two)),
            (shown("base rate"), lambda one: _between(one, "base_rate")),
            (shown("TPR"), lambda one: _between(one, "tpr")),
            (shown("FPR"), lambda one: _between(one, "fpr")),
            (shown("precision"), lambda one: _between(one, "precision")),
            (shown("calibration"), lambda one: _between(one, "calibration", three, " to ")),
            (shown("above median"), lambda one: _between(one, "scoring_rate")),
        ],
    )


def _between(one: Mapping[str, Any], name: str, show: Callable[[float | None], str] = percent, to: str = "–") -> Text:
    """A figure with its interval, either of which may be missing."""
    value, low, high = (one.get(f"{name}{end}") for end in ("", "_low", "_high"))
    if value is None or low is None or high is None:
        return show(value)
    return show(value), Small(f"{show(low).removesuffix(' %')}{to}{show(high).removesuffix(' %')}")


def _carriers(columns: Iterable[Mapping[str, Any]]) -> Block:
    return table_by(
        columns,
        [
            (label("column"), lambda one: one["column"] + (" (a copy)" if one["copy"] else "")),
            (figure("bits alone", 3), lambda one: one["bits"]),
            (figure("at least", 3), lambda one: one["bits_low"]),
            (figure("the score loses without it", 3), lambda one: one["fall"]),
            (
                between("95 % interval", lambda end: number(end, 3)),
                lambda one: None if one["fall"] is None else (one["fall_low"], one["fall_high"]),
            ),
        ],
    )


def _pair_fold(rank: int, pair: Mapping[str, Any], justified: Sequence[str]) -> Block:
    """Two people side by side: first what they share a reason in, then the rest."""
    lower, higher = pair["lower"], pair["higher"]
    scores = [number(side["score"], 3) for side in (lower, higher)]
    who = [f" {side['group']} ({side['place']})" for side in (lower, higher)]
    rows: list[tuple[Text, ...]] = [("score", *scores)]
    for name in sorted(lower["attributes"], key=lambda name: name not in justified):
        low, high = lower["attributes"][name], higher["attributes"].get(name, "")
        told = (name, Small("justified")) if name in justified else name
        rows.append((told, low, "the same" if low == high else high))
    table = TableBlock([label("attribute"), label(lower["group"]), label(higher["group"])], rows)
    return Fold((f"{rank}. ", Strong(scores[0]), f"{who[0]}, ", Strong(scores[1]), who[1]), [table], open=rank == 1)


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
    two = partial(number, digits=2)

    def bits(one: Mapping[str, Any]) -> str:
        return f"{one['bits']:.2f} (≥ {one['low']:.2f})" if "bits" in one else "too few people"

    yield table_by(
        periods,
        [
            (label(document["by"]), lambda one: one["period"]),
            (shown("people"), lambda one: number(one["people"])),
            (shown("selected"), lambda one: _between(one, "selection_rate")),
            (shown("bits used directly, mean"), lambda one: _between(one, "q_inf_mean", two, " to ")),
            (shown("decisions that flip"), lambda one: _between(one, "flip_rate")),
            *(
                (shown(f"bits about {told['attribute']}"), lambda one, i=i: bits(one["bits"][i]))
                for i, told in enumerate(periods[0]["bits"])
            ),
        ],
    )
