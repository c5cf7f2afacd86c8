"""Who does the work: this process, some processes of this machine, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairbits.options import ExecutorOptions as ExecutorOptions  # noqa: PLC0414 - exported from here, too
from fairbits.scale.executors.local import InProcess
from fairbits.scale.tasks import Executor, Job


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
