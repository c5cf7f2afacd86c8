"""Every example runs from a plain table to a report, and the documents show its files."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from fairbits.cli import main

ROOT = Path(__file__).resolve().parents[2]
#: What each example needs besides fairbits.
NEEDS = {
    "scikit-learn": ("pandas", "skops"),
    "pytorch": ("pandas", "torch"),
    "keras": ("pandas", "keras", "torch"),
    "onnx": ("pandas", "onnx", "onnxruntime", "skl2onnx"),
    "gradient-boosting": ("pandas", "lightgbm"),
    "endpoint": ("pandas", "httpx"),
}
#: All of these become the same kind of network, as scikit-learn's does: that one is debugged and repaired in full.
BRIEF = {"pytorch", "onnx", "keras"}
#: What takes its time on purpose.
SLOW = {"endpoint/audit.py": ("rate=200,", "rate=20_000,"), "keras/train.py": ("epochs=30", "epochs=6")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the examples; modules that are imported from it are forgotten afterwards."""
    copy = tmp_path / "examples"
    made = ("run", "subject.toml", "factory.toml", "__pycache__")  # somebody may have run them in place
    shutil.copytree(ROOT / "examples", copy, ignore=shutil.ignore_patterns(*made))
    for file, (slow, quick) in SLOW.items():
        text = (copy / file).read_text(encoding="utf-8")
        assert text.count(slow) == 1
        (copy / file).write_text(text.replace(slow, quick), encoding="utf-8")
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield copy
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def commands(script: Path) -> list[list[str]]:
    """The commands of a script, with the smallest budget."""
    text = script.read_text(encoding="utf-8").replace("\\\n", " ").replace("20s", "0.5s")
    return [words for words in (shlex.split(line, comments=True) for line in text.splitlines()) if words]


def do(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One command, in this process: starting Python twenty times would take longer than all the rest."""
    monkeypatch.setattr(sys, "argv", words[1:] if words[0] == "python" else words)
    if words[0] == "python":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what frameworks mutter while they train is theirs
            runpy.run_path(words[1], run_name="__main__")
        return
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None), words


def test_all_examples_are_listed() -> None:
    assert sorted(NEEDS) == sorted(script.parent.name for script in (ROOT / "examples").glob("*/run.sh"))


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras's own, on new NumPy
@pytest.mark.parametrize("name", NEEDS)
@pytest.mark.usefixtures("fresh_checker")
def test_an_example_runs_to_its_report(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDS[name]:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    monkeypatch.chdir(folder / name)
    monkeypatch.syspath_prepend(folder / name)
    for words in commands(Path("run.sh")):
        brief = name in BRIEF and words[:2] == ["fairbits", "audit"]
        do([*words, "--skip", "debug,repair"] if brief else words, monkeypatch)
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "bits of" in page
    assert Path("run/summary.json").exists()


def test_the_page_shows_every_file_of_the_examples() -> None:
    page = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    shown = re.findall(r"```{literalinclude} \.\./examples/(\S+)", page)
    files = [str(file.relative_to(ROOT / "examples")) for file in (ROOT / "examples").glob("*/*.[ps][yh]")]
    assert sorted(shown) == sorted(files)


def test_the_table_is_the_one_that_its_script_makes() -> None:
    made = runpy.run_path(str(ROOT / "examples" / "make_people.py"))
    lines = (ROOT / "examples" / "people.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == ",".join(made["COLUMNS"])
    assert lines[1:] == [",".join(map(str, row)) for row in made["people"]()]
