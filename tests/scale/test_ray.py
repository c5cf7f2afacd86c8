"""A real cluster of several nodes on this machine: the same cases, and a node may die."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from fairbits.errors import FairbitsError, MissingDependencyError
from fairbits.scale import ExecutorOptions, Listener, carry_out
from fairbits.store import Run

from .orders import job
from .work import SHARDS, cases_of, planted_search

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns about itself


@pytest.fixture(scope="module")
def ray(tmp_path_factory):
    found = pytest.importorskip("ray", reason="ray is not installed: pip install 'fairbits[ray]'")
    root = str(Path(__file__).resolve().parents[2])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([root, *([before] if before else [])])  # for the workers of Ray
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    yield found
    found.shutdown()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="module")
def cluster(ray):
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield made
    ray.shutdown()
    made.shutdown()


def test_a_node_dies_while_it_works(cluster, alone: Run, tmp_path) -> None:
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    folder = tmp_path / "run"
    nodes = [node]

    def kill(*_: object) -> None:
        if nodes and list(folder.glob("tasks/*.json")):
            cluster.remove_node(nodes.pop(), allow_graceful=False)

    run = planted_search(folder, ExecutorOptions(workers=2, ray=cluster.address), watch=kill)
    assert not nodes
    assert run.status == "finished"
    assert cases_of(run).equals(cases_of(alone))
    assert run.scale is not None
    assert run.scale["executor"] == "ray"
    assert run.scale["done"] == SHARDS
    assert all(fault["kind"] in ("node", "killed") for fault in run.scale["faults"])


def test_faults_of_shards_are_told_apart(cluster, tmp_path) -> None:
    seen = []
    orders = {0: ("die", 1, "a"), 1: ("memory", 1, "b"), 2: ("die", 0, "c")}
    listener = Listener(fault=lambda number, _, fault: seen.append((number, fault.kind)))
    carried = carry_out(ExecutorOptions(workers=1, ray=cluster.address), job(tmp_path), orders.items(), listener)
    assert carried.results == {0: 2, 1: 2, 2: 1}
    assert sorted(seen) == [(0, "killed"), (1, "memory")]


def test_a_lost_head_is_looked_for_again(cluster, ray, monkeypatch, tmp_path) -> None:
    seen, real = [], ray.wait
    failures = iter([ConnectionError("gone")])

    def wait(*given: object, **more: object) -> object:
        if Path(tmp_path, "a").exists():  # the warm-up is over, and a shard is being done
            for failure in failures:
                raise failure
        return real(*given, **more)

    monkeypatch.setattr(ray, "wait", wait)
    orders = enumerate([("die", 0, "a"), ("die", 0, "b")])
    listener = Listener(fault=lambda number, _, fault: seen.append((number, fault.kind)))
    carried = carry_out(ExecutorOptions(workers=1, ray=cluster.address), job(tmp_path), orders, listener)
    assert set(carried.results) == {0, 1}
    assert len(seen) == 1
    assert seen[0][1] == "head"


def test_a_cluster_that_is_not_there(ray, monkeypatch, tmp_path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("nobody answers\nat all")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(FairbitsError, match=r"'10.0.0.1:6379' cannot be reached \(nobody answers\); check the address"):
        planted_search(tmp_path / "run", ExecutorOptions(ray="10.0.0.1:6379"))
    assert not list((tmp_path / "run").glob("*"))


def test_without_ray(monkeypatch, tmp_path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'ray>="):
        planted_search(tmp_path / "run", ExecutorOptions(ray="local"))
