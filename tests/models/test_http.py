"""A real server on this machine that behaves, misbehaves and sulks."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from fairbits.errors import MissingDependencyError, ModelError, OptionError
from fairbits.measure import Evaluator
from fairbits.models import load_model, load_with_encoding

from ..conftest import random_people
from .zoo import SCHEMA

pytest.importorskip("httpx", reason="the http extra is not installed")


def score(row: dict[str, Any]) -> float:
    wish = 0.5 * row["income"] + (row["sex"] == "Male") - 0.4 * (row["job"] == "Farm") + 0.1 * row["age"]
    return float(1 / (1 + np.exp(-wish)))


def behave(rows: list[dict[str, Any]], _: int) -> tuple[int, bytes]:
    return 200, json.dumps({"scores": [score(row) for row in rows]}).encode()


class Server:
    """Answers with ``behaviour(rows, number of the request)`` and remembers what it was asked."""

    def __init__(self) -> None:
        self.behaviour: Callable[[list[dict[str, Any]], int], tuple[int, bytes]] = behave
        self.asked: list[int] = []
        self.headers: list[dict[str, str]] = []
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with owner.lock:
                    owner.asked.append(len(body["rows"]))
                    owner.headers.append(dict(self.headers))
                    owner.at_once += 1
                    owner.most_at_once = max(owner.most_at_once, owner.at_once)
                    number = len(owner.asked)
                status, answer = owner.behaviour(body["rows"], number)
                with owner.lock:
                    owner.at_once -= 1
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                if status == 302:
                    self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/score"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.http.shutdown()
    started.http.server_close()
    started.thread.join()


@pytest.fixture
def asking(server: Server) -> Iterator[Callable[..., Any]]:
    opened = []

    def ask(**options: Any) -> Any:
        model, encoding = load_with_encoding(server.url, SCHEMA, **({"wait": 0.01, "timeout": 5.0} | options))
        opened.append(model)
        return model, encoding

    yield ask
    for model in opened:
        model.close()


def test_scores_by_post_in_batches(server: Server, asking, rng) -> None:
    model, encoding = asking(batch=40, concurrency=3)
    codes = random_people(rng, SCHEMA, 200)
    expected = [score(person) for person in _decoded(codes)]
    np.testing.assert_allclose(model.scores(encoding.encode(codes)), expected, atol=1e-6)
    assert sum(server.asked) == 200
    assert max(server.asked) <= 40
    assert server.most_at_once <= 3
    twins = Evaluator(model, SCHEMA, encoding).scores(codes[:5])
    assert twins.shape == (5, 6)


def _decoded(codes: np.ndarray) -> list[dict[str, Any]]:
    from fairbits import Decoder

    return Decoder(SCHEMA).records(codes)


def test_no_row_is_asked_twice_while_it_is_remembered(server: Server, asking, rng) -> None:
    model, encoding = asking(cache=150)
    codes = encoding.encode(random_people(rng, SCHEMA, 100))
    doubled = np.concatenate([codes, codes])
    first = model.scores(doubled)
    assert sum(server.asked) == 100
    np.testing.assert_array_equal(model.scores(codes), first[:100])
    assert sum(server.asked) == 100
    model.scores(encoding.encode(random_people(rng, SCHEMA, 120)))  # pushes the others out
    model.scores(codes)
    assert sum(server.asked) > 220


def test_what_is_down_for_a_moment_is_tried_again(server: Server, asking, rng) -> None:
    server.behaviour = lambda rows, n: behave(rows, n) if n > 2 else (503 if n == 1 else 429, b"busy")
    model, encoding = asking()
    assert len(model.scores(encoding.encode(random_people(rng, SCHEMA, 10)))) == 10
    assert len(server.asked) == 3


def test_the_rate_is_kept(server: Server, asking, rng) -> None:
    model, encoding = asking(batch=10, rate=50, concurrency=4)
    start = time.monotonic()
    model.scores(encoding.encode(random_people(rng, SCHEMA, 100)))
    assert len(server.asked) == 10
    assert time.monotonic() - start >= 9 / 50


def distinct(count: int) -> np.ndarray:
    """People of whom no two are the same."""
    numbers = np.arange(count)
    return np.column_stack([numbers % 3, numbers % 2, numbers / 64.0, numbers % 2, 5 + numbers % 7])


def equal_to_the_service(model: Any, encoding: Any, codes: np.ndarray) -> None:
    expected = [score(person) for person in _decoded(codes)]
    np.testing.assert_allclose(model.ask_all(encoding.encode(codes)), expected, atol=1e-6)


def test_requests_grow_to_as_many_as_are_allowed(server: Server, asking) -> None:
    def slow(rows: list[dict[str, Any]], n: int) -> tuple[int, bytes]:
        time.sleep(0.01)
        return behave(rows, n)

    server.behaviour = slow
    model, encoding = asking(batch=2, concurrency=6)
    model.service.pace.piece = lambda _: 2  # so that a short test has many requests
    equal_to_the_service(model, encoding, distinct(100))
    assert model.service.pace.requests == 6
    assert server.most_at_once == 6


def test_a_service_that_has_enough_is_asked_less(server: Server, asking) -> None:
    def full(rows: list[dict[str, Any]], n: int) -> tuple[int, bytes]:
        if server.at_once > 3:
            return 503, b"busy"
        time.sleep(0.02)
        return behave(rows, n)

    server.behaviour = full
    model, encoding = asking(retries=12)
    model.service.pace.piece = lambda _: 2
    equal_to_the_service(model, encoding, distinct(300))
    assert 2 <= model.service.pace.requests <= 3


@pytest.mark.parametrize("refusal", [(413, b""), (422, b""), (200, b'{"scores": [0.5]}')])
def test_batches_as_large_as_it_takes(refusal: tuple[int, bytes], server: Server, asking) -> None:
    """A request costs 20 ms whatever its size, and more than 1,500 rows are not taken."""

    def limited(rows: list[dict[str, Any]], n: int) -> tuple[int, bytes]:
        time.sleep(0.02)
        return behave(rows, n) if len(rows) <= 1_500 else refusal

    server.behaviour = limited
    model, encoding = asking(concurrency=1)
    equal_to_the_service(model, encoding, distinct(20_000))
    assert model.service.pace.rows == 1_024
    assert sum(n > 1_500 for n in server.asked) == 1


def test_a_first_request_that_is_too_large_is_halved(server: Server, asking) -> None:
    server.behaviour = lambda rows, n: behave(rows, n) if len(rows) <= 100 else (413, b"")
    model, encoding = asking()
    equal_to_the_service(model, encoding, distinct(1_000))
    server.behaviour = lambda rows, n: (413, b"")
    with pytest.raises(ModelError, match="status 413 to a single row"):
        model.ask_all(encoding.encode(distinct(300)))


def test_the_secret_comes_from_the_environment(server: Server, asking, monkeypatch, rng) -> None:
    monkeypatch.setenv("MY_TOKEN", "Bearer abc")
    monkeypatch.setenv("OTHER", "Bearer other")
    for wrong, said in (
        ({}, "asks for the secret in 'MY_TOKEN', which was not granted"),
        ({"credential": "OTHER"}, "but the one in 'OTHER' was granted"),
        ({"credential": "MY_TOKEN@https://example.org"}, "was granted to https://example.org:443"),
        ({"credential": "MY TOKEN"}, "give NAME or NAME@https://host"),
    ):
        with pytest.raises(OptionError, match=said):
            asking(authorization_env="MY_TOKEN", **wrong)
    assert not server.headers
    here = server.url.rpartition("/")[0]
    asking(credential=f"MY_TOKEN@{here}")
    model, encoding = asking(authorization_env="MY_TOKEN", credential="MY_TOKEN", headers={"X-Team": "risk"})
    model.scores(encoding.encode(random_people(rng, SCHEMA, 3)))
    assert server.headers[0]["Authorization"] == "Bearer abc"
    assert server.headers[0]["X-Team"] == "risk"
    monkeypatch.delenv("MY_TOKEN")
    with pytest.raises(OptionError, match="the environment variable 'MY_TOKEN' is empty"):
        asking(authorization_env="MY_TOKEN", credential="MY_TOKEN")
    with pytest.raises(OptionError, match="a secret does not belong in a file"):
        asking(headers={"authorization": "Bearer abc"})


@pytest.mark.parametrize(
    ("status", "answer", "complaint"),
    [
        (200, b"<html>hello", "answered '<html>hello', where .* was expected"),
        (200, b'{"scores": ["high"]}', "where .* was expected"),
        (200, b'{"scores": null}', "where .* was expected"),
        (200, b"[1, 2]", "where .* was expected"),
        (200, b'{"scores": [0.5]}', "asked about 2 rows and answered 1 scores"),
        (200, b'{"scores": [0.5, NaN]}', "scores that are not finite"),
        (200, b"\xff\xfe\x00", "where .* was expected"),
        (401, b"", "status 401; check credential"),
        (404, b"", "status 404"),
        (302, b"", "status 302"),
        (500, b"", "gave no scores in 3 tries; at last it answered with status 500"),
    ],
)
def test_garbage_is_named(status: int, answer: bytes, complaint: str, server: Server, asking) -> None:
    server.behaviour = lambda rows, n: (status, answer)
    model, encoding = asking(retries=2)
    with pytest.raises(ModelError, match=complaint):
        model.scores(encoding.encode(np.array([[1, 0, 0.0, 0, 5], [2, 0, 0.0, 0, 5]])))


def test_a_time_out_and_a_closed_door(server: Server, asking) -> None:
    someone = np.array([[1, 0, 0.0, 0, 5]])
    server.behaviour = lambda rows, n: (time.sleep(0.5), behave(rows, n))[1]  # type: ignore[func-returns-value]
    model, encoding = asking(timeout=0.05, retries=1)
    with pytest.raises(ModelError, match=r"in 2 tries; at last it did not answer within 0.05 s"):
        model.scores(encoding.encode(someone))
    model, encoding = load_with_encoding("http://127.0.0.1:9/score", SCHEMA, retries=1, wait=0.01)
    with pytest.raises(ModelError, match=r"gave no scores in 2 tries; at last ConnectError"):
        model.scores(encoding.encode(someone))
    model.close()
    with pytest.raises(ModelError, match="needs the schema"):
        load_model(server.url)


def test_without_httpx_the_extra_is_named(monkeypatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'httpx>="):
        load_with_encoding("https://example.org/score", SCHEMA)
