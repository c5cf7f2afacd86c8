"""Whatever names, labels, cells and file names hold: no command writes a control character to a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tomlkit

from fairbits import Attribute, Network, Schema
from fairbits.blocks import Facts, Paragraph
from fairbits.cli.output import SafeStream, print_json, safe_output
from fairbits.cli.terminal import Console, show
from fairbits.models.native.network import write_npz
from fairbits.subject.export import document_of_schema
from fairbits.text import harmless_lines

from .calling import Done, fairbits, fairbits_alone

COPY = "\x1b]52;c;ZXZpbA==\x07"
LABELS = (f"Ma{COPY}le", "Fe\x9b31mmale\u202e", "[/red][link=http://evil.example]x", "zero\u200bwidth\u2028")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A subject that works, and whose every word is a trick."""
    folder = tmp_path_factory.mktemp("hostile")
    schema = Schema(
        (
            Attribute(name=f"sex{COPY}", kind="category", labels=LABELS, protected=True),
            Attribute(name="job\x1b[2J\nfairbits: all is well", kind="category", labels=("a\rb", ":smile:\x1b[31m")),
            Attribute(name="hours\u2066", kind="integer", high=9),
        ),
        target="hired\x07",
        classes=("no\x1b[8m", "yes\u202e"),
    )
    network = Network.build(
        [np.array([[1.0], [0.5], [0.1]]), np.array([[-1.0, 1.0]])], [np.array([0.0]), np.array([1.5, -1.5])]
    )
    write_npz(network, folder / "model.npz")
    rng = np.random.default_rng(1)
    import pyarrow as pa
    from pyarrow import parquet

    sex, job, hours = (rng.integers(0, size, 40) for size in (4, 2, 10))
    hired = (sex + 0.5 * job + 0.1 * hours > 1.5).astype(int)  # as the model decides: the right way round
    parquet.write_table(
        pa.table(
            {
                schema.attributes[0].name: [LABELS[i].strip() for i in sex],
                schema.attributes[1].name: [schema.attributes[1].labels[i] for i in job],
                schema.attributes[2].name: hours,
                "hired\x07": [schema.classes[i] for i in hired],
            }
        ),
        folder / "table.parquet",
    )
    document = document_of_schema(schema)
    document["table"].add("path", "table.parquet")
    document.add("model", {"path": "model.npz"})
    document.add("name", f"evil{COPY}")
    (folder / "subject.toml").write_text(tomlkit.dumps(document))
    return folder


def clean(done: Done) -> Done:
    for text in (done.stdout, done.stderr):
        assert text == harmless_lines(text)
        assert "inside fairbits" not in text
        assert "\nfairbits: all is well" not in text
    return done


def test_every_command_is_clean(hostile: Path) -> None:
    run, how = hostile / "run", {"cwd": hostile}
    measured = clean(fairbits("measure", "subject.toml", "--all", **how))
    assert measured.returncode == 0, measured.stderr
    assert "evil\ufffd]52;c;ZXZpbA==\ufffd" in measured.stdout
    assert "[/red][link=http://evil.example]x" in re.sub(r"\s+", "", measured.stdout)
    found = json.loads(clean(fairbits("measure", "subject.toml", "--json", **how)).stdout)
    assert found["subject"] == f"evil{COPY}"  # JSON holds it exactly, escaped
    assert clean(fairbits("search", "subject.toml", "--evaluations", 300, "--out", run, **how)).returncode == 0
    for command in (
        ["cases", run],
        ["cases", run, "--json"],
        ["debug", run, "--all"],
        ["repair", run, "--max-accuracy-loss", 0.9],
        ["report", run],
    ):
        done = clean(fairbits(*command, **how))
        assert done.returncode == 0, done.stderr


def test_errors_are_clean(hostile: Path, tmp_path: Path) -> None:
    text = (hostile / "subject.toml").read_text()
    (tmp_path / "table.parquet").write_bytes((hostile / "table.parquet").read_bytes())
    broken = {
        "label": text.replace("zero", "other"),
        "model": text.replace("model.npz", f"no{COPY}".encode("unicode_escape").decode().replace("\\x", "\\u00")),
        "key": text + '\n["oo\\u001b[2J"]\nx = 1\n',
        "rule": 'rules = ["\\u001b]52;c;eA== > 3"]\n' + text,
        "toml": text + "\n\x1b[31m = ",
    }
    for name, document in broken.items():
        (tmp_path / f"{name}.toml").write_text(document)
        done = clean(fairbits("measure", f"{name}.toml", cwd=tmp_path))
        assert done.returncode == 2, (name, done.stderr)
        assert done.stderr.count("\n") == 1
    for arguments in (["measure", f"x{COPY}.toml"], ["cases", f"x{COPY}"], ["measure", f"--{COPY}"], [COPY]):
        assert clean(fairbits(*arguments, cwd=tmp_path)).returncode == 2


@pytest.mark.parametrize("encoding", ["ascii", "ascii:strict"])
def test_an_encoding_that_holds_little_is_not_fatal(hostile: Path, encoding: str, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    done = fairbits_alone("measure", "subject.toml", "--all", cwd=hostile)
    assert done.returncode == 0, done.stderr
    assert "log2 k" in done.stdout


def test_json_in_ascii_is_exact(hostile: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = fairbits_alone("measure", "subject.toml", "--json", cwd=hostile)
    assert json.loads(done.stdout)["subject"] == f"evil{COPY}"


TERMINAL = """
import sys
from rich.live import Live
from rich.text import Text
from fairbits.blocks import Facts
from fairbits.cli.terminal import Console
from fairbits.cli.output import safe_output
with safe_output():
    Console().print(Text("bold", style="bold red"), Text("label \\x1b]52;c;eA==\\x07\\x1b[31m\\x1b[2J", style="bold"))
    with Live(Text("live \\x1b[31m"), console=Console(stderr=True), transient=True):
        print("printed \\x1b[2J\\x1b]0;x\\x07")
    print("plain \\x1b[31m\\x1b[2J", file=sys.stderr)
"""


def test_on_a_terminal_only_our_own_colours_and_moves_remain() -> None:
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    done = subprocess.Popen([sys.executable, "-c", TERMINAL], stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while piece := os.read(leader, 65_536):
            shown += piece
    os.close(leader)
    assert done.wait() == 0
    text = shown.decode()
    assert "\x1b[1;31mbold\x1b[0m" in text  # colours are ours
    assert "\x1b]" not in text
    assert "\x1b[2J" not in text
    assert "\x1b[31m" not in text  # what the labels asked for
    assert text.count("\ufffd[31m") >= 3


def test_the_filter_is_put_on_once_and_taken_off(capsys) -> None:
    before = sys.stdout
    with safe_output(), safe_output():
        assert isinstance(sys.stdout, SafeStream)
        assert not isinstance(sys.stdout._stream, SafeStream)
        sys.stdout.writelines(["a\x1b", "\n"])
        print_json({"a": "\x1b"})
        Console().print("[bold]:smile:")
    assert sys.stdout is before
    assert capsys.readouterr().out == 'a\ufffd\n{\n  "a": "\\u001b"\n}\n[bold]:smile:\n'


def test_a_fact_that_does_not_fit_is_left_out_whole(capsys) -> None:
    """A look of 25 lines ends with a whole sentence."""
    facts = [(f"fact {i}", f"begins {i} " + "and goes on " * 8 + f"ends {i}") for i in range(20)]
    show([Facts(facts)], "next")
    said = capsys.readouterr().out
    begun, ended = ([i for i in range(20) if f"{word} {i}" in said.split("More")[0]] for word in ("begins", "ends"))
    assert begun == ended
    assert 5 < len(begun) < 20
    assert len(said.splitlines()) <= 25


def test_a_figure_and_its_unit_stay_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for letters in range(60, 80):
        show([Paragraph(f"{'x' * letters} is 42.2 % of it")])
        assert "42.2 %" in capsys.readouterr().out
