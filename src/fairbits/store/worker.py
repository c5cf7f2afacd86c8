"""One thread that writes while the search goes on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

#: Jobs that may wait. One more, and the search waits: memory stays bounded however slow the disk is.
WAITING = 2

Job = Callable[[], None]


class Worker:
    """Does jobs in order. After the first failure the remaining ones are dropped, and ``error`` says why."""

    def __init__(self, *, waiting: int = WAITING):
        self.error: BaseException | None = None
        self._jobs: queue.Queue[Job | None] = queue.Queue(waiting)
        self._thread = threading.Thread(target=self._work, name="fairbits-store", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        """Add a job to the queue; waits while the queue is full."""
        self._jobs.put(job)

    def wait(self) -> None:
        """Wait until every job is done."""
        self._jobs.join()

    def stop(self) -> None:
        """End the thread once its jobs are done."""
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join()

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                if job is None:
                    return
                if self.error is None:
                    job()
            except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that appends
                self.error = error
            finally:
                self._jobs.task_done()
