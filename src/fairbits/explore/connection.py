"""One connection to the explorer, with a deadline: whoever opens one must ask, and finish asking, in time."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

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
