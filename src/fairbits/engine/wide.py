"""Wide layers, and few people: the network through NumPy's own matrix product, a tile of rows at a time.

A fused kernel reads all weights for every 24 people and twin; once they outgrow the second-level cache, BLAS, which
blocks them, is faster. And where few people are asked about, the whole answer is there before a kernel were compiled.
The protected part of the first layer is still computed once, as a table of m rows, and a person's own part once.

BLAS rounds the same row otherwise in products of other sizes, and a single column otherwise at another place. So all
products of a plan have the same number of rows, however many people there are, and eight columns or more. Some (the
kernels of OpenBLAS for Haswell) round a row also by its place among the others: chunks are whole tiles, so that threads
change no place, and the first layer, which is small, is summed in double precision. Where BLAS rounds all rows alike, a
person's figures depend on that person alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.partition import Ruler
from fairbits.functions import expit
from fairbits.models import Activation

if TYPE_CHECKING:
    from fairbits.engine.plan import Plan

Floats = NDArray[np.float32]
Truth = NDArray[np.bool_]

#: About how many rows are multiplied at a time: BLAS is at 92 % of its best or more, and the layers stay in cache.
ROWS = 256

#: Numbers in a layer of the interventions that run through the network together: they stay in cache.
CACHED = 2**18

#: Scores that are kept at once: a few megabytes.
BLOCK = 2**21

#: Weights of one layer (2 MB) up to which the fused kernels are faster: for gradients. Scores gain a sixth at most by
#: them up to twice as many; interventions have a limit of their own.
WIDE = 2**19

#: Multiply-adds in all, below which everything is done before a kernel is compiled.
FEW = 1e9

#: Columns of the narrowest product: one would be another routine, which adds up differently from place to place.
COLUMNS = 8


class WideLayers:
    """The layers of a plan as matrices."""

    def __init__(self, plan: Plan):
        dense = plan.dense
        self.plan = plan
        self.widths = dense.widths.tolist()
        #: How many people and how many of their twins make a tile; a person with many twins is taken in equal parts.
        self.people, self.part = max(1, round(ROWS / plan.m)), -(-plan.m // -(-plan.m // ROWS))
        self.rows = self.people * self.part
        #: One row for every numeric attribute, then one for every value of each categorical one.
        self.first = np.concatenate([dense.slopes, dense.tables])
        self._exact_first = self.first.astype(np.float64)
        #: Where in it the rows of each categorical attribute begin.
        self._starts = plan.numeric_columns.size + plan.lookup_offsets
        self.weights: list[Floats] = []
        self.biases: list[Floats] = []
        at = bias = 0
        for inputs, outputs in pairwise(self.widths):
            weights = dense.weights[at : at + inputs * outputs].reshape(inputs, outputs)
            self.weights.append(np.pad(weights, ((0, 0), (0, max(0, COLUMNS - outputs)))))
            self.biases.append(dense.biases[bias : bias + outputs])
            at, bias = at + inputs * outputs, bias + outputs
        self.activations = [
            Activation(name, float(alpha)) for name, alpha in zip(plan.activations, plan.alphas, strict=True)
        ]

    @cached_property
    def back(self) -> list[Floats]:
        """The weights of all layers the other way round."""
        shown = zip((self.first, *self.weights), self.widths, strict=True)
        turned = [np.ascontiguousarray(weights[:, :width].T) for weights, width in shown]
        return [np.pad(one, ((0, 0), (0, max(0, COLUMNS - one.shape[1])))) for one in turned]

    def before(self, codes: NDArray[np.float64]) -> tuple[Floats, NDArray[np.int64], Truth]:
        """First pre-activation of people without their twins' part, the index of their values, whose codes are usable.

        A value of a category is a one among zeros here: a product with these costs less than fetching rows of a table.
        """
        plan = self.plan
        numbers = (codes[:, plan.numeric_columns] - plan.numeric_shifts).astype(np.float32)
        values = codes[:, plan.lookup_columns] - plan.lookup_lows
        index = np.clip(np.nan_to_num(np.floor(values)), 0, plan.lookup_sizes - 1).astype(np.int64)
        rows = np.zeros((len(codes), len(self.first)))
        rows[:, : numbers.shape[1]] = numbers
        np.put_along_axis(rows, self._starts + index, 1.0, axis=1)
        usable = np.isfinite(numbers).all(axis=1) & (values == index).all(axis=1)
        return (rows @ self._exact_first).astype(np.float32) + plan.dense.bias, index, usable

    def through(self, x: Floats, first: int = 0, last: int = -1) -> Floats:
        """The pre-activation of a layer, the last one by default, from that of an earlier one."""
        for number in range(first, last % len(self.widths)):
            x = product(self.activations[number](x), self.weights[number], self.rows)[:, : self.widths[number + 1]]
            x += self.biases[number]
        return x

    def tiles(self, codes: NDArray[np.float64]) -> Iterator[tuple[slice, slice, Floats, Truth]]:
        """People and twins by the tile: which they are, their first pre-activation (rows), and who is usable."""
        base, _, usable = self.before(codes)
        for first in range(0, len(codes), self.people):
            people = slice(first, min(first + self.people, len(codes)))
            for low in range(0, self.plan.m, self.part):
                twins = slice(low, min(low + self.part, self.plan.m))
                x = base[people, None] + self.plan.dense.twins[twins]
                yield people, twins, x.reshape(-1, self.widths[0]), usable[people]

    def score(
        self,
        codes: NDArray[np.float64],
        n: int,
        start: int,
        *,
        ruler: Ruler,
        favourable: NDArray[np.int32],
        ready: Floats,
    ) -> int:
        """Write the scores of all twins of n people, the first of whom is row ``start``, and how many twins are decided
        favourably, where classes are counted; the row of the first whose scores are not sound, or −1.
        """
        favoured, sound = np.zeros(n, np.int32), np.ones(n, np.bool_)
        for people, twins, x, usable in self.tiles(codes[:n]):
            score, chosen, fine = self.head(self.through(x), ruler.threshold)
            shape = len(usable), -1
            ready[start : start + n][people, twins] = score.reshape(shape)
            favoured[people] += chosen.reshape(shape).sum(axis=1)
            sound[people] &= usable & fine.reshape(shape).all(axis=1)
        if ruler.classes:
            favourable[start : start + n] = favoured
        return -1 if sound.all() else start + int(sound.argmin())

    def head(self, outputs: Floats, threshold: np.float32) -> tuple[Floats, Truth, Truth]:
        """Score, favourable decision, and whether all is finite, of every row of margins."""
        score, fine = outputs[..., 0], np.asarray(np.isfinite(outputs).all(axis=-1))
        if self.plan.head == "linear":
            return score, np.zeros(fine.shape, np.bool_), fine
        if outputs.shape[-1] == 1:
            score = expit(score)
            return score, score >= threshold, fine
        return 1 / (1 + np.exp(-outputs).sum(axis=-1)), outputs.min(axis=-1) >= 0, fine

    def held(
        self, codes: NDArray[np.float64], layer: int, neurons: NDArray[np.int64], values: Floats
    ) -> Iterator[tuple[slice, slice, slice, Floats, Truth]]:
        """Margins (interventions, people, twins, outputs) while one neuron after the other is held at a value.

        With them come which interventions, people and twins they are about, and whose codes are usable.
        """
        following = self.weights[layer][neurons, : self.widths[layer + 1]]
        for people, twins, x, usable in self.tiles(codes):
            outputs = self.activations[layer](self.through(x, 0, layer))
            shifts = values[:, None] - outputs[:, neurons].T
            after = product(outputs, self.weights[layer], self.rows)[:, : following.shape[1]] + self.biases[layer]
            step = max(1, CACHED // (len(after) * max(self.widths[layer + 1 :])))
            for low in range(0, len(neurons), step):
                dos = slice(low, min(low + step, len(neurons)))
                changed = shifts[dos, :, None] * following[dos, None]
                changed += after
                margins = self.through(changed.reshape(-1, after.shape[1]), layer + 1)
                shape = dos.stop - dos.start, people.stop - people.start, twins.stop - twins.start, -1
                yield dos, people, twins, margins.reshape(shape), usable

    def gradients(self, codes: NDArray[np.float64], twins: NDArray[np.int64]) -> tuple[Floats, Floats, Truth]:
        """Derivatives of people, each as one twin: by its codes, by the first pre-activation; and whose are sound.

        By the codes of a category it is the mean of one step up and one down, as far as there is room.
        """
        plan, numeric = self.plan, self.plan.numeric_columns.size
        x, index, usable = self.before(codes)
        befores = [x + self.plan.dense.twins[twins]]
        for number in range(len(self.widths) - 1):
            befores.append(self.through(befores[-1], number, number + 1))
        # At the margins x, the gradient of −log(sum of exp(−x)).
        powers = np.exp(befores[-1].min(axis=1, keepdims=True) - befores[-1])
        slope = powers / powers.sum(axis=1, keepdims=True)
        for number in range(len(self.widths) - 2, -1, -1):
            slope = product(slope, self.back[number + 1], self.rows)[:, : self.widths[number]]
            slope *= self.activations[number].slope(befores[number])
        by_input = product(slope, self.back[0], self.rows)
        up, down = np.minimum(index + 1, plan.lookup_sizes - 1), np.maximum(index - 1, 0)
        there, here = (np.take_along_axis(by_input, self._starts + end, axis=1) for end in (up, down))
        result = np.zeros(codes.shape, np.float32)
        result[:, plan.numeric_columns] = by_input[:, :numeric]
        result[:, plan.lookup_columns] = (there - here) / np.maximum(up - down, 1)
        return result, slope, usable & np.isfinite(np.hstack([befores[-1], slope, result])).all(axis=1)


def product(rows: Floats, weights: Floats, size: int) -> Floats:
    """rows @ weights, ``size`` rows at a time: see the head of this module."""
    missing = -len(rows) % size
    if missing:
        rows = np.concatenate([rows, np.zeros((missing, rows.shape[1]), np.float32)])
    found: Floats = rows.reshape(len(rows) // size, size, rows.shape[1]) @ weights
    return found.reshape(len(rows), weights.shape[1])[: len(rows) - missing]
