"""Groups known as probabilities: coverage under the assumption, bounds without it, and the way from file to page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairbits import Audit
from fairbits.domain import Chances
from fairbits.errors import FairbitsError
from fairbits.measure import Decided, rate_of
from fairbits.proxies.probable import probable_table
from fairbits.subject import document_of_schema

RACE = Chances("race", ("p_a", "p_b"), ("A", "B", "(rest)"))
FILE = """name = "prob"
[table]
path = "people.csv"
target = "paid"
favourable = "yes"
score = "p"
[attributes.income]
kind = "real"
low = 0
high = 100
[attributes.race]
protected = "probabilities"
columns = ["p_a", "p_b"]
labels = ["A", "B"]
"""


def world(seed: int, n: int, link: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Calibrated probabilities, groups, and scores that know more about the group than Z where there is a link."""
    rng = np.random.default_rng([seed, n])
    z = rng.normal(size=n)
    p = 1 / (1 + np.exp(1 - 2 * z))
    group = rng.random(n) < p
    scores = 1 / (1 + np.exp(-(0.8 * z + rng.normal(size=n) + link * (group - p))))
    return np.column_stack([p, 1 - p, np.zeros(n)]), group, scores


def table_of(seed: int, n: int, link: float = 0.0):
    chances, _, scores = world(seed, n, link)
    rng = np.random.default_rng(seed)
    return probable_table(RACE, chances, Decided(scores, scores >= 0.5, None), rng, rows=np.arange(n))


def truth(link: float) -> list[float]:
    _, group, scores = world(0, 1_000_000, link)
    return [float((scores[own] >= 0.5).mean()) for own in (group, ~group)]


def test_weighted_rates_hold_where_the_decision_tells_nothing_beyond() -> None:
    rates, held = truth(0.0), np.zeros(2)
    for seed in range(400):
        chances, _, scores = world(seed + 1, 400)
        for place in (0, 1):
            found = rate_of(scores >= 0.5, weight=chances[:, place])
            held[place] += found.low <= rates[place] <= found.high
    assert held.min() >= 0.93 * 400


@pytest.mark.parametrize("link", [0.0, 2.0, -2.0])
def test_bounds_and_ratios_hold_whatever_the_link(link: float) -> None:
    rates, worlds = truth(link), 60
    ratio, low = min(rates) / max(rates), int(np.argmin(rates))
    bounds, ratios, estimates = 0, 0, 0
    for seed in range(worlds):
        groups = table_of(seed + 1, 600, link).groups
        bounds += all(one.bounds[0] <= rate <= one.bounds[1] for one, rate in zip(groups, rates, strict=True))
        ratios += groups[low].ratio_bounds[0] <= ratio <= groups[low].ratio_bounds[1]
        estimates += groups[low].impact_ratio.low <= ratio <= groups[low].impact_ratio.high
    assert min(bounds, ratios) >= 0.93 * worlds
    assert (estimates >= 0.93 * worlds) is (link == 0.0)  # the weighted rate is biased where there is a link


def test_bounds_narrow_to_the_rate_where_groups_are_certain() -> None:
    _, group, scores = world(3, 2000)
    chances = np.column_stack([group, ~group, np.zeros(2000)]).astype(float)
    decided, rng = Decided(scores, scores >= 0.5, None), np.random.default_rng(0)
    found = probable_table(RACE, chances, decided, rng, rows=np.arange(2000))
    assert [one.group for one in found.groups] == ["A", "B"]
    for one, own in zip(found.groups, (group, ~group), strict=True):
        assert one.selection_rate.value == pytest.approx((scores[own] >= 0.5).mean()) == one.likely_rate.value
        assert one.bounds == pytest.approx((one.selection_rate.low, one.selection_rate.high), abs=0.01)
    assert 0 < found.bits.low <= found.bits.bits < found.bits.entropy


def test_bits_are_a_lower_bound_and_none_are_claimed_by_chance() -> None:
    chances, group, scores = world(0, 1_000_000)
    bins = np.unique(np.quantile(scores, np.linspace(0, 1, 200)))
    cells = np.histogram2d(scores, group, (bins, [0, 0.5, 1]))[0] / len(scores)
    apart = cells.sum(axis=1, keepdims=True) * cells.sum(axis=0)
    bits = float((cells * np.log2(np.maximum(cells, 1e-12) / apart)).sum())
    found = [table_of(seed + 1, 1000).bits.low for seed in range(60)]
    assert np.mean(np.array(found) <= bits) >= 0.93
    assert np.median(found) > 0.3 * bits
    rng, claimed = np.random.default_rng(1), 0
    for _ in range(60):
        some = chances[rng.integers(0, len(chances), 800)]
        own = Decided(rng.random(800), rng.random(800) < 0.5, None)
        claimed += probable_table(RACE, some, own, rng, rows=np.arange(800)).bits.low > 0
    assert claimed <= 3


def written(folder: Path, **changed: np.ndarray) -> Path:
    chances, _, scores = world(5, 600)
    columns = {"income": np.linspace(0, 100, 600), "p": scores, "paid": np.where(scores > 0.6, "yes", "no")}
    columns |= {"p_a": 0.9 * chances[:, 0], "p_b": 0.9 * chances[:, 1]} | changed
    pd.DataFrame(columns).to_csv(folder / "people.csv", index=False)
    (folder / "subject.toml").write_text(FILE)
    return folder / "subject.toml"


def test_from_the_file_to_the_figures(tmp_path: Path) -> None:
    audit = Audit.of(written(tmp_path, p_a=np.where(np.arange(600) < 5, np.nan, 0.5), p_b=np.full(600, 0.3)))
    study = audit.proxies()
    table = study.document()["probable"][0]
    assert (table["attribute"], table["people"], table["unknown"]) == ("race", 595, 5)
    shares = {one["group"]: round(one["share"], 6) for one in table["groups"]}
    assert shares == {"A": 0.5, "B": 0.3, "(rest)": 0.2}
    assert study.attributes[0].attribute == "race (most likely)"
    section = document_of_schema(audit.subject.schema)["attributes"]["race"].unwrap()
    assert section == {"protected": "probabilities", "columns": ["p_a", "p_b"], "labels": ["A", "B"]}


def test_what_is_no_probability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FairbitsError, match=r"are 0.9, 0.3 in row 1.*add up to at most 1"):
        Audit.of(written(tmp_path, p_a=np.full(600, 0.9), p_b=np.full(600, 0.3)))
    file = written(tmp_path)
    file.write_text(FILE.replace('labels = ["A", "B"]', 'labels = ["A"]'))
    with pytest.raises(FairbitsError, match="name their columns, and as many labels"):
        Audit.of(file)
    file.write_text(FILE.replace('"p_b"', '"p_c"'))
    with pytest.raises(FairbitsError, match="column 'p_c' of protected attribute 'race' is not in the table"):
        Audit.of(file)


def test_from_table_takes_probabilities_and_plausible_rules() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.integers(0, 1000, 600), "age": rng.integers(20, 60, 600)})
    frame["p_black"] = rng.random(600).round(3)
    frame["paid"] = np.where(frame.income + 5 * frame.age > 700, "yes", "no")

    def score(people: pd.DataFrame) -> np.ndarray:
        return 1 / (1 + np.exp(-(people.income + 5 * people.age - 700).to_numpy(float) / 100))

    about = {"target": "paid", "protected": "age", "favourable": "yes", "input_format": "frame"}
    rules = ["age <= own age + 5"]
    audit = Audit.from_table(score, frame, probabilities={"race": ["p_black"]}, plausible=rules, **about)
    assert audit.subject.schema.names == ("income", "age")
    (found,) = audit.proxies().probable
    assert [one.group for one in found.groups] == ["p_black", "(rest)"]
    measured = audit.measure()
    assert measured.summary()["plausible"] == rules
    assert measured.flip_rate_plausible.value < measured.flip_rate.value
    with pytest.raises(FairbitsError, match="attribute 'race' is known as probabilities; name their columns"):
        Audit.from_table(score, frame, probabilities={"race": []}, **about)
