"""The commands, and what happens when one of them fails. Everything heavy is imported inside the commands."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import typer

from fairbits.cli.audit import audit
from fairbits.cli.cases import cases
from fairbits.cli.compare import compare
from fairbits.cli.data import data_app
from fairbits.cli.debug import debug
from fairbits.cli.explore import explore
from fairbits.cli.fleet import fleet
from fairbits.cli.init import init
from fairbits.cli.measure import measure
from fairbits.cli.paper import paper
from fairbits.cli.repair import repair
from fairbits.cli.report import report
from fairbits.cli.search import search
from fairbits.errors import FairbitsError

app = typer.Typer(
    name="fairbits",
    help="How many bits of sex, race and age does your model use, for whom, and through which neurons?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (audit, init, measure, search, cases, debug, repair, report, explore, compare, paper, fleet):
    app.command()(command)
app.add_typer(data_app, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        from fairbits._version import __version__

        print(f"fairbits {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Say which version."),
) -> None:
    """Shared by all commands."""


def main() -> NoReturn:
    """Run the command line. Exit codes: 0 fine, 1 verdict failed, 2 wrong use, 3 failure, 130 interrupted."""
    try:
        app(standalone_mode=True)
    except FairbitsError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted.", 130)
    except BrokenPipeError:  # the reader (`| head`) has seen enough; stop Python from complaining at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # the last line of defence: one sentence instead of a traceback
        if os.environ.get("FAIRBITS_TRACEBACK"):
            raise
        reason = f"{type(error).__name__}: {error}".strip(": ")
        _fail(f"something went wrong inside fairbits ({reason}); set FAIRBITS_TRACEBACK=1 to see where.", 3)
    sys.exit(0)


def _fail(message: str, code: int) -> NoReturn:
    print(f"fairbits: {message}", file=sys.stderr)
    sys.exit(code)
