"""The web applications: a page with three questions and a guard before all of them, and a model behind an address.

The guard lets a request through only if it names this machine as its host (a page elsewhere may have its own name point
here), uses a method that reads, and carries the token that only the address printed on the terminal has.

A guarded model: ``POST /scores`` with ``{"people": [{"age": "30–39", "sex": "Female", …}]}`` gives ``{"scores": […],
"decisions": […]}``; ``GET /`` gives the proof, the attributes and what a decision costs. People are named by labels, as
in the table. Nobody needs to declare a protected value: one that is left out, null or not in the schema gets the
average over twins, as a guard gives it.

Listening on this machine alone, until Ctrl-C; whoever opens a connection must ask, and finish asking, in time.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from fairbits.domain import MISSING, Codes, Schema, text_of
from fairbits.errors import FairbitsError, MissingDependencyError, OptionError, SchemaError
from fairbits.explore.explorer import Explorer, asked_of
from fairbits.explore.page import script, served_page, style
from fairbits.repair import Guard, class_values

try:
    import h11
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
    from starlette.types import ASGIApp
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:
    raise MissingDependencyError.of("starlette or uvicorn", "explore", "the explorer") from None

#: Bytes of a question; a person with a thousand attributes and all neurons held stays far below.
MAX_BYTES = 256 * 1024
#: People of one request to a guarded model, and its bytes.
MAX_PEOPLE, MAX_PEOPLE_BYTES = 10_000, 16 * 1024 * 1024
#: Numbers beyond this are shown as they came, not digit by digit.
MAX_WHOLE = 1e15
_NOWHERE = {404: "there is nothing under this address.", 405: "this address is asked in another way; see the page."}
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
    """The application of the explorer; the work is done beside the loop that listens."""
    files = {
        "/": (served_page(token), "text/html"),
        "/explore.css": (style(), "text/css"),
        "/explore.js": (script("server.js"), "text/javascript"),
    }

    async def fixed(request: Request) -> Response:
        text, kind = files[request.url.path]
        return Response(text, media_type=kind)

    async def start(_request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(explorer.start))

    async def row(request: Request) -> Response:
        text = request.query_params.get("number", "")
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            raise OptionError(f"the row is {text[:40]!r}; give the number of a row.")
        return JSONResponse(await run_in_threadpool(explorer.row, int(text)))

    async def answer(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "a question is sent as application/json.")
        document = await _document(request, MAX_BYTES, "question", 'an object such as {"codes": [3, 40], "hold": []}')
        return JSONResponse(await run_in_threadpool(explorer.answer, asked_of(document, explorer.schema)))

    async def guarded(request: Request, endpoint: RequestResponseEndpoint) -> Response:
        response = _refused(request, token.encode(), own) or await endpoint(request)
        response.headers.update(_HEADERS)  # they keep the page to itself
        return response

    own = frozenset(hosts)
    routes = [*(Route(path, fixed, methods=["GET"]) for path in files), Route("/start", start), Route("/row", row)]
    routes.append(Route("/answer", answer, methods=["POST"]))
    return BaseHTTPMiddleware(Starlette(routes=routes, exception_handlers=_HANDLERS), guarded)


def guard_app(guard: Guard, *, hosts: Iterable[str] = ("127.0.0.1", "localhost")) -> ASGIApp:
    async def about(_request: Request) -> Response:
        schema = guard.schema
        return JSONResponse(
            {
                "proof": guard.proof,
                "k_max_proved": guard.k_max or None,
                "epsilon": guard.epsilon,
                "tau": guard.tau,
                "scores_per_decision": guard.m,
                "attributes": {a.name: list(a.labels) or a.domain_text() for a in schema.attributes},
                "favourable": schema.favourable,
            }
        )

    async def scores(request: Request) -> Response:
        document = await _document(request, MAX_PEOPLE_BYTES, "request", '{"people": [{…}]}')
        return JSONResponse(await run_in_threadpool(guarded_answer, guard, document))

    return Starlette(
        routes=[Route("/", about, methods=["GET"]), Route("/scores", scores, methods=["POST"])],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))],
        exception_handlers=_HANDLERS,
    )


async def _document(request: Request, most: int, what: str, example: str) -> Any:
    """The JSON of a request, of at most so many bytes."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise HTTPException(413, f"the {what} is longer than {most:,} bytes.")
    try:
        return json.loads(bytes(body))
    except (ValueError, RecursionError):
        raise HTTPException(400, f"the {what} is not JSON; send {example}.") from None


def guarded_answer(guard: Guard, document: Any) -> dict[str, Any]:
    """Scores, and decisions where there are classes, of the people in a request."""
    people = document.get("people") if isinstance(document, dict) else None
    if not isinstance(people, list) or not people or not all(isinstance(person, dict) for person in people):
        raise OptionError('a request is an object such as {"people": [{"age": "30–39"}]}; people are missing.')
    if len(people) > MAX_PEOPLE:
        raise OptionError(f"the request names {len(people):,} people; send at most {MAX_PEOPLE:,} at a time.")
    schema = guard.schema
    codes = np.stack([_codes(schema, {str(name): _text(value) for name, value in person.items()}) for person in people])
    if schema.regression:
        return {"scores": guard.people_scores(codes).tolist(), "proof": guard.proof}
    # Asked once: decisions are those of the scores beside them, also where a model varies.
    table = guard.people_class_scores(codes)
    classes = class_values(guard.subject)  # with the types of the owner's own labels
    decisions = [classes[int(index)] for index in schema.rule.most_likely(table)]
    return {"scores": table[:, schema.favourable_index].tolist(), "decisions": decisions, "proof": guard.proof}


def _codes(schema: Schema, person: dict[str, str]) -> Codes:
    """A person's codes; a protected value that is left out or not in the schema is NaN, and stands for nobody's."""
    undeclared = []
    for name in schema.protected:
        try:
            schema[name].code_of(person.get(name, ""))
        except SchemaError:
            undeclared.append(schema.column(name))
            person = {**person, name: schema[name].read(schema[name].first)}
    codes = schema.codes_of(person)
    codes[undeclared] = np.nan
    return codes


def _text(value: Any) -> str:
    """A JSON value as the table's reader would have it; null is a missing one."""
    if value is None:
        return MISSING
    return str(value) if isinstance(value, float) and abs(value) > MAX_WHOLE else text_of(value)


def _refused(request: Request, token: bytes, hosts: frozenset[str]) -> Response | None:
    """The answer to a request that nothing else may look at."""
    named, given = request.headers.getlist("host"), request.query_params.getlist("token")
    if len(named) != 1 or named[0].lower() not in hosts:
        return _refusal(400, "this page answers under its own address only; open the one on the terminal.")
    if request.method not in _METHODS:
        return _refusal(405, "nothing can be changed here; use GET or POST.", {"Allow": ", ".join(_METHODS)})
    if len(given) != 1 or not secrets.compare_digest(given[0].encode("utf-8", "replace"), token):
        return _refusal(403, "the token is missing or wrong; open the address on the terminal as it stands there.")
    return None


def _refusal(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": sentence}, status_code=status, headers=headers)


async def _sentence(_request: Request, error: Exception) -> Response:
    """A question that makes no sense, one that the model failed at, or one that is not answered here."""
    if isinstance(error, HTTPException):
        return _refusal(error.status_code, _NOWHERE.get(error.status_code, error.detail))
    usage = isinstance(error, FairbitsError) and error.exit_code == 2
    return _refusal(422 if usage else 500, str(error))


_HANDLERS: Any = {FairbitsError: _sentence, HTTPException: _sentence}


HOST = "127.0.0.1"
MAX_PORT = 65_535
#: Connections at a time; a browser opens six.
MAX_CONNECTIONS = 100


def listen(port: int = 0) -> socket.socket:
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
    port = listening.getsockname()[1]
    return f"{HOST}:{port}", f"localhost:{port}"


def server_of(app: ASGIApp) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
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
    )


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
        super().connection_made(transport)
        self._judge()

    def handle_events(self) -> None:
        """After data came, and after an answer, when the next question may come on the same connection."""
        super().handle_events()
        self._judge()

    def connection_lost(self, exc: Exception | None) -> None:
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
