"""A guarded model behind an address: an ASGI application that scores people, and says what is proved of its scores.

``POST /scores`` with ``{"people": [{"age": "30–39", "sex": "Female", …}]}`` gives ``{"scores": […],
"decisions": […]}``; ``GET /`` gives the proof, the attributes and what a decision costs. People are named by
labels, as in the table. Nobody needs to declare a protected value: one that is left out, null or not in the schema gets
the average over twins, as a guard gives it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fairbits.domain import MISSING, Codes, Schema, text_of
from fairbits.errors import FairbitsError, MissingDependencyError, OptionError, SchemaError
from fairbits.repair import Guard, class_values

try:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ImportError:
    raise MissingDependencyError("starlette", "explore", "a guarded endpoint") from None

if TYPE_CHECKING:
    from starlette.types import ASGIApp

#: People, and bytes, of one request.
MAX_PEOPLE, MAX_BYTES = 10_000, 16 * 1024 * 1024
#: Numbers beyond this are shown as they came, not digit by digit.
MAX_WHOLE = 1e15


def guard_app(guard: Guard, *, hosts: Iterable[str] = ("127.0.0.1", "localhost")) -> ASGIApp:
    """The web application that answers with guarded scores."""

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
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_BYTES:
                return JSONResponse({"error": f"the request is longer than {MAX_BYTES:,} bytes."}, 413)
        try:
            document = json.loads(bytes(body))
        except (ValueError, RecursionError):
            return JSONResponse({"error": 'the request is not JSON; send {"people": [{…}]}.'}, 400)
        return JSONResponse(await run_in_threadpool(answer, guard, document))

    routes = [Route("/", about, methods=["GET"]), Route("/scores", scores, methods=["POST"])]
    return Starlette(
        routes=routes,
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))],
        exception_handlers={FairbitsError: _sentence},
    )


def answer(guard: Guard, document: Any) -> dict[str, Any]:
    """Scores, and decisions where there are classes, of the people in a request."""
    people = document.get("people") if isinstance(document, dict) else None
    if not isinstance(people, list) or not people or not all(isinstance(person, dict) for person in people):
        raise OptionError('a request is an object such as {"people": [{"age": "30–39"}]}; people are missing.')
    if len(people) > MAX_PEOPLE:
        raise OptionError(f"the request names {len(people):,} people; send at most {MAX_PEOPLE:,} at a time.")
    schema = guard.schema
    codes = np.stack([_codes(schema, {str(name): _text(value) for name, value in one.items()}) for one in people])
    if schema.regression:
        return {"scores": guard.people_scores(codes).tolist(), "proof": guard.proof}
    # Asked once: decisions are those of the scores beside them, also where a model varies.
    table = guard.people_class_scores(codes)
    decided = schema.rule.most_likely(table)
    found: dict[str, Any] = {"scores": table[:, schema.favourable_index].tolist()}
    classes = class_values(guard.subject)  # with the types of the owner's own labels
    found["decisions"] = [classes[int(index)] for index in decided]
    return {**found, "proof": guard.proof}


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


async def _sentence(_request: Request, error: Exception) -> Response:
    usage = isinstance(error, FairbitsError) and error.exit_code == 2
    return JSONResponse({"error": str(error)}, 422 if usage else 500)
