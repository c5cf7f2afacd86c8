"""Adversarial debiasing: a second network guesses the group from the score, and the first is trained against it.

Zhang, Lemoine, Mitchell, AIES 2018; by fairlearn's AdversarialFairnessClassifier on PyTorch. The network keeps its
shape and starts from its own weights; inputs are standardised while it trains.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.errors import CapabilityError, MissingDependencyError
from fairbits.models import Network
from fairbits.repair.proposals.lessons import Lessons, needs_weights
from fairbits.repair.proposals.proposer import Planner, Proposal

#: How hard the adversary pulls; the paper warns that large values do not settle.
PULLS = (0.1, 1.0)
UPDATES, BATCH, RATE = 1_500, 256, 1e-3
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

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Adversarial:
    """A proposal for each pull; native networks only."""

    name: str = "adversarial"
    pulls: tuple[float, ...] = PULLS
    updates: int = UPDATES

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Train the network further against an adversary."""
        network = planner.network
        if not isinstance(network, Network):
            raise needs_weights(planner, "adversarial debiasing")
        lessons = Lessons.of(planner, "adversarial debiasing")
        _libraries()
        lost = []
        for pull in self.pulls:
            planner.watch(f"training against an adversary, pull {pull:g}")
            seed = int(planner.rng(f"{self.name}-{pull:g}").integers(2**31))
            found = self._trained(network, planner, lessons, pull, seed)
            if found is None:
                lost.append(f"{pull:g}")
                continue
            words = f"trained further against an adversary that guesses the group from the score, pull {pull:g}"
            yield Proposal(
                f"adversarial-{pull:g}",
                f"{words}; {lessons.coding.words}",
                found,
                retrained=True,
                coding=lessons.coding.words,
            )
        if lost:
            why = f"adversarial debiasing with pull {' and '.join(lost)} did not settle: its weights left all bounds."
            if len(lost) == len(self.pulls):
                raise CapabilityError(why)
            planner.notes.append(why)

    def _trained(self, network: Network, planner: Planner, lessons: Lessons, pull: float, seed: int) -> Network | None:
        """The network trained further; None where its weights went out of bounds."""
        torch, classifier = _libraries()
        inputs = np.asarray(planner.setting.subject.encoding.encode(lessons.rows), np.float64)
        mean, spread = inputs.mean(axis=0), inputs.std(axis=0)
        spread[spread == 0] = 1.0
        with _alone(torch, seed):
            module = _module(torch, network, mean, spread)
            learner = classifier(
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
            rows, labels = (inputs - mean) / spread, lessons.labels.astype(np.int64)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    learner.fit(rows, labels, sensitive_features=lessons.groups)
            except RuntimeError:  # its loss refuses scores that are no numbers
                return None
        if not all(bool(torch.isfinite(parameter).all()) for parameter in module.parameters()):
            return None
        return _network(module, network, mean, spread)


def _not_nothing(gradient: Any) -> Any:
    """A gradient that is 0 everywhere (dead neurons, a sure score) as one that is next to nothing.

    fairlearn divides the adversary's gradient by its length plus the smallest *double*, which is 0 in single precision:
    0/0 would end the training.
    """
    return gradient if bool((gradient != 0).any()) else gradient + _NEXT_TO_NOTHING


def _module(torch: Any, network: Network, mean: Doubles, spread: Doubles) -> Any:
    """The network on standardised inputs, as a PyTorch module that gives the probability of class 1."""
    layers: list[Any] = []
    last = len(network.weights) - 1
    for place, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        weights, bias = w.astype(np.float64), b.astype(np.float64)
        if place == 0:
            bias, weights = bias + mean @ weights, weights * spread[:, None]
        if place == last and network.head == "softmax":
            weights, bias = weights[:, 1:] - weights[:, :1], bias[1:] - bias[:1]
        layer = torch.nn.Linear(*weights.shape)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weights.T.copy()))
            layer.bias.copy_(torch.from_numpy(bias.copy()))
        layers.append(layer)
        if place < last:
            layers.append(_activation(torch, network.activations_after[place]))
    return torch.nn.Sequential(*layers, torch.nn.Sigmoid())


def _activation(torch: Any, activation: Any) -> Any:
    if activation.name not in _LAYERS:
        raise CapabilityError(f"adversarial debiasing has no {activation.name!r} neurons; reweigh and prejudice do.")
    made = getattr(torch.nn, _LAYERS[activation.name])
    return made(activation.alpha) if activation.name in ("elu", "leaky_relu") else made()


def _network(module: Any, origin: Network, mean: Doubles, spread: Doubles) -> Network:
    """The trained module as a network of the original's shape."""
    linear = [one for one in module if hasattr(one, "weight")]
    weights = [one.weight.detach().numpy().astype(np.float64).T for one in linear]
    biases = [one.bias.detach().numpy().astype(np.float64) for one in linear]
    if origin.head == "softmax":  # half of the difference to each output; what both share stays
        middle_w = origin.weights[-1].astype(np.float64).mean(axis=1, keepdims=True)
        middle_b = origin.biases[-1].astype(np.float64).mean(keepdims=True)
        if len(weights) == 1:
            middle_w = middle_w * spread[:, None]
        weights[-1] = np.concatenate([middle_w - weights[-1] / 2, middle_w + weights[-1] / 2], axis=1)
        biases[-1] = np.concatenate([middle_b - biases[-1] / 2, middle_b + biases[-1] / 2])
    weights[0] = weights[0] / spread[:, None]
    biases[0] = biases[0] - mean @ weights[0]
    arrays = [tuple(np.asarray(a, np.float32) for a in group) for group in (weights, biases)]
    if not all(np.isfinite(a).all() for group in arrays for a in group):
        raise CapabilityError("adversarial debiasing diverged here: its weights are no longer finite.")
    return replace(origin, weights=arrays[0], biases=arrays[1])


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


def _libraries() -> tuple[Any, Any]:
    try:
        from fairlearn.adversarial import AdversarialFairnessClassifier
    except ImportError:
        raise MissingDependencyError("fairlearn", "mitigate", "adversarial debiasing") from None
    try:
        import torch
    except ImportError:
        raise MissingDependencyError("torch", "torch", "adversarial debiasing") from None
    return torch, AdversarialFairnessClassifier
