"""Does the package keep to its own layout, and within its weight? Checks that no linter of others makes.

`python -m tools.house` fails on a module named after an activity, a class name used twice, an import of what another
package does not export, an export with the name of a sub-module, and more statements, docstring lines or files than
`[tool.house]` in pyproject.toml allows: new things pay for their room.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
#: What is weighed, as `[tool.house]` calls it.
WEIGHTS = ("statements", "docstring_lines", "files")
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Settings:
    """What `[tool.house]` says: module names in -ing that are things, and how much of everything there may be."""

    nouns: frozenset[str] = frozenset()
    ceiling: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Settings:
        """The settings in a pyproject.toml."""
        found = tomllib.loads(file.read_text()).get("tool", {}).get("house", {})
        return cls(frozenset(found.get("nouns", ())), {name: found[name] for name in WEIGHTS if name in found})


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
    """One source file: its path, dotted name and syntax tree."""

    file: Path
    shown: str
    name: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The first name below the root package: "domain" of fairbits.domain.schema; "" of the root itself."""
        return (*self.name.split("."), "")[1]


class SourceTree:
    """All modules of one package, parsed once; ``root`` is its folder."""

    def __init__(self, root: Path):
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

    def absolute(self, node: ast.ImportFrom, module: Module) -> str:
        """The dotted name of the module that an import reads from."""
        if not node.level:
            return node.module or ""
        parts = module.name.split(".")
        parts = parts if module.name in self.packages else parts[:-1]
        kept = parts[: len(parts) - node.level + 1]
        return ".".join([*kept, node.module] if node.module else kept)

    def _module(self, file: Path) -> Module:
        parts = (self.root.name, *file.relative_to(self.root).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        return Module(file, str(Path(self.root.name) / file.relative_to(self.root)), name, ast.parse(file.read_text()))


def module_names(sources: SourceTree, settings: Settings) -> Iterator[Finding]:
    """Modules are nouns: none is named after an activity (-ing), except the listed nouns."""
    for module in sources.modules:
        last = module.name.rpartition(".")[2]
        if last.endswith("ing") and last not in settings.nouns:
            yield Finding(module.shown, 1, "names", f"the module {last} is named after an activity; name the thing")


def class_names(sources: SourceTree, _: Settings) -> Iterator[Finding]:
    """A public class name means one thing in the whole package."""
    homes: dict[str, list[tuple[Module, int]]] = defaultdict(list)
    for module in sources.modules:
        for node in _statements(module.tree.body):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append((module, node.lineno))
    for name, places in homes.items():
        first = places[0][0].shown
        for module, line in places[1:]:
            yield Finding(module.shown, line, "classes", f"the class name {name} is taken by {first}")


def deep_imports(sources: SourceTree, _: Settings) -> Iterator[Finding]:
    """Across packages only what a package exports is imported, never one of its modules."""
    for module in sources.modules:
        if not module.package:
            continue  # the root is the front door: it may show a whole module, as `fairbits.plot`
        for node in ast.walk(module.tree):
            for target in _imported(node, module, sources):
                parts = target.split(".")
                other = ".".join(parts[:2])
                if len(parts) > 2 and other in sources.packages and parts[1] != module.package:
                    text = f"{target} is inside {other}: import what {other} exports"
                    yield Finding(module.shown, getattr(node, "lineno", 1), "imports", text)


def shadowed_modules(sources: SourceTree, _: Settings) -> Iterator[Finding]:
    """No package has an attribute with the name of one of its sub-modules."""
    for module in sources.modules:
        if module.name not in sources.packages:
            continue
        stub = module.file.with_suffix(".pyi")
        body = [*module.tree.body, *(ast.parse(stub.read_text()).body if stub.exists() else [])]
        for name, line in _bound(body, module.name):
            if f"{module.name}.{name}" in sources.names:
                text = f"{module.name}.{name} is a sub-module, and the package binds the same name to something else"
                yield Finding(module.shown, line, "shadows", text)


def weight(sources: SourceTree, settings: Settings) -> Iterator[Finding]:
    """No more than the ceiling of what a reader has to hold."""
    found = weigh(sources)
    for name, most in settings.ceiling.items():
        if found[name] > most:
            text = f"{found[name]:,} {name.replace('_', ' ')}, and the ceiling is {most:,}: remove what this replaces"
            yield Finding("pyproject.toml", 1, "weight", text)


def weigh(sources: SourceTree) -> dict[str, int]:
    """How much there is, counted from the syntax trees: layout, long lines and comments change nothing."""
    found = dict.fromkeys(WEIGHTS, 0)
    for module in sources.modules:
        found["files"] += 1
        for node in ast.walk(module.tree):
            found["statements"] += isinstance(node, ast.stmt)
            first = node.body[0] if isinstance(node, _Documented) and node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                found["docstring_lines"] += (first.end_lineno or first.lineno) - first.lineno + 1
                found["statements"] -= 1
    return found


CHECKS = {
    "names": module_names,
    "classes": class_names,
    "imports": deep_imports,
    "shadows": shadowed_modules,
    "weight": weight,
}


def check_tree(root: Path, settings: Settings) -> list[Finding]:
    """What does not conform, by file and line."""
    sources = SourceTree(root)
    return sorted(finding for check in CHECKS.values() for finding in check(sources, settings))


def main(arguments: list[str] | None = None) -> int:
    """Check a package and print what does not conform: 0 where everything does, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=PROJECT / "src/fairbits", help="folder of the package")
    parser.add_argument("--settings", type=Path, default=PROJECT / "pyproject.toml", help="file with [tool.house]")
    given = parser.parse_args(arguments)
    findings = check_tree(given.root, Settings.read(given.settings))
    for finding in findings:
        print(finding)
    if findings:
        print(f"{len(findings)} findings", file=sys.stderr)
    return 1 if findings else 0


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from _statements(node.body + node.orelse)


def _imported(node: ast.AST, module: Module, sources: SourceTree) -> Iterator[str]:
    """Dotted names of modules that an import statement reads."""
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = sources.absolute(node, module)
        yield base
        yield from (f"{base}.{each.name}" for each in node.names if f"{base}.{each.name}" in sources.names)


def _bound(body: list[ast.stmt], package: str) -> Iterator[tuple[str, int]]:
    """Names that an ``__init__`` binds to something that is not the sub-module of that name."""
    for node in _statements(body):
        if isinstance(node, ast.ImportFrom):
            whole = node.module in (None, package)  # `from . import x` binds the sub-module itself
            yield from ((each.asname or each.name, node.lineno) for each in node.names if not whole)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.Assign):
            yield from ((each.id, node.lineno) for each in node.targets if isinstance(each, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.lineno


if __name__ == "__main__":
    sys.exit(main())
