"""The verdict in MLflow: metrics, parameters and files of a run, and thresholds for its own model validation."""

from __future__ import annotations

from typing import Any

from fairbits.errors import MissingDependencyError
from fairbits.gates.files import gate_text
from fairbits.gates.markdown import gate_markdown
from fairbits.gates.result import GateResult

PREFIX = "fairbits."


def gate_metrics(result: GateResult) -> dict[str, float]:
    """The figures as MLflow calls them: ``fairbits.flip_rate``, ``fairbits.flip_rate.low``, ``….high``, ``….far``."""
    found: dict[str, float] = {}
    for one in result.checks:
        if one.value is None or one.low is None or one.high is None:
            continue
        name = f"{PREFIX}{one.name}"
        far = one.high if one.direction == "max" else one.low
        found |= {name: one.value, f"{name}.low": one.low, f"{name}.high": one.high, f"{name}.far": far}
    return found


def log_gate(result: GateResult) -> None:
    """Log a verdict to the active MLflow run: metrics, thresholds as parameters, a tag, gate.json and gate.md."""
    mlflow = _mlflow("logging a gate's verdict")
    mlflow.log_metrics(gate_metrics(result))
    mlflow.log_params({f"{PREFIX}{one.name}.threshold": one.threshold for one in result.checks})
    mlflow.set_tags({f"{PREFIX}verdict": result.verdict, f"{PREFIX}suite": str(result.suite["id"])})
    mlflow.log_text(gate_text(result), "fairbits/gate.json")
    mlflow.log_text(gate_markdown(result), "fairbits/gate.md")


def validation_thresholds(result: GateResult) -> dict[str, Any]:
    """The policy as ``mlflow.models.MetricThreshold``, by the metrics that it is held against (``….far``).

    Changes against the baseline are metrics of their own, so MLflow needs no second model to validate them.
    """
    _mlflow("thresholds for MLflow")
    from mlflow.models import MetricThreshold

    return {
        f"{PREFIX}{one.name}.far": MetricThreshold(threshold=one.threshold, greater_is_better=one.direction == "min")
        for one in result.checks
    }


def _mlflow(purpose: str) -> Any:
    try:
        import mlflow
    except ImportError:
        raise MissingDependencyError("mlflow", "mlflow", purpose) from None
    return mlflow
