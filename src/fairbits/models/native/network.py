"""The native network: dense layers as plain arrays, small, exact, and open to surgery; with its .npz files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fairbits.domain import MAX_MODEL_BYTES
from fairbits.errors import ModelError, OptionError, choose_from, foreign
from fairbits.functions import expit, softmax
from fairbits.models.base import Array, Do, SeveralClasses, Slope, checked_rows
from fairbits.models.guards import check_archive, check_arrays

Values = npt.NDArray[Any]
_ROOT_2 = float(np.sqrt(2))
_GELU_SCALE = float(np.sqrt(2 / np.pi))


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation by name."""

    name: str = "relu"
    alpha: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in _FUNCTIONS:
            raise ModelError(f"activation {self.name!r} is not known; {choose_from(self.name, _FUNCTIONS)}")

    def __call__(self, x: Values) -> Values:
        return _FUNCTIONS[self.name].value(x, self.alpha)

    def slope(self, x: Values) -> Values:
        return _FUNCTIONS[self.name].slope(x, self.alpha)

    def inverse(self, y: float) -> float:
        """A pre-activation whose activation is ``y``: what surgery writes into the bias."""
        x = _FUNCTIONS[self.name].inverse(y, self.alpha)
        if x is None or not np.isfinite(x):
            raise ModelError(f"a {self.name} neuron can never put out {y:g}; choose a value in its range.")
        return float(x)


@dataclass(frozen=True, slots=True)
class _Function:
    value: Callable[[Values, float], Values]
    slope: Callable[[Values, float], Values]
    inverse: Callable[[float, float], float | None]


def _erf(x: Values) -> Values:
    from scipy import special

    return np.asarray(special.erf(x / _ROOT_2))


def _gelu(x: Values, _: float) -> Values:
    return np.asarray(x * (0.5 * (1 + _erf(x)))).astype(x.dtype)


def _gelu_slope(x: Values, _: float) -> Values:
    density = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
    return np.asarray(0.5 * (1 + _erf(x)) + x * density).astype(x.dtype)


def _gelu_tanh(x: Values, _: float) -> Values:
    return (0.5 * x * (1 + np.tanh(_GELU_SCALE * (x + 0.044715 * x**3)))).astype(x.dtype)


def _gelu_tanh_slope(x: Values, _: float) -> Values:
    t = np.tanh(_GELU_SCALE * (x + 0.044715 * x**3))
    return (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * _GELU_SCALE * (1 + 3 * 0.044715 * x * x)).astype(x.dtype)


def _rising_inverse(function: Callable[[Values, float], Values]) -> Callable[[float, float], float | None]:
    """GELU falls before it rises; only its rising half (from the minimum near −0.75) has one inverse."""

    def inverse(y: float, alpha: float) -> float | None:
        def miss(x: float) -> float:
            return float(function(np.array([x]), alpha)[0]) - y

        from scipy import optimize

        lowest = -0.7517
        return None if miss(lowest) > 0 else float(optimize.brentq(miss, lowest, max(10.0, 2 * y)))

    return inverse


_FUNCTIONS: dict[str, _Function] = {
    "relu": _Function(
        lambda x, _: np.maximum(x, 0), lambda x, _: (x > 0).astype(x.dtype), lambda y, _: y if y >= 0 else None
    ),
    "leaky_relu": _Function(
        lambda x, a: np.where(x > 0, x, x.dtype.type(a) * x),
        lambda x, a: np.where(x > 0, x.dtype.type(1), x.dtype.type(a)),
        lambda y, a: y if y >= 0 else (y / a if a > 0 else None),
    ),
    "tanh": _Function(
        lambda x, _: np.tanh(x),
        lambda x, _: 1 - np.tanh(x) ** 2,
        lambda y, _: float(np.arctanh(y)) if -1 < y < 1 else None,
    ),
    "sigmoid": _Function(
        lambda x, _: expit(x),
        lambda x, _: expit(x) * (1 - expit(x)),
        lambda y, _: float(np.log(y / (1 - y))) if 0 < y < 1 else None,
    ),
    "elu": _Function(
        lambda x, a: np.where(x > 0, x, x.dtype.type(a) * np.expm1(np.minimum(x, 0))),
        lambda x, a: np.where(x > 0, x.dtype.type(1), x.dtype.type(a) * np.exp(np.minimum(x, 0))),
        lambda y, a: y if y >= 0 else (float(np.log1p(y / a)) if y > -a else None),
    ),
    "gelu": _Function(_gelu, _gelu_slope, _rising_inverse(_gelu)),
    "gelu_tanh": _Function(_gelu_tanh, _gelu_tanh_slope, _rising_inverse(_gelu_tanh)),
    "identity": _Function(lambda x, _: x, lambda x, _: np.ones_like(x), lambda y, _: y),
}

#: The names, in a fixed order that compiled code relies on.
NAMES = tuple(_FUNCTIONS)


#: Below this float32 numbers are not normal.
SMALLEST = np.finfo(np.float32).tiny


def without_denormals(weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The weights, with 0 in place of numbers that are not normal.

    Training leaves weights of 1e-40, which cost some processors a hundred times as much as others and add nothing that
    a float32 sum could hold.
    """
    return np.where(np.abs(weights) < SMALLEST, np.float32(0), weights)


Head = Literal["softmax", "sigmoid", "linear"]
#: What becomes of the outputs, (n, outputs).
_HEADS: dict[Head, Callable[[Values], Array]] = {
    **{"softmax": lambda logits: softmax(logits, axis=1), "sigmoid": expit, "linear": lambda logits: logits},
}
#: Rows that are scored at a time: activations stay in cache, and BLAS does not wake its threads for so little.
_BLOCK = 256


@dataclass(frozen=True, slots=True, eq=False)
class Network(SeveralClasses):
    """Dense layers (weights are inputs × outputs), an activation after each but the last, and a head.

    Heads: ``softmax`` over two or more classes, ``sigmoid`` (one output: the probability of class 1), ``linear``
    (one output: a regression). ``favourable`` is the class whose probability is the score.

    Parameters
    ----------
    weights, biases
        One pair for each layer.
    activations_after
        The activation after each layer but the last.
    head
        What becomes of the outputs.
    favourable
        Position of the class whose probability is the score.
    folded
        By layer, the sizes of what was folded into each bias, where the model's own library computes scalings and
        normalisations one by one, with roundings of its own; empty where it computes these layers as they are.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    activations_after: tuple[Activation, ...]
    head: Head = "softmax"
    favourable: int = 1
    folded: tuple[npt.NDArray[np.float64], ...] = ()
    #: How many inputs a row has, the outputs of every layer, and between how many classes it decides (0: a regression).
    inputs: int = field(init=False)
    widths: tuple[int, ...] = field(init=False)
    classes: int = field(init=False)

    def __repr__(self) -> str:
        return f"<Network {' → '.join(map(str, (self.inputs, *self.widths)))}, {self.head}>"

    @classmethod
    def build(
        cls,
        weights: Sequence[npt.ArrayLike],
        biases: Sequence[npt.ArrayLike],
        *,
        activation: Activation | Sequence[Activation] | str = "relu",
        head: Head | None = None,
        favourable: int | None = None,
    ) -> Network:
        """A network from arrays of any float type, checked.

        Parameters
        ----------
        weights
            Weights of each layer, (inputs, outputs).
        biases
            Biases of each layer, (outputs,).
        activation
            Activation after every layer but the last: one for all, or one each.
        head
            "softmax", "sigmoid" or "linear"; by default what the last width suggests.
        favourable
            Position of the favourable class; by default 1.

        Raises
        ------
        ModelError
            If shapes do not fit, or numbers are not finite.
        """
        w = tuple(np.ascontiguousarray(layer, dtype=np.float32) for layer in weights)
        b = tuple(np.ascontiguousarray(layer, dtype=np.float32) for layer in biases)
        if isinstance(activation, str):
            activation = Activation(activation)
        after = (activation,) * (len(w) - 1) if isinstance(activation, Activation) else tuple(activation)
        if head is None:
            head = "softmax" if w and w[-1].ndim == 2 and w[-1].shape[1] > 1 else "sigmoid"
        return cls(w, b, after, head, 0 if head == "linear" else 1 if favourable is None else favourable)

    def __post_init__(self) -> None:
        if not self.weights or len(self.weights) != len(self.biases):
            raise ModelError(
                f"a network needs as many biases as weights and at least one layer, "
                f"but got {len(self.weights)} weights and {len(self.biases)} biases."
            )
        for name in ("weights", "biases"):  # whoever handed them over may go on changing theirs
            object.__setattr__(self, name, tuple(_own(array) for array in getattr(self, name)))
        width = self.weights[0].shape[0] if self.weights[0].ndim == 2 else -1
        for i, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            if w.ndim != 2 or b.ndim != 1 or 0 in w.shape:
                raise ModelError(
                    f"layer {i} needs a matrix and a vector, but W{i} has shape {w.shape} and b{i} has {b.shape}."
                )
            if w.shape[0] != width or b.shape[0] != w.shape[1]:
                raise ModelError(
                    f"layer {i} does not fit: {width} values come in, but W{i} is {w.shape[0]} × {w.shape[1]} "
                    f"with {b.shape[0]} biases; weights are inputs × outputs."
                )
            if not (np.isfinite(w).all() and np.isfinite(b).all()):
                raise ModelError(f"layer {i} holds NaN or infinite weights; the file is damaged or training diverged.")
            width = w.shape[1]
        if len(self.activations_after) != len(self.weights) - 1:
            raise ModelError(
                f"{len(self.weights)} layers need {len(self.weights) - 1} activations between them, "
                f"but got {len(self.activations_after)}."
            )
        if self.head not in get_args(Head):
            raise ModelError(f"head {self.head!r} is not known; {choose_from(str(self.head), get_args(Head))}")
        if (self.head == "softmax") != (width > 1):
            raise ModelError(
                f"a {self.head} head does not go with {width} outputs; "
                f"softmax needs two or more, sigmoid and linear need one."
            )
        settled = {
            "inputs": int(self.weights[0].shape[0]),
            "widths": tuple(int(w.shape[1]) for w in self.weights),
            "classes": {"softmax": width, "sigmoid": 2, "linear": 0}[self.head],
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        if not 0 <= self.favourable < self.classes and self.head != "linear":
            raise ModelError(f"favourable class {self.favourable} is not one of the network's {self.classes} classes.")

    def with_favourable(self, index: int) -> Network:
        """The same network, scoring another class.

        Parameters
        ----------
        index
            Position of the class.
        """
        return self if self.head == "linear" or index == self.favourable else replace(self, favourable=index)

    def logits(self, inputs: npt.ArrayLike) -> Array:
        """Outputs before the head, (n, outputs).

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        """
        rows = checked_rows(inputs, self.inputs, "the network", np.float32)
        weights = [without_denormals(w) for w in self.weights]
        after = self.activations_after
        starts = range(0, max(len(rows), 1), _BLOCK)
        return np.concatenate([forward(weights, self.biases, after, rows[i : i + _BLOCK])[1][-1] for i in starts])

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The favourable-class probability (or the predicted value) of each encoded row, (n,).

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        """
        logits = self.logits(inputs)
        return logits[:, 0] if self.head == "linear" else expit(self._margins(logits))

    def class_scores(self, inputs: npt.ArrayLike) -> Array:
        """The probability of every class of each encoded row, (n, classes); a regression has none.

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        """
        if self.head == "linear":
            raise ModelError("a regression network has no classes; use its scores.")
        return np.asarray(_HEADS[self.head](self._by_class(inputs)), dtype=np.float32)

    def labels(self, inputs: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The most likely class of each encoded row, (n,); a tie goes to the favourable one, then to the first.

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        """
        if self.head == "linear":
            raise ModelError("a regression network decides no class; use its scores.")
        logits = self._by_class(inputs)
        ahead = logits[:, self.favourable] >= logits.max(axis=1)
        return np.where(ahead, self.favourable, np.argmax(logits, axis=1))

    def _by_class(self, inputs: npt.ArrayLike) -> Array:
        """What speaks for each class before the head."""
        logits = self.logits(inputs)
        return logits if self.head == "softmax" else np.column_stack([-logits[:, 0], logits[:, 0]])

    def gradients(self, inputs: npt.ArrayLike, *, of: Slope = "margin") -> Array:
        """Slope of the score, the logit margin or the loss with respect to the inputs, (n, inputs).

        The margin is the favourable logit minus the log-sum of the others: its sigmoid is the score. The loss is
        the cross-entropy against the network's own label. All three point along the margin of one class; only the
        factor differs, and the margin is the one that does not fade where the network is certain.

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        of
            "score", "margin" or "loss".
        """
        if of not in get_args(Slope):
            raise OptionError(f"gradients of {of!r} are not known; {choose_from(of, get_args(Slope))}")
        befores, afters = self._forward(inputs)
        logits = afters[-1]
        if self.head == "linear":
            return self._backward(befores, np.ones_like(logits))
        own = np.full(len(logits), self.favourable)
        if of == "loss":
            own = np.argmax(logits, axis=1) if self.head == "softmax" else (logits[:, 0] >= 0).astype(np.int64)
        if self.head == "sigmoid":
            slope: Array = np.where(own == 1, 1, -1).astype(np.float32)[:, None]
        else:
            mine = np.arange(logits.shape[1]) == own[:, None]
            slope = np.where(mine, np.float32(1), -softmax(np.where(mine, np.float32(-np.inf), logits), axis=1))
        if of != "margin":
            p = expit(self._margins(logits, own))[:, None]
            slope = slope * (p * (1 - p) if of == "score" else p - 1)
        return self._backward(befores, slope)

    def activations(self, inputs: npt.ArrayLike) -> tuple[Array, ...]:
        """Outputs of every layer, (n, neurons) each; the last one after the head.

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        """
        *hidden, last = self._forward(inputs)[1]
        return (*hidden, _HEADS[self.head](last))

    def layer_gradients(self, inputs: npt.ArrayLike, layer: int, slopes: Array) -> Array:
        """Slope of Σ slopes · outputs of a layer by the inputs, (n, inputs); the last layer counts before its head.

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        layer
            Position of the layer, counted from 0.
        slopes
            Weights of the layer's outputs, (n, neurons).
        """
        if not 0 <= layer < len(self.weights):
            raise OptionError(f"layer {layer} is not in this network, which has layers 0 to {len(self.weights) - 1}.")
        befores, slope = self._forward(inputs)[0], np.asarray(slopes, dtype=np.float32)
        if layer < len(self.activations_after):
            slope = slope * self.activations_after[layer].slope(befores[layer])
        return self._backward(befores[: layer + 1], slope)

    def with_interventions(self, interventions: Sequence[Do]) -> Network:
        """The same network with some hidden neurons held at a value: incoming weights 0, bias set to match.

        Parameters
        ----------
        interventions
            Layer, neuron and value of each.

        Raises
        ------
        OptionError
            If there is no such neuron.
        ModelError
            If a neuron can never put out the value.
        """
        weights, biases = [w.copy() for w in self.weights], [b.copy() for b in self.biases]
        for do in interventions:
            biases[do.layer][do.neuron] = self.holding_bias(do)
            weights[do.layer][:, do.neuron] = 0
        return replace(self, weights=tuple(weights), biases=tuple(biases))

    def holding_bias(self, do: Do) -> float:
        """The bias that alone makes a neuron put out a value.

        Parameters
        ----------
        do
            Layer, neuron and value.
        """
        hidden = len(self.weights) - 1
        if not 0 <= do.layer < hidden:
            raise OptionError(f"layer {do.layer} is not a hidden layer; this network has layers 0 to {hidden - 1}.")
        if not 0 <= do.neuron < self.widths[do.layer]:
            raise OptionError(
                f"neuron {do.neuron} is not in layer {do.layer}, which has 0 to {self.widths[do.layer] - 1}."
            )
        return self.activations_after[do.layer].inverse(do.value)

    def save(self, path: str | Path) -> None:
        """Write the network as .npz or .onnx, by the ending of the name.

        Parameters
        ----------
        path
            The file.
        """
        file = Path(path)
        write = write_npz
        if file.suffix.lower() == ".onnx":
            from fairbits.models.onnx import write_onnx as write
        elif file.suffix.lower() != ".npz":
            raise ModelError(f"a network cannot be saved as {str(file)!r}; use .npz or .onnx.")
        try:
            write(self, file)
        except OSError as error:
            raise ModelError(f"the model cannot be written to {str(file)!r}: {error.strerror or error}.") from None

    def _forward(self, inputs: npt.ArrayLike) -> tuple[list[Array], list[Array]]:
        rows = checked_rows(inputs, self.inputs, "the network", np.float32)
        return forward(list(map(without_denormals, self.weights)), self.biases, self.activations_after, rows)

    def _backward(self, befores: list[Array], slope: Array) -> Array:
        for i in range(len(befores) - 1, 0, -1):
            slope = (slope @ without_denormals(self.weights[i]).T) * self.activations_after[i - 1].slope(befores[i - 1])
        return slope @ without_denormals(self.weights[0]).T

    def _margins(self, logits: Array, own: npt.NDArray[np.int64] | None = None) -> Array:
        """Logit of each row's class (the favourable one by default) against all others."""
        own = np.full(len(logits), self.favourable) if own is None else own
        if self.head == "sigmoid":
            return np.where(own == 1, logits[:, 0], -logits[:, 0])
        others = np.where(np.arange(logits.shape[1]) == own[:, None], np.float32(-np.inf), logits)
        top = others.max(axis=1, keepdims=True)
        return logits[np.arange(len(logits)), own] - (np.log(np.exp(others - top).sum(axis=1)) + top[:, 0])


def forward(
    weights: Sequence[Array], biases: Sequence[Array], activations: Sequence[Activation], rows: Array
) -> tuple[list[Array], list[Array]]:
    befores: list[Array] = []
    afters: list[Array] = []
    for i, (w, b) in enumerate(zip(weights, biases, strict=True)):
        with np.errstate(invalid="ignore"):  # BLAS may look beyond the end of small matrices, at anything
            before = (afters[-1] if i else rows) @ w + b
        befores.append(before)
        afters.append(activations[i](before) if i < len(activations) else before)
    return befores, afters


def _own(array: npt.ArrayLike) -> Array:
    """A copy that nobody can write to: its memory is that of a ``bytes``. One that is made so already is shared."""
    given: Any = np.asarray(array)
    if isinstance(given.base, bytes) and given.dtype == np.float32 and given.flags.c_contiguous:
        return given
    plain = np.ascontiguousarray(given, dtype=np.float32).reshape(given.shape)
    return np.ndarray(plain.shape, np.float32, plain.tobytes())


def read_npz(path: str | Path, *, max_model_bytes: int = MAX_MODEL_BYTES) -> Network:
    """A network from a .npz file: never runs code from it, and unpacks no more than is allowed."""
    path = Path(path)
    kinds = check_arrays(path, check_archive(path, max_model_bytes), max_model_bytes)
    # Opened here and not by NumPy, which would leave a damaged file open.
    with foreign(f"the network {str(path)!r} is not a readable .npz file"), path.open("rb") as stream:
        arrays = dict(np.load(stream, allow_pickle=False))
    layers = next(i for i in range(len(arrays) + 1) if f"W{i}" not in arrays)
    numbers = [f"{kind}{i}" for i in range(layers) for kind in "Wb"]
    if layers == 0:
        raise ModelError(
            f"the network {str(path)!r} has no W0; layers are named W0, b0, W1, b1 …, but it holds "
            f"{', '.join(sorted(arrays)) or 'nothing'}."
        )
    for name in (*numbers, "alphas", "favourable"):  # complex ones, dates, records and texts would be bent into some
        if name in kinds and kinds[name].kind not in "fiub":
            raise ModelError(
                f"the network {str(path)!r} has {name} of type {kinds[name]}, where real numbers are needed; save it "
                f"again as float32."
            )
        if name in numbers and name not in arrays:
            raise ModelError(f"the network {str(path)!r} has W{name[1:]} but no {name}; every layer needs both.")
    with foreign(f"the network {str(path)!r} holds arrays that make no network"):
        after, alphas = arrays.get("activations"), arrays.get("alphas", np.zeros(layers - 1))
        given = "relu" if after is None else [Activation(str(n), float(a)) for n, a in zip(after, alphas, strict=True)]
        return Network.build(
            [arrays[f"W{i}"] for i in range(layers)],
            [arrays[f"b{i}"] for i in range(layers)],
            activation=given,
            head=str(arrays["head"]) if "head" in arrays else None,  # type: ignore[arg-type]  # checked by Network
            favourable=int(arrays["favourable"]) if "favourable" in arrays else None,
        )


def write_npz(network: Network, path: str | Path) -> None:
    arrays: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {}
    for i, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        arrays[f"W{i}"], arrays[f"b{i}"] = w, b
    arrays["activations"] = np.array([a.name for a in network.activations_after], dtype=np.str_)
    arrays["alphas"] = np.array([a.alpha for a in network.activations_after], dtype=np.float64)
    arrays["head"] = np.array(network.head)
    arrays["favourable"] = np.array(network.favourable)
    with Path(path).open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # NumPy's stub does not take ** of arrays
