"""Flags of the command line, made from options records: a command is a function whose parameters say what it takes.

A parameter annotated with an options record becomes the flags of its fields; one whose default is made by
:func:`~fairbits.options.option` a flag of its own; by :func:`argument` a word without a flag. ``-h`` shows what most
people need, ``--help`` everything.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import click

from fairbits import audit, data, store
from fairbits.errors import OptionError
from fairbits.options import AcceptOptions, LoadingOptions, arguments_of, fields_of, flag_of, option

#: What `fairbits --help` and every command answer to.
SHORT, LONG = "-h", "--help"
_NUMBERS = {int: click.INT, float: click.FLOAT}
_METAVARS = {int: "N", float: "X", Path: "FILE"}


def argument(default: Any = MISSING, help: str = "", *, metavar: str | None = None, many: bool = False) -> Any:  # noqa: A002
    """A word of a command that has no flag; without a default it must be given."""
    made = option(default, help, metavar=metavar)
    made.metadata = types.MappingProxyType({**made.metadata, "argument": True, "many": many})
    return made


class Flag(click.Option):
    """An option as its record describes it; names of earlier releases work and are not shown."""

    def __init__(self, field: Field[Any], kind: Any, name: str):
        about = field.metadata
        base, self.missing = _base(kind), field.default
        switch = base is bool
        self.about, self.read = about, about["read"]
        super().__init__(
            [flag_of(field), *about["was"], name],
            default=False if switch and self.missing is not None else None,
            is_flag=switch,
            multiple=base is dict,
            type=None if switch else _type(base, about),
            metavar=None if switch else about["metavar"] or _METAVARS.get(base),
            help=about["help"],
            required=self.missing is MISSING and field.default_factory is MISSING,
        )
        usual = about["shown"] or ("" if self.missing in (None, MISSING, (), frozenset()) else str(self.missing))
        if usual and not switch:
            self.help = f"{self.help}  [default: {usual}]"

    def value(self, given: Any) -> Any:
        """What the command gets: read from text, or the default of the record."""
        if self.is_flag and self.missing is not None:
            return not given if self.missing else given
        if given is None or given == ():
            return {} if self.missing is MISSING else self.missing
        return self.read(given) if self.read is not None else given

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Nothing but that an option must be given: what is allowed, a mistake is told."""
        return {name: word for name, word in super().get_help_extra(ctx).items() if name == "required"}

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The line of ``--help``, without the names of earlier releases."""
        kept, self.opts = self.opts, [name for name in self.opts if name not in self.about["was"]]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = kept


class Word(click.Argument):
    """A word without a flag, with its help."""

    def __init__(self, field: Field[Any], kind: Any, name: str):
        self.about, self.missing, many = field.metadata, field.default, field.metadata["many"]
        shown = field.metadata["metavar"] or name.upper()
        super().__init__(
            [name],
            required=self.missing is MISSING,
            nargs=-1 if many else 1,
            type=_type(_base(kind), field.metadata),
            metavar=shown if self.missing is MISSING or shown.startswith("[") else f"[{shown}]",
        )

    def value(self, given: Any) -> Any:
        """What the command gets."""
        return self.missing if given is None and self.missing is not MISSING else given


def _base(kind: Any) -> Any:
    """The kind of value that an annotation speaks of: int of ``int | None``, dict of a mapping."""
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(member for member in get_args(kind) if member is not type(None))
    origin = get_origin(kind)
    return dict if isinstance(origin, type) and issubclass(origin, Mapping) else origin or kind


def _type(base: Any, about: Any) -> Any:
    if about["read"] is None and base in _NUMBERS:
        return click.IntRange(min=about["low"]) if about["low"] is not None else _NUMBERS[base]
    return click.Path(path_type=Path) if base is Path and about["read"] is None else click.STRING


class Command(click.Command):
    """A command whose flags come from the parameters of its function."""

    def __init__(self, name: str, summary: str, function: Callable[..., None]):
        self._function = function
        self._made: list[tuple[str, Any, list[Any]]] = []
        hints = get_type_hints(function)
        for parameter, about in inspect.signature(function).parameters.items():
            kind = hints[parameter]
            if is_dataclass(kind):
                own = get_type_hints(kind)
                shown = [field for field in fields_of(kind) if not field.metadata["python_only"]]
                made: list[Any] = [Flag(field, own[field.name], f"{parameter}__{field.name}") for field in shown]
                self._made.append((parameter, kind, made))
            else:
                default = about.default
                default.name = parameter
                made = [(Word if default.metadata.get("argument") else Flag)(default, kind, parameter)]
                self._made.append((parameter, None, made))
        flags = [flag for _, _, made in self._made for flag in made]
        super().__init__(
            name,
            params=[*flags, *([all_flag()] if any(flag.name == "as_json" for flag in flags) else []), *help_flags()],
            help=inspect.getdoc(function),
            short_help=summary,
            add_help_option=False,
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; an option that takes one value may be given once: of two lists only the last would count."""
        seen = set()
        for parameter in self.make_parser(ctx).parse_args(args=list(args))[2]:
            if not isinstance(parameter, Flag) or parameter.multiple or parameter.is_flag:
                continue
            if parameter.name in seen:
                raise OptionError(
                    f"{parameter.opts[0]} is given more than once; give it once, the names of a list with commas."
                )
            seen.add(parameter.name)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the function with records made of what was typed."""
        given: dict[str, Any] = {}
        for parameter, kind, made in self._made:
            if kind is None:
                given[parameter] = made[0].value(ctx.params[parameter])
            else:
                values = {flag.name.partition("__")[2]: flag.value(ctx.params[flag.name]) for flag in made}
                given[parameter] = kind(**values)
        return ctx.invoke(self._function, **given)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the command does; with ``-h`` the first paragraph."""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text((self.help or "").partition("\n\n" if ctx.meta.get("fairbits.short") else "\0")[0])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Arguments, then options in their groups; with ``-h`` the main ones alone."""
        short = ctx.meta.get("fairbits.short")
        words = [param for param in self.params if isinstance(param, Word) and param.about["help"]]
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.params:
            about: Mapping[str, Any] = param.about if isinstance(param, Flag) else {"rare": True, "group": None}
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None and not (short and (about["rare"] or about["group"])):
                groups.setdefault(about["group"] or "Options", []).append(record)
        lists = {"Arguments": [(word.make_metavar(ctx), word.about["help"]) for word in words], **groups}
        for title, records in lists.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Where the rest is."""
        if ctx.meta.get("fairbits.short"):
            formatter.write_paragraph()
            formatter.write_text(f"All options: {ctx.command_path} {LONG}")


def all_flag() -> click.Option:
    """Whether a command prints everything, and not the first look (see ``fairbits.cli.terminal``)."""

    def note(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
        ctx.meta["fairbits.all"] = wanted

    return click.Option(
        ["--all"],
        is_flag=True,
        expose_value=False,
        callback=note,
        help="Print everything, not the first 25 lines.",
    )


def help_flags(*, short: bool = True) -> Iterator[click.Option]:
    """Two kinds of help, or one for what has no shorter one."""

    def show(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            ctx.meta["fairbits.short"] = parameter.opts == [SHORT]
            print(ctx.get_help())  # by click.echo an output that cannot be written would be taken for written
            ctx.exit()

    kinds = {(SHORT,): "The main options.", (LONG,): "All options."} if short else {(SHORT, LONG): "Show this."}
    for number, (names, words) in enumerate(kinds.items()):
        yield click.Option(
            [*names, f"help{number}"], is_flag=True, is_eager=True, expose_value=False, callback=show, help=words
        )


#: Files that hold a table, and no subject.
_TABLES = (".csv", ".tsv", ".parquet", ".feather", ".arrow")
JSON: Any = option(False, "Print JSON on stdout and nothing else.", flag="--json")


def subject_argument(default: Any = MISSING) -> Any:
    """The subject of a command; one that can go on with a run needs none."""
    return argument(default, "A built-in name (see `fairbits data`), or an audit file.", metavar="MODEL")


RUN: Any = argument(help="The folder (or address) of a run.", metavar="RUN")
EITHER: Any = argument(help="A built-in name, an audit file, or the folder of a run.", metavar="RUN|MODEL")
OUT: Any = option(None, "Folder (or address) of the run.", read=store.place_of, metavar="PLACE", shown="runs/…")
RESUME: Any = option(None, "Go on with the run in this place.", read=store.place_of, metavar="RUN")
FORCE: Any = option(False, "Replace a run in the folder of --out.")


def is_subject(text: str) -> bool:
    """Whether a word names a subject rather than a run."""

    return text in data.BUILT_IN or text.endswith(".toml")


def check_subject(text: str) -> None:
    """Say what to do with a table that was given as a subject."""
    if text.lower().endswith(_TABLES) and Path(text).is_file():
        raise OptionError(f"{text} is a table; try: fairbits init {text}")


def open_run(text: str, command: str, loading: LoadingOptions | None = None) -> audit.AuditRun:
    """The run that somebody typed; a subject has none yet."""

    if is_subject(text) and not Path(text).is_dir():
        raise OptionError(f"{text} is a subject; {command} needs a run: fairbits audit {text}")
    check_subject(text)
    return audit.AuditRun.open(text, **({} if loading is None else loading.given()))


def audit_of(
    subject: str | None, about: AcceptOptions, loading: LoadingOptions, resume: Path | None = None
) -> audit.Audit:
    """The audit that a command is about: of the subject that it names, or of the run that it goes on with."""

    asked = {**arguments_of(about), **loading.given()}
    if subject is not None:
        check_subject(subject)
    if resume is not None:
        return audit.Audit.of_run(resume, subject, **asked)
    if subject is None:
        raise OptionError(
            "nothing to audit was given; name a built-in (see `fairbits data`) or an audit file (subject.toml)."
        )
    return audit.Audit.of(subject, **asked)
