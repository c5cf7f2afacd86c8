"""Does a strategy keep what runs promise?"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.testing.rule import expect
from fairbits.testing.small import small_subject

if TYPE_CHECKING:
    from fairbits.domain import Schema
    from fairbits.search import Strategy
    from fairbits.store import Run
    from fairbits.subject import Subject


def check_strategy(
    strategy: Strategy, *, subject: Subject | None = None, evaluations: int = 2_000, seed: int = 0
) -> tuple[str, ...]:
    """Check that a strategy keeps what runs promise: budgets, repeatability, resuming, and people who can exist.

    Parameters
    ----------
    strategy
        An object of a class made from ``fairbits.search.Strategy``.
    subject
        Where it searches; a small network with known worst people by default.
    evaluations
        How many people it may ask about in each of several short searches.
    seed
        The seed of these searches.

    Returns
    -------
    tuple of str
        The checks that were made.

    Raises
    ------
    ConformanceError
        At the first rule that is broken.
    """
    from fairbits.search import Budget, Settings, search_subject

    about = subject or small_subject()
    with tempfile.TemporaryDirectory() as place:

        def searched(name: str, count: int, **more: Any) -> Run:
            given = {key: more.pop(key) for key in ("within",) if key in more}
            settings = Settings(budget=Budget(evaluations=count), seed=seed, threads=1, **given).with_strategy(strategy)
            return search_subject(about, settings, Path(place) / name, **more)

        one = searched("one", evaluations)
        asked = _summary(one)["evaluations"]
        expect(asked <= evaluations, "budget", f"{asked} people were asked about, {evaluations} were allowed")
        if strategy.rounds is None:
            expect(asked == evaluations, "budget", f"it stopped after {asked} of {evaluations} people by itself")
        same = searched("two", evaluations).content(anew=True) == one.content(anew=True)
        expect(same, "seed", "the same seed found other people; take every random number from the generator given")
        searched("half", evaluations // 2)
        on = searched("half", evaluations, resume=True)
        same = on.content(anew=True) == one.content(anew=True)
        expect(same, "resume", "a search that went on found other people; keep nothing from one round for the next")
        near = searched("near", evaluations, within=1)
        farthest = _summary(near)["k_max_within_1"]
        expect(farthest == _summary(near)["k_max"] or not len(near), "within", "people lie further than within = 1")
        _inside(one, about.schema)
    return ("budget", "seed", "resume", "within", "domain")


def _inside(run: Run, schema: Schema) -> None:
    """Everybody kept lies in the domain."""
    for codes in run.codes():
        for attribute, column in zip(schema.attributes, codes.T, strict=True):
            valid = attribute.valid(column)
            wrong: Sequence[float] = column[~valid][:1].tolist()
            expect(bool(valid.all()), "domain", f"{attribute.name} is {wrong} for somebody, outside of its domain")


def _summary(run: Run) -> dict[str, Any]:
    return run.summary or {}
