"""The opening of the page: what was decided about whom, how well, by which rule, model and table, when and by whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.numerals import number, percent
from fairbits.report.manifest import hash_file
from fairbits.report.markup import table, text
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData
    from fairbits.store import Run
    from fairbits.subject import Subject


@dataclass(frozen=True, slots=True)
class DecisionSource:
    """A file that the figures rest on."""

    what: str
    name: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """What a reviewer looks for first."""

    people: str = ""
    kind: str = "exact"
    sources: tuple[DecisionSource, ...] = ()
    made_by: str = "unknown"


def sources_of(subject: Subject) -> tuple[DecisionSource, ...]:
    """The files of a subject with their hashes, as ``sha256sum`` gives them."""
    parts = subject.identity.ingredients
    where = "built in" if subject.source is not None else "from memory"
    rows = f"{len(subject.table):,} rows, {where} ({parts.get('rows', 'no hash')})"
    found = [
        DecisionSource("model", "not at hand: the table holds its scores")
        if subject.scores_only
        else _source("model", subject.original, _model_words(subject, parts.get("weights", "none"))),
        _source("table", subject.table.file, rows),
    ]
    if subject.test is not None and subject.test.file is not None:
        found.append(_source("test table", subject.test.file, ""))
    if subject.source is not None and Path(subject.source).is_file():
        found.append(_source("subject", subject.source, ""))
    return tuple(found)


def made_by(run: Run) -> str:
    """Who ran the search, as its record says."""
    return run.made_by


def _model_words(subject: Subject, weights: str) -> str:
    if isinstance(subject.original, str):  # an address, or a reference to code
        return subject.original.partition("?")[0]
    words = "built in" if subject.original is None and subject.source else "an object in memory, from no file"
    return words if weights == "none" else f"{words} (weights {weights})"


def _source(what: str, origin: Any, otherwise: str) -> DecisionSource:
    if isinstance(origin, str | Path) and origin and Path(origin).is_file():
        return DecisionSource(what, Path(origin).name, hash_file(Path(origin))[1])
    return DecisionSource(what, otherwise)


def facts(data: ReportData) -> list[tuple[str, str, str | None]]:
    """Name, value and hash of what stands below the cards."""
    quality, again = data.about.quality, data.remaking
    rule = f"{quality.rule[:1].upper()}{quality.rule[1:]}"
    made = f"{again.created[:16].replace('T', ' ')} UTC"
    sources: list[tuple[str, str, str | None]] = [(one.what, one.name, one.sha256) for one in data.opening.sources]
    return [
        ("decision rule", rule, None),
        *sources,
        ("run on", made, None),
        ("run by", data.opening.made_by, None),
        ("identity of model, schema and table", again.identity, None),
    ]


def cards(data: ReportData) -> list[dict[str, str]]:
    """The first figures: people, then how well the model agrees with the labels."""
    measured, quality = data.measured, data.about.quality
    rate = measured.flip_rate or measured.split_rate
    found = []
    if data.about.protected:
        what = "People affected" if measured.flip_rate else "Rows with more than one class"
        among = f"{percent(rate.low)} to {percent(rate.high)} of people drawn like them (95 % interval)"
        if data.about.blind:
            among = "and of everybody else, by the way the model is made"
        small = f"of {measured.rows:,}; {among}"
        many = number(round(rate.value * measured.rows))
        found.append({"what": what, "big": many, "small": small, "kind": data.opening.kind})
    rows = f"on {quality.rows:,} labelled rows"
    if quality.accuracy is not None:
        found.append({"what": "Accuracy", "big": percent(quality.accuracy), "small": rows, "kind": "exact"})
    if quality.auc is not None:
        between = f"{number(quality.auc_low, 3)} to {number(quality.auc_high, 3)} (95 % interval)"
        found.append({"what": "AUC", "big": number(quality.auc, 3), "small": between, "kind": "statistical"})
    if quality.r2 is not None:
        found.append({"what": "Variance explained", "big": percent(quality.r2), "small": rows, "kind": "exact"})
    if quality.favourable_rate is not None:
        base = "" if quality.base_rate is None else f"base rate: {percent(quality.base_rate)} are labelled so"
        found.append(
            {"what": "Decided favourably", "big": percent(quality.favourable_rate), "small": base, "kind": "exact"}
        )
    return found


def _markdown(data: ReportData) -> Iterator[str]:
    yield "## What was decided about whom"
    yield ""
    rows = [[one["what"], one["big"], text(one["small"], 200), one["kind"]] for one in cards(data)]
    yield from table(["figure", "value", "", "kind of figure"], rows)
    yield ""
    lines = [
        [name, text(value, 200) + (f" (SHA-256 {digest})" if digest else "")] for name, value, digest in facts(data)
    ]
    yield from table(["", ""], lines)


def _values(data: ReportData) -> dict[str, Any]:
    return {"cards": cards(data), "opening_facts": facts(data)}


TEMPLATE = """
<section id="decided" aria-labelledby="decided-title">
<h2 id="decided-title">What was decided about whom</h2>
<ul class="cards">
{% for one in cards %}<li><p class="what">{{ one.what }}</p><p class="big">{{ one.big }}</p>{{ p.kind(one.kind) }}{% if one.small %}<p class="small">{{ one.small }}</p>{% endif %}</li>
{% endfor %}</ul>
<dl class="facts">
{% for name, value, digest in opening_facts %}<div{% if digest %} class="hashed"{% endif %}><dt>{{ name }}</dt><dd>{{ p.label(value, 200) }}{% if digest %}<br><code class="hash">sha256 {{ digest }}</code>{% endif %}</dd></div>
{% endfor %}</dl>
</section>
"""

SECTION = Section("decided", "Decisions", TEMPLATE, _markdown, values=_values)
