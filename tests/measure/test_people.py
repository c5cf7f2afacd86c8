"""Rows of the same people are no independent evidence: intervals, splits and tests draw people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.chances import repeated
from fairbits import Audit, load_subject
from fairbits.diff.pairs import impact
from fairbits.domain import Attribute, Schema, Table, one_row_each, people_notes, people_of
from fairbits.errors import FairbitsError
from fairbits.measure import Grouping, bounded_means, rate_of, student_mean, wilson
from fairbits.proxies import study_subject
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


def test_weights_of_a_table_are_those_of_its_figures(tmp_path: Path) -> None:
    """A row of weight 3 counts as three rows do; what is not weighted says so."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 200), "income": rng.integers(0, 9, 200)})
    frame["paid"] = np.where(frame.income + 2 * (frame.sex == "m") + rng.normal(0, 2, 200) > 5, "yes", "no")
    frame["share"] = rng.choice([1, 3], 200)

    def score(people: pd.DataFrame) -> np.ndarray:
        return 1 / (1 + np.exp(-(people.income + (people.sex == "m") - 4.7).to_numpy(float)))

    about = {"target": "paid", "protected": ["sex"], "favourable": "yes", "input_format": "frame"}
    once = Audit.from_table(score, frame, weight="share", **about)
    rows = Audit.from_table(score, frame.loc[np.repeat(frame.index, frame.share)], ignored=["share"], **about)
    weighted, copied = once.measure(), rows.measure()
    for name in ("k_mean", "q_inf_mean", "q_1_mean", "split_rate", "flip_rate", "flip_rate_plausible"):
        assert getattr(weighted, name).value == pytest.approx(getattr(copied, name).value), name
    assert weighted.summary()["effective_rows"] == pytest.approx(frame.share.sum() ** 2 / (frame.share**2).sum())
    assert weighted.flip_rate.high - weighted.flip_rate.low > copied.flip_rate.high - copied.flip_rate.low
    for name in ("favourable_rate", "base_rate", "accuracy", "balanced_accuracy"):
        assert getattr(once.subject.quality, name) == pytest.approx(getattr(rows.subject.quality, name)), name
    for one, other in zip(once.groups()[0].groups, rows.groups()[0].groups, strict=True):
        assert one.selection_rate.value == pytest.approx(other.selection_rate.value)
        assert one.impact_ratio == pytest.approx(other.impact_ratio)
        assert (one.share, one.mean_score.value) == pytest.approx((other.share, other.mean_score.value))
    assert any("effective sample size" in note for note in once.subject.notes)
    assert once.subject.identity.id != Audit.from_table(score, frame, ignored=["share"], **about).subject.identity.id
    with pytest.raises(FairbitsError, match="weight 'share' is -1 in row 1"):
        Audit.from_table(score, frame.assign(share=-1), weight="share", **about)


def test_a_gate_weighs_its_limits() -> None:
    hits, weight = np.arange(400) % 4 == 0, np.where(np.arange(400) % 4 == 0, 3.0, 1.0)
    groups = Grouping("sex", ("f", "m"), np.repeat([0, 1], 200))
    selected = np.where(groups.codes == 0, hits, True)
    found, whose = impact(groups, selected, 0.95, None, weight)
    assert (found.value, whose) == (pytest.approx(0.5), "sex f")
    assert impact(groups, selected, 0.95)[0].value == pytest.approx(0.25)
