"""A model and a table in, figures out: what the command line does, for Python."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairbits.data import Subject, load_subject, make_subject
from fairbits.domain import Encoding, Schema, Table
from fairbits.domain.reading import as_arrow, read_arrow
from fairbits.domain.table import table_from_arrow
from fairbits.measure import Measurement, Progress, evaluator_of, measure_table
from fairbits.models import ModelOptions, read_model

if TYPE_CHECKING:
    from fairbits.audit.auditing import Audited
    from fairbits.debug import DebugResult
    from fairbits.repair import RepairResult
    from fairbits.search import Budget
    from fairbits.store import Run


class Audit:
    """One model, one table, one schema.

    ``model`` is a loaded model, a file, an address, a reference to code, or an object of scikit-learn, PyTorch, Keras
    or anything else that predicts; ``table`` a file, an Arrow, pandas or polars table, or a :class:`~fairbits.Table`
    of codes. ``options`` are those of :class:`~fairbits.models.ModelOptions`, such as ``trust_pickle=True``.
    """

    def __init__(
        self,
        model: Any,
        table: Any,
        schema: Schema,
        *,
        encoding: Encoding | None = None,
        name: str = "subject",
        **options: Any,
    ):
        chosen = ModelOptions.of(options)
        loaded = read_model(model, schema, chosen)
        people = _table(table, schema)
        self.subject = make_subject(name, loaded, schema, people, encoding=encoding, options=chosen, original=model)

    @classmethod
    def of(cls, subject: Subject | str | Path, *, trust_pickle: bool = False) -> Audit:
        """An audit of a built-in subject or a ``subject.toml``."""
        audit = cls.__new__(cls)
        audit.subject = subject if isinstance(subject, Subject) else load_subject(subject, trust_pickle=trust_pickle)
        return audit

    def measure(
        self,
        *,
        epsilon: float | None = None,
        partition: str = "constrained",
        threads: int | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Measurement:
        """The bits of everybody in the table. ``threads`` None means all cores; the seed only moves the intervals."""
        evaluator = evaluator_of(self.subject, epsilon=epsilon, partition=partition, threads=threads)
        return measure_table(evaluator, self.subject.table, np.random.default_rng(seed), progress=progress)

    def search(
        self,
        *,
        budget: Budget | str = "60s",
        strategy: str | None = None,
        seed: int = 0,
        epsilon: float | None = None,
        partition: str = "constrained",
        within: int | None = None,
        min_plausibility: float | None = None,
        threads: int | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        force: bool = False,
        **options: Any,
    ) -> Run:
        """Search for the people whose twins are treated most differently; every case is kept in the folder ``out``.

        ``budget`` is a duration such as "30s" or a :class:`~fairbits.search.Budget`; ``options`` are the strategy's.
        """
        from fairbits.search import DEFAULT, Budget, Settings, search_subject, seconds_of

        limit = Budget(seconds=seconds_of(budget)) if isinstance(budget, str) else budget
        settings = Settings(
            limit, strategy or DEFAULT, options, seed, epsilon, partition, within, min_plausibility, threads
        )
        return search_subject(self.subject, settings, out, resume=resume, force=force)

    def repair(
        self,
        run: Run,
        *,
        max_accuracy_loss: float = 0.02,
        attack_budget: Budget | None = None,
        **options: Any,
    ) -> RepairResult:
        """Repair the network by what a run found; figures and the repaired network are written beside the run.

        With an ``attack_budget`` a fresh search attacks the network before and after. ``options`` are those of
        :func:`fairbits.repair.repair_run`.
        """
        from fairbits.audit.repairing import repair

        return repair(
            run, subject=self.subject, max_accuracy_loss=max_accuracy_loss, attack_budget=attack_budget, **options
        )

    def debug(self, run: Run, **options: Any) -> DebugResult:
        """Where the bits of a run's cases come from. ``options`` are those of :func:`fairbits.debug.debug_run`."""
        from fairbits.debug import debug_run

        return debug_run(run, subject=self.subject, **options)

    def report(self, run: Run, *, out: str | Path | None = None, threads: int | None = None) -> Path:
        """Write report.html, report.md and summary.json of a run, into its own folder by default."""
        from fairbits.report import compute_report, write_report

        data = compute_report(run, subject=self.subject, threads=threads)
        return write_report(data, Path(out) if out is not None else run.folder)

    def audit(
        self,
        *,
        budget: float | str | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        skip: Iterable[str] = (),
        seed: int = 0,
        epsilon: float | None = None,
        partition: str = "constrained",
        threads: int | None = None,
    ) -> Audited:
        """Measure, search, debug, repair and report in one go, in about ``budget`` ("60s" by default).

        ``skip`` names stages to leave out: search, debug, repair. With ``resume`` the run in ``out`` goes on, and
        stages that are newer than its search are not done again.
        """
        from fairbits.audit.auditing import Wishes, audit_subject
        from fairbits.search import seconds_of

        seconds = seconds_of(budget) if isinstance(budget, str) else budget
        wishes = Wishes(seconds, seed, epsilon, partition, threads, frozenset(skip))
        return audit_subject(self.subject, wishes, None if out is None else Path(out), resume=resume)


def _table(table: Any, schema: Schema) -> Table:
    if isinstance(table, Table):
        return table
    data = read_arrow(table) if isinstance(table, str | Path) else as_arrow(table)
    return table_from_arrow(data, schema)
