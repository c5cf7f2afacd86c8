"""Twins that somebody else made: looked up, averaged over repetitions, measured over those that are there."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from fairbits import Audit
from fairbits.cli.app import app
from fairbits.errors import FairbitsError, OptionError, TableError
from fairbits.subject import document_of_schema

SCORES = {("f", "a"): 0.2, ("f", "b"): 0.3, ("m", "a"): 0.6, ("m", "b"): 0.61}


def frame(people: int = 12, noise: float = 0.0, repeats: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        {"id": f"p{i}", "sex": sex, "race": race, "p": score + noise * rng.normal()}
        for i in range(people)
        for (sex, race), score in SCORES.items()
        for _ in range(repeats)
    ]
    return pd.DataFrame(rows)


def twins(table: pd.DataFrame, **more: object) -> Audit:
    return Audit.from_twins(table, person="id", protected=["sex", "race"], score="p", **more)  # type: ignore[arg-type]


def test_figures_are_those_of_the_scores() -> None:
    audit = twins(frame())
    found = audit.measure()
    figures = found.summary()
    assert (figures["k_mean"], figures["k_max"], figures["people"]) == (3, 3, 12)
    assert figures["flip_rate_by"] == {"sex": 1.0, "race": 0.0}
    assert found.noise is None
    assert repr(found).startswith("<Measurement of 48 rows of 12 people × 4 twins: mean k 3.00")
    rates = {group.group: group.selection_rate.value for group in audit.groups()[0].groups}
    assert rates == {"f": 0.0, "m": 1.0}


def test_the_order_of_rows_does_not_matter() -> None:
    table = frame(noise=0.1, repeats=3)
    one, other = (twins(each).measure() for each in (table, table.sample(frac=1, random_state=1)))
    assert one.summary()["k_mean"] == other.summary()["k_mean"]


def test_people_are_measured_over_the_twins_that_are_there() -> None:
    table = frame()
    audit = twins(table[~((table.id == "p0") & (table.sex == "m"))])
    found = audit.measure()
    mine = found.table.person == audit.subject.schema["id"].labels.index("p0")
    assert found.evaluation.k[mine].tolist() == [2, 2]
    assert not found.evaluation.flips[mine].any()
    assert found.evaluation.twins is not None
    assert found.evaluation.twins[mine].tolist() == [2, 2]
    figures = found.summary()
    assert figures["flip_rate_plausible"] == figures["flip_rate"] > 0  # whoever made the twins meant them
    assert any("of 48 twins, the table lacks 2 (one person lacks some)" in note for note in audit.subject.notes)


def test_repetitions_are_averaged_and_make_the_null() -> None:
    measured = twins(frame(people=30, noise=0.1, repeats=4)).measure()
    noise = measured.noise
    assert noise is not None
    assert measured.summary()["kind"] == "statistical"
    assert (noise.repeats, noise.people) == (4, 30)
    assert noise.quantile == pytest.approx(1.96 * 0.1 * np.sqrt(2 / 4), rel=0.2)
    assert noise.null_q_inf_mean > 0.5
    assert "more rows in a table of twins" in noise.notes(0.025)[2]


def test_points_decide_from_their_threshold_only() -> None:
    table = frame().assign(p=lambda found: 300 + 400 * found.p)
    points = twins(table)
    assert points.measure().flip_rate is None
    assert any("scores from 380 to 544 are no probabilities, so nothing is decided" in n for n in points.subject.notes)
    found = twins(table, threshold=500.0).measure()
    assert found.summary()["flip_rate"] == 1
    assert found.evaluator.epsilon == pytest.approx(0.025 * 164, rel=0.01)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t[t.sex == "f"], "'sex' has the same value in every row; a table of twins needs two values"),
        (lambda t: t[t.id == "p1"], "'id' has the same value in every row; a table of twins needs two people"),
        (lambda t: t.assign(id=range(len(t))), "nobody has a twin"),
        (lambda t: t[:0], "the table of twins has no rows"),
        (lambda t: t.drop(columns="p"), "score 'p' is not in the table"),
        (lambda t: t.assign(race=None), "'race' has no value in 48 of 48 rows"),
        (lambda t: t.assign(p="high"), "'high', which is not a number"),
    ],
)
def test_what_is_wrong_is_said(change: object, words: str) -> None:
    with pytest.raises(FairbitsError, match=words):
        twins(change(frame()))  # type: ignore[operator]


def test_scores_that_single_precision_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(TableError, match=r"lie within 0\.\d+ of one another at about 1e\+09.*subtract 1e\+09 from all"):
        twins(frame().assign(p=lambda found: 1e9 + found.p))
    assert twins(frame().assign(p=1e9)).measure().summary()["k_max"] == 1


def test_a_score_that_is_protected_is_refused() -> None:
    with pytest.raises(FairbitsError, match="the column of scores, 'p', is also named as person or protected"):
        Audit.from_twins(frame(), person="id", protected=["sex", "p"], score="p")


def test_without_repetitions_no_null_is_known() -> None:
    assert any("nothing is repeated" in note for note in twins(frame()).subject.notes)
    assert not any("nothing is repeated" in note for note in twins(frame(repeats=2)).subject.notes)


def test_nothing_tells_who_by_their_ids() -> None:
    table = frame(people=200).assign(p=np.random.default_rng(3).random(800))
    assert twins(table).describe().why.startswith("No rule of up to 3 conditions")


def test_many_people_are_written_quickly(folder: Path) -> None:
    begin = time.process_time()
    document_of_schema(twins(frame(people=20_000)).subject.schema).unwrap()
    assert time.process_time() - begin < 20


def test_twins_that_differ_in_nothing_are_refused() -> None:
    with pytest.raises(FairbitsError, match="no protected column is named"):
        Audit.from_twins(frame(), person="id", protected=[], score="p")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    frame().to_csv(tmp_path / "twins.csv", index=False)
    section = 'path = "twins.csv"\nperson = "id"\nprotected = ["sex", "race"]\nscore = "p"\n'
    (tmp_path / "twins.toml").write_text(f'kind = "twins"\n[table]\n{section}')
    return tmp_path


def test_the_command_and_the_audit_file_agree(folder: Path) -> None:
    flags = ["--person", "id", "--protected", "sex,race", "--score", "p", "--json"]
    by_flags = CliRunner().invoke(app, ["measure", str(folder / "twins.csv"), *flags])
    by_file = CliRunner().invoke(app, ["measure", str(folder / "twins.toml"), "--json"])
    one, other = json.loads(by_flags.stdout), json.loads(by_file.stdout)
    assert one["k_mean"] == other["k_mean"] == 3
    assert one["identity"] == other["identity"]


def test_a_page_and_a_gate(folder: Path) -> None:
    run = CliRunner().invoke(
        app, ["audit", str(folder / "twins.toml"), "--out", str(folder / "run"), "--budget", "1s", "--json"]
    )
    assert run.exit_code == 0, run.output
    page = (folder / "run" / "report.md").read_text()
    assert "of these 48 rows of 12 people would get a different decision" in page
    near = json.loads((folder / "run" / "summary.json").read_text())["report"]["near"]
    assert [one["people"] for one in near] == ["real rows"]  # nobody else can be scored
    gate = [*("gate", str(folder / "twins.toml"), "--out", str(folder / "gate"))]
    assert CliRunner().invoke(app, gate).exit_code == 0


def test_half_of_the_flags_is_refused(folder: Path) -> None:
    found = CliRunner().invoke(app, ["measure", str(folder / "twins.csv"), "--person", "id"])
    assert isinstance(found.exception, OptionError)
    assert "the columns that say whose twin" in str(found.exception)
    flags = ["--person", "id", "--protected", "sex", "--score", "p", "--where", 'race = "a"']
    found = CliRunner().invoke(app, ["measure", str(folder / "twins.csv"), *flags])
    assert "takes neither where nor repeats" in str(found.exception)


def test_nobody_else_is_searched_for(folder: Path) -> None:
    found = CliRunner().invoke(app, ["search", str(folder / "twins.toml"), "--out", str(folder / "run")])
    assert isinstance(found.exception, OptionError)
    assert "has scores of its own people only" in str(found.exception)
    assert not (folder / "run").exists()
