"""The comparison: both models asked about the same people and their twins, everybody compared with themselves.

Where two networks of one shape part: the distance of a layer is the mean absolute difference of its outputs, and its
rise is how much it adds to the layers before it, as in CRADLE (Pham, Lutellier, Qi, Tan: "CRADLE: Cross-Backend
Validation to Detect and Localize Bugs in Deep Learning Libraries", ICSE 2019) and Audee (Guo et al., ASE 2020), which
look for the layer that introduces an inconsistency between two executions of one network.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np

from fairbits.data import BUILT_IN, load_subject
from fairbits.diff.pairs import (
    Changed,
    GroupShift,
    LayerShift,
    ModelDiff,
    PairedChange,
    PersonShift,
    Shift,
    SideFacts,
    answers_of,
    paired_changes,
)
from fairbits.domain import Codes, Doubles, GrantOptions, Integers, Table, people_of
from fairbits.errors import OptionError
from fairbits.measure import Evaluator, evaluator_of, groupings_of, rate_of
from fairbits.models import HasActivations, ModelOptions, is_reference, is_url, kind_of, read_model
from fairbits.randomness import generator
from fairbits.report import hash_file
from fairbits.store import Run, subject_of
from fairbits.subject import RowsJudged, Subject, make_subject, quality_of, rows_judged_words, scored_rows

_REMEDY = "compare models on one table and one schema, e.g. with --subject."


def check_same_people(a: Subject, b: Subject) -> None:
    """Refuse two subjects that cannot be compared person by person, naming what differs."""
    names = sorted(set(a.schema.names) ^ set(b.schema.names))
    if names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        listed = ", ".join(repr(name[:40]) for name in names[:3])
        raise OptionError(f"the schemas differ: only one of both has {listed}{more}; {_REMEDY}")
    for attribute in a.schema.attributes:
        other = b.schema[attribute.name]
        if (attribute.kind, attribute.labels, attribute.low, attribute.upper) != (
            other.kind,
            other.labels,
            other.low,
            other.upper,
        ):
            raise OptionError(f"the schemas differ: {attribute.name!r} has other values in A than in B; {_REMEDY}")
    if a.schema.names != b.schema.names:
        raise OptionError(f"the schemas differ: the attributes come in another order in B than in A; {_REMEDY}")
    for what, x, y in (
        ("protected attributes", set(a.schema.protected), set(b.schema.protected)),
        ("target", a.schema.target, b.schema.target),
        ("classes", set(a.schema.classes), set(b.schema.classes)),
        ("favourable class", a.schema.favourable, b.schema.favourable),
        ("rules", [rule.text for rule in a.schema.rules], [rule.text for rule in b.schema.rules]),
    ):
        if x != y:
            raise OptionError(f"the schemas differ: the {what} of A are {_shown(x)}, of B {_shown(y)}; {_REMEDY}")
    if not a.schema.protected:
        raise OptionError(
            "nobody has a twin, because both models take no protected attribute; name some with --protected."
        )
    if len(a.table) != len(b.table):
        raise OptionError(f"A is about {len(a.table):,} people and B about {len(b.table):,}; {_REMEDY}")
    same = np.equal(a.table.codes, b.table.codes) | (np.isnan(a.table.codes) & np.isnan(b.table.codes))
    different = np.flatnonzero(~same.all(axis=1))
    if len(different):
        raise OptionError(
            f"{len(different):,} of {len(a.table):,} people differ between A and B (first: "
            f"{a.table.place(int(different[0]))}); {_REMEDY}"
        )


def _shown(value: object) -> str:
    listed = ", ".join(sorted(str(item)[:40] for item in value)) if isinstance(value, set) else str(value)[:80]
    return listed or "none"


#: Relative distances below this are rounding of single precision.
ROUNDING = 1e-5
#: Keeps a rise finite where the layers before agree.
_TINY = 1e-7


def layer_shifts(a: Subject, b: Subject, codes: Codes) -> tuple[tuple[LayerShift, ...], str]:
    """The layers of both models, and why there are none where there are none."""
    if not isinstance(a.model, HasActivations) or not isinstance(b.model, HasActivations):
        return (), ""
    outputs = [s.model.activations(s.encoding.encode(codes)) for s in (a, b)]  # type: ignore[attr-defined]
    shapes = [[layer.shape[1] for layer in side] for side in outputs]
    if shapes[0] != shapes[1]:
        words = ["–".join(map(str, shape)) for shape in shapes]
        return (), f"the networks have other shapes ({words[0]} and {words[1]}): their layers cannot be compared."
    gaps, before = [], 0.0
    for number, (first, other) in enumerate(zip(*outputs, strict=True), 1):
        x, y = np.asarray(first, dtype=np.float64), np.asarray(other, dtype=np.float64)
        distance = float(np.abs(x - y).mean())
        relative = distance / max(float(np.abs(x).mean()), _TINY)
        gaps.append(LayerShift(number, x.shape[1], distance, relative, (distance - before) / (before + _TINY)))
        before = max(before, distance)
    return tuple(gaps), ""


def parting(layers: tuple[LayerShift, ...]) -> tuple[int | None, int | None]:
    """The first layer whose outputs differ by more than rounding, and the later one that adds most to it."""
    parted = next((layer.layer for layer in layers if layer.relative > ROUNDING), None)
    most = max(
        [layer for layer in layers if parted is not None and layer.layer > parted and layer.rise > 0],
        key=lambda shift: shift.rise,
        default=None,
    )
    return parted, None if most is None else most.layer


#: Groups of fewer people are counted, but get no interval.
MIN_PEOPLE = 10


class _Side:
    """What one model answers about the people; what it decides is None where it decides nothing."""

    def __init__(self, subject: Subject, rows: Integers, evaluator: Evaluator):
        subject = replace(subject, table=subject.table.rows(rows))
        answers = answers_of(subject, evaluator)
        assert answers.figures is not None  # noqa: S101 - it was asked
        self.figures, self.scores, labels = answers.figures, answers.scores, subject.table.labels
        self.classes = self.favoured = self.right = cast(Any, None)
        if answers.decides:
            self.classes = np.array(subject.schema.classes, dtype=object)[answers.decisions]
            self.favoured = answers.decisions == subject.schema.favourable_index
            self.right = None if labels is None else answers.decisions == labels.astype(np.int64)


def group_shifts(
    subject: Subject,
    table: Table,
    sides: list[_Side],
    rng: np.random.Generator,
    whose: Integers | None = None,
) -> tuple[GroupShift, ...]:
    decides = all(side.favoured is not None for side in sides)
    columns = [np.column_stack([side.figures.k, side.favoured] if decides else [side.figures.k]) for side in sides]
    spans = [float(max(sides[0].figures.m - 1, 1)), 1.0][: columns[0].shape[1]]
    shifts = []
    for grouping in groupings_of(subject.schema, table):
        for place, label in enumerate(grouping.labels):
            here = grouping.codes == place
            people = int(here.sum())
            if not people:
                continue
            before, after = (column[here].astype(np.float64) for column in columns)
            members, weight = (None if column is None else column[here] for column in (whose, table.weight))
            if weight is not None and not weight.any():
                continue  # nobody of the population
            means = paired_changes(before, after, rng, spans=spans, resamples=500, people=members, weight=weight)
            rates = [np.average(side, axis=0, weights=weight).tolist() for side in (before, after)]
            enough = (people if members is None else len(np.unique(members))) >= MIN_PEOPLE
            shifts.append(
                GroupShift(
                    attribute=grouping.name,
                    group=label,
                    people=people,
                    selection_before=rates[0][1] if decides else None,
                    selection_after=rates[1][1] if decides else None,
                    selection_change=means[1] if decides and enough else None,
                    lost=int((before[:, 1] > after[:, 1]).sum()) if decides else None,
                    gained=int((after[:, 1] > before[:, 1]).sum()) if decides else None,
                    k_change=means[0],
                    rose=float(np.average(after[:, 0] > before[:, 0], weights=weight)),
                )
            )
    return tuple(shifts)


def person_shifts(
    subject: Subject, evaluator: Evaluator, table: Table, own: list[_Side], top: int
) -> tuple[PersonShift, ...]:
    """Those who got worse, most classes gained first, then the most added span."""
    figures = [side.figures for side in own]
    rise = figures[1].k.astype(int) - figures[0].k
    wider = figures[1].span.astype(float) - figures[0].span
    order = np.lexsort((np.arange(len(table)), -wider, -rise))
    twins, schema = evaluator.twins, subject.schema
    people = []
    for row in order[:top]:
        if rise[row] <= 0 and not (rise[row] == 0 and figures[1].flips[row] and not figures[0].flips[row]):
            break
        person = schema.read(table.codes[row])
        decisions = [None if side.classes is None else str(side.classes[row]) for side in own]
        people.append(
            PersonShift(
                place=table.place(int(row)),
                own={name: person[name] for name in schema.protected},
                k_before=int(figures[0].k[row]),
                k_after=int(figures[1].k[row]),
                span_before=float(figures[0].span[row]),
                span_after=float(figures[1].span[row]),
                score_before=float(own[0].scores[row]),
                score_after=float(own[1].scores[row]),
                decision_before=decisions[0],
                decision_after=decisions[1],
                flips_before=bool(figures[0].flips[row]),
                flips_after=bool(figures[1].flips[row]),
                worst=twins.label(int(figures[1].low_twin[row]), table.codes[row]),
                best=twins.label(int(figures[1].high_twin[row]), table.codes[row]),
            )
        )
    return tuple(people)


#: Beyond so many twin scores a sample of the rows is compared: compiled kernels, and any other model.
MAX_SCORES, MAX_FOREIGN_SCORES = 400_000_000, 500_000
#: Seconds that models outside of the compiled kernels may be asked for: a score of theirs may cost anything (a guard in
#: an ONNX file asks about all twins for each), so the first few people are timed.
MAX_SECONDS, TIMED = 30.0, 8
#: People whose layers are compared, and people who are listed.
LAYER_PEOPLE, TOP = 2_000, 10


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
    check_same_people(a, b)
    a, b = a.checked(as_is=True), b.checked(as_is=True)
    evaluators = [evaluator_of(a, epsilon=epsilon, partition=partition, threads=threads)]
    evaluators.append(evaluator_of(b, epsilon=evaluators[0].epsilon, partition=partition, threads=threads))
    rows, drawn = _rows(a.table, evaluators, seed, people)
    table = a.table.rows(rows)
    own = [_Side(side, rows, evaluator) for side, evaluator in zip((a, b), evaluators, strict=True)]
    twins = _twin_distance(evaluators, table)
    layers, why = layer_shifts(a, b, table.codes[:LAYER_PEOPLE])
    parted, adds = parting(layers)
    worse = own[1].figures.k.astype(int) - own[0].figures.k
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
        shifts=(
            *_accuracy(a, b, own, table, generator(seed, "diff", "accuracy")),
            *_shifts(own, evaluators[0], generator(seed, "diff", "people"), whose, table.weight),
        ),
        changed=_changed(own, whose, table.weight),
        k_rose=int((worse > 0).sum()),
        k_fell=int((worse < 0).sum()),
        groups=group_shifts(a, table, own, generator(seed, "diff", "groups"), whose),
        people=person_shifts(a, evaluators[1], table, own, top),
        score_distance=twins[0],
        score_distance_max=twins[1],
        layers=layers,
        parted=parted,
        adds_most=adds,
        notes=(*drawn, *_notes(a, b, why)),
        # The clock may have had a say in who is compared: the command names the number.
        command=f"{command} --people {len(table)}" if command and len(table) < len(a.table) else command,
    )


def _rows(table: Table, evaluators: list[Evaluator], seed: int, people: int | None) -> tuple[Integers, tuple[str, ...]]:
    """Who is compared, and why not everybody."""
    if people is not None and people < 1:
        raise OptionError(f"--people is {people}; at least one must be compared.")
    native = all(evaluator.native for evaluator in evaluators)
    limit = max(1, (MAX_SCORES if native else MAX_FOREIGN_SCORES) // evaluators[0].m)
    most, why = min(limit, len(table)), f"{limit * evaluators[0].m:,} scores of twins are the most"
    if people is not None:
        most, why = min(people, len(table)), "as asked for"
    elif not native:
        each = sum(_seconds_each(evaluator, table) for evaluator in evaluators if not evaluator.native)
        # The power of two below: a clock that is a little off does not change who is compared.
        fits = 1 << max(0, int(MAX_SECONDS / max(each, 1e-9)).bit_length() - 1)
        if fits < most:
            most, why = fits, f"one person and the twins take about {each:.2g} s to ask; --people sets another number"
    if most == len(table):
        return np.arange(len(table)), ()
    rows = np.sort(generator(seed, "diff", "rows").choice(len(table), most, replace=False))
    return rows, (f"{most:,} of {len(table):,} people are compared, drawn by the seed ({why}).",)


def _seconds_each(evaluator: Evaluator, table: Table) -> float:
    """What a person costs: both the figures and the distance between twins ask about everybody once."""
    few = table.codes[:TIMED]
    evaluator.evaluate(few[:1])  # connects, compiles
    begin = time.perf_counter()
    evaluator.evaluate(few)
    return 2 * (time.perf_counter() - begin) / max(1, len(few))


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


def _accuracy(a: Subject, b: Subject, own: list[_Side], table: Table, rng: np.random.Generator) -> tuple[Shift, ...]:
    """Accuracy on held-out rows where there are any: rows that a model was trained on flatter it."""
    tests = [
        subject.test
        for subject in (a, b)
        if subject.test is not None and subject.test.labels is not None and len(subject.test)
    ]
    right: list[Any] = [side.right for side in own]
    if any(answers is None for answers in right):
        return ()
    on: RowsJudged = "unknown" if table.held_out is None else "held-out" if table.held_out.any() else "training"
    if len(tests) == 2 and np.array_equal(tests[0].codes, tests[1].codes):
        decided = (
            scored_rows(side.model, side.encoding, side.schema, test)[1]
            for side, test in zip((a, b), tests, strict=True)
        )
        right = [decisions == test.labels for decisions, test in zip(decided, tests, strict=True)]
        table, on = tests[0], "held-out"
    elif table.held_out is not None and table.held_out.any():
        kept = np.flatnonzero(table.held_out)
        right, table = [answers[kept] for answers in right], table.rows(kept)
    before, after = (np.asarray(answers, np.float64)[:, None] for answers in right)
    drawn: dict[str, Any] = {"people": people_of(a.schema, table), "weight": table.weight}
    moved = paired_changes(before, after, rng, spans=[1.0], **drawn)[0]
    change = moved if (before != after).any() else PairedChange(0.0, 0.0, 0.0, 0, 0)
    was, now = (float(np.average(side[:, 0], weights=table.weight)) for side in (before, after))
    return (Shift("accuracy", f"accuracy {rows_judged_words(on, len(table))}", was, now, change, True, -1),)


def _shifts(
    own: list[_Side],
    evaluator: Evaluator,
    rng: np.random.Generator,
    whose: Integers | None,
    weight: Doubles | None,
) -> tuple[Shift, ...]:
    """Figures of both, and the means of everybody's own change: all drawn with the same people."""
    limit, regression = evaluator.bits_limit, evaluator.schema.regression
    #: Name, words, everybody's figure, the most that it can move by, whether it is a share, and which way is worse.
    figures: list[tuple[str, str, Callable[[_Side], Any], float, bool, int]] = [
        ("favourable_rate", "decided favourably", lambda side: side.favoured, 1, True, 0),
        ("flip_rate", "decision flips (ID)", lambda side: None if regression else side.figures.flips, 1, True, 1),
        ("split_rate", "more than one class", lambda side: side.figures.k > 1, 1, True, 1),
        ("k_mean", "mean k", lambda side: side.figures.k, evaluator.m - 1, False, 1),
        ("q_inf_mean", "mean bits, Q∞", lambda side: side.figures.q_inf, limit, False, 1),
        ("q_1_mean", "mean bits, Q1", lambda side: side.figures.q_1, limit, False, 1),
    ]
    figures = [figure for figure in figures if all(figure[2](side) is not None for side in own)]
    before, after = (np.column_stack([figure[2](side) for figure in figures]).astype(float) for side in own)
    changes = paired_changes(
        before, after, rng, spans=[max(span, 1e-9) for *_, span, _, _ in figures], people=whose, weight=weight
    )
    # Where nobody moved at all there is no chance in it: the change is exactly 0 for these people.
    moved = (before != after).any(axis=0)
    changes = [
        change if there else PairedChange(0.0, 0.0, 0.0, 0, 0) for change, there in zip(changes, moved, strict=True)
    ]
    means = zip(*(np.average(side, axis=0, weights=weight).tolist() for side in (before, after)), strict=True)
    shifts = [
        Shift(name, words, mean[0], mean[1], change, share, worse)
        for (name, words, _, _, share, worse), mean, change in zip(figures, means, changes, strict=True)
    ]
    most = [float(side.figures.k.max()) for side in own]
    return (*shifts, Shift("k_max", "largest k", most[0], most[1], None))


def _changed(own: list[_Side], whose: Integers | None, weight: Doubles | None) -> Changed | None:
    first, other = own
    if first.classes is None or other.classes is None:
        return None
    moved = np.asarray(first.classes != other.classes, np.bool_)
    lost, gained = int((first.favoured & ~other.favoured).sum()), int((~first.favoured & other.favoured).sum())
    judged = first.right is not None and other.right is not None
    made = [int((was & ~now).sum()) for was, now in ((other.right, first.right), (first.right, other.right)) if judged]
    return Changed(int(moved.sum()), rate_of(moved, people=whose, weight=weight), lost, gained, *(made or (None, None)))


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
    ours, theirs = a.schema.rule.threshold, b.schema.rule.threshold
    widths = f"A takes {a.encoding.width} inputs and B {b.encoding.width}"
    return (
        *([why] if why else []),
        *([f"A decides from {ours:g} on and B from {theirs:g}."] if ours != theirs else []),
        *([f"{widths}: people are the same, codes are not."] if a.encoding.width != b.encoding.width else []),
        *[f"{name} decides against the labels of the table." for name, side in (("A", a), ("B", b)) if side.as_is],
    )


def sides_of(
    a: str | Path, b: str | Path, *, subject: str | Path | None = None, **grants: Unpack[GrantOptions]
) -> tuple[Subject, Subject]:
    shared = None if subject is None else _subject(subject, grants) or load_subject(subject, **grants)
    subjects = [_subject(place, grants) for place in (a, b)]
    for place, text in enumerate((a, b)):
        if subjects[place] is None and not (Path(text).is_file() or is_url(str(text)) or is_reference(str(text))):
            subjects[place] = load_subject(text, **grants)  # says what is there instead
    shared = shared or subjects[0] or subjects[1]
    if shared is None:
        raise OptionError(
            f"{str(a)!r} and {str(b)!r} are models, and nothing says whom they decide about; add --subject with a "
            f"subject.toml or a built-in name."
        )
    sides = [subject or with_model(shared, str(text), **grants) for subject, text in zip(subjects, (a, b), strict=True)]
    return sides[0], sides[1]


def with_model(subject: Subject, model: Any, **grants: Unpack[GrantOptions]) -> Subject:
    """The same people and schema with another model."""
    options = ModelOptions.of({**subject.options.section(), **grants})
    loaded = read_model(model, subject.schema, options)
    fits = loaded.encoding is None and loaded.model.inputs == subject.encoding.width
    return make_subject(
        str(model) if isinstance(model, str | Path) else type(model).__name__,
        loaded,
        subject.schema,
        subject.table,
        encoding=subject.encoding if fits else None,
        options=options,
        original=model,
        test=subject.test,
    )


def _subject(text: str | Path, grants: GrantOptions) -> Subject | None:
    """The subject of a run or a subject file; None for anything else."""
    name = str(text)
    if (Path(name) / "run.json").is_file():
        return subject_of(Run.open(name), **grants)
    if name in BUILT_IN or name.endswith(".toml"):
        return load_subject(name, **grants)
    return None
