"""Fair trees: the optimum where it is known or by brute force, and k = 1 by structure."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from fairbits import Attribute, Audit, Budget, Network, Schema, Table
from fairbits.repair.proposals.registry import PROPOSERS
from fairbits.repair.proposals.tree import FairTree, _cuts, built, ignoring, optimal_tree
from fairbits.repair.run import repair_run, study
from fairbits.subject import make_subject
from tests.repair import planted
from tests.repair.bare import BareInterpreter


def test_a_planted_set_is_separated(rng: np.random.Generator) -> None:
    inputs = rng.integers(0, 3, (90, 2)).astype(np.float64)
    labels = ((inputs[:, 0] > 1) ^ (inputs[:, 1] > 0)).astype(np.int64)
    found = optimal_tree(inputs, labels, np.arange(2))
    tree = built(found, inputs, np.array(["no", "yes"])[labels])
    assert tree.predict(inputs).tolist() == np.array(["no", "yes"])[labels].tolist()
    assert tree.get_depth() == 2


def test_no_tree_has_more_than_the_optimal_one(rng: np.random.Generator) -> None:
    inputs, labels = rng.integers(0, 3, (60, 3)).astype(np.float64), rng.integers(0, 2, 60)
    columns = np.array([0, 2])
    found = optimal_tree(inputs, labels, columns)
    most = 0
    for first, left, right in product(_cuts(inputs, labels, columns), repeat=3):
        above = [inputs[:, column] > cut for column, cut in (first, left, right)]
        leaf = 2 * above[0] + np.where(above[0], above[2], above[1])
        ones = np.bincount(leaf, weights=labels, minlength=4)
        most = max(most, int(np.maximum(ones, np.bincount(leaf, minlength=4) - ones).sum()))
    assert {column for column, _ in found.splits} <= {0, 2}
    assert ignoring(inputs[:, columns], labels) >= most
    names = np.array(["no", "yes"])[labels]
    assert int((built(found, inputs, names).predict(inputs) == names).sum()) == most


def test_a_tree_is_chosen_among_numbers_as_it_sees_them(tmp_path: Path, rng: np.random.Generator) -> None:
    """Trees compare in single precision, in which many of these times are one: a cut does what is said of it."""
    schema = Schema(
        attributes=(
            Attribute(name="sex", kind="category", labels=("a", "b"), protected=True),
            Attribute(name="time", kind="real", low=1.6e9, high=1.6e9 + 4000),
        ),
        target="hired",
        classes=("no", "yes"),
    )
    codes = np.column_stack([rng.integers(0, 2, 600), 1.6e9 + rng.uniform(0, 4000, 600)])
    labels = (codes[:, 1] - 1.6e9 > 1000.0).astype(np.float64)
    network = Network.build([[[1.0], [0.001]]], [[-1.6e6]], head="sigmoid")
    subject = make_subject("times", network, schema, Table(codes, labels))
    run = planted.searched(subject, tmp_path / "run")
    judged = study(run, subject, [FairTree()], quick=True, threads=1, rows_for_cases=True)
    [best] = [one for one in judged.candidates if one.name == "tree-2"]
    cut = float(re.findall(r"time ≤ ([\d.e+]+)", best.words)[0])
    rows = judged.halves.training.rows
    seen, right = rows[:, 1].astype(np.float32).astype(np.float64), judged.halves.training.labels == 1
    decided = best.network.scores(rows[:, 1:]) >= 0.5
    assert ((seen > cut) == decided).all()
    assert (decided == right).sum() == max(((seen > one) == right).sum() for one in seen)


def test_trees_are_judged_with_a_proof(tmp_path: Path) -> None:
    subject = planted.network_subject()
    run = planted.searched(subject, tmp_path / "run")
    found = study(run, subject, [FairTree()], quick=True, threads=1)
    assert [one.name for one in found.candidates] == ["tree-2", "tree-4"]
    for one in found.candidates:
        assert one.proof is not None
        assert (one.proof.bound, one.proof.property) == (1, "flips")
        assert (one.held_out.k_max, one.held_out.id_rate) == (1, 0.0)
        assert "on training rows" in one.words
    assert PROPOSERS["tree"] == FairTree()


@pytest.mark.parametrize("name", ["tree-2", "tree-4"])
def test_trees_are_written_for_everybody(tmp_path: Path, name: str) -> None:
    subject = planted.network_subject()
    run = planted.searched(subject, tmp_path / "run")
    found = repair_run(run, subject=subject, proposals=[FairTree()], choose=name, quick=True, threads=1)
    assert {path.name for path in found.files} >= {"repaired.skops", "repaired.onnx", "repaired.py"}
    assert all(check.kept and check.fresh and check.equal == check.rows for check in found.written)
    assert {check.k_max for check in found.written} == {1}


def test_a_tree_beside_a_pipeline_speaks_its_words(tmp_path: Path, bare: BareInterpreter) -> None:
    """The model has encoders of its own: the tree takes the same table, and answers with the same classes."""
    pd, compose = pytest.importorskip("pandas"), pytest.importorskip("sklearn.compose")
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "job": rng.choice(["cook", "nurse", "clerk"], 400)})
    frame["hours"] = rng.integers(0, 50, 400)
    frame["years"] = np.where(rng.random(400) < 0.1, np.nan, rng.integers(0, 9, 400))  # a tree does without it
    labels = ((frame.job == "nurse") | (frame.hours > 30) & (frame.sex == "m")).astype(int).to_numpy()
    coded = compose.make_column_transformer(
        (OneHotEncoder(), ["sex", "job"]), (SimpleImputer(), ["years"]), remainder="passthrough"
    )
    model = make_pipeline(coded, LogisticRegression(max_iter=500)).fit(frame, labels)
    audit = Audit.from_table(model, frame.assign(paid=labels), target="paid", protected="sex", favourable=0)
    run = audit.search(budget=Budget(evaluations=300), out=tmp_path / "run")
    found = run.repair(proposals=["tree"], choose="tree-2", quick=True, attack_budget=None, threads=1)
    assert found.chosen is not None
    rules = "if job is not nurse then (if hours ≤ 32 then 0, else 1), else 1"
    assert rules in found.chosen.words
    assert {path.name for path in found.files} == {"repaired.skops", "repaired.onnx", "repaired.py"}, found.warnings
    assert found.subject_file is not None
    again = Audit.of(found.subject_file, trust_pickle=True).subject
    [(_, decided, _)] = bare.guarded(tmp_path / "run", [frame], name="PlainModel")
    assert ((again.model.scores(again.encoding.encode(again.table.codes)) > 0.5) == (decided == 0)).all()
    assert {type(one) for one in decided.tolist()} == {int}
    assert (decided == labels).mean() > 0.8
    assert rules in (tmp_path / "run" / "repaired.py").read_text()
