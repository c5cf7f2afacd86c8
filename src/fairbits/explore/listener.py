"""Listening on this machine alone, until Ctrl-C; whoever opens a connection must ask, and finish asking, in time."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fairbits.errors import MissingDependencyError, OptionError

try:
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:
    raise MissingDependencyError("uvicorn", "explore", "the explorer") from None

if TYPE_CHECKING:
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


#: Seconds from the opening of a connection, or from the first byte of a further question, to the end of the question.
QUESTION_SECONDS = 10.0


class Connection(H11Protocol):
    """uvicorn's own protocol, which waits for ever for the rest of a request; this one closes the connection."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the deadline of a new connection."""
        super().connection_made(transport)
        self._judge()

    def data_received(self, data: bytes) -> None:
        """Take data, and see whether the request is complete."""
        super().data_received(data)
        self._judge()

    def on_response_complete(self) -> None:
        """The next question may come on the same connection."""
        super().on_response_complete()
        self._judge()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the deadline of a connection that was closed."""
        self._stop()
        super().connection_lost(exc)

    def _judge(self) -> None:
        """A deadline runs while a question is missing or half there; further bytes do not move it."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop()
        elif self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(QUESTION_SECONDS, self.transport.abort)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
