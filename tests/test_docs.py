"""Snippets in the documents run, examples in docstrings hold, and links between documents lead somewhere."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from inspect import isclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

import fairbits
import fairbits.audit
from tests.cli.calling import fairbits as fairbits_here

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("python", "report", "diff", "extend"))]
SNIPPETS = [
    (document.name, number, code)
    for document in DOCUMENTS
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL))
]


@pytest.mark.parametrize(("document", "number", "code"), SNIPPETS, ids=lambda value: str(value)[:20])
def test_snippets_run(document: str, number: int, code: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for long, short in (('attack_budget="1s"', 'attack_budget="0.1s"'), ('budget="3s"', 'budget="1s"')):
        code = code.replace(long, short)  # how long says nothing about the document
    exec(compile(code, f"{document}:{number}", "exec"), {})  # noqa: S102 - our own documents
    assert capsys.readouterr().out.strip()


def test_the_readme_shows_what_census_gives() -> None:
    """The first screen is what the command prints about the network that ships, line by line."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"`fairbits measure census` alone:\n\n```text\n(.*?)```", readme, re.DOTALL)
    assert block
    printed = fairbits_here("measure", "census", "--top", 0).stdout
    lines = [line.rstrip() for line in printed.splitlines() if line.strip()]
    shown = [line.rstrip() for line in block[1].splitlines() if line.strip()]
    assert lines[: len(shown)] == shown


def test_examples_in_docstrings_hold() -> None:
    tried = 0
    for module in pkgutil.walk_packages(fairbits.__path__, "fairbits."):
        if module.name.endswith("__main__"):
            continue
        found = importlib.import_module(module.name)
        if ">>>" not in Path(str(found.__file__)).read_text(encoding="utf-8"):
            continue  # looking through all of its members for examples takes longer than the examples
        result = doctest.testmod(found)
        assert result.failed == 0, module.name
        tried += result.attempted
    assert tried > 5


def reachable(name: str, found: Any) -> Iterator[tuple[str, Any]]:
    """What `help` can be asked about a public name: itself, its methods and what is in it."""
    yield name, found
    members = vars(found) if inspect.ismodule(found) else dict(inspect.getmembers(found)) if isclass(found) else {}
    home = found.__name__ if inspect.ismodule(found) else "fairbits"  # what a module borrows is no part of it
    for part, member in members.items():
        ours = str(getattr(member, "__module__", "")).startswith(home)
        if not part.startswith("_") and callable(member) and ours:
            yield f"{name}.{part}", member


def documented_parameters(docstring: str) -> set[str]:
    """Names that the sections of a numpydoc docstring explain, without asterisks."""
    found: set[str] = set()
    inside = False
    for line, below in pairwise([*docstring.splitlines(), ""]):
        if re.fullmatch(r"-{3,}", below.strip()):
            inside = line.strip() in ("Parameters", "Other Parameters", "Attributes")
        elif inside and line and not line[0].isspace() and not re.fullmatch(r"-{3,}", line):
            heads = line.split(" : ")[0].split(",")
            found.update(head.strip().strip("*`\\").rstrip(":") for head in heads)
    return found


PUBLIC = {name: getattr(fairbits, name) for name in sorted(fairbits.__all__) if not name.startswith("_")}
HELP = [each for pair in (*PUBLIC.items(), ("AuditRun", fairbits.audit.AuditRun)) for each in reachable(*pair)]


def test_help_explains_every_argument() -> None:
    """`help(fairbits.Audit.search)` names each argument, whatever class or base it is inherited from."""
    missing = {}
    for name, found in HELP:
        text = inspect.getdoc(found) or ""
        assert text, name
        foreign = isclass(found) and issubclass(found, Exception | Figure)  # made by Python's or matplotlib's rules
        if not callable(found) or foreign:
            continue
        given = inspect.signature(found).parameters
        named = documented_parameters(text)
        bound = {"self", "cls"}
        left = [each for each in given if each not in named | bound and not each.startswith("_")]
        if left:
            missing[name] = left
    assert len(HELP) > 150
    assert missing == {}


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_zoo_page_is_the_tests_own_table() -> None:
    pytest.importorskip("torch", reason="the torch extra is not installed")
    from tools.zoo import PAGE, page

    assert PAGE.read_text(encoding="utf-8") == page(), "write it again: python -m tools.zoo"
