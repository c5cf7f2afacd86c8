"""The checks of tools/house on a scratch package: each finds its fault, and says nothing about what conforms."""

from pathlib import Path

import pytest

from tools.house import CHECKS, PROJECT, WEIGHTS, Settings, SourceTree, check_tree, main, weigh


def tree(folder: Path, **files: str) -> Path:
    """A package "house" of the given files; double underscores stand for slashes."""
    root = folder / "house"
    for name, text in files.items():
        file = root / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for each in [root, *(path for path in root.rglob("*") if path.is_dir())]:
        if not (each / "__init__.py").exists():
            (each / "__init__.py").write_text('"""A package."""\n')
    return root


def found(root: Path, check: str, settings: Settings = Settings()) -> list[str]:  # noqa: B008 -- frozen
    return [str(finding) for finding in CHECKS[check](SourceTree(root), settings)]


def test_a_package_that_conforms(tmp_path: Path) -> None:
    roof = "from house.cellar import Thing\nfrom . import beam\n"
    root = tree(tmp_path, cellar__item="class Thing: ...\n", attic__roof=roof)
    (root / "attic" / "beam.py").write_text("")
    (root / "cellar" / "__init__.pyi").write_text("from .item import Thing as Thing\n")
    assert check_tree(root, Settings()) == []


def test_modules_are_nouns(tmp_path: Path) -> None:
    root = tree(tmp_path, cellar__searching="", cellar__encoding="", doing__x="")
    settings = Settings(nouns=frozenset({"encoding"}))
    assert [line.split(":")[0] for line in found(root, "names", settings)] == [
        "house/cellar/searching.py",
        "house/doing/__init__.py",
    ]


def test_a_class_name_is_given_once(tmp_path: Path) -> None:
    twice = "class Plan: ...\nclass _Own: ...\n"
    root = tree(tmp_path, cellar__a=twice, attic__b=f"if True:\n    {twice.splitlines()[0]}\nclass _Own: ...\n")
    (line,) = found(root, "classes")
    assert "class name Plan is taken by house/attic/b.py" in line


@pytest.mark.parametrize(
    "line",
    [
        "from house.cellar.item import Thing",
        "import house.cellar.item",
        "from house.cellar import item",
        "from ..cellar.item import Thing",
        "def late():\n    from house.cellar.item import Thing",
    ],
)
def test_no_import_of_what_is_inside(tmp_path: Path, line: str) -> None:
    root = tree(tmp_path, cellar__item="class Thing: ...\n", attic__roof=line)
    (text,) = found(root, "imports")
    assert "house.cellar.item is inside house.cellar" in text


@pytest.mark.parametrize(
    "line", ["from house.cellar import Thing", "from house.errors import Fault", "import numpy.linalg"]
)
def test_imports_of_what_is_exported(tmp_path: Path, line: str) -> None:
    root = tree(tmp_path, cellar__item="class Thing: ...\n", errors="class Fault: ...\n", attic__roof=line)
    assert found(root, "imports") == []


def test_inside_a_package_modules_may_meet(tmp_path: Path) -> None:
    assert found(tree(tmp_path, cellar__a="", cellar__deep__b="from house.cellar.a import x"), "imports") == []


def test_no_export_with_the_name_of_a_module(tmp_path: Path) -> None:
    root = tree(tmp_path, cellar__search="def search(): ...\n", cellar__other="")
    (root / "cellar" / "__init__.pyi").write_text("from .search import search as search\n")
    (line,) = found(root, "shadows")
    assert "house.cellar.search is a sub-module" in line
    (root / "cellar" / "__init__.pyi").write_text("from . import search as search\n")
    assert found(root, "shadows") == []
    (root / "cellar" / "__init__.py").write_text("def other(): ...\n")
    assert len(found(root, "shadows")) == 1


LADEN = '''"""A module
of two lines."""

class Thing:
    """One line."""

    def size(self):
        """One line."""
        "no docstring"; x = (1,
            2)
        return x

async def bare(): ...
'''


def test_what_a_package_weighs(tmp_path: Path) -> None:
    """A class, three statements in a method, the method, a function and its dots; layout counts nothing."""
    root = tree(tmp_path, cellar__item=LADEN)
    before = weigh(SourceTree(tree(tmp_path / "empty", cellar__item="")))
    found_here = weigh(SourceTree(root))
    assert {name: found_here[name] - before[name] for name in WEIGHTS} == {
        "statements": 7,
        "docstring_lines": 4,
        "files": 0,
    }
    assert found(root, "weight", Settings(ceiling=found_here)) == []
    for name in WEIGHTS:
        (line,) = found(root, "weight", Settings(ceiling=found_here | {name: found_here[name] - 1}))
        assert f"{found_here[name]} {name.replace('_', ' ')}, and the ceiling is {found_here[name] - 1}" in line


def test_the_exit_code_is_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tree(tmp_path, cellar__doing="")
    settings = tmp_path / "pyproject.toml"
    settings.write_text("")
    assert main([str(root), "--settings", str(settings)]) == 1
    shown = capsys.readouterr()
    assert "named after an activity" in shown.out
    assert "1 findings" in shown.err


def test_the_project_conforms() -> None:
    settings = Settings.read(PROJECT / "pyproject.toml")
    assert set(settings.ceiling) == set(WEIGHTS)
    assert check_tree(PROJECT / "src" / "fairbits", settings) == []
