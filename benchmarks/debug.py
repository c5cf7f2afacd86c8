"""How much faster neurons are studied than by the plain loop over neurons × values × cases.

The plain loop is what Algorithm 2 says, in NumPy: for each neuron and value, and for each case, run all twins through
the whole network with the neuron's output replaced, sort the scores and count the classes. It runs on a sample; both
are measured in turns in one process, on as many threads as given, and `ratio` compares the best of each.

    python benchmarks/debug.py [--subject census] [--layer 2] [--cases 1000] [--threads 1] [--rounds 5]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from fairbits.data import load_subject
from fairbits.debug.neurons import NAMES, _statistics
from fairbits.domain import Twins
from fairbits.engine import study
from fairbits.errors import ModelError
from fairbits.models import Do, Network

EPSILON = 0.025
SAMPLE = 400  # interventions × cases of the plain loop in one round


def plain(network: Network, inputs: np.ndarray, do: Do) -> int:
    """k of one case under one intervention: the whole network for all its twins, then the classes."""
    x = inputs
    last = len(network.weights) - 1
    for layer, (weights, biases) in enumerate(zip(network.weights, network.biases, strict=True)):
        x = x @ weights + biases
        if layer < last:
            x = np.maximum(x, 0)
        if layer == do.layer:
            x[:, do.neuron] = do.value
    margin = x[:, network.favourable] - x[:, 1 - network.favourable]
    scores = np.sort(1 / (1 + np.exp(-margin)))
    k, opened = 1, scores[0]
    while True:
        place = np.searchsorted(scores, opened + np.float32(EPSILON), side="right")
        if place == len(scores):
            return k
        k, opened = k + 1, scores[place]


def interventions(network: Network, inputs: np.ndarray, layer: int) -> list[Do]:
    table = _statistics(network.activations(inputs)[layer])
    found = []
    for neuron in range(table.shape[1]):
        for place in range(len(NAMES)):
            do = Do(layer, neuron, float(table[place, neuron]))
            try:
                network.holding_bias(do)
            except ModelError:
                continue
            found.append(do)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subject", default="census")
    parser.add_argument("--layer", type=int, default=2, help="counted from 1, the first hidden layer")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    subject = load_subject(args.subject)
    network, twins, rng = subject.model, Twins(subject.schema), np.random.default_rng(0)
    if not isinstance(network, Network):
        raise SystemExit(f"{args.subject} has no native network")
    people = subject.table.codes[rng.choice(len(subject.table), args.cases, replace=False)]
    dos = interventions(network, subject.encoding.encode(subject.table.codes), args.layer - 1)
    inputs = subject.encoding.encode_twins(people, twins)

    def ours() -> np.ndarray:
        return study(
            network,
            subject.encoding,
            twins,
            people,
            dos,
            epsilon=EPSILON,
            partition="constrained",
            threads=args.threads,
        ).k

    k = ours()  # compiled, or from the cache
    drawn = [(int(rng.integers(len(dos))), int(rng.integers(args.cases))) for _ in range(SAMPLE)]
    slow, fast, different = [], [], 0
    with threadpool_limits(args.threads):
        for _ in range(args.rounds):
            begin = time.perf_counter()
            different = sum(plain(network, inputs[case], dos[do]) != k[do, case] for do, case in drawn)
            slow.append((time.perf_counter() - begin) / SAMPLE * len(dos) * args.cases)
            begin = time.perf_counter()
            ours()
            fast.append(time.perf_counter() - begin)
    median = float(np.median([s / f for s, f in zip(slow, fast, strict=True)]))
    print(f"{subject.name}: {args.cases} cases × {twins.m} twins, layer {args.layer}: {len(dos)} interventions")
    print(f"plain loop  {min(slow):9.2f} s (from a sample of {SAMPLE}; {different} of them differ in k)")
    print(f"fairbits    {min(fast):9.2f} s on {args.threads} threads")
    print(f"ratio       {min(slow) / min(fast):9.0f} × (best of each), {median:.0f} × (median of neighbours in time)")


if __name__ == "__main__":
    main()
