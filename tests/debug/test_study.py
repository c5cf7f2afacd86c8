"""A debugging from a run to its files: the fixed columns, the same result by seed, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fairbits import Audit, Budget, Network
from fairbits.data import load_subject
from fairbits.debug import debug_run, read_debug
from fairbits.debug.run import chains_of, sample_cases
from fairbits.errors import CapabilityError, OptionError
from fairbits.store import Run
from fairbits.subject import make_subject
from tests.conftest import random_network, with_inputs_scaled
from tests.debug.conftest import Maker


@pytest.fixture
def run(make_run: Maker, rng: np.random.Generator) -> Run:
    return make_run(random_network(rng, [3, 6, 5, 2]), evaluations=90)


def test_files(run: Run) -> None:
    result = debug_run(run, samples=50, all_layers=True, threads=1, trainings=2)
    layers, neurons = (pq.read_table(run.folder / f"{name}.parquet") for name in ("layers", "neurons"))
    assert layers.column_names[:4] == ["layer", "delta", "rho", "votes"]
    assert layers["layer"].to_pylist() == [0, 1, 2, 3]
    assert sum(layers["votes"].to_pylist()) == 50
    names = ["layer", "neuron", "statistic", "value", "accuracy", "k_mean", "acd"]
    assert neurons.column_names[:7] == names
    assert set(neurons["layer"].to_pylist()) == {1, 2}
    assert len(set(zip(neurons["layer"].to_pylist(), neurons["neuron"].to_pylist(), strict=True))) == 11
    cases = pq.read_table(run.folder / "debug_cases.parquet")
    assert cases.num_rows == 50
    assert {"skill", "luck", "k", "flips", "delta_0", "rho_1", "suspect_layer", "q_inf_sex"} <= set(cases.column_names)
    document = json.loads((run.folder / "debug.json").read_text())
    assert document["samples"] == 50
    assert document["samples_worst"] == 10
    assert document["k_mean"] == result.k_mean
    assert document["origin"]["shares"][0]["attributes"] == ["sex"]
    assert document["rule"] == "ours"
    assert document["suspect_layer"] == result.suspect
    assert "mixed" not in (run.folder / "debug.json").read_text()
    assert document["attribution"]["subsets"][-1]["attributes"] == ["sex"]
    assert len(Run.open(run.folder)) == len(run)
    back = read_debug(run.folder)
    assert back is not None
    assert back.summary() == result.summary()
    assert back.neurons == result.neurons
    assert back.sets == result.sets
    assert back.best() == result.best()


def test_a_folder_that_takes_no_files_is_refused_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("fairbits.store.folder.TemporaryFile", refuse)
    stages: list[str] = []
    with pytest.raises(OptionError, match=r"cannot write to .*: Permission denied; make it writable"):
        debug_run(run, samples=50, threads=1, stage=stages.append)
    assert stages == []


def test_only_the_suspect_layer_unless_asked(run: Run) -> None:
    result = debug_run(run, samples=50, threads=1, trainings=0, sets=False)
    assert {one.layer for one in result.neurons} == {result.suspect}


def test_the_same_seed_gives_the_same_on_any_number_of_threads(run: Run) -> None:
    first, second = (debug_run(run, samples=40, seed=3, threads=threads, trainings=2) for threads in (1, 3))
    one, two = first.summary(), second.summary()
    assert min(one.pop("seconds"), two.pop("seconds")) > 0
    assert min(one["origin"].pop("seconds"), two["origin"].pop("seconds")) > 0
    assert one == two
    other = debug_run(run, samples=40, seed=4, threads=1, trainings=0, sets=False)
    assert not np.array_equal(other.cases, first.cases)


def test_sampling(run: Run) -> None:
    cases, worst = sample_cases(run, 40, np.random.default_rng(0))
    assert worst == 8
    assert len(np.unique(cases, axis=0)) == 40
    ranked = np.concatenate([run.layout.codes_of(batch) for batch in run.batches(top=8, labels=False)])
    assert np.array_equal(cases[:8], ranked)
    every, _ = sample_cases(run, 1000, np.random.default_rng(0))
    assert len(every) == len(run)
    counts = np.zeros(len(run))
    place = {row.tobytes(): i for i, row in enumerate(every)}
    for seed in range(200):
        for row in sample_cases(run, 40, np.random.default_rng(seed))[0][8:]:
            counts[place[row.tobytes()]] += 1
    assert (counts[:8] == 0).all()
    assert counts[8:].min() > 0.5 * counts[8:].mean()  # every other case has the same chance
    with pytest.raises(OptionError, match="samples is 0"):
        sample_cases(run, 0, np.random.default_rng(0))


def test_no_labels(make_run: Maker, carrier: Network) -> None:
    result = debug_run(make_run(carrier, labels=None), threads=1)
    assert result.accuracy is None
    assert all(one.accuracy is None and one.kept for neuron in result.neurons for one in neuron.candidates)
    assert result.best()[0].neuron == 1
    assert result.origin.labels is None
    assert any("no labels" in note for note in result.notes)
    assert result.summary()["accuracy"] is None


def test_a_subject_that_changed(run: Run) -> None:
    path = Path(run.manifest["source"]).parent / "model.npz"
    network = load_subject(run.manifest["source"]).model
    with_inputs_scaled(network, 0, 2.0).save(path)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="made with another model and another file or code of the model"):
        debug_run(run)
    assert not (run.folder / "debug.json").exists()


def test_a_run_without_cases(run: Run) -> None:
    for part in (run.folder / "cases").iterdir():
        part.unlink()
    with pytest.raises(OptionError, match="has no cases to look at"):
        debug_run(Run.open(run.folder))


class BlackBox:
    """Scores, and nothing else."""

    def __init__(self, network: Network):
        self.network, self.inputs = network, network.inputs

    def scores(self, inputs):
        return self.network.scores(inputs)


def test_a_black_box(run: Run, rng: np.random.Generator) -> None:
    stored = load_subject(run.manifest["source"])
    subject = make_subject("wired", BlackBox(stored.model), stored.schema, stored.table, encoding=stored.encoding)  # type: ignore[arg-type]
    run.manifest["identity"] = subject.identity.document()
    with pytest.raises(CapabilityError, match="'BlackBox', which offers scores only; with inside=False"):
        debug_run(run, subject=subject)
    result = debug_run(run, subject=subject, inside=False, threads=1, trainings=0)
    assert result.layers == ()
    assert result.attribution is not None
    assert result.origin.labels is not None
    assert not (run.folder / "layers.parquet").exists()


def test_a_run_from_python_needs_its_subject(run: Run) -> None:
    run.manifest["source"] = None
    with pytest.raises(OptionError, match="does not say where its model is"):
        debug_run(run)


def test_cases_of_one_row_are_one_chain(run: Run, tmp_path: Path) -> None:
    assert chains_of(run, sample_cases(run, 40, np.random.default_rng(0))[0]) is None  # they come from no row
    audit = Audit.of("heart")
    searched = audit.search(strategy="climb", budget=Budget(evaluations=3000), threads=1, out=tmp_path / "searched")
    seeds = {}
    for batch in searched.batches(labels=False):
        pairs = zip(searched.layout.codes_of(batch), batch.column("seed_row").to_pylist(), strict=True)
        seeds |= {row.tobytes(): seed for row, seed in pairs}
    cases, _ = sample_cases(searched, 60, np.random.default_rng(0))
    chains = chains_of(searched, cases)
    assert chains is not None
    assert chains.tolist() == [seeds[row.tobytes()] for row in cases]
    assert len(np.unique(chains)) < 60
