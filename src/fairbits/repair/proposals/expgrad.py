"""Exponentiated gradient: a game between a learner and a bound on group gaps (Agarwal et al., ICML 2018; fairlearn).

Its answer is a lottery over models. A lottery gives the same person different decisions on different days, so what is
proposed here is one model: the average of the members by their weights. Networks of one shape become one network of
their mean log-odds, block by block; estimators become scikit-learn's VotingClassifier, which averages probabilities.
What is judged is what would be shipped.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.data import EstimatorTrainer, Fitted, NetworkTrainer, Trainer, asked
from fairbits.errors import CapabilityError, MissingDependencyError
from fairbits.models import Network
from fairbits.repair.proposals.lessons import Lessons
from fairbits.repair.proposals.proposer import Planner, Proposal

#: Rounds of the game, updates of a network in each, and how far group rates may differ.
ROUNDS, UPDATES, SLACK = 8, 500, 0.02
#: Members of less weight are left out of the average, and there are at most so many.
MIN_WEIGHT, MAX_MEMBERS = 0.02, 6
_WORDS = {"parity": "selection rates", "odds": "true and false positive rates"}


@dataclass(frozen=True, slots=True)
class ExponentiatedGradients:
    """Two proposals: bounds on selection rates, and on both error rates."""

    name: str = "expgrad"
    rounds: int = ROUNDS

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Play the game for each bound."""
        lessons = Lessons.of(planner, "exponentiated gradient")
        _fairlearn()
        trainer = lessons.trainer()
        for alike, words in _WORDS.items():
            planner.watch(f"exponentiated gradient, {alike}")
            members, weights, dropped = self._members(trainer, lessons, planner.rng(f"{self.name}-{alike}"), alike)
            fitted = _together(trainer, members, weights)
            averaged = "log-odds" if isinstance(trainer, NetworkTrainer) else "probability"
            text = f"the average {averaged} of {len(members)} models from a game that bounds gaps in {words}"
            if dropped >= MIN_WEIGHT:
                text += f" ({dropped:.0%} of it, one decision for everybody, left out)"
            yield Proposal(
                f"expgrad-{alike}",
                f"{text}; {lessons.coding.words}",
                fitted.model,
                retrained=True,
                coding=lessons.coding.words,
                fitted=fitted,
            )

    def _members(
        self, trainer: Trainer, lessons: Lessons, rng: np.random.Generator, alike: str
    ) -> tuple[list[Fitted], npt.NDArray[np.float64], float]:
        """The models of the lottery, and their weights; the last is the weight of constant ones, which are left out."""
        _, reductions = _fairlearn()
        bound = reductions.DemographicParity if alike == "parity" else reductions.EqualizedOdds
        game = reductions.ExponentiatedGradient(
            _Oracle(trainer, lessons, rng), bound(difference_bound=SLACK), max_iter=self.rounds
        )
        places = np.arange(len(lessons.rows), dtype=np.float64)[:, None]  # people by number: they may have any columns
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a bound is not met shows in the figures
            game.fit(places, lessons.favoured, sensitive_features=lessons.groups)
        every = [(float(game.weights_[i]), game.predictors_[i]) for i in game.weights_.index]
        real = [(weight, one.fitted) for weight, one in every if isinstance(one, _Oracle) and one.fitted is not None]
        real = sorted((pair for pair in real if pair[0] > 0), key=lambda pair: -pair[0])[:MAX_MEMBERS]
        kept = [pair for pair in real if pair[0] >= MIN_WEIGHT] or real[:1]
        if not kept:
            raise CapabilityError("exponentiated gradient ended with one decision for everybody, which is no model.")
        weights = np.array([weight for weight, _ in kept])
        constant = sum(weight for weight, one in every if not isinstance(one, _Oracle))
        return [one for _, one in kept], weights / weights.sum(), float(constant)


class _Oracle:
    """What the game asks for: a learner of weighted rows. Rows come by number, decisions as 0 and 1."""

    def __init__(self, trainer: Trainer, lessons: Lessons, rng: np.random.Generator):
        self._trainer, self._lessons, self._rng = trainer, lessons, rng
        self.fitted: Fitted | None = None

    def __deepcopy__(self, memo: Any) -> _Oracle:
        return _Oracle(self._trainer, self._lessons, self._rng)

    def fit(self, places: Any, favoured: Any, sample_weight: Any = None) -> _Oracle:
        """Learn the rows of these numbers."""
        rows = self._lessons.rows[np.asarray(places)[:, 0].astype(np.int64)]
        index = self._lessons.subject.schema.favourable_index
        labels = np.where(np.asarray(favoured) == 1, index, 1 - index).astype(np.float64)
        weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        settings = {"updates": UPDATES} if isinstance(self._trainer, NetworkTrainer) else None
        self.fitted = self._trainer.learned(rows, labels, self._rng, sample_weights=weights, settings=settings)
        return self

    def predict(self, places: Any) -> Any:
        """1 where the favourable class is decided."""
        assert self.fitted is not None  # noqa: S101 - the game fits before it asks
        rows = self._lessons.rows[np.asarray(places)[:, 0].astype(np.int64)]
        scores = self.fitted.model.scores(self.fitted.encoding.encode(rows))
        return self._lessons.subject.schema.rule.favours(scores).astype(np.int64)


def pooled(networks: Sequence[Network], weights: npt.NDArray[np.float64]) -> Network:
    """One network whose logits are the weighted mean of the networks' logits: their layers stand side by side."""
    first = networks[0]
    depth = len(first.weights)
    made, biases = [], []
    for layer in range(depth):
        own = [np.asarray(one.weights[layer], np.float64) for one in networks]
        shift = [np.asarray(one.biases[layer], np.float64) for one in networks]
        last = layer == depth - 1
        if last:
            own = [weight * w for weight, w in zip(weights, own, strict=True)]
            biases.append(sum(weight * b for weight, b in zip(weights, shift, strict=True)))
        else:
            biases.append(np.concatenate(shift))
        if depth == 1:
            made.append(np.sum(own, axis=0))
        elif layer == 0:
            made.append(np.concatenate(own, axis=1))
        elif last:
            made.append(np.concatenate(own, axis=0))
        else:
            made.append(_blocks(own))
    return Network.build(made, biases, activation=first.activations_after, head=first.head, favourable=first.favourable)


def _blocks(parts: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    from scipy.linalg import block_diag

    return np.asarray(block_diag(*parts))


def _together(trainer: Trainer, members: list[Fitted], weights: npt.NDArray[np.float64]) -> Fitted:
    if len(members) == 1:
        return members[0]
    if not isinstance(trainer, NetworkTrainer):
        estimators = [one.estimator for one in members]
        if not isinstance(trainer, EstimatorTrainer) or not all(
            callable(getattr(one, "predict_proba", None)) for one in estimators
        ):
            return members[0]  # decisions only: the model of most weight
        return asked(voted(estimators, weights), trainer.subject)
    return Fitted(pooled([one.model for one in members], weights), members[0].encoding)  # type: ignore[misc]


def voted(estimators: Sequence[Any], weights: npt.NDArray[np.float64]) -> Any:
    """Fitted estimators as one VotingClassifier, by the mean of their probabilities."""
    from sklearn.ensemble import VotingClassifier
    from sklearn.preprocessing import LabelEncoder

    named = [(f"member_{i}", one) for i, one in enumerate(estimators)]
    made = VotingClassifier(named, voting="soft", weights=weights.tolist())
    made.estimators_ = list(estimators)
    made.le_ = LabelEncoder().fit(estimators[0].classes_)
    made.classes_ = made.le_.classes_
    if hasattr(estimators[0], "feature_names_in_"):
        made.feature_names_in_ = estimators[0].feature_names_in_
    return made


def _fairlearn() -> tuple[Any, Any]:
    try:
        import fairlearn
        from fairlearn import reductions
    except ImportError:
        raise MissingDependencyError("fairlearn", "mitigate", "exponentiated gradient") from None
    return fairlearn, reductions
