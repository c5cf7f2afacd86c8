"""Less discriminatory alternatives: every candidate that was tried, judged on the same held-out rows, to be filed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import quality
from fairbits.errors import OptionError
from fairbits.measure import Estimate, bounded_means, lowest_ratio, student_mean, wilson
from fairbits.randomness import generator
from fairbits.repair.alternative import Alternative, Alternatives
from fairbits.repair.candidates import compared_people, divided, judged_all, proposed
from fairbits.repair.judgement import Judged, Setting, front, judge
from fairbits.repair.proposals.average import Averages
from fairbits.repair.proposals.proposer import Planner, Proposer, Watch
from fairbits.repair.proposals.registry import MITIGATORS, asked_by_name, proposers_of
from fairbits.repair.proposals.tune import TRIALS, Tuning
from fairbits.repair.proposals.weights import Surgery
from fairbits.repair.records import Repair, RepairGroup
from fairbits.repair.writers import export
from fairbits.store import Run, check_writable
from fairbits.subject import Subject

AS_IS = "as it is"
#: Resamples behind the intervals of mean bits.
RESAMPLES = 300
#: The folder of exported models, inside the run's.
MODELS = "alternatives"


def proposers_for(
    proposals: Sequence[str | Proposer] | None, *, trials: int = TRIALS, quick: bool = False, guard: bool = True
) -> tuple[Proposer, ...]:
    """Whom alternatives are asked of: the guard always; everybody else by default, or those that are named."""
    if trials < 0:
        raise OptionError(f"trials is {trials}; give how many settings are tried, 0 for none.")
    tuning = (Tuning(trials=trials),) if trials else ()
    first: tuple[Proposer, ...] = (Averages(distil=not quick),)
    if proposals is None:
        return (*first, *(() if quick else (Surgery(),)), *MITIGATORS, *tuning)
    found = proposers_of(proposals)
    named = tuple(Tuning(trials=trials or TRIALS) if isinstance(one, Tuning) else one for one in found)
    wanted = guard or any(one.name == "guard" for one in named)
    return (*(first if wanted else ()), *(one for one in named if one.name != "guard"))


def find_alternatives(
    run: Run,
    subject: Subject,
    *,
    proposals: Sequence[str | Proposer] | None = None,
    trials: int = TRIALS,
    quick: bool = False,
    guard: bool = True,
    save: bool = True,
    seed: int = 0,
    threads: int | None = None,
    watch: Watch | None = None,
) -> Alternatives:
    """Try everything, judge it on the same held-out rows, and write the models that nothing else beats."""
    if seed < 0:
        raise OptionError(f"the seed is {seed}; it must be 0 or larger.")
    proposers = proposers_for(proposals, trials=trials, quick=quick, guard=guard)
    watch = watch or _silent
    if save:
        check_writable(run.folder)
    setting = Setting(subject, run.manifest["epsilon"], run.manifest["partition"], threads)
    splitting, planning = np.random.SeedSequence(seed, spawn_key=(4,)).spawn(2)
    halves = divided(run, subject, splitting, rows_for_cases=True)
    starts = judge(subject.model, halves.plan, setting), judge(subject.model, halves.held_out, setting)
    planner = Planner(subject.model, halves, setting, 0.02, planning, watch, retrain=not quick)
    made, left_out = proposed(planner, proposers, asked_by_name(proposals or ()))
    watch(f"judging {len(made)} candidates")
    judged = judged_all(made, halves, setting, starts, 0.02)
    found = [_candidate(AS_IS, None, starts, setting)]
    found += [_candidate(repair.name, repair, (starts[0], held_out), setting) for repair, held_out in judged]
    best = front([_objectives(one) for one in found])
    found = [replace(one, on_front=mine) for one, mine in zip(found, best, strict=True)]
    warnings: list[str] = []
    if save:
        people = compared_people(halves)
        repairs = {repair.name: repair for repair, _ in judged}
        watch("writing and checking the models that nothing beats")
        found = [_saved(one, repairs.get(one.name), subject, run.folder, people, warnings) for one in found]
    return Alternatives(
        subject=subject.name,
        identity=subject.identity.id,
        seed=seed,
        epsilon=setting.epsilon,
        partition=setting.partition,
        regression=subject.schema.regression,
        quality=quality(regression=subject.schema.regression),
        evidence=halves.evidence,
        candidates=tuple(found),
        left_out=left_out,
        warnings=tuple(warnings),
        folder=run.folder,
        agreement=subject.quality,
    )


def _candidate(name: str, repair: Repair | None, judged: tuple[Judged, Judged], setting: Setting) -> Alternative:
    plan, held_out = judged[0].figures if repair is None else repair.plan, judged[1]
    figures, evaluation = held_out.figures, held_out.evaluation
    ratio, attribute = _lowest_ratio(held_out.groups)
    strongest = max(held_out.indirect, key=lambda one: one.bits, default=None)
    bound = None if repair is None else repair.k_max_proved
    limit = float(np.log2(max(setting.own.m, 2) if bound is None else bound))  # what is proved bounds the interval too
    bits = bounded_means(
        np.asarray(evaluation.q_inf, np.float64)[:, None],
        generator(0, "alternatives", "bits"),
        lows=0.0,
        highs=max(limit, float(evaluation.q_inf.max(initial=0.0))),
        resamples=RESAMPLES,
    )[0]
    regression = setting.subject.schema.regression
    flips = None if regression else wilson(int(evaluation.flips.sum()), len(evaluation.flips))
    return Alternative(
        name=name,
        family=AS_IS if repair is None else repair.family,
        words="the model as it came" if repair is None else repair.words,
        coding="" if repair is None else repair.coding,
        accuracy=_accuracy(held_out, regression=regression),
        balanced_accuracy=None if regression else _balanced(held_out),
        bits=bits,
        k_mean=figures.k_mean_rows,
        k_max=figures.k_max_rows,
        flips=flips,
        impact_ratio=ratio,
        impact_attribute=attribute,
        selection_gap=figures.selection_gap,
        odds_gap=figures.odds_gap,
        indirect_bits=None
        if strongest is None
        else Estimate(strongest.bits, strongest.low, max(strongest.bits, strongest.high)),
        indirect_attribute=None if strongest is None else strongest.attribute,
        indirect_placebo=None if strongest is None else strongest.placebo,
        k_mean_cases=figures.k_mean,
        id_rate_cases=figures.id_rate,
        k_max_proved=bound,
        accuracy_plan=plan.accuracy,
        k_mean_plan=plan.k_mean,
    )


def _objectives(one: Alternative) -> tuple[float, ...]:
    """Larger is better; what is not known says nothing for or against."""
    return (
        one.accuracy.value,
        -one.bits.value,
        0.0 if one.impact_ratio is None else one.impact_ratio.value,
        0.0 if one.indirect_bits is None else -one.indirect_bits.value,
    )


def _accuracy(judged: Judged, *, regression: bool) -> Estimate:
    if not regression:
        right = judged.answers == judged.labels
        return wilson(int(right.sum()), len(right))
    return explained_variance(judged.answers, judged.labels, judged.figures.accuracy)


def explained_variance(answers: npt.ArrayLike, labels: npt.ArrayLike, value: float) -> Estimate:
    """The share of the variance that answers explain, with an interval by the delta method.

    Both the errors and the variance of the labels come from the same rows, so a row counts with what it adds to the
    one less what it adds to the other.
    """
    truth = np.asarray(labels, dtype=np.float64)
    errors, spread = (np.asarray(answers, np.float64) - truth) ** 2, (truth - truth.mean()) ** 2
    around = student_mean((errors - (1 - value) * spread) / (float(spread.mean()) or 1.0))
    half = (around.high - around.low) / 2
    return Estimate(value, float(value - half), float(min(1.0, value + half)))


def _balanced(judged: Judged) -> Estimate:
    """The mean of the classes' own rates; their intervals are put together as Zou and Donner do (2008)."""
    rates = []
    for label in np.unique(judged.labels):
        mine = judged.labels == label
        rates.append(wilson(int((judged.answers[mine] == label).sum()), int(mine.sum())))
    value = float(np.mean([one.value for one in rates]))
    below = float(np.sqrt(sum((one.value - one.low) ** 2 for one in rates))) / len(rates)
    above = float(np.sqrt(sum((one.high - one.value) ** 2 for one in rates))) / len(rates)
    return Estimate(value, max(0.0, value - below), min(1.0, value + above))


def _lowest_ratio(groups: Sequence[RepairGroup]) -> tuple[Estimate | None, str | None]:
    """The lowest impact ratio of single attributes; as many as there are share the error of the interval."""
    single = [one for one in groups if len(one.attributes) == 1]
    known = []
    for one in single:
        people = np.array([group.people for group in one.groups], dtype=np.float64)
        chosen = np.array([group.selection_rate for group in one.groups]) * people
        found = lowest_ratio(chosen, people, level=1 - 0.05 / len(single))
        if found is not None:
            known.append((found[0], one.attributes[0]))
    if not known:
        return None, None
    value, attribute = min(known, key=lambda one: one[0].value)
    low, high = (min(getattr(one, end) for one, _ in known) for end in ("low", "high"))
    return Estimate(value.value, min(low, value.value), max(high, value.value)), attribute


def _saved(
    one: Alternative, repair: Repair | None, subject: Subject, folder: Path, people: Any, warnings: list[str]
) -> Alternative:
    """A candidate of the front, written into a folder of its own."""
    if repair is None or not one.on_front:
        return one
    place = folder / MODELS / _folder_name(one.name)
    place.mkdir(parents=True, exist_ok=True)
    written = export(repair.network, subject, place, people, fitted=repair.fitted, source=repair.source)
    warnings += [f"{one.name}: {line}" for line in written.warnings]
    files = [*written.files, *([] if written.subject_file is None else [written.subject_file])]
    return replace(one, files=tuple(path.relative_to(folder).as_posix() for path in files))


def _folder_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_.+" else "_" for letter in name).strip(".") or "model"


def _silent(_: str) -> None:
    """Default callback: ignore progress."""
