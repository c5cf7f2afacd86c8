"""The commands, and what happens when one of them fails. Everything heavy is imported inside the commands."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from fairbits.cli.flags import Command, check_subject, help_flags
from fairbits.cli.output import OutputError, safe_output
from fairbits.cli.signals import FAILED, INTERRUPTED
from fairbits.errors import FairbitsError, OptionError, choose_from
from fairbits.text import for_the_shell, one_line, shortened

#: The commands in their groups, as `fairbits --help` shows them, each in at most 66 characters. A command is the
#: function of its name in the module of its group (`fairbits.cli.commands`).
COMMANDS = {
    "Start": {
        "audit": "Measure, search, debug, repair, certify, report: one page.",
        "init": "Write an audit file (subject.toml) for your own table and model.",
        "data": "The built-in models and tables: list, show, export, add, train.",
        "plan": "How many rows, how long, how many requests an audit takes.",
    },
    "Look": {
        "report": "Write the page of a run; sign it, verify it; forms for others.",
        "cases": "The people found by a search, the worst first.",
        "explore": "A local page to change people and switch neurons.",
        "diff": "What changes for the same people under another model.",
    },
    "Fix": {
        "repair": "A model to ship instead: repairs, guard, mitigators; exported.",
        "serve": "Serve a model whose bound on k is proved for everybody.",
    },
    "Watch": {
        "gate": "Pass, fail or inconclusive: did the model get worse?",
        "fleet": "Audit many models and rank them.",
    },
    "Single stages": {
        "measure": "How many bits of protected information the decisions use.",
        "search": "Find the people whose twins are treated most differently.",
        "debug": "The layers, neurons and attributes that the bits come from.",
        "certify": "What is exact, proved or statistical about everybody.",
        "proxies": "What the score tells about attributes the model never sees.",
    },
    "Research": {
        "paper": "The published tables, ours beside theirs; strategies compared.",
    },
}
SUMMARIES = {name: summary for group in COMMANDS.values() for name, summary in group.items()}
#: Words that went with this release, and what is done in their place.
MOVED = {
    ("guard", "serve"): ("serve",),
    ("guard",): ("serve",),
    ("compare",): ("paper", "compare"),
    ("alternatives",): ("repair", "--with", "mitigators,settings", "--write-all"),
    ("tune",): ("repair", "--with", "settings"),
    ("gate", "check"): ("gate",),
    ("gate", "freeze"): ("gate", "--freeze"),
    ("gate", "waivers"): ("gate", "--waivers"),
    ("gate", "card"): ("report", "--form", "card"),
}


class CommandGroup(click.Group):
    """The commands in their groups; the module of each is imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All names, in the order of ``--help``."""
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:  # noqa: ARG002
        """One command."""
        if cmd_name not in SUMMARIES:
            return None
        home = next(title for title, commands in COMMANDS.items() if cmd_name in commands).split()[-1].lower()
        function = getattr(import_module(f"fairbits.cli.commands.{home}"), cmd_name)
        return Command(cmd_name, SUMMARIES[cmd_name], function)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Names that went are replaced, and the new one is said."""
        for old, new in MOVED.items():
            if tuple(args[: len(old)]) == old:
                args = [*new, *args[len(old) :]]
                print(f"fairbits: `fairbits {' '.join(old)}` is now `fairbits {' '.join(new)}`.", file=sys.stderr)
                break
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant; for anything else, what there is."""
        name = args[0]
        if name not in SUMMARIES and not name.startswith("-"):
            check_subject(name)
            raise OptionError(f"there is no command {name!r}; {choose_from(name, SUMMARIES)}")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options, then the commands of each group."""
        click.Command.format_options(self, ctx, formatter)
        for title, commands in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<8}", summary) for name, summary in commands.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Do it, with everything that is printed made harmless."""
        ctx.with_resource(safe_output())
        ctx.with_resource(for_the_shell())
        return super().invoke(ctx)


def _commit() -> str:
    """The commit, where the package lies in a checkout of its own."""
    home = Path(__file__).parents[3]
    if not (home / ".git").exists() or not (home / "src" / "fairbits").is_dir() or shutil.which("git") is None:
        return ""
    git = ["git", "-C", str(home), "describe", "--always", "--dirty", "--exclude=*"]
    answer = subprocess.run(git, capture_output=True, text=True, check=False)  # noqa: S603 - no word of it is from outside
    return f" (commit {answer.stdout.strip()})" if answer.returncode == 0 else ""


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from fairbits._version import __version__

        print(f"fairbits {__version__}{_commit()}")
        ctx.exit()


app = CommandGroup(
    "fairbits",
    help="How many bits of sex, race and age does your model use, for whom, and through which neurons?",
    no_args_is_help=True,
    add_help_option=False,
    params=[
        *help_flags(short=False),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Say which version.",
        ),
    ],
)


def run() -> NoReturn:
    """Parse what was typed, do it, and end with the exit code."""
    with safe_output(), for_the_shell():
        code, starved = _ended()
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except OutputError as error:
            code = _fail(*sentence_of(error))
        except ValueError:  # a stream that is closed has nothing left to say
            pass
    if starved:  # libraries that got no memory for their threads crash on the way out
        os._exit(code)
    sys.exit(code)


def _ended() -> tuple[int, bool]:
    """Do it, and say what went wrong in one sentence: the exit code, and whether there was too little memory."""
    try:
        return _done(), False
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is said, and it is no verdict
        if os.environ.get("FAIRBITS_TRACEBACK") and not isinstance(error, FairbitsError):
            traceback.print_exception(error)
            return FAILED, lacks_memory(error)
        return _fail(*sentence_of(error)), lacks_memory(error)


def _done() -> int:
    """Do it; what goes wrong comes out as it is, but for exits."""
    try:
        with app.make_context("fairbits", sys.argv[1:]) as context:
            app.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except SystemExit as ended:  # somebody else's code; its number is no verdict of ours
        return _fail(f"code that is not of fairbits ended the command (exit status {ended.code}).", FAILED)
    except click.ClickException as error:  # a word that is no option of the command
        where = getattr(error, "ctx", None)  # click knows it of most mistakes, but not of an option without its value
        named = [word for word in sys.argv[1:2] if word in SUMMARIES]
        command = " ".join(["fairbits", *named]) if where is None else where.command_path
        return _fail(f"{error.format_message()} See: {command} -h", error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted.", INTERRUPTED)
    return 0


def _fail(message: str, code: int) -> int:
    with suppress(OSError, ValueError):  # there is no place left to say it
        print(f"fairbits: {one_line(message)}", file=sys.stderr)
    return code


_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
#: How libraries say that there is no memory, where they do not raise a MemoryError.
_NO_MEMORY = (
    "out of memory",
    "not enough memory",
    "cannot allocate memory",
    "unable to allocate",
    "failed to allocate",
    "could not allocate",
    "can't allocate memory",
    "bad_alloc",
    "bad allocation",
    "failed to map segment",  # the loader of shared libraries
    "can't start new thread",
    "unable to create thread",
    "failed to launch worker thread",  # Arrow's
)
#: Those of them that no file can bring about, however damaged it is.
_STARVED = _NO_MEMORY[-4:]


def sentence_of(error: BaseException) -> tuple[str, int]:
    """The sentence about an error, and the exit code."""
    if isinstance(error, FairbitsError) and not lacks_memory(error):
        return str(error), error.exit_code
    if lacks_memory(error):
        return (
            f"there is not enough memory ({_reason(error)}); close other programs, use fewer --workers or --threads, "
            f"or give a smaller table.",
            FAILED,
        )
    if isinstance(error, OutputError):
        return f"cannot write the output: {error.strerror}; nothing else was lost.", FAILED
    if isinstance(error, OSError) and error.errno is not None:
        return _about_files(error), FAILED
    if isinstance(error, RecursionError):
        return "something is nested too deeply (a rule, a model or a document); make it flatter.", 2
    return (
        f"something went wrong inside fairbits ({_reason(error)}); set FAIRBITS_TRACEBACK=1 to see where.",
        FAILED,
    )


def lacks_memory(error: BaseException) -> bool:
    """Whether an error, or one that caused it, says that memory ran out.

    A sentence of ours about a file that needed more memory than there is stays what it is, unless this very process
    could not start a thread or load a library: then no file is to blame.
    """
    if isinstance(error, FairbitsError):
        return any(_is_starved(cause) for cause in chain(error) if cause is not error)
    return any(_says_so(cause) for cause in chain(error))


def _is_starved(error: BaseException) -> bool:
    said = str(error).lower()
    return (isinstance(error, OSError) and error.errno == errno.ENOMEM) or any(words in said for words in _STARVED)


def _says_so(error: BaseException) -> bool:
    # NumPy's and Arrow's are memory errors, too; the other one is DuckDB's.
    plain = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException"
    if plain or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    foreign = isinstance(error, RuntimeError | ImportError | OSError) or type(error).__module__.startswith("pyarrow")
    return foreign and any(words in str(error).lower() for words in _NO_MEMORY)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that caused it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


_ABOUT_FILES = {
    **dict.fromkeys(_FULL, "no space is left on the device ({}); free some, and do it again."),
    **dict.fromkeys(
        (errno.EROFS, errno.EACCES, errno.EPERM),
        "it is not allowed ({}); choose another place, or change who may write there.",
    ),
    **dict.fromkeys(
        (errno.EMFILE, errno.ENFILE),
        "too many files are open ({}); use fewer --workers, or raise the limit (ulimit -n).",
    ),
}


def _about_files(error: OSError) -> str:
    other = "a file could not be used ({}); see that it is there and can be read and written."
    what = f"{error.filename!r}: " if error.filename else ""
    return _ABOUT_FILES.get(error.errno or 0, other).format(what + (error.strerror or str(error)))


def _reason(error: BaseException) -> str:
    if isinstance(error, FairbitsError):  # what it was made of says more about the machine
        error = error.__cause__ or error.__context__ or error
    return shortened(one_line(f"{type(error).__name__}: {error}".strip(": ")), 300)
