"""Odd files that once broke a loader, and a fixed handful of new ones for each: replayed with every run of the tests.

The corpus holds what the fuzzer found (``make fuzz``); a name is ``kind-seed`` and its content the file itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from . import worker
from .mutation import mutated
from .seeds import RUN_FILES, TARGETS, Mirror, run_file, write_run

pytestmark = pytest.mark.filterwarnings("ignore")
CORPUS = sorted((Path(__file__).parent / "corpus").glob("*-*"))
#: Seeds of each kind: cheap loaders get many, those that start a framework a few.
SEEDS = {"toml": 30, "csv": 15, "tsv": 5, "npz": 30, "onnx": 20, "pickle": 3, "feather": 8, "parquet": 8}
SEEDS |= {"drafted": 10, "endpoint": 8, "endpoint-busy": 8, "manifest": 10, "signature": 5}
SEEDS |= {"policy": 20, "suite": 4, "baseline": 4, "lightgbm": 10, "xgboost": 10, "xgboost-binary": 10}


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_was_found_is_mended(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kind = path.name.rpartition("-")[0]
    verdict, said, _ = worker.try_one(kind, path.read_bytes(), tmp_path)
    if verdict == "slow":  # the first file of a kind waits for its framework
        verdict, said, _ = worker.try_one(kind, path.read_bytes(), tmp_path)
    assert verdict in {"loaded", "refused"}, said


@pytest.mark.parametrize("kind", SEEDS)
def test_odd_files_are_loaded_or_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx" if kind == "onnx" else "pyarrow")
    monkeypatch.chdir(tmp_path)
    sound, others = worker.sound_files(kind, tmp_path)
    assert worker.try_one(kind, sound, tmp_path)[0] in {"loaded", "refused"}
    for seed in range(SEEDS[kind]):
        verdict, said, _ = worker.try_one(kind, mutated(sound, kind, seed, others), tmp_path)
        assert verdict in {"loaded", "refused"}, f"{kind} {seed}: {said}"


def test_every_loader_takes_its_sound_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for kind in ("toml", "csv", "tsv", "parquet", "feather", "npz", "onnx", "policy", "suite", "baseline"):
        sound, _ = worker.sound_files(kind, tmp_path)
        assert worker.try_one(kind, sound, tmp_path)[:2] == ("loaded", ""), kind
        assert TARGETS[kind].file


def test_odd_files_of_a_run_are_read_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever of a run was changed: it is opened and reported on, or refused in a sentence."""
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path)
    Mirror.of(tmp_path)
    for kind in RUN_FILES:
        path = run_file(tmp_path, kind)
        assert path is not None, f"a run has no {kind}"
        sound = (tmp_path / "whole" / path.relative_to(tmp_path / "run")).read_bytes()
        for seed in range(5 if kind == "run.json" else 1):
            verdict, said, _ = worker.try_one(kind, mutated(sound, kind, seed, [b"[]"]), tmp_path)
            assert verdict in {"loaded", "refused"}, f"{kind} {seed}: {said}"
