"""`fairbits measure` and friends as a person would use them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fairbits import Network, load_subject
from fairbits.subject import differences

from .calling import fairbits, fairbits_alone

TABLE = "age,job,label\n1,Sales,0\n2,Tech,1\n9,Tech,1\n"
SUBJECT = """
name = "mine"
[model]
path = "model.npz"
[table]
path = "table.csv"
target = "label"
favourable = 1
[attributes.age]
kind = "integer"
low = 1
high = 9
protected = true
[attributes.job]
kind = "category"
labels = ["Sales", "Tech"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "subject.toml").write_text(SUBJECT)
    Network.build([np.array([[0.0, 1.0], [0.0, 0.5]])], [np.array([0.0, -5.0])]).save(tmp_path / "model.npz")
    return tmp_path


def test_census_in_json(monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")  # what is imported goes to stderr
    done = fairbits_alone("measure", "census", "--json")
    assert done.returncode == 0, done.stderr
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "numba" in imported
    assert not imported & {"scipy.special", "scipy.stats", "sklearn", "pandas", "duckdb", "matplotlib", "tomlkit"}
    found = json.loads(done.stdout)
    assert found["rows"] == 32_561
    assert found["m"] == 90
    assert found["bits_limit"] == pytest.approx(5.3219, abs=1e-4)
    assert 1 <= found["k_mean"] <= found["k_max"] <= 40
    for rate in ("split_rate", "flip_rate"):
        assert 0 <= found[f"{rate}_low"] <= found[rate] <= found[f"{rate}_high"] <= 1
    assert len(found["worst"]) == 10
    assert sum(entry["people"] for entry in found["histogram"]) == 32_561


def test_the_terminal_fits_eighty_columns(folder: Path) -> None:
    done = fairbits("measure", "subject.toml", "--all", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert len(fairbits("measure", "subject.toml", cwd=folder).stdout.splitlines()) <= 25
    for words in ("mine: ", "3 people, 9 twins each (age 9)", "bits of age", " 1. k", "job Sales"):
        assert words in done.stdout
    assert done.stderr == ""


def test_threads_and_seeds_do_not_change_the_figures(folder: Path) -> None:
    results = [
        json.loads(fairbits("measure", folder / "subject.toml", "--json", "--threads", threads, "--seed", seed).stdout)
        for threads, seed in ((1, 0), (2, 0), (2, 1))
    ]
    assert results[0] == results[1]
    assert results[0]["worst"] == results[2]["worst"]


def test_other_protected_attributes(folder: Path) -> None:
    found = json.loads(fairbits("measure", folder / "subject.toml", "--protected", "job", "--json").stdout)
    assert found["m"] == 2
    assert found["protected"] == ["job"]


def change(folder: Path, old: str, new: str) -> None:
    file = folder / "subject.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


MISTAKES = {
    "an unknown subject": (lambda f: None, ["measure", "cenus"], "Did you mean 'census'"),
    "no subject file": (lambda f: None, ["measure", "nowhere.toml"], "'nowhere.toml' does not exist"),
    "no table": (lambda f: (f / "table.csv").unlink(), [], "table.csv' does not exist"),
    "an empty table": (lambda f: (f / "table.csv").write_text(""), [], "table.csv' is empty"),
    "a header only": (lambda f: (f / "table.csv").write_text("age,job,label\n"), [], "no rows"),
    "another delimiter": (
        lambda f: (f / "table.csv").write_text(TABLE.replace(",", ";")),
        [],
        "separated by semicolons: set delimiter = ';'",
    ),
    "no target": (lambda f: change(f, 'target = "label"', 'target = "lable"'), [], "Did you mean 'label'"),
    "an attribute not in the table": (
        lambda f: change(f, "[attributes.age]", "[attributes.agee]"),
        [],
        "protected attribute 'agee' is not in the table; choose from: age, job, label. Did you mean 'age'?",
    ),
    "a protected attribute not there": (
        lambda f: None,
        ["measure", "subject.toml", "--protected", "jbo"],
        "protected attribute 'jbo' is not in the table; choose from: age, job. Did you mean 'job'?",
    ),
    "values outside the domain": (
        lambda f: change(f, "high = 9", "high = 5"),
        [],
        "leaves the stated domain in age (1 of 3 rows outside 1 to 5; first: 9 in row 3, line 4 of ",
    ),
    "a missing value": (lambda f: (f / "table.csv").write_text(TABLE + ",Tech,1\n"), [], "'age' has no value in 1 of"),
    "NaN": (
        lambda f: (f / "table.csv").write_text(TABLE + "nan,Tech,1\n"),
        [],
        "'age' has no value in 1 of",
    ),
    "too many twins": (
        lambda f: change(f, "high = 9", "high = 999999"),
        [],
        "999,999 combinations (age 999999), more than 100,000; coarsen 'age'",
    ),
    "epsilon of nothing": (lambda f: None, ["measure", "subject.toml", "--epsilon", "0"], "epsilon is 0.0"),
    "a negative epsilon": (lambda f: None, ["measure", "subject.toml", "--epsilon", "-1"], "epsilon is -1.0"),
    "an unknown partition": (
        lambda f: None,
        ["measure", "subject.toml", "--partition", "grit"],
        "Did you mean 'grid'",
    ),
    "a network of another width": (
        lambda f: Network.build([np.ones((4, 2))], [np.ones(2)]).save(f / "model.npz"),
        [],
        "takes 4 inputs, but the 2 attributes make 2 as codes or 3 with one-hot categories",
    ),
    "a network for other classes": (
        lambda f: Network.build([np.ones((2, 3))], [np.ones(3)]).save(f / "model.npz"),
        [],
        "predicts 3 classes, but target 'label' is 2 classes",
    ),
    "a truncated network": (
        lambda f: (f / "model.npz").write_bytes((f / "model.npz").read_bytes()[:200]),
        [],
        "not a readable .npz file",
    ),
    "a truncated ONNX": (
        lambda f: ((f / "model.onnx").write_bytes(b"\x08\x07\x12\x04abc"), change(f, "model.npz", "model.onnx")),
        [],
        "not a readable ONNX file",
    ),
    "a pickle": (
        lambda f: ((f / "model.pkl").write_bytes(b"x"), change(f, "model.npz", "model.pkl")),
        [],
        "is a pickle, which runs code",
    ),
    "a slip in the file": (lambda f: change(f, "kind =", "kidn ="), [], "Did you mean 'kind'"),
    "not TOML": (lambda f: change(f, "[table]", "[table"), [], "is not valid TOML"),
    "no model path": (lambda f: change(f, 'path = "model.npz"', ""), [], "does not say where the model is"),
    "negative threads": (lambda f: None, ["measure", "subject.toml", "--threads", "-2"], "--threads is -2"),
    "no protected": (lambda f: change(f, "protected = true", ""), [], "no attribute is protected"),
    "nothing protected": (lambda f: None, ["measure", "subject.toml", "--protected", ","], "name at least one"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_get_one_sentence_and_exit_code_two(folder: Path, mistake: str) -> None:
    spoil, arguments, complaint = MISTAKES[mistake]
    spoil(folder)
    done = fairbits(*(arguments or ["measure", "subject.toml"]), cwd=folder)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_help_is_quick_to_read() -> None:
    done = fairbits("--help")
    assert done.returncode == 0
    for command in ("measure", "data"):
        assert command in done.stdout


def test_unknown_options_are_wrong_use() -> None:
    assert fairbits("measure", "census", "--epsilno", "1").returncode == 2
    assert fairbits_alone("mesure").returncode == 2


def test_labels_are_text_and_nothing_else(folder: Path) -> None:
    """Markup of the terminal library in a label is printed, not obeyed."""
    change(folder, '["Sales", "Tech"]', '["[bold red]Sales[/]", "<script>"]')
    (folder / "table.csv").write_text(TABLE.replace("Sales", "[bold red]Sales[/]").replace("Tech", "<script>"))
    done = fairbits("measure", "subject.toml", "--all", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "job <script>" in done.stdout
    assert "[bold red]Sales[/]" in done.stdout


def test_export_and_measure_again(tmp_path: Path) -> None:
    done = fairbits("data", "export", "heart", "--out", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    again = fairbits("measure", "here/subject.toml", "--json", cwd=tmp_path)
    built_in = fairbits("measure", "heart", "--json")
    mine, theirs = json.loads(again.stdout), json.loads(built_in.stdout)
    found = differences(
        load_subject("heart").identity.document(), load_subject(tmp_path / "here/subject.toml").identity
    )
    # The built-in one comes from no file of its own.
    assert [one.partition(" (")[0] for one in found] == ["another file or code of the model"]
    assert (len(mine["identity"]), theirs["identity"]) == (16, load_subject("heart").identity.id)
    assert mine["worst"] == theirs["worst"]
    refused = fairbits("data", "export", "heart", "--out", "here", cwd=tmp_path)
    assert refused.returncode == 2
    assert "not an empty folder" in refused.stderr


def test_the_built_in_subjects_are_listed_and_shown() -> None:
    listed = json.loads(fairbits("data", "list", "--json").stdout)
    assert {"census", "compas", "german", "meps15", "meps15-synthetic"} <= {entry["name"] for entry in listed}
    table = fairbits("data", "list").stdout
    assert all(entry["name"] in table.split() for entry in listed)  # whole, since it is there to be typed
    assert max(len(line) for line in table.splitlines()) <= 80
    shown = fairbits("data", "show", "german")
    assert shown.returncode == 0
    assert "CC BY 4.0" in shown.stdout
    assert max(len(line) for line in shown.stdout.splitlines()) <= 80
    assert fairbits("data", "show", "germany").returncode == 2


def test_data_show_gives_every_attribute_its_kind_and_range() -> None:
    """The same fields for every kind: a reader of the JSON need not guess the kind from which of them are there."""
    attributes = json.loads(fairbits("data", "show", "heart", "--json").stdout)["attributes"]
    by_name = {one["name"]: one for one in attributes}
    assert {one["kind"] for one in attributes} == {"integer", "category"}
    assert all({"low", "high", "step", "labels", "ranges", "columns", "holds"} <= set(one) for one in attributes)
    assert (by_name["sex"]["kind"], by_name["sex"]["low"], by_name["sex"]["high"]) == ("category", 0, 1)
    assert (by_name["age"]["kind"], by_name["age"]["low"], by_name["age"]["high"]) == ("integer", 1, 7)
