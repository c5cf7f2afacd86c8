"""`fairbits debug`: what people see, what machines read, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from fairbits import Network
from fairbits.cli.app import app
from fairbits.errors import OptionError
from fairbits.store import Run
from tests.conftest import random_network
from tests.debug.conftest import Maker, carrier, make_run  # noqa: F401 - fixtures


def ask(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["debug", *map(str, arguments)])
    if result.exception:
        raise result.exception
    return result.stdout


@pytest.fixture
def run(make_run: Maker, carrier: Network) -> Run:  # noqa: F811
    return make_run(carrier)


def test_the_terminal(run: Run) -> None:
    look = ask(run.folder, "--threads", 1)
    assert look.startswith("wired: where the bits come from\n")
    assert len(look.splitlines()) <= 25
    assert "The suspect is layer 1: holding its neuron 1 takes 100 % of the bits away" in look
    assert look.splitlines()[-1].startswith("next  fairbits repair")
    shown = ask(run.folder, "--threads", 1, "--all")
    for words in ("Which attribute", "Data or training", "Inside the network", "Neurons of layer 1 with the largest"):
        assert words in shown
    assert "comes with the data" in shown
    assert max(map(len, shown.splitlines())) <= 80 + 2 * len(str(run.folder))


def test_every_layer(make_run: Maker, rng: np.random.Generator) -> None:  # noqa: F811
    run = make_run(random_network(rng, [3, 6, 5, 2]))
    shown = ask(run.folder, "--all-layers", "--samples", 20, "--all")
    assert "Neurons of layer 1" in shown
    assert "Neurons of layer 2" in shown


def test_json(run: Run) -> None:
    found = json.loads(ask(run.folder, "--json", "--samples", 30, "--seed", 2))
    assert found["run"] == str(run.folder)
    assert found["samples"] == 30
    assert found["seed"] == 2
    assert found["best"][0]["neuron"] == 1
    assert found["best"][0]["best"]["k_mean"] == 1.0
    assert [(layer["layer"], layer["role"]) for layer in found["layers"]] == [
        (0, "protected input"),
        (1, "hidden"),
        (2, "output"),
    ]
    assert found["origin"]["known"]
    assert found["origin"]["trainings"] == 8
    assert 0 <= found["origin"]["shares"][0]["shared"]["low"] <= 1


def test_without_layers(run: Run) -> None:
    shown = ask(run.folder, "--no-layers", "--all")
    assert "Layers" not in shown
    assert "Which attribute" in shown


def test_no_labels_are_said(make_run: Maker, carrier: Network) -> None:  # noqa: F811
    shown = ask(make_run(carrier, labels=None).folder, "--all")
    assert "Accuracy is not known (the table has no labels)" in " ".join(shown.split())


def test_no_run(tmp_path) -> None:
    with pytest.raises(OptionError, match="does not exist"):
        ask(tmp_path / "nowhere")
    with pytest.raises(OptionError, match="threads is -1"):
        ask(tmp_path / "nowhere", "--threads", -1)
