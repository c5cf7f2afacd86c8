"""fairbits as an evaluator of MLflow, against a tracking server of its own."""

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fairbits

PROTECTED = ["sex"]
#: A server of runs and files: what it would start besides, to do jobs of language models, takes it as long again.
ALONE = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}


@pytest.fixture(scope="module")
def mlflow():
    """Imported for these tests, and not by every worker that looks for tests."""
    return pytest.importorskip("mlflow")


@pytest.fixture(scope="module")
def server(mlflow, tmp_path_factory):
    if importlib.util.find_spec("flask") is None:
        pytest.skip("the tracking server is in mlflow, not in mlflow-skinny")
    folder = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    store = ["--backend-store-uri", f"sqlite:///{folder}/db.sqlite", "--artifacts-destination", str(folder / "files")]
    command = [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "1",
        *store,
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet, env=os.environ | ALONE) as process:
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/health", timeout=1):  # noqa: S310
                    break
                assert process.poll() is None, "the server ended"
                time.sleep(0.1)
            yield address
        finally:
            process.terminate()


@pytest.fixture
def people():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "income": rng.normal(50, 20, 400).round(1)})
    frame["paid"] = (frame.income + 25 * (frame.sex == "m") + rng.normal(0, 8, 400) > 60).astype(int)
    coding = make_column_transformer((OneHotEncoder(), ["sex"]), (StandardScaler(), ["income"]))
    return frame, make_pipeline(coding, LogisticRegression()).fit(frame[["sex", "income"]], frame.paid)


@pytest.mark.filterwarnings("ignore")
def test_a_model_is_evaluated_on_a_real_server(mlflow, server, people, tmp_path, monkeypatch):
    frame, model = people
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(server)
    with mlflow.start_run() as run:
        mlflow.sklearn.save_model(model, "model", serialization_format="cloudpickle", pip_requirements=[])
        found = mlflow.models.evaluate(
            str(tmp_path / "model"),
            frame,
            targets="paid",
            model_type="classifier",
            evaluators="fairbits",
            evaluator_config={"protected": PROTECTED, "budget": "1s"},
        )
    expected = fairbits.Audit.from_table(model, frame, target="paid", protected=PROTECTED).measure().summary()
    client = mlflow.MlflowClient(server)
    kept = client.get_run(run.info.run_id).data.metrics
    assert kept == pytest.approx(found.metrics)
    assert kept["fairbits.flip_rate"] == expected["flip_rate"] > 0.1
    assert kept["fairbits.flip_rate.low"] == expected["flip_rate_low"]
    assert kept["fairbits.flip_rate_by.sex"] == expected["flip_rate"]
    files = {file.path for file in client.list_artifacts(run.info.run_id, "fairbits/run")}
    assert {"fairbits/run/report.html", "fairbits/run/summary.json"} <= files
    assert found.artifacts["fairbits/measure.json"].content["rows"] == 400
    with mlflow.start_run():  # a function, which gives the favourable class's probability
        asked = {"evaluators": "fairbits", "evaluator_config": {"protected": PROTECTED}}
        again = mlflow.models.evaluate(
            lambda rows: model.predict_proba(rows)[:, 1], frame, targets="paid", model_type="classifier", **asked
        )
        assert again.metrics["fairbits.flip_rate"] == pytest.approx(kept["fairbits.flip_rate"])
        straight = make_pipeline(model[0], LinearRegression()).fit(frame[["sex", "income"]], frame.income)
        mlflow.sklearn.save_model(straight, "straight", serialization_format="cloudpickle", pip_requirements=[])
        value = mlflow.models.evaluate(
            str(tmp_path / "straight"),
            frame[["sex", "income"]].assign(pay=frame.income),
            targets="pay",
            model_type="regressor",
            **asked,
        )
        assert value.metrics["fairbits.k_max"] >= 1
        numbers = np.column_stack([frame.sex == "m", frame.income])  # an array, whose columns MLflow names
        plain = LogisticRegression().fit(numbers, frame.paid)
        mlflow.sklearn.save_model(plain, "plain", serialization_format="cloudpickle", pip_requirements=[])
        config = {"protected": ["feature_1"]}
        place = str(tmp_path / "plain")
        rows = mlflow.models.evaluate(
            place,
            numbers,
            targets=frame.paid.to_numpy(),
            model_type="classifier",
            **asked | {"evaluator_config": config},
        )
        assert rows.metrics["fairbits.flip_rate"] == -fairbits.flip_rate_scorer([0])(plain, numbers) > 0.1


@pytest.mark.filterwarnings("ignore")
def test_what_it_needs(mlflow, people):
    from fairbits.mlflow import FairbitsEvaluator

    frame, _ = people
    assert not FairbitsEvaluator.can_evaluate(model_type="text", evaluator_config={})
    with pytest.raises(fairbits.FairbitsError, match="names no protected column"):
        FairbitsEvaluator().evaluate(dataset=frame, run_id="1", evaluator_config={})
    with pytest.raises(fairbits.FairbitsError, match="predictions alone"):
        FairbitsEvaluator().evaluate(dataset=frame, run_id="1", evaluator_config={"protected": ["sex"]})
