"""Who may ask, and how: this machine's own address, reading methods, the token; nonsense gets a sentence."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from fairbits.cli.app import app
from fairbits.errors import FairbitsError, OptionError
from fairbits.explore import app as serving
from fairbits.explore import build_app
from fairbits.explore.app import hosts_of, listen, server_of

from .conftest import HOST, TOKEN, Client

PATHS = ("/", "/explore.js", "/explore.css", "/start", "/row", "/answer", "/elsewhere")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN[:-1], "é"])
def test_no_token_no_answer(client: Client, path: str, token: str) -> None:
    for refused in (client.get(path, params={"token": token}), client.post(path, params={"token": token})):
        assert refused.status_code == 403
        assert "token" in refused.json()["error"]


def test_a_missing_or_doubled_token_is_refused(client: Client) -> None:
    client.params = client.params.remove("token")
    assert client.get("/").status_code == 403
    assert client.get(f"/?token={TOKEN}&token={TOKEN}").status_code == 403
    assert client.get(f"/?token={TOKEN}").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", "", "127.0.0.1:8765.evil.example"]
)
def test_other_hosts_are_refused(client: Client, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 400
    assert client.post("/answer", headers={"Host": host}, json={"codes": [0, 0]}).status_code == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    refused = client.request(method, "/start")
    assert refused.status_code == 405
    assert "POST" in refused.headers["allow"]


def test_reading_and_asking_are_kept_apart(client: Client) -> None:
    assert client.head("/").status_code == 200
    assert client.post("/").status_code == 405
    assert client.get("/answer").status_code == 405


def test_the_page_keeps_to_itself(client: Client) -> None:
    for path in ("/", "/start", "/elsewhere"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
    page = client.get("/").text
    assert page.count("<script") == 1
    assert " style=" not in page
    assert not re.search(r"\son\w+\s*=", page)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ([], "codes are missing"),
        ({"codes": [0, 0], "sql": 1}, "unknown key 'sql'"),
        ({"codes": [0]}, "2 values"),
        ({"codes": "0,0"}, "2 values"),
        ({"codes": [9, 0]}, "'job' takes 0 to 3"),
        ({"codes": [0.5, 0]}, "whole numbers"),
        ({"codes": [0, "<script>"]}, "'hours' takes 0 to 9"),
        ({"codes": [0, None]}, "got nothing"),
        ({"codes": [0, True]}, "give a number"),
        ({"codes": [0, 10**400]}, "got inf"),
        ({"codes": [0, 0], "hold": 3}, "list of neurons"),
        ({"codes": [0, 0], "hold": [3]}, "looks like"),
        ({"codes": [0, 0], "hold": [{"layer": 9, "neuron": 0, "at": "zero"}]}, "layer 9"),
        ({"codes": [0, 0], "hold": [{"layer": 1, "neuron": 12, "at": "zero"}]}, "neuron 12"),
        ({"codes": [0, 0], "hold": [{"layer": 1, "neuron": 0, "at": "low"}]}, "held at 'low'"),
        ({"codes": [0, 0], "hold": [{"layer": 1, "neuron": 0, "at": "zero"}] * 2}, "held twice"),
        ({"codes": [0, 0], "layer": 5}, "layer 5"),
        ({"codes": [0, 0], "layer": "1"}, "whole number"),
    ],
)
def test_a_malformed_person_gets_a_sentence(client: Client, question: object, words: str) -> None:
    refused = client.post("/answer", json=question)
    assert refused.status_code == 422
    assert words in refused.json()["error"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[" * 60_000, 400),
        (b"\xff\xfe", 400),
        (b'{"codes": [0, NaN]}', 422),
        (b" " * 300_000, 413),
    ],
)
def test_a_malformed_body_gets_a_sentence(client: Client, body: bytes, status: int) -> None:
    refused = client.post("/answer", content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code == status
    assert refused.json()["error"].endswith(".")


def test_only_json_is_read(client: Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert client.post("/answer", content=b"{}", headers={"Content-Type": kind}).status_code == 415


@pytest.mark.parametrize("number", ["", "0", "-1", "x", "1e3", "401", "9" * 5000, "٣"])
def test_rows_that_are_not_there(client: Client, number: str) -> None:
    refused = client.get("/row", params={"number": number})
    assert refused.status_code == 422
    assert "row" in refused.json()["error"]


def test_a_run_that_is_not_there_is_named() -> None:
    with pytest.raises(FairbitsError, match="nowhere"):
        CliRunner().invoke(app, ["explore", "nowhere", "--no-browser"], catch_exceptions=False)


HALF_OPEN = {
    "nothing": b"",
    "half a line": b"GET / HT",
    "half the headers": b"GET / HTTP/1.1\r\nHost: x\r\n",
    "no body": b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
    "half a body": b"POST /answer HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
    "half a chunk": b"POST /answer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{",
    "half a second question": b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT",
}


@pytest.fixture(scope="module")
def port(explorer) -> Iterator[int]:
    """A real server that loses its patience soon."""
    with pytest.MonkeyPatch.context() as patch, listen() as listening:
        patch.setattr(serving, "QUESTION_SECONDS", 0.3)
        server = server_of(build_app(explorer, token=TOKEN, hosts=hosts_of(listening)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join()


@pytest.mark.parametrize("path", ["/../pyproject.toml", "/static/../../app.py", "/%2e%2e/app.py", "//etc/passwd"])
def test_no_path_leads_out(port: int, path: str) -> None:
    """As it is typed: a client would make something else of it before it is sent."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as asking:
        asking.request("GET", f"{path}?token={TOKEN}")
        answer = asking.getresponse()
        assert (answer.status, b"import" in answer.read()) == (404, False)


@pytest.mark.parametrize("how", HALF_OPEN)
def test_half_open_connections_are_closed(port: int, how: str) -> None:
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=20) as half:
        half.sendall(HALF_OPEN[how])
        with contextlib.suppress(ConnectionError):
            while half.recv(65_536):
                pass
    assert 0.25 <= time.monotonic() - begin < 15  # neither refused at once nor waited for


def test_a_drip_does_not_move_the_deadline(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as slow, contextlib.suppress(ConnectionError):
        slow.sendall(b"GET / HTTP/1.1\r\nX: ")
        begin = time.monotonic()
        while time.monotonic() - begin < 15:
            slow.sendall(b"a")
            time.sleep(0.02)
        pytest.fail("it was never closed")


def test_a_connection_that_asks_is_kept(port: int) -> None:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as kept:
        for _ in range(3):
            kept.request("GET", f"/?token={TOKEN}")
            answer = kept.getresponse()
            assert (answer.status, answer.read()[:9]) == (200, b"<!DOCTYPE")


def test_only_this_machine_is_listened_to() -> None:
    with listen() as listening:
        address, port = listening.getsockname()
        assert address == "127.0.0.1"
        assert hosts_of(listening) == (f"127.0.0.1:{port}", f"localhost:{port}")
        assert HOST.startswith(address)
        with pytest.raises(OptionError, match=f"port {port}: .*choose another port"), socket.socket():
            listen(port)
    with pytest.raises(OptionError, match="port is 70000"):
        listen(70_000)
