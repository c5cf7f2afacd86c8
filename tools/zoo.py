"""docs/zoo.md from the tables that the tests run over: `python -m tools.zoo` writes it, a test holds it to them."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "zoo.md"


def page() -> str:
    """The page, as the tests' tables have it now."""
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

    lines = [
        "# What was tried",
        "",
        "Every line is a test. This page is made from their tables (`python -m tools.zoo`); see [models](models.md)",
        "for how each is read.",
        "",
        "## Models and files",
        "Scores equal the framework's own. A *network* is read into arrays and run by our kernels, and so are trees",
        "where they say it all; others are asked through their own library.",
        "",
        "| model | network | gradients | activations | a repair is written back |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, kind in ZOO.items():
        marks = (kind.native, kind.gradients, kind.activations, kind.written_back)
        lines.append(f"| {name} | {' | '.join(yes(mark) for mark in marks)} |")
    lines += [
        "",
        "## Trees",
        "Read into arrays, from the object and from its own file; scores of all twins of 50 people equal the",
        "library's, missing values and native categories among them. CatBoost models that take categories are",
        "asked through CatBoost.",
        "",
        "| model | target |",
        "| --- | --- |",
        *(f"| {name} | {_target(kind.target)} |" for name, kind in KINDS.items()),
        "",
        "## Real tables",
        "Each file with each table, and nothing but the names of the target and of the protected attribute:",
        "",
        "| file | was trained on |",
        "| --- | --- |",
        *(f"| {name} | {rows} |" for name, (_, rows) in FILES.items()),
        "",
        *(f"- {text}" for _, text in REAL.values()),
        "",
        "## Which way round",
        "Each with the favourable class first and last, by words and by numbers: the direction is right or asked for.",
        "",
        *(f"- {name}" for name in MAKERS),
        "",
        "## Tables with missing numbers and categories, truth values, dates and identifiers",
        "Scores of all twins equal the library's on its own frames.",
        "",
        "| model | takes |",
        "| --- | --- |",
        *(f"| {name} | {_takes(categories)}, gaps as they are |" for name, (_, categories) in MODELS.items()),
        "",
        f"The same table, the same schema: pandas, {', '.join(TABLES.values())}.",
        "",
        "## Inputs of PyTorch and Keras modules",
        "",
        *(f"- {name}" for name in INPUTS),
        *(f"- two inputs, numbers with truth values and codes, in a file: {name}" for name in MODULE_FILES.values()),
        "",
        "## Not native, with a note that says why",
        "",
        *(f"- {name}: “… {why} …”" for name, (_, why) in REASONS.items()),
        "",
    ]
    return "\n".join(lines)


def _target(kind: str) -> str:
    return {"two": "two classes", "three": "three classes", "value": "a number"}[kind]


def _takes(categories: bool) -> str:
    return "pandas categories" if categories else "labels"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
