"""Repair with a fresh search as the attacker: the one place that knows both."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairbits.domain import granted_in
from fairbits.models import HasGradients, Model
from fairbits.repair import Attack, Attacked, RepairResult, repair_run
from fairbits.scale import ExecutorOptions, search
from fairbits.search import DEFAULT as DEFAULT_STRATEGY
from fairbits.search import STRATEGIES, Budget, Settings, seconds_of
from fairbits.store import Run, subject_of
from fairbits.subject import Subject

#: Added to the run's own seed, so that the attack starts from other people.
OTHER_SEED = 1_000_003
_FIGURES = """
    SELECT count(*) AS cases, count(*) FILTER (flips) AS id_cases, coalesce(avg(k), 1) AS k_mean,
           coalesce(max(k), 1) AS k_max, coalesce(avg(q_inf), 0) AS q_inf_mean FROM cases
"""


def repair(
    run: Run | str | Path,
    *,
    attack_budget: Budget | str | None = None,
    subject: Subject | None = None,
    executor_options: ExecutorOptions | None = None,
    **options: Any,
) -> RepairResult:
    """Repair the model of a run; with an ``attack_budget``, a fresh search attacks it before and after.

    The attack after the repair asks about as many people as the one before it.
    """
    opened = run if isinstance(run, Run) else Run.open(run)
    attack = None
    if attack_budget is not None:
        subject = subject_of(opened, subject, **granted_in(options))
        limit = Budget(seconds=seconds_of(attack_budget)) if isinstance(attack_budget, str) else attack_budget
        chosen = {name: options[name] for name in ("seed", "threads") if name in options}
        attack = attacker(opened, subject, limit, executor_options=executor_options, **chosen)
    return repair_run(opened, subject=subject, attack=attack, **options)


def attacker(
    run: Run,
    subject: Subject,
    budget: Budget,
    *,
    seed: int = 0,
    threads: int | None = None,
    executor_options: ExecutorOptions | None = None,
) -> Attack:
    """A search like the run's, from another seed, against any model."""
    manifest = run.manifest
    strategy = manifest["strategy"] if manifest["strategy"] in STRATEGIES else DEFAULT_STRATEGY
    settings = Settings(
        budget=budget,
        strategy=strategy,
        options=manifest["options"] if strategy == manifest["strategy"] else {},
        seed=manifest["seed"] + OTHER_SEED + seed,
        epsilon=manifest["epsilon"],
        partition=manifest["partition"],
        within=manifest.get("within"),
        min_plausibility=manifest.get("min_plausibility"),
        measure=manifest.get("measure", "q_inf"),
        threads=threads,
    )

    def attack(network: Model, *, evaluations: int | None = None) -> Attacked:
        # Whoever was asked about in the first attack, so many are asked about in the second, however long it takes.
        terms = settings if not evaluations else replace(settings, budget=Budget(evaluations=evaluations))
        if STRATEGIES[terms.strategy].needs_gradients and not isinstance(network, HasGradients):
            terms = replace(terms, strategy=DEFAULT_STRATEGY, options={})  # scores only: a search that needs no more
        with tempfile.TemporaryDirectory() as folder:
            # Counted, it is one task as the timed one is: the command on the page then finds the same people.
            alone = terms.budget.evaluations is not None and (
                executor_options is None or not executor_options.elsewhere
            )
            about = replace(subject, model=network)
            place = Path(folder) / "attack"
            found = search(about, terms, place, executor_options=executor_options, shards=1 if alone else None)
            figures = found.query(_FIGURES).to_pylist()[0]
            asked = int((found.summary or {}).get("evaluations", 0))
        rate = figures["id_cases"] / figures["cases"] if figures["cases"] else 0.0
        if subject.schema.regression:
            rate = None
        return Attacked(seed=settings.seed, evaluations=asked, id_rate=rate, **figures)

    return attack
