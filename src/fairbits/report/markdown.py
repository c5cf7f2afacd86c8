"""The record as Markdown: tables and sentences, no HTML, every label escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fairbits.domain import NUMBER, joined, shortened
from fairbits.report import words
from fairbits.report.foremost import foremost
from fairbits.report.record import Debugged, Portrait, Repaired, ReportData
from fairbits.report.sections.proxies import MAX_GROUPS, WHAT_A_BIT_IS, matches, sentences
from fairbits.report.words import by_kind, number, percent, signed

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!~$&])")
#: A cell that begins so is a formula to a spreadsheet, and a list, rule or heading to Markdown.
_FORMULA = re.compile(r"^([=+\-@])")
_NUMBER = re.compile(NUMBER)


def render_markdown(data: ReportData) -> str:
    """The whole document.

    Parameters
    ----------
    data
        The record of the report.

    Returns
    -------
    str
        Markdown.
    """
    parts = [_head(data), _headline(data), _severity(data), _people(data)]
    if data.proxies is not None:
        parts.insert(1 if data.about.blind else len(parts), indirect_text(data.proxies))
    if data.debugged is not None and data.debugged.shares:
        parts.append(_drivers(data.debugged))
    parts.append(_harmed(data))
    if data.debugged is not None:
        parts += [_network(data.debugged, decides=not data.about.regression), _origin(data.debugged)]
    if data.repaired is not None:
        parts.append(_repairs(data.repaired))
    if data.certified:
        parts.append(_certified(data))
    parts.append(_again(data))
    return "\n".join(line for part in parts for line in (*part, "")).rstrip() + "\n"


def text(value: str, most: int = 120) -> str:
    r"""Any text as Markdown text: nothing in it is markup, a link, or a formula for a spreadsheet.

    Parameters
    ----------
    value
        Any text.
    most
        Length at most.

    Returns
    -------
    str
        Markdown.

    Examples
    --------
    >>> print(text("<b>=1+1|*x*"), text("=HYPERLINK(1)"))
    \<b\>=1+1\|\*x\* '=HYPERLINK(1)
    """
    safe = _FORMULA.sub(r"'\1", shortened(value, most))
    # A full stop or a colon inside a word makes some readers see an address.
    return _SPECIAL.sub(r"\\\1", safe).replace("://", ":\u2060//")


def value_text(value: str, most: int = 120) -> str:
    """The value of an attribute as Markdown text: a number is no formula, whatever its sign.

    Parameters
    ----------
    value
        Value of an attribute.
    most
        Length at most.

    Returns
    -------
    str
        Markdown.

    Examples
    --------
    >>> print(value_text("-710"), value_text("-1+1"))
    -710 '-1+1
    """
    return value if _NUMBER.match(value) and len(value) <= most else text(value, most)


def _table(heads: list[str], rows: Iterable[Iterable[str]], *, right: int = 99) -> Iterator[str]:
    """A table; columns from ``right`` on are set to the right."""
    yield "| " + " | ".join(heads) + " |"
    yield "| " + " | ".join("---:" if i >= right else "---" for i in range(len(heads))) + " |"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _head(data: ReportData) -> Iterator[str]:
    yield f"# {text(data.about.subject, 80)}: fairbits audit"
    yield ""
    yield f"**{text(data.sentence, 400)}**"
    lines = (
        *data.about.quality.lines(),
        *data.examined,
        *data.not_examined,
        *data.warnings,
        *(f"Note: {note}" for note in data.about.notes),
    )
    for line in lines:
        yield ""
        yield text(line, 1000)


def indirect_text(document: Mapping[str, Any]) -> Iterator[str]:
    """The section on indirect bits and groups, a line at a time.

    Parameters
    ----------
    document
        The content of proxies.json.

    Yields
    ------
    str
        A line of Markdown.
    """
    yield "## Without the columns: indirect bits and groups"
    yield ""
    yield text(WHAT_A_BIT_IS, 400)
    for sentence, more in sentences(document):
        yield ""
        yield f"**{text(sentence, 400)}** " + " ".join(text(line, 600) for line in more)
    for table in document["groups"]:
        yield ""
        yield f"{text(table['attribute'])}: {table['people']:,} people, {table['unknown']:,} of unknown group."
        yield ""
        heads = ["group", "people", "base rate", "selected", "impact ratio", "above median", "TPR", "FPR", "precision"]
        rows = (_group(one) for one in table["groups"][:MAX_GROUPS])
        yield from _table([*heads, "calibration"], rows, right=1)
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
            yield from _table(["attribute", text(pair["lower"]["group"]), text(pair["higher"]["group"])], rows)


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
    yield from _table(heads, rows, right=1)


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


def _headline(data: ReportData) -> Iterator[str]:
    yield "## Headline figures"
    yield ""
    rows = (
        [one.people, number(one.k), number(one.bits, 2), "exact" if one.exact else "lower bound"] for one in data.near
    )
    yield from _table(["people", "largest k", "bits", "kind of figure"], rows)
    yield ""
    measured, figures = data.measured, data.measured.figures
    pairs = [
        ("mean k", number(measured.k_mean.value, 2), measured.k_mean.low, measured.k_mean.high, 2),
        ("mean bits, Q∞", number(figures["q_inf_mean"], 2), figures["q_inf_mean_low"], figures["q_inf_mean_high"], 2),
        ("mean bits, Q1", number(figures["q_1_mean"], 2), figures["q_1_mean_low"], figures["q_1_mean_high"], 2),
    ]
    rows2 = [[name, value, f"{low:.{d}f} to {high:.{d}f}"] for name, value, low, high, d in pairs]
    for name, rate in (("more than one class", measured.split_rate), ("decision flips (ID)", measured.flip_rate)):
        if rate is not None:
            rows2.append([name, percent(rate.value), f"{percent(rate.low)} to {percent(rate.high)}"])
    yield from _table([f"of {measured.rows:,} rows", "value", "95 % interval"], rows2, right=1)


def _severity(data: ReportData) -> Iterator[str]:
    yield "## How many, how severe"
    yield ""
    rows = dict(data.measured.histogram)
    shown = 1 if data.about.regression else 2  # in a regression nothing flips
    cases = {k: (count, ids)[:shown] for k, count, ids in data.searched.histogram}
    lines = (
        [str(k), number(rows.get(k, 0)), *map(number, cases.get(k, (0, 0)[:shown]))]
        for k in sorted({*rows, *cases}, reverse=True)
    )
    yield from _table(["k", "rows", *("cases of the search", "of them flip")[:shown]], lines, right=0)
    yield ""
    facts = words.search_facts(data.about, data.searched)
    yield from _table(["the search", ""], ([name, value_text(value)] for name, value in facts))


def _people(data: ReportData) -> Iterator[str]:
    if not data.people:
        return
    yield "## The worst people"
    for real, title in ((True, "Rows of the table"), (False, "Found by the search, not in the table")):
        people = [one for one in data.people if one.real is real]
        if people:
            yield from ("", f"### {title}", "")
            decides = not data.about.regression
            heads = ["", "k", "bits", "lowest", "as", "highest", "as", *(["flips"] if decides else []), "who"]
            yield from _table(heads, (_person(one, decides=decides) for one in people))


def _person(one: Portrait, *, decides: bool) -> list[str]:
    who = "; ".join(f"{text(name, 40)} {value_text(value, 60)}" for name, value in one.attributes.items())
    sides = [f"{one.low:.3f}", value_text(one.worst), f"{one.high:.3f}", value_text(one.best)]
    flips = ["yes" if one.flips else "no"] if decides else []
    return [str(one.rank), str(one.k), f"{one.q_inf:.2f}", *sides, *flips, f"{one.place}: {who}"]


def _drivers(debugged: Debugged) -> Iterator[str]:
    yield "## Which attribute drives it"
    yield ""
    rows = ([text(s.attribute), f"{s.alone:.2f}", f"{s.shapley:.2f}", f"{s.share:.0%}"] for s in debugged.shares)
    yield from _table(["attribute", "bits alone", "Shapley bits", "share"], rows, right=1)
    if debugged.together:
        yield ""
        rows = (
            [" + ".join(text(name) for name in one.attributes), f"{one.q_inf:.2f}", f"{one.q_1:.2f}"]
            for one in debugged.together
        )
        yield from _table(["just these vary", "Q∞", "Q1"], rows, right=1)


def _harmed(data: ReportData) -> Iterator[str]:
    if not any(stake.lowest or stake.highest for stake in (*data.measured.stakes, *data.searched.stakes)):
        return
    stakes = zip(data.measured.stakes, data.searched.stakes, strict=True)
    yield "## Who is harmed"
    yield ""
    rows = (
        [
            f"{text(row.attribute)}: {value_text(row.value)}",
            *(percent(x) for x in (row.lowest, row.highest, case.lowest, case.highest)),
        ]
        for row, case in stakes
    )
    yield from _table(["value", "lowest, rows", "highest, rows", "lowest, cases", "highest, cases"], rows, right=1)


def _network(debugged: Debugged, *, decides: bool) -> Iterator[str]:
    if not debugged.layers:
        return
    if debugged.units == "trees":
        yield from _trees(debugged, decides=decides)
        return
    yield "## Inside the network"
    yield ""
    total = sum(layer.votes for layer in debugged.layers) or 1
    rows = (
        [
            ("protected input" if layer.layer == 0 else str(layer.layer)) + (" (suspect)" if layer.suspect else ""),
            str(layer.width),
            f"{layer.delta:.3g}",
            signed(layer.rho),
            "–" if layer.rho is None else f"{layer.votes / total:.0%}",
        ]
        for layer in debugged.layers
    )
    yield from _table(["layer", "width", "δ", "ρ", "cases where it is largest"], rows, right=1)
    known = sorted((n for n in debugged.neurons if n.acd is not None), key=lambda n: -abs(n.acd_choosing or 0.0))[:10]
    if known:
        yield ""
        rows = (
            [
                str(n.neuron),
                signed(n.acd, 3),
                "–" if n.hold is None else f"{n.hold:.4g}",
                number(n.k_mean, 2),
                *([percent(n.accuracy)] if decides else []),
            ]
            for n in known
        )
        heads = [f"neuron of layer {debugged.suspect}", "ACD", "held at", "mean k", *(["accuracy"] if decides else [])]
        yield from _table(heads, rows, right=1)


#: Trees in the table; layers.parquet has all of them.
_MOST_TREES = 10


def _trees(debugged: Debugged, *, decides: bool) -> Iterator[str]:
    yield "## Inside the trees"
    yield ""
    total = sum(tree.votes for tree in debugged.layers) or 1
    ranked = sorted(debugged.layers, key=lambda tree: (-tree.votes, -tree.delta, tree.layer))[:_MOST_TREES]
    rows = (
        [
            str(tree.layer) + (" (suspect)" if tree.suspect else ""),
            str(tree.width),
            f"{tree.delta:.3g}",
            signed(tree.rho),
            f"{tree.votes / total:.0%}",
        ]
        for tree in ranked
    )
    yield from _table(["tree", "leaves", "δ", "ρ", "cases where it is largest"], rows, right=1)
    known = foremost(debugged)
    if known:
        yield ""
        rows = (
            [
                str(one.layer or "all"),
                text(one.label),
                signed(one.acd, 3),
                text(one.statistic or "–"),
                number(one.k_mean, 2),
                *([percent(one.accuracy)] if decides else []),
            ]
            for one in known
        )
        heads = ["tree", "goes left", "ACD", "best held", "mean k", *(["accuracy"] if decides else [])]
        yield from _table(heads, rows, right=2)


def _origin(debugged: Debugged) -> Iterator[str]:
    yield "## Data or training"
    yield ""
    yield f"Verdict: {text(debugged.verdict)}."
    yield ""
    for one in debugged.evidence:
        yield f"- {text(one.text, 400)}" + (f" (points to the {text(one.points_to)})" if one.points_to else "")
    for note in debugged.notes:
        yield f"- {text(note, 400)}"


def _repairs(repaired: Repaired) -> Iterator[str]:
    yield "## Repairs"
    yield ""
    if repaired.chosen:
        yield f"Chosen: {text(repaired.chosen)} ({text(repaired.words, 300)})."
    else:
        yield f"None was chosen: {text(repaired.words, 400)}"
    if repaired.proof:
        yield ""
        yield text(repaired.proof, 400)
    yield ""
    rows = ([one.name, by_kind(one.before, one.kind), by_kind(one.after, one.kind)] for one in repaired.changes)
    yield from _table(["held-out evidence", "before", "after"], rows, right=1)
    yield ""
    rows = (
        [
            text(m.name) + (" (chosen)" if m.chosen else ""),
            percent(m.accuracy),
            number(m.k_mean, 2),
            "" if m.k_max_proved is None else f"k ≤ {m.k_max_proved}",
            *([] if repaired.regression else [percent(m.id_rate)]),
            text(m.words, 200),
        ]
        for m in repaired.repairs
    )
    rate = [] if repaired.regression else ["ID rate"]
    yield from _table(["repair", repaired.quality, "mean k", "proved", *rate, "what was done"], rows)
    for line in repaired.warnings:
        yield ""
        yield text(line, 600)


def _certified(data: ReportData) -> Iterator[str]:
    yield "## What is certain"
    yield ""
    rows = ([text(one.model), one.kind, text(one.population, 200), text(one.sentence(), 300)] for one in data.certified)
    yield from _table(["model", "kind", "population", "statement"], rows)


def _again(data: ReportData) -> Iterator[str]:
    again, about = data.remaking, data.about
    yield "## How to get every figure again"
    yield ""
    for command in again.commands:
        yield f"    {shortened(command, 1000)}"
    yield ""
    pairs = [
        ("identity", again.identity),
        ("model", about.model),
        ("protected", joined(list(about.protected))),
        ("ε", f"{about.epsilon:g}"),
        ("partition", about.partition),
        ("seed", str(again.seed)),
        ("budget", again.budget),
        ("run", f"{again.created}, {again.status}"),
        *again.versions.items(),
    ]
    yield from _table(["", ""], ([name, text(value)] for name, value in pairs))
    yield from ("", "Limits:", "")
    for line in words.limits(about):
        yield f"- {line}"
    yield ""
    yield f"Method: {words.CITATION} <https://doi.org/{words.DOI}>"
