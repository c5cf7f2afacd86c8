"""What happens to people when a neuron is held at a value, and how far apart a person's twins are inside a network.

Many single interventions are studied at once, without surgery: the results are those of ``evaluate`` on
``network.with_interventions([do])``, up to rounding in float32.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import Encoding, Twins
from fairbits.engine.evaluation import Partition, count_classes, run_batch
from fairbits.engine.kernels.compiler import compiled
from fairbits.engine.kernels.interventions import Counts, Decision, Held, Missing, accuracy_chunk, study_chunk
from fairbits.engine.kernels.lanes import PEOPLE
from fairbits.engine.kernels.partition import Ruler, ruler_of
from fairbits.engine.plan import Head, Plan, plan_of, scratch
from fairbits.engine.threads import spread, writeable
from fairbits.engine.wide import BLOCK
from fairbits.errors import ModelError, TableError
from fairbits.functions import expit
from fairbits.models import Do, Network

ROUNDING = 1e-5
"""Bounds and distances are sums in float32: a pair is passed over only if it is short by more than this share."""


def widest(outputs: NDArray[np.float32], *, threads: int | None = None) -> NDArray[np.float64]:
    """The largest L1 distance between the twins of each person."""
    n, m, width = outputs.shape
    found = np.zeros(n)

    def run(start: int, stop: int) -> None:
        widest_chunk(writeable(np.asarray(outputs[start:stop], dtype=np.float32)), found[start:stop])

    if m > 1 and width > 0:
        spread(run, n, m * m * width // 4, threads)
    return found


@compiled
def widest_chunk(outputs, found):  # noqa: PLR0912 - one person, step by step
    """The largest L1 distance between twins, for a few people.

    The twins of a person are laid side by side, so that one is compared with many at a time.
    """
    n, m, width = outputs.shape
    twins = np.empty((width, m), np.float32)
    distances, reach = np.empty(m, np.float32), np.empty(m, np.float32)
    for person in range(n):
        for twin in range(m):
            reach[twin] = 0
        for j in range(width):
            mean = np.float32(0)
            for twin in range(m):
                mean += outputs[person, twin, j]
            mean /= np.float32(m)
            for twin in range(m):
                reach[twin] += abs(outputs[person, twin, j] - mean)
        order = np.argsort(-reach, kind="mergesort")  # farthest first
        for twin in range(m):
            for j in range(width):
                twins[j, twin] = outputs[person, order[twin], j]
        best = np.float32(0)
        for one in range(m - 1):
            enough = best * np.float32(1 - ROUNDING) - reach[order[one]]
            last = one + 1
            while last < m and reach[order[last]] >= enough:
                last += 1
            if last == one + 1:
                break
            for other in range(one + 1, last):
                distances[other] = 0
            for j in range(width):
                here = twins[j, one]
                for other in range(one + 1, last):
                    distances[other] += abs(twins[j, other] - here)
            for other in range(one + 1, last):
                best = max(best, distances[other])
        found[person] = best


BLOCK_BYTES = 1024 * 1024
"""Scores of a block of interventions, for one tile of people: they should stay in the second-level cache."""
MIN_BLOCK = 8
"""Interventions in a block, however many twins there are: the shared layers are paid once per block."""


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """Figures per intervention and person: arrays of shape (interventions, people)."""

    k: NDArray[np.int32]
    flips: NDArray[np.bool_]
    q_1: NDArray[np.float32] | None

    @property
    def k_mean(self) -> NDArray[np.float64]:
        """Mean k over the people, per intervention."""
        return self.k.mean(axis=1, dtype=np.float64)


def study(
    network: Network,
    encoding: Encoding,
    twins: Twins,
    people: NDArray[np.float64],
    dos: Sequence[Do],
    *,
    epsilon: float,
    partition: Partition,
    bits: bool = False,
    threshold: float = 0.5,
    valid: NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> Effects:
    """k and label flips (with ``bits`` also Q1) of all people under each intervention alone.

    ``valid`` says which twins can exist, (n, m); by default all can. Q1 is not counted under it. Between two classes a
    score of at least ``threshold`` is a favourable decision.
    """
    if bits and valid is not None:
        raise ValueError("Q1 is not counted where some twins cannot exist")
    plan = plan_of(network, encoding, twins)
    missing = _missing(valid)
    ruler = ruler_of(plan.m, epsilon, partition, plan.head is not Head.LINEAR, threshold)._replace(classes=bits)
    n = len(people)
    effects = Effects(
        k=np.empty((len(dos), n), np.int32),
        flips=np.empty((len(dos), n), np.bool_),
        q_1=np.empty((len(dos), n), np.float32) if bits else None,
    )
    for layer, chosen in _by_layer(network, dos).items():
        held, size = _held(plan, layer, [dos[i] for i in chosen])
        counts = Counts(
            k=np.empty(len(chosen) * n, np.int32),
            q_1=np.empty(len(chosen) * n if bits else 0, np.float32),
            flips=np.empty(len(chosen) * n, np.bool_),
        )

        def fused(
            part: NDArray[np.float64],
            count: int,
            start: int,
            held: Held = held,
            size: int = size,
            counts: Counts = counts,
        ) -> int:
            return int(study_chunk(plan.program, scratch(size), part, count, start, held, ruler, counts, n, missing))

        def wide(part: NDArray[np.float64], count: int, start: int, held: Held = held, counts: Counts = counts) -> int:
            return _study_wide(plan, part[:count], start, held, ruler, counts, valid)

        run = fused if plan.fused else wide
        run_batch(plan, people, run, work=plan.m * len(chosen) * _work(plan, layer), threads=threads)
        effects.k[chosen] = counts.k.reshape(len(chosen), n)
        effects.flips[chosen] = counts.flips.reshape(len(chosen), n)
        if effects.q_1 is not None:
            effects.q_1[chosen] = counts.q_1.reshape(len(chosen), n)
    return effects


def accuracies(
    network: Network,
    encoding: Encoding,
    codes: NDArray[np.float64],
    labels: NDArray[np.float64],
    dos: Sequence[Do],
    *,
    threshold: float = 0.5,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """The share of rows decided as labelled under each intervention alone, (len(dos),).

    Between two classes a score of at least ``threshold`` is a favourable decision; between more the most likely class
    is decided, the favourable one at a tie.
    """
    if network.head == "linear":
        raise ModelError("a regression network decides no class, so it has no accuracy; compare its scores instead.")
    plan = plan_of(network, encoding, None)
    n = len(codes)
    if np.shape(labels) != (n,) or n == 0:
        raise TableError(f"accuracy needs one label for each of one or more rows, but got {np.shape(labels)} for {n}.")
    truth = np.array(labels, dtype=np.float32)
    others = [number for number in range(network.classes) if number != network.favourable]
    order = np.array([network.favourable, *others], dtype=np.int64)
    decision = Decision(order, network.favourable, np.float32(threshold))
    found = np.empty(len(dos))
    lock = threading.Lock()
    for layer, chosen in _by_layer(network, dos).items():
        held, size = _held(plan, layer, [dos[i] for i in chosen])
        total = np.zeros(len(chosen), np.int64)

        def run(
            part: NDArray[np.float64],
            count: int,
            start: int,
            held: Held = held,
            size: int = size,
            total: NDArray[np.int64] = total,
        ) -> int:
            hits = np.zeros(len(total), np.int64)
            if plan.fused:
                faulty = accuracy_chunk(plan.program, scratch(size), part, truth, count, start, held, decision, hits)
            else:
                faulty = _hits_wide(plan, part[:count], truth, start, held, decision, hits)
            with lock:  # whole numbers: the order of the chunks does not matter
                total += hits
            return int(faulty)

        run_batch(plan, codes, run, work=len(chosen) * _work(plan, layer), threads=threads)
        found[chosen] = total / n
    return found


def _study_wide(
    plan: Plan,
    people: NDArray[np.float64],
    start: int,
    held: Held,
    ruler: Ruler,
    counts: Counts,
    valid: NDArray[np.bool_] | None,
) -> int:
    """As ``study_chunk``, through NumPy."""
    n, dos = len(people), len(held.neurons)
    there = np.ones((n, plan.m), np.bool_) if valid is None else valid[start : start + n]
    for low in range(0, dos, max(1, BLOCK // (n * plan.m))):
        block = slice(low, min(low + max(1, BLOCK // (n * plan.m)), dos))
        shape = block.stop - low, n, plan.m
        table, favoured, sound = np.empty(shape, np.float32), np.empty(shape, np.bool_), np.ones(n, np.bool_)
        for do, rows, twins, margins, usable in plan.layers.held(
            people, held.layer, held.neurons[block], held.values[block]
        ):
            table[do, rows, twins], favoured[do, rows, twins], fine = plan.layers.head(margins, ruler.threshold)
            sound[rows] &= usable & fine.all(axis=(0, 2))
        if not sound.all():
            return start + int(sound.argmin())
        found = count_classes(table.reshape(-1, plan.m), np.tile(there, (shape[0], 1)), ruler)
        favourable = (favoured & there).sum(axis=2)
        for target, values in (
            (counts.k, found.k),
            (counts.q_1, found.q_1),
            (counts.flips, (favourable > 0) & (favourable < there.sum(axis=1))),
        ):
            if target.size:
                target.reshape(dos, -1)[block, start : start + n] = values.reshape(shape[:2])
    return -1


def _hits_wide(
    plan: Plan,
    people: NDArray[np.float64],
    labels: NDArray[np.float32],
    start: int,
    held: Held,
    decision: Decision,
    hits: NDArray[np.int64],
) -> int:
    """As ``accuracy_chunk``, through NumPy."""
    for dos, rows, _, margins, usable in plan.layers.held(people, held.layer, held.neurons, held.values):
        if not usable.all():
            return start + rows.start + int(usable.argmin())
        outputs = margins[:, :, 0]
        if len(decision.order) == 2:
            best = np.where(expit(outputs[..., 0]) >= decision.threshold, 0, 1)
        else:  # logits against the favourable one's; the first of equals is decided
            best = np.concatenate([np.zeros((*outputs.shape[:2], 1), np.float32), -outputs], axis=2).argmax(axis=2)
        hits[dos] += (decision.order[best] == labels[start + rows.start : start + rows.stop]).sum(axis=1)
    return -1


def _missing(valid: NDArray[np.bool_] | None) -> Missing:
    """As the kernel takes it; a tile more than needed, because who is to blame is looked for from any person on."""
    if valid is None:
        return Missing(np.empty(0, np.float32), np.empty(0, np.float32))
    n, m = valid.shape
    tiles = -(-n // PEOPLE) + 1
    gaps = np.zeros((tiles * PEOPLE, m), np.float32)
    gaps[:n][~valid] = np.inf
    laid = np.ascontiguousarray(gaps.reshape(tiles, PEOPLE, m).transpose(0, 2, 1)).ravel()
    return Missing(laid, valid.sum(axis=1).astype(np.float32))


def _by_layer(network: Network, dos: Sequence[Do]) -> dict[int, NDArray[np.int64]]:
    """Which interventions are in which layer; refuses those that surgery could not make."""
    layers: dict[int, list[int]] = {}
    for number, do in enumerate(dos):
        network.holding_bias(do)
        layers.setdefault(do.layer, []).append(number)
    return {layer: np.array(numbers, dtype=np.int64) for layer, numbers in sorted(layers.items())}


def _held(plan: Plan, layer: int, dos: Sequence[Do]) -> tuple[Held, int]:
    """The interventions as the kernels take them, and the floats that a tile needs with their buffers."""
    program, count = plan.program, len(dos)
    twin_bytes = PEOPLE * 4 * plan.m
    blocks = max(1, round(count * twin_bytes / BLOCK_BYTES))
    block = min(count, max(MIN_BLOCK, -(-count // blocks)))
    tiles = (program.widths[layer], program.widths[layer + 1], max(block, count if plan.m == 1 else 0), block * plan.m)
    kept, before, sums, scores, size = (program.size + PEOPLE * np.cumsum([0, *tiles])).tolist()
    return Held(
        layer=layer,
        neurons=np.array([do.neuron for do in dos], dtype=np.int64),
        values=np.array([do.value for do in dos], dtype=np.float32),
        kept=kept,
        before=before,
        sums=sums,
        scores=scores,
        block=block,
    ), size


def _work(plan: Plan, layer: int) -> int:
    """About how many multiply-adds one intervention costs for one twin."""
    widths = plan.program.widths
    later = int((widths[layer + 1 : -1] * widths[layer + 2 :]).sum())
    return int(later + 2 * widths[layer + 1] + 50)
