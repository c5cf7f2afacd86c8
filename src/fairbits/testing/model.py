"""Can a model be measured and searched? And what a broken rule raises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits import domain, measure, models
from fairbits import subject as subjects


class ConformanceError(AssertionError):
    """A rule that the object under test does not keep: the sentence says which, and with what values."""


def expect(holds: bool, rule: str, words: str) -> None:
    """Raise where a rule is broken.

    Parameters
    ----------
    holds
        Whether it is kept.
    rule
        The name of the rule.
    words
        What was found, without a full stop.

    Raises
    ------
    ConformanceError
        If the rule is not kept.
    """
    if not holds:
        raise ConformanceError(f"{rule}: {words}.")


#: Scores that should be equal may differ by float32 rounding.
TOLERANCE = 1e-5
#: The share of a finite difference by which a slope may miss it, in the median over people and inputs.
SLOPE_TOLERANCE = 0.05


def check_model(
    model: Any,
    schema: domain.Schema,
    rows: npt.ArrayLike,
    *,
    encoding: domain.Encoding | None = None,
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

    people = np.asarray(rows, dtype=np.float64)
    subject = subjects.make_subject("model under test", model, schema, domain.Table(people), encoding=encoding)
    evaluator = measure.Evaluator(subject.model, subject.schema, encoding=subject.encoding, threads=1)
    inputs = subject.encoding.encode(people)
    done = [*score_rules(subject, inputs)]
    twins = evaluator.scores(people)
    for number, person in enumerate(people):
        alone = np.asarray(subject.model.scores(subject.encoding.encode(evaluator.twins.expand(person[None])[0])))
        same = np.allclose(twins[number, : evaluator.twins.m], alone, atol=TOLERANCE)
        expect(same, "twins", f"the twins of row {number + 1} score otherwise when they are asked about alone")
    done.append("twins")
    if isinstance(subject.model, models.HasClassScores) and len(subject.schema.classes) > 2:
        _classes(subject, inputs)
        done.append("classes")
    if isinstance(subject.model, models.HasGradients):
        _gradients(subject.model, inputs)
        done.append("gradients")
    if isinstance(subject.model, models.HasInterventions):
        _interventions(subject.model, inputs)
        done.append("interventions")
    return tuple(done)


def score_rules(subject: subjects.Subject, inputs: npt.NDArray[Any]) -> Iterator[str]:
    """Check the shape and the range of scores, and that they depend on nothing but the row."""
    model = subject.model
    given = inputs.copy()
    found = np.asarray(model.scores(given))
    expect(found.shape == (len(inputs),), "shape", f"{len(inputs)} rows have scores of shape {found.shape}")
    expect(bool(np.isfinite(found).all()), "shape", f"some scores are not finite: {found[~np.isfinite(found)][:3]}")
    yield "shape"
    if not subject.schema.regression:
        inside = (found >= -TOLERANCE).all() and (found <= 1 + TOLERANCE).all()
        expect(bool(inside), "range", f"scores reach from {found.min():g} to {found.max():g}; they are probabilities")
        yield "range"
    expect(bool((given == inputs).all()), "input", "the model wrote into the rows that it was given")
    yield "input"
    again = np.asarray(model.scores(inputs.copy()))
    expect(np.allclose(found, again, atol=TOLERANCE), "repeat", "the same rows got other scores the second time")
    yield "repeat"
    single = np.concatenate([np.asarray(model.scores(inputs[i : i + 1].copy())) for i in range(len(inputs))])
    expect(np.allclose(found, single, atol=TOLERANCE), "batch", "a row alone scores otherwise than among others")
    yield "batch"


def _classes(subject: subjects.Subject, inputs: npt.NDArray[Any]) -> None:
    found = np.asarray(subject.model.class_scores(inputs))  # type: ignore[attr-defined]  # asked for above
    wanted = (len(inputs), len(subject.schema.classes))
    expect(found.shape == wanted, "classes", f"class scores have shape {found.shape}, not {wanted}")
    expect(np.allclose(found.sum(axis=1), 1, atol=1e-4), "classes", "class scores do not add up to 1")


def _gradients(model: Any, inputs: npt.NDArray[Any]) -> None:
    """Slopes of the score against differences of it: in the median, because a network may bend anywhere."""
    slopes = np.asarray(model.gradients(inputs, of="score"), dtype=np.float64)
    expect(slopes.shape == inputs.shape, "gradients", f"slopes have shape {slopes.shape}, not {inputs.shape}")
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
    expect(middle <= SLOPE_TOLERANCE, "gradients", f"slopes miss differences of scores by {middle:.0%} in the median")


def _interventions(model: Any, inputs: npt.NDArray[Any]) -> None:

    before = np.asarray(model.scores(inputs))
    held = model.with_interventions([models.Do(0, 0, 0.5)])
    expect(held is not model, "interventions", "with_interventions changed the model itself; give a new one")
    same = np.array_equal(before, np.asarray(model.scores(inputs)))
    expect(same, "interventions", "holding a neuron in a new model changed the scores of the old one")
