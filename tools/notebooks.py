"""The notebooks of the documents: `python -m tools.notebooks` runs their cells and keeps what they print.

A test runs them too and compares. Cells are plain Python, so no kernel is needed: what is printed, and the value of a
last expression, is a cell's output.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells that hold code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def stored(cell: dict[str, Any]) -> str:
    """The output that a cell keeps."""
    return "".join("".join(output["text"]) for output in cell["outputs"])


def printed(notebook: dict[str, Any]) -> Iterator[str]:
    """What every code cell prints, one after the other, in the current folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in code_cells(notebook):
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - our own notebooks
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
                if value is not None:
                    print(repr(value))
        yield out.getvalue()


@contextlib.contextmanager
def beside_the_examples(folder: Path) -> Iterator[None]:
    """In docs/notebooks of an otherwise empty project that has the examples."""
    place = folder / "docs" / "notebooks"
    place.mkdir(parents=True)
    (folder / "examples").symlink_to(ROOT / "examples")
    before = Path.cwd()
    os.chdir(place)
    try:
        yield
    finally:
        os.chdir(before)


def main() -> None:
    for file in NOTEBOOKS:
        notebook = json.loads(file.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder, beside_the_examples(Path(folder)):
            texts = list(printed(notebook))
        for number, (cell, text) in enumerate(zip(code_cells(notebook), texts, strict=True), 1):
            cell["execution_count"] = number
            lines = text.splitlines(keepends=True)
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if text else []
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
