"""The guard: any model that gives scores, held so close to the average over a person's twins that k is bounded.

The bound holds for everybody in the domain, found or not, because of how the score is made. The average
over the twins, weighted by how often each combination occurs, is also known as the discrimination-free price (Lindholm,
Richman, Tsanakas, Wüthrich: ASTIN Bulletin 2022). Attributes that stand in for protected ones (proxies) stay.

A guarded score is ``C + a · (S − C)`` with ``a = min(1, tau / max|S − C|)``: a convex combination of the person's own
score S and the average C over their twins, so that it stays a probability (or a vector of them) and lies within tau of
C. C is the same for all twins, whatever the model, so two of them differ by 2·tau at most.

A rule such as ``age < 18 -> status != "married"`` leaves some people fewer twins; the average is then over those that
are left, their weights made to add up to 1 again. Averages lie closer together than single scores, so the old threshold
favours the more frequent class: a shift of the log-odds is fitted to the training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import (
    Attribute,
    Codes,
    Doubles,
    Encoding,
    Inputs,
    Lookup,
    Numeric,
    Schema,
    Table,
    Twins,
    Unseen,
    Validity,
    as_arrow,
    evaluated,
    table_from_arrow,
)
from fairbits.errors import CapabilityError, ModelError, OptionError
from fairbits.measure import Evaluator, default_epsilon, evaluator_of
from fairbits.models import Array, HasClassScores, ModelOptions, answers_vary, checked_rows, kind_of, read_model
from fairbits.repair.judgement import balanced_loss
from fairbits.repair.writers.standalone import clipped, moved_odds, twin_shares
from fairbits.subject import Subject, make_subject

#: Log-odds beyond this are not told apart in float32 probabilities.
_TINY = 1e-9


def half_width(guarantee: int, epsilon: float, partition: str, *, vector: bool = False) -> float:
    """How far a score may lie from the average of its twins, so that nobody has more than ``guarantee`` classes.

    Two twins differ by 2·tau at most, and a sweep with classes of width ε covers that with ⌈2·tau/ε⌉ of them. On the
    grid a bin may begin anywhere, which costs one more. Whole vectors are classes by boxes, where this holds
    for one box only. One class is the plain average: then nobody's decision depends on a twin either.
    """
    if guarantee == 1:
        return 0.0
    if vector:
        return epsilon / 2
    return (guarantee - (partition == "grid")) * epsilon / 2


def proved_classes(tau: float, epsilon: float, partition: str, *, vector: bool = False) -> int:
    """The largest number of classes that anybody can have, for a half width with room for rounding."""
    if tau == 0:
        return 1
    if vector:
        return int(tau <= epsilon / 2)
    return max(1, int(np.ceil(2 * tau / epsilon - 1e-9))) + (partition == "grid")


def moved(scores: npt.NDArray[Any], shift: float, *, regression: bool) -> Doubles:
    """Scores with their log-odds (for a regression: their values) moved by the same amount for every twin."""
    exact = np.asarray(scores, np.float64) if isinstance(scores, np.ndarray) else scores  # else traced, for a graph
    if shift == 0:
        return exact
    return exact + shift if regression else moved_odds(exact, shift, _TINY)


def averaged(scores: npt.NDArray[Any], weights: Doubles, valid: npt.NDArray[np.bool_] | None) -> Doubles:
    """The weighted mean over the twins that can exist; over all where none can."""
    exact = np.asarray(scores, dtype=np.float64)
    if valid is None:
        return np.asarray(np.tensordot(exact, weights, axes=([1], [0])))
    return np.einsum("nm...,nm->n...", exact, twin_shares(weights[None], valid))


@dataclass(frozen=True, slots=True, eq=False)
class TwinRules:
    """Rules that look at protected attributes, and how what they look at is read back from the inputs."""

    programs: tuple[list[Any], ...]
    seen: Mapping[int, tuple[Numeric | Lookup, bool]]
    twins: Mapping[int, Doubles]

    @classmethod
    def of(cls, schema: Schema, encoding: Encoding, twins: Twins) -> TwinRules | None:
        """The rules of a schema that are about twins; None where there are none, or the model never gets what
        they ask.
        """
        protected = set(schema.protected_columns)
        rules = [rule for rule in schema.rules if protected.intersection(rule.columns)]
        looked_at = sorted({c for rule in rules for c in rule.columns} - protected)
        parts = [(column, encoding.parts[column]) for column in looked_at]
        seen = {c: (part, schema.attributes[c].discrete) for c, part in parts if not isinstance(part, Unseen)}
        if not rules or len(seen) < len(parts):
            return None
        values = {int(c): twins.values[:, place].astype(np.float64) for place, c in enumerate(twins.columns)}
        return cls(tuple(rule.program for rule in rules), seen, values)

    def valid(self, rows: Inputs) -> npt.NDArray[np.bool_]:
        """Which twins of encoded rows can exist, (n, m)."""
        columns: dict[int, Any] = {c: values[None] for c, values in self.twins.items()}
        columns |= {c: decoded(part, rows, whole=whole)[:, None] for c, (part, whole) in self.seen.items()}
        return np.asarray(np.broadcast_to(self.evaluate(columns), (len(rows), len(next(iter(self.twins.values()))))))

    def evaluate(self, columns: Mapping[int, Any]) -> Any:
        """Where all rules hold, by what arrays (or traced values of a graph) are in their columns."""
        return reduce(np.logical_and, [evaluated(program, columns.__getitem__) for program in self.programs])


def decoded(part: Numeric | Lookup, rows: Inputs, *, whole: bool) -> Codes:
    """One attribute's codes, read back from encoded rows."""
    if isinstance(part, Numeric):
        inputs = rows[:, part.column].astype(np.float64)
        codes = inputs / (part.scale or 1.0) + part.shift
        if part.gap is not None:
            codes = np.where(np.isnan(inputs), part.gap, codes)
    else:
        apart = np.abs(rows[:, part.columns].astype(np.float64)[:, None, :] - part.table[None]).sum(axis=2)
        codes = (np.argmin(apart, axis=1) + part.low).astype(np.float64)
    return np.rint(codes) if whole else codes


#: How much of the way the log-odds move to the threshold that favours as many rows as the model does. The model has
#: seen these rows and is surer of them than of anybody else, so the whole way would be too far.
SHARE = 0.5
_EDGE = 1e-6


def decision_shift(
    average: Doubles, own: npt.NDArray[Any], deserved: npt.NDArray[np.bool_], threshold: float = 0.5
) -> float:
    """What is added to the log-odds of averages before the threshold decides.

    The threshold moves towards the one at which as many of these rows are favoured as by the model itself, and only
    where balanced accuracy gains more by it than chance might give.
    """
    if deserved.all() or not deserved.any():
        return 0.0
    cut = float(np.clip(threshold, _EDGE, 1 - _EDGE))
    share = float((own >= threshold).mean())
    level = float(np.clip(np.quantile(average, 1 - share), _EDGE, 1 - _EDGE))
    shift = SHARE * float(np.log(cut / (1 - cut)) - np.log(level / (1 - level)))
    after = moved(average, shift, regression=False)
    labels = deserved.astype(np.float64)
    gained = balanced_loss((average >= threshold) == deserved, (after >= threshold) == deserved, labels)
    return shift if gained.high < 0 else 0.0


#: Twins that are asked about at once where rows come encoded.
_ROWS = 65_536
#: People whose twins' scores are kept at once.
_SCORES = 2_000_000
#: People who are asked about twice to see whether a model varies.
_ASKED_TWICE = 64
#: The widest bounds that are still numbers: no model has so many twins, and no float32 score is so large.
_MAX_CLASSES, _MAX_TAU = 10**9, 1e38


class Guard:
    """A model whose scores lie within tau of the average over the person's twins: at most ``k_max`` classes, proved.

    Nobody needs to declare a protected value: the average over twins asks for none, and whoever has none (or one that
    the schema does not have) gets it as their score, which lies within the bound.

    Parameters
    ----------
    model
        Whatever :class:`~fairbits.Audit` takes: a network, a file, an estimator, a function, an address.
    table
        The people that the model was trained on: how often each protected combination occurs among them weighs the
        twins, and their labels set the threshold. A :class:`~fairbits.Table` of codes, or a data frame.
    schema
        The attributes; those that are protected make the twins.
    guarantee
        The most classes that anybody may have. 1 is the plain average: all twins get the same score.
    tau
        How far a score may lie from the average, in place of ``guarantee``.
    epsilon
        Scores closer than this count as the same; by default as everywhere.
    partition
        "constrained", or "grid".
    encoding
        How attributes become inputs, where the model does not tell.
    refit
        Whether the decision threshold (for a regression: the mean) is fitted to the table's training rows again.
    threads
        By default all cores.
    **options
        As for :class:`~fairbits.Audit`.

    Raises
    ------
    OptionError
        If the guarantee is not a whole number of 1 or more, or tau is negative.

    Examples
    --------
    >>> import fairbits
    >>> guard = fairbits.Guard.of("german", guarantee=2, threads=1)
    >>> guard.k_max
    2
    """

    def __init__(
        self,
        model: Any,
        table: Any,
        schema: Schema,
        *,
        guarantee: int | None = None,
        tau: float | None = None,
        epsilon: float | None = None,
        partition: str = "constrained",
        encoding: Encoding | None = None,
        refit: bool = True,
        threads: int | None = None,
        **options: Any,
    ):
        chosen = ModelOptions.of(options)
        people = table if isinstance(table, Table) else table_from_arrow(as_arrow(table), schema)
        loaded = read_model(model, schema, chosen)
        subject = make_subject("guarded", loaded, schema, people, encoding=encoding, options=chosen, original=model)
        self._settle(subject, guarantee, tau, epsilon, partition, refit, threads)

    @classmethod
    def of(
        cls,
        subject: Subject | str,
        *,
        guarantee: int | None = None,
        tau: float | None = None,
        epsilon: float | None = None,
        partition: str = "constrained",
        refit: bool = True,
        threads: int | None = None,
        rows: Table | None = None,
    ) -> Guard:
        """The guard of a subject's model. Other parameters as of :class:`Guard`.

        Parameters
        ----------
        subject
            A subject, or its name or file.
        rows
            Training rows, where they are not the table's own.
        """
        if isinstance(subject, str):
            from fairbits.data import load_subject

            subject = load_subject(subject)
        guard = object.__new__(cls)
        guard._settle(subject, guarantee, tau, epsilon, partition, refit, threads, rows)
        return guard

    def _settle(
        self,
        subject: Subject,
        guarantee: int | None,
        tau: float | None,
        epsilon: float | None,
        partition: str,
        refit: bool,
        threads: int | None,
        rows: Table | None = None,
    ) -> None:
        check_bound(guarantee, tau)
        schema = subject.schema
        self.subject, self.model, self.schema, self.encoding = subject, subject.model, schema, subject.encoding
        self._whole = len(schema.classes) > 2
        if self._whole and not isinstance(self.model, HasClassScores):
            raise CapabilityError(
                f"the target has {len(schema.classes)} classes, and {kind_of(self.model)!r} gives the score of "
                f"one; a guard that decides needs the probabilities of all of them."
            )
        self.inputs = int(self.encoding.width)
        step = default_epsilon(schema, subject.table) if epsilon is None else epsilon
        self._evaluator = evaluator_of(subject, epsilon=step, partition=partition, threads=threads).over_values
        self.epsilon, self.partition = self._evaluator.epsilon, self._evaluator.partition
        #: The twins of a person, and how many those are: scores that one decision costs.
        self.subject_twins, self.m = self._evaluator.twins, self._evaluator.m
        twins = self.subject_twins
        known = (rows or subject.table).training()
        #: Whether the model gives the same person another score when asked again: then nothing can be proved.
        self.varies = not self._evaluator.native and answers_vary(
            self.model, self.encoding.encode(known.codes[:_ASKED_TWICE])
        )
        self._bind(guarantee, tau)
        # The share of each protected combination among the rows, smoothed by one row spread over all m (Perks 1947).
        counts = np.bincount(twins.index_of(known.codes), minlength=self.m).astype(np.float64)
        self.weights = (counts + 1 / self.m) / (len(known) + 1)
        #: Rules leave some people fewer twins; where they look at what the model never gets, all twins are averaged.
        self.twin_rules = TwinRules.of(schema, self.encoding, twins)
        # By the rules alone: that a real row breaks one is no part of the person's other attributes, and files that do
        # without the table must decide as the guard does.
        self._validity = Validity(schema, twins)
        parts = [(self.encoding.parts[i], schema.attributes[i]) for i in twins.columns]
        #: What protected attributes become among the inputs, each with the ends of its domain there.
        self.protected_parts = [(part, _ends(part, one)) for part, one in parts if not isinstance(part, Unseen)]
        #: Which inputs protected attributes fill, and what each twin has there, (m, protected inputs).
        self.protected_inputs = np.concatenate([part.columns for part, _ in parts])
        encoded = [part.encode(values) for (part, _), values in zip(parts, twins.values.T, strict=True)]
        self.twin_inputs = np.concatenate(encoded, axis=1).astype(self.encoding.dtype)
        self.shift = 0.0
        if refit and known.labels is not None and len(known) and not self._whole:
            average = self._in_pieces(
                lambda some: self._centre(self._asked_twins(some), self._valid(some)), known.codes, _SCORES
            )
            if schema.regression:  # added to values, so that their mean is right
                self.shift = float(np.mean(known.labels - average[:, 0]))
            else:
                own = np.asarray(self.model.scores(self.encoding.encode(known.codes)))
                deserved = known.labels == schema.favourable_index
                self.shift = decision_shift(average[:, 0], own, deserved, float(self._evaluator.threshold))

    def _bind(self, guarantee: int | None, tau: float | None) -> None:
        vector = self._evaluator.by_vector
        wanted = half_width(check_bound(guarantee, tau), self.epsilon, self.partition, vector=vector)
        self.tau = float(wanted if tau is None else tau)
        classes = 0 if self.varies else proved_classes(self.tau, self.epsilon, self.partition, vector=vector)
        #: The most classes that anybody can have; proved by the way the score is made. 0: nothing is proved, because
        #: tau is too wide to tell, or a person has no more twins than that.
        self.k_max = classes if classes < self.m or self.tau == 0 else 0

    @property
    def proof(self) -> str:
        """Why the bound holds, in a sentence; for a model that varies, that nothing is proved."""
        if self.varies:
            return (
                "Nothing is proved: the model gives the same person another score when it is asked again. Averages "
                "over twins still vary less than single answers; ask it several times (repeats) to have steadier ones."
            )
        if self.tau == 0:
            return (
                "Proved for everybody: all twins of a person get one score, the average over their twins, so k = 1 "
                "and no decision depends on a protected value."
            )
        if not self.k_max:
            return f"Proved for everybody: twins differ by at most {2 * self.tau:.4g} in every probability."
        return (
            f"Proved for everybody: every score lies within {self.tau:.4g} of the average over the person's twins, so "
            f"twins differ by at most {2 * self.tau:.4g} and k ≤ {self.k_max} at ε = {self.epsilon:.4g}. Decisions of "
            f"twins may still differ where the threshold lies between their scores."
        )

    def with_guarantee(self, guarantee: int | None = None, *, tau: float | None = None) -> Guard:
        """The same guard under another bound; nothing is fitted or asked again. Parameters as of :class:`Guard`."""
        other = copy(self)
        other._bind(guarantee, tau)
        return other

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The guarded score of each encoded row, (n,).

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        """
        return self._score(self._of_inputs(inputs))

    def class_scores(self, inputs: npt.ArrayLike) -> Array:
        """The guarded probability of every class of each encoded row, (n, classes); a regression has none.

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        """
        if self.schema.regression:
            raise ModelError("a guarded regression has no classes; use its scores.")
        return self._classes(self._of_inputs(inputs))

    def labels(self, inputs: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The position of the decided class of each encoded row, (n,); a regression decides none.

        Parameters
        ----------
        inputs
            Encoded rows, (n, inputs).
        """
        if self.schema.regression:
            raise ModelError("a regression decides no class; use its scores.")
        found = self._of_inputs(inputs)
        return self.schema.rule.most_likely(found) if self._whole else self.schema.rule.decide(found[:, 0])

    def people_scores(self, codes: Codes) -> Array:
        """The guarded score of each person, (n,), as ``scores`` gives it, by the engine's kernels.

        Parameters
        ----------
        codes
            People, (n, attributes).
        """
        return self._score(self._of_people(codes))

    def people_class_scores(self, codes: Codes) -> Array:
        """The guarded probabilities of all classes of each person, (n, classes).

        Parameters
        ----------
        codes
            People, (n, attributes).
        """
        return self._classes(self._of_people(codes))

    def twin_scores(self, codes: Codes) -> Array:
        """Guarded scores of every twin of every person, (n, m).

        Parameters
        ----------
        codes
            People, (n, attributes).
        """
        return self._score(self._of_twins(codes))

    def twin_class_scores(self, codes: Codes) -> Array:
        """Guarded probabilities of all classes for every twin of every person, (n, m, classes).

        Parameters
        ----------
        codes
            People, (n, attributes).
        """
        return self._classes(self._of_twins(codes))

    def fits(self, evaluator: Evaluator) -> bool:
        """Whether an evaluator means the same twins, so that all of them can be asked about at once.

        Parameters
        ----------
        evaluator
            The model, and how people are evaluated.
        """
        return self._evaluator.asks_alike(evaluator)

    # Everything inside is a table of outputs: one column with the score, or the probabilities of three classes or more.

    def _score(self, outputs: Array) -> Array:
        return outputs[..., self.schema.favourable_index if self._whole else 0]

    def _classes(self, outputs: Array) -> Array:
        return outputs if self._whole else self.schema.rule.both(outputs[..., 0])

    def _of_people(self, codes: Codes) -> Array:
        """Guarded outputs of people: twins are asked about by the engine's kernels, where there are any."""

        def held(people: Codes) -> Doubles:
            known, asked = self._declared(people), people.copy()
            asked[np.ix_(~known, self._evaluator.twins.columns)] = self._evaluator.twins.values[0]
            return self._held(self._asked_twins(asked), self._valid(asked), self.encoding.encode(asked), known)

        return self._in_pieces(held, codes, _SCORES).astype(np.float32)

    def _of_inputs(self, inputs: npt.ArrayLike) -> Array:
        """Guarded outputs of encoded rows: in twins, only protected inputs differ."""

        def held(rows: Inputs) -> Doubles:
            known, asked = self._declared_inputs(rows), rows.copy()
            asked[np.ix_(~known, self.protected_inputs)] = self.twin_inputs[0]
            twins = np.repeat(rows[:, None, :], self.m, axis=1)
            twins[:, :, self.protected_inputs] = self.twin_inputs
            outputs = self._asked(twins.reshape(-1, rows.shape[1])).reshape(len(rows), self.m, -1)
            return self._held(outputs, None if self.twin_rules is None else self.twin_rules.valid(rows), asked, known)

        rows = checked_rows(inputs, self.inputs, "the guard", self.encoding.dtype)
        return self._in_pieces(held, rows, _ROWS).astype(np.float32)

    def _of_twins(self, codes: Codes) -> Array:
        """Guarded outputs of every twin of every person, (n, m, outputs)."""

        def held(people: Codes) -> Doubles:
            own = self._asked_twins(people)
            return clipped(self._lifted(own), self._centre(own, self._valid(people))[:, None], self.tau)

        return self._in_pieces(held, codes, _SCORES).astype(np.float32)

    def _in_pieces(self, ask: Callable[[Any], Doubles], people: npt.NDArray[Any], limit: int) -> Doubles:
        """What is said about people, as many at a time as have so many twins."""
        step = max(1, limit // (self.m * max(1, len(self.schema.classes))))
        return np.concatenate([ask(people[start : start + step]) for start in range(0, max(1, len(people)), step)])

    def _held(
        self, twins: Doubles, valid: npt.NDArray[np.bool_] | None, asked: Inputs, known: npt.NDArray[np.bool_]
    ) -> Doubles:
        """The average over the twins, and the person's own outputs within reach of it.

        Whoever lacks a protected value is asked about as the first twin, and gets the average.
        """
        centre = self._centre(twins, valid)
        if self.tau == 0:
            return centre
        return clipped(np.where(known[:, None], self._lifted(self._asked(asked)), centre), centre, self.tau)

    def _asked(self, inputs: Inputs) -> Doubles:
        """The model's outputs in double precision, (n, outputs), all of them numbers: no bound holds for NaN."""
        ask = self.model.class_scores if self._whole else self.model.scores  # type: ignore[attr-defined]
        found = np.asarray(ask(inputs), np.float64)
        if not np.isfinite(found).all():
            raise ModelError(
                "the model gave a score that is not finite for somebody or for one of their twins; check its inputs."
            )
        found = found if self._whole else found[:, None]
        return found if self.schema.regression else np.clip(found, 0, 1)

    def _asked_twins(self, codes: Codes) -> Doubles:
        """The outputs of all twins of people, (n, m, outputs)."""
        found = self._evaluator.class_scores(codes) if self._whole else self._evaluator.scores(codes)[:, :, None]
        return found.astype(np.float64)

    def _centre(self, twins: Doubles, valid: npt.NDArray[np.bool_] | None) -> Doubles:
        return self._lifted(averaged(twins, self.weights, valid))

    def _lifted(self, outputs: Doubles) -> Doubles:
        return moved(outputs, self.shift, regression=self.schema.regression)

    def _valid(self, codes: Codes) -> npt.NDArray[np.bool_] | None:
        return None if self.twin_rules is None else self._validity.twins(codes)

    def _declared(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Who has a value of the schema in every protected attribute: the others get the average, (n,)."""
        known = np.ones(len(codes), bool)
        for column in self._evaluator.twins.columns:
            attribute = self.schema.attributes[column]
            known &= attribute.valid(codes[:, column])
            if attribute.gap is not None and attribute.missing != "value":
                known &= codes[:, column] != attribute.gap
        return known

    def _declared_inputs(self, rows: Inputs) -> npt.NDArray[np.bool_]:
        """The same of encoded rows: what stands in the protected inputs is a value of the schema, (n,)."""
        known = np.ones(len(rows), bool)
        for part, ends in self.protected_parts:
            own = rows[:, part.columns].astype(np.float64)
            if isinstance(part, Lookup):
                known &= (np.abs(own[:, None, :] - part.table[None]).sum(axis=2) <= 1e-6).any(axis=1)
            else:
                known &= ((own >= ends[0]) & (own <= ends[1])).all(axis=1)  # false of NaN
        return known


def _ends(part: Numeric | Lookup, attribute: Attribute) -> Doubles:
    """The ends of an attribute's domain among the inputs, with room for rounding."""
    low, high = np.sort(part.encode(np.array([attribute.low, attribute.upper]))[:, 0]).tolist()
    room = 1e-6 * max(1.0, abs(low), abs(high))
    return np.array([low - room, high + room])


def check_guarantee(guarantee: int) -> int:
    """Refuse a guarantee that is no whole number from 1 up."""
    whole = isinstance(guarantee, int | np.integer) and not isinstance(guarantee, bool)
    if not whole or not 1 <= guarantee <= _MAX_CLASSES:
        raise OptionError(
            f"the guarantee is {guarantee!r}; give the most classes that anybody may have, 1 to {_MAX_CLASSES:,}."
        )
    return int(guarantee)


def check_bound(guarantee: int | None, tau: float | None) -> int:
    """Refuse a bound that makes no sense: a guarantee and a half width at once, or one of them out of range."""
    if guarantee is not None and tau is not None:
        raise OptionError(f"guarantee is {guarantee} and tau is {tau}; give one of them.")
    if tau is not None and not 0 <= tau <= _MAX_TAU:
        raise OptionError(
            f"tau is {tau}; give the distance from the average that is allowed, 0 or more (and at most {_MAX_TAU:g})."
        )
    return check_guarantee(1 if guarantee is None else guarantee)
