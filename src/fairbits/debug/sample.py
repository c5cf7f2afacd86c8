"""Which cases are looked at: the worst fifth by severity, the others at random, as in the paper."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes
from fairbits.errors import OptionError
from fairbits.store import Run

WORST_SHARE = 0.2
#: Cases whose chain is asked for in one question.
ASKED = 500


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
    layout, chain = run.layout, {}
    places = [run.schema.column(attribute.name) for attribute in layout.attributes]
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in layout.names)
    for start in range(0, len(cases), ASKED):
        some = cases[start : start + ASKED][:, places].tolist()
        listed = ", ".join(f"({', '.join(map(_literal, row))})" for row in some)
        found = run.query(f"SELECT seed_row, {names} FROM cases WHERE ({names}) IN (VALUES {listed})")  # noqa: S608
        for seed, *row in zip(*(column.to_pylist() for column in found.columns), strict=True):
            chain[tuple(map(float, row))] = int(seed)
    alone = -1 - np.arange(len(cases))  # started from no row of the table: somebody else each time
    seeds = [chain.get(tuple(row), -1) for row in cases[:, places].tolist()]
    found = np.where(np.array(seeds) >= 0, seeds, alone).astype(np.int64)
    return None if len(np.unique(found)) == len(found) else found


def _literal(code: float) -> str:
    return repr(code) if np.isfinite(code) else f"'{code}'::DOUBLE"
