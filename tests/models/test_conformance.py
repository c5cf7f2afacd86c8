"""What every adapter must do, whatever it reads: one table of models × what they can do."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from fairbits.measure import Evaluator
from fairbits.models import Do, HasActivations, HasGradients, HasInterventions, Network, load_model, save_as_original

from ..conftest import random_people
from .zoo import ZOO, Kind, Specimen

_made: dict[str, tuple[Kind, Specimen]] = {}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def names(**wanted: bool) -> list[str]:
    return [name for name, kind in ZOO.items() if all(getattr(kind, key) == value for key, value in wanted.items())]


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory):
    """Models by name, each made once."""

    def make(name: str) -> Specimen:
        if name not in _made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _made[name] = ZOO[name], ZOO[name].make(tmp_path_factory.mktemp(name.replace(" ", "-")))
        return _made[name][1]

    return make


def people(specimen: Specimen, n: int = 300) -> np.ndarray:
    return random_people(np.random.default_rng(9), specimen.schema, n)


@pytest.mark.parametrize("name", ZOO)
def test_scores_agree_with_the_framework(name: str, zoo) -> None:
    specimen = zoo(name)
    codes = people(specimen)
    found = specimen.model.scores(specimen.encoding.encode(codes))
    assert found.dtype == np.float32
    assert found.shape == (300,)
    np.testing.assert_allclose(found, specimen.reference(codes), atol=1e-5, rtol=1e-5)
    assert found.std() > 1e-3  # a constant would agree with anything


@pytest.mark.parametrize("name", ZOO)
def test_it_can_do_what_the_table_says(name: str, zoo) -> None:
    kind, model = ZOO[name], zoo(name).model
    assert isinstance(model, Network) == kind.native
    assert isinstance(model, HasGradients) == kind.gradients
    if kind.activations:
        assert isinstance(model, HasActivations)
        assert isinstance(model, HasInterventions)


@pytest.mark.parametrize("name", ZOO)
def test_twins_are_scored_as_one_by_one(name: str, zoo) -> None:
    """Through the evaluator, which takes the compiled kernels for native networks."""
    specimen = zoo(name)
    evaluator = Evaluator(specimen.model, specimen.schema, specimen.encoding, epsilon=0.025)
    codes = people(specimen, 20)
    twins = evaluator.twins.expand(codes).reshape(-1, codes.shape[1])
    np.testing.assert_allclose(evaluator.scores(codes).ravel(), specimen.reference(twins), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", names(gradients=True))
@pytest.mark.parametrize("of", ["score", "margin"])
def test_gradients_agree_with_finite_differences(name: str, of: str, zoo) -> None:
    specimen = zoo(name)
    model = specimen.model
    inputs = np.random.default_rng(2).normal(0, 0.7, (40, model.inputs)).astype(np.float32)
    slopes, step = model.gradients(inputs, of=of), np.float32(5e-3)
    for column in range(inputs.shape[1]):
        up, down = inputs.copy(), inputs.copy()
        up[:, column] += step
        down[:, column] -= step
        low, high = (_level(model, rows, of) for rows in (down, up))
        measured = (high - low) / (up - down)[:, column]
        scale = 1 + np.abs(slopes[:, column]) + np.abs(high)
        # Off a kink both agree; a few rows may straddle one.
        assert np.quantile(np.abs(measured - slopes[:, column]) / scale, 0.9) < 5e-3


def _level(model, rows: np.ndarray, of: str) -> np.ndarray:
    scores = model.scores(rows).astype(np.float64)
    regression = isinstance(model, Network) and model.head == "linear"
    return scores if of == "score" or regression else np.log(scores) - np.log1p(-scores)


@pytest.mark.parametrize("name", names(activations=True))
def test_interventions_hold_neurons_and_nothing_else(name: str, zoo) -> None:
    specimen = zoo(name)
    model = specimen.model
    inputs = specimen.encoding.encode(people(specimen, 50))
    before, plain = model.activations(inputs), model.scores(inputs)
    for layer in range(len(before) - 1):
        value = float(np.median(before[layer][:, 1]))
        held = model.with_interventions([Do(layer, 1, value)])
        after = held.activations(inputs)
        np.testing.assert_allclose(after[layer][:, 1], value, atol=1e-5)
        others = np.delete(np.arange(before[layer].shape[1]), 1)
        np.testing.assert_allclose(after[layer][:, others], before[layer][:, others], atol=1e-6)
        # A neuron that is held at what it puts out anyway changes nothing.
        own = model.with_interventions([Do(layer, 1, float(before[layer][7, 1]))])
        np.testing.assert_allclose(own.scores(inputs[7:8]), plain[7:8], atol=1e-5, rtol=1e-5)
        assert np.abs(held.scores(inputs) - plain).max() > 1e-4
    np.testing.assert_array_equal(model.scores(inputs), plain)


@pytest.mark.parametrize("name", names(written_back=True))
@pytest.mark.parametrize("change", [False, True])
def test_round_trip_in_the_format_it_came_in(name: str, change: bool, zoo, tmp_path: Path) -> None:
    specimen = zoo(name)
    network, codes = specimen.model, people(specimen, 100)
    if change:
        held = network.activations(specimen.encoding.encode(codes))[0][:, 2].mean()
        network = network.with_interventions([Do(0, 2, float(held))])
    path = tmp_path / f"back{Path(specimen.original).suffix}"
    save_as_original(network, specimen.original, path, options=specimen.options)
    options = {"trust_pickle": specimen.options.trust_pickle, "trust_code": True, "factory": specimen.options.factory}
    back = load_model(path, schema=specimen.schema, **options)
    assert back.widths == network.widths
    inputs = specimen.encoding.encode(codes)
    np.testing.assert_allclose(back.scores(inputs), network.scores(inputs), atol=1e-5, rtol=1e-5)
    if not change:
        np.testing.assert_array_equal(back.scores(inputs), network.scores(inputs))
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_native_and_foreign_interventions_agree(zoo) -> None:
    """The same module as a native network and run by PyTorch with hooks."""
    pytest.importorskip("torch", reason="the torch extra is not installed")
    from fairbits.models import ModelOptions
    from fairbits.models.torch import TorchModel

    from .modules import sequential
    from .zoo import SCHEMA

    native = zoo("torch weights").model
    foreign = TorchModel.of(sequential(), SCHEMA, ModelOptions()).with_favourable(1)
    assert foreign.layers == ("2", "4.1")
    inputs = zoo("torch weights").encoding.encode(people(zoo("torch weights"), 60))
    for ours, theirs in zip(native.activations(inputs), foreign.activations(inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    for of in ("score", "margin", "loss"):
        np.testing.assert_allclose(native.gradients(inputs, of=of), foreign.gradients(inputs, of=of), atol=1e-4)
    for do in (Do(0, 3, 0.25), Do(1, 2, 1.5)):
        ours, theirs = (model.with_interventions([do]).scores(inputs) for model in (native, foreign))
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_hooks_are_removed_also_after_an_exception(zoo) -> None:
    torch = pytest.importorskip("torch", reason="the torch extra is not installed")
    from fairbits.errors import ModelError

    model = zoo("torch residual").model
    held = model.with_interventions([Do(0, 1, 0.5)])

    def hooks() -> int:
        return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.module.modules())

    inputs = np.zeros((3, model.inputs), dtype=np.float32)
    for call in (held.scores, held.activations, held.gradients, model.scores):
        call(inputs)
        assert hooks() == 0
    broken = model.module.last.register_forward_pre_hook(_fail)
    try:
        for call in (held.scores, held.activations, held.gradients):
            with pytest.raises(ModelError, match="the module failed on rows of 9 inputs: RuntimeError: out of order"):
                call(inputs)
            assert hooks() == 1  # only the one that breaks it
    finally:
        broken.remove()
    assert torch.is_grad_enabled()


def _fail(*_: object) -> None:
    raise RuntimeError("out of order")
