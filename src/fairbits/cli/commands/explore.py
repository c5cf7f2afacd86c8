"""`fairbits explore`: change a person, switch a neuron, and see what becomes of the bits."""

from __future__ import annotations

import secrets
import sys
import webbrowser
from pathlib import Path

from fairbits import explore as explorers
from fairbits.cli.arguments import RUN, open_run
from fairbits.options import LoadingOptions, option


def explore(
    *,
    run: str = RUN,
    out: Path | None = option(
        None, "Write one file that opens from disk, without a server: networks and trees.", metavar="FILE"
    ),
    port: int = option(0, "Port to listen on; 0 takes a free one."),
    browser: bool | None = option(None, "Open the page.", flag="--browser/--no-browser"),
    loading: LoadingOptions,
) -> None:
    """Serve a page, to this machine alone, where people can be changed and neurons switched. Ctrl-C ends it."""
    opened = open_run(run, "explore", loading)
    if out is not None:
        print(explorers.write_page(explorers.Explorer(opened, subject=opened.subject), out))
        print("It holds the model and the people listed; open it in any browser.", file=sys.stderr)
        return
    with explorers.listen(port) as listening:
        explorer = explorers.Explorer(opened, subject=opened.subject)
        explorer.warm_up()
        token, hosts = secrets.token_urlsafe(24), explorers.hosts_of(listening)
        address = f"http://{hosts[0]}/?token={token}"
        print(address, flush=True)
        print("Only this machine can open it. Ctrl-C ends it; nothing in the run is changed.", file=sys.stderr)
        wanted = sys.stdout.isatty() if browser is None else browser
        if wanted and not webbrowser.open(address):
            print("No browser could be started; open the address yourself.", file=sys.stderr)
        explorers.serve(explorers.build_app(explorer, token=token, hosts=hosts), listening)
    print("The explorer has ended.", file=sys.stderr)
