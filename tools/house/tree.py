"""The source files under check, parsed once."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Settings:
    """What `[tool.house]` in pyproject.toml says.

    ``nouns`` are module names in -ing that are things all the same; ``undocumented`` packages (or modules directly
    under the root) whose docstrings are not checked yet; ``described`` types that
    document a parameter by themselves; ``max_lines`` is how long a file may be before it is listed.
    """

    nouns: frozenset[str] = frozenset()
    undocumented: frozenset[str] = frozenset()
    described: frozenset[str] = frozenset()
    max_lines: int = 300

    @classmethod
    def read(cls, file: Path) -> Settings:
        """Read the settings from a pyproject.toml.

        Parameters
        ----------
        file
            The pyproject.toml; without a table `[tool.house]` the defaults hold.

        Returns
        -------
        Settings
            The settings of the project.
        """
        found = tomllib.loads(file.read_text()).get("tool", {}).get("house", {})
        names = {key: frozenset(found.get(key, ())) for key in ("nouns", "undocumented", "described")}
        return cls(**names, max_lines=found.get("max_lines", 300))


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that does not conform: where, and one sentence about it."""

    file: str
    line: int
    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text} [{self.check}]"


@dataclass(frozen=True)
class Module:
    """One source file: its path, dotted name, text and syntax tree."""

    file: Path
    shown: str
    name: str
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The first name below the root package: "domain" of fairbits.domain.schema; "" of the root itself."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""

    def functions(self) -> Iterator[tuple[str, Function, bool]]:
        """Public functions and methods.

        Returns
        -------
        Iterator of (str, Function, bool)
            The qualified name, the definition, and whether the first parameter is the object or the class.
        """
        yield from _functions(self.tree.body, "", inside=False)


class SourceTree:
    """All modules of one package."""

    def __init__(self, root: Path):
        """Parameters: ``root``, the folder of the package, such as src/fairbits."""
        self.root = root

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        """Every .py file below the root, in order of path."""
        return tuple(self._module(file) for file in sorted(self.root.rglob("*.py")))

    @cached_property
    def names(self) -> frozenset[str]:
        """Dotted names of all modules and packages."""
        return frozenset(module.name for module in self.modules)

    @cached_property
    def packages(self) -> frozenset[str]:
        """Dotted names of the modules that are folders."""
        return frozenset(module.name for module in self.modules if module.file.name == "__init__.py")

    @cached_property
    def exports(self) -> frozenset[tuple[str, str]]:
        """What packages export: the module that defines it, and its name there."""
        found = set()
        for module in self.modules:
            if module.name not in self.packages:
                continue
            stub = module.file.with_suffix(".pyi")
            body = ast.parse(stub.read_text()) if stub.exists() else module.tree
            for node in ast.walk(body):
                if isinstance(node, ast.ImportFrom):
                    home = self.absolute(node, module)
                    found.update((home, each.name) for each in node.names)
        return frozenset(found)

    def absolute(self, node: ast.ImportFrom, module: Module) -> str:
        """The dotted name of the module that an import reads from.

        Parameters
        ----------
        node
            The import.
        module
            Where it stands.
        """
        if not node.level:
            return node.module or ""
        parts = module.name.split(".")
        parts = parts if module.name in self.packages else parts[:-1]
        kept = parts[: len(parts) - node.level + 1]
        return ".".join([*kept, node.module] if node.module else kept)

    @cached_property
    def described_types(self) -> frozenset[str]:
        """Names bound to an ``Annotated`` type that carries a help text, as options of a command line are."""
        found = set()
        for module in self.modules:
            for node in module.tree.body:
                if isinstance(node, ast.Assign) and has_help(node.value):
                    found.update(target.id for target in node.targets if isinstance(target, ast.Name))
        return frozenset(found)

    def _module(self, file: Path) -> Module:
        parts = (self.root.name, *file.relative_to(self.root).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        shown = str(Path(self.root.name) / file.relative_to(self.root))
        text = file.read_text()
        return Module(file, shown, name, text, ast.parse(text))


def has_help(annotation: ast.expr) -> bool:
    """Whether a type carries its own help text: ``Annotated[int, typer.Option(help="…")]``.

    Parameters
    ----------
    annotation
        The expression of the type.

    Returns
    -------
    bool
        True for an ``Annotated`` with a call that has the argument ``help``.
    """
    if not isinstance(annotation, ast.Subscript) or not ast.unparse(annotation.value).endswith("Annotated"):
        return False
    calls = (node for node in ast.walk(annotation.slice) if isinstance(node, ast.Call))
    return any(keyword.arg == "help" for call in calls for keyword in call.keywords)


def _functions(body: list[ast.stmt], prefix: str, *, inside: bool) -> Iterator[tuple[str, Function, bool]]:
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _functions(node.body, f"{prefix}{node.name}.", inside=True)
        elif isinstance(node, Function) and not node.name.startswith("_") and not _repeats(node):
            yield f"{prefix}{node.name}", node, inside and "staticmethod" not in _decorators(node)
        elif isinstance(node, ast.If | ast.Try):
            yield from _functions(node.body + node.orelse, prefix, inside=inside)


def _repeats(node: Function) -> bool:
    """Setters and typing overloads share the docstring of what they belong to."""
    return any(name in ("setter", "deleter", "overload") for name in _decorators(node))


def _decorators(node: Function) -> set[str]:
    found = set()
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Attribute):
            found.add(decorator.attr)
        elif isinstance(decorator, ast.Name):
            found.add(decorator.id)
    return found
