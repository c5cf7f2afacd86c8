"""The opening of the page: what was decided about whom, how well, by which rule, model and table, when and by whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.blocks import Block, Cards, Code, Facts, FigureCard, Text
from fairbits.numerals import number, percent
from fairbits.report.manifest import hash_file
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
    rows = f"{len(subject.table):,} rows, {where} ({parts['table']})"
    found = [
        DecisionSource("model", "not at hand: the table holds its scores")
        if subject.scores_only
        else _source("model", subject.original, _model_words(subject, parts["model"])),
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


def _model_words(subject: Subject, digest: str) -> str:
    if isinstance(subject.original, str):  # an address, or a reference to code
        return subject.original.partition("?")[0]
    words = "built in" if subject.original is None and subject.source else "an object in memory, from no file"
    return words if digest == "none" else f"{words} (model {digest})"


def _source(what: str, origin: Any, otherwise: str) -> DecisionSource:
    if isinstance(origin, str | Path) and origin and Path(origin).is_file():
        return DecisionSource(what, Path(origin).name, hash_file(Path(origin))[1])
    return DecisionSource(what, otherwise)


def facts(data: ReportData) -> list[tuple[str, Text]]:
    """Name and value of what stands below the cards; files with their hashes."""
    quality, again = data.about.quality, data.remaking
    rule = f"{quality.rule[:1].upper()}{quality.rule[1:]}"
    made = f"{again.created[:16].replace('T', ' ')} UTC"
    sources = [
        (one.what, one.name if one.sha256 is None else (f"{one.name} ", Code(f"sha256 {one.sha256}")))
        for one in data.opening.sources
    ]
    return [
        ("decision rule", rule),
        *sources,
        ("run on", made),
        ("run by", data.opening.made_by),
        ("identity of model, schema and table", again.identity),
    ]


def cards(data: ReportData) -> list[FigureCard]:
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
        found.append(FigureCard(what, many, data.opening.kind, small))
    rows = quality.judged_words
    if quality.accuracy is not None:
        found.append(FigureCard("Accuracy", percent(quality.accuracy), "statistical", rows))
    if quality.auc is not None:
        between = f"{number(quality.auc_low, 3)} to {number(quality.auc_high, 3)} (95 % interval)"
        found.append(FigureCard("AUC", number(quality.auc, 3), "statistical", between))
    if quality.r2 is not None:
        found.append(FigureCard("Variance explained", percent(quality.r2), "statistical", rows))
    if quality.favourable_rate is not None:
        base = "" if quality.base_rate is None else f"base rate: {percent(quality.base_rate)} are labelled so"
        found.append(FigureCard("Decided favourably", percent(quality.favourable_rate), "exact", base))
    return found


def _blocks(data: ReportData) -> Iterator[Block]:
    yield Cards(cards(data))
    yield Facts(facts(data))


SECTION = Section("decided", "Summary", _blocks)
