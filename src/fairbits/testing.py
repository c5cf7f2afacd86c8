"""Does my own model or strategy keep the rules? Checks for whoever extends fairbits, to be called from their tests.

Each check runs the real thing and raises :class:`ConformanceError` with one sentence at the first rule that is broken.

>>> import numpy as np, fairbits
>>> from fairbits.testing import check_model
>>> schema = fairbits.Schema((fairbits.Category(name="sex", labels=("F", "M"), protected=True),
...                           fairbits.Integer(name="age", low=18, high=90)), target="hired", classes=("no", "yes"))
>>> def model(rows):
...     return 0.2 + 0.005 * rows["age"]
>>> check_model(model, schema, [[0, 30], [1, 60]])
('shape', 'range', 'input', 'repeat', 'batch', 'twins')
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from fairbits.domain import Encoding, Schema
    from fairbits.search import Strategy
    from fairbits.store import Run
    from fairbits.subject import Subject

__all__ = ["ConformanceError", "check_model", "check_strategy", "small_subject"]

#: Scores that should be equal may differ by float32 rounding.
TOLERANCE = 1e-5
#: The share of a finite difference by which a slope may miss it, in the median over people and inputs.
SLOPE_TOLERANCE = 0.05


class ConformanceError(AssertionError):
    """A rule that the object under test does not keep: the sentence says which, and with what values."""


def check_model(
    model: Any,
    schema: Schema,
    rows: npt.ArrayLike,
    *,
    encoding: Encoding | None = None,
) -> tuple[str, ...]:
    """Check that a model can be measured and searched.

    Parameters
    ----------
    model
        Anything that ``fairbits.Audit`` takes: an object with ``scores`` or ``predict_proba``, a function, a network.
    schema
        What its people are made of.
    rows
        Some people as codes, one column for each attribute of the schema.
    encoding
        How codes become the model's inputs, where that cannot be guessed.

    Returns
    -------
    tuple of str
        The checks that were made: those on gradients, classes and interventions only where the model offers them.

    Raises
    ------
    ConformanceError
        At the first rule that is broken.
    FairbitsError
        If the model does not fit the schema at all.
    """
    from fairbits.domain import Table
    from fairbits.measure import Evaluator
    from fairbits.models import HasClassScores, HasGradients, HasInterventions
    from fairbits.subject import make_subject

    people = np.asarray(rows, dtype=np.float64)
    subject = make_subject("model under test", model, schema, Table(people), encoding=encoding)
    evaluator = Evaluator(subject.model, subject.schema, encoding=subject.encoding, threads=1)
    inputs = subject.encoding.encode(people)
    done = [*_scores(subject, inputs)]
    twins = evaluator.scores(people)
    for number, person in enumerate(people):
        alone = np.asarray(subject.model.scores(subject.encoding.encode(evaluator.twins.expand(person[None])[0])))
        same = np.allclose(twins[number], alone, atol=TOLERANCE)
        _expect(same, "twins", f"the twins of row {number + 1} score otherwise when they are asked about alone")
    done.append("twins")
    if isinstance(subject.model, HasClassScores) and len(subject.schema.classes) > 2:
        _classes(subject, inputs)
        done.append("classes")
    if isinstance(subject.model, HasGradients):
        _gradients(subject.model, inputs)
        done.append("gradients")
    if isinstance(subject.model, HasInterventions):
        _interventions(subject.model, inputs)
        done.append("interventions")
    return tuple(done)


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
            settings = Settings(Budget(evaluations=count), seed=seed, threads=1, **given).with_strategy(strategy)
            return search_subject(about, settings, Path(place) / name, **more)

        one = searched("one", evaluations)
        asked = _summary(one)["evaluations"]
        _expect(asked <= evaluations, "budget", f"{asked} people were asked about, {evaluations} were allowed")
        if strategy.rounds is None:
            _expect(asked == evaluations, "budget", f"it stopped after {asked} of {evaluations} people by itself")
        same = searched("two", evaluations).content(anew=True) == one.content(anew=True)
        _expect(same, "seed", "the same seed found other people; take every random number from the generator given")
        searched("half", evaluations // 2)
        on = searched("half", evaluations, resume=True)
        same = on.content(anew=True) == one.content(anew=True)
        _expect(same, "resume", "a search that went on found other people; keep nothing from one round for the next")
        near = searched("near", evaluations, within=1)
        farthest = _summary(near)["k_max_within_1"]
        _expect(farthest == _summary(near)["k_max"] or not len(near), "within", "people lie further than within = 1")
        _inside(one, about.schema)
    return ("budget", "seed", "resume", "within", "domain")


def small_subject(*, rows: int = 40, seed: int = 0) -> Subject:
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
    from fairbits.domain import Category, Integer, Schema, Table
    from fairbits.models import Network
    from fairbits.subject import make_subject

    schema = Schema(
        (
            Integer(name="age", low=1, high=3, protected=True),
            Integer(name="a", high=9),
            Category(name="sex", labels=("F", "M"), protected=True),
            Integer(name="b", high=9),
            Category(name="c", labels=("x", "y", "z")),
        ),
        target="hired",
        classes=("no", "yes"),
    )
    # relu(2·age + sex + 1.5·(a + b − 18)) is 2·age + sex − 1 steps up for the worst people and 0 for most others.
    first, later = np.array([[2.0], [1.5], [1.0], [1.5], [0.0]]), np.array([[-0.15, 0.15]])
    network = Network.build([first, later], [np.array([-27.0]), np.array([0.7, -0.7])])
    rng = np.random.default_rng(seed)
    limits = ((1, 4), (0, 9), (0, 2), (0, 8), (0, 3))
    people = np.column_stack([rng.integers(*ends, rows) for ends in limits]).astype(np.float64)
    return make_subject("small", network, schema, Table(people, (people[:, 1] > 4).astype(np.float64)))


def _scores(subject: Subject, inputs: npt.NDArray[Any]) -> Iterator[str]:
    """Shape and range of the scores, and that they depend on nothing but the row."""
    model = subject.model
    given = inputs.copy()
    found = np.asarray(model.scores(given))
    _expect(found.shape == (len(inputs),), "shape", f"{len(inputs)} rows have scores of shape {found.shape}")
    _expect(bool(np.isfinite(found).all()), "shape", f"some scores are not finite: {found[~np.isfinite(found)][:3]}")
    yield "shape"
    if not subject.schema.regression:
        inside = (found >= -TOLERANCE).all() and (found <= 1 + TOLERANCE).all()
        _expect(bool(inside), "range", f"scores reach from {found.min():g} to {found.max():g}; they are probabilities")
        yield "range"
    _expect(bool((given == inputs).all()), "input", "the model wrote into the rows that it was given")
    yield "input"
    again = np.asarray(model.scores(inputs.copy()))
    _expect(np.allclose(found, again, atol=TOLERANCE), "repeat", "the same rows got other scores the second time")
    yield "repeat"
    single = np.concatenate([np.asarray(model.scores(inputs[i : i + 1].copy())) for i in range(len(inputs))])
    _expect(np.allclose(found, single, atol=TOLERANCE), "batch", "a row alone scores otherwise than among others")
    yield "batch"


def _classes(subject: Subject, inputs: npt.NDArray[Any]) -> None:
    found = np.asarray(subject.model.class_scores(inputs))  # type: ignore[attr-defined]  # asked for above
    wanted = (len(inputs), len(subject.schema.classes))
    _expect(found.shape == wanted, "classes", f"class scores have shape {found.shape}, not {wanted}")
    _expect(np.allclose(found.sum(axis=1), 1, atol=1e-4), "classes", "class scores do not add up to 1")


def _gradients(model: Any, inputs: npt.NDArray[Any]) -> None:
    """Slopes of the score against differences of it: in the median, because a network may bend anywhere."""
    slopes = np.asarray(model.gradients(inputs, of="score"), dtype=np.float64)
    _expect(slopes.shape == inputs.shape, "gradients", f"slopes have shape {slopes.shape}, not {inputs.shape}")
    misses = []
    for column in range(inputs.shape[1]):
        step = 1e-2 * max(1.0, float(np.abs(inputs[:, column]).max()))
        ahead, behind = inputs.copy(), inputs.copy()
        ahead[:, column] += step
        behind[:, column] -= step
        rise = (np.asarray(model.scores(ahead), np.float64) - np.asarray(model.scores(behind), np.float64)) / (2 * step)
        noise = TOLERANCE / step
        misses.append(np.abs(slopes[:, column] - rise) / (np.abs(rise) + noise))
    middle = float(np.median(np.concatenate(misses)))
    _expect(middle <= SLOPE_TOLERANCE, "gradients", f"slopes miss differences of scores by {middle:.0%} in the median")


def _interventions(model: Any, inputs: npt.NDArray[Any]) -> None:
    from fairbits.models import Do

    before = np.asarray(model.scores(inputs))
    held = model.with_interventions([Do(0, 0, 0.5)])
    _expect(held is not model, "interventions", "with_interventions changed the model itself; give a new one")
    same = np.array_equal(before, np.asarray(model.scores(inputs)))
    _expect(same, "interventions", "holding a neuron in a new model changed the scores of the old one")


def _inside(run: Run, schema: Schema) -> None:
    """Everybody kept lies in the domain."""
    for codes in run.codes():
        for attribute, column in zip(schema.attributes, codes.T, strict=True):
            valid = attribute.valid(column)
            wrong: Sequence[float] = column[~valid][:1].tolist()
            _expect(bool(valid.all()), "domain", f"{attribute.name} is {wrong} for somebody, outside of its domain")


def _summary(run: Run) -> dict[str, Any]:
    return run.summary or {}


def _expect(holds: bool, check: str, words: str) -> None:
    if not holds:
        raise ConformanceError(f"{check}: {words}.")
