"""Make the tables that ship with fairbits from the raw files: ``python -m tools.tables RAW_FOLDER``.

RAW_FOLDER holds one folder per dataset (adult, german, default, heart, bank, students) with the files under the names
their sources use. With meps15 and meps16 beside them, the synthetic stand-ins are made again too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairbits.data import sources
from fairbits.data.coding import meps, shipped
from fairbits.data.registry import TABLES
from fairbits.domain import Schema, Table
from fairbits.errors import UsageError
from tools import standin
from tools.coding import bank, census, default, german, heart, students

PAPER_ORDER = "paper_order"


def build_census(raw: Path) -> Table:
    """UCI's own split: adult.data to train, adult.test held out."""
    parts = [census.code(census.read(raw / "adult" / name)) for name in ("adult.data", "adult.test")]
    held_out = np.repeat([False, True], [len(p) for p in parts])
    labels = np.concatenate([np.asarray(p.labels) for p in parts])
    return Table(np.vstack([p.codes for p in parts]), labels, held_out, origin=_origin("Adult"))


def _with_seeded_split(name: str, coded: Table, dataset: str) -> Table:
    return sources.split(name, coded, _origin(dataset))


def _origin(dataset: str) -> str:
    return f"UCI Machine Learning Repository, {dataset}, coded by fairbits (CC BY 4.0)"


def build_german(raw: Path) -> Table:
    """All 1,000 rows."""
    coded = german.code(german.read(raw / "german" / "german.data"))
    return _with_seeded_split("german", coded, "Statlog (German Credit Data)")


def build_default(raw: Path) -> Table:
    """All 30,000 rows."""
    coded = default.code(default.read(raw / "default" / "UCI_Credit_Card.csv"))
    return _with_seeded_split("default", coded, "Default of Credit Card Clients")


def build_heart(raw: Path) -> Table:
    """The 297 complete rows of Cleveland."""
    coded = heart.code(heart.read(raw / "heart" / "heart_disease_uci.csv"))
    return _with_seeded_split("heart", coded, "Heart Disease")


def build_bank(raw: Path) -> Table:
    """All 45,211 rows."""
    coded = bank.code(bank.read(raw / "bank" / "bank-full.csv"))
    return _with_seeded_split("bank", coded, "Bank Marketing")


def build_students(raw: Path) -> Table:
    """Both courses."""
    folder = raw / "students"
    coded = students.code(students.read(folder / "student-mat.csv", folder / "student-por.csv"))
    return _with_seeded_split("students", coded, "Student Performance")


BUILDERS: dict[str, tuple[Callable[[Path], Table], Schema]] = {
    "census": (build_census, shipped.CENSUS),
    "german": (build_german, shipped.GERMAN),
    "default": (build_default, shipped.DEFAULT),
    "heart": (build_heart, shipped.HEART),
    "bank": (build_bank, shipped.BANK),
    "students": (build_students, shipped.STUDENTS),
}


def paper_order(raw: Path) -> npt.NDArray[np.int64]:
    """German: each row's place among the paper's 600, or −1."""
    chosen = json.loads((raw / "german" / "rows_600.json").read_text())
    order = np.full(1000, -1, dtype=np.int64)
    order[chosen] = np.arange(len(chosen))
    return order


def build(raw: Path, *, out: Path = TABLES) -> dict[str, int]:
    """Write every table; gives the size of each file in bytes."""
    sizes = {}
    for name, (builder, schema) in BUILDERS.items():
        path = out / f"{name}.parquet"
        extra = {PAPER_ORDER: paper_order(raw)} if name == "german" else None
        sources.write_coded(path, builder(raw), schema, extra=extra)
        sizes[path.name] = path.stat().st_size
    for name, file in (("meps15", "panel19_fy2015.csv"), ("meps16", "panel21_fy2016.csv")):
        source = raw / name / file
        if source.exists():
            year = meps.YEARS[name]
            path = out / f"{name}-synthetic.parquet"
            model = standin.fit(meps.code(meps.read_csv(source), year), year.schema)
            people = standin.sample(model, year.schema, year.rows, seed=0)
            origin = f"synthetic: made by fairbits from a model fitted to {name}; not real people"
            sources.write_coded(path, sources.split(f"{name}-synthetic", people, origin), year.schema)
            sizes[path.name] = path.stat().st_size
    return sizes


def main(arguments: list[str]) -> int:
    """The command: where the raw files are."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tools.tables RAW_FOLDER\n")
        return 2
    try:
        sizes = build(Path(arguments[0]))
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for name, size in {**sizes, "total": sum(sizes.values())}.items():
        sys.stdout.write(f"{name:24} {size:>9,}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
