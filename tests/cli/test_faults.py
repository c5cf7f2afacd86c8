"""Full and read-only devices, too little memory, runs that vanish: one sentence each, and nothing is called safe."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from fairbits import Schema
from fairbits.cli.app import sentence_of
from fairbits.cli.signals import FAILED
from fairbits.errors import FairbitsError, OptionError, TableError
from fairbits.gates import EXIT_CODES
from fairbits.scale import ExecutorOptions
from fairbits.store import Run, RunWriter, TaskWriter, write_whole
from fairbits.store import folder as places
from fairbits.store.parts import Layout
from tests.scale.work import planted_search
from tests.store.conftest import MANIFEST, figures, write_run

from ..conftest import random_people
from .calling import fairbits, fairbits_unread


@pytest.fixture
def run(tmp_path: Path, people_schema: Schema, rng: np.random.Generator) -> Path:
    write_run(tmp_path / "run", people_schema, rng)
    return tmp_path / "run"


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 kB."""
    place = tmp_path / "device"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)]
    if sys.platform != "linux" or os.getuid() != 0 or subprocess.run(command, check=False).returncode:
        pytest.skip("a small disk can be made only by root, on Linux, where mounting is allowed")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=f"{str(tmp_path)!r} is a folder; name a file"):
        write_whole(tmp_path, b"")
    assert list(tmp_path.parent.glob("*.tmp")) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["diff", "german"], "Missing argument 'B'. See: fairbits diff -h"),
        (["measure", "german", "--thread", "2"], r"No such option '?--thread'?.*See: fairbits measure -h"),
        (["plan", "--rows", "few"], "Invalid value for '--rows': .* See: fairbits plan -h"),
        (["search", "--resume"], "Option '--resume' requires an argument. See: fairbits search -h"),
        (["--frob"], r"No such option '?--frob'?\.? See: fairbits -h"),
    ],
)
def test_wrong_words_get_one_line_that_says_where_help_is(words: list[str], sentence: str) -> None:
    done = fairbits(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(f"fairbits: {sentence}\n", done.stderr)


@pytest.mark.parametrize("name", ["cases.csv", "cases.parquet", "cases.json"])
def test_an_export_to_a_full_device(run: Path, device: Path, name: str) -> None:
    (device / "filler").write_bytes(b"x" * 12_288)
    done = fairbits("cases", run, "--out", device / name)
    assert done.returncode == 4
    assert done.stderr == (
        f"fairbits: cannot write {str(device / name)!r}: No space left on device; nothing was changed: free space, or "
        f"choose another --out.\n"
    )
    assert os.listdir(device) == ["filler"]


@pytest.mark.parametrize("name", ["cases.csv", "cases.parquet", "cases.json"])
def test_an_export_to_a_read_only_device(run: Path, device: Path, name: str) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(device)], check=True)
    done = fairbits("cases", run, "--out", device / name)
    assert done.returncode == 4
    assert "Read-only file system; nothing was changed" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is a thing of Linux")
@pytest.mark.parametrize("arguments", [["cases", "RUN", "--json"], ["cases", "RUN"], ["--help"]])
def test_output_that_cannot_be_written(run: Path, arguments: list[str]) -> None:
    words = [str(run) if word == "RUN" else word for word in arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fairbits", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 4
    assert done.stderr == "fairbits: cannot write the output: No space left on device; nothing else was lost.\n"


@pytest.mark.parametrize(
    "words", [["data", "list"], ["data", "list", "--json"], ["cases", "RUN", "--all"], ["repair", "-h"], ["--version"]]
)
@pytest.mark.parametrize("also", ["", "2>&1"])
def test_a_reader_that_has_seen_enough(run: Path, words: list[str], also: str) -> None:
    """`fairbits … | head -c 1` ends quietly, and is no failure."""
    typed = shlex.join([str(run) if word == "RUN" else word for word in words])
    command = f"set -o pipefail; {shlex.quote(sys.executable)} -m fairbits {typed} {also} | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout), done.stderr) == (0, 1, "")


def test_a_search_goes_on_though_nobody_reads(tmp_path: Path) -> None:
    words = ["--evaluations", "200", "--strategy", "random", "--out", tmp_path / "run"]
    assert fairbits_unread("search", "german", *words) == 0
    assert Run.open(tmp_path / "run").status == "finished"


def array_memory_error() -> BaseException:
    try:
        np.empty(2**50)
    except MemoryError as error:
        return error
    raise AssertionError


def duckdb_memory_error() -> BaseException:
    with duckdb.connect(config={"memory_limit": "1MB", "max_temp_directory_size": "0KB"}) as connection:
        try:
            connection.execute("SELECT list(i || repeat('x', 999)) FROM range(1000000) t(i)").fetchall()
        except duckdb.Error as error:
            return error
    raise AssertionError


def about_a_file(error: BaseException) -> BaseException:
    try:
        try:
            raise error
        except type(error):
            raise TableError("cannot read the table 'people.csv'; remove it.") from None
    except TableError as found:
        return found


def behind(error: BaseException) -> BaseException:
    outer = RuntimeError("the pool broke")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        array_memory_error(),
        pa.ArrowMemoryError("malloc of size 99 failed"),
        duckdb_memory_error(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried to …"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("can't start new thread"),
        ImportError("libx.so: failed to map segment from shared object: Cannot allocate memory"),
        behind(MemoryError()),
        pa.lib.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
        about_a_file(pa.lib.ArrowException("Unknown error: Failed to launch worker thread")),
        about_a_file(OSError(errno.ENOMEM, "Cannot allocate memory")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_too_little_memory_says_so(error: BaseException) -> None:
    said, code = sentence_of(error)
    assert said.startswith("there is not enough memory (")
    assert code == 4


@pytest.mark.parametrize("error", [FairbitsError("no"), KeyError("x"), OSError(errno.EIO, "no")])
@pytest.mark.parametrize("traceback", [False, True])
def test_a_failure_is_no_verdict(error: Exception, traceback: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline that allows "inconclusive" (3) must not allow a full disk, nor call a bug of ours "fail" (1)."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("fairbits.cli.app.app.invoke", fail)
    if traceback:
        monkeypatch.setenv("FAIRBITS_TRACEBACK", "1")
    done = fairbits("measure", "census")
    assert done.returncode == FAILED
    assert ("Traceback" in done.stderr) is (traceback and not isinstance(error, FairbitsError))
    assert FAILED not in EXIT_CODES.values()


def test_a_file_that_asks_for_too_much_is_to_blame_itself() -> None:
    said, code = sentence_of(about_a_file(MemoryError("malloc of size 1152921504606846976 failed")))
    assert said.startswith("cannot read the table 'people.csv'")
    assert code == 2


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/x/y"), "no space is left on the device ('/x/y': No space"),
        (PermissionError(errno.EACCES, "Permission denied", "a\x1bb"), r"it is not allowed ('a\\x1bb': Permission"),
        (OSError(errno.EMFILE, "Too many open files"), "too many files are open (Too many"),
        (OSError(errno.EIO, "Input/output error"), "a file could not be used (Input/output error)"),
        (RecursionError("maximum"), "nested too deeply"),
        (KeyError("x\x1b\n"), "something went wrong inside fairbits (KeyError: 'x"),
    ],
)
def test_other_faults(error: BaseException, words: str) -> None:
    said, _ = sentence_of(error)
    assert words.replace("\\\\", "\\") in said
    assert "\x1b" not in said
    assert said.endswith(".")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux keeps them")
def test_with_hardly_any_memory(run: Path) -> None:
    code = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (260_000_000, 260_000_000));"
    code += f"sys.argv = ['fairbits', 'cases', {str(run)!r}]; from fairbits.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100)
    assert "Traceback" not in done.stderr
    assert done.returncode == FAILED  # so little is never enough: even the libraries do not fit
    assert "not enough memory" in done.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_a_sharded_run_that_is_removed_is_noticed_at_once(workers: int, tmp_path: Path) -> None:
    folder, gone = tmp_path / "run", 0.0

    def remove(*_: object) -> None:
        nonlocal gone
        if not gone and (folder / "run.json").exists():
            shutil.rmtree(folder)
            gone = time.monotonic()

    with pytest.raises(FairbitsError, match="was removed or moved while it was being written") as found:
        planted_search(folder, ExecutorOptions(workers=workers), watch=remove, budget=_much())
    assert time.monotonic() - gone < 30  # far less, on a machine with nothing else to do
    assert "safe" not in str(found.value)
    assert not folder.exists()


def _much() -> object:
    from fairbits.search import Budget

    return Budget(evaluations=2_000_000)


def test_a_plain_run_that_is_removed_is_not_called_safe(tmp_path: Path, people_schema: Schema, rng) -> None:
    run = RunWriter.create(tmp_path / "run", MANIFEST, people_schema)
    with TaskWriter(run.folder, Layout(people_schema), 0) as writer:
        writer.append(random_people(rng, people_schema, 5), figures(rng, 5), "random")
        writer.flush()
        shutil.rmtree(tmp_path / "run")
        writer.append(random_people(rng, people_schema, 5), figures(rng, 5, start=5), "random")
        with pytest.raises(FairbitsError, match="was removed or moved") as found:
            writer.flush()
    assert "safe" not in str(found.value)
    run.close()


HOLDER = """
import sys, time
from pathlib import Path
from fairbits.store.folder import lock
held = lock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_one_writer_at_a_time_across_processes(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(OptionError, match="another process is writing the run"):
        places.lock(tmp_path)
    holder.kill()
    holder.wait()
    assert holder.stdin
    holder.stdin.close()
    holder.stdout.close()
    release = places.lock(tmp_path)  # a dead holder holds nothing, whatever it left behind
    with pytest.raises(OptionError, match="another process"):
        places.lock(tmp_path)
    thread = threading.Thread(target=release)  # by whichever thread
    thread.start()
    thread.join()
    assert not list(tmp_path.iterdir())
    places.lock(tmp_path)()


def test_a_lock_that_was_left_over_is_in_nobodys_way(tmp_path: Path, people_schema: Schema, rng) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / places.LOCK).touch()
    (tmp_path / "run" / "run.json.tmp").write_bytes(b"half")  # and so is a start that was killed
    write_run(tmp_path / "run", people_schema, rng)
    assert len(Run.open(tmp_path / "run")) == 300
    done = fairbits("cases", tmp_path / "run", "--json", "--where", "k > 1", "--time-limit", "x")
    assert done.returncode == 2
