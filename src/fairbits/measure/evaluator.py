"""From people to figures, whatever the model: compiled kernels for native networks and trees, scores for all others.

Also the measure that a search raises and repairs lower (Definition IV.3), and what becomes of people when a neuron is
held at a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fairbits.domain import (
    DEFAULT_THRESHOLD,
    Attribute,
    Codes,
    Encoding,
    Schema,
    Table,
    Truth,
    Twins,
    Unseen,
    Validity,
    twin_inputs,
)
from fairbits.engine import (
    Contributions,
    Effects,
    Evaluation,
    Plan,
    TreePlan,
    TwinForecast,
    arranged,
    check_epsilon,
    check_partition,
    contributions_of,
    contributions_through,
    evaluate,
    forecast,
    gradients,
    masked,
    one_core,
    plan_of,
    scores,
    study,
    thread_count,
    tree_class_scores,
    tree_plan,
    tree_scores,
    vectors,
)
from fairbits.errors import ModelError, OptionError, choose_from, rows_named
from fairbits.measure.bits import DEFAULT_EPSILON, bits_limit
from fairbits.models import (
    Do,
    HasClassScores,
    HasGradients,
    HasInterventions,
    HasLayerGradients,
    HasTrees,
    HasTwinScores,
    Model,
    Network,
    TwinScores,
    no_model,
    require,
)
from fairbits.subject import Subject, check_scores

Progress = Callable[[int, int], None]

#: People handed to the engine between two reports of progress.
_CHUNK = 8192
#: Twin scores that are kept at once where the engine cannot count classes by itself: a few megabytes.
_SCORES = 1_000_000


class Evaluator:
    """Asks one model about people and all their twins, under one tolerance and one partition.

    Rules of the schema that look at protected attributes leave some people fewer twins: figures are about those that
    can exist. ``rows`` are real people, who exist whatever the rules say. Where twins take some values of a number
    only, a person's own value is one more, unless ``own`` is False. ``people`` is how many will be asked about, where
    that is known: for few of them no kernel is compiled.
    """

    def __init__(
        self,
        model: Model,
        schema: Schema,
        encoding: Encoding | None = None,
        *,
        epsilon: float = DEFAULT_EPSILON,
        partition: str = "constrained",
        threads: int | None = None,
        rows: Codes | None = None,
        own: bool = True,
        people: float = np.inf,
    ):
        self.model = model
        self.schema = schema
        self.encoding = encoding or Encoding.fitting(schema, model.inputs)
        if self.encoding.width != model.inputs:
            raise ModelError(
                f"the network takes {model.inputs} inputs, but the attributes make {self.encoding.width}; "
                f"check that the model belongs to this table."
            )
        self.twins = Twins(schema, own=own)
        #: How many twins a person can have, those at the person's own values included.
        self.m = self.twins.most
        self.epsilon = check_epsilon(epsilon)
        self.partition = check_partition(partition)
        #: From this score on a decision between two classes is favourable; with more of them it only guides searches.
        self.threshold = DEFAULT_THRESHOLD if schema.rule.threshold is None else schema.rule.threshold
        self.validity = Validity(schema, self.twins, rows)
        self.threads = thread_count(threads)
        # Where protected attributes are only observed, rows are asked about just as they are.
        varied = self.twins if schema.protected else None
        self._people = people
        self._plan = plan_of(model, self.encoding, varied, people=people) if isinstance(model, Network) else None
        self._trees = tree_plan(model, schema, self.encoding, varied) if isinstance(model, HasTrees) else None
        #: Whether the compiled kernels do the work.
        self.native = self._plan is not None or self._trees is not None
        #: A model that scores all twins of a person at once, if it means the same ones.
        self._at_once: HasTwinScores | None = model if isinstance(model, HasTwinScores) and model.fits(self) else None
        many = len(schema.classes) > 2  # with two classes, one probability says it all
        #: Whether the probabilities of all classes are compared, and not the favourable one's alone.
        self.by_vector = many and schema.scores == "vector"
        if self.by_vector:
            require(model, HasClassScores, 'scores = "vector"')
            if self.partition != "constrained":
                raise OptionError(f"partition is {partition!r}, but whole vectors have no grid; use 'constrained'.")
        #: How many twins somebody of the table can have, and whoever a search makes of them: all keep their protected
        #: values, which may be among those that all twins take.
        self.m_in_table = self.m
        if rows is not None and self.twins.most > self.twins.m:
            self.m_in_table = int(self.twins.count(rows).max(initial=self.twins.m))
        #: The most bits that anyone can show here, and that somebody of the table can.
        self.bits_limit, self.limit_in_table = (
            bits_limit(m, epsilon, regression=not schema.probabilities or self.by_vector)
            for m in (self.m, self.m_in_table)
        )
        self._knows_classes = many and isinstance(model, HasClassScores)
        #: The model that `with_model` was last asked for, and its evaluator.
        self._latest: tuple[Model, Evaluator] | None = None

    def with_model(self, model: Model) -> Evaluator:
        """An evaluator of another model for the same people, with the same tolerance and partition."""
        if model is self.model:
            return self
        if self._latest is not None and self._latest[0] is model:
            return self._latest[1]
        other = self._alike(model, own=self.twins.most > self.twins.m)
        other.validity = self.validity  # it knows the real people
        other.m_in_table, other.limit_in_table = self.m_in_table, self.limit_in_table
        self._latest = model, other
        return other

    @cached_property
    def over_values(self) -> Evaluator:
        """The same over the values that all twins take, without people's own: what everybody can be compared in."""
        if self.twins.most == self.twins.m:
            return self
        other = self._alike()
        other.validity = Validity(self.schema, other.twins, self.validity.rows)
        return other

    @cached_property
    def by_rules(self) -> Evaluator:
        """The same about the people and twins that schema and rules allow, whoever the table has beside them."""
        alike = self.twins.most == self.twins.m and (not self.validity.any or self.validity.rows is None)
        return self if alike else self._alike()

    def _alike(self, model: Model | None = None, *, own: bool = False) -> Evaluator:
        return Evaluator(
            self.model if model is None else model,
            self.schema,
            self.encoding,
            epsilon=self.epsilon,
            partition=self.partition,
            threads=self.threads,
            own=own,
            people=self._people,
        )

    @cached_property
    def blind(self) -> bool:
        """Whether no twin of anybody can score differently, by the way the model is made: exactly 0 bits.

        Either it never gets a protected attribute, or it is a network whose first layer gives them no weight, or no
        tree of it asks about one.
        """
        columns = self.twins.columns
        if all(isinstance(self.encoding.parts[i], Unseen) for i in columns):
            return True
        if self._at_once is not None:
            return self._at_once.tau == 0 and not getattr(self._at_once, "varies", False)
        if isinstance(self.model, HasTrees):
            asked = self.model.ensemble.feature
            protected = np.concatenate([self.encoding.parts[i].columns for i in columns])
            return not np.isin(asked[asked >= 0], protected).any()
        network = self.model
        return isinstance(network, Network) and all(self._without_weight(network.weights[0], int(i)) for i in columns)

    def _without_weight(self, weights: npt.NDArray[Any], column: int) -> bool:
        """Whether a first layer gives an attribute no weight.

        Weights that are equal and not 0 (one for each label) are some: they are added at other places of the sum, and
        float32 may round that otherwise.
        """
        part = self.encoding.parts[column]
        if isinstance(part, Unseen):
            return True
        inputs = np.asarray(part.encode(_telling(self.schema.attributes[column])))
        alike = bool((inputs == inputs[:1]).all())  # never where one is missing: NaN is not itself
        return alike or (bool(np.isfinite(inputs).all()) and not weights[part.columns].any())

    def evaluate(self, codes: Codes, *, progress: Progress | None = None) -> Evaluation:
        """Figures of every person: k, Q∞, Q1, span, extreme twins, flips."""
        return Evaluation.concatenate([found for _, found, _ in self.answers(codes, progress=progress, decide=False)])

    def scores(self, codes: Codes) -> npt.NDArray[np.float32]:
        """Scores of every twin of every person; where somebody has fewer, the first one's score fills the place."""
        if self._plan is not None:
            found = scores(self._plan, codes, threads=self.threads)
        elif self._trees is not None:
            found = self._checked(tree_scores(self._trees, codes, threads=self.threads), 0)
        elif self._at_once is not None:
            found = self._at_once.twin_scores(codes)
        else:
            found = np.empty((len(codes), self.twins.m), dtype=np.float32)
            for rows, inputs in twin_inputs(self.encoding, codes, self.twins):
                found[rows] = self._checked(np.reshape(self.model.scores(inputs), (-1, self.twins.m)), rows.start)
        return found if self.twins.most == self.twins.m else self._with_own(codes, found, self.row_scores)

    def _with_own(self, codes: Codes, found: npt.NDArray[Any], ask: Callable[[Codes], Any]) -> npt.NDArray[Any]:
        """Scores at the values that all twins take, followed by those at people's own values."""
        twins = self.twins
        person, slot = np.nonzero(twins.own(codes))
        mine = np.repeat(found[:, :1], twins.most - twins.m, axis=1)
        if len(person):
            mine[person, slot] = ask(twins.as_twins(codes[person], twins.m + slot))
        return np.concatenate([found, mine], axis=1)

    def class_scores(self, codes: Codes) -> npt.NDArray[np.float32]:
        """Probabilities of all classes for every twin of every person, for models with three classes or more."""
        if self._trees is not None:
            found = tree_class_scores(self._trees, codes, threads=self.threads)
        elif self._at_once is not None:
            found = self._at_once.twin_class_scores(codes)
        elif self._class_plans:
            found = np.stack([scores(plan, codes, threads=self.threads) for plan in self._class_plans], axis=2)
        else:
            model: Any = self.model
            pieces = []
            for rows, inputs in twin_inputs(self.encoding, codes, self.twins):
                asked = np.asarray(model.class_scores(inputs)).reshape(len(inputs) // self.twins.m, self.twins.m, -1)
                pieces.append(self._checked(asked, rows.start))
            found = np.concatenate(pieces)
        return found if self.twins.most == self.twins.m else self._with_own(codes, found, self._row_class_scores)

    @cached_property
    def _class_plans(self) -> list[Plan]:
        """The kernels of a native network for each class: simpler than one of their own, and as slow as there are
        classes.
        """
        model = self.model
        asked = [model.with_favourable(c) for c in range(model.classes)] if isinstance(model, Network) else []
        return [plan_of(one, self.encoding, self.twins, people=self._people) for one in asked]

    def _row_class_scores(self, rows: Codes) -> npt.NDArray[np.float32]:
        if self._lone_trees is not None:
            return tree_class_scores(self._lone_trees, rows, threads=self.threads)[:, 0]
        return np.asarray(self.model.class_scores(self.encoding.encode(rows)), np.float32)  # type: ignore[attr-defined]

    def decided(
        self, codes: Codes, scores: npt.NDArray[np.float32] | None = None, table: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[np.int64] | None:
        """What is decided about every twin, (n, m): a class where all are compared, else whether it is the favourable
        one; None where nothing is. Scores that are known need not be asked for again.
        """
        rule = self.schema.rule
        if self._knows_classes and table is None:
            table = self.class_scores(codes)
        if table is not None:
            return rule.most_likely(table) if self.by_vector else rule.favours_row(table).astype(np.int64)
        if rule.threshold is None:
            return None
        return rule.favours(self.scores(codes) if scores is None else scores).astype(np.int64)

    @property
    def thresholds(self) -> dict[int, npt.NDArray[np.float64]]:
        """For tree ensembles, by column: the codes that are the last on their side of some split. Else nothing."""
        return {} if self._trees is None else self._trees.thresholds

    def gradients(self, codes: Codes, twins: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
        """Slope of the logit margin per unit of code, at one twin of each person."""
        if self._plan is not None:
            return gradients(self._plan, codes, self._stands_for(codes, twins), threads=self.threads).astype(np.float64)
        rows = self.twins.as_twins(codes, twins)
        return self.encoding.pull_back(self._input_gradients(rows), rows)

    def contributions(self, columns: npt.NDArray[np.integer[Any]]) -> Contributions:
        """Contributions of codes to the sums at which :meth:`forecast` takes gradients."""
        if self._plan is not None:
            return contributions_of(self._plan, columns)
        return contributions_through(self.encoding, columns)

    def forecast(self, codes: Codes, twins: npt.NDArray[np.integer[Any]]) -> TwinForecast:
        """First-order forecast of what changes of code do to the logit margin, at one twin of each person."""
        if self._plan is not None:
            return forecast(self._plan, codes, self._stands_for(codes, twins), threads=self.threads)
        rows = self.twins.as_twins(codes, twins)
        found = self._input_gradients(rows)
        return TwinForecast(self.encoding.pull_back(found, rows).astype(np.float32), arranged(found, self.encoding))

    def _input_gradients(self, rows: Codes) -> npt.NDArray[np.floating[Any]]:
        require(self.model, HasGradients, "this search")
        found = np.asarray(self.model.gradients(self.encoding.encode(rows)))  # type: ignore[attr-defined]
        # Where a model is saturated, its library may give no number: no way is better than another there.
        return np.where(np.isfinite(found), found, np.zeros((), found.dtype))

    def valid_twins(self, codes: Codes) -> Truth | None:
        """Which twins can exist under the rules, and which of those at people's own values are theirs."""
        found = self.validity.twins(codes) if self.validity.about_twins or self.twins.most > self.twins.m else None
        if isinstance(self.model, TwinScores):
            rows = [self.twins.as_twins(codes, np.full(len(codes), twin)) for twin in range(self.twins.most)]
            known = np.stack([self.model.known(self.encoding.encode(each)) for each in rows], axis=1)
            return known if found is None else known & found
        return found

    @cached_property
    def _lone_plan(self) -> Plan | None:
        """The kernels for rows as they are, without twins."""
        network = self.model if isinstance(self.model, Network) else None
        return None if network is None else plan_of(network, self.encoding, None, people=self._people)

    @cached_property
    def _lone_trees(self) -> TreePlan | None:
        """The tree kernels for rows as they are, without twins."""
        trees = self.model if isinstance(self.model, HasTrees) and self._trees is not None else None
        return None if trees is None else tree_plan(trees, self.schema, self.encoding, None)

    def scores_at(self, codes: Codes, twins: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float32]:
        """Score of one twin of each person."""
        if self._at_once is not None and (twins < self.twins.m).all():
            return self._at_once.twin_scores(codes)[np.arange(len(codes)), twins]
        return self.row_scores(self.twins.as_twins(codes, twins))

    def row_scores(self, codes: Codes) -> npt.NDArray[np.float32]:
        """Scores of people as they are."""
        if self._lone_plan is not None:
            return scores(self._lone_plan, codes, threads=self.threads)[:, 0]
        if self._lone_trees is not None:
            return tree_scores(self._lone_trees, codes, threads=self.threads)[:, 0]
        result = np.empty(len(codes), dtype=np.float32)
        for start in range(0, len(codes), _CHUNK):
            rows = slice(start, min(start + _CHUNK, len(codes)))
            result[rows] = np.asarray(self.model.scores(self.encoding.encode(codes[rows])), dtype=np.float32)
        return self._checked(result, 0)

    def layers(self, codes: Codes, twins: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[np.float32], ...]:
        """Outputs of every layer for one twin of each person."""
        require(self.model, HasLayerGradients, "this search")
        rows = self.encoding.encode(self.twins.as_twins(codes, twins))
        with one_core():  # matrices of a few dozen columns: more threads would only wait for each other
            return self.model.activations(rows)  # type: ignore[attr-defined]

    def layer_gradients(
        self, codes: Codes, twins: npt.NDArray[np.integer[Any]], layer: int, slopes: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float64]:
        """Change of Σ slopes · outputs of a layer per unit of code, at one twin of each person."""
        require(self.model, HasLayerGradients, "this search")
        rows = self.twins.as_twins(codes, twins)
        with one_core():  # matrices of a few dozen columns: more threads would only wait for each other
            found = self.model.layer_gradients(self.encoding.encode(rows), layer, slopes)  # type: ignore[attr-defined]
        return self.encoding.pull_back(found, rows)

    def _stands_for(self, codes: Codes, twins: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.integer[Any]]:
        """For directions only: the twin among those that everybody has which stands for a person's own."""
        if self.twins.most == self.twins.m:
            return twins
        return np.where(twins < self.twins.m, twins, self.twins.index_of(self.twins.as_twins(codes, twins)))

    def answers(
        self, codes: Codes, *, progress: Progress | None = None, decide: bool = True
    ) -> Iterator[tuple[slice, Evaluation, npt.NDArray[np.int64] | None]]:
        """A few people at a time: their figures, and what is decided about each of their twins (None: nothing is, or
        it was not asked for).

        A compiled kernel scores and counts in one go, where all people have the same twins.
        """
        rules, varied = self.by_vector or self.validity.about_twins, self.twins.most > self.twins.m
        plan = None if rules or (varied and self.twins.own(codes).any()) else self._plan
        # Scores are kept for decisions and by other models, and must not outgrow the cache by much.
        people = max(1, _SCORES // (self.m * max(1, len(self.schema.classes))))
        people = people if decide or progress is not None or plan is None else max(1, len(codes))
        for start in range(0, max(1, len(codes)), people):
            piece = slice(start, min(start + people, len(codes)))
            with rows_named(start):
                some = codes[piece]
                if plan is None:  # a foreign model is asked once: it may answer otherwise the next time
                    yield piece, *self._answers(some)
                else:
                    kept = np.empty((len(some), self.twins.m), np.float32) if decide else None
                    found = evaluate(
                        plan,
                        some,
                        epsilon=self.epsilon,
                        partition=self.partition,
                        threshold=self.threshold,
                        threads=self.threads,
                        kept=kept,
                    )
                    if varied:
                        found = replace(found, m=self.m, twins=np.full(len(some), self.twins.m, np.int32))
                    whole = kept if kept is None or not varied else self._with_own(some, kept, self.row_scores)
                    yield piece, found, None if whole is None else self.decided(some, whole)
            if progress is not None:
                progress(piece.stop, len(codes))

    def _answers(self, codes: Codes) -> tuple[Evaluation, npt.NDArray[np.int64] | None]:
        valid = self.valid_twins(codes)
        table = self.class_scores(codes) if self._knows_classes else None
        if self.by_vector and table is not None:
            return self.figures_of_classes(table, valid), self.decided(codes, table=table)
        scores = self.scores(codes)
        return self.figures_of_scores(scores, valid, table=table), self.decided(codes, scores, table)

    def figures_of_scores(
        self, scores: npt.NDArray[np.float32], valid: Truth | None = None, *, table: npt.NDArray[Any] | None = None
    ) -> Evaluation:
        """Figures of people whose twins' scores are known."""
        found = masked(
            scores,
            np.ones(scores.shape, np.bool_) if valid is None else valid,
            epsilon=self.epsilon,
            partition=self.partition,
            bounded=self.schema.probabilities,
            decides=not self.schema.regression,
            threshold=self.threshold,
            threads=self.threads,
        )
        if table is not None:
            chosen = self.schema.rule.favours_row(table)
            favourable = (chosen if valid is None else chosen & valid).sum(axis=1).astype(np.int32)
            found = replace(found, favourable=favourable)
        return found if valid is not None else replace(found, twins=None)

    def figures_of_classes(self, table: npt.NDArray[np.float32], valid: Truth | None = None) -> Evaluation:
        """Figures of people whose twins' probabilities of all classes are known and compared as vectors."""
        own = self.schema.favourable_index
        return vectors(table, valid, epsilon=self.epsilon, favourable=own, threads=self.threads)

    def asks_alike(self, other: Evaluator) -> bool:
        """Whether another evaluator asks its model about the same twins, encoded in the same way."""
        mine, theirs = self.twins, other.twins
        same = np.array_equal(mine.columns, theirs.columns) and np.array_equal(mine.values, theirs.values)
        return same and self.encoding.same_as(other.encoding)

    def _checked(self, found: Any, start: int) -> npt.NDArray[np.float32]:
        """Scores, a row for each person from ``start`` on: finite, and within 0 and 1 where they are probabilities."""
        table = np.asarray(found, dtype=np.float32)
        with rows_named(start):
            check_scores(table, self.schema)
        return np.clip(table, 0, 1) if self.schema.probabilities else table


def _telling(attribute: Attribute) -> Codes:
    """Values that tell whether a first layer gives an attribute any weight: those of twins, the ends, a missing one."""
    if attribute.kind == "category":
        return attribute.values()
    last = attribute.allowed[-1] if attribute.allowed else attribute.upper
    ends = [attribute.first, last] + ([] if attribute.gap is None else [attribute.gap])
    return np.unique(np.concatenate([attribute.twin_values(), ends]))


#: Of a regression target's inter-quantile range 1–99 %, this share counts as "the same".
REGRESSION_SHARE = 0.025
#: Evaluators made within `shared_evaluators`, by what they are made of, which is kept beside them; None outside of it.
_SHARED: ContextVar[dict[tuple[Any, ...], tuple[Evaluator, object]] | None] = ContextVar("evaluators", default=None)


@contextmanager
def shared_evaluators() -> Iterator[None]:
    """Within, whoever asks for the evaluator of the same model, people, tolerance, partition and threads gets one.

    For the stages of one audit. Outside of it every call makes its own: a model that lives in Python may have been
    trained again since the last one.
    """
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


def evaluator_of(
    subject: Subject,
    *,
    model: Model | None = None,
    epsilon: float | None = None,
    partition: str = "constrained",
    threads: int | None = None,
    people: float = np.inf,
) -> Evaluator:
    """An evaluator for a subject's people, so many in all, of its own model or of another one.

    The rows of the table are real people: they exist whatever the rules say.
    """
    if subject.table.scores is not None:
        raise no_model()
    epsilon = default_epsilon(subject.schema, subject.table) if epsilon is None else epsilon
    parts = (subject.model if model is None else model, subject.schema, subject.encoding, subject.table.codes)
    shared = _SHARED.get()
    key = (*map(id, parts), epsilon, partition, threads, people)
    if shared is not None and key in shared:
        return shared[key][0]
    asked, schema, encoding, rows = parts
    found = Evaluator(
        asked, schema, encoding, epsilon=epsilon, partition=partition, threads=threads, rows=rows, people=people
    )
    if shared is not None:
        shared[key] = found, parts  # which stay alive, so that no other object gets their ids
    return found


def default_epsilon(schema: Schema, table: Table) -> float:
    """The default tolerance: 0.025 for probabilities; 2.5 % of the range (1 % to 99 %) of points, or of a target."""
    if schema.score_range is not None:
        return REGRESSION_SHARE * schema.score_range
    if not schema.regression:
        return DEFAULT_EPSILON
    labels = table.training().labels
    if labels is None:
        raise OptionError(
            "a regression without a target column has no natural tolerance; give epsilon, or name the target."
        )
    low, high = np.quantile(labels, [0.01, 0.99])
    if not high > low:
        raise OptionError(f"the target is {low:g} for almost everybody, so no tolerance follows from it; give epsilon.")
    return float(REGRESSION_SHARE * (high - low))


def hold(evaluator: Evaluator, people: Codes, dos: Sequence[Do], *, bits: bool = False) -> Effects:
    """All at once for a native network; one by one for other models, and where whole vectors are compared."""
    evaluator = evaluator.over_values
    model = evaluator.model
    valid = evaluator.valid_twins(people)
    if isinstance(model, Network) and not evaluator.by_vector and not (bits and valid is not None):
        return study(
            model,
            evaluator.encoding,
            evaluator.twins,
            people,
            dos,
            epsilon=evaluator.epsilon,
            partition=evaluator.partition,
            threshold=evaluator.threshold,
            valid=valid,
            bits=bits,
            threads=evaluator.threads,
        )
    require(model, HasInterventions, "holding neurons")
    figures = [evaluator.with_model(model.with_interventions([do])).evaluate(people) for do in dos]  # type: ignore[attr-defined]
    shape = len(dos), len(people)
    return Effects(
        k=np.array([found.k for found in figures], dtype=np.int32).reshape(shape),
        flips=np.array([found.flips for found in figures], dtype=np.bool_).reshape(shape),
        q_1=np.array([found.q_1 for found in figures], dtype=np.float32).reshape(shape) if bits else None,
    )


Measure = Literal["q_inf", "q_1"]
MEASURES: tuple[str, ...] = get_args(Measure)


def check_measure(measure: str) -> Measure:
    """Refuse a measure that does not exist."""
    if measure not in MEASURES:
        raise OptionError(f"measure {measure!r} is not known; {choose_from(str(measure), MEASURES)}")
    return measure  # type: ignore[return-value]  # just checked


def effective_classes(figures: Evaluation, measure: Measure) -> npt.NDArray[np.float64]:
    """How many classes a person has under a measure: k, or 2 to the power of Q1.

    2^Q1 is the number of classes of one size that would show as many bits: at least 1, at most k. So one search can
    climb either of the two on one scale.
    """
    return figures.k.astype(np.float64) if measure == "q_inf" else np.exp2(figures.q_1.astype(np.float64))


def target_of(figures: Evaluation, measure: Measure) -> npt.NDArray[np.float64]:
    """What debugging and repairs lower, for each person: k for ``q_inf`` as in the paper, bits for ``q_1``."""
    return (figures.k if measure == "q_inf" else figures.q_1).astype(np.float64)


def symbol_of(measure: Measure) -> str:
    """What debugging and repairs lower, in words: "mean k" is said of ``q_inf``, "mean Q1" of ``q_1``."""
    return "k" if measure == "q_inf" else "Q1"
