"""The study of indirect bits in the folder of a run: written with the identity of its subject, and kept."""

from __future__ import annotations

from pathlib import Path

from fairbits.audit.options import AuditOptions
from fairbits.proxies import ProxyStudy
from fairbits.report import proxies_of
from fairbits.store import write_json
from fairbits.subject import Subject

NAME = "proxies.json"


def write_study(study: ProxyStudy, folder: Path, subject: Subject) -> None:
    """Write proxies.json."""
    write_json(folder / NAME, {**study.document(), "made_with": subject.identity.document()})


def keep_study(folder: Path, subject: Subject, options: AuditOptions) -> bool:
    """Keep a study that is there, where it is about this subject and these periods; papers to file may be added."""
    kept = proxies_of(folder, subject)
    same = kept is not None and (kept.get("made_with") or {}).get("id") == subject.identity.id
    if kept is None or not same or options.by not in (None, kept.get("by")):
        return False
    stated = {"data_source": options.data_source, "distributed": options.distributed}
    wanted = {**(kept.get("filing") or {}), **{name: value for name, value in stated.items() if value}}
    if wanted != kept.get("filing"):  # what is filed beside the tables changes none of them
        write_json(folder / NAME, {**kept, "filing": wanted})
    return True
