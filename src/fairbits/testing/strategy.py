"""Does a strategy keep what runs promise? And a small subject whose worst people are known, to try it on."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairbits import domain, models, search, store
from fairbits import subject as subjects
from fairbits.testing.model import expect


def small_subject(*, rows: int = 40, seed: int = 0) -> subjects.Subject:
    """A subject for tests: a small network whose worst people, those with a + b = 18, have six classes.

    Parameters
    ----------
    rows
        How many people its table has, all of them far from the worst.
    seed
        Where they are drawn from.

    Returns
    -------
    Subject
        With protected age (three values) and sex (two).
    """

    schema = domain.Schema(
        (
            domain.Integer(name="age", low=1, high=3, protected=True),
            domain.Integer(name="a", high=9),
            domain.Category(name="sex", labels=("F", "M"), protected=True),
            domain.Integer(name="b", high=9),
            domain.Category(name="c", labels=("x", "y", "z")),
        ),
        target="hired",
        classes=("no", "yes"),
    )
    # relu(2·age + sex + 1.5·(a + b − 18)) is 2·age + sex − 1 steps up for the worst people and 0 for most others.
    first, later = np.array([[2.0], [1.5], [1.0], [1.5], [0.0]]), np.array([[-0.15, 0.15]])
    network = models.Network.build([first, later], [np.array([-27.0]), np.array([0.7, -0.7])])
    rng = np.random.default_rng(seed)
    limits = ((1, 4), (0, 9), (0, 2), (0, 8), (0, 3))
    people = np.column_stack([rng.integers(*ends, rows) for ends in limits]).astype(np.float64)
    return subjects.make_subject("small", network, schema, domain.Table(people, (people[:, 1] > 4).astype(np.float64)))


def check_strategy(
    strategy: search.Strategy, *, subject: subjects.Subject | None = None, evaluations: int = 2_000, seed: int = 0
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

    about = subject or small_subject()
    with tempfile.TemporaryDirectory() as place:

        def searched(name: str, count: int, **more: Any) -> store.Run:
            given = {key: more.pop(key) for key in ("within",) if key in more}
            settings = search.Settings(
                budget=search.Budget(evaluations=count), seed=seed, threads=1, **given
            ).with_strategy(strategy)
            return search.search_subject(about, settings, Path(place) / name, **more)

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


def _inside(run: store.Run, schema: domain.Schema) -> None:
    """Everybody kept lies in the domain."""
    for codes in run.codes():
        for attribute, column in zip(schema.attributes, codes.T, strict=True):
            valid = attribute.valid(column)
            wrong: Sequence[float] = column[~valid][:1].tolist()
            expect(bool(valid.all()), "domain", f"{attribute.name} is {wrong} for somebody, outside of its domain")


def _summary(run: store.Run) -> dict[str, Any]:
    return run.summary or {}
