"""The report of a run: its page as blocks, in the order in which a reviewer decides, and its files.

A part of the page is a function of ``sections/`` and a line here; HTML and Markdown draw the same blocks.

The record as JSON: the search's figures under their fixed names, and a section for every other stage.

The report of a table of scores: groups and indirect bits, in the same three formats as any other report.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from fairbits._version import __version__
from fairbits.blocks import Block, Cards, Commands, Facts, Fold, Page, PagePart, Paragraph, Strong, Text, paragraphs
from fairbits.errors import FairbitsError, OptionError, choose_from, on_disk
from fairbits.options import AuditOptions, flag_words
from fairbits.repair import RepairCandidate, RepairResult
from fairbits.report.forms import FORMS, FormMaker
from fairbits.report.html import render_page, template
from fairbits.report.manifest import FILING, FORMATS, files_of, write_manifest
from fairbits.report.markdown import render_markdown_page
from fairbits.report.record import Opening, Portrait, ReportData
from fairbits.report.sections.details import detail_blocks
from fairbits.report.sections.paperwork import file_blocks, filing_page, regulations_fold, sign_off_blocks
from fairbits.report.sections.people import affected_blocks, people_blocks, who_blocks
from fairbits.report.sections.repairs import changes, repair_blocks, shown_repairs, words_of
from fairbits.report.sections.summary import (
    certainty_blocks,
    facts,
    limitation_blocks,
    quality_cards,
    sources_of,
    summary_blocks,
)
from fairbits.report.sections.texts import wording_blocks
from fairbits.report.sections.treatment import (
    impact_blocks,
    lead,
    plainly,
    proxy_blocks,
    summary,
    treatment_blocks,
)
from fairbits.store import plain, write_json, write_whole
from fairbits.subject import Subject
from fairbits.text import shortened

HTML, MARKDOWN, SUMMARY = FORMATS

#: Name, title and blocks of each part; one without blocks is left out. The last ones are folded.
PARTS: tuple[tuple[str, str, Callable[[ReportData], Iterable[Block]]], ...] = (
    ("summary", "Summary", summary_blocks),
    ("words", "Words and their nulls", lambda data: () if data.words is None else wording_blocks(data.words)),
    ("affected", "Who is affected", lambda data: () if data.about.blind else affected_blocks(data)),
    ("who", "Who, in words", lambda data: who_blocks(None if data.debugged is None else data.debugged.who)),
    ("treatment", "Treatment, proxies, impact", treatment_blocks),
    (
        "people",
        "People treated most differently",
        lambda data: people_blocks(data) if data.people and not data.about.blind else (),
    ),
    ("repairs", "What to do", lambda data: () if data.repaired is None else repair_blocks(data.repaired)),
    ("certainty", "How certain", certainty_blocks),
    ("limitations", "Limitations", limitation_blocks),
    ("sign-off", "Sign-off", sign_off_blocks),
)


def write_report(data: ReportData, folder: Path, *, forms: Iterable[str] = (), run: Path | None = None) -> Path:
    """Write report.html, report.md, summary.json, forms that are asked for, and the manifest of the folder; an older
    signature is removed."""
    from fairbits.report.figures.charts import pictures_of

    makers = _makers(forms)
    return _write(data, makers, page_of(data, pictures_of(data)), summary_of(data), folder, run or folder)


def _makers(forms: Iterable[str]) -> list[tuple[str, FormMaker]]:
    """Files and what makes them, of forms that there are: asked before anything is drawn."""
    names = list(forms)
    for name in names:
        if name not in FORMS:
            raise OptionError(f"{name!r} is no form; {choose_from(name, FORMS)}")
    return [FORMS[name] for name in names]


def _write(
    data: ReportData,
    makers: Iterable[tuple[str, FormMaker]],
    page: Page,
    summary: Mapping[str, Any],
    folder: Path,
    run: Path,
) -> Path:
    """Write a report in its formats, each there whole or not at all, and the manifest of its folder last."""
    content = {name: make(data, page, run) for name, make in makers}
    made = data.reproduction
    content |= {HTML: render_page(page).encode(), MARKDOWN: render_markdown_page(page).encode()}
    if data.proxies is not None and (data.proxies.get("filing") or {}).get("distributed"):
        content[FILING] = render_page(filing_page(data.proxies, made.created)).encode()
    with on_disk(f"cannot write to {str(folder)!r}", "choose another --out"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, written in content.items():
            write_whole(folder / name, written)
        write_json(folder / SUMMARY, summary)
        write_manifest(
            folder,
            about={"subject": data.about.subject, "identity": made.identity, "run": made.created},
            hashed=data.files if data.folder == folder else (),
        )
    return folder / HTML


def page_of(data: ReportData, drawn: dict[str, str] | None = None) -> Page:
    """Everything that the page says, with its pictures as SVG where there are any."""
    bits = f"{data.bits:.2f} of {data.about.bits_limit:.2f} bits"
    first, second = _sentences(data, bits)
    told = "what its score tells" if data.about.blind and data.proxies else bits
    return Page(
        subject=data.about.subject,
        command=f"audit · {data.reproduction.created[:10]}",
        title=f"{data.about.subject}: {told}",
        heading=f"{data.about.subject}: fairbits audit",
        sentence=first,
        opening=tuple(_opening(data, second)),
        parts=parts_of(data),
        pictures=drawn or {},
        made_from="the run's own files",
        glossary=True,
    )


def parts_of(data: ReportData) -> list[PagePart]:
    """The parts that this report has, in order; where one cannot be written, its title is in the message."""
    parts: list[PagePart] = []
    title = ""
    try:
        for name, title, blocks in PARTS:
            found = tuple(blocks(data))
            parts += [PagePart(name, title, found)] if found else []
        title = "Details"
        return [*parts, PagePart("details", title, detail_blocks(data, parts))]
    except FairbitsError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise FairbitsError(
            f"the part {title!r} cannot be written ({shortened(str(error), 120)}): a file that it rests on is damaged, "
            "or fairbits has a fault; make that stage of the run again, and tell us if that does not help."
        ) from error


def _opening(data: ReportData, second: Text) -> Iterator[Block]:
    yield from paragraphs((f"Error: {one.said()}" for one in data.contradictions), "warning")
    said = plainly(data.proxies, data.about.blind)
    yield from paragraphs(said, "second")
    if second:
        yield Paragraph(second, tone="lead" if said else "second")
    yield from paragraphs(data.warnings, "warning")
    yield from paragraphs((f"Note: {note}" for note in data.about.notes), "note")


def _sentences(data: ReportData, figure: str) -> tuple[Text, Text]:
    """What the page opens with: people, then bits, their figures marked; of a blind model, what its score tells."""
    before, found, after = data.direct.partition(figure)
    bits: Text = (before, Strong(found), after) if found else data.direct
    leads = data.sentence.removesuffix(data.direct).strip()
    if leads:
        return leads, bits
    if not data.opening.people or data.about.blind:
        return bits, ""
    many, of, rest = data.opening.people.partition(" of ")
    return (Strong(many), of + rest), bits


LIMITS = (
    "Nobody but the people of the table can be scored, so there are no twins, no search, no "
    "repair and no certificate. Whether the model takes a protected attribute itself cannot be known from scores."
)


def write_scores_report(
    document: Mapping[str, Any],
    subject: Subject,
    folder: Path,
    *,
    record: Mapping[str, Any],
    forms: Iterable[str] = (),
    run: Path | None = None,
) -> Path:
    """Write report.html, report.md, summary.json, forms that are asked for and manifest.json of a table of scores."""
    from fairbits.report.figures.charts import period_pictures

    makers = _makers(forms)
    # Where nothing can be known about any attribute, the reason is the finding.
    reasons = [
        f"What the score tells cannot be known: {one['reason']}" for one in document["attributes"] if one["reason"]
    ]
    sentence = lead(document, blind=True).strip() or [*reasons, "Nothing was found."][0]
    data = _data(document, subject, folder, record, sentence)
    cards = Cards(tuple(quality_cards(data.about.quality)))
    parts = [
        PagePart("summary", "Summary", [cards, Facts([*data.opening.about.items(), *facts(data)])]),
        PagePart("treatment", "Proxies", tuple(proxy_blocks(document)), "statistical"),
        PagePart("impact", "Impact", tuple(impact_blocks(document)), "statistical"),
        PagePart("sign-off", "Sign-off", tuple(sign_off_blocks(data))),
    ]
    again: list[Block] = [Commands([_command(record, subject)]), Facts(list((record.get("versions") or {}).items()))]
    folds = [Fold("Reproduce", again, name="reproduce"), Fold("Files", tuple(file_blocks(data)), name="files")]
    details = PagePart("details", "Details", [*folds, regulations_fold(parts, folds)])
    page = Page(
        subject=subject.name,
        command=f"audit of scores · {data.reproduction.created[:10]}",
        title=f"{subject.name}: what its scores tell",
        heading=f"{subject.name}: fairbits audit",
        sentence=sentence,
        opening=(
            *paragraphs(plainly(document, blind=True), "second"),
            *paragraphs((f"{document['rows']:,} people, their scores only.", LIMITS), "lead"),
            *paragraphs((f"Note: {note}" for note in subject.notes), "note"),
        ),
        parts=[*parts, details],
        pictures=period_pictures(document),
        made_from="the table's own scores",
        glossary=True,
    )
    about = {
        **{"subject": subject.name, "rows": document["rows"], "scores_only": True, "fairbits": __version__},
        **{"identity": data.reproduction.identity, "format": FORMAT},
        **({} if subject.quality is None else subject.quality.figures()),
        **{"sentence": sentence, "proxies": summary(document)},
    }
    return _write(data, makers, page, plain(about), folder, run or folder)


def _data(
    document: Mapping[str, Any], subject: Subject, folder: Path, record: Mapping[str, Any], sentence: str
) -> ReportData:
    """What the sections look at: those parts of a report's record that a table of scores has."""
    schema, quality = subject.schema, subject.checked(as_is=True).quality
    stated = SimpleNamespace(
        sentence=sentence,
        proxies=document,
        about=SimpleNamespace(
            subject=subject.name,
            protected=(),
            m=1,
            blind=True,
            quality=quality,
            model="not at hand: the table holds its scores",
            regression=schema.regression,
            target=schema.target,
            notes=subject.notes,
        ),
        measured=SimpleNamespace(figures={}, limits=(), rows=document["rows"], flip_rate=None),
        reproduction=SimpleNamespace(created=str(record["created"]), identity=str(record["identity"]["id"])),
        opening=Opening(
            people=sentence,
            sources=sources_of(subject),
            made_by=str(record.get("made_by") or "unknown"),
            about=subject.about,
        ),
        examined=(),
        not_examined=(LIMITS,),
        repaired=None,
        words=None,
        gate=None,
        gate_of_another="",
        files=files_of(folder, leave_out=(*FORMATS, FILING)) if folder.is_dir() else (),
        folder=folder,
    )
    return cast(ReportData, stated)


def _command(record: Mapping[str, Any], subject: Subject) -> str:
    stated: dict[str, Any] = {name: record.get(name) for name in ("seed", "by", "data_source", "distributed")}
    flags = flag_words(AuditOptions(**stated))
    name = Path(str(record.get("source") or "MODEL")).name
    return shlex.join(["fairbits", "audit", name, *flags, "--out", "again", *subject.options.typed_grants()])


#: Raised when a key changes its meaning or goes; new keys do not raise it.
FORMAT = 1
SCHEMA = "summary.schema.json"
#: What only the pictures of a person take.
_DRAWN = ("scores", "classes", "own_twin", "removed")


def summary_of(data: ReportData) -> dict[str, Any]:
    """The content of summary.json; a stage that was not run is null."""
    measured = data.measured
    document = {
        **data.searched.figures,
        **data.about.quality.figures(),
        "format": FORMAT,
        "report": {
            "fairbits": __version__,
            "sentence": data.sentence,
            "direct": data.direct,
            "by_structure": data.about.blind,
            "people": data.opening.people,
            "people_kind": data.opening.kind,
            "bits": data.bits,
            "protected": list(data.about.protected),
            "near": [asdict(one) for one in data.near],
            "worst": [
                {name: getattr(one, name) for name in Portrait.__slots__ if name not in _DRAWN} for one in data.people
            ],
            "examined": list(data.examined),
            "not_examined": list(data.not_examined),
            "identity": data.reproduction.identity,
            "commands": list(data.reproduction.commands),
            "versions": dict(data.reproduction.versions),
            "status": data.reproduction.status,
            "made_by": data.opening.made_by,
            "about": dict(data.opening.about),
            "sources": [asdict(one) for one in data.opening.sources],
            "warnings": list(data.warnings),
            "contradictions": [one.document() for one in data.contradictions],
        },
        "measure": {
            **measured.figures,
            **data.about.quality.figures(),
            "rows_total": measured.rows_total,
            "noise": plain(measured.noise),
            "bound": dict(measured.bound),
            "histogram": [{"k": k, "people": people} for k, people in measured.histogram],
            "stakes": [asdict(stake) for stake in measured.stakes],
            "harms": [asdict(harm) for harm in measured.harms],
            "harmed_people": measured.harmed_people,
        },
        "debug": None if data.debugged is None else data.debugged.summary(),
        "repair": None if data.repaired is None else _repair(data.repaired),
        "certify": [one.document() for one in data.certified] or None,
        "proxies": summary(data.proxies),
        "gate": None if data.gate is None else dict(data.gate),
        **({} if data.words is None else {"words": plain(data.words)}),
    }
    return dict(plain(document))


def json_schema() -> dict[str, Any]:
    return dict(json.loads(template(SCHEMA, folder="")))


def _repair(found: RepairResult) -> dict[str, Any]:
    """Headline figures and every repair; the groups and both halves in full are in repair.json."""
    evidence, proof = found.evidence, None if found.chosen is None else found.chosen.proof
    names = ("selection", "equal_opportunity", "average_odds")
    return {
        "chosen": "" if found.chosen is None else found.chosen.name,
        "k_max_proved": None if proof is None else proof.bound,
        "proof": "" if proof is None else proof.text,
        "max_accuracy_loss": found.max_accuracy_loss,
        "held_out_cases": evidence.held_out_cases,
        "held_out_rows": evidence.held_out_rows,
        "rows_unseen_by_model": evidence.rows_unseen_by_model,
        "changes": changes(found),
        "repairs": [_candidate(one, found) for one in shown_repairs(found)],
        "groups": [
            {
                "attributes": before.attributes,
                **{name: (getattr(before, name), getattr(after, name)) for name in names},
            }
            for before, after in zip(found.groups_before, found.groups_after, strict=True)
        ],
        "files": [path.name for path in found.files],
        "warnings": [*evidence.notes, *found.warnings],
    }


def _candidate(one: RepairCandidate, found: RepairResult) -> dict[str, Any]:
    low, high = one.held_out_loss_low, one.held_out_loss_high
    return {
        "name": one.name,
        "words": words_of(one),
        **{name: getattr(one.held_out, name) for name in ("accuracy", "k_mean", "id_rate", "id_rate_rows")},
        **{name: getattr(one, name) for name in ("within_budget", "yardstick", "k_max_proved", "raises")},
        "on_front": not one.dominated,
        "chosen": one is found.chosen,
        "change_low": None if high is None else -high,
        "change_high": None if low is None else -low,
    }
