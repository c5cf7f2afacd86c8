"""`fairbits serve`: a model held close to the average over twins, behind an address."""

from __future__ import annotations

import sys

from fairbits import explore, repair
from fairbits.cli.arguments import audit_of, subject_argument
from fairbits.options import AcceptOptions, LoadingOptions, ThreadOptions, option


def serve(
    *,
    subject: str = subject_argument(),
    guarantee: int = option(1, "The most classes that anybody may have.", low=1),
    port: int = option(0, "Port to listen on; 0 takes a free one."),
    options: ThreadOptions,
    loading: LoadingOptions,
) -> None:
    """Serve a model behind its guard, to this machine alone. Ctrl-C ends it.

    POST /scores takes {"people": [{"age": "30–39", …}]}; GET / says what is proved.
    """
    with explore.listen(port) as listening:
        loaded = audit_of(subject, AcceptOptions(as_is=True), loading).subject
        guard = repair.Guard.of(loaded, guarantee=guarantee, threads=options.threads)
        print(f"http://{explore.hosts_of(listening)[0]}/", flush=True)
        print(guard.proof, file=sys.stderr)
        print(f"One decision asks the model about {guard.m:,} twins. Ctrl-C ends it.", file=sys.stderr)
        explore.serve(explore.guard_app(guard), listening)
    print("The endpoint has ended.", file=sys.stderr)
