"""The web application: one page, three questions, and a guard before all of them.

The guard lets a request through only if it names this machine as its host (a page elsewhere may have its own name point
here), uses a method that reads, and carries the token that only the address printed on the terminal has.

Listening on this machine alone, until Ctrl-C; whoever opens a connection must ask, and finish asking, in time.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fairbits.errors import FairbitsError, MissingDependencyError, OptionError
from fairbits.explore.explorer import Explorer
from fairbits.explore.page import script, served_page, style
from fairbits.explore.people import asked_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


try:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.datastructures import Headers, QueryParams
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ImportError:
    raise MissingDependencyError("starlette", "explore", "the explorer") from None


#: Bytes of a question; a person with a thousand attributes and all neurons held stays far below.
MAX_BYTES = 256 * 1024
_METHODS = ("GET", "HEAD", "POST")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def build_app(explorer: Explorer, *, token: str, hosts: Iterable[str]) -> ASGIApp:
    """The application of the explorer."""
    files = {
        "/": (served_page(token), "text/html"),
        "/explore.css": (style(), "text/css"),
        "/explore.js": (script("server.js"), "text/javascript"),
    }
    questions = _Questions(explorer)
    routes = [Route(path, _fixed(*file), methods=["GET"]) for path, file in files.items()]
    routes += [
        Route("/start", questions.start, methods=["GET"]),
        Route("/row", questions.row, methods=["GET"]),
        Route("/answer", questions.answer, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={FairbitsError: _sentence, 404: _nothing, 405: _not_so})
    return _Guard(app, token, frozenset(hosts))


class _Questions:
    """What the page asks; the work is done beside the loop that listens."""

    def __init__(self, explorer: Explorer):
        self._explorer = explorer

    async def start(self, _request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._explorer.start))

    async def row(self, request: Request) -> Response:
        text = request.query_params.get("number", "")
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            raise OptionError(f"the row is {text[:40]!r}; give the number of a row.")
        return JSONResponse(await run_in_threadpool(self._explorer.gallery.row, int(text)))

    async def answer(self, request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _refusal(415, "a question is sent as application/json.")
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_BYTES:
                return _refusal(413, f"the question is longer than {MAX_BYTES:,} bytes.")
        try:
            document = json.loads(bytes(body))
        except (ValueError, RecursionError):
            return _refusal(400, 'the question is not JSON; send an object such as {"codes": [3, 40], "hold": []}.')
        asked = asked_of(document, self._explorer.schema)
        return JSONResponse(await run_in_threadpool(self._explorer.answer, asked))


class _Guard:
    """Refuses before anything else looks at a request, and adds the headers that keep the page to itself."""

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str]):
        self._app, self._token, self._hosts = app, token.encode(), hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        if scope["type"] != "http":  # no web sockets here
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self._refused(scope)
        await (self._app if refusal is None else refusal)(scope, receive, guarded)

    def _refused(self, scope: Scope) -> Response | None:
        hosts = Headers(scope=scope).getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _refusal(400, "this page answers under its own address only; open the one on the terminal.")
        if scope["method"] not in _METHODS:
            return _refusal(405, "nothing can be changed here; use GET or POST.", {"Allow": ", ".join(_METHODS)})
        given = QueryParams(scope["query_string"]).getlist("token")
        if len(given) != 1 or not secrets.compare_digest(given[0].encode("utf-8", "replace"), self._token):
            return _refusal(403, "the token is missing or wrong; open the address on the terminal as it stands there.")
        return None


def _fixed(text: str, kind: str) -> Any:
    async def endpoint(_request: Request) -> Response:
        return Response(text, media_type=kind)

    return endpoint


def _refusal(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": sentence}, status_code=status, headers=headers)


async def _sentence(_request: Request, error: Exception) -> Response:
    """A question that makes no sense, or one that the model failed at."""
    usage = isinstance(error, FairbitsError) and error.exit_code == 2
    return _refusal(422 if usage else 500, str(error))


async def _nothing(_request: Request, _error: Exception) -> Response:
    return _refusal(404, "there is nothing under this address.")


async def _not_so(_request: Request, _error: Exception) -> Response:
    return _refusal(405, "this address is asked in another way; see the page.")


try:
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:
    raise MissingDependencyError("uvicorn", "explore", "the explorer") from None


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
