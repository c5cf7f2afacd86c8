"""A search over hyper-parameters of the subject's own kind of model: accuracy, group gap and bits at once.

What Fairway (Chakraborty et al., FSE 2020) and Parfait-ML (Tizpaz-Niari et al., ICSE 2022) do, by optuna's
multi-objective tree-structured Parzen estimator. A quarter of the training rows is kept apart for the objectives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairbits.data import EstimatorTrainer, Fitted, NetworkTrainer, Trainer
from fairbits.domain import Codes
from fairbits.errors import CapabilityError, MissingDependencyError, OptionError
from fairbits.repair.groups import group_figures
from fairbits.repair.judgement import answers_of
from fairbits.repair.proposals.lessons import check_rows, trainer_for
from fairbits.repair.proposals.proposer import Planner, Proposal
from fairbits.repair.spaces import describe, network_settings, space_of
from fairbits.subject import variance_explained

TRIALS = 20
#: The share of the training rows that objectives are measured on, and how many of them get twins.
VALIDATED, MEASURED = 0.25, 1_000


@dataclass(frozen=True, slots=True)
class Tuning:
    """A proposal for each trial, numbered in the order in which they were tried."""

    name: ClassVar[str] = "settings"
    trials: int = TRIALS

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Try so many settings; each model that came out of it is proposed."""
        if self.trials < 1:
            raise OptionError(f"trials is {self.trials}; at least one is needed.")
        subject = planner.setting.subject
        training = planner.halves.training
        check_rows(subject, training.labels)
        optuna = _optuna()
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
        if isinstance(self._trainer, NetworkTrainer):
            return network_settings(trial, self._trainer.network)
        return {name: draw(trial) for name, draw in self._space.items()}

    def tried(self, settings: Mapping[str, Any], number: int) -> tuple[Fitted, tuple[float, float, float]]:
        """A model with these settings, and its accuracy, group gap and bits on the rows kept apart."""
        training = self._planner.halves.training
        rows, labels = training.rows[self._learned], training.labels[self._learned]
        found = self._trainer.learned(rows, labels, self._planner.rng(f"tune-{number}"), settings=settings)
        setting = self._planner.setting.about(found)
        judged, truth = training.rows[self._judged], training.labels[self._judged]
        answers = answers_of(found.model, setting.subject, judged)
        evaluation = setting.evaluator(found.model).evaluate(judged[:MEASURED])
        bits = float(evaluation.q_inf.mean())
        schema = setting.subject.schema
        if schema.regression:
            return found, (variance_explained(answers, truth), 0.0, bits)
        favourable = schema.favourable_index
        return found, (
            float((answers == truth).mean()),
            _gap(schema, judged, answers == favourable, truth == favourable),
            bits,
        )


def _gap(schema: Any, rows: Codes, favoured: Any, deserved: Any) -> float:
    """The largest difference in selection rates between the groups of one attribute."""
    figures = group_figures(schema, rows, favoured, deserved)
    return max((g.selection for g in figures if len(g.attributes) == 1 and g.selection is not None), default=0.0)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise MissingDependencyError("optuna", "mitigate", "a search over hyper-parameters") from None
    return optuna
