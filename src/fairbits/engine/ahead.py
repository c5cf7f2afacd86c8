"""Kernels compiled ahead: on a machine that has none yet, a second process compiles while an audit is at work.

It is a fresh interpreter that knows nothing of the model: it calls the engine with a network of a few neurons, and its
results lie in the cache on disk, where the audit finds them. The first ones, which score twins and compare people with
rows, are left to the audit, which would only wait for them. The others are compiled here in the order in which the
audit needs them, quick ones last: an audit whose search is over by then compiles those itself, while the bounds of
boxes, which take longest, are compiled here. The audit leaves it a core. The process says which kernel it is at, so
that the audit waits for that one rather than compile it too. It ends with the audit: its standard input closes then,
whatever ended the audit. What it did not get to is compiled as if it were not there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.core import event

from fairbits.domain import Category, Encoding, Integer, Schema, Twins
from fairbits.engine.box_layers import box_network
from fairbits.engine.compilation import plan_of
from fairbits.engine.distances import widest, widest_chunk
from fairbits.engine.forecast import contributions_of
from fairbits.engine.gradient import foresight
from fairbits.engine.interventions import accuracies, study
from fairbits.engine.isolation import IsolationTrees, isolation_depths, walk_chunk
from fairbits.engine.kernels.box_bounds import bound_boxes
from fairbits.engine.kernels.box_counts import BINS
from fairbits.engine.kernels.box_people import ask_people
from fairbits.engine.kernels.compiler import compiled_elsewhere, is_on_disk
from fairbits.engine.kernels.gradients import gradients_chunk
from fairbits.engine.kernels.interventions import accuracy_chunk, study_chunk
from fairbits.engine.kernels.masked_twins import masked
from fairbits.engine.kernels.moves import Domain, Outlook, change_chunk, change_some
from fairbits.engine.seen import Seen
from fairbits.engine.threads import available_cores, leaving_a_core
from fairbits.models import Do, Network

#: The kernels that take longest; where all are on disk, no process is started.
SLOW = (gradients_chunk, change_chunk, walk_chunk, widest_chunk, study_chunk, accuracy_chunk, bound_boxes)
_CODE = "from fairbits.engine.ahead import compile_all; compile_all()"


@contextlib.contextmanager
def compiled_ahead() -> Iterator[None]:
    """Compile what an audit of a network will need in a second process, where kernels are missing and cores are not.

    Results are the same with and without it.
    """
    if available_cores() < 2 or not sys.executable or getattr(sys, "frozen", False) or all(map(is_on_disk, SLOW)):
        yield
        return
    try:
        process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-P", "-c", _CODE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
    except OSError:  # no more processes allowed: the audit compiles by itself
        yield
        return
    progress = _Progress(process)
    compiled_elsewhere.append(progress.wait)
    try:
        with leaving_a_core(progress.at_work):
            yield
    finally:
        compiled_elsewhere.remove(progress.wait)
        process.kill()
        process.communicate()


class _Progress:
    """Which kernel the other process is at: none ("") between two of them, None once it has ended."""

    def __init__(self, process: subprocess.Popen[str]):
        self._current: str | None = ""
        self._changed = threading.Condition()
        threading.Thread(target=self._follow, args=(process.stdout,), daemon=True).start()

    def _follow(self, lines: Any) -> None:
        with contextlib.suppress(ValueError):  # closed at the end of the audit
            for line in lines:
                self._now_at(line.strip())
        self._now_at(None)

    def _now_at(self, name: str | None) -> None:
        with self._changed:
            self._current = name
            self._changed.notify_all()

    def at_work(self) -> bool:
        """Whether the other process has kernels left to compile."""
        return self._current is not None

    def wait(self, name: str) -> bool:
        """Wait while the other process is at a kernel."""
        with self._changed:
            if self._current != name:
                return False
            self._changed.wait_for(lambda: self._current != name)
            return True


class _Announcer(event.Listener):  # type: ignore[misc] # Numba has no types
    """Prints the name of each kernel that is begun; its copy is on disk when the next line comes."""

    def __init__(self) -> None:
        self._depth = 0

    def on_start(self, event: Any) -> None:
        """A kernel, or something that it needs, is begun."""
        if self._depth == 0:
            _announce(event.data["dispatcher"].py_func.__name__)
        self._depth += 1

    def on_end(self, _event: Any) -> None:
        """It is compiled."""
        self._depth -= 1


def compile_all() -> None:
    """Compile the kernels of an audit in the order in which it needs them: the whole of the second process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the audit, which ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    event.register("numba:compile", _Announcer())
    for step in _steps():
        step()
        _announce("")


def _announce(name: str) -> None:
    sys.stdout.write(name + "\n")
    sys.stdout.flush()


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def _steps() -> Iterator[Callable[[], object]]:
    """Calls of the engine about one person of a made-up schema, whose arrays have the types of every other one."""
    schema = Schema(
        attributes=(
            Category(name="group", labels=("a", "b"), protected=True),
            Category(name="kind", labels=("c", "d", "e")),
            Integer(name="amount", low=0, high=9),
        ),
        target="outcome",
        classes=("no", "yes"),
    )
    encoding, twins = Encoding.one_hot(schema), Twins(schema)
    shapes = [(encoding.width, 3), (3, 2), (2, 1)]
    network = Network.build([np.full(shape, 0.1) for shape in shapes], [np.zeros(width) for _, width in shapes])
    people, first, dos = np.zeros((1, len(schema))), np.zeros(1, np.int64), [Do(0, 0, 0.0)]
    plan, columns = plan_of(network, encoding, twins), np.array(schema.free_columns, dtype=np.int64)
    figures = {"epsilon": 0.1, "partition": "grid", "threads": 1}

    def propose() -> None:
        domain = Domain(columns, np.ones(2), np.ones(2), np.ones(2), np.ones(2, np.bool_))
        known = foresight(plan, people, first, threads=1)
        outlook, rng = Outlook(np.zeros(1), np.zeros(1), known, known), np.random.default_rng(0)
        change_some(domain, people, contributions_of(plan, columns), outlook, rng, twins=2, threads=1)

    def walk() -> None:
        node, nodes = np.zeros(1, np.uint32), np.zeros((1, 2), np.uint32)
        trees = IsolationTrees(node, np.zeros(1), nodes, np.zeros(1, np.float32), node, 0)
        isolation_depths(trees, people, threads=1)

    def bound() -> None:
        boxes = box_network(network, schema, encoding, twins)
        whole, places, shares = boxes.whole(), np.zeros((2, 1), np.int64), np.zeros((2, 1))
        states, none = np.zeros((1, int(boxes.layers.widths.sum())), np.int8), np.empty((0, twins.m))
        bound_boxes(
            *(
                boxes.layers,
                0.0,
                0.0,
                *whole,
                states,
                places[0],
                *shares,
                places[1],
                BINS,
                none,
                none.copy(),
                np.empty(0),
            )
        )

    def flip() -> None:
        layers = box_network(network, schema, encoding, twins).layers
        ask_people(layers, 0.0, 0.0, np.zeros((1, 2)), np.zeros(1, np.int64))

    yield lambda: foresight(plan, people, first, threads=1)
    yield propose
    yield walk
    yield lambda: Seen(capacity_hint=0).add(np.arange(2000, dtype=np.uint64))  # so many that it grows
    yield lambda: study(network, encoding, twins, people, dos, epsilon=0.1, partition="grid", threads=1)
    yield lambda: accuracies(network, encoding, people, np.zeros(1), dos, threads=1)
    yield bound
    yield flip
    yield lambda: widest(np.zeros((1, 2, 3), np.float32), threads=1)
    yield lambda: masked(np.zeros((1, 2), np.float32), np.ones((1, 2), np.bool_), **figures)  # type: ignore[arg-type]


__all__ = ["compile_all", "compiled_ahead"]
