"""The command line: how long `--help` and `measure census` take, cold and warm, and how much memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time


def run(*arguments: str, cache: str | None = None) -> tuple[float, float]:
    """Wall seconds of one command in a process of its own, and its peak memory in MB."""
    code = (
        "import resource, subprocess, sys, time\n"
        "begin = time.perf_counter()\n"
        "subprocess.run([sys.executable, '-m', 'fairbits', *sys.argv[1:]], stdout=subprocess.DEVNULL, check=True)\n"
        "print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)\n"
    )
    environment = {**os.environ} if cache is None else {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, env=environment
    )
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes


def in_process() -> float:
    """Seconds to measure all Census rows once everything is loaded and compiled."""
    from fairbits import Audit

    audit = Audit.of("census")
    audit.measure()
    begin = time.perf_counter()
    audit.measure()
    return time.perf_counter() - begin


def main() -> None:
    print("\n| command | seconds | peak MB | asked for |\n| --- | --: | --: | --- |")
    run("--help")
    seconds, megabytes = min(run("--help") for _ in range(5))
    print(f"| `fairbits --help` | {seconds:.2f} | {megabytes:.0f} | under 0.5 s |")
    with tempfile.TemporaryDirectory() as cache:
        seconds, megabytes = run("measure", "census", cache=cache)
        print(f"| `fairbits measure census`, nothing compiled yet | {seconds:.1f} | {megabytes:.0f} | under 15 s |")
        seconds, megabytes = min(run("measure", "census", cache=cache) for _ in range(3))
    print(f"| `fairbits measure census`, again | {seconds:.1f} | {megabytes:.0f} | under 600 MB |")
    print(f"| `Audit.measure()`, loaded and compiled | {in_process():.2f} | | under 2 s |")


if __name__ == "__main__":
    main()
