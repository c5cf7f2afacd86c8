"""Subjects whose model takes no protected attribute, or is not at hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fairbits import Audit, Network, load_subject
from fairbits.cli.app import app
from fairbits.errors import CapabilityError, FairbitsError, OptionError, SchemaError, TableError

ATTRIBUTES = """
[attributes.income]
kind = "real"
low = -10
high = 10
[attributes.zip]
kind = "integer"
low = 0
high = 1
[attributes.sex]
kind = "category"
labels = ["f", "m"]
protected = "observed"
[attributes.race]
kind = "category"
labels = ["w", "b"]
protected = "observed"
"""
TABLE = '[table]\npath = "people.csv"\ntarget = "y"\nclasses = ["0", "1"]\nfavourable = "1"\n'
MODEL = '[model]\npath = "model.npz"\n'


def _people(folder: Path, *, n: int = 1200, sexes: str = "fm") -> None:
    rng = np.random.default_rng(0)
    sex, race, income = rng.integers(0, len(sexes), n), rng.integers(0, 2, n), rng.normal(size=n)
    place = np.where(rng.random(n) < 0.1, 1 - sex % 2, sex % 2)
    score = 1 / (1 + np.exp(-(0.5 * income + 2.0 * place - 1)))
    label = (rng.random(n) < score).astype(int)
    lines = ["income,zip,sex,race,month,p,y"]
    for i in range(n):
        known = sexes[sex[i]] if i >= 50 else ""
        lines.append(f"{income[i]:.6f},{place[i]},{known},{'wb'[race[i]]},{i % 2 + 1},{score[i]:.6f},{label[i]}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    network = Network.build(
        [np.array([[0.5], [2.0]], dtype=np.float32)],
        [np.array([-1.0], dtype=np.float32)],
        activation="relu",
        head="sigmoid",
    )
    network.save(folder / "model.npz")


def _subject(folder: Path, text: str) -> Path:
    file = folder / "subject.toml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def folder(tmp_path):
    _people(tmp_path)
    return tmp_path


def test_a_model_without_protected_inputs(folder):
    audit = Audit.of(_subject(folder, MODEL + TABLE + ATTRIBUTES))
    found = audit.proxies(out=folder / "out")
    document = json.loads((folder / "out" / "proxies.json").read_text(encoding="utf-8"))
    sex, race, both = document["attributes"]
    assert sex["attribute"] == "sex"
    assert both["attribute"] == "sex × race"
    assert not any(one.taken for one in found.attributes)
    assert 0.2 < sex["bits_low"] <= sex["bits"] < 0.55  # I(A;zip) = 1 − h(0.1) = 0.53
    assert sex["direct_bits"] == 0
    assert sex["unknown"] == 50
    assert race["bits_low"] == 0
    assert sex["by_column"][0]["column"] == "zip"
    assert sex["by_column"][0]["fall_low"] > 0.1
    assert sex["usable_bits"] is None
    assert document["groups"][0]["unknown"] == 50
    measured = audit.measure()
    assert measured.evaluation.k.max() == 1


def test_score_only_subjects_tell_the_same(folder):
    text = TABLE + 'score = "p"\n' + ATTRIBUTES
    audit = Audit.of(_subject(folder, text))
    sex = audit.proxies().document()["attributes"][0]
    assert sex["bits_low"] > 0.2
    assert sex["direct_bits"] is None
    assert sex["by_column"][0]["fall"] is None
    with pytest.raises(CapabilityError, match="scores of its rows only"):
        audit.measure()


def test_all_inputs_justified_means_exactly_nothing_more(folder):
    audit = Audit.of(_subject(folder, 'justified = ["income", "zip"]\n' + MODEL + TABLE + ATTRIBUTES))
    found = audit.proxies()
    assert found.attributes[0].usable is not None
    assert found.attributes[0].usable.bits == 0
    assert any("exactly 0" in note for note in found.notes)


def test_copies_are_found_and_named(folder):
    lines = (folder / "people.csv").read_text(encoding="utf-8").splitlines()
    table = [line.split(",") for line in lines]
    for row in table[1:]:
        row[1] = {"f": "0", "m": "1"}.get(row[2], row[1])  # zip says what sex says
    (folder / "people.csv").write_text("\n".join(",".join(row) for row in table) + "\n", encoding="utf-8")
    found = Audit.of(_subject(folder, TABLE + 'score = "p"\n' + ATTRIBUTES)).proxies()
    assert found.attributes[0].copies == ("zip",)
    assert any(note.startswith("zip tells sex almost completely") for note in found.notes)
    assert found.attributes[1].copies == ()


def test_a_score_of_two_values_is_a_decision_and_says_so(folder):
    lines = (folder / "people.csv").read_text(encoding="utf-8").splitlines()
    table = [line.split(",") for line in lines]
    for row in table[1:]:
        row[5] = "1" if float(row[5]) > 0.5 else "0"
    (folder / "people.csv").write_text("\n".join(",".join(row) for row in table) + "\n", encoding="utf-8")
    found = Audit.of(_subject(folder, TABLE + 'score = "p"\n' + ATTRIBUTES)).proxies()
    assert found.attributes[0].score is not None
    assert found.attributes[0].score.low > 0.1
    assert any("two values only" in note for note in found.notes)


def test_an_audit_of_scores_speaks_of_groups_and_indirect_bits_only(folder):
    text = 'justified = ["income"]\n' + TABLE + 'score = "p"\n' + ATTRIBUTES
    shown = CliRunner().invoke(
        app, ["audit", str(_subject(folder, text)), "--by", "month", "--out", str(folder / "run"), "--json"]
    )
    assert shown.exit_code == 0, shown.output
    summary = json.loads(shown.stdout)["summary"]
    sex = summary["proxies"]["attributes"][0]
    assert sex["bits_low"] > 0.2
    assert sex["direct_bits"] is None
    assert sex["guess_pair"]["right"] > 0.7
    page = (folder / "run" / "report.html").read_text(encoding="utf-8")
    assert "Knowing the score tells 0." in page
    assert "Decided favourably, by sex: m " in page  # in plain words, below the headline
    assert "Of two people, one f and one m, the score tells which is which " in page
    assert page.index('<section id="treatment"') < page.index('<section id="impact"')
    assert "the model is not at hand" in page
    assert "Alike on the justified attributes, not in" in page  # matched people as portraits
    assert 'id="pic-periods' in page
    assert "Alike on the justified attributes, not in race" not in page  # race tells nothing: its pairs show nothing
    words = (folder / "run" / "report.md").read_text(encoding="utf-8")
    assert "### Over month" in words
    assert json.loads((folder / "run" / "proxies.json").read_text(encoding="utf-8"))["by"] == "month"


def test_periods_of_a_model_with_protected_inputs_have_bits_and_flips(folder):
    taken = ATTRIBUTES.replace(
        '[attributes.zip]\nkind = "integer"\nlow = 0\nhigh = 1\n',
        '[attributes.zip]\nkind = "integer"\nlow = 0\nhigh = 1\nprotected = true\n',
    )
    audit = Audit.of(_subject(folder, MODEL + TABLE + taken))
    found = audit.proxies(by="month").periods
    whole = audit.measure()
    assert whole.flip_rate is not None
    for period in found:
        assert period.q_inf_mean is not None
        assert period.q_inf_mean.low <= period.q_inf_mean.value <= period.q_inf_mean.high
        assert period.q_inf_max == pytest.approx(1.0)  # two twins, two classes
        assert period.flip_rate is not None
        assert period.flip_rate.low <= whole.flip_rate.value <= period.flip_rate.high
    document = found[0].document()
    assert {"q_inf_mean_low", "flip_rate_high", "selection_rate", "groups", "bits"} <= set(document)
    skip = ("search", "debug", "repair", "certify")
    audit.audit(budget="2s", by="month", epsilon=0.999, skip=skip, out=folder / "wide", threads=1)
    wide = json.loads((folder / "wide" / "proxies.json").read_text(encoding="utf-8"))["periods"]
    assert [one["q_inf_max"] for one in wide] == [0.0, 0.0]  # by the audit's own tolerance: all scores are one class


def test_over_time(folder):
    audit = Audit.of(_subject(folder, TABLE + 'score = "p"\n' + ATTRIBUTES))
    periods = audit.proxies(by="month").periods
    assert [one.period for one in periods] == ["1", "2"]
    assert all(told is not None and told.low > 0.1 for told in (one.bits[0][1] for one in periods))
    with pytest.raises(OptionError, match="not in the table"):
        audit.proxies(by="moon")


def test_scores_without_a_target_have_matched_people_and_scoring_rates(folder):
    text = 'justified = ["income"]\n[table]\npath = "people.csv"\nscore = "p"\n' + ATTRIBUTES
    found = Audit.of(_subject(folder, text)).proxies()
    sex = found.document()["attributes"][0]
    assert sex["bits_low"] > 0.2
    assert sex["matched"]["people"] > 500
    rows = [one for one in found.groups[0].groups if one.group != "(missing)"]
    assert len(rows) > 1
    assert all(one.selection_rate is None and one.scoring_ratio is not None for one in rows)
    level = Audit.of(_subject(folder, text.replace('"p"', '"month"'))).proxies()  # a score of two values
    assert level.attributes[0].matched is not None


def test_names_that_are_no_text_and_a_single_name(folder):
    audit = Audit.of(_subject(folder, TABLE + 'score = "p"\n' + ATTRIBUTES))
    assert audit.proxies(justified="income").justified == ("income",)
    with pytest.raises(SchemaError, match="justified attribute 3 is not in the schema"):
        audit.proxies(justified=[3])
    with pytest.raises(OptionError, match="names 3, which is not in the table"):
        audit.proxies(by=3)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ('justified = ["sex"]\n' + MODEL + TABLE + ATTRIBUTES, SchemaError, "protected itself"),
        ('justified = ["wage"]\n' + MODEL + TABLE + ATTRIBUTES, SchemaError, "not in the schema"),
        ("justified = 3\n" + MODEL + TABLE + ATTRIBUTES, SchemaError, "list of names"),
        (TABLE + 'score = "q"\n' + ATTRIBUTES, TableError, "not in the table"),
        (TABLE + 'score = "income"\n' + ATTRIBUTES, SchemaError, "attribute or the target"),
        (TABLE + 'score = "month"\n' + ATTRIBUTES, TableError, "outside 0 to 1"),
        (MODEL + TABLE + 'score = "p"\n' + ATTRIBUTES, SchemaError, "leave one of both out"),
        (TABLE + ATTRIBUTES, SchemaError, "where the model is"),
        (MODEL + TABLE + ATTRIBUTES.replace('"observed"', '"seen"'), SchemaError, "observed"),
    ],
)
def test_bad_input_is_one_sentence(folder, text, error, words):
    with pytest.raises(error, match=words) as caught:
        load_subject(_subject(folder, text))
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, FairbitsError)
    assert caught.value.exit_code == 2


def test_few_people_and_one_group_say_what_cannot_be_known(tmp_path):
    _people(tmp_path, n=150)
    few = Audit.of(_subject(tmp_path, TABLE + 'score = "p"\n' + ATTRIBUTES)).proxies()
    assert few.attributes[0].score is None
    assert "need 200 people" in str(few.attributes[0].reason)
    _people(tmp_path, n=600, sexes="f")
    lonely = Audit.of(_subject(tmp_path, TABLE + 'score = "p"\n' + ATTRIBUTES)).proxies()
    assert "same value of sex" in str(lonely.attributes[0].reason)


def test_the_command_line(folder):
    file = str(_subject(folder, TABLE + 'score = "p"\n' + ATTRIBUTES))
    shown = CliRunner().invoke(app, ["proxies", file])
    assert shown.exit_code == 0, shown.output
    assert "Knowing the score tells 0." in shown.output
    assert "about sex (at least 0." in shown.output
    filed = CliRunner().invoke(app, ["proxies", file, "--filing", "--in-use-since", "2026-01-01"])
    assert "impact ratio" in filed.output
    assert "distribution date of the tool  2026-01-01" in filed.output
    measured = json.loads(CliRunner().invoke(app, ["measure", file, "--json"]).output)
    assert measured["groups"][0]["attribute"] == "sex"
    assert measured["indirect"][0]["bits_low"] > 0.2
