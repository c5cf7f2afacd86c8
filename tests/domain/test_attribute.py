from __future__ import annotations

import numpy as np
import pytest

from fairbits import Attribute
from fairbits.errors import SchemaError


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"name": " ", "kind": "integer", "high": 1}, "needs a name"),
        ({"name": "a", "kind": "number", "high": 1}, "kind 'number'; use integer, category or real"),
        ({"name": "a", "kind": "integer"}, "needs a high bound"),
        ({"name": "a", "kind": "integer", "low": 9, "high": 1}, "low <= high must hold, but got low = 9, high = 1"),
        ({"name": "a", "kind": "integer", "low": 0.5, "high": 1}, "use whole numbers"),
        ({"name": "a", "kind": "real", "low": 0, "high": float("inf")}, "finite bounds"),
        ({"name": "a", "kind": "integer", "high": 9, "step": 0}, "step 0; a step is larger than 0"),
        ({"name": "a", "kind": "integer", "high": 9, "step": 0.5}, "whole steps"),
        ({"name": "a", "kind": "category"}, "needs its labels"),
        ({"name": "a", "kind": "category", "labels": ("x", "x")}, "label 'x' twice"),
        ({"name": "a", "kind": "category", "labels": ("x", "y"), "high": 5}, "leave low and high out"),
        ({"name": "a", "kind": "integer", "high": 2, "labels": ("x", "y")}, "2 labels for the 3 codes 0 to 2"),
        ({"name": "a", "kind": "real", "high": 2, "labels": ("x",)}, "cannot have labels"),
    ],
)
def test_a_wrong_description_is_refused_with_its_reason(fields: dict, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        Attribute(**fields)


def test_codes_and_labels_are_inverse() -> None:
    age = Attribute(name="age", kind="integer", low=1, high=3, labels=("young", "middle", "old"))
    assert [age.read(code) for code in age.values()] == ["young", "middle", "old"]
    assert [age.code_of(age.read(code)) for code in age.values()] == [1, 2, 3]
    assert age.code_of("2") == 2


def test_an_unknown_label_gets_a_hint() -> None:
    job = Attribute(name="job", kind="category", labels=("Sales", "Tech"))
    with pytest.raises(SchemaError, match="Did you mean 'Sales'"):
        job.code_of("Slaes")
    with pytest.raises(SchemaError, match="takes 0 to 1, but got 7"):
        job.code_of("7")


def test_steps_span_the_domain() -> None:
    assert Attribute(name="a", kind="integer", low=0, high=10, step=5).values().tolist() == [0, 5, 10]
    tenths = Attribute(name="a", kind="real", low=0, high=0.3, step=0.1).values()
    np.testing.assert_allclose(tenths, [0, 0.1, 0.2, 0.3])


def test_clip_and_valid_agree() -> None:
    whole = Attribute(name="a", kind="integer", low=-2, high=2)
    codes = np.array([-5, -2, 0.4, 2, 9, np.nan])
    assert whole.valid(codes).tolist() == [False, True, False, True, False, False]
    assert whole.valid(whole.clip(codes[:-1])).all()
