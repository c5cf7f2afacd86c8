"""Files that are not what they seem: whatever the bytes, a loader gives a model or one sentence, never a traceback."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairbits.errors import FairbitsError, ModelError
from fairbits.models import load_model, load_with_encoding

from ..conftest import random_network
from .modules import handwritten, sequential
from .zoo import SCHEMA, fit, perceptron, table

pytestmark = pytest.mark.filterwarnings("ignore")

#: 850 files over all seven loaders; .pt and .skops are opened in a child process, which takes as long as ten others.
EXAMPLES, CHILD_EXAMPLES = 150, 50
FACTORY = f"{sequential.__module__}:sequential"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A sound file of every kind that the installed packages can write."""
    folder = tmp_path_factory.mktemp("whole")
    random_network(np.random.default_rng(0), [9, 6, 4, 2]).save(folder / "model.npz")
    made = {".npz": (folder / "model.npz").read_bytes(), ".pkl": pickle.dumps({"weights": [1.0, 2.0]})}
    for ending, write in {".onnx": _onnx, ".skops": _skops, ".pt2": _pt2, ".pt": _pt, ".keras": _keras}.items():
        try:
            write(folder / f"model{ending}")
        except (ImportError, FairbitsError):
            continue
        made[ending] = (folder / f"model{ending}").read_bytes()
    return made


def _onnx(path: Path) -> None:
    random_network(np.random.default_rng(0), [9, 6, 4, 2]).save(path)


def _skops(path: Path) -> None:
    from skops import io as skops

    _, codes, target = table(60)
    skops.dump(fit(perceptron(), codes, target), path)


def _pt2(path: Path) -> None:
    from fairbits.models.torch import write_module

    write_module(handwritten(), 9, path)


def _pt(path: Path) -> None:
    import torch

    torch.save(sequential().state_dict(), path)


def _keras(path: Path) -> None:
    import keras

    keras.Sequential([keras.Input((9,)), keras.layers.Dense(4, activation="relu"), keras.layers.Dense(2)]).save(path)


@st.composite
def damage(draw, sound: bytes) -> bytes:
    """Noise, a cut, some changed bytes, an insertion, another zip, or JSON gone wrong in its own zip."""
    how = draw(st.sampled_from(["noise", "cut", "flip", "insert", "zip", "json", "swap"]))
    if how == "noise":
        return draw(st.binary(min_size=1, max_size=400))
    if how == "cut":
        return sound[: draw(st.integers(1, len(sound) - 1))]
    if how == "flip":
        bad = bytearray(sound)
        for _ in range(draw(st.integers(1, 8))):
            bad[draw(st.integers(0, len(bad) - 1))] = draw(st.integers(0, 255))
        return bytes(bad)
    if how == "insert":
        where = draw(st.integers(0, len(sound)))
        return sound[:where] + draw(st.binary(min_size=1, max_size=60)) + sound[where:]
    if how == "swap":
        half = draw(st.integers(1, len(sound) - 1))
        return sound[half:] + sound[:half]
    return _rezipped(draw, sound, how)


def _rezipped(draw, sound: bytes, how: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        if how == "json" and zipfile.is_zipfile(io.BytesIO(sound)):
            with zipfile.ZipFile(io.BytesIO(sound)) as source:
                for name in source.namelist():
                    content = source.read(name)
                    target.writestr(name, _broken_json(draw, content) if content[:1] == b"{" else content)
        else:
            for i in range(draw(st.integers(0, 3))):
                target.writestr(f"{draw(st.sampled_from(['W0.npy', 'm/models/model.json', 'config.json']))}{i}", b"{}")
    return out.getvalue()


def _broken_json(draw, content: bytes) -> bytes:
    """One value somewhere in a document replaced by something of another kind."""
    try:
        document = json.loads(content)
    except ValueError:
        return content
    place = document
    while isinstance(place, dict | list) and place:
        key = draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
        if not isinstance(place[key], dict | list) or not place[key] or draw(st.integers(0, 3)) == 0:
            place[key] = draw(st.sampled_from([None, -1, 10**30, "", "x", [], {}, [[]], 0.5, True]))
            break
        place = place[key]
    return json.dumps(document).encode()


@pytest.mark.parametrize("ending", [".npz", ".onnx", ".skops", ".pt2", ".pt", ".keras", ".pkl"])
def test_no_bytes_give_a_traceback(ending: str, whole: dict[str, bytes], tmp_path_factory) -> None:
    if ending not in whole:
        pytest.skip(f"the extra that writes {ending} files is not installed")
    path = tmp_path_factory.mktemp("bad") / f"model{ending}"

    @settings(
        max_examples=CHILD_EXAMPLES if ending in {".pt", ".skops"} else EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(damage(whole[ending]))
    def load(content: bytes) -> None:
        path.write_bytes(content)
        try:
            options = {"factory": FACTORY, "trust_code": True} if ending == ".pt" else {}
            model, encoding = load_with_encoding(path, SCHEMA, **options)
            model.scores(encoding.encode(np.array([[1.0, 0, 0.5, 1, 40]])))
        except FairbitsError as error:
            complaint = str(error)
        else:
            return
        assert complaint.endswith((".", ".)"))
        assert "\n" not in complaint

    load()


class Bomb:
    """Says so if it is ever unpickled."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (Path(self.mark),)


@pytest.mark.parametrize("ending", [".pkl", ".pickle", ".joblib", ".pt", ".pth"])
def test_a_pickle_is_refused_before_anything_runs(ending: str, tmp_path: Path) -> None:
    if ending.startswith(".pt"):
        pytest.importorskip("torch", reason="the torch extra is not installed")
    mark, path = tmp_path / "ran", tmp_path / f"model{ending}"
    path.write_bytes(pickle.dumps(Bomb(str(mark))))
    with pytest.raises(ModelError, match=r"trust_pickle=True|not a readable PyTorch file"):
        load_model(path)
    assert not mark.exists()
    with pytest.raises(FairbitsError):  # trusted, it runs, and turns out to be no model
        load_model(path, trust_pickle=True)
    assert mark.exists()


def test_an_exported_program_with_pickled_parts_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="the torch extra is not installed")
    from fairbits.models.torch import write_module

    write_module(handwritten(), 9, tmp_path / "model.pt2")
    mark = tmp_path / "ran"
    bomb = io.BytesIO()
    torch.save(Bomb(str(mark)), bomb)
    with zipfile.ZipFile(tmp_path / "model.pt2") as source, zipfile.ZipFile(tmp_path / "bad.pt2", "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith("model_weights_config.json"):
                document = json.loads(content)
                entry = document["config"]["first.weight"]
                entry["use_pickle"] = True
                bombed = f"{name.rpartition('/')[0]}/{entry['path_name']}"
                content = json.dumps(document).encode()
            target.writestr(name, content)
    with zipfile.ZipFile(tmp_path / "bad.pt2") as source:
        kept = {name: source.read(name) for name in source.namelist()}
    with zipfile.ZipFile(tmp_path / "bad.pt2", "w") as target:
        for name, content in kept.items():
            target.writestr(name, bomb.getvalue() if name == bombed else content)
    with pytest.raises(ModelError, match=r"'first.weight' is pickled.*trust_pickle=True"):
        load_model(tmp_path / "bad.pt2")
    assert not mark.exists()


def test_skops_lists_what_it_does_not_trust(tmp_path: Path) -> None:
    skops = pytest.importorskip("skops.io", reason="the sklearn extra is not installed")
    import os
    from functools import partial

    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    _, codes, target = table(60)
    forest = fit(RandomForestClassifier(2, random_state=0), codes, target)
    # A partial is let in, but no function with it.
    skops.dump(make_pipeline(FunctionTransformer(partial(os.getenv, "HOME")), forest), tmp_path / "partial.skops")
    with pytest.raises(ModelError, match=r"not known to be safe: os.getenv; .*trust_pickle=True"):
        load_model(tmp_path / "partial.skops", schema=SCHEMA)
    skops.dump(forest, tmp_path / "forest.skops")
    model = load_model(tmp_path / "forest.skops", schema=SCHEMA)  # trees are data
    np.testing.assert_allclose(model.scores(codes), forest.predict_proba(codes)[:, 1], atol=1e-6)
