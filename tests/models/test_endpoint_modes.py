"""What a service can do wrong, on purpose or not: one sentence each, in bounded time and memory.

The server speaks bytes, not HTTP: it can drip, lie about lengths, end half-way and pack bombs.
"""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

from fairbits.errors import ModelError
from fairbits.models import load_with_encoding
from fairbits.text import one_line

from .zoo import SCHEMA

pytest.importorskip("httpx", reason="the http extra is not installed")

PEOPLE = np.array([[1, 0, 0.0, 0, 5], [2, 0, 0.0, 0, 5]])
GOOD = b'{"scores": [0.25, 0.75]}'
TIMEOUT = 0.4
Mode = Callable[[socket.socket, int], None]


def response(body: bytes, *, status: str = "200 OK", headers: dict[str, str] | None = None) -> bytes:
    given = {"Content-Length": str(len(body)), "Connection": "close", **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value)
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def says(body: bytes, **how: object) -> Mode:
    return lambda connection, _: connection.sendall(response(body, **how))  # type: ignore[arg-type]


def drips(before: bytes, drop: bytes, after: bytes = b"") -> Mode:
    def mode(connection: socket.socket, _: int) -> None:
        connection.sendall(before)
        while True:
            connection.sendall(drop)
            time.sleep(TIMEOUT / 10)

    return mode


def floods(header: str, piece: bytes) -> Mode:
    def mode(connection: socket.socket, _: int) -> None:
        connection.sendall(f"HTTP/1.1 200 OK\r\n{header}\r\n\r\n".encode())
        while True:
            connection.sendall(piece)

    return mode


def chunked(piece: bytes) -> bytes:
    return f"{len(piece):x}\r\n".encode() + piece + b"\r\n"


def bomb(megabytes: int, wbits: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    return b"".join(packer.compress(b" " * 2**20) for _ in range(megabytes)) + packer.flush()


def silence(connection: socket.socket, _: int) -> None:
    time.sleep(4 * TIMEOUT)


def hangs_up(connection: socket.socket, _: int) -> None:
    connection.close()


EXPECTED = "where .* was expected"
#: name: (what the server does, what the sentence says, how often it is asked)
MODES: dict[str, tuple[Mode, str, int]] = {
    # time
    "silence": (silence, r"gave no scores in 2 tries; at last it did not answer within 0.4 s", 2),
    "drips a body": (
        drips(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", b" "),
        "had not finished its answer",
        1,
    ),
    "drips chunks": (
        drips(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunked(b" ")),
        "had not finished",
        1,
    ),
    "drips a header": (drips(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"a"), "did not answer within", 2),
    "drips headers": (drips(b"HTTP/1.1 200 OK\r\n", b"X-Slow: a\r\n"), "did not answer within", 2),
    "drips a status": (drips(b"HTTP/1.1 ", b"2"), "did not answer within|RemoteProtocolError", 2),
    "continues for ever": (drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "did not answer within", 2),
    "drips an error page": (drips(b"HTTP/1.1 404 No\r\nContent-Length: 99999\r\n\r\n", b" "), "status 404", 1),
    # size
    "floods chunks": (
        floods("Transfer-Encoding: chunked", chunked(b"[" * 65_536)),
        "answered more than 67,584 bytes",
        1,
    ),
    "floods without a length": (floods("Connection: close", b"0" * 65_536), "answered more than", 1),
    "promises much": (says(GOOD, headers={"Content-Length": "99999999999"}), "RemoteProtocolError", 3),
    "long headers": (floods("X: " + "a" * 200_000, b""), "RemoteProtocolError|did not answer|more than", 3),
    "gzip bomb": (says(bomb(64, 31), headers={"Content-Encoding": "gzip"}), "in the encoding 'gzip'", 1),
    "deflate bomb": (says(bomb(64, 15), headers={"Content-Encoding": "Deflate"}), "in the encoding 'deflate'", 1),
    "gzip in gzip": (
        says(gzip.compress(bomb(64, 31)), headers={"Content-Encoding": "gzip, gzip"}),
        "in the encoding 'gzip, gzip'",
        1,
    ),
    "brotli": (says(b"\x0b\x02\x80", headers={"Content-Encoding": "br"}), "in the encoding 'br'", 1),
    "zstd": (says(b"(\xb5/\xfd", headers={"Content-Encoding": "zstd"}), "in the encoding 'zstd'", 1),
    # shape
    "digits in a text": (says(b'{"scores": "12"}'), EXPECTED, 1),
    "texts of digits": (says(b'{"scores": ["0.2", "0.3"]}'), EXPECTED, 1),
    "names as scores": (says(b'{"scores": {"0.2": 1, "0.3": 2}}'), EXPECTED, 1),
    "truths": (says(b'{"scores": [true, false]}'), EXPECTED, 1),
    "nulls": (says(b'{"scores": [null, 0.2]}'), EXPECTED, 1),
    "lists of lists": (says(b'{"scores": [[0.2], [0.3]]}'), EXPECTED, 1),
    "a bare list": (says(b"[0.2, 0.3]"), EXPECTED, 1),
    "a number": (says(b"12"), EXPECTED, 1),
    "a text": (says(b'"scores"'), EXPECTED, 1),
    "no scores": (says(b'{"error": "no"}'), EXPECTED, 1),
    "scores twice": (says(b'{"scores": [0.2, 0.3], "scores": [0.4, 0.5]}'), EXPECTED, 1),
    "a name twice inside": (says(b'{"scores": [0.2, 0.3], "about": {"a": 1, "a": 2}}'), EXPECTED, 1),
    "400 digits": (says(b'{"scores": [' + b"1" * 400 + b", 1]}"), EXPECTED, 1),
    "5000 digits": (says(b'{"scores": [' + b"1" * 5000 + b", 1]}"), EXPECTED, 1),
    "NaN": (says(b'{"scores": [NaN, 0.1]}'), "not finite", 1),
    "infinity": (says(b'{"scores": [-Infinity, 0.1]}'), "not finite", 1),
    "1e999": (says(b'{"scores": [1e999, 0.1]}'), "not finite", 1),
    "more than float32": (says(b'{"scores": [1e39, 0.1]}'), "not finite", 1),
    "deep": (says(b'{"scores": ' + b"[" * 30_000), EXPECTED, 1),
    "deep and whole": (says(b'{"scores": ' + b"[" * 30_000 + b"]" * 30_000 + b"}"), EXPECTED, 1),
    "two documents": (says(GOOD + GOOD), EXPECTED, 1),
    "cut off": (says(GOOD[:-3]), EXPECTED, 1),
    "nothing": (says(b""), EXPECTED, 1),
    "no UTF-8": (says(b"\xff\xfe\xfd"), EXPECTED, 1),
    "control characters": (says(b"\x1b]52;c;eA==\x07\xe2\x80\xae"), EXPECTED, 1),
    "too few": (says(b'{"scores": [0.2]}'), "asked about 2 rows and answered 1 scores", 1),
    "too many": (says(b'{"scores": [0.2, 0.3, 0.4]}'), "answered 3 scores", 1),
    # status
    "sent elsewhere": (says(b"", status="302 F", headers={"Location": "http://127.0.0.1:1/"}), "not followed", 1),
    "sent nowhere": (says(b"", status="307 T", headers={"Location": "http:true:9/"}), "cannot be asked", 1),
    "sent on here": (says(b"", status="308 P", headers={"Location": "/other"}), "sends on to '/other'", 1),
    "forbidden": (says(b"", status="403 No"), "status 403; check credential", 1),
    "no content": (says(b"", status="204 No"), "status 204", 1),
    "odd status": (says(GOOD, status="999 Odd"), "status 999", 3),
    "busy": (says(b"", status="503 Busy", headers={"Retry-After": "0"}), "in 3 tries; at last .* status 503", 3),
    "busy with an odd cookie": (says(b"", status="503 B", headers={"Set-Cookie": "a=\xff"}), "in 3 tries; at last", 3),
    "busy for days": (says(b"", status="429 Busy", headers={"Retry-After": "86400"}), "a pause of 86,400 s, longer", 1),
    "busy for aeons": (says(b"", status="429 Busy", headers={"Retry-After": "9" * 400}), "longer than the 30 s", 1),
    "busy till tomorrow": (
        says(b"", status="503 B", headers={"Retry-After": format_datetime(datetime.now(UTC) + timedelta(days=1))}),
        "longer than the 30 s",
        1,
    ),
    "busy till never": (says(b"", status="503 B", headers={"Retry-After": "Xyz, 99 Foo 9999999 99:99:99"}), "503", 3),
    # the wire
    "hangs up": (hangs_up, "in 3 tries; at last (RemoteProtocol|Read|Write|Connect)Error", 3),
    "not HTTP": (lambda c, _: c.sendall(b"SSH-2.0-OpenSSH_9.0\r\n"), "RemoteProtocolError", 3),
    "bad length": (says(GOOD, headers={"Content-Length": "-5"}), "RemoteProtocolError", 3),
    "two lengths": (says(GOOD, headers={"Content-Length": "5", "content-length": "9"}), "RemoteProtocolError", 3),
    "bad chunks": (
        says(b"zz\r\n", headers={"Content-Length": "", "Transfer-Encoding": "chunked"}),
        "RemoteProtocol",
        3,
    ),
    "a short body": (says(GOOD[:9], headers={"Content-Length": "24"}), "RemoteProtocolError", 3),
    "a header with a line": (says(GOOD, headers={"X\x00Y": "\x1b[2J"}), "RemoteProtocolError", 3),
}


class Service:
    """Answers every connection with one mode."""

    def __init__(self, mode: Mode):
        self.mode, self.asked = mode, 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}/score"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            self.asked += 1
            threading.Thread(target=self._serve, args=(connection, self.asked), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection:
            try:
                heard = b""
                while b"\r\n\r\n" not in heard:
                    heard += connection.recv(65_536)
                head, _, body = heard.partition(b"\r\n\r\n")
                length = next(
                    int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
                )
                while len(body) < length:
                    body += connection.recv(65_536)
                self.mode(connection, number)
            except OSError:  # the other side has had enough
                return


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[Service, object]]]:
    opened: list[tuple[Service, object]] = []

    def start(mode: Mode, **options: object) -> tuple[Service, object]:
        service = Service(mode)
        given = {"retries": 2, "wait": 0.01, "timeout": TIMEOUT, **options}
        model, _ = load_with_encoding(service.url, SCHEMA, **given)
        opened.append((service, model))
        return service, model

    yield start
    for service, model in opened:
        model.close()  # type: ignore[attr-defined]
        service.listening.close()


@pytest.mark.parametrize("name", MODES)
def test_a_mode(name: str, serve) -> None:
    mode, words, asked = MODES[name]
    slow = name.startswith(("silence", "drips", "continues"))
    service, model = serve(mode, **({} if slow else {"timeout": 15.0}))  # a busy machine is not what is tested
    begin = time.monotonic()
    tracemalloc.start()
    with pytest.raises(ModelError, match=words) as found:
        model.scores(PEOPLE)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.monotonic() - begin < 20
    assert most < 20_000_000
    assert service.asked == asked
    said = str(found.value)
    assert said == one_line(said)
    assert said.endswith(".")
    assert len(said) < 500


FINE = {
    "plain": says(GOOD),
    "more names": says(b'{"model": "v2", "scores": [0.25, 0.75]}'),
    "whole numbers": says(b'{"scores": [0, 1]}'),
    "chunked": says(chunked(GOOD) + b"0\r\n\r\n", headers={"Content-Length": "", "Transfer-Encoding": "chunked"}),
    "UTF-16": says(GOOD.decode().encode("utf-16")),
    "a mark first": says(b"\xef\xbb\xbf" + GOOD),
    "second try": lambda c, n: (hangs_up if n == 1 else says(GOOD))(c, n),
    "retry after a date": lambda c, n: (
        says(b"", status="503 B", headers={"Retry-After": format_datetime(datetime.now(UTC))}) if n == 1 else says(GOOD)
    )(c, n),
}


@pytest.mark.parametrize("name", FINE)
def test_what_is_fine(name: str, serve) -> None:
    _, model = serve(FINE[name], timeout=5.0)
    expected = [0, 1] if name == "whole numbers" else [0.25, 0.75]
    np.testing.assert_array_equal(model.scores(PEOPLE), expected)


def test_a_pause_that_is_asked_for_is_kept(serve) -> None:
    busy = says(b"", status="429 Busy", headers={"Retry-After": "1"})
    service, model = serve(lambda c, n: (busy if n == 1 else says(GOOD))(c, n))
    begin = time.monotonic()
    model.scores(PEOPLE)
    assert time.monotonic() - begin >= 1
    assert service.asked == 2


def test_what_is_asked_is_json_and_unpacked(serve) -> None:
    heard: list[bytes] = []

    def listen(connection: socket.socket, _: int) -> None:
        says(GOOD, headers={"Set-Cookie": "session=1"})(connection, 0)

    service, model = serve(listen)
    original = service._serve

    def spy(connection: socket.socket, number: int) -> None:
        heard.append(connection.recv(65_536, socket.MSG_PEEK))
        original(connection, number)

    service._serve = spy  # type: ignore[method-assign]
    model.scores(PEOPLE)
    head, _, body = heard[0].partition(b"\r\n\r\n")
    assert b"accept-encoding: identity" in head.lower()
    if body:  # it may come in a packet of its own
        assert len(json.loads(body)["rows"]) == 2
    model.fresh_scores(PEOPLE)
    assert b"cookie" not in heard[1].lower()
