"""A fixed sample of people and twins, and what a model answers about them: how models without bytes are told apart.

The same table gives the same sample, with no randomness in it. A model that is no native network is asked twice: one
that answers otherwise the second time has scores that vary, and its probe is compared as a sample and not score by
score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Encoding, Schema, Table, Twins
from fairbits.models import Model, Network, fresh_scores
from fairbits.shape import fits

#: Scores in a probe, and twins of one person among them.
PROBED, MAX_TWINS = 256, 16
#: Scores of it that are asked again before an identity is used a second time.
AGAIN = 16
#: Scores are the same where they differ by no more than this (for a regression: this share of the largest).
ROUNDING = 1e-5
#: Standard errors by which two samples of varying answers may lie apart.
STANDARD_ERRORS = 5.0

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Probe:
    """Scores of a fixed sample, and how far a second answer came out otherwise."""

    scores: tuple[float | None, ...] = ()
    varied: float = 0.0
    mean: float = 0.0
    spread: float = 0.0
    quantile: float = 0.0
    largest: float = 0.0

    @classmethod
    def sound(cls, document: Any) -> bool:
        """Whether a document from a file can be read as a probe."""
        if not isinstance(document, Mapping) or not set(document) <= {one.name for one in fields(cls)}:
            return False
        figures = {name: value for name, value in document.items() if name != "scores"}
        return fits(document.get("scores"), list[float | None]) and fits(figures, dict[str, float])

    @classmethod
    def of(cls, first: npt.ArrayLike, second: npt.ArrayLike | None = None) -> Probe:
        """A probe from one or two rounds of answers."""
        scores = np.asarray(first, dtype=np.float64)
        kept = tuple(float(f"{score:.7g}") if np.isfinite(score) else None for score in scores)
        if second is None or not len(scores):
            return cls(kept)
        away = np.abs(np.nan_to_num(scores) - np.nan_to_num(np.asarray(second, dtype=np.float64)))
        varied = away > _tolerance(scores)
        if not varied.any():
            return cls(kept)
        return cls(
            kept,
            varied=float(varied.mean()),
            mean=float(away.mean()),
            spread=float(np.sqrt((away**2).mean())),
            quantile=float(np.quantile(away, 0.95)),
            largest=float(away.max()),
        )

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Probe:
        """A probe from a document; undoes ``document``."""
        return cls(**{**document, "scores": tuple(document["scores"])})

    @property
    def varies(self) -> bool:
        """Whether the model answered the same question in two ways."""
        return self.varied > 0

    def document(self) -> dict[str, Any]:
        """As it is kept in JSON."""
        return {**asdict(self), "scores": list(self.scores)}

    def differences(self, other: Probe) -> Iterator[str]:
        """Sentences on what tells the two models apart."""
        if len(self.scores) != len(other.scores):
            return  # another sample: the tables differ, which is said where tables are compared
        there, here = (
            np.array([np.nan if s is None else s for s in probe.scores], dtype=np.float64) for probe in (self, other)
        )
        if not len(there):
            return
        away = np.abs(np.nan_to_num(here) - np.nan_to_num(there))
        strange = (away > _tolerance(np.concatenate([there, here]))) | (np.isnan(there) != np.isnan(here))
        if not strange.any():
            return
        if not (self.varies or other.varies):
            place = int(np.argmax(away))
            yield (
                f"scores differ ({int(strange.sum())} of {len(away)} probed, the furthest {there[place]:.4g} there and "
                f"{here[place]:.4g} here)"
            )
            return
        yield from self._varying_differences(other, here - there)

    def _varying_differences(self, other: Probe, moved: Scores) -> Iterator[str]:
        """Two samples of answers that vary: one model gives both the same mean, spread and share of changes."""
        n = len(moved)
        noise = max(self.spread, other.spread)
        share = (self.varied + other.varied) / 2
        if abs(self.varied - other.varied) > STANDARD_ERRORS * sqrt(2 * share * (1 - share) / n + 1 / n**2):
            yield f"answers vary otherwise ({self.varied:.0%} of those probed there, {other.varied:.0%} here)"
        elif abs(moved.mean()) > STANDARD_ERRORS * noise / sqrt(n):
            yield f"mean score differs by {moved.mean():+.3g}, more than its varying answers explain"
        elif sqrt(float((moved**2).mean())) > 2 * noise:
            yield f"scores differ by {sqrt(float((moved**2).mean())):.3g}, more than its varying answers explain"


def ask_probe(model: Model, encoding: Encoding, schema: Schema, table: Table) -> Probe:
    """Ask a model about the sample: twice, unless it is a native network, which answers alike every time."""
    if table.scores is not None:
        return Probe()  # the model is not at hand; its scores are a part of the table
    people = probed_people(schema, table)
    if not len(people):
        return Probe()
    inputs = encoding.encode(people)
    first = np.array(model.scores(inputs), dtype=np.float64)
    return Probe.of(first) if isinstance(model, Network) else Probe.of(first, fresh_scores(model, inputs))


def still_answers(probe: Probe, model: Model, encoding: Encoding, schema: Schema, table: Table) -> bool:
    """Whether the model still gives the answers of a probe, tried on a few of them."""
    if probe.varies or not probe.scores:
        return True
    chosen = _evenly(len(probe.scores), AGAIN)
    now = Probe.of(model.scores(encoding.encode(probed_people(schema, table)[chosen])))
    before = Probe(tuple(probe.scores[i] for i in chosen))
    return not list(before.differences(now))


def probed_people(schema: Schema, table: Table) -> Codes:
    """The sample: rows spread evenly over the table, each with evenly spread combinations of protected values."""
    if not len(table):
        return np.empty((0, len(schema)))
    if not schema.protected:
        return table.codes[_evenly(len(table), PROBED)].copy()
    twins = Twins(schema)
    chosen = _evenly(twins.m, min(twins.m, MAX_TWINS))
    rows = _evenly(len(table), PROBED // len(chosen))
    people = np.repeat(table.codes[rows], len(chosen), axis=0)
    people[:, twins.columns] = np.tile(twins.values[chosen], (len(rows), 1))
    return people


def _evenly(count: int, wanted: int) -> npt.NDArray[np.int64]:
    return np.unique(np.rint(np.linspace(0, count - 1, min(count, wanted))).astype(np.int64))


def _tolerance(scores: Scores) -> float:
    """Probabilities are told apart absolutely, larger numbers beside their size."""
    return ROUNDING * max(1.0, float(np.nanmax(np.abs(scores), initial=0.0)))
