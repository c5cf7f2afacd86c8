"""Files made to do harm: each is refused in one sentence, before it has run code, filled memory or taken time."""

from __future__ import annotations

import io
import itertools
import json
import os
import struct
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairbits import Audit, load_subject, sandbox
from fairbits.domain import reading
from fairbits.domain.reading import read_arrow
from fairbits.errors import FairbitsError, MissingDependencyError, ModelError, OptionError, TableError
from fairbits.models import ModelOptions, load_model, load_with_encoding
from fairbits.models.registry import named_model

from ..cli.calling import fairbits
from ..conftest import random_network
from .zoo import SCHEMA, fit, table

pytestmark = pytest.mark.filterwarnings("ignore")
CHILDREN = "tests.models.children"


@pytest.fixture
def in_memory() -> Iterator[None]:
    """No test in which nothing is unpacked may take more than a little."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000
    assert time.process_time() - began < 60


# Code


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """A module in the current folder, which is imported only where it is trusted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"foreign_{abs(hash(tmp_path))}"

    def write(body: str) -> str:
        (tmp_path / f"{name}.py").write_text(f"import os, sys, signal\n{body}\n")
        return name

    yield write
    sys.modules.pop(name, None)


def test_code_runs_only_where_it_is_trusted(module: Callable[[str], str], tmp_path: Path) -> None:
    name = module("open('ran', 'w').close()\ndef model(rows): return rows['hours'] / 100")
    for options in ({}, {"trust_pickle": True}):
        with pytest.raises(ModelError, match="trust_code=True"):
            load_with_encoding(f"{name}:model", SCHEMA, **options)
    assert not (tmp_path / "ran").exists()
    for options in ({"trust_code": True}, {"trust": True}):
        model, _ = load_with_encoding(f"{name}:model", SCHEMA, **options)
        assert model.inputs == len(SCHEMA)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "reference",
    ["builtins:exec", "builtins:eval", "os:fork", "os:abort", "os:_exit", "sys:exit", "subprocess:run", "posix:system",
     "importlib:import_module", "pickle:loads", "ctypes:string_at", "_thread:exit", "code:interact", "runpy:run_path"],
)  # fmt: skip
def test_the_standard_library_is_no_model(reference: str) -> None:
    with pytest.raises(ModelError, match="belongs to Python itself"):
        load_with_encoding(reference, SCHEMA, trust=True)


@pytest.mark.parametrize("path", ["os.fork", "sys.exit", "run", "os"])
def test_nor_is_what_a_module_passes_on(path: str, module: Callable[[str], str]) -> None:
    name = module("from builtins import exec as run")
    with pytest.raises(ModelError, match=r"belongs to Python itself|is a module"):
        named_model(f"{name}:{path}", trust_code=True)


def test_trusted_code_runs_once(module: Callable[[str], str], tmp_path: Path) -> None:
    """What its owner grants runs here and nowhere else: an import, a factory, the first call."""
    name = module(
        "def note(what): open('ran', 'a').write(what + '\\n')\nnote('import')\n"
        "def make():\n note('make')\n return lambda rows: (note('call'), rows['hours'] / 100)[1]"
    )
    model, encoding = load_with_encoding(f"{name}:make", SCHEMA, trust_code=True)
    assert (tmp_path / "ran").read_text().splitlines() == ["import", "make"]
    model.scores(encoding.encode(np.array([[2.0, 0, 0.5, 1, 40]])))
    assert (tmp_path / "ran").read_text().splitlines() == ["import", "make", "call"]


def test_a_file_that_takes_too_long_is_called_by_its_name(tmp_path: Path) -> None:
    """A repair is tried out in a temporary folder: its path means nothing to who reads the page."""
    from fairbits.models.guards import _sentence

    outcome = sandbox.ChildOutcome(fault="does not end within 12 s", known={"time": True}, error=None)
    said = _sentence(tmp_path / "repaired.skops", outcome)
    assert said.startswith("the model 'repaired.skops' does not end within 12 s when it is loaded")


@pytest.mark.parametrize("ending", ["sys.exit()", "sys.exit(0)", "raise SystemExit('bye')"])
def test_an_exit_while_importing_is_an_error(ending: str, module: Callable[[str], str]) -> None:
    name = module(ending)
    with pytest.raises(ModelError, match=r"cannot be imported|asks Python to exit|fails"):
        load_with_encoding(f"{name}:model", SCHEMA, trust_code=True)


def test_an_exit_in_a_later_call_is_an_error(module: Callable[[str], str]) -> None:
    name = module(
        "calls = []\ndef model(rows):\n calls.append(1)\n len(calls) > 2 and sys.exit(0)\n return rows['hours']"
    )
    model, encoding = load_with_encoding(f"{name}:model", SCHEMA, trust_code=True)
    rows = encoding.encode(np.array([[2.0, 0, 0.5, 1, 40]]))
    model.scores(rows), model.scores(rows)
    with pytest.raises(ModelError, match="SystemExit"):
        model.scores(rows)


@pytest.mark.parametrize("ending", ["sys.exit(0)", "sys.exit(3)", "raise type('Odd', (BaseException,), {})"])
def test_an_exit_of_a_model_is_no_verdict(ending: str, module: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("sex,a,y\n" + "f,1,0\nm,2,1\n" * 9)
    name = module(f"def model(rows):\n {ending}")
    asked = ("--target", "y", "--protected", "sex", "--yes", "--trust-code", "--model", f"{name}:model")
    done = fairbits("init", "people.csv", *asked)
    assert done.returncode == (2 if "exit" in ending else 4)
    assert done.stderr.startswith("fairbits: ")
    assert done.stderr.count("\n") == 1


def test_a_file_called_numpy_in_this_folder_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("numpy", "json", "pyarrow", "h5py"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()")
    import pyarrow as pa
    from pyarrow import feather

    feather.write_feather(pa.table({"a": [1, 2]}), "people.feather")
    assert read_arrow("people.feather").num_rows == 2
    assert not (tmp_path / "ran").exists()


def test_a_factory_needs_trust_too(tmp_path: Path, module: Callable[[str], str]) -> None:
    name = module("open('ran', 'w').close()\ndef make(): return None")
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as file:
        file.writestr("a/data.pkl", b"")
    for options in ({}, {"trust_pickle": True}):
        with pytest.raises(ModelError, match="trust_code=True"):
            load_model(tmp_path / "model.pt", factory=f"{name}:make", **options)
    with pytest.raises(ModelError, match="belongs to Python itself"):
        load_model(tmp_path / "model.pt", factory="os:abort", trust=True)
    assert not (tmp_path / "ran").exists()


# Archives


def bomb(path: Path, name: str, size: int, start: bytes = b"", **more: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for other, content in more.items():
            file.writestr(other, content)
        with file.open(name, "w", force_zip64=True) as entry:
            entry.write(start)
            for _ in range(size >> 24):
                entry.write(bytes(1 << 24))
    return path


@pytest.fixture(scope="module")
def gigabyte(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An archive of one array of a gigabyte, which takes seconds to press."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (1 << 30, 1)})
    return bomb(tmp_path_factory.mktemp("bomb") / "model.npz", "W0.npy", 1 << 30, header.getvalue()).read_bytes()


@pytest.mark.parametrize("ending", [".pt", ".pth", ".keras", ".npz", ".pt2", ".skops"])
def test_zip_bombs_are_refused(ending: str, gigabyte: bytes, tmp_path: Path, in_memory: None) -> None:
    path = tmp_path / f"model{ending}"
    path.write_bytes(gigabyte if ending == ".npz" else gigabyte.replace(b"W0.npy", b"data/0"))
    with zipfile.ZipFile(path) as file:
        assert file.namelist() == ["W0.npy" if ending == ".npz" else "data/0"]
    assert path.stat().st_size < 5_000_000
    with pytest.raises(ModelError, match="bytes are allowed; raise max_model_bytes"):
        load_model(path, trust=True)


def test_a_limit_can_be_raised(tmp_path: Path) -> None:
    network = random_network(np.random.default_rng(0), [40, 30, 2])
    network.save(tmp_path / "model.npz")
    with pytest.raises(ModelError, match="max_model_bytes"):
        load_model(tmp_path / "model.npz", max_model_bytes=4_000)
    assert load_model(tmp_path / "model.npz", max_model_bytes=100_000).inputs == 40


@pytest.mark.parametrize("ending", [".npz", ".keras", ".skops", ".pt2", ".pt"])
def test_entries_that_unpack_to_more_than_they_declare_are_refused(
    ending: str, tmp_path: Path, in_memory: None
) -> None:
    """Sizes and checksum say a hundred bytes; readers would unpack all forty megabytes before they cut them."""
    name = {".npz": "W0.npy", ".keras": "config.json", ".skops": "schema.json", ".pt2": "models/model.json"}
    written = io.BytesIO()
    with (
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as file,
        file.open(name.get(ending, "archive/data.pkl"), "w") as entry,
    ):
        for _ in range(40):
            entry.write(bytes(1_000_000))
    content = bytearray(written.getvalue())
    for mark, start in ((b"PK\x03\x04", 14), (b"PK\x01\x02", 16)):
        place = content.rindex(mark)
        struct.pack_into("<I", content, place + start, zlib.crc32(bytes(100)))
        struct.pack_into("<I", content, place + start + 8, 100)
    path = tmp_path / f"model{ending}"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"larger than it declares|Bad CRC"):
        load_model(path, trust=True)


def test_archives_are_stored_or_deflated(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.npz", "w", zipfile.ZIP_BZIP2) as file:
        file.writestr("W0.npy", bytes(1_000_000))
    with pytest.raises(ModelError, match="cannot be unpacked piece by piece; save it again"):
        load_model(tmp_path / "model.npz")
    network = random_network(np.random.default_rng(0), [400, 300, 2])
    network.save(tmp_path / "plain.npz")
    with np.load(tmp_path / "plain.npz") as stored:
        np.savez_compressed(tmp_path / "packed.npz", **stored)
    assert load_model(tmp_path / "packed.npz").inputs == 400


def test_entries_that_overlap_or_come_twice_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "twice.npz", "w") as file:
        file.writestr("W0.npy", b"a")
        file.writestr("W0.npy", b"b")
    with pytest.raises(ModelError, match="two entries of one name"):
        load_model(tmp_path / "twice.npz")
    one = io.BytesIO()
    with zipfile.ZipFile(one, "w") as file:
        file.writestr("a0.npy", bytes(2000))
    content, start = one.getvalue(), one.getvalue().rindex(b"PK\x01\x02")
    end = content.rindex(b"PK\x05\x06")
    entry = content[start:end]  # the same bytes under a hundred names
    entries = b"".join(entry.replace(b"a0.npy", f"{i:02}.npy".encode()) for i in range(100))
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 100, 100, len(entries), start, 0)
    (tmp_path / "over.npz").write_bytes(content[:start] + entries + tail)
    with pytest.raises(ModelError, match="overlap"):
        load_model(tmp_path / "over.npz")


def test_an_array_that_declares_more_than_it_holds_is_refused(tmp_path: Path, in_memory: None) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (10**6, 10**6)})
    with zipfile.ZipFile(tmp_path / "model.npz", "w") as file:
        file.writestr("W0.npy", header.getvalue() + bytes(64))
    with pytest.raises(ModelError, match="more than it holds"):
        load_model(tmp_path / "model.npz")


@pytest.mark.parametrize("kind", ["complex64", "datetime64[s]", "timedelta64[s]", "U4", "S4", "f4,i4", "V8", object])
def test_weights_are_real_numbers(kind: Any, tmp_path: Path) -> None:
    weights = np.zeros((3, 2), dtype=kind)
    np.savez(tmp_path / "model.npz", W0=weights, b0=np.zeros(2))
    with pytest.raises(ModelError, match=r"real numbers are needed|holds Python objects|version"):
        load_model(tmp_path / "model.npz")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_weights_are_finite(value: float, tmp_path: Path) -> None:
    weights = np.zeros((3, 2))
    weights[1, 1] = value
    np.savez(tmp_path / "model.npz", W0=weights, b0=np.zeros(2))
    with pytest.raises(ModelError, match="NaN or infinite"):
        load_model(tmp_path / "model.npz")


# Keras


def keras_file(path: Path, layers: list[dict[str, Any]], weights: bytes = b"") -> Path:
    config = {"module": "keras", "class_name": "Sequential", "config": {"name": "s", "layers": layers}}
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("config.json", json.dumps(config))
        file.writestr("metadata.json", "{}")
        if weights:
            file.writestr("model.weights.h5", weights)
    return path


def keras_layer(kind: str, module: str = "keras.layers", **config: Any) -> dict[str, Any]:
    return {"module": module, "class_name": kind, "config": {"name": kind.lower(), **config}, "registered_name": None}


#: What Keras builds a layer for, whatever comes into it.
BUILT = {"build_config": {"input_shape": [None, 10**9]}}


@pytest.fixture(scope="module")
def keras() -> None:
    """Whatever is read as a model of Keras needs it."""
    pytest.importorskip("keras", reason="Keras is not installed")


@pytest.mark.parametrize(
    "layers",
    [
        [keras_layer("InputLayer", batch_shape=[None, 9]), keras_layer("Dense", units=10**9)],
        [keras_layer("InputLayer", batch_shape=[None, 10**9]), keras_layer("Dense", units=10**3)],
        [keras_layer("InputLayer", batch_shape=[None, 9]), *[keras_layer("Dense", units=50_000)] * 3],
        [keras_layer("InputLayer", batch_shape=[None, 9]), keras_layer("RepeatVector", n=10**12)],
        [keras_layer("InputLayer", batch_shape=[None, 9]), keras_layer("Dense", units=4) | BUILT],
        [keras_layer("InputLayer", batch_shape=[None, 9]), keras_layer("LSTM", units=40) | BUILT],
        [keras_layer("Dense", units=-4)],
    ],
)
def test_keras_builds_no_more_than_granted(layers: list[Any], tmp_path: Path, keras: None, in_memory: None) -> None:
    with pytest.raises(ModelError, match=r"MB of memory when it is loaded|not a readable .keras file"):
        load_model(keras_file(tmp_path / "model.keras", layers))


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (keras_layer("Lambda", function={"class_name": "__lambda__"}), "code of its own"),
        (keras_layer("Activation", activation={"class_name": "__lambda__"}), "code of its own"),
        (keras_layer("system", module="os"), "not Keras's"),
    ],
)
def test_keras_runs_no_code(layer: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=said):
        load_model(keras_file(tmp_path / "model.keras", [layer]))


def test_keras_weights_lie_in_the_file(tmp_path: Path, keras: None, in_memory: None) -> None:
    h5py = pytest.importorskip("h5py", reason="Keras is not installed")
    for name, make in {
        "outer": lambda file: file.__setitem__("a", h5py.ExternalLink("/etc/passwd", "/")),
        "soft": lambda file: file.__setitem__("a", h5py.SoftLink("/b")),
        "raw": lambda file: file.create_dataset("a", (3,), "u1", external=[("/etc/passwd", 0, 3)]),
    }.items():
        content = io.BytesIO()
        with h5py.File(content, "w") as file:
            make(file)
        layers = [keras_layer("InputLayer", batch_shape=[None, 9]), keras_layer("Dense", units=2)]
        path = keras_file(tmp_path / f"{name}.keras", layers, content.getvalue())
        with pytest.raises(ModelError, match="links to elsewhere"):
            load_model(path)


# ONNX


def onnx_model(nodes: list[Any], path: Path, constants: dict[str, Any] | None = None, **more: Any) -> Path:
    onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
    helper = onnx.helper
    given = [helper.make_tensor_value_info("rows", 1, [None, len(SCHEMA)])]
    found = [helper.make_tensor_value_info("scores", 1, ["n", "k"])]
    held = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", given, found, held)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.x", 1)], **more
    )
    model.ir_version = 8
    path.write_bytes(model.SerializeToString())
    return path


def onnx_node(kind: str, given: list[str], found: str, **more: Any) -> Any:
    from onnx import helper

    return helper.make_node(kind, given, [found], **more)


@pytest.mark.parametrize("shape", [[10**12], [10**6, 10**6]])
def test_onnx_constants_of_any_size(shape: list[int], tmp_path: Path, in_memory: None) -> None:
    nodes = [
        onnx_node("ConstantOfShape", ["s"], "c"),
        onnx_node("ReduceSum", ["c"], "t"),
        onnx_node("Add", ["rows", "t"], "scores"),
    ]
    path = onnx_model(nodes, tmp_path / "m.onnx", {"s": np.array(shape, dtype=np.int64)})
    with pytest.raises(ModelError, match=r"memory|Nor can it run"):
        load_with_encoding(path, SCHEMA)


@pytest.mark.parametrize("kind", ["ConstantOfShape", "Expand", "Tile", "Range"])
def test_onnx_sizes_that_a_row_decides(kind: str, tmp_path: Path) -> None:
    from onnx import TensorProto

    whole = [onnx_node("ReduceMax", ["rows"], "m", keepdims=0), onnx_node("Cast", ["m"], "i", to=TensorProto.INT64)]
    first = {"Range": ["zero", "i", "one"], "ConstantOfShape": ["v"]}.get(kind, ["rows", "v"])
    nodes = [
        *whole,
        onnx_node("Reshape", ["i", "shape"], "v"),
        onnx_node(kind, first, "c"),
        onnx_node("Cast", ["c"], "scores", to=TensorProto.FLOAT),
    ]
    constants = {"zero": np.int64(0), "one": np.int64(1), "shape": np.array([1], dtype=np.int64)}
    with pytest.raises(ModelError, match="computed from the rows"):
        load_with_encoding(onnx_model(nodes, tmp_path / "m.onnx", constants), SCHEMA)


def test_onnx_loops_end(tmp_path: Path, in_memory: None) -> None:
    onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
    helper = onnx.helper
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [onnx_node("Identity", ["cond"], "cond_out"), onnx_node("Identity", ["x"], "x_out")],
        "body",
        [value("i", 7, []), value("cond", 9, []), value("x", 1, ["n", "k"])],
        [value("cond_out", 9, []), value("x_out", 1, ["n", "k"])],
    )
    for turns, said in (("n", "does not end within 1 s"), ("", "no number of turns")):
        node = helper.make_node("Loop", [turns, "yes", "rows"], ["scores"], body=body)
        path = onnx_model([node], tmp_path / "m.onnx", {"n": np.int64(10**12), "yes": np.bool_(True)})
        with pytest.raises(ModelError, match=said):
            load_with_encoding(path, SCHEMA, max_seconds=1)


def test_onnx_operators_that_are_not_known(tmp_path: Path) -> None:
    for node, said in (
        (onnx_node("RandomNormal", [], "scores", shape=[10**6, 10**6]), "depends on none of its inputs"),
        (onnx_node("Evil", ["rows"], "scores", domain="com.x"), "Evil"),
    ):
        with pytest.raises(ModelError, match=said):
            load_with_encoding(onnx_model([node], tmp_path / "m.onnx"), SCHEMA)


def test_onnx_products_that_fill_memory_are_met_in_the_child(tmp_path: Path, in_memory: None) -> None:
    big = np.ones((1, 30_000), dtype=np.float32)
    nodes = [
        onnx_node("Transpose", ["big"], "tall", perm=[1, 0]),
        onnx_node("MatMul", ["tall", "big"], "square"),
        onnx_node("ReduceMax", ["square"], "top", keepdims=0),
        onnx_node("Add", ["rows", "top"], "scores"),
    ]
    path = onnx_model(nodes, tmp_path / "m.onnx", {"big": big})
    with pytest.raises(ModelError, match=r"memory|within"):
        load_with_encoding(path, SCHEMA, max_model_bytes=200_000_000)


def test_onnx_functions_do_not_unfold_without_end(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
    helper, sets = onnx.helper, [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.x", 1)]
    functions = []
    for i in range(12):
        calls = [helper.make_node(f"f{i + 1}", ["x"], [f"t{k}"], domain="com.x") for k in range(10)]
        nodes = [*calls, onnx_node("Identity", ["t0"], "y")]
        functions.append(helper.make_function("com.x", f"f{i}", ["x"], ["y"], nodes, sets))
    functions.append(helper.make_function("com.x", "f12", ["x"], ["y"], [onnx_node("Identity", ["x"], "y")], sets))
    path = onnx_model([onnx_node("f0", ["rows"], "scores", domain="com.x")], tmp_path / "m.onnx", functions=functions)
    with pytest.raises(ModelError, match=r"memory|does not end within 1 s"):
        load_with_encoding(path, SCHEMA, max_seconds=1)


def test_onnx_data_stays_in_its_folder(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
    (tmp_path / "secret").write_bytes(bytes(4000))
    (tmp_path / "in").mkdir()
    path = onnx_model(
        [onnx_node("Add", ["rows", "w"], "scores")], tmp_path / "in" / "m.onnx", {"w": np.zeros(5, np.float32)}
    )
    model = onnx.load(str(path))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret")
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="outside its folder"):
        load_with_encoding(path, SCHEMA)


def test_a_favourable_class_of_odd_digits(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
    random_network(np.random.default_rng(0), [5, 4, 2]).save(tmp_path / "m.onnx")
    model = onnx.load(str(tmp_path / "m.onnx"))
    for odd in ("²", "9" * 5000, "-1", "٣"):
        del model.metadata_props[:]
        model.metadata_props.add(key="fairbits.favourable", value=odd)
        (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
        with pytest.raises(ModelError, match="favourable class"):
            load_model(tmp_path / "m.onnx")


# scikit-learn


def test_a_tree_that_goes_round_in_circles_is_refused(tmp_path: Path) -> None:
    skops = pytest.importorskip("skops.io", reason="the sklearn extra is not installed")
    from sklearn.tree import DecisionTreeClassifier

    _, codes, target = table(200)
    tree = fit(DecisionTreeClassifier(max_depth=3), codes, target)
    nodes = tree.tree_.__getstate__()["nodes"]
    nodes["left_child"][0] = nodes["right_child"][0] = 0
    state = tree.tree_.__getstate__() | {"nodes": nodes}
    tree.tree_.__setstate__(state)
    skops.dump(tree, tmp_path / "model.skops")
    with pytest.raises(ModelError, match="is damaged: tree 1 has a child outside"):
        load_with_encoding(tmp_path / "model.skops", SCHEMA, input_format="codes", max_seconds=2, trust_pickle=True)


# Tables


def test_parquet_declares_its_rows(tmp_path: Path, in_memory: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    piece = pa.table({"a": pa.array(np.zeros(1_000_000, np.int8))})
    with parquet.ParquetWriter(tmp_path / "people.parquet", piece.schema) as file:
        for _ in range(3):
            file.write_table(piece)
    with pytest.raises(TableError, match=r"3,000,000 rows, and 2,000,000 are allowed; raise max_rows"):
        read_arrow(tmp_path / "people.parquet", max_rows=2_000_000)
    assert read_arrow(tmp_path / "people.parquet", max_rows=4_000_000).num_rows == 3_000_000
    assert read_arrow(tmp_path / "people.parquet").num_rows == 3_000_000
    monkeypatch.setattr(reading, "SMALL_TABLE", 0)
    monkeypatch.setattr(reading, "available_memory", lambda: 80_000_000)
    with pytest.raises(TableError, match=r"takes 24,000,000 bytes .* and 20,000,000 are allowed in the memory at hand"):
        read_arrow(tmp_path / "people.parquet")


def test_the_memory_at_hand_is_that_of_machine_container_and_process() -> None:
    resource = pytest.importorskip("resource")
    here = reading.available_memory()
    assert 0 < here <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    own, most = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + (64 << 20), most))
    try:
        assert reading.available_memory() <= 64 << 20
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (own, most))


def test_long_texts_that_a_dictionary_repeats(tmp_path: Path, in_memory: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    from pyarrow import feather, parquet

    column = pa.DictionaryArray.from_arrays(np.zeros(100_000, np.int32), pa.array(["x" * 1_000_000]))
    data = pa.table({"a": column})
    parquet.write_table(data, tmp_path / "people.parquet")
    feather.write_feather(data, tmp_path / "people.feather")
    monkeypatch.setattr(reading, "available_memory", lambda: 4 << 30)
    for name in ("people.parquet", "people.feather"):
        for given in (None, 2_000_000):
            with pytest.raises(TableError, match="max_rows"):
                read_arrow(tmp_path / name, max_rows=given)


def test_rows_of_a_csv_are_counted_first(tmp_path: Path, in_memory: None) -> None:
    (tmp_path / "people.csv").write_text("a,b\n" + "1,2\n" * 1000)
    with pytest.raises(TableError, match="1,000 rows, and 500 are allowed"):
        read_arrow(tmp_path / "people.csv", max_rows=500)
    (tmp_path / "wide.csv").write_text(",".join(map(str, range(100_000))) + "\n" + "1," * 99_999 + "1\n")
    with pytest.raises(TableError, match="100,000 columns"):
        read_arrow(tmp_path / "wide.csv")


def test_rows_of_a_packed_csv_are_counted_first(tmp_path: Path, in_memory: None) -> None:
    """A few kilobytes that unpack to millions of rows; what is packed and small is read."""
    import pyarrow as pa

    packed, small = tmp_path / "people.csv.gz", tmp_path / "small.csv.zst"
    with pa.output_stream(str(packed)) as file:
        file.write(b"a,b\n")
        for _ in range(30):
            file.write(b"1,2\n" * 100_000)
    assert packed.stat().st_size < 100_000
    with pytest.raises(TableError, match=r"rows, and 2,000,000 are allowed; raise max_rows"):
        read_arrow(packed, max_rows=2_000_000)
    with pa.output_stream(str(packed)) as file:
        file.write(b"a,b\n" + b"1," * 10)
        for _ in range(12):
            file.write(b"0" * 10_000_000)
    with pytest.raises(TableError, match=r"bytes or more, and .* are allowed for 1,000 rows; .* raise max_rows"):
        read_arrow(packed, max_rows=1_000)
    with pa.output_stream(str(small)) as file:
        file.write(b"a,b\n1,2\n")
    assert read_arrow(small).to_pylist() == [{"a": 1, "b": 2}]


def test_arrow_files_that_point_outside_their_buffers(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import feather

    feather.write_feather(
        pa.table({"a": ["one", "two", "six"]}), tmp_path / "whole.feather", compression="uncompressed"
    )
    whole = (tmp_path / "whole.feather").read_bytes()
    offsets = struct.pack("<4i", 0, 3, 6, 9)
    assert offsets in whole
    for odd in ((0, 3, 6, 2**31 - 1), (0, -5, 6, 9), (0, 10**6, 10**7, 9)):
        (tmp_path / "people.feather").write_bytes(whole.replace(offsets, struct.pack("<4i", *odd)))
        with pytest.raises(TableError, match="cannot be read"):
            read_arrow(tmp_path / "people.feather")
    index = pa.DictionaryArray.from_arrays(pa.array([0, 10**6]), pa.array(["x"]), safe=False)
    feather.write_feather(pa.table({"a": index}), tmp_path / "index.feather", compression="uncompressed")
    with pytest.raises(TableError, match="cannot be read"):
        read_arrow(tmp_path / "index.feather")


def test_what_is_no_table_is_not_repeated(tmp_path: Path) -> None:
    secret = "root:x:0:0:hunter2:/root\nother:x:1,hunter2\n\x1b]52;c;aGk=\x07,a,b\n"  # noqa: S105
    for name, content in {"passwd": secret, "a.csv": secret.replace("root:x", "root;x"), "b.parquet": secret}.items():
        (tmp_path / name).write_text(content)
        for mark in (",", ";"):
            said = ""
            try:
                read_arrow(tmp_path / name, delimiter=mark)
            except FairbitsError as error:
                said = str(error)
            assert "hunter2" not in said
            assert "\x1b" not in said


# Subject files


def subject_file(folder: Path, **model: Any) -> Path:
    random_network(np.random.default_rng(0), [2, 3, 2]).save(folder / "model.npz")
    (folder / "people.csv").write_text("age,sex,hired\n1,0,no\n2,1,yes\n")
    stated = {"path": "model.npz", **model}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in stated.items())
    (folder / "subject.toml").write_text(
        f'[model]\n{lines}[table]\npath = "people.csv"\ntarget = "hired"\nfavourable = "yes"\n'
        '[attributes.age]\nkind = "integer"\nlow = 1\nhigh = 3\n'
        '[attributes.sex]\nkind = "category"\nlabels = ["0", "1"]\nprotected = true\n'
    )
    return folder / "subject.toml"


def test_a_subject_file_grants_itself_nothing(tmp_path: Path) -> None:
    for key in ("trust", "trust_code", "trust_pickle", "credential", "max_rows", "max_model_bytes", "max_seconds"):
        with pytest.raises(FairbitsError, match=f"unknown key {key!r}"):
            load_subject(subject_file(tmp_path, **{key: 1}))
    with pytest.raises(ModelError, match="belongs to Python itself"):
        load_subject(subject_file(tmp_path, path="builtins:exec"), trust=True)
    with pytest.raises(ModelError, match="trust_code=True"):
        load_subject(subject_file(tmp_path, path="numpy:sum"))


def test_limits_reach_the_subject(tmp_path: Path) -> None:
    file = subject_file(tmp_path)
    assert load_subject(file, max_rows=2, trust=True).options.trust_code
    with pytest.raises(TableError, match="max_rows"):
        load_subject(file, max_rows=1)
    with pytest.raises(ModelError, match="max_model_bytes"):
        Audit.of(file, max_model_bytes=10)
    with pytest.raises(OptionError, match="max_rows"):
        load_subject(file, max_rows=0)


def test_paths_that_leave_the_folder_are_named(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    subject_file(tmp_path)
    subject_file(inner, path="../model.npz")
    notes = load_subject(inner / "subject.toml").notes
    assert any("the model lies outside" in note and str(tmp_path / "model.npz") in note for note in notes)
    assert not any("outside" in note for note in load_subject(tmp_path / "subject.toml").notes)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 99_999,
        "a = " + "9" * 6_000,
        "a = 1e999999\n[",
        "\x00",
        "[a" * 5000,
        "a = '\\ud800'",
        '"\\ud800" = 1',
    ],
)
def test_odd_subject_files(text: str, tmp_path: Path) -> None:
    (tmp_path / "subject.toml").write_text(text)
    with pytest.raises(FairbitsError) as caught:
        load_subject(tmp_path / "subject.toml")
    assert len(str(caught.value)) < 400


# The child process itself


@pytest.mark.usefixtures("fresh_nurseries")
def test_a_child_tells_and_ends() -> None:
    outcome = sandbox.try_out(f"{CHILDREN}:idle", 3, seconds=20, memory=1 << 28)
    assert not outcome.fault
    assert outcome.known["heard"] == 3
    assert not sandbox.inside()
    missing = sandbox.try_out(f"{CHILDREN}:lacking", "pandas", seconds=20, memory=1 << 28).error
    assert isinstance(missing, MissingDependencyError)
    assert "'pandas', which is not installed: pip install 'pandas" in str(missing)


def test_a_child_that_waits_for_a_processor_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"seconds": 0.3, "memory": 1 << 28}
    late = "does not end within 0.3 s"
    assert sandbox.try_out(f"{CHILDREN}:asleep", 0.5, **limits).fault == late
    waited = itertools.chain([0.0], itertools.repeat(1e9))
    monkeypatch.setattr(sandbox, "_waited", lambda _process: next(waited))
    assert sandbox.try_out(f"{CHILDREN}:asleep", 0.5, **limits).fault == ""
    # It had its seconds whatever it waited for, and no waiting goes on for ever.
    waited = itertools.chain([0.0], itertools.repeat(1e9))
    assert sandbox.try_out(f"{CHILDREN}:busy", 60.0, **limits).fault == late
    waited = itertools.chain([0.0], itertools.repeat(1e9))
    assert sandbox.try_out(f"{CHILDREN}:asleep", 60.0, **limits).fault == late


@pytest.mark.usefixtures("fresh_nurseries")
@pytest.mark.parametrize("ending", [".pkl", ".joblib"])
def test_a_child_is_born_with_what_it_needs(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every child would import it again, on the clock of the model and while the parent waits."""
    from sklearn.ensemble import RandomForestClassifier

    from fairbits.models.registry import write_object

    _, codes, target = table(60)
    write_object(fit(RandomForestClassifier(2, random_state=0), codes, target), tmp_path / f"model{ending}")
    tried, found = sandbox.try_out, []

    def watched(job: str, given: Any, **limits: Any) -> sandbox.ChildOutcome:
        found.append(tried(f"{CHILDREN}:imported", given, **limits).known)
        return tried(job, given, **limits)

    monkeypatch.setattr(sandbox, "try_out", watched)
    load_model(tmp_path / f"model{ending}", schema=SCHEMA, trust_pickle=True)
    assert [facts["called"] for facts in found] == [True]
    assert not {"sklearn", "scipy", "pandas", "numpy"} & set(found[0]["imported"])


def test_options_check_what_is_granted() -> None:
    assert ModelOptions(trust=True).trust_code
    assert not ModelOptions(trust_pickle=True).trust_code
    for wrong in ({"max_rows": -1}, {"max_model_bytes": 1.5}, {"max_seconds": 0}, {"credential_header": "a: b\r\n"}):
        with pytest.raises(OptionError):
            ModelOptions(**wrong)
