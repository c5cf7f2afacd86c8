"""What an audit knows about its stages: which is going on, how long each took, and which had no time or failed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from fairbits.audit.shares import Shares
from fairbits.engine import work_time
from fairbits.errors import UsageError

#: Progress callback, called about every stage: its name, what happens ("start", "say", "done", "kept", "skipped",
#: "failed"), and words; and first of all about the plan ("plan", "plan", words).
StageProgress = Callable[[str, str, str], None]

Found = TypeVar("Found")


class LateError(UsageError):
    """A stage has used up its time."""


class StageClock:
    """Times the stages of one audit, reports their progress, and ends those that take too long."""

    def __init__(self, shares: Shares, folder: Path, progress: StageProgress | None = None):
        self.shares, self.folder = shares, folder
        self.progress = progress or _silent
        self.seconds: dict[str, float | None] = {}
        self.faults: dict[str, str] = {}
        self._begin = work_time()

    @property
    def now(self) -> float:
        """Seconds since the audit began; compiling, which is done once per machine, does not count."""
        return work_time() - self._begin

    def timed(self, stage: str, work: Callable[[], Found]) -> Found:
        """Do a stage, and keep how long it took."""
        self.progress(stage, "start", "")
        begin = time.perf_counter()
        found = work()
        self.seconds[stage] = time.perf_counter() - begin
        self.progress(stage, "done", "")
        return found

    def tried(self, stage: str, work: Callable[[], object], *, check: Callable[[], None] | None = None) -> None:
        """Do a stage; where it cannot be done, keep the sentence that says why, and let the audit go on."""
        try:
            if check is not None:
                check()
            self.timed(stage, work)
        except UsageError as error:
            self.faults[stage] = str(error)
            self.seconds[stage] = None
            self.progress(stage, "failed", str(error))

    def omit(self, stage: str, reason: str) -> None:
        """Leave a stage out."""
        self.seconds[stage] = None
        self.progress(stage, reason, "")

    def until(self, stage: str, limit: float) -> Callable[[str], None]:
        """A progress callback for a stage, which ends the stage where its time is over."""

        def say(words: str) -> None:
            if self.now > limit:
                raise LateError(
                    f"it did not fit into the budget of {self.shares.seconds:g} s (it had until {limit:.1f} s and was "
                    f"{words!r} at {self.now:.1f} s); do it with: fairbits {stage} {self.folder}"
                )
            self.progress(stage, "say", words)

        return say


def _silent(_stage: str, _event: str, _words: str) -> None:
    """Default callback: ignore progress."""
