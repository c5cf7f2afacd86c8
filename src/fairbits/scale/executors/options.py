"""Who does the work: this process, some processes of this machine, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairbits.errors import OptionError
from fairbits.scale.executors.local import InProcess
from fairbits.scale.tasks import Executor, Job


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """Who does the work: this process, worker processes, or a Ray cluster.

    Parameters
    ----------
    workers
        Number of worker processes; one, or none given, is this process.
    ray
        "local", or the address of a Ray cluster.
    threads
        Threads of each worker. By default one for every worker, and all cores where there is only this process.
    """

    workers: int | None = None
    ray: str | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise OptionError(f"workers is {self.workers}; give at least one, or leave it out.")
        if self.ray is not None and not self.ray.strip():
            raise OptionError("the address of the Ray cluster is empty; write e.g. --ray local, or --ray auto.")

    @property
    def many(self) -> bool:
        """Whether somebody asked for workers."""
        return self.workers is not None or self.ray is not None

    @property
    def elsewhere(self) -> bool:
        """Whether the work is done in other processes than this one."""
        return self.ray is not None or (self.workers or 1) > 1

    @property
    def each(self) -> int | None:
        """The threads of one worker; None: all cores."""
        return 1 if self.threads is None and self.many else self.threads

    def manifest(self) -> dict[str, Any]:
        """What a run keeps about them; it may differ when the run goes on."""
        return {"workers": self.workers, "ray": self.ray}


def open_executor(
    executor_options: ExecutorOptions,
    job: Job,
    *,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[Any], None] | None = None,
) -> Executor:
    """An executor for a job, to be used as a context manager."""
    if executor_options.ray is not None:
        from fairbits.scale.executors.ray import Ray

        return Ray(
            job, address=executor_options.ray, workers=executor_options.workers, threads=executor_options.each or 1
        )
    if executor_options.workers is not None and executor_options.elsewhere:
        from fairbits.scale.executors.processes import Processes

        return Processes(job, workers=executor_options.workers, threads=executor_options.each or 1)
    return InProcess(job, stop=stop or (lambda: False), progress=progress or (lambda _: None))
