"""Scores of all twins of 10,000 people: our kernels against each library's own batch prediction of the same rows.

Both sides use the same number of threads and are measured by turns in one run; the ratio is what counts. The people
are the built-in Census rows, their protected attributes age, race and sex (90 twins), race and sex (10), sex (2). The
library gets all its rows in one call, already encoded; a sample of the people is enough to time it.

A second table is about searches: ID cases per second of `climb` on our kernels, against the same strategy and seed on
the same model behind a plain function, which is asked through its library. What is prepared before the first person is
asked (plans, clusters, plausibility) is left out on both sides; with one thread seconds are those of the processor.

    python benchmarks/trees.py [--people 10000] [--threads 1] [--rounds 3] [--seconds 20] [--only LightGBM]
                               [--part scores]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fairbits import Audit, Budget
from fairbits.data import load_subject
from fairbits.measure import Evaluator
from fairbits.models import load_with_encoding
from fairbits.search import Settings, search_subject

PROTECTED = (("age", "race", "sex"), ("race", "sex"), ("sex",))
#: Rows that the library is timed on at most: its time per row does not depend on how many there are.
ROWS = 100_000


Predict = Callable[[np.ndarray], Any]


def light(rows: np.ndarray, labels: np.ndarray, threads: int) -> tuple[Any, Predict]:
    import lightgbm

    model = lightgbm.LGBMClassifier(n_estimators=200, num_leaves=31, verbose=-1, n_jobs=threads).fit(rows, labels)
    return model, lambda x: model.booster_.predict(x, num_threads=threads)


def extreme(rows: np.ndarray, labels: np.ndarray, threads: int) -> tuple[Any, Predict]:
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=200, max_depth=6, n_jobs=threads).fit(rows, labels)
    booster = model.get_booster()
    booster.set_param({"nthread": threads})
    return model, booster.inplace_predict


def hist(rows: np.ndarray, labels: np.ndarray, threads: int) -> tuple[Any, Predict]:  # noqa: ARG001 - its threads are limited from outside
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=200, early_stopping=False).fit(rows, labels)
    return model, lambda x: model.predict_proba(x)[:, 1]


def forest(rows: np.ndarray, labels: np.ndarray, threads: int) -> tuple[Any, Predict]:
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(200, n_jobs=threads, random_state=0).fit(rows, labels)
    return model, lambda x: model.predict_proba(x)[:, 1]


MODELS = {
    "LightGBM 200 × 31 leaves": light,
    "XGBoost 200 × depth 6": extreme,
    "HistGradientBoosting 200": hist,
    "forest of 200": forest,
}


def models(rows: np.ndarray, labels: np.ndarray, threads: int, only: str) -> Iterator[tuple[str, Any, Predict]]:
    """Each library's model, and how it is asked fastest."""
    for name, make in MODELS.items():
        if only in name:
            try:
                model, predict = make(rows, labels, threads)
            except ImportError as error:
                print(f"{name}: {error}.")
            else:
                yield name, model, predict


def timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(people: int, threads: int, rounds: int, only: str) -> None:
    """One line per model and number of twins."""
    from threadpoolctl import threadpool_limits

    subject = load_subject("census")
    codes, labels = subject.table.codes, subject.table.labels
    assert labels is not None  # noqa: S101 - the built-in subjects have labels
    asked = np.resize(codes, (people, codes.shape[1]))
    print("| model | m | largest difference | µs per person, ours | theirs | ratio |")
    print("| --- | --: | --: | --: | --: | --: |")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model, predict in models(codes, labels.astype(np.int64), threads, only):
            for protected in PROTECTED:
                schema = subject.schema.with_protected([p for p in protected if p in subject.schema.names])
                loaded, encoding = load_with_encoding(model, schema)
                evaluator = Evaluator(loaded, schema, encoding, threads=threads)
                some = asked[: max(1, min(people, ROWS // evaluator.m))]
                rows = encoding.encode_twins(some, evaluator.twins).reshape(-1, encoding.width).astype(np.float64)
                apart = float(np.abs(evaluator.scores(some).ravel() - predict(rows)).max())
                pairs = []
                with threadpool_limits(threads):
                    for _ in range(rounds):
                        ours = timed(partial(evaluator.scores, asked)) / len(asked)
                        theirs = timed(partial(predict, rows)) / len(some)
                        pairs.append((theirs / ours, ours, theirs))
                ratio, ours, theirs = sorted(pairs)[len(pairs) // 2]
                print(
                    f"| {name} | {evaluator.m} | {apart:.0e} | {1e6 * ours:.1f} | {1e6 * theirs:.1f} | {ratio:.1f} × |",
                    flush=True,
                )


def search(seconds: float, threads: int, only: str) -> None:
    """One line per model: ID cases and people asked per second of both ways, once everything is prepared."""
    subject = load_subject("census")
    codes, labels = subject.table.codes, subject.table.labels
    assert labels is not None  # noqa: S101 - the built-in subjects have labels
    clock = time.process_time if threads == 1 else time.perf_counter  # others at work do not count with one thread
    print("\n| search | m | ID cases a second, ours | through the library | ratio | people a second, ours | ratio |")
    print("| --- | --: | --: | --: | --: | --: | --: |")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model, predict in models(codes, labels.astype(np.int64), threads, only):

            def ask(rows: np.ndarray, predict: Predict = predict) -> Any:
                return predict(np.asarray(rows, dtype=np.float64))

            found = []
            for asked in (model, ask):
                made = Audit(asked, subject.table, subject.schema, input_format="codes").subject
                with TemporaryDirectory() as folder:
                    for place, length in (("warm", seconds / 20), ("run", seconds)):
                        settings = Settings(budget=Budget(seconds=length), strategy="climb", threads=threads)
                        run = search_subject(made, settings, Path(folder) / place, clock=clock)
                    found.append(run.summary or {})
            (ids, theirs), (people, others) = (
                [one[figure] / one["seconds"] for one in found] for figure in ("id_cases", "evaluations")
            )
            print(
                f"| {name} | {found[0]['m']} | {ids:,.0f} | {theirs:,.0f} | {ids / theirs:.1f} × | "
                f"{people:,.0f} | {people / others:.1f} × |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each search")
    parser.add_argument("--only", default="", help="models whose name has this in it")
    parser.add_argument("--part", choices=("scores", "search"), help="one of the two tables")
    given = parser.parse_args()
    if given.part != "search":
        measure(given.people, given.threads, given.rounds, given.only)
    if given.part != "scores":
        search(given.seconds, given.threads, given.only)


if __name__ == "__main__":
    main()
