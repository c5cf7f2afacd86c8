"""The comparison: both models asked about the same people and their twins, everybody compared with themselves."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.diff.checks import check_same_people
from fairbits.diff.layers import layer_shifts, parting
from fairbits.diff.people import OwnDecisions, group_shifts, person_shifts
from fairbits.diff.records import Changed, ModelDiff, Shift, SideFacts
from fairbits.domain import Table, people_of
from fairbits.engine import Evaluation
from fairbits.errors import OptionError
from fairbits.measure import Estimate, Evaluator, bounded_means, evaluator_of, rate_of
from fairbits.models import kind_of
from fairbits.randomness import generator
from fairbits.report import hash_file
from fairbits.subject import Subject, quality_of

#: Beyond so many twin scores a sample of the rows is compared: compiled kernels, and any other model.
MAX_SCORES, MAX_FOREIGN_SCORES = 400_000_000, 500_000
#: Seconds that models outside of the compiled kernels may be asked for: a score of theirs may cost anything (a guard in
#: an ONNX file asks about all twins for each), so the first few people are timed.
MAX_SECONDS, TIMED = 30.0, 8
#: People whose layers are compared, and people who are listed.
LAYER_PEOPLE, TOP = 2_000, 10

Floats = npt.NDArray[np.float64]


def diff_subjects(
    a: Subject,
    b: Subject,
    *,
    epsilon: float | None = None,
    partition: str = "constrained",
    seed: int = 0,
    threads: int | None = None,
    top: int = TOP,
    people: int | None = None,
    command: str = "",
) -> ModelDiff:
    """Compare two models on the same people."""
    check_same_people(a, b)
    a, b = a.checked(as_is=True), b.checked(as_is=True)
    evaluators = [evaluator_of(a, epsilon=epsilon, partition=partition, threads=threads)]
    evaluators.append(evaluator_of(b, epsilon=evaluators[0].epsilon, partition=partition, threads=threads))
    rows, drawn = _rows(a.table, evaluators, seed, people)
    table = a.table.rows(rows)
    found = [one.evaluate(table.codes) for one in evaluators]
    own = [OwnDecisions.of(side, side.table.rows(rows)) for side in (a, b)]
    twins = _twin_distance(evaluators, table)
    layers, why = layer_shifts(a, b, table.codes[:LAYER_PEOPLE])
    parted, adds = parting(layers)
    worse = found[1].k.astype(int) - found[0].k
    whose = people_of(a.schema, table)
    return ModelDiff(
        a=_facts(a),
        b=_facts(b),
        rows=len(table),
        rows_total=len(a.table),
        m=evaluators[0].m,
        epsilon=evaluators[0].epsilon,
        partition=partition,
        seed=seed,
        protected=a.schema.protected,
        regression=a.schema.regression,
        shifts=_shifts(found, own, evaluators[0], generator(seed, "diff", "people"), whose),
        changed=_changed(own, whose),
        k_rose=int((worse > 0).sum()),
        k_fell=int((worse < 0).sum()),
        groups=group_shifts(a, table, found, own, generator(seed, "diff", "groups"), whose),
        people=person_shifts(a, evaluators[1], table, found, own, top),
        score_distance=twins[0],
        score_distance_max=twins[1],
        layers=layers,
        parted=parted,
        adds_most=adds,
        notes=(*drawn, *_notes(a, b, why)),
        # The clock may have had a say in who is compared: the command names the number.
        command=f"{command} --people {len(table)}" if command and len(table) < len(a.table) else command,
    )


def _rows(
    table: Table, evaluators: list[Evaluator], seed: int, people: int | None
) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Who is compared, and why not everybody."""
    if people is not None and people < 1:
        raise OptionError(f"--people is {people}; at least one must be compared.")
    native = all(one.native for one in evaluators)
    limit = max(1, (MAX_SCORES if native else MAX_FOREIGN_SCORES) // evaluators[0].m)
    most, why = min(limit, len(table)), f"{limit * evaluators[0].m:,} scores of twins are the most"
    if people is not None:
        most, why = min(people, len(table)), "as asked for"
    elif not native:
        each = sum(_seconds_each(one, table) for one in evaluators if not one.native)
        fits = _round_number(MAX_SECONDS / max(each, 1e-9))
        if fits < most:
            most, why = fits, f"one person and the twins take about {each:.2g} s to ask; --people sets another number"
    if most == len(table):
        return np.arange(len(table)), ()
    rows = np.sort(generator(seed, "diff", "rows").choice(len(table), most, replace=False))
    return rows, (f"{most:,} of {len(table):,} people are compared, drawn by the seed ({why}).",)


def _seconds_each(evaluator: Evaluator, table: Table) -> float:
    """What a person costs: both the figures and the distance between twins ask about everybody once."""
    few = table.codes[: min(TIMED, len(table))]
    evaluator.evaluate(few[:1])  # connects, compiles
    begin = time.perf_counter()
    evaluator.evaluate(few)
    return 2 * (time.perf_counter() - begin) / max(1, len(few))


def _round_number(number: float) -> int:
    """The power of two below: a clock that is a little off does not change who is compared."""
    return 1 << max(0, int(number).bit_length() - 1)


def _twin_distance(evaluators: list[Evaluator], table: Table) -> tuple[float, float]:
    """The mean and the largest difference between the scores of the same twin."""
    people = max(1, 1_000_000 // evaluators[0].m)
    total, most, count = 0.0, 0.0, 0
    for start in range(0, len(table), people):
        codes = table.codes[start : start + people]
        gap = np.abs(evaluators[0].scores(codes).astype(np.float64) - evaluators[1].scores(codes))
        valid = evaluators[0].valid_twins(codes)
        gap = gap if valid is None else gap[valid]
        total, count, most = total + float(gap.sum()), count + gap.size, max(most, float(gap.max(initial=0.0)))
    return total / max(count, 1), most


def _shifts(
    found: list[Evaluation],
    own: list[OwnDecisions],
    evaluator: Evaluator,
    rng: np.random.Generator,
    whose: npt.NDArray[np.int64] | None,
) -> tuple[Shift, ...]:
    """Figures of both, and the means of everybody's own change: all drawn with the same people."""
    limit, m = evaluator.bits_limit, float(evaluator.m)
    pairs: list[tuple[str, str, Any, Any, float, bool, int]] = []

    def add(name: str, words: str, one: Any, other: Any, span: float, *, share: bool = False, worse: int = 0) -> None:
        if one is not None and other is not None:
            pairs.append((name, words, np.asarray(one, float), np.asarray(other, float), span, share, worse))

    add("accuracy", "accuracy", own[0].right, own[1].right, 1, share=True, worse=-1)
    add("favourable_rate", "decided favourably", own[0].favoured, own[1].favoured, 1, share=True)
    if not evaluator.schema.regression:
        flips = [one.flips for one in found]
        add("flip_rate", "decision flips (ID)", flips[0], flips[1], 1, share=True, worse=1)
    add("split_rate", "more than one class", found[0].k > 1, found[1].k > 1, 1, share=True, worse=1)
    add("k_mean", "mean k", found[0].k, found[1].k, m - 1, worse=1)
    add("q_inf_mean", "mean bits, Q∞", found[0].q_inf, found[1].q_inf, limit, worse=1)
    add("q_1_mean", "mean bits, Q1", found[0].q_1, found[1].q_1, limit, worse=1)
    columns = np.column_stack([np.round(other - one, 9) for _, _, one, other, _, _, _ in pairs])
    spans = [max(span, 1e-9) for *_, span, _, _ in pairs]
    changes = bounded_means(columns, rng, lows=[-span for span in spans], highs=spans, people=whose)
    shifts = [
        Shift(name, words, float(one.mean()), float(other.mean()), _or_none(change, one, other), share, worse)
        for (name, words, one, other, _, share, worse), change in zip(pairs, changes, strict=True)
    ]
    most = [float(one.k.max()) for one in found]
    return (*shifts, Shift("k_max", "largest k", most[0], most[1], None))


def _or_none(change: Estimate, one: Floats, other: Floats) -> Estimate:
    """Where nobody moved at all there is no chance in it: the change is exactly 0 for these people."""
    return Estimate(0.0, 0.0, 0.0) if np.array_equal(one, other) else change


def _changed(own: list[OwnDecisions], whose: npt.NDArray[np.int64] | None) -> Changed | None:
    if own[0].classes is None or own[1].classes is None:
        return None
    moved = own[0].classes != own[1].classes
    lost = int((own[0].favoured & ~own[1].favoured).sum())
    gained = int((~own[0].favoured & own[1].favoured).sum())
    known = own[0].right is not None and own[1].right is not None
    right = int((~own[0].right & own[1].right).sum()) if known else None
    wrong = int((own[0].right & ~own[1].right).sum()) if known else None
    return Changed(int(moved.sum()), rate_of(np.asarray(moved, np.bool_), people=whose), lost, gained, right, wrong)


def _facts(subject: Subject) -> SideFacts:
    origin = subject.original
    file = Path(origin) if isinstance(origin, str | Path) and Path(origin).is_file() else None
    return SideFacts(
        name=subject.name if file is None else file.name,
        model=kind_of(subject.model),
        sha256=None if file is None else hash_file(file)[1],
        identity=subject.identity.id,
        quality=subject.quality
        or quality_of(subject.model, subject.encoding, subject.schema, subject.table, test=subject.test),
    )


def _notes(a: Subject, b: Subject, why: str) -> tuple[str, ...]:
    notes = [why] if why else []
    if a.schema.rule.threshold != b.schema.rule.threshold:
        notes.append(f"A decides from {a.schema.rule.threshold:g} on and B from {b.schema.rule.threshold:g}.")
    if a.encoding.width != b.encoding.width:
        notes.append(f"A takes {a.encoding.width} inputs and B {b.encoding.width}: people are the same, codes are not.")
    for name, one in (("A", a), ("B", b)):
        if one.as_is:
            notes.append(f"{name} decides against the labels of the table.")
    return tuple(notes)
