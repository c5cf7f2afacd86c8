"""One subject, searched by one strategy after the other; finished runs are kept."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairbits.errors import CapabilityError, OptionError, choose_from
from fairbits.measure import evaluator_of
from fairbits.paper.cells import Cells
from fairbits.paper.contest import Contest
from fairbits.paper.diversity import Diversity
from fairbits.paper.pace import pace
from fairbits.search import STRATEGIES, Budget, Problem, Settings, lacking, search_subject
from fairbits.subject import Subject

#: Which figures a finished run keeps on disk; counted up when there are others.
KEPT = 2


class Arena:
    """One subject, ready to be searched by one strategy after the other."""

    def __init__(self, subject: Subject, contest: Contest):
        self.subject, self.contest = subject, contest
        self.evaluator = evaluator_of(
            subject, epsilon=contest.epsilon, partition=contest.partition, threads=contest.threads
        )
        self.problem = Problem(self.evaluator, subject.table)
        self.diversity = Diversity(self.evaluator, self.problem)
        self._warm: set[str] = set()

    def entrants(self, wanted: Sequence[str] | None) -> tuple[list[str], dict[str, str]]:
        """The strategies to run, and what those that are left out would need."""
        left_out: dict[str, str] = {}
        names = list(STRATEGIES) if wanted is None else list(dict.fromkeys(wanted))
        for name in list(names):
            if name not in STRATEGIES:
                raise OptionError(f"strategy {name!r} is not known; {choose_from(name, STRATEGIES)}")
            missing = lacking(STRATEGIES[name], self.problem)
            if missing is not None:
                left_out[name] = missing
                names.remove(name)
        if wanted is not None and left_out:
            name, missing = next(iter(left_out.items()))
            able = ", ".join(n for n, kind in STRATEGIES.items() if lacking(kind, self.problem) is None)
            raise CapabilityError(f"strategy {name!r} needs {missing}, which this model lacks; use some of: {able}.")
        if not names:
            raise OptionError("no strategy was named; give some, separated by commas, or 'all'.")
        return names, left_out

    def run(self, strategy: str, repeat: int, cells: Cells | None = None, *, name: str = "") -> dict[str, Any]:
        """Figures of one run, from disk if it has been made before."""
        settings = self.contest.settings(strategy, repeat)
        if cells is None:
            return self._figures(settings)
        return cells.get(f"{name}{strategy}-{repeat}", self._identity(settings), lambda: self._figures(settings))

    def is_kept(self, strategy: str, repeat: int, cells: Cells, *, name: str = "") -> bool:
        """Whether a run has been made before."""
        identity = self._identity(self.contest.settings(strategy, repeat))
        return cells.ready(f"{name}{strategy}-{repeat}", identity) is not None

    def keep(self, strategy: str, repeat: int, cells: Cells, figures: dict[str, Any], *, name: str = "") -> None:
        """Keep a run that a worker made."""
        identity = self._identity(self.contest.settings(strategy, repeat))
        cells.get(f"{name}{strategy}-{repeat}", identity, lambda: figures)

    def _identity(self, settings: Settings) -> dict[str, Any]:
        identity = {"subject": self.subject.identity.id, "kept": KEPT, **asdict(settings)}
        identity.pop("threads")
        return identity

    def _figures(self, settings: Settings) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="fairbits-") as place:
            if settings.strategy not in self._warm:  # imports and first compilations are no cost of a strategy
                few = Budget(evaluations=2_000, seconds=5.0)
                warm = Settings(budget=few, strategy=settings.strategy, threads=settings.threads)
                search_subject(self.subject, warm, Path(place) / "warm")
                self._warm.add(settings.strategy)
            run = search_subject(self.subject, settings, Path(place) / "run")
            summary = run.summary or {}
            ids, seconds, queries = summary["id_cases"], summary["seconds"], summary["queries"]
            horizon = settings.budget.seconds or seconds
            return {
                **summary,
                "k_max": summary["k_max"] or 0,
                "id_per_second": ids / seconds if seconds else 0.0,
                "id_per_million_queries": 1e6 * ids / queries if queries else 0.0,
                "pace": pace(run, horizon),
                "pace_seconds": horizon,
                **self.diversity.of(run, ids),
            }
