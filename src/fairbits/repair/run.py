"""From a run to a repaired model: propose, judge, choose, write.

Every candidate takes this path, whoever proposed it: our repairs, mitigators, other settings of the same kind of model,
proposals of somebody's own. What they may learn from, are chosen on and are judged on are three parts of the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np

from fairbits.domain import GrantOptions
from fairbits.errors import OptionError
from fairbits.language import network_of
from fairbits.measure import Measure, check_measure, symbol_of
from fairbits.repair.choice import SLACK, Planner, Proposer, Watch, judged_all, pick, proposed
from fairbits.repair.judgement import Halves, Judged, Setting, estimates_of, judge, split
from fairbits.repair.proposals.distil import GUARD_WARNING
from fairbits.repair.proposals.guard import Guard, check_guarantee
from fairbits.repair.proposals.registry import ALL, STANDARD, proposers_of
from fairbits.repair.proposals.settings import TRIALS
from fairbits.repair.records import (
    WARNING,
    Attack,
    Attacked,
    Figures,
    RepairCandidate,
    RepairGroup,
    RepairResult,
    write,
)
from fairbits.repair.writers import Export, export, remove_old
from fairbits.shape import reading
from fairbits.store import Run, check_writable, note_checks, read_parquet, subject_of
from fairbits.subject import Subject
from fairbits.text import number, percent, quality

MAX_ACCURACY_LOSS = 0.02
#: A repair that lowers mean k by a smaller share than this is hardly one.
LITTLE = 0.05
#: Held-out rows, and as many cases, whose scores written files must give back.
COMPARED = 5_000
#: The folder of the other models of the front, inside the run's.
OTHERS = "repairs"
#: Rows of layers.parquet: networks have a handful.
_MAX_LAYERS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """Candidates with their judgements on held-out evidence, and what they were made from and judged by."""

    setting: Setting
    halves: Halves
    before: tuple[Judged, Judged]  # the model as it is, where candidates are chosen and where they are judged
    judged: list[tuple[RepairCandidate, Judged]]
    left_out: tuple[tuple[str, str], ...]
    notes: list[str]

    @property
    def candidates(self) -> list[RepairCandidate]:
        """The candidates alone."""
        return [one for one, _ in self.judged]


def study(
    run: Run,
    subject: Subject,
    proposers: Sequence[Proposer],
    *,
    wanted: frozenset[str] = frozenset(),
    budget: float = MAX_ACCURACY_LOSS,
    guarantee: int | None = None,
    retrain: bool = True,
    quick: bool = False,
    rows_for_cases: bool = False,
    seed: int = 0,
    threads: int | None = None,
    watch: Watch = lambda _: None,
) -> Study:
    """Have candidates proposed, and judge them; nothing is written.

    With ``rows_for_cases`` a model under which the search found nothing is studied all the same.
    """
    measure = check_measure(run.manifest.get("measure", "q_inf"))
    setting = Setting(subject, run.manifest["epsilon"], run.manifest["partition"], threads, measure)
    splitting, planning = np.random.SeedSequence(seed, spawn_key=(4,)).spawn(2)
    halves = split(run, subject, np.random.default_rng(splitting), rows_for_cases=rows_for_cases)
    model = subject.model
    before = judge(model, halves.plan, setting), judge(model, halves.held_out, setting)
    if before[0].figures.k_max <= 1 and not rows_for_cases:
        raise OptionError(
            f"all {len(halves.plan.cases):,} cases looked at have k = 1, so there is nothing to lower; "
            f"search longer, or with a smaller --epsilon."
        )
    network = network_of(model)
    suspect = None if network is None else _suspect_layer(run.folder, len(network.weights) - 1)
    planner = Planner(model, halves, setting, budget, planning, watch, guarantee, suspect, retrain, quick)
    made, left_out = proposed(planner, proposers, wanted)
    watch(f"judging {len(made)} candidates")
    judged = judged_all(made, halves, setting, before, budget, planner.notes)
    return Study(setting, halves, before, judged, left_out, planner.notes)


def repair_run(
    run: Run | str | Path,
    *,
    max_accuracy_loss: float = MAX_ACCURACY_LOSS,
    guarantee: int | None = None,
    choose: str | None = None,
    retrain: bool = True,
    quick: bool = False,
    proposals: Sequence[str | Proposer] = (),
    trials: int = TRIALS,
    write_all: bool = False,
    attack: Attack | None = None,
    subject: Subject | None = None,
    seed: int = 0,
    threads: int | None = None,
    watch: Watch | None = None,
    **grants: Unpack[GrantOptions],
) -> RepairResult:
    """Repair the model of a run and write it, with its figures, into the run's folder."""
    _check_options(max_accuracy_loss, seed, guarantee, choose)
    names = [one if isinstance(one, str) else one.name for one in proposals]
    asked = {
        "max_accuracy_loss": max_accuracy_loss,
        "guarantee": guarantee,
        "choose": choose,
        "retrain": retrain,
        "quick": quick,
        "also": names,
        "trials": trials,
        "write_all": write_all,
    }
    standard = {one.name for one in STANDARD}
    proposers = (*STANDARD, *(one for one in proposers_of(proposals, trials=trials) if one.name not in standard))
    opened = run if isinstance(run, Run) else Run.open(run)
    check_writable(opened.folder)
    watch = watch or (lambda _: None)
    about = subject_of(opened, subject, **grants)
    found = study(
        opened,
        about,
        proposers,
        wanted=frozenset(names) - {ALL},  # named, they must have something to propose: it is no note, but an error
        budget=max_accuracy_loss,
        guarantee=guarantee,
        retrain=retrain,
        quick=quick,
        rows_for_cases=bool(proposals),
        seed=seed,
        threads=threads,
        watch=watch,
    )
    setting, halves = found.setting, found.halves
    before = found.before[0].figures, found.before[1].figures
    chosen, reason = pick(
        found.candidates,
        before[0],
        max_accuracy_loss,
        choose=choose,
        guarantee=guarantee,
        rows=len(halves.plan.rows),
        measure=setting.measure,
    )
    candidates, folder = found.candidates, opened.folder
    people = np.concatenate([halves.held_out.rows[:COMPARED], halves.held_out.cases[:COMPARED]])
    attacked: tuple[Attacked | None, Attacked | None] = (None, None)
    groups: tuple[tuple[RepairGroup, ...], ...] = ((), ())
    written = Export((), None, ())

    def write_model(one: RepairCandidate, place: Path) -> tuple[Export, RepairCandidate]:
        made = export(
            one.network,
            about,
            place,
            people,
            fitted=one.fitted,
            source=one.source,
            k_max=one.k_max_proved,
            epsilon=setting.epsilon,
            partition=setting.partition,
        )
        files = [path for path in (*made.files, made.subject_file) if path is not None]
        return made, replace(one, files=tuple(path.relative_to(folder).as_posix() for path in files))

    if chosen is None:
        remove_old(folder)
    else:
        if attack is not None and chosen.fitted is not None and chosen.fitted.estimator is not None:
            found.notes.append(
                f"{chosen.name} was fitted anew and takes inputs of its own, so no fresh search attacked it."
            )
        elif attack is not None:
            watch("attacking both models with a fresh search")
            first = attack(about.model)
            # The same number of people asked, not the same time: seconds would compare two states of the machine too.
            attacked = first, attack(chosen.network, evaluations=first.evaluations)
        groups = found.before[1].groups, next(judged for one, judged in found.judged if one is chosen).groups
        # Nobody is asked whether there is time: what has been judged is written.
        written, kept = write_model(chosen, folder)
        if written.files:
            candidates = [kept if one is chosen else one for one in candidates]
        else:
            reason = f"{chosen.name} was to be taken, but could not be written: {' '.join(written.warnings)}"
        chosen = kept if written.files else None
    for rank, one in enumerate(candidates if write_all else ()):
        if one is chosen or not one.on_front:
            continue
        watch(f"writing and checking {one.name}")
        name = "".join(letter if letter.isalnum() or letter in "-_.+" else "_" for letter in one.name).strip(".")
        place = folder / OTHERS / (name or "model")
        place.mkdir(parents=True, exist_ok=True)
        other, candidates[rank] = write_model(one, place)
        found.notes.extend(f"{one.name}: {line}" for line in other.warnings if line not in written.warnings)
    result = RepairResult(
        subject=about.name,
        seed=seed,
        max_accuracy_loss=max_accuracy_loss,
        epsilon=setting.epsilon,
        partition=setting.partition,
        evidence=halves.evidence,
        before_plan=before[0],
        before_held_out=before[1],
        repairs=tuple(candidates),
        chosen=chosen,
        groups_before=groups[0],
        groups_after=groups[1],
        attack_before=attacked[0],
        attack_after=attacked[1],
        files=written.files,
        subject_file=written.subject_file,
        warnings=(
            *found.notes,
            *written.warnings,
            *([] if chosen is None else cautions(chosen, before, max_accuracy_loss, setting.measure)),
            *_faithful(candidates, len(halves.held_out.rows)),
        ),
        reason=reason,
        identity=about.identity.id,
        options=asked,
        measure=setting.measure,
        left_out=found.left_out,
        estimates_before=estimates_of(found.before[1], setting),
        folder=opened.folder,
        written=written.checks,
    )
    note_checks(opened.folder, written_file=[asdict(check) for check in written.checks])
    write(result, opened.folder, opened.content(), made_with=opened.manifest["identity"])
    return result


def _check_options(max_accuracy_loss: float, seed: int, guarantee: int | None, choose: str | None) -> None:
    if not 0 <= max_accuracy_loss < 1:
        raise OptionError(
            f"the accuracy budget is {max_accuracy_loss}; give the loss that is allowed as a share, "
            f"0 or more and less than 1, e.g. 0.02 for two points."
        )
    if seed < 0:
        raise OptionError(f"the seed is {seed}; it must be 0 or larger.")
    check_guarantee(1 if guarantee is None else guarantee)
    if guarantee is not None and choose is not None:
        raise OptionError(f"the guarantee is {guarantee} and the repair {choose!r} is to be taken; give one of them.")


def _faithful(repairs: Sequence[RepairCandidate], rows: int) -> list[str]:
    """What is said about distilled models: how faithful they are to the average, and what both get right."""
    found = []
    average = next((r.held_out.accuracy for r in repairs if r.name == "average"), None)
    beside = "" if average is None else f" (the average's: {percent(average)})"
    for one in (r for r in repairs if r.fidelity_apart is not None):
        alike = "" if one.fidelity is None else f", {percent(one.fidelity)} are decided alike"
        by = quality(regression=one.fidelity is None)
        found.append(
            f"{one.name} was taught the average over twins: on {rows:,} held-out rows its scores differ from "
            f"that by {one.fidelity_apart:.2g} on average{alike}, and its {by} is "
            f"{percent(one.held_out.accuracy)}{beside}."
        )
    return found


def cautions(chosen: RepairCandidate, before: tuple[Figures, Figures], budget: float, measure: Measure) -> list[str]:
    """What the held-out half says against the choice."""
    decides, found = before[0].balanced_accuracy is not None, []
    by = quality(regression=not decides)
    if chosen.shrink or chosen.proof is not None:
        warning = GUARD_WARNING if isinstance(chosen.network, Guard) else WARNING
        found.append(f"{warning} See the group figures." if decides else warning)
    lost = before[1].accuracy - chosen.held_out.accuracy
    if lost > budget + SLACK:
        low, high = chosen.held_out_loss_low, chosen.held_out_loss_high
        chance = "" if low is not None and low > budget + SLACK else ", though not beyond chance"
        ends = "" if low is None or high is None else f" (95 %: {number(100 * low, 1)} to {percent(high)})"
        found.append(
            f"on held-out rows the chosen repair loses {percent(lost)} {by}{ends}, more than the {percent(budget)} "
            f"allowed{chance}."
        )
    k, start = symbol_of(measure), before[0].lowered(measure)
    if start - chosen.plan.lowered(measure) < LITTLE * start:
        found.append(
            f"the chosen repair lowers mean {k} by less than {percent(LITTLE, 0)}: there is little to gain within a "
            f"loss of {budget:g} in {by}; see what others cost, and take one with --choose or a larger "
            f"--max-accuracy-loss."
        )
    if chosen.held_out.lowered(measure) >= before[1].lowered(measure):
        found.append(f"on held-out cases the chosen repair does not lower mean {k}: it was fitted to the cases it saw.")
    return found


def _suspect_layer(folder: Path, hidden: int) -> int | None:
    """The suspect that `fairbits debug` has written, where it has.

    Its layers count from the input, which is 0; interventions count from the first hidden layer.
    """
    path, remedy = folder / "layers.parquet", "delete it, and run fairbits debug again"
    if not path.is_file():
        return None
    with reading(path, remedy):
        rows = read_parquet(path, remedy=remedy, max_rows=_MAX_LAYERS).to_pylist()
        inside = [row for row in rows if 1 <= row["layer"] <= hidden]
        # A file that names no suspect has the paper's votes.
        best = max(inside, key=lambda row: (row.get("suspect", False), row["votes"], row["rho"] or 0.0), default=None)
        return None if best is None else int(best["layer"]) - 1
