"""The one trainer: models like a subject's own, made from rows, and the networks that ship, each with its card.

Three recipes, and everything that trains says which it took. A native network is trained in its own shape, anew by the
recipe of the built-in ones or further from its own weights; an estimator of scikit-learn's manner is cloned and fitted
by its own library; and whoever has a recipe of their own names it: ``[model] train = "module:function"``, called as
``train(rows, labels, seed)`` with a data frame of people as the table has them, their labels and a number, gives back a
model. It is code, so it runs only where code is trusted.

The paper trains 64-32-16-8-4-2, ReLU, softmax with Adam (learning rate 0.01, batches of 128) for 1000 epochs. So do we,
but for at most 100 epochs or 20,000 updates (more only over-fits the small tables and takes hours on the large ones),
and on standardised inputs. The scaling is folded into the first layer afterwards: the network takes the plain codes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits._version import __version__
from fairbits.data.registry import built_in, load_table
from fairbits.domain import Codes, Decoder, Doubles, Encoding
from fairbits.errors import CapabilityError, FairbitsError, ModelError, foreign
from fairbits.models import (
    Fitting,
    Model,
    Network,
    Scaling,
    adapt,
    classes_in_order,
    estimator_of,
    feed_of,
    fit_again,
    fit_to_schema,
    fresh_estimator,
    innermost,
    last_step,
    named_object,
    refit,
)
from fairbits.subject import Subject, balanced_accuracy
from fairbits.text import percent

HIDDEN = (64, 32, 16, 8, 4)
BATCH = 128
MAX_UPDATES = 20_000
MAX_EPOCHS = 100
LEARNING_RATE = 0.01
#: A network this deep and narrow sometimes dies (every ReLU off) and learns less than this beyond the majority: the
#: next seed is tried, at most so often.
ALIVE, ATTEMPTS = 0.001, 5
#: Activations, and what scikit-learn calls them.
_ACTIVATIONS = {"relu": "relu", "tanh": "tanh", "sigmoid": "logistic", "identity": "identity"}


def train_built_in(name: str, *, seed: int = 0) -> tuple[Network, dict[str, Any]]:
    """Train the network of a built-in subject anew; the network and its card."""
    entry, table = built_in(name), load_table(name)
    encoding, trained, held_out = entry.encoding(), table.training(), table.unseen()
    if held_out is None or trained.labels is None or held_out.labels is None:
        raise ModelError(f"subject {name!r} holds no rows out, so nothing could be said about its network.")
    majority = float(np.bincount(trained.labels.astype(np.int64)).max() / len(trained))
    epochs, inputs = epochs_for(len(trained)), encoding.encode(trained.codes)
    seeds, favourable = range(seed, seed + ATTEMPTS), entry.schema.favourable_index
    network, used = fit_alive(inputs, trained.labels, seeds, favourable=favourable, epochs=epochs)
    if used is None:
        raise FairbitsError(
            f"{ATTEMPTS} networks for {name!r} from seed {seed} on learned nothing beyond the majority class "
            f"({percent(majority)}); try another --seed."
        )
    right = network.labels(encoding.encode(held_out.codes)) == held_out.labels
    return network, {
        "subject": name,
        "table": table.origin,
        "rows_trained": len(trained),
        "rows_held_out": len(held_out),
        "accuracy_trained": round(float((network.labels(inputs) == trained.labels).mean()), 4),
        "accuracy_held_out": round(float(right.mean()), 4),
        "balanced_accuracy_held_out": round(balanced_accuracy(right, held_out.labels), 4),
        "majority_share": round(majority, 4),
        "shape": [network.inputs, *network.widths],
        "epochs": epochs,
        "seed": used,
        "command": f"fairbits data train {name} --seed {seed}",
        "version": __version__,
        "date": datetime.now(UTC).date().isoformat(),
    }


def fit_alive(
    inputs: npt.NDArray[np.float32],
    labels: npt.NDArray[np.float64],
    seeds: Iterable[int],
    *,
    favourable: int,
    regression: bool = False,
    **recipe: Any,
) -> tuple[Network, int | None]:
    """The first network that learned something beyond the majority, and its seed; else the last one, and no seed."""
    for seed in seeds:
        network = fit(inputs, labels, seed=seed, regression=regression, **recipe)
        if regression:
            return network, seed
        network = network.with_favourable(favourable)
        majority = np.bincount(labels.astype(np.int64)).max() / len(labels)
        if float((network.labels(inputs) == labels).mean()) > majority + ALIVE:
            return network, seed
    return network, None


def epochs_for(rows: int) -> int:
    """How often training passes over a table."""
    return min(MAX_EPOCHS, -(-MAX_UPDATES * BATCH // rows))


def fit(
    inputs: npt.NDArray[np.float32],
    labels: npt.NDArray[np.float64],
    *,
    epochs: int,
    seed: int,
    hidden: tuple[int, ...] = HIDDEN,
    activation: str = "relu",
    regression: bool = False,
) -> Network:
    """Train one network, in one thread: the result must not depend on the number of cores."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from threadpoolctl import threadpool_limits

    scaling = Scaling(inputs)
    mean, spread = scaling.mean, scaling.spread
    centre, unit = (float(labels.mean()), float(labels.std()) or 1.0) if regression else (0.0, 1.0)
    learner = (MLPRegressor if regression else MLPClassifier)(
        activation=_ACTIVATIONS[activation],
        hidden_layer_sizes=hidden,
        batch_size=min(BATCH, len(inputs)),
        learning_rate_init=LEARNING_RATE,
        max_iter=epochs,
        n_iter_no_change=epochs,
        tol=0.0,
        random_state=seed,
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fixed number of epochs is the plan
        targets = (labels - centre) / unit if regression else labels.astype(np.int64)
        learner.fit(((inputs - mean) / spread).astype(np.float32), targets)
    weights, biases = learner.coefs_, learner.intercepts_
    if regression:
        weights, biases = [*weights[:-1], weights[-1] * unit], [*biases[:-1], biases[-1] * unit + centre]
    # The scaling goes into the first layer, and the single logistic output becomes a softmax of two.
    first = weights[0].astype(np.float64) / spread[:, None]
    w, b = [first, *weights[1:]], [biases[0] - mean @ first, *biases[1:]]
    if not regression and w[-1].shape[1] == 1:
        w[-1], b[-1] = np.hstack([-w[-1] / 2, w[-1] / 2]), np.concatenate([-b[-1] / 2, b[-1] / 2])
    return Network.build(w, b, activation=activation, head="linear" if regression else "softmax")


#: Updates of a network that is trained further.
UPDATES = 1_500
#: People whom an estimator is asked about, to see whether it takes rows as they are given to it.
TRIED = 50
#: What an update costs, about: the fixed part, and for each weight.
SECONDS_PER_UPDATE, SECONDS_PER_WEIGHT = 5e-4, 2e-7


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A model of the subject's own kind, fitted anew: how it is asked, and what can be written to a file."""

    model: Model
    encoding: Encoding
    estimator: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class NetworkTrainer:
    """Networks of one shape."""

    subject: Subject
    network: Network
    updates: int = UPDATES
    words: str = "trained further"
    recipe: str = "by fairbits' own recipe for networks of this shape (Adam on shuffled rows, no early stopping)"
    epochs: int | None = None  # of a training anew; None: as many as the built-in networks have

    def check(self) -> None:
        """Refuse shapes that are not trained anew here."""
        kinds = {activation.name for activation in self.network.activations_after}
        if len(kinds) > 1 or not kinds <= set(_ACTIVATIONS):
            raise CapabilityError(f"networks with the activation {', '.join(sorted(kinds))} are not trained here.")

    def seconds(self, rows: int) -> float:
        """What a training on so many rows takes about, on one core of today."""
        weights = sum(layer.size for layer in self.network.weights)
        updates = (self.epochs or epochs_for(rows)) * max(1, rows // BATCH)
        return updates * (SECONDS_PER_UPDATE + SECONDS_PER_WEIGHT * weights)

    def anew(self, rows: Codes, labels: Doubles, seed: int) -> Fitted:
        """Train from a seed; a network that learned nothing beyond the majority is trained again from another seed.

        After ``ATTEMPTS`` trainings the last one is taken as it is.
        """
        self.check()
        network, _ = fit_alive(
            self.subject.encoding.encode(rows),
            labels,
            [seed + 1000 * attempt for attempt in range(ATTEMPTS)],
            favourable=self.subject.schema.favourable_index,
            epochs=self.epochs or epochs_for(len(labels)),
            hidden=self.network.widths[:-1],
            activation=next((one.name for one in self.network.activations_after), "relu"),
            regression=self.subject.schema.regression,
        )
        return Fitted(network, self.subject.encoding)

    def learned(
        self,
        rows: Codes,
        labels: Doubles,
        rng: np.random.Generator,
        *,
        sample_weights: Doubles | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Fitted:
        """Train further from its own weights, or from new ones of another shape (``settings["widths"]``)."""
        chosen, encoding = {"updates": self.updates, **(settings or {})}, self.subject.encoding
        widths = chosen.pop("widths", None)
        start = self.network if widths is None else fresh_network(self.network, tuple(widths), rng)
        learner = refit(
            start, encoding.encode(rows), labels, rng, fitting=Fitting(**chosen), sample_weights=sample_weights
        )
        return Fitted(learner, encoding)


@dataclass(frozen=True, slots=True, eq=False)
class EstimatorTrainer:
    """Copies of an estimator, fitted on rows in the form in which it gives the scores that are known of it."""

    subject: Subject
    estimator: Any
    feed: Any
    classes: npt.NDArray[Any] | None  # what it calls the schema's classes, in their order; None for a regression
    words: str = "fitted anew"

    @classmethod
    def of(cls, subject: Subject) -> EstimatorTrainer:
        """The trainer of the estimator that a subject's model was read from."""
        estimator = estimator_of(subject.original, subject.model, subject.options)
        fresh_estimator(estimator, 0)  # refused before anything is trained
        about = (subject.model, subject.encoding, subject.schema)
        some = subject.table.codes[:: max(1, len(subject.table) // TRIED)][:TRIED]
        feed = feed_of(estimator, *about, subject.options, some)
        return cls(subject, estimator, feed, classes_in_order(estimator, feed, *about, some))

    @property
    def recipe(self) -> str:
        return f"by its own library ({type(last_step(self.estimator)[1]).__name__}, cloned with another seed)"

    def anew(self, rows: Codes, labels: Doubles, seed: int) -> Fitted:
        """Copy the estimator, give the copy another seed and fit it."""
        return self._fitted(fresh_estimator(self.estimator, seed), rows, labels, {})

    def learned(
        self,
        rows: Codes,
        labels: Doubles,
        rng: np.random.Generator,
        *,
        sample_weights: Doubles | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Fitted:
        """Fit a copy to weighted rows; where it takes no weights, rows are drawn by them instead."""
        made = fresh_estimator(self.estimator, int(rng.integers(2**31))).set_params(**(settings or {}))
        name = weight_name(made)
        if name is None or sample_weights is None:
            return self._fitted(made, *drawn_by(sample_weights, rows, labels, rng), {})
        return self._fitted(made, rows, labels, {name: sample_weights})

    def _fitted(self, made: Any, rows: Codes, labels: Doubles, weighted: Mapping[str, Any]) -> Fitted:
        targets = labels if self.classes is None else self.classes[labels.astype(np.int64)]
        fit_again(made, self.feed(rows), targets, weighted)
        return asked(made, self.subject)


@dataclass(frozen=True, slots=True, eq=False)
class OwnTrainer:
    """The user's own recipe."""

    subject: Subject
    reference: str
    train: Any
    words: str = "trained anew by your own recipe"

    @classmethod
    def of(cls, subject: Subject) -> OwnTrainer:
        """The recipe that the subject names."""
        reference = str(subject.options.train)
        found = named_object(reference, trust_code=subject.options.trust_code)
        if not callable(found):
            raise ModelError(f"train is {reference!r}, which cannot be called; name a function of rows, labels, seed.")
        return cls(subject, reference, found)

    @property
    def recipe(self) -> str:
        return f"by your own recipe ({self.reference})"

    def anew(self, rows: Codes, labels: Doubles, seed: int) -> Fitted:
        """What the recipe makes of the rows, in words that the table has."""
        schema = self.subject.schema
        named = labels if schema.regression else np.array(schema.classes)[labels.astype(np.int64)]
        with foreign(f"{self.reference!r} could not train a model", CapabilityError):
            made = self.train(Decoder(schema).frame(rows), named, seed)
        return asked(made, self.subject)

    def learned(
        self,
        rows: Codes,
        labels: Doubles,
        rng: np.random.Generator,
        *,
        sample_weights: Doubles | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Fitted:
        """The same on rows drawn by their weights; settings are the recipe's own business."""
        if settings:
            raise CapabilityError(f"{self.reference!r} is a recipe of your own, whose settings are not known here.")
        return self.anew(*drawn_by(sample_weights, rows, labels, rng), int(rng.integers(2**31)))


#: Makes models of one kind from rows. ``recipe`` and ``words`` say to people whose recipe it is and what ``learned``
#: does; ``anew`` gives a model that knows nothing but some rows, ``learned`` one that is fitted to weighted rows under
#: settings of its kind (a network goes on from its own weights).
Trainer = NetworkTrainer | EstimatorTrainer | OwnTrainer


def trainer_of(subject: Subject) -> Trainer:
    """Whoever can train models like the subject's: the user's own recipe first, then an estimator's, then ours."""
    if subject.options.train is not None:
        return OwnTrainer.of(subject)
    try:
        return EstimatorTrainer.of(subject)
    except CapabilityError as error:  # no estimator, but perhaps a network
        network = innermost(subject.model)
        if not isinstance(network, Network):
            raise CapabilityError(
                f"{str(error).rstrip('.')}; or name a recipe of your own with train under [model]."
            ) from None
    return NetworkTrainer(subject, network)


def asked(made: Any, subject: Subject) -> Fitted:
    """What a training made, as a model that can be asked about the subject's people."""
    try:
        loaded = adapt(made, subject.schema, subject.options)
        loaded = replace(loaded, encoding=loaded.encoding or subject.encoding)
        found = fit_to_schema(loaded, subject.schema, options=subject.options)
    except ModelError as error:
        raise CapabilityError(f"what was fitted again cannot be asked: {error}") from None
    return Fitted(found.model, found.encoding, made if callable(getattr(made, "predict", None)) else None)


def fresh_network(like: Network, widths: tuple[int, ...], rng: np.random.Generator) -> Network:
    """A network with new weights (He et al. 2015) and other hidden layers; head and activation are the old one's."""
    sizes = (like.inputs, *widths, like.widths[-1])
    weights = [rng.standard_normal((a, b)) * np.sqrt(2 / a) for a, b in pairwise(sizes)]
    activation = like.activations_after[0] if like.activations_after else "relu"
    return Network.build(
        weights,
        [np.zeros(size) for size in sizes[1:]],
        activation=activation,
        head=like.head,
        favourable=like.favourable,
    )


def weight_name(estimator: Any) -> str | None:
    """What ``fit`` calls the weights of rows; None where it takes none."""
    from sklearn.utils.validation import has_fit_parameter

    prefix, final = last_step(estimator)
    return f"{prefix}sample_weight" if has_fit_parameter(final, "sample_weight") else None


def drawn_by(weights: Doubles | None, rows: Codes, labels: Doubles, rng: np.random.Generator) -> tuple[Codes, Doubles]:
    """As many rows, drawn by their weights where they have any."""
    if weights is None:
        return rows, labels
    drawn = rng.choice(len(rows), len(rows), p=weights / weights.sum())
    return rows[drawn], labels[drawn]
