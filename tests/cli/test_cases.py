"""`fairbits cases`: what people see, and what the files hold."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from fairbits import Schema
from fairbits.cli.app import app
from fairbits.errors import OptionError
from tests.store.conftest import odd_schema, parts_of, write_run  # noqa: F401 - a fixture

from .calling import fairbits


@pytest.fixture
def folder(tmp_path: Path, people_schema: Schema, rng: np.random.Generator) -> Path:
    write_run(tmp_path / "run", people_schema, rng)
    return tmp_path / "run"


def ask(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["cases", *map(str, arguments)])
    if result.exception:
        raise result.exception
    return result.stdout


def test_the_terminal(folder: Path) -> None:
    shown = ask(folder, "--top", 12, "--where", "job = 'Tech'")
    assert shown.startswith("Treated most differently that fit, of 300 cases\n\n 1. k\u202f=\u202f6  2.58 bits  (")
    assert "12. k" in shown
    assert "away from a real row" in shown
    assert "job Tech, income" in shown
    assert "young" in shown
    assert max(len(line) for line in shown.splitlines() if not line.startswith("next  ")) <= 80


def test_nothing_fits(folder: Path) -> None:
    assert ask(folder, "--where", "k > 99").startswith("Of the 300 cases, none fits 'k > 99'.\n")


def test_json(folder: Path) -> None:
    found = json.loads(ask(folder, "--json"))
    assert len(found) == 20
    assert found[0]["k"] == 6
    assert found[0]["job"] in ("Sales", "Tech", "Farm", "Care")
    assert {"worst", "best", "span", "changed", "evaluation"} <= found[0].keys()


def test_files_hold_everything_that_fits(folder: Path, tmp_path: Path) -> None:
    where = ("--where", "k >= 3")
    rows = json.loads(ask(folder, "--json", "--top", 1000, *where))
    for name in ("cases.csv", "cases.parquet", "cases.json"):
        assert ask(folder, "--out", tmp_path / name, *where) == f"{len(rows)} cases in {tmp_path / name}\n"
    assert json.loads((tmp_path / "cases.json").read_text("utf-8")) == rows
    assert pq.read_table(tmp_path / "cases.parquet").to_pylist() == rows
    with (tmp_path / "cases.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert [row["job"] for row in read] == [row["job"] for row in rows]
    assert [float(row["income"]) for row in read] == [row["income"] for row in rows]  # negative ones stay numbers
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases.csv", "cases.json", "cases.parquet", "run"]


def test_a_spreadsheet_runs_nothing(tmp_path: Path, odd_schema: Schema, rng: np.random.Generator) -> None:  # noqa: F811
    write_run(tmp_path / "run", odd_schema, rng)
    ask(tmp_path / "run", "--out", tmp_path / "cases.csv")
    with (tmp_path / "cases.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert {row["Job"] for row in read} == {"'=1+1", "O'Neil", '"<script>"', "\u202eevil", "a,b\nc"}
    assert any(row["attribute_attribute_k"].startswith("-") for row in read)
    shown = ask(tmp_path / "run", "--top", 300)
    assert "\u202e" not in shown
    assert '"<script>"' in shown
    ask(tmp_path / "run", "--out", tmp_path / "cases.json")
    assert "\u202eevil" in {row["Job"] for row in json.loads((tmp_path / "cases.json").read_text("utf-8"))}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "{}/there.csv"], "exists; choose another out or add force=True"),
        (["--out", "{}/x.xlsx"], "whose ending says no format; choose from: .csv, .parquet, .json"),
        (["--out", "{}/no/x.csv"], "does not exist"),
        (["--top", "0"], "top is 0"),
        (["--where", "jbo = 1"], "Did you mean 'job'"),
        (["--where", "1=1) UNION SELECT * FROM read_csv('/etc/passwd'"], "more than one condition|not valid SQL"),
    ],
)
def test_slips(folder: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "there.csv").write_text("mine")
    with pytest.raises(OptionError, match=words):
        ask(folder, *(argument.format(tmp_path) for argument in arguments))
    assert (tmp_path / "there.csv").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"run", "there.csv"}


def test_a_filter_that_fails_leaves_no_file(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError):
        ask(folder, "--out", tmp_path / "x.csv", "--where", "job::INTEGER = 1")
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_force_replaces(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("old")
    ask(folder, "--out", tmp_path / "there.csv", "--force", "--top", 2)
    assert len((tmp_path / "there.csv").read_text().splitlines()) == 3


def test_damage_goes_to_stderr_and_wrong_use_ends_with_2(folder: Path) -> None:
    part = parts_of(folder)[1]
    part.write_bytes(b"")
    result = fairbits("cases", folder, "--json")
    assert result.returncode == 0
    assert len(json.loads(result.stdout)) == 20
    words = "it is empty; the others are usable, and search --resume finds its cases again."
    assert result.stderr == f"fairbits: part {part.name!r} was skipped: {words}\n"
    result = fairbits("cases", folder, "--json", "--where", "k >")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert not result.stdout
