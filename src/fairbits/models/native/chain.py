"""Foreign operations, one after the other, folded into dense layers; and the way back into the foreign parameters.

A layer is ``((x · before + offset) @ W + b) · after + shift``: one product, with the scalings and normalisations
around it. They fold into the native weights. Because each layer remembers them, together with the name of the
parameters that W and b came from, changed native weights can be written back into the same shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from fairbits.errors import ModelError
from fairbits.models.native.network import NAMES, Activation, Head, Network

_SLOPES = {"leaky_relu": 0.01, "elu": 1.0}
Matrix = npt.NDArray[np.float64]


class NotNative(ModelError):
    """A model that is no chain of dense layers: another adapter may still run it as it is."""


@dataclass(slots=True)
class ParameterSource:
    """A foreign parameter: its name, and how its array became the one used here."""

    name: str
    transposed: bool = False
    gain: float = 1.0
    plus: Matrix | float = 0.0


@dataclass(slots=True)
class Layer:
    """One dense layer in the making."""

    before: Matrix
    offset: Matrix
    matrix: Matrix | None = None
    bias: Matrix = field(default_factory=lambda: np.zeros(1))
    after: Matrix = field(default_factory=lambda: np.ones(1))
    shift: Matrix = field(default_factory=lambda: np.zeros(1))
    #: The sizes of what the offset and the shift were made of, before it cancelled out.
    offsets: Matrix = field(default_factory=lambda: np.zeros(1))
    shifts: Matrix = field(default_factory=lambda: np.zeros(1))
    weights_from: ParameterSource | None = None
    bias_from: ParameterSource | None = None
    shift_from: ParameterSource | None = None
    activation: Activation | None = None

    def folded(self) -> tuple[Matrix, Matrix]:
        assert self.matrix is not None  # noqa: S101 - every closed layer has its product
        weights = self.before[:, None] * self.matrix * self.after
        biases = (self.offset @ self.matrix + self.bias) * self.after + self.shift
        return weights, np.broadcast_to(biases, weights.shape[1:])

    def sizes(self) -> Matrix:
        """What the parts of each bias come to, before they cancel out."""
        assert self.matrix is not None  # noqa: S101 - every closed layer has its product
        inner = np.broadcast_to(self.offsets, len(self.matrix)) @ np.abs(self.matrix) + np.abs(self.bias)
        return np.broadcast_to(inner * np.abs(self.after) + self.shifts, self.matrix.shape[1:])

    @property
    def plain(self) -> bool:
        """Whether the layer is computed as a product and a bias, and nothing else."""
        gains = [one.gain for one in (self.weights_from, self.bias_from) if one is not None]
        parts = (self.before - 1, self.after - 1, self.offsets, self.shifts, np.array(gains) - 1)
        return not any(np.any(part) for part in parts)


class Chain:
    """Takes operations in order; an activation or a further product closes the open layer."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.head: Head | None = None
        self._open: Layer | None = None

    @property
    def width(self) -> int | None:
        """How many values come out so far, where that is known."""
        layer = self._open
        if layer is not None and layer.matrix is None and len(layer.before) > 1:
            return len(layer.before)
        products = [one.matrix for one in (*self.layers, layer) if one is not None and one.matrix is not None]
        return products[-1].shape[1] if products else None

    def multiply(self, matrix: Matrix, source: ParameterSource | None = None) -> None:
        self._going_on("a product")
        if matrix.ndim != 2:
            raise NotNative(f"a product with an array of shape {matrix.shape} is not a dense layer.")
        if self._open is not None and self._open.matrix is not None:  # two products in a row are two layers
            self._close(Activation("identity"))
        if self.width not in (None, len(matrix)):
            raise NotNative(f"a product of {self.width} values with a matrix of {len(matrix)} rows does not fit.")
        layer = self._open or Layer(np.ones(1), np.zeros(1))
        layer.before = np.broadcast_to(layer.before, len(matrix))
        layer.offset = np.broadcast_to(layer.offset, len(matrix))
        layer.matrix, layer.weights_from = np.asarray(matrix, dtype=np.float64), source
        self._open = layer

    def scale(
        self,
        factor: Matrix | float,
        offset: Matrix | float,
        source: ParameterSource | None = None,
        *,
        sizes: Matrix | None = None,
    ) -> None:
        """Take a scaling: x ↦ factor · x + offset, value by value; ``sizes`` are those of the offset's own parts."""
        self._going_on("a scaling")
        factor = np.asarray(factor, dtype=np.float64).ravel()
        offset = np.asarray(offset, dtype=np.float64).ravel()
        sizes = np.abs(offset) if sizes is None else sizes
        if self._open is None:
            self._open = Layer(np.ones(self.width or 1), np.zeros(self.width or 1))
        layer = self._open
        for part in (factor, offset):
            if self.width is not None and len(part) not in (1, self.width):
                raise NotNative(f"{len(part)} constants do not fit {self.width} values.")
        plain = (layer.after == 1).all() and not layer.shift.any() and (factor == 1).all()
        if layer.matrix is None:
            width = max(len(layer.before), len(factor), len(offset))
            layer.before = np.broadcast_to(layer.before * factor, width)
            layer.offset = np.broadcast_to(layer.offset * factor + offset, width)
            layer.offsets = layer.offsets * np.abs(factor) + sizes
        elif source is not None and layer.bias_from is None and plain:
            layer.bias, layer.bias_from = layer.bias + offset, source
        else:
            layer.shift_from = source if not layer.shift.any() else None
            layer.after, layer.shift = layer.after * factor, layer.shift * factor + offset
            layer.shifts = layer.shifts * np.abs(factor) + sizes

    def normalise(
        self, mean: Matrix, spread: Matrix, gain: Matrix | float = 1.0, shift: Matrix | None = None, source: str = ""
    ) -> None:
        """Take a normalisation: x ↦ (x − mean) / spread · gain + shift, whose shift is a parameter of this name."""
        factor, start = 1 / spread * gain, np.zeros(1) if shift is None else shift
        moved = None if shift is None else ParameterSource(source, plus=mean * factor)
        self.scale(factor, start - mean * factor, moved, sizes=np.abs(start) + np.abs(mean * factor))

    def function(self, name: str, alpha: float | None = None) -> None:
        """Take an activation or a head by its plain name, with a usual slope where none is given."""
        # A sigmoid over one value is a head, unless more follows; over several it is an activation.
        if name == "softmax" or (name == "sigmoid" and self.width == 1 and self._open is not None):
            self._going_on(f"a {name} output")
            self.head = cast(Head, name)  # after which nothing may follow
        elif name in NAMES:
            self._going_on(name)
            if self._open is None and not self.layers:
                raise NotNative(f"{name} follows no dense layer.")
            self._close(Activation(name, _SLOPES.get(name, 0.0) if alpha is None else float(alpha)))
        else:
            raise NotNative(f"the activation {name} has no kernel here.")

    def network(self, favourable: int | None = None) -> Network:
        if self._open is None and not self.layers:
            raise NotNative("it has no dense layer.")
        layers = [*self.layers, self._finished()]
        weights, biases = zip(*(layer.folded() for layer in layers), strict=True)
        outputs = weights[-1].shape[1]
        head: Head = self.head or ("softmax" if outputs > 1 else "linear")
        if head == "sigmoid" and outputs > 1:
            raise NotNative(f"it ends in {outputs} independent sigmoids; a decision needs one output or a softmax.")
        after = [layer.activation for layer in self.layers if layer.activation is not None]
        found = Network.build(weights, biases, activation=after, head=head, favourable=favourable)
        plain = all(layer.plain for layer in layers)
        return found if plain else replace(found, folded=tuple(layer.sizes() for layer in layers))

    def parameters(self, network: Network) -> dict[str, Matrix]:
        """Foreign parameters with which the foreign model is the given network."""
        closed = [*self.layers, self._finished()]
        if network.widths != tuple(layer.folded()[0].shape[1] for layer in closed):
            raise ModelError(f"the original has other layers than the network, whose widths are {network.widths}.")
        changed: dict[str, Matrix] = {}
        for i, (layer, w, b) in enumerate(zip(closed, network.weights, network.biases, strict=True)):
            for source, array in _restored(layer, w, b, i):
                if source.name in changed and not np.array_equal(changed[source.name], array):
                    raise ModelError(f"parameter {source.name!r} is shared by layers that now differ.")
                changed[source.name] = array
        return changed

    def _going_on(self, what: str) -> None:
        if self.head is not None:
            raise NotNative(f"it goes on with {what} after its {self.head} output.")

    def _close(self, activation: Activation) -> None:
        layer = self._finished()
        layer.activation = activation
        self.layers.append(layer)
        self._open = None

    def _finished(self) -> Layer:
        """The open layer; where it has no product, an identity carries what is left to the output."""
        if self._open is None or self._open.matrix is None:
            if self.width is None:
                raise NotNative("nothing says how many values come in.")
            self.multiply(np.eye(self.width))
        assert self._open is not None  # noqa: S101 - a product opens one
        return self._open


def _restored(
    layer: Layer, weights: npt.ArrayLike, biases: npt.ArrayLike, i: int
) -> list[tuple[ParameterSource, Matrix]]:
    """The layer's own parameters for new native weights; untouched columns keep every bit."""
    old_w, old_b = layer.folded()
    new_w, new_b = np.asarray(weights, dtype=np.float64), np.asarray(biases, dtype=np.float64)
    same_w, same_b = new_w == old_w.astype(np.float32), new_b == old_b.astype(np.float32)
    if same_w.all() and same_b.all():
        return []
    scaling = layer.before[:, None] * layer.after
    if not np.broadcast_to(scaling, new_w.shape)[~same_w].all() or layer.matrix is None:
        raise ModelError(f"layer {i} has inputs scaled by 0 in the original, which no weight can undo.")
    matrix = np.where(same_w, layer.matrix, np.divide(new_w, scaling, out=np.zeros_like(new_w), where=scaling != 0))
    bias_from, old = layer.bias_from, layer.bias
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = (new_b - layer.shift) / layer.after - layer.offset @ matrix
    if layer.bias_from is None and layer.shift_from is not None:  # a normalisation has the layer's only bias
        bias_from, old, bias = layer.shift_from, layer.shift, new_b - (layer.offset @ matrix + old) * layer.after
    old = np.broadcast_to(old, bias.shape)
    found: list[tuple[ParameterSource, Matrix]] = []
    second = ("bias", bias_from, np.where(same_b & same_w.all(axis=0), old, bias), old)
    for what, source, array, old in (("weights", layer.weights_from, matrix, layer.matrix), second):
        if np.array_equal(array, old):
            continue
        if source is None or not np.isfinite(array).all():
            raise ModelError(f"layer {i} has no {what} of its own in the original that could be changed.")
        found.append((source, (array.T if source.transposed else array) / source.gain + source.plus))
    return found
