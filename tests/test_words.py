"""Messages name flags in a shell and arguments in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairbits import sandbox
from fairbits.errors import OptionError
from fairbits.text import for_reader, for_the_shell


def test_an_error_speaks_to_its_reader() -> None:
    error = OptionError("'a--out.csv' is there; choose another --out, add --force, or leave --no-layers out.")
    assert str(error) == "'a--out.csv' is there; choose another out, add force=True, or leave inside=False out."
    with for_the_shell():
        assert "another --out, add --force, or leave --no-layers" in str(error)
    assert "--out" not in str(error).replace("a--out.csv", "")


def refused(given: str, notify: sandbox.Notify) -> None:
    """A job of a child process."""
    raise OptionError(f"{given} is a pickle; add --trust-pickle.")


def test_an_error_of_a_child_process_speaks_to_the_reader_of_its_parent() -> None:
    error = sandbox.try_out("tests.test_words:refused", "it", seconds=20, memory=1 << 30).error
    assert str(error) == "it is a pickle; add trust_pickle=True."
    with for_the_shell():
        assert str(error) == "it is a pickle; add --trust-pickle."


@pytest.mark.parametrize(
    "text",
    [
        *("a -- b", "--unknown-flag", "---out", "x--force", "--forceful", "--seed.csv", "a/--out", "the file '--seed'"),
        *("the column '--out of --k' is", 'the file "it\'s --force"', "'tables/--seed.csv' and '--budget 3'"),
    ],
)
def test_what_is_no_flag_stays(text: str) -> None:
    assert for_reader(text) == text


def test_the_command_line_speaks_flags(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairbits.cli.app import run

    (tmp_path / "mine.txt").write_text("not a run")
    monkeypatch.setattr("sys.argv", ["fairbits", "search", "census", "--budget", "1s", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 2
    assert "choose another --out, or add --force" in capsys.readouterr().err
