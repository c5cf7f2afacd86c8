"""Which cases are looked at: the worst fifth by severity, the others at random, as in the paper."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes
from fairbits.errors import OptionError
from fairbits.store import Run

WORST_SHARE = 0.2


def sample_cases(run: Run, samples: int, rng: np.random.Generator) -> tuple[Codes, int]:
    """Codes of the chosen cases, the worst first, and how many of them were chosen as the worst.

    The worst have the most classes, then the widest span; the others are drawn from all cases but those, each with
    the same chance. A run with no more cases than asked for gives all of them.
    """
    if samples < 1:
        raise OptionError(f"samples is {samples}; look at one case at least.")
    total = len(run)
    if total == 0:
        raise OptionError(f"the run in {str(run.folder)!r} has no cases to look at; search again with a larger budget.")
    worst = max(1, round(WORST_SHARE * min(samples, total)))
    if total <= samples:
        return _ranked(run, total), worst
    top = _ranked(run, worst)
    known = {row.tobytes() for row in top}
    # At most `worst` of the rows drawn are among the worst: so many are drawn in excess, and enough are left.
    drawn = rng.choice(total, samples, replace=False)
    others = [row for row in run.codes_at(drawn) if row.tobytes() not in known]
    return np.concatenate([top, np.array(others[: samples - worst]).reshape(-1, top.shape[1])]), worst


def _ranked(run: Run, top: int) -> Codes:
    pieces = [run.layout.codes_of(batch) for batch in run.batches(top=top, labels=False)]
    return np.concatenate(pieces)


def chains_of(run: Run, cases: Codes) -> npt.NDArray[np.int64] | None:
    """The chain of each case: what a search made of one row of the table is no independent evidence; None where each
    case is of another row.
    """
    columns = list(run.schema.person_columns)
    wanted = {row.tobytes(): place for place, row in enumerate(np.ascontiguousarray(cases[:, columns]))}
    mixed = np.random.default_rng(0).random(len(columns))  # rows of another sum are others: few are left to look at
    sums, seeds = np.unique(np.nan_to_num(cases[:, columns]) @ mixed), np.full(len(cases), -1, dtype=np.int64)
    for batch in run.batches(labels=False):
        codes = np.ascontiguousarray(run.layout.codes_of(batch)[:, columns])
        own = np.nan_to_num(codes) @ mixed
        near = np.searchsorted(sums, own)
        beside = np.minimum(abs(sums[np.minimum(near, len(sums) - 1)] - own), abs(sums[np.maximum(near - 1, 0)] - own))
        rows = batch.column("seed_row").to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(beside <= 1e-9 * (1 + abs(own))):
            place = wanted.get(codes[row].tobytes())
            if place is not None:
                seeds[place] = rows[row]
    alone = -1 - np.arange(len(cases))  # started from no row of the table: somebody else each time
    found = np.where(seeds >= 0, seeds, alone)
    return None if len(np.unique(found)) == len(found) else found
