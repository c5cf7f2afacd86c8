"""How an audit is to be done: one record for all stages."""

from __future__ import annotations

from dataclasses import dataclass

from fairbits.errors import OptionError, choose_from
from fairbits.scale import ExecutorOptions

#: Stages that can be left out.
SKIPPABLE = ("search", "debug", "repair", "certify", "proxies")


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """How an audit is to be done.

    Parameters
    ----------
    seconds
        For all stages together; None lets every stage take its own default.
    seed
        Of everything that is drawn at random.
    epsilon
        Scores within this count as the same; by the subject's kind where it is None.
    partition
        ``"constrained"`` or ``"grid"``.
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
        What is looked for and lowered: ``"q_inf"`` or ``"q_1"``.
    data_source, distributed
        For tables to file: where the data come from, and when the audit is published.
    """

    seconds: float | None = None
    seed: int = 0
    epsilon: float | None = None
    partition: str = "constrained"
    threads: int | None = None
    skip: frozenset[str] = frozenset()
    workers: int | None = None
    ray: str | None = None
    within: int | None = None
    min_plausibility: float | None = None
    by: str | None = None
    measure: str = "q_inf"
    data_source: str | None = None
    distributed: str | None = None

    @property
    def executor_options(self) -> ExecutorOptions:
        """Workers, cluster and threads of the stages that can use them."""
        return ExecutorOptions(self.workers, self.ray, self.threads)

    def __post_init__(self) -> None:
        strange = next((name for name in self.skip if name not in SKIPPABLE), None)
        if strange is not None:
            raise OptionError(f"stage {strange!r} cannot be skipped; {choose_from(strange, SKIPPABLE)}")
