"""Certificates of the Fairify networks at the time of FairQuant's own code, and people drawn from certified boxes.

``python -m benchmarks.certify [--seconds S] [--threads N] [NAME …]``: without seconds, FairQuant's own time for each.
Seconds are CPU seconds of one thread, so that a busy machine changes nothing.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from fairbits.certify.boxes import Question, Volumes, prove
from fairbits.domain import Attribute, Encoding, Schema, Twins
from fairbits.engine import STEADY, BoxNetwork, box_network
from fairbits.models import Network

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(FAIRQUANT))
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--draw", action="store_true", help="draw people from the certified boxes")
    given = parser.parse_args()
    if not PLACE.is_dir():
        print(f"no networks in {PLACE}")
        return
    print("| network | CPU seconds | certified | falsified | FairQuant certified | boxes |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in given.names:
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
        shares = f"{found.certified / found.people:.2%} | {found.falsified / found.people:.3%}"
        print(f"| {name} | {took:.1f} | {shares} | {theirs:.2%} in {seconds:g} s | {found.boxes:,} |", flush=True)
        if given.draw:
            wrong = flips_among_certified(network, schema, boxes, found, np.random.default_rng(0))
            print(f"{name}: {wrong} of {DRAWN:,} people drawn from certified boxes flip", flush=True)


if __name__ == "__main__":
    main()
