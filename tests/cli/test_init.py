"""`fairbits init` and a ruled subject as a person would use them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from fairbits import Network, load_subject

from .calling import fairbits, fairbits_alone

HEADER = ["age", "job_Sales", "job_Tech", "sex", "years_employed", "hired"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for _ in range(60):
            age, tech = int(rng.integers(17, 90)), int(rng.integers(0, 2))
            writer.writerow([age, 1 - tech, tech, "FM"[rng.integers(0, 2)], age - 17, ["no", "yes"][tech]])
    Network.build([rng.normal(0, 0.05, (5, 2))], [np.zeros(2)]).save(tmp_path / "model.npz")
    return tmp_path


def init(folder: Path, *more: str):
    return fairbits("init", "people.csv", *more, cwd=folder)


WHOLE = ("--model", "model.npz", "--target", "hired", "--protected", "sex,age", "--yes")


def test_a_table_becomes_a_subject(folder: Path) -> None:
    done = init(folder, *WHOLE)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    for words in (
        "age (protected)",
        "12 twins each (age 6 × sex 2)",
        "from 2 columns",
        "probability of yes",
        "twins take 6 values of age",
    ):
        assert words in done.stdout
    subject = load_subject(folder / "subject.toml")
    assert subject.schema.names == ("age", "job", "sex", "years_employed")
    assert subject.schema.protected == ("age", "sex")
    assert subject.encoding.width == 5
    assert subject.schema.most_twins == 1000
    again = init(folder, *WHOLE)
    assert again.returncode == 2
    assert "'subject.toml' exists; choose another --out or add --force" in again.stderr
    found = json.loads(init(folder, *WHOLE, "--json", "--force", "--max-twins", "4").stdout)
    assert found["m"] == 4


def test_questions_are_asked_only_for_what_is_missing(folder: Path) -> None:
    done = fairbits_alone("init", "people.csv", cwd=folder, input="hired\ny\nsex\nno\n")
    assert done.returncode == 0, done.stderr
    assert "look one-hot" in done.stderr
    assert "probability of no" in done.stdout
    assert "No model was named" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--yes"], "--target is missing"),
        (["--yes", "--target", "hird", "--protected", "sex"], "Did you mean 'hired'"),
        (["--yes", "--target", "hired"], "--protected is missing"),
        (["--yes", "--target", "hired", "--protected", "sexx"], "Did you mean 'sex'"),
        (["--yes", "--target", "hired", "--protected", "sex", "--favourable", "yess"], "Did you mean 'yes'"),
        (["--yes", "--target", "hired", "--protected", "sex,age", "--max-twins", "3"], "raise --max-twins"),
        (["--yes", "--target", "hired", "--protected", "sex", "--ignore", "agee"], "Did you mean 'age'"),
        (["--yes", "--target", "hired", "--protected", "sex", "--model", "none.npz"], "none.npz' does not exist"),
        (["--yes", "--target", "hired", "--protected", "sex", "--model", "model.npz", "--ignore", "age"], "5 inputs"),
        (["--target", "hired", "--protected", "sex"], "add --yes to agree"),
    ],
)
def test_mistakes_leave_nothing_behind(folder: Path, arguments: list[str], complaint: str) -> None:
    before = sorted(folder.iterdir())
    done = init(folder, *arguments)
    assert done.returncode == 2, done.stderr
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(folder.iterdir()) == before


def test_two_columns_of_one_name_are_refused(folder: Path) -> None:
    (folder / "people.csv").write_text("age,sex,age,y\n1,F,2,0\n3,M,4,1\n")
    done = init(folder, "--yes", "--target", "y", "--protected", "sex")
    assert done.returncode == 2
    assert "the table has the column 'age' 2 times; rename all but one." in done.stderr


def test_missing_numbers_are_named(folder: Path) -> None:
    (folder / "people.csv").write_text("age,sex,y\n1,F,0\n,M,1\n")
    done = init(folder, "--yes", "--target", "y", "--protected", "sex")
    assert done.returncode == 2
    assert "numbers are missing in age (1)" in done.stderr


def test_a_ruled_subject_from_measure_to_search(folder: Path) -> None:
    init(folder, *WHOLE)
    file = folder / "subject.toml"
    text = file.read_text()
    rules = "rules = ['years_employed <= age - 16', 'age < 20 -> job != \"Tech\"']\n"
    file.write_text(text.replace("[model]", f"{rules}\n[model]", 1))
    done = fairbits("measure", file)
    assert done.returncode == 0, done.stderr
    assert "2 rules removed" in done.stdout
    found = json.loads(fairbits("measure", file, "--json").stdout)
    assert found["twins_removed"] > 0
    done = fairbits("search", file, "--evaluations", "500", "--min-plausibility", "5", "--out", folder / "run")
    assert done.returncode == 0, done.stderr
    assert "2 rules removed" in done.stdout
    assert "only people of plausibility 5 or more" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if "run" not in line) <= 80
    file.write_text(text.replace("[model]", "rules = ['age < 20 and age > 30']\n[model]", 1))
    done = fairbits("measure", file)
    assert done.returncode == 2
    assert "the rules leave no value of attribute 'age'" in done.stderr
    file.write_text(text.replace("[model]", "rules = ['agee < 20']\n[model]", 1))
    assert "Did you mean 'age'" in fairbits("measure", file).stderr


def test_a_regression_has_no_flips(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    lines = [f"{'FM'[i % 2]},{i % 9},{rng.normal():.3f}" for i in range(40)]
    (tmp_path / "t.csv").write_text("sex,hours,pay\n" + "\n".join(lines) + "\n")
    Network.build([rng.normal(size=(2, 1))], [np.zeros(1)], head="linear").save(tmp_path / "model.npz")
    done = fairbits(
        *("init", "t.csv", "--model", "model.npz", "--target", "pay", "--protected", "sex", "--yes"), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "pay: a number." in done.stdout
    measured = fairbits("measure", "subject.toml", cwd=tmp_path)
    assert measured.returncode == 0, measured.stderr
    searched = fairbits("search", "subject.toml", "--evaluations", "300", "--out", "run", cwd=tmp_path)
    assert searched.returncode == 0, searched.stderr
    for text in (measured.stdout, searched.stdout):
        assert "flips" not in text
        assert "another decision" not in text
