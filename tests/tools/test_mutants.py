"""The mutation survey on a project of one file: what is noticed, what is not, and what is out of date."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mutants.__main__ import report
from tools.mutants.survey import Mutant, read_table, survey

CODE = "def larger(a, b):\n    return a if a > b else b\n"
TEST = """from toy.compare import larger


def test_larger():
    assert larger(1, 2) == 2
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "toy-project"
    for file, text in (
        ("src/toy/__init__.py", ""),
        ("src/toy/compare.py", CODE),
        ("tests/test_compare.py", TEST),
        ("pyproject.toml", "[tool.pytest.ini_options]\n"),
    ):
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def mutant(name: str, old: str, new: str, **more: str) -> Mutant:
    return Mutant(name, "src/toy/compare.py", old, new, ("tests/test_compare.py",), **more)


def test_the_survey_tells_killed_from_survived_and_leaves_the_project_alone(project: Path) -> None:
    killed, survived = mutant("smaller", "a > b", "a < b"), mutant("ties", "a > b", "a >= b")
    found = {one.name: verdict for one, verdict in survey(project, [killed, survived], jobs=1)}
    assert found == {"smaller": "killed", "ties": "survived"}
    assert (project / "src/toy/compare.py").read_text() == CODE


def test_tests_that_fail_without_a_mutant_say_nothing_about_one(project: Path) -> None:
    (project / "tests/test_compare.py").write_text("def test_nothing():\n    assert False\n")
    with pytest.raises(RuntimeError, match="fail without any mutant"):
        list(survey(project, [mutant("smaller", "a > b", "a < b")], jobs=1))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("a != b", "a == b", "stands 0 times"),
        ("a", "c", "not once"),
        ("a > b", "a > b", "are the same"),
    ],
)
def test_mutants_that_are_out_of_date_are_named(project: Path, old: str, new: str, words: str) -> None:
    assert words in mutant("stale", old, new).fault(project)
    assert "does not exist" in Mutant("gone", "src/toy/gone.py", "a", "b", ()).fault(project)


def test_survivors_need_a_reason_and_must_be_few(capsys: pytest.CaptureFixture[str]) -> None:
    explained, bare = mutant("ties", "a", "b", survives="equal either way"), mutant("bare", "a", "b")
    others = [(mutant(str(i), "a", "b"), "killed") for i in range(9)]
    assert report([(explained, "survived"), *others]) == 0
    assert "survived: ties: equal either way" in capsys.readouterr().out
    assert report([(bare, "survived"), *others]) == 1
    assert report([(explained, "survived"), *others[:5]]) == 1


def test_the_table_covers_what_it_must() -> None:
    mutants = read_table(Path(__file__).parents[2] / "tools/mutants/table.toml")
    packages = [one.package for one in mutants]
    assert len(mutants) >= 60
    assert min(map(packages.count, ("search", "measure", "store", "debug", "repair", "gates"))) >= 5
