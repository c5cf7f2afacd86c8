"""Where bits come from: which protected attributes, data or training, and the labels.

A case has no protected values of its own. So the bits of a subset S of the protected attributes are defined as
follows: hold the other attributes at one combination of their values, let those in S vary, and measure; then take the
mean over all combinations of the held ones under which a twin can exist. No attribute gives 0 bits, all of them the
bits of the case. The Shapley share of an attribute is its mean gain in bits over all orders in which attributes may
join; shares of a case add up to its bits. A share may be negative: an attribute may hide what another one shows.

Data or training: what any training on these rows shares, and what comes with the single one.

Train R models of the same kind on the same rows from other seeds. For a person x, D_r(x, z) is what training r gives to
twin z over the mean of the twins: s_r(x, z) − mean_z s_r(x, z). V, the mean of D_r² over trainings, people and twins,
says how much a training tells twins apart; C, the mean of D_r·D_q over pairs of different trainings, what two of them
agree on. C/V is the share that comes with the data, an intraclass correlation; 1 − C/V comes with the training. Of one
attribute, D is taken over its own values with the other protected attributes held.

People are drawn again for the intervals, and so are trainings: with a handful of them, whose errors are alike for many
people, people alone would make an interval that is far too narrow. The interval is the wider of a bootstrap over people
and trainings together (Owen 2007) and of the jackknife over trainings with Student's t, R − 1 degrees of freedom, to
which the variance over people is added. Neither sees how little a few trainings say where their errors are alike for
everybody, so the interval of the share also holds the one that is exact for normal errors: that of the noncentrality of
an F ratio, with as many dimensions as the errors of these trainings seem to have.

What the labels themselves carry is told by two learners (gradient-boosted trees) that predict the label of rows that
they have not seen, one with the protected columns and one without. The difference of their log-losses, in bits per row,
estimates the conditional mutual information of label and protected attributes given the rest. It is a difference on
held-out rows, so it is about zero where the protected attributes tell nothing (what falls below is counted as 0); what
the learners cannot see is missed, so it leans low.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import factorial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fairbits.data import BATCH, NetworkTrainer, Trainer, trainer_of
from fairbits.debug.records import Attribution, LabelBits, OriginShare, SubsetBits
from fairbits.domain import Codes, Doubles, Schema, Table, Truth
from fairbits.errors import OptionError, TableError
from fairbits.measure import Estimate, Evaluator, bootstrap_means, student_ratio
from fairbits.subject import Subject

Subset = tuple[int, ...]

#: All subsets of more attributes than this are too many to be read, let alone computed.
MAX_ATTRIBUTES = 8
#: Scores held in memory at a time.
SCORES = 4_000_000


def attribute_bits(evaluator: Evaluator, cases: Codes) -> Attribution:
    """Bits of every subset of the protected attributes, and the Shapley shares."""
    evaluator = evaluator.over_values
    names = evaluator.schema.protected
    step = max(1, SCORES // (evaluator.m * (len(evaluator.schema.classes) if evaluator.by_vector else 1)))
    pieces = [_subset_bits(evaluator, cases[start : start + step]) for start in range(0, len(cases), step)]
    bits = {subset: np.concatenate([piece[subset] for piece in pieces], axis=1) for subset in pieces[0]}
    q_inf, q_1 = (shapley({subset: each[which] for subset, each in bits.items()}, len(names)) for which in (0, 1))
    subsets = [
        SubsetBits(tuple(names[i] for i in subset), float(each[0].mean()), float(each[1].mean()))
        for subset, each in bits.items()
    ]
    means = [dict(zip(names, share.mean(axis=0).tolist(), strict=True)) for share in (q_inf, q_1)]
    return Attribution(names, tuple(subsets), means[0], means[1], q_inf, q_1)


def _subset_bits(evaluator: Evaluator, cases: Codes) -> dict[Subset, Doubles]:
    """Q∞ and Q1 of each case for each subset, (2, cases), small subsets first.

    Means are over the combinations held under which anybody can exist.
    """
    sizes = [len(evaluator.schema.attributes[i].twin_values()) for i in evaluator.twins.columns]
    table = evaluator.class_scores(cases) if evaluator.by_vector else evaluator.scores(cases)[:, :, None]
    valid = evaluator.valid_twins(cases)
    found: dict[Subset, Doubles] = {(): np.zeros((2, len(cases)))}
    for subset in (one for count in range(len(sizes)) for one in combinations(range(len(sizes)), count + 1)):
        rows = beside(table, sizes, subset)
        rows = rows.reshape(-1, *rows.shape[2:])
        there = None if valid is None else beside(valid, sizes, subset).reshape(-1, rows.shape[1])
        if evaluator.by_vector:
            figures = evaluator.figures_of_classes(rows, there)
        else:
            figures = evaluator.figures_of_scores(rows[:, :, 0], there)
        bits = np.stack([np.log2(figures.k), figures.q_1.astype(np.float64)]).reshape(2, len(cases), -1)
        mass = (np.ones(len(rows)) if there is None else there.any(axis=1).astype(np.float64)).reshape(len(cases), -1)
        found[subset] = np.asarray((mass * bits).sum(axis=2) / np.maximum(mass.sum(axis=1), 1.0))
    return found


def beside(table: npt.NDArray[Any], sizes: Sequence[int], subset: Sequence[int]) -> npt.NDArray[Any]:
    """(people, twins, …) as (people, held, varied, …): twins that differ in these attributes alone stand together."""
    held = [axis for axis in range(len(sizes)) if axis not in subset]
    order = [0, *(axis + 1 for axis in (*held, *subset)), *range(len(sizes) + 1, len(sizes) + table.ndim - 1)]
    varied = int(np.prod([sizes[axis] for axis in subset]))
    turned = table.reshape(len(table), *sizes, *table.shape[2:]).transpose(order)
    return np.ascontiguousarray(turned).reshape(len(table), -1, varied, *table.shape[2:])


def shapley(bits: dict[Subset, Doubles], players: int) -> Doubles:
    """Shapley shares of each case, (cases, players), by its bits for each subset: they add up to those of all."""
    shares = np.zeros((len(bits[()]), players))
    for player in range(players):
        for subset in (one for one in bits if player not in one):
            joined = tuple(sorted((*subset, player)))
            count = len(subset)
            weight = factorial(count) * factorial(players - count - 1) / factorial(players)
            shares[:, player] += weight * (bits[joined] - bits[subset])
    return shares


RESAMPLES = 600
#: The share of samples in which the truth lies beyond one end of its interval.
OUTSIDE = 0.025
#: How much more of twins than anybody seen one more person may make: so many times the largest one's part of all that
#: is made of them, and so many times at most.
HEAVIER, MOST_HEAVIER = 60.0, 30.0

#: A figure by C and V, or by another part and its whole.
_Figure = Callable[[Doubles, Doubles], Doubles]


def shared_part(
    scores: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    own: npt.ArrayLike | None = None,
    valid: Truth | None = None,
    attributes: tuple[str, ...] = (),
    resamples: int = RESAMPLES,
) -> OriginShare:
    """The share of what trainings make of twins (who differ in these attributes) that they agree on, with intervals."""
    given = np.asarray(scores, dtype=np.float64)
    if given.ndim not in (3, 4) or given.shape[0] < 2 or given.shape[1] < 1:
        raise OptionError(
            f"a share needs scores of two trainings or more, (trainings, people, twins), but got shape {given.shape}."
        )
    stacked = given if own is None else np.concatenate([np.asarray(own, dtype=np.float64)[None], given])
    products = _products(stacked, valid)
    return _Shares(products, trainings=len(given), own=own is not None, rng=rng, resamples=resamples).found(attributes)


def origin_shares(
    schema: Schema, scores: npt.ArrayLike, own: npt.ArrayLike, *, valid: Truth | None, rng: np.random.Generator
) -> tuple[OriginShare, ...]:
    """All protected attributes together first, then each with the others held."""
    given, mine = np.asarray(scores, np.float64), np.asarray(own, np.float64)
    names = schema.protected
    sizes = [len(schema.attributes[i].twin_values()) for i in schema.protected_columns]
    subsets: list[tuple[int, ...]] = [tuple(range(len(names)))]
    if len(names) > 1:
        subsets += [(place,) for place in range(len(names)) if sizes[place] > 1]
    return tuple(
        shared_part(
            np.stack([beside(one, sizes, subset) for one in given]),
            own=beside(mine, sizes, subset),
            valid=None if valid is None else beside(valid, sizes, subset),
            rng=rng,
            attributes=tuple(names[i] for i in subset),
        )
        for subset in subsets
    )


def _products(scores: Doubles, valid: Truth | None) -> Doubles:
    """Per person the mean of D_r·D_q over the twins, (people, models, models)."""
    models, people = scores.shape[:2]
    there = np.ones(scores.shape[1:]) if valid is None else np.asarray(valid, np.float64).reshape(scores.shape[1:])
    centre = (scores * there).sum(axis=-1, keepdims=True) / np.maximum(there.sum(axis=-1, keepdims=True), 1.0)
    apart = ((scores - centre) * there).reshape(models, people, -1)
    moved = np.ascontiguousarray(apart.transpose(1, 0, 2))
    total = np.maximum(there.reshape(people, -1).sum(axis=1), 1.0)
    return np.asarray(moved @ moved.transpose(0, 2, 1) / total[:, None, None])


def _parts(tables: Doubles, apart: npt.NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    """C and V of the trainings in each table of products."""
    common = np.where(apart, tables, 0.0).sum(axis=(-2, -1)) / apart.sum(axis=(-2, -1))
    return common, np.diagonal(tables, axis1=-2, axis2=-1).mean(axis=-1)


def _own_parts(tables: Doubles, _: npt.NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    """What the model under test, which comes first, and the trainings agree on, and what it makes of twins itself."""
    return tables[..., 0, 1:].mean(axis=-1), tables[..., 0, 0]


def _ratio(part: Doubles, whole: Doubles) -> Doubles:
    """0 where there is nothing to have a part of."""
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)


class _Shares:
    def __init__(self, products: Doubles, *, trainings: int, own: bool, rng: np.random.Generator, resamples: int):
        self.first = int(own)  # the model under test comes first, where it is there
        self.products, self.trainings, self.own, self.rng = products, trainings, own, rng
        people = len(products)
        weights = rng.multinomial(people, np.full(people, 1 / people), size=resamples) / people
        self.by_people = (weights @ products.reshape(people, -1)).reshape(resamples, *products.shape[1:])
        self.whole = products.mean(axis=0)

    def found(self, attributes: tuple[str, ...]) -> OriginShare:
        shared = self._interval(*self._of_all(_ratio), top=1.0)
        for low, high in (self._normal_shares(), self._one_more_person()):
            shared = Estimate(shared.value, min(shared.low, low), max(shared.high, high))
        sizes: tuple[_Figure, _Figure] = (lambda _, v: np.sqrt(v)), (lambda c, _: np.sqrt(np.maximum(c, 0.0)))
        effect, common = (self._interval(*self._of_all(figure), top=np.inf) for figure in sizes)
        own = self._interval(*self._of_all(_ratio, _own_parts), top=np.inf) if self.own else None
        return OriginShare(attributes, shared, shared.remainder, own, effect, common)

    def _of_all(self, figure: _Figure, read: Any = _parts) -> tuple[float, tuple[Doubles, Doubles], Doubles]:
        """A figure as it is, under both kinds of resampling, and with one training left out at a time."""
        n, start = self.trainings, int(read is _own_parts)
        every = [*range(start), *range(self.first, self.first + n)]
        apart = ~np.eye(n, dtype=np.bool_)
        whole = float(figure(*read(self.whole[np.ix_(every, every)], apart)))
        people = figure(*read(self.by_people[:, every][:, :, every], apart))
        chosen = self._draws(len(people), n)
        index = np.column_stack([np.zeros((len(chosen), start), np.int64), self.first + chosen])
        tables = self.by_people[np.arange(len(chosen))[:, None, None], index[:, :, None], index[:, None, :]]
        both = figure(*read(tables, chosen[:, :, None] != chosen[:, None, :]))
        left_out = np.full(n, whole)
        for out in range(n if n > 2 else 0):
            without = np.delete(every, start + out)
            left_out[out] = figure(*read(self.whole[np.ix_(without, without)], apart[1:, 1:]))
        return whole, (people, both), left_out

    def _one_more_person(self) -> tuple[float, float]:
        """The ends of the share where few people make up most of the effect, as one more of them would move it.

        Such a person may add to what trainings agree on, or to what is each one's own, more than anybody seen: of a
        law with a heavy tail the largest of a sample falls short of what is to come, and its part of the whole says
        how heavy the tail is. The weights are those of a Bayesian bootstrap, as in ``measure.bounded_ratio``.
        """
        n = self.trainings
        tables = self.products[:, self.first :, self.first :]
        common, effect = _parts(tables, np.broadcast_to(~np.eye(n, dtype=np.bool_), tables.shape))
        weights = self.rng.standard_exponential((len(self.by_people), len(effect) + 1))
        agreed, whole = weights[:, :-1] @ common, weights[:, :-1] @ effect
        if not effect.sum() > 0:
            return 1.0, 0.0  # no training tells twins apart
        shared, own = (_beyond(one) * weights[:, -1] for one in (common, effect - common))
        low = float(np.quantile(agreed / (whole + own), OUTSIDE))
        high = float(np.quantile((agreed + shared) / (whole + shared), 1 - OUTSIDE))
        return float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))

    def _normal_shares(self) -> tuple[float, float]:
        """The ends of the share by normal theory.

        If the errors of trainings are normal with p dimensions, F = (V + (R − 1)C) / (V − C) has the noncentral F
        law with p and p(R − 1) degrees of freedom and noncentrality R·p·share / (1 − share). p is estimated from how
        unequal the eigenvalues of the errors' products are (moments of a Wishart matrix); 1 where all errors are alike.
        """
        n = self.trainings
        table = self.whole[self.first :, self.first :]
        common, effect = map(float, _parts(table, ~np.eye(n, dtype=np.bool_)))
        middle = np.eye(n) - 1 / n
        errors = middle @ table @ middle
        total = float(np.trace(errors))
        if n < 3 or effect - common <= 1e-12 * effect or total <= 0:
            return 1.0, 0.0  # adds nothing: two trainings tell no dimension, and equal ones have no errors
        unequal = float((errors**2).sum()) / total**2
        spare = (n - 1) * unequal - 1
        dimensions = min(max((n - 2 * unequal) / spare, 1.0), 1e4) if spare > 0 else 1e4
        ratio = max((effect + (n - 1) * common) / (effect - common), 0.0)
        low, high = (_noncentrality(ratio, dimensions, n, level) for level in (1 - OUTSIDE, OUTSIDE))
        return low / (low + n * dimensions), high / (high + n * dimensions)

    def _draws(self, times: int, n: int) -> npt.NDArray[np.int64]:
        """Trainings drawn with replacement, (times, n); two different ones at least each time, or there is no pair."""
        drawn = np.empty((0, n), np.int64)
        while len(drawn) < times:
            more = self.rng.integers(0, n, (times - len(drawn), n))
            drawn = np.concatenate([drawn, more[(more != more[:, :1]).any(axis=1)]])
        return drawn

    def _interval(self, value: float, drawn: tuple[Doubles, Doubles], left_out: Doubles, *, top: float) -> Estimate:
        from scipy import special

        (people, both), n = drawn, self.trainings
        low, high = np.quantile(both, [OUTSIDE, 1 - OUTSIDE])
        if n > 2:
            variance = (n - 1) / n * ((left_out - left_out.mean()) ** 2).sum() + people.var()
            reach = float(special.stdtrit(n - 1, 1 - OUTSIDE)) * np.sqrt(variance)
            low, high = min(low, value - reach), max(high, value + reach)
        middle = float(np.clip(value, 0.0, top))
        return Estimate(middle, float(np.clip(low, 0.0, middle)), float(np.clip(high, middle, top)))


def _beyond(parts: Doubles) -> float:
    """What one more person may add to a sum over people."""
    there = np.maximum(parts, 0.0)
    largest, total = float(there.max()), float(there.sum())
    return float(np.clip(HEAVIER * largest / total, 1.0, MOST_HEAVIER)) * largest if total > 0 else 0.0


def _noncentrality(ratio: float, dimensions: float, trainings: int, level: float) -> float:
    """Where an F ratio of these degrees of freedom is the quantile of this level; 0 where it is below all of them."""
    from scipy import optimize, special

    def above(noncentrality: float) -> float:
        return float(special.ncfdtr(dimensions, dimensions * (trainings - 1), noncentrality, ratio)) - level

    high = 1.0
    while above(high) > 0:
        high *= 2
    return float(optimize.brentq(above, 0.0, high)) if above(0.0) > 0 else 0.0


#: Rows that a training needs, and people of the rarest class.
LEAST_ROWS, LEAST_OF_CLASS = 100, 10
#: Trainings on a table of so many rows or fewer, and on a larger one.
SMALL_TABLE, TRAININGS_SMALL, TRAININGS_LARGE = 5_000, 8, 4
#: Where those do not fit: so many, and of a network so many updates each.
QUICK_TRAININGS, QUICK_UPDATES = 3, 1_500
#: Twins that are scored by every training, at most, and people.
TWINS, PEOPLE = 200_000, 2_000


@dataclass(frozen=True, slots=True)
class Trained:
    """One training: the scores that it gives, and its cost."""

    scores: npt.NDArray[np.float32]
    seconds: float


class TrainOut(Protocol):
    """Whoever trains: this process, or workers."""

    def __call__(
        self, subject: Subject, people: Codes, seeds: Sequence[int], *, epochs: int | None = None
    ) -> list[Trained]:
        """What the training of each seed scores; ``epochs`` cuts trainings of networks short."""


def quick_epochs(rows: int) -> int:
    """Epochs of a short training on so many rows."""
    return max(1, round(QUICK_UPDATES * BATCH / rows))


def origin_trainer(subject: Subject, *, epochs: int | None = None) -> Trainer:
    """Whoever can train models like the subject's on its rows."""
    table = subject.table.training()
    if table.labels is None:
        raise TableError("the table has no labels, so nothing can be trained on it; name its target.")
    if len(table) < LEAST_ROWS:
        raise TableError(
            f"the table has {len(table)} rows to train on, and fewer than {LEAST_ROWS} say nothing about training; "
            f"give a larger table."
        )
    if not subject.schema.regression:
        counts = np.bincount(table.labels.astype(np.int64), minlength=len(subject.schema.classes))
        rare = int(counts.argmin())
        if counts[rare] < LEAST_OF_CLASS:
            raise TableError(
                f"only {counts[rare]} rows are labelled {subject.schema.classes[rare]!r}, and {LEAST_OF_CLASS} are "
                f"needed to train on; give a larger table."
            )
    trainer = trainer_of(subject)
    if isinstance(trainer, NetworkTrainer):
        trainer.check()
        trainer = replace(trainer, epochs=epochs)
    return trainer


def people_of(subject: Subject, m: int, rng: np.random.Generator) -> tuple[Codes, bool]:
    """The people whose twins are scored, and whether no training has seen them."""
    table = subject.unseen or subject.table
    count = int(np.clip(TWINS // m, 1, PEOPLE))
    return table.codes[np.sort(rng.permutation(len(table))[:count])], table is not subject.table


def train_here(subject: Subject, people: Codes, seeds: Sequence[int], *, epochs: int | None = None) -> list[Trained]:
    """Train one model after the other in this process, and score the people's twins with each."""
    trainer, table = origin_trainer(subject, epochs=epochs), subject.table.training()
    found = []
    for seed in seeds:
        begin = time.process_time()
        made = trainer.anew(table.codes, np.asarray(table.labels), seed)
        evaluator = Evaluator(made.model, subject.schema, made.encoding, own=False)
        found.append(Trained(evaluator.scores(people), time.process_time() - begin))
    return found


FOLDS = 3
#: More rows than this make the estimate no better by a digit that matters, and take long.
MAX_ROWS = 20_000
MIN_ROWS = 30
TREES, LEAVES, RATE = 60, 12, 0.1
#: A prediction is never more certain than one row in this many: one wrong row must not decide.
CERTAIN = 1e4
LABEL_RESAMPLES = 1000


def label_bits(schema: Schema, table: Table, rng: np.random.Generator) -> LabelBits:
    """Bits of the protected attributes in the labels, with a 95 % bootstrap interval over rows."""
    rows = rng.permutation(len(table))[:MAX_ROWS]
    codes, labels = table.codes[rows], np.asarray(table.labels)[rows]
    free = np.array(schema.free_columns, dtype=np.int64)
    seed = int(rng.integers(2**31))
    import sklearn.ensemble  # noqa: F401 - its thread pool can be limited only once it is there
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # its threads wait by spinning: on busy cores that takes a hundred times as long
        with_them = _losses(schema, codes, labels, np.arange(len(schema)), seed)
        without = _losses(schema, codes, labels, free, seed)
        if schema.regression:
            return _gaussian(with_them, without)
        estimate = bootstrap_means((without - with_them)[:, None], rng, resamples=LABEL_RESAMPLES)[0]
    return LabelBits(_bits_of(estimate), float(without.mean()), len(rows), FOLDS)


def _losses(schema: Schema, codes: Codes, labels: Doubles, columns: npt.NDArray[np.int64], seed: int) -> Doubles:
    """Bits (or squared errors, for a regression) that each row's label costs a learner that has not seen it."""
    from sklearn.model_selection import PredefinedSplit, cross_val_predict

    folds = PredefinedSplit(np.arange(len(labels)) % FOLDS)  # rows are in random order already
    asked = {"cv": folds, "method": "predict" if schema.regression else "predict_proba"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a class that one fold alone has is as unlikely as can be
        found = cross_val_predict(_learner(schema, columns, seed), codes[:, columns], labels, **asked)
    if schema.regression:
        return np.asarray((found - labels) ** 2)
    mine = found[np.arange(len(labels)), np.unique(labels, return_inverse=True)[1]]
    return np.asarray(-np.log2(np.clip(mine, 1 / CERTAIN, 1 - 1 / CERTAIN)))


def _learner(schema: Schema, columns: npt.NDArray[np.int64], seed: int) -> Any:
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if not len(columns):
        return DummyRegressor() if schema.regression else DummyClassifier(strategy="prior")
    kind = HistGradientBoostingRegressor if schema.regression else HistGradientBoostingClassifier
    attributes = [schema.attributes[i] for i in columns]
    categories = [a.kind == "category" and 2 < len(a.labels) <= 255 for a in attributes]
    return kind(
        max_iter=TREES,
        max_leaf_nodes=LEAVES,
        learning_rate=RATE,
        l2_regularization=1.0,
        early_stopping=False,
        categorical_features=categories if any(categories) else None,
        random_state=seed,
    )


def _gaussian(with_them: Doubles, without: Doubles) -> LabelBits:
    """For a regression: ½ log2 of the ratio of mean squared errors, the bits if errors were Gaussian."""
    tiny = np.finfo(np.float64).tiny
    ratio = student_ratio(without + tiny, with_them + tiny)
    ends = (0.5 * float(np.log2(max(end, tiny))) for end in (ratio.value, ratio.low, ratio.high))
    # The bits left to know about a number depend on its unit: none are given.
    return LabelBits(_bits_of(Estimate(*ends)), float("nan"), len(without), FOLDS)


def _bits_of(found: Estimate) -> Estimate:
    """Attributes tell no negative number of bits: a difference below 0 is chance, and an interval ends there."""
    return Estimate(*(max(value, 0.0) + 0.0 for value in (found.value, found.low, found.high)))
