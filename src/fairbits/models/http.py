"""A deployed service as a model.

The contract: POST {"rows": [{"age": 3, "job": "Tech"}, …]} is answered with 200 and {"scores": [0.12, …]}, one number
per row: the probability of the favourable class (of the other one where ``score_of`` names it), or the predicted value.
Labels go out as text, numbers as numbers, a missing value as null. 429 and 5xx answers, refused and broken connections
are tried again, after a pause that doubles (or as long as Retry-After says, up to LONGEST_PAUSE); silence is tried once
more. Redirects are not followed: they could carry the credentials elsewhere.

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
from fairbits.errors import ModelError, OptionError
from fairbits.models.base import Array, needed
from fairbits.models.black_box import BlackBox, foreign, reason
from fairbits.models.options import BATCH, ModelOptions
from fairbits.models.outputs import Loaded, plain_reading
from fairbits.text import shortened

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = lazy_loader.load("asyncio")  # every command knows endpoints, few ask one

#: Rows in one request, unless ``batch`` says otherwise: JSON of about 100 kB.
_ROWS = 512
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


Answer = TypeVar("Answer")


class Client:
    """Asks by HTTP: many requests at a time, no faster than allowed, each tried again while that may help."""

    def __init__(self, url: str, options: ModelOptions, headers: Mapping[str, str]):
        self._httpx = needed("httpx", "http", "asking an endpoint")
        self.url = url
        self._options = options
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
        """Close the connections."""
        with self._opening:
            loop, self._loop = self._loop, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._client.aclose(), loop).result()
            loop.call_soon_threadsafe(loop.stop)

    def send(
        self,
        count: int,
        body: Callable[[int], bytes],
        limit: Callable[[int], int],
        read: Callable[[int, bytes], Answer],
    ) -> list[Answer]:
        """So many requests, each with its body and the bytes that its answer may have, and what is read from it."""
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
        body: Callable[[int], bytes],
        limit: Callable[[int], int],
        read: Callable[[int, bytes], Answer],
    ) -> list[Answer]:
        """Several requests at a time; the first that fails ends the others."""
        found: dict[int, Answer] = {}
        waiting = iter(range(count))

        async def work() -> None:
            for place in waiting:
                found[place] = read(place, await self._send(body(place), limit(place)))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._options.concurrency, count)):
                    group.create_task(work())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [found[place] for place in range(count)]

    async def _send(self, body: bytes, limit: int) -> bytes:
        silences, attempts = 0, self._options.retries + 1
        for attempt in range(1, attempts + 1):
            try:
                return await self._send_once(body, limit)
            except _TryAgainError as error:
                trouble, pause = error.trouble, error.pause
                silences = silences + 1 if error.silent else 0
            if silences == _SILENCES or attempt == attempts:
                break
            await asyncio.sleep(min(max(self._options.wait * 2.0 ** min(attempt - 1, 30), pause), LONGEST_PAUSE))
        often = "at the first try" if attempt == 1 else f"in {attempt} tries"
        raise ModelError(
            f"the endpoint {self.url!r} gave no scores {often}; at last {trouble}: check the address, or raise timeout "
            f"and retries under [model]."
        )

    async def _send_once(self, body: bytes, limit: int) -> bytes:
        now = time.monotonic()
        mine = max(now, self._next)
        self._next = mine + (1 / self._options.rate if self._options.rate else 0.0)
        await asyncio.sleep(mine - now)
        seconds, answering = self._options.timeout, False
        given = {"content": body, "headers": {"Content-Type": "application/json"}}
        try:
            async with asyncio.timeout(seconds), self._client.stream("POST", self.url, **given) as answer:
                answering = True
                self._check_status(answer)
                return await self._content_of(answer, limit)
        except (TimeoutError, self._httpx.TimeoutException):
            if answering:  # it is there, and slow: trying again would take as long
                raise self._bad(
                    f"had not finished its answer after {seconds:g} s; raise timeout under [model], or ask about fewer "
                    f"rows at a time (batch)."
                ) from None
            raise _TryAgainError(f"it did not answer within {seconds:g} s", silent=True) from None
        except self._httpx.TransportError as error:
            raise _TryAgainError(shortened(reason(error).rstrip("."), 160)) from None
        except (_TryAgainError, ModelError):
            raise
        except Exception as error:  # noqa: BLE001 - a strange answer can break anything inside the library
            raise self._bad(f"cannot be asked: {reason(error)}") from None

    def _bad(self, what: str) -> ModelError:
        """An answer that no further try will mend."""
        return ModelError(f"the endpoint {self.url!r} {what}")

    def _check_status(self, answer: Any) -> None:
        status = answer.status_code
        if status == 429 or status >= 500:
            pause = _seconds(answer.headers.get("retry-after"))
            if pause > LONGEST_PAUSE:
                raise self._bad(
                    f"answered with status {status} and asks for a pause of {pause:,.0f} s, longer than the "
                    f"{LONGEST_PAUSE:g} s that are waited; try again later."
                )
            raise _TryAgainError(f"it answered with status {status}", pause=pause)
        if 300 <= status < 400:
            place = shortened(answer.headers.get("location", "nowhere"), 100)
            raise self._bad(
                f"answered with status {status}, which sends on to {place!r}; that is not followed: give the address "
                f"itself."
            )
        if status != 200:
            raise self._bad(f"answered with status {status}{'; check --credential' * (status in (401, 403))}.")

    async def _content_of(self, answer: Any, limit: int) -> bytes:
        """The body of an answer, and never more of it than the limit; packed ones, which nobody asked for, are
        refused."""
        coding = answer.headers.get("content-encoding", "identity").strip().lower() or "identity"
        if coding != "identity":
            raise self._bad(
                f"answered in the encoding {shortened(coding, 40)!r}, though none was asked for; turn that off."
            )
        found = bytearray()
        async for piece in answer.aiter_raw():
            found += piece
            if len(found) > limit:
                raise self._bad(
                    f"answered more than {limit:,} bytes, far more than the scores take; see what it sends."
                )
        return bytes(found)


class _Service(Client):
    """Scores of rows, no row asked about twice while it is remembered."""

    def __init__(self, url: str, decoder: Decoder, options: ModelOptions):
        super().__init__(url, options, headers_for(url, options))
        self.decoder = decoder
        self.rows_at_once = _ROWS if options.batch == BATCH else options.batch
        self._remembered: OrderedDict[bytes, float] = OrderedDict()

    def ask(self, rows: Codes) -> npt.NDArray[np.float64]:
        """What the service says about each row, or has said."""
        different, back = np.unique(rows, axis=0, return_inverse=True)
        keys = [row.tobytes() for row in different]
        found = np.array([self._remembered.get(key, math.nan) for key in keys])
        new = np.flatnonzero(np.isnan(found))
        found[new] = self.ask_all(different[new])
        self._remembered.update(zip([keys[i] for i in new], found[new].tolist(), strict=True))
        while len(self._remembered) > self._options.cache:
            self._remembered.popitem(last=False)
        return found[back.ravel()]

    def ask_all(self, rows: Codes) -> npt.NDArray[np.float64]:
        """What the service says about each row now."""
        pieces = [rows[start : start + self.rows_at_once] for start in range(0, len(rows), self.rows_at_once)]
        if not pieces:
            return np.empty(0)

        def body(place: int) -> bytes:
            return json.dumps({"rows": self.decoder.records(pieces[place])}, allow_nan=False).encode()

        def limit(place: int) -> int:
            return BYTES + BYTES_PER_ROW * len(pieces[place])

        found = self.send(len(pieces), body, limit, lambda place, content: self._read(content, len(pieces[place])))
        return np.concatenate(found)

    def _read(self, content: bytes, rows: int) -> npt.NDArray[np.float64]:
        try:
            document = json.loads(content, object_pairs_hook=_named_once)
            scores = [_number(score) for score in document["scores"]] if isinstance(document["scores"], list) else None
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            scores = None
        if scores is None:
            start = shortened(content[:240].decode("utf-8", "replace"), 60)
            raise self._bad(f'answered {start!r}, where {{"scores": [number, …]}} was expected.')
        if len(scores) != rows:
            raise self._bad(f"was asked about {rows} rows and answered {len(scores)} scores.")
        table = np.array(scores, dtype=np.float64)
        if not (np.abs(table) <= np.finfo(np.float32).max).all():
            raise self._bad("answered scores that are not finite.")
        return table


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())  # an answer that was given up is let go before the loop is
    finally:
        loop.close()


def _number(score: Any) -> float:
    if type(score) not in (int, float):  # True is an int to Python, and no score
        raise ValueError("no number")
    return float(score)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


class _TryAgainError(Exception):
    """A trouble that may pass: what it was, and how long the service asks to wait."""

    def __init__(self, trouble: str, *, pause: float = 0.0, silent: bool = False):
        super().__init__(trouble)
        self.trouble, self.pause, self.silent = trouble, pause, silent


def headers_for(url: str, options: ModelOptions) -> dict[str, str]:
    """The headers of every request, with the secret that was granted for this address."""
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
    """A note on which secret is sent where."""
    if options.credential is None:
        return ()
    name = options.credential.partition("@")[0]
    return (f"the secret in {name} is sent to {origin_of(url)}, in the header {options.credential_header}.",)


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
