"""A million texts through a scikit-learn pipeline: the share of the time that the pipeline itself takes.

Run: python -m benchmarks.texts [people]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fairbits.measure import evaluator_of
from fairbits.subject import subject_of_texts

TEMPLATE = "{person} works as a {job} and asks the bank for {amount} dollars for {purpose}, to be paid back in 5 years."


class Timed:
    """A pipeline that knows how long it was asked, and about how many texts."""

    def __init__(self, pipeline: Any):
        self.pipeline, self.classes_ = pipeline, pipeline.classes_
        self.seconds, self.texts = 0.0, 0

    def predict_proba(self, texts: list[str]) -> np.ndarray:
        begin = time.perf_counter()
        found = self.pipeline.predict_proba(texts)
        self.seconds += time.perf_counter() - begin
        self.texts += len(texts)
        return np.asarray(found)


def main(people: int = 62_500) -> None:
    rng = np.random.default_rng(0)
    jobs, purposes = ["nurse", "engineer", "clerk", "teacher"], ["a car", "a kitchen", "fees", "a holiday"]
    table = pd.DataFrame(
        {
            "amount": rng.integers(1000, 99_999, people),
            "job": rng.choice(jobs, people),
            "purpose": rng.choice(purposes, people),
        }
    )
    known = [TEMPLATE.format(person="Ann", **row) for row in table[:200].to_dict("records")]
    pipeline = Timed(make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(known, rng.integers(0, 2, len(known))))
    text = {"template": TEMPLATE, "families": {"names": {"person": "first-names-sex"}}}
    subject = subject_of_texts(pipeline, table, text, folder=Path())
    evaluator = evaluator_of(subject)
    evaluator.evaluate(subject.table.codes[:4])  # compiles
    pipeline.seconds, pipeline.texts = 0.0, 0
    begin = time.perf_counter()
    evaluator.evaluate(subject.table.codes)
    whole = time.perf_counter() - begin
    print(f"{pipeline.texts:,} texts in {whole:.1f} s, the pipeline alone {pipeline.seconds:.1f} s:", end=" ")
    print(f"{pipeline.seconds / whole:.3f} of its speed")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
