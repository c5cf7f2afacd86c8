"""Data or training: does the interval hold, what do trainings cost, and what do both rules find on the networks?

``coverage`` plants an effect of known size in scores of closed form, with errors of the trainings that are their own
for every person (``own``), alike for everybody (``common``) or in between (``smooth``), and counts how often the
interval of the shared part holds the truth: as a share, and as an effect. ``trained`` plants the effect in a table
instead, trains a pool of networks on it, and counts how often a few of them hold what the pool shares. ``cost``
trains models of a built-in subject again and gives the CPU seconds of one. ``rules`` names the suspect layer and the
top neurons under both rules.

    python benchmarks/origin.py coverage [--repetitions 200]
    python benchmarks/origin.py trained [--repetitions 200] [--pool 60]
    python benchmarks/origin.py cost [--subject census] [--trainings 4]
    python benchmarks/origin.py rules [--subjects census,german] [--evaluations 30000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from fairbits.data import fit, load_subject
from fairbits.debug import debug_run, shared_part, train_here
from fairbits.debug.origin import people_of
from fairbits.measure import evaluator_of
from fairbits.paper import roster
from fairbits.search import Budget, Settings, search_subject

PEOPLE, TWINS = 150, 6


def planted(rng: np.random.Generator, kind: str, effect: float, trainings: int) -> np.ndarray:
    """(trainings, people, twins): twin z gets effect · z, and every training adds an error with a variance of 1."""
    z = np.arange(TWINS) - (TWINS - 1) / 2
    z /= np.sqrt((z**2).mean())
    shape = {"own": (trainings, PEOPLE, 1), "common": (trainings, 1, 1)}.get(kind)
    if shape is not None:
        error = rng.normal(size=shape) * z
    else:
        x = rng.normal(size=PEOPLE)
        basis = np.stack([np.ones(PEOPLE), x, np.sqrt(2) * np.sin(2 * x), np.sqrt(2) * np.cos(3 * x)], axis=1)
        basis /= np.sqrt((basis**2).mean(axis=0))
        error = np.einsum("nk,rk->rn", basis, rng.normal(size=(trainings, 4)))[:, :, None] / 2 * z
    return rng.normal(size=(1, PEOPLE, 1)) + effect * z + error


#: How the errors of trainings lie over people.
ERRORS = ("own", "smooth", "common")


def coverage(repetitions: int, errors: list[str]) -> None:
    print(
        "| errors | trainings | effect | true share | share held | mean width | effect held |\n"
        "| --- | --: | --: | --: | --: | --: | --: |"
    )
    for kind in errors:
        for trainings in (4, 8):
            for effect in (0.0, 0.5, 1.0, 2.0):
                rng = np.random.default_rng(
                    (ERRORS.index(kind), trainings, int(10 * effect))
                )  # a line alone is the same
                truth, hits, sizes, width = effect**2 / (effect**2 + 1), 0, 0, 0.0
                for _ in range(repetitions):
                    part = shared_part(planted(rng, kind, effect, trainings), rng=rng, resamples=200)
                    found = part.shared
                    hits += found.low <= truth <= found.high
                    sizes += part.common.low <= effect <= part.common.high
                    width += found.high - found.low
                held, also, mean = hits / repetitions, sizes / repetitions, width / repetitions
                line = f"| {kind} | {trainings} | {effect:g} | {truth:.2f} | {held:.1%} | {mean:.2f} | {also:.1%} |"
                print(line, flush=True)


def planted_table(rng: np.random.Generator, effect: float, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Sex, and two attributes beside it; sex adds ``effect`` to the log-odds of the label."""
    people = np.column_stack([rng.integers(0, 2, rows), rng.integers(0, 10, rows), rng.integers(0, 10, rows)])
    odds = effect * (people[:, 0] - 0.5) + 0.5 * (people[:, 1] - 4.5) - 0.2 * (people[:, 2] - 4.5)
    return people.astype(np.float64), (rng.random(rows) < 1 / (1 + np.exp(-odds))).astype(np.float64)


def trained(repetitions: int, pool: int) -> None:
    """Real trainings on planted tables: what a pool of them shares is the truth, a few of them must hold it."""
    rng = np.random.default_rng(1)
    print("| effect (log-odds) | trainings | share of the pool | held | effect of the pool | true | held |")
    print("| --: | --: | --: | --: | --: | --: | --: |")
    for effect in (0.0, 0.5, 1.0, 2.0):
        rows, labels = planted_table(rng, effect, 400)
        people, _ = planted_table(rng, effect, 1_000)
        twins = np.repeat(people[:, None], 2, axis=1)
        twins[:, :, 0] = (0.0, 1.0)
        inputs = twins.reshape(-1, 3).astype(np.float32)
        models = [fit(rows.astype(np.float32), labels, epochs=40, seed=seed, hidden=(16, 8)) for seed in range(pool)]
        scores = np.stack([model.scores(inputs).reshape(-1, 2) for model in models]).astype(np.float64)
        truth = shared_part(scores, rng=rng, resamples=2)
        others = 0.5 * (people[:, 1] - 4.5) - 0.2 * (people[:, 2] - 4.5)
        apart = 1 / (1 + np.exp(-others - effect / 2)) - 1 / (1 + np.exp(-others + effect / 2))
        planted_effect = float(np.sqrt((apart**2).mean())) / 2  # around the mean of two twins
        for trainings in (4, 8):
            hits = sizes = 0
            for _ in range(repetitions):
                some, chosen = (
                    rng.choice(len(people), PEOPLE, replace=False),
                    rng.choice(pool, trainings, replace=False),
                )
                part = shared_part(scores[np.ix_(chosen, some)], rng=rng, resamples=200)
                hits += part.shared.low <= truth.shared.value <= part.shared.high
                sizes += part.common.low <= truth.common.value <= part.common.high
            share, size = truth.shared.value, truth.common.value
            cells = [f"{effect:g}", str(trainings), f"{share:.2f}", f"{hits / repetitions:.1%}"]
            cells += [f"{size:.3f}", f"{planted_effect:.3f}", f"{sizes / repetitions:.1%}"]
            print("| " + " | ".join(cells) + " |", flush=True)


def cost(name: str, trainings: int) -> None:
    subject = load_subject(name)
    people, _ = people_of(subject, evaluator_of(subject).m, np.random.default_rng(0))
    begin = time.process_time()
    found = train_here(subject, people, list(range(1, trainings + 1)))
    each = ", ".join(f"{one.seconds:.1f}" for one in found)
    print(f"{name}: {trainings} trainings, {time.process_time() - begin:.1f} s of CPU in all (each: {each})")


def rules(names: list[str], evaluations: int) -> None:
    print("| subject | rule | layer | votes | certain | runner-up | influence | positive | negative |")
    print("| --- | --- | --: | --: | --: | --: | --: | --- | --- |")
    for name in names:
        subject = load_subject(name)
        with tempfile.TemporaryDirectory() as place:
            settings = Settings(budget=Budget(evaluations=evaluations), strategy="dice", options={"seeds": 100})
            run = search_subject(subject, settings, Path(place) / "run")
            for rule in ("code", "ours"):
                found = debug_run(run, subject=subject, samples=400, rule=rule, sets=False, trainings=0)
                vote = found.vote
                assert vote is not None  # noqa: S101 - all of them have hidden layers
                assert vote.share is not None and vote.influence is not None  # noqa: PT018, S101
                top = [", ".join(str(one.neuron) for one in found.top(sign)) or "none" for sign in (1, -1)]
                second = "–" if vote.runner_up is None else str(vote.runner_up)
                cells = [name, rule, str(vote.suspect), f"{vote.share.value:.0%}", f"{vote.certainty:.0%}", second]
                print("| " + " | ".join([*cells, f"{vote.influence.value:.2f}", *top]) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("coverage", "trained", "cost", "rules"))
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--errors", nargs="+", choices=ERRORS, default=list(ERRORS), help="for coverage")
    parser.add_argument("--pool", type=int, default=60)
    parser.add_argument("--subject", default="census")
    parser.add_argument("--trainings", type=int, default=4)
    parser.add_argument("--subjects", default=None)
    parser.add_argument("--evaluations", type=int, default=30_000)
    given = parser.parse_args()
    if given.what == "coverage":
        coverage(given.repetitions, given.errors)
    elif given.what == "trained":
        trained(given.repetitions, given.pool)
    elif given.what == "cost":
        cost(given.subject, given.trainings)
    else:
        rules(given.subjects.split(",") if given.subjects else roster(None).names, given.evaluations)


if __name__ == "__main__":
    main()
