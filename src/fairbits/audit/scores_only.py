"""An audit without a model: a table of scores has groups and indirect bits, and nothing else can be asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from fairbits import data, proxies, report
from fairbits.domain import GrantOptions
from fairbits.errors import OptionError, on_disk
from fairbits.options import AuditOptions
from fairbits.store import SCORES_RECORD, new_folder, provenance, read_json, write_json
from fairbits.subject import Subject, check_identity

if TYPE_CHECKING:
    from fairbits.audit.pipeline import StageProgress

FORMAT = 1
PROXIES = "proxies.json"


@dataclass(frozen=True, slots=True, eq=False)
class ScoresAudit:
    """What was found about a table of scores."""

    folder: Path
    study: proxies.ProxyStudy | None
    page: Path
    seconds: float
    document: Mapping[str, Any]


def is_scores_audit(folder: str | Path) -> bool:
    """Whether a folder holds the audit of a table of scores."""
    return (Path(folder) / SCORES_RECORD).is_file()


def read_scores_record(folder: Path) -> dict[str, Any]:
    """What an earlier audit of a table of scores was asked for."""
    record = read_json(folder / SCORES_RECORD)
    if record.get("format") != FORMAT or not isinstance(record.get("identity"), Mapping):
        raise OptionError(f"{str(folder / SCORES_RECORD)!r} is damaged or of another format; audit the table again.")
    return record


def audit_scores(
    subject: Subject,
    options: AuditOptions,
    folder: Path | None = None,
    *,
    resume: bool = False,
    progress: StageProgress | None = None,
) -> ScoresAudit:
    """Study a table of scores and write its report."""

    begin = time.perf_counter()
    place = folder or new_folder(subject.name, "audit")
    asked = {name: getattr(options, name) for name in ("seed", "by", "data_source", "distributed")}
    if is_scores_audit(place) and resume:
        record = _going_on(place, subject, asked)
    elif is_scores_audit(place) or (place / "run.json").is_file():
        raise OptionError(f"{str(place)!r} holds an audit already; go on with --resume, or choose another --out.")
    elif resume:
        raise OptionError(f"{str(place)!r} holds no audit of a table of scores to go on with; give it as --out.")
    else:
        record = {
            **{"format": FORMAT, "status": "running", "subject": subject.name, "source": subject.source, **asked},
            **{"seed": options.seed or 0, "identity": subject.identity.document(), **provenance()},
        }
    _write(place, record)
    tell = progress or (lambda *_: None)
    tell("proxies", "start", "")
    document, study = _studied(place, subject, record, lambda words: tell("proxies", "say", words))
    tell("proxies", "done", "")
    _write(place, {**record, "status": "finished"})
    page = report.write_scores_report(document, subject, place, record=record)
    return ScoresAudit(place, study, page, time.perf_counter() - begin, document)


def report_scores(
    folder: Path, *, out: Path | None = None, forms: Iterable[str] = (), **grants: Unpack[GrantOptions]
) -> Path:
    """Write the report of an audit of scores again, from what its folder and its subject's files say."""

    record = read_scores_record(folder)
    if record.get("source") is None:
        raise OptionError(f"{str(folder)!r} does not say where its table lies; audit the table again.")
    subject = data.load_subject(str(record["source"]), **grants).checked(as_is=True)
    check_identity(record, subject.identity, what=f"the audit in {str(folder)!r}")
    document = _kept(folder, record)
    if document is None:
        raise OptionError(
            f"{str(folder)!r} has no {PROXIES} of this table; go on with: fairbits audit --resume {folder}"
        )
    return report.write_scores_report(document, subject, out or folder, record=record, forms=forms, run=folder)


def write_study(study: proxies.ProxyStudy, folder: Path, subject: Subject) -> None:
    """Write proxies.json."""
    write_json(folder / PROXIES, {**study.document(), "made_with": subject.identity.document()})


def _going_on(folder: Path, subject: Subject, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The record of the audit that goes on: figures keep its settings, papers may be added."""
    record = read_scores_record(folder)
    check_identity(record, subject.identity, what=f"the audit in {str(folder)!r}")
    for name in ("seed", "by"):
        if asked[name] is not None and asked[name] != record.get(name):
            raise OptionError(
                f"the audit in {str(folder)!r} has {name} {record.get(name)!r}, but {asked[name]!r} was asked for; "
                f"leave --{name} out, or start a new audit."
            )
    return {**record, **{name: asked[name] for name in ("data_source", "distributed") if asked[name] is not None}}


def _studied(
    folder: Path, subject: Subject, record: Mapping[str, Any], progress: Callable[[str], None]
) -> tuple[dict[str, Any], proxies.ProxyStudy | None]:

    papers: dict[str, Any] = {name: record.get(name) for name in ("data_source", "distributed")}
    document, study = _kept(folder, record), None
    if document is None:
        study = proxies.study_subject(
            subject, by=record.get("by"), seed=int(record["seed"]), **papers, progress=progress
        )
        document = {**study.document(), "made_with": dict(record["identity"])}
    else:
        document["filing"] |= {name: value for name, value in papers.items() if value is not None}
    write_json(folder / PROXIES, document)
    return document, study


def _kept(folder: Path, record: Mapping[str, Any]) -> dict[str, Any] | None:
    """The study in a folder, where it is about the same table under the same settings."""
    document = read_json(folder / PROXIES) if (folder / PROXIES).is_file() else {}
    kept = ((document.get("made_with") or {}).get("id"), document.get("seed"), document.get("by"))
    fits = kept == (record["identity"].get("id"), record["seed"], record.get("by"))
    return document if fits and {"attributes", "groups", "filing"} <= set(document) else None


def _write(folder: Path, record: Mapping[str, Any]) -> None:
    with on_disk(f"cannot write to {str(folder)!r}", "choose another --out"):
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / SCORES_RECORD, dict(record))
