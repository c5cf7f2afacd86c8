"""PyTorch modules and files beyond what every adapter must do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairbits import Encoding, Network
from fairbits.errors import ModelError, OptionError
from fairbits.models import Do, ModelOptions, load_model, load_with_encoding, save_as_original
from fairbits.models.torch import TorchModel

from ..conftest import random_people
from .modules import residual, sequential
from .zoo import SCHEMA, table

torch = pytest.importorskip("torch", reason="the torch extra is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
nn = torch.nn


def scores(module, rows: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return module(torch.tensor(rows, dtype=torch.float32)).numpy()


ACTIVATIONS = [
    nn.ReLU(),
    nn.LeakyReLU(0.3),
    nn.Tanh(),
    nn.Sigmoid(),
    nn.GELU(),
    nn.GELU(approximate="tanh"),
    nn.ELU(0.7),
    nn.Identity(),
]


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
@pytest.mark.parametrize("end", ["logits", "softmax", "sigmoid", "value"])
def test_every_activation_and_every_end(activation, end: str, rng) -> None:
    torch.manual_seed(0)
    tail = {"softmax": [nn.Softmax(dim=1)], "sigmoid": [nn.Sigmoid()]}.get(end, [])
    module = nn.Sequential(nn.Linear(5, 7), activation, nn.Linear(7, 3 if end in {"logits", "softmax"} else 1), *tail)
    network = load_model(module)
    assert isinstance(network, Network)
    assert network.head == {"logits": "softmax", "value": "linear"}.get(end, end)
    rows = rng.normal(size=(40, 5))
    theirs = scores(module, rows)
    if end == "logits":
        np.testing.assert_allclose(network.logits(rows), theirs, atol=1e-5)
    else:
        np.testing.assert_allclose(network.scores(rows), theirs[:, 1 if end == "softmax" else 0], atol=1e-5)


def test_one_output_for_two_classes_is_a_logit_and_said_to_be() -> None:
    from fairbits.models import fit_to_schema, read_model

    module = nn.Sequential(nn.Linear(9, 4), nn.ReLU(), nn.Linear(4, 1))
    loaded = fit_to_schema(read_model(module, SCHEMA), SCHEMA)
    assert loaded.model.head == "sigmoid"
    assert "read as the logit of 'yes'" in loaded.notes[0]
    stated = ModelOptions(output="logit")
    (order,) = fit_to_schema(read_model(module, SCHEMA, stated), SCHEMA, options=stated).notes
    assert "go in by their order" in order
    raw = load_model(module, schema=SCHEMA, output="value")  # points on their own scale, with a threshold there
    rows = np.random.default_rng(0).normal(size=(20, 9))
    np.testing.assert_allclose(raw.scores(rows), scores(module, rows)[:, 0], atol=1e-6)


def test_a_bias_that_only_the_normalisation_has(tmp_path: Path, rng) -> None:
    """Linear without bias, then batch normalisation: a repair moves the normalisation's own bias."""
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(6, 5, bias=False), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2)).eval()
    with torch.no_grad():
        module[1].running_mean.normal_()
        module[1].running_var.uniform_(0.5, 2)
    network = load_model(module).with_interventions([Do(0, 3, 0.8)])
    save_as_original(network, module, tmp_path / "changed.pt")
    rows = rng.normal(size=(30, 6))
    before = scores(module, rows)
    module.load_state_dict(torch.load(tmp_path / "changed.pt", weights_only=True))
    np.testing.assert_allclose(scores(module, rows), network.logits(rows), atol=1e-5)
    assert np.abs(before - network.logits(rows)).max() > 1e-3


def test_an_exported_program_written_back_is_one_that_torch_reads(tmp_path: Path, rng) -> None:
    from fairbits.models.torch import write_module

    write_module(sequential(), 9, tmp_path / "model.pt2")
    network = load_model(tmp_path / "model.pt2").with_interventions([Do(0, 1, 0.3), Do(1, 2, 0.0)])
    save_as_original(network, tmp_path / "model.pt2", tmp_path / "changed.pt2")
    program = torch.export.load(str(tmp_path / "changed.pt2")).module()
    rows = rng.normal(size=(20, 9)).astype(np.float32)
    np.testing.assert_allclose(scores(program, rows), network.logits(rows), atol=1e-5)


def test_a_module_that_is_no_chain_is_exported_with_its_interventions(tmp_path: Path, rng) -> None:
    model = TorchModel.of(residual(), SCHEMA, ModelOptions()).with_interventions([Do(0, 2, 0.4)])
    model.save(tmp_path / "held.pt2")
    with pytest.raises(ModelError, match=r"no chain of dense layers .*trust_pickle=True"):
        load_model(tmp_path / "held.pt2")
    back = TorchModel.of(torch.export.load(str(tmp_path / "held.pt2")).module(), SCHEMA, ModelOptions())
    rows = rng.normal(size=(20, 9)).astype(np.float32)
    np.testing.assert_allclose(back.scores(rows), model.scores(rows), atol=1e-6)
    assert np.abs(model.scores(rows) - TorchModel.of(residual(), SCHEMA, ModelOptions()).scores(rows)).max() > 1e-4
    with pytest.raises(ModelError, match=r"lose the interventions; save it as .pt2"):
        model.save(tmp_path / "held.pt")


def test_layers_by_name(rng) -> None:
    model = load_model(residual(), schema=None, layers=("first", "act2"))
    rows = rng.normal(size=(6, 9)).astype(np.float32)
    first, _, last = model.activations(rows)
    np.testing.assert_allclose(first, scores(model.module.first, rows), atol=1e-6)
    np.testing.assert_allclose(last.sum(axis=1), 1, atol=1e-5)
    with pytest.raises(OptionError, match=r"no layer 'frist'.*Did you mean 'first'"):
        load_model(residual(), layers=("frist",))
    for do, complaint in ((Do(2, 0, 1.0), "layer 2 is not a hidden"), (Do(0, 9, 1.0), "neuron 9 is not in layer 0")):
        with pytest.raises(OptionError, match=complaint):
            model.with_interventions([do])


def test_weights_need_the_function_that_builds_their_module(tmp_path: Path) -> None:
    torch.save(sequential().state_dict(), tmp_path / "model.pt")
    cases = {
        None: 'factory = "package.module:function"',
        "nowhere_at_all:make": "the Python module 'nowhere_at_all' cannot be imported; install it",
        f"{sequential.__module__}:sequental": "Did you mean 'sequential'",
        f"{sequential.__module__}:residual": "do not fit",
        f"{table.__module__}:table": "not a torch module",
        "not a reference": "does not name Python code",
    }
    for factory, complaint in cases.items():
        with pytest.raises(ModelError, match=complaint):
            load_model(tmp_path / "model.pt", factory=factory, trust_code=True)
    torch.save(sequential(), tmp_path / "whole.pt")
    with pytest.raises(ModelError, match=r"holds more than weights, and opening it runs code, add trust_pickle=True"):
        load_model(tmp_path / "whole.pt")
    assert isinstance(load_model(tmp_path / "whole.pt", trust_pickle=True), Network)


READY = sequential()


def test_layers_and_classes_as_the_native_network_has_them(rng) -> None:
    native = load_model(sequential())
    foreign = TorchModel.of(sequential(), SCHEMA, ModelOptions())
    rows = rng.normal(size=(30, 9)).astype(np.float32)
    np.testing.assert_allclose(foreign.class_scores(rows), native.class_scores(rows), atol=1e-5)
    for layer, width in enumerate(native.widths):
        slopes = rng.normal(size=(30, width)).astype(np.float32)
        ours, theirs = (model.layer_gradients(rows, layer, slopes) for model in (native, foreign))
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_a_probability_of_exactly_one_has_finite_slopes() -> None:
    """In float32 a sigmoid is 1 from a logit of 17 on, where the logarithm of the rest has none."""
    line = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
    with torch.no_grad():
        line[0].weight.copy_(torch.tensor([[1.0, -1.0]]))
        line[0].bias.zero_()
    rows = np.array([[200.0, 0.0], [20.0, 0.0], [3.0, 1.0], [0.0, 20.0], [0.0, 200.0]])
    for favourable in (0, 1):
        model = TorchModel(line, 2, 1, "probability", (), favourable=favourable)
        for of in ("margin", "loss", "score"):
            assert np.isfinite(model.gradients(rows, of=of)).all(), of
        sign = 1 if favourable == 1 else -1
        np.testing.assert_allclose(model.gradients(rows)[2:4], [[sign, -sign]] * 2, rtol=1e-5)


def test_code_that_makes_the_model(rng) -> None:
    from .zoo import THREE

    model, encoding = load_with_encoding(f"{residual.__module__}:residual", THREE, trust_code=True)
    assert isinstance(model, TorchModel)
    assert isinstance(
        load_model(f"{__name__}:READY", schema=SCHEMA, trust_code=True), Network
    )  # a module that exists already
    rows = encoding.encode(random_people(rng, SCHEMA, 5))
    np.testing.assert_allclose(
        model.scores(rows), TorchModel.of(residual(), THREE, ModelOptions()).with_favourable(2).scores(rows)
    )
    with pytest.raises(ModelError, match="predicts 3 classes, but target 'hired' is 2 classes"):
        load_with_encoding(f"{residual.__module__}:residual", SCHEMA, trust_code=True)


def test_a_module_of_the_wrong_width_or_that_fails(rng) -> None:
    class Picky(nn.Module):
        def forward(self, x):
            if x.shape[1] != 4:
                raise RuntimeError("I want 4")
            return x[:, :2] * x[:, 2:]

    with pytest.raises(ModelError, match=r"neither 5 nor 9 inputs: .* I want 4"):
        load_with_encoding(Picky(), SCHEMA)
    with pytest.raises(ModelError, match=r"takes 6 inputs, but the 5 attributes make 5 as codes or 9"):
        load_with_encoding(nn.Sequential(nn.Linear(6, 2)), SCHEMA)
    model, encoding = load_with_encoding(sequential(), SCHEMA)
    assert encoding.width == Encoding.one_hot(SCHEMA).width
    with pytest.raises(ModelError, match="takes rows of 9 inputs"):
        model.scores(random_people(rng, SCHEMA, 3))
