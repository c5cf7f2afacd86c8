"""From a run to a repaired network: plan on one half of the evidence, choose, judge on the other half, export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Unpack

import numpy as np
import pyarrow.parquet as pq

from fairbits.data import Subject
from fairbits.domain.limits import GrantOptions
from fairbits.domain.words import quality
from fairbits.errors import OptionError, choose_from
from fairbits.models import Network
from fairbits.repair.blinding import WARNING
from fairbits.repair.evidence import Half, Halves, split
from fairbits.repair.exporting import export
from fairbits.repair.groups import group_figures
from fairbits.repair.judging import Setting, cost, front, judge
from fairbits.repair.proposing import Planner, Proposal, Watch
from fairbits.repair.records import Attack, Attacked, Figures, GroupFigures, Repair, RepairResult
from fairbits.repair.subject import network_of
from fairbits.repair.writing import write
from fairbits.store import Run, subject_of
from fairbits.store.folder import check_writable
from fairbits.subject.decisions import decided

MAX_ACCURACY_LOSS = 0.02
#: Rounding must not make a repair that costs exactly the budget too expensive.
_SLACK = 1e-9
#: A repair that lowers mean k by a smaller share than this is hardly one.
LITTLE = 0.05
#: Held-out rows, and as many cases, whose scores written files must give back.
COMPARED = 5_000


def repair_run(
    run: Run | str | Path,
    *,
    max_accuracy_loss: float = MAX_ACCURACY_LOSS,
    choose: str | None = None,
    retrain: bool = True,
    attack: Attack | None = None,
    subject: Subject | None = None,
    seed: int = 0,
    threads: int | None = None,
    watch: Watch | None = None,
    **grants: Unpack[GrantOptions],
) -> RepairResult:
    """Repair the network of a run and write it, with its figures, into the run's folder.

    The chosen repair has the lowest mean k of all that keep within the accuracy budget *on the plan's half* (balanced
    accuracy may fall by twice as much); blindness is shown as a yardstick and taken only where ``choose`` names it.
    ``attack`` runs a fresh search against a network. ``grants`` are what the subject's files may do.
    """
    _check_options(max_accuracy_loss, seed)
    opened = run if isinstance(run, Run) else Run.open(run)
    check_writable(opened.folder)
    watch = watch or _silent
    about = subject_of(opened, subject, **grants)
    network = network_of(about)
    setting = Setting(about, opened.manifest["epsilon"], opened.manifest["partition"], threads)
    root = np.random.SeedSequence(seed, spawn_key=(4,))
    splitting, planning = root.spawn(2)
    halves = split(opened, about, np.random.default_rng(splitting))
    before = judge(network, halves.plan, setting), judge(network, halves.held_out, setting)
    if before[0].k_max <= 1:
        raise OptionError(
            f"all {len(halves.plan.cases):,} cases looked at have k = 1, so there is nothing to lower; "
            f"search longer, or with a smaller --epsilon."
        )
    planner = Planner(network, halves, setting, max_accuracy_loss, planning, watch)
    proposals = planner.proposals(suspect=_suspect_layer(opened.folder, len(network.weights) - 1), retrain=retrain)
    repairs = _judged(list(proposals), halves, setting, before[0], max_accuracy_loss)
    chosen = _chosen(repairs, before[0], max_accuracy_loss, choose)
    attacked = _attacked(attack, network, chosen.network, watch)
    groups = [_groups(model, halves.held_out, about) for model in (network, chosen.network)]
    watch("writing and checking the repaired network")
    people = np.concatenate([halves.held_out.rows[:COMPARED], halves.held_out.cases[:COMPARED]])
    written = export(chosen.network, about, opened.folder, people)
    result = RepairResult(
        subject=about.name,
        seed=seed,
        max_accuracy_loss=max_accuracy_loss,
        epsilon=setting.epsilon,
        partition=setting.partition,
        evidence=halves.evidence,
        before_plan=before[0],
        before_held_out=before[1],
        repairs=tuple(repairs),
        chosen=chosen,
        groups_before=groups[0],
        groups_after=groups[1],
        attack_before=attacked[0],
        attack_after=attacked[1],
        files=written.files,
        subject_file=written.subject_file,
        warnings=(*written.warnings, *_cautions(chosen, before, max_accuracy_loss)),
        identity=about.identity.id,
    )
    write(result, opened.folder, opened.content())
    return result


def _check_options(max_accuracy_loss: float, seed: int) -> None:
    if not 0 <= max_accuracy_loss < 1:
        raise OptionError(
            f"the accuracy budget is {max_accuracy_loss}; give the loss that is allowed as a share, "
            f"0 or more and less than 1, e.g. 0.02 for two points."
        )
    if seed < 0:
        raise OptionError(f"the seed is {seed}; it must be 0 or larger.")


def _judged(
    proposals: Sequence[Proposal], halves: Halves, setting: Setting, before: Figures, budget: float
) -> list[Repair]:
    """The figures of every proposal on both halves, and which of them nobody beats on the held-out half."""
    repairs = []
    for p in proposals:
        plan = judge(p.network, halves.plan, setting)
        within = cost(before, plan) <= budget + _SLACK
        held_out = judge(p.network, halves.held_out, setting)
        repairs.append(
            Repair(p.name, p.words, p.network, p.neurons, p.shrink, p.retrained, plan, held_out, within, p.yardstick)
        )
    points = [(r.held_out.accuracy, -r.held_out.k_mean, -(r.held_out.id_rate or 0.0)) for r in repairs]
    return [replace(r, on_front=best) for r, best in zip(repairs, front(points), strict=True)]


def _chosen(repairs: list[Repair], before: Figures, budget: float, choose: str | None) -> Repair:
    """By the plan's half alone, so that the held-out figures stay honest."""
    if choose is not None:
        named = next((r for r in repairs if r.name == choose), None)
        if named is None:
            raise OptionError(f"there is no repair {choose!r} here; {choose_from(choose, [r.name for r in repairs])}")
        return named
    useful = [r for r in repairs if not r.yardstick and r.plan.k_mean < before.k_mean]
    allowed = [r for r in useful if r.within_budget]
    if allowed:
        return min(allowed, key=lambda r: (r.plan.k_mean, -r.plan.accuracy))
    if not useful:
        raise OptionError("none of the repairs lowers mean k here; try --choose blind, or go on with retraining on.")
    cheapest = min(useful, key=lambda r: cost(before, r.plan))
    decides_nothing = before.balanced_accuracy is None
    raise OptionError(
        f"no repair keeps {quality(regression=decides_nothing)} within a loss of {budget:g}: the smallest is "
        f"{cost(before, cheapest.plan):.4f} ({cheapest.name}); raise --max-accuracy-loss."
    )


def _cautions(chosen: Repair, before: tuple[Figures, Figures], budget: float) -> list[str]:
    """What the held-out half says against the choice."""
    decides = before[0].balanced_accuracy is not None
    by = quality(regression=not decides)
    found = [] if chosen.shrink == 0 else [f"{WARNING} See the group figures." if decides else WARNING]
    lost = before[1].accuracy - chosen.held_out.accuracy
    if lost > budget + _SLACK:
        found.append(f"on held-out rows the chosen repair loses {lost:.1%} {by}, more than the {budget:.1%} allowed.")
    if before[0].k_mean - chosen.plan.k_mean < LITTLE * before[0].k_mean:
        found.append(
            f"the chosen repair lowers mean k by less than {LITTLE:.0%}: there is little to gain within a loss "
            f"of {budget:g} in {by}; see what others cost, and take one with --choose or a larger --max-accuracy-loss."
        )
    if chosen.held_out.k_mean >= before[1].k_mean:
        found.append("on held-out cases the chosen repair does not lower mean k: it was fitted to the cases it saw.")
    return found


def _attacked(
    attack: Attack | None, before: Network, after: Network, watch: Watch
) -> tuple[Attacked | None, Attacked | None]:
    if attack is None:
        return None, None
    watch("attacking both networks with a fresh search")
    first = attack(before)
    # The same number of people asked, not the same time: seconds would compare two states of the machine as well.
    return first, attack(after, evaluations=first.evaluations)


def _groups(network: Network, half: Half, subject: Subject) -> tuple[GroupFigures, ...]:
    """Selection and odds of groups; a regression selects nobody."""
    if network.head == "linear":
        return ()
    own = subject.schema.favourable_index
    favoured = np.asarray(decided(network, subject.encoding.encode(half.rows), subject.schema) == own)
    return group_figures(subject.schema, half.rows, favoured, half.labels == own)


def _suspect_layer(folder: Path, hidden: int) -> int | None:
    """The hidden layer with most votes, where `fairbits debug` has written them.

    Its layers count from the input, which is 0; interventions count from the first hidden layer.
    """
    path = folder / "layers.parquet"
    if not path.is_file():
        return None
    rows = pq.read_table(BytesIO(path.read_bytes()), columns=["layer", "rho", "votes"]).to_pylist()
    inside = [row for row in rows if 1 <= row["layer"] <= hidden]
    best = max(inside, key=lambda row: (row["votes"], row["rho"] or 0.0), default=None)
    return None if best is None else int(best["layer"]) - 1


def _silent(_: str) -> None:
    """Nobody watches."""
