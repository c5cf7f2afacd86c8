"""Real models of every framework, from their file through a search to a repaired file of the same kind."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomlkit

from fairbits import Audit, Budget, Decoder, Encoding, Schema, Subject, load_subject
from fairbits.errors import ModelError
from fairbits.measure import evaluator_of
from fairbits.models import Network
from fairbits.repair import RepairResult, repair_run
from fairbits.subject.export import document_of_schema
from tests.models import zoo
from tests.models.zoo import SCHEMA
from tests.repair.conftest import searched

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
ROWS = 240
#: Without looking at repairs that are not asked for.
BLINDED: dict[str, Any] = {"choose": "blind", "retrain": False, "quick": True}


def write_subject(folder: Path, schema: Schema = SCHEMA, **model: Any) -> Path:
    """A subject file about a model in the same folder; labels are hours of work, which nobody protects."""
    frame, codes, _ = zoo.table(ROWS)
    target = codes[:, 2] * 3 if schema.regression else np.where(codes[:, 4] > 49, "yes", "no")
    frame.assign(**{str(schema.target): target}).to_csv(folder / "table.csv", index=False)
    document = document_of_schema(schema)
    document["table"].add("path", "table.csv")  # type: ignore[union-attr]
    document.add("model", model)
    (folder / "subject.toml").write_text(tomlkit.dumps(document))
    return folder / "subject.toml"


def repaired(subject: Subject, folder: Path, **options: Any) -> RepairResult:
    run = searched(subject, folder / "run", evaluations=600, epsilon=0.005)
    return repair_run(run, subject=subject, max_accuracy_loss=0.9, threads=1, **options)


def by_keras(path: Path) -> Any:
    import keras

    model = keras.saving.load_model(str(path))
    return lambda codes: np.asarray(model.predict(Encoding.one_hot(SCHEMA).encode(codes), verbose=0))[:, -1]


def by_torch(path: Path) -> Any:
    import torch

    if path.suffix == ".pt2":
        return zoo.by_torch(torch.export.load(str(path)).module())
    module = zoo.sequential()
    module.load_state_dict(torch.load(path, weights_only=True))
    return zoo.by_torch(module.eval())


def by_skops(path: Path) -> Any:
    from skops import io

    return zoo.by_frame(io.load(path, trusted=io.get_untrusted_types(file=path)))


def by_joblib(path: Path) -> Any:
    import joblib

    model = joblib.load(path)
    return lambda codes: model.predict(Decoder(SCHEMA).frame(codes))


def by_onnx(path: Path) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    if [one.name for one in session.get_inputs()] == ["inputs"]:
        return lambda codes: session.run(None, {"inputs": Encoding.one_hot(SCHEMA).encode(codes)})[0][:, 1]

    def ask(codes: np.ndarray) -> np.ndarray:
        frame = Decoder(SCHEMA).frame(codes)
        feed = {n: frame[[n]].to_numpy(dtype=object if n in {"job", "sex"} else np.float32) for n in SCHEMA.names}
        return np.array([row["yes"] for row in session.run(["output_probability"], feed)[0]])

    return ask


#: Which specimen, the name of its file, what [model] says besides, and how its framework is asked again.
KINDS = {
    "sklearn pipeline": ("model.skops", {}, by_skops),
    "sklearn regression": ("model.joblib", {}, by_joblib),
    # Nobody has trained these two: their labels could not tell the order of their inputs.
    "onnx, our own": ("model.onnx", {"encoding": "one-hot"}, by_onnx),
    "onnx pipeline": ("model.onnx", {}, by_onnx),
    "torch weights": ("model.pt", {"factory": "tests.models.modules:sequential"}, by_torch),
    "torch export": ("model.pt2", {}, by_torch),
    "keras sequential": ("model.keras", {"encoding": "one-hot"}, by_keras),
    "keras functional": ("model.keras", {}, by_keras),
}


#: One of each framework: the weights of the others are written in the same places.
TRAINED = ("sklearn pipeline", "torch export", "keras functional")


@pytest.mark.parametrize("name", KINDS)
def test_it_comes_back_as_it_came(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Trained further, every weight has changed; without training only neurons and protected inputs have."""
    if name == "keras sequential":
        request.getfixturevalue("fresh_checker")
    file, options, framework = KINDS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        specimen = zoo.ZOO[name].make(tmp_path)
    pickled = file.endswith(".joblib")
    subject = load_subject(
        write_subject(tmp_path, specimen.schema, path=file, **options), trust_pickle=pickled, trust_code=True
    )
    assert isinstance(subject.model, Network)
    untouched = (tmp_path / file).read_bytes()
    trained = {"choose": "shrink-50+consistent"} if name in TRAINED else BLINDED
    result = repaired(subject, tmp_path, **trained)
    suffix = Path(file).suffix
    assert [path.name for path in result.files] == list(dict.fromkeys([f"repaired{suffix}", "repaired.onnx"]))
    assert not any("written" in warning for warning in result.warnings)
    assert (tmp_path / file).read_bytes() == untouched
    # The framework itself gives the repaired scores.
    codes, network = subject.table.codes, result.chosen.network
    wanted = network.scores(subject.encoding.encode(codes))
    np.testing.assert_allclose(framework(result.files[0])(codes), wanted, atol=2e-5, rtol=2e-5)
    assert np.abs(wanted - subject.model.scores(subject.encoding.encode(codes))).max() > 1e-3
    # And the subject file beside it is a subject like any other.
    assert result.subject_file is not None
    if pickled:
        with pytest.raises(ModelError, match="is a pickle, which runs code"):
            load_subject(result.subject_file)
    again = load_subject(result.subject_file, trust_pickle=pickled, trust_code=True)
    assert str(again.original).endswith(f"repaired{suffix}")
    found = evaluator_of(again, threads=1).evaluate(codes)
    assert found.k.mean() == pytest.approx(evaluator_of(subject, model=network, threads=1).evaluate(codes).k.mean())


def sklearn_object() -> Any:
    from sklearn.pipeline import make_pipeline

    frame, codes, _ = zoo.table(ROWS)
    return zoo.fit(make_pipeline(zoo.preprocessing(), zoo.perceptron()), frame, np.where(codes[:, 4] > 49, "yes", "no"))


def torch_object() -> Any:
    return zoo.sequential()


def keras_object() -> Any:
    import keras

    keras.utils.set_random_seed(4)
    layers = [keras.Input((9,)), keras.layers.Dense(6, activation="relu"), keras.layers.Dense(1, activation="sigmoid")]
    return keras.Sequential(layers)


@pytest.mark.parametrize(
    ("make", "extra", "file"),
    [
        (sklearn_object, "skops", "repaired.skops"),
        (torch_object, "torch", "repaired.pt2"),
        (keras_object, "keras", "repaired.keras"),
    ],
)
def test_objects_are_written_as_their_framework_does(make: Any, extra: str, file: str, tmp_path: Path) -> None:
    pytest.importorskip(extra, reason=f"{extra} is not installed")
    frame, codes, _ = zoo.table(ROWS)
    frame["hired"] = np.where(codes[:, 4] > 49, "yes", "no")
    model = make()
    audit = Audit(model, frame, SCHEMA, name="mine", as_is=True)  # nobody has trained it
    before = audit.subject.model.scores(audit.subject.encoding.encode(codes))
    run = audit.search(budget=Budget(evaluations=600), strategy="random", out=tmp_path / "run", epsilon=0.005)
    result = run.repair(**BLINDED, attack_budget=None, threads=1)
    assert [path.name for path in result.files] == [file, "repaired.onnx"]
    assert result.subject_file is not None
    again = load_subject(result.subject_file)
    assert (again.name, again.schema.protected) == ("mine", ("age", "sex"))
    np.testing.assert_array_equal(again.table.codes, audit.subject.table.codes)
    np.testing.assert_array_equal(again.table.labels, audit.subject.table.labels)
    assert evaluator_of(again, threads=1).evaluate(codes).k.max() == 1
    # The object itself is as it was.
    anew = Audit(model, frame, SCHEMA, as_is=True).subject
    np.testing.assert_array_equal(anew.model.scores(anew.encoding.encode(codes)), before)


def test_a_reference_to_code(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the torch extra is not installed")
    subject = load_subject(write_subject(tmp_path, path="tests.models.modules:sequential"), trust_code=True)
    result = repaired(subject, tmp_path, **BLINDED)
    assert [path.name for path in result.files] == ["repaired.pt2", "repaired.onnx"]


def test_a_whole_module_stays_whole_and_needs_trust(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="the torch extra is not installed")
    torch.save(zoo.sequential(), tmp_path / "model.pt")
    path = write_subject(tmp_path, path="model.pt")
    result = repaired(load_subject(path, trust_pickle=True), tmp_path, **BLINDED)
    assert result.files[0].name == "repaired.pt"
    with pytest.raises(ModelError, match="holds more than weights, and opening it runs code"):
        load_subject(tmp_path / "run" / "repaired.toml")
    assert load_subject(tmp_path / "run" / "repaired.toml", trust_pickle=True).name == "subject"


def test_a_shape_that_cannot_hold_the_repair(tmp_path: Path) -> None:
    """Blinding needs a bias in the first layer: without one the repair goes out in our own format, and says why."""
    torch = pytest.importorskip("torch", reason="the torch extra is not installed")
    torch.manual_seed(0)
    shape = torch.nn.Sequential(torch.nn.Linear(9, 6, bias=False), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    from fairbits.models.torch import write_module

    write_module(shape, 9, tmp_path / "model.pt2")
    subject = load_subject(write_subject(tmp_path, path="model.pt2"))
    result = repaired(subject, tmp_path, **BLINDED)
    assert [path.name for path in result.files] == ["repaired.npz", "repaired.onnx"]
    assert "was not written as .pt2: layer 0 has no bias" in result.warnings[0]
    assert result.subject_file is not None
    assert evaluator_of(load_subject(result.subject_file), threads=1).evaluate(subject.table.codes).k.max() == 1


def test_what_no_chain_of_layers_gets(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the torch extra is not installed")
    frame, _, _ = zoo.table(60)
    frame["grade"] = ["low", "mid", "high"] * 20
    run = Audit(zoo.residual(), frame, zoo.THREE).search(
        budget=Budget(evaluations=100), strategy="random", out=tmp_path / "run"
    )
    found = run.debug(samples=20, threads=1)
    assert found.accuracy is not None
    assert any(one.k_mean != found.k_mean for neuron in found.neurons for one in neuron.candidates)
    # Without a chain of layers there are no neurons to hold and no inputs to shrink, but the guard asks for scores only
    result = run.repair(attack_budget=None, max_accuracy_loss=0.9)
    assert result["average"].k_max_proved == 1
    assert {one.name.partition("-")[0] for one in result.repairs} <= {"average", "guard"}


def test_a_built_in_subject(tmp_path: Path) -> None:
    subject = load_subject("heart")
    run = Audit.of(subject).search(budget=Budget(evaluations=400), strategy="random", out=tmp_path / "run", threads=1)
    result = run.repair(**BLINDED, attack_budget=None, threads=1)
    assert [path.name for path in result.files] == ["repaired.npz", "repaired.onnx"]
    assert result.subject_file is not None
    again = load_subject(result.subject_file)
    np.testing.assert_array_equal(again.table.codes, subject.table.codes)
    assert evaluator_of(again, threads=1).evaluate(subject.table.codes).k.max() == 1
