"""People whom several tasks found are shown once, whoever looks and in however many buckets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fairbits import Schema
from fairbits.store import Run, RunWriter, TaskWriter, find_doubles, keep_doubles, parts
from fairbits.store.parts import Layout
from tests.conftest import random_people

from .conftest import MANIFEST, figures

#: DuckDB takes this for a notebook, in which ipywidgets is not installed.
NOTEBOOK = """
import sys, types
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = lambda: types.SimpleNamespace(config={"IPKernelApp": {}})
sys.modules["ipywidgets"] = None
import duckdb
try:
    duckdb.connect().execute("SET enable_progress_bar = false")
except duckdb.Error as error:
    assert "ipywidgets" in str(error)
else:
    sys.exit("DuckDB does not mind: nothing is tested")
import fairbits
from tests.search.planted import planted_subject
from fairbits.search import Budget, Settings, search_subject
settings = Settings(budget=Budget(evaluations=600), strategy="random")
run = search_subject(planted_subject(), settings, sys.argv[1], tasks=2)
print(run.status, len(run) > 0, run.cases(top=3).num_rows)
"""


def test_a_notebook_without_widgets(tmp_path: Path) -> None:
    words = [sys.executable, "-c", NOTEBOOK, str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "finished True 3\n"


@pytest.mark.parametrize("group", [1, 2_000_000])
def test_the_first_evaluation_stays(
    tmp_path: Path, people_schema: Schema, rng, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "GROUP_ROWS", group)  # bucket by bucket, and all at once
    people = random_people(rng, people_schema, 60)
    free = list(people_schema.free_columns)
    keys = np.array([hash(row.tobytes()) & (2**63 - 1) for row in people[:, free]], dtype=np.uint64)
    writer = RunWriter.create(tmp_path, {**MANIFEST, "shards": 2, "buckets": 4}, people_schema)
    for number, who in enumerate((slice(0, 40), slice(20, 60))):
        with TaskWriter(tmp_path, Layout(people_schema), number, offset=100 * number, buckets=4) as task:
            task.append(people[who], figures(rng, 40), "random", keys=keys[who])
    writer.finish("finished")
    run = Run.open(tmp_path)
    distinct, first = np.unique(people[:, free], axis=0, return_index=True)
    assert len(run) == run.cases().num_rows == len(distinct)
    shown = run.query("SELECT evaluation FROM cases ORDER BY evaluation")["evaluation"].to_pylist()
    assert shown == sorted(int(i) if i < 40 else 80 + int(i) for i in first)
    found = []
    for together in (1, 40, 10_000):  # one bucket at a time, some, and all at once
        monkeypatch.setattr(parts, "GROUP_ROWS", together)
        found.append(find_doubles(run.parts_found, run.layout, buckets=4))
    assert all(np.array_equal(found[0], other) for other in found)
    keep_doubles(tmp_path, run.parts_found, found[0])
    monkeypatch.setattr("fairbits.store.run.find_doubles", None)  # nobody looks again
    assert len(Run.open(tmp_path)) == len(distinct)
    assert parts.kept_doubles(tmp_path, run.parts_found[:1]) is None  # it speaks of other parts
