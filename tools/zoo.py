"""docs/zoo.md and its tables, made of those that the tests run over: `python -m tools.zoo`; a test compares them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def files() -> dict[Path, str]:
    """The page and its tables, as the tests have them now."""
    from tests.models.test_input_files import FILES as MODULE_FILES
    from tests.models.test_inputs import INPUTS
    from tests.models.test_reasons import REASONS
    from tests.models.test_trees import KINDS
    from tests.models.zoo import ZOO
    from tests.subject.frameworks import MAKERS
    from tests.subject.test_real_tables import FILES
    from tests.subject.test_real_tables import TABLES as REAL
    from tests.subject.test_tables import MODELS, TABLES

    def yes(said: bool) -> str:
        return "yes" if said else "–"

    written: dict[Path, str] = {}

    def table(name: str, head: str, rows: Iterable[tuple[str, ...]]) -> list[str]:
        file = DOCS / "tables" / f"zoo-{name}.csv"
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([tuple(head.split(", ")), *rows])
        written[file] = text.getvalue()
        return ["", "```{csv-table}", f":file: tables/{file.name}", ":header-rows: 1", "```", ""]

    marks = {name: (each.native, each.gradients, each.activations, each.written_back) for name, each in ZOO.items()}
    lines = [
        "# What was tried",
        "",
        "Every line is a test. This page and its [tables](tables/zoo-models.csv) are made from those of the tests",
        "(`python -m tools.zoo`); see [models](models.md) for how each is read.",
        "",
        "## Models and files",
        "Scores equal the framework's own. A *network* is read into arrays and run by our kernels, and so are trees",
        "where they say it all; others are asked through their own library.",
        *table(
            "models",
            "model, network, gradients, activations, a repair is written back",
            ((name, *map(yes, said)) for name, said in marks.items()),
        ),
        "## Trees",
        "Read into arrays, from the object and from its own file; scores of all twins of 50 people equal the",
        "library's, missing values and native categories among them. CatBoost models that take categories are",
        "asked through CatBoost.",
        *table("trees", "model, target", ((name, _target(kind.target)) for name, kind in KINDS.items())),
        "## Real tables",
        "Each file with each table, and nothing but the names of the target and of the protected attribute:",
        *table("files", "file, was trained on", ((name, rows) for name, (_, rows) in FILES.items())),
        *(f"- {text}" for _, text in REAL.values()),
        "",
        "## Which way round",
        "Each with the favourable class first and last, by words and by numbers: the direction is right or asked for.",
        *table("directions", "model", ((name,) for name in MAKERS)),
        "## Tables with missing numbers and categories, truth values, dates and identifiers",
        "Scores of all twins equal the library's on its own frames; gaps go in as they are.",
        *table("gaps", "model, takes", ((name, _takes(categories)) for name, (_, categories) in MODELS.items())),
        f"The same table, the same schema: pandas, {', '.join(TABLES.values())}.",
        "",
        "## Inputs of PyTorch and Keras modules",
        "The last ones are files: two inputs, numbers with truth values, and codes.",
        *table("inputs", "model", ((name,) for name in (*INPUTS, *MODULE_FILES.values()))),
        "## Not native, with a note that says why",
        *table("reasons", "model, the note", ((name, f"… {why} …") for name, (_, why) in REASONS.items())),
    ]
    return {DOCS / "zoo.md": "\n".join(lines), **written}


def _target(kind: str) -> str:
    return {"two": "two classes", "three": "three classes", "value": "a number"}[kind]


def _takes(categories: bool) -> str:
    return "pandas categories" if categories else "labels"


if __name__ == "__main__":
    for file, text in files().items():
        file.write_text(text, encoding="utf-8")
