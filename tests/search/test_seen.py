"""The filter of people seen before, against Python's own set; and how well keys spread."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from fairbits.engine.seen import LOAD, START, Seen, keys_of

ONES = 2**64 - 1
FROZEN = [6579278176188481896, 14302706867245203012]


def expected(seen: set[int], keys: np.ndarray) -> list[bool]:
    new = []
    for key in keys.tolist():
        new.append(key not in seen)
        seen.add(key)
    return new


def every_column(codes: np.ndarray) -> np.ndarray:
    return keys_of(codes, np.arange(codes.shape[1]))


@pytest.mark.parametrize("span", [40, 3000, 2**64])
@pytest.mark.parametrize("hint", [0, 5000, 200_000])
def test_agrees_with_a_set(rng: np.random.Generator, span: int, hint: int) -> None:
    seen, known = Seen(capacity_hint=hint), set[int]()
    for size in (0, 1, 2, 700, 1, 5000, 40):
        keys = rng.integers(0, span, size, dtype=np.uint64)
        assert seen.add(keys).tolist() == expected(known, keys)
        assert len(seen) == len(known)


def test_special_keys() -> None:
    seen = Seen(capacity_hint=10)
    keys = np.array([5, 0, ONES, 0, ONES, 5], dtype=np.uint64)
    assert seen.add(keys).tolist() == [True, True, True, False, False, False]
    assert not seen.add(keys).any()
    assert len(seen) == 3


def test_grows_in_the_middle_of_a_batch(rng: np.random.Generator) -> None:
    seen, before = Seen(capacity_hint=0), 1 << 10
    assert seen.slots == before
    keys = rng.integers(0, 2**64, 30_000, dtype=np.uint64)
    assert seen.add(keys).all()
    assert len(seen) == 30_000
    assert len(seen) <= LOAD * seen.slots < 2.5 * len(seen)
    assert not seen.add(keys[::-1]).any()


def test_first_growth_is_to_the_hinted_size(rng: np.random.Generator) -> None:
    seen = Seen(capacity_hint=3_000_000)
    assert seen.slots == START
    keys = rng.integers(0, 2**64, START, dtype=np.uint64)
    assert seen.add(keys).all()
    assert seen.slots == 1 << 22
    assert not seen.add(keys).any()


def test_keys_that_count_up_and_keys_in_steps() -> None:
    """Raw numbers are no hashes, but must not pile up either."""
    for step in (1, 1 << 20, 1 << 40):
        seen = Seen(capacity_hint=0)
        keys = np.arange(100_000, dtype=np.uint64) * np.uint64(step)
        assert seen.add(keys).all()
        assert not seen.add(keys).any()


def test_a_batch_may_be_a_read_only_slice() -> None:
    keys = np.repeat(np.arange(6, dtype=np.uint64), 2)
    keys.flags.writeable = False
    assert Seen(capacity_hint=10).add(keys[::2]).all()


def test_only_the_chosen_columns_matter(rng: np.random.Generator) -> None:
    codes = rng.normal(size=(50, 6))
    other = codes.copy()
    other[:, [1, 4]] = 0
    columns = np.array([0, 2, 3, 5])
    np.testing.assert_array_equal(keys_of(codes, columns), keys_of(other, columns))
    assert (keys_of(codes, np.arange(6)) != keys_of(other, np.arange(6))).all()


def test_minus_zero_is_zero() -> None:
    assert every_column(np.array([[-0.0, 1.0]])) == every_column(np.array([[0.0, 1.0]]))


def test_order_of_columns_matters() -> None:
    assert every_column(np.array([[1.0, 2.0]])) != every_column(np.array([[2.0, 1.0]]))
    assert every_column(np.array([[3.0, 3.0]])) != every_column(np.array([[5.0, 5.0]]))


def test_no_collisions_among_neighbours() -> None:
    """A million people who differ by small whole numbers, and the low bits of their keys too."""
    grid = np.stack(np.meshgrid(*[np.arange(10.0)] * 6), axis=-1).reshape(-1, 6)
    keys = every_column(grid)
    assert len(np.unique(keys)) == len(grid)
    for half in (keys & np.uint64(2**32 - 1), keys >> np.uint64(32)):
        collisions = len(grid) - len(np.unique(half))
        assert abs(collisions - 1e12 / 2**33) < 60  # five standard deviations of pure chance


def test_every_bit_given_turns_half_of_the_key(rng: np.random.Generator) -> None:
    codes = rng.integers(1, 100, (2000, 3)).astype(np.float64)
    keys = every_column(codes)
    for column in range(3):
        for bit in range(64):
            turned = codes.copy()
            turned.view(np.uint64)[:, column] ^= np.uint64(1 << bit)
            flips = (keys ^ every_column(turned))[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
            assert abs(flips.mean() - 0.5) < 0.01
            assert np.abs(flips.mean(axis=0) - 0.5).max() < 0.07


def test_keys_are_the_same_everywhere() -> None:
    """Frozen: a run on disk may be resumed on another machine."""
    codes = np.array([[0.0, 1.0, 2.5], [7.0, -3.0, 1e9]])
    assert every_column(codes).tolist() == FROZEN
    program = (
        "import numpy as np; from fairbits.engine.seen import keys_of; "
        "print(keys_of(np.array([[0.0, 1.0, 2.5], [7.0, -3.0, 1e9]]), np.arange(3)).tolist())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert printed.stdout.strip() == str(FROZEN)


def test_frozen_keys_follow_from_the_definition() -> None:
    """The same hash in plain Python."""

    def mixed(bits: int) -> int:
        bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 & ONES
        bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & ONES
        return bits ^ (bits >> 31)

    keys = []
    for row in np.array([[0.0, 1.0, 2.5], [7.0, -3.0, 1e9]]).view(np.uint64).tolist():
        key = 0x9E3779B97F4A7C15
        for bits in row:
            key = mixed((key ^ bits) + 0x9E3779B97F4A7C15 & ONES)
        keys.append(key)
    assert keys == FROZEN
