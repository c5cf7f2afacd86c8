"""Cells of tree ensembles: only splits matter, so that all people between the same splits score alike.

A real attribute is an interval, cut where the ensemble turns: its cells hold all the reals between, and are counted by
their width.
Boxes of cells are bounded for every twin and split at the ensemble's own thresholds. Where no split is left open, one
person stands for the whole box and is asked as everybody is: what is said about it is exact, in the model's own
arithmetic. Until then there are bounds, at every moment: certified, falsified and open people, and a largest k that
exists and one that nobody exceeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from fairbits.certify.boxes import PIECE, WHOLE, Volumes, in_batches, most_open
from fairbits.certify.exact import class_bounds
from fairbits.engine import TreeBoxes, bound_sums, share
from fairbits.measure import Evaluator
from fairbits.models import apply_link

#: Boxes that are split at once.
BATCH = 1024
#: Scores are rounded to float32: bounds that differ by less settle nothing.
ROUNDING = 1e-6
#: A lead by less than this may be none among probabilities that are rounded to float32.
LEAD = 1e-5


def prove_cells(
    boxes: TreeBoxes,
    evaluator: Evaluator,
    *,
    about: str = "flips",
    k: int | None = None,
    seconds: float,
    stop: Callable[[], bool] = lambda: False,
    max_boxes: int | None = None,
    known: int = 1,
) -> Volumes:
    """Split the domain until all is settled, the budget ends, or somebody says stop."""
    return _Cells(boxes, evaluator, about, k, known).run(time.perf_counter() + seconds, stop, max_boxes or 2**62)


class _Cells:
    """One proof in progress: the cells that are open, and what is settled."""

    def __init__(self, boxes: TreeBoxes, evaluator: Evaluator, about: str, k: int | None, known: int):
        self.boxes, self.evaluator, self.about, self.k = boxes, evaluator, about, evaluator.m if k is None else k
        self.kind: Any = np.int64 if boxes.people < WHOLE else object
        self.sums = [np.concatenate([[0], np.cumsum(counts)]) for counts in boxes.counts]
        self.certified = self.falsified = self.asked = 0
        self.k_low, self.k_settled = known, known
        self.open: dict[str, npt.NDArray[Any]] = {}  # what is known of open cells

    def run(self, end: float, stop: Callable[[], bool], max_boxes: int) -> Volumes:
        last = np.array([[len(counts) - 1 for counts in self.boxes.counts]], np.int32).reshape(1, -1)
        self._add(np.zeros_like(last), last)
        in_batches(self._step, lambda: time.perf_counter() < end and self.asked < max_boxes and not stop())
        k_high = max(self.k_settled, int(self.open["most"].max(initial=1)))
        counts = (self.boxes.people, self.certified, self.falsified, self.asked)
        return Volumes(*counts, k_low=self.k_low, k_high=k_high)

    def _step(self, size: int) -> bool:
        chosen = most_open(self.open["priority"], min(size, BATCH))
        if not len(chosen):
            return False
        first, last, at, cut = (self.open[name][chosen] for name in ("first", "last", "place", "cut"))
        self.open = {name: np.delete(array, chosen, axis=0) for name, array in self.open.items()}
        rows = np.arange(len(first))
        left_last, right_first = last.copy(), first.copy()
        left_last[rows, at], right_first[rows, at] = cut, cut + 1
        self._add(np.concatenate([first, right_first]), np.concatenate([left_last, last]))
        return True

    def _count(self, first: Any, last: Any) -> npt.NDArray[Any]:
        total = np.full(len(first), self.boxes.factor, dtype=self.kind)
        for a, sums in enumerate(self.sums):
            total = total * (sums[last[:, a] + 1] - sums[first[:, a]]).astype(self.kind)
        return total

    def _add(self, first: Any, last: Any) -> None:
        n, shape = len(first), (len(first), self.boxes.sums, self.boxes.m)
        lows, highs, sizes = np.empty(shape), np.empty(shape), np.empty(shape[:2])
        place, cut, spans = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)

        def piece(start: int) -> None:
            part = slice(start, start + PIECE)
            ends = (lows[part], highs[part], sizes[part], spans[part])
            bound_sums(self.boxes.arrays, first[part], last[part], *ends, place[part], cut[part])

        share(piece, range(0, n, PIECE), self.evaluator.threads)
        self.asked += n
        people = self._count(first, last)
        # Sums are widened before the link, which may be steep where two of them differ by rounding alone.
        slack = self.boxes.slack * sizes[:, :, None]
        held, broken, fewest, most = self._verdicts(lows - slack, highs + slack, spans + 2 * slack[:, 0, 0])
        alike = np.flatnonzero(place < 0)
        if len(alike):
            found = self._ask(first[alike])
            held[alike], broken[alike] = found[0], ~found[0]
            fewest[alike] = most[alike] = found[1]
        self.certified += int(people[held].sum())
        self.falsified += int(people[broken].sum())
        self.k_low = max(self.k_low, int(fewest.max(initial=1)))
        # For the largest k a box is settled once it cannot hold more than somebody already has.
        done = (most <= self.k_low) | (fewest == most) if self.about == "largest" else held | broken
        done |= place < 0
        self.k_settled = max(self.k_settled, int(most[done].max(initial=1)))
        going = ~done
        weight = people.astype(np.float64)
        if self.about == "largest":
            weight = most + weight / (1.0 + float(self.boxes.people))
        new = {"first": first, "last": last, "place": place, "cut": cut, "people": people, "most": most}
        for name, array in {**new, "priority": weight}.items():
            self.open[name] = np.concatenate([self.open.get(name, array[:0]), array[going]])
        if self.about == "largest":
            keep = self.open["most"] > self.k_low
            self.k_settled = max(self.k_settled, int(self.open["most"][~keep].max(initial=1)))
            self.open = {name: array[keep] for name, array in self.open.items()}

    def _verdicts(self, lows: Any, highs: Any, sums: Any) -> tuple[Any, ...]:
        boxes, evaluator = self.boxes, self.evaluator
        if boxes.sums > 1 and self.about == "flips":
            up, down = (lows >= LEAD).all(axis=1), (highs < -LEAD).any(axis=1)
            ones = np.ones(len(lows), np.int64)
            return up.all(axis=1) | down.all(axis=1), up.any(axis=1) & down.any(axis=1), ones, boxes.m * ones
        if boxes.link == "softmax":  # the leads over all other classes make one score
            odds = [special.logsumexp(-sides, axis=1) for sides in (lows, highs)]
            ends = [special.expit(-end) for end in odds]
            sums = np.full(len(lows), np.inf)
        else:
            lows, highs = lows[:, 0], highs[:, 0]
            ends = [apply_link(sides, boxes.link, boxes.slope) for sides in (lows, highs)]  # type: ignore[arg-type]
        if boxes.complement:
            ends = [1 - end for end in ends]
        low, high = np.minimum(*ends), np.maximum(*ends)  # a link may also fall
        rounding = ROUNDING * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)).max(axis=1))
        spans = None
        if boxes.link == "identity":
            spans = sums + 2 * rounding
        elif boxes.link == "logistic":
            # A sigmoid is steepest where its argument is nearest to 0.
            nearest = np.clip(0.0, lows.min(axis=1), highs.max(axis=1))
            steepest = apply_link(nearest, "logistic", boxes.slope)
            spans = sums * abs(boxes.slope) * steepest * (1 - steepest) + 2 * rounding
        low, high = low - rounding[:, None], high + rounding[:, None]
        fewest, most = class_bounds(low, high, evaluator.epsilon, spans=spans)
        if self.about == "flips":
            cut = evaluator.threshold
            up, down = low >= cut, high < cut
            held = up.all(axis=1) | down.all(axis=1)
            broken = up.any(axis=1) & down.any(axis=1)
        else:
            held, broken = most <= self.k, fewest > self.k
        return held, broken, fewest, most

    def _ask(self, first: Any) -> tuple[Any, Any]:
        """One person of each box, where all are alike: whether the property holds, and k."""
        schema, boxes = self.evaluator.schema, self.boxes
        person = np.array([attribute.first for attribute in schema.attributes])
        codes = np.tile(person, (len(first), 1))
        for a, column in enumerate(boxes.columns):
            codes[:, column] = boxes.codes[a][first[:, a]]
        found = self.evaluator.evaluate(codes)
        k = found.k.astype(np.int64)
        if self.about == "flips":
            return ~found.flips, k
        return k <= self.k, k
