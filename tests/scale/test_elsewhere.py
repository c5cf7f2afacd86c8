"""Runs that lie elsewhere: in an S3-compatible server, and in whatever fsspec knows."""

from __future__ import annotations

import json
import multiprocessing

import pytest
from click.testing import CliRunner

from fairbits.cli.app import app
from fairbits.debug import debug_run
from fairbits.errors import OptionError
from fairbits.scale import ExecutorOptions, processes
from fairbits.search import Budget
from fairbits.store import Run
from fairbits.store.files import place_of
from tests.search.planted import planted_subject

from .work import cases_of, planted_search

pytest.importorskip("upath", reason="universal-pathlib is not installed: pip install 'fairbits[remote]'")


@pytest.fixture(scope="module")
def bucket():
    server = pytest.importorskip("moto.server", reason="moto's S3 server is not installed")
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    running = server.ThreadedMotoServer(port=0)
    running.start()
    host, port = running.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "multiprocessing", multiprocessing)  # a fork would know nothing of the server
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "nobody",
            "AWS_SECRET_ACCESS_KEY": "nothing",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            patch.setenv(name, value)
        import s3fs

        s3fs.S3FileSystem().mkdir("audits")
        yield "s3://audits"
    running.stop()


@pytest.mark.filterwarnings("ignore")
def test_workers_write_to_s3_and_everything_reads_from_there(bucket: str, alone: Run) -> None:
    run = planted_search(f"{bucket}/run", ExecutorOptions(workers=2))
    assert cases_of(run).equals(cases_of(alone))
    assert run.summary["cases"] == len(run) == len(alone)
    assert [case.k for case in run.worst(3)] == [case.k for case in alone.worst(3)]
    debug_run(run, subject=planted_subject(), samples=20, inside=False)
    assert json.loads(place_of(f"{bucket}/run/debug.json").read_text())["samples"] == 20
    shown = CliRunner().invoke(app, ["cases", f"{bucket}/run", "--top", "1", "--where", "k >= 6", "--json"])
    assert json.loads(shown.stdout)[0]["k"] == 6
    with pytest.raises(OptionError, match="is not empty"):
        planted_search(f"{bucket}/run", ExecutorOptions(workers=1))


@pytest.mark.filterwarnings("ignore")
def test_a_run_elsewhere_goes_on(bucket: str) -> None:
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 60

    how = {"shards": 3, "budget": Budget(evaluations=4_000)}
    half = planted_search(f"{bucket}/half", ExecutorOptions(workers=1), stop=stop, **how)
    assert half.status == "interrupted"
    assert len(half) > 0
    whole = planted_search(f"{bucket}/half", ExecutorOptions(workers=1), resume=True, **how)
    again = planted_search("memory://again", ExecutorOptions(workers=1), **how)
    assert cases_of(whole).equals(cases_of(again))
    planted_search("memory://again", ExecutorOptions(workers=1), force=True, **how)


def test_addresses_that_mean_nothing() -> None:
    with pytest.raises(OptionError, match="no address of a file system that fsspec knows"):
        Run.open("carrier-pigeon://roof/run")
    with pytest.raises(OptionError, match="does not exist"):
        Run.open("memory://nothing-here")
