"""Rows of the same people are no independent evidence: intervals, splits and tests draw people."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.chances import repeated
from fairbits import Audit, load_subject
from fairbits.diff.pairs import impact, impact_change, rate_change
from fairbits.domain import Attribute, Schema, Table, one_row_each, people_notes, people_of
from fairbits.errors import FairbitsError, TableError
from fairbits.measure import Grouping, bounded_means, documents_of, rate_bound, rate_of, student_mean, wilson
from fairbits.proxies import study_subject
from fairbits.subject.quality import area_under_curve, rank_correlation, variance_explained
from tests.gates.planted import write_subject

SEX = Attribute(name="sex", kind="category", labels=("f", "m"), protected=True)
SCHEMA = Schema((SEX, Attribute(name="income", kind="integer", low=0, high=9999)))


def table_of(sex: list[int], income: list[int], person: list[int] | None = None) -> Table:
    codes = np.column_stack([sex, income]).astype(np.float64)
    return Table(codes, person=None if person is None else np.array(person))


def test_an_id_says_whose_rows_are() -> None:
    given = table_of([0, 0, 1, 1], [1, 2, 3, 4], [7, 7, 3, 9])
    assert people_of(SCHEMA, given).tolist() == [1, 1, 0, 2]
    assert "4 rows of 3 people" in people_notes(SCHEMA, given)[0]
    assert people_of(SCHEMA, table_of([0, 1], [1, 1], [1, 2])) is None


def test_exact_repeats_are_noticed_and_taken_for_one_person() -> None:
    rows = list(range(50)) * 2
    given = table_of([i % 2 for i in rows], rows)
    assert len({*zip(people_of(SCHEMA, given), rows, strict=True)}) == 50  # a number for each income
    assert "100 of 100 rows repeat" in people_notes(SCHEMA, given)[0]
    # Both sexes have the same income: they are evidently different people, who are alike.
    mixed = table_of([0] * 50 + [1] * 50, rows)
    assert people_of(SCHEMA, mixed) is None
    assert "different people" in people_notes(SCHEMA, mixed)[0]


def test_few_repeats_are_left_alone() -> None:
    rows = [*range(1000), *range(5)]
    given = table_of([0] * 1005, rows)
    assert people_of(SCHEMA, given) is None
    assert people_notes(SCHEMA, given) == ()


def test_one_row_each_is_drawn_by_lot() -> None:
    people = np.repeat(np.arange(40), 3)
    drawn = [one_row_each(people, 120, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert np.array_equal(people[drawn[0]], np.arange(40))
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_intervals_of_repeated_rows_are_those_of_the_people() -> None:
    """Twelve copies of everybody say what everybody says once."""
    rng = np.random.default_rng(0)
    hits, values = rng.random(300) < 0.3, rng.random(300)
    people = np.repeat(np.arange(300), 12)
    once, copied = wilson(int(hits.sum()), 300), rate_of(np.repeat(hits, 12), people=people)
    assert (copied.value, copied.low, copied.high) == pytest.approx((once.value, once.low, once.high), abs=2e-3)
    assert rate_of(np.repeat(hits, 12)).high - once.value < 0.5 * (once.high - once.value)
    for interval in (
        lambda v, p: bounded_means(v[:, None], np.random.default_rng(1), lows=0, highs=1, people=p)[0],
        lambda v, p: student_mean(v, people=p),
    ):
        once, copied = interval(values, None), interval(np.repeat(values, 12), people)
        assert (copied.value, copied.low, copied.high) == pytest.approx((once.value, once.low, once.high), abs=2e-3)


def test_intervals_hold_where_people_have_different_numbers_of_rows() -> None:
    held = {"rate": 0, "mean": 0, "student": 0}
    worlds = 150
    for seed in range(worlds):
        rng = np.random.default_rng([seed, 8])
        people = np.repeat(np.arange(150), rng.integers(1, 12, 150))
        own = rng.beta(1, 2, 150)
        hits = rng.random(len(people)) < own[people]
        found = {
            "rate": rate_of(hits, people=people),
            "mean": bounded_means(hits[:, None] * 1.0, rng, lows=0, highs=1, people=people, resamples=400)[0],
            "student": student_mean(hits * 1.0, people=people),
        }
        for name, one in found.items():
            held[name] += one.low <= 1 / 3 <= one.high
    assert min(held.values()) >= 0.91 * worlds
    assert held["rate"] < worlds


def test_few_hit_people_leave_a_wide_interval() -> None:
    hits, people = np.zeros(1200, dtype=bool), np.repeat(np.arange(100), 12)
    assert rate_of(hits, people=people).high == pytest.approx(wilson(0, 100).high)
    hits[:12] = True  # one person in a hundred
    assert rate_of(hits, people=people).low == pytest.approx(wilson(1, 100).low, abs=1e-3)


@pytest.mark.parametrize(("named", "wobble"), [(True, 0.0), (True, 0.05), (False, 0.0)])
def test_no_bits_are_claimed_where_people_repeat(named: bool, wobble: float) -> None:
    """Truth 0; rows as independent claimed bits in 100 % of draws."""
    claimed = [
        study_subject(repeated(seed, people=400, named=named, wobble=wobble), seed=seed, columns=False).attributes[0]
        for seed in range(20)
    ]
    assert sum(one.score.low > 0 for one in claimed) <= 1
    assert {one.score.people for one in claimed} == {400}


def test_a_subject_file_names_the_column_of_people(tmp_path: Path) -> None:
    file = write_subject(tmp_path, 200.0, rows=300)
    lines = (tmp_path / "table.csv").read_text().splitlines()
    rows = [f"{line},p{i // 3}" for i, line in enumerate(lines[1:])]
    (tmp_path / "table.csv").write_text("\n".join([lines[0] + ",id", *rows]) + "\n")
    plain = Audit.of(file).measure()
    file.write_text(file.read_text().replace('target = "paid"', 'target = "paid"\nperson = "id"'))
    audit = Audit.of(file)
    assert len(np.unique(audit.subject.table.person)) == 100
    found = audit.measure()
    assert (found.summary()["rows"], found.summary()["people"]) == (300, 100)
    assert any("300 rows of 100 people" in note for note in audit.subject.notes)
    assert found.flip_rate.value == plain.flip_rate.value
    assert found.bound()["rate"] > plain.bound()["rate"]
    file.write_text(file.read_text().replace('"id"', '"ids"'))
    with pytest.raises(FairbitsError, match="person 'ids' is not in the table"):
        load_subject(str(file))


def test_from_table_takes_the_column_of_people() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.integers(0, 1000, 240), "age": rng.integers(20, 60, 240)})
    frame["paid"] = (frame.income + 5 * frame.age + rng.normal(0, 200, 240) > 700).astype(int)
    model = LogisticRegression(max_iter=1000).fit(frame[["income", "age"]], frame.paid)
    frame["who"] = np.repeat(np.arange(60), 4)
    audit = Audit.from_table(model, frame, target="paid", protected="age", person="who")
    assert "who" not in audit.subject.schema.names
    assert audit.measure().persons == 60


def test_weighted_intervals_hold() -> None:
    """Half of the people are drawn four times as often, and weigh a quarter; by person where rows repeat."""
    held, worlds, kinds = {"rate": 0, "mean": 0, "student": 0}, 150, ("rate", "mean", "student")
    unweighted = 0
    for seed in range(worlds):
        rng = np.random.default_rng([seed, 9])
        often = rng.random(300) < 0.8
        people = np.repeat(np.arange(300), rng.integers(1, 5, 300))
        own = np.where(often, 0.5, 0.1)  # in the population 0.3, as both kinds are equally many
        hits = rng.random(len(people)) < own[people]
        drawn = {"people": people, "weight": np.where(often, 1.0, 4.0)[people]}
        found = (
            rate_of(hits, **drawn),
            bounded_means(hits[:, None] * 1.0, rng, lows=0, highs=1, resamples=400, **drawn)[0],
            student_mean(hits * 1.0, **drawn),
        )
        for name, one in zip(kinds, found, strict=True):
            held[name] += one.low <= 0.3 <= one.high
        unweighted += rate_of(hits, people=people).low <= 0.3
    assert min(held.values()) >= 0.91 * worlds
    assert unweighted < 0.05 * worlds


#: Figures of ``measure --json`` that count rows, or tell how sure others are: copies of rows would change them.
COUNTED = {"rows", "people", "effective_rows", "twins_removed", "quality_rows", "accuracy_rows"}


def assert_alike(one: object, other: object, path: str = "") -> None:
    """The same figures; ends of intervals, and what counts rows, may differ."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for name in one.keys() - COUNTED:
            if not name.endswith(("low", "high")) and name not in ("extreme", "why"):
                assert_alike(one[name], other[name], f"{path}.{name}")
    elif isinstance(one, list | tuple):
        for i, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            assert_alike(mine, theirs, f"{path}[{i}]")
    else:
        assert one == (pytest.approx(other) if isinstance(one, float) else other), path


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_weights_whose_squares_no_double_holds_are_refused(scale: float) -> None:
    frame = pd.DataFrame({"sex": ["f", "m"] * 20, "y": [0, 1, 1, 0] * 10, "w": np.arange(1, 41) * scale})
    with pytest.raises(TableError, match=r"weight 'w' goes up to 4e.*divide all weights"):
        Audit.from_table(lambda rows: rows.sex == "m", frame, target="y", protected=["sex"], weight="w")


@pytest.mark.parametrize("seed", range(3))
def test_a_row_of_weight_three_counts_as_three_rows_in_every_figure(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 300), "race": rng.choice(["a", "b", "c"], 300)})
    frame["income"] = rng.integers(0, 5000, 300)
    frame["paid"] = np.where(frame.income + 900 * (frame.sex == "m") + rng.normal(0, 900, 300) > 2500, "yes", "no")
    frame["share"] = rng.choice([1, 2, 5], 300)

    def score(people: pd.DataFrame) -> np.ndarray:
        push = 600 * (people.sex == "m") + 200 * (people.race == "b")
        return 1 / (1 + np.exp(-(people.income + push - 2700).to_numpy(float) / 600))

    about = {"target": "paid", "protected": ["sex", "race"], "favourable": "yes", "input_format": "frame"}
    once = Audit.from_table(score, frame, weight="share", **about)
    copies = frame.loc[np.repeat(frame.index, frame.share)].assign(who=range(frame.share.sum()))  # each somebody else
    rows = Audit.from_table(score, copies, ignored=["share"], person="who", **about)
    weighted, copied = once.measure(), rows.measure()
    assert_alike(weighted.summary(), copied.summary())
    assert_alike(once.subject.quality.figures(), rows.subject.quality.figures())
    assert once.subject.quality.auc != pytest.approx(Audit.from_table(score, frame, **about).subject.quality.auc)
    assert [asdict(one) for one in weighted.stakes()] == [pytest.approx(asdict(one)) for one in copied.stakes()]
    for one, other in zip(documents_of(once.groups()), documents_of(rows.groups()), strict=True):
        for table in (one, other):
            for row in table["groups"]:
                del row["small"]  # by people, whom copies do not add to
                row["median_score"] = table["median_score"]
        assert_alike(one["groups"], other["groups"])
    assert weighted.summary()["effective_rows"] == pytest.approx(frame.share.sum() ** 2 / (frame.share**2).sum())
    assert weighted.bound()["rate"] > rate_bound(300)
    assert weighted.flip_rate.high - weighted.flip_rate.low > copied.flip_rate.high - copied.flip_rate.low - 1e-9
    assert any("effective sample size" in note for note in once.subject.notes)
    assert once.subject.identity.id != Audit.from_table(score, frame, ignored=["share"], **about).subject.identity.id
    with pytest.raises(FairbitsError, match="weight 'share' is -1 in row 1"):
        Audit.from_table(score, frame.assign(share=-1), weight="share", **about)


def test_weighted_regressions_and_areas_are_those_of_copies() -> None:
    rng = np.random.default_rng(3)
    truth, weight = rng.normal(size=200), rng.choice([1.0, 2.0, 4.0], 200)
    scores, copies = np.round(truth + rng.normal(size=200), 1), np.repeat(np.arange(200), weight.astype(int))
    for figure in (variance_explained, rank_correlation):
        assert figure(scores, truth, weight) == pytest.approx(figure(scores[copies], truth[copies]))
    area = area_under_curve(scores, truth > 0, weight=weight)
    assert area[0] == pytest.approx(area_under_curve(scores[copies], truth[copies] > 0)[0])
    assert area[1:] == pytest.approx(area_under_curve(scores[copies], truth[copies] > 0, people=copies)[1:], abs=0.01)
    assert area_under_curve(scores, truth > 0, weight=(truth > 0) * 1.0) is None


def test_intervals_of_weighted_areas_hold() -> None:
    """Those of high scores are drawn a quarter as often, and weigh four times as much."""
    held = plain = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, 5])
        label = rng.random(700) < 0.5
        score = rng.normal(size=700) + label
        kept = rng.random(700) < np.where(score > 0.5, 0.25, 1.0)
        label, score = label[kept], score[kept]
        found = area_under_curve(score, label, weight=np.where(score > 0.5, 4.0, 1.0))
        held += found[1] <= 0.7602 <= found[2]
        plain += area_under_curve(score, label)[1] <= 0.7602 <= area_under_curve(score, label)[2]
    assert held >= 0.91 * 200
    assert plain < 0.75 * 200


def test_rows_are_drawn_by_their_weight() -> None:
    weight, people = np.repeat([1.0, 4.0, 0.0], 2000), np.repeat(np.arange(3000), 2)
    drawn = one_row_each(None, 6000, np.random.default_rng(0), weight)
    assert np.bincount(drawn // 2000, minlength=3) == pytest.approx([500, 2000, 0], abs=80)
    mixed = np.tile([1.0, 3.0], 3000)
    drawn = one_row_each(people, 6000, np.random.default_rng(0), mixed)
    assert np.array_equal(people[drawn], np.arange(3000))  # all alike heavy
    assert (drawn % 2).mean() == pytest.approx(0.75, abs=0.03)


def test_changes_are_weighted() -> None:
    """As many get worse as better, but those who get worse stand for more people."""
    before, after = np.zeros(400, dtype=bool), np.zeros(400, dtype=bool)
    before[:40], after[40:80] = True, True
    weight, copies = np.ones(400), np.ones(400, dtype=int)
    weight[40:80], copies[40:80] = 3, 3
    whole, rng = np.repeat(np.arange(400), copies), np.random.default_rng(0)
    found = rate_change(before, after, rng, level=0.95, weight=weight)
    assert found.value == pytest.approx(after[whole].mean() - before[whole].mean())
    assert found.p_value is None
    assert found.low > 0 >= rate_change(before, after, rng, level=0.95).low
    groups = Grouping("sex", ("f", "m"), np.arange(400) % 2)
    moved = impact_change(groups, ~before, ~after, rng, level=0.95, weight=weight)
    copied = impact_change(groups.take(whole), ~before[whole], ~after[whole], rng, level=0.95)
    assert moved.value == pytest.approx(copied.value)


def test_a_gate_weighs_its_limits() -> None:
    hits, weight = np.arange(400) % 4 == 0, np.where(np.arange(400) % 4 == 0, 3.0, 1.0)
    groups = Grouping("sex", ("f", "m"), np.repeat([0, 1], 200))
    selected = np.where(groups.codes == 0, hits, True)
    found, whose = impact(groups, selected, 0.95, None, weight)
    assert (found.value, whose) == (pytest.approx(0.5), "sex f")
    assert impact(groups, selected, 0.95)[0].value == pytest.approx(0.25)
