"""People of a box, one by one: the margins of all their twins in double precision, within a slack for rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairbits.engine.kernels.compiler import compiled, linked_raw

#: What is known about a box: something may be open in it; nobody flips; everybody flips.
OPEN, STEADY, FLIPPING = 0, 1, 2


@linked_raw
def next_value(bits: Any, after: int) -> Any:
    """The next member of a set that is written as a bit mask, or −1."""
    for v in range(after + 1, 64):
        if (bits >> np.uint64(v)) & np.uint64(1):
            return v
    return -1


@linked_raw
def _margin(layers: Any, person: Any, z: int, rows: Any) -> Any:
    """The margin of one twin of one person, within the slack."""
    widths = layers.widths
    here, there = rows[0], rows[1]
    for k in range(widths[0]):
        total = layers.bias[k] + layers.twins[z, k]
        for i in range(layers.numeric):
            total += layers.steps[k, i] * person[i]
        for a in range(person.shape[0] - layers.numeric):
            total += layers.steps[k, layers.first_value[a] + int(person[layers.numeric + a])]
        here[k] = max(total, 0.0)
    start, offset = 0, 0
    for level in range(1, widths.shape[0]):
        before, width = widths[level - 1], widths[level]
        for k in range(width):
            total = layers.biases[offset + k]
            base = start + k * before
            for j in range(before):
                total += layers.down[base + j] * here[j]
            there[k] = max(total, 0.0)
        start += width * before
        offset += width
        here, there = there, here
    total = layers.biases[offset]
    for j in range(widths[widths.shape[0] - 1]):
        total += layers.down[start + j] * here[j]
    return total


@linked_raw
def ask_everybody(
    layers: Any, cut: float, first: Any, last: Any, mask: Any, person: Any, rows: Any, margins: Any, box: int,
    status: Any, steady: Any, flipping: Any,
) -> None:  # fmt: skip
    """Ask every twin of everybody in a small box. ``margins`` gets those of the last person."""
    numeric, m = layers.numeric, layers.twins.shape[0]
    for i in range(numeric):
        person[i] = first[i]
    for a in range(mask.shape[0]):
        person[numeric + a] = next_value(mask[a], -1)
    people, calm, moved = 0.0, 0.0, 0.0
    going = True
    while going:
        small, large = np.inf, -np.inf
        for z in range(m):
            margins[z] = _margin(layers, person, z, rows) - cut
            small, large = min(small, margins[z]), max(large, margins[z])
        people += 1.0
        if small > layers.slack or large < -layers.slack:
            calm += 1.0
        elif small < -layers.slack and large > layers.slack:
            moved += 1.0
        going = False  # on to the next person, like the digits of a counter
        for i in range(numeric):
            if person[i] < last[i]:
                person[i] += 1.0
                going = True
                break
            person[i] = first[i]
        if not going:
            for a in range(mask.shape[0]):
                after = next_value(mask[a], int(person[numeric + a]))
                if after >= 0:
                    person[numeric + a] = after
                    going = True
                    break
                person[numeric + a] = next_value(mask[a], -1)
    steady[box], flipping[box] = calm / people, moved / people
    status[box] = STEADY if calm == people else FLIPPING if moved == people else OPEN


@compiled
def flipping_people(layers: Any, cut: float, people: Any, flips: Any) -> None:
    """Who certainly flips: one twin above the cut, another below, both by more than the slack."""
    widest = 1
    for width in layers.widths:
        widest = max(widest, width)
    rows = np.empty((2, widest))
    for i in range(people.shape[0]):
        small, large = np.inf, -np.inf
        for z in range(layers.twins.shape[0]):
            margin = _margin(layers, people[i], z, rows) - cut
            small, large = min(small, margin), max(large, margin)
        flips[i] = small < -layers.slack and large > layers.slack
