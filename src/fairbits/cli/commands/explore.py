"""`fairbits explore`: change a person, switch a neuron, and see what becomes of the bits."""

from __future__ import annotations

import sys

from fairbits.cli.arguments import open_run, run_argument
from fairbits.options import LoadingOptions, option


def explore(
    *,
    run: str = run_argument(),
    port: int = option(0, "Port to listen on; 0 takes a free one."),
    browser: bool | None = option(None, "Open the page.", flag="--browser/--no-browser"),
    loading: LoadingOptions,
) -> None:
    """Serve a page, to this machine alone, where people can be changed and neurons switched. Ctrl-C ends it."""
    import secrets

    from fairbits.explore import Explorer, build_app, hosts_of, listen, serve

    opened = open_run(run, "explore", loading)
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
