"""Searches that other work needs: a fresh one that attacks a repair, and a run made again to be compared."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack, cast

from fairbits import domain, models, scale, store
from fairbits.errors import OptionError
from fairbits.options import RepairOptions, seconds_of
from fairbits.repair import Attack, Attacked, RepairResult, repair_run
from fairbits.search import DEFAULT as DEFAULT_STRATEGY
from fairbits.search import STRATEGIES, Budget, Settings, Watch, kept_budget, kept_settings
from fairbits.subject import Subject

#: Added to the run's own seed, so that the attack starts from other people.
OTHER_SEED = 1_000_003
_FIGURES = """
    SELECT count(*) AS cases, count(*) FILTER (flips) AS id_cases, coalesce(avg(k), 1) AS k_mean,
           coalesce(max(k), 1) AS k_max, coalesce(avg(q_inf), 0) AS q_inf_mean FROM cases
"""


_COUNTS = """
    SELECT count(*) AS cases, count(*) FILTER (flips) AS id_cases, coalesce(max(k), 0) AS k_max,
           coalesce(sum(k), 0)::BIGINT AS k_sum, coalesce(max(evaluation), 0) AS last_evaluation FROM cases
"""


def repair(
    run: store.Run, options: RepairOptions, *, subject: Subject, watch: Callable[[str], None] | None = None
) -> RepairResult:
    """Repair the model of a run; with an ``attack_budget``, a fresh search attacks it before and after.

    The attack after the repair asks about as many people as the one before it.
    """
    budget = _attack_budget(options.attack_budget)
    how = options.executor
    return repair_run(
        run,
        subject=subject,
        attack=None if budget is None else attacker(run, subject, budget, seed=options.seed, executor_options=how),
        max_accuracy_loss=options.max_accuracy_loss,
        guarantee=options.guarantee,
        choose=options.choose,
        retrain=options.retrain,
        quick=options.quick,
        proposals=options.proposals,
        trials=options.trials,
        write_all=options.write_all,
        seed=options.seed,
        threads=options.threads,
        watch=watch,
    )


def _attack_budget(budget: Any) -> Budget | None:
    """Seconds with a unit, people without one, nothing for 0."""
    if not isinstance(budget, str):
        return cast(Budget | None, budget)
    plain = budget.strip()
    if plain.isascii() and plain.isdigit():
        return Budget(evaluations=int(plain)) if int(plain) else None
    return Budget(seconds=seconds_of(plain))


def attacker(
    run: store.Run,
    subject: Subject,
    budget: Budget,
    *,
    seed: int = 0,
    executor_options: scale.ExecutorOptions,
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
        threads=executor_options.threads,
    )

    def attack(network: models.Model, *, evaluations: int | None = None) -> Attacked:
        # Whoever was asked about in the first attack, so many are asked about in the second, however long it takes.
        terms = settings if not evaluations else replace(settings, budget=Budget(evaluations=evaluations))
        if STRATEGIES[terms.strategy].needs_gradients and not isinstance(network, models.HasGradients):
            terms = replace(terms, strategy=DEFAULT_STRATEGY, options={})  # scores only: a search that needs no more
        with tempfile.TemporaryDirectory() as folder:
            # Counted, it is one task as the timed one is: the command on the page then finds the same people.
            alone = terms.budget.evaluations is not None and not executor_options.elsewhere
            about = replace(subject, model=network)
            place = Path(folder) / "attack"
            found = scale.search(about, terms, place, executor_options=executor_options, shards=1 if alone else None)
            figures = found.query(_FIGURES).to_pylist()[0]
            asked = int((found.summary or {}).get("evaluations", 0))
        rate = None if subject.schema.regression else figures["id_cases"] / max(figures["cases"], 1)
        return Attacked(seed=settings.seed, evaluations=asked, id_rate=rate, **figures)

    return attack


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Whether a run came out the same again."""

    equal: bool
    before: str
    after: str
    differences: tuple[str, ...] = ()


def settings_again(run: store.Run) -> tuple[Settings, int | None]:
    """Settings that make a run again: no clock, but where it ended each task."""
    summary = run.summary or {}
    limits = kept_budget(run.manifest)
    written = summary.get("ends") or run.manifest["budget"].get("ends")
    ends = [record.evaluations for record in run.tasks.values()] if run.summary is None else written
    counted = any(getattr(limits, name) is not None for name in ("evaluations", "cases", "queries"))
    endless = not counted and ends is None
    budget = replace(limits, ends=None if ends is None else tuple(ends), seconds=1e9 if endless else None)
    shards = run.manifest["shards"] if counted or budget == Budget(seconds=1e9) else None
    return Settings(budget=budget, **kept_settings(run.manifest, {})), shards


def remake(
    run: store.Run,
    folder: Path,
    *,
    subject: Subject | None = None,
    executor_options: scale.ExecutorOptions | None = None,
    watch: Watch | None = None,
    stop: Callable[[], bool] | None = None,
    **grants: Unpack[domain.GrantOptions],
) -> store.Run:
    """Make a run again in another folder, as the command on its page does."""
    about = store.subject_of(run, subject, **grants)
    settings, tasks = settings_again(run)
    if settings.budget.ends is not None and not any(settings.budget.ends):
        raise OptionError(
            f"the run in {str(run.folder)!r} ended before anybody was asked; there is nothing to compare."
        )
    return scale.search(
        about, settings, folder, executor_options=executor_options, shards=tasks, watch=watch, stop=stop, **grants
    )


def check(
    run: store.Run,
    *,
    subject: Subject | None = None,
    executor_options: scale.ExecutorOptions | None = None,
    watch: Watch | None = None,
    stop: Callable[[], bool] | None = None,
    **grants: Unpack[domain.GrantOptions],
) -> RunComparison:
    """Make a run again in a temporary folder, and compare what both found."""
    with tempfile.TemporaryDirectory(prefix="fairbits-check-") as place:
        asked: dict[str, Any] = {"executor_options": executor_options, "watch": watch, "stop": stop}
        return compare(run, remake(run, Path(place) / "again", subject=subject, **asked, **grants))


def compare(run: store.Run, again: store.Run) -> RunComparison:
    """Compare two runs by their content."""
    before, after = run.content(anew=True), again.content(anew=True)
    written = (run.summary or {}).get("content")
    differences = []
    if written is not None and written.split(":")[0] == before.split(":")[0] and written != before:
        differences.append(f"the cases in {str(run.folder)!r} are not those that its search wrote down ({written})")
    if before != after:
        one, other = (found.query(_COUNTS).to_pylist()[0] for found in (run, again))
        different = [f"{name} {one[name]:,}, now {other[name]:,}" for name in one if one[name] != other[name]]
        differences += different or ["the figures of some cases, though not how many there are"]
        differences += [
            f"{name} {run.versions[name]}, now {again.versions[name]}"
            for name in run.versions
            if run.versions[name] != again.versions.get(name)
        ]
    return RunComparison(not differences, before, after, tuple(differences))
