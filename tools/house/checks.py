"""The checks: each takes the sources and the settings, and yields findings."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from tools.house.tree import Finding, Function, Module, Settings, SourceTree, has_help

#: Sections that name what a caller can give, and what an object has.
PARAMETERS = ("Parameters", "Other Parameters")
ATTRIBUTES = (*PARAMETERS, "Attributes")
#: What makes a class a record: a decorator or a base.
RECORDS = {"dataclass", "NamedTuple", "TypedDict"}

Check = Callable[[SourceTree, Settings], Iterator[Finding]]


def module_names(sources: SourceTree, settings: Settings) -> Iterator[Finding]:
    """Modules are nouns: none is named after an activity (-ing), except the listed nouns.

    Parameters
    ----------
    sources
        The package.
    settings
        ``settings.nouns`` are the names in -ing that are things.

    Returns
    -------
    Iterator of Finding
        One for each module or package with such a name.
    """
    for module in sources.modules:
        last = module.name.rpartition(".")[2]
        if last.endswith("ing") and last not in settings.nouns:
            yield Finding(module.shown, 1, "names", f"the module {last} is named after an activity; name the thing")


def class_names(sources: SourceTree, settings: Settings) -> Iterator[Finding]:
    """A public class name means one thing in the whole package.

    Parameters
    ----------
    sources
        The package.
    settings
        Not used by this check.

    Returns
    -------
    Iterator of Finding
        One for each definition after the first.
    """
    del settings
    homes: dict[str, list[tuple[Module, int]]] = defaultdict(list)
    for module in sources.modules:
        for node in _statements(module.tree.body):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append((module, node.lineno))
    for name, places in homes.items():
        first = places[0][0].shown
        for module, line in places[1:]:
            yield Finding(module.shown, line, "classes", f"the class name {name} is taken by {first}")


def deep_imports(sources: SourceTree, settings: Settings) -> Iterator[Finding]:
    """Across packages only what a package exports is imported, never one of its modules.

    Parameters
    ----------
    sources
        The package.
    settings
        Not used by this check.

    Returns
    -------
    Iterator of Finding
        One for each import that reaches into another package.
    """
    del settings
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


def shadowed_modules(sources: SourceTree, settings: Settings) -> Iterator[Finding]:
    """No package has an attribute with the name of one of its sub-modules.

    Parameters
    ----------
    sources
        The package.
    settings
        Not used by this check.

    Returns
    -------
    Iterator of Finding
        One for each name that an ``__init__`` (``.py`` or ``.pyi``) binds although a sub-module has it.
    """
    del settings
    for module in sources.modules:
        if module.name not in sources.packages:
            continue
        stub = module.file.with_suffix(".pyi")
        body = [*module.tree.body, *(ast.parse(stub.read_text()).body if stub.exists() else [])]
        for name, line in _bound(body, module.name):
            if f"{module.name}.{name}" in sources.names:
                text = f"{module.name}.{name} is a sub-module, and the package binds the same name to something else"
                yield Finding(module.shown, line, "shadows", text)


def docstrings(sources: SourceTree, settings: Settings) -> Iterator[Finding]:
    """Every public function and method has a docstring whose Parameters section names each parameter.

    Parameters
    ----------
    sources
        The package.
    settings
        ``settings.undocumented`` are the packages that are left out as yet; ``settings.described`` types that need no
        words. Options of a command line, whose help text stands in their type, need none either.

    Returns
    -------
    Iterator of Finding
        One for each function without a docstring, or with parameters that its docstring does not name.
    """
    described = sources.described_types | settings.described
    for module in sources.modules:
        if module.package in settings.undocumented:
            continue
        for name, node, bound in module.functions():
            text = ast.get_docstring(node)
            if not text:
                yield Finding(module.shown, node.lineno, "docstrings", f"{name} has no docstring")
                continue
            named = documented_parameters(text)
            named |= {each.arg for each in _arguments(node) if _described(each.annotation, described)}
            missing = [each for each in parameters(node, bound=bound) if each not in named]
            if missing:
                text = f"the docstring of {name} does not name {', '.join(missing)}"
                yield Finding(module.shown, node.lineno, "docstrings", text)


def class_fields(sources: SourceTree, settings: Settings) -> Iterator[Finding]:
    """Every class that a package exports explains its fields: those of a record, and what its constructor takes.

    Parameters
    ----------
    sources
        The package.
    settings
        ``settings.undocumented`` are the packages that are left out as yet.

    Returns
    -------
    Iterator of Finding
        One for each class without a docstring, or with fields that neither the Parameters nor the Attributes section
        of its docstring, or of its constructor's, names.
    """
    for module in sources.modules:
        if module.package in settings.undocumented:
            continue
        for node in _statements(module.tree.body):
            if not isinstance(node, ast.ClassDef) or (module.name, node.name) not in sources.exports:
                continue
            text = ast.get_docstring(node)
            if not text:
                yield Finding(module.shown, node.lineno, "fields", f"{node.name} has no docstring")
                continue
            made = [each for each in node.body if isinstance(each, Function) and each.name == "__init__"]
            named = documented_parameters(text, ATTRIBUTES)
            named = named.union(*(documented_parameters(ast.get_docstring(each) or "") for each in made))
            fields = [*record_fields(node), *(name for each in made for name in parameters(each, bound=True))]
            missing = [each for each in fields if each not in named]
            if missing:
                text = f"the docstring of {node.name} does not explain {', '.join(missing)}"
                yield Finding(module.shown, node.lineno, "fields", text)


def long_files(sources: SourceTree, settings: Settings) -> list[tuple[str, int]]:
    """Files that are longer than a reader likes: listed, no fault.

    Parameters
    ----------
    sources
        The package.
    settings
        ``settings.max_lines`` is the limit.

    Returns
    -------
    list of (str, int)
        Path and number of lines, the longest first.
    """
    lengths = [(module.shown, module.text.count("\n")) for module in sources.modules]
    return sorted((each for each in lengths if each[1] > settings.max_lines), key=lambda each: -each[1])


CHECKS: dict[str, Check] = {
    "names": module_names,
    "classes": class_names,
    "imports": deep_imports,
    "shadows": shadowed_modules,
    "docstrings": docstrings,
    "fields": class_fields,
}


def check_tree(root: Path, settings: Settings) -> list[Finding]:
    """Make every check.

    Parameters
    ----------
    root
        The folder of the package.
    settings
        Exceptions and limits.

    Returns
    -------
    list of Finding
        By file and line; empty where everything conforms.
    """
    sources = SourceTree(root)
    return sorted(finding for check in CHECKS.values() for finding in check(sources, settings))


def parameters(node: Function, *, bound: bool) -> list[str]:
    """Names of a function's parameters that a caller can give.

    Parameters
    ----------
    node
        The definition.
    bound
        Whether the first parameter is the object or the class.

    Returns
    -------
    list of str
        Without the first of a bound method, and without names that begin with an underscore.
    """
    given = node.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    names = names[1:] if bound else names
    names += [each.arg for each in given.kwonlyargs]
    names += [each.arg for each in (given.vararg, given.kwarg) if each is not None]
    return [name for name in names if not name.startswith("_")]


def record_fields(node: ast.ClassDef) -> list[str]:
    """Fields of a record: a dataclass, a named tuple or a typed dictionary.

    Parameters
    ----------
    node
        The definition of the class.

    Returns
    -------
    list of str
        Without names that begin with an underscore, and without class variables; empty where it is no record.
    """
    marks = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    kinds = {ast.unparse(each).rpartition(".")[2] for each in (*marks, *node.bases)}
    if kinds.isdisjoint(RECORDS):
        return []
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    names = [each.target.id for each in fields if "ClassVar" not in ast.unparse(each.annotation)]  # type: ignore[union-attr]
    return [name for name in names if not name.startswith("_")]


def documented_parameters(docstring: str, sections: tuple[str, ...] = PARAMETERS) -> set[str]:
    """Names that the Parameters section of a numpydoc docstring gives.

    Parameters
    ----------
    docstring
        The cleaned docstring.
    sections
        Headings of the sections that count.

    Returns
    -------
    set of str
        Without asterisks; empty where there is no such section.
    """
    found: set[str] = set()
    inside = False
    for line, below in pairwise([*docstring.splitlines(), ""]):
        if re.fullmatch(r"-{3,}", below.strip()):
            inside = line.strip() in sections
        elif inside and line and not line[0].isspace() and not re.fullmatch(r"-{3,}", line):
            heads = line.split(" : ")[0].split(",")
            found.update(head.strip().strip("*`\\").rstrip(":") for head in heads)
    return found


def _arguments(node: Function) -> list[ast.arg]:
    given = node.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def _described(annotation: ast.expr | None, known: frozenset[str]) -> bool:
    if annotation is None:
        return False
    return has_help(annotation) or (isinstance(annotation, ast.Name) and annotation.id in known)


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
