"""Sentences stay sentences, whatever they quote, and finding the closest name takes no time."""

from __future__ import annotations

import pickle
import time

from fairbits.errors import MissingDependencyError, OptionError, SchemaError, choose_from


def test_a_sentence_that_quotes_too_much_keeps_its_start_and_its_end() -> None:
    said = str(OptionError(f"the label {'x' * 1_000_000!r} is not known; choose another one."))
    assert len(said) < 2_000
    assert said.startswith("the label 'xxx")
    assert said.endswith("xxx' is not known; choose another one.")
    short = "the label 'x' is not known."
    assert str(SchemaError(short)) == short


def test_a_missing_package_is_told_the_same_by_another_process() -> None:
    raised = MissingDependencyError.of("pandas", "pandas", "a pipeline over columns by name")
    found = pickle.loads(pickle.dumps(raised))  # noqa: S301 - our own
    assert type(found) is MissingDependencyError
    assert str(found) == str(raised)
    assert "pip install 'pandas" in str(found)


def test_many_long_names_are_compared_in_no_time() -> None:
    base = "abcdefghij" * 9
    began = time.process_time()
    said = choose_from(base + "x" * 100_000, [f"{base[:40]}{i:06d}{base[40:]}" for i in range(200_000)])
    assert time.process_time() - began < 2
    assert "(200000 in all)" in said
    assert len(choose_from("a", ["b" * 1_000_000])) < 200


def test_the_closest_name_is_still_found() -> None:
    assert choose_from("gender", ["age", "sex", "sender"]).endswith("Did you mean 'sender'?")
