"""The subject's own kind of model, trained again: a native network by our trainer, an estimator by its library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes
from fairbits.errors import CapabilityError, ModelError, TableError
from fairbits.models import (
    Fitting,
    Network,
    adapt,
    classes_in_order,
    estimator_of,
    feed_of,
    fit_again,
    fit_to_schema,
    fresh_estimator,
    last_step,
    refit,
)
from fairbits.repair.records import Fitted
from fairbits.subject import Subject

#: Fewer training rows than this teach a model nothing that could be told from chance.
MIN_ROWS = 60
UPDATES = 1_500
#: People whom an estimator is asked about, to see whether it takes rows as they are given to it.
TRIED = 100
#: What needs scores only, and so remains for every model.
REMAINING = "average, guard-K and thresholds need scores only"

Floats = npt.NDArray[np.float64]


class ModelKind(Protocol):
    """Makes models of one kind from rows."""

    @property
    def words(self) -> str:
        """What is done, for people: "trained further"."""

    def fit(
        self,
        rows: Codes,
        labels: Floats,
        rng: np.random.Generator,
        *,
        sample_weights: Floats | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Fitted:
        """A model of this kind, fitted to the rows."""


@dataclass(frozen=True, slots=True, eq=False)
class NetworkKind:
    """A native network: trained further from its own weights, or from new ones of another shape (``settings``)."""

    subject: Subject
    network: Network
    updates: int = UPDATES
    words: str = "trained further"

    def fit(
        self,
        rows: Codes,
        labels: Floats,
        rng: np.random.Generator,
        *,
        sample_weights: Floats | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Fitted:
        """A network fitted to the rows."""
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
class EstimatorKind:
    """An estimator of scikit-learn's manner, fitted anew from its own parameters."""

    subject: Subject
    estimator: Any
    feed: Any
    classes: npt.NDArray[Any] | None  # what it calls the schema's classes, in their order; None for a regression
    words: str = field(default="fitted anew")

    def fit(
        self,
        rows: Codes,
        labels: Floats,
        rng: np.random.Generator,
        *,
        sample_weights: Floats | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Fitted:
        """An estimator fitted to the rows; where it takes no weights, rows are drawn by them instead."""
        made = self.fresh(rng, settings)
        weighted: dict[str, Any] = {}
        if sample_weights is not None:
            name = weight_name(made)
            if name is None:
                drawn = rng.choice(len(rows), len(rows), p=sample_weights / sample_weights.sum())
                rows, labels = rows[drawn], labels[drawn]
            else:
                weighted = {name: sample_weights}
        fit_again(made, self.feed(rows), self.targets(labels), weighted)
        return self.fitted(made)

    def fresh(self, rng: np.random.Generator, settings: Mapping[str, Any] | None = None) -> Any:
        """An unfitted copy, its seeds set."""
        made = fresh_estimator(self.estimator, int(rng.integers(2**31)))
        return made.set_params(**settings) if settings else made

    def targets(self, labels: Floats) -> npt.NDArray[Any]:
        """Labels as the estimator calls them."""
        return labels if self.classes is None else self.classes[labels.astype(np.int64)]

    def fitted(self, made: Any) -> Fitted:
        """The fitted estimator as a model that can be asked."""
        subject = self.subject
        try:
            loaded = adapt(made, subject.schema, subject.options)
            loaded = replace(loaded, encoding=loaded.encoding or subject.encoding)
            found = fit_to_schema(loaded, subject.schema, options=subject.options)
        except ModelError as error:
            raise CapabilityError(f"what was fitted again cannot be asked: {error}") from None
        assert found.encoding is not None  # noqa: S101 - given above
        return Fitted(found.model, found.encoding, made)


def kind_to_fit(subject: Subject, *, own_parameters: bool = False) -> ModelKind:
    """How models of the subject's own kind are trained."""
    if isinstance(subject.model, Network):
        if own_parameters:
            try:
                return _estimator_kind(subject)
            except CapabilityError:
                pass  # a network alone: its shape and its training are what can be searched
        return NetworkKind(subject, subject.model)
    try:
        return _estimator_kind(subject)
    except CapabilityError as error:
        raise CapabilityError(f"{str(error).rstrip('.')}; {REMAINING}.") from None


def check_rows(subject: Subject, labels: Floats) -> None:
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


def _estimator_kind(subject: Subject) -> EstimatorKind:
    estimator = estimator_of(subject.original, subject.model, subject.options)
    about = (subject.model, subject.encoding, subject.schema)
    codes = subject.table.codes
    some = codes[:: max(1, len(codes) // TRIED)][:TRIED]
    feed = feed_of(estimator, *about, subject.options, people=some, learned=True)
    return EstimatorKind(subject, estimator, feed, classes_in_order(estimator, feed, *about, some))
