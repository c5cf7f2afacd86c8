"""How an audit is to be done: one record for all stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from fairbits.errors import OptionError, choose_from
from fairbits.scale import ExecutorOptions
from fairbits.search import kept_settings

#: Stages that can be left out.
SKIPPABLE = ("search", "debug", "repair", "certify", "proxies")
#: Options that a run keeps: one that goes on has its own, and refuses others.
KEPT = ("seed", "epsilon", "partition", "measure", "within", "min_plausibility", "repeats")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """How an audit is to be done. What is None is the run's own where one goes on, and the default elsewhere.

    Parameters
    ----------
    seconds
        For all stages together; None lets every stage take its own default.
    seed
        Of everything that is drawn at random; 0 by default.
    epsilon
        Scores within this count as the same; by the subject's kind where it is None.
    partition
        ``"constrained"`` (the default) or ``"grid"``.
    threads
        How many; None: all cores.
    skip
        Names of stages that are left out.
    workers, ray
        Processes on this machine, or the address of a Ray cluster, for search, debug and repair.
    within
        Search only people at most so many changed attributes away from a row.
    min_plausibility
        Search only people who are at least as ordinary as this percentage of real rows.
    by
        A column of periods: indirect bits are also given for each of them.
    measure
        What is looked for and lowered: ``"q_inf"`` (the default) or ``"q_1"``.
    repeats
        Answers of the model whose mean is a score; None: as the subject has it.
    data_source, distributed
        For tables to file: where the data come from, and when the audit is published.
    force
        Replace a run that is in the folder.
    """

    seconds: float | None = None
    seed: int | None = None
    epsilon: float | None = None
    partition: str | None = None
    threads: int | None = None
    skip: frozenset[str] = frozenset()
    workers: int | None = None
    ray: str | None = None
    within: int | None = None
    min_plausibility: float | None = None
    by: str | None = None
    measure: str | None = None
    repeats: int | None = None
    data_source: str | None = None
    distributed: str | None = None
    force: bool = False

    def settled(self, manifest: Mapping[str, Any] | None = None) -> SettledOptions:
        """The same options with every value that the stages need.

        Parameters
        ----------
        manifest
            What a run that goes on was made with; None for a new one.

        Returns
        -------
        SettledOptions
            Values of the run where one goes on, those given here otherwise, and defaults for the rest.

        Raises
        ------
        OptionError
            If something else is asked for than what the run has; the sentence names it.
        """
        asked = {name: getattr(self, name) for name in KEPT}
        if manifest is not None:
            kept_settings(manifest, asked)
            asked = {name: manifest.get(name) if value is None else value for name, value in asked.items()}
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in KEPT}
        return SettledOptions(**given, **{name: value for name, value in asked.items() if value is not None})

    @property
    def executor_options(self) -> ExecutorOptions:
        """Workers, cluster and threads of the stages that can use them."""
        return ExecutorOptions(workers=self.workers, ray=self.ray, threads=self.threads)

    def __post_init__(self) -> None:
        strange = next((name for name in self.skip if name not in SKIPPABLE), None)
        if strange is not None:
            raise OptionError(f"stage {strange!r} cannot be skipped; {choose_from(strange, SKIPPABLE)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledOptions(AuditOptions):
    """Options of an audit in progress: what stages need is there. Made by :meth:`AuditOptions.settled`."""

    seed: int = 0
    partition: str = "constrained"
    measure: str = "q_inf"
