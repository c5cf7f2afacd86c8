"""Three figures of foreign models.

`overhead`: a pipeline that nobody can read (encoders and a forest behind a class of its own) is asked by a whole
`evaluate`, against its own `predict_proba` of the same rows, made ready beforehand; seconds of the processor, by turns.

`busy`: a black box that answers 100,000 rows a second (it waits as long as that would take) is asked by a whole
`evaluate`; the share of the time that it spends answering is how busy it is kept. Everything else is ours: twins,
decoding, checking, classes, bits.

`one-hot`: cases per second of a network on one-hot inputs against the same architecture on integer codes.

    python benchmarks/black_box.py [--people 4000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import pairwise
from typing import Any

import numpy as np

from fairbits import Attribute, Decoder, Encoding, Network, Schema
from fairbits.measure import Evaluator
from fairbits.models import load_with_encoding

RATE = 100_000


def schema_of(attributes: int = 12, *, labels: int = 8) -> Schema:
    """Half categories, half whole numbers; 90 twins, as Census has."""
    words = tuple(f"value {i}" for i in range(labels))
    free = [
        Attribute(name=f"a{i}", kind="category", labels=words)
        if i % 2
        else Attribute(name=f"a{i}", kind="integer", low=0, high=99)
        for i in range(attributes - 3)
    ]
    protected = [
        Attribute(name=name, kind="category", labels=words[:n] if n <= labels else (*words, "more"), protected=True)
        for name, n in (("age", 9), ("race", 5), ("sex", 2))
    ]
    return Schema((*free, *protected), target="y", classes=("no", "yes"))


def people_of(schema: Schema, n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.column_stack([rng.integers(int(a.low), int(a.upper) + 1, n) for a in schema.attributes]).astype(float)


class Slow:
    """Answers as fast as it is allowed to, and keeps count of the time that it takes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.rows = 0
        self.answers = np.random.default_rng(1).uniform(size=1_000_000).astype(np.float32)

    def __call__(self, rows: Any) -> np.ndarray:
        start = time.perf_counter()
        time.sleep(len(rows) / RATE)
        self.seconds += time.perf_counter() - start
        self.rows += len(rows)
        return self.answers[: len(rows)]


def busy(people: int, eats: str) -> float:
    schema, slow = schema_of(), Slow()
    model, encoding = load_with_encoding(slow, schema, input_format=eats)
    evaluator = Evaluator(model, schema, encoding)
    codes = people_of(schema, people)
    evaluator.evaluate(codes[:50])
    slow.seconds = 0.0
    start = time.perf_counter()
    evaluator.evaluate(codes)
    return slow.seconds / (time.perf_counter() - start)


class Shipped:
    """A model as a bank may ship it: `predict_proba`, and nothing else to see."""

    def __init__(self, pipeline: Any):
        self.pipeline, self.classes_ = pipeline, pipeline.classes_

    def predict_proba(self, rows: Any) -> Any:
        return self.pipeline.predict_proba(rows)


def overhead(people: int, rounds: int) -> list[float]:
    """How many times as long as its `predict_proba` a whole `evaluate` takes."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    schema = schema_of().with_protected(("race", "sex"))
    codes = people_of(schema, people)
    frame = Decoder(schema).frame(codes)
    texts = [a.name for a in schema.attributes if a.kind == "category"]
    encoders = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), texts), remainder="passthrough")
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
    labels = np.where(
        codes[:, 0] + 40 * codes[:, -1] + np.random.default_rng(3).normal(0, 20, people) > 70, "yes", "no"
    )
    shipped = Shipped(make_pipeline(encoders, forest).fit(frame, labels))
    model, encoding = load_with_encoding(shipped, schema)
    evaluator = Evaluator(model, schema, encoding, threads=1)
    some = codes[: people // 4]
    rows = Decoder(schema).frame(evaluator.twins.expand(some).reshape(-1, len(schema)))
    evaluator.evaluate(some[:50])
    found = []
    for _ in range(rounds):
        start = time.process_time()
        shipped.predict_proba(rows)
        middle = time.process_time()
        evaluator.evaluate(some)
        found.append((time.process_time() - middle) / (middle - start))
    return found


def rate_of(evaluator: Evaluator, codes: np.ndarray, seconds: float = 1.0) -> float:
    evaluator.evaluate(codes[:100])
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        evaluator.evaluate(codes)
        done += len(codes)
    return done / (time.perf_counter() - start)


def network_of(inputs: int) -> Network:
    rng = np.random.default_rng(2)
    widths = (inputs, 64, 32, 16, 8, 4, 2)
    weights = [rng.normal(0, np.sqrt(2 / a), (a, b)) for a, b in pairwise(widths)]
    return Network.build(weights, [rng.normal(0, 0.1, b) for b in widths[1:]])


def one_hot(people: int, protected: tuple[str, ...], rounds: int) -> list[float]:
    """The two kinds by turns; the ratio of every pair of neighbours in time."""
    schema = schema_of().with_protected(protected)
    codes = people_of(schema, people)
    evaluators = []
    for make in (Encoding.one_hot, Encoding.identity):
        encoding = make(schema)
        evaluators.append(Evaluator(network_of(encoding.width), schema, encoding, threads=1))
    pairs = [[rate_of(evaluator, codes) for evaluator in evaluators] for _ in range(rounds)]
    return [hot / plain for hot, plain in pairs]


def row(name: str, found: list[float]) -> str:
    return f"| {name} | {statistics.median(found):.1%} | {min(found):.1%} | {max(found):.1%} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print("| | median | least | most |")
    print("| --- | --: | --: | --: |")
    times = overhead(given.people, given.rounds)
    shown = " | ".join(f"{one:.2f} ×" for one in (statistics.median(times), min(times), max(times)))
    print(f"| `evaluate` over `predict_proba` of the same rows, a forest behind encoders | {shown} |", flush=True)
    for eats in ("frame", "array", "codes"):
        found = [busy(given.people, eats) for _ in range(given.rounds)]
        print(row(f"black box at {RATE:,} rows/s kept busy, eating {eats}", found), flush=True)
    for protected in (("sex",), ("age", "race", "sex")):
        found = one_hot(given.people, protected, given.rounds)
        m = 2 if len(protected) == 1 else 90
        print(row(f"one-hot against integer codes, cases/s, m = {m}", found), flush=True)


if __name__ == "__main__":
    main()
