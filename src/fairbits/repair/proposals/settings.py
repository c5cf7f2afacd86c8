"""A search over hyper-parameters of the subject's own kind of model: accuracy, group gap and bits at once.

What Fairway (Chakraborty et al., FSE 2020) and Parfait-ML (Tizpaz-Niari et al., ICSE 2022) do, by optuna's
multi-objective tree-structured Parzen estimator. A quarter of the training rows is kept apart for the objectives. Which
parameters of a kind of model are searched, and between which ends, is one line for each kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairbits.data import EstimatorTrainer, Fitted, NetworkTrainer, Trainer
from fairbits.errors import CapabilityError, OptionError
from fairbits.models import last_step, needed
from fairbits.repair.choice import Planner
from fairbits.repair.judgement import Half, judge
from fairbits.repair.proposals.mitigators import check_rows, trainer_for
from fairbits.repair.records import Proposal

#: A parameter's range: ("int", low, high), ("log-int", …), ("real", …), ("log", …) or ("one of", values).
Range = tuple[Any, ...]

_FOREST: dict[str, Range] = {
    "n_estimators": ("log-int", 10, 120),
    "max_depth": ("int", 2, 16),
    "min_samples_leaf": ("log-int", 1, 64),
    "max_features": ("one of", ("sqrt", "log2", None)),
}
_BOOSTER: dict[str, Range] = {
    "n_estimators": ("log-int", 10, 200),
    "learning_rate": ("log", 0.01, 0.5),
    "max_depth": ("int", 2, 8),
    "subsample": ("real", 0.5, 1.0),
}
#: By kind of model; one whose classifiers and regressors have the same parameters stands without that ending.
SPACES: dict[str, dict[str, Range]] = {
    "LogisticRegression": {"C": ("log", 1e-3, 1e2), "class_weight": ("one of", (None, "balanced"))},
    "SGDClassifier": {"alpha": ("log", 1e-6, 1e-1), "class_weight": ("one of", (None, "balanced"))},
    "Ridge": {"alpha": ("log", 1e-3, 1e3)},
    "DecisionTreeClassifier": {
        "max_depth": ("int", 2, 16),
        "min_samples_leaf": ("log-int", 1, 64),
        "criterion": ("one of", ("gini", "entropy")),
    },
    "DecisionTreeRegressor": {"max_depth": ("int", 2, 16), "min_samples_leaf": ("log-int", 1, 64)},
    "RandomForest": _FOREST,
    "ExtraTrees": _FOREST,
    "GradientBoosting": _BOOSTER,
    "HistGradientBoosting": {
        "max_iter": ("log-int", 10, 200),
        "learning_rate": ("log", 0.01, 0.5),
        "max_leaf_nodes": ("log-int", 4, 64),
        "l2_regularization": ("log", 1e-3, 10.0),
    },
    "AdaBoostClassifier": {"n_estimators": ("log-int", 10, 200), "learning_rate": ("log", 0.01, 2.0)},
    "MLP": {
        "hidden_layer_sizes": ("one of", ((8,), (16,), (32,), (64,), (16, 8), (32, 16), (64, 32), (32, 16, 8))),
        "alpha": ("log", 1e-6, 1.0),
        "learning_rate_init": ("log", 3e-4, 3e-2),
        "max_iter": ("log-int", 20, 120),
    },
    "SVC": {"C": ("log", 1e-2, 1e2), "gamma": ("one of", ("scale", "auto"))},
    "KNeighborsClassifier": {"n_neighbors": ("log-int", 1, 64), "weights": ("one of", ("uniform", "distance"))},
    "GaussianNB": {"var_smoothing": ("log", 1e-12, 1e-1)},
    "LGBM": {
        "n_estimators": ("log-int", 10, 200),
        "learning_rate": ("log", 0.01, 0.5),
        "num_leaves": ("log-int", 4, 64),
        "min_child_samples": ("log-int", 2, 100),
    },
    "XGB": {**_BOOSTER, "min_child_weight": ("log", 0.1, 20.0)},
    "CatBoost": {
        "iterations": ("log-int", 10, 200),
        "learning_rate": ("log", 0.01, 0.5),
        "depth": ("int", 2, 8),
        "l2_leaf_reg": ("log", 0.1, 20.0),
    },
}


def space_of(estimator: Any) -> dict[str, Range]:
    """The range of each parameter of an estimator (behind its pipeline)."""
    prefix, final = last_step(estimator)
    kind = type(final).__name__
    space = SPACES.get(kind) or SPACES.get(kind.removesuffix("Classifier").removesuffix("Regressor"))
    if space is None:
        raise CapabilityError(
            f"the parameters of {kind!r} that could be searched are not known here; known are {', '.join(SPACES)}."
        )
    return {f"{prefix}{name}": ends for name, ends in space.items()}


def describe(settings: Mapping[str, Any]) -> str:
    """Settings as people read them."""
    return ", ".join(f"{name.split('__')[-1]} {_shown(value)}" for name, value in settings.items())


def _shown(value: Any) -> str:
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"{value:.3g}" if isinstance(value, float) else text


def _drawn(trial: Any, name: str, ends: Range) -> Any:
    """A parameter, drawn in a trial of optuna."""
    kind, low, *high = ends
    if kind == "one of":  # by number: optuna keeps only plain values, and some of these are tuples
        return low[trial.suggest_categorical(name, list(range(len(low))))]
    suggest = trial.suggest_int if kind.endswith("int") else trial.suggest_float
    return suggest(name, low, *high, log=kind.startswith("log"))


TRIALS = 20
#: The share of the training rows that objectives are measured on.
VALIDATED = 0.25


@dataclass(frozen=True, slots=True)
class Tuning:
    """A proposal for each trial, numbered in the order in which they were tried."""

    name: ClassVar[str] = "settings"
    trials: int = TRIALS

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise OptionError(f"trials is {self.trials}; give how many settings are tried, one at least.")

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Try so many settings; each model that came out of it is proposed."""
        subject = planner.setting.subject
        check_rows(subject, planner.halves.training.labels)
        optuna = needed("optuna", "mitigate", "a search over hyper-parameters")
        work = _Trials(planner, trainer_for(subject, own_parameters=True))
        level = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            seed = int(planner.rng(self.name).integers(2**31))
            sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(4, self.trials // 3))
            study = optuna.create_study(directions=["maximize", "minimize", "minimize"], sampler=sampler)
            digits = len(str(self.trials))
            for number in range(1, self.trials + 1):
                planner.watch(f"settings {number} of {self.trials}")
                trial = study.ask()
                settings = work.settings(trial)
                found, objectives = work.tried(settings, number)
                study.tell(trial, objectives)
                yield Proposal(
                    f"tuned-{number:0{digits}d}",
                    f"trained anew with {describe(settings)}",
                    found.model,
                    retrained=True,
                    fitted=found,
                )
        finally:
            optuna.logging.set_verbosity(level)


class _Trials:
    """What all trials share: the rows to learn, the rows that objectives are measured on, and the kind of model."""

    def __init__(self, planner: Planner, trainer: Trainer):
        self._planner, self._trainer = planner, trainer
        training, rng = planner.halves.training, planner.rng("tune-split")
        order = rng.permutation(len(training.rows))
        cut = max(1, round(VALIDATED * len(order)))
        self._judged, self._learned = np.sort(order[:cut]), np.sort(order[cut:])
        if isinstance(trainer, EstimatorTrainer):
            self._space = space_of(trainer.estimator)
        elif not isinstance(trainer, NetworkTrainer):
            raise CapabilityError(f"a model trained {trainer.recipe} has settings that are not known here.")

    def settings(self, trial: Any) -> dict[str, Any]:
        """The next settings to try."""
        if not isinstance(self._trainer, NetworkTrainer):
            return {name: _drawn(trial, name, ends) for name, ends in self._space.items()}
        layers = trial.suggest_int("layers", 1, max(1, min(5, len(self._trainer.network.weights))))
        width = trial.suggest_int("width", 8, 64, log=True)
        return {
            "widths": tuple(max(4, round(width / 2**place)) for place in range(layers)),
            "learning_rate": trial.suggest_float("learning_rate", 3e-4, 1e-2, log=True),
            "updates": trial.suggest_int("updates", 300, 2_000, log=True),
            "batch": trial.suggest_categorical("batch", [64, 128, 256]),
        }

    def tried(self, settings: Mapping[str, Any], number: int) -> tuple[Fitted, tuple[float, float, float]]:
        """A model with these settings, and its accuracy, group gap and bits on the rows kept apart."""
        training = self._planner.halves.training
        rows, labels = training.rows[self._learned], training.labels[self._learned]
        found = self._trainer.learned(rows, labels, self._planner.rng(f"tune-{number}"), settings=settings)
        judged = training.rows[self._judged]
        half = Half(judged[:1], judged, training.labels[self._judged])  # by rows alone: no case is asked for
        figures = judge(found.model, half, self._planner.setting.about(found)).figures
        return found, (figures.accuracy, figures.selection_gap or 0.0, figures.q_inf_mean_rows)
