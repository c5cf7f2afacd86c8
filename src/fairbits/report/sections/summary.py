"""The summary: the verdict, who would get a different decision, groups, bits, accuracy and the repair to take.

How certain the figures are: what was examined, what is exact, proved or statistical, and what they cannot say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fairbits.blocks import (
    Block,
    Bullets,
    Cards,
    Code,
    Facts,
    FigureCard,
    Fold,
    Heading,
    Link,
    Paragraph,
    Small,
    TableBlock,
    Tag,
    Text,
    label,
    paragraphs,
    rate,
    shown,
    table_by,
    table_of,
)
from fairbits.certify import Certificate, Statement
from fairbits.errors import OptionError
from fairbits.report.manifest import hash_file
from fairbits.report.record import DecisionSource, Measured, ReportData
from fairbits.report.sections.repairs import cost_words
from fairbits.report.sections.treatment import lowest_ratios
from fairbits.shape import reading
from fairbits.store import read_json, record_from_json
from fairbits.subject import Quality, Subject
from fairbits.text import from_to, joined, number, percent, shortened

GATE = "gate.json"
#: Checks and people on the page; all are in gate.json.
MAX_CHECKS, MAX_NAMED = 40, 5
_VERDICTS = {
    "pass": "The gate passed.",
    "fail": "The gate failed.",
    "inconclusive": "The gate is inconclusive: some interval is too wide to say.",
}
NO_LIMITS = "No limits set: nothing on this page was judged against a policy."


def summary_blocks(data: ReportData) -> Iterator[Block]:
    how = (f"{NO_LIMITS} ", Code("fairbits gate RUN"), " judges it, and its verdict stands here.")
    yield from [Paragraph(data.gate_of_another or how, tone="lead")] if data.gate is None else gate_blocks(data.gate)
    yield from () if data.about.blind else flip_blocks(data.measured)
    yield Cards(tuple(cards(data)))
    if data.repaired is not None:
        yield Paragraph((cost_words(data.repaired), " More under ", Link("What to do", "#repairs"), "."))
    if data.opening.about:
        yield Facts(list(data.opening.about.items()))
    yield Paragraph(("Approved, or not: ", Link("sign-off", "#sign-off"), "."), tone="small")
    yield Fold("Model, table, and who ran this and when", [Facts(facts(data))])


def cards(data: ReportData) -> Iterator[FigureCard]:
    """The first figures: people, groups, bits, accuracy."""
    about, measured = data.about, data.measured
    if about.blind and about.protected:
        small = f"of {number(measured.rows)} rows, nor would anybody else, by the way the model is made"
        yield FigureCard("Would get a different decision", "0", "proved", small)
    elif about.protected and measured.flip_rate is None:  # otherwise a table has its share
        rate = measured.split_rate
        small = f"95 % interval {from_to(rate.low, rate.high)}"
        yield FigureCard("Rows with more than one class", percent(rate.value), data.opening.kind, small)
    # Of each attribute: the lowest of all alone would hide the others.
    ratios = sorted(lowest_ratios(data.proxies), key=lambda one: float(one[1]["impact_ratio"]))
    if ratios:
        values = [number(group["impact_ratio"], 2) for _, group in ratios]
        whose = [f"{shortened(group['group'], 40)} ({shortened(name, 40)})" for name, group in ratios]
        others = "".join(f"; {value} for {who}" for value, who in zip(values[1:], whose[1:], strict=True))
        yield FigureCard("Lowest impact ratio", values[0], "statistical", f"{whose[0]}{others}")
    if about.protected and not about.blind:
        small = f"of {number(about.bits_limit, 2)} bits of {joined([shortened(n, 40) for n in about.protected])}"
        yield FigureCard("Mean bits, real rows", number(measured.figures["q_inf_mean"], 2), measured.kind, small)
    yield from quality_cards(about.quality)


def quality_cards(quality: Quality) -> Iterator[FigureCard]:
    area = "" if quality.auc is None else f"; AUC {number(quality.auc, 3)}"
    if quality.accuracy is not None:
        yield FigureCard("Accuracy", percent(quality.accuracy), "statistical", f"{quality.judged_words}{area}")
    if quality.favourable_rate is not None:
        labelled = "" if quality.base_rate is None else f"labelled so: {percent(quality.base_rate)}"
        yield FigureCard("Decided favourably", percent(quality.favourable_rate), "exact", labelled)
    if quality.r2 is not None:
        yield FigureCard("Variance explained", percent(quality.r2), "statistical", quality.judged_words)


def flip_blocks(measured: Measured) -> Iterator[Block]:
    """Who would get a different decision, as a table; nothing for a regression."""
    rows = flip_rows(measured)
    if rows:
        differ = bool(measured.figures.get("plausible") or any(row[1] != row[3] for row in rows))
        among = "among all twins, and among plausible ones" if differ else "no rule says which twins are plausible"
        caption = ("Who would get a different decision: the share ", Tag(measured.kind), ", its 95 % interval ")
        columns = [label("if this differed"), rate("different decision"), rate("plausible twins") if differ else None]
        cells = [(name, (among_all, ends), (likely, own)) for name, among_all, ends, likely, own in rows]
        yield table_of(columns, cells, (*caption, Tag("statistical"), f"; {among}"))


def flip_rows(measured: Measured) -> list[tuple[Any, ...]]:
    """Shares of rows whose decision flips, among all and among plausible twins: each attribute alone, all together."""
    figures = measured.figures
    if measured.flip_rate is None:
        return []

    def shares(name: str, key: str | None = None) -> tuple[float, tuple[float, float]]:
        value, *ends = (figures[f"{name}{end}"] for end in ("", "_low", "_high"))
        value, low, high = (one if key is None else one[key] for one in (value, *ends))
        return value, (low, high)

    rows = []
    if len(figures["protected"]) > 1:
        for name in figures["flip_rate_by"]:
            both = (*shares("flip_rate_by", name), *shares("flip_rate_plausible_by", name))
            rows.append((f"only {shortened(name, 40)}", *both))
    together = joined([shortened(name, 40) for name in figures["protected"]])
    both = (*shares("flip_rate"), *shares("flip_rate_plausible"))
    return [*rows, (f"{together} together" if rows else f"only {together}", *both)]


def gate_of(folder: Path, identity: str) -> tuple[dict[str, Any] | None, str]:
    """The document of gate.json, if there is one about this very model."""
    path = folder / GATE
    if not path.is_file():
        return None, ""
    document = read_json(path)
    if document.get("verdict") not in _VERDICTS:
        raise OptionError(f"{str(path)!r} is damaged (it has no verdict); run the gate again.")
    with reading(path, "run the gate again"):  # everything that the page takes from it
        deque(gate_blocks(document), maxlen=0)
    judged = document.get("identity")
    if judged != identity:
        whose = f"identity {judged[:40]}" if isinstance(judged, str) and judged else "it does not say which"
        return None, (
            f"{GATE} in this run's folder is about another model, schema or table ({whose}; this run's is {identity}), "
            f"so its verdict is not shown; judge this one with: fairbits gate {folder}"
        )
    return document, ""


def gate_blocks(document: Mapping[str, Any]) -> Iterator[Block]:
    """The verdict of the gate, what it was judged against and when, and every check."""
    judged = bool(document["checks"])
    headline = _VERDICTS[document["verdict"]]
    if not judged:
        headline = "The gate has judged nothing yet: its baseline was just written."
    elif document.get("headline") not in (None, *_VERDICTS):
        headline = f"The gate: {document['headline']}."
    yield Paragraph(headline, tone=f"verdict {document['verdict']}" if judged else "verdict")
    yield from check_blocks(document)


def check_blocks(document: Mapping[str, Any]) -> Iterator[Block]:
    yield from paragraphs([_against(document)], "lead")
    yield TableBlock(
        [label("check"), label("verdict"), shown("value"), shown("limit"), shown("95 % interval")],
        list(_checks(document)),
    )
    yield from paragraphs(_more(document), "lead")


def gate_look(document: Mapping[str, Any]) -> Iterator[Block]:
    """A gate by itself: the verdict, the checks, who is new, who answers for what, and what must be known."""
    yield Paragraph(
        f"{document['headline'].upper()}  {document['subject']} · model {document['identity']}",
        tone=f"verdict {document['verdict']}",
    )
    if document["quality"] is not None:
        yield from paragraphs(record_from_json(Quality, document["quality"]).lines(), "lead")
    yield from check_blocks(document)
    for check in document["checks"]:
        people = check["findings"]
        broken = "1 person breaks it" if people == 1 else f"{number(people)} people break it" if people else ""
        words = "; ".join(part for part in (check["reason"], check["detail"], broken) if part)
        if words and check["verdict"] != "pass":
            yield Paragraph(f"{check['name']}: {words}", tone="small")
    for title, people in (("New cases", document["new_cases"]), ("Proposed for the suite", document["proposed"])):
        if people:
            yield Heading(f"{title}: {number(len(people))}")
            yield Bullets([_person(one) for one in people[:MAX_NAMED]])
    yield from paragraphs(
        (f"Waived: {_waiver(one)}: {one['reason']}" for one in document["waived"][:MAX_NAMED]), "note"
    )
    for one in document["expired"][:MAX_NAMED]:
        whose = f"The waiver of {_waived(one)} by {one['owner']} expired on {one['expires']}"
        yield Paragraph(f"{whose}, so what it covered counts again ({one['reason']}).", tone="warning")
    yield from paragraphs((f"Note: {note}" for note in document["notes"]), "note")


def waiver_blocks(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    if not rows:
        yield Paragraph("The policy has no waivers.")
        return
    yield table_by(
        rows,
        [
            (label("about"), lambda one: one["check"] or f"case {one['case']}"),
            (label("until"), lambda one: one["expires"]),
            (label(""), lambda one: "EXPIRED" if one["expired"] else f"{one['days_left']} days left"),
            (label("owner"), lambda one: one["owner"]),
            (label("reason"), lambda one: one["reason"]),
        ],
    )


def _person(one: Mapping[str, Any]) -> str:
    words = ", ".join(f"{name} {value}" for name, value in one["attributes"].items())
    return f"{one.get('fingerprint', '')} k = {one['k']}: {words}".strip()


def _waiver(one: Mapping[str, Any]) -> str:
    return f"{_waived(one)} by {one['owner']} until {one['expires']}"


def _waived(one: Mapping[str, Any]) -> str:
    return f"check {one['check']!r}" if one.get("check") else f"case {one.get('case')}"


def _against(document: Mapping[str, Any]) -> str:
    suite, baseline, policy = (document.get(name) or {} for name in ("suite", "baseline", "policy"))
    people = f"{number(suite.get('rows'))} rows and {number(suite.get('cases'))} cases"
    against = f"baseline {baseline['identity']}" if baseline.get("identity") else "no baseline"
    level = f", {percent(policy['confidence'], 0)} confidence" if policy.get("confidence") else ""
    when = f" on {document['created'][:10]}" if document.get("created") else ""
    return f"Judged{when}: suite {suite.get('id', '–')} ({people}) against the policy and {against}{level}."


def _checks(document: Mapping[str, Any]) -> Iterator[tuple[str, Tag, str, str, str]]:
    for check in document["checks"][:MAX_CHECKS]:
        show = partial(percent, digits=2) if check.get("percent") else _four_digits
        low, high = check.get("low"), check.get("high")
        ends = "" if low is None or high is None or low == high else f"{show(low)} to {show(high)}"
        limit = f"{'≥' if check.get('direction') == 'min' else '≤'} {show(check.get('threshold'))}"
        verdict = Tag("waived" if check.get("waived") else check["verdict"])
        yield check["name"], verdict, show(check.get("value")), limit, ends
    for name in (document.get("pending") or ())[:MAX_CHECKS]:
        yield name, Tag("no baseline yet"), "–", "–", ""


def _four_digits(value: float | None) -> str:
    return "–" if value is None else f"{value:,.4g}".replace("-", "−")


def _more(document: Mapping[str, Any]) -> list[str]:
    said = []
    for name, words in (("new_cases", "New cases"), ("waived", "waived"), ("expired", "waivers that expired")):
        entries = document.get(name) or []
        signed = [_waiver(one) for one in entries if "owner" in one]
        whose = f" ({shortened(', '.join(signed[:MAX_NAMED]), 400)})" if signed else ""
        said += [f"{words}: {number(len(entries))}{whose}"] if entries else []
    return [f"{'; '.join(said)}."] if said else []


def facts(data: ReportData) -> list[tuple[str, Text]]:
    """The decision rule, the files with their hashes, and who ran the audit when."""
    made, rule = data.reproduction, data.about.quality.rule
    sources: list[tuple[str, Text]] = [
        (one.what, one.name if one.sha256 is None else (f"{one.name} ", Code(f"sha256 {one.sha256}")))
        for one in data.opening.sources
    ]
    return [
        ("decision rule", f"{rule[:1].upper()}{rule[1:]}"),
        *sources,
        ("run on", f"{made.created[:16].replace('T', ' ')} UTC"),
        ("run by", data.opening.made_by),
        ("identity of model, schema and table", made.identity),
    ]


def sources_of(subject: Subject) -> tuple[DecisionSource, ...]:
    """The files of a subject with their hashes, as ``sha256sum`` gives them."""
    parts = subject.identity.ingredients
    where = "built in" if subject.source is not None else "from memory"
    rows = f"{len(subject.table):,} rows, {where} ({parts['table']})"
    held = DecisionSource("model", "not at hand: the table holds its scores")
    model = held if subject.scores_only else _source("model", subject.original, _origin_words(subject, parts["model"]))
    tested = None if subject.test is None else subject.test.file
    audited = subject.source if subject.source is not None and Path(subject.source).is_file() else None
    more = [
        _source(what, file, "") for what, file in (("test table", tested), ("audit file", audited)) if file is not None
    ]
    return (model, _source("table", subject.table.file, rows), *more)


def _origin_words(subject: Subject, digest: str) -> str:
    if isinstance(subject.original, str):  # an address, or a reference to code
        return subject.original.partition("?")[0]
    words = "built in" if subject.original is None and subject.source else "an object in memory, from no file"
    return words if digest == "none" else f"{words} (model {digest})"


def _source(what: str, origin: Any, otherwise: str) -> DecisionSource:
    if isinstance(origin, str | Path) and origin and Path(origin).is_file():
        return DecisionSource(what, Path(origin).name, hash_file(Path(origin))[1])
    return DecisionSource(what, otherwise)


#: What the word beside a figure means.
KINDS = {
    "exact": "everybody that the figure speaks of was asked, or it has reached its limit.",
    "proved": "it holds for everybody, asked or not: by the way the model is made, or by bounds over sets of people.",
    "statistical": "an estimate from a sample: it would move with other people drawn in the same way.",
    "lower bound": "what a search found: there may be more.",
}
_SEARCH = (
    "A search finds what it finds: its largest k is a lower bound, unless it has reached its limit. Only figures "
    "called exact rest on everybody they speak of."
)
LIMITS = (
    "Twins are the same person with other protected values. Some of them may be people who could not exist; the "
    "further a person is from a real row, the likelier that is.",
    _SEARCH,
    "Bits count the direct use of protected attributes. A decision that uses none of them may still use attributes "
    "that stand in for them (proxies).",
    "Scores closer than ε count as the same. A smaller ε gives more classes, a larger one fewer; compare figures only "
    "at the same ε and partition.",
    "Intervals say how much a figure would move with other rows drawn like these. They do not cover a table that "
    "misses some people altogether.",
    "Equal scores for all twins do not make a decision right, lawful or just; they say that these attributes did not "
    "move it.",
)


def certainty_blocks(data: ReportData) -> Iterator[Block]:
    """What was examined, the statements, and what each kind of figure means."""
    yield Bullets(data.examined)
    # Nobody can have more classes than twins.
    certain = [one for one in data.certified if one.is_certain() and (one.property != "k" or one.bound < data.about.m)]
    yield (
        statements_table(certain)
        if certain
        else Paragraph("Nothing is proved beyond the people examined.", tone="lead")
    )
    kinds = [(Tag(name), f" {meaning}") for name, meaning in KINDS.items()]
    yield Bullets([one for one in kinds if not data.about.blind or one[0].text != "lower bound"])


def limitation_blocks(data: ReportData) -> Iterator[Block]:
    """What the figures say nothing about; those of a model that is blind to protected attributes are exact."""
    yield Bullets([*data.not_examined, *(line for line in LIMITS if not data.about.blind or line is not _SEARCH)])


def statements_table(statements: Iterable[Statement]) -> Block:
    return table_by(
        statements,
        [
            (
                label("about"),
                lambda one: one.population if one.model == "model" else f"{one.population} ({one.model} model)",
            ),
            (
                label("kind"),
                lambda one: Tag("withdrawn" if one.withdrawn else one.kind if one.is_certain() else "open"),
            ),
            (label("statement"), lambda one: (one.sentence(tagged=False), Small(one.reason))),
        ],
        stacked=True,
    )


def certificate_blocks(found: Certificate) -> Iterator[Block]:
    """A certificate by itself: errors of ours, statements, and what could not be proved and why."""
    yield from paragraphs(
        (f"Error: {one.words()}: withdrawn, an error of ours." for one in found.contradictions), "warning"
    )
    if found.statements:
        yield statements_table(found.statements)
    elif not found.rates:
        yield Paragraph("Nothing could be said in this time.")
    yield from (Paragraph(rate.sentence(), kind="statistical") for rate in found.rates)
    yield from paragraphs((f"Note: {note}" for note in found.notes), "note")
    if found.stopped:
        yield Paragraph("Ended early: what was certain by then is above.", tone="warning")
