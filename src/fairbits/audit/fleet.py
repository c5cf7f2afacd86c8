"""Audits of many subjects in one go. Each is a shard; one that fails is put on the page with its sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from fairbits import domain, report, scale, store, subject
from fairbits.audit.audit import Audit
from fairbits.audit.pipeline import DEFAULT_SECONDS, AuditResult
from fairbits.audit.scores_only import ScoresAudit, is_scores_audit
from fairbits.errors import FairbitsError, OptionError, choose_from
from fairbits.options import AuditOptions, arguments_of

#: Progress callback: called with how many have ended, of how many, and which one just did.
Progress = Callable[[int, int, report.FleetMember | None], None]


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
) -> tuple[report.Fleet, Path]:
    """Audit every subject in a folder, and write the index page; what an earlier fleet finished in ``out`` is kept."""
    if rank not in report.RANKS:
        raise OptionError(f"--rank is {rank!r}; {choose_from(rank, report.RANKS)}")
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
    found: dict[int, report.FleetMember] = {}

    def done(number: int, entry: report.FleetMember) -> None:
        found[number] = entry
        if progress is not None:
            progress(len(found), len(subjects), entry)

    if progress is not None:
        progress(0, len(subjects), None)
    job = scale.Job(lambda shared: shared, _perform, (each, grants, as_is))
    carried = scale.carry_out(
        options.executor, job, enumerate(subjects), scale.Listener(done=done, stop=stop or (lambda: False))
    )
    for number, member in enumerate(subjects):
        if number not in found:
            fault = carried.lost.get(number)
            waits = "the fleet was ended before its turn; the same command with the same --out goes on."
            error = waits if fault is None else f"given up after 4 tries: {fault.words}."
            found[number] = report.FleetMember(member.name, member.source, error=error)
    members = tuple(found[number] for number in range(len(subjects)))
    fleet = report.Fleet(str(folder), _words(options), store.timestamp(), members, rank)
    return fleet, report.write_fleet(fleet, place)


def _perform(shared: _Shared, member: FleetSubject, stop: Callable[[], bool]) -> report.FleetMember:
    """One audit. Whatever is wrong with this subject is its own affair."""
    options, grants, as_is = shared
    folder = Path(member.folder)
    again = is_scores_audit(folder) or (folder / "run.json").is_file()
    try:
        audit = Audit.of(member.source, as_is=as_is, **grants)
        found = audit.audit(out=folder, resume=again, stop=stop, **arguments_of(options))
    except FairbitsError as error:
        return report.FleetMember(member.name, member.source, error=str(error))
    except Exception as error:  # noqa: BLE001 - a model may raise anything, and the other subjects go on
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        what = f"something went wrong inside fairbits or the model ({what})."
        return report.FleetMember(member.name, member.source, error=what)
    figures = _figures(found, audit.subject.quality)
    return report.FleetMember(member.name, member.source, f"{folder.name}/{found.page.name}", **figures)


def _indirect_figures(document: Mapping[str, Any] | None) -> dict[str, Any]:
    """The protected attribute that the score tells most about, and how much at least."""
    found = (document or {}).get("attributes", ())
    known = [one for one in found if one["bits_low"] is not None and len(one["attributes"]) == 1]
    most = max(known, key=lambda one: float(one["bits_low"]), default=None)
    return {} if most is None else {"indirect": most["bits_low"], "indirect_about": most["attribute"]}


def _figures(found: AuditResult | ScoresAudit, quality: subject.Quality | None) -> dict[str, Any]:
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
