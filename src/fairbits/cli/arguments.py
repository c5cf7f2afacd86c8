"""What several commands are about: a subject, a run, or whichever of them somebody typed."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.cli.flags import argument
from fairbits.errors import OptionError
from fairbits.options import AcceptOptions, LoadingOptions, arguments_of, option

if TYPE_CHECKING:
    from fairbits.audit import Audit, AuditRun

#: Files that hold a table, and no subject.
_TABLES = (".csv", ".tsv", ".parquet", ".feather", ".arrow")
JSON: Any = option(False, "Print JSON on stdout and nothing else.", flag="--json")


def read_place(text: str) -> Path:
    """The folder or address, such as s3://bucket/run, that somebody typed."""
    from fairbits.store import place_of

    return place_of(text)


def subject_argument(default: Any = MISSING) -> Any:
    """The subject of a command; one that can go on with a run needs none."""
    return argument(default, "A built-in name (see `fairbits data`) or an audit file (subject.toml).")


RUN: Any = argument(help="The folder (or address) of a run.", metavar="RUN")
EITHER: Any = argument(
    help="A built-in name, an audit file (subject.toml), or the folder of a run.", metavar="RUN|SUBJECT"
)
OUT: Any = option(None, "Folder (or address) of the run.", read=read_place, metavar="PLACE", shown="runs/…")
RESUME: Any = option(None, "Go on with the run in this place.", read=read_place, metavar="RUN")
FORCE: Any = option(False, "Replace a run in the folder of --out.")


def is_subject(text: str) -> bool:
    """Whether a word names a subject rather than a run."""
    from fairbits.data import BUILT_IN

    return text in BUILT_IN or text.endswith(".toml")


def check_subject(text: str) -> None:
    """Say what to do with a table that was given as a subject."""
    if text.lower().endswith(_TABLES) and Path(text).is_file():
        raise OptionError(f"{text} is a table; try: fairbits init {text}")


def open_run(text: str, command: str, loading: LoadingOptions | None = None) -> AuditRun:
    """The run that somebody typed; a subject has none yet."""
    from fairbits.audit import AuditRun

    if is_subject(text) and not Path(text).is_dir():
        raise OptionError(f"{text} is a subject; {command} needs a run: fairbits audit {text}")
    check_subject(text)
    return AuditRun.open(read_place(text), **({} if loading is None else loading.given()))


def audit_of(subject: str | None, about: AcceptOptions, loading: LoadingOptions, resume: Path | None = None) -> Audit:
    """The audit that a command is about: of the subject that it names, or of the run that it goes on with."""
    from fairbits.audit import Audit

    asked = {**arguments_of(about), **loading.given()}
    if subject is not None:
        check_subject(subject)
    if resume is not None:
        return Audit.of_run(resume, subject, **asked)
    if subject is None:
        raise OptionError(
            "nothing to audit was given; name a built-in (see `fairbits data`) or an audit file (subject.toml)."
        )
    return Audit.of(subject, **asked)
