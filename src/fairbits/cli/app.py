"""The commands, and what happens when one of them fails. Everything heavy is imported inside the commands."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

import typer

from fairbits.cli.command import StrictCommand
from fairbits.cli.commands.audit import audit
from fairbits.cli.commands.cases import cases
from fairbits.cli.commands.certify import certify
from fairbits.cli.commands.compare import compare
from fairbits.cli.commands.data import data_app
from fairbits.cli.commands.debug import debug
from fairbits.cli.commands.diff import diff
from fairbits.cli.commands.explore import explore
from fairbits.cli.commands.fleet import fleet
from fairbits.cli.commands.gate import gate_app
from fairbits.cli.commands.guard import guard_app
from fairbits.cli.commands.init import init
from fairbits.cli.commands.measure import measure
from fairbits.cli.commands.paper import paper
from fairbits.cli.commands.proxies import proxies
from fairbits.cli.commands.repair import repair
from fairbits.cli.commands.report import report
from fairbits.cli.commands.search import search
from fairbits.cli.faults import chain, lacks_memory, sentence_of
from fairbits.cli.output import OutputError, safe_output
from fairbits.cli.signals import FAILED, INTERRUPTED
from fairbits.errors import FairbitsError, OptionError
from fairbits.text import one_line
from fairbits.words import for_the_shell

app = typer.Typer(
    name="fairbits",
    help="How many bits of sex, race and age does your model use, for whom, and through which neurons?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: the decorated one takes longer to import than all the rest
    context_settings={"help_option_names": ["-h", "--help"]},
)
#: The commands in the order of ``fairbits --help``, each in at most 66 characters.
COMMANDS: dict[Callable[..., None], str] = {
    audit: "Measure, search, debug, repair, certify, report: one page.",
    init: "Write a subject.toml for your own table and model.",
    measure: "How many bits of protected information the decisions use.",
    search: "Find the people whose twins are treated most differently.",
    cases: "The people found by a search, the worst first.",
    debug: "The layers, neurons and attributes that the bits come from.",
    repair: "A model to ship instead: repairs, guard, mitigators; exported.",
    certify: "What is exact, proved or statistical about everybody.",
    proxies: "What the score tells about attributes the model never sees.",
    report: "Write the page of a run; sign it, verify it.",
    diff: "What changes for the same people under another model.",
    explore: "A local page to change people and switch neurons.",
    compare: "Compare search strategies at equal seconds.",
    paper: "The published tables, ours beside theirs.",
    fleet: "Audit many models and rank them.",
}
#: Names that went, and what to type in their place: they say so for one release.
MOVED = {
    "alternatives": "fairbits repair SUBJECT --with mitigators,settings --write-all",
    "tune": "fairbits repair SUBJECT --with settings",
}


def _moved(name: str, new: str) -> Callable[..., None]:
    def answer() -> None:
        raise OptionError(f"`fairbits {name}` is gone; type `{new}`.")

    return answer


for command, summary in COMMANDS.items():
    app.command(short_help=summary, cls=StrictCommand)(command)
for name, new in MOVED.items():
    anything = {"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False}
    app.command(name, hidden=True, context_settings=anything, add_help_option=False)(_moved(name, new))
app.add_typer(data_app, name="data", short_help="The built-in subjects: list, show, export, add, train.")
app.add_typer(guard_app, name="guard", short_help="Serve a model whose bound on k is proved for everybody.")
app.add_typer(gate_app, name="gate", short_help="Pass, fail or inconclusive: did the model get worse?")


def _show_version(wanted: bool) -> None:
    if wanted:
        from fairbits._version import __version__

        print(f"fairbits {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: bool = typer.Option(  # noqa: ARG001 - its callback does it
        False, "--version", callback=_show_version, is_eager=True, help="Say which version."
    ),
) -> None:
    """Shared by all commands."""
    context.with_resource(safe_output())
    context.with_resource(for_the_shell())


def run() -> NoReturn:
    """Parse what was typed, do it, and end with the exit code."""
    with safe_output(), for_the_shell():
        code, starved = _ended()
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except OSError as error:
            code = _unheard(error, code)
        except ValueError:  # a stream that is closed has nothing left to say
            pass
    if starved:  # libraries that got no memory for their threads crash on the way out
        os._exit(code)
    sys.exit(code)


def _ended() -> tuple[int, bool]:
    """Do it, and say what went wrong in one sentence: the exit code, and whether there was too little memory."""
    try:
        return _done(), False
    except Exception as error:  # noqa: BLE001 - whatever it is, it is said, and it is no verdict
        if os.environ.get("FAIRBITS_TRACEBACK") and not isinstance(error, FairbitsError):
            traceback.print_exception(error)
            return FAILED, lacks_memory(error)
        return _fail(*sentence_of(error)), lacks_memory(error)


def _done() -> int:
    """Do it; what goes wrong comes out as it is, but for exits and for output that nobody takes."""
    try:
        app(standalone_mode=True)
    except SystemExit as ended:
        if ended.code == INTERRUPTED and any(isinstance(one, KeyboardInterrupt) for one in chain(ended)):
            return _fail("interrupted.", INTERRUPTED)  # typer has made an exit of it
        return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else FAILED
    except KeyboardInterrupt:
        return _fail("interrupted.", INTERRUPTED)
    except (BrokenPipeError, OutputError) as error:
        return _unheard(error, 0)
    return 0


def _unheard(error: OSError, code: int) -> int:
    """Output that cannot be written. Python would complain about it once more at the end, so the rest goes nowhere."""
    with suppress(OSError, ValueError):  # there may be no stdout at all
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):  # the reader (`| head`) has seen enough
        return code
    return _fail(f"cannot write the output: {error.strerror or error}; nothing else was lost.", FAILED)


def _fail(message: str, code: int) -> int:
    with suppress(OSError, ValueError):  # there is no place left to say it
        print(f"fairbits: {one_line(message)}", file=sys.stderr)
    return code
