"""A deployed service as a model.

The contract: POST {"rows": [{"age": 3, "job": "Tech"}, …]} is answered with 200 and {"scores": [0.12, …]}, one number
per row: the probability of the favourable class (of the other one where ``score_of`` names it), or the predicted value.
Labels go out as text, numbers as numbers, a missing value as null. 429 and 5xx answers, refused and broken connections
are tried again, after a pause that doubles (or as long as Retry-After says, up to LONGEST_PAUSE); silence is tried once
more. Redirects are not followed: they could carry the credentials elsewhere.

A service may be hostile. ``timeout`` is for a whole request, from the first packet to the last byte of the answer,
however slowly they come. An answer is read piece by piece and given up once it is longer than scores can be, packed or
unpacked. What it says must be JSON of exactly that shape.
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Decoder, Schema
from fairbits.errors import MissingDependencyError, ModelError, OptionError
from fairbits.models.base import Array
from fairbits.models.black_box import BlackBox, reason
from fairbits.models.credentials import secret_for, secret_note
from fairbits.models.http_answer import BadAnswerError, content_of, scores_in
from fairbits.models.options import BATCH, ModelOptions
from fairbits.models.outputs import Loaded, plain_reading
from fairbits.text import shortened

if TYPE_CHECKING:
    import asyncio
    from http.cookiejar import CookieJar
else:
    asyncio = lazy_loader.load("asyncio")  # every command knows endpoints, few ask one

#: Rows in one request, unless ``batch`` says otherwise: JSON of about 100 kB.
_ROWS = 512
#: Seconds: no pause between two tries is longer, and a service that asks for more is given up.
LONGEST_PAUSE = 30.0
#: An answer may have so many bytes, and so many more for each row: a score has about twenty.
BYTES, BYTES_PER_ROW = 65_536, 1_024
#: How often in a row a service may keep silent until the time-out before it is given up.
_SILENCES = 2


def from_url(url: str, schema: Schema | None, options: ModelOptions) -> Loaded:
    """The service at an address as a model."""
    if schema is None:
        raise ModelError(
            f"the endpoint {url!r} needs the schema of its rows; use load_with_encoding or a subject.toml."
        )
    decoder = Decoder(schema, options.columns)
    endpoint = Endpoint(_Service(url, decoder, options), options)
    return Loaded(endpoint, decoder.encoding, notes=secret_note(url, options))


class Endpoint(BlackBox):
    """Scores by HTTP, one number per row by contract; answers are remembered."""

    def __init__(self, service: _Service, options: ModelOptions):
        every = sys.maxsize  # the service makes requests of its own size
        super().__init__(
            service.ask,
            len(service.decoder.names),
            name="the endpoint",
            batch=every,
            reading=plain_reading(options),
            own=True,
            outputs=1,
        )
        self.service = service

    def fresh_scores(self, inputs: npt.ArrayLike) -> Array:
        """The score of each row of codes, asked anew; answers are not remembered."""
        rows = np.ascontiguousarray(inputs, dtype=np.float64)
        return self.reading.score(self.service.ask_all(rows), self.name)

    def close(self) -> None:
        """Close the connections."""
        self.service.close()


class _Service:
    """Asks by HTTP: many requests at a time, no faster than allowed, and no row twice while it is remembered."""

    def __init__(self, url: str, decoder: Decoder, options: ModelOptions):
        try:
            import httpx
            import tenacity
        except ImportError as error:
            raise MissingDependencyError(error.name or "httpx", "http", "asking an endpoint") from None
        self._httpx, self._tenacity = httpx, tenacity
        self.url = url
        self.decoder = decoder
        self._options = options
        self._rows = _ROWS if options.batch == BATCH else options.batch
        self._remembered: OrderedDict[bytes, float] = OrderedDict()
        self._pace = _Pace(options.rate)
        limits = httpx.Limits(max_connections=options.concurrency)
        # Unpacking is counted here, byte by byte; httpx would unpack a whole piece, whatever becomes of it.
        headers = {"Accept-Encoding": "identity"} | _headers(url, options)
        try:
            httpx.URL(url)
            self._client = httpx.AsyncClient(
                timeout=options.timeout, headers=headers, limits=limits, cookies=_no_cookies()
            )
        except (httpx.InvalidURL, ValueError, TypeError, UnicodeError) as error:
            raise ModelError(f"the endpoint {url!r} cannot be asked: {reason(error)}") from None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = threading.Lock()

    def ask(self, rows: Codes) -> npt.NDArray[np.float64]:
        """What the service says about each row, or has said."""
        different, back = np.unique(rows, axis=0, return_inverse=True)
        keys = [row.tobytes() for row in different]
        found = np.array([self._remembered.get(key, math.nan) for key in keys])
        new = np.flatnonzero(np.isnan(found))
        found[new] = self.ask_all(different[new])
        self._remember([keys[i] for i in new], found[new])
        return found[back.ravel()]

    def close(self) -> None:
        """Close the connections."""
        with self._opening:
            loop, self._loop = self._loop, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._client.aclose(), loop).result()
            loop.call_soon_threadsafe(loop.stop)

    def ask_all(self, rows: Codes) -> npt.NDArray[np.float64]:
        """What the service says about each row now."""
        pieces = [rows[start : start + self._rows] for start in range(0, len(rows), self._rows)]
        if not pieces:
            return np.empty(0)
        asked = asyncio.run_coroutine_threadsafe(self._ask_pieces(pieces), self._running())
        try:
            return np.concatenate(asked.result())
        except BaseException:
            asked.cancel()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        """The loop that talks to the service, in a thread of its own: whoever calls may have a loop already.

        A daemon: a program that forgets to close its endpoint can still end.
        """
        with self._opening:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name="fairbits-endpoint", daemon=True).start()
            return self._loop

    async def _ask_pieces(self, pieces: list[Codes]) -> list[npt.NDArray[np.float64]]:
        """Several requests at a time; the first that fails ends the others."""
        found: list[npt.NDArray[np.float64]] = [np.empty(0)] * len(pieces)
        waiting = iter(enumerate(pieces))

        async def work() -> None:
            for place, piece in waiting:
                found[place] = await self._ask(piece)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._options.concurrency, len(pieces))):
                    group.create_task(work())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return found

    async def _ask(self, rows: Codes) -> npt.NDArray[np.float64]:
        again, attempts = self._tenacity, self._options.retries + 1
        body = json.dumps({"rows": self.decoder.records(rows)}, allow_nan=False).encode()
        silent = _Silence()
        tries = again.AsyncRetrying(
            retry=again.retry_if_exception_type(_TryAgainError),
            stop=again.stop_any(again.stop_after_attempt(attempts), silent.too_often),
            wait=_pause_after(self._options.wait),
            reraise=True,
        )
        try:
            return await tries(self._ask_once, body, len(rows))
        except _TryAgainError as error:
            count = tries.statistics["attempt_number"]
            often = "at the first try" if count == 1 else f"in {count} tries"
            raise ModelError(
                f"the endpoint {self.url!r} gave no scores {often}; at last {error.trouble}: check the address, or "
                f"raise timeout and retries under [model]."
            ) from None

    async def _ask_once(self, body: bytes, rows: int) -> npt.NDArray[np.float64]:
        await self._pace.wait()
        seconds, limit = self._options.timeout, BYTES + BYTES_PER_ROW * rows
        answering = False
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.stream(
                    "POST", self.url, content=body, headers={"Content-Type": "application/json"}
                ) as answer,
            ):
                answering = True
                self._check_status(answer)
                content = await content_of(answer, limit)
        except (TimeoutError, self._httpx.TimeoutException):
            if answering:  # it is there, and slow: trying again would take as long
                raise ModelError(
                    f"the endpoint {self.url!r} had not finished its answer after {seconds:g} s; raise timeout under "
                    f"[model], or ask about fewer rows at a time (batch)."
                ) from None
            raise _TryAgainError(f"it did not answer within {seconds:g} s", silent=True) from None
        except self._httpx.TransportError as error:
            raise _TryAgainError(shortened(reason(error).rstrip("."), 160)) from None
        except _TryAgainError:
            raise
        except BadAnswerError as error:
            raise ModelError(f"the endpoint {self.url!r} {error}") from None
        except Exception as error:  # noqa: BLE001 - a strange answer can break anything inside the library
            raise ModelError(f"the endpoint {self.url!r} cannot be asked: {reason(error)}") from None
        return self._read(content, rows)

    def _check_status(self, answer: Any) -> None:
        status = answer.status_code
        if status == 429 or status >= 500:
            pause = _seconds(answer.headers.get("retry-after"))
            if pause > LONGEST_PAUSE:
                raise BadAnswerError(
                    f"answered with status {status} and asks for a pause of {pause:,.0f} s, longer than the "
                    f"{LONGEST_PAUSE:g} s that are waited; try again later."
                )
            raise _TryAgainError(f"it answered with status {status}", pause=pause)
        if 300 <= status < 400:
            place = shortened(answer.headers.get("location", "nowhere"), 100)
            raise BadAnswerError(
                f"answered with status {status}, which sends on to {place!r}; that is not followed: give the address "
                f"itself."
            )
        if status != 200:
            hint = "; check --credential" if status in (401, 403) else ""
            raise BadAnswerError(f"answered with status {status}{hint}.")

    def _read(self, content: bytes, rows: int) -> npt.NDArray[np.float64]:
        try:
            scores = scores_in(content)
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            start = shortened(content[:240].decode("utf-8", "replace"), 60)
            raise ModelError(
                f'the endpoint {self.url!r} answered {start!r}, where {{"scores": [number, …]}} was expected.'
            ) from None
        if len(scores) != rows:
            raise ModelError(
                f"the endpoint {self.url!r} was asked about {rows} rows and answered {len(scores)} scores."
            )
        table = np.array(scores, dtype=np.float64)
        if not (np.abs(table) <= np.finfo(np.float32).max).all():
            raise ModelError(f"the endpoint {self.url!r} answered scores that are not finite.")
        return table

    def _remember(self, keys: list[bytes], scores: npt.NDArray[np.float64]) -> None:
        self._remembered.update(zip(keys, scores.tolist(), strict=True))
        while len(self._remembered) > self._options.cache:
            self._remembered.popitem(last=False)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())  # an answer that was given up is let go before the loop is
    finally:
        loop.close()


def _no_cookies() -> CookieJar:
    """A jar that keeps nothing that a service would like to be told again: one request is like another."""
    from http.cookiejar import CookieJar

    class Empty(CookieJar):
        def extract_cookies(self, response: Any, request: Any) -> None:
            """Keep no cookies, whatever an answer sets."""

    return Empty()


class _TryAgainError(Exception):
    """A trouble that may pass: what it was, and how long the service asks to wait."""

    def __init__(self, trouble: str, *, pause: float = 0.0, silent: bool = False):
        super().__init__(trouble)
        self.trouble, self.pause, self.silent = trouble, pause, silent


class _Silence:
    """Counts the tries in a row that nothing answered."""

    def __init__(self) -> None:
        self._count = 0

    def too_often(self, state: Any) -> bool:
        error = state.outcome.exception()
        self._count = self._count + 1 if getattr(error, "silent", False) else 0
        return self._count >= _SILENCES


def _pause_after(first: float) -> Callable[[Any], float]:
    """Pauses that double, or as long as the service says."""

    def pause(state: Any) -> float:
        asked = getattr(state.outcome.exception(), "pause", 0.0)
        return min(max(first * 2.0 ** min(state.attempt_number - 1, 30), asked), LONGEST_PAUSE)

    return pause


class _Pace:
    """Lets so many through per second."""

    def __init__(self, rate: float | None):
        self._gap = 0.0 if rate is None else 1 / rate
        self._next = 0.0

    async def wait(self) -> None:
        now = time.monotonic()
        mine = max(now, self._next)
        self._next = mine + self._gap
        await asyncio.sleep(max(0.0, mine - now))


def _headers(url: str, options: ModelOptions) -> dict[str, str]:
    headers = dict(options.headers)
    for name in headers:
        if name.lower() == "authorization":
            raise OptionError(
                "a secret does not belong in a file: put it in an environment variable, and grant it with --credential."
            )
    secret = secret_for(url, options)
    if secret is not None:
        headers[options.credential_header] = secret
    return headers


def _seconds(text: str | None) -> float:
    """What Retry-After says: seconds, or a date."""
    said = (text or "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:12])
    try:
        until = parsedate_to_datetime(said)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
    until = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
