"""``python -m fairbits.engine`` compiles the kernels that an audit of a network asks for, and keeps them.

Set-up does it while packages are still being fetched, for which nothing beyond NumPy, SciPy, Numba and lazy-loader may
be imported here. After ``pip install`` it moves the first audit's wait for a compiler to a time when nobody waits.
Each kernel is called once about next to nothing, with arrays of the kinds that audits bring.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np

from fairbits.domain import Attribute, Encoding, Schema, Twins
from fairbits.engine import boxes, evaluation, gradient, interventions, nearest, plan, seen, threads, tree_leaves
from fairbits.engine.kernels import boxes as box_kernels
from fairbits.engine.kernels import moves
from fairbits.models import Do, Network

SCHEMA = Schema(
    attributes=(
        Attribute(name="number", kind="integer", low=0, high=9),
        Attribute(name="category", kind="category", labels=("a", "b", "c")),
        Attribute(name="protected", kind="integer", low=0, high=1, protected=True),
    ),
    target="target",
    classes=("no", "yes"),
)
ENCODING, TWINS = Encoding.one_hot(SCHEMA), Twins(SCHEMA)
SHAPES = (ENCODING.width, 4, 3, 2)
NETWORK = Network.build([np.full(shape, 0.1) for shape in pairwise(SHAPES)], [np.zeros(width) for width in SHAPES[1:]])
PEOPLE = np.zeros((2, 3))


def score() -> None:
    """The kernel of scores and classes."""
    found = plan.plan_of(NETWORK, ENCODING, TWINS)
    evaluation.evaluate(found, PEOPLE, epsilon=0.025, partition="constrained", threads=1)


def slope() -> None:
    """The kernel of gradients, and that of the moves that they guide."""
    found = plan.plan_of(NETWORK, ENCODING, TWINS)
    foreseen = gradient.forecast(found, PEOPLE, np.zeros(2, np.int64), threads=1)
    columns = np.array(SCHEMA.free_columns, np.int64)
    domain = moves.Domain(columns, np.zeros(2), np.ones(2), np.ones(2), np.ones(2, np.bool_))
    forecast = moves.Forecast(np.zeros(2), np.ones(2), foreseen, foreseen)
    contributions = gradient.contributions_of(found, columns)
    moves.change_some(domain, PEOPLE, contributions, forecast, np.random.default_rng(0), twins=2, threads=1)


def study() -> None:
    """The kernels of interventions, and of distances between twins."""
    options = {"epsilon": 0.025, "partition": "constrained", "threads": 1}
    interventions.study(NETWORK, ENCODING, TWINS, PEOPLE, [Do(0, 0, 0.5)], **options)  # type: ignore[arg-type]
    interventions.widest(np.zeros((2, 2, 2), np.float32), threads=1)


def look_up() -> None:
    """The kernels of people who were met before, of nearest rows, and of plausibility."""
    seen.Seen().add(seen.keys_of(np.arange(2.0**16).reshape(-1, 1), np.zeros(1, np.int64)))
    more = [Attribute(name=f"number {i}", kind="integer", low=0, high=9) for i in range(16)]
    for added in ([], more):  # tables of up to 15 attributes that twins share, and of up to 31
        schema = replace(SCHEMA, attributes=(*SCHEMA.attributes, *added))
        people = np.zeros((2, len(schema)))
        nearest.NearestRow(schema, people).find(people, threads=1)
    none = np.zeros(1, np.uint32)
    leaf = tree_leaves.IsolationTrees(none, np.zeros(1), np.zeros((1, 2), np.uint32), np.zeros(1, np.float32), none, 1)
    tree_leaves.isolation_depths(leaf, PEOPLE, threads=1)


def certify() -> None:
    """The kernels of certificates."""
    network = boxes.box_network(NETWORK, SCHEMA, ENCODING, TWINS)
    layers, whole, real = network.layers, np.zeros(0, np.int64), np.zeros(0)
    first, table = np.zeros((0, network.numeric)), np.zeros((0, 2))
    masks, states = np.zeros((0, 1), np.uint64), np.zeros((0, 1), np.int8)
    box_kernels.ask_people(layers, 0.0, 0.0, np.zeros((0, len(network.values))), whole)
    box_kernels.bound_boxes(
        layers, 0.0, 0.0, first, first, masks, states, whole, real, real, whole, 0, table, table, real, real
    )


TASKS: tuple[Callable[[], None], ...] = (certify, score, study, slope, look_up)


def main() -> None:
    """Compile everything, on all cores, and look for no garbage meanwhile, which takes a sixth of the time."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor(threads.thread_count(None), initializer=gc.disable) as pool:
        for task in [pool.submit(task) for task in TASKS]:
            task.result()


if __name__ == "__main__":
    main()
