"""One small sound file for every loader, and how each is loaded. Anything a loader raises must be a FairbitsError."""

from __future__ import annotations

import functools
import gzip
import os
import pickle
import shutil
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

os.environ.setdefault("KERAS_BACKEND", "torch")

from fairbits import Attribute, Network, Schema, load_subject, open_run
from fairbits.models import load_with_encoding

SCHEMA = Schema(
    (
        Attribute(name="age", kind="integer", low=1, high=9, protected=True),
        Attribute(name="sex", kind="category", labels=("F", "M"), protected=True),
        Attribute(name="pay", kind="real", low=0, high=9),
    ),
    target="hired",
    classes=("no", "yes"),
    favourable="yes",
)
SUBJECT = """name = "fuzz"
rules = ["age > 2 -> pay > 0"]

[model]
path = "model.npz"

[table]
path = "people.csv"
target = "hired"
classes = ["no", "yes"]
favourable = "yes"

[attributes.age]
kind = "integer"
low = 1
high = 9
protected = true

[attributes.sex]
kind = "category"
labels = ["F", "M"]
protected = true

[attributes.pay]
kind = "real"
low = 0
high = 9
"""
#: A file that a pickle would leave behind if it were opened.
CANARY = Path("canary")


class Canary:
    """What runs where somebody unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (str(CANARY.resolve()), "w"))


def people() -> Any:
    import pyarrow as pa

    return pa.table(
        {
            "age": [1, 5, 9, 3] * 5,
            "sex": ["F", "M", "M", "F"] * 5,
            "pay": [0.5, 1.25, 9.0, 3.0] * 5,
            "hired": ["yes", "no", "yes", "no"] * 5,
        }
    )


def network() -> Network:
    rng = np.random.default_rng(0)
    return Network.build([rng.normal(size=(3, 4)), rng.normal(size=(4, 2))], [rng.normal(size=4), rng.normal(size=2)])


def write_csv(path: Path, mark: str = ",") -> None:
    data = people().to_pydict()
    lines = [mark.join(data), *(mark.join(map(str, row)) for row in zip(*data.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_parquet(path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(people(), path)


def write_feather(path: Path) -> None:
    from pyarrow import feather

    feather.write_feather(people(), path, compression="uncompressed")


def write_onnx_other(path: Path) -> None:
    """A graph that ONNX Runtime has to run."""
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("MatMul", ["rows", "w"], ["a"]),
        helper.make_node("Sin", ["a"], ["b"]),
        helper.make_node("Shape", ["b"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["z"]),
        helper.make_node("Add", ["b", "z"], ["c"]),
        helper.make_node("Softmax", ["c"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(np.ones((3, 2), np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path.write_bytes(model.SerializeToString())


def write_skops(path: Path) -> None:
    from sklearn.linear_model import LogisticRegression
    from skops import io

    rows = np.random.default_rng(0).normal(size=(40, 3))
    io.dump(LogisticRegression().fit(rows, np.where(rows[:, 0] > 0, "yes", "no")), path)


def write_pipeline(path: Path, *, bins: bool = False) -> None:
    """Encoders for each column and a logistic regression; with bins a scorecard."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler
    from skops import io

    found, hired = rows()
    frame = pd.DataFrame({"age": found[:, 0].astype(int), "sex": np.array(["F", "M"])[found[:, 1].astype(int)]})
    frame["pay"] = found[:, 2]
    numbers = KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf") if bins else StandardScaler()
    columns = ColumnTransformer([("n", numbers, ["age", "pay"]), ("c", OneHotEncoder(), ["sex"])])
    io.dump(make_pipeline(columns, LogisticRegression()).fit(frame, np.where(hired, "yes", "no")), path)


def rows() -> tuple[Any, Any]:
    """Numbers to train on, and who is hired."""
    rng = np.random.default_rng(0)
    found = np.column_stack([rng.integers(1, 10, 80), rng.integers(0, 2, 80), rng.uniform(0, 9, 80)]).astype(float)
    return found, (found[:, 0] + found[:, 2] > 9).astype(int)


def write_forest(path: Path) -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from skops import io

    io.dump(HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=4, min_samples_leaf=5).fit(*rows()), path)


def write_lightgbm(path: Path) -> None:
    import lightgbm

    options = {"objective": "binary", "num_leaves": 4, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1}
    inputs, wanted = rows()
    lightgbm.train(options, lightgbm.Dataset(inputs, wanted), num_boost_round=3).save_model(str(path))


def write_xgboost(path: Path) -> None:
    import xgboost

    inputs, wanted = rows()
    options = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
    xgboost.train(options, xgboost.DMatrix(inputs, wanted), num_boost_round=3).save_model(str(path))


def write_catboost(path: Path) -> None:
    import catboost

    found = catboost.CatBoostClassifier(iterations=3, depth=2, verbose=0, thread_count=1, allow_writing_files=False)
    found.fit(*rows()).save_model(str(path), format=path.suffix[1:])


def write_pt2(path: Path) -> None:
    from fairbits.models.torch import write_module

    write_module(module(), 3, path)


def write_pt(path: Path) -> None:
    import torch

    torch.save(module().state_dict(), path)


def write_keras(path: Path) -> None:
    import keras

    layers = [keras.Input((3,)), keras.layers.Dense(4, activation="relu"), keras.layers.Dense(2)]
    keras.Sequential(layers).save(path)


def write_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(Canary()))


def module() -> Any:
    """The module that the weights belong to."""
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


def write_run(folder: Path) -> None:
    """A run of a second, with its subject beside it."""
    from fairbits import Audit, Budget

    (folder / "subject.toml").write_text(SUBJECT, encoding="utf-8")
    network().save(folder / "model.npz")
    write_csv(folder / "people.csv")
    audit = Audit.of(folder / "subject.toml")
    run = audit.search(budget=Budget(evaluations=50), out=folder / "run", threads=1)
    run.debug()
    run.repair(choose="blind")  # whatever a training achieves, it is a network in a file
    run.certify(budget=1.0, threads=1)
    audit.proxies(out=folder / "run")
    run.report()


@dataclass(frozen=True, slots=True)
class Target:
    """A loader: what its file is called, how a sound one is made, and how it is loaded."""

    file: str
    write: Callable[[Path], None]
    load: Callable[[Path], None]


def load_model_file(path: Path) -> None:
    factory = {"factory": "tests.fuzz.seeds:module", "trust_code": True} if path.suffix == ".pt" else {}
    model, encoding = load_with_encoding(path, SCHEMA, max_seconds=10.0, **factory)
    model.scores(encoding.encode(np.array([[1.0, 0.0, 0.5], [9.0, 1.0, 9.0]])))


@functools.cache
def model_beside(folder: Path) -> None:
    """The sound model in a folder, written once."""
    network().save(folder / "model.npz")


def load_table_file(path: Path) -> None:
    text = SUBJECT.replace("people.csv", path.name)
    mark = '\ndelimiter = "\\t"' if path.suffix == ".tsv" else ""
    subject = path.with_name("subject.toml")
    subject.write_text(text.replace('target = "hired"', f'target = "hired"{mark}'), encoding="utf-8")
    model_beside(path.parent)
    load_subject(subject)


def load_toml_file(path: Path) -> None:
    model_beside(path.parent)
    write_csv(path.with_name("people.csv"))
    load_subject(path)


def load_drafted_file(path: Path) -> None:
    """As ``fairbits init`` reads a table that nobody has described."""
    import fairbits

    fairbits.infer_schema(path, target="hired", protected=["age", "sex"])


def load_run_folder(path: Path) -> None:
    """``path`` is the damaged file; the rest of its run is beside it."""
    from fairbits.report import compute_report
    from tests.report.drawn import render_html, render_markdown

    folder = next(parent for parent in path.parents if parent.name == "run")
    run = open_run(folder)
    run.cases(top=3)
    data = compute_report(run, threads=1)
    render_html(data)
    render_markdown(data)


POLICY = """confidence = 0.95
seed = 3
suite = "suite.parquet"

[checks]
k_max = 8
flip_rate = { max = 0.5, max_rise = 0.01 }

[checks.accuracy]
min = 0.1

[[waivers]]
check = "flip_rate"
reason = "known"
owner = "ann"
expires = 2026-01-01
"""


@functools.cache
def subject_in(folder: Path) -> Any:
    write_toml(folder / "subject.toml")
    model_beside(folder)
    write_csv(folder / "people.csv")
    return load_subject(folder / "subject.toml")


def subject_beside(path: Path) -> Any:
    return subject_in(path.parent)


@functools.cache
def suite_in(folder: Path) -> Any:
    from fairbits.gates import freeze_subject

    return freeze_subject(subject_in(folder))


def load_policy_file(path: Path) -> None:
    from fairbits.gates import read_policy

    read_policy(path)


def write_suite_file(path: Path) -> None:
    from fairbits.gates import write_suite

    write_suite(suite_in(path.parent), path)


def load_suite_file(path: Path) -> None:
    from fairbits.gates import read_suite

    read_suite(path, subject_beside(path))


def write_baseline_file(path: Path) -> None:
    from fairbits.gates import replay, write_baseline

    subject, suite = subject_beside(path), suite_in(path.parent)
    write_baseline(path, replay(subject, suite, threads=1), suite, subject)


def load_baseline_file(path: Path) -> None:
    from fairbits.gates import read_baseline

    read_baseline(path, suite_in(path.parent))


class Service:
    """An endpoint that answers every question with the bytes of a file."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/score"
        self.content = b""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection:
                try:
                    connection.settimeout(5)
                    asked = b""
                    while b"\r\n\r\n" not in asked:
                        asked += connection.recv(65536) or b"\r\n\r\n"
                    connection.sendall(self.content)
                except OSError:  # the client had enough
                    continue


@functools.cache
def service() -> Service:
    return Service()


def load_answer(path: Path) -> None:
    """``path`` holds what a service answers, headers and all."""
    from fairbits.models import http

    service().content = path.read_bytes()
    model, encoding = asked_model()
    longest, http.LONGEST_PAUSE = http.LONGEST_PAUSE, 0.2  # a short pause shows as much as a long one
    try:
        model.fresh_scores(encoding.encode(np.array([[1.0, 0.0, 0.5], [9.0, 1.0, 9.0]])))
    finally:
        http.LONGEST_PAUSE = longest


@functools.cache
def asked_model() -> Any:
    return load_with_encoding(service().url, SCHEMA, timeout=1.0, retries=1, wait=0.01)


_SCORES = b'{"scores": [0.25, 0.75]}'


def answer(body: bytes, *headers: str) -> Callable[[Path], None]:
    """Writes an answer of a service."""
    lines = ["HTTP/1.1 200 OK", "Content-Type: application/json", "Connection: close", *headers]
    head = "\r\n".join(lines).encode()
    return lambda path: path.write_bytes(head + b"\r\n\r\n" + body) and None


@functools.cache
def run_in(folder: Path) -> Any:
    write_run(folder)
    return open_run(folder / "run")


def write_filter(path: Path) -> None:
    run_in(path.parent)
    path.write_text(FILTER, encoding="utf-8")


def load_filter(path: Path) -> None:
    """``path`` holds what follows ``cases --where``."""
    from fairbits.store import time_limit

    with time_limit(2.0):
        run_in(path.parent).cases(where=path.read_text(encoding="utf-8", errors="replace"), top=3)


def load_manifest(path: Path) -> None:
    from fairbits.errors import FairbitsError
    from fairbits.report import verify

    found = verify(path.parent)
    if not found.good:
        raise FairbitsError("; ".join(found.faults()))


def write_signed(path: Path) -> None:
    """A manifest, and its signature beside it."""
    import subprocess
    import tempfile

    from fairbits.report import sign
    from fairbits.report.manifest import write_manifest

    write_manifest(path.parent, about={"subject": "fuzz"})
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        sign(path.with_name("manifest.json"), key, path.with_name("manifest.json.sig"))


FILTER = "k >= 2 AND (age > 3 OR sex = 'F') AND abs(pay - 2) < 5 AND q_inf BETWEEN 0 AND 9 AND lower(sex) LIKE 'm%'"


def write_toml(path: Path) -> None:
    path.write_text(SUBJECT, encoding="utf-8")


TARGETS: dict[str, Target] = {
    "toml": Target("subject.toml", write_toml, load_toml_file),
    "csv": Target("people.csv", write_csv, load_table_file),
    "tsv": Target("people.tsv", lambda path: write_csv(path, "\t"), load_table_file),
    "parquet": Target("people.parquet", write_parquet, load_table_file),
    "feather": Target("people.feather", write_feather, load_table_file),
    "npz": Target("model.npz", lambda path: network().save(path), load_model_file),
    "onnx": Target("model.onnx", lambda path: network().save(path), load_model_file),
    "onnx-other": Target("model.onnx", write_onnx_other, load_model_file),
    "skops": Target("model.skops", write_skops, load_model_file),
    "pipeline": Target("model.skops", write_pipeline, load_model_file),
    "scorecard": Target("model.skops", lambda path: write_pipeline(path, bins=True), load_model_file),
    "forest": Target("model.skops", write_forest, load_model_file),
    "lightgbm": Target("model.txt", write_lightgbm, load_model_file),
    "xgboost": Target("model.json", write_xgboost, load_model_file),
    "xgboost-binary": Target("model.ubj", write_xgboost, load_model_file),
    "catboost": Target("model.cbm", write_catboost, load_model_file),
    "catboost-json": Target("model.json", write_catboost, load_model_file),
    "pt": Target("model.pt", write_pt, load_model_file),
    "pt2": Target("model.pt2", write_pt2, load_model_file),
    "keras": Target("model.keras", write_keras, load_model_file),
    "pickle": Target("model.pkl", write_pickle, load_model_file),
    "drafted": Target("strange.csv", write_csv, load_drafted_file),
    "endpoint": Target("answer", answer(_SCORES, f"Content-Length: {len(_SCORES)}"), load_answer),
    "endpoint-packed": Target("answer", answer(gzip.compress(_SCORES), "Content-Encoding: gzip"), load_answer),
    "endpoint-pieces": Target(
        "answer", answer(b"18\r\n" + _SCORES + b"\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), load_answer
    ),
    "endpoint-busy": Target(
        "answer",
        lambda path: (
            path.write_bytes(
                b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nLocation: http://127.0.0.1:9/\r\n"
                b"Content-Length: 2\r\n\r\n{}"
            )
            and None
        ),
        load_answer,
    ),
    "filter": Target("filter.sql", write_filter, load_filter),
    "manifest": Target("manifest.json", write_signed, load_manifest),
    "signature": Target("manifest.json.sig", write_signed, load_manifest),
    "policy": Target("fairbits.toml", lambda path: path.write_text(POLICY) and None, load_policy_file),
    "suite": Target("suite.parquet", write_suite_file, load_suite_file),
    "baseline": Target("baseline.parquet", write_baseline_file, load_baseline_file),
}
#: Files of a run, each damaged in a copy of the same one.
RUN_FILES = {
    "run.json": "run.json",
    "summary.json": "summary.json",
    "task": "tasks/*.json",
    "part": "cases/*.parquet",
    "rows.parquet": "rows.parquet",
    "measure.json": "measure.json",
    "debug.json": "debug.json",
    "neurons.parquet": "neurons.parquet",
    "layers.parquet": "layers.parquet",
    "repair.json": "repair.json",
    "repairs.parquet": "repairs.parquet",
    "repaired.npz": "repaired.npz",
    "certify.json": "certify.json",
    "proxies.json": "proxies.json",
}


def run_file(folder: Path, name: str) -> Path | None:
    """The file of a run that a name stands for."""
    return next(iter(sorted((folder / "run").glob(RUN_FILES[name]))), None)


def copy_run(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


@dataclass(slots=True)
class Mirror:
    """A sound run beside the one that is damaged, and what has to be copied back."""

    folder: Path
    _seen: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    _known: ClassVar[dict[Path, Mirror]] = {}

    @classmethod
    def of(cls, folder: Path) -> Mirror:
        """The one of a folder, made at the first call."""
        if folder not in cls._known:
            copy_run(folder / "run", folder / "whole")
            cls._known[folder] = cls(folder)
            cls._known[folder]._seen = cls._known[folder]._state()
        return cls._known[folder]

    def restore(self) -> None:
        """The run as it was: a copy of all of it where anything is new, gone or changed."""
        now = self._state()
        if now.keys() != self._seen.keys():
            copy_run(self.folder / "whole", self.folder / "run")
        else:
            for name in (name for name, state in now.items() if state != self._seen[name]):
                shutil.copy2(self.folder / "whole" / name, self.folder / "run" / name)
        self._seen = self._state()

    def _state(self) -> dict[str, tuple[int, int, int]]:
        start = len(str(self.folder / "run")) + 1
        found = {}
        for place, _, names in os.walk(self.folder / "run"):
            for name in names:
                path = os.path.join(place, name)
                state = os.stat(path)
                found[path[start:]] = (state.st_size, state.st_mtime_ns, state.st_ino)
        return found
