"""What can be asked about the people of a table without a search: bits, groups, indirect bits, certificates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairbits.audit.subject import AuditedSubject

if TYPE_CHECKING:
    from fairbits.certify import Certificate
    from fairbits.measure import GroupTable, Measurement, Progress
    from fairbits.proxies import ProxyStudy


class TableAudit(AuditedSubject):
    """The part of :class:`~fairbits.Audit` that needs no search."""

    def measure(
        self,
        *,
        epsilon: float | None = None,
        partition: str = "constrained",
        threads: int | None = None,
        seed: int = 0,
        repeats: int | None = None,
        progress: Progress | None = None,
    ) -> Measurement:
        """Measure the bits of everybody in the table.

        Some rows are asked twice first: where the answers vary, ``Measurement.noise`` says by how much, and how many
        bits that makes by itself.

        Parameters
        ----------
        epsilon
            Tolerance between scores that count as the same; None takes 0.025, or 2.5 % of a regression's range.
        partition
            How scores become classes: "constrained" (fewest classes) or "grid" (fixed bins).
        threads
            Number of threads; None means all cores.
        seed
            Of the bootstrap intervals; figures do not depend on it.
        repeats
            Take the mean of so many answers of the model as a score; None asks once.
        progress
            Called with how many people are done, and how many there are.

        Returns
        -------
        Measurement
            Figures of everybody, with ``summary()``, ``worst()``, ``to_frame()``.

        Raises
        ------
        FairbitsError
            If the model fails, or gives scores that are not finite.
        """
        from fairbits.measure import evaluator_of, measure_table, noise_of

        subject = self._answering(repeats)
        evaluator = evaluator_of(subject, epsilon=epsilon, partition=partition, threads=threads)
        noise = noise_of(subject, evaluator)
        return measure_table(evaluator, subject.table, np.random.default_rng(seed), noise=noise, progress=progress)

    def groups(self, *, seed: int = 0) -> tuple[GroupTable, ...]:
        """Counts, base rates, selection rates, impact ratios and errors by protected attribute and intersection.

        Parameters
        ----------
        seed
            Only moves intervals of means, and the sample of a table of more than 200,000 rows.

        Returns
        -------
        tuple of GroupTable
            Also for protected attributes that the model does not take.
        """
        from fairbits.measure import subject_groups
        from fairbits.randomness import generator

        return subject_groups(self.subject, generator(seed, "groups"))

    def proxies(
        self,
        *,
        justified: Iterable[str] | None = None,
        by: str | None = None,
        seed: int = 0,
        out: str | Path | None = None,
        data_source: str | None = None,
        distributed: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> ProxyStudy:
        """What reaches the score without the protected columns: indirect bits, through what, for whom, over time.

        Parameters
        ----------
        justified
            Attributes that may decide; by default those that the subject names.
        by
            A column of periods, such as a month.
        seed
            Same seed, same figures.
        out
            A folder to write proxies.json to.
        data_source, distributed
            For tables to file: where the data come from, and since when the tool is in use.
        progress
            Progress callback, called with what is being done.

        Returns
        -------
        ProxyStudy
            ``document()`` is the content of proxies.json.

        Raises
        ------
        SchemaError
            Where nothing is protected, or a justified attribute is protected or not there.
        """
        from fairbits.audit.study import write_study
        from fairbits.proxies import study_subject

        chosen = (justified,) if isinstance(justified, str) else None if justified is None else tuple(justified)
        found = study_subject(
            self.subject,
            justified=chosen,
            by=by,
            seed=seed,
            data_source=data_source,
            distributed=distributed,
            progress=progress,
        )
        if out is not None:
            Path(out).mkdir(parents=True, exist_ok=True)
            write_study(found, Path(out), self.subject)
        return found

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
        """What can be said about everybody: exact, proved over sets of people, or statistical.

        Parameters
        ----------
        budget
            About how long in all, as "30s" or in seconds.
        changes
            How far from real rows the statement about near people goes.
        k
            Prove at most so many classes; None asks for the largest k, where it can be found.
        seed
            Of the sample.
        epsilon, threads
            As for :meth:`measure`.
        rates
            Also bound how often each group is decided for.
        progress
            Progress callback, called with what is being done.
        stop
            Gives whether to end early; what is certain by then is said.

        Returns
        -------
        Certificate
            ``statements`` from the strongest to the weakest, and ``notes`` on what could not be proved.
        """
        from fairbits.certify import CertifyOptions, certify_subject
        from fairbits.search import seconds_of

        seconds = seconds_of(budget) if isinstance(budget, str) else budget
        options = CertifyOptions(
            seconds=seconds, changes=changes, k=k, seed=seed, epsilon=epsilon, threads=threads, rates=rates
        )
        quiet: dict[str, Any] = {"stop": stop, "watch": progress}
        return certify_subject(
            self.subject, options, **{name: each for name, each in quiet.items() if each is not None}
        )
