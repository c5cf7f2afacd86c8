"""Listening on this machine alone, until Ctrl-C."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from fairbits.errors import MissingDependencyError, OptionError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

HOST = "127.0.0.1"
MAX_PORT = 65_535
#: Connections at a time; a browser opens six.
MAX_CONNECTIONS = 100


def listen(port: int = 0) -> socket.socket:
    """A socket that only this machine reaches."""
    if not 0 <= port <= MAX_PORT:
        raise OptionError(f"--port is {port}; give one of 1 to {MAX_PORT:,}, or leave it out for a free one.")
    # The protocol is named because asyncio sends without delay only then: 40 ms in every answer.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HOST, port))
        made.listen()
    except OSError as error:
        made.close()
        reason = (error.strerror or str(error)).lower()
        raise OptionError(f"cannot listen on port {port}: {reason}; choose another --port, or leave it out.") from None
    return made


def hosts_of(listening: socket.socket) -> tuple[str, str]:
    """Names under which requests may come."""
    port = listening.getsockname()[1]
    return f"{HOST}:{port}", f"localhost:{port}"


def server_of(app: ASGIApp) -> uvicorn.Server:
    """A server that logs nothing but errors."""
    try:
        import uvicorn

        from fairbits.explore.connection import Connection
    except ImportError:
        raise MissingDependencyError("uvicorn", "explore", "the explorer") from None
    config = uvicorn.Config(
        app,
        http=Connection,
        limit_concurrency=MAX_CONNECTIONS,
        use_colors=False,
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def serve(app: ASGIApp, listening: socket.socket) -> None:
    """Serve until interrupted: Ctrl-C is the ordinary end."""
    with suppress(KeyboardInterrupt):
        server_of(app).run(sockets=[listening])
