"""A deployed service as a model.

The contract: POST {"rows": [{"age": 3, "job": "Tech"}, …]} is answered with 200 and {"scores": [0.12, …]}, one number
per row: the probability of the favourable class, or the predicted value. Labels go out as text, numbers as numbers, a
missing value as null. 429 and 5xx answers, refused connections and time-outs are tried again, after a pause that
doubles (or as long as Retry-After says). Redirects are not followed: they could carry the credentials elsewhere.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Decoder, Schema
from fairbits.domain.attribute import Codes
from fairbits.errors import MissingDependencyError, ModelError, OptionError
from fairbits.models.blackbox import reason
from fairbits.models.loaded import Loaded
from fairbits.models.options import BATCH, ModelOptions
from fairbits.models.protocols import Array

#: Rows in one request, unless ``batch`` says otherwise: JSON of about 100 kB.
_ROWS = 512
#: No pause between two tries is longer.
_LONGEST = 30.0


def from_url(url: str, schema: Schema | None, options: ModelOptions) -> Loaded:
    """The service at an address."""
    if schema is None:
        raise ModelError(
            f"the endpoint {url!r} needs the schema of its rows; use load_with_encoding or a subject.toml."
        )
    decoder = Decoder(schema, options.columns)
    return Loaded(Endpoint(url, decoder, options), decoder.encoding)


class Endpoint:
    """Scores by HTTP: many requests at a time, no faster than allowed, and no row twice while it is remembered."""

    def __init__(self, url: str, decoder: Decoder, options: ModelOptions):
        try:
            import httpx
        except ImportError:
            raise MissingDependencyError("httpx", "http", "asking an endpoint") from None
        self._httpx = httpx
        self.url = url
        self._decoder = decoder
        self._options = options
        self._rows = _ROWS if options.batch == BATCH else options.batch
        self._remembered: OrderedDict[bytes, float] = OrderedDict()
        self._pace = _Pace(options.rate)
        limits = httpx.Limits(max_connections=options.concurrency)
        try:
            self._client = httpx.Client(timeout=options.timeout, headers=_headers(options), limits=limits)
            httpx.URL(url)
        except (httpx.InvalidURL, ValueError, TypeError, UnicodeError) as error:
            raise ModelError(f"the endpoint {url!r} cannot be asked: {reason(error)}") from None

    @property
    def inputs(self) -> int:
        """How many values a row has."""
        return len(self._decoder.names)

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The score of each row of codes."""
        rows = np.ascontiguousarray(inputs, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.inputs:
            raise ModelError(
                f"the endpoint takes rows of {self.inputs} values, but got an array of shape {rows.shape}."
            )
        different, back = np.unique(rows, axis=0, return_inverse=True)
        keys = [row.tobytes() for row in different]
        found = np.array([self._remembered.get(key, math.nan) for key in keys])
        new = np.flatnonzero(np.isnan(found))
        found[new] = self._ask_all(different[new])
        self._remember([keys[i] for i in new], found[new])
        return found[back.ravel()].astype(np.float32)

    def fresh_scores(self, inputs: npt.ArrayLike) -> Array:
        """The score of each row of codes, asked anew; the answers are not remembered."""
        rows = np.ascontiguousarray(inputs, dtype=np.float64)
        return self._ask_all(rows).astype(np.float32)

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()

    def _ask_all(self, rows: Codes) -> npt.NDArray[np.float64]:
        pieces = [rows[start : start + self._rows] for start in range(0, len(rows), self._rows)]
        if not pieces:
            return np.empty(0)
        with ThreadPoolExecutor(self._options.concurrency) as pool:
            futures = [pool.submit(self._ask, piece) for piece in pieces]
            try:
                return np.concatenate([future.result() for future in futures])
            except BaseException:
                for future in futures:
                    future.cancel()
                raise

    def _ask(self, rows: Codes) -> npt.NDArray[np.float64]:
        body = {"rows": self._decoder.records(rows)}
        trouble, pause = "", self._options.wait
        for attempt in range(self._options.retries + 1):
            if attempt:
                time.sleep(min(pause, _LONGEST))
                pause *= 2
            self._pace.wait()
            try:
                answer = self._client.post(self.url, json=body)
            except self._httpx.TimeoutException:
                trouble = f"it did not answer within {self._options.timeout:g} s"
                continue
            except self._httpx.TransportError as error:
                trouble = reason(error).rstrip(".")
                continue
            if answer.status_code == 429 or answer.status_code >= 500:
                trouble = f"it answered with status {answer.status_code}"
                pause = max(pause, _seconds(answer.headers.get("retry-after")))
                continue
            return self._read(answer, len(rows))
        tries = self._options.retries + 1
        often = "at the first try" if tries == 1 else f"in {tries} tries"
        raise ModelError(
            f"the endpoint {self.url!r} gave no scores {often}; at last {trouble}: check the address, or raise timeout "
            f"and retries under [model]."
        )

    def _read(self, answer: Any, rows: int) -> npt.NDArray[np.float64]:
        if answer.status_code != 200:
            hint = "; check authorization_env" if answer.status_code in (401, 403) else ""
            raise ModelError(f"the endpoint {self.url!r} answered with status {answer.status_code}{hint}.")
        try:
            scores = answer.json()["scores"]
            table = np.array([float(score) for score in scores])
        except (ValueError, TypeError, KeyError, RecursionError):
            start = answer.text[:60] + ("…" if len(answer.text) > 60 else "")
            raise ModelError(
                f'the endpoint {self.url!r} answered {start!r}, where {{"scores": [number, …]}} was expected.'
            ) from None
        if len(table) != rows:
            raise ModelError(f"the endpoint {self.url!r} was asked about {rows} rows and answered {len(table)} scores.")
        if not np.isfinite(table).all():
            raise ModelError(f"the endpoint {self.url!r} answered scores that are not finite.")
        return table

    def _remember(self, keys: list[bytes], scores: npt.NDArray[np.float64]) -> None:
        self._remembered.update(zip(keys, scores.tolist(), strict=True))
        while len(self._remembered) > self._options.cache:
            self._remembered.popitem(last=False)


class _Pace:
    """Lets so many through per second."""

    def __init__(self, rate: float | None):
        self._gap = 0.0 if rate is None else 1 / rate
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        with self._lock:
            now = time.monotonic()
            mine = max(now, self._next)
            self._next = mine + self._gap
        time.sleep(max(0.0, mine - now))


def _headers(options: ModelOptions) -> dict[str, str]:
    headers = dict(options.headers)
    for name in headers:
        if name.lower() == "authorization":
            raise OptionError(
                "a secret does not belong in a file: put it in an environment variable, and that in authorization_env."
            )
    if options.authorization_env is not None:
        secret = os.environ.get(options.authorization_env)
        if not secret:
            raise OptionError(
                f"the environment variable {options.authorization_env!r} is empty; set it to the Authorization header."
            )
        headers["Authorization"] = secret
    return headers


def _seconds(text: str | None) -> float:
    try:
        return max(0.0, float(text or 0))
    except ValueError:
        return 0.0
