"""Mitigators: reweighing, prejudice remover, adversarial debiasing, exponentiated gradient, thresholds by group.

*Reweighing* (Kamiran and Calders, KAIS 2012): a row weighs P(group)·P(label) / P(group, label), so that group and label
look independent; the subject's own kind of model learns the weighted rows.

*Prejudice remover* (Kamishima et al., ECML PKDD 2012): a penalty on the mutual information of decision and group, in
nats; here between the score's mean in each group and overall, as a term of our own trainer.

*Adversarial debiasing* (Zhang, Lemoine, Mitchell, AIES 2018; by fairlearn on PyTorch): a second network guesses the
group from the score, and the first, in its own shape and from its own weights, is trained against it.

*Thresholds by group* (Hardt, Price, Srebro, NeurIPS 2016), without the lottery: where two thresholds would have to be
mixed at random, the nearest one decides, so that the same person always gets the same decision. It needs scores only,
and it *uses* the protected value: what it mends between groups it adds to the direct bits.

*Exponentiated gradient* (Agarwal et al., ICML 2018; by fairlearn): a game between a learner and a bound on group gaps.
Its answer is a lottery over models, which gives the same person different decisions on different days, so what is
proposed is one model: networks of one shape become one network of their mean log-odds, block by block; estimators
become scikit-learn's VotingClassifier, which averages probabilities. What is judged is what would be shipped.

Which groups a mitigator is told about is one column of numbers. Several attributes are crossed; groups of fewer than 30
training rows are joined as "others". Where most people would end there, every attribute is cut in two (the most
frequent value and the rest; numbers at their median) before they are crossed. The words say which.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.linalg import block_diag

from fairbits.data import EstimatorTrainer, Fitted, NetworkTrainer, Trainer, asked, trainer_of
from fairbits.domain import Attribute, Codes, Doubles, Integers, Schema, Twins, Unseen
from fairbits.errors import CapabilityError, TableError
from fairbits.measure import Evaluator
from fairbits.models import Array, Fitting, Model, Network, Scaling, checked_rows, kind_of, needed, refit
from fairbits.repair.choice import Planner
from fairbits.repair.proposals.guard import decoded
from fairbits.repair.records import Proposal
from fairbits.repair.writers.standalone import moved_odds
from fairbits.subject import Subject
from fairbits.text import percent

#: Rows that a group needs to be told apart, and the share of rows that may end among the others.
FEWEST, MAX_OTHERS = 30, 0.2
OTHERS = "others"


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """The groups by number: ``by_twin`` has the group of each protected combination, in the order of the twins."""

    labels: tuple[str, ...]
    by_twin: Integers
    twins: Twins
    words: str

    def of(self, codes: Codes) -> Integers:
        """The group of each person."""
        return np.asarray(self.by_twin[self.twins.index_of(codes)])


def coding_of(schema: Schema, rows: Codes) -> Coding:
    """The groups of the training rows, as fine as their numbers allow."""
    twins = Twins(schema)
    own = twins.index_of(rows)
    names = " × ".join(schema.attributes[i].name for i in twins.columns)
    fine = _joined(np.arange(twins.m), list(twins.labels), own)
    if fine is not None:
        by_twin, labels, joined = fine
        words = f"groups of {names}: {len(labels)}" + (f" ({joined} small joined as others)" if joined else "")
        return Coding(labels, by_twin, twins, words)
    halves, half_labels = _halved(schema, twins, rows)
    coarse = _joined(halves, half_labels, own, most_others=1.0)
    if coarse is None:
        raise CapabilityError(
            f"the {len(rows):,} training rows fall into one group of {names} of at least {FEWEST} people, so there "
            f"is nothing that a mitigator could make alike; average and guard need no groups."
        )
    by_twin, labels, _ = coarse
    return Coding(labels, by_twin, twins, f"groups of {names}, each attribute cut in two: {len(labels)}")


def _joined(
    group_of: Integers, labels: list[str], own: Integers, *, most_others: float = MAX_OTHERS
) -> tuple[Integers, tuple[str, ...], int] | None:
    """Groups large enough keep their number, the rest share one; None where too many people would."""
    counts = np.bincount(group_of[own], minlength=len(labels))
    large = np.flatnonzero(counts >= FEWEST)
    rest = int(counts.sum() - counts[large].sum())
    if len(large) < 1 or rest > most_others * len(own) or len(large) + (rest > 0) < 2:
        return None
    number = np.full(len(labels), len(large), dtype=np.int64)
    number[large] = np.arange(len(large))
    if not rest:  # combinations that nobody has go with the largest group
        number[number == len(large)] = int(np.argmax(counts[large]))
    joined = int(((counts > 0) & (counts < FEWEST)).sum())
    return number[group_of], (*(labels[i] for i in large), *([OTHERS] if rest else [])), joined


def _halved(schema: Schema, twins: Twins, rows: Codes) -> tuple[Integers, list[str]]:
    """The group of every twin when each attribute is cut in two, and what the groups are called."""
    number, labels = np.zeros(twins.m, dtype=np.int64), [""]
    for place, column in enumerate(twins.columns):
        attribute, values = schema.attributes[column], twins.values[:, place]
        own = rows[:, column][np.isfinite(rows[:, column])]
        if attribute.kind == "category":
            present, counts = np.unique(own, return_counts=True)
            usual = present[np.argmax(counts)]
            high = values != usual
            words = (attribute.read(usual), f"not {attribute.read(usual)}")
        else:
            middle = float(np.median(own))
            high, words = values > middle, (f"{attribute.name} ≤ {middle:g}", f"{attribute.name} > {middle:g}")
        number = 2 * number + high
        labels = [", ".join(filter(None, (before, word))) for before in labels for word in words]
    return number, labels


#: Scores this close to 0 and 1 are moved as if they were this far.
TINY = 1e-6
#: Scores no further apart than this are tied: they are float32, and the order of sums differs between libraries.
_TIED = 4e-6


class GroupThresholds:
    """A model whose log-odds are moved by group, so that one threshold decides for all as each group's own would."""

    def __init__(self, evaluator: Evaluator, coding: Coding, shifts: Doubles):
        evaluator = evaluator.over_values
        self._evaluator, self.coding, self.shifts = evaluator, coding, np.asarray(shifts, np.float64)
        self.model: Model = evaluator.model
        self.schema, self.encoding = evaluator.schema, evaluator.encoding
        self.inputs = int(self.encoding.width)
        self.tau = float("inf")  # nothing bounds the distance from the average over twins
        #: By how much the log-odds of each protected combination are moved.
        self.by_twin = self.shifts[coding.by_twin]

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The moved score of each encoded row."""
        rows = checked_rows(inputs, self.inputs, "the model", self.encoding.dtype)
        own = np.asarray(self.model.scores(rows), np.float64)
        codes = np.zeros((len(rows), len(self.schema)))
        for column in self.coding.twins.columns:
            part, attribute = self.encoding.parts[column], self.schema.attributes[column]
            if not isinstance(part, Unseen):
                codes[:, column] = decoded(part, rows, whole=attribute.discrete)
        return self._moved(own, self.shifts[self.coding.of(codes)])

    def people_scores(self, codes: Codes) -> Array:
        """The moved score of each person, a row of codes."""
        own = np.asarray(self.model.scores(self.encoding.encode(codes)), np.float64)
        return self._moved(own, self.shifts[self.coding.of(codes)])

    def people_class_scores(self, codes: Codes) -> Array:
        """The probabilities of both classes of each person."""
        return self.schema.rule.both(self.people_scores(codes))

    def twin_scores(self, codes: Codes) -> Array:
        """Moved scores of every twin of every person, (n, m)."""
        return self._moved(self._evaluator.scores(codes).astype(np.float64), self.by_twin[None, :])

    def twin_class_scores(self, codes: Codes) -> Array:
        """Probabilities of both classes for every twin, (n, m, 2)."""
        return self.schema.rule.both(self.twin_scores(codes))

    def fits(self, evaluator: Evaluator) -> bool:
        """Whether an evaluator means the same twins."""
        return self._evaluator.asks_alike(evaluator)

    def _moved(self, scores: Doubles, shifts: Doubles) -> Array:
        return moved_odds(scores, shifts, TINY).astype(np.float32)


def twin_cuts(attribute: Attribute) -> list[float]:
    """From which codes on each of the values that twins take, but the first, stands for a person."""
    cuts = [float(np.nextafter((low + high) / 2, high)) for low, high in pairwise(attribute.twin_values())]
    return [*cuts[: len(cuts) - len(attribute.cuts)], *attribute.cuts]


def fitted_thresholds(
    evaluator: Evaluator, coding: Coding, rows: Codes, labels: npt.NDArray[np.float64], *, alike: str
) -> GroupThresholds:
    """The thresholds at which groups are selected as often as everybody is."""
    schema = evaluator.schema
    shifts = np.zeros(len(coding.labels))
    scores = np.clip(np.asarray(evaluator.model.scores(evaluator.encoding.encode(rows)), np.float64), TINY, 1 - TINY)
    if alike != "parity":
        rows, scores = rows[labels == schema.favourable_index], scores[labels == schema.favourable_index]
    rate = float(schema.rule.favours(scores).mean()) if len(rows) else 0.0
    cut = float(np.clip(evaluator.threshold, TINY, 1 - TINY))
    groups = coding.of(rows)
    for group in np.unique(groups) if 0 < rate < 1 else ():
        shifts[group] = special.logit(cut) - _log_odds_at(scores[groups == group], rate)
    return GroupThresholds(evaluator, coding, shifts)


def _log_odds_at(scores: Doubles, rate: float) -> float:
    """The log-odds halfway between two scores at which the share of scores above comes nearest to ``rate``.

    Scores closer than rounding are one: a cut between them would decide otherwise in every other library.
    """
    values = np.sort(scores)
    first = np.flatnonzero(np.concatenate([[True], np.diff(values) > _TIED]))
    above = 1 - np.concatenate([first, [len(values)]]) / len(values)  # with the cut before each of them, and at last
    place = int(np.argmin(np.abs(above - rate)))
    last = np.append(first[1:], len(values)) - 1
    odds = special.logit(values)
    below, beyond = np.append(odds[0] - 2.0, odds[last]), np.append(odds[first], odds[-1] + 2.0)
    return float(0.5 * (below[place] + beyond[place]))


#: Fewer training rows than this teach a model nothing that could be told from chance.
MIN_ROWS = 60
#: What needs scores only, and so remains for every model.
REMAINING = "average, guard-K and thresholds need scores only"


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """Training rows of a decision between two classes, and the groups of people among them."""

    subject: Subject
    rows: Codes
    labels: npt.NDArray[np.float64]
    coding: Coding
    groups: npt.NDArray[np.int64]

    @classmethod
    def of(cls, planner: Planner, purpose: str) -> TrainingData:
        """The training rows of a plan; ``purpose`` begins the sentence where there are none."""
        subject, training = planner.setting.subject, planner.halves.training
        classes = len(subject.schema.classes)
        if classes != 2:
            what = "a number" if classes == 0 else f"one of {classes} classes"
            raise CapabilityError(f"{purpose} is for decisions between two classes, and this model predicts {what}.")
        check_rows(subject, training.labels)
        coding = coding_of(subject.schema, training.rows)
        return cls(subject, training.rows, training.labels, coding, coding.of(training.rows))

    def proposal(self, name: str, words: str, made: Network | Fitted) -> Proposal:
        """A model that was trained on these rows."""
        words, fitted = f"{words}; {self.coding.words}", made if isinstance(made, Fitted) else None
        model = made.model if isinstance(made, Fitted) else made
        return Proposal(name, words, model, retrained=True, coding=self.coding.words, fitted=fitted)


def trainer_for(subject: Subject, *, own_parameters: bool = False) -> Trainer:
    """Who trains candidates: a native network goes on from its own weights, whatever it was read from.

    With ``own_parameters`` an estimator that was read as a network is the estimator, whose parameters can be searched.
    """
    if isinstance(subject.model, Network) and not own_parameters:
        return NetworkTrainer(subject, subject.model)
    try:
        return trainer_of(subject)
    except CapabilityError as error:
        raise CapabilityError(f"{str(error).rstrip('.')}; {REMAINING}.") from None


def check_rows(subject: Subject, labels: npt.NDArray[np.float64]) -> None:
    """Refuse to train on a table that is too small for it."""
    if len(labels) < MIN_ROWS:
        raise TableError(
            f"the table of {subject.name!r} has {len(labels)} training rows, and training again needs {MIN_ROWS}; "
            f"{REMAINING}."
        )
    if not subject.schema.regression and len(np.unique(labels)) < 2:
        raise TableError(
            f"all {len(labels)} training rows of {subject.name!r} have one label, so there is nothing to learn; "
            f"{REMAINING}."
        )


def network_data(planner: Planner, purpose: str, *, hidden: int = 0) -> tuple[Network, TrainingData]:
    """A network of so many hidden layers or more, whose weights are to be changed, and the rows that it learns from."""
    network = planner.network
    if not isinstance(network, Network) or len(network.weights) <= hidden:
        raise CapabilityError(
            f"{purpose} changes the weights of a network, which {kind_of(network)!r} does not show; reweigh and "
            f"expgrad train any scikit-learn style model, and {REMAINING}."
        )
    return network, TrainingData.of(planner, purpose)


@dataclass(frozen=True, slots=True)
class Reweighing:
    """One proposal: the subject's own kind of model on weighted rows."""

    name: str = "reweigh"

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Train once, on weighted rows."""
        planner.watch("reweighing")
        data = TrainingData.of(planner, "reweighing")
        trainer = trainer_for(data.subject)
        weights = independent_weights(data.groups, data.labels)
        fitted = trainer.learned(data.rows, data.labels, planner.rng(self.name), sample_weights=weights)
        yield data.proposal(
            self.name, f"{trainer.words} on rows weighted until group and label look independent", fitted
        )


def independent_weights(groups: npt.NDArray[np.int64], labels: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Weights under which group and label are independent; they add up to the number of rows."""
    table = np.zeros((int(groups.max()) + 1, int(labels.max()) + 1))
    kinds = labels.astype(np.int64)
    np.add.at(table, (groups, kinds), 1.0)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    weights = np.asarray((expected / np.maximum(table, 1.0))[groups, kinds])
    return weights * (len(weights) / weights.sum())


@dataclass(frozen=True, slots=True)
class PrejudiceRemover:
    """A proposal for each weight of the penalty; native networks only."""

    name: str = "prejudice"
    weights: tuple[float, ...] = (1.0, 10.0)  # the paper's experiments end at 30
    updates: int = 1_500

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Train the network further under the penalty."""
        network, data = network_data(planner, "the prejudice remover")
        inputs = data.subject.encoding.encode(data.rows)
        for weight in self.weights:
            planner.watch(f"removing prejudice, weight {weight:g}")
            found = refit(
                network,
                inputs,
                data.labels,
                planner.rng(f"{self.name}-{weight:g}"),
                fitting=Fitting(self.updates, prejudice=weight),
                groups=data.groups,
            )
            words = f"trained further with {weight:g} times the bits of the decision about groups as a penalty"
            yield data.proposal(f"prejudice-{weight:g}", words, found)


BATCH, RATE = 256, 1e-3
#: In place of a gradient of 0: its square is still a number in single precision.
_NEXT_TO_NOTHING = 1e-15
#: Hidden neurons of the adversary.
ADVERSARY = 8
_LAYERS = {
    "relu": "ReLU",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "identity": "Identity",
    "elu": "ELU",
    "leaky_relu": "LeakyReLU",
    "softplus": "Softplus",
    "gelu": "GELU",
}


@dataclass(frozen=True, slots=True)
class Adversarial:
    """A proposal for each pull; native networks only."""

    name: str = "adversarial"
    pulls: tuple[float, ...] = (0.1, 1.0)  # the paper warns that large values do not settle
    updates: int = 1_500

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Train the network further against an adversary."""
        network, data = network_data(planner, "adversarial debiasing")
        lost = []
        for pull in self.pulls:
            planner.watch(f"training against an adversary, pull {pull:g}")
            seed = int(planner.rng(f"{self.name}-{pull:g}").integers(2**31))
            found = self._trained(network, data, pull, seed)
            if found is None:
                lost.append(f"{pull:g}")
                continue
            words = f"trained further against an adversary that guesses the group from the score, pull {pull:g}"
            yield data.proposal(f"adversarial-{pull:g}", words, found)
        if lost:
            why = f"adversarial debiasing with pull {' and '.join(lost)} did not settle: its weights left all bounds."
            if len(lost) == len(self.pulls):
                raise CapabilityError(why)
            planner.notes.append(why)

    def _trained(self, network: Network, data: TrainingData, pull: float, seed: int) -> Network | None:
        """The network trained further; None where its weights went out of bounds."""
        library = needed("fairlearn.adversarial", "mitigate", "adversarial debiasing")
        torch = needed("torch", "torch", "adversarial debiasing")
        inputs = np.asarray(data.subject.encoding.encode(data.rows), np.float32)
        scaling = Scaling(inputs)
        with _alone(torch, seed):
            module = _module(torch, scaling.unfolded(network))
            learner = library.AdversarialFairnessClassifier(
                backend="torch",
                predictor_model=module,
                adversary_model=[ADVERSARY, "leaky_relu"],
                alpha=pull,
                learning_rate=RATE,
                batch_size=min(BATCH, len(inputs)),
                epochs=max(1, round(self.updates * BATCH / len(inputs))) if len(inputs) > BATCH else self.updates,
                shuffle=True,
                random_state=seed,
            )
            for parameter in module.parameters():
                parameter.register_hook(_not_nothing)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    learner.fit(scaling(inputs), data.labels.astype(np.int64), sensitive_features=data.groups)
            except RuntimeError:  # its loss refuses scores that are no numbers
                return None
        if not all(bool(torch.isfinite(parameter).all()) for parameter in module.parameters()):
            return None
        return scaling.folded(_network(module, network))


def _not_nothing(gradient: Any) -> Any:
    """A gradient that is 0 everywhere (dead neurons, a sure score) as one that is next to nothing.

    fairlearn divides the adversary's gradient by its length plus the smallest *double*, which is 0 in single precision:
    0/0 would end the training.
    """
    return gradient if bool((gradient != 0).any()) else gradient + _NEXT_TO_NOTHING


def _module(torch: Any, network: Network) -> Any:
    """The network as a PyTorch module that gives the probability of class 1."""
    weights, biases = list(network.weights), list(network.biases)
    if network.head == "softmax":
        weights[-1], biases[-1] = np.diff(weights[-1], axis=1), np.diff(biases[-1])
    layers: list[Any] = []
    for activation, w, b in zip((None, *network.activations_after), weights, biases, strict=True):
        if activation is not None:
            if activation.name not in _LAYERS:
                raise CapabilityError(
                    f"adversarial debiasing has no {activation.name!r} neurons; reweigh and prejudice do."
                )
            shape = [activation.alpha] if activation.name in ("elu", "leaky_relu") else []
            layers.append(getattr(torch.nn, _LAYERS[activation.name])(*shape))
        layers.append(torch.nn.Linear(*w.shape))
        layers[-1].load_state_dict({"weight": torch.tensor(w.T), "bias": torch.tensor(b)})
    return torch.nn.Sequential(*layers, torch.nn.Sigmoid())


def _network(module: Any, origin: Network) -> Network:
    """The trained module as a network of the original's shape."""
    linear = [one for one in module if hasattr(one, "weight")]
    weights = [one.weight.detach().numpy().T for one in linear]
    biases = [one.bias.detach().numpy() for one in linear]
    if origin.head == "softmax":  # half of the difference to each output; what both share stays
        halves = np.array([-0.5, 0.5], np.float32)
        weights[-1] = origin.weights[-1].mean(axis=1, keepdims=True) + weights[-1] * halves
        biases[-1] = origin.biases[-1].mean() + biases[-1] * halves
    return replace(origin, weights=tuple(weights), biases=tuple(biases))


@contextmanager
def _alone(torch: Any, seed: int) -> Iterator[None]:
    """One thread, and randomness that nobody else's depends on."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


#: Rounds of the game, updates of a network in each, and how far group rates may differ.
ROUNDS, GAME_UPDATES, SLACK = 8, 500, 0.02
#: Members of less weight are left out of the average, and there are at most so many.
MIN_WEIGHT, MAX_MEMBERS = 0.02, 6
_BOUNDED = {"parity": "selection rates", "odds": "true and false positive rates"}


@dataclass(frozen=True, slots=True)
class ExponentiatedGradients:
    """Two proposals: bounds on selection rates, and on both error rates."""

    name: str = "expgrad"
    rounds: int = ROUNDS

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Play the game for each bound."""
        data = TrainingData.of(planner, "exponentiated gradient")
        reductions = needed("fairlearn.reductions", "mitigate", "exponentiated gradient")
        trainer = trainer_for(data.subject)
        for alike, words in _BOUNDED.items():
            planner.watch(f"exponentiated gradient, {alike}")
            bound = reductions.DemographicParity if alike == "parity" else reductions.EqualizedOdds
            game = reductions.ExponentiatedGradient(
                _Oracle(trainer, data, planner.rng(f"{self.name}-{alike}")),
                bound(difference_bound=SLACK),
                max_iter=self.rounds,
            )
            members, weights, dropped = _members(game, data)
            fitted = _together(trainer, members, weights)
            averaged = "log-odds" if isinstance(trainer, NetworkTrainer) else "probability"
            text = f"the average {averaged} of {len(members)} models from a game that bounds gaps in {words}"
            if dropped >= MIN_WEIGHT:
                text += f" ({percent(dropped, 0)} of it, one decision for everybody, left out)"
            yield data.proposal(f"expgrad-{alike}", text, fitted)


def _members(game: Any, data: TrainingData) -> tuple[list[Fitted], npt.NDArray[np.float64], float]:
    """The models of the lottery, and their weights; the last is the weight of constant ones, which are left out."""
    places = np.arange(len(data.rows), dtype=np.float64)[:, None]  # people by number: they may have any columns
    favoured = (data.labels == data.subject.schema.favourable_index).astype(np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a bound is not met shows in the figures
        game.fit(places, favoured, sensitive_features=data.groups)
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

    def __init__(self, trainer: Trainer, data: TrainingData, rng: np.random.Generator):
        self._trainer, self._data, self._rng = trainer, data, rng
        self.fitted: Fitted | None = None

    def __deepcopy__(self, memo: Any) -> _Oracle:
        return _Oracle(self._trainer, self._data, self._rng)

    def fit(self, places: Any, favoured: Any, sample_weight: Any = None) -> _Oracle:
        """Learn the rows of these numbers."""
        rows = self._data.rows[np.asarray(places)[:, 0].astype(np.int64)]
        index = self._data.subject.schema.favourable_index
        labels = np.where(np.asarray(favoured) == 1, index, 1 - index).astype(np.float64)
        weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        settings = {"updates": GAME_UPDATES} if isinstance(self._trainer, NetworkTrainer) else None
        self.fitted = self._trainer.learned(rows, labels, self._rng, sample_weights=weights, settings=settings)
        return self

    def predict(self, places: Any) -> Any:
        """1 where the favourable class is decided."""
        assert self.fitted is not None  # noqa: S101 - the game fits before it asks
        rows = self._data.rows[np.asarray(places)[:, 0].astype(np.int64)]
        scores = self.fitted.model.scores(self.fitted.encoding.encode(rows))
        return self._data.subject.schema.rule.favours(scores).astype(np.int64)


def pooled(networks: Sequence[Network], weights: npt.NDArray[np.float64]) -> Network:
    """One network whose logits are the weighted mean of the networks' logits: their layers stand side by side."""
    first, last = networks[0], len(networks[0].weights) - 1
    made, biases = [], []
    for layer in range(last + 1):
        own = [np.asarray(one.weights[layer], np.float64) for one in networks]
        shift = [np.asarray(one.biases[layer], np.float64) for one in networks]
        if layer == last:
            own = [weight * w for weight, w in zip(weights, own, strict=True)]
            biases.append(weights @ np.stack(shift))
            made.append(np.concatenate(own) if last else np.sum(own, axis=0))
        else:
            biases.append(np.concatenate(shift))
            made.append(np.asarray(block_diag(*own)) if layer else np.concatenate(own, axis=1))
    return Network.build(made, biases, activation=first.activations_after, head=first.head, favourable=first.favourable)


def _together(trainer: Trainer, members: list[Fitted], weights: npt.NDArray[np.float64]) -> Fitted:
    estimators = [one.estimator for one in members]
    if len(members) > 1 and isinstance(trainer, NetworkTrainer):
        return Fitted(pooled([one.model for one in members], weights), members[0].encoding)  # type: ignore[misc]
    soft = len(members) > 1 and all(hasattr(one, "predict_proba") for one in estimators)
    if soft and isinstance(trainer, EstimatorTrainer):
        return asked(voted(estimators, weights), trainer.subject)
    return members[0]  # where there are decisions only, the model of most weight


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


_ALIKE = {
    "parity": "selected equally often",
    "opportunity": "selected equally often among those labelled favourable",
}


@dataclass(frozen=True, slots=True)
class ThresholdsByGroup:
    """Two proposals: equal selection rates, and equal true positive rates."""

    name: str = "thresholds"

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Fit the thresholds to the training rows."""
        subject, training = planner.setting.subject, planner.halves.training
        if len(subject.schema.classes) != 2:
            raise CapabilityError("thresholds by group decide between two classes, and this model does not.")
        planner.watch("thresholds by group")
        coding = coding_of(subject.schema, training.rows)
        evaluator = planner.setting.evaluator(planner.network)
        for alike, words in _ALIKE.items():
            found = fitted_thresholds(evaluator, coding, training.rows, training.labels, alike=alike)
            text = f"a threshold for each group, so that all are {words}; uses protected values directly"
            yield Proposal(f"thresholds-{alike}", f"{text}; {coding.words}", found, coding=coding.words)
