"""Options that several commands have are described once, and therefore alike."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from typer.main import get_command

from fairbits.cli.app import app

from .calling import fairbits

#: The same name, and on purpose not the same words: what they mean differs with the command.
OWN_WORDS = {"budget", "seed", "out", "subject", "partition", "repeats"}


def parameters(command: str) -> list[Any]:
    found = get_command(app)
    return list(found.commands[command].params)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["subject", "partition", "epsilon", "protected", "out", "resume", "threads", "ray"])
def test_audit_and_search_share_their_options(name: str) -> None:
    one, other = (
        next(parameter for parameter in parameters(command) if parameter.name == name)
        for command in ("audit", "search")
    )
    assert one.help == other.help
    assert (one.opts, one.default, one.metavar) == (other.opts, other.default, other.metavar)


def test_an_option_reads_the_same_wherever_it_stands() -> None:
    said = defaultdict(set)
    for command in ("audit", "search", "measure", "debug", "repair", "compare", "fleet"):
        for parameter in parameters(command):
            if parameter.name not in OWN_WORDS:
                said[parameter.name].add(parameter.help)
    assert {name: words for name, words in said.items() if len(words) > 1} == {}


#: What files from outside may do; the same for every command that reads some.
GRANTS = ["trust_code", "trust", "credential", "max_model_bytes", "max_rows", "max_seconds"]


def test_options_come_in_the_order_they_always_had() -> None:
    assert [parameter.name for parameter in parameters("audit")] == [
        "subject",
        "budget",
        "out",
        "skip",
        "resume",
        "seed",
        "within",
        "min_plausibility",
        "epsilon",
        "partition",
        "measure",
        "protected",
        "threads",
        "workers",
        "ray",
        "repeats",
        "by",
        "as_is",
        "trust_pickle",
        "as_json",
        "data_source",
        "distributed",
        "force",
        *GRANTS,
    ]
    assert [parameter.name for parameter in parameters("search")] == [
        "subject",
        "strategy",
        "budget",
        "evaluations",
        "cases",
        "queries",
        "ends",
        "seed",
        "out",
        "resume",
        "force",
        "within",
        "min_plausibility",
        "on_data",
        "exhaustive",
        "option",
        "epsilon",
        "partition",
        "measure",
        "protected",
        "threads",
        "workers",
        "ray",
        "shards",
        "batch",
        "repeats",
        "top",
        "as_is",
        "trust_pickle",
        "as_json",
        *GRANTS,
    ]


def test_an_option_that_is_given_twice_is_refused() -> None:
    """Of two lists of protected attributes only the last would be kept, without a word."""
    for command in ("measure", "search", "audit", "certify"):
        done = fairbits(command, "heart", "--protected", "sex", "--protected", "age")
        assert (done.returncode, done.stdout) == (2, "")
        assert (
            done.stderr
            == "fairbits: --protected is given more than once; give it once, the names of a list with commas.\n"
        )
    for words in (
        ("data", "export", "heart", "--out", "a"),
        ("data", "train", "heart", "--out", "a"),
        ("guard", "serve", "heart", "--port", "1"),
    ):
        done = fairbits(*words, *words[-2:])
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"fairbits: {words[-2]} is given more than once")
    many = fairbits("search", "heart", "--option", "seeds=2", "--option", "wrong=3", "--budget", "1s")
    assert "no option 'wrong'" in many.stderr
