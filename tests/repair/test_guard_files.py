"""A guarded model in files that need no fairbits: opened by a bare interpreter, and compared."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairbits import Audit, Guard, Network, Subject, load_subject
from fairbits.domain import Attribute, Decoder, Encoding, Schema, Table
from fairbits.errors import CapabilityError
from fairbits.measure import evaluator_of
from fairbits.models import save_estimator
from fairbits.repair.group_codes import coding_of
from fairbits.repair.guard_files import export_guard, favourable_of
from fairbits.repair.proposals import arrays as arrays_module
from fairbits.repair.proposals.arrays import GuardArrays
from fairbits.repair.proposals.group_thresholds import GroupThresholds, thresholds_text
from fairbits.repair.proposals.module import module_text
from fairbits.repair.proposals.onnx import write_guard_onnx
from fairbits.repair.proposals.sklearn import guarded_estimator, write_guard_skops
from fairbits.repair.proposals.torch import write_guard_pt2
from fairbits.subject import make_subject
from tests.conftest import random_network
from tests.repair import test_pupils as pupils
from tests.repair.bare import BareInterpreter
from tests.repair.conftest import SCHEMA, people, wired


def _guard(network: Network, guarantee: int, **changes: object) -> tuple[Guard, Subject]:
    schema = replace(SCHEMA, **changes)  # type: ignore[arg-type]
    subject = make_subject("files", network, schema, people())
    guard = Guard.of(subject, guarantee=guarantee, threads=1)
    guard.shift = 0.4 if len(schema.classes) == 2 else guard.shift
    return guard, subject


@pytest.mark.parametrize(
    ("head", "widths", "activation"), [("softmax", [3, 6, 4, 2], "relu"), ("sigmoid", [3, 5, 1], "tanh")]
)
def test_onnx_without_fairbits(
    head: str, widths: list[int], activation: str, rng: np.random.Generator, tmp_path: Path, bare: BareInterpreter
) -> None:
    pytest.importorskip("onnxruntime")
    drawn = random_network(rng, widths)
    network = Network.build(drawn.weights, drawn.biases, activation=activation, head=head)  # type: ignore[arg-type]
    guards = [_guard(network, guarantee) for guarantee in (1, 2)]
    paths = [tmp_path / f"guard-{guarantee}.onnx" for guarantee in (1, 2)]
    for (guard, _), path in zip(guards, paths, strict=True):
        write_guard_onnx(GuardArrays.of(guard), path)
    inputs = np.asarray(guards[0][1].encoding.encode(people().codes), np.float32)
    for (guard, _), found in zip(guards, bare.scores(paths, inputs, tmp_path), strict=True):
        np.testing.assert_allclose(favourable_of(found, guard.model), guard.scores(inputs), atol=2e-6)  # type: ignore[arg-type]


def test_pytorch_without_fairbits(tmp_path: Path, bare: BareInterpreter) -> None:
    pytest.importorskip("torch")
    guard, subject = _guard(wired(), 2)
    path = tmp_path / "guard.pt2"
    write_guard_pt2(GuardArrays.of(guard), path)
    inputs = np.asarray(subject.encoding.encode(people().codes), np.float32)
    [found] = bare.scores([path], inputs, tmp_path)
    np.testing.assert_allclose(favourable_of(found, wired()), guard.scores(inputs), atol=2e-6)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras about PyTorch
def test_keras_without_fairbits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bare: BareInterpreter) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    pytest.importorskip("keras")
    from fairbits.repair.proposals.keras import write_guard_keras

    guards = [_guard(wired(), guarantee) for guarantee in (1, 2)]
    paths = [tmp_path / f"guard-{guarantee}.keras" for guarantee in (1, 2)]
    for (guard, _), path in zip(guards, paths, strict=True):
        write_guard_keras(GuardArrays.of(guard), path)
    inputs = np.asarray(guards[0][1].encoding.encode(people().codes), np.float32)
    for (guard, _), found in zip(guards, bare.scores(paths, inputs, tmp_path), strict=True):
        np.testing.assert_allclose(favourable_of(found, wired()), guard.scores(inputs), atol=5e-6)


@pytest.mark.parametrize(("kind", "guarantee", "shift"), [("array", 1, 0.0), ("trees", 2, 0.7), ("bayes", 1, -0.9)])
def test_an_estimator_without_fairbits(
    kind: str, guarantee: int, shift: float, tmp_path: Path, bare: BareInterpreter
) -> None:
    """As .skops, out of scikit-learn's own parts; the model itself is in the file once."""
    pytest.importorskip("skops")
    subject = pupils._subject(kind)
    codes = subject.table.codes[:200]
    guard = Guard.of(subject, guarantee=guarantee, threads=1, refit=False)
    guard.shift = shift
    written = export_guard(guard, subject, tmp_path, codes)
    assert [path.name for path in written.files] == ["repaired.skops", "repaired.py"], written.warnings
    assert written.subject_file is not None
    again = load_subject(written.subject_file, trust_pickle=True)
    assert evaluator_of(again, threads=1).evaluate(codes[:20]).k.max() <= guarantee
    rows = codes if kind == "array" else Decoder(pupils.SCHEMA).frame(codes)
    [found] = bare.scores([written.files[0]], rows, tmp_path)
    np.testing.assert_allclose(found[:, 1], guard.people_scores(codes), atol=2e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    alone = tmp_path / "alone.skops"
    save_estimator(subject.original, alone)
    assert written.files[0].stat().st_size < 4 * alone.stat().st_size + 200_000


def test_a_subject_file_is_about_the_file_with_the_encoders(tmp_path: Path) -> None:
    """The ONNX file of a regression behind scalers takes what they put out, which no subject file can say."""
    pytest.importorskip("skops")
    pytest.importorskip("onnxruntime")
    subject = pupils._subject("scaled")
    assert isinstance(subject.model, Network)
    codes = subject.table.codes[:50]
    written = export_guard(Guard.of(subject, threads=1), subject, tmp_path, codes)
    assert [path.name for path in written.files] == ["repaired.skops", "repaired.onnx", "repaired.py"]
    assert written.subject_file is not None, written.warnings
    ruled = replace(subject, schema=replace(pupils.SCHEMA, rules=('sex = "f" -> race != "z"',)))
    written = export_guard(Guard.of(ruled, threads=1), ruled, tmp_path, codes)
    assert [path.name for path in written.files] == ["repaired.onnx", "repaired.py"]
    assert written.subject_file is None
    said = next(line for line in written.warnings if "repaired.toml" in line)
    assert "encoders of its own" in said
    assert "differ" not in said


def test_a_guarded_regression_as_an_estimator(tmp_path: Path, bare: BareInterpreter) -> None:
    pytest.importorskip("skops")
    from sklearn.ensemble import RandomForestRegressor

    table = people()
    pay = 1000 * table.codes[:, 0] + 400 * table.codes[:, 1] - 3000.0
    schema = replace(SCHEMA, target="pay", classes=(), favourable=None)
    forest = RandomForestRegressor(5, random_state=0).fit(table.codes, pay)
    audit = Audit(forest, replace(table, labels=pay), schema, input_format="codes")
    guards = [Guard.of(audit.subject, guarantee=guarantee, threads=1) for guarantee in (1, 2)]
    paths = [tmp_path / f"guard-{guarantee}.skops" for guarantee in (1, 2)]
    for guard, path in zip(guards, paths, strict=True):
        guard.shift = 12.5
        write_guard_skops(guard, path)
    for guard, found in zip(guards, bare.scores(paths, table.codes, tmp_path), strict=True):
        np.testing.assert_allclose(found, guard.people_scores(table.codes), rtol=1e-5, atol=1e-2)
        assert np.abs(found - forest.predict(table.codes)).max() > 50


def test_values_far_larger_than_tau_leave_no_room(tmp_path: Path, bare: BareInterpreter) -> None:
    """Room never falls below 0: with values of 10⁹ and τ = 25 the file gives the average, as the guard does."""
    pytest.importorskip("skops")
    from sklearn.linear_model import LinearRegression

    table = people()
    when = 1.7e9 + 900 * table.codes[:, 0] + 4000 * table.codes[:, 1]
    schema = replace(SCHEMA, target="when", classes=(), favourable=None)
    line = LinearRegression().fit(table.codes, when)
    audit = Audit(line, replace(table, labels=when), schema, input_format="codes")
    guard = Guard.of(audit.subject, guarantee=2, epsilon=25.0, threads=1)
    write_guard_skops(guard, tmp_path / "guard.skops")
    twins = guard.subject_twins.expand(table.codes[:5])
    [found] = bare.scores([tmp_path / "guard.skops"], twins.reshape(-1, twins.shape[2]), tmp_path)
    assert np.ptp(found.reshape(twins.shape[:2]), axis=1).max() < 1.0


def test_too_many_twins_for_a_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, and the Python file is left."""
    monkeypatch.setattr(arrays_module, "MAX_TERMS", 5)
    guard, subject = _guard(wired(), 2)
    with pytest.raises(
        CapabilityError, match=r"the 3 twins need [\d,]+ numbers, more than the 5 of a graph; the Python"
    ):
        GuardArrays.of(guard)
    written = export_guard(guard, subject, tmp_path, people().codes)
    assert [path.name for path in written.files] == ["repaired.py"]
    assert any("not written as .onnx" in line for line in written.warnings)


def test_what_no_part_of_scikit_learn_says(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    subject = pupils._subject("array")
    ruled = replace(subject, schema=replace(pupils.SCHEMA, rules=('sex = "f" -> race != "z"',)))
    with pytest.raises(CapabilityError, match=r"leaves out twins by rules; use \.py"):
        guarded_estimator(Guard.of(ruled, threads=1))
    written = export_guard(Guard.of(ruled, threads=1), ruled, tmp_path, subject.table.codes)
    assert [path.name for path in written.files] == ["repaired.py"]
    assert any("not written as .skops" in line for line in written.warnings)
    boosted = pupils._subject("lightgbm")
    with pytest.raises(CapabilityError, match=r"type 'category'; use \.py"):
        guarded_estimator(Guard.of(boosted, threads=1))


def test_a_python_file_around_any_model(tmp_path: Path) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    table = people()
    frame = Decoder(SCHEMA).frame(table.codes)
    frame["sex"] = frame["sex"].map({"a": 0, "b": 1, "c": 2})
    noisy = np.where(table.codes[:, 0] + 2 * table.codes[:, 1] > 6, "yes", "no")
    forest = ensemble.RandomForestClassifier(8, random_state=0).fit(table.codes, noisy)
    subject = make_subject("forest", Guard(forest, table, SCHEMA, threads=1).model, SCHEMA, table)
    guard = Guard.of(subject, guarantee=2, threads=1)
    space: dict[str, object] = {}
    exec(module_text(guard), space)  # noqa: S102 - what is tested

    class Forest:
        """Trained on codes, asked about a frame of labels."""

        def predict_proba(self, rows):  # type: ignore[no-untyped-def]
            codes = rows.assign(sex=rows["sex"].map({"a": 0, "b": 1, "c": 2}))
            return forest.predict_proba(codes.to_numpy(float))

    guarded = space["Guarded"](Forest())  # type: ignore[operator]
    shown = Decoder(SCHEMA).frame(table.codes)
    np.testing.assert_allclose(guarded.scores(shown), guard.people_scores(table.codes), atol=1e-6)
    assert set(guarded.predict(shown)) <= {"yes", "no"}
    np.testing.assert_allclose(guarded.predict_proba(shown).sum(axis=1), 1)


_RULES = [
    ('skill >= 5 -> sex != "c"',),
    ('(skill + 1) * 2 > 8 and not skill = 9 -> sex in {"a", "b"}', 'sex = "a" or skill <= 7'),
    ('sex = "a" and skill < 8',),
]


@pytest.mark.parametrize("rules", _RULES)
@pytest.mark.parametrize("coded", ["plain", "one-hot"])
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras about PyTorch
def test_rules_about_twins_are_in_every_file(
    rules: tuple[str, ...], coded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    keras, runtime, torch = (pytest.importorskip(name) for name in ("keras", "onnxruntime", "torch"))
    from fairbits.repair.proposals.keras import write_guard_keras

    schema, table = replace(SCHEMA, rules=rules), people()
    encoding = Encoding.identity(schema) if coded == "plain" else Encoding.one_hot(schema)
    drawn = random_network(rng, [encoding.width, 6, 2])
    mild = [drawn.weights[0] * 0.1, *drawn.weights[1:]]  # scores far from 0 and 1
    network = Network.build(mild, drawn.biases, head="softmax")
    subject = make_subject("rules", network, schema, table, encoding=encoding)
    guard = Guard.of(subject, tau=0.002, threads=1)
    assert guard.by_rules
    inputs = np.asarray(encoding.encode(table.codes), np.float32)
    wanted = guard.people_scores(table.codes)
    np.testing.assert_allclose(guard.scores(inputs), wanted, atol=2e-6)
    plain = Guard.of(make_subject("plain", network, SCHEMA, table, encoding=encoding), tau=0.002, threads=1)
    changed = np.abs(plain.people_scores(table.codes) - wanted).max()
    assert changed > 1e-4
    arrays = GuardArrays.of(guard)
    write_guard_onnx(arrays, tmp_path / "guard.onnx")
    write_guard_pt2(arrays, tmp_path / "guard.pt2")
    write_guard_keras(arrays, tmp_path / "guard.keras")
    session = runtime.InferenceSession(str(tmp_path / "guard.onnx"), providers=["CPUExecutionProvider"])
    found = {
        "onnx": session.run(None, {"inputs": inputs})[0],
        "pt2": torch.export.load(str(tmp_path / "guard.pt2")).module()(torch.from_numpy(inputs)).detach().numpy(),
        "keras": np.asarray(keras.models.load_model(tmp_path / "guard.keras").predict(inputs, verbose=0)),
    }
    for output in found.values():
        np.testing.assert_allclose(favourable_of(output, network), wanted, atol=5e-6)
    (tmp_path / "out").mkdir()
    written = export_guard(guard, subject, tmp_path / "out", table.codes)
    assert {path.suffix for path in written.files} >= {".onnx", ".py"}


def test_a_python_file_without_fairbits(tmp_path: Path) -> None:
    """Under rules too: the file and NumPy alone give the guard's own scores."""
    guard, _ = _guard(wired(), 2, rules=_RULES[1])
    (tmp_path / "repaired.py").write_text(module_text(guard), encoding="utf-8")
    table = people()
    np.savez(tmp_path / "rows.npz", skill=table.codes[:, 0], sex=table.codes[:, 1].astype(int), shoe=table.codes[:, 2])
    code = (
        "import sys, numpy as np\n"
        "sys.modules['fairbits'] = None\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from repaired import Guarded\n"
        "rows = np.load(sys.argv[1] + '/rows.npz')\n"
        "frame = {'skill': rows['skill'], 'sex': [['a', 'b', 'c'][i] for i in rows['sex']], 'shoe': rows['shoe']}\n"
        "def model(f):\n"
        "    sex = np.array([['a', 'b', 'c'].index(v) for v in f['sex']])\n"
        "    return 1 / (1 + np.exp(4.8 - np.array(f['skill'], float) - 0.3 * sex))\n"
        "np.save(sys.argv[1] + '/out.npy', Guarded(model).scores(frame))\n"
    )
    subprocess.run([sys.executable, "-I", "-c", code, str(tmp_path)], check=True, timeout=120)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), guard.people_scores(table.codes), atol=2e-6)


def test_rules_about_twins_hold_for_everybody(rng: np.random.Generator) -> None:
    """Twins keep within the bound under rules too: whom the average is over does not depend on the twin."""
    schema = replace(SCHEMA, rules=_RULES[1])
    network = random_network(rng, [3, 6, 2])
    subject = make_subject("rules", network, schema, people())
    guard = Guard.of(subject, guarantee=1, threads=1)
    twins = guard.subject_twins.expand(people().codes).reshape(-1, len(schema))
    scores = guard.scores(subject.encoding.encode(twins)).reshape(len(people().codes), guard.m)
    assert np.ptp(scores, axis=1).max() < 1e-6


@pytest.mark.parametrize("head", ["sigmoid", "softmax"])
def test_a_graph_whose_first_output_is_the_favourable_one(tmp_path: Path, head: str) -> None:
    """The file states which output that is, and whoever reads it back without a schema heeds it."""
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    last = [[2.0], [-1.0]] if head == "sigmoid" else [[1.0, -1.0], [-0.5, 0.5]]
    network = Network.build([np.eye(3)[:, :2], last], [np.zeros(2), np.zeros(len(last[0]))], head=head)
    schema = replace(SCHEMA, favourable="no")
    subject = make_subject("first", network.with_favourable(0), schema, people(), original=network)
    written = export_guard(Guard.of(subject), subject, tmp_path, people().codes)
    assert "repaired.onnx" in [path.name for path in written.files], written.warnings


def test_files_about_a_table_of_zeros_and_ones(tmp_path: Path) -> None:
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

    def model(rows: Any) -> np.ndarray:
        return network.scores(np.asarray(rows[list(frame.columns)], np.float32))

    for guarantee in (1, 2):
        guard = Guard.of(subject, guarantee=guarantee, threads=1)
        space: dict[str, Any] = {"__name__": "repaired"}
        exec(module_text(guard), space)  # noqa: S102 - our own text, tried as a user would
        found = space["Guarded"](model).scores(frame)
        np.testing.assert_allclose(found, guard.people_scores(codes), atol=1e-6)
        lists = {name: frame[name].tolist() for name in frame.columns}
        np.testing.assert_allclose(
            space["Guarded"](lambda rows: model(pd.DataFrame(rows))).scores(lists), found, atol=1e-6
        )
    pytest.importorskip("onnxruntime")
    written = export_guard(guard, subject, tmp_path, codes)
    assert {path.name for path in written.files} == {"repaired.onnx", "repaired.py"}
    assert written.subject_file is not None
    coding = coding_of(schema, codes)
    groups = GroupThresholds(evaluator_of(subject, threads=1), coding, np.linspace(-1, 1, len(coding.labels)))
    space = {"__name__": "repaired"}
    exec(thresholds_text(groups), space)  # noqa: S102
    wanted = groups.scores(encoding.encode(codes))
    np.testing.assert_allclose(space["Thresholded"](model).scores(frame), wanted, atol=1e-6)
