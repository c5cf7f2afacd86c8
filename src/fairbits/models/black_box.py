"""A model of which nothing is known but what it answers: rows in, scores out, asked in batches.

A black box takes codes, and whatever turns them into what the model was trained on (a data frame of labels, JSON
records) belongs to its ``ask`` function. So ``Model.scores(inputs)`` stays as it is, with the identity as encoding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Schema
from fairbits.errors import FairbitsError, ModelError
from fairbits.functions import expit, softmax
from fairbits.models.base import Array
from fairbits.models.options import BATCH, Output
from fairbits.models.rows import checked_rows

Ask = Callable[[Codes], Any]
#: Where in its source, and when, a compiled library raised an error.
_PLACE = re.compile(r"^\[[\d:]+\] \S+:\d+: ")


@dataclass(frozen=True, slots=True)
class Reading:
    """From what a model answers, one number per row or one column per output, to the score of the favourable class.

    ``favourable`` is its column. ``reverse`` says that a single number speaks of the other class, ``logits`` that
    answers are log-odds. A score and that of the other class add up to ``whole``: 1 for probabilities, twice the
    threshold on a scale of the model's own (points, hazards), so that the threshold is the same for both.
    """

    favourable: int | None = None
    reverse: bool = False
    logits: bool = False
    whole: float = 1.0

    def score(self, answer: npt.NDArray[Any], name: str) -> Array:
        """The favourable score of each row, rounded to float32 once, at the end."""
        table = probabilities(answer) if self.logits else answer
        if table.ndim == 1:
            return (self.whole - table if self.reverse else table).astype(np.float32)
        chosen = 1 if self.favourable is None and table.shape[1] == 2 else self.favourable
        if chosen is None or not 0 <= chosen < table.shape[1]:
            raise ModelError(
                f"{name} answers {table.shape[1]} columns, and the favourable one ({self.favourable}) is not among "
                f"them; name the target's classes in the order of the outputs."
            )
        return table[:, chosen].astype(np.float32)


def whole_of(schema: Schema, output: Output | None) -> float:
    """What the scores of two classes add up to."""
    return 2.0 * (schema.threshold or 0.0) if own_scale(schema, output) else 1.0


def own_scale(schema: Schema, output: Output | None) -> bool:
    """Whether scores that decide between two classes are said to be no probabilities: points, hazards."""
    said = schema.threshold is not None and not 0 < schema.threshold < 1
    return len(schema.classes) == 2 and (output == "value" or (said and output is None))


class BlackBox:
    """``ask`` gives one score per row, or one column per class, of which ``favourable`` is taken.

    ``reverse`` says that a single score speaks of the other one of two classes (default: where ``favourable`` is the
    first, because a single output speaks of the second). ``output`` says that answers are logits. ``outputs`` is how
    many numbers a row was last answered with, None before the first question. ``whole`` is as in :class:`Reading`.
    """

    def __init__(
        self,
        ask: Ask,
        inputs: int,
        *,
        favourable: int | None = None,
        reverse: bool | None = None,
        output: Output | None = None,
        whole: float = 1.0,
        batch: int = BATCH,
        name: str,
    ):
        self._ask = ask
        self.inputs = inputs
        self._batch = batch
        self.name = name
        self.reverse = favourable == 0 if reverse is None else reverse
        self._reading = Reading(favourable, self.reverse, output == "logit", whole)
        self.outputs: int | None = None

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The favourable-class probability (or the predicted value) of each row of codes."""
        rows = checked_rows(inputs, self.inputs, self.name, np.float64)
        scores = np.empty(len(rows), dtype=np.float32)
        for start in range(0, len(rows), self._batch):
            piece = rows[start : start + self._batch]
            answer = numbers_in(self._answer(piece), len(piece), self.name)
            self.outputs = 1 if answer.ndim == 1 else answer.shape[1]
            scores[start : start + len(piece)] = self._reading.score(answer, self.name)
        return scores

    def table(self, inputs: npt.ArrayLike) -> Array:
        """All columns of the answer."""
        rows = np.asarray(inputs, dtype=np.float64)
        pieces = []
        for start in range(0, max(len(rows), 1), self._batch):
            piece = rows[start : start + self._batch]
            pieces.append(all_scores(self._answer(piece), len(piece), self.name))
        found = np.concatenate(pieces)
        return (probabilities(found) if self._reading.logits else found).astype(np.float32)

    def _answer(self, rows: Codes) -> Any:
        try:
            return self._ask(rows.copy())  # foreign code may write into what it gets
        except FairbitsError:
            raise
        except (Exception, SystemExit) as error:
            raise ModelError(f"{self.name} failed on {len(rows):,} rows: {reason(error)}") from error


class ClassBox:
    """A black box that answers one column per class, which ``order`` puts into the schema's order."""

    def __init__(self, box: BlackBox, order: Sequence[int]):
        self._box = box
        self._order = list(order)
        self.inputs = box.inputs
        self.name = box.name
        self.reverse = box.reverse

    @property
    def outputs(self) -> int | None:
        """How many numbers a row was last answered with."""
        return self._box.outputs

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The favourable-class probability of each row of codes."""
        return self._box.scores(inputs)

    def class_scores(self, inputs: npt.ArrayLike) -> Array:
        """The probability of every class of each row of codes."""
        table = self._box.table(inputs)
        if table.shape[1] <= max(self._order):
            raise ModelError(
                f"{self.name} answers {table.shape[1]} columns, but the target has {len(self._order)} classes; "
                f"it must give one column for each."
            )
        return table[:, self._order]


def with_classes(box: BlackBox, schema: Schema, classes: tuple[str, ...] | None) -> BlackBox | ClassBox:
    """The box as one that gives the probabilities of all classes, where its answers are known to hold them."""
    if len(schema.classes) < 3 or (classes is not None and len(classes) != len(schema.classes)):
        return box
    if classes is None or set(classes) != set(schema.classes):
        return ClassBox(box, range(len(schema.classes)))
    return ClassBox(box, [classes.index(name) for name in schema.classes])


def all_scores(answer: Any, rows: int, name: str) -> npt.NDArray[np.float64]:
    """An answer as a table of our own with a row per person; a plain list is one column."""
    table = numbers_in(answer, rows, name)
    return table[:, None] if table.ndim == 1 else table


def numbers_in(answer: Any, rows: int, name: str) -> npt.NDArray[np.float64]:
    """An answer as one number per row, or as one column per class.

    It is a copy, because a model may answer with the same buffer every time.
    """
    try:
        table: npt.NDArray[np.float64] = np.array(answer, dtype=np.float64)
    except (TypeError, ValueError):
        some = answer.ravel()[:1].tolist() if isinstance(answer, np.ndarray) else [answer]
        raise ModelError(f"{name} answered {str(some[0])[:60]!r} where a number was expected.") from None
    if table.shape == (rows, 1):
        return table[:, 0]
    if table.shape != (rows,) and not (table.ndim == 2 and len(table) == rows):
        raise ModelError(f"{name} was asked about {rows:,} rows and answered with an array of shape {table.shape}.")
    return table


def probabilities(logits: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Probabilities from logits: of one class each, or of all classes along the rows."""
    found = expit(logits) if logits.ndim == 1 or logits.shape[1] == 1 else softmax(logits, axis=1)
    return np.asarray(found, dtype=np.float64)


def reason(error: BaseException) -> str:
    """The line of another library's message that says what is wrong, shortened to a sentence."""
    lines = str(error).strip().splitlines()
    if lines and "TorchScript interpreter" in lines[0]:  # its own traceback comes first
        lines = lines[-1:]
    said = _PLACE.sub("", lines[0]) if lines else ""
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return (text if len(text) <= 240 else text[:237] + "…").rstrip(".") + "."
