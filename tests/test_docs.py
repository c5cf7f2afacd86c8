"""Snippets in the documents run, examples in docstrings hold, and links between documents lead somewhere."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import pkgutil
import re
import runpy
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from inspect import isclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

import fairbits
import fairbits.audit
from fairbits.cli.app import SUMMARIES
from fairbits.report.forms import FORMS
from fairbits.report.page import PARTS
from tests.cli.calling import fairbits as fairbits_here
from tools.chart import PICTURE, certified, ratios, times
from tools.notebooks import NOTEBOOKS, beside_the_examples, code_cells, printed, stored

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted(ROOT.glob("docs/**/*.md"))]
SNIPPETS = [
    (document.name, number, code)
    for document in DOCUMENTS
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL))
]
#: Pages whose console blocks are run in their order; those of docs/gate.md have a test of their own.
WALKS = ("tutorial", "credit", "certify")
MOST_WORDS = 25_000


@pytest.mark.parametrize(("document", "number", "code"), SNIPPETS, ids=lambda value: str(value)[:20])
def test_snippets_run(document: str, number: int, code: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")
    for long, short in (('attack_budget="1s"', 'attack_budget="0.1s"'), ('budget="3s"', 'budget="1s"')):
        code = code.replace(long, short)  # how long says nothing about the document
    exec(compile(code, f"{document}:{number}", "exec"), {})  # noqa: S102 - our own documents
    printed = capsys.readouterr().out.strip()
    assert printed
    if document == README.name:
        assert f"```\n\n```text\n{printed}\n```" in README.read_text(encoding="utf-8"), "it prints something else"


def commands_of(document: Path) -> list[list[str]]:
    """The lines after a prompt, as words."""
    blocks = re.findall(r"```console\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [shlex.split(line, comments=True) for line in lines]


def test_the_commands_of_the_readme_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    made, activated, measured = commands_of(README)
    assert made == ["make", "demo"]
    assert re.search(r"^demo: .*\n\t\$\(BIN\)/fairbits audit census", makefile, re.MULTILINE)
    assert activated == ["source", f"{re.search(r'^VENV *:= *(.*)', makefile, re.MULTILINE)[1]}/bin/activate"]
    assert fairbits_here(*measured[1:]).returncode == 0
    assert "`make test`" in README.read_text(encoding="utf-8")
    assert "\ntest: " in makefile


@pytest.fixture
def credit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the applicants and the model of the examples."""
    pytest.importorskip("skops", reason="the sklearn extra is not installed")
    shutil.copy(ROOT / "examples" / "people.csv", tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(ROOT / "examples" / "people.csv", folder)
    monkeypatch.chdir(folder)
    runpy.run_path(str(ROOT / "examples" / "scikit-learn" / "train.py"))
    return folder


@pytest.mark.parametrize("page", WALKS)
def test_a_page_can_be_walked_through(page: str, credit: Path) -> None:
    for program, *words in commands_of(ROOT / "docs" / f"{page}.md"):
        if program != "fairbits":
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not here")
            subprocess.run([program, *words], check=True)
            continue
        if words[0] == "audit":  # the later stages are commands of their own on these pages
            words += ["--skip", "debug,repair,certify"]
        done = fairbits_here(*(re.sub(r"^(20|5|3)s$", "1s", word) for word in words))
        assert done.returncode in (0, 1), (words, done.stderr)  # 1: no repair is sure to keep its budget
        assert done.stderr.startswith("fairbits:") is (done.returncode == 1 and words[0] == "repair"), words


def test_the_tutorial_shows_what_census_gives() -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    found = json.loads(fairbits_here("measure", "census", "--json").stdout)
    rates = {"any attribute": found["flip_rate"]} | {f"{name} alone": r for name, r in found["flip_rate_by"].items()}
    for name, rate in rates.items():
        assert f"| flips, {name} | {100 * rate:.1f}\N{NO-BREAK SPACE}% |" in page
    assert f"| mean k | {found['k_mean']:.1f} |" in page
    assert f"| mean bits Q∞ | {found['q_inf_mean']:.2f} |" in page


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_prints_what_it_shows(file: Path, tmp_path: Path) -> None:
    notebook = json.loads(file.read_text(encoding="utf-8"))
    with beside_the_examples(tmp_path):
        shown = list(printed(notebook))
    assert shown == [stored(cell) for cell in code_cells(notebook)], "write it again: python -m tools.notebooks"


def test_the_chart_shows_what_the_documents_say() -> None:
    picture = PICTURE.read_text(encoding="utf-8")
    shown = [*map(times, ratios().values()), *(f"{share} %" for pair in certified().values() for share in pair)]
    assert len(shown) == 14
    assert [text for text in shown if f">{text}</text>" not in picture] == [], "draw it again: python -m tools.chart"


def test_claims_about_the_paper_have_the_figures_of_its_tables() -> None:
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    claims, rest = page.split("\n\nThe networks have", 1)
    figures = re.findall(r"\b\d+\.\d+\b", claims.split("| --- |", 1)[1])
    assert len(figures) > 10
    assert [figure for figure in figures if figure not in rest] == [], "make paper gave others: judge the claims again"


def test_the_page_of_commands_names_them_all() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert len(SUMMARIES) > 15
    assert [name for name in SUMMARIES if not re.search(rf"^\| `{name}\b", page, re.MULTILINE)] == []


def test_the_reference_describes_what_is_there() -> None:
    """Sphinx only warns of a name that went, when the pages are made."""
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md"))
    names = re.findall(r"auto(?:class|function):: (\S+)\.(\w+)", pages)
    assert len(names) > 50
    assert [name for module, name in names if not hasattr(importlib.import_module(module), name)] == []


def test_the_page_about_installing_names_every_extra() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").split("| extra |")[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [name for name in project["optional-dependencies"] if f"`{name}`" not in page] == []


def test_what_one_brings_along_is_shown() -> None:
    pages = "".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    names = [
        "bits_scorer",
        "flip_rate_scorer",
        "GuardedClassifier",
        'evaluators="fairbits"',
        ",".join(FORMS),
        "own age",
    ]
    assert [name for name in names if name not in pages] == []


def test_the_house_has_the_rooms_that_it_names() -> None:
    """CONTRIBUTING names every package and module at the top, and no folder or file that is not there."""
    source = ROOT / "src" / "fairbits"
    rows = [line.split("|") for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()]
    rooms = {name: row for row in rows if len(row) == 5 for name in re.findall(r"`(\w+)`", row[1])}
    there = {file.stem for file in source.iterdir() if file.is_dir() or file.suffix == ".py"}
    assert set(rooms) == {name for name in there if not name.startswith("_")}
    named = [(name, one) for name, row in rooms.items() for one in re.findall(r"`(\w+(?:/|\.py))`", "".join(row[2:]))]
    assert [one for name, one in named if not [*(source / name).rglob(one.rstrip("/"))]] == []


def test_how_to_read_a_report_follows_the_page() -> None:
    text = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    places = [text.find(f"**{title}") for _, title, _ in PARTS]
    assert -1 not in places
    assert places == sorted(places)


def test_the_documents_stay_short() -> None:
    words = {
        str(document.relative_to(ROOT)): len(document.read_text(encoding="utf-8").split()) for document in DOCUMENTS
    }
    assert words["README.md"] <= 500
    assert sum(words.values()) <= MOST_WORDS, "cut something: history belongs to git, figures to docs/tables"


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
        given = [name for name, one in inspect.signature(found).parameters.items() if one.kind is not one.VAR_KEYWORD]
        elsewhere = re.search(r"arameters as of :class:`(\w+)`", text)
        named = documented_parameters(text + (inspect.getdoc(PUBLIC[elsewhere[1]]) or "" if elsewhere else ""))
        bound = {"self", "cls"}
        left = [each for each in given if each not in named | bound and not each.startswith("_")]
        if left:
            missing[name] = left
    assert len(HELP) > 150
    assert missing == {}


def headings(document: Path) -> set[str]:
    """The anchors of a page, as GitHub and Sphinx make them of its headings."""
    found = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", document.read_text(encoding="utf-8")):
            page = document.parent / target if target else document
            assert page.exists(), f"{document.name} links to {target}"
            assert not anchor or anchor in headings(page), f"{document.name} links to {target}#{anchor}"


def test_the_zoo_page_is_the_tests_own_table() -> None:
    pytest.importorskip("torch", reason="the torch extra is not installed")
    from tools.zoo import files

    made = files()
    assert len(made) == 8
    other = [file.name for file, text in made.items() if file.read_text(encoding="utf-8") != text]
    assert other == [], "write it again: python -m tools.zoo"
