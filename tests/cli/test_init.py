"""`fairbits init` and a ruled subject as a person would use them."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from fairbits import Network, load_subject
from fairbits.options import names_of, names_typed

from .calling import fairbits, fairbits_alone

HEADER = ["age", "job_Sales", "job_Tech", "sex", "years_employed", "hired"]
HEADER_LINE = ",".join(HEADER)


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


def test_a_column_with_a_comma_in_its_name_can_be_named(folder: Path) -> None:
    text = (folder / "people.csv").read_text().replace("sex", '"sex, or title"', 1)
    (folder / "people.csv").write_text(text)
    named = ("--model", "model.npz", "--target", "hired", "--protected", '"sex, or title", age', "--yes")
    assert 'choose from: age, job, "sex, or title"' in init(folder, *named[:5], "sex, or title", "--yes").stderr
    assert init(folder, *named).returncode == 0
    assert load_subject(folder / "subject.toml").schema.protected == ("age", "sex, or title")
    measured = fairbits("measure", "subject.toml", "--protected", '"sex, or title"', "--json", cwd=folder)
    assert json.loads(measured.stdout)["protected"] == ["sex, or title"]


def test_blanks_around_a_column_s_name_need_not_be_typed(folder: Path) -> None:
    text = (folder / "people.csv").read_text()
    (folder / "people.csv").write_text(text.replace(HEADER_LINE, HEADER_LINE.replace(",", ", "), 1))
    left_out = ("--ignore", "years_employed")
    assert init(folder, "--target", "hired", "--protected", "sex,age", *left_out, "--yes").returncode == 0
    assert init(folder, "--target", "hired", "--protected", " sexes", "--force", "--yes").returncode == 2
    written = tomllib.loads((folder / "subject.toml").read_text())
    assert written["table"]["target"] == " hired"
    assert {name for name, one in written["attributes"].items() if one.get("protected")} == {"age", " sex"}
    assert " years_employed" not in written["attributes"]


def test_no_more_rows_are_read_than_are_granted(folder: Path) -> None:
    refused = init(folder, *WHOLE, "--max-rows", "59")
    assert (refused.returncode, (folder / "subject.toml").exists()) == (2, False)
    assert "has 60 rows, and 59 are allowed; raise --max-rows if it is yours." in refused.stderr
    assert init(folder, *WHOLE, "--max-rows", "60").returncode == 0


def test_the_example_of_a_rule_can_be_taken_as_it_stands(folder: Path) -> None:
    text = (folder / "people.csv").read_text().replace("age", "age (in years)", 1)
    (folder / "people.csv").write_text(text)
    named = ("--model", "model.npz", "--target", "hired", "--protected", "age (in years)", "--yes")
    assert init(folder, *named).returncode == 0
    draft = (folder / "subject.toml").read_text()
    example = re.search(r"^#   (.*own.*)$", draft, re.MULTILINE)
    assert example is not None
    (folder / "subject.toml").write_text(draft.replace("plausible = []", f"plausible = [{example[1]}]"))
    assert len(load_subject(folder / "subject.toml").schema.plausible) == 1


def test_names_are_typed_as_they_are_read() -> None:
    names = ("sex, or title", 'a "b"', "c")
    assert names_of(names_typed(names)) == names


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
    assert subject.schema.max_twins == 1000
    again = init(folder, *WHOLE)
    assert again.returncode == 2
    assert "'subject.toml' exists; choose another --out or add --force" in again.stderr
    found = json.loads(init(folder, *WHOLE, "--json", "--force", "--max-twins", "4").stdout)
    assert found["m"] == 4


def test_a_protected_column_that_the_model_does_not_take_is_shown_as_observed(folder: Path) -> None:
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    frame = pd.read_csv(folder / "people.csv")[["age", "sex", "years_employed", "hired"]]
    frame.to_csv(folder / "people.csv", index=False)
    io.dump(LogisticRegression().fit(frame[["age", "years_employed"]], frame["hired"]), folder / "model.skops")
    stated = ("--target", "hired", "--protected", "sex,age", "--allow-inverted", "--yes")
    done = init(folder, "--model", "model.skops", *stated)
    assert done.returncode == 0, done.stderr
    assert "age (protected)" in done.stdout
    assert "sex (observed, no input)" in done.stdout
    assert 'protected = "observed"' in (folder / "subject.toml").read_text(encoding="utf-8")


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
        (["--yes", "--target", "hired", "--protected", "sex", "--output", "logitt"], "Did you mean 'logit'"),
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


def test_missing_numbers_are_left_to_the_model(folder: Path) -> None:
    (folder / "people.csv").write_text("age,sex,y\n1,F,0\n,M,1\n")
    done = init(folder, "--yes", "--target", "y", "--protected", "sex")
    assert done.returncode == 0, done.stderr
    assert 'missing = "model"' in (folder / "subject.toml").read_text()


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
    assert "Only people of plausibility 5 or more" in done.stdout
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


TWINS = ("--target", "hired", "--protected", "sex", "--yes")


@pytest.mark.parametrize(
    ("arguments", "reason", "told"),
    [
        (["--model", "none.npz"], "does not exist", 'path = "none.npz"'),
        (["--model", "model.npz", "--ignore", "age"], "takes 5 inputs", 'path = "model.npz"'),
        (["--model", "model.npz", "--score-of", "maybe"], "score_of is 'maybe'", 'score_of = "maybe"'),
        (["--model", "weights.pt"], "name the function that builds", "# factory = "),
    ],
)
def test_a_model_that_does_not_fit_leaves_a_file(folder: Path, arguments: list[str], reason: str, told: str) -> None:
    if "weights.pt" in arguments:
        torch = pytest.importorskip("torch", reason="the torch extra is not installed")
        torch.save({"0.weight": torch.zeros(1, 5)}, folder / "weights.pt")
    done = init(folder, *TWINS, *arguments)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "edit it, then: fairbits measure subject.toml" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    text = (folder / "subject.toml").read_text()
    model = " ".join(line.lstrip("# ") for line in text.partition("[model]")[2].partition("[table]")[0].splitlines())
    assert "The model does not fit yet:" in model
    assert reason in model
    assert told in text
    assert sorted(file.suffix for file in folder.iterdir() if file.name.startswith(".")) == []
    again = fairbits("measure", "subject.toml", cwd=folder)  # what is wrong stays wrong, and readable
    assert again.returncode == 2
    assert reason in again.stderr
    as_json = init(folder, *TWINS, *arguments, "--json", "--force")
    found = json.loads(as_json.stdout)
    assert reason in found["trouble"]
    assert (found["model_checked"], found["next"]) == (False, "fairbits measure subject.toml")


def single(folder: Path, sign: float) -> None:
    """A network whose one output is large for people in tech, or for all others: "hired" follows tech."""
    weights = np.array([[0.0], [-3.0], [3.0], [0.4], [0.0]]) * sign
    Network.build([weights], [np.zeros(1)], head="sigmoid").save(folder / "one.npz")


@pytest.mark.parametrize(("sign", "speaks"), [(1.0, "yes"), (-1.0, "no")])
def test_what_an_output_speaks_of_is_told_by_the_labels(folder: Path, sign: float, speaks: str) -> None:
    single(folder, sign)
    done = init(folder, *TWINS, "--model", "one.npz")
    assert done.returncode == 0, done.stderr
    assert "accuracy 100.0 %, AUC 1.000 (95 % interval" in " ".join(done.stdout.split())
    assert "Favourable when P(yes) ≥ 0.5" in done.stdout
    assert f"speaking of '{speaks}', because so its" in " ".join(done.stdout.split())
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    text = (folder / "subject.toml").read_text()
    assert f'score_of = "{speaks}"' in text
    subject = load_subject(folder / "subject.toml")
    assert subject.schema.favourable == "yes"
    assert subject.checked().quality.accuracy == 1.0
    # Whoever says the opposite is told so, and may insist.
    wrong = {"yes": "no", "no": "yes"}[speaks]
    refused = init(folder, *TWINS, "--model", "one.npz", "--force", "--score-of", wrong)
    assert refused.returncode == 2
    assert f'write score_of = "{speaks}" under [model]' in refused.stderr
    measured = fairbits("measure", "subject.toml", cwd=folder)
    assert measured.returncode == 2
    assert f'write score_of = "{speaks}" under [model]' in measured.stderr
    assert fairbits("search", "subject.toml", "--evaluations", "50", cwd=folder).returncode == 2
    assert fairbits("audit", "subject.toml", "--budget", "1s", cwd=folder).returncode == 2
    kept = init(folder, *TWINS, "--model", "one.npz", "--force", "--score-of", wrong, "--as-is")
    assert kept.returncode == 0, kept.stderr
    assert "examined as it is" in " ".join(kept.stdout.split())


def test_two_outputs_are_put_in_the_order_of_the_labels(folder: Path) -> None:
    weights = np.array([[0, 0], [-3, 3], [3, -3], [0.4, 0], [0, 0]], dtype=float)
    Network.build([weights], [np.zeros(2)]).save(folder / "two.npz")
    done = init(folder, *TWINS, "--model", "two.npz")
    assert done.returncode == 0, done.stderr
    assert 'classes = ["yes", "no"]' in (folder / "subject.toml").read_text()
    assert load_subject(folder / "subject.toml").checked().quality.accuracy == 1.0
    assert "read in the order yes, no" in " ".join(done.stdout.split())


def test_a_run_says_how_the_model_agrees_with_the_labels(folder: Path) -> None:
    single(folder, 1.0)
    init(folder, *TWINS, "--model", "one.npz")
    done = fairbits("search", "subject.toml", "--evaluations", "300", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Favourable when P(yes) ≥ 0.5" in done.stdout
    assert "accuracy 100.0 %, AUC 1.000" in " ".join(done.stdout.split())
    summary = json.loads(fairbits("search", "--resume", "run", "--json", cwd=folder).stdout)
    assert (summary["accuracy"], summary["auc"], summary["threshold"]) == (1.0, 1.0, 0.5)
    assert summary["base_rate"] == summary["favourable_rate"]
    assert summary["decision"] == "favourable when P(yes) ≥ 0.5"
    debugged = fairbits("debug", "run", "--no-layers", cwd=folder)
    assert debugged.returncode == 0, debugged.stderr
    assert "Favourable when P(yes) ≥ 0.5" in debugged.stdout
    assert json.loads(fairbits("debug", "run", "--no-layers", "--json", cwd=folder).stdout)["quality"]["accuracy"] == 1
    assert fairbits("report", "run", cwd=folder).returncode == 0
    for page in ("report.md", "report.html"):
        text = (folder / "run" / page).read_text()
        assert "Favourable when P(yes) ≥ 0.5" in text
        assert all(re.search(words, text.lower()) for words in ("accuracy", r"100\.0\s?%", "auc", r"1\.000"))
    assert json.loads((folder / "run" / "summary.json").read_text())["measure"]["accuracy"] == 1.0
    # The cut-off moves decisions, and is another subject.
    file = folder / "subject.toml"
    file.write_text(file.read_text().replace("# threshold = 0.5   a", "threshold = 0.96  # a"))
    found = json.loads(fairbits("measure", "subject.toml", "--json", cwd=folder).stdout)
    assert found["threshold"] == 0.96
    assert found["favourable_rate"] < summary["favourable_rate"]
    assert found["accuracy"] < 1
    assert found["flip_rate"] > 0
    assert found["decision"] == "favourable when P(yes) ≥ 0.96"
    changed = fairbits("report", "run", cwd=folder)
    assert changed.returncode == 2
    assert "another threshold (0.5 there, 0.96 here)" in changed.stderr


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("sex", "F", "protected attribute 'sex' has the single value 'F', so it has no twins"),
        ("hired", "", "target 'hired' has no value in any row"),
    ],
)
def test_a_column_that_says_nothing_is_refused(folder: Path, column: str, value: str, words: str) -> None:
    rows = list(csv.DictReader((folder / "people.csv").read_text().splitlines()))
    with (folder / "people.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, HEADER)
        writer.writeheader()
        writer.writerows({**row, column: value} for row in rows)
    done = init(folder, *WHOLE)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
