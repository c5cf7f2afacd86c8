"""Own models through `fairbits measure` and `fairbits search`, as a person would use them."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import tomlkit

from fairbits.audit.pipeline import LateError, Shares, StageClock
from fairbits.models import ModelOptions
from fairbits.subject.export import document_of_schema

from ..models.zoo import SCHEMA, fit, perceptron, preprocessing, table
from .calling import fairbits, fairbits_alone

pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture
def write(tmp_path: Path):
    """Writes a subject whose [model] section is as given; the table lies beside it."""
    frame, _, target = table(120)
    frame.assign(hired=target).to_csv(tmp_path / "table.csv", index=False)

    def subject(**model: object) -> Path:
        document = document_of_schema(SCHEMA)
        document["table"].add("path", "table.csv")
        document.add("model", model)
        (tmp_path / "subject.toml").write_text(tomlkit.dumps(document))
        return tmp_path

    return subject


def pipeline(final) -> object:
    from sklearn.pipeline import make_pipeline

    frame, _, target = table(120)
    return fit(make_pipeline(preprocessing(), final), frame, target)


def test_a_scikit_learn_pipeline_from_its_file(write) -> None:
    skops = pytest.importorskip("skops.io", reason="the sklearn extra is not installed")
    folder = write(path="model.skops")
    skops.dump(pipeline(perceptron()), folder / "model.skops")
    done = fairbits("measure", "subject.toml", "--json", cwd=folder)
    assert done.returncode == 2  # two epochs taught it worse than nothing
    assert "it names its classes itself (no, yes): check that the table's labels mean the same" in done.stderr
    done = fairbits("measure", "subject.toml", "--json", "--as-is", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["rows"], found["m"]) == (120, 6)
    assert "decides against the labels" in found["notes"][0]
    assert found["auc_high"] < 0.5
    assert found["k_max"] > 1


def test_a_pickle_runs_only_when_trusted(write) -> None:
    from sklearn.linear_model import LogisticRegression

    folder = write(path="model.pkl")
    (folder / "model.pkl").write_bytes(pickle.dumps(pipeline(LogisticRegression())))
    done = fairbits("measure", "subject.toml", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is a pickle, which runs code when it is opened" in done.stderr
    done = fairbits("measure", "subject.toml", "--trust-pickle", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "next  fairbits audit subject.toml --trust-pickle"
    limits = ("--evaluations", "300", "--strategy", "random", "--json")
    refused = fairbits("search", "subject.toml", *limits, cwd=folder)
    assert refused.returncode == 2
    searched = fairbits("search", "subject.toml", "--trust-pickle", *limits, cwd=folder)
    assert searched.returncode == 0, searched.stderr
    assert json.loads(searched.stdout)["evaluations"] == 300
    limits = ("--strategies", "random", "--budget", "0.2s", "--repeats", "1", "--out", "compared", "--json")
    refused = fairbits("compare", "subject.toml", *limits, cwd=folder)
    assert refused.returncode == 2
    assert "is a pickle, which runs code when it is opened" in refused.stderr
    assert not (folder / "compared").exists()
    compared = fairbits("compare", "subject.toml", "--trust-pickle", *limits, cwd=folder)
    assert compared.returncode == 0, compared.stderr
    assert [row["strategy"] for row in json.loads(compared.stdout)["strategies"]] == ["random"]
    assert "--trust-pickle" in (folder / "compared" / "compare.html").read_text()


def test_every_command_on_the_page_of_a_pickle_can_be_typed(write) -> None:
    from sklearn.linear_model import LogisticRegression

    folder = write(path="model.pkl")
    (folder / "model.pkl").write_bytes(pickle.dumps(pipeline(LogisticRegression())))
    searched = fairbits(
        *("search", "subject.toml", "--trust-pickle", "--evaluations", "300", "--strategy", "random", "--out", "run"),
        cwd=folder,
    )
    assert searched.returncode == 0, searched.stderr
    for words in (
        ("certify", "run", "--budget", "0.2s"),
        ("proxies", "subject.toml", "--out", "run"),
        ("report", "run"),
    ):
        done = fairbits(*words, "--trust-pickle", cwd=folder)
        assert done.returncode == 0, done.stderr
    page = (folder / "run" / "report.md").read_text()
    typed = [line.split() for line in map(str.strip, page.splitlines()) if line.startswith("fairbits ")]
    assert [words[1] for words in typed] == ["search", "certify", "proxies", "report"]
    for words in typed:
        done = fairbits(*words[1:], cwd=folder)
        assert done.returncode == 0, done.stderr


def test_a_stage_that_was_too_late_is_done_with_what_was_granted() -> None:
    granted = ModelOptions(trust_pickle=True, max_seconds=30).typed_grants()
    clock = StageClock(Shares.of(60), Path("my run"), grants=granted)
    with pytest.raises(LateError, match=r"do it with: fairbits repair 'my run' --trust-pickle --max-seconds 30$"):
        clock.until("repair", -1.0)("choosing")


def test_a_function_of_one_s_own(write) -> None:
    folder = write(path="my_rule:decide")
    (folder / "my_rule.py").write_text(
        "def decide(frame):\n    return 0.2 + 0.5 * (frame['sex'] == 'Male') * (frame['income'] > 1)\n"
    )
    done = fairbits_alone("measure", "subject.toml", "--trust-code", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["k_max"] == 2


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (
            {"path": "rules:nan"},
            "scores that are not finite (first: nan for the person in row 14, line 15 of table.csv)",
        ),
        ({"path": "rules:logit"}, "scores outside 0 to 1 (first: 7 for the person in row 1, line 2 of table.csv)"),
        ({"path": "rules:crash"}, "the function 'crash' failed on 120 rows: KeyError: 'height'."),
        ({"path": "rules:short"}, "asked about 120 rows and answered with an array of shape (3,)"),
        ({"path": "rules:nowhere"}, "'rules' has no 'nowhere'; choose from: "),
        ({"path": "rulez:nan"}, "the Python module 'rulez' cannot be imported; install it"),
        ({"path": "model.bin"}, "ending '.bin', which is not known; use .npz, .onnx"),
        ({"path": "gone.onnx"}, "does not exist"),
        ({"path": "rules:nan", "bach": 3}, "unknown key 'bach'; choose from: path,"),
        ({"path": "rules:nan", "batch": 0}, "the model's batch is 0"),
        ({"path": "rules:nan", "input_format": "grass"}, "the model's input_format is 'grass'; choose from: frame"),
        ({"path": "rules:nan", "score_of": "maybe"}, "score_of is 'maybe', which is not a class of the target"),
        ({"path": "rules:nan", "columns": ["agee"]}, "Did you mean 'age'"),
        ({"path": "rules:nan", "trust_pickle": True}, "unknown key 'trust_pickle'"),
    ],
)
def test_one_sentence_and_exit_2(model: dict, complaint: str, write, monkeypatch) -> None:
    folder = write(**model)
    (folder / "model.bin").write_bytes(b"x")
    (folder / "rules.py").write_text(
        "import numpy as np\n"
        "def nan(frame):\n    return np.where(np.arange(len(frame)) == 13, np.nan, 0.5)\n"
        "def logit(frame):\n    return np.full(len(frame), 7.0)\n"
        "def crash(frame):\n    raise KeyError('height')\n"
        "def short(frame):\n    return [1, 2, 3]\n"
    )
    monkeypatch.delitem(sys.modules, "rules", raising=False)
    done = fairbits("measure", "subject.toml", "--trust-code", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_endpoint(write) -> None:
    pytest.importorskip("httpx", reason="the http extra is not installed")
    from ..models.test_http import Server

    server = Server()
    try:
        folder = write(path=server.url, authorization_env="TOKEN", retries=1, wait=0.01)
        done = fairbits("measure", "subject.toml", "--json", cwd=folder, **{"TOKEN": "Bearer x"})
        assert done.returncode == 2
        assert "--credential TOKEN" in done.stderr
        assert not server.headers
        granted = ("--credential", "TOKEN")
        done = fairbits("measure", "subject.toml", "--json", *granted, cwd=folder, **{"TOKEN": "Bearer x"})
        assert done.returncode == 0, done.stderr
        assert np.isfinite(json.loads(done.stdout)["k_mean"])
        assert server.headers[0]["Authorization"] == "Bearer x"
        server.behaviour = lambda rows, n: (200, b"oops")
        done = fairbits("measure", "subject.toml", *granted, cwd=folder, **{"TOKEN": "Bearer x"})
        assert done.returncode == 2
        assert "answered 'oops', where" in done.stderr
    finally:
        server.http.shutdown()
        server.http.server_close()
