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
from fairbits.search import Budget, Settings, search_subject
from fairbits.subject import Subject, make_subject

SHARED = Path(__file__).resolve().parents[2] / "shared"
PAPER = {"census": 35.61, "compas": 10.24, "german": 9.56}
LIMIT = {"census": 40, "compas": 12, "german": 16}


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


def against_the_paper() -> None:
    """`climb` with 1000 seeds: mean over seeds of the largest k after 5 s, and the plain maximum after 10 s."""
    subjects = [
        (f"{name} (the paper's)", name, reference_subject(name)) for name in PAPER if (SHARED / "reference").is_dir()
    ]
    subjects += [
        (f"{name} (built in)", name, load_subject(name)) for name in ("census", "german", "default", "bank", "students")
    ]
    print("\n| network | partition | K_I | K_F after 5 s | paper's K_F after 1 h | k_max after 10 s | limit |")
    print("| --- | --- | --: | --: | --: | --: | --: |")
    for title, name, subject in subjects:
        for partition in ("grid", "constrained"):
            five, ten = (
                search(
                    subject,
                    budget=Budget(seconds=s),
                    partition=partition,
                    threads=2,
                    options={"seeds": 1000, "generations": 10**6},
                )
                for s in (5, 10)
            )
            theirs = PAPER.get(name, "") if "paper" in title else ""
            print(
                f"| {title} | {partition} | {five['k_initial']:.2f} | {five['k_final']:.2f} | {theirs} "
                f"| {ten['k_max']} | {round(2 ** ten['bits_limit'])} |",
                flush=True,
            )


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
    against_plain(seconds)
    threads(seconds)
    against_the_paper()


if __name__ == "__main__":
    main()
