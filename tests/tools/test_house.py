"""The checks of tools/house on a scratch package: each finds its fault, and says nothing about what conforms."""

from pathlib import Path

import pytest

from tools.house import CHECKS, Settings, SourceTree, check_tree, long_files
from tools.house.__main__ import PROJECT, main

DOCUMENTED = '''"""Things."""


def scale(values, *, factor=2, **options):
    """Multiply.

    Parameters
    ----------
    values
        Numbers.
    factor
        By how much.
    **options
        Passed on.

    Returns
    -------
    list
        Numbers.
    """
    return [value * factor for value in values]


class Thing:
    """A thing."""

    @property
    def size(self):
        """How large it is."""
        return 1

    @staticmethod
    def made(of, by):
        """Make one.

        Parameters
        ----------
        of, by
            What and who.
        """

    def _hidden(self, anything):
        return anything
'''


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
    root = tree(tmp_path, cellar__item=DOCUMENTED, attic__roof="from house.cellar import Thing\nfrom . import beam\n")
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


def test_docstrings_name_every_parameter(tmp_path: Path) -> None:
    text = DOCUMENTED.replace("    factor\n        By how much.\n", "").replace("    of, by\n", "    of\n")
    text += "\n\ndef bare(): ...\n"
    root = tree(tmp_path, cellar__item=text)
    assert [line.split(": ", 1)[1] for line in found(root, "docstrings")] == [
        "the docstring of scale does not name factor [docstrings]",
        "the docstring of Thing.made does not name by [docstrings]",
        "bare has no docstring [docstrings]",
    ]
    assert found(root, "docstrings", Settings(undocumented=frozenset({"cellar"}))) == []


RECORD = '''"""Records."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple


@dataclass(frozen=True)
class Person:
    """Somebody.

    Attributes
    ----------
    name
        What they are called.
    """

    name: str
    age: int
    KIND: ClassVar[str] = "person"
    _seen: bool = False


class Place(NamedTuple):
    """Somewhere."""

    street: str


class Door:
    """A door.

    Parameters
    ----------
    width
        In metres.
    """

    def __init__(self, width, *, height=2):
        """Open it.

        Parameters
        ----------
        height
            In metres.
        """
        self.width, self.height = width, height


class Bare:
    kept: int = 0
'''


def test_exported_classes_explain_their_fields(tmp_path: Path) -> None:
    root = tree(tmp_path, cellar__item=RECORD)
    assert found(root, "fields") == []  # nothing is exported
    names = "Person", "Place", "Door", "Bare"
    stub = root / "cellar" / "__init__.pyi"
    stub.write_text("".join(f"from .item import {name} as {name}\n" for name in names))
    assert [line.split(": ", 1)[1] for line in found(root, "fields")] == [
        "the docstring of Person does not explain age [fields]",
        "the docstring of Place does not explain street [fields]",
        "Bare has no docstring [fields]",
    ]
    assert found(root, "fields", Settings(undocumented=frozenset({"cellar"}))) == []


def test_a_parameter_counts_only_in_its_section(tmp_path: Path) -> None:
    text = DOCUMENTED.replace("    list\n        Numbers.\n", "    factor\n        Numbers.\n")
    text = text.replace("    factor\n        By how much.\n", "")
    (line,) = found(tree(tmp_path, cellar__item=text), "docstrings")
    assert "does not name factor" in line


def test_an_option_of_a_command_is_described_by_its_help(tmp_path: Path) -> None:
    text = 'Seed = Annotated[int, Option(help="Same seed.")]\nBare = Annotated[int, Option()]\n'
    text += 'def run(a: Seed, b: Annotated[int, Option(help="B.")], c: Grants, d: Bare):\n    """Run."""\n'
    (line,) = found(tree(tmp_path, cellar__x=text), "docstrings", Settings(described=frozenset({"Grants"})))
    assert "does not name d" in line


def test_long_files_are_listed_and_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tree(tmp_path, cellar__long="x = 1\n" * 12, cellar__short="x = 1\n")
    assert long_files(SourceTree(root), Settings(max_lines=10)) == [("house/cellar/long.py", 12)]
    settings = tmp_path / "pyproject.toml"
    settings.write_text("[tool.house]\nmax_lines = 10\n")
    assert main([str(root), "--settings", str(settings)]) == 0
    assert main([str(root), "--settings", str(settings), "--list"]) == 0
    assert "house/cellar/long.py: 12 lines" in capsys.readouterr().out


def test_the_exit_code_is_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tree(tmp_path, cellar__doing="")
    settings = tmp_path / "pyproject.toml"
    settings.write_text("")
    assert main([str(root), "--settings", str(settings)]) == 1
    shown = capsys.readouterr()
    assert "named after an activity" in shown.out
    assert "1 findings" in shown.err


def test_the_project_conforms() -> None:
    findings = check_tree(PROJECT / "src" / "fairbits", Settings.read(PROJECT / "pyproject.toml"))
    assert findings == []
