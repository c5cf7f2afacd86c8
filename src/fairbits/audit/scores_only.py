"""An audit without a model: a table of scores has groups and indirect bits, and nothing else can be asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairbits.store import new_folder, write_json
from fairbits.subject import Subject

if TYPE_CHECKING:
    from fairbits.proxies import ProxyStudy


@dataclass(frozen=True, slots=True, eq=False)
class ScoresAudit:
    """What was found about a table of scores.

    Parameters
    ----------
    folder
        Holds proxies.json, summary.json, report.html and report.md.
    study
        Groups and indirect bits.
    page
        The report.
    seconds
        How long it took.
    """

    folder: Path
    study: ProxyStudy
    page: Path
    seconds: float


def audit_scores(
    subject: Subject,
    folder: Path | None = None,
    *,
    by: str | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> ScoresAudit:
    """Study a table of scores and write its report.

    Parameters
    ----------
    subject
        A subject whose table holds the scores.
    folder
        Where to write; by default a new one below ``runs``.
    by
        A column of periods, such as a month.
    seed
        Same seed, same figures.
    progress
        Is told what is done.

    Returns
    -------
    ScoresAudit
        Speaks of groups and indirect bits only.
    """
    from fairbits.proxies import study_subject
    from fairbits.report import write_scores_report

    begin = time.perf_counter()
    study = study_subject(subject, by=by, seed=seed, progress=progress)
    folder = folder or new_folder(subject.name, "audit")
    page = write_scores_report(study.document(), subject, folder)
    write_json(folder / "proxies.json", study.document())
    return ScoresAudit(folder, study, page, time.perf_counter() - begin)
