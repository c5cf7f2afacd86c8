"""A deployed service as a model.

The contract: POST {"rows": [{"age": 3, "job": "Tech"}, …]} is answered with 200 and {"scores": [0.12, …]}, one number
per row: the probability of the favourable class (of the other one where ``score_of`` names it), or the predicted value.
Labels go out as text, numbers as numbers, a missing value as null. 429 and 5xx answers, refused and broken connections
are tried again, after a pause that doubles (or as long as Retry-After says, up to LONGEST_PAUSE); silence is tried once
more. Redirects are not followed: they could carry the credentials elsewhere.

How many requests are under way and how many rows each has is found by asking (:class:`Pace`): both grow while all goes
well, within ``concurrency`` and ``batch``. What goes wrong with a request larger than any that was
answered is asked again in smaller ones. Scores come back in the order of the rows, whatever the pace.

A service may be hostile. ``timeout`` is for a whole request, from the first packet to the last byte of the answer,
however slowly they come. An answer is read piece by piece and given up once it is longer than scores can be. What it
says must be JSON of exactly that shape.

Which secret it gets: the one that was granted for its host, and no other. A subject file may say which environment
variable it would like (``authorization_env``) and which header it belongs to (``credential_header``). It gets it
only if the same name stands in ``--credential NAME``, for the host that the grant names (``NAME@https://host``) or,
without one, for the host of the model that the command is about.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import lazy_loader
import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Decoder, Schema
from fairbits.errors import ModelError, OptionError, foreign, reason
from fairbits.models.base import Array, needed
from fairbits.models.black_box import BlackBox
from fairbits.models.options import BATCH, ModelOptions
from fairbits.models.outputs import Loaded, plain_reading
from fairbits.text import shortened

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = lazy_loader.load("asyncio")  # every command knows endpoints, few ask one

#: Rows in the first requests (JSON of about 100 kB), and in the largest unless ``batch`` says otherwise.
_ROWS, _MOST_ROWS = 512, 16_384
#: Requests under way at first; no call is cut into pieces of fewer rows than this to keep them all busy.
_REQUESTS, _FEWEST_ROWS = 2, 64
#: Seconds: requests that take longer do not become larger.
_SOON = 1.0
#: Rounds of answers after which one request more than a busy service took is tried again.
_PATIENCE = 100
#: Seconds: no pause between two tries is longer, and a service that asks for more is given up.
LONGEST_PAUSE = 30.0
#: An answer may have so many bytes, and so many more for each row: a score has about twenty.
BYTES, BYTES_PER_ROW = 65_536, 1_024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PORTS = {"http": 80, "https": 443}
#: How often in a row a service may keep silent until the time-out before it is given up.
_SILENCES = 2


def from_url(url: str, schema: Schema | None, options: ModelOptions) -> Loaded:
    """The service at an address as a model."""
    if schema is None:
        raise ModelError(
            f"the endpoint {url!r} needs the schema of its rows; use load_with_encoding or a subject.toml."
        )
    decoder = Decoder(schema, options.columns)
    return Loaded(Endpoint(url, decoder, options), decoder.encoding, notes=secret_note(url, options))


Answer = TypeVar("Answer")


class Pace:
    """How many requests are under way and how many rows each has.

    Both grow while the service answers, the rows only while it answers soon; requests halve when it has enough, and for
    a good while there are then fewer than that.
    """

    def __init__(self, most_requests: int, most_rows: int):
        self.requests, self._allowed, self._most = min(_REQUESTS, most_requests), most_requests, most_requests
        self.rows, self._most_rows = min(_ROWS, most_rows), most_rows
        self.proven = 0  # rows of the largest request that was answered
        self._answers, self._rounds, self._pardoned = 0, 0, 0

    def piece(self, rows: int) -> int:
        """How many rows a request has, at most, in a call about so many."""
        return min(self.rows, max(_FEWEST_ROWS, -(-rows // self.requests)))

    def answered(self, rows: int, seconds: float) -> None:
        """A request was answered, so long after it was sent: after a round of them, more and larger ones are tried."""
        self.proven = max(self.proven, rows)
        self._answers += 1
        if self._answers < self.requests:
            return
        self._answers, self._rounds = 0, self._rounds + 1
        if self._rounds % _PATIENCE == 0:
            self._allowed = min(self._allowed + 1, self._most)
        more = self.requests + 1 if self._allowed < self._most else 2 * self.requests
        self.requests = min(more, self._allowed)
        if seconds < _SOON:
            self.rows = min(2 * self.rows, self._most_rows)

    def busy(self) -> None:
        """The service had enough: half as many requests, at most once for those that are under way."""
        if self._pardoned:
            self._pardoned -= 1
            return
        self._pardoned = self.requests - 1
        self._allowed, self.requests = max(1, self.requests - 1), max(1, self.requests // 2)
        self._answers, self._rounds = 0, 0

    def refused(self, rows: int, *, halve: bool) -> bool:
        """A request of so many rows failed; whether smaller ones, of half the rows if need be, are sent instead."""
        fewer = self.proven if 0 < self.proven < rows else halve * rows // 2
        if fewer:
            self.rows = self._most_rows = min(self._most_rows, fewer)
        return fewer > 0


class Client:
    """Asks by HTTP: many requests at a time, no faster than allowed, each tried again while that may help."""

    def __init__(self, url: str, options: ModelOptions, headers: Mapping[str, str], *, rows: int = 1):
        self.pace, self.url, self._options = Pace(options.concurrency, rows), url, options
        self._httpx = needed("httpx", "http", "asking an endpoint")
        self._next = 0.0  # when the next request may go out
        # A packed answer could unpack to anything, and one request is like another: no cookies are kept.
        headers = {"Accept-Encoding": "identity", **headers}
        with foreign(f"the endpoint {url!r} cannot be asked"):
            self._httpx.URL(url)
            self._client = self._httpx.AsyncClient(
                timeout=options.timeout,
                headers=headers,
                limits=self._httpx.Limits(max_connections=options.concurrency),
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = threading.Lock()

    def close(self) -> None:
        with self._opening:
            loop, self._loop = self._loop, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._client.aclose(), loop).result()
            loop.call_soon_threadsafe(loop.stop)

    def send(
        self,
        count: int,
        body: Callable[[slice], bytes],
        limit: Callable[[int], int],
        read: Callable[[slice, bytes], Answer],
    ) -> list[Answer]:
        """Ask about so many rows in requests of a number that suits the service; what is read from each, in order.

        ``limit`` says how many bytes the answer about so many rows may have.
        """
        asked = asyncio.run_coroutine_threadsafe(self._send_all(count, body, limit, read), self._running())
        try:
            return asked.result()
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

    async def _send_all(
        self,
        count: int,
        body: Callable[[slice], bytes],
        limit: Callable[[int], int],
        read: Callable[[slice, bytes], Answer],
    ) -> list[Answer]:
        """Several requests at a time; the first that fails for good ends the others."""
        found: dict[int, Answer] = {}
        waiting = [slice(0, count)] if count else []
        running, done = set[asyncio.Task[None]](), set[asyncio.Task[None]]()

        async def ask(rows: slice) -> None:
            number = rows.stop - rows.start
            try:
                content, seconds = await self._send(body(rows), limit(number), number)
                found[rows.start] = read(rows, content)
                self.pace.answered(number, seconds)
            except ModelError as error:
                if not self.pace.refused(number, halve=isinstance(error, _TooLargeError)):
                    raise
                waiting.append(rows)

        try:
            while waiting or running:
                while waiting and len(running) < self.pace.requests:
                    rows = waiting.pop()
                    stop = min(rows.start + self.pace.piece(count), rows.stop)
                    waiting += [slice(stop, rows.stop)] * (stop < rows.stop)
                    running.add(asyncio.create_task(ask(slice(rows.start, stop))))
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, *done, return_exceptions=True)
        return [found[start] for start in sorted(found)]

    async def _send(self, body: bytes, limit: int, rows: int) -> tuple[bytes, float]:
        """The answer, and how long it took."""
        silences, attempts = 0, self._options.retries + 1
        for attempt in range(1, attempts + 1):
            try:
                return await self._send_once(body, limit)
            except _TryAgainError as error:
                trouble, pause, silent = error.args
                silences = silences + 1 if silent else 0
                self.pace.busy()
            if silences == _SILENCES or attempt == attempts or (silences and 0 < self.pace.proven < rows):
                break
            await asyncio.sleep(min(max(self._options.wait * 2.0 ** min(attempt - 1, 30), pause), LONGEST_PAUSE))
        often = "at the first try" if attempt == 1 else f"in {attempt} tries"
        raise ModelError(
            f"the endpoint {self.url!r} gave no scores {often}; at last {trouble}: check the address, or raise timeout "
            f"and retries under [model]."
        )

    async def _send_once(self, body: bytes, limit: int) -> tuple[bytes, float]:
        now = time.monotonic()
        mine = max(now, self._next)
        self._next = mine + (1 / self._options.rate if self._options.rate else 0.0)
        await asyncio.sleep(mine - now)
        seconds, answering = self._options.timeout, False
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.stream(
                    "POST", self.url, content=body, headers={"Content-Type": "application/json"}
                ) as answer,
            ):
                answering = True
                self._check_status(answer)
                return await self._content_of(answer, limit), time.monotonic() - mine
        except (TimeoutError, self._httpx.TimeoutException):
            if answering:  # it is there, and slow: trying again would take as long
                raise self.bad(
                    f"had not finished its answer after {seconds:g} s; raise timeout under [model], or ask about fewer "
                    f"rows at a time (batch)."
                ) from None
            raise _TryAgainError(f"it did not answer within {seconds:g} s", 0.0, True) from None
        except self._httpx.TransportError as error:
            raise _TryAgainError(shortened(reason(error).rstrip("."), 160), 0.0, False) from None
        except (_TryAgainError, ModelError):
            raise
        except Exception as error:  # noqa: BLE001 - a strange answer can break anything inside the library
            raise self.bad(f"cannot be asked: {reason(error)}") from None

    def bad(self, what: str) -> ModelError:
        """An answer that no further try will mend."""
        return ModelError(f"the endpoint {self.url!r} {what}")

    def _check_status(self, answer: Any) -> None:
        status = answer.status_code
        if status == 429 or status >= 500:
            pause = _seconds(answer.headers.get("retry-after"))
            if pause > LONGEST_PAUSE:
                raise self.bad(
                    f"answered with status {status} and asks for a pause of {pause:,.0f} s, longer than the "
                    f"{LONGEST_PAUSE:g} s that are waited; try again later."
                )
            raise _TryAgainError(f"it answered with status {status}", pause, False)
        if 300 <= status < 400:
            place = shortened(answer.headers.get("location", "nowhere"), 100)
            raise self.bad(
                f"answered with status {status}, which sends on to {place!r}; that is not followed: give the address "
                f"itself."
            )
        if status == 413:
            raise _TooLargeError(f"the endpoint {self.url!r} answered with status 413 to a single row; see its limits.")
        if status != 200:
            raise self.bad(f"answered with status {status}{'; check --credential' * (status in (401, 403))}.")

    async def _content_of(self, answer: Any, limit: int) -> bytes:
        """The body of an answer, and never more of it than the limit; packed ones, which nobody asked for, are
        refused."""
        coding = answer.headers.get("content-encoding", "identity").strip().lower() or "identity"
        if coding != "identity":
            raise self.bad(
                f"answered in the encoding {shortened(coding, 40)!r}, though none was asked for; turn that off."
            )
        found = bytearray()
        async for piece in answer.aiter_raw():
            found += piece
            if len(found) > limit:
                raise self.bad(f"answered more than {limit:,} bytes, far more than the scores take; see what it sends.")
        return bytes(found)


class Endpoint(BlackBox):
    """Scores by HTTP, one number per row by contract; no row is asked about twice while its answer is remembered."""

    def __init__(self, url: str, decoder: Decoder, options: ModelOptions):
        super().__init__(
            self._remembering,
            len(decoder.names),
            name="the endpoint",
            batch=sys.maxsize,  # requests have a size of their own
            reading=plain_reading(options),
            own=True,
            outputs=1,
        )
        most = _MOST_ROWS if options.batch == BATCH else options.batch
        self.service = Client(url, options, headers_for(url, options), rows=most)
        self._decoder, self._most = decoder, options.cache
        self._remembered: OrderedDict[bytes, float] = OrderedDict()

    def fresh_scores(self, inputs: npt.ArrayLike) -> Array:
        """The score of each row of codes, asked anew; answers are not remembered."""
        return self.reading.score(self.ask_all(np.ascontiguousarray(inputs, dtype=np.float64)), self.name)

    def close(self) -> None:
        self.service.close()

    def _remembering(self, rows: Codes) -> npt.NDArray[np.float64]:
        """What the service says about each row, or has said."""
        different, back = np.unique(rows, axis=0, return_inverse=True)
        keys = [row.tobytes() for row in different]
        found = np.array([self._remembered.get(key, math.nan) for key in keys])
        new = np.flatnonzero(np.isnan(found))
        found[new] = self.ask_all(different[new])
        self._remembered.update(zip([keys[i] for i in new], found[new].tolist(), strict=True))
        while len(self._remembered) > self._most:
            self._remembered.popitem(last=False)
        return found[back.ravel()]

    def ask_all(self, rows: Codes) -> npt.NDArray[np.float64]:
        asked = self.service.send(
            len(rows),
            lambda some: json.dumps({"rows": self._decoder.records(rows[some])}, allow_nan=False).encode(),
            lambda n: BYTES + BYTES_PER_ROW * n,
            self._scores_in,
        )
        return np.concatenate([np.empty(0), *asked])

    def _scores_in(self, some: slice, content: bytes) -> npt.NDArray[np.float64]:
        try:
            scores = json.loads(content, object_pairs_hook=_named_once)["scores"]
            if not isinstance(scores, list) or not {type(score) for score in scores} <= {int, float}:
                raise ValueError("no numbers")  # True is an int to Python, and no score
            table = np.array(scores, dtype=np.float64)
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            start = shortened(content[:240].decode("utf-8", "replace"), 60)
            raise self.service.bad(f'answered {start!r}, where {{"scores": [number, …]}} was expected.') from None
        if len(scores) != some.stop - some.start:
            raise self.service.bad(f"was asked about {some.stop - some.start} rows and answered {len(scores)} scores.")
        if not (np.abs(table) <= np.finfo(np.float32).max).all():
            raise self.service.bad("answered scores that are not finite.")
        return table


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())  # an answer that was given up is let go before the loop is
    finally:
        loop.close()


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


class _TooLargeError(ModelError):
    """A request was too large, as the service itself says."""


class _TryAgainError(Exception):
    """A trouble that may pass: what it was, how long the service asks to wait, and whether it kept silent."""


def headers_for(url: str, options: ModelOptions) -> dict[str, str]:
    """The headers of every request, with the secret that was granted for this address."""
    if any(name.lower() == "authorization" for name in options.headers):
        raise OptionError(
            "a secret does not belong in a file: put it in an environment variable, and grant it with --credential."
        )
    secret = secret_for(url, options)
    return {**options.headers, **({} if secret is None else {options.credential_header: secret})}


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


def secret_for(url: str, options: ModelOptions) -> str | None:
    """The value of the header that carries the secret, or None where the endpoint wants none and gets none."""
    wanted, granted = options.authorization_env, options.credential
    if granted is None:
        if wanted is not None:
            raise OptionError(
                f"the endpoint {origin_of(url)} asks for the secret in {wanted!r}, which was not granted; add "
                f"--credential {wanted} if that host is to have it."
            )
        return None
    name, mark, host = granted.partition("@")
    if not _NAME.fullmatch(name):
        raise OptionError(f"--credential is {granted!r}; give NAME or NAME@https://host, NAME a variable.")
    if wanted is not None and wanted != name:
        raise OptionError(f"the endpoint asks for the secret in {wanted!r}, but the one in {name!r} was granted.")
    if mark and origin_of(host) != origin_of(url):
        raise OptionError(
            f"the secret in {name!r} was granted to {origin_of(host)}, but the model is at {origin_of(url)}; it stays "
            f"here."
        )
    secret = os.environ.get(name)
    if not secret:
        raise OptionError(f"the environment variable {name!r} is empty; set it to what the endpoint is to get.")
    if not secret.isprintable() or not secret.isascii():
        raise OptionError(f"the environment variable {name!r} holds characters that no header can carry.")
    return secret


def secret_note(url: str, options: ModelOptions) -> tuple[str, ...]:
    if options.credential is None:
        return ()
    name, header = options.credential.partition("@")[0], options.credential_header
    return (f"the secret in {name} is sent to {origin_of(url)}, in the header {header}.",)


def origin_of(url: str) -> str:
    """Scheme, host and port of an address.

    Examples
    --------
    >>> origin_of("https://Example.org/score"), origin_of("http://[::1]:8080")
    ('https://example.org:443', 'http://[::1]:8080')
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        host, port = None, 0
    if not host or parts.scheme not in _PORTS:
        raise OptionError(f"{url[:200]!r} is no address; write https://host or http://host:port.")
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
