"""The written file is the audited model: opened without fairbits by its own library, and asked by the owner's rows."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairbits import Audit, Guard, Network, Subject, load_subject
from fairbits.domain import Attribute, Decoder, Encoding, Schema, Table
from fairbits.measure import evaluator_of
from fairbits.models import save_estimator
from fairbits.repair import repair_run
from fairbits.repair.proposals.mitigators import GroupThresholds, coding_of
from fairbits.repair.writers import Export, wrappers
from fairbits.repair.writers import export as write
from fairbits.repair.writers import files as writing
from fairbits.repair.writers.checker import in_fresh_process
from fairbits.subject import make_subject
from tests.conftest import random_network
from tests.repair.bare import BareInterpreter
from tests.repair.conftest import SCHEMA, people, searched, wired, write_subject

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
ROWS = 500
TEXT = ["sex", "race", "job"]


def strangers() -> tuple[pd.DataFrame, np.ndarray]:
    """A table as somebody has it, strings and all, and what is decided about them."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, ROWS),
            "sex": rng.choice(["female", "male"], ROWS),
            "race": rng.choice(["a", "b", "c"], ROWS),
            "job": rng.choice(["clerk", "cook", "nurse"], ROWS),
            "pay": rng.normal(30, 8, ROWS).round(2),
        }
    )
    wish = 0.08 * (frame["age"] - 40) + 0.9 * (frame["sex"] == "male") + 0.6 * (frame["race"] == "a")
    return frame, np.asarray(wish + 0.1 * (frame["pay"] - 30) + rng.normal(0, 0.7, ROWS))


def labelled(wish: np.ndarray, names: str) -> np.ndarray:
    good = wish > 0
    if names == "three":
        return np.where(wish > 0.8, "high", np.where(wish > -0.3, "mid", "low"))
    return {
        "whole": good.astype(int),
        "text": np.where(good, "approved", "refused"),
        "truth": good,
        "codes": np.where(good, 1, 2),
        "value": 1000 * wish,
    }[names]


def pipeline(final: Any) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    return make_pipeline(make_column_transformer((OneHotEncoder(), TEXT), remainder="passthrough"), final)


def fitted(kind: str, frame: pd.DataFrame, labels: np.ndarray) -> Any:
    ensemble = pytest.importorskip("sklearn.ensemble")
    from sklearn.linear_model import LogisticRegression, Ridge

    if kind in ("lightgbm", "booster"):
        lightgbm = pytest.importorskip("lightgbm")
        typed = frame.assign(**{name: frame[name].astype("category") for name in TEXT})
        made = lightgbm.LGBMClassifier(n_estimators=12, num_leaves=7, verbose=-1, n_jobs=1).fit(typed, labels)
        return made if kind == "lightgbm" else made.booster_
    if kind == "catboost":
        catboost = pytest.importorskip("catboost")
        return catboost.CatBoostClassifier(
            iterations=12, verbose=0, cat_features=TEXT, allow_writing_files=False, thread_count=1
        ).fit(frame, labels)
    if kind == "xgboost":
        xgboost = pytest.importorskip("xgboost")
        return pipeline(xgboost.XGBClassifier(n_estimators=10, n_jobs=1)).fit(frame, labels)
    final = {
        "forest": lambda: ensemble.RandomForestClassifier(8, max_depth=6, random_state=0),
        "linear": lambda: LogisticRegression(max_iter=2000),
        "ridge": Ridge,
        "trees": lambda: ensemble.RandomForestRegressor(8, max_depth=6, random_state=0),
    }[kind]()
    return pipeline(final).fit(frame, labels)


#: The model, what its classes are called, which is favourable, the bound, and the threshold.
MODELS = [
    ("forest", "whole", 0, 1, None),
    ("forest", "text", "approved", 2, 0.6),
    ("forest", "three", "high", 1, None),
    ("forest", "three", "mid", 2, None),
    ("linear", "text", "approved", 1, 0.4),
    ("linear", "codes", 1, 2, None),
    ("lightgbm", "whole", 0, 1, 0.6),
    ("lightgbm", "truth", True, 2, None),
    ("booster", "whole", 0, 1, None),
    ("booster", "whole", 1, 2, 0.6),
    ("catboost", "text", "refused", 1, None),
    ("xgboost", "whole", 0, 2, None),
    ("ridge", "value", None, 1, None),
    ("trees", "value", None, 2, None),
]


def audited(kind: str, names: str, favourable: Any, threshold: float | None) -> tuple[Subject, Any, pd.DataFrame]:
    frame, wish = strangers()
    labels = labelled(wish, names)
    model = fitted(kind, frame, labels)
    said = {} if favourable is None else {"favourable": favourable}
    subject = Audit.from_table(
        model, frame.assign(outcome=labels), target="outcome", protected=["sex", "race"], **said
    ).subject
    return replace(subject, schema=replace(subject.schema, threshold=threshold)), model, frame


def by_hand(subject: Subject, model: Any, frame: pd.DataFrame, guard: Guard) -> np.ndarray:
    """The average over twins by the owner's own model alone, in the order of the guard's classes."""
    total = 0.0
    for weight, (sex, race) in zip(guard.weights, [(s, r) for s in ("female", "male") for r in "abc"], strict=True):
        twin = frame.assign(sex=sex, race=race)
        if type(model).__module__.startswith("lightgbm"):
            twin = twin.assign(**{name: pd.Categorical(twin[name], sorted(set(frame[name]))) for name in TEXT})
        ask = getattr(model, "predict_proba", None) or model.predict
        total = total + weight * np.asarray(ask(twin), np.float64)
    return np.asarray(total)


@pytest.mark.parametrize(("kind", "names", "favourable", "guarantee", "threshold"), MODELS)
def test_a_guard_of_a_strangers_model(
    kind: str,
    names: str,
    favourable: Any,
    guarantee: int,
    threshold: float | None,
    tmp_path: Path,
    bare: BareInterpreter,
) -> None:
    """Scores, decisions and their direction, names and types of classes, threshold: by raw rows, without fairbits."""
    subject, model, frame = audited(kind, names, favourable, threshold)
    guard = Guard.of(subject, guarantee=guarantee, threads=1)
    codes = subject.table.codes
    written = write(guard, subject, tmp_path, codes)
    assert "repaired.py" in [path.name for path in written.files], written.warnings
    check = next(one for one in written.checks if one.file == "repaired.py")
    assert check.kept
    assert check.fresh
    assert check.equal == check.rows == ROWS
    [(table, decided, scores)] = bare.guarded(tmp_path, [frame])
    own = guard.people_scores(codes)
    np.testing.assert_allclose(scores, own, atol=1e-5 * max(1.0, float(np.abs(own).max())))
    labels = labelled(strangers()[1], names)
    if favourable is None:
        if guarantee == 1:
            mine = by_hand(subject, model, frame, guard) + guard.shift
            np.testing.assert_allclose(decided, mine, atol=1e-5 * float(np.abs(own).max()))
        return
    # What is decided has the types of the owner's own labels, and agrees with them as the guard does.
    assert {type(one) for one in decided.tolist()} == {type(one) for one in labels.tolist()}
    assert set(decided.tolist()) <= set(labels.tolist())
    due = [subject.schema.classes[i] for i in guard.labels(subject.encoding.encode(codes))]
    assert [str(one).lower() for one in decided.tolist()] == due
    assert (decided == labels).mean() > 0.6
    np.testing.assert_allclose(table.sum(axis=1), 1)
    if guarantee == 1 and guard.shift == 0:  # by the owner's model alone, whichever way round its outputs are
        average = by_hand(subject, model, frame, guard)
        if average.ndim == 1:  # a booster's one output speaks of the second class
            average = np.column_stack([1 - average, average])
        outputs = list(getattr(model, "classes_", np.array([0, 1])))
        mine = average[:, outputs.index(favourable)]
        np.testing.assert_allclose(scores, mine, atol=1e-6)


@pytest.mark.parametrize(("kind", "guarantee"), [("forest", 2), ("lightgbm", 1), ("linear", 2)])
def test_odd_rows(kind: str, guarantee: int, tmp_path: Path, bare: BareInterpreter) -> None:
    """Nobody needs to declare; columns may come in any order, with others, as whole numbers, alone, or not at all."""
    subject, _, frame = audited(kind, "text", "approved", None)
    guard = Guard.of(subject, guarantee=guarantee, threads=1)
    codes = subject.table.codes[:40]
    frame = frame.head(40)
    written = write(guard, subject, tmp_path, subject.table.codes)
    assert "repaired.py" in [path.name for path in written.files], written.warnings
    half = frame.assign(sex=[None, "unknown", "male", "female"] * 10, race=[np.nan, "a", "b", "nobody's"] * 10)
    tables = [
        frame,
        frame.assign(sex=None, race=np.nan),
        frame.assign(sex="unknown", race="other"),
        frame.drop(columns=["sex", "race"]),
        frame[frame.columns[::-1]].assign(more=1, label="x").sample(frac=1, random_state=0).sort_index(),
        frame.assign(pay=frame["pay"].round().astype(int)),
        frame.assign(pay=frame["pay"].round()),
        frame.head(1),
        frame.head(0),
        frame.to_dict("list"),
        frame.to_dict("records"),
        half,
    ]
    found = [scores for _, _, scores in bare.guarded(tmp_path, tables)]
    own, average = guard.people_scores(codes), guard.with_guarantee(1).people_scores(codes)
    for scores, wanted in zip(found[:5], [own, average, average, average, own], strict=True):
        np.testing.assert_allclose(scores, wanted, atol=1e-5)
    np.testing.assert_array_equal(found[5], found[6])
    assert found[7].shape == (1,)
    assert found[8].shape == (0,)
    np.testing.assert_allclose(found[9], own, atol=1e-5)
    np.testing.assert_allclose(found[10], own, atol=1e-5)
    # Whoever lacks one of them gets the average; the third of each four lacks nothing.
    lacking = np.arange(40) % 4 != 2
    np.testing.assert_allclose(found[11][lacking], average[lacking], atol=1e-5)
    bad = frame.assign(pay=np.where(np.arange(40) == 3, np.inf, frame["pay"]))
    if kind != "lightgbm":  # which takes infinities
        with pytest.raises(AssertionError, match="ValueError"):
            bare.guarded(tmp_path, [bad])
    with pytest.raises(AssertionError, match="'pay'"):
        bare.guarded(tmp_path, [frame.drop(columns="pay").to_dict("list")])


@pytest.mark.parametrize(
    ("head", "widths", "activation", "guarantee"),
    [
        ("softmax", [5, 6, 4, 2], "relu", 1),
        ("softmax", [5, 6, 4, 2], "relu", 2),
        ("sigmoid", [5, 5, 1], "tanh", 2),
        ("softmax", [5, 4, 3], "gelu", 2),
    ],
)
def test_networks_need_numpy_alone(
    head: str, widths: list[int], activation: str, guarantee: int, tmp_path: Path, bare: BareInterpreter
) -> None:
    """A native network is in the file itself, in ONNX with its decisions, and nobody needs to declare there either."""
    drawn = random_network(np.random.default_rng(3), widths)
    network = Network.build(drawn.weights, drawn.biases, activation=activation, head=head)  # type: ignore[arg-type]
    classes = ("no", "yes") if widths[-1] < 3 else ("low", "mid", "high")
    schema = replace(SCHEMA, classes=classes, favourable=classes[0], threshold=0.6 if widths[-1] < 3 else None)
    encoding = Encoding.one_hot(schema)
    codes = people().codes
    labels = np.random.default_rng(0).integers(0, len(classes), len(codes)).astype(float)
    subject = make_subject("network", network, schema, Table(codes, labels), encoding=encoding, original=network)
    guard = Guard.of(subject, guarantee=guarantee, threads=1)
    written = write(guard, subject, tmp_path, codes)
    shown = Decoder(schema).frame(codes)
    [(table, decided, scores)] = bare.guarded(tmp_path, [shown.to_dict("list")])
    np.testing.assert_allclose(scores, guard.people_scores(codes), atol=2e-6)
    np.testing.assert_allclose(table, guard.people_class_scores(codes), atol=2e-6)
    wanted = [schema.classes[i] for i in guard.labels(encoding.encode(codes))]
    assert decided.tolist() == wanted
    runtime = pytest.importorskip("onnxruntime")
    assert [path.name for path in written.files] == ["repaired.onnx", "repaired.py"], written.warnings
    session = runtime.InferenceSession(tmp_path / "repaired.onnx")
    inputs = np.asarray(encoding.encode(codes), np.float32)
    output, label = session.run(None, {"inputs": inputs})
    assert list(label) == wanted
    np.testing.assert_allclose(output if head == "softmax" else 1 - output, table[:, : output.shape[1]], atol=2e-6)
    blank = inputs.copy()
    blank[:, guard.protected_inputs] = [np.nan, 0, 0]  # nobody knows
    average = guard.with_guarantee(1).people_class_scores(codes)
    nobody = session.run(["output"], {"inputs": blank})[0]
    np.testing.assert_allclose(nobody if head == "softmax" else 1 - nobody, average[:, : nobody.shape[1]], atol=2e-6)
    np.testing.assert_allclose(guard.scores(blank), average[:, schema.favourable_index], atol=2e-6)
    said = json.loads(session.get_modelmeta().custom_metadata_map["fairbits.decision"])
    assert said == {"classes": list(classes), "favourable": classes[0], "threshold": schema.rule.threshold}


@pytest.mark.parametrize("framework", ["torch", "keras"])
def test_networks_of_frameworks(framework: str, tmp_path: Path, bare: BareInterpreter, monkeypatch: Any) -> None:
    """Chains of layers are in the file; a module that branches is asked through its own library."""
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    torch = pytest.importorskip("torch")
    codes = people().codes
    model: Any
    if framework == "keras":
        keras = pytest.importorskip("keras")
        keras.utils.set_random_seed(1)
        layers = keras.layers
        model = keras.Sequential([keras.Input((3,)), layers.Dense(4, "relu"), layers.Dense(1, "sigmoid")])
    else:

        class Branching(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.last = torch.nn.Linear(3, 3), torch.nn.Linear(3, 2)

            def forward(self, x: Any) -> Any:
                x = x / 10
                return self.last(x + torch.relu(self.first(x)))

        torch.manual_seed(0)
        model = Branching()
    for favourable in ("no", "yes"):
        schema = replace(SCHEMA, favourable=favourable)
        frame = Decoder(schema).frame(codes).assign(hired=np.where(people().labels == 1, "yes", "no"))
        audit = Audit(model, frame, schema, as_is=True, **({} if framework == "keras" else {"output": "logit"}))
        guard = Guard.of(audit.subject, guarantee=2, threads=1)
        written = write(guard, audit.subject, tmp_path, codes)
        assert "repaired.py" in [path.name for path in written.files], written.warnings
        handed = None if isinstance(guard.model, Network) else model
        if handed is None:
            [(_, decided, scores)] = bare.guarded(tmp_path, [frame])
            np.testing.assert_allclose(scores, guard.people_scores(codes), atol=1e-5)
            assert set(decided) <= {"yes", "no"}
        check = next(one for one in written.checks if one.file == "repaired.py")
        assert check.kept
        assert check.equal == check.rows


@pytest.mark.parametrize(
    ("kind", "ending", "favourable"),
    [("booster", ".txt", 0), ("forest", ".joblib", 0), ("forest", ".skops", 1), ("xgboost", ".skops", 0)],
)
def test_a_guard_of_a_model_in_a_file(
    kind: str, ending: str, favourable: int, tmp_path: Path, bare: BareInterpreter, request: pytest.FixtureRequest
) -> None:
    """The file is asked through its library in a process of its own, and goes with the guard."""
    if kind == "booster":
        request.getfixturevalue("fresh_checker")
    frame, wish = strangers()
    labels = labelled(wish, "whole")
    model = fitted(kind, frame, labels)
    path = tmp_path / f"model{ending}"
    if ending == ".txt":
        model.save_model(str(path))
    else:
        save_estimator(model, path)
    table = frame.assign(outcome=labels)
    subject = Audit.from_table(
        str(path), table, target="outcome", protected=["sex", "race"], favourable=favourable, trust_pickle=True
    ).subject
    guard = Guard.of(subject, threads=1)
    folder = tmp_path / "out"
    folder.mkdir()
    written = write(guard, subject, folder, subject.table.codes)
    assert [one.name for one in written.files] == ["repaired.py", f"repaired_model{ending}"], written.warnings
    assert written.checks[0].fresh
    [(_, decided, scores)] = bare.guarded(folder, [frame])
    np.testing.assert_allclose(scores, guard.people_scores(subject.table.codes), atol=1e-5)
    assert (decided == labels).mean() > 0.6


def test_a_function_is_handed_over(tmp_path: Path) -> None:
    """What lives in memory alone is not in a file: the file says so, and it was asked here."""
    table = people()

    def model(frame: Any) -> Any:
        sex = frame["sex"].map({"a": 0, "b": 1, "c": 2}).to_numpy(float)
        return 1 / (1 + np.exp(4.8 - frame["skill"].to_numpy(float) - 0.3 * sex))

    frame = Decoder(SCHEMA).frame(table.codes).assign(hired=np.where(table.labels == 1, "yes", "no"))
    for favourable, score_of in (("yes", None), ("no", "yes")):
        said = {} if score_of is None else {"score_of": score_of}
        subject = Audit(model, frame, replace(SCHEMA, favourable=favourable), **said).subject
        guard = Guard.of(subject, guarantee=1, threads=1, refit=False)
        written = write(guard, subject, tmp_path, table.codes)
        assert [path.name for path in written.files] == ["repaired.py"], written.warnings
        [check] = written.checks
        assert not check.fresh
        space: dict[str, Any] = {"__name__": "repaired", "__file__": str(tmp_path / "repaired.py")}
        exec(compile((tmp_path / "repaired.py").read_text(), "repaired.py", "exec"), space)  # noqa: S102 - as a user
        with pytest.raises(TypeError, match="wants the model: hand it over as it was given"):
            space["Guarded"]()
        guarded = space["Guarded"](model)
        np.testing.assert_allclose(guarded.scores(frame), guard.people_scores(table.codes), atol=1e-6)
        assert (guarded.predict(frame) == frame["hired"]).mean() > 0.9


_RULES = [
    ('skill >= 5 -> sex != "c"',),
    ('(skill + 1) * 2 > 8 and not skill = 9 -> sex in {"a", "b"}', 'sex = "a" or skill <= 7'),
    ('sex = "a" and skill < 8',),
]


@pytest.mark.parametrize("rules", _RULES)
@pytest.mark.parametrize("coded", ["plain", "one-hot"])
def test_rules_about_twins_are_in_every_file(
    rules: tuple[str, ...], coded: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    schema, table = replace(SCHEMA, rules=rules), people()
    encoding = Encoding.identity(schema) if coded == "plain" else Encoding.one_hot(schema)
    drawn = random_network(rng, [encoding.width, 6, 2])
    mild = [drawn.weights[0] * 0.1, *drawn.weights[1:]]  # scores far from 0 and 1
    network = Network.build(mild, drawn.biases, head="softmax")
    subject = make_subject("rules", network, schema, table, encoding=encoding)
    guard = Guard.of(subject, tau=0.002, threads=1)
    assert guard.twin_rules is not None
    wanted = guard.people_scores(table.codes)
    np.testing.assert_allclose(guard.scores(encoding.encode(table.codes)), wanted, atol=2e-6)
    plain = Guard.of(make_subject("plain", network, SCHEMA, table, encoding=encoding), tau=0.002, threads=1)
    assert np.abs(plain.people_scores(table.codes) - wanted).max() > 1e-4
    written = write(guard, subject, tmp_path, table.codes)
    assert {path.suffix for path in written.files} >= {".py"}
    if pytest.importorskip("onnxruntime"):
        assert {path.suffix for path in written.files} == {".onnx", ".py"}, written.warnings


def test_rules_about_twins_hold_for_everybody(rng: np.random.Generator) -> None:
    """Twins keep within the bound under rules too: whom the average is over does not depend on the twin."""
    schema = replace(SCHEMA, rules=_RULES[1])
    network = random_network(rng, [3, 6, 2])
    subject = make_subject("rules", network, schema, people())
    guard = Guard.of(subject, guarantee=1, threads=1)
    twins = guard.subject_twins.expand(people().codes).reshape(-1, len(schema))
    scores = guard.scores(subject.encoding.encode(twins)).reshape(len(people().codes), guard.m)
    assert np.ptp(scores, axis=1).max() < 1e-6


def test_files_about_a_table_of_zeros_and_ones(tmp_path: Path, bare: BareInterpreter) -> None:
    """A protected category spread over columns, and a rule that looks at another one, of which one value is dropped."""
    attributes = (
        Attribute(name="pay", kind="integer", low=0, high=5),
        Attribute(name="job", kind="category", labels=("a", "b", "c"), columns=("", "job_b", "job_c")),
        Attribute(name="sex", kind="category", labels=("f", "m"), columns=("sex_f", "sex_m"), protected=True),
        Attribute(name="age", kind="integer", low=1, high=3, protected=True),
    )
    schema = Schema(attributes, target="ok", classes=("no", "yes"), rules=("job == 'b' -> age >= 2",))
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(a.low, a.upper + 1, 400) for a in attributes]).astype(float)
    drawn = random_network(rng, [6, 5, 1])
    network = Network.build(drawn.weights, drawn.biases, head="sigmoid")
    encoding = Encoding.of_columns(schema)
    subject = make_subject("spread", network, schema, Table(codes, rng.integers(0, 2, 400) * 1.0), encoding=encoding)
    frame = Decoder(schema).frame(codes)
    for guarantee in (1, 2):
        guard = Guard.of(subject, guarantee=guarantee, threads=1)
        written = write(guard, subject, tmp_path, codes)
        assert {path.name for path in written.files} >= {"repaired.py"}, written.warnings
        [(_, _, found), (_, _, lists), (_, _, nobody)] = bare.guarded(
            tmp_path, [frame, frame.to_dict("list"), frame.assign(sex_f=0, sex_m=0)]
        )
        np.testing.assert_allclose(found, guard.people_scores(codes), atol=2e-6)
        np.testing.assert_array_equal(found, lists)
        np.testing.assert_allclose(nobody, guard.with_guarantee(1).people_scores(codes), atol=2e-6)
    coding = coding_of(schema, codes)
    groups = GroupThresholds(evaluator_of(subject, threads=1), coding, np.linspace(-1, 1, len(coding.labels)))
    written = write(groups, subject, tmp_path, codes)
    assert "repaired.py" in [path.name for path in written.files], written.warnings
    [(_, decided, scores)] = bare.guarded(tmp_path, [frame], name="Thresholded")
    np.testing.assert_allclose(scores, groups.scores(encoding.encode(codes)), atol=2e-6)
    assert decided.tolist() == [schema.classes[i] for i in schema.rule.decide(groups.people_scores(codes))]


def test_too_many_twins_for_a_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, and the Python file is left."""
    monkeypatch.setattr(wrappers, "MAX_TERMS", 5)
    subject = make_subject("files", wired(), SCHEMA, people(), original=wired())
    written = write(Guard.of(subject, guarantee=2, threads=1), subject, tmp_path, people().codes)
    assert [path.name for path in written.files] == ["repaired.py"]
    said = next(line for line in written.warnings if "not written as .onnx" in line)
    assert "the 3 twins need" in said


def test_a_subject_file_is_about_the_graph(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    subject = load_subject(write_subject(tmp_path / "subject"))
    guard = Guard.of(subject, guarantee=2, threads=1)
    written = write(guard, subject, tmp_path, subject.table.codes)
    assert written.subject_file is not None, written.warnings
    again = load_subject(written.subject_file)
    assert evaluator_of(again, threads=1).evaluate(subject.table.codes).k.max() <= 2


def test_a_turned_guard_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours in any writer: the file is removed, one sentence says so, and the record says why."""
    right = writing.script_of

    def turned(*given: Any, **named: Any) -> Any:
        script = right(*given, **named)
        return replace(script, data={**script.data, "favourable": 1 - script.data["favourable"]})

    monkeypatch.setattr(writing, "script_of", turned)
    subject = make_subject("files", wired(), SCHEMA, people(), original=wired())
    written = write(Guard.of(subject, threads=1), subject, tmp_path, people().codes)
    assert "repaired.py" not in [path.name for path in written.files]
    assert not (tmp_path / "repaired.py").exists()
    check = next(one for one in written.checks if one.file == "repaired.py")
    assert "not those of the favourable class" in check.why
    assert sum("not the model that was judged" in line for line in written.warnings) == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"threshold": 0.9}, "it decides"),
        ({"classes": ["0", "1"]}, "it calls its classes"),
        ({"tau": 0.3}, "scores"),
        ({"shift": 0.8}, "scores"),
        ({"weights": [1.0, 0.0, 0.0]}, "scores"),
    ],
)
def test_every_fact_of_a_guard_is_compared(
    change: dict[str, Any], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = writing.script_of

    def wrong(*given: Any, **named: Any) -> Any:
        script = right(*given, **named)
        return replace(script, data={**script.data, **change})

    monkeypatch.setattr(writing, "script_of", wrong)
    schema = replace(SCHEMA, classes=("0", "1"), favourable="1")
    subject = make_subject("files", wired(), schema, people(), original=wired())
    written = write(Guard.of(subject, guarantee=2, threads=1, epsilon=0.01), subject, tmp_path, people().codes)
    check = next(one for one in written.checks if one.file == "repaired.py")
    assert not check.kept
    assert why in check.why


def test_what_a_repair_records(tmp_path: Path) -> None:
    """The checks go with the result into repair.json, and into run.json."""
    run = searched(load_subject(write_subject(tmp_path / "subject")), tmp_path / "run")
    result = repair_run(run, choose="average", quick=True, threads=1)
    document = json.loads((tmp_path / "run" / "repair.json").read_text())
    assert [one["file"] for one in document["written"]] == [one.file for one in result.written]
    mine = next(one for one in document["written"] if one["file"] == "repaired.py")
    assert mine["kept"]
    assert mine["rows"] == mine["equal"] > 100
    assert mine["library"].startswith("numpy")
    assert {"scores", "decisions", "threshold", "classes", "missing protected values"} <= set(mine["compared"])
    checks = json.loads((tmp_path / "run" / "run.json").read_text())["checks"]
    assert checks["written_file"] == document["written"]
    repair_run(run, choose="average", quick=True, threads=1)  # a run with checks is still a run


def test_a_process_that_fails_is_said() -> None:
    [answer] = in_fresh_process([{"do": "ask", "by": "library", "file": "nothing.txt", "about": {}, "tables": {}}])
    assert answer["fault"]
    [slow] = in_fresh_process([{"do": "settle"}], seconds=0.001)
    assert "took longer than" in slow["fault"]


def test_a_guard_without_extras(tmp_path: Path) -> None:
    """The hard dependencies alone write a guard of a built-in network, and open it again."""
    import subprocess
    import sys

    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pandas", "onnx", "onnxruntime", "sklearn", "torch", "keras", "skops", "joblib"}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refuse())
from pathlib import Path
import fairbits
from fairbits.repair.writers import export
subject = fairbits.load_subject("german")
guard = fairbits.Guard.of(subject, threads=1)
written = export(guard, subject, Path(sys.argv[1]), subject.table.codes[:200])
assert [path.name for path in written.files] == ["repaired.py"], written.warnings
assert written.checks[-1].kept and written.checks[-1].equal == 200, written.checks
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=300)


def test_warnings_are_few(tmp_path: Path) -> None:
    """A writer that does all it can has nothing to say but what a decision costs."""
    subject = load_subject(write_subject(tmp_path / "subject"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        written: Export = write(Guard.of(subject, threads=1), subject, tmp_path, subject.table.codes)
    assert [line for line in written.warnings if "a guarded decision costs" not in line] == []
