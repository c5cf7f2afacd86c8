"""What a file needs around its figures: sign-off, reproduction, hashes, regulations, tables to file.

The commands that make a run and its stages again: options records of what its files say was asked for, typed out.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fairbits.blocks import (
    Block,
    Code,
    Commands,
    Facts,
    Fold,
    Form,
    Heading,
    Link,
    Page,
    PagePart,
    Paragraph,
    Small,
    TableBlock,
    Text,
    figure,
    label,
    listed,
    share,
    shown,
    table_by,
)
from fairbits.options import (
    CertifyOptions,
    DebugOptions,
    ProxiesOptions,
    RepairOptions,
    SearchOptions,
    SubjectOptions,
    flag_words,
)
from fairbits.report.manifest import MANIFEST, SIGNATURE
from fairbits.report.record import ReportData
from fairbits.text import joined, number, shortened

DOI = "10.1109/ICSE48619.2023.00136"
CITATION = (
    "Verya Monjezi, Ashutosh Trivedi, Gang Tan, Saeid Tizpaz-Niari: Information-Theoretic Testing and Debugging of "
    "Fairness Defects in Deep Neural Networks. ICSE 2023."
)
FIELDS = ("Name", "Role", "Date", "Signature")
LAW = (
    "The law asks for sex, race or ethnicity, and both together; tables of other attributes are here for whoever needs "
    "them. It sets no threshold for impact ratios: four fifths is a rule of thumb of other authorities, and no verdict."
)
DECISIONS = ("approved", "approved with conditions", "not approved")


@dataclass(frozen=True, slots=True)
class LegalPointer:
    """One text: where it is, the day of the version that is meant, what it asks for, and the sections of this page that
    speak of it."""

    text: str
    place: str
    address: str
    day: str
    asks: str
    sections: tuple[str, ...]


POINTERS = (
    LegalPointer(
        "EU AI Act, Regulation (EU) 2024/1689",
        "Annex IV, point 2 (g)",
        "https://eur-lex.europa.eu/eli/reg/2024/1689/oj",
        "2024-06-13",
        "validation and testing procedures and data; metrics of accuracy, robustness and potentially discriminatory "
        "impacts; test logs and reports, dated and signed by the responsible persons",
        ("summary", "affected", "treatment", "people", "certainty", "reproduce", "files", "sign-off"),
    ),
    LegalPointer(
        "EU AI Act, Regulation (EU) 2024/1689",
        "Annex IV, point 3; Article 15",
        "https://eur-lex.europa.eu/eli/reg/2024/1689/oj",
        "2024-06-13",
        "degrees of accuracy, also for specific persons or groups; foreseeable unintended outcomes; risks to "
        "fundamental rights and of discrimination",
        ("summary", "affected", "treatment"),
    ),
    LegalPointer(
        "New York City, Local Law 144 of 2021",
        "6 RCNY § 5-301 and § 5-302",
        "https://rules.cityofnewyork.us/rule/automated-employment-decision-tools-updated/",
        "2023-04-06",
        "a bias audit: selection or scoring rates and impact ratios by sex, race or ethnicity, and their "
        "intersections; a summary that is published: fairbits proxies MODEL --filing --out FOLDER",
        ("treatment",),
    ),
    LegalPointer(
        "US model risk guidance, SR 26-2 / OCC Bulletin 2026-13",
        "development, validation, monitoring (before April 2026: SR 11-7)",
        "https://www.federalreserve.gov/supervisionreg/srletters/SR2602.htm",
        "2026-04-17",
        "evaluation of conceptual soundness, testing and outcomes analysis, limitations, documentation, and who "
        "approved the use",
        ("summary", "repairs", "certainty", "limitations", "inside", "reproduce", "sign-off"),
    ),
    LegalPointer(
        "UK, PRA Supervisory Statement SS1/23",
        "Principles 3 and 4",
        "https://www.bankofengland.co.uk/prudential-regulation/publication/2023/may/"
        "model-risk-management-principles-for-banks-ss",
        "2023-05-17",
        "testing in development, independent validation, and documentation of both",
        ("summary", "certainty", "reproduce", "sign-off"),
    ),
)
NOTE = (
    "Pointers, not legal advice: whether a text applies, in which version and since when, is for your counsel to say."
)


def sign_off_blocks(_: ReportData) -> Iterator[Block]:
    """Lines to sign: name, role, date, decision. They print."""
    said = (
        "Whoever decides about this model on the grounds of this page signs here, on paper; a signature under the "
        "files is made with "
    )
    yield Paragraph((said, Code("fairbits report RUN --sign KEY"), "."), tone="lead")
    yield Form(FIELDS, "Decision", DECISIONS, "Conditions, and until when")


def reproduction_blocks(data: ReportData) -> Iterator[Block]:
    """Commands that give the same figures, and with what they were made."""
    made, about = data.reproduction, data.about
    yield Paragraph(
        "The same seed gives the same cases, whatever the number of threads. The search below is limited by people "
        "asked and not by seconds, so that a faster machine finds the same.",
        tone="lead",
    )
    yield Commands(made.commands)
    favourable = ", favourable value" if about.favourable else ""
    target = f"{about.target}: {about.favourable}" if about.favourable else about.target
    yield Facts(
        [
            ("identity", Code(made.identity)),
            ("model", about.model),
            *([(f"target{favourable}", target)] if about.target and target else []),
            ("protected inputs", joined(list(about.protected)) or "none"),
            ("tolerance ε", f"{about.epsilon:g}"),
            ("partition", about.partition),
            ("seed", str(made.seed)),
            ("budget of the search", made.budget),
            ("run", f"{made.created}, {made.status}"),
            *made.versions.items(),
        ]
    )
    yield Paragraph(
        (
            f"The method: {CITATION} ",
            Link(f"doi:{DOI}", f"https://doi.org/{DOI}"),
            ". Please cite that paper when you use the measure; fairbits is an independent implementation of it.",
        )
    )


def file_blocks(data: ReportData) -> Iterator[Block]:
    """The files of the run with their hashes, and how the page is checked later."""
    yield Paragraph(
        (
            Code(MANIFEST),
            " beside this page holds the hash of every file of the run, this page included. ",
            Code("fairbits report RUN --sign KEY"),
            f" signs it ({SIGNATURE}), and ",
            Code("fairbits report RUN --verify"),
            " names every file that was changed, added or removed since.",
        ),
        tone="lead",
    )
    yield table_by(
        data.files,
        [
            (label("file"), lambda one: one.path),
            (figure("bytes"), lambda one: one.bytes),
            (label("SHA-256"), lambda one: Code(one.sha256)),
        ],
        f"{number(len(data.files))} files that the page was made from",
    )


def regulations_fold(parts: Iterable[PagePart], folds: Iterable[Fold]) -> Fold:
    """The texts, with links to the parts of the page that are there."""
    there = {part.name: part.title.lower() for part in parts} | {fold.name: str(fold.title).lower() for fold in folds}
    table = table_by(
        POINTERS,
        [
            (label("text"), lambda one: (Link(one.text, one.address), Small(f"{one.place}; text of {one.day}"))),
            (label("asks for"), lambda one: one.asks),
            (
                label("here"),
                lambda one: (
                    listed(Link(there[name], f"#{name}") for name in one.sections if name in there)
                    or "nothing on this page"
                ),
            ),
        ],
        stacked=True,
    )
    return Fold("Regulations", [Paragraph(NOTE, tone="lead"), table], name="regulations")


def filing_page(document: Mapping[str, Any], date: str) -> Page:
    """The tables of New York City's Local Law 144 (6 RCNY § 5-301) from proxies.json, as a page of their own."""
    stated, subject = document.get("filing") or {}, str(document["subject"])
    facts = [
        ("date of the audit", date[:10]),
        ("data source", str(stated.get("data_source") or subject)),
        ("distribution date of the tool", str(stated.get("distributed") or "not given (--in-use-since)")),
    ]
    return Page(
        subject=subject,
        command=f"proxies · {date[:10]}",
        title=f"{subject}: impact ratios",
        sentence="Selection rates and impact ratios, by category",
        opening=[Paragraph(f"New York City, Local Law 144 of 2021 (6 RCNY § 5-301). {LAW}", tone="lead"), Facts(facts)],
        parts=[PagePart("filing", "Tables to file", tuple(_filings(document)), "exact")],
        made_from="the rows of the table",
    )


def _filings(document: Mapping[str, Any]) -> Iterator[Block]:
    for one in document["groups"]:
        decides = any(group["selection_rate"] is not None for group in one["groups"])
        rate, ratio = ("selection_rate", "impact_ratio") if decides else ("scoring_rate", "scoring_ratio")
        yield Heading(f"By {one['attribute']}: {number(one['people'])} people")
        columns = [label("category"), figure("people"), share("rate"), shown("impact ratio")]
        rows = [
            ((group["group"], Small(_few(group))), group["people"], group[rate], _ratio(group, ratio))
            for group in one["groups"]
            if not group.get("missing")
        ]
        yield TableBlock(columns, [*rows, (("unknown", Small("in no ratio")), one["unknown"], None, "–")])
    yield Paragraph(
        "The rate is the share selected or, where nothing is decided, the share that scores above the median of "
        "everybody. The impact ratio is the rate over the highest rate of the table.",
        tone="small",
    )


def _few(group: Mapping[str, Any]) -> str:
    said = (("small", "fewer than 30 people: no ratio"), ("under_two_percent", "under 2 % of the data"))
    return "; ".join(words for name, words in said if group[name])


def _ratio(group: Mapping[str, Any], name: str) -> Text:
    if group["small"] or group[name] is None:
        return "–"
    low, high = group.get(f"{name}_low"), group.get(f"{name}_high")
    return number(group[name], 2), Small("" if low is None else f"{number(low, 2)} to {number(high, 2)}")


#: What a search keeps as it was given.
_KEPT = ("seed", "epsilon", "partition", "within", "min_plausibility", "batch")
#: Options whose value is told even where it is the usual one.
_STATED = ("seed", "samples", "max_accuracy_loss", "seconds", "changes", "attack_budget")


def commands(
    manifest: Mapping[str, Any], summary: Mapping[str, Any], stages: Mapping[str, Any], grants: Sequence[str] = ()
) -> tuple[str, ...]:
    """Commands that give the same cases and figures: by evaluations, because seconds depend on the machine."""
    name = shortened(Path(str(manifest.get("source") or manifest["subject"])).name, 100)
    typed = [["search", name, *_search_words(manifest, summary), "--out", "again"]]
    for stage, document in stages.items():
        if document is not None:
            place = (name, "--out", "again") if stage == "proxies" else ("again",)
            typed.append([stage, *place, *flag_words(_STAGES[stage](document), stated=_STATED)])
    found = [shlex.join(["fairbits", *words, *grants]) for words in (*typed, ["report", "again"])]
    own = f"# strategy {manifest['strategy']!r} was an object: search with it from Python, into the folder again"
    return (own if manifest.get("own_strategy") else found[0], *found[1:])


def _search_words(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    """The search without its clock: where that ended each task, and into how many the search was cut."""
    limits = {name: manifest["budget"].get(name) for name in ("evaluations", "cases", "queries")}
    counted, cut = any(limit is not None for limit in limits.values()), manifest.get("shards")
    exact, measure = manifest["strategy"] == "exhaustive", manifest.get("measure")
    options = SearchOptions(
        strategy=None if exact else manifest["strategy"],
        options={} if exact else manifest["options"],
        **limits,
        ends=summary.get("ends") or manifest["budget"].get("ends") or None,
        shards=cut if cut is not None and (cut > 1 or counted) else None,
        measure=None if measure == "q_inf" else measure,
        **{name: manifest.get(name) for name in _KEPT},
    )
    repeats = manifest.get("repeats", 1)
    about = SubjectOptions(
        protected=tuple(shortened(one, 200) for one in manifest["protected"]) or None,
        where=manifest.get("where"),
        repeats=None if repeats == 1 else repeats,
        as_is=bool(manifest.get("as_is")),
    )
    near = ["--on-data"] if manifest["options"].get("distance") == 0 else ["--exhaustive", "1"]
    return [*(near if exact else ()), *flag_words(options), *flag_words(about)]


def _asked(kind: type[Any], stated: Mapping[str, Any], **known: Any) -> Any:
    """The options of a stage: what its file says was asked for, under their names, and what is known otherwise."""
    own = {one.name for one in fields(kind)}
    return kind(**{name: value for name, value in {**stated, **known}.items() if name in own and value is not None})


def _named(names: Iterable[Any] | None, most: int) -> tuple[str, ...]:
    return tuple(shortened(str(name), most) for name in names or ())


#: What a stage was asked for, as the record of its options; no seconds, because they depend on the machine.
_STAGES: dict[str, Callable[[Any], Any]] = {
    "debug": lambda made: _asked(
        DebugOptions,
        made.options,
        rule=made.rule,
        trainings=made.origin.trainings if made.origin.epochs is None else None,  # short ones come by themselves
        seed=made.seed,
    ),
    "repair": lambda made: _asked(
        RepairOptions,
        made.options,
        max_accuracy_loss=made.max_accuracy_loss,
        choose=made.options.get("choose") and shortened(str(made.options["choose"]), 100),
        proposals=_named(made.options.get("also"), 60),
        attack_budget=str(0 if made.attack_before is None else made.attack_before.evaluations),
        seed=made.seed,
    ),
    "certify": lambda stated: _asked(CertifyOptions, stated, seconds=stated.get("budget")),
    "proxies": lambda stated: _asked(
        ProxiesOptions,
        {},
        by=stated.get("by") and shortened(str(stated["by"]), 200),
        justified=_named(stated.get("justified"), 200) or None,
        distributed=shortened(str((stated.get("filing") or {}).get("distributed") or ""), 200) or None,
        seed=stated["seed"],
    ),
}
