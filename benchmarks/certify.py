"""Certificates of the Fairify networks at the time of FairQuant's own code, and people drawn from certified boxes.

``python -m benchmarks.certify [--seconds S] [--threads N] [NAME …]``: without seconds, FairQuant's own time for each.
Seconds are CPU seconds of one thread, so that a busy machine changes nothing.

``trees`` and ``diabetes`` among the names: the whole domain of Census for LightGBM with 50 trees of 15 leaves (flips
and the largest k, within --seconds of time, 60 by default), and that of diabetes, everybody asked.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from fairbits.certify import CertifyOptions, certify_subject
from fairbits.certify.boxes import Question, Volumes, prove
from fairbits.data import load_subject
from fairbits.domain import Attribute, Encoding, Schema, Twins
from fairbits.engine import STEADY, BoxNetwork, box_network
from fairbits.errors import FairbitsError
from fairbits.models import ModelOptions, Network, read_model
from fairbits.subject import make_subject

PLACE = Path(__file__).resolve().parents[1].parent / "shared" / "reference" / "fairify"
#: FairQuant, built and run on a machine like ours: seconds, and the share of people certified.
FAIRQUANT = {"AC-1": (1.9, 0.9068), "GC-5": (0.7, 0.9980), "BM-8": (13.3, 0.9075), "AC-7": (128.7, 0.3172)}
DRAWN = 1_000_000


def load(name: str) -> tuple[Network, Schema]:
    """A network, and the domain that the benchmark varies: the protected attribute takes its two end values."""
    arrays = np.load(PLACE / name / "model.npz")
    with (PLACE / name / "domain.csv").open() as file:
        rows = list(csv.DictReader(file))
    attributes = []
    for i, row in enumerate(rows):
        low, high, protected = int(row["low"]), int(row["high"]), row["protected"] == "1"
        step = max(high - low, 1) if protected else 1
        attributes.append(Attribute(name=f"a{i}", kind="integer", low=low, high=high, step=step, protected=protected))
    layers = len(arrays.files) // 2
    network = Network.build([arrays[f"W{i}"] for i in range(layers)], [arrays[f"b{i}"] for i in range(layers)])
    return network, Schema(tuple(attributes), target="y", classes=("0", "1"))


def flips_among_certified(
    network: Network, schema: Schema, boxes: BoxNetwork, found: Volumes, rng: np.random.Generator
) -> int:
    """People drawn from the certified boxes, in proportion to their sizes, who flip all the same."""
    firsts = np.concatenate([first[status == STEADY] for status, first, _, _ in found.kept])
    lasts = np.concatenate([last[status == STEADY] for status, _, last, _ in found.kept])
    weights = np.prod(lasts - firsts + 1, axis=1)
    chosen = rng.choice(len(weights), DRAWN, p=weights / weights.sum())
    steps = np.floor(firsts[chosen] + rng.random((DRAWN, firsts.shape[1])) * (lasts - firsts + 1)[chosen])
    people = np.tile([attribute.low for attribute in schema.attributes], (DRAWN, 1)).astype(np.float64)
    for place, column in enumerate(boxes.columns):
        people[:, column] = boxes.values[place][steps[:, place].astype(np.int64)]
    protected = schema.protected_columns[0]
    sides = []
    for value in schema.attributes[protected].values():
        people[:, protected] = value
        outputs = people
        for i, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
            outputs = outputs @ weight.astype(np.float64) + bias.astype(np.float64)
            outputs = np.maximum(outputs, 0) if i + 1 < len(network.weights) else outputs
        sides.append(outputs[:, 0] >= 0)
    return int((sides[0] != sides[1]).sum())


def ladder(name: str, seconds: float, threads: int) -> None:
    """What the ladder says about the whole domain of a built-in subject, and when it said so."""
    if name == "trees":
        from lightgbm import LGBMClassifier

        about = load_subject("census")
        labels = np.asarray(about.table.labels).astype(np.int64)
        trees = LGBMClassifier(n_estimators=50, num_leaves=15, verbose=-1, n_jobs=1, random_state=0)
        model = read_model(trees.fit(about.table.codes, labels), about.schema, ModelOptions())
        subject = make_subject("trees", model, about.schema, about.table)
    else:
        try:
            subject = load_subject(name)
        except FairbitsError as error:
            print(f"left out: {name}: {error}")
            return
    begin, cpu = time.perf_counter(), time.process_time()
    found = certify_subject(subject, CertifyOptions(seconds=seconds, threads=threads, changes=0))
    took = f"{time.perf_counter() - begin:.1f} s ({time.process_time() - cpu:.1f} s of CPU, compiling included)"
    print(f"\n{name}: m = {Twins(subject.schema).m}, {took}")
    for one in found.statements:
        print(f"- {one.property}, {one.population}, {one.seconds:.1f} s: {one.sentence()}")
    for note in found.notes:
        print(f"- {note}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(FAIRQUANT))
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--draw", action="store_true", help="draw people from the certified boxes")
    given = parser.parse_args()
    for name in ("trees", "diabetes"):
        if name in given.names:
            ladder(name, given.seconds or 60.0, given.threads)
    names = [name for name in given.names if name in FAIRQUANT]
    if not names or not PLACE.is_dir():
        print("" if not names else f"no networks in {PLACE}")
        return
    print("| network | CPU seconds | certified | falsified | FairQuant certified | boxes |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in names:
        network, schema = load(name)
        boxes = box_network(network, schema, Encoding.identity(schema), Twins(schema))
        prove(boxes, Question(), seconds=1e9, threads=1, max_boxes=3)  # compiles
        seconds, theirs = FAIRQUANT[name]
        budget = (given.seconds or seconds) * given.threads
        begin = time.process_time()
        found = prove(
            boxes, Question(), seconds=budget, threads=given.threads, clock=time.process_time, keep=given.draw
        )
        took = time.process_time() - begin
        shares = f"{found.certified / found.people:.2%} | {found.falsified / found.people:.2g}"
        if found.drawn and found.open:
            met = found.flips_estimate / found.people
            shares += f" (about {met:.2%} by {found.drawn:,} drawn from open boxes)"
        print(f"| {name} | {took:.1f} | {shares} | {theirs:.2%} in {seconds:g} s | {found.boxes:,} |", flush=True)
        if given.draw:
            wrong = flips_among_certified(network, schema, boxes, found, np.random.default_rng(0))
            print(f"{name}: {wrong} of {DRAWN:,} people drawn from certified boxes flip", flush=True)


if __name__ == "__main__":
    main()
