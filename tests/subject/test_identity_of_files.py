"""What tells two tree models apart, each alone; and weights that lie beside an ONNX file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairbits.errors import ModelError
from fairbits.models import ModelOptions, TreeModel, load_model
from fairbits.models.trees.ensemble import NAN, Ensemble, Tree
from fairbits.subject import make_subject
from fairbits.subject.identity import origin_of
from tests.repair.conftest import SCHEMA, people

Changed = Callable[[Any], None]


def trees(change: Changed = lambda arrays: None, **more: Any) -> TreeModel:
    """A split on the first attribute, then a set of categories of the second."""
    arrays: dict[str, Any] = {
        "feature": np.array([0, 1, -1, -1, -1]),
        "threshold": np.array([5.0, 0.0, 0.0, 0.0, 0.0]),
        "left": np.array([1, 3, -1, -1, -1]),
        "right": np.array([2, 4, -1, -1, -1]),
        "missing": np.full(5, NAN, np.int8),
        "missing_left": np.array([True, False, False, False, False]),
        "values": np.array([[0.0], [0.0], [0.4], [-1.0], [1.0]]),
        "categories": {1: np.array([0])},
    }
    change(arrays)
    settings: dict[str, Any] = {"features": 3, "base": [0.1], "link": "logistic"} | more
    return TreeModel(Ensemble.build([Tree(**arrays)], **settings), 2)


def put(name: str, place: int, value: Any) -> Changed:
    return lambda arrays: arrays[name].__setitem__(place, value)


ALONE: dict[str, Callable[[], TreeModel]] = {
    "leaves": lambda: trees(put("values", 2, 0.400000001)),
    "thresholds": lambda: trees(put("threshold", 0, 5.5)),
    "missing_ways": lambda: trees(put("missing_left", 0, False)),
    "category_sets": lambda: trees(put("categories", 1, np.array([1]))),
    "base_score": lambda: trees(base=[0.2]),
    "splits": lambda: trees(put("feature", 0, 2)),
    "head": lambda: trees(slope=2.0),
    "scored_class": lambda: trees().with_favourable(0),
}


@pytest.mark.parametrize("name", ALONE)
def test_each_part_of_a_tree_alone(name: str) -> None:
    table = people()
    plain = make_subject("trees", trees(), SCHEMA, table)
    before, after = plain.identity, replace(plain, model=ALONE[name]()).identity
    assert before.ingredients["model"] != "none"
    assert {key for key in before.ingredients if before.ingredients[key] != after.ingredients[key]} == {"model"}
    assert before.id != after.id
    assert make_subject("trees", trees(), SCHEMA, table).identity.id == before.id


def beside(folder: Path, location: str = "weights.bin") -> Path:
    """A network whose weights lie in a file beside it."""
    onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
    rng = np.random.default_rng(0)
    tensors = {"w": rng.normal(size=(3, 64)), "v": rng.normal(size=(64, 1))}
    held = [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in tensors.items()]
    nodes = [
        onnx.helper.make_node("MatMul", ["rows", "w"], ["h"]),
        onnx.helper.make_node("Relu", ["h"], ["a"]),
        onnx.helper.make_node("MatMul", ["a", "v"], ["z"]),
        onnx.helper.make_node("Sigmoid", ["z"], ["scores"]),
    ]
    ends = [onnx.helper.make_tensor_value_info(n, 1, ["n", w]) for n, w in (("rows", 3), ("scores", 1))]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], held)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    folder.mkdir(exist_ok=True)
    onnx.save(model, str(folder / "m.onnx"), save_as_external_data=True, location=location, size_threshold=0)
    return folder / "m.onnx"


def test_weights_beside_the_file_are_part_of_the_identity(tmp_path: Path) -> None:
    file = beside(tmp_path)
    options = ModelOptions()
    before, scores = origin_of(file, options), load_model(file).scores(np.ones((1, 3)))
    assert origin_of(file, options) == before
    content = bytearray((tmp_path / "weights.bin").read_bytes())
    content[3] ^= 1
    (tmp_path / "weights.bin").write_bytes(bytes(content))
    assert origin_of(file, options) != before
    assert load_model(file).scores(np.ones((1, 3))) != scores


def test_weights_that_are_not_beside_the_file(tmp_path: Path) -> None:
    file = beside(tmp_path)
    weights = tmp_path / "weights.bin"
    content = weights.read_bytes()
    weights.write_bytes(content[:100])
    with pytest.raises(ModelError, match=r"'weights.bin', which ends after 100 bytes where .* copy both files again"):
        load_model(file)
    weights.unlink()
    with pytest.raises(ModelError, match=r"keeps constants in 'weights.bin', which is not there; put that file beside"):
        load_model(file)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "weights.bin").write_bytes(content)
    weights.symlink_to(tmp_path / "elsewhere" / "weights.bin")
    with pytest.raises(ModelError, match="outside its folder; save it as one file"):
        load_model(file)


def test_a_folder_that_leads_elsewhere(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
    file = beside(tmp_path / "in")
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "weights.bin").rename(tmp_path / "out" / "weights.bin")
    (tmp_path / "in" / "data").symlink_to(tmp_path / "out")
    model = onnx.load(str(file), load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "data/weights.bin"
    file.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="outside its folder"):
        load_model(file)
