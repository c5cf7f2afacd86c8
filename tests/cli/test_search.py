"""`fairbits search` as a person would use it."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from .calling import fairbits, fairbits_started

KEYS = [
    "subject",
    "strategy",
    "partition",
    "epsilon",
    "seed",
    "threads",
    "m",
    "bits_limit",
    "seconds",
    "evaluations",
    "queries",
    "cases",
    "id_cases",
    "seeds",
    "k_initial",
    "k_final",
    "seconds_to_k_final",
    "k_max",
    "k_max_on_data",
    "k_max_within_1",
    "k_max_within_2",
    "k_max_within_3",
    "q_inf_mean_id",
    "q_1_mean_id",
    "top",
    "local_success_rate",
    "seconds_to_first_id",
    "seconds_to_1000_id",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "run"
    done = fairbits("search", "heart", "--evaluations", 5000, "--strategy", "dice", "--seed", 3, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_summary_has_the_names_that_others_build_on(run: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    assert set(KEYS) <= set(summary)
    assert summary["subject"] == "heart"
    assert summary["evaluations"] == 5000
    assert [entry["k"] for entry in summary["top"]] == sorted((e["k"] for e in summary["top"]), reverse=True)
    assert sum(entry["cases"] for entry in summary["top"]) == summary["cases"]


def test_what_the_terminal_shows(tmp_path: Path) -> None:
    done = fairbits("search", "heart", "--evaluations", 3000, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert max(len(line) for line in done.stdout.splitlines() if str(tmp_path) not in line) <= 80
    for words in (
        "bits of age and sex",
        "real rows",
        "exact",
        "lower bound",
        " 1. k",
        "fairbits cases",
    ):
        assert words in done.stdout
    assert len(done.stdout.splitlines()) <= 25
    assert done.stderr == ""


def test_a_smaller_budget_adds_nothing_and_says_so(tmp_path: Path) -> None:
    fairbits("search", "heart", "--evaluations", 600, "--out", tmp_path / "run", "--threads", 1)
    done = fairbits("search", "--resume", tmp_path / "run", "--evaluations", 200, "--threads", 1)
    assert done.returncode == 0, done.stderr
    assert "the run had used 600 evaluations before it went on" in " ".join(done.stdout.split())
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["evaluations"] == 600


def test_resume_needs_nothing_but_the_folder(run: Path) -> None:
    done = fairbits("search", "--resume", run, "--evaluations", 9000, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["evaluations"] == 9000
    assert found["strategy"] == "dice"
    assert found["seed"] == 3


MISTAKES = {
    "an unknown strategy": (["--strategy", "dyce"], "Did you mean 'dice'"),
    "an unknown partition": (["--partition", "gird"], "Did you mean 'grid'"),
    "an unknown option": (["--strategy", "dice", "--option", "local_move=3"], "Did you mean 'local_moves'"),
    "half a seed": (["--strategy", "dice", "--option", "seeds=2.5"], "is 2.5; it takes a whole number"),
    "an option without a value": (["--option", "seeds="], "is not NAME=NUMBER or NAME=WORD"),
    "a word that is no mode": (["--strategy", "aequitas", "--option", "mode=semy"], "Did you mean 'semi'"),
    "a broken option": (["--option", "seeds"], "is not NAME=NUMBER"),
    "no time": (["--budget", "0s"], "the budget of seconds is 0.0; it must be larger than 0"),
    "negative evaluations": (["--evaluations", "-5"], "the budget of evaluations is -5"),
    "no duration": (["--budget", "soon"], "'soon' is not a duration; write it like 60s, 15m or 1h"),
    "an unknown attribute": (["--protected", "sexe"], "Did you mean 'sex'"),
    "two ways at once": (["--on-data", "--strategy", "dice"], "exclude each other"),
    "too far": (["--exhaustive", "2"], "only 0 (real rows) and 1 (one change)"),
    "negative within": (["--within", "-1"], "within is -1"),
    "a negative seed": (["--seed", "-1"], "the seed is -1"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_get_one_sentence_and_leave_nothing_behind(mistake: str, tmp_path: Path) -> None:
    arguments, complaint = MISTAKES[mistake]
    done = fairbits("search", "heart", *arguments, "--out", "run", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert complaint in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_folders_are_never_overwritten(run: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious.txt").write_text("mine")
    for folder, force in ((run, []), (tmp_path / "full", []), (tmp_path / "full", ["--force"])):
        done = fairbits("search", "heart", "--evaluations", 100, "--out", folder, *force)
        assert done.returncode == 2, done.stderr
    assert (tmp_path / "full" / "precious.txt").read_text() == "mine"
    assert (run / "summary.json").exists()


def test_a_resumed_run_with_other_options_is_refused(run: Path) -> None:
    done = fairbits("search", "--resume", run, "--epsilon", "0.1")
    assert done.returncode == 2
    assert "epsilon 0.025, but 0.1 was asked for" in done.stderr
    other = fairbits("search", "german", "--resume", run)
    assert other.returncode == 2
    assert "subject heart, but german" in other.stderr


def test_only_real_rows_and_everybody_near(tmp_path: Path) -> None:
    data = json.loads(fairbits("search", "heart", "--on-data", "--out", tmp_path / "0", "--json").stdout)
    near = json.loads(fairbits("search", "heart", "--exhaustive", 1, "--out", tmp_path / "1", "--json").stdout)
    assert data["exact"] == ["k_max_on_data"]
    assert near["exact"] == ["k_max_on_data", "k_max_within_1"]
    assert data["k_max_on_data"] == near["k_max_on_data"] <= near["k_max_within_1"]


@pytest.mark.parametrize("extra", [[], ["--json"]], ids=["text", "json"])
def test_ctrl_c_ends_cleanly(extra: list[str], tmp_path: Path) -> None:
    child = fairbits_started("search", "heart", "--budget", "5m", "--out", tmp_path / "run", *extra, cwd=tmp_path)
    deadline = time.monotonic() + 300
    while not list((tmp_path / "run").glob("cases/part-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    shown, said = child.communicate(timeout=300)
    assert child.returncode == 130
    if extra:
        assert json.loads(shown)["status"] == "interrupted"
    else:
        assert "Ended early; go on with: fairbits search --resume" in shown
    assert "Traceback" not in said
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "interrupted"
