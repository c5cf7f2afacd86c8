from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairbits.domain import Attribute
from fairbits.measure import Grouping, crossed, group_table, grouping_of

RNG = np.random.default_rng(0)
N = 2000
SEX = RNG.integers(0, 2, N)
RACE = RNG.choice(3, N, p=[0.6, 0.39, 0.01])
SCORES = np.clip(0.4 + 0.1 * SEX + 0.1 * RACE + 0.2 * RNG.normal(size=N), 0, 1)
SELECTED = SCORES >= 0.5
LABELS = RNG.random(N) < SCORES


def _groups() -> tuple[Grouping, Grouping]:
    return Grouping("sex", ("f", "m"), SEX), Grouping("race", ("w", "b", "h"), RACE)


def test_figures_are_those_of_fairlearn():
    fairlearn = pytest.importorskip("fairlearn.metrics")
    from sklearn.metrics import precision_score

    metrics = {
        "count": fairlearn.count,
        "selection_rate": fairlearn.selection_rate,
        "tpr": fairlearn.true_positive_rate,
        "fpr": fairlearn.false_positive_rate,
        "precision": precision_score,
        "base": lambda y, _p: np.mean(y),
    }
    for groups in (*_groups(), crossed(_groups())):
        names = np.array(groups.labels)[groups.codes]
        frame = fairlearn.MetricFrame(
            metrics=metrics, y_true=LABELS.astype(int), y_pred=SELECTED.astype(int), sensitive_features=names
        ).by_group
        found = group_table(groups, np.random.default_rng(0), scores=SCORES, selected=SELECTED, labels=LABELS)
        large = [one.group for one in found.groups if not one.small]
        highest = frame.loc[large, "selection_rate"].max()
        for one in found.groups:
            theirs = frame.loc[one.group]
            assert one.people == theirs["count"]
            assert one.selection_rate.value == pytest.approx(theirs["selection_rate"])
            assert one.base_rate.value == pytest.approx(theirs["base"])
            for name in ("tpr", "fpr", "precision"):
                figure = getattr(one, name)
                if figure is not None:
                    assert figure.value == pytest.approx(theirs[name])
                    assert figure.low <= figure.value <= figure.high
            if one.small:
                assert one.impact_ratio is None
            else:
                assert one.impact_ratio == pytest.approx(theirs["selection_rate"] / highest)


def test_small_groups_are_named_and_left_out_of_ratios():
    found = group_table(_groups()[1], np.random.default_rng(0), scores=SCORES, selected=SELECTED)
    few = found.groups[2]
    assert found.small == (("h",) if few.people < 30 else ())
    assert few.under_two_percent
    assert (few.impact_ratio is None) == (few.people < 30)
    assert max(one.impact_ratio for one in found.groups if one.impact_ratio is not None) == 1.0


def test_unknown_people_are_counted_and_in_a_group_of_their_own():
    codes = np.where(np.arange(N) < 100, -1, SEX)
    found = group_table(Grouping("sex", ("f", "m"), codes), np.random.default_rng(0), scores=SCORES, selected=SELECTED)
    assert found.unknown == 100
    assert sum(one.people for one in found.groups if not one.missing) == N - 100
    assert [(one.people, one.impact_ratio) for one in found.groups if one.missing] == [(100, None)]
    assert found.median == pytest.approx(np.median(SCORES))  # of everybody


@pytest.mark.parametrize("count", [3, 40_000])  # the second does not fit the small numbers that are sorted quickly
def test_members_are_the_people_with_the_code_in_order(count):
    codes = np.random.default_rng(1).integers(-1, 3, 500)
    groups = Grouping("g", tuple(str(i) for i in range(count)), codes)
    members = groups.members()
    assert len(members) == count
    for code, people in enumerate(members[:5]):
        assert people.tolist() == np.flatnonzero(codes == code).tolist()


def test_calibration_is_the_gap_between_labels_and_scores():
    found = group_table(_groups()[0], np.random.default_rng(0), scores=SCORES, selected=SELECTED, labels=LABELS)
    for code, one in enumerate(found.groups):
        here = code == SEX
        assert one.calibration.value == pytest.approx(LABELS[here].mean() - SCORES[here].mean())
        assert one.calibration.low < 0.05
        assert one.calibration.high > -0.05


def test_a_number_of_many_values_is_cut_into_ranges():
    ages = np.random.default_rng(0).integers(18, 90, 500).astype(float)
    groups = grouping_of(Attribute(name="age", kind="integer", low=0, high=120), ages)
    assert len(groups.labels) == 4
    assert groups.counts.min() > 80
    assert groups.labels[0].startswith("18 to ")
    missing = grouping_of(Attribute(name="age", kind="integer", low=0, high=120), np.where(ages < 30, np.nan, ages))
    assert (~missing.known).sum() == (ages < 30).sum()


@pytest.mark.parametrize(("n", "rate"), [(200, 0.005), (300, 0.01), (1000, 0.002), (400, 0.4)])
def test_the_mean_score_of_a_group_is_covered_where_high_scores_are_rare(n: int, rate: float) -> None:
    """By the normal law alone it was 60 % of the time for a score that one in 200 has."""
    rng, held = np.random.default_rng(0), 0
    everybody = Grouping("all", ("everybody",), np.zeros(n, np.int64))
    for _ in range(150):
        found = group_table(everybody, rng, scores=(rng.random(n) < rate).astype(float)).groups[0].mean_score
        held += found.low <= rate <= found.high
    assert held >= 138  # 95 % of 150 is 142.5; 138 is two deviations below


def test_a_missing_number_is_a_group_of_its_own():
    age = Attribute(name="age", kind="integer", low=18, high=90, missing="model")
    rng = np.random.default_rng(3)
    codes = np.where(rng.random(600) < 0.1, age.gap, rng.integers(18, 91, 600)).astype(float)
    ranged = Attribute(
        name="age", kind="integer", low=18, high=90, missing="model", ranges=(("18–38", 30.0), ("39–90", 60.0))
    )
    chosen = rng.random(600) < 0.4
    gone = codes == age.gap
    for attribute in (age, ranged):
        found = group_table(grouping_of(attribute, codes), np.random.default_rng(0), selected=chosen)
        assert all("missing" not in one.group for one in found.groups[:-1])
        last = found.groups[-1]
        assert (last.group, last.missing, last.people) == ("(missing)", True, gone.sum())
        assert last.selection_rate.value == pytest.approx(chosen[gone].mean())
        assert last.impact_ratio is None
        assert sum(one.people for one in found.groups) == len(codes)
        assert found.unknown == gone.sum()
    observed = grouping_of(replace(age, missing=None), np.where(gone, np.nan, codes))
    assert (observed.codes == -1).sum() == gone.sum()


def test_impact_ratios_have_intervals_that_hold():
    rng = np.random.default_rng(1)
    rates, sizes = np.array([0.5, 0.4, 0.3]), np.array([400, 150, 80])
    groups = Grouping("g", ("a", "b", "c"), np.repeat(np.arange(3), sizes))
    held = np.zeros(3)
    for _ in range(300):
        chosen = rng.random(sizes.sum()) < np.repeat(rates, sizes)
        found = group_table(groups, rng, selected=chosen).groups
        ends = [(one.impact_ratio_low, one.impact_ratio_high) for one in found]
        held += [low <= rate / 0.5 <= high for (low, high), rate in zip(ends, rates, strict=True)]
        assert all(one.impact_ratio_low <= one.impact_ratio <= one.impact_ratio_high for one in found)
    assert (held / 300 >= 0.94).all()
