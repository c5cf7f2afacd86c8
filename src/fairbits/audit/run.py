"""A run together with the subject that it is about, so that what follows a search can be asked of the run itself."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

from fairbits.domain import GrantOptions
from fairbits.store import Run, subject_of
from fairbits.subject import Subject

if TYPE_CHECKING:
    from fairbits.certify import Certificate
    from fairbits.debug import DebugResult
    from fairbits.repair import RepairResult
    from fairbits.search import Budget

#: How long a fresh search attacks a network before and after its repair.
ATTACK = "3s"


class AuditRun(Run):
    """A :class:`~fairbits.store.Run` whose model is at hand: ``debug()``, ``repair()`` and ``report()``.

    Whatever takes a run takes this one too. The subject is loaded when it is first needed; one that has changed since
    the search is refused.
    """

    _given: Subject | None = None
    _grants: GrantOptions = GrantOptions()

    @classmethod
    def open(cls, folder: str | Path, *, subject: Subject | None = None, **grants: Unpack[GrantOptions]) -> Self:
        """The run in a folder. ``subject`` is needed only where neither a name nor a file says what it was."""
        run = super().open(folder)
        run._given, run._grants = subject, grants
        return run

    @cached_property
    def subject(self) -> Subject:
        """The model, table and schema that the run is about, checked to be the same."""
        return subject_of(self, self._given, **self._grants)

    def debug(
        self,
        *,
        samples: int = 1000,
        all_layers: bool = False,
        inside: bool = True,
        retrain: bool = False,
        rule: str = "spread",
        trainings: int | None = None,
        seed: int = 0,
        threads: int | None = None,
        workers: int | None = None,
        ray: str | None = None,
    ) -> DebugResult:
        """Which layers, neurons and attributes the bits of the cases come from; written beside them.

        Parameters
        ----------
        samples : int
            How many cases: the worst fifth, the others at random.
        all_layers : bool
            Neurons of all hidden layers.
        inside : bool
            False leaves out layers and neurons, which a black box cannot show.
        retrain : bool
            Train models of the same kind again, however long that takes.
        rule : str
            ``spread``, or ``paper`` for the layers and neurons of the paper's public code.
        trainings : int, optional
            How many models are trained; 0 for none.
        seed, threads : int
            Same seed, same result; threads of this process.
        workers, ray : optional
            Processes, or a Ray cluster ("local", or an address), that share neurons and trainings.

        Returns
        -------
        DebugResult
            What was found.
        """
        from fairbits.debug import debug_run
        from fairbits.scale import Hands, train_out_by, try_out_by

        hands = Hands(workers, ray, threads)
        return debug_run(
            self,
            subject=self.subject,
            samples=samples,
            all_layers=all_layers,
            inside=inside,
            retrain=retrain,
            rule=rule,
            trainings=trainings,
            seed=seed,
            threads=threads,
            try_out=try_out_by(hands),
            train_out=train_out_by(hands),
        )

    def repair(
        self,
        *,
        max_accuracy_loss: float = 0.02,
        guarantee: int | None = None,
        choose: str | None = None,
        retrain: bool = True,
        attack_budget: Budget | str | None = ATTACK,
        seed: int = 0,
        threads: int | None = None,
        workers: int | None = None,
        ray: str | None = None,
    ) -> RepairResult:
        """Repair the model by what the search found; figures and the repaired model are written beside the cases.

        Of all repairs within the accuracy budget the one with the lowest proved k is taken (where nothing is proved,
        the lowest mean k), or the one that ``choose`` names, or the guard under which nobody has more than
        ``guarantee`` classes. Where none keeps the budget, ``chosen`` is None and no model is written. A fresh search
        of ``attack_budget`` attacks the model before and after; None leaves that out.
        ``workers`` processes, or a ``ray`` cluster ("local", or an address), share the attacks.
        """
        from fairbits.audit.attack import repair
        from fairbits.scale import Hands

        return repair(
            self,
            subject=self.subject,
            max_accuracy_loss=max_accuracy_loss,
            guarantee=guarantee,
            choose=choose,
            retrain=retrain,
            attack_budget=attack_budget,
            seed=seed,
            threads=threads,
            hands=Hands(workers, ray, threads),
        )

    def certify(
        self,
        *,
        budget: float | str = "30s",
        changes: int = 1,
        k: int | None = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> Certificate:
        """What can be said about everybody, of the model and of the repaired one; written to certify.json.

        Options are those of :meth:`fairbits.Audit.certify`; the tolerance between scores is the run's own.
        """
        from fairbits.certify import CertifyOptions, certify_run
        from fairbits.search import seconds_of

        seconds = seconds_of(budget) if isinstance(budget, str) else budget
        options = CertifyOptions(seconds, changes, k, seed, self.manifest["epsilon"], threads)
        return certify_run(self.folder, self.subject, options)

    def report(self, *, out: str | Path | None = None, threads: int | None = None) -> Path:
        """Write report.html, report.md and summary.json, into the run's own folder by default."""
        from fairbits.report import compute_report, write_report

        data = compute_report(self, subject=self.subject, threads=threads)
        return write_report(data, self.folder if out is None else Path(out))


def open_run(folder: str | Path, *, subject: Subject | None = None, **grants: Unpack[GrantOptions]) -> AuditRun:
    """The run in a folder, with its subject: ``debug()``, ``repair()``, ``report()``, ``cases()``, ``worst()``.

    ``grants`` are what the subject's files may do: see :func:`~fairbits.load_subject`.
    """
    return AuditRun.open(folder, subject=subject, **grants)
