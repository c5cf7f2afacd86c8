"""One cut-off for all: kernels, black boxes, masks, interventions, debugging, repair, and the files in between."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, HistGradientBoostingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import fairbits
from fairbits import Network, Schema, Table
from fairbits.debug.neurons import accuracy_of
from fairbits.engine import accuracies, study
from fairbits.errors import SchemaError
from fairbits.gates import freeze_subject
from fairbits.measure import Evaluator
from fairbits.models import Do
from fairbits.repair.proposals.weights import favourable_share, recentred
from fairbits.search.strategies.climb import height
from fairbits.subject import make_subject
from fairbits.subject.export import document_of_schema, document_of_subject, export_subject
from fairbits.subject.toml import schema_of_document

from ..cli.calling import fairbits as called
from ..conftest import random_network, random_people

CUTS = (0.3, 0.5, 0.8)


def two(schema: Schema, cut: float | None, favourable: str = "b") -> Schema:
    return replace(schema, target="y", classes=("a", "b"), favourable=favourable, threshold=cut)


class Foreign:
    """The same scores without the kernels."""

    def __init__(self, network: Network):
        self.inputs, self.scores = network.inputs, network.scores


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(("outputs", "head"), [(1, "sigmoid"), (2, "softmax")])
@pytest.mark.parametrize("favourable", [0, 1])
def test_every_path_counts_the_same_decisions(
    cut: float, outputs: int, head, favourable: int, people_schema, rng
) -> None:
    schema = two(people_schema, cut, "ab"[favourable])
    network = random_network(rng, [9, 12, outputs], head=head, favourable=favourable)
    people = random_people(rng, people_schema, 200)
    native = Evaluator(network, schema)
    scores = native.scores(people)
    clear = (np.abs(scores - cut) > 1e-5).all(axis=1)  # elsewhere NumPy and the kernel may round differently
    expected = (scores >= np.float32(cut)).sum(axis=1)
    figures = native.evaluate(people)
    np.testing.assert_array_equal(figures.favourable, expected)
    np.testing.assert_array_equal(figures.flips, (expected > 0) & (expected < native.m))
    foreign = Evaluator(Foreign(network), schema, native.encoding).evaluate(people)
    np.testing.assert_array_equal(foreign.favourable[clear], expected[clear])
    ruled = replace(schema, rules=('age = "young" -> job != "Tech"',))
    masked = Evaluator(network, ruled)
    valid = masked.valid_twins(people)
    np.testing.assert_array_equal(masked.evaluate(people).favourable, ((scores >= np.float32(cut)) & valid).sum(axis=1))
    dos = [Do(0, 1, 0.4), Do(0, 3, 0.0)]
    effects = study(
        network, native.encoding, native.twins, people, dos, epsilon=0.025, partition="constrained", threshold=cut
    )
    held = [native.with_model(network.with_interventions([do])).evaluate(people).flips for do in dos]
    assert (effects.flips == np.array(held)).mean() > 0.99
    labels = rng.integers(0, 2, 200).astype(float)
    right = accuracies(network, native.encoding, people, labels, dos, threshold=cut)
    inputs = native.encoding.encode(people)
    for found, do in zip(right, dos, strict=True):
        favoured = network.with_interventions([do]).scores(inputs) >= np.float32(cut)
        decided = np.where(favoured, favourable, 1 - favourable)
        assert found == pytest.approx((decided == labels).mean(), abs=0.006)
    subject = make_subject("s", network, schema, Table(people, labels))
    decided = np.where(network.scores(inputs) >= np.float32(cut), favourable, 1 - favourable)
    assert accuracy_of(subject.model, subject) == (decided == labels).mean()


def test_repairs_keep_the_share_at_the_cut_off(people_schema, rng) -> None:
    network = random_network(rng, [9, 12, 2])
    inputs = rng.normal(size=(500, 9)).astype(np.float32)
    moved = recentred(network, inputs, 0.3, threshold=0.8)
    assert favourable_share(moved, inputs, threshold=0.8) == pytest.approx(0.3, abs=0.006)
    assert favourable_share(moved, inputs) > 0.3


def test_climb_looks_for_room_around_the_cut_off(people_schema, rng) -> None:
    people = random_people(rng, people_schema, 300)
    network = random_network(rng, [9, 12, 2])
    cut = float(np.median(Evaluator(network, two(people_schema, None)).scores(people)))
    figures = Evaluator(network, two(people_schema, cut)).evaluate(people)
    flips = figures.flips
    assert flips.any()
    bonus = height(figures, threshold=cut) - height(figures, threshold=0.5)
    assert (bonus[~flips] == 0).all()
    room = np.minimum(figures.high - cut, cut - figures.low) - np.minimum(figures.high - 0.5, 0.5 - figures.low)
    np.testing.assert_allclose(bonus[flips], 4.0 * room[flips], atol=1e-5)


@pytest.mark.parametrize(
    ("stated", "complaint"),
    [
        ("half", "between 0 and 1"),
        (True, "between 0 and 1"),
        (float("nan"), "between 0 and 1"),
    ],
)
def test_what_no_cut_off_can_be(stated: object, complaint: str, people_schema) -> None:
    with pytest.raises(SchemaError, match=complaint):
        two(people_schema, stated)


def test_only_two_classes_have_one(people_schema) -> None:
    with pytest.raises(SchemaError, match="has 3 classes, and the most likely one is decided; leave it out"):
        replace(people_schema, target="y", classes=("a", "b", "c"), favourable="b", threshold=0.4)
    with pytest.raises(SchemaError, match="a regression decides nothing; leave it out"):
        replace(people_schema, target="y", classes=(), favourable=None, threshold=0.4)


def test_it_survives_every_file(people_schema, rng, tmp_path: Path) -> None:
    schema = two(people_schema, 0.35)
    assert schema_of_document(document_of_schema(schema).unwrap()).threshold == 0.35
    assert "threshold" not in document_of_schema(two(people_schema, None)).unwrap()["table"]
    network, people = random_network(rng, [9, 12, 2]), random_people(rng, people_schema, 300)
    first = make_subject("s", network, schema, Table(people))
    labels = (first.model.scores(first.encoding.encode(people)) >= 0.35).astype(float)
    subject = make_subject("s", network, schema, Table(people, labels))
    assert document_of_subject(subject, {}, {})["table"]["threshold"] == 0.35
    export_subject(subject, tmp_path / "out")
    again = fairbits.load_subject(tmp_path / "out" / "subject.toml")
    assert again.schema.threshold == 0.35
    assert again.checked().quality.accuracy == 1.0
    other = make_subject("s", network, two(people_schema, 0.6), Table(people, labels))
    assert other.identity.id != subject.identity.id
    assert other.checked().quality.accuracy < 1.0
    run = fairbits.Audit.of(again).search(budget=fairbits.Budget(evaluations=600), out=tmp_path / "run", threads=1)
    assert run.manifest["quality"]["threshold"] == 0.35
    assert run.schema.threshold == 0.35
    repaired = run.repair(attack_budget=None, retrain=False, max_accuracy_loss=0.5)
    assert repaired.before_held_out.accuracy == 1.0  # by the cut-off, not by one half
    assert repaired.groups_before
    mended = fairbits.load_subject(repaired.subject_file)
    assert mended.schema.threshold == 0.35


def test_a_model_and_a_table_alone_have_one_too(tmp_path: Path) -> None:
    table = {"sex": ["f", "m"] * 50, "skill": list(range(100)), "hired": ["no"] * 40 + ["yes"] * 60}

    def score(rows: Any) -> Any:
        return np.asarray(rows["skill"], dtype=float) / 99

    asked: dict[str, Any] = {"target": "hired", "protected": "sex", "favourable": "yes"}
    audit = fairbits.Audit.from_table(score, pa.table(table), **asked, threshold=0.8)
    assert audit.subject.schema.threshold == 0.8
    assert audit.subject.quality.favourable_rate == 0.2
    assert fairbits.infer_schema(pa.table(table), **asked, threshold=0.8).threshold == 0.8
    assert fairbits.infer_schema(pa.table(table), **asked).threshold is None
    with pytest.raises(SchemaError, match="between 0 and 1"):
        fairbits.Audit.from_table(score, pa.table(table), **asked, threshold=80)


def test_it_is_written_by_init(tmp_path: Path) -> None:
    lines = ["sex,skill,hired", *(f"{'fm'[i % 2]},{i},{'yes' if i > 40 else 'no'}" for i in range(100))]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    words = ("--target", "hired", "--protected", "sex", "--favourable", "yes", "--threshold", "0.8", "--yes")
    assert called("init", "table.csv", *words, cwd=tmp_path).returncode == 0
    assert "threshold = 0.8 #" in (tmp_path / "subject.toml").read_text()


def test_every_stage_by_hand(tmp_path: Path) -> None:
    """What debug, the gate and the explorer say, from the scores of one matrix product."""
    from fairbits.debug import debug_run
    from fairbits.explore import Explorer
    from fairbits.explore.app import asked_of
    from tests.repair.conftest import SCHEMA, people, searched, wired

    cut, table = 0.8, people()
    subject = make_subject("wired", wired(), replace(SCHEMA, threshold=cut), table)
    run = searched(subject.checked(), tmp_path / "run", evaluations=400)

    def decided(network: Any, codes: Any) -> Any:
        return network.scores(subject.encoding.encode(codes)) >= np.float32(cut)

    labels = np.asarray(table.labels) == 1
    found = debug_run(run, samples=20, subject=subject)
    assert found.accuracy == (decided(wired(), table.codes) == labels).mean()
    studied = pq.read_table(run.folder / "neurons.parquet").to_pylist()
    assert studied
    for one in studied:
        held = wired().with_interventions([Do(one["layer"] - 1, one["neuron"], one["value"])])
        assert one["accuracy"] == pytest.approx((decided(held, table.codes) == labels).mean())
    explorer = Explorer(run, subject=subject)
    column = SCHEMA.protected_columns[0]
    by_twin = []
    for value in SCHEMA.attributes[column].twin_values():
        twin = table.codes.copy()
        twin[:, column] = value
        by_twin.append(decided(wired(), twin))
    flips = np.ptp(np.stack(by_twin).astype(int), axis=0) > 0
    assert 0 < flips.mean() < 1
    for row in range(0, len(table), 40):
        free = table.codes[row, list(SCHEMA.free_columns)]
        assert explorer.answer(asked_of({"codes": free.tolist()}, explorer.schema))["flips"] == flips[row]
    places = {"out": tmp_path, "baseline": tmp_path / "b.parquet"}
    checks = {"checks": {"flip_rate": 1.0, "accuracy": 0.0}}
    result = fairbits.gate(subject, policy=checks, suite=freeze_subject(subject), threads=1, **places)
    assert result["flip_rate"].value == pytest.approx(flips.mean())
    assert result["accuracy"].value == found.accuracy


SHARES = {
    "a forest of ten full trees": lambda: ExtraTreesClassifier(10, random_state=0),
    "four neighbours": lambda: KNeighborsClassifier(4),
    "a vote of two": lambda: VotingClassifier(
        [("a", ExtraTreeClassifier(random_state=1)), ("b", KNeighborsClassifier(4))], voting="soft"
    ),
    "bags of two": lambda: BaggingClassifier(DecisionTreeClassifier(), 2, random_state=0),
}


@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize("favourable", ["no", "yes"])
def test_a_tie_is_decided_as_the_model_decides_it(kind: str, favourable: str) -> None:
    draw = np.random.default_rng(3)
    rows = pd.DataFrame(draw.integers(0, (2, 6, 6), (300, 3)), columns=["sex", "debt", "age"])
    table = rows.copy()
    table["granted"] = np.where(draw.random(300) < 0.3 + 0.1 * table["sex"] + 0.05 * table["debt"], "yes", "no")
    model = SHARES[kind]().fit(rows, table["granted"])
    twins = [model.predict(rows.assign(sex=value)) for value in (0, 1)]
    assert (model.predict_proba(rows)[:, 0] == 0.5).any()

    audit = fairbits.Audit.from_table(model, table, target="granted", favourable=favourable, protected=["sex"])

    assert audit.measure().to_frame()["flips"].tolist() == (twins[0] != twins[1]).tolist()


def test_a_nullable_column_before_trees_is_asked_as_it_came() -> None:
    draw = np.random.default_rng(4)
    rows = pd.DataFrame({"sex": draw.choice(["f", "m"], 200), "debt": draw.random(200)})
    rows["kids"] = pd.array(draw.integers(0, 4, 200), dtype="Int64")  # beside a float, an array of objects
    labels = np.where(draw.random(200) < 0.4 + 0.2 * (rows["sex"] == "m"), "yes", "no")
    encode = make_column_transformer((OrdinalEncoder(), ["sex"]), remainder="passthrough")
    trees = HistGradientBoostingClassifier(max_iter=5, categorical_features=[0])
    model = make_pipeline(encode, trees).fit(rows, labels)
    twins = [model.predict(rows.assign(sex=value)) for value in ("f", "m")]

    audit = fairbits.Audit.from_table(model, rows.assign(y=labels), target="y", favourable="yes", protected=["sex"])

    assert audit.measure().to_frame()["flips"].tolist() == (twins[0] != twins[1]).tolist()


def debtors(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    draw = np.random.default_rng(seed)
    rows = pd.DataFrame({"sex": draw.integers(0, 2, 300), "debt": draw.normal(size=300)})
    return rows, np.where(rows["debt"] + 0.5 * rows["sex"] + draw.normal(size=300) > 0, "yes", "no")


@pytest.mark.parametrize("stated", [None, 0.5])
def test_decisions_that_do_not_follow_from_probabilities_are_said(stated: float | None) -> None:
    rows, labels = debtors(0)
    model = NearestCentroid().fit(rows, labels)
    apart = int(((model.predict_proba(rows)[:, 1] >= 0.5) != (model.predict(rows) == "yes")).sum())
    given = {"target": "y", "favourable": "yes", "protected": ["sex"], "threshold": stated}

    notes = " ".join(fairbits.Audit.from_table(model, rows.assign(y=labels), **given).subject.notes)

    assert apart > 20
    assert (f"predict decides {apart} of 300 rows otherwise" in notes) == (stated is None)


MARGINS = {
    "a machine whose probabilities came later": lambda: SVC(probability=True, random_state=0),
    "a cut-off on the margin": lambda: FixedThresholdClassifier(
        LogisticRegression(), threshold=1.0, response_method="decision_function"
    ),
}


@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
@pytest.mark.parametrize("kind", MARGINS)
@pytest.mark.parametrize("favourable", ["no", "yes"])
def test_a_cut_off_that_tells_the_models_own_decisions_decides(kind: str, favourable: str) -> None:
    rows, labels = debtors(5)
    model = MARGINS[kind]().fit(rows, labels)
    twins = [model.predict(rows.assign(sex=value)) for value in (0, 1)]
    probable = model.predict_proba(rows)[:, 1] >= 0.5
    assert (probable != (model.predict(rows) == "yes")).any()
    given = {"target": "y", "favourable": favourable, "protected": ["sex"]}

    audit = fairbits.Audit.from_table(model, rows.assign(y=labels), **given)

    found = audit.measure()
    assert found.flip_rate is not None
    assert found.flip_rate.value == pytest.approx(np.mean(twins[0] != twins[1]), abs=0.007)  # within the gap of rows
    assert audit.subject.quality.accuracy == pytest.approx(np.mean(model.predict(rows) == labels))
    assert "own predict decides for" in " ".join(audit.subject.notes)


class Strict:
    """Decides above one half only, and does not say so."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, rows: pd.DataFrame) -> np.ndarray:
        score = np.array([0.1, 0.5, 0.9])[rows["debt"].to_numpy()] + 0.05 * rows["sex"].to_numpy() * rows["kids"]
        return np.column_stack([1 - score, score])

    def predict(self, rows: pd.DataFrame) -> np.ndarray:
        return self.classes_[(self.predict_proba(rows)[:, 1] > 0.5).astype(int)]


def test_a_tie_says_no_more_than_that_ties_are_decided_so() -> None:
    """Somebody's twin at 0.55 is decided like one at 0.9, though no row shows where the cut-off is."""
    draw = np.random.default_rng(2)
    rows = pd.DataFrame({"sex": draw.integers(0, 2, 120), "debt": draw.integers(0, 3, 120)})
    rows["kids"] = 1 - rows["sex"]  # whoever would get 0.05 more does not
    model = Strict()
    labels = model.predict(rows)
    twins = [model.predict(rows.assign(sex=value)) for value in (0, 1)]

    audit = fairbits.Audit.from_table(model, rows.assign(y=labels), target="y", favourable="yes", protected=["sex"])

    assert np.mean(twins[0] != twins[1]) > 0.1
    assert audit.measure().to_frame()["flips"].tolist() == (twins[0] != twins[1]).tolist()
