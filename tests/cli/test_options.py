"""Options that several commands have are described once, and therefore alike."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields
from typing import Any

import click
import pytest

from fairbits import Audit, options
from fairbits.audit import AuditRun
from fairbits.cli.app import SUMMARIES, app
from fairbits.domain import GrantOptions

from .calling import fairbits

#: The same name, and on purpose not the same words: what they mean differs with the command.
OWN_WORDS = {"--budget", "--seed", "--out", "--evaluations", "--retrain", "--force"}


def flags(command: str) -> dict[str, Any]:
    found = app.get_command(click.Context(app), command)
    assert found is not None
    return {one.opts[0]: one for one in found.params if isinstance(one, click.Option)}


@pytest.mark.parametrize("flag", ["--partition", "--epsilon", "--protected", "--out", "--resume", "--threads", "--ray"])
def test_audit_and_search_share_their_options(flag: str) -> None:
    one, other = flags("audit")[flag], flags("search")[flag]
    assert one.help == other.help
    assert (one.opts, one.default, one.metavar) == (other.opts, other.default, other.metavar)


def test_an_option_reads_the_same_wherever_it_stands() -> None:
    said = defaultdict(set)
    for command in ("audit", "search", "measure", "debug", "repair", "certify", "proxies", "fleet"):
        for flag, one in flags(command).items():
            if flag not in OWN_WORDS:
                said[flag].add(one.help)
    assert {name: words for name, words in said.items() if len(words) > 1} == {}


def test_every_command_of_the_list_is_there() -> None:
    assert len(SUMMARIES) <= 18
    for name, summary in SUMMARIES.items():
        assert len(summary) <= 66
        assert {"-h", "--help"} <= set(flags(name))


def test_short_help_is_short_and_long_help_has_everything() -> None:
    for command in SUMMARIES:
        short, long = (fairbits(command, flag).stdout for flag in ("-h", "--help"))
        assert len(short.splitlines()) <= 25
        assert "Loading and limits" not in short
        assert f"All options: fairbits {command} --help" in short
        assert all(flag in long for flag in flags(command))
        assert not any(old in long for old in ("--as-is", "--distributed", "--also", "--proposals"))


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        (Audit.measure, options.MeasureOptions),
        (Audit.search, options.SearchOptions),
        (Audit.audit, options.AuditOptions),
        (Audit.certify, options.CertifyOptions),
        (Audit.proxies, options.ProxiesOptions),
        (Audit.compare, options.CompareOptions),
        (Audit.diff, options.DiffOptions),
        (AuditRun.debug, options.DebugOptions),
        (AuditRun.repair, options.RepairOptions),
        (AuditRun.certify, options.CertifyOptions),
    ],
)
def test_the_python_door_has_the_arguments_of_the_record(method: Any, kind: type[Any]) -> None:
    import inspect

    known = inspect.signature(method).parameters
    for one in fields(kind):
        name = options.argument_of(one)
        assert name in known
        assert f"        {name}\n            " in method.__doc__
        assert f"{one.metadata['help']}\n" in method.__doc__
    assert "options" in known if kind is options.SearchOptions else "options" not in known


def test_an_argument_that_nobody_knows_is_refused() -> None:
    with pytest.raises(TypeError, match=r"there is no argument 'samplez'; choose from: .*Did you mean 'samples'"):
        options.read_options(options.DebugOptions, {"samplez": 3})


def test_loading_options_are_the_grants() -> None:
    assert {one.name for one in fields(options.LoadingOptions)} == set(GrantOptions.__annotations__)


def test_options_are_typed_as_they_are_read() -> None:
    made = options.SearchOptions(
        budget="3s", seed=7, ends=(4, 5), epsilon=0.1, options={"seeds": 3, "mode": "semi", "name": "3"}, within=2
    )
    pairs = ("--option", "seeds=3", "--option", "mode=semi", "--option", 'name="3"')
    assert options.flag_words(made) == [
        *("--budget", "3s", "--ends", "4,5", "--seed", "7", *pairs, "--within", "2", "--epsilon", "0.1"),
    ]
    assert options.flag_words(options.RepairOptions(retrain=False, proposals=("a", "b"))) == [
        *("--no-retrain", "--with", "a,b"),
    ]
    assert options.flag_words(options.CertifyOptions(seconds=2.5, proofs=False)) == ["--budget", "2.5s"]


MOVED = [
    (["guard", "serve", "-h"], "serve"),
    (["compare", "-h"], "paper compare"),
    (["gate", "check", "-h"], "gate"),
    (["gate", "freeze", "-h"], "gate --freeze"),
    (["gate", "waivers", "-h"], "gate --waivers"),
    (["gate", "card", "-h"], "report --form card"),
    (["tune", "-h"], "repair --with settings"),
    (["alternatives", "-h"], "repair --with mitigators,settings --write-all"),
]


@pytest.mark.parametrize(("words", "new"), MOVED, ids=[" ".join(words[:-1]) for words, _ in MOVED])
def test_old_names_work_and_say_the_new_one(words: list[str], new: str) -> None:
    done = fairbits(*words)
    assert (done.returncode, done.stderr) == (
        0,
        f"fairbits: `fairbits {' '.join(words[:-1])}` is now `fairbits {new}`.\n",
    )
    assert done.stdout.startswith(f"Usage: fairbits {new.split(maxsplit=1)[0]} ")


def test_old_flags_work(tmp_path: Any) -> None:
    assert fairbits("measure", "heart", "--as-is", "--json").returncode == 0
    for words in (["repair", "heart", "--also", "x"], ["proxies", "nobody", "--distributed", "today"]):
        assert "no such option" not in fairbits(*words).stderr.lower()


def test_what_is_no_command_or_no_run_is_told(tmp_path: Any) -> None:
    (tmp_path / "loans.csv").write_text("a,b\n1,2\n")
    for words, said in (
        (["debug", "german"], "german is a subject; debug needs a run: fairbits audit german"),
        (["loans.csv"], "loans.csv is a table; try: fairbits init loans.csv"),
        (["audit", "loans.csv"], "loans.csv is a table; try: fairbits init loans.csv"),
        (["cases", "loans.csv"], "loans.csv is a table; try: fairbits init loans.csv"),
        (["serch"], "there is no command 'serch'; choose from: audit, init"),
        (["data", "shw"], "'shw' is nothing that can be done with data; choose from: list, show"),
        (["data", "show"], "type: fairbits data show NAME."),
        (["data", "list", "--codes"], "--codes does not apply to `fairbits data list`"),
    ):
        done = fairbits(*words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"fairbits: {said}")


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
        ("serve", "heart", "--port", "1"),
    ):
        done = fairbits(*words, *words[-2:])
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"fairbits: {words[-2]} is given more than once")
    many = fairbits("search", "heart", "--option", "seeds=2", "--option", "wrong=3", "--budget", "1s")
    assert "no option 'wrong'" in many.stderr
