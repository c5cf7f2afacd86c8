"""`fairbits audit`, `init`, `data` and `plan`: from a model and a table to one page, in about a minute."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairbits import audit as audits
from fairbits import data as built_ins
from fairbits import domain, models, report, store
from fairbits import subject as subjects
from fairbits.cli import waited
from fairbits.cli.flags import FORCE, JSON, OUT, RESUME, argument, audit_of, subject_argument
from fairbits.cli.output import answer
from fairbits.cli.progress import stages
from fairbits.cli.signals import INTERRUPTED, gentle_stop
from fairbits.errors import ContradictionError, ModelError, OptionError, choose_from
from fairbits.options import (
    AcceptOptions,
    AuditOptions,
    LoadingOptions,
    PlanOptions,
    ProtectedOptions,
    SubjectOptions,
    arguments_of,
    names_of,
    option,
)
from fairbits.text import percent

if TYPE_CHECKING:
    import pyarrow as pa


def audit(
    *,
    subject: str | None = subject_argument(None),
    options: AuditOptions,
    about: SubjectOptions,
    out: Path | None = OUT,
    resume: Path | None = RESUME,
    force: bool = FORCE,
    opened: bool = option(False, "Open the page in a browser.", flag="--open"),
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """Measure, search, debug, repair and report: one command, one page that a reviewer can check."""
    audited = audit_of(subject, about, loading, resume)
    with stages(shown=not as_json) as progress, gentle_stop() as stop:
        run = audited.audit(
            out=resume or out,
            resume=resume is not None,
            force=force,
            progress=progress,
            stop=stop,
            **arguments_of(options),
        )
    if isinstance(run, audits.AuditResult):
        folder, seconds = run.run.folder, run.seconds
        nearby = f"next  fairbits explore {folder}{loading.typed}\n      fairbits gate {folder}{loading.typed}"
        if run.stopped:
            nearby = f"next  fairbits audit --resume {folder}{loading.typed} (it ended early)"
    else:
        folder, seconds = run.folder, {"proxies": run.seconds}
        nearby = f"next  fairbits report {folder}{loading.typed} --form profile"

    def look() -> Any:
        if not isinstance(run, audits.AuditResult):
            return report.study_look(audited.subject, run.document)
        return report.audit_look(
            run.data,
            asked=audited.subject.asked_lines(),
            faults=run.faults,
            seconds=run.seconds,
            waited=waited(),
        )

    answer(
        as_json,
        lambda: {
            **{"run": str(folder), "report": str(run.page), "seconds": seconds},
            "summary": store.read_json(folder / "summary.json"),
        },
        look,
        f"page  {run.page}",
        *nearby.splitlines(),
    )
    if opened:
        click.launch(str(run.page.resolve()))
    if isinstance(run, audits.AuditResult) and run.data.contradictions:
        raise ContradictionError(run.data.contradictions[0].said())
    if isinstance(run, audits.AuditResult) and run.stopped:
        raise click.exceptions.Exit(INTERRUPTED)


def init(
    *,
    table: Path = argument(help="A CSV, Parquet, Feather or Arrow file."),
    model: str | None = option(None, "The model: a file, module:function or an address."),
    target: str | None = option(None, "The column that the model predicts."),
    protected: str | None = option(None, "Protected attributes, separated by commas.", metavar="NAMES"),
    favourable: str | None = option(None, "The value of the target whose probability is the score."),
    threshold: float | None = option(None, "A decision is favourable from this probability on.", shown="0.5"),
    score_of: str | None = option(None, "The class that the model's single output speaks of.", rare=True),
    output: str | None = option(None, "What the model puts out: probability, logit or value.", rare=True),
    input_format: str | None = option(
        None, "What goes into the model: frame, array or codes.", was=("--eats",), rare=True
    ),
    factory: str | None = option(None, "module:function that builds the module of a file of weights.", rare=True),
    ignore: str | None = option(None, "Columns to leave out, separated by commas.", metavar="NAMES"),
    max_twins: int = option(1000, "At most so many twins (protected combinations).", low=1, rare=True),
    delimiter: str = option(",", "What separates the columns of a CSV file.", rare=True),
    out: Path = option(Path("subject.toml"), "The file to write.", metavar="FILE"),
    force: bool = option(False, "Replace the file if there is one."),
    yes: bool = option(False, "Ask nothing; take what the table suggests.", was=("-y",)),
    about: AcceptOptions,
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """Infer what people are made of from a table, ask what it cannot tell, and write a commented audit file."""

    audits.check_draft(out, force=force)
    said = {"score_of": score_of, "output": output, "input_format": input_format, "factory": factory}
    options = models.ModelOptions.of({name: value for name, value in said.items() if value is not None})
    data = domain.read_arrow(table, delimiter=delimiter, max_rows=loading.max_rows)
    ignored = _spelled(names_of(ignore, "--ignore"), data.column_names) if ignore else ()
    audits.check_ignored(ignored, data)
    silent = yes or as_json
    target = target or _ask("Which column does the model predict?", data.column_names, "--target", silent)
    target = _spelled((target,), data.column_names)[0]
    groups = _groups(data, (target, *ignored), silent)
    inside = {column for group in groups for column in group.own_columns}
    names = [name for name in data.column_names if name not in {*inside, target, *ignored}]
    names += [group.name for group in groups]
    protected = protected or _ask("Which attributes are protected (comma-separated)?", names, "--protected", silent)
    classes = subjects.infer_classes(data, target) if target in data.column_names else ()
    if favourable is None and classes and not silent:
        question = f"Which value of {target} is favourable ({', '.join(classes)})?"
        favourable = _answer(question, "--favourable", default=classes[-1] if domain.says_yes(classes[-1]) else None)
    drafted = audits.draft_subject(
        table,
        target=target,
        protected=_spelled(names_of(protected), names),
        model=model,
        favourable=favourable,
        threshold=threshold,
        ignored=ignored,
        groups=groups,
        max_twins=max_twins,
        delimiter=delimiter,
        out=out,
        force=force,
        as_is=about.as_is,
        options=options,
        data=data,
        **loading.given(),
    )
    first = "edit it, then: " if drafted.trouble is not None else ""
    answer(
        as_json,
        lambda: report.draft_document(drafted, str(out)),
        lambda: report.draft_blocks(drafted, data.num_rows),
        f"Written to {out} · next: {first}fairbits measure {out}{loading.typed}",
    )
    if drafted.trouble is not None:
        raise ModelError(drafted.trouble)


def _spelled(names: tuple[str, ...], columns: list[str]) -> tuple[str, ...]:
    """Names as the table spells them: nobody types the blank of a header such as "age, sex"."""
    bare = {column.strip(): column for column in columns}
    return tuple(name if name in columns else bare.get(name, name) for name in names)


def _ask(question: str, choices: list[str], option: str, silent: bool) -> str:
    """Ask a person; where nobody is to be asked, name the option that says it."""
    if silent:
        raise OptionError(f"{option} is missing; {choose_from('', choices)}")
    print(f"Columns to {choose_from('', choices, max_shown=len(choices))}", file=sys.stderr)
    return _answer(question, option)


def _answer(question: str, option: str, default: str | None = None) -> str:
    try:
        return str(click.prompt(question, default=default, err=True, prompt_suffix=" ")).strip()
    except click.Abort:
        print(file=sys.stderr)  # the question has no end of line yet
        raise OptionError(f"nobody answered; give {option}, or --yes to be asked nothing.") from None


def _groups(data: pa.Table, leave_out: tuple[str, ...], silent: bool) -> list[domain.Attribute]:
    """One-hot groups that are in the table, and that the person wants to see as one attribute each."""
    kept = []
    for group in domain.one_hot_groups(data, leave_out=leave_out):
        question = _question(group)
        try:
            if silent or click.confirm(question, default=True, err=True):
                kept.append(group)
        except click.Abort:
            raise OptionError(f"nobody answered whether {group.name!r} is one attribute; add --yes to agree.") from None
    return kept


def _question(group: domain.Attribute) -> str:
    columns = ", ".join(group.own_columns)
    if "" in group.columns:  # one value has no column of its own
        return (
            f"Columns {columns} never hold two 1s, as if one value had no column: "
            f"treat them as one attribute {group.name!r}, all zeros being {group.labels[0]!r}?"
        )
    return f"Columns {columns} look one-hot: treat them as one attribute {group.name!r}?"


#: What can be done, with how many names, and with which options.
ACTIONS: dict[str, tuple[str, int | None, frozenset[str]]] = {
    "list": ("", 0, frozenset({"as_json"})),
    "show": ("NAME", 1, frozenset({"as_json"})),
    "export": ("NAME", 1, frozenset({"out", "codes", "force"})),
    "add": ("NAME FILE", 2, frozenset()),
    "forget": ("NAME", 1, frozenset()),
    "train": ("NAME...", None, frozenset({"out", "seed"})),
}
#: What is told of every attribute; a kind that has no such field of its own has a constant.
ATTRIBUTE = (
    *("name", "kind", "low", "high", "step", "labels", "protected", "immutable", "allowed", "missing"),
    *("ranges", "columns", "holds"),
)


def data(
    *,
    action: str = argument(
        "list",
        "list (all of them), show NAME, export NAME (files: table, model, subject.toml), add NAME FILE (a table that "
        "may not be shipped: compas, diabetes, meps15 or meps16), forget NAME, train NAME... (from a seed; or all).",
    ),
    names: tuple[str, ...] = argument((), "", metavar="[NAME]...", many=True),
    out: Path | None = option(
        None, "The folder to write to: export, train.", metavar="FOLDER", shown="./NAME, or networks"
    ),
    codes: bool = option(False, "Export codes instead of labels."),
    force: bool = option(False, "Export into a folder that is not empty."),
    seed: int = option(0, "Train: seed of the first attempt.", low=0),
    as_json: bool = JSON,
) -> None:
    """The built-in models and tables: list, show, export, add, forget and train."""
    if action not in ACTIONS:
        raise OptionError(f"{action!r} is nothing that can be done with data; {choose_from(action, ACTIONS)}")
    words, count, allowed = ACTIONS[action]
    if (count is not None and len(names) != count) or (count is None and not names):
        raise OptionError(f"type: fairbits data {action} {words}".rstrip() + ".")
    given = {"out": out is not None, "codes": codes, "force": force, "seed": seed != 0, "as_json": as_json}
    strange = next((name for name, said in given.items() if said and name not in allowed), None)
    if strange is not None:
        raise OptionError(f"--{strange.removeprefix('as_')} does not apply to `fairbits data {action}`; leave it out.")
    work: dict[str, Callable[[], None]] = {
        "list": lambda: _list(as_json=as_json),
        "show": lambda: _show(names[0], as_json=as_json),
        "export": lambda: print(
            *subjects.export_subject(built_ins.load_subject(names[0]), out or Path(names[0]), codes=codes, force=force),
            sep="\n",
        ),
        "add": lambda: print(f"kept as {built_ins.add(names[0], Path(names[1]))}"),
        "forget": lambda: print(
            f"{names[0]} is forgotten" if built_ins.forget(names[0]) else f"{names[0]} was not kept; nothing to do"
        ),
        "train": lambda: _train(names, seed, out or Path("networks")),
    }
    work[action]()


def _list(*, as_json: bool) -> None:
    rows = [_overview(entry) for entry in built_ins.BUILT_IN.values()]
    nearby = "next  fairbits data show NAME"
    answer(as_json, lambda: rows, lambda: report.built_in_list(rows), nearby, everything=True)


def _show(name: str, *, as_json: bool) -> None:
    """One subject: what it is about, whose it is, its attributes and its network."""
    entry = built_ins.built_in(name)
    about = _overview(entry) | {
        "title": entry.title,
        "description": entry.description,
        "source": entry.source,
        "licence": entry.licence,
        "target": entry.schema.target,
        "classes": list(entry.schema.classes),
        "scored_class": entry.schema.favourable,
        "attributes": [
            {field: getattr(attribute, field) for field in ATTRIBUTE} for attribute in entry.schema.attributes
        ],
        "network": built_ins.load_card(name),
    }
    answer(as_json, lambda: about, lambda: report.built_in_blocks(entry, about), f"next  fairbits measure {name}")


def _train(names: tuple[str, ...], seed: int, out: Path) -> None:
    """Train the benchmark networks anew: the paper's shape, on the training rows, from a seed."""
    chosen = list(built_ins.BUILT_IN) if names == ("all",) else [built_ins.built_in(name).name for name in names]
    for name in chosen:
        network, card = built_ins.train_built_in(name, seed=seed)
        path = built_ins.save_network(network, card, out)
        print(
            f"{path}: accuracy {percent(card['accuracy_trained'])} on {card['rows_trained']:,} training rows, "
            f"{percent(card['accuracy_held_out'])} on {card['rows_held_out']:,} held-out rows "
            f"(majority {percent(card['majority_share'])})",
            flush=True,
        )


def _overview(entry: built_ins.BuiltIn) -> dict[str, Any]:
    where = "in the package" if entry.ships else built_ins.available(entry.needs) or "not here"
    return {
        "name": entry.name,
        "rows": entry.rows,
        "attributes": len(entry.schema),
        "m": domain.Twins(entry.schema).m,
        "protected": list(entry.schema.protected),
        "data": "generated" if entry.synthetic else where,
    }


def plan(
    *,
    subject: str | None = subject_argument(None),
    options: PlanOptions,
    about: ProtectedOptions,
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """How many rows an interval needs, what a gate would notice, how long an audit takes, how many requests.

    With a model and table, some people are asked about to see the rate and the speed (none of an endpoint's).
    """
    planned = audits.plan_audit(options, None if subject is None else audit_of(subject, about, loading).subject)
    nearby = f"next  fairbits audit {subject}{loading.typed}" if subject else "next  fairbits init YOUR_TABLE.csv"
    answer(as_json, lambda: store.plain(planned), planned.blocks, nearby)
