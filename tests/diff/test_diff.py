"""Two models whose difference is known by construction."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fairbits import Attribute, Audit, Network, Schema, Subject, Table
from fairbits.cli.app import app
from fairbits.diff import ModelDiff, PairedChange, diff_page, diff_subjects, with_model
from fairbits.diff.pairs import Shift
from fairbits.diff.run import layer_shifts
from fairbits.errors import OptionError
from fairbits.report import render_page
from fairbits.subject import make_subject
from fairbits.subject.export import export_subject

from ..browsing import launched
from ..report.test_browser import opened

ROWS = 400
SCHEMA = Schema(
    (
        Attribute(name="sex", kind="category", labels=("F", "M"), protected=True),
        Attribute(name="skill", kind="integer", low=0, high=9),
    ),
    target="hired",
    classes=("no", "yes"),
)


def people() -> Table:
    """Everybody's label follows from skill alone; half of them are women."""
    rng = np.random.default_rng(1)
    codes = np.column_stack([np.arange(ROWS) % 2, rng.integers(0, 10, ROWS)]).astype(float)
    return Table(codes, (codes[:, 1] >= 5).astype(float))


def model(penalty: float, *, hidden: float = 1.0) -> Network:
    """Decides by skill; women lose ``penalty`` points of skill."""
    first = np.array([[penalty, 0.0], [1.0, 0.0]])
    last = np.array([[0.0, 1.0], [0.0, 0.0]])
    start = np.array([20.0 - penalty, 0.0])
    return Network.build([first * hidden, last], [start * hidden, np.array([0.0, -24.5])])


def subject(penalty: float, **how: Any) -> Subject:
    return make_subject(f"penalty {penalty:g}", model(penalty, **how), SCHEMA, people())


@pytest.fixture(scope="module")
def found() -> ModelDiff:
    """From a model that does not look at sex to one that takes 2 points of skill from women."""
    return diff_subjects(subject(0), subject(2), threads=1)


def test_accuracy_is_about_held_out_rows_where_there_are_any() -> None:
    marks = np.arange(len(people())) % 4 == 0
    held = people().rows(np.flatnonzero(marks))
    sides = [subject(0), subject(2)]
    marked = diff_subjects(*(replace(one, table=replace(one.table, held_out=marks)) for one in sides), threads=1)
    tested = diff_subjects(*(replace(one, test=held) for one in sides), threads=1)
    alone = diff_subjects(*(replace(one, table=held) for one in sides), threads=1)["accuracy"]
    for found in (marked["accuracy"], tested["accuracy"]):
        assert (found.before, found.after) == (alone.before, alone.after)
        assert found.words == f"accuracy on {len(held)} held-out rows"
    assert alone.words == f"accuracy on {len(held)} rows it may have been trained on"


def test_what_was_planted_is_found(found: ModelDiff) -> None:
    table = people()
    women, skill = table.codes[:, 0] == 0, table.codes[:, 1]
    moved = women & (skill >= 5) & (skill <= 6)
    assert found.changed is not None
    assert found.changed.people == found.changed.lost == found.changed.made_wrong == moved.sum() > 20
    assert (found.changed.gained, found.changed.made_right) == (0, 0)
    flips = (skill >= 5) & (skill <= 6)
    assert (found["flip_rate"].before, found["flip_rate"].after) == (0, pytest.approx(flips.mean()))
    assert found["accuracy"].change is not None
    assert found["accuracy"].change.value == pytest.approx(-moved.mean())
    assert {name: found[name].verdict for name in ("accuracy", "flip_rate", "k_mean")} == dict.fromkeys(
        ("accuracy", "flip_rate", "k_mean"), "worse"
    )
    assert found["k_max"].before == 1
    assert found["k_max"].after == 2
    assert (found.k_rose, found.k_fell) == (round((found["split_rate"].after or 0) * ROWS), 0)


def test_groups_and_people(found: ModelDiff) -> None:
    women, men = found.groups
    assert (women.group, men.group) == ("F", "M")
    assert (men.lost, men.gained) == (0, 0)
    assert men.selection_before == men.selection_after
    assert women.lost == found.changed.people  # type: ignore[union-attr]
    assert women.selection_change is not None
    assert women.selection_change.high < 0
    assert len(found.people) == 10
    assert all(one.k_after > one.k_before for one in found.people)
    assert found.people[0].worst == "F"


def test_the_other_way_round_is_better(found: ModelDiff) -> None:
    back = diff_subjects(subject(2), subject(0), threads=1)
    assert back["flip_rate"].verdict == "better"
    assert back.people == ()
    assert back.changed is not None
    assert back.changed.gained == found.changed.lost  # type: ignore[union-attr]


def test_the_same_model_changes_nothing() -> None:
    same = diff_subjects(subject(2), subject(2), threads=1)
    assert same.same
    assert {shift.verdict for shift in same.shifts if shift.change is not None} == {"same"}
    assert same.parted is None
    assert "the same scores" in same.sentence


def test_the_layer_where_they_part() -> None:
    rng = np.random.default_rng(0)
    widths = [2, 6, 5, 4, 2]
    weights = [rng.normal(size=pair) for pair in pairwise(widths)]
    biases = [rng.normal(size=width) for width in widths[1:]]
    before = make_subject("before", Network.build(weights, biases), SCHEMA, people())
    changed = [weight.copy() for weight in weights]
    changed[2] += 0.1
    after = make_subject("after", Network.build(changed, biases), SCHEMA, people())
    found = diff_subjects(before, after, threads=1)
    assert found.parted == 3
    assert [one.distance == 0 for one in found.layers] == [True, True, False, False]
    other = make_subject("other", model(0), SCHEMA, people())
    shapes = diff_subjects(before, other, threads=1)
    assert shapes.layers == ()
    assert any("other shapes" in note for note in shapes.notes)


def test_a_layer_adds_to_the_widest_before_it() -> None:
    """What narrows and widens again adds nothing where it does not outgrow what was there before."""
    rng = np.random.default_rng(0)
    weights = [np.eye(2), 0.1 * np.eye(2), 5 * np.eye(2), rng.normal(size=(2, 2))]
    biases = [np.full(2, 5.0)] * 3 + [np.zeros(2)]
    moved = [biases[0] + 1.0, *biases[1:]]
    sides = [make_subject("side", Network.build(weights, one), SCHEMA, people()) for one in (biases, moved)]
    layers, _ = layer_shifts(*sides, people().codes)
    assert [one.distance for one in layers[:3]] == pytest.approx([1.0, 0.1, 0.5], rel=1e-4)
    assert layers[2].rise == pytest.approx(-0.5, rel=1e-4)


def test_only_who_got_worse_is_listed() -> None:
    """Two points of skill from women, then the other two: whoever is treated as before is no news."""
    found = diff_subjects(subject(0), subject(1), threads=1, top=1000)
    assert 0 < len(found.people) < ROWS
    assert all(one.k_after > one.k_before or (one.flips_after and not one.flips_before) for one in found.people)
    rises = [one.k_after - one.k_before for one in found.people]
    assert rises == sorted(rises, reverse=True)


def test_an_export_differs_by_rounding_only(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    about = subject(2)
    assert isinstance(about.model, Network)
    about.model.save(tmp_path / "model.onnx")
    found = Audit.of(about).diff(tmp_path / "model.onnx", threads=1)
    assert found.score_distance_max < 1e-5
    assert found["k_mean"].before == found["k_mean"].after
    assert found.parted is None
    assert found.b.sha256 is not None


def test_a_function_can_be_compared() -> None:
    """Scores only: no layers, the same figures."""
    about = subject(0)
    other = with_model(about, lambda rows: np.where(rows["skill"].astype(float) >= 5, 0.9, 0.1))
    found = diff_subjects(about, other, threads=1)
    assert found.layers == ()
    assert found.changed is not None
    assert found.changed.people == 0


def test_a_dear_model_is_asked_about_fewer_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever makes a score dear: the first people are timed, and it is said how many are compared."""
    monkeypatch.setattr("fairbits.diff.run.MAX_SECONDS", 0.002)
    before = subject(0)
    after = with_model(before, lambda rows: np.where(rows["skill"].astype(float) >= 6, 0.9, 0.1))
    found = diff_subjects(before, after, threads=1)
    assert 1 <= found.rows <= 256
    assert found.rows & (found.rows - 1) == 0
    assert f"{found.rows} of 400 people are compared" in found.notes[0]
    again = diff_subjects(before, after, threads=1, people=found.rows)
    assert again.shifts == found.shifts
    assert "as asked for" in again.notes[0]
    assert diff_subjects(before, after, threads=1, people=1000).rows == ROWS


def test_paired_intervals_hold() -> None:
    """The change of a rate, with people drawn anew: the interval holds the truth in about 95 of 100 samples."""
    rng = np.random.default_rng(7)
    held = 0
    from fairbits.measure import bounded_means

    for _ in range(200):
        change = rng.choice([-1.0, 0.0, 1.0], size=150, p=[0.05, 0.85, 0.10])
        one = bounded_means(change[:, None], rng, lows=-1, highs=1, resamples=300)[0]
        held += one.low <= 0.05 <= one.high
    assert held >= 186


@pytest.mark.parametrize(
    ("change", "worse", "verdict"),
    [
        (PairedChange(0.1, 0.05, 0.2, 0, 0), 1, "worse"),
        (PairedChange(0.1, 0.05, 0.2, 0, 0), -1, "better"),
        (PairedChange(-0.1, -0.2, -0.05, 0, 0), 1, "better"),
        (PairedChange(0.1, -0.01, 0.2, 0, 0), 1, "open"),
        (PairedChange(0.1, 0.0, 0.2, 0, 0), 1, "open"),
        (PairedChange(-0.1, -0.2, 0.0, 0, 0), 1, "open"),
        (PairedChange(0.1, 0.05, 0.2, 0, 0), 0, "differs"),
        (PairedChange(0.0, 0.0, 0.0, 0, 0), 1, "same"),
        (None, 1, "–"),
    ],
)
def test_verdicts(change: PairedChange | None, worse: int, verdict: str) -> None:
    assert Shift("x", "x", 1.0, 1.5, change, worse=worse).verdict == verdict


def _other(**changes: Any) -> Subject:
    return make_subject("other", model(0), replace(SCHEMA, **changes), people())


@pytest.mark.parametrize(
    ("other", "match"),
    [
        (lambda: make_subject("few", model(0), SCHEMA, people().rows(np.arange(10))), "400 people and B about 10"),
        (lambda: _other(classes=("no", "maybe"), favourable="maybe"), "classes"),
        (lambda: _other(target="fired"), "target"),
        (lambda: _other(rules=("skill >= 0",)), "rules"),
        (
            lambda: _other(attributes=(replace(SCHEMA.attributes[0], labels=("f", "m")), SCHEMA.attributes[1])),
            "'sex' has other values",
        ),
        (lambda: make_subject("x", model(0), SCHEMA, Table(people().codes[::-1].copy())), "people differ"),
    ],
    ids=["people", "classes", "target", "rules", "labels", "rows"],
)
def test_what_cannot_be_compared(other: Any, match: str) -> None:
    with pytest.raises(OptionError, match=match):
        diff_subjects(subject(0), other(), threads=1)


def ask(*words: str) -> Any:
    return CliRunner().invoke(app, ["diff", *words])


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("sides")
    for name, penalty in (("one", 0), ("two", 2)):
        export_subject(subject(penalty), folder / name)
    return folder / "one", folder / "two"


def test_the_command(folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    one, two = folders
    page = tmp_path / "diff.html"
    words = [str(one / "subject.toml"), str(two / "model.npz"), "--threads", "1", "--html", str(page)]
    done = ask(*words)
    assert done.exit_code == 0, done.output
    shown = [line for line in done.output.splitlines() if str(tmp_path) not in line and "  fairbits diff" not in line]
    assert max(map(len, shown)) <= 80
    assert "worse" in done.output
    text = page.read_text(encoding="utf-8")
    command = next(line for line in text.splitlines() if "$ fairbits diff" in line).partition("$ ")[2]
    again = CliRunner().invoke(app, [*shlex.split(command)[1:], "--json"])
    assert again.exit_code == 0, again.output
    first = json.loads(ask(*words[:2], "--json").output)
    assert json.loads(again.output)["shifts"] == first["shifts"]
    assert first["changed"]["lost"] > 0


def test_wrong_use(folders: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = (str(folder / "model.npz") for folder in folders)
    for words, match in (
        ([one, two], "add subject with a subject.toml"),  # for Python; main() reads it to the shell
        ([one, str(tmp_path / "nothing.onnx")], "nothing.onnx"),
        ([one, two, "--subject", str(folders[0] / "subject.toml"), "--html", str(tmp_path / "no" / "x.html")], "no"),
    ):
        done = ask(*words)
        assert done.exit_code != 0
        assert match in str(done.exception)
    assert ask(one, two, "--subject", str(folders[0] / "subject.toml")).exit_code == 0


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


def test_the_page_in_a_browser(browser: Any, found: ModelDiff, tmp_path: Path) -> None:
    path = tmp_path / "diff.html"
    path.write_text(render_page(diff_page(found)), encoding="utf-8")
    page, complaints = opened(browser, path.as_uri(), viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#layers .chosen th").text_content() == "1"
    assert complaints == []


def test_the_same_scores_by_another_cut_off_are_other_decisions() -> None:
    """One threshold, 0.5, would say that nothing changed."""
    low, high = (replace(subject(2), schema=replace(SCHEMA, threshold=cut)) for cut in (0.5, 0.99))
    found = diff_subjects(low, high, threads=1)
    scores = low.model.scores(low.encoding.encode(people().codes))
    lost = int(((scores >= 0.5) & (scores < 0.99)).sum())
    assert found.changed is not None
    assert (found.changed.people, found.changed.lost, found.changed.gained) == (lost, lost, 0)
    assert found.score_distance_max == 0 < lost
    assert not found.same
    assert found.sentence.startswith(f"From A to B, {lost} of 400 people")
