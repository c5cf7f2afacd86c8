"""What a model says about frozen people, and the baseline: what an earlier model said about the same ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits._version import __version__
from fairbits.domain import MAX_ROWS, rule_words
from fairbits.errors import OptionError
from fairbits.gates.container import column_of, damaged, read_container, write_container
from fairbits.gates.suite import Suite
from fairbits.measure import decided_rows, evaluator_of
from fairbits.store import timestamp
from fairbits.subject import Subject, decided

BASELINE = "baseline.parquet"
#: Rows that go through a model of three classes or more at a time.
_CHUNK = 16_384
UNDECIDED = -1

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What a model answered about frozen people: one entry for each."""

    k: Integers
    flips: Truths
    scores: Floats
    decisions: Integers
    identity: str
    rule: str = ""

    def __len__(self) -> int:
        return len(self.k)

    @property
    def bits(self) -> Floats:
        """Bits of protected information: log2 k."""
        return np.log2(self.k)

    def same_as(self, other: Answers) -> bool:
        """Whether nobody is answered otherwise: same classes, same flips, same decisions, same scores."""
        names = ("k", "flips", "decisions", "scores")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)


def replay(subject: Subject, suite: Suite, *, threads: int | None = None, progress: Progress | None = None) -> Answers:
    """Ask a model about frozen people and their twins again; nothing is searched, and nothing is drawn."""
    asked = replace(subject, table=suite.table)
    asked = asked if asked.repeats == suite.repeats else asked.with_repeats(suite.repeats)
    evaluator = evaluator_of(asked, epsilon=suite.epsilon, partition=suite.partition, threads=threads)
    found = evaluator.evaluate(suite.table.codes, progress=progress)
    own = decided_rows(asked)
    decisions = np.full(len(suite), UNDECIDED, dtype=np.int64)
    if len(asked.schema.classes) == 2 and own.selected is not None:
        decisions = asked.schema.rule.decide(own.scores)
    elif asked.schema.classes:
        for start in range(0, len(suite), _CHUNK):
            inputs = asked.encoding.encode(suite.table.codes[start : start + _CHUNK])
            chosen = decided(asked.model, inputs, asked.schema)
            if chosen is None:
                break
            decisions[start : start + _CHUNK] = chosen
    flips = np.zeros(len(suite), dtype=np.bool_) if asked.schema.regression else np.asarray(found.flips)
    scores = np.asarray(own.scores, dtype=np.float64)
    rule = rule_words(
        asked.schema.favourable, asked.schema.rule.threshold, probability=asked.schema.score_range is None
    )
    return Answers(found.k.astype(np.int64), flips, scores, decisions, subject.identity.id, rule)


def write_baseline(path: Path, answers: Answers, suite: Suite, subject: Subject) -> None:
    """Write a model's answers, whole, so that later models are compared with it."""
    columns: dict[str, npt.NDArray[Any]] = {
        "k": answers.k,
        "flips": answers.flips,
        "score": answers.scores,
        "decision": answers.decisions,
    }
    about = {
        "suite": suite.id,
        "identity": answers.identity,
        "decision": answers.rule,
        "subject": subject.name,
        "version": __version__,
        "created": timestamp(),
    }
    write_container(path, "baseline", columns, about)


def read_baseline(path: Path, suite: Suite, *, max_rows: int = MAX_ROWS) -> Answers:
    """An earlier model's answers about a suite."""
    table, about = read_container(path, "baseline", max_rows=max_rows)
    stated, identity = about.get("suite"), about.get("identity")
    if not isinstance(stated, str) or not isinstance(identity, str):
        raise damaged(path, "baseline", "its description is not complete")
    if stated != suite.id:
        raise OptionError(
            f"the baseline {str(path)!r} belongs to another suite ({stated[:16]} there, {suite.id} here); name the one "
            f"of this suite, or let --update-baseline write it anew."
        )
    k = column_of(table, "k", path, "baseline", whole=True)
    if len(k) != len(suite) or (len(k) and (k.min() < 1 or k.max() > 2**31)):
        raise damaged(path, "baseline", f"it has {len(k):,} people for {len(suite):,}, or a k below 1")
    return Answers(
        k,
        column_of(table, "flips", path, "baseline", truth=True),
        column_of(table, "score", path, "baseline"),
        column_of(table, "decision", path, "baseline", whole=True),
        identity[:64],
        str(about.get("decision") or "")[:400],
    )
