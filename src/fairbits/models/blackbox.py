"""A model of which nothing is known but what it answers: rows in, scores out, asked in batches.

A black box eats codes, and whatever turns them into what the model was trained on (a data frame of labels, JSON
records) belongs to its ``ask`` function. So ``Model.scores(inputs)`` stays as it is, with the identity as encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Schema
from fairbits.domain.attribute import Codes
from fairbits.errors import FairbitsError, ModelError
from fairbits.models.options import BATCH
from fairbits.models.protocols import Array

Ask = Callable[[Codes], Any]


class BlackBox:
    """``ask`` gives one score per row, or one column per class, of which ``favourable`` is taken."""

    def __init__(self, ask: Ask, inputs: int, *, favourable: int | None = None, batch: int = BATCH, name: str):
        self._ask = ask
        self.inputs = inputs
        self._favourable = favourable
        self._batch = batch
        self.name = name

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The favourable-class probability (or the predicted value) of each row of codes."""
        rows = np.asarray(inputs, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.inputs:
            raise ModelError(f"{self.name} takes rows of {self.inputs} values, but got an array of shape {rows.shape}.")
        scores = np.empty(len(rows), dtype=np.float32)
        for start in range(0, len(rows), self._batch):
            piece = rows[start : start + self._batch]
            scores[start : start + len(piece)] = one_score(self._answer(piece), len(piece), self._favourable, self.name)
        return scores

    def table(self, inputs: npt.ArrayLike) -> Array:
        """All columns that it answers."""
        rows = np.asarray(inputs, dtype=np.float64)
        pieces = [self._answer(rows[start : start + self._batch]) for start in range(0, len(rows), self._batch)]
        return np.concatenate([np.asarray(piece, dtype=np.float32) for piece in pieces])

    def _answer(self, rows: Codes) -> Any:
        try:
            return self._ask(rows)
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

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The favourable-class probability of each row of codes."""
        return self._box.scores(inputs)

    def class_scores(self, inputs: npt.ArrayLike) -> Array:
        """The probability of every class of each row of codes."""
        return self._box.table(inputs)[:, self._order]


def with_classes(box: BlackBox, schema: Schema, classes: tuple[str, ...] | None) -> BlackBox | ClassBox:
    """The box as one that tells the probabilities of all classes, where its answers are known to hold them."""
    if len(schema.classes) < 3 or (classes is not None and len(classes) != len(schema.classes)):
        return box
    if classes is None or set(classes) != set(schema.classes):
        return ClassBox(box, range(len(schema.classes)))
    return ClassBox(box, [classes.index(name) for name in schema.classes])


def one_score(answer: Any, rows: int, favourable: int | None, name: str) -> Array:
    """The favourable column of whatever came back; a plain list of scores is taken as it is."""
    try:
        table = np.asarray(answer, dtype=np.float32)
    except (TypeError, ValueError):
        some = answer.ravel()[:1].tolist() if isinstance(answer, np.ndarray) else [answer]
        raise ModelError(f"{name} answered {str(some[0])[:60]!r} where a number was expected.") from None
    if table.shape == (rows,):
        return table
    if table.shape == (rows, 1):  # a single output is the probability of the second class
        return 1 - table[:, 0] if favourable == 0 else table[:, 0]
    if table.ndim == 2 and len(table) == rows:
        chosen = 1 if favourable is None and table.shape[1] == 2 else favourable
        if chosen is None or not 0 <= chosen < table.shape[1]:
            raise ModelError(
                f"{name} answers {table.shape[1]} columns, and the favourable one ({favourable}) is not among them; "
                f"name the target's classes in the order of the outputs."
            )
        return table[:, chosen]
    raise ModelError(f"{name} was asked about {rows:,} rows and answered with an array of shape {table.shape}.")


def reason(error: BaseException) -> str:
    """The first line of a foreign complaint, cut to a sentence."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return (text if len(text) <= 240 else text[:237] + "…").rstrip(".") + "."
