"""Writing: round trips, the timer, back-pressure, failures, and what --force may remove."""

from __future__ import annotations

import errno
import json
import os
import pickle
import subprocess
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbits import FairbitsError, Schema
from fairbits.errors import OptionError
from fairbits.store import Run, RunWriter, TaskWriter, WriteError, files
from fairbits.store.folder import read_records
from fairbits.store.parts import BUCKET, FIGURES, Layout
from tests.conftest import random_people
from tests.store.conftest import MANIFEST, Clock, figures, parts_of, write_run, writing


def parts_in(folder: Path) -> list[str]:
    """The last numbers of the parts' names."""
    return [path.stem.rsplit("-", 1)[1] for path in parts_of(folder)]


def test_what_is_written_is_read_again(tmp_path: Path, odd_schema: Schema, rng: np.random.Generator) -> None:
    people = write_run(tmp_path / "run", odd_schema, rng)
    run = Run.open(tmp_path / "run")
    assert (len(run), run.status, run.summary, run.damaged) == (300, "finished", {"cases": 300}, {})
    assert run.schema == odd_schema
    assert run.manifest == MANIFEST
    free = list(odd_schema.free_columns)
    assert np.array_equal(np.concatenate(list(run.codes(rows=64)))[:, free], people[:, free])
    assert run.layout.names[:2] == ("attribute_attribute_k", "attribute_k")
    assert run.layout.names[3:] == ("attribute_job", 'x"; DROP TABLE cases.y', "attribute_worst")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_batches_of_any_size_come_back_whole(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], part_rows: int, seed: int
) -> None:
    from fairbits import Attribute

    schema = Schema(
        (Attribute(name="a", kind="real", high=1), Attribute(name="p", kind="integer", high=1, protected=True))
    )
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(seed)
    given_rows, start = [], 0
    with writing(folder, schema, part_rows=part_rows) as writer:
        for number, n in enumerate(sizes):
            codes, found = random_people(rng, schema, n), figures(rng, n, start=start)
            writer.append(codes, found, np.array([f"origin {number}"] * n))
            given_rows += list(
                zip(codes[:, 0], found["k"], np.float32(found["low"]), [f"origin {number}"] * n, strict=True)
            )
            start += n
    assert writer.record.rows + writer._rows == start
    run = Run.open(folder)
    table = run.query("SELECT a, k, low, origin FROM cases ORDER BY evaluation").to_pylist()
    assert [tuple(row.values()) for row in table] == given_rows
    assert run.figures()["cases"] == start


def test_rows_are_copied(tmp_path: Path, people_schema: Schema, rng: np.random.Generator) -> None:
    people = random_people(rng, people_schema, 10)
    kept = people.copy()
    with writing(tmp_path, people_schema) as writer:
        writer.append(people, figures(rng, 10), "random")
        people[:] = 0
    assert np.array_equal(next(Run.open(tmp_path).codes())[:, [1, 2, 4]], kept[:, [1, 2, 4]])


def test_types_are_small_and_signed(odd_schema: Schema) -> None:
    types = dict(zip(Layout(odd_schema).arrow.names, map(str, Layout(odd_schema).arrow.types), strict=True))
    assert [types[name] for name in Layout(odd_schema).names] == ["int16", "int8", "int8", "double", "int32", "int64"]


def test_what_an_append_leaves_out_is_completed_from_the_codes(tmp_path: Path, people_schema: Schema, rng) -> None:
    people, found = random_people(rng, people_schema, 300), figures(rng, 300)
    del found["l1"]
    asked = []

    def complete(codes: np.ndarray) -> dict[str, np.ndarray]:
        asked.append(threading.current_thread())
        return {"l1": codes.sum(axis=1)}

    for in_step in (False, True):
        folder = tmp_path / str(in_step)
        with writing(folder, people_schema, complete=complete, in_step=in_step) as writer:
            for start in range(0, 300, 100):
                some = {
                    name: value if np.ndim(value) == 0 else value[start : start + 100] for name, value in found.items()
                }
                writer.append(people[start : start + 100], some, "random")
        stored = Run.open(folder).query("SELECT l1 FROM cases ORDER BY evaluation").column("l1").to_numpy()
        assert np.array_equal(stored, people.sum(axis=1).astype(np.float32))
    assert len(asked) == 2  # once for all appends of a part
    assert threading.current_thread() not in asked


def test_a_flush_comes_by_itself(tmp_path: Path, people_schema: Schema, rng, clock: Clock) -> None:
    with writing(tmp_path, people_schema, clock=clock) as writer:
        writer.append(random_people(rng, people_schema, 5), figures(rng, 5), "random")
        writer.checkpoint({"rounds": 1})
        clock.now += 3.9
        writer.tick()
        assert parts_in(tmp_path) == []
        assert not read_records(tmp_path)  # it would promise cases that are not there
        clock.now += 0.2
        writer.checkpoint({"rounds": 2})
        writer.flush()
        assert parts_in(tmp_path) == ["0000"]
        run = Run.open(tmp_path)
        record = run.tasks[0]
        assert (len(run), record.state, record.evaluations, run.status) == (5, {"rounds": 2}, 5, "running")


def test_a_slow_disk_slows_the_search_and_not_memory(
    tmp_path: Path, people_schema: Schema, rng, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, written = threading.Event(), []

    def slow(path: Path, batches: list, layout: Layout, *, buckets: int) -> None:
        gate.wait(10)
        written.append(path.name)

    monkeypatch.setattr("fairbits.store.writer.write_part", slow)
    RunWriter.create(tmp_path, MANIFEST, people_schema).close()
    writer = TaskWriter(tmp_path, Layout(people_schema), 0, part_rows=1)
    batch = random_people(rng, people_schema, 1), figures(rng, 1), "random"

    def search() -> None:
        for _ in range(10):
            writer.append(*batch)

    thread = threading.Thread(target=search)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()  # it waits for the disk …
    assert writer._number <= 4  # … with one part in work, two waiting, one in hand
    gate.set()
    thread.join(10)
    with writer:
        writer.flush()
    assert len(written) == len(set(written)) == 10


def break_after(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    real = os.fsync

    def failing(handle: int) -> None:
        if os.readlink(f"/proc/self/fd/{handle}").endswith("-0001.parquet.tmp"):
            raise error
        real(handle)

    monkeypatch.setattr(files.os, "fsync", failing)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks up open files in /proc")
@pytest.mark.parametrize("step", ["append", "flush", "commit"])
def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path, people_schema: Schema, rng, monkeypatch, step) -> None:
    break_after(monkeypatch, OSError(errno.ENOSPC, "No space left on device"))

    def fill() -> None:
        with writing(tmp_path, people_schema) as writer:
            writer.append(random_people(rng, people_schema, 7), figures(rng, 7), "random")
            writer.flush()
            writer.append(random_people(rng, people_schema, 5), figures(rng, 5, start=7), "random")
            writer._hand_over()
            writer._wait(0)
            if step == "append":
                writer.append(random_people(rng, people_schema, 1), figures(rng, 1), "random")
            elif step == "flush":
                writer.flush()

    with pytest.raises(WriteError, match=r"no space left .*; 7 cases are safe; free space and .*resume=True") as found:
        fill()
    assert found.value.errno == pickle.loads(pickle.dumps(found.value)).errno == errno.ENOSPC  # noqa: S301
    assert parts_in(tmp_path) == ["0000"]
    monkeypatch.undo()
    with writing(tmp_path, people_schema, resume=True) as again:
        again.append(random_people(rng, people_schema, 5), figures(rng, 5, start=7), "random")
    assert (len(Run.open(tmp_path)), Run.open(tmp_path).damaged) == (12, {})


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may mount")
def test_a_disk_that_is_really_full(tmp_path: Path, people_schema: Schema, rng) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], check=False, capture_output=True
    ).returncode:
        pytest.skip("mounting is not allowed here")
    try:

        def fill() -> None:
            with writing(disk / "run", people_schema, part_rows=1000) as writer:
                for start in range(0, 100_000, 1000):
                    writer.append(random_people(rng, people_schema, 1000), figures(rng, 1000, start=start), "random")

        with pytest.raises(FairbitsError, match="no space left"):
            fill()
        run = Run.open(disk / "run")
        assert not run.damaged
        assert len(run) >= 1000
        assert len(run) % 1000 == 0
        assert not list((disk / "run").rglob("*.tmp"))
    finally:
        subprocess.run(["umount", disk], check=True)


def test_any_other_failure_of_the_thread_surfaces(tmp_path: Path, people_schema: Schema, rng, monkeypatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr("fairbits.store.writer.write_part", broken)
    with (
        pytest.raises(FairbitsError, match=r"on fire.*no case had been written yet"),
        writing(tmp_path, people_schema) as writer,
    ):
        writer.append(random_people(rng, people_schema, 5), figures(rng, 5), "random")


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_whatever_ends_the_block_what_was_found_is_kept(tmp_path: Path, people_schema: Schema, rng, error) -> None:
    with pytest.raises(error), writing(tmp_path, people_schema) as writer:  # noqa: PT012 - the block is the point
        writer.append(random_people(rng, people_schema, 5), figures(rng, 5), "random")
        raise error
    assert len(Run.open(tmp_path)) == 5
    assert read_records(tmp_path)[0].ended is None


def test_parts_are_cut_by_the_hash_of_the_person(tmp_path: Path, people_schema: Schema, rng) -> None:
    keys = rng.integers(0, 2**63, 500).astype(np.uint64)
    with writing(tmp_path, people_schema, buckets=4) as writer:
        writer.append(random_people(rng, people_schema, 500), figures(rng, 500), "random", keys=keys)
    (part,) = parts_of(tmp_path)
    with pq.ParquetFile(part) as file:
        groups = [set(file.read_row_group(i, columns=[BUCKET])[BUCKET].to_pylist()) for i in range(4)]
        assert file.num_row_groups == 4
    assert groups == [{0}, {1}, {2}, {3}]


class TestForce:
    def test_a_run_is_replaced_only_when_told(self, tmp_path: Path, people_schema: Schema, rng) -> None:
        write_run(tmp_path, people_schema, rng)
        (tmp_path / "report.html").write_text("old")
        with pytest.raises(OptionError, match="is not empty; choose another out, or add force=True"):
            RunWriter.create(tmp_path, MANIFEST, people_schema)
        assert len(Run.open(tmp_path)) == 300
        RunWriter.create(tmp_path, MANIFEST, people_schema, force=True).finish("finished")
        assert len(Run.open(tmp_path)) == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == ["cases", "run.json", "tasks"]

    def test_everything_that_a_stage_writes_is_part_of_the_run(
        self, tmp_path: Path, people_schema: Schema, rng
    ) -> None:
        """A run that was certified, signed or judged can be replaced: no stage writes a name that is not known here."""
        import fairbits.certify.run as certified
        import fairbits.debug.records as debugged
        import fairbits.gates.outputs as judged
        import fairbits.repair.records as repaired
        import fairbits.report.manifest as signed
        from fairbits.repair.run import OTHERS
        from fairbits.repair.writers.files import COMPANION
        from fairbits.report.forms import FORMS
        from fairbits.report.sections.texts import NAME as WORDS

        names = {"certify.json", certified.RATES, judged.FILE, repaired.TABLE, repaired.DOCUMENT, "proxies.json"}
        names |= {signed.MANIFEST, signed.SIGNATURE, *signed.FORMATS, "measure.json", "repaired.onnx", "repaired.toml"}
        names |= {debugged.LAYERS, debugged.NEURONS, debugged.CASES, debugged.DOCUMENT, f"{OTHERS}/blind/repaired.npz"}
        names |= {f"{COMPANION}.pkl", f"{OTHERS}/blind/{COMPANION}.skops", WORDS, *(name for name, _ in FORMS.values())}
        write_run(tmp_path, people_schema, rng)
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("old")
        RunWriter.create(tmp_path, MANIFEST, people_schema, force=True).finish("finished")
        left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
        assert left == ["run.json"]

    @pytest.mark.parametrize(
        "foreign", ["thesis.docx", "repairs/thesis.docx", "cases/notes.txt", "cases/part-1.parquet", "more/"]
    )
    def test_foreign_files_are_never_touched(self, tmp_path: Path, people_schema: Schema, rng, foreign: str) -> None:
        write_run(tmp_path, people_schema, rng)
        path = tmp_path / foreign
        path.parent.mkdir(exist_ok=True)
        path.mkdir() if foreign.endswith("/") else path.write_text("mine")
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(OptionError, match=f"holds '{foreign.rstrip('/')}', which is not part of a run"):
            RunWriter.create(tmp_path, MANIFEST, people_schema, force=True)
        assert sorted(tmp_path.rglob("*")) == before

    def test_a_folder_that_only_looks_like_a_run(self, tmp_path: Path, people_schema: Schema) -> None:
        (tmp_path / "report.md").write_text("my own report")
        with pytest.raises(OptionError, match=r"holds 'report.md' but no run.json"):
            RunWriter.create(tmp_path, MANIFEST, people_schema, force=True)

    def test_links_are_not_followed(self, tmp_path: Path, people_schema: Schema, rng) -> None:
        write_run(tmp_path / "real", people_schema, rng)
        write_run(tmp_path / "run", people_schema, rng, parts=0)
        (tmp_path / "run" / "cases").rmdir()
        (tmp_path / "run" / "cases").symlink_to(tmp_path / "real" / "cases")
        with pytest.raises(OptionError, match="holds 'cases'"):
            RunWriter.create(tmp_path / "run", MANIFEST, people_schema, force=True)
        assert len(Run.open(tmp_path / "real")) == 300

    def test_a_run_that_is_being_written_is_left_alone(self, tmp_path: Path, people_schema: Schema) -> None:
        writer = RunWriter.create(tmp_path, MANIFEST, people_schema)
        for attempt in (
            lambda: RunWriter.create(tmp_path, MANIFEST, people_schema, force=True),
            lambda: RunWriter.resume(tmp_path, MANIFEST),
        ):
            with pytest.raises(OptionError, match="another process is writing"):
                attempt()
        writer.finish("finished")
        RunWriter.resume(tmp_path, MANIFEST).finish("finished")

    def test_places_that_cannot_be(self, tmp_path: Path, people_schema: Schema) -> None:
        (tmp_path / "file").write_text("x")
        for place, words in (("file", "is a file"), ("file/run", "cannot write to")):
            with pytest.raises(OptionError, match=words):
                RunWriter.create(tmp_path / place, MANIFEST, people_schema)
        with pytest.raises(OptionError, match="cannot write to"):
            RunWriter.create("/proc/fairbits", MANIFEST, people_schema)


def test_run_json_is_documented(tmp_path: Path, people_schema: Schema, rng) -> None:
    write_run(tmp_path, people_schema, rng)
    record = json.loads((tmp_path / "run.json").read_text())
    assert record.keys() - MANIFEST.keys() == {
        "format", "status", "created", "updated", "parts", "cases", "content", "versions", "schema", "scale",
        "made_by",
    }  # fmt: skip
    assert (record["parts"], record["cases"]) == (3, 300)
    assert set(record["versions"]) == {"python", "numpy", "numba", "fairbits"}
    assert set(FIGURES) <= set(Run.open(tmp_path).columns)
