"""Kernels compiled by a second process: when one is started, what it compiles, and how an audit waits for it."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from fairbits.data import load_subject
from fairbits.engine import ahead
from fairbits.engine.clock import work_time
from fairbits.engine.kernels import compiler
from fairbits.engine.threads import leaving_a_core, share
from fairbits.search import Budget, Settings, search_subject


@pytest.fixture
def no_process(monkeypatch):
    def refuse(*_arguments, **_options):
        pytest.fail("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)


def test_nothing_is_started_where_all_is_on_disk(monkeypatch, no_process) -> None:
    monkeypatch.setattr(ahead, "is_on_disk", lambda _kernel: True)
    with ahead.compiled_ahead():
        assert not compiler.compiled_elsewhere


@pytest.mark.parametrize("cores", [0, 1])
def test_nothing_is_started_on_one_core(monkeypatch, no_process, cores) -> None:
    monkeypatch.setattr(ahead, "is_on_disk", lambda _kernel: False)
    monkeypatch.setattr(ahead, "available_cores", lambda: cores)
    with ahead.compiled_ahead():
        assert not compiler.compiled_elsewhere


def test_an_audit_goes_on_where_no_process_may_be_started(monkeypatch) -> None:
    def refuse(*_arguments, **_options):
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(ahead, "is_on_disk", lambda _kernel: False)
    monkeypatch.setattr(ahead, "available_cores", lambda: 2)
    with ahead.compiled_ahead():
        assert not compiler.compiled_elsewhere


def test_the_process_ends_with_the_audit(monkeypatch) -> None:
    started = []
    popen = subprocess.Popen

    def start(command, **options):
        started.append(popen([sys.executable, "-c", "import sys; sys.stdin.read()"], **options))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(ahead, "is_on_disk", lambda _kernel: False)
    monkeypatch.setattr(ahead, "available_cores", lambda: 2)
    with contextlib.suppress(KeyError), ahead.compiled_ahead():
        assert len(compiler.compiled_elsewhere) == 1
        raise KeyError("whatever ends the audit")
    assert started[0].returncode is not None
    assert not compiler.compiled_elsewhere


class Lines:
    """Lines that come when they are let."""

    def __init__(self, *lines: str):
        self.lines, self.next = list(lines), threading.Event()

    def __iter__(self):
        for line in self.lines:
            yield line
            self.next.wait(10)
            self.next.clear()


def test_an_audit_waits_for_the_kernel_that_is_being_compiled_and_no_other() -> None:
    lines = Lines("study_chunk\n", "\n")
    progress = ahead._Progress(SimpleNamespace(stdout=lines))
    while progress._current != "study_chunk":
        time.sleep(0.001)
    assert not progress.wait("bound_boxes")
    threading.Timer(0.05, lines.next.set).start()
    begin = time.perf_counter()
    assert progress.wait("study_chunk")
    assert time.perf_counter() - begin >= 0.04


def test_nobody_waits_for_a_process_that_has_ended() -> None:
    progress = ahead._Progress(SimpleNamespace(stdout=io.StringIO("study_chunk\n")))
    while progress.at_work():
        time.sleep(0.001)
    assert not progress.wait("study_chunk")


def test_work_leaves_a_core_to_the_process(monkeypatch) -> None:
    monkeypatch.setattr("fairbits.engine.threads.available_cores", lambda: 3)
    begun, at_work = [], [True]

    def names(threads: int) -> int:
        begun.clear()
        together = threading.Barrier(threads)

        def run(_start: int) -> None:
            begun.append(threading.current_thread().name)
            together.wait(10)  # nobody goes on before so many have begun

        share(run, range(threads), 3)
        return len(set(begun))

    with leaving_a_core(lambda: at_work[0]):
        assert names(2) == 2
        share(lambda _start: begun.append(threading.current_thread().name), range(50), 3)
        assert len(set(begun)) <= 2
        at_work[0] = False
        assert names(3) == 3
    assert names(3) == 3


def test_waiting_is_no_work(monkeypatch) -> None:
    work = work_time()
    monkeypatch.setattr(compiler.KernelCache, "seconds_waited", compiler.KernelCache.seconds_waited + 1000.0)
    assert work_time() - work < -900.0


def test_made_up_people_need_the_same_kernels_as_real_ones(tmp_path) -> None:
    german = load_subject("german")
    for step in ahead._steps():
        step()
    before = {kernel.py_func.__name__: len(kernel.signatures) for kernel in ahead.SLOW}
    settings = Settings(budget=Budget(evaluations=1200), strategy="climb", options={"seeds": 50}, threads=1)
    search_subject(german, settings, tmp_path / "run")
    assert {kernel.py_func.__name__: len(kernel.signatures) for kernel in ahead.SLOW} == before
