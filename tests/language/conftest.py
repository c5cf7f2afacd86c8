"""An endpoint that speaks OpenAI's protocol, and answers as it is told."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

#: What a fake model makes of a prompt: the probabilities of its first words, or what it says.
Mind = Callable[[str], dict[str, float] | str]
PEOPLE = "amount,purpose\n5000,a car\n12000,a kitchen\n8000,school fees\n20000,a 10% share\n"
TEMPLATE = "{person} asks for {amount} dollars for {purpose}. Answer yes or no."


def wary_of_women(prompt: str) -> dict[str, float]:
    """Half as likely a yes for the names that stand for women."""
    low = any(name in prompt for name in ("Ann", "Eve", "Mia", "Zoe"))
    return {" Yes": 0.3, "yes": 0.1, " no": 0.4} if low else {"Yes": 0.6, "No": 0.2}


class FakeModel:
    """A language model that a test thought up, and how it was asked."""

    def __init__(self, mind: Mind):
        self.mind, self.asked = mind, list[dict[str, Any]]()
        self.headers = list[dict[str, str]]()
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.asked.append(body)
                model.headers.append(dict(self.headers))
                content = json.dumps(model.answer(body)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Be quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        found = self.mind(body["messages"][-1]["content"])
        usage = {"prompt_tokens": 20, "completion_tokens": 1}
        if isinstance(found, str):
            return {"choices": [{"message": {"content": found}}], "usage": usage}
        top = [{"token": token, "logprob": math.log(p)} for token, p in found.items()]
        message = {"content": top[0]["token"]}
        logprobs = {"content": [{"token": top[0]["token"], "top_logprobs": top}]} if body.get("logprobs") else None
        return {"choices": [{"message": message, "logprobs": logprobs}], "usage": usage}

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def fake() -> Iterator[Callable[[Mind], FakeModel]]:
    made: list[FakeModel] = []

    def make(mind: Mind) -> FakeModel:
        made.append(FakeModel(mind))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def audit_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes an audit file of a text, with two values of sex in four names each."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE)
    names = 'woman = ["Ann", "Eve", "Mia", "Zoe"]\nman = ["Bob", "Leo", "Max", "Tom"]\n'
    (tmp_path / "names.toml").write_text(f'[sex]\n{names}neutral = ["Kim", "Lou", "Pat"]\n')

    def write(path: str, *, text: str = "", model: str = "", template: str = TEMPLATE) -> Path:
        families = '[text.families.names]\nperson = "names.toml"\n'
        file = tmp_path / "loans.toml"
        file.write_text(
            f'kind = "text"\n[text]\ntemplate = "{template}"\n{text}\n{families}'
            f'[model]\npath = "{path}"\n{model}\n[table]\npath = "people.csv"\n'
        )
        return file

    return write
