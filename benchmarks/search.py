"""The search: against one individual at a time, against the paper's hour, and with more threads."""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.one_at_a_time import PlainDice
from fairbits import Attribute, Schema, Table, load_model
from fairbits.data import load_subject
from fairbits.paper.subjects import SUBJECTS, number, row_of
from fairbits.search import Budget, Settings, search_subject
from fairbits.subject import Subject, make_subject

SHARED = Path(__file__).resolve().parents[2] / "shared"
PAPERS_OWN = ("census", "compas", "german")


def search(subject: Subject, **settings) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        return search_subject(subject, Settings(**settings), Path(folder) / "run").summary or {}


def against_plain(seconds: float) -> None:
    """Distinct cases a second of `dice`, batched and one at a time, on the built-in Census network."""
    subject = load_subject("census")
    plain = PlainDice(subject).run(seconds)
    print("\n| dice on census | distinct cases/s | ratio |\n| --- | --: | --: |")
    print(f"| one individual at a time | {plain:,.0f} | 1 |")
    for threads in (1, 2):
        found = search(subject, budget=Budget(seconds=seconds), strategy="dice", partition="grid", threads=threads)
        speed = found["cases"] / found["seconds"]
        print(f"| batched, {threads} thread{'s' if threads > 1 else ''} | {speed:,.0f} | {speed / plain:,.0f} |")


def reference_subject(name: str) -> Subject:
    folder = SHARED / "reference" / name
    with (folder / "domain.csv").open() as file:
        attributes = tuple(
            Attribute(
                name=r["name"],
                kind="integer",
                low=float(r["low"]),
                high=float(r["high"]),
                protected=r["protected"] == "1",
            )
            for r in csv.DictReader(file)
        )
    schema = Schema(attributes, classes=("0", "1"))
    rows = np.loadtxt(folder / "table.csv", delimiter=",", skiprows=1)[:, :-1]
    return make_subject(name, load_model(folder / "model.npz"), schema, Table(schema.clip(rows)))


def in_a_second(seeds: int = 3) -> None:
    """`climb` in a second, on the ten built-in networks and three of the paper's: the least that any seed reaches."""
    subjects = [(name, name, load_subject(name)) for name in SUBJECTS]
    if (SHARED / "reference").is_dir():
        subjects += [(f"{name} (the paper's)", name, reference_subject(name)) for name in PAPERS_OWN]
    print("\n| network | partition | K_F after 1 s, least | paper's after 1 h | k_max, least | limit |")
    print("| --- | --- | --: | --: | --: | --: |")
    for title, name, subject in subjects:
        theirs = number(row_of("rq1", name), "k_final")
        for partition in ("grid", "constrained"):
            found = [
                search(subject, budget=Budget(seconds=1), partition=partition, seed=seed, threads=2)
                for seed in range(seeds)
            ]
            least, k_max = (min(one[figure] for one in found) for figure in ("k_final", "k_max"))
            limit = round(2 ** found[0]["bits_limit"])
            print(f"| {title} | {partition} | {least:.2f} | {theirs} | {k_max} | {limit} |", flush=True)


def threads(seconds: float) -> None:
    """Evaluations a second with two threads over those with one."""
    print("\n| strategy on census | people/s, 1 thread | people/s, 2 threads | ratio |\n| --- | --: | --: | --: |")
    subject = load_subject("census")
    for strategy in ("climb", "dice", "random"):
        speeds = []
        for count in (1, 2):
            found = search(subject, budget=Budget(seconds=seconds), strategy=strategy, threads=count)
            speeds.append(found["evaluations"] / found["seconds"])
        print(f"| {strategy} | {speeds[0]:,.0f} | {speeds[1]:,.0f} | {speeds[1] / speeds[0]:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds
    in_a_second()
    against_plain(seconds)
    threads(seconds)


if __name__ == "__main__":
    main()
