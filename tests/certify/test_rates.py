"""Guaranteed rates of groups are what adding up everybody's probability gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairbits.certify import CertifyOptions, certify_subject
from fairbits.certify.rates import FittedPopulation, group_rates, twin_groups
from fairbits.domain import Attribute, Encoding, Table, Twins
from fairbits.engine import box_network
from fairbits.subject import make_subject
from tests.certify.test_boxes import _everybody, _network, _schema


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("coded", [True, False])
def test_rates_by_brute_force(seed, coded):
    rng = np.random.default_rng(seed)
    schema = _schema()
    twins = Twins(schema)
    encoding = Encoding.identity(schema) if coded else Encoding.one_hot(schema)
    network = _network(rng, encoding.width, (7, 4))
    boxes = box_network(network, schema, encoding, twins)
    rows = np.stack([rng.choice(a.values(), 300) for a in schema.attributes], axis=1)
    rows[:, 3] = np.minimum(rows[:, 3], 3 + 4 * rows[:, 1])  # hours depend on sex
    people, margin = _everybody(schema, encoding, twins, network)
    cut = float(np.median(margin))
    for column in schema.protected_columns:
        groups = twin_groups(twins, column)
        population = FittedPopulation.of(boxes, twins, rows, column)
        truth = []
        for g in range(len(groups)):
            weight = np.ones(len(people))
            for at, codes, shares in zip(boxes.columns, boxes.values, population.marginals, strict=True):
                order = np.argsort(codes)
                weight *= shares[g][order[np.searchsorted(codes[order], people[:, at])]]
            assert weight.sum() == pytest.approx(1.0)
            truth.append(float(weight @ (margin >= cut) @ population.twins[g]))
        attribute = schema.attributes[column]
        widths = []
        for limit in (1, 60, 4000):
            found = group_rates(
                boxes, (cut, cut), population, attribute, groups, seconds=60, threads=1, max_boxes=limit
            )
            for one, rate in zip(found.groups, truth, strict=True):
                assert one.low - 1e-9 <= rate <= one.high + 1e-9
            ratio = min(truth) / max(truth)
            assert found.ratio_low - 1e-9 <= ratio <= found.ratio_high + 1e-9
            widths.append(max(one.high - one.low for one in found.groups))
        assert widths[0] >= widths[1] >= widths[2]
        assert widths[2] < 0.02


def test_groups_are_named_as_people_read_them():
    age = Attribute(name="age", kind="integer", low=1, high=3, labels=("10–19", "20–29", "30–39"), protected=True)
    pay = Attribute(name="pay", kind="integer", low=0, high=90, protected=True, ranges=(("low", 20.0), ("high", 70.0)))
    assert [age.read_twin(code) for code in (1.0, 3.0)] == ["10–19", "30–39"]
    assert [pay.read_twin(code) for code in (20.0, 70.0)] == ["low", "high"]
    assert Attribute(name="n", kind="integer", low=0, high=9).read_twin(4.0) == "4"


def test_the_ladder_states_rates_and_says_where_it_cannot():
    rng = np.random.default_rng(1)
    schema = _schema()
    rows = np.stack([rng.choice(a.values(), 100) for a in schema.attributes], axis=1)
    network = _network(rng, Encoding.one_hot(schema).width, (6,))
    subject = make_subject("rates", network, schema, Table(rows, rng.integers(0, 2, 100).astype(float)))
    found = certify_subject(subject, CertifyOptions(seconds=2, threads=1, rates=True))
    assert [one.attribute for one in found.rates] == ["sex", "race"]
    assert all(0 <= one.low <= one.high <= 1 for statement in found.rates for one in statement.groups)
    assert "Rates by sex, as if attributes were independent within the group: f " in found.rates[0].sentence()
    assert found.rates[0].document()["groups"][0]["group"] == "f"


def _favourable_only_if_rare(schema, rng):
    rows = np.stack([rng.choice(a.values(), 100) for a in schema.attributes], axis=1)
    network = _network(rng, Encoding.one_hot(schema).width, (6,))
    return make_subject("rates", network, schema, Table(rows, rng.integers(0, 2, 100).astype(float)))


@pytest.mark.parametrize("shift", [0.0, 0.3, -0.3])
def test_rates_that_the_decisions_contradict_are_withdrawn(shift, monkeypatch):
    def moved(*args, **options):
        found = group_rates(*args, **options)
        groups = [replace(one, low=one.low + shift, high=one.high + shift) for one in found.groups]
        return replace(found, groups=tuple(groups))

    monkeypatch.setattr("fairbits.certify.run.group_rates", moved)
    subject = _favourable_only_if_rare(_schema(), np.random.default_rng(1))
    found = certify_subject(subject, CertifyOptions(seconds=3, threads=1, rates=True))
    rates = [one for one in found.contradictions if one.property == "rate"]
    assert bool(rates) == any(bool(one.withdrawn) for one in found.rates) == (shift != 0)
    for one in found.rates:
        assert ("error of ours" in one.sentence()) == bool(one.withdrawn)
    if shift:
        assert f"at {'least' if shift > 0 else 'most'}" in rates[0].words()
