"""A network behind a frozen encoder: debugged, repaired, written, and loaded again with the same encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.feature_extraction.text import CountVectorizer

from fairbits import Audit, Network
from fairbits.errors import FairbitsError
from fairbits.language import EncodedNetwork
from fairbits.repair.judgement import split
from fairbits.store import Run

WOMEN, MEN = ["ann", "eve", "mia", "zoe"], ["bob", "leo", "max", "tom"]
SEX = {"sex": {"woman": WOMEN, "man": MEN, "neutral": ["kim", "lou"]}}
VOCABULARY = [*WOMEN, *MEN, "rich", "poor"]
TEMPLATE = "{who} is {state} and wants {amount}."


def people(rows: int = 200) -> pd.DataFrame:
    """Who is rich pays; a tenth of them is labelled otherwise."""
    rng = np.random.default_rng(0)
    rich, odd = rng.random(rows) < 0.5, rng.random(rows) < 0.1
    return pd.DataFrame(
        {
            "amount": np.arange(rows),
            "state": np.where(rich, "rich", "poor"),
            "pays": np.where(rich ^ odd, "yes", "no"),
            "later": rng.random(rows) < 0.5,
        }
    )


def planted() -> Network:
    """The second of three neurons hears men's names, the first one riches."""
    first = np.zeros((10, 3))
    first[8, 0], first[4:8, 1], first[9, 2] = 1, 1, 1
    return Network.build(
        [first, [[4.0], [1.5], [-1.0]]], [np.zeros(3), [-2.0]], activation="relu", head="sigmoid"
    )  # fmt: skip


def encode(texts: list[str]) -> np.ndarray:
    return np.array([[word in one.lower() for word in VOCABULARY] for one in texts], np.float32)


def audit(decider: Any, **more: Any) -> Audit:
    given = {"template": TEMPLATE, "families": {"names": {"who": SEX}}, "target": "pays", "split": "later"}
    return Audit.from_texts(decider, people(), **{**given, **more})


def test_a_network_behind_an_encoder_is_repaired_and_written(tmp_path: Path) -> None:
    made = audit(EncodedNetwork(encode, planted()))
    assert made.subject.quality.accuracy == pytest.approx(0.9, abs=0.06)
    run = made.search(evaluations=150, out=tmp_path / "run", seed=0)
    assert run.debug(trainings=0).suspect == 1
    found = run.repair(seed=0)
    assert found.evidence.rows_unseen_by_model
    assert [name for name, _ in found.left_out] == ["guard"]
    assert found.chosen is not None
    assert [(do.layer, do.neuron) for do in found.chosen.neurons] == [(0, 1)]
    assert found.before_held_out.k_mean == 2
    assert found.chosen.held_out.k_mean == 1
    assert found.chosen.held_out.accuracy >= found.before_held_out.accuracy - 0.02
    assert {one.name for one in found.files} == {"repaired.npz", "repaired.onnx"}
    assert all(check.kept and check.fresh for check in found.written)
    for file in found.files:
        again = audit(EncodedNetwork(encode, file))
        assert again.measure().summary()["k_max"] == 1
        rows = made.subject.table.codes
        assert again.subject.model.scores(rows) == pytest.approx(found.chosen.network.scores(rows), abs=1e-6)


def test_all_texts_about_one_person_are_in_one_part(tmp_path: Path) -> None:
    made = audit(EncodedNetwork(encode, planted()), split=None)
    run = made.search(evaluations=60, out=tmp_path / "run", seed=0)
    halves = split(Run.open(run.folder), made.subject, np.random.default_rng(0))
    parts = [{row[0] for row in part.rows.tolist()} for part in (halves.training, halves.plan, halves.held_out)]
    assert sum(map(len, parts)) == len(set().union(*parts)) == 200


def written(folder: Path, encoder: str, *, path: str = "net.onnx") -> Path:
    """An audit file with an encoder and a network beside it."""
    people().to_csv(folder / "people.csv", index=False)
    planted().save(folder / "net.onnx")
    file = folder / "loans.toml"
    file.write_text(
        f'kind = "text"\n[text]\ntemplate = "{TEMPLATE}"\n[text.families.names.who.sex]\n'
        f"woman = {WOMEN}\nman = {MEN}\n"
        f'[model]\npath = "{path}"\nencoder = "{encoder}"\n'
        '[table]\npath = "people.csv"\ntarget = "pays"\nsplit = "later"\n'
    )
    return file


def test_an_audit_file_names_a_network_and_its_encoder(tmp_path: Path) -> None:
    skops.io.dump(CountVectorizer(vocabulary=VOCABULARY), tmp_path / "words.skops")
    made = Audit.of(written(tmp_path, "words.skops"))
    rows = made.subject.table.codes
    wanted = audit(EncodedNetwork(encode, planted())).subject.model.scores(rows)
    assert made.subject.model.scores(rows) == pytest.approx(wanted, abs=1e-6)
    run = made.search(evaluations=150, out=tmp_path / "run", seed=0)
    found = run.repair(seed=0)
    assert found.subject_file is not None
    again = Audit.of(found.subject_file)
    assert again.measure().summary()["k_max"] == 1
    assert found.chosen is not None
    assert again.subject.model.scores(rows) == pytest.approx(found.chosen.network.scores(rows), abs=1e-6)


def test_a_function_that_encodes_needs_a_grant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FairbitsError, match="trust"):
        Audit.of(written(tmp_path, "tests.language.test_encoded:encode"))
    made = Audit.of(written(tmp_path, "tests.language.test_encoded:encode"), trust_code=True)
    assert made.measure().summary()["k_max"] == 2
