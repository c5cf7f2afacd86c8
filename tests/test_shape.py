"""Values from a file against what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from fairbits.errors import OptionError
from fairbits.shape import check_fields, fits, reading


@pytest.mark.parametrize(
    ("value", "kind", "good"),
    [
        (1, int, True),
        (True, int, False),
        (10**30, int, True),
        (-1e30, float, True),
        (10**400, float, False),
        (1, float, True),
        ("1", float, False),
        (float("inf"), float, False),
        (None, float | None, True),
        ([1, None], list[int | None], True),
        ([1, "2"], list[int], False),
        ({"a": 1.5}, dict[str, float], True),
        ({"a": {}}, dict[str, float], False),
        ("yes", Literal["yes", "no"], True),
        ([], Literal["yes", "no"], False),
        ((1, 2), tuple[int, int], True),
        ((1,), tuple[int, int], False),
        (object(), Any, True),
    ],
)
def test_what_fits(value: Any, kind: Any, good: bool) -> None:
    assert fits(value, kind) is good


def test_a_damaged_file_is_one_sentence() -> None:
    wanted = r"debug.json' is damaged \('layers' is missing\); debug again\."
    with pytest.raises(OptionError, match=wanted), reading(Path("debug.json"), "debug again"):
        raise KeyError("layers")
    with pytest.raises(OptionError, match=r"run.json' is damaged \(seed is 'x'\); restore it from a copy\."):
        check_fields({"seed": "x"}, {"seed": int, "more": str}, Path("run.json"))
    with pytest.raises(OptionError, match=r"run.json' is damaged \(it has no 'more'\); restore it from a copy\."):
        check_fields({"seed": 3}, {"seed": int, "more": str}, Path("run.json"), needed=("seed", "more"))
