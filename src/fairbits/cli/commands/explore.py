"""`fairbits explore`: change a person, switch a neuron, and see what becomes of the bits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.grants import granting

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions


@granting
def explore(
    run: Annotated[Path, typer.Argument(help="The folder of a run.", show_default=False)],
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 0,
    browser: Annotated[
        Optional[bool],  # noqa: UP045 - typer reads the annotation at run time
        typer.Option("--browser/--no-browser", help="Open the page.", show_default="on a terminal"),
    ] = None,
    *,
    grants: GrantOptions,
) -> None:
    """Serve a page, to this machine alone, where people can be changed and neurons switched. Ctrl-C ends it."""
    import secrets

    from fairbits.audit import AuditRun
    from fairbits.explore import Explorer, build_app, hosts_of, listen, serve

    opened = AuditRun.open(run, **grants)
    listening = listen(port)
    with listening:
        explorer = Explorer(opened, subject=opened.subject)
        explorer.warm_up()
        token, hosts = secrets.token_urlsafe(24), hosts_of(listening)
        address = f"http://{hosts[0]}/?token={token}"
        print(address, flush=True)
        print("Only this machine can open it. Ctrl-C ends it; nothing in the run is changed.", file=sys.stderr)
        if sys.stdout.isatty() if browser is None else browser:
            import webbrowser

            if not webbrowser.open(address):
                print("No browser could be started; open the address yourself.", file=sys.stderr)
        serve(build_app(explorer, token=token, hosts=hosts), listening)
    print("The explorer has ended.", file=sys.stderr)
