"""Apply mutants to copies of the project, one at a time, and run the tests that must notice them."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

Verdict = Literal["killed", "survived", "timed out"]

#: The share of mutants that may survive.
MAX_SURVIVORS = 0.1
#: Seconds after which the tests of a mutant count as never ending, which is noticed too.
LONGEST = 900
#: What a copy needs, where it is there.
COPIED = ("src", "tests", "tools", "benchmarks", "pyproject.toml")
#: What is imported once for all mutants: heavy, and no part of the project.
PRELOADED = (
    "duckdb",
    "numba",
    "numpy",
    "pyarrow.parquet",
    "scipy.special",
    "sklearn.cluster",
    "sklearn.ensemble",
    "sklearn.tree",
    "tomlkit",
    "tools.mutants.survey",
)
#: Code that is compiled into kernels of other files, whose copies on disk know nothing of the change.
COMPILED = ("@inlined", "@compiled", "@merged")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: a text that a file holds exactly once, another in its place, and the tests that must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    survives: str = ""  # why it is known to survive, if it does

    @property
    def package(self) -> str:
        """The package that it changes."""
        return Path(self.file).parts[2]  # after src and the package

    def fault(self, root: Path) -> str:
        """Why it cannot be applied; an empty text where it can."""
        path = root / self.file
        if not path.is_file():
            return f"{self.file} does not exist"
        count = path.read_text(encoding="utf-8").count(self.old)
        if count != 1:
            return f"its old text stands {count} times in {self.file}, not once"
        if self.old == self.new:
            return "its old and new text are the same"
        missing = [test for test in self.tests if not (root / test.partition("::")[0]).exists()]
        return f"{missing[0]} does not exist" if missing else ""


def read_table(path: Path) -> list[Mutant]:
    """All mutants of a table; refuses two of one name."""
    with path.open("rb") as file:
        entries = tomllib.load(file)["mutant"]
    found = [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two mutants are called {twice!r} in {path.name}; give one of them another name")
    return found


def survey(root: Path, mutants: Sequence[Mutant], *, jobs: int = 2) -> Iterator[tuple[Mutant, Verdict]]:
    """Verdicts as they come. Raises where the tests fail without any mutant: then they say nothing about one."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            copies.put(_copied(root, Path(place) / str(number) / root.name))
        _check_tests(copies, mutants)
        with ThreadPoolExecutor(jobs) as pool:
            running = {pool.submit(_tried, copies, mutant): mutant for mutant in mutants}
            for done in as_completed(running):
                yield running[done], done.result()


def _copied(root: Path, place: Path) -> Path:
    """A copy that keeps the times of files, so that compiled kernels beside them stay good."""
    place.mkdir(parents=True)
    for name in (name for name in COPIED if (root / name).exists()):
        if (root / name).is_dir():
            shutil.copytree(root / name, place / name)
        else:
            shutil.copy2(root / name, place / name)
    shared = root.parent / "shared"  # development data, where there are any
    if shared.is_dir():
        (place.parent / "shared").symlink_to(shared.resolve())
    return place


def _check_tests(copies: SimpleQueue[Path], mutants: Sequence[Mutant]) -> None:
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    copy = copies.get()
    code, output = _run(copy, tests)
    copies.put(copy)
    if code != 0:
        raise RuntimeError(f"these tests fail without any mutant:\n{output[-3000:]}")


def _tried(copies: SimpleQueue[Path], mutant: Mutant) -> Verdict:
    copy = copies.get()
    path = copy / mutant.file
    before = path.read_text(encoding="utf-8")
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    try:
        path.write_text(before.replace(mutant.old, mutant.new), encoding="utf-8")
        if not any(mark in before for mark in COMPILED):
            return _verdict(mutant, *_run(copy, mutant.tests))
        with tempfile.TemporaryDirectory(prefix="kernels-") as cache:
            return _verdict(mutant, *_run(copy, mutant.tests, kernels=cache))
    finally:
        path.write_text(before, encoding="utf-8")
        os.utime(path, ns=times)
        copies.put(copy)


def _verdict(mutant: Mutant, code: int | None, output: str) -> Verdict:
    if code is None:
        return "timed out"
    # Whatever breaks while tests are imported is noticed too; that no test was found is not.
    if code not in (0, 1) and "error" not in output.lower():
        raise RuntimeError(f"{mutant.name}: pytest ended with {code}\n{output[-2000:]}")
    return "survived" if code == 0 else "killed"


def _run(copy: Path, tests: Sequence[str], *, kernels: str | None = None) -> tuple[int | None, str]:
    """The exit code of pytest (None: it did not end) and what it said, up to the first test that fails.

    Each run is a process of its own, forked from one that has imported everything heavy already: most of these tests
    take less time than the imports.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    said = copy.parent / "said.txt"
    process = context.Process(target=_run_here, args=(copy, list(tests), said, kernels))
    process.start()
    process.join(LONGEST)
    if process.is_alive():
        process.kill()
        process.join()
        return None, ""
    return process.exitcode, said.read_text(encoding="utf-8", errors="replace")


def _run_here(copy: Path, tests: list[str], said: Path, kernels: str | None) -> None:
    """In the forked process: the copy comes before the installed package, and nothing is written beside its files."""
    import pytest

    with said.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(copy)
    sys.path.insert(0, str(copy / "src"))
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    if kernels is not None:
        import numba

        os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = kernels
    code = pytest.main(["-n", "0", "-x", "-q", "-p", "no:cacheprovider", "--rootdir", str(copy), *tests])
    sys.stdout.flush()
    os._exit(int(code))
