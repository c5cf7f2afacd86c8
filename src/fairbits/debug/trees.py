"""Which trees and which splits tell twins apart: every tree left out, every split on a protected attribute held.

The records are those of networks, with trees for layers and splits for neurons. Trees are counted from 1. A split is
the number of its node in the tree, level by level, the root 0; -1 is the whole tree.

- δ of a tree: the most that it adds to the sum of one twin and not to that of another.
- ρ of a tree: how much wider the span of the twins' scores is with the tree than without it. A case votes for the tree
  with the largest ρ. Without it: with the mean of what it adds to the table's rows, for everybody.
- A split is decided in three other ways: always to the left, always to the right, and just the other way. Its ACD is
  what mean k loses when nobody is told apart there any more and everybody goes where most of the table's rows go.
- In a large ensemble one split does little. So the same question (all splits that send the same twins to the left) is
  also decided otherwise in all trees at once; layer 0 stands for that, and the question's number for a neuron.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairbits.debug.neurons import SMALL, accuracy_floor, candidate_of
from fairbits.debug.records import QUANTILES, Candidate, LayerEffect, NeuronEffect, halves
from fairbits.domain import Attribute, Codes, Doubles, Truth, with_stand_ins
from fairbits.engine import LEFT, OTHER_WAY, RIGHT, Evaluation, held_sums, leaves_of, walks_of
from fairbits.measure import Evaluator
from fairbits.models import Ensemble, HasTrees
from fairbits.randomness import sampled_rows
from fairbits.subject import Subject
from fairbits.text import for_reader

#: Trees whose splits are held unless those of all trees are asked for; and splits of a tree, those that most twins
#: of the cases come to.
MAX_TREES, MAX_SPLITS = 10, 48
#: Twins walked at a time, and leaves found at a time: a few dozen megabytes.
TWINS, LEAVES = 16_384, 4_000_000
#: Rows of the table that accuracy is taken from, and leaves of theirs that are kept.
MAX_ROWS, MAX_KEPT = 20_000, 20_000_000
#: Questions that are decided otherwise in all trees at once: those that most twins of the cases are asked.
MAX_QUESTIONS = 12
#: The node that stands for a whole tree, and the layer that stands for all of them.
WHOLE_TREE, ALL_TREES = -1, 0

WAYS = {"always left": LEFT, "always right": RIGHT, "the other way": OTHER_WAY}
LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True, eq=False)
class TreeEffects:
    """What trees and splits do: a record per tree, one per thing held, and δ and ρ of every case and tree."""

    layers: tuple[LayerEffect, ...]
    neurons: tuple[NeuronEffect, ...]
    suspect: int | None
    delta: Doubles
    rho: Doubles
    notes: tuple[str, ...]


class _Held(NamedTuple):
    """Splits that are decided otherwise together: one, or all that ask the same question."""

    layer: int
    neuron: int
    label: str
    trees: tuple[int, ...]
    nodes: npt.NDArray[np.int64]


class _Part(NamedTuple):
    """Some cases: the rows of their twins, the leaves that these reach, and what all trees add up to."""

    cases: slice
    valid: Truth | None
    rows: Doubles  # (cases × m, features)
    leaves: npt.NDArray[np.int32]  # (cases, m, trees)
    sums: Doubles  # (cases, m, outputs)


def tree_effects(
    evaluator: Evaluator,
    subject: Subject,
    cases: Codes,
    *,
    all_trees: bool = False,
    rng: np.random.Generator,
    say: Callable[[str], None] = lambda _: None,
) -> TreeEffects:
    """Find out which trees and which splits tell the twins of some cases apart."""
    return _Study(evaluator.over_values, subject, cases, rng, say).effects(all_trees=all_trees)


class _Study:
    """Cases and rows of one ensemble, and what holding does to them."""

    def __init__(
        self, evaluator: Evaluator, subject: Subject, cases: Codes, rng: np.random.Generator, say: Callable[[str], None]
    ):
        model = subject.model
        assert isinstance(model, HasTrees)  # noqa: S101 - the caller has looked
        self.evaluator, self.subject, self.cases, self.say = evaluator, subject, cases, say
        self.model, self.schema = model, subject.schema
        ensemble = model.ensemble.plain()
        favourable = int(getattr(model, "favourable", 1))
        reduced = ensemble.width > 1 and ensemble.link == "identity" and len(self.schema.classes) <= 2
        self.ensemble: Ensemble = ensemble.only_output(favourable) if reduced else ensemble
        self.shown = favourable if self.ensemble.width > 1 else 0  # which of a leaf's values δ looks at
        self.walks = walks_of(self.ensemble)
        self.flags = np.zeros(len(self.ensemble.feature), np.bool_)
        columns = np.full(self.ensemble.features, -1)
        for column, part in enumerate(subject.encoding.parts):
            columns[part.columns] = column
        feature = self.ensemble.feature
        #: By node, the attribute that it looks at; -1 at leaves and where nobody differs.
        self.owner = np.where(feature >= 0, columns[np.maximum(feature, 0)], -1)
        inner = np.flatnonzero(np.isin(self.owner, evaluator.twins.columns))
        self.tree_of = np.searchsorted(self.ensemble.roots, np.arange(len(self.owner)), side="right") - 1
        self.looking = np.unique(self.tree_of[inner])  # the others tell no twins apart
        self.splits = {int(tree): inner[self.tree_of[inner] == tree] for tree in self.looking}
        self._read_table(rng)
        self.k_before = evaluator.evaluate(cases)

    def _read_table(self, rng: np.random.Generator) -> None:
        table, encoding = self.subject.table, self.subject.encoding
        most = max(100, min(MAX_ROWS, MAX_KEPT // max(1, self.ensemble.trees)))
        rows = sampled_rows(len(table), most, rng)
        self.table_rows = self.ensemble.rounded(encoding.encode(table.codes[rows]))
        self.table_leaves = leaves_of(self.ensemble, self.walks, self.table_rows, threads=self.evaluator.threads)
        self.table_sums = self.ensemble.sums(self.table_leaves)
        self.labels = None if table.labels is None else table.labels[rows]
        self.accuracy = self._accuracy(self.table_sums)
        self.floor = -np.inf if self.accuracy is None else accuracy_floor(self.accuracy, self.subject)
        self.passing = self._passing(np.bincount(self.table_leaves.ravel(), minlength=len(self.owner)))

    def _passing(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How many come to every node, from how many end in every leaf."""
        counts, levels = counts.copy(), [self.ensemble.roots]
        while len(levels[-1]):
            levels[-1] = levels[-1][self.ensemble.feature[levels[-1]] >= 0]
            sides = self.ensemble.left[levels[-1]], self.ensemble.right[levels[-1]]
            levels.append(np.concatenate(sides).astype(np.int64))
        for nodes in reversed(levels):
            counts[nodes] = counts[self.ensemble.left[nodes]] + counts[self.ensemble.right[nodes]]
        return counts

    def _scores(self, sums: Doubles) -> Doubles:
        return np.asarray(self.model.chosen(self.ensemble.linked(sums)), np.float64)  # type: ignore[attr-defined]

    def _class_table(self, sums: Doubles) -> Doubles:
        found = self.ensemble.linked(sums)
        return found if found.shape[-1] > 1 else np.concatenate([1 - found, found], axis=-1)

    def _accuracy(self, sums: Doubles) -> float | None:
        if self.labels is None or self.schema.regression:
            return None
        rule = self.schema.rule
        two = len(self.schema.classes) == 2
        found = (self._scores(sums) if two else self._class_table(sums)).astype(np.float32)
        return float(((rule.decide if two else rule.most_likely)(found) == self.labels).mean())

    def _figures(self, sums: Doubles, valid: Truth | None) -> Evaluation:
        """Figures of some cases whose twins have these sums, as the evaluator would give them."""
        table = self._class_table(sums).astype(np.float32) if len(self.schema.classes) > 2 else None
        if table is not None and self.evaluator.by_vector:
            return self.evaluator.figures_of_classes(table, valid)
        scores = self._scores(sums).astype(np.float32)
        if not self.schema.regression:
            scores = np.clip(scores, 0, 1)
        return self.evaluator.figures_of_scores(scores, valid, table=table)

    def _parts(self) -> Iterator[_Part]:
        """The cases, some at a time. A twin that cannot exist stands where the first one stands that can."""
        twins, ensemble = self.evaluator.twins, self.ensemble
        step = max(1, min(TWINS, LEAVES // max(1, ensemble.trees)) // twins.m)
        for start in range(0, len(self.cases), step):
            batch = self.cases[start : start + step]
            valid = self.evaluator.valid_twins(batch)
            inputs = with_stand_ins(np.asarray(self.subject.encoding.encode_twins(batch, twins)), valid)
            rows = ensemble.rounded(inputs.reshape(-1, inputs.shape[-1]))
            leaves = leaves_of(ensemble, self.walks, rows, threads=self.evaluator.threads)
            shape = len(batch), twins.m, -1
            some = slice(start, start + len(batch))
            yield _Part(some, valid, rows, leaves.reshape(shape), ensemble.sums(leaves).reshape(shape))

    def effects(self, *, all_trees: bool) -> TreeEffects:
        delta, rho, left_out, passing = self._leave_out()
        ballots = np.bincount(rho.argmax(axis=1)[rho.max(axis=1) > 0], minlength=self.ensemble.trees)
        layers = tuple(
            LayerEffect(
                layer=tree + 1,
                width=int((self.ensemble.feature[self.ensemble.nodes(tree)] < 0).sum()),
                delta=float(apart.mean()),
                rho=float(wider.mean()),
                votes=int(ballots[tree]),
                delta_quantiles=tuple(np.quantile(apart, QUANTILES).tolist()),
                rho_quantiles=tuple(np.quantile(wider, QUANTILES).tolist()),
                role="tree",
            )
            for tree, (apart, wider) in enumerate(zip(delta.T, rho.T, strict=True))
        )
        ranked = sorted(self.looking.tolist(), key=lambda t: (-layers[t].votes, -(layers[t].rho or 0.0), t))
        chosen = ranked if all_trees else ranked[:MAX_TREES]
        held = self._hold([*self._questions(passing), *self._single(sorted(chosen), passing)])
        notes = []
        if len(chosen) < len(ranked):
            notes.append(
                f"Splits of the {len(chosen)} trees that widen most spans were held, of {len(ranked)} with a protected "
                + for_reader("split; --all-layers holds those of all.")
            )
        if not len(self.looking):
            notes.append("No tree splits on a protected attribute: twins score alike.")
        if self.accuracy is None:
            why = "a regression has no accuracy" if self.schema.regression else "the table has no labels"
            notes.append(f"Accuracy is not known ({why}): every way to decide a split was kept.")
        suspect = ranked[0] + 1 if ranked and layers[ranked[0]].votes else None
        return TreeEffects(layers, (*left_out, *held), suspect, delta, rho, tuple(notes))

    def _leave_out(self) -> tuple[Doubles, Doubles, list[NeuronEffect], npt.NDArray[np.int64]]:
        """δ and ρ of all cases and trees, what leaving out each tree does, and how many twins come to each node."""
        n, trees = len(self.cases), self.ensemble.trees
        delta, rho = np.zeros((2, n, trees))
        k, flips = np.zeros((len(self.looking), n), np.int32), np.zeros((len(self.looking), n), np.bool_)
        ends = np.zeros(len(self.owner), np.int64)
        means = [self.ensemble.values[self.table_leaves[:, tree]].mean(axis=0) for tree in self.looking]
        for part in self._parts():
            self.say("leaving out trees")
            ends += np.bincount(part.leaves.ravel(), minlength=len(ends))
            span = self._figures(part.sums, part.valid).span.astype(np.float64)
            for place, tree in enumerate(self.looking.tolist()):
                adds = self.ensemble.values[part.leaves[:, :, tree]]
                delta[part.cases, tree] = np.ptp(adds[:, :, self.shown], axis=1)
                without = self._figures(self._replaced(part.sums, tree, adds, means[place]), part.valid)
                narrower = without.span.astype(np.float64)
                rho[part.cases, tree] = (span - narrower) / (narrower + SMALL)
                k[place, part.cases], flips[place, part.cases] = without.k, without.flips
        effects = []
        for place, tree in enumerate(self.looking.tolist()):
            adds = self.ensemble.values[self.table_leaves[:, tree]]
            accuracy = self._accuracy(self._replaced(self.table_sums, tree, adds, means[place]))
            only = self._candidate(LEFT_OUT, float(means[place][self.shown]), accuracy, k[place], flips[place])
            effects.append(self._effect(tree + 1, WHOLE_TREE, (only,), only, "the whole tree"))
        return delta, rho, effects, self._passing(ends)

    def _replaced(self, sums: Doubles, tree: int, adds: Doubles, others: Doubles) -> Doubles:
        """Sums with something else in place of what one tree adds."""
        first = int(self.ensemble.output[tree])
        changed = sums.copy()
        changed[..., first : first + self.ensemble.width] += others - adds
        return changed

    def _single(self, trees: Sequence[int], passing: npt.NDArray[np.int64]) -> Iterator[_Held]:
        """The splits of some trees that most twins come to, each for itself."""
        for tree in trees:
            nodes = self.splits[tree][passing[self.splits[tree]] > 0]
            for node in np.sort(nodes[np.argsort(-passing[nodes], kind="stable")[:MAX_SPLITS]]).tolist():
                yield _Held(
                    tree + 1, node - int(self.ensemble.roots[tree]), self._words(node), (tree,), np.array([node])
                )

    def _questions(self, passing: npt.NDArray[np.int64]) -> Iterator[_Held]:
        """Splits that send the same twins to the left, where there are several, those asked most often first."""
        groups: dict[tuple[int, bytes], list[int]] = {}
        for column in self.evaluator.twins.columns.tolist():
            nodes = np.flatnonzero((self.owner == column) & (passing > 0))
            for node, left in zip(nodes.tolist(), self._sides(column, nodes), strict=True):
                groups.setdefault((column, left.tobytes()), []).append(node)
        asked = [nodes for nodes in map(np.array, groups.values()) if len(nodes) > 1]
        for number, nodes in enumerate(sorted(asked, key=lambda nodes: -int(passing[nodes].sum()))[:MAX_QUESTIONS]):
            words = f"{self._words(int(nodes[0]))} ({len(nodes)} splits)"
            yield _Held(ALL_TREES, number, words, tuple(np.unique(self.tree_of[nodes]).tolist()), nodes)

    def _hold(self, chosen: Sequence[_Held]) -> list[NeuronEffect]:
        """Decide some splits otherwise."""
        tried = [(one, way) for one in chosen for way in WAYS.values()]
        shape = len(tried), len(self.cases)
        k, flips = np.zeros(shape, np.int32), np.zeros(shape, np.bool_)
        for part in self._parts() if tried else ():
            for place, (one, way) in enumerate(tried):
                self.say("holding splits")
                sums = self._decided(one, way, part.rows, part.leaves, part.sums)
                found = self._figures(sums, part.valid)
                k[place, part.cases], flips[place, part.cases] = found.k, found.flips
        effects = []
        for number, one in enumerate(chosen):
            first = number * len(WAYS)
            rest = None if self.accuracy is None else (self.table_rows, self.table_leaves, self.table_sums)
            kept = [None if rest is None else self._accuracy(self._decided(one, way, *rest)) for way in WAYS.values()]
            candidates = tuple(
                self._candidate(name, float(place), kept[place], k[first + place], flips[first + place])
                for place, name in enumerate(WAYS)
            )
            left, right = self.ensemble.left[one.nodes], self.ensemble.right[one.nodes]
            usual = candidates[0] if self.passing[left].sum() >= self.passing[right].sum() else candidates[1]
            effects.append(self._effect(one.layer, one.neuron, candidates, usual, one.label))
        return effects

    def _decided(self, one: _Held, way: int, rows: Doubles, leaves: npt.NDArray[np.int32], sums: Doubles) -> Doubles:
        """Sums with some splits decided otherwise; ``leaves`` are (…, trees), ``sums`` (…, outputs)."""
        self.flags[one.nodes] = True
        flat = leaves.reshape(-1, leaves.shape[-1]), sums.reshape(-1, sums.shape[-1])
        options = {"trees": one.trees, "held": self.flags, "way": way, "threads": self.evaluator.threads}
        changed = held_sums(self.ensemble, self.walks, rows, *flat, **options)  # type: ignore[arg-type]
        self.flags[one.nodes] = False
        return changed.reshape(sums.shape)

    def _candidate(
        self,
        name: str,
        value: float,
        accuracy: float | None,
        k: npt.NDArray[np.int32],
        flips: npt.NDArray[np.bool_],
    ) -> Candidate:
        rate = None if self.schema.regression else float(flips.mean())
        return candidate_of(name, value, accuracy, (self.floor, np.inf), k, rate)

    def _effect(
        self, layer: int, neuron: int, candidates: tuple[Candidate, ...], held: Candidate, label: str
    ) -> NeuronEffect:
        choosing, reporting = (float(half.mean()) for half in halves(self.k_before.k))
        found = NeuronEffect(layer, neuron, None, None, None, candidates, label=label)
        if not held.kept:
            return found
        acd, chosen = (reporting - held.k_reported) / reporting, (choosing - held.k_choosing) / choosing
        return replace(found, acd=acd, inactive=held, acd_choosing=chosen)

    def _sides(self, column: int, nodes: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.bool_]]:
        """Which values of a protected attribute each of some splits sends to the left."""
        attribute, part = self.schema.attributes[column], self.subject.encoding.parts[column]
        values = attribute.twin_values()
        rows = self.ensemble.rounded(np.asarray(part.encode(values), self.subject.encoding.dtype))
        places = {int(feature): place for place, feature in enumerate(part.columns)}
        for node in nodes.tolist():
            inputs = rows[:, places[int(self.ensemble.feature[node])]]
            yield self.ensemble.goes_left(np.full(len(values), node), inputs)

    def _words(self, node: int) -> str:
        """Whom a split sends to the left."""
        column = int(self.owner[node])
        attribute = self.schema.attributes[column]
        return split_words(attribute, attribute.twin_values(), next(self._sides(column, np.array([node]))))


def split_words(attribute: Attribute, values: Codes, left: npt.NDArray[np.bool_]) -> str:
    """Whom a split sends to the left, in words."""
    name, inside = attribute.name, np.flatnonzero(left)
    if len(inside) in (0, len(values)):
        return f"{name}: {'everybody' if len(inside) else 'nobody'}"
    read = [attribute.read_twin(float(value)) for value in values]
    ordered = attribute.kind != "category"
    if len(inside) == 1 and len(values) == 2:
        return f"{name} = {read[inside[0]]}"
    if ordered and left[: len(inside)].all():
        return f"{name} ≤ {read[inside[-1]]}"
    if ordered and left[-len(inside) :].all():
        return f"{name} ≥ {read[inside[0]]}"
    few = inside if 2 * len(inside) <= len(values) else np.flatnonzero(~left)
    labels: list[Any] = [read[i] for i in few[:4]]
    more = f" and {len(few) - 4} more" if len(few) > 4 else ""
    return f"{name} {'is' if len(few) == len(inside) else 'is not'} {' or '.join(labels)}{more}"
