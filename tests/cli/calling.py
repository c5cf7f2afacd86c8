"""`fairbits …` as it is typed: in this process, or in one of its own where starting and ending are what is tested."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairbits.cli import main

TERMINAL = {"COLUMNS": "80", "NO_COLOR": "1"}

#: `python -m fairbits`, with cases on disk ten times a second: a test that waits for some need not search for long.
EAGER = """
import signal, sys, fairbits.store.writer
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal; whoever tests in the background ignores it
fairbits.store.writer.FLUSH_SECONDS = 0.1
sys.argv[0] = "fairbits"
from fairbits.cli import main
main()
"""

Done = subprocess.CompletedProcess[str]


def fairbits(*arguments: object, cwd: Path | None = None, **environment: str) -> Done:
    """By `main`, which gives the sentences and the exit codes; a new Python for each would take longer than the rest.

    Nobody answers: what is typed is at its end, as it is in a pipe.
    """
    words = ["fairbits", *map(str, arguments)]
    shown, said = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(cwd or Path.cwd()):
        patch.setattr(sys, "argv", words)
        patch.setattr(sys, "stdin", io.StringIO())
        patch.setattr(sys, "path", list(sys.path))
        for name, value in {**TERMINAL, **environment}.items():
            patch.setenv(name, value)
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(said), pytest.raises(SystemExit) as ended:
            main()
    code = ended.value.code
    assert code is None or isinstance(code, int)
    return subprocess.CompletedProcess(words, code or 0, shown.getvalue(), said.getvalue())


def fairbits_alone(*arguments: object, cwd: Path | None = None, **more: str) -> Done:
    """In a process of its own, with what is typed into it as `input`."""
    return subprocess.run(
        [sys.executable, "-m", "fairbits", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **TERMINAL},
        timeout=120,
        check=False,
        **more,
    )


def fairbits_unread(*arguments: object, cwd: Path | None = None) -> int:
    """In a process of its own whose words nobody reads any more, as behind `2>&1 | head -1`: the exit code."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "fairbits", *map(str, arguments)]
    with os.fdopen(writer, "wb") as pipe:
        return subprocess.run(command, stdout=pipe, stderr=pipe, cwd=cwd, timeout=120, check=False).returncode


def fairbits_started(*arguments: object, cwd: Path) -> subprocess.Popen[str]:
    """In a process of its own that is at work, and writes what it finds at once."""
    return subprocess.Popen(
        [sys.executable, "-c", EAGER, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, **TERMINAL},
    )
