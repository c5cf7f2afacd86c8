"""`fairbits guard`: a model held close to the average over twins, behind an address."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from fairbits.cli.command import StrictCommand
from fairbits.cli.grants import granting
from fairbits.cli.options import Subject, Threads, audit_of, threads_of

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions

guard_app = typer.Typer(help="A model whose scores hold a bound on k, proved for everybody.", no_args_is_help=True)


@guard_app.callback()
def _guard() -> None:
    """A model whose scores hold a bound on k, proved for everybody."""


@granting
def serve(
    subject: Subject,
    guarantee: Annotated[int, typer.Option(help="The most classes that anybody may have.", min=1)] = 1,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 0,
    threads: Threads = 0,
    *,
    grants: GrantOptions,
) -> None:
    """Serve a subject's model behind its guard, to this machine alone. Ctrl-C ends it.

    POST /scores takes {"people": [{"age": "30–39", …}]}; GET / says what is proved.
    """
    from fairbits.explore import guard_app as application
    from fairbits.explore import hosts_of, listen
    from fairbits.explore import serve as answer
    from fairbits.repair import Guard

    listening = listen(port)
    with listening:
        loaded = audit_of(subject, as_is=True, grants=grants).subject
        guard = Guard.of(loaded, guarantee=guarantee, threads=threads_of(threads))
        print(f"http://{hosts_of(listening)[0]}/", flush=True)
        print(guard.proof, file=sys.stderr)
        print(f"One decision asks the model about {guard.m:,} twins. Ctrl-C ends it.", file=sys.stderr)
        answer(application(guard), listening)
    print("The endpoint has ended.", file=sys.stderr)


guard_app.command(cls=StrictCommand)(serve)
