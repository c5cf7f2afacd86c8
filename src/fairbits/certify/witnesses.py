"""People who certainly flip, drawn at random from open boxes: each of them falsifies, and shows where others may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.engine import FLIPPING, BoxNetwork, ask_people

Integers = npt.NDArray[np.int64]

#: People drawn at once.
DRAWN = 8_192


@dataclass(frozen=True, slots=True, eq=False)
class Witnesses:
    """Boxes with somebody who flips: how many different ones were met there, and one of them."""

    boxes: Integers
    counts: Integers
    people: npt.NDArray[np.float64]
    drawn: int = 0
    hits: int = 0
    estimate: float = 0.0

    def largest(self, priority: npt.NDArray[np.float64], count: int) -> Witnesses:
        """Witnesses in the boxes with the most open people, among boxes that can be split."""
        order = np.argsort(-priority[self.boxes], kind="stable")
        order = order[priority[self.boxes[order]] > 0][:count]
        return Witnesses(self.boxes[order], self.counts[order], self.people[order])


def draw_witnesses(
    network: BoxNetwork,
    cut: float,
    below: float,
    pool: dict[str, npt.NDArray[Any]],
    n: int,
    rng: np.random.Generator,
    *,
    drawn: int = DRAWN,
) -> Witnesses | None:
    """Draw people from the first ``n`` boxes of a pool, by how many of each are open, and keep those who flip."""
    weights = pool["priority"][:n]
    total = float(weights.sum())
    if not total > 0:
        return None
    chosen = rng.choice(n, drawn, p=weights / total)
    first, last = pool["first"][chosen].astype(np.float64), pool["last"][chosen].astype(np.float64)
    people = np.empty((drawn, len(network.values)))
    people[:, : network.numeric] = np.floor(first + rng.random(first.shape) * (last - first + 1))
    np.minimum(people[:, : network.numeric], last, out=people[:, : network.numeric])
    people[:, : network.numeric] += network.layers.wide * rng.random(first.shape)  # anywhere in a part of a real one
    masks = pool["masks"][chosen]
    for place in range(masks.shape[1]):
        bits = (masks[:, place, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        # The member with the largest of as many random numbers: each is as likely as the others.
        people[:, network.numeric + place] = np.argmax(rng.random(bits.shape) * bits, axis=1)
    found = np.zeros(drawn, np.int64)
    ask_people(network.layers, cut, below, people, found)
    flips = found == FLIPPING
    met = np.unique(np.column_stack([chosen[flips].astype(np.float64), people[flips]]), axis=0)
    boxes, start, counts = np.unique(met[:, 0].astype(np.int64), return_index=True, return_counts=True)
    # A box is drawn by how many of it are open, and one of all its people then: each stands for so many as this.
    stands = total * pool["people"][chosen].astype(np.float64) / weights[chosen]
    estimate = float((stands * flips).mean())
    return Witnesses(boxes, counts.astype(np.int64), met[start, 1:], drawn, int(flips.sum()), estimate)
