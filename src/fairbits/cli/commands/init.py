"""`fairbits init`: a subject.toml for your own table and model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairbits import audit, domain, report
from fairbits.cli.arguments import JSON
from fairbits.cli.flags import argument
from fairbits.cli.output import answer
from fairbits.errors import ModelError, OptionError
from fairbits.options import AcceptOptions, LoadingOptions, names_of, option

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TWINS = 1000


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
    max_twins: int = option(MAX_TWINS, "At most so many twins (protected combinations).", low=1, rare=True),
    delimiter: str = option(",", "What separates the columns of a CSV file.", rare=True),
    out: Path = option(Path("subject.toml"), "The file to write.", metavar="FILE"),
    force: bool = option(False, "Replace the file if there is one."),
    yes: bool = option(False, "Ask nothing; take what the table suggests.", was=("-y",)),
    about: AcceptOptions,
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """Infer what people are made of from a table, ask what it cannot tell, and write a commented audit file."""
    from fairbits.models import ModelOptions
    from fairbits.subject import infer_classes

    audit.check_draft(out, force=force)
    said = {"score_of": score_of, "output": output, "input_format": input_format, "factory": factory}
    options = ModelOptions.of({name: value for name, value in said.items() if value is not None})
    data = domain.read_arrow(table, delimiter=delimiter)
    ignored = names_of(ignore, "--ignore") if ignore else ()
    audit.check_ignored(ignored, data)
    silent = yes or as_json
    target = target or _ask("Which column does the model predict?", data.column_names, "--target", silent)
    groups = _groups(data, (target, *ignored), silent)
    names = _attribute_names(data, groups, (target, *ignored))
    protected = protected or _ask("Which attributes are protected (comma-separated)?", names, "--protected", silent)
    classes = infer_classes(data, target) if target in data.column_names else ()
    if favourable is None and classes and not silent:
        question = f"Which value of {target} is favourable ({', '.join(classes)})?"
        favourable = _answer(question, "--favourable", default=classes[-1])
    drafted = audit.draft_subject(
        table,
        target=target,
        protected=names_of(protected),
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


def _ask(question: str, choices: list[str], option: str, silent: bool) -> str:
    """Ask a person; where nobody is to be asked, name the option that says it."""
    if silent:
        raise OptionError(f"{option} is missing; choose from the columns: {', '.join(choices)}.")
    click.echo(f"Columns: {', '.join(choices)}", err=True)
    return _answer(question, option)


def _answer(question: str, option: str, default: str | None = None) -> str:
    try:
        return str(click.prompt(question, default=default, err=True)).strip()
    except click.Abort:
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


def _attribute_names(data: pa.Table, groups: list[domain.Attribute], leave_out: tuple[str, ...]) -> list[str]:
    inside = {column for group in groups for column in group.own_columns}
    alone = [name for name in data.column_names if name not in inside and name not in leave_out]
    return alone + [group.name for group in groups]
