"""fairbits as an evaluator of MLflow: ``mlflow.models.evaluate(model, data, evaluators="fairbits", …)``.

MLflow finds it by an entry point of the package. It logs the figures of a measurement with their intervals and, where a
budget is given, the whole audit with its page. ``evaluator_config`` holds arguments of ``fairbits.Audit.from_table``
(``protected`` is needed) and ``budget``, such as "60s".
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow.models.evaluation import EvaluationResult, ModelEvaluator
from mlflow.models.evaluation.artifacts import JsonEvaluationArtifact

from fairbits.audit import Audit
from fairbits.errors import OptionError
from fairbits.gates import PREFIX

#: Figures of a measurement that are logged, with `_low` and `_high` where they have an interval.
FIGURES = ("q_inf_mean", "q_1_mean", "k_mean", "split_rate", "flip_rate", "flip_rate_supported")
MAXIMA = ("k_max", "q_inf_max", "bits_limit")


class FairbitsEvaluator(ModelEvaluator):  # type: ignore[misc]
    """Bits of protected information, flips and the page, as metrics and artifacts of an MLflow run."""

    @classmethod
    def can_evaluate(cls, *, model_type: str, evaluator_config: Any = None, **_: Any) -> bool:  # noqa: ARG003
        """Whether a model of this type can be audited: classifiers and regressors."""
        return model_type in ("classifier", "regressor")

    def evaluate(
        self, *, dataset: Any, run_id: str, evaluator_config: dict[str, Any] | None = None, model: Any = None, **_: Any
    ) -> EvaluationResult:
        """Measure the model, log figures and files, and give them back."""
        config = dict(evaluator_config or {})
        budget = config.pop("budget", None)
        if not config.get("protected"):
            raise OptionError('evaluator_config names no protected column; say for example {"protected": ["sex"]}.')
        if model is None:
            raise OptionError("MLflow gave predictions alone; twins have to be asked about, so give the model itself.")
        table = pd.DataFrame(dataset.features_data, columns=dataset.feature_names).copy()  # MLflow takes arrays, too
        target = dataset.targets_name or "target"  # where MLflow has no name for the labels
        table[target] = dataset.labels_data
        audit = Audit.from_table(asked(model), table, target=target, **config)
        summary = audit.measure().summary()
        metrics = {f"{PREFIX}{name}": float(summary[name]) for name in MAXIMA}
        for name in (one for one in FIGURES if summary[one] is not None):  # nothing flips where a number is predicted
            ends = {f"{PREFIX}{name}.{end}": float(summary[f"{name}_{end}"]) for end in ("low", "high")}
            metrics |= {f"{PREFIX}{name}": float(summary[name])} | ends
        metrics |= {f"{PREFIX}flip_rate_by.{name}": rate for name, rate in (summary["flip_rate_by"] or {}).items()}
        client = mlflow.MlflowClient()
        for name, value in metrics.items():
            client.log_metric(run_id, name, value)
        client.log_dict(run_id, summary, "fairbits/measure.json")
        artifact = JsonEvaluationArtifact(uri=f"runs:/{run_id}/fairbits/measure.json", content=summary)
        if budget is not None:
            with tempfile.TemporaryDirectory() as folder:
                page = audit.audit(out=Path(folder) / "run", budget=budget).page
                client.log_artifacts(run_id, str(page.parent), "fairbits/run")
        return EvaluationResult(metrics=metrics, artifacts={"fairbits/measure.json": artifact}, run_id=run_id)


def asked(model: Any) -> Any:
    """The estimator inside MLflow's wrapper, which gives probabilities; the wrapper itself where it hides none."""
    try:
        return model.get_raw_model()
    except (NotImplementedError, AttributeError):  # a function has none
        return model.predict
