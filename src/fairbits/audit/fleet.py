"""Audits of many subjects in one go, on one page: the models by severity, a link to each report, and what could not be
audited and why. Each is a shard; one that fails is put on the page with its sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Unpack

from fairbits import domain, report, scale, store
from fairbits.audit.audit import Audit
from fairbits.audit.pipeline import DEFAULT_SECONDS, AuditResult
from fairbits.audit.scores_only import ScoresAudit, is_scores_audit
from fairbits.blocks import (
    Bar,
    Block,
    Link,
    Page,
    PagePart,
    Paragraph,
    Small,
    TableBlock,
    Text,
    figure,
    label,
    shown,
    table_by,
)
from fairbits.errors import FairbitsError, OptionError, choose_from
from fairbits.options import AuditOptions, arguments_of
from fairbits.subject import Quality
from fairbits.text import number, percent

PAGE, DOCUMENT = "index.html", "fleet.json"
#: What models can be ranked by.
RANKS = {
    "people": "people affected",
    "found": "largest k found",
    "proved": "largest k proved possible",
    "bits": "bits",
}


@dataclass(frozen=True, slots=True)
class FleetMember:
    """One subject of a fleet. With an ``error`` the figures are missing."""

    name: str
    source: str
    report: str | None = None
    sentence: str = ""
    bits: float | None = None
    bits_limit: float | None = None
    k_max: int | None = None
    k_max_on_data: int | None = None
    flip_rate: float | None = None
    split_rate: float | None = None
    id_cases: int | None = None
    cases: int | None = None
    seconds: float | None = None
    error: str | None = None
    rows: int | None = None
    m: int | None = None
    k_proved: int | None = None
    indirect: float | None = None
    indirect_about: str = ""
    quality: Mapping[str, Any] | None = None
    scores_only: bool = False

    @property
    def affected(self) -> float:
        """The share of rows whose decision flips; of a regression, those with more than one class."""
        return (self.split_rate if self.flip_rate is None else self.flip_rate) or 0.0

    def severity(self, rank: str) -> tuple[float, float, str]:
        """What the page is ordered by, the most severe first."""
        bits, found = self.bits or 0.0, self.k_max or 0
        # Whoever proves nothing may have as many classes as there are twins.
        proved = self.m or 0 if self.k_proved is None else self.k_proved
        by = {"people": (self.affected, bits), "found": (found, self.affected), "proved": (proved, found)}
        first, second = by.get(rank, (bits, self.affected))
        return -first, -second, self.name


@dataclass(frozen=True, slots=True)
class Fleet:
    """The subjects of a fleet, and the terms on which they were audited."""

    folder: str
    terms: str
    created: str
    subjects: tuple[FleetMember, ...]
    rank: str = "people"

    @property
    def ranked(self) -> list[FleetMember]:
        return sorted((one for one in self.subjects if one.error is None), key=lambda one: one.severity(self.rank))

    @property
    def failed(self) -> list[FleetMember]:
        return sorted((one for one in self.subjects if one.error is not None), key=lambda one: one.name)

    def document(self) -> dict[str, Any]:
        """Everything, for JSON: ranked first, then what failed."""
        return asdict(self) | {"subjects": [asdict(one) for one in (*self.ranked, *self.failed)]}

    @property
    def sentence(self) -> str:
        ranked, of = self.ranked, _models(len(self.subjects))
        if not ranked:
            return f"None of {of} could be audited."
        first = ranked[0]
        worst = max(ranked, key=lambda one: one.indirect or 0.0)
        rest = f"; {len(self.failed)} could not be audited" if self.failed else ""
        if not any(one.bits for one in ranked) and not worst.indirect:
            return f"No use of protected attributes was found in {_models(len(ranked))}{rest}."
        known = first.k_proved if self.rank == "proved" else first.k_max
        if not any(one.bits for one in ranked):
            score = f"the score of “{worst.name}” tells at least {worst.indirect:.2f} bits about {worst.indirect_about}"
            found = f"none was seen to use a protected attribute; {score}"
        elif self.rank == "people" and first.affected:
            what = "score differently" if first.flip_rate is None else "get a different decision"
            share = f"{100 * first.affected:.1f} % of its rows would {what} if only protected values differed"
            found = f"“{first.name}” affects most people: {share}"
        elif self.rank not in ("found", "proved"):
            found = f"“{first.name}” uses the most: at least {first.bits:.2f} of {first.bits_limit:.2f} bits"
        elif known is None:
            found = f"of “{first.name}” nothing is proved, so any of its {first.m} twins may differ"
        else:
            found = f"“{first.name}” has the largest {self.rank} k: {known}"
        return f"Of {of}, {found}{rest}."


def write_fleet(fleet: Fleet, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    store.write_json(folder / DOCUMENT, fleet.document())
    store.write_whole(folder / PAGE, report.render_page(fleet_page(fleet)).encode())
    return folder / PAGE


def fleet_page(fleet: Fleet) -> Page:
    lead = (
        f"Each model was audited by itself: {fleet.terms}. Rows affected are those of the model's own table whose "
        "decision flips, or whose twins score differently where nothing is decided (exact); bits and k found come "
        "from a search (lower bounds); k proved holds for everybody. Indirect bits are what the score tells about "
        "the protected attribute that it tells most about (statistical). Models with other protected attributes "
        "have other limits, so read the order as where to look first."
    )
    opening: list[Block] = [Paragraph(lead, tone="lead")]
    parts = []
    ranked = fleet.ranked
    if ranked:
        table = table_by(
            ranked,
            [
                (figure("#"), lambda one: ranked.index(one) + 1),
                (label("model"), _named),
                (shown("rows affected"), _affected),
                (label("bits, at least"), lambda one: "scores only" if one.bits is None else number(one.bits, 2)),
                (label(""), lambda one: None if one.bits is None else Bar(one.bits / (one.bits_limit or inf))),
                (figure("of", 2), lambda one: one.bits_limit),
                (figure("k found"), lambda one: one.k_max),
                (figure("on real rows"), lambda one: one.k_max_on_data),
                (shown("k proved"), lambda one: None if one.k_proved is None else f"≤ {one.k_proved}"),
                (figure("cases that flip"), lambda one: one.id_cases),
                (
                    shown("indirect bits, at least"),
                    lambda one: "–" if one.indirect is None else (number(one.indirect, 2), Small(one.indirect_about)),
                ),
            ],
        )
        parts.append(PagePart("ranking", f"By {RANKS[fleet.rank]}", [table]))
    if fleet.failed:
        count = f"{number(len(fleet.failed))} of {number(len(fleet.subjects))} could not be audited: "
        opening.append(Paragraph((count, Link("why", "#failed"), "."), tone="warning"))
        failed = [((one.name, Small(one.source)), one.error) for one in fleet.failed]
        parts.append(PagePart("failed", "Not audited", [TableBlock([label("model"), label("why")], failed)]))
    return Page(
        subject=fleet.folder,
        command=f"fleet · {fleet.created[:10]}",
        title=f"{fleet.folder}: {len(fleet.subjects)} models",
        sentence=fleet.sentence,
        opening=opening,
        parts=parts,
        made_from="the runs beside this page",
    )


def _named(one: FleetMember) -> Text:
    agreement = () if one.quality is None else store.record_from_json(Quality, one.quality).lines()
    return Link(one.name, one.report or ""), *(Small(line) for line in agreement)


def _affected(one: FleetMember) -> Text:
    if one.flip_rate is None and one.split_rate is not None:
        return percent(one.split_rate), Small("score differently")
    return percent(one.flip_rate)


def _models(count: int) -> str:
    return "one model" if count == 1 else f"{count:,} models"


#: Progress callback: called with how many have ended, of how many, and which one just did.
Progress = Callable[[int, int, FleetMember | None], None]


@dataclass(frozen=True, slots=True)
class FleetSubject:
    """One subject of a fleet. Plain data."""

    name: str
    source: str
    folder: str


#: What all workers of a fleet are given, once: how to audit, what files may do, whether models are taken as they are.
_Shared = tuple[AuditOptions, domain.GrantOptions, bool]


def find_subjects(folder: Path, out: Path) -> list[FleetSubject]:
    """Every subject file in a folder and below: those called subject.toml, and all .toml files in the folder itself."""
    if not folder.is_dir():
        raise OptionError(f"{str(folder)!r} is not a folder; give one that holds subject.toml files.")
    files = sorted({*folder.rglob("subject.toml"), *folder.glob("*.toml")})
    files = [file for file in files if out.resolve() not in file.resolve().parents]
    if not files:
        raise OptionError(f"{str(folder)!r} holds no subject.toml; write some with `fairbits init`.")
    subjects: list[FleetSubject] = []
    taken: set[str] = set()
    for file in files:
        inner = file.relative_to(folder)
        bare = file.name == "subject.toml" and inner.parent.parts
        parts = inner.parent.parts if bare else inner.with_suffix("").parts
        slug = store.folder_name("-".join(parts))
        while slug in taken:
            slug += "-2"
        taken.add(slug)
        subjects.append(FleetSubject("/".join(parts), str(file), str(out / slug)))
    return subjects


def audit_fleet(
    folder: str | Path,
    options: AuditOptions | None = None,
    out: str | Path | None = None,
    *,
    as_is: bool = False,
    rank: str = "people",
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
    **grants: Unpack[domain.GrantOptions],
) -> tuple[Fleet, Path]:
    """Audit every subject in a folder, and write the index page; what an earlier fleet finished in ``out`` is kept."""
    if rank not in RANKS:
        raise OptionError(f"--rank is {rank!r}; {choose_from(rank, RANKS)}")
    credential = grants.get("credential")
    if credential is not None and "@" not in credential:
        raise OptionError(
            f"--credential is {credential!r}, and a fleet may ask many hosts; say which one gets the secret: "
            f"{credential}@https://host."
        )
    place = (store.new_folder("fleet") if out is None else Path(out)).resolve()
    subjects = find_subjects(Path(folder), place)
    options = options or AuditOptions()
    # Each is done by one worker, who never asks for more.
    each = replace(options, threads=options.each, workers=None, ray=None)
    found: dict[int, FleetMember] = {}

    def done(turn: int, entry: FleetMember) -> None:
        found[turn] = entry
        if progress is not None:
            progress(len(found), len(subjects), entry)

    if progress is not None:
        progress(0, len(subjects), None)
    job = scale.Job(lambda shared: shared, _perform, (each, grants, as_is))
    carried = scale.carry_out(
        options.executor, job, enumerate(subjects), scale.Listener(done=done, stop=stop or (lambda: False))
    )
    for turn, member in enumerate(subjects):
        if turn not in found:
            fault = carried.lost.get(turn)
            waits = "the fleet was ended before its turn; the same command with the same --out goes on."
            error = waits if fault is None else f"given up after 4 tries: {fault.words}."
            found[turn] = FleetMember(member.name, member.source, error=error)
    members = tuple(found[turn] for turn in range(len(subjects)))
    fleet = Fleet(str(folder), _words(options), store.timestamp(), members, rank)
    return fleet, write_fleet(fleet, place)


def _perform(shared: _Shared, member: FleetSubject, stop: Callable[[], bool]) -> FleetMember:
    """One audit. Whatever is wrong with this subject is its own affair."""
    options, grants, as_is = shared
    folder = Path(member.folder)
    again = is_scores_audit(folder) or (folder / "run.json").is_file()
    try:
        audit = Audit.of(member.source, as_is=as_is, **grants)
        found = audit.audit(out=folder, resume=again, stop=stop, **arguments_of(options))
    except FairbitsError as error:
        return FleetMember(member.name, member.source, error=str(error))
    except Exception as error:  # noqa: BLE001 - a model may raise anything, and the other subjects go on
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        what = f"something went wrong inside fairbits or the model ({what})."
        return FleetMember(member.name, member.source, error=what)
    figures = _figures(found, audit.subject.quality)
    return FleetMember(member.name, member.source, f"{folder.name}/{found.page.name}", **figures)


def _indirect_figures(document: Mapping[str, Any] | None) -> dict[str, Any]:
    """The protected attribute that the score tells most about, and how much at least."""
    found = (document or {}).get("attributes", ())
    known = [one for one in found if one["bits_low"] is not None and len(one["attributes"]) == 1]
    most = max(known, key=lambda one: float(one["bits_low"]), default=None)
    return {} if most is None else {"indirect": most["bits_low"], "indirect_about": most["attribute"]}


def _figures(found: AuditResult | ScoresAudit, quality: Quality | None) -> dict[str, Any]:
    if isinstance(found, ScoresAudit):
        return {
            "sentence": report.lead(found.document, blind=True).strip(),
            "rows": found.document["rows"],
            "seconds": found.seconds,
            "quality": None if quality is None else quality.figures(),
            "scores_only": True,
            **_indirect_figures(found.document),
        }
    data, measured, searched = found.data, found.data.measured, found.data.searched.figures
    return {
        "sentence": data.sentence,
        "bits": data.bits,
        "bits_limit": data.about.bits_limit,
        **{name: searched.get(name) for name in ("k_max", "k_max_on_data", "cases")},
        "flip_rate": None if measured.flip_rate is None else measured.flip_rate.value,
        "split_rate": measured.split_rate.value,
        "id_cases": None if data.about.regression else searched.get("id_cases"),  # nothing flips in a regression
        "rows": measured.rows,
        "m": data.about.m,
        "quality": data.about.quality.figures(),
        "k_proved": _proved(data),
        **_indirect_figures(data.proxies),
        "seconds": sum(took for took in found.seconds.values() if took is not None),
    }


def _proved(data: report.ReportData) -> int | None:
    """The most classes that anybody can have, where that is certain of everybody."""
    if data.about.blind:
        return 1
    known = [
        int(one.bound)
        for one in data.certified
        if one.model == "model" and one.property == "k" and one.kind != "statistical"
        if one.whom is not None and one.whom.everybody and not one.withdrawn
        if one.certified == one.people
    ]
    return min(known, default=None)


def _words(options: AuditOptions) -> str:
    seconds = DEFAULT_SECONDS if options.seconds is None else options.seconds
    skipped = f", without {' and '.join(sorted(options.skip))}" if options.skip else ""
    many = f", {options.workers} at a time" if (options.workers or 1) > 1 else ""
    return f"about {seconds:g} s each{many}, seed {options.seed or 0}{skipped}"
