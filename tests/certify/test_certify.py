"""The ladder: what is said about small models is what asking everybody finds."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fairbits.certify import CertifyOptions, Statement, certify_subject
from fairbits.certify.boxes import Volumes
from fairbits.certify.cells import prove_cells
from fairbits.certify.exact import Asker, ask, domain_size, everybody, vector_classes, within
from fairbits.certify.run import _Ladder
from fairbits.data import load_subject
from fairbits.domain import Attribute, Encoding, Schema, Table, Twins
from fairbits.engine import tolerance_of, vectors
from fairbits.engine.boxes import score_error
from fairbits.engine.tree_bounds import tree_boxes
from fairbits.errors import OptionError, TableError
from fairbits.measure import evaluator_of, measure_table
from fairbits.models import Activation, ModelOptions, Network, read_model
from fairbits.models.native.chain import Chain, ParameterSource
from fairbits.models.trees.ensemble import Ensemble, Tree, TreeModel
from fairbits.subject import make_subject
from tests.cli.calling import fairbits


def _schema(**changes):
    attributes = (
        Attribute(name="age", kind="integer", low=18, high=30),
        Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
        Attribute(name="job", kind="category", labels=("a", "b", "c")),
        Attribute(name="hours", kind="integer", low=0, high=20, step=5),
        Attribute(name="race", kind="category", labels=("x", "y", "z"), protected=True),
    )
    return replace(Schema(attributes, target="ok", classes=("no", "yes")), **changes)


def _table(schema, rng, n=60):
    codes = np.stack([rng.choice(a.values(), n) for a in schema.attributes], axis=1)
    return Table(codes, rng.integers(0, 2, n).astype(float))


def _network(rng, schema, activation="relu"):
    weights = [rng.normal(0, 0.3, (5, 6)), rng.normal(0, 0.6, (6, 4)), rng.normal(0, 0.8, (4, 1))]
    biases = [rng.normal(0, 1, 6), rng.normal(0, 1, 4), np.zeros(1)]
    return Network.build(weights, biases, activation=activation)


def _subject(rng, *, activation="relu", **changes):
    schema = _schema(**changes)
    return make_subject("small", _network(rng, schema, activation), schema, _table(schema, rng))


def _truth(subject, *, rules=True):
    schema = subject.schema if rules else replace(subject.schema, rules=())
    evaluator = evaluator_of(replace(subject, schema=schema), threads=1)
    return ask(Asker(evaluator), everybody(schema))


def test_a_small_domain_is_asked_whole():
    subject = _subject(np.random.default_rng(0))
    found = certify_subject(subject, CertifyOptions(seconds=20, threads=1))
    truth = _truth(subject)
    assert [(one.kind, one.property) for one in found.statements] == [("exact", "flips"), ("exact", "k")]
    flips, k = found.statements
    assert flips.people == truth.people == 13 * 3 * 21
    assert (flips.falsified, flips.open) == (truth.flips, 0)
    assert flips.bound == truth.flips / truth.people
    assert k.largest == truth.largest == 6  # as many as there are twins
    assert k.bound == 5  # that nobody has more than 6 would be true of every model
    assert k.falsified == truth.counts(5)[1] > 0
    assert json.loads(json.dumps(flips.document()))["certified"] == truth.people - truth.flips


def test_rules_leave_people_out_of_an_exact_answer():
    subject = _subject(np.random.default_rng(0), rules=('age < 20 -> job != "c"',))
    flips = certify_subject(subject, CertifyOptions(seconds=20, threads=1)).statements[0]
    # Rows that break a rule are real people all the same.
    assert 13 * 3 * 21 - 2 * 21 <= flips.people < 13 * 3 * 21


@pytest.mark.parametrize("changes", [0, 1, 2])
def test_people_around_rows_are_listed_once_each(changes):
    subject = _subject(np.random.default_rng(1))
    schema, rows = subject.schema, subject.table.codes
    free = list(schema.free_columns)
    rows = rows[np.unique(rows[:, free], axis=0, return_index=True)[1]]
    everyone = np.concatenate(list(everybody(schema)))[:, free]
    distance = (everyone[:, None] != rows[None][:, :, free]).sum(axis=2).min(axis=1)
    listed = np.concatenate(list(within(schema, rows, changes)))[:, free]
    assert len(np.unique(listed, axis=0)) == len(listed) == (distance <= changes).sum()


def test_people_around_rows_who_lack_a_number_are_listed_too():
    """The code of a missing number lies below its range: it is nobody else's place."""
    attributes = (
        Attribute(name="age", kind="integer", low=0, high=4),
        Attribute(name="pay", kind="integer", low=0, high=3, missing="model"),
        Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
    )
    schema = Schema(attributes, target="ok", classes=("no", "yes"))
    rows = np.array([[3.0, attributes[1].gap, 0.0], [2.0, 0.0, 1.0]])
    listed = np.concatenate(list(within(schema, rows, 1)))[:, :2]
    # The first row, five of its neighbours by age and four by pay; the second row with four and three.
    wanted = {(float(age), rows[0, 1]) for age in range(5)} | {(3.0, float(pay)) for pay in range(4)}
    wanted |= {(float(age), 0.0) for age in range(5)} | {(2.0, float(pay)) for pay in range(4)}
    assert {tuple(one) for one in listed.tolist()} == wanted
    assert len(listed) == len(wanted)


def test_whom_a_domain_leaves_out_is_said():
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(3)
    attributes = (
        Attribute(name="pay", kind="integer", low=0, high=9, missing="model"),
        Attribute(name="sex", kind="integer", low=0, high=1, protected=True),
    )
    schema = Schema(attributes, target="ok", classes=("no", "yes"))
    codes = np.column_stack([rng.integers(0, 10, 80), rng.integers(0, 2, 80)]).astype(float)
    inputs = codes.copy()
    codes[:20, 0], inputs[:20, 0] = attributes[0].gap, np.nan
    trees = ensemble.HistGradientBoostingClassifier(max_iter=3).fit(inputs, np.where(codes[:, 1] > 0, "yes", "no"))
    subject = make_subject("gaps", read_model(trees, schema, ModelOptions()), schema, Table(codes, codes[:, 1]))
    found = certify_subject(subject, CertifyOptions(seconds=5, threads=1))
    assert found.statements[0].population == "everybody in the domain, except those whose pay is missing"


def test_values_too_many_to_list_leave_the_other_statements():
    rng = np.random.default_rng(5)
    attributes = (
        Attribute(name="pay", kind="integer", low=0, high=10**9 - 1),
        Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
    )
    schema = Schema(attributes, target="ok", classes=("no", "yes"))
    codes = np.column_stack([rng.integers(0, 10**9, 50), rng.integers(0, 2, 50)]).astype(float)
    network = Network.build([[[1e-9], [0.5]], [[1.0]]], [[-0.4], [-1.0]], head="sigmoid")
    subject = make_subject("fine", network, schema, Table(codes, np.zeros(50)))
    found = certify_subject(subject, CertifyOptions(seconds=0.3, threads=1))
    assert "attribute 'pay' has 1,000,000,000 values from 0 to 1e+09, too many to list" in " ".join(found.notes)
    assert {one.kind for one in found.statements} == {"exact", "statistical"}


def test_a_large_domain_gets_bounds_that_hold(monkeypatch):
    subject = _subject(np.random.default_rng(2))
    truth = _truth(subject)
    monkeypatch.setattr("fairbits.certify.run.WHOLE_SHARE", 0.0)  # as if everybody took an hour
    found = certify_subject(subject, CertifyOptions(seconds=5, threads=1, k=3))
    kinds = {(one.kind, one.property) for one in found.statements}
    assert {("proved", "flips"), ("proved", "k"), ("statistical", "flips"), ("statistical", "k")} <= kinds
    for one in found.statements:
        assert one.certified + one.falsified + one.open == one.people
        if one.kind == "proved":
            bad = truth.flips if one.property == "flips" else truth.counts(3)[1]
            assert one.falsified <= bad <= one.people - one.certified
    drawn = next(one for one in found.statements if one.kind == "statistical" and one.property == "flips")
    assert drawn.confidence == 0.99
    assert drawn.bound >= drawn.falsified / drawn.people


@pytest.mark.parametrize("scores", ["favourable", "vector"])
def test_smooth_networks_of_several_classes_are_proved(monkeypatch, scores):
    rng = np.random.default_rng(8)
    schema = _schema(classes=("no", "perhaps", "yes"), favourable="yes", scores=scores)
    one = _network(rng, schema)
    weights, biases = [*one.weights[:-1], rng.normal(0, 2, (4, 3))], [*one.biases[:-1], rng.normal(0, 0.5, 3)]
    network = Network.build(weights, biases, activation=(Activation("gelu"), Activation("tanh")), favourable=2)
    subject = make_subject("several", network, schema, _table(schema, rng))
    truth = _truth(subject)
    monkeypatch.setattr("fairbits.certify.run.WHOLE_SHARE", 0.0)
    seen: list[str] = []
    found = certify_subject(subject, CertifyOptions(seconds=2, threads=1, k=1), watch=seen.append)
    proved = {one.property: one for one in found.statements if one.kind == "proved"}
    assert truth.flips > 200
    assert proved["flips"].falsified <= truth.flips + truth.doubtful
    assert truth.flips <= proved["flips"].people - proved["flips"].certified
    assert proved["flips"].open < 0.2 * proved["flips"].people
    assert "statistical" in {one.kind for one in found.statements}
    assert any("certified" in words and "falsified" in words and "open" in words for words in seen)
    if scores == "vector":  # what cannot be proved is said
        assert any("compares those of all classes" in note for note in found.notes)
    else:
        held, broken, either = truth.counts(1)
        assert proved["k"].falsified <= broken + either
        assert proved["k"].certified <= held + either
        assert proved["k"].certified + proved["k"].falsified > 700


def test_a_blind_model_is_proved_by_its_structure():
    rng = np.random.default_rng(4)
    schema = _schema()
    network = _network(rng, schema)
    weights = [w.copy() for w in network.weights]
    weights[0][[1, 4]] = 0
    subject = make_subject("blind", Network.build(weights, network.biases), schema, _table(schema, rng))
    found = certify_subject(subject, CertifyOptions(seconds=1, threads=1))
    assert [(one.kind, one.property, one.open, one.falsified) for one in found.statements] == [
        ("proved", "flips", 0, 0),
        ("proved", "k", 0, 0),
    ]
    assert found.statements[1].bound == 1


def test_a_model_that_varies_proves_nothing():
    rng = np.random.default_rng(5)
    schema = _schema()
    noise = np.random.default_rng(0)
    loaded = read_model(lambda rows: noise.random(len(rows)), schema, ModelOptions())
    subject = make_subject("noise", loaded, schema, _table(schema, rng))
    found = certify_subject(subject, CertifyOptions(seconds=0.5, threads=1))
    assert any("differently" in note for note in found.notes)
    assert {one.kind for one in found.statements} == {"statistical"}


def test_a_real_attribute_is_an_interval():
    """People are not countable then: the proof counts the domain by its volume, every real between the ends."""
    rng = np.random.default_rng(7)
    income = Attribute(name="income", kind="real", low=0, high=10)
    sex = Attribute(name="sex", kind="category", labels=("f", "m"), protected=True)
    schema = Schema(attributes=(income, sex), target="ok", classes=("no", "yes"))
    codes = np.column_stack([rng.random(100) * 10, rng.integers(0, 2, 100)])
    network = Network.build([[[1.0], [0.5]], [[1.0]]], [[-4.0], [-1.0]], head="sigmoid")
    subject = make_subject("real", network, schema, Table(codes, np.zeros(100)))
    assert domain_size(schema) is None
    found = certify_subject(subject, CertifyOptions(seconds=2, threads=1))
    proved = next(one for one in found.statements if one.kind == "proved" and one.property == "flips")
    assert proved.population == "everybody in the domain (income anywhere from 0 to 10)"
    assert proved.whom.intervals == (("income", 0.0, 10.0),)
    assert proved.whom.count is None
    # Incomes of 4.5 to 5 flip: a twentieth of the interval.
    assert proved.falsified / proved.people == pytest.approx(0.05, abs=1e-3)
    assert proved.certified / proved.people == pytest.approx(0.95, abs=1e-3)
    assert proved.open > 0
    assert "by volume, 94.99 % certainly do not flip" in proved.sentence()


def _between(low, high):
    """Flips for pay between two values that lie between two steps of a hundredth, and for nobody else."""
    pay = Attribute(name="pay", kind="real", low=0, high=1)
    sex = Attribute(name="sex", kind="category", labels=("f", "m"), protected=True)
    schema = Schema(attributes=(pay, sex), target="ok", classes=("no", "yes"))
    # A tent that is positive from low to high only, for one sex.
    middle, half = (low + high) / 2, (high - low) / 2
    first = [np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]]), np.array([-middle, middle, 0.0])]
    weights = [first[0], np.array([[-1000.0], [-1000.0], [2000.0 * half]])]
    return schema, Network.build(weights, [first[1], np.array([-1000.0 * half])], head="sigmoid")


def test_people_between_the_steps_of_a_real_attribute_are_not_forgotten():
    schema, network = _between(0.4825, 0.4875)
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.uniform(0.483, 0.487, 80), rng.integers(0, 2, 80)])
    subject = make_subject("between", network, schema, Table(codes, np.zeros(80)))
    scores = np.stack([network.scores(np.column_stack([codes[:, 0], np.full(80, sex)])) for sex in (0.0, 1.0)], axis=1)
    assert ((scores >= 0.5).any(axis=1) & (scores < 0.5).any(axis=1)).mean() > 0.5
    found = certify_subject(subject, CertifyOptions(seconds=1, threads=1))
    for one in found.statements:
        if one.property == "flips":
            assert one.falsified + one.open > 0, one.sentence()
    proved = next(one for one in found.statements if one.kind == "proved")
    assert 0.004 < proved.falsified / proved.people <= 0.00501


def test_weights_so_large_that_rounding_decides_prove_nothing():
    """(1e6 + 1e6 a) - 1e6 (1 + a) is 0 in real arithmetic, and anything in float32: order decides."""
    schema = Schema(
        (
            Attribute(name="a", kind="integer", low=0, high=30),
            Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
        ),
        target="ok",
        classes=("no", "yes"),
    )
    rng = np.random.default_rng(0)
    big = rng.uniform(0.5e6, 1e6, 4).astype(np.float32)
    weights = [np.vstack([np.concatenate([big, big]) / 3, np.zeros(8)]), np.concatenate([big, -big])[:, None]]
    weights[0][1] = [0.1, 0, 0, 0, 0.1, 0, 0, 0]
    network = Network.build(weights, [np.full(8, 1e6 / 7), np.array([0.0])], head="sigmoid")
    codes = np.column_stack([rng.integers(0, 31, 60), rng.integers(0, 2, 60)]).astype(float)
    subject = make_subject("big", network, schema, Table(codes, np.zeros(60)))
    found = certify_subject(subject, CertifyOptions(seconds=1, threads=1))
    assert not found.statements
    assert "nothing is certain about flips of everybody in the domain" in " ".join(found.notes)


def test_what_is_folded_into_a_layer_rounds_as_its_library_does(tmp_path, monkeypatch):
    """A tenth of whole numbers, times ten: folded they tie exactly, in float32 sums they do not."""
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    arrays = {"by": np.full(4, 0.1), "W": np.array([[10], [10], [-10], [10]]), "b": np.zeros(1)}
    nodes = [("Mul", ["x", "by"], "y"), ("Gemm", ["y", "W", "b"], "z"), ("Sigmoid", ["z"], "p")]
    make, real = onnx.helper, onnx.TensorProto.FLOAT
    ends = [[make.make_tensor_value_info(name, real, ["n", width])] for name, width in (("x", 4), ("p", 1))]
    graph = make.make_graph(
        [make.make_node(kind, inputs, [output]) for kind, inputs, output in nodes], "g", *ends,
        [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()],
    )  # fmt: skip
    file = tmp_path / "model.onnx"
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 20)], ir_version=9), file)
    numbers = "".join(f'[attributes.{n}]\nkind = "integer"\nlow = 0\nhigh = {29 if n != "p" else 1}\n' for n in "abcp")
    classes = 'classes = ["no", "yes"]\nfavourable = "yes"'
    (tmp_path / "subject.toml").write_text(
        f'name = "folded"\n[model]\npath = "model.onnx"\n[table]\n{classes}\n{numbers}protected = true\n'
    )
    people = np.array(list(product(range(30), range(30), range(30), range(2))), np.float32)
    asked = runtime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, {"x": people})[0]
    favoured = asked.reshape(-1, 2) >= 0.5
    flips = int((favoured[:, 0] != favoured[:, 1]).sum())
    subject = load_subject(tmp_path / "subject.toml")
    for whole in (True, False):
        if not whole:
            monkeypatch.setattr(_Ladder, "_whole_domain", lambda *_: False)
        found = certify_subject(subject, CertifyOptions(seconds=2.0, threads=1))
        for one in found.statements:
            if one.property == "flips" and one.kind != "statistical":
                assert one.falsified <= flips <= one.people - one.certified


def test_parts_of_a_bias_that_cancel_out_round_all_the_same():
    """What a normalisation takes away again was added before, in the library's own float32."""
    schema = _schema()
    encoding = Encoding.identity(schema)

    def error_of(mean):
        chain = Chain()
        chain.multiply(np.full((5, 1), 0.01))
        chain.scale(1.0, np.full(1, 30.0), ParameterSource("bias"))
        chain.normalise(np.full(1, mean), np.ones(1))
        chain.function("sigmoid")
        network = chain.network()
        assert network.biases[0] == pytest.approx(30.0 - mean)
        return score_error(network, schema, encoding, Twins(schema)).logits

    assert error_of(30.0) > 60 * 2.0**-24
    assert error_of(30.0) > error_of(0.0)


@pytest.mark.parametrize("k", [None, 1, 2, 5])
def test_nothing_is_said_that_is_true_of_every_model(k):
    """Nobody has more classes than twins: a bound that allows them all is no statement."""
    schema, network = _between(0.1, 0.9)  # k is 2, of 2 twins
    codes = np.column_stack([np.linspace(0, 1, 40), np.arange(40) % 2])
    subject = make_subject("two", network, schema, Table(codes, np.zeros(40)))
    found = certify_subject(subject, CertifyOptions(seconds=0.5, threads=1, k=k))
    about_k = [one for one in found.statements if one.property == "k"]
    assert {one.bound for one in about_k} == ({1.0} if k in (None, 1) else set())
    assert any("nobody has more than 2 classes" in note for note in found.notes) == (k in (2, 5))


def _three_classes(step):
    """Two twins whose vectors of probabilities differ by a little more than ε, or a little less."""
    schema = Schema(
        (
            Attribute(name="a", kind="integer", low=0, high=3),
            Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
        ),
        target="ok",
        classes=("no", "perhaps", "yes"),
        scores="vector",
    )
    network = Network.build([np.array([[0.01, 0.0, 0.0], [step, 0.0, 0.0]])], [np.zeros(3)], head="softmax")
    codes = np.array([[a, sex] for a in range(4) for sex in range(2)], dtype=float)
    return make_subject("three", network, schema, Table(codes, np.zeros(8)))


def test_vectors_that_lie_a_rounding_error_from_the_tolerance_are_open():
    apart, wanted = [], tolerance_of(0.025)
    lows, highs = 0.0, 1.0
    for _ in range(60):
        middle = (lows + highs) / 2
        table = evaluator_of(_three_classes(middle), threads=1).class_scores(np.zeros((1, 2)))[0].astype(np.float64)
        lows, highs = (middle, highs) if np.abs(table[1] - table[0]).max() < wanted else (lows, middle)
    for step in (lows, 0.5 * lows, 2 * lows):
        least, most = Asker(evaluator_of(_three_classes(step), threads=1)).ask(np.zeros((1, 2)))[1:]
        apart.append((int(least[0]), int(most[0])))
    assert apart == [(1, 2), (1, 1), (2, 2)]


@pytest.mark.parametrize("seed", range(3))
def test_classes_of_vectors_hold_however_scores_are_rounded(seed):
    """Scores moved by as much as is allowed give a k between the fewest and the most."""
    rng = np.random.default_rng(seed)
    table = (rng.dirichlet(np.ones(3), (200, 5)) * 0.08 + 0.3).round(3 if seed else 2)
    room = 1e-4
    fewest, most = vector_classes(table, None, _k_of(table), epsilon=0.025, room=room)
    for _ in range(20):
        moved = _k_of(table + rng.uniform(-room / 2, room / 2, table.shape))
        assert (fewest <= moved).all()
        assert (moved <= most).all()
    assert (fewest == most).mean() > 0.2
    assert (fewest < most).any()


def _k_of(table):
    return vectors(table.astype(np.float32), epsilon=0.025, favourable=0, threads=1).k.astype(np.int64)


@pytest.mark.parametrize("seconds", [0.001, 0.0])
def test_a_budget_too_small_is_refused_in_a_sentence(seconds):
    with pytest.raises(OptionError, match=r"the budget is 0.*a statement takes at least 0\.05 s"):
        CertifyOptions(seconds=seconds)


def test_a_short_budget_says_what_was_left_out(monkeypatch):
    subject = _subject(np.random.default_rng(8))
    monkeypatch.setattr("fairbits.certify.run.WHOLE_SHARE", 0.0)
    monkeypatch.setattr(_Ladder, "left", property(lambda self: 0.0))  # as if the time were over before it began
    found = certify_subject(subject, CertifyOptions(seconds=0.06, threads=1))
    left = [one.open for one in found.statements if one.kind == "proved"]
    assert max(left) > 0
    assert f"the budget of 0.06 s ended with {max(left):,} of " in " ".join(found.notes)
    assert all(one.certified + one.falsified + one.open == one.people for one in found.statements)


def test_somebody_ends_it_early(monkeypatch):
    subject = _subject(np.random.default_rng(6))
    monkeypatch.setattr("fairbits.certify.run.WHOLE_SHARE", 0.0)
    asked = iter(range(10**9))
    found = certify_subject(subject, CertifyOptions(seconds=60, threads=1), stop=lambda: next(asked) > 12)
    assert found.stopped
    assert all(one.certified + one.falsified + one.open == one.people for one in found.statements)


@pytest.mark.parametrize("change", [{"seconds": 0.0}, {"changes": -1}, {"k": 0}])
def test_options_that_make_no_sense(change):
    with pytest.raises(OptionError):
        CertifyOptions(**change)


def test_counts_must_add_up():
    with pytest.raises(ValueError, match="not 10"):
        Statement("exact", "flips", "all", 10, 5, 4, 0, 0.5, 1.0, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_cells_of_trees_are_what_brute_force_finds(seed):
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(seed)
    schema = _schema()
    rows = np.stack([rng.choice(a.domain_values(), 500) for a in schema.attributes], axis=1)
    target = ((rows[:, 0] - 22) * 0.3 + rows[:, 1] - rows[:, 4] * 0.7 + 0.1 * rows[:, 3] + rng.normal(0, 1, 500)) > 0
    make = ensemble.GradientBoostingClassifier if seed else ensemble.RandomForestClassifier
    model = make(n_estimators=12, max_depth=4, random_state=seed).fit(rows, target.astype(int))
    loaded = read_model(model, schema, ModelOptions())
    subject = make_subject("trees", loaded, schema, Table(rows, target.astype(float)))
    evaluator = evaluator_of(subject, threads=1)
    boxes = tree_boxes(subject.model, schema, subject.encoding, evaluator.twins)
    truth = _truth(subject)
    assert boxes.people == truth.people
    done = prove_cells(boxes, evaluator, seconds=60)
    assert (done.certified, done.falsified, done.open) == (truth.people - truth.flips, truth.flips, 0)
    early = prove_cells(boxes, evaluator, seconds=60, max_boxes=30)
    assert early.falsified <= truth.flips <= truth.people - early.certified
    largest = prove_cells(boxes, evaluator, about="largest", seconds=60)
    assert largest.k_low == largest.k_high == truth.largest
    bounded = prove_cells(boxes, evaluator, about="largest", seconds=60, max_boxes=10)
    assert bounded.k_low <= truth.largest <= bounded.k_high
    for k in (1, 2):
        above = prove_cells(boxes, evaluator, about="k", k=k, seconds=60)
        assert (above.falsified, above.open) == (truth.counts(k)[1], 0)


def test_trees_too_many_for_bounds_leave_the_time_to_people_near_rows(monkeypatch):
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(4)
    schema = _schema()
    rows = np.stack([rng.choice(a.domain_values(), 40) for a in schema.attributes], axis=1)
    model = ensemble.GradientBoostingClassifier(n_estimators=12, random_state=0).fit(rows, rng.integers(0, 2, 40))
    subject = make_subject("t", read_model(model, schema, ModelOptions()), schema, Table(rows, np.zeros(40)))
    for name in ("WHOLE_SHARE", "NEAR"):  # as if there were no time at first
        monkeypatch.setattr(f"fairbits.certify.run.{name}", 0.0)
    monkeypatch.setattr("fairbits.certify.run.prove_cells", lambda boxes, *_, **__: Volumes(boxes.people, k_high=99))
    found = certify_subject(subject, CertifyOptions(seconds=60, threads=1))
    assert not [one for one in found.statements if one.kind == "proved"]
    near = next(one for one in found.statements if one.kind == "exact" and one.property == "flips")
    people = np.concatenate(list(within(schema, rows, 1)))
    flips = evaluator_of(subject, threads=1).evaluate(people).flips.sum()
    assert (near.people, near.falsified, near.open) == (len(people), flips, 0)


def test_trees_cut_numbers_of_billions_of_values_at_their_thresholds():
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(4)
    attributes = (
        Attribute(name="pay", kind="integer", low=-(10**9), high=9 * 10**9),
        Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
        Attribute(name="unused", kind="integer", low=1, high=3 * 10**7),
    )
    schema = Schema(attributes, target="ok", classes=("no", "yes"))
    rows = np.column_stack([rng.integers(-(10**9), 9 * 10**9, 400), rng.integers(0, 2, 400), np.ones(400)]).astype(
        float
    )
    target = np.sin(rows[:, 0] / 1e9) + 0.3 * rows[:, 1] > 0.2
    trees = ensemble.HistGradientBoostingClassifier(max_iter=3).fit(rows, target)
    subject = make_subject(
        "cents", read_model(trees, schema, ModelOptions()), schema, Table(rows, target.astype(float))
    )
    evaluator = evaluator_of(subject, threads=1)
    boxes = tree_boxes(subject.model, schema, subject.encoding, evaluator.twins)
    assert boxes.people == (10**10 + 1) * 3 * 10**7
    done = prove_cells(boxes, evaluator, seconds=60)
    drawn = np.column_stack([np.linspace(-1e9, 9e9, 100_001), np.zeros(100_001), np.ones(100_001)])
    assert done.open == 0
    assert done.falsified / boxes.people == pytest.approx(evaluator.evaluate(drawn).flips.mean(), abs=1e-4)


def _trees_of(rng, leaves, *, count=6):
    """Trees of two levels over two free attributes and a protected one, with given values in their leaves."""
    made = []
    for _ in range(count):
        feature = np.array([*rng.integers(0, 3, 3), -1, -1, -1, -1])
        threshold = np.array([*(rng.integers(0, 3, 3) + 0.5), 0, 0, 0, 0])
        left, right = np.array([1, 3, 5, 0, 0, 0, 0]), np.array([2, 4, 6, 0, 0, 0, 0])
        values = np.concatenate([np.zeros(3), rng.choice(leaves, 4)])[:, None]
        made.append(Tree(feature, threshold, left, right, np.full(7, 2, np.int8), np.zeros(7, np.bool_), values))
    return made


@pytest.mark.parametrize(
    ("leaves", "link", "seeds"),
    [
        ((0.1, 0.2, 0.3, -0.1, -0.2, -0.3, 0.6, -0.6, 0.7, -0.7), "step", (59, 63, 81)),
        ((1e16, -1e16, 0.3, -0.3, 0.01, 1.0), "logistic", (22, 56, 68)),
        ((1e30, -1e30, 0.1, -0.1, 0.02), "logistic", (22, 114, 127)),
        ((1e30, -1e30, 0.1, -0.1, 0.02), "identity", (22, 380)),
    ],
)
def test_cells_of_trees_whose_sums_depend_on_the_order(leaves, link, seeds):
    """0.1 + 0.2 - 0.3 is not 0 in every order, and 1e30 swallows whatever is added: no bound may rest on that."""
    attributes = tuple(Attribute(name=n, kind="integer", low=0, high=3, protected=n == "p") for n in "abp")
    schema = Schema(attributes, target="y", classes=() if link == "identity" else ("0", "1"))
    for seed in (*seeds, *range(6)):
        rng = np.random.default_rng(seed)
        ensemble = Ensemble.build(_trees_of(rng, leaves), features=3, base=[0.0], link=link)
        codes = rng.integers(0, 4, (40, 3)).astype(float)
        model = TreeModel(ensemble, classes=len(schema.classes))
        subject = make_subject("sums", model, schema, Table(codes, rng.integers(0, 2, 40).astype(float)))
        evaluator, truth = evaluator_of(subject, threads=1), _truth(subject)
        boxes = tree_boxes(subject.model, schema, subject.encoding, evaluator.twins)
        for about, k, bad in (("flips", None, truth.flips), ("k", 1, truth.counts(1)[1]), ("k", 2, truth.counts(2)[1])):
            if about == "k" or schema.classes:
                found = prove_cells(boxes, evaluator, about=about, k=k, seconds=9)
                assert found.falsified <= bad <= found.people - found.certified
        largest = prove_cells(boxes, evaluator, about="largest", seconds=9)
        assert largest.k_low <= truth.largest <= largest.k_high


def test_the_largest_k_of_the_domain_is_not_that_of_somebody_outside():
    """Somebody whose pay is missing is around a real row, but not in the domain: their k says nothing about it."""
    attributes = (
        Attribute(name="pay", kind="integer", low=0, high=9, missing="model"),
        Attribute(name="sex", kind="integer", low=0, high=3, protected=True),
    )
    schema = Schema(attributes, target="ok", classes=("no", "yes"))
    feature = np.array([1, 0, 0, -1, -1, -1, -1])
    threshold = np.array([1.5, 99.0, 99.0, 0, 0, 0, 0])  # every pay goes left, a missing one goes right
    left, right = np.array([1, 3, 5, 0, 0, 0, 0]), np.array([2, 4, 6, 0, 0, 0, 0])
    values = np.array([0, 0, 0, 0.4, 0.1, 0.4, 0.9])[:, None]
    tree = Tree(feature, threshold, left, right, np.full(7, 2, np.int8), np.zeros(7, np.bool_), values)
    model = TreeModel(Ensemble.build([tree], features=2, base=[0.0]), classes=2)
    codes = np.column_stack([np.tile([attributes[0].gap, 3.0, 7.0], 10), np.arange(30) % 4])
    subject = make_subject("gaps", model, schema, Table(codes, np.arange(30.0) % 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairbits.certify.run.WHOLE_SHARE", 0.0)
        found = certify_subject(subject, CertifyOptions(seconds=1, threads=1))
    largest = next(one for one in found.statements if one.property == "k" and "thresholds" in one.reason)
    assert (largest.kind, largest.bound, largest.largest) == ("exact", 1, 1)


def test_a_model_that_varies_proves_nothing_where_it_gets_no_protected_column_either():
    """Twins are one and the same question then, and it still gets another answer every time."""
    rng = np.random.default_rng(5)
    schema = _schema()
    noise = np.random.default_rng(0)
    options = ModelOptions(columns=("age", "job", "hours"))
    loaded = read_model(lambda rows: noise.random(len(rows)), schema, options)
    subject = make_subject("noise", loaded, schema, _table(schema, rng))
    found = certify_subject(subject, CertifyOptions(seconds=0.5, threads=1))
    assert any("differently" in note for note in found.notes)
    assert "proved" not in {one.kind for one in found.statements}


def test_a_real_attribute_on_both_sides_of_zero_is_cut_at_its_thresholds():
    """Doubles from -1000 to 1000 are more than a 64-bit number counts: the middle of two is found all the same."""
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(3)
    codes = np.column_stack([rng.uniform(-1000, 1000, 400), rng.integers(0, 2, 400)])
    labels = ((codes[:, 0] > -300) & (codes[:, 0] < 500) & (codes[:, 1] > 0)).astype(int)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(codes, labels)
    pay = Attribute(name="pay", kind="real", low=-1000, high=1000)
    sex = Attribute(name="sex", kind="category", labels=("f", "m"), protected=True)
    schema = Schema(attributes=(pay, sex), target="ok", classes=("no", "yes"))
    subject = make_subject(
        "signed", read_model(tree, schema, ModelOptions()), schema, Table(codes, labels.astype(float))
    )
    boxes = tree_boxes(subject.model, schema, subject.encoding, (evaluator := evaluator_of(subject, threads=1)).twins)
    proved = prove_cells(boxes, evaluator, seconds=60)
    drawn = rng.uniform(-1000, 1000, 20_000)
    decided = [tree.predict(np.column_stack([drawn, np.full(len(drawn), value)])) for value in (0, 1)]
    flips = float((decided[0] != decided[1]).mean())
    assert proved.falsified / boxes.people == pytest.approx(flips, abs=0.02)
    assert proved.open == 0


def test_equal_weights_of_one_hot_labels_are_no_structure():
    """The same number is added at another place of the sum: float32 may round that otherwise, and decide otherwise."""
    rng = np.random.default_rng(4)
    schema = _schema()
    encoding = Encoding.one_hot(schema)
    weights = [rng.normal(0, 0.3, (encoding.width, 6)), rng.normal(0, 0.8, (6, 1))]
    protected = np.concatenate([encoding.parts[i].columns for i in schema.protected_columns])
    weights[0][protected] = 0.1
    biases = [rng.normal(0, 1, 6), np.zeros(1)]
    subject = make_subject("equal", Network.build(weights, biases), schema, _table(schema, rng))
    assert not evaluator_of(subject, threads=1).blind
    found = certify_subject(subject, CertifyOptions(seconds=5, threads=1))
    assert not any("no weight" in one.reason for one in found.statements)
    assert next(one for one in found.statements if one.property == "k").bound == 1
    weights[0][protected] = 0.0
    blind = make_subject("blind", Network.build(weights, biases), schema, subject.table)
    assert evaluator_of(blind, threads=1).blind


def test_a_network_and_its_bounds_are_enough(tmp_path):
    rng = np.random.default_rng(0)
    network = _network(rng, _schema())
    layers = {f"W{i}": w for i, w in enumerate(network.weights)} | {f"b{i}": b for i, b in enumerate(network.biases)}
    np.savez(tmp_path / "network.npz", **layers)
    about = ['[model]\npath = "network.npz"\nencoding = "codes"\n[table]\nclasses = ["no", "yes"]']
    for one in _schema().attributes:
        ends = f"labels = {list(one.labels)}" if one.labels else f"low = {one.low}\nhigh = {one.high}"
        ends = f'kind = "{one.kind}"\n{ends}'
        about.append(f"[attributes.{one.name}]\n{ends}\nprotected = {str(one.protected).lower()}")
    (tmp_path / "net.toml").write_text("\n".join(about))
    subject = load_subject(tmp_path / "net.toml")
    found = certify_subject(subject, CertifyOptions(seconds=20, threads=1))
    truth = _truth(subject)
    flips = next(one for one in found.statements if one.property == "flips")
    assert (flips.kind, flips.people, flips.falsified) == ("exact", 13 * 3 * 21, truth.flips)
    assert all("row" not in one.population and "table" not in one.population for one in found.statements)
    assert "no table" in subject.lines()[0]
    with pytest.raises(TableError, match="no table"):
        measure_table(evaluator_of(subject), subject.table, rng)
    shown = fairbits("certify", "net.toml", "--budget", "1s", "--threads", 1, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "next  fairbits" not in shown.stdout  # every other command needs a table
