"""What a model may be able to do. A stage states what it needs; ``require`` checks it once and says what to do instead.

Models are what users bring, so these are Protocols: anything with the right methods will do.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from fairbits.errors import CapabilityError, MissingDependencyError, ModelError

Array = npt.NDArray[np.float32]
Slope = Literal["score", "margin", "loss"]


@dataclass(frozen=True, slots=True)
class Do:
    """An intervention: the output of one neuron is held at a value.

    Here, as in ``Network.weights``, layers and neurons are positions and count from 0. Everything that people read
    (debug, repair and their files, reports, the explorer) calls the first hidden layer 1: ``Do(0, 3, 0.5)`` holds
    neuron 3 of layer 1.

    Parameters
    ----------
    layer
        Position of the hidden layer, from 0.
    neuron
        Position of the neuron in its layer, from 0.
    value
        The output that the neuron has for everybody, after its activation.
    """

    layer: int
    neuron: int
    value: float


@runtime_checkable
class Model(Protocol):
    """The least that a model under test can do."""

    @property
    def inputs(self) -> int:
        """How many inputs a row has."""

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The favourable-class probability (or the predicted value) of each encoded row, (n,).

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        """


@runtime_checkable
class HasGradients(Protocol):
    """Gradients with respect to the inputs."""

    def gradients(self, inputs: npt.ArrayLike, *, of: Slope = "margin") -> Array:
        """Slope of the score, the logit margin or the loss with respect to the inputs, (n, inputs).

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        of
            "score", "margin" or "loss".
        """


@runtime_checkable
class HasClassScores(Protocol):
    """Probabilities of all classes."""

    def class_scores(self, inputs: npt.ArrayLike) -> Array:
        """The probability of every class of each encoded row, (n, classes), in the order of the schema's classes.

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        """


@runtime_checkable
class HasFreshScores(Protocol):
    """Remembers its answers, and can be asked anew."""

    def fresh_scores(self, inputs: npt.ArrayLike) -> Array:
        """The score of each encoded row, (n,), asked anew: no answer is reused, equal rows are asked separately.

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        """


class SeveralClasses(ABC):
    """Our own models that know how many classes they decide between, and which one they score.

    No Protocol, because foreign objects have attributes of these names that mean other things.
    """

    __slots__ = ()

    favourable: int

    @property
    @abstractmethod
    def classes(self) -> int | None:
        """How many classes it decides between (0 for a regression, None where it is not known)."""

    @abstractmethod
    def with_favourable(self, index: int) -> Self:
        """The same model, scoring another class."""


@runtime_checkable
class HasActivations(Protocol):
    """A look inside: the output of every layer."""

    def activations(self, inputs: npt.ArrayLike) -> tuple[Array, ...]:
        """Outputs of every layer, (n, neurons) each; the last is the output after its head.

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        """


@runtime_checkable
class HasLayerGradients(HasActivations, Protocol):
    """A look inside, and how what is seen there depends on the inputs."""

    def layer_gradients(self, inputs: npt.ArrayLike, layer: int, slopes: Array) -> Array:
        """Slope of Σ slopes · outputs of a layer with respect to the inputs."""


@runtime_checkable
class HasInterventions(Protocol):
    """Surgery that returns a new model."""

    def with_interventions(self, interventions: Sequence[Do]) -> Self:
        """A new model, the same with some neurons held at a value.

        Parameters
        ----------
        interventions
            Layer, neuron and value of each.
        """


@runtime_checkable
class HasTrees(Protocol):
    """A tree ensemble, open to the engine (see ``fairbits.models.trees``)."""

    @property
    def ensemble(self) -> Any:
        """All trees as flat arrays."""

    @property
    def complement(self) -> bool:
        """Whether the score is what the only prediction leaves to the other class."""


@runtime_checkable
class HasTwinScores(Protocol):
    """Scores all twins of a person at once, for less than asking about each of them."""

    @property
    def tau(self) -> float:
        """How far a score may lie from the average over the twins; 0 where all twins score alike."""

    def fits(self, evaluator: Any) -> bool:
        """Whether an evaluator means the same twins."""

    def twin_scores(self, codes: npt.NDArray[np.float64]) -> Array:
        """Scores of every twin of every person."""

    def twin_class_scores(self, codes: npt.NDArray[np.float64]) -> Array:
        """Probabilities of all classes for every twin of every person."""


@runtime_checkable
class CanSave(Protocol):
    """Can be written to a file."""

    def save(self, path: str | Path) -> None:
        """Write the model to a file.

        Parameters
        ----------
        path
            The file.
        """


class Wrapper:
    """Base of our own models that stand around another one, ``original``, and ask it."""

    original: Any


def innermost(model: Any) -> Any:
    """A model without the wrappers around it."""
    return innermost(model.original) if isinstance(model, Wrapper) else model


def kind_of(model: object) -> str:
    """What a model is called in a sentence: the name of its type, or of the type inside its wrappers."""
    return type(innermost(model)).__name__


_INSTEAD: dict[type[Any], tuple[str, str]] = {
    HasClassScores: ("the probabilities of all classes", 'scores = "favourable"'),
    HasGradients: ("gradients", "a strategy that needs scores only, such as 'random'"),
    HasActivations: ("layer outputs", "measure and search, which need scores only"),
    HasLayerGradients: ("gradients of layer outputs", "a native network (.npz), or a strategy that needs none"),
    HasInterventions: ("interventions", "measure and search, which need scores only"),
    HasTrees: ("trees", "measure and search, which need scores only"),
    CanSave: ("a file format", "a .npz or .onnx network"),
}


def require(model: object, capability: type[Any], stage: str) -> None:
    """Refuse a model that cannot do what a stage needs, and say what to use instead."""
    if not isinstance(model, capability):
        what, instead = _INSTEAD[capability]
        raise CapabilityError(f"{stage} needs {what}, which {kind_of(model)!r} does not offer; use {instead}.")


def needed(package: str, extra: str, purpose: str) -> Any:
    """An optional package, or how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingDependencyError.of(package.partition(".")[0], extra, purpose) from None


def checked_rows(inputs: npt.ArrayLike, width: int, name: str, dtype: npt.DTypeLike | None) -> npt.NDArray[Any]:
    """Rows as an array, refused where they have another width."""
    rows = np.asarray(inputs, dtype=dtype)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ModelError(f"{name} takes rows of {width} inputs, but got an array of shape {rows.shape}.")
    return rows
