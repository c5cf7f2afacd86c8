"""A model of which nothing is known but what it answers: rows in, raw outputs out, asked in batches.

A black box takes codes, and whatever turns them into what the model was trained on (a data frame of labels, JSON
records) belongs to its ``ask`` function. So ``Model.scores(inputs)`` stays as it is, with the identity as encoding.
What the outputs mean is no matter of whoever asks: :class:`Reading` says it, and ``outputs.py`` settles the reading.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, DecisionRule, Integers
from fairbits.errors import CapabilityError, ModelError, OptionError, foreign
from fairbits.functions import expit, softmax
from fairbits.models.base import Array, HasClassScores, HasFreshScores, Model, Wrapper, checked_rows
from fairbits.models.options import BATCH

Ask = Callable[[Codes], Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """From what a model puts out, one number per row or one column per output, to the score of the favourable class.

    ``favourable`` is its column. ``reverse`` says that a single number speaks of the other class, ``logits`` that
    outputs are log-odds. A score and that of the other class add up to ``whole``: 1 for probabilities, twice the
    threshold on a scale of the model's own (points, hazards), so that the threshold is the same for both. ``rule``
    keeps a float64 score on its side of the threshold when it is rounded. ``classes`` are the columns of the schema's
    classes, where there are three or more and each has one.
    """

    favourable: int | None = None
    reverse: bool = False
    logits: bool = False
    whole: float = 1.0
    rule: DecisionRule | None = None
    classes: tuple[int, ...] = ()

    def score(self, answer: npt.NDArray[np.float64], name: str) -> Array:
        """The favourable score of each row, rounded to float32 once, at the end."""
        table = self.table(answer)
        if table.ndim == 1:
            found = self.whole - table if self.reverse else table
        else:
            chosen = 1 if self.favourable is None and table.shape[1] == 2 else self.favourable
            if chosen is None or not 0 <= chosen < table.shape[1]:
                raise ModelError(
                    f"{name} answers {table.shape[1]} columns, and the favourable one ({self.favourable}) is not among "
                    f"them; name the target's classes in the order of the outputs."
                )
            found = table[:, chosen]
        return found.astype(np.float32) if self.rule is None else self.rule.rounded(found)

    def table(self, answer: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The outputs as they are meant: logits as probabilities, of one class each or of all along the rows."""
        if not self.logits:
            return answer
        return expit(answer) if answer.ndim == 1 or answer.shape[1] == 1 else softmax(answer, axis=1)


class BlackBox:
    """``ask`` gives one number per row, or one column per class; ``reading`` makes the favourable score of it.

    ``own`` says that a single number speaks of the favourable class, as that of a function or a service does, and
    not of the second one. ``outputs`` is how many numbers a row was last answered with, None before the first question.
    It has ``class_scores`` where the reading knows a column for each of three or more classes.
    """

    _dtype: npt.DTypeLike | None = np.float64

    def __init__(
        self,
        ask: Ask,
        inputs: int,
        *,
        name: str,
        batch: int = BATCH,
        reading: Reading | None = None,
        own: bool = False,
        outputs: int | None = None,
    ):
        self._ask, self._batch = ask, batch
        self.inputs, self.outputs, self.name, self.own = inputs, outputs, name, own
        self._read(reading or Reading())

    def read_as(self, reading: Reading) -> BlackBox:
        other = copy.copy(self)
        other._read(reading)
        return other

    def _read(self, reading: Reading) -> None:
        self.reading = reading
        self.__dict__.pop("class_scores", None)
        if reading.classes:
            self.class_scores = self._class_scores  # a protocol is met by what an object has

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The favourable-class probability (or the predicted value) of each row of codes."""
        found = [self.reading.score(answer, self.name) for answer in self.answers(inputs)]
        return np.concatenate(found) if found else np.empty(0, np.float32)

    def answers(self, inputs: npt.ArrayLike) -> Iterator[npt.NDArray[np.float64]]:
        """The raw outputs, batch by batch: (n,) where the model gives one number, else (n, outputs)."""
        rows = checked_rows(inputs, self.inputs, self.name, self._dtype)
        for start in range(0, len(rows), self._batch):
            piece = rows[start : start + self._batch]
            answer = numbers_in(self._answer(piece.copy()), len(piece), self.name)  # foreign code may write into it
            self.outputs = 1 if answer.ndim == 1 else answer.shape[1]
            yield answer

    def _class_scores(self, inputs: npt.ArrayLike) -> Array:
        columns = list(self.reading.classes)
        pieces = [np.empty((0, len(columns)), np.float32)]
        for answer in self.answers(inputs):
            table = self.reading.table(answer)
            if table.ndim == 1 or table.shape[1] <= max(columns):
                raise ModelError(
                    f"{self.name} answers {self.outputs} columns, but the target has {len(columns)} classes; "
                    f"it must give one column for each."
                )
            chosen, rule = table[:, columns], self.reading.rule
            pieces.append(chosen.astype(np.float32) if rule is None else rule.rounded_table(chosen))
        return np.concatenate(pieces)

    def _answer(self, rows: Codes) -> Any:
        with foreign(f"{self.name} failed on {len(rows):,} rows"):
            return self._ask(rows)


class ForeignModel(BlackBox, Wrapper):
    """A model of somebody else's making that speaks our protocol: believed only in what it can do.

    Its attributes may look like ours and mean something else (``classes``, ``favourable``, ``scores``). So it is
    wrapped once, when it comes in, with what it can do. Every array that it gets is a copy,
    and so is every array that is taken from it: it can neither write into ours nor change an answer afterwards.
    """

    _dtype = None  # rows in the type that they have

    def __init__(self, model: Any, reading: Reading | None = None):
        self.original = model
        super().__init__(model.scores, int(model.inputs), name=f"the model {type(model).__name__!r}", own=True)
        self.reading = reading or Reading()
        for name in ("gradients", "class_scores", "activations", "layer_gradients", "with_interventions", "save"):
            if callable(attribute(model, name)):
                setattr(self, name, self._foreign_classes if name == "class_scores" else partial(self._call, name))

    def __reduce__(self) -> tuple[Any, ...]:
        return ForeignModel, (self.original, self.reading)

    def read_as(self, reading: Reading) -> BlackBox:
        """The same model; where it speaks of the other class, no more than its scores can be turned round."""
        if reading.reverse:
            return BlackBox(self._ask, self.inputs, name=self.name, reading=reading, own=True)
        return ForeignModel(self.original, reading)

    def _answer(self, rows: Codes) -> Any:
        return self._call("scores", rows)

    def _foreign_classes(self, inputs: npt.ArrayLike) -> Array:
        found = numbers_in(self._call("class_scores", np.array(inputs)), len(np.asarray(inputs)), self.name)
        return found.reshape(len(found), -1).astype(np.float32)

    def _call(self, method: str, *given: Any, **named: Any) -> Any:
        if named.get("of") == "margin":  # a model with one kind of slope need not know the word
            named = {}
        with foreign(f"{self.name} failed in {method}()"):
            found = getattr(self.original, method)(*map(_copied, given), **named)
        return wrap_foreign(found) if method == "with_interventions" else _copied(found)


def _copied(found: Any) -> Any:
    """A copy of an array, or of each of several; anything else as it is."""
    if isinstance(found, np.ndarray):
        return found.copy()
    arrays = isinstance(found, tuple | list) and any(isinstance(one, np.ndarray) for one in found)
    return tuple(map(_copied, found)) if arrays else found


def is_model(found: Any) -> bool:
    """Whether an object speaks our protocol: ``scores`` is a method, ``inputs`` a whole number."""
    width, scores = attribute(found, "inputs"), attribute(found, "scores")
    return callable(scores) and isinstance(width, int | np.integer) and not isinstance(width, bool)


def attribute(found: Any, name: str) -> Any:
    """An attribute of a foreign object; None where it has none, or raises an error instead of giving it."""
    try:
        return getattr(found, name, None)
    except Exception:  # noqa: BLE001 - a property is foreign code, and an attribute that fails is one that is not there
        return None


def homes_of(model: Any) -> set[str]:
    """The packages that an object's class and the classes above it come from."""
    return {home.__module__.partition(".")[0] for home in type(model).__mro__}


def wrap_foreign(model: Any) -> Model:
    """The model as one of our own types: itself, or behind a wrapper."""
    if "fairbits" in homes_of(model):
        return model
    if not is_model(model):
        raise ModelError(
            f"a {type(model).__name__!r} is no model: `scores` must be a method and `inputs` the number of inputs; "
            f"hand it over as a function, or with predict_proba or predict."
        )
    return ForeignModel(model)


def fresh_scores(model: Model, inputs: npt.ArrayLike) -> Array:
    """Scores of rows, asked anew even where the model remembers its answers."""
    return model.fresh_scores(inputs) if isinstance(model, HasFreshScores) else model.scores(inputs)


def answers_vary(model: Model, inputs: npt.ArrayLike) -> bool:
    """Whether a model gives the same rows other scores when it is asked again."""
    rows = np.asarray(inputs)
    return len(rows) > 0 and not np.array_equal(fresh_scores(model, rows), fresh_scores(model, rows))


class Repeated(Wrapper):
    """A model whose every score is the mean of several answers; otherwise it can do what the original can."""

    def __init__(self, original: Model, repeats: int):
        if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
            raise OptionError(f"repeats is {repeats!r}; it is the number of answers per twin, 1 or more.")
        self.original, self.inputs, self.repeats = original, original.inputs, repeats
        if isinstance(original, HasClassScores):
            self.class_scores = self._class_scores
        for name in ("gradients", "activations", "layer_gradients"):
            if hasattr(original, name):
                setattr(self, name, getattr(original, name))

    def __reduce__(self) -> tuple[Any, ...]:
        return Repeated, (self.original, self.repeats)

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The mean of several answers about each encoded row, asked anew; nothing is remembered."""
        return self._mean([fresh_scores(self.original, inputs) for _ in range(self.repeats)])

    fresh_scores = scores

    def _class_scores(self, inputs: npt.ArrayLike) -> Array:
        return self._mean([self.original.class_scores(inputs) for _ in range(self.repeats)])

    @staticmethod
    def _mean(answers: list[Array]) -> Array:
        return np.mean(np.asarray(answers, dtype=np.float64), axis=0).astype(np.float32)


class Recorded:
    """Stands where the model of a subject with scores only would be, and says what cannot be asked of it."""

    def __init__(self, inputs: int):
        self.inputs = inputs

    def scores(self, inputs: npt.ArrayLike) -> NoReturn:  # noqa: ARG002 - there is no model to give them to
        """Refuse: only the scores in the table are known."""
        raise no_model()


def no_model() -> CapabilityError:
    """What to say where a model is needed and only its scores are there."""
    return CapabilityError(
        "the table has the scores of its rows only ([table] score), so nobody else can be scored; use "
        "`fairbits measure` or `fairbits proxies`, or name the model with path under [model]."
    )


def numbers_in(answer: Any, rows: int, name: str) -> npt.NDArray[np.float64]:
    """An answer as one number per row, or as one column per class.

    It is a copy, because a model may answer with the same buffer every time.
    """
    try:
        table: npt.NDArray[np.float64] = np.array(answer, dtype=np.float64)
    except (TypeError, ValueError):
        some = answer.ravel()[:1].tolist() if isinstance(answer, np.ndarray) else [answer]
        raise ModelError(f"{name} answered {str(some[0])[:60]!r} where a number was expected.") from None
    if table.shape[:1] != (rows,) or table.ndim > 2:
        raise ModelError(f"{name} was asked about {rows:,} rows and answered with an array of shape {table.shape}.")
    return table[:, 0] if table.shape == (rows, 1) else table


class TwinScores:
    """Scores by person and combination of protected values; a row of inputs is their codes.

    ``pairs`` are the combinations that were scored, in order, (n, 1 + protected); ``pair`` says which of them each of
    the scores belongs to. Repeated scores of one are averaged.
    """

    def __init__(self, pairs: Integers, pair: Integers, scores: npt.NDArray[np.float64], *, sizes: tuple[int, ...]):
        self.inputs = len(sizes)
        self.pairs, self.pair, self.answers = pairs, pair, scores
        self.counts = np.bincount(pair, minlength=len(pairs))
        self.means = np.bincount(pair, weights=scores, minlength=len(pairs)) / self.counts
        self.combinations = int(np.prod(sizes[1:]))
        self._strides = np.cumprod((1, *sizes[:0:-1]), dtype=np.int64)[::-1]
        self._keys = pairs @ self._strides  # in order, because the pairs are

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The mean score of each row; of one that the table lacks, the mean of all (see ``known``)."""
        place, known = self._places(inputs)
        return np.where(known, self.means[place], self.means.mean()).astype(np.float32)

    def known(self, inputs: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        return self._places(inputs)[1]

    def _places(self, inputs: npt.ArrayLike) -> tuple[Integers, npt.NDArray[np.bool_]]:
        rows: Codes = checked_rows(inputs, self.inputs, "a table of twins", np.float64)
        keys = rows.astype(np.int64) @ self._strides
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return place, self._keys[place] == keys
