"""How often figures hold at a planted truth: matched people, repeated people, and changes of a gate.

``python -m benchmarks.chances [matched|people|gate|origin|neurons] [--draws 300]`` prints a line per world.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from fairbits.domain import Attribute, Encoding, Schema, Table
from fairbits.measure import Grouping
from fairbits.models import Recorded
from fairbits.subject import Subject

#: Shares of groups that matched people are tried at.
SHARES = {
    "50/50": (0.5, 0.5),
    "90/10": (0.9, 0.1),
    "95/5": (0.95, 0.05),
    "60/30/10": (0.6, 0.3, 0.1),
    "six equal": (1 / 6,) * 6,
}


def grouped(codes: np.ndarray, name: str = "group") -> Grouping:
    return Grouping(name, tuple(f"g{i}" for i in range(int(codes.max()) + 1)), codes.astype(np.int64))


def alike(
    shares: tuple[float, ...],
    n: int,
    rng: np.random.Generator,
    *,
    columns: int = 2,
    moved: float = 0.0,
    kind: str = "noise",
) -> tuple[Grouping, np.ndarray, tuple[bool, ...], np.ndarray]:
    """People whose score depends on the justified attributes alone; groups may differ in these by ``moved``."""
    codes = rng.choice(len(shares), n, p=shares)
    j = rng.normal(size=(n, columns)) + moved * codes[:, None]
    categorical = (False,) * columns
    if kind == "labels":
        j[:, 0] = rng.integers(0, 4, n)
        categorical = (True, *categorical[1:])
    z = j[:, 0] + 0.5 * j[:, -1]
    noise = 0.0 if kind == "exact" else 0.5 * rng.normal(size=n)
    return grouped(codes), j, categorical, 1 / (1 + np.exp(-z - noise))


def matched(draws: int) -> Iterator[str]:
    """Shares of draws whose interval of the excess holds 0: at least 93 % is asked."""
    from fairbits.proxies import matched_people

    for name, shares in SHARES.items():
        for kind, columns, moved in (
            ("noise", 1, 0.0),
            ("noise", 2, 0.0),
            ("exact", 2, 0.0),
            ("labels", 2, 0.0),
            ("noise", 2, 0.7),
            ("exact", 1, 0.7),
        ):
            held, sizes = [], []
            for seed in range(draws):
                rng = np.random.default_rng([seed, 1])
                found = matched_people(*alike(shares, 1500, rng, columns=columns, moved=moved, kind=kind), rng)
                if found is None:
                    continue
                held.append(found.excess.low <= 0 <= found.excess.high)
                sizes.append(found.people)
            world = f"{name:>10} {kind:>7} {columns} columns moved {moved}"
            yield f"{world}: {np.mean(held):.3f} of {len(held)} ({np.mean(sizes):.0f} people)"


def repeated(
    seed: int, *, people: int = 1000, times: int = 12, wobble: float = 0.0, named: bool = True, groups: int = 2
) -> Subject:
    """People of several rows each, whose score has nothing to do with their group; ids, or exact repeats without."""
    rng = np.random.default_rng([seed, 2])
    own = np.repeat(np.arange(people), times)
    race = rng.integers(0, groups, people)[own].astype(np.float64)
    scores = np.clip(rng.uniform(0.05, 0.95, people)[own] + wobble * rng.normal(size=people * times), 0.0, 1.0)
    income = rng.integers(0, 10**6, people)[own].astype(np.float64)
    if wobble:
        income += rng.integers(0, 1000, len(own))
    labels = (rng.random(people) < 0.5)[own].astype(np.float64)
    schema = Schema(
        (Attribute(name="income", kind="integer", low=0, high=2 * 10**6),),
        target="paid",
        classes=("no", "yes"),
        favourable="yes",
        observed=(
            Attribute(name="race", kind="category", labels=tuple(f"r{i}" for i in range(groups)), protected=True),
        ),
    )
    table = Table(income[:, None], labels, observed=race[:, None], scores=scores, person=own if named else None)
    return Subject("repeated", schema, Recorded(1), Encoding(()), table)


def people(draws: int) -> Iterator[str]:
    """Shares of draws in which bits are claimed though there are none: at most 5 % is asked."""
    from fairbits.proxies import study_subject

    for named, wobble, groups in ((True, 0.0, 2), (True, 0.05, 2), (True, 0.0, 5), (False, 0.0, 2)):
        claimed = []
        for seed in range(draws):
            subject = repeated(seed, named=named, wobble=wobble, groups=groups)
            claimed.append(study_subject(subject, seed=seed, columns=False).attributes[0].score.low > 0)
        kind = "ids" if named else "exact repeats"
        yield f"{kind}, scores vary by {wobble}, {groups} groups: claimed in {np.mean(claimed):.3f} of {draws}"


WORLDS: dict[str, Callable[[int], Iterator[str]]] = {"matched": matched, "people": people}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=tuple(WORLDS))
    parser.add_argument("--draws", type=int, default=300)
    asked = parser.parse_args()
    for line in WORLDS[asked.what](asked.draws):
        print(line, flush=True)


if __name__ == "__main__":
    main()
