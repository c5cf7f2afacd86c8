"""What all tests share: where the development data lies, if it does, and small random networks."""

from __future__ import annotations

import functools
import gc
import inspect
import itertools
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from socketserver import TCPServer
from subprocess import DEVNULL, PIPE
from types import SimpleNamespace
from typing import Any

if "PYTEST_XDIST_WORKER" in os.environ:
    # There are more workers than cores: threads of frameworks would only wait for each other, and they wait by
    # spinning. Said before any of them is loaded, which is when they look.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Some machines forbid Python to keep what it has compiled. A worker, and every process that it starts, would
    # compile all of fairbits anew, and pytest would rewrite it, which takes longer than most tests.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # What is imported stays: there is no garbage before all tests are collected.
    gc.disable()
    # On a new checkout nothing is compiled: the first worker does that, and not each of them the same.
    from .first import first_of_all

    first_on_new_checkout = first_of_all()
else:
    first_on_new_checkout = None

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import settings
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from threadpoolctl import ThreadpoolController

from fairbits import Attribute, Network, Schema, sandbox
from fairbits.data import sources
from fairbits.debug import origin
from fairbits.engine import work_time
from fairbits.measure import plausibility
from fairbits.models import Activation
from fairbits.repair.proposals.distil import distilled
from fairbits.repair.writers import files
from fairbits.repair.writers.checker import in_fresh_process
from fairbits.report import ReportData
from fairbits.report.figures import charts
from fairbits.scale import processes
from fairbits.search.run import SearchInProgress

from .checker import in_forked_process
from .first import give_back
from .nurseries import NURSERY, Pool, leave, started

# The same examples on every machine: what passed here passes there. HYPOTHESIS_PROFILE=default draws new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_xdist_auto_num_workers() -> int:
    """Half as many workers again as cores: a third of the time tests wait for processes that they started."""
    cores = os.cpu_count() or 1
    return cores + cores // 2


def pytest_collection_finish() -> None:
    """What is imported by now stays: looking through it for garbage again and again took a tenth of the time."""
    if first_on_new_checkout is not None:
        give_back(first_on_new_checkout)
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(700, 10, 100)  # and the cycles that figures leave behind are not worth a look at everything


def pytest_unconfigure() -> None:
    """Modules are taken apart as always, or libraries report what they leave behind."""
    gc.unfreeze()


_trees = origin.TREES


@pytest.fixture(scope="session", autouse=True)
def quick_trainings() -> Iterator[None]:
    """Debugging trains networks again, repairing dozens anew: less will do for tests that ask about other things.

    For the whole session, so that it holds for runs that several tests share, too.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairbits.data.trainer.epochs_for", lambda _rows: 2)
        patch.setattr("fairbits.repair.proposals.weights.LENGTHS", (20, 40))
        patch.setattr("fairbits.repair.proposals.weights.STARTS", 2)
        patch.setattr("fairbits.repair.proposals.weights.MEAN_UPDATES", 100)
        patch.setattr("fairbits.repair.proposals.weights.UPDATES", 60)
        patch.setitem(distilled.__kwdefaults__, "updates", 300)
        patch.setattr(origin, "TREES", 12)
        yield


@pytest.fixture
def learners_as_users_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that look for bits in labels, with as many trees as they have."""
    monkeypatch.setattr(origin, "TREES", _trees)


@pytest.fixture(autouse=True)
def same_chance() -> None:
    """Estimators that are given no seed draw from NumPy's own state: the same in every test, whoever ran before."""
    np.random.seed(20230514)  # noqa: NPY002 - that is the state they draw from


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20230514)


@pytest.fixture(scope="session", autouse=True)
def nurseries_are_kept() -> Iterator[None]:
    """Child processes in which files are tried out start once per worker and not once per file.

    They are forks of one process that has imported the frameworks for all workers; see there.
    """
    pool = Pool()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "_Nursery", pool.take)
        if sys.platform == "linux":
            patch.setattr(sandbox, "subprocess", SimpleNamespace(Popen=started, PIPE=PIPE, DEVNULL=DEVNULL))
        yield
    pool.close()
    leave()


@pytest.fixture
def fresh_nurseries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As users have them: interpreters that start from nothing."""
    with monkeypatch.context() as patch:
        patch.setattr(sandbox, "subprocess", subprocess)
        patch.setattr(sandbox, "_Nursery", NURSERY)
        yield


#: What worker processes need: imported once, by the process that they are forks of.
PRELOADED = ["fairbits.search.run", "fairbits.debug.run", "fairbits.repair.run"]
PRELOADED += ["fairbits.scale.executor", "sklearn.cluster", "sklearn.ensemble", "threadpoolctl", "tests.search.planted"]


@pytest.fixture(scope="session", autouse=True)
def workers_are_forked() -> Iterator[None]:
    """Importing everything takes a worker process longer than its work: here they are forks of one that has done so.

    That they start from nothing is tested in scale/test_same.py, and by commands in processes of their own.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        yield
        return
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    used = SimpleNamespace(get_context=lambda _: context, parent_process=multiprocessing.parent_process)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "multiprocessing", used)
        yield


@pytest.fixture(scope="session", autouse=True)
def checkers_are_forked() -> Iterator[None]:
    """Written files are asked in forks of one process that has imported their libraries; see there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "in_fresh_process", in_forked_process)
        yield


@pytest.fixture
def fresh_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    """As users have it: an interpreter that starts from nothing."""
    monkeypatch.setattr(files, "in_fresh_process", in_fresh_process)


@pytest.fixture(scope="session", autouse=True)
def nobody_waits_for_the_disk() -> Iterator[None]:
    """What tests write outlives a process that is killed, as all files do; it need not outlive the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def nobody_has_added_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the developer has kept with ``fairbits data add`` is no part of a checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "cache_folder", lambda: tmp_path_factory.getbasetemp() / "tables")
        yield


@pytest.fixture(scope="session", autouse=True)
def servers_let_callers_wait() -> Iterator[None]:
    """Python's servers have room for five who wait; who comes sixth is not heard, and calls again a second later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TCPServer, "request_queue_size", 128)
        yield


@pytest.fixture(scope="session", autouse=True)
def forests_grow_once() -> Iterator[None]:
    """Every search grows the forest of its table, hundreds of times the same one: here the first is kept.

    That the same rows give the same forest is tested in measure/test_plausibility.py.
    """
    grow, grown = plausibility._grown, {}

    @functools.wraps(grow)
    def kept(features: np.ndarray) -> plausibility._Forest:
        key = features.shape, features.tobytes()
        if key not in grown:
            grown[key] = grow(features)
        return grown[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plausibility, "_grown", kept)
        yield


@pytest.fixture(scope="session", autouse=True)
def kernels_are_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """On a new checkout all workers come to the same kernels: who comes second waits, and takes what the first left."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    compiling, place = Dispatcher.compile, tmp_path_factory.getbasetemp().parent

    def one_by_one(self: Dispatcher, signature: Any) -> Any:
        if isinstance(self._cache, NullCache):  # nobody else could take it
            return compiling(self, signature)
        with global_compiler_lock, FileLock(place / f"{self.py_func.__qualname__}.lock"):
            return compiling(self, signature)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dispatcher, "compile", one_by_one)
        yield


@pytest.fixture(scope="session", autouse=True)
def libraries_are_looked_for_once() -> Iterator[None]:
    """Whoever limits the threads of libraries looks through all that is loaded: here only after more was imported."""
    look, known = ThreadpoolController._load_libraries, {}

    def kept(self: ThreadpoolController) -> None:
        if len(sys.modules) not in known:
            look(self)
            known.clear()
            known[len(sys.modules)] = self.lib_controllers
        self.lib_controllers = list(known[len(sys.modules)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ThreadpoolController, "_load_libraries", kept)
        yield


_portraits = charts._people


@pytest.fixture(scope="session", autouse=True)
def few_portraits_are_drawn() -> Iterator[None]:
    """Two dozen portraits take longer than all the rest of a page: here the first two rows and cases have theirs."""

    def first(data: ReportData) -> Iterator[charts.Drawn]:
        return _portraits(replace(data, people=tuple(person for person in data.people if person.rank <= 2)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "_people", first)
        yield


@pytest.fixture
def all_portraits_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """As users have it."""
    monkeypatch.setattr(charts, "_people", _portraits)


class Looks:
    """A clock that goes on by 5 ms whenever somebody looks at it."""

    def __init__(self, now: float):
        self.now = now

    def __call__(self) -> float:
        self.now += 0.005
        return self.now


_begun = SearchInProgress.__init__


@pytest.fixture(scope="session", autouse=True)
def seconds_are_counted() -> Iterator[None]:
    """A search by the clock ends after as many looks at it on every machine, and finds the same where others work, too.

    Workers in processes of their own have the clock on the wall; so has who asks for ``clock_on_the_wall``.
    """

    @functools.wraps(_begun)
    def begun(self: SearchInProgress, *given: Any) -> None:
        told = inspect.signature(_begun).bind(self, *given)
        by_clock = told.arguments["plan"].budget.seconds is not None and told.arguments["by_workers"] is None
        if by_clock and told.arguments["clock"] is work_time:
            told.arguments["clock"] = Looks(0.0 if told.arguments["began"] is None else work_time())
        _begun(*told.args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SearchInProgress, "__init__", begun)
        yield


@pytest.fixture
def clock_on_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    """As users have it."""
    monkeypatch.setattr(SearchInProgress, "__init__", _begun)


@pytest.fixture(scope="session")
def shared() -> Path:
    if not (SHARED / "reference").is_dir():
        pytest.skip("the development data (../shared) is not on this machine")
    return SHARED


@pytest.fixture
def people_schema() -> Schema:
    """Two protected attributes (m = 6), one of each kind besides."""
    return Schema(
        attributes=(
            Attribute(name="age", kind="integer", low=1, high=3, labels=("young", "middle", "old"), protected=True),
            Attribute(name="job", kind="category", labels=("Sales", "Tech", "Farm", "Care")),
            Attribute(name="income", kind="real", low=-1.5, high=4.0),
            Attribute(name="sex", kind="category", labels=("Female", "Male"), protected=True),
            Attribute(name="hours", kind="integer", low=0, high=99),
        ),
        target="hired",
        classes=("no", "yes"),
    )


def random_network(
    rng: np.random.Generator,
    widths: list[int],
    *,
    activation: str = "relu",
    head: str | None = None,
    favourable: int | None = None,
) -> Network:
    weights = [rng.normal(0, 1.5 / np.sqrt(a), (a, b)) for a, b in itertools.pairwise(widths)]
    biases = [rng.normal(0, 0.3, b) for b in widths[1:]]
    return Network.build(weights, biases, activation=Activation(activation, 0.3), head=head, favourable=favourable)  # type: ignore[arg-type]


def with_inputs_scaled(network: Network, rows: object, factor: float) -> Network:
    """The network with some inputs' first weights multiplied: for columns of large numbers."""
    first = np.array(network.weights[0])
    first[rows] *= factor
    return replace(network, weights=(first, *network.weights[1:]))


def random_people(rng: np.random.Generator, schema: Schema, n: int) -> np.ndarray:
    """Uniform over the domain."""
    columns = [
        rng.uniform(a.low, a.upper, n) if a.kind == "real" else rng.integers(int(a.low), int(a.upper) + 1, n)
        for a in schema.attributes
    ]
    return np.column_stack(columns).astype(np.float64)
