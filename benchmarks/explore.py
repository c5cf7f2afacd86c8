"""How long the explorer takes to answer about a changed Census person: over real HTTP, in a process of its own.

python -m benchmarks.explore [--subject census] [--answers 400]
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from fairbits import Audit, Budget


@contextmanager
def served(run: Path) -> Iterator[tuple[HTTPConnection, str]]:
    """An explorer, and a connection to it that stays open as a browser's does."""
    command = [sys.executable, "-m", "fairbits", "explore", str(run), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        address = urlsplit(process.stdout.readline().strip() if process.stdout else "")
        try:
            yield HTTPConnection(address.hostname or "", address.port), address.query
        finally:
            process.send_signal(signal.SIGINT)


def ask(connection: HTTPConnection, query: str, path: str, question: dict[str, Any] | None = None) -> Any:
    how: dict[str, Any] = {"method": "GET"}
    if question is not None:
        body, kind = json.dumps(question).encode(), {"Content-Type": "application/json"}
        how = {"method": "POST", "body": body, "headers": kind}
    connection.request(url=f"{path}?{query}", **how)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {text.decode()}")
    return json.loads(text)


def changed(codes: list[float], attributes: list[dict[str, Any]], rng: np.random.Generator) -> list[float]:
    """The same person with another value of one attribute."""
    place = int(rng.integers(len(codes)))
    attribute = attributes[place]
    choices = [code for code, _ in attribute["choices"]] if "choices" in attribute else None
    code = rng.choice(choices) if choices else rng.integers(attribute["low"], attribute["high"], endpoint=True)
    return [*codes[:place], float(code), *codes[place + 1 :]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subject", default="census")
    parser.add_argument("--answers", type=int, default=400)
    args, _ = parser.parse_known_args()
    rng = np.random.default_rng(0)
    print("\n| question | median ms | 95 % below, ms | asked for |\n| --- | --: | --: | --- |")
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        Audit.of(args.subject).search(budget=Budget(evaluations=20_000), out=run)
        with served(run) as (connection, query):
            start = ask(connection, query, "/start")
            layers, codes = start["layers"], start["people"][0]["codes"]
            for what, holds in (("a changed person", 0), ("a changed person, another neuron held each time", 1)):
                taken = []
                for _ in range(args.answers):
                    codes = changed(codes, start["attributes"], rng)
                    layer = layers[int(rng.integers(len(layers)))]
                    hold = {"layer": layer["layer"], "neuron": int(rng.integers(layer["width"])), "at": "max"}
                    question = {"codes": codes, "layer": layer["layer"], "hold": [hold] * holds}
                    begin = time.perf_counter()
                    ask(connection, query, "/answer", question)
                    taken.append(1000 * (time.perf_counter() - begin))
                asked = "under 50 ms at the median" if not holds else ""
                print(f"| {args.subject}: {what} | {np.median(taken):.1f} | {np.quantile(taken, 0.95):.1f} | {asked} |")


if __name__ == "__main__":
    main()
