"""The one trainer: models like a subject's own, made from rows.

Three recipes, and everything that trains says which it took. A native network is trained in its own shape, anew by the
recipe of the built-in ones or further from its own weights; an estimator of scikit-learn's manner is cloned and fitted
by its own library; and whoever has a recipe of their own names it: ``[model] train = "module:function"``, called as
``train(rows, labels, seed)`` with a data frame of people as the table has them, their labels and a number, gives back a
model. It is code, so it runs only where code is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fairbits.data.networks import epochs_for, fit
from fairbits.domain import Codes, Decoder, Encoding
from fairbits.errors import CapabilityError, FairbitsError, ModelError
from fairbits.models import (
    Fitting,
    Model,
    Network,
    Wrapper,
    adapt,
    classes_in_order,
    estimator_of,
    feed_of,
    fit_again,
    fit_to_schema,
    fresh_estimator,
    last_step,
    named_object,
    reason,
    refit,
)
from fairbits.subject import Subject

#: Updates of a network that is trained further.
UPDATES = 1_500
#: People whom an estimator is asked about, to see whether it takes rows as they are given to it.
TRIED = 50
#: A network that learned less than this beyond the majority is dead (every ReLU off): the next seed is tried.
ALIVE, ATTEMPTS = 0.001, 5
#: Rows of an update, and what one costs, about: the fixed part, and for each weight.
BATCH, SECONDS_PER_UPDATE, SECONDS_PER_WEIGHT = 128, 5e-4, 2e-7
_ACTIVATIONS = {"relu": "relu", "tanh": "tanh", "sigmoid": "logistic", "identity": "identity"}

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A model of the subject's own kind, fitted anew: how it is asked, and what can be written to a file."""

    model: Model
    encoding: Encoding
    estimator: Any = None


class Trainer(Protocol):
    """Makes models of one kind from rows."""

    @property
    def recipe(self) -> str:
        """Whose recipe it is, for people: "by its own library (LogisticRegression)"."""

    @property
    def words(self) -> str:
        """What ``learned`` does, for people: "trained further"."""

    def anew(self, rows: Codes, labels: Floats, seed: int) -> Fitted:
        """A model that knows nothing but these rows."""

    def learned(
        self,
        rows: Codes,
        labels: Floats,
        rng: np.random.Generator,
        *,
        sample_weights: Floats | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Fitted:
        """A model fitted to weighted rows, under settings of its kind; a network goes on from its own weights."""


@dataclass(frozen=True, slots=True, eq=False)
class NetworkTrainer:
    """Networks of one shape."""

    subject: Subject
    network: Network
    updates: int = UPDATES
    words: str = "trained further"
    epochs: int | None = None  # of a training anew; None: as many as the built-in networks have

    @property
    def recipe(self) -> str:
        """The recipe of the built-in networks."""
        return "by fairbits' own recipe for networks of this shape (Adam on shuffled rows, no early stopping)"

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

    def anew(self, rows: Codes, labels: Floats, seed: int) -> Fitted:
        """Train from a seed; a network that learned nothing beyond the majority is trained again from another seed.

        After ``ATTEMPTS`` trainings the last one is taken as it is.
        """
        self.check()
        inputs, encoding = self.subject.encoding.encode(rows), self.subject.encoding
        regression = self.subject.schema.regression
        majority = 0.0 if regression else float(np.bincount(labels.astype(np.int64)).max() / len(labels))
        activation = next((one.name for one in self.network.activations_after), "relu")
        for attempt in range(ATTEMPTS):
            network = fit(
                inputs,
                labels,
                epochs=self.epochs or epochs_for(len(labels)),
                seed=seed + 1000 * attempt,
                hidden=self.network.widths[:-1],
                activation=_ACTIVATIONS[activation],
                regression=regression,
            )
            if regression:
                break
            network = network.with_favourable(self.subject.schema.favourable_index)
            if float((network.labels(inputs) == labels).mean()) > majority + ALIVE:
                break
        return Fitted(network, encoding)

    def learned(
        self,
        rows: Codes,
        labels: Floats,
        rng: np.random.Generator,
        *,
        sample_weights: Floats | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Fitted:
        """Train further from its own weights, or from new ones of another shape (``settings["widths"]``)."""
        chosen = dict(settings or {})
        encoding = self.subject.encoding
        start = self.network
        widths = chosen.pop("widths", None)
        if widths is not None:
            start = fresh_network(self.network, tuple(widths), rng)
        fitting = Fitting(**{"updates": self.updates, **chosen})
        found = refit(start, encoding.encode(rows), labels, rng, fitting=fitting, sample_weights=sample_weights)
        return Fitted(found, encoding)


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
        codes = subject.table.codes
        some = codes[:: max(1, len(codes) // TRIED)][:TRIED]
        feed = feed_of(estimator, *about, subject.options, people=some, learned=True)
        return cls(subject, estimator, feed, classes_in_order(estimator, feed, *about, some))

    @property
    def recipe(self) -> str:
        """The estimator's own."""
        return f"by its own library ({type(last_step(self.estimator)[1]).__name__}, cloned with another seed)"

    def anew(self, rows: Codes, labels: Floats, seed: int) -> Fitted:
        """Copy the estimator, give the copy another seed and fit it."""
        return self._fitted(fresh_estimator(self.estimator, seed), rows, labels, {})

    def learned(
        self,
        rows: Codes,
        labels: Floats,
        rng: np.random.Generator,
        *,
        sample_weights: Floats | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Fitted:
        """Fit a copy to weighted rows; where it takes no weights, rows are drawn by them instead."""
        made = fresh_estimator(self.estimator, int(rng.integers(2**31)))
        if settings:
            made.set_params(**settings)
        weighted: dict[str, Any] = {}
        if sample_weights is not None:
            name = weight_name(made)
            if name is None:
                rows, labels = drawn_by(sample_weights, rows, labels, rng)
            else:
                weighted = {name: sample_weights}
        return self._fitted(made, rows, labels, weighted)

    def _fitted(self, made: Any, rows: Codes, labels: Floats, weighted: Mapping[str, Any]) -> Fitted:
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
        """The user's own."""
        return f"by your own recipe ({self.reference})"

    def anew(self, rows: Codes, labels: Floats, seed: int) -> Fitted:
        """What the recipe makes of the rows, in words that the table has."""
        schema = self.subject.schema
        named = labels if schema.regression else np.array(schema.classes)[labels.astype(np.int64)]
        try:
            made = self.train(Decoder(schema).frame(rows), named, seed)
        except FairbitsError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code may raise anything
            raise CapabilityError(f"{self.reference!r} could not train a model: {reason(error)}") from None
        return asked(made, self.subject)

    def learned(
        self,
        rows: Codes,
        labels: Floats,
        rng: np.random.Generator,
        *,
        sample_weights: Floats | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Fitted:
        """The same on rows drawn by their weights; settings are the recipe's own business."""
        if settings:
            raise CapabilityError(f"{self.reference!r} is a recipe of your own, whose settings are not known here.")
        if sample_weights is not None:
            rows, labels = drawn_by(sample_weights, rows, labels, rng)
        return self.anew(rows, labels, int(rng.integers(2**31)))


def trainer_of(subject: Subject) -> Trainer:
    """Whoever can train models like the subject's: the user's own recipe first, then an estimator's, then ours."""
    if subject.options.train is not None:
        return OwnTrainer.of(subject)
    try:
        return EstimatorTrainer.of(subject)
    except CapabilityError as error:  # no estimator, but perhaps a network
        network = network_of(subject)
        if network is None:
            raise CapabilityError(
                f"{str(error).rstrip('.')}; or name a recipe of your own with train under [model]."
            ) from None
    return NetworkTrainer(subject, network)


def network_of(subject: Subject) -> Network | None:
    """The native network behind a subject's model, where there is one."""
    model = subject.model
    while isinstance(model, Wrapper):
        model = model.original
    return model if isinstance(model, Network) else None


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


def drawn_by(weights: Floats, rows: Codes, labels: Floats, rng: np.random.Generator) -> tuple[Codes, Floats]:
    """As many rows, drawn by their weights."""
    drawn = rng.choice(len(rows), len(rows), p=weights / weights.sum())
    return rows[drawn], labels[drawn]
