"""What happens to people when a neuron is held at a value, and how far apart a person's twins are inside a network.

Many single interventions are studied at once, without surgery: the results are those of ``evaluate`` on
``network.with_interventions([do])``, up to rounding in float32.

The kernel takes a tile of people, one twin after the other, and holds many neurons at many values. All interventions
in a layer share what comes before it. So for each twin the layers up to the intervened one run
once, and the next pre-activation with them; holding neuron j at v then adds (v − a_j) W[j, :] to that, and only the
later layers, which are small, run for each intervention. All of it stays in the first cache levels; the scores of a
block of interventions stay in the second until the classes are counted.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import Encoding, Twins
from fairbits.engine.evaluation import count_classes, run_batch
from fairbits.engine.kernels.compiler import compiled, inlined
from fairbits.engine.kernels.evaluate import (
    ALWAYS,
    HALF,
    INFINITY,
    ONE,
    ZERO,
    first_layer,
    harmless,
    part_twins,
    run_layers,
    score_of,
    start_twin,
    start_twins,
)
from fairbits.engine.kernels.lanes import (
    PEOPLE,
    add,
    distance,
    fma,
    if_greater,
    leaky,
    load,
    lowest,
    minimum,
    sigmoid,
    splat,
    splat_at,
    store,
    sub,
)
from fairbits.engine.kernels.partition import Partition, Ruler, ruler_of, sweep, to_bins
from fairbits.engine.plan import Plan, plan_of, scratch
from fairbits.engine.threads import spread
from fairbits.engine.wide import BLOCK
from fairbits.errors import ModelError, TableError
from fairbits.functions import expit
from fairbits.models import Do, Network

#: Weights of one layer up to which the kernels are faster here: much of the way is shared by all interventions.
FASTER = 2**21


class Held(NamedTuple):
    """The interventions in one layer, and where their buffers lie in a tile's memory."""

    layer: int
    neurons: NDArray[np.int64]
    values: NDArray[np.float32]
    weight: int  # where the weights of the layer after it begin, and its biases
    bias: int
    kept: int  # the layer's outputs
    before: int  # the next layer's pre-activations
    sums: int  # per intervention: the favourable twins, or the rows decided right
    scores: int  # per intervention of a block: the scores of all twins
    block: int


class Counts(NamedTuple):
    """Where the figures go, flat: intervention first, then person. What is not asked for is empty.

    ``hits`` are how many rows each intervention leaves decided as labelled.
    """

    k: NDArray[np.int32]
    q_1: NDArray[np.float32]
    flips: NDArray[np.bool_]
    hits: NDArray[np.int64]


class ImpossibleTwins(NamedTuple):
    """Twins that cannot exist; both are empty where all can.

    ``gaps`` are 0 for those that can and infinity for those that cannot, (tile, twin, person): added to a score they
    put it behind every class. ``twins`` is how many each person has.
    """

    gaps: NDArray[np.float32]
    twins: NDArray[np.float32]


class Decision(NamedTuple):
    """How the outputs become a class, and what each row is labelled; both are empty where that is not asked.

    Between two classes the ruler's threshold decides; between more those that come first in the order win a tie.
    """

    order: NDArray[np.int64]
    labels: NDArray[np.float32]


@inlined
def keep(tile, source, target, count):
    """Copy neurons of a tile."""
    for j in range(count):
        store(tile, target + j * PEOPLE, load(tile, source + j * PEOPLE))


@inlined
def hold(program, tile, held, do, weight):
    """Put the outputs of the layer after the intervened one, but for their curve, into ``near``."""
    layer, neuron = held.layer + 1, held.neurons[do]
    outputs = program.widths[layer]
    shift = sub(splat(held.values[do]), load(tile, held.kept + neuron * PEOPLE))
    below = splat(program.slopes[layer])
    for j in range(outputs):
        x = fma(shift, splat_at(program.weights, weight + neuron * outputs + j), load(tile, held.before + j * PEOPLE))
        store(tile, program.near + j * PEOPLE, leaky(x, below))


@inlined
def count_k(tile, start, m, tolerance):
    """k of the tile's people, as ``partition.sweep`` counts it, without the sizes of the classes."""
    opened = splat(INFINITY)
    for twin in range(m):
        opened = minimum(load(tile, start + twin * PEOPLE), opened)
    k = splat(ZERO)
    while True:
        upcoming = splat(INFINITY)
        for twin in range(m):
            score = load(tile, start + twin * PEOPLE)
            gap = sub(score, opened)
            upcoming = minimum(if_greater(gap, splat(tolerance), score, splat(INFINITY)), upcoming)
        k = add(k, if_greater(splat(INFINITY), opened, splat(ONE), splat(ZERO)))
        opened = upcoming
        if lowest(opened) == INFINITY:
            break
    return k


@inlined
def score_tile(program, tile, near, held, slot, twin, people, m, impossible, gap, threshold):
    """Keep the scores of one twin under one intervention, or of several, and count the favourable decisions."""
    score, favourable, trouble = score_of(program, tile, near, threshold)
    at, scores = held.sums + slot * PEOPLE, held.scores + slot * m * PEOPLE
    if PEOPLE // people > 1:
        part_twins(program, tile, score, favourable, scores, at, twin, people, m, impossible.gaps, gap)
    else:
        if impossible.gaps.size:
            favourable = if_greater(load(impossible.gaps, gap + twin * PEOPLE), splat(ZERO), splat(ZERO), favourable)
        store(tile, at, add(load(tile, at), favourable))
        store(tile, scores + twin * PEOPLE, score)
    return trouble


@inlined
def write_figures(program, scratch, held, slot, m, ruler, counts, row, people, impossible, first):
    """Count the classes under one intervention of the block and write the people's figures."""
    tile, at, width = scratch.tile, held.scores + slot * m * PEOPLE, ruler.tolerance
    if ruler.grid:
        to_bins(tile, at, m, ruler.epsilon, ruler.last)
        width = HALF
    if impossible.gaps.size:
        for twin in range(m):
            place = at + twin * PEOPLE
            store(tile, place, add(load(tile, place), load(impossible.gaps, first * m + twin * PEOPLE)))
    if ruler.classes:
        sweep(tile, at, m, width, ruler.terms, scratch.counts, scratch.bits, counts.k, counts.q_1, row, people)
    else:
        store(tile, program.near, count_k(tile, at, m, width))
        for person in range(people):
            counts.k[row + person] = max(np.int32(tile[program.near + person]), np.int32(1))
    for person in range(people):
        favoured = tile[held.sums + slot * PEOPLE + person]
        twins = impossible.twins[first + person] if impossible.gaps.size else np.float32(m)
        counts.flips[row + person] = ZERO < favoured < twins


@inlined
def count_right(tile, near, held, slot, decision, threshold, truth):
    """Count the people whom one intervention leaves decided as labelled."""
    favourable = splat(np.float32(decision.order[0]))
    best, decided = splat(ZERO), favourable  # logits against the favourable class's
    if decision.order.size == 2:
        other = splat(np.float32(decision.order[1]))
        decided = if_greater(splat(threshold), sigmoid(load(tile, near)), other, favourable)
    for place in range(1, decision.order.size if decision.order.size > 2 else 1):
        logit = sub(splat(ZERO), load(tile, near + (place - 1) * PEOPLE))
        decided = if_greater(logit, best, splat(np.float32(decision.order[place])), decided)
        best = if_greater(logit, best, logit, best)
    at = held.sums + slot * PEOPLE
    right = if_greater(splat(HALF), distance(decided, truth), splat(ONE), splat(ZERO))
    store(tile, at, add(load(tile, at), right))


@compiled
def study_chunk(program, scratch, codes, n, start, held, ruler, counts, people_in_all, impossible, decision):  # noqa: PLR0912
    """Figures of people under every intervention, or how many rows each leaves decided as labelled.

    Each twin runs through the layers that no intervention changes, and up to the pre-activation after them, as if that
    were one more intervention: every call of ``dense`` in a kernel is compiled anew.
    """
    tile, layer, last = scratch.tile, held.layer, program.widths.size - 1
    m = program.twins.size // program.widths[0]
    inputs, outputs = program.widths[layer], program.widths[layer + 1]
    weight, bias = held.weight, held.bias
    for first in range(0, n, PEOPLE):
        faulty = first_layer(program, scratch, codes, first, np.int64(PEOPLE), program.widths[0])
        if faulty >= 0:
            return start + faulty
        people, gap = min(PEOPLE, n - first), (start + first) * m
        if decision.labels.size:
            for person in range(PEOPLE):  # the rows that only fill the tile agree with no class
                tile[held.scores + person] = decision.labels[start + first + person] if person < people else -ONE
        truth = load(tile, held.scores)
        for low in range(0, held.neurons.size, held.block):
            high = min(low + held.block, held.neurons.size)
            for do in range(high - low):
                store(tile, held.sums + do * PEOPLE, splat(ZERO))
            trouble = splat(ZERO)
            for twin in range(0, m, min(PEOPLE // people, m)):
                for do in range(low - 1, high):
                    shared = do < low
                    if shared and 2 * people <= PEOPLE:
                        start_twins(program, tile, program.base, twin, people, m)
                    elif shared:
                        start_twin(program, tile, program.base, twin)
                    else:
                        hold(program, tile, held, do, weight)
                    near, far = run_layers(
                        program,
                        tile,
                        scratch.live,
                        ALWAYS,
                        np.int64(0) if shared else layer + 1,
                        layer + 1 if shared else last,
                        np.int64(0) if shared else weight + inputs * outputs,
                        np.int64(0) if shared else bias + outputs,
                        shared,
                    )
                    if shared:
                        keep(tile, far, held.kept, inputs)
                        keep(tile, near, held.before, outputs)
                    elif decision.labels.size:
                        count_right(tile, near, held, do - low, decision, ruler.threshold, truth)
                    else:
                        found = score_tile(
                            program, tile, near, held, do - low, twin, people, m, impossible, gap, ruler.threshold
                        )
                        trouble = add(trouble, found)
            if not harmless(trouble):
                return start + first
            for do in range(low, high):
                if decision.labels.size:
                    for person in range(people):
                        counts.hits[do] += np.int64(tile[held.sums + (do - low) * PEOPLE + person])
                else:
                    row = do * people_in_all + start + first
                    write_figures(
                        program, scratch, held, do - low, m, ruler, counts, row, people, impossible, start + first
                    )
    return -1


#: Bounds and distances are sums in float32: a pair is passed over only if it is short by more than this share.
ROUNDING = 1e-5


def widest(outputs: NDArray[np.float32], *, threads: int | None = None) -> NDArray[np.float64]:
    """The largest L1 distance between the twins of each person."""
    n, m, width = outputs.shape
    found = np.zeros(n)

    def run(start: int, stop: int) -> None:
        part = np.asarray(outputs[start:stop], dtype=np.float32)
        reach = np.abs(part - part.mean(axis=1, keepdims=True)).sum(axis=2)
        order = np.argsort(-reach, axis=1, kind="stable")  # farthest first
        part = np.take_along_axis(part, order[:, :, None], axis=1).transpose(0, 2, 1)
        widest_chunk(np.array(part, order="C"), np.take_along_axis(reach, order, axis=1), found[start:stop])

    if m > 1 and width > 0:
        spread(run, n, m * m * width // 4, threads)
    return found


@compiled
def widest_chunk(twins, reach, found):
    """The largest L1 distance between twins, (people, outputs, twins) and farthest from their mean first.

    One is compared with many at a time, as long as both are far enough from the mean to be far from each other.
    """
    n, width, m = twins.shape
    distances = np.empty(m, np.float32)
    for person in range(n):
        best = np.float32(0)
        for one in range(m - 1):
            enough = best * np.float32(1 - ROUNDING) - reach[person, one]
            last = one + 1
            while last < m and reach[person, last] >= enough:
                last += 1
            if last == one + 1:
                break
            for other in range(one + 1, last):
                distances[other] = 0
            for j in range(width):
                here = twins[person, j, one]
                for other in range(one + 1, last):
                    distances[other] += abs(twins[person, j, other] - here)
            for other in range(one + 1, last):
                best = max(best, distances[other])
        found[person] = best


#: Scores of a block of interventions, for one tile of people: they should stay in the second-level cache.
BLOCK_BYTES = 1024 * 1024
#: Interventions in a block, however many twins there are: the shared layers are paid once per block.
MIN_BLOCK = 8


NO_DECISION = Decision(np.empty(0, np.int64), np.empty(0, np.float32))


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

    @property
    def id_rate(self) -> NDArray[np.float64]:
        """Share of people whose twins get different decisions, per intervention."""
        return self.flips.mean(axis=1)


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

    ``valid`` says which twins can exist, (n, m); by default all can. Between two classes a score of at least
    ``threshold`` is a favourable decision.
    """
    plan = plan_of(network, encoding, twins)
    ruler = ruler_of(plan.m, epsilon, partition, plan.head != "linear", threshold)._replace(classes=bits)
    shape = len(dos), len(people)
    effects = Effects(
        k=np.empty(shape, np.int32),
        flips=np.empty(shape, np.bool_),
        q_1=np.empty(shape, np.float32) if bits else None,
    )
    for chosen, counts in _by_layer(network, plan, people, dos, ruler, NO_DECISION, valid, threads):
        here = len(chosen), len(people)
        effects.k[chosen], effects.flips[chosen] = counts.k.reshape(here), counts.flips.reshape(here)
        if effects.q_1 is not None:
            effects.q_1[chosen] = counts.q_1.reshape(here)
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
    others = [number for number in range(network.classes) if number != network.favourable]
    order = np.array([network.favourable, *others], dtype=np.int64)
    decision = Decision(order, np.array(labels, dtype=np.float32))
    ruler = ruler_of(1, 1.0, "grid", True, threshold)
    found = np.empty(len(dos))
    for chosen, counts in _by_layer(network, plan, codes, dos, ruler, decision, None, threads):
        found[chosen] = counts.hits / n
    return found


def _by_layer(
    network: Network,
    plan: Plan,
    people: NDArray[np.float64],
    dos: Sequence[Do],
    ruler: Ruler,
    decision: Decision,
    valid: NDArray[np.bool_] | None,
    threads: int | None,
) -> Iterator[tuple[NDArray[np.int64], Counts]]:
    """Which interventions are in a layer, and what becomes of all people under each; layer by layer."""
    impossible, n, lock, widths = _impossible(valid), len(people), threading.Lock(), plan.program.widths
    plan.fused |= bool((widths[:-1] * widths[1:]).max(initial=0) <= FASTER)
    layers: dict[int, list[int]] = {}
    for number, do in enumerate(dos):
        network.holding_bias(do)  # refuses what surgery could not make
        layers.setdefault(do.layer, []).append(number)
    for layer, chosen in sorted(layers.items()):
        held, size = _held(plan, layer, [dos[i] for i in chosen])
        figures = 0 if decision.labels.size else len(chosen) * n
        counts = Counts(
            k=np.empty(figures, np.int32),
            q_1=np.empty(figures if ruler.classes else 0, np.float32),
            flips=np.empty(figures, np.bool_),
            hits=np.zeros(len(chosen), np.int64),
        )

        def run(
            part: NDArray[np.float64],
            count: int,
            start: int,
            held: Held = held,
            size: int = size,
            counts: Counts = counts,
        ) -> int:
            own = counts._replace(hits=np.zeros_like(counts.hits))
            if plan.fused:
                with scratch(plan, size) as buffer:
                    faulty = study_chunk(
                        plan.program, buffer, part, count, start, held, ruler, own, n, impossible, decision
                    )
            elif decision.labels.size:
                faulty = _hits_wide(plan, part[:count], start, held, ruler, own, decision)
            else:
                faulty = _study_wide(plan, part[:count], start, held, ruler, own, valid)
            with lock:  # whole numbers: the order of the chunks does not matter
                counts.hits[:] += own.hits
            return int(faulty)

        # About how many multiply-adds one intervention costs for one twin.
        each = (widths[layer + 1 : -1] * widths[layer + 2 :]).sum() + 2 * widths[layer + 1] + 50
        run_batch(plan, people, run, work=int(plan.m * len(chosen) * each), threads=threads)
        yield np.array(chosen, np.int64), counts


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
    start: int,
    held: Held,
    ruler: Ruler,
    counts: Counts,
    decision: Decision,
) -> int:
    """Count the rows that each intervention leaves decided as labelled, through NumPy."""
    for dos, rows, _, margins, usable in plan.layers.held(people, held.layer, held.neurons, held.values):
        if not usable.all():
            return start + rows.start + int(usable.argmin())
        outputs = margins[:, :, 0]
        if len(decision.order) == 2:
            best = np.where(expit(outputs[..., 0]) >= ruler.threshold, 0, 1)
        else:  # logits against the favourable one's; the first of equals is decided
            best = np.concatenate([np.zeros((*outputs.shape[:2], 1), np.float32), -outputs], axis=2).argmax(axis=2)
        labels = decision.labels[start + rows.start : start + rows.stop]
        counts.hits[dos] += (decision.order[best] == labels).sum(axis=1)
    return -1


def _impossible(valid: NDArray[np.bool_] | None) -> ImpossibleTwins:
    """As the kernel takes them; a tile more than needed, because who is to blame is looked for from any person on."""
    if valid is None:
        return ImpossibleTwins(np.empty(0, np.float32), np.empty(0, np.float32))
    n, m = valid.shape
    tiles = -(-n // PEOPLE) + 1
    gaps = np.zeros((tiles * PEOPLE, m), np.float32)
    gaps[:n][~valid] = np.inf
    laid = np.ascontiguousarray(gaps.reshape(tiles, PEOPLE, m).transpose(0, 2, 1)).ravel()
    return ImpossibleTwins(laid, valid.sum(axis=1).astype(np.float32))


def _held(plan: Plan, layer: int, dos: Sequence[Do]) -> tuple[Held, int]:
    """The interventions as the kernels take them, and the floats that a tile needs with their buffers."""
    program = plan.program
    count = len(dos)
    widths = plan.program.widths
    twin_bytes = PEOPLE * 4 * plan.m
    blocks = max(1, round(count * twin_bytes / BLOCK_BYTES))
    block = min(count, max(MIN_BLOCK, -(-count // blocks)))
    tiles = (widths[layer], widths[layer + 1], block, block * plan.m)
    kept, before, sums, scores, size = (program.size + PEOPLE * np.cumsum([0, *tiles])).tolist()
    return Held(
        layer=layer,
        neurons=np.array([do.neuron for do in dos], dtype=np.int64),
        values=np.array([do.value for do in dos], dtype=np.float32),
        weight=int((widths[:layer] * widths[1 : layer + 1]).sum()),
        bias=int(widths[1 : layer + 1].sum()),
        kept=kept,
        before=before,
        sums=sums,
        scores=scores,
        block=block,
    ), size
