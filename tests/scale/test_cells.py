"""Comparisons and the paper's tables by many workers: every cell is a shard, and is made once."""

from __future__ import annotations

import pytest

from fairbits.errors import OptionError
from fairbits.options import CompareOptions
from fairbits.paper import compare
from fairbits.paper.research import ExperimentPlan, ablation
from fairbits.paper.subjects import Roster
from fairbits.scale import ExecutorOptions, Job
from fairbits.search import Budget
from tests.search.planted import planted_subject

#: Figures that the clock has no say in.
SAME = ("cases", "id_cases", "k_max", "q_1_mean_id", "diversity", "changed")


def test_a_comparison_by_two(tmp_path) -> None:
    contest = CompareOptions(budget=Budget(evaluations=1000), repeats=4)
    alone = compare(planted_subject(), contest, ["random"])
    seen: list[int] = []
    together = compare(
        planted_subject(),
        contest,
        ["random"],
        folder=tmp_path,
        executor_options=ExecutorOptions(workers=2),
        progress=lambda done, *_: seen.append(done),
    )
    assert seen == [0, 1, 2, 3]
    for one, other in zip(alone.entries, together.entries, strict=True):
        assert [one.values(name) for name in SAME] == [other.values(name) for name in SAME]
    assert len(list(tmp_path.glob("cells/*.json"))) == 4
    again: list[int] = []
    compare(
        planted_subject(),
        contest,
        ["random"],
        folder=tmp_path,
        executor_options=ExecutorOptions(workers=2),
        progress=lambda done, *_: again.append(done),
    )
    assert again == []


@pytest.mark.parametrize("trusted", [False, True])
def test_workers_trust_a_pickle_only_where_the_user_does(trusted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = []

    def refused(_: ExecutorOptions, job: Job, *__: object) -> None:
        jobs.append(job)
        raise OptionError("seen")

    monkeypatch.setattr("fairbits.paper.cells.carry_out", refused)
    contest, by_two = CompareOptions(budget=Budget(evaluations=10)), ExecutorOptions(workers=2)
    with pytest.raises(OptionError, match="seen"):
        compare(planted_subject(), contest, ["random"], executor_options=by_two, trust_pickle=trusted)
    assert jobs[0].shared.grants.get("trust_pickle", False) is trusted


def test_the_papers_cells(tmp_path) -> None:
    found = Roster(["heart"], [])
    plan = ExperimentPlan("rq1", found, tmp_path, budget=Budget(evaluations=2_000), strategies=["random"])
    table = plan.run(executor_options=ExecutorOptions(workers=1))
    assert table.rows[0][:2] == ["heart", "random"]
    made = ablation(found, tmp_path, queries=20_000, repeats=1, executor_options=ExecutorOptions(workers=1))
    kept = {path.name for path in tmp_path.glob("cells/*.json")}
    assert "rq1-heart-random-0.json" in kept
    assert "ablation-heart-binary-0.json" in kept
    assert len(made.rows) == 3
