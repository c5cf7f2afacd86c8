"""Nearest rows, against comparing every person with every row."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits import Attribute, Schema
from fairbits.engine.nearest import Nearest, NearestRow
from fairbits.errors import OptionError, TableError
from tests.conftest import random_people


def attribute(rng: np.random.Generator, i: int, *, protected: bool = False) -> Attribute:
    """Few values, so that ties are common; negative bounds too."""
    kind = ("category", "integer", "real")[rng.integers(3)]
    size = int(rng.integers(1 + protected, 6))
    if kind == "category":
        labels = tuple(f"label {j}" for j in range(size))
        return Attribute(name=f"a{i}", kind="category", labels=labels, protected=protected)
    low = int(rng.integers(-5, 3))
    return Attribute(name=f"a{i}", kind=kind, low=low, high=low + size - 1, protected=protected)  # type: ignore[arg-type]


def random_schema(rng: np.random.Generator, free: int) -> Schema:
    attributes = [attribute(rng, i) for i in range(free)]
    for i in range(2):
        attributes.insert(int(rng.integers(len(attributes) + 1)), attribute(rng, free + i, protected=True))
    return Schema(attributes=tuple(attributes))


def coarse_people(rng: np.random.Generator, schema: Schema, n: int) -> np.ndarray:
    """Reals in halves, so that some are equal, and some values that no row has."""
    return np.rint(2 * random_people(rng, schema, n)) / 2


def brute_force(schema: Schema, table: np.ndarray, people: np.ndarray) -> Nearest:
    free = list(schema.free_columns)
    differs = people[:, None, free] != table[None][:, :, free]
    changed = differs.sum(axis=2)
    row = changed.argmin(axis=1)
    l1 = np.zeros(len(people))
    for column in free:
        a = schema.attributes[column]
        gap = np.abs(people[:, column] - table[row, column])
        single = a.kind == "category" or a.upper == a.low
        l1 += gap != 0 if single else gap / (a.upper - a.low)
    return Nearest(changed.min(axis=1).astype(np.int16), row.astype(np.int32), l1.astype(np.float32))


def assert_same(actual: Nearest, wanted: Nearest) -> None:
    np.testing.assert_array_equal(actual.changed, wanted.changed)
    np.testing.assert_array_equal(actual.row, wanted.row)
    np.testing.assert_allclose(actual.l1, wanted.l1, rtol=1e-6)
    assert (actual.changed.dtype, actual.row.dtype, actual.l1.dtype) == (np.int16, np.int32, np.float32)


@pytest.mark.parametrize("free", [1, 2, 3, 4, 7, 10, 15, 16, 40])
@pytest.mark.parametrize("rows", [1, 2, 63, 64, 65, 130, 511, 512, 513, 1100])
def test_against_brute_force(free: int, rows: int) -> None:
    rng = np.random.default_rng([free, rows])
    schema = random_schema(rng, free)
    table = coarse_people(rng, schema, rows)
    table[rng.integers(rows, size=rows // 4)] = table[0]  # duplicates
    people = np.concatenate([coarse_people(rng, schema, 60), table[rng.integers(rows, size=20)]])
    near = table[rng.integers(rows, size=40)].copy()
    near[np.arange(40), rng.integers(len(schema), size=40)] += 0.25  # nobody's value
    people = np.concatenate([people, near, people + 1000])
    wanted = brute_force(schema, table, people)
    for room in (1 << 29, 0, 1 << 11):  # all bitsets, all lists, some of both
        assert_same(NearestRow(schema, table, bitset_bytes=room).find(people), wanted)


@pytest.mark.parametrize("rows", [16_384, 16_385, 40_000])
def test_several_strips(rows: int) -> None:
    rng = np.random.default_rng(rows)
    kinds: list[Attribute] = [Attribute(name=f"n{i}", kind="integer", low=0, high=9 + i) for i in range(6)]
    schema = Schema(attributes=(*kinds, Attribute(name="x", kind="real", low=0, high=1)))
    table = random_people(rng, schema, rows)
    people = random_people(rng, schema, 60)
    people[:30, 6] = table[-30:, 6]
    people[20:30] = table[-10:]
    people[20:30, 0] = 77
    wanted = brute_force(schema, table, people)
    assert wanted.row.max() > 16_000
    for room in (1 << 27, 1 << 17, 0):
        assert_same(NearestRow(schema, table, bitset_bytes=room).find(people), wanted)


def test_more_attributes_than_six_planes_count(rng: np.random.Generator) -> None:
    schema = Schema(attributes=tuple(Attribute(name=f"n{i}", kind="integer", low=0, high=2) for i in range(300)))
    table, people = random_people(rng, schema, 90), random_people(rng, schema, 30)
    people[:5] = table[40:45]
    people[:5, 0] = 9
    assert_same(NearestRow(schema, table).find(people), brute_force(schema, table, people))


def test_the_first_of_equal_rows_wins() -> None:
    schema = Schema(attributes=tuple(Attribute(name=n, kind="integer", low=0, high=9) for n in "abc"))
    table = np.array([[9, 9, 9], [1, 2, 3], [1, 2, 4], [1, 2, 3]], dtype=float)
    nearest = NearestRow(schema, table)
    found = nearest.find(np.array([[1, 2, 3], [1, 2, 9], [5, 5, 5], [1, 5, 4]], dtype=float))
    assert found.row.tolist() == [1, 1, 0, 2]
    assert found.changed.tolist() == [0, 1, 3, 1]
    np.testing.assert_allclose(found.l1, [0, 6 / 9, 12 / 9, 3 / 9], rtol=1e-6)


def test_protected_values_do_not_count(people_schema: Schema, rng: np.random.Generator) -> None:
    table = random_people(rng, people_schema, 50)
    twins = table.copy()
    twins[:, [0, 3]] = [1, 0]
    found = NearestRow(people_schema, table).find(twins)
    assert (found.changed == 0).all()
    np.testing.assert_array_equal(found.row, np.arange(50))


def test_nothing_free() -> None:
    schema = Schema(attributes=(Attribute(name="a", kind="integer", low=0, high=9, protected=True),))
    found = NearestRow(schema, np.array([[3.0], [4.0]])).find(np.array([[5.0], [4.0]]))
    assert (found.changed.tolist(), found.row.tolist(), found.l1.tolist()) == ([0, 0], [0, 0], [0.0, 0.0])


def test_odd_values() -> None:
    """Minus zero is zero; huge whole numbers are found by bisection; NaN is nobody's value."""
    schema = Schema(attributes=tuple(Attribute(name=n, kind="real", low=-1e12, high=1e12) for n in "ab"))
    table = np.array([[0.0, 1e12], [-0.0, -1e12], [5.0, 7.0]])
    people = np.array([[-0.0, 1e12], [0.0, 3.0], [5.0, -1e12], [np.nan, 7.0], [6.0, 8.0]])
    found = NearestRow(schema, table).find(people)
    assert found.changed.tolist() == [0, 1, 1, 1, 2]
    assert found.row.tolist() == [0, 0, 1, 2, 0]


def test_threads_and_batches_change_nothing() -> None:
    rng = np.random.default_rng(3)
    schema = random_schema(rng, 8)
    table, people = coarse_people(rng, schema, 900), coarse_people(rng, schema, 90_000)
    nearest = NearestRow(schema, table, bitset_bytes=1 << 12)
    one = nearest.find(people)
    for other in (nearest.find(people, threads=4), nearest.find(people, threads=None)):
        for name in ("changed", "row", "l1"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    backwards = nearest.find(people[::-1][:1000])
    np.testing.assert_array_equal(backwards.row, one.row[::-1][:1000])
    assert len(nearest.find(people[:0]).row) == 0


def test_exact_even_if_all_keys_collide(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setattr("fairbits.engine.nearest.keys_of", lambda codes, _: np.full(len(codes), 7, np.uint64))
    schema = random_schema(rng, 4)
    table, people = coarse_people(rng, schema, 80), coarse_people(rng, schema, 80)
    people[:40] = table[40:]
    assert_same(NearestRow(schema, table).find(people), brute_force(schema, table, people))


def test_bad_input(people_schema: Schema, rng: np.random.Generator) -> None:
    table = random_people(rng, people_schema, 5)
    with pytest.raises(TableError, match=r"codes must have shape \(n, 5\), but got \(5, 4\)"):
        NearestRow(people_schema, table[:, :4])
    with pytest.raises(TableError, match="has no rows"):
        NearestRow(people_schema, table[:0])
    with pytest.raises(TableError, match="codes must have shape"):
        NearestRow(people_schema, table).find(table[0])
    with pytest.raises(OptionError, match="threads must be 1 or more, but got 0"):
        NearestRow(people_schema, table).find(table, threads=0)
