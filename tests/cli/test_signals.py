"""Ctrl-C and SIGTERM, from the first moment on: one line, exit 130, no traceback, and a run that can go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairbits.store import Run

from .calling import fairbits, fairbits_started

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of Unix")


#: A Python that says when our first line is reached: what comes before it (the start of Python) is not ours.
FIRST_LINE = """
import sys
from fairbits.cli import main
if __name__ == "__main__":
    print("here", flush=True)
    main()
"""


@pytest.mark.parametrize(("delay", "number"), [(0.01, signal.SIGINT), (0.1, signal.SIGTERM), (0.7, signal.SIGINT)])
def test_the_first_seconds_leave_no_traceback(delay: float, number: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "start.py"
    script.write_text(FIRST_LINE)
    started = subprocess.Popen(
        [sys.executable, str(script), "measure", "census", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert started.stdout
    assert started.stdout.readline() == "here\n"
    time.sleep(delay)
    started.send_signal(number)
    _, said = started.communicate(timeout=300)
    assert (started.returncode, said) in [(130, "fairbits: interrupted.\n"), (0, "")]


@pytest.mark.parametrize("workers", [(), ("--workers", 1)])
def test_a_search_that_was_stopped_goes_on(workers: tuple[object, ...], tmp_path: Path) -> None:
    run = tmp_path / "run"
    started = fairbits_started("search", "census", "--budget", "100s", "--out", run, *workers, cwd=tmp_path)
    deadline = time.monotonic() + 300
    while not list((run / "cases").glob("*.parquet")) and started.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(signal.SIGTERM)
    shown, said = started.communicate(timeout=300)
    assert started.returncode == 130, said
    assert "Traceback" not in said
    assert "go on with: fairbits search --resume" in " ".join(shown.split())
    assert Run.open(run).status == "interrupted"
    done = fairbits("search", "--resume", run, "--budget", "0.1s", "--json")
    assert done.returncode == 0, done.stderr


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    started = fairbits_started("search", "census", "--budget", "100s", "--out", tmp_path / "run", cwd=tmp_path)
    while not (tmp_path / "run" / "run.json").exists() and started.poll() is None:
        time.sleep(0.05)
    for _ in range(40):
        if started.poll() is not None:
            break
        started.send_signal(signal.SIGTERM)
        time.sleep(0.05)
    _, said = started.communicate(timeout=300)
    assert started.returncode in (130, -signal.SIGTERM)  # the latter where Python was ending already
    assert "Traceback" not in said


def test_who_ignores_a_signal_is_not_asked(tmp_path: Path) -> None:
    """As under nohup."""
    code = "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); sys.argv = ['fairbits', '--version'];"
    code += "from fairbits.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    code += "print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.endswith("True\n")


def test_a_signal_after_the_last_word_changes_nothing() -> None:
    """Python gives signals back to the system while it takes its modules apart, after everything is written."""
    code = """
import os, signal, sys
class Late:
    def __del__(self, kill=os.kill, me=os.getpid(), numbers=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
        for number in numbers:
            kill(me, number)
late = Late()
sys.argv = ["fairbits", "--version"]
from fairbits.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("fairbits ")
