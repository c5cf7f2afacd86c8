"""`fairbits paper`: the paper's tables, made anew with the built-in networks; and strategies compared on a subject."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairbits import paper as experiments
from fairbits import report
from fairbits.blocks import Block, Bullets, Paragraph, Strong, TableBlock, label, shown
from fairbits.cli.flags import JSON, argument, audit_of
from fairbits.cli.output import answer
from fairbits.cli.progress import progress_bar
from fairbits.errors import OptionError, choose_from
from fairbits.options import (
    CompareOptions,
    ExecutorOptions,
    LoadingOptions,
    ProtectedOptions,
    arguments_of,
    names_of,
    option,
    protected_option,
    seconds_of,
)
from fairbits.search import Budget

PLACE = Path("runs", "paper")
QUESTIONS = ("datasets", "rq1", "rq2", "rq3", "field", "ablation", "mitigation", "repairs", "compare")


def paper(
    *,
    question: str = argument(
        help="datasets, rq1, rq2, rq3, field (rq2 with every strategy), ablation, mitigation, repairs; or compare "
        "MODEL: all strategies on one model at equal seconds."
    ),
    subject: str | None = argument(None, "Of compare: a built-in name, or an audit file.", metavar="MODEL"),
    subjects: str | None = option(None, "Built-in names.", metavar="A,B", shown="the paper's ten"),
    strategies: str | None = option(None, "Strategies, or all.", metavar="A,B"),
    budget: str | None = option(None, "How long each run may take.", metavar="DURATION", shown="5s, of compare 15s"),
    repeats: int | None = option(None, "Runs of each cell.", shown="1, of compare 10"),
    full: bool = option(False, "As long as in the paper: an hour or 15 min, 10 runs."),
    queries: int = option(5_000_000, "Model queries of each run of the ablation.", rare=True),
    networks: Path | None = option(
        None,
        "rq3: a folder of audit files (subject.toml) in place of the built-in ones.",
        metavar="FOLDER",
        rare=True,
    ),
    trials: int = option(20, "Settings that mitigation tries of each model's own training.", rare=True),
    quick: bool = option(False, "Mitigation in its smallest form, as a smoke test.", rare=True),
    partition: str = option("constrained", "constrained, or grid as in the paper's artifact.", rare=True),
    seed: int = option(0, "Of compare: seed of the first run.", low=0),
    epsilon: float | None = option(None, "Of compare: scores closer than this are the same.", shown="0.025", rare=True),
    protected: tuple[str, ...] | None = protected_option(),
    options: ExecutorOptions,
    out: Path | None = option(
        None,
        "Folder of what is made; finished cells are kept.",
        metavar="FOLDER",
        shown="in runs",
    ),
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """The paper's tables, ours beside theirs; what was ended goes on where it was.

    `fairbits paper compare MODEL`: which strategy finds more, how fast, how different: equal seconds, one oracle, all
    counted.
    """
    if question not in QUESTIONS:
        raise OptionError(f"question {question!r} is not known; {choose_from(question, QUESTIONS)}")
    if (question == "compare") != (subject is not None):
        raise OptionError("a name is for `fairbits paper compare MODEL`; other questions have --subjects.")
    if subject is not None:
        asked = CompareOptions(
            budget="15s" if budget is None else budget,
            repeats=10 if repeats is None else repeats,
            seed=seed,
            epsilon=epsilon,
            partition=partition,
            **arguments_of(options),
        )
        return _compare(subject, strategies, asked, protected, out, loading, as_json=as_json)
    budget, repeats, out = budget or "5s", 1 if repeats is None else repeats, out or PLACE
    asked_for: dict[str, dict[str, Any]] = {
        "compare": {"--epsilon": epsilon, "--protected": protected, "--seed": seed or None},
        "mitigation": {"--quick": quick or None, "--trials": None if trials == 20 else trials},
    }
    for only, given in asked_for.items():
        for flag in [flag for flag, value in given.items() if value is not None and question != only]:
            raise OptionError(f"{flag} does not apply to {question!r}; it is for {only}.")
    _check(question, strategies, repeats, full)
    if networks is not None and (question != "rq3" or subjects is not None):
        raise OptionError("--networks is for rq3, and takes the place of --subjects; leave one of them out.")
    named = None if subjects is None else names_of(subjects, "--subjects")
    roster = experiments.roster(named) if networks is None else experiments.networks(networks)
    wanted = None if strategies is None else names_of(strategies, "--strategies")
    seconds = experiments.FULL_SECONDS[question] if full else 2.0 if question == "ablation" else seconds_of(budget)
    with progress_bar(question, 0) as progress:
        more: dict[str, Any] = {"threads": options.threads, "progress": progress}
        apart = {**more, "executor_options": options}
        limits: dict[str, Any] = {"budget": Budget(seconds=seconds), "strategies": wanted, "partition": partition}

        def planned() -> tuple[experiments.Results, ...]:
            terms = {**limits, "repeats": repeats, "full": full, "threads": options.threads}
            plan = experiments.ExperimentPlan(question, roster, out, **terms)
            return (plan.run(progress, executor_options=options),)

        make: dict[str, Callable[[], tuple[experiments.Results, ...]]] = {
            "datasets": lambda: (experiments.datasets(roster),),
            "ablation": lambda: (experiments.ablation(roster, out, queries=queries, repeats=repeats, **apart),),
            "mitigation": lambda: (experiments.mitigation_table(roster, out, trials=trials, quick=quick, **more),),
            "repairs": lambda: (experiments.repairs_table(roster, out, seconds=seconds, **more),),
            "rq3": lambda: experiments.rq3(roster, out, **limits, **apart),
        }
        tables = make.get(question, planned)()
        if question == "datasets":
            tables[0].write(out, question)
    answer(
        as_json,
        lambda: [asdict(table) for table in tables] if len(tables) > 1 else asdict(tables[0]),
        lambda: _blocks(tables),
        f"Kept in {out}",
    )


def _compare(
    subject: str,
    strategies: str | None,
    options: CompareOptions,
    protected: tuple[str, ...] | None,
    out: Path | None,
    loading: LoadingOptions,
    *,
    as_json: bool,
) -> None:
    """All strategies, or some, on one subject."""
    wanted = None if strategies in (None, "all") else list(names_of(strategies or "", "--strategies"))
    audit = audit_of(subject, ProtectedOptions(protected=protected, as_is=True), loading)
    with progress_bar("compare", 0) as progress:
        comparison = audit.compare(wanted, out=out, progress=progress, **arguments_of(options))
    answer(
        as_json,
        comparison.as_dict,
        lambda: report.contest_page(comparison.as_dict(), drawn=False),
        f"page  {comparison.page}",
    )


def _check(question: str, strategies: str | None, repeats: int, full: bool) -> None:
    """Refuse options that the question cannot answer to, rather than pass over them."""
    once = {"rq3": "names layers and neurons, which have no mean"}
    once |= dict.fromkeys(("mitigation", "repairs"), "judges every candidate once")
    if question in once and repeats != 1:
        raise OptionError(f"--repeats is {repeats}, but {question} {once[question]}; leave it out.")
    if question in ("datasets", "ablation", "mitigation", "repairs") and (strategies is not None or full):
        option = "--full" if full else "--strategies"
        raise OptionError(f"{option} does not apply to {question!r}; it is for rq1, rq2, rq3 and field.")


def _blocks(tables: tuple[experiments.Results, ...]) -> Iterator[Block]:
    """The tables, each with its notes; what has been said is not said again."""
    said = set[str]()
    for table in tables:
        yield Paragraph(Strong(table.title))
        words = [any(isinstance(row[i], str) for row in table.rows) for i in range(len(table.columns))]
        columns = [(label if text else shown)(head) for head, text in zip(table.columns, words, strict=True)]
        yield TableBlock(columns, [[experiments.shown(cell) for cell in row] for row in table.rows])
        yield Bullets(table.findings)
        yield from (Paragraph(note, tone="small") for note in table.notes if note not in said)
        said.update(table.notes)
