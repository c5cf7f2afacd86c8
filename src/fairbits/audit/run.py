"""A run of an audit, so that what follows a search can be asked of the run itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from fairbits.audit.subject_run import SubjectRun
from fairbits.domain import GrantOptions
from fairbits.subject import Subject

if TYPE_CHECKING:
    from fairbits.certify import Certificate
    from fairbits.debug import DebugResult
    from fairbits.repair import Proposer, RepairResult
    from fairbits.search import Budget

#: How long a fresh search attacks a network before and after its repair.
ATTACK = "3s"


class AuditRun(SubjectRun):
    """A :class:`~fairbits.store.Run` whose model is at hand: ``debug()``, ``repair()`` and ``report()``.

    Whatever takes a run takes this one too. The subject is loaded when it is first needed; one that has changed since
    the search is refused. Open one with :func:`fairbits.open_run`, or get it from :meth:`fairbits.Audit.search`.

    Parameters
    ----------
    folder
        Where the run lies.
    record
        The content of run.json.
    """

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
        training_workers: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> DebugResult:
        """Find out which layers, neurons and attributes the bits come from; results are written beside the cases.

        Parameters
        ----------
        samples
            Number of cases to look at.
        all_layers
            Try the neurons of every layer, not only of the suspect one.
        inside
            Look at layers and neurons, which a black box cannot show.
        retrain
            Train models of the same kind again, however long that takes.
        rule
            ``spread``, or ``paper`` for the layers and neurons of the paper's public code.
        trainings
            How many models are trained; 0 for none, None for as many as the table asks for.
        seed
            Same seed, same result.
        threads
            Number of threads; None means all cores.
        workers
            Number of worker processes; None works in this process.
        ray
            A Ray cluster to work on: "local", or its address.
        training_workers
            Number of worker processes that train models; None takes those that do everything else.
        progress
            Progress callback, called with what is being done.

        Returns
        -------
        DebugResult
            Layers, neurons, attribution and origin.

        Raises
        ------
        CapabilityError
            If ``inside`` is asked of a model that does not show its layers.
        """
        from fairbits.debug import debug_run
        from fairbits.scale import ExecutorOptions, train_out_by, try_out_by

        executor_options = ExecutorOptions(workers=workers, ray=ray, threads=threads)
        trainers = executor_options if training_workers is None else ExecutorOptions(workers=training_workers)
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
            stage=progress,
            try_out=try_out_by(executor_options),
            train_out=train_out_by(trainers),
        )

    def repair(
        self,
        *,
        max_accuracy_loss: float = 0.02,
        guarantee: int | None = None,
        choose: str | None = None,
        retrain: bool = True,
        quick: bool = False,
        proposals: Sequence[str | Proposer] = (),
        trials: int = 20,
        write_all: bool = False,
        attack_budget: Budget | str | None = ATTACK,
        seed: int = 0,
        threads: int | None = None,
        workers: int | None = None,
        ray: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> RepairResult:
        """Repair the model by what the search found; figures and the repaired model are written beside the cases.

        Of all candidates that keep the accuracy budget the one with the lowest proved k is taken; where nothing is
        proved, the lowest mean k. They are chosen on rows that none of them has seen.

        Parameters
        ----------
        max_accuracy_loss
            Accuracy that a repair may cost, such as 0.02: with 90 % confidence by the rows that are chosen on, accuracy
            falls by no more than this, and balanced accuracy by no more than twice this.
        guarantee
            Take the cheapest candidate of which it is proved that nobody has more than so many classes.
        choose
            Name of the repair to take instead.
        retrain
            Also try training with fewer bits.
        quick
            Leave out what takes long: distilling, sets of neurons and training.
        proposals
            What is tried beside the standard repairs: names such as "reweigh" ("mitigators" for all of them,
            "settings" for other settings of the same kind of model), or objects of your own with a ``name`` and a
            ``propose(planner)`` that gives :class:`fairbits.repair.Proposal` objects.
        trials
            How many other settings are tried, where "settings" are.
        write_all
            Also write the models that no other candidate beats, each into a folder of its own.
        attack_budget
            Budget of a fresh search against the model before and after, as "3s"; None makes none.
        seed
            Same seed, same result.
        threads
            Number of threads; None means all cores.
        workers
            Number of worker processes; None works in this process.
        ray
            A Ray cluster to work on: "local", or its address.
        progress
            Progress callback, called with what is being done.

        Returns
        -------
        RepairResult
            All repairs with their figures, the chosen one, and the files.

        Raises
        ------
        OptionError
            If there is no such repair, or none is within the accuracy budget.
        """
        from fairbits.audit.attack import repair
        from fairbits.scale import ExecutorOptions

        return repair(
            self,
            subject=self.subject,
            max_accuracy_loss=max_accuracy_loss,
            guarantee=guarantee,
            choose=choose,
            retrain=retrain,
            quick=quick,
            proposals=proposals,
            trials=trials,
            write_all=write_all,
            attack_budget=attack_budget,
            seed=seed,
            threads=threads,
            executor_options=ExecutorOptions(workers=workers, ray=ray, threads=threads),
            watch=progress,
        )

    def certify(
        self,
        *,
        budget: float | str = "30s",
        changes: int = 1,
        k: int | None = None,
        seed: int = 0,
        epsilon: float | None = None,
        threads: int | None = None,
        rates: bool = False,
        progress: Callable[[str], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Certificate:
        """Statements about everybody, of the model and of the repaired one; written to certify.json.

        Parameters
        ----------
        budget
            About how long in all, as "30s" or in seconds.
        changes
            How far from real rows the statement about near people goes.
        k
            Prove at most so many classes; None asks for the largest k, where it can be found.
        seed
            Same seed, same result.
        epsilon
            Tolerance between scores that count as the same; None takes that of the search.
        threads
            Number of threads; None means all cores.
        rates
            Also bound how often each group is decided for.
        progress
            Progress callback, called with what is being done.
        stop
            Gives whether to end early; what is certain by then is said.

        Returns
        -------
        Certificate
            Statements from the strongest to the weakest, and notes on what could not be proved.
        """
        from fairbits.certify import CertifyOptions, certify_run
        from fairbits.search import seconds_of

        seconds = seconds_of(budget) if isinstance(budget, str) else budget
        options = CertifyOptions(
            seconds=seconds,
            changes=changes,
            k=k,
            seed=seed,
            epsilon=epsilon or self.manifest["epsilon"],
            threads=threads,
            rates=rates,
        )
        calls: dict[str, Any] = {"stop": stop, "watch": progress}
        calls = {name: call for name, call in calls.items() if call is not None}
        return certify_run(self.folder, self.subject, options, **calls)

    def report(
        self,
        *,
        out: str | Path | None = None,
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Path:
        """Write report.html, report.md and summary.json.

        Parameters
        ----------
        out
            Folder to write to; by default the run's own.
        threads
            Number of threads; None means all cores.
        progress
            Progress callback, called with rows measured so far and in all.

        Returns
        -------
        Path
            Path of report.html.
        """
        from fairbits.report import compute_report, write_report
        from fairbits.store import read_once

        with read_once():
            data = compute_report(self, subject=self.subject, threads=threads, progress=progress)
            return write_report(data, self.folder if out is None else Path(out))


def open_run(folder: str | Path, *, subject: Subject | None = None, **grants: Unpack[GrantOptions]) -> AuditRun:
    """Open the run in a folder, with its subject: ``debug()``, ``repair()``, ``report()``, ``cases()``, ``worst()``.

    Parameters
    ----------
    folder
        Folder or address of the run.
    subject
        The subject; needed only for a run of a model that lives in Python only.
    **grants
        What files from outside may do, as for :func:`~fairbits.load_subject`.

    Returns
    -------
    AuditRun
        The run.

    Raises
    ------
    OptionError
        If there is no run, or it is damaged.
    """
    return AuditRun.open(folder, subject=subject, **grants)
