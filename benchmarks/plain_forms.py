"""The strategies as their authors run them, each a direct reading in NumPy: one individual after the other.

Where the authors themselves batch, so does the plain form: the neighbours of an explanation or a tree (ExpGA, SG), the
finite differences of one individual (MAFT), the population of one seed and the walk of all its ID cases (GRFT).
"""

from __future__ import annotations

import heapq

import numpy as np
from scipy import special
from sklearn.tree import DecisionTreeClassifier

from benchmarks.plain import EPSILON, GLOBAL, LOCAL, People, Plain, differs, spread


class PlainAdf(Plain):
    def people(self) -> People:
        while True:
            person = self.rows[self.rng.integers(len(self.rows))]
            for _ in range(GLOBAL + 1):
                rows, scores = self.scores(person)
                yield person, scores
                if differs(scores):
                    yield from self.walk(person, differs)
                    break
                person = self.moved(person, self.towards(rows[[scores.argmin(), scores.argmax()]]))


class PlainAequitas(Plain):
    def people(self) -> People:
        down, share = np.full(len(self.free), 0.5), np.full(len(self.free), 1 / len(self.free))
        while True:
            person = self.drawn()
            _, scores = self.scores(person)
            yield person, scores
            here = differs(scores)
            for _ in range(LOCAL if here else 0):
                attribute = self.rng.choice(len(share), p=share)
                step = np.zeros(len(share))
                step[attribute] = -1.0 if self.rng.random() < down[attribute] else 1.0
                hopped = self.moved(person, step)
                _, reached = self.scores(hopped)
                yield hopped, reached
                there = differs(reached)
                praise = 0.001 if there else -0.001
                down[attribute] = np.clip(down[attribute] - step[attribute] * praise, 0.0, 1.0)
                share[attribute] = max(share[attribute] + praise, 0.0)
                share /= share.sum()
                if self.rng.random() < np.exp(min(there - here, 0.0)):
                    person, here = hopped, there


class PlainDice(Plain):
    def people(self) -> People:
        while True:
            person, best = self.rows[self.rng.integers(len(self.rows))], (-1, -1.0)
            for _ in range(GLOBAL):
                rows, scores = self.scores(person)
                yield person, scores
                classes = np.floor(scores / EPSILON)
                values, sizes = np.unique(classes, return_counts=True)
                pair = rows[self.rng.choice(np.flatnonzero(classes == values[sizes.argmax()]), 2)]
                worth = (len(values), float(scores.max() - scores.min()))
                if worth > best:
                    best = worth
                    yield from self.walk(person, spread)
                person = self.moved(person, self.towards(pair))


class PlainThemis(Plain):
    def people(self) -> People:
        while True:
            person = self.drawn()
            yield person, self.scores(person)[1]


class PlainEidig(Plain):
    """Momentum towards the boundary; then steps that return to the start, slopes renewed after five successes."""

    def slope_of(self, row: np.ndarray) -> np.ndarray:
        encoded = self.encoding.encode(row[None])
        return self.encoding.pull_back(self.network.gradients(encoded, of="score"), row[None])[0, self.free]

    def people(self) -> People:
        while True:
            person = self.rows[self.rng.integers(len(self.rows))]
            memory = np.zeros((2, len(self.free)))
            for _ in range(GLOBAL + 1):
                rows, scores = self.scores(person)
                yield person, scores
                if differs(scores):
                    yield from self.around(person, rows, scores)
                    break
                ends = rows[[scores.argmin(), scores.argmax()]]
                memory = 0.5 * memory + np.stack([self.slope_of(row) for row in ends])
                signs = np.sign(memory) * (-1.0 if scores[0] >= 0.5 else 1.0)
                person = self.moved(person, self.agreed(signs))

    def around(self, start: np.ndarray, rows: np.ndarray, scores: np.ndarray) -> People:
        at_start = chances = self.chances(rows, scores)
        person, successes = start, 0
        for _ in range(LOCAL):
            step = np.zeros(len(self.free))
            step[self.rng.choice(len(step), p=chances)] = self.rng.choice([-1.0, 1.0])
            hopped = self.moved(person, step)
            there, reached = self.scores(hopped)
            yield hopped, reached
            if not differs(reached):
                person, successes, chances = start, 0, at_start
                continue
            person, successes = hopped, successes + 1
            if successes == 5:
                chances, successes = self.chances(there, reached), 0

    def chances(self, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        ends = rows[[scores.argmin(), scores.argmax()]]
        found = 1 / (np.abs([self.slope_of(row) for row in ends]).sum(axis=0) + 1e-6)
        return found / found.sum()


class PlainMaft(PlainEidig):
    """EIDIG with slopes from finite differences, all attributes of one row in one batch."""

    def slope_of(self, row: np.ndarray) -> np.ndarray:
        near = np.repeat(row[None], len(self.free) + 1, axis=0)
        down = row[self.free] + 1 > self.high
        near[1:][np.arange(len(self.free)), self.free] += np.where(down, -1.0, 1.0)
        scores = self.network.scores(self.encoding.encode(near))
        return (scores[1:] - scores[0]) * np.where(down, -1.0, 1.0)


class PlainNeuronFair(Plain):
    """Along the biased neurons of one layer, found once on some rows."""

    def people(self) -> People:
        layer, neurons = self.biased()
        while True:
            person, before = self.rows[self.rng.integers(len(self.rows))], None
            for _ in range(41):
                rows, scores = self.scores(person)
                yield person, scores
                if differs(scores):
                    yield from self.walk(person, differs)
                    break
                pair = rows[[scores.argmin(), scores.argmax()]]
                encoded = self.encoding.encode(pair)
                outputs = self.network.activations(encoded)[layer]
                part = special.softmax(outputs[:, neurons], axis=1)
                slopes = np.zeros_like(outputs)
                slopes[0, neurons], slopes[1, neurons] = part[0] - part[1], part[1] - part[0]
                rise = self.encoding.pull_back(self.network.layer_gradients(encoded, layer, slopes), pair)
                signs = np.sign(rise[:, self.free].sum(axis=0))
                if before is not None and (signs == before).all():
                    signs[self.rng.integers(len(signs))] = self.rng.choice([-1.0, 1.0])
                before, person = signs, self.moved(person, signs)

    def biased(self) -> tuple[int, np.ndarray]:
        sides = []
        for value in (self.twins.values[0], self.twins.values[-1]):
            rows = self.rows[:512].copy()
            rows[:, self.twins.columns] = value
            sides.append(self.network.activations(self.encoding.encode(rows))[:-1])
        gaps = [np.abs(one - other).mean(axis=0) for one, other in zip(*sides, strict=True)]
        sizes = [np.abs(one).mean() + 1e-12 for one in sides[0]]
        layer = int(np.argmax([gap.mean() / size for gap, size in zip(gaps, sizes, strict=True)]))
        return layer, np.argsort(-gaps[layer])[: max(1, len(gaps[layer]) // 2)]


class PlainExpGa(Plain):
    """Points for which a linear explanation ranks a protected attribute high, then a genetic search."""

    CROWD, GENERATIONS, NEIGHBOURS = 50, 100, 500

    def people(self) -> People:
        while True:
            crowd = [person for person in (self.drawn() for _ in range(2 * self.CROWD)) if self.explained(person)]
            crowd += [self.drawn() for _ in range(max(0, 2 - len(crowd)))]
            for _ in range(self.GENERATIONS):
                heights = []
                for person in crowd:
                    _, scores = self.scores(person)
                    yield person, scores
                    heights.append(2.0 * differs(scores) + 1.0)
                crowd = self.bred(crowd, np.array(heights))

    def explained(self, person: np.ndarray) -> bool:
        near = np.repeat(person[None], self.NEIGHBOURS, axis=0)
        near[:, self.twins.columns] = self.twins.values[self.rng.integers(0, self.twins.m, len(near))]
        fresh = self.rng.random((len(near), len(self.free))) < 0.5
        draws = np.floor(self.low + self.rng.random(fresh.shape) * (self.high - self.low + 1))
        near[:, self.free] = np.where(fresh, draws, near[:, self.free])
        centred = near - near.mean(axis=0)
        scale = centred.std(axis=0) + 1e-9
        scores = self.network.scores(self.encoding.encode(near))
        slopes = np.abs(np.linalg.lstsq(centred / scale, scores - scores.mean(), rcond=None)[0])
        return (slopes > slopes[self.twins.columns].max()).sum() < len(slopes) / 2

    def bred(self, crowd: list[np.ndarray], heights: np.ndarray) -> list[np.ndarray]:
        chosen = self.rng.choice(len(crowd), len(crowd), p=heights / heights.sum())
        children = [crowd[i].copy() for i in chosen]
        for one, other in zip(children[::2], children[1::2], strict=False):
            if self.rng.random() < 0.9:
                part = self.free[slice(*np.sort(self.rng.integers(0, len(self.free) + 1, 2)))]
                one[part], other[part] = other[part].copy(), one[part].copy()
        for child in children:
            anew = self.rng.random(len(self.free)) < 0.05
            child[self.free[anew]] = self.drawn()[self.free[anew]]
        return children


class PlainSg(Plain):
    """A queue of people; the path of each in a tree fitted around it is bent, constraint by constraint."""

    NEIGHBOURS, CONFIDENCE, DEPTH = 5000, 0.3, 8

    def people(self) -> People:
        queue: list[tuple[float, int, np.ndarray]] = []
        number, seen = 0, set()
        while True:
            person = heapq.heappop(queue)[2] if queue else self.rows[self.rng.integers(len(self.rows))]
            _, scores = self.scores(person)
            yield person, scores
            hit = bool(differs(scores))
            for rank, bent in self.bent(person, hit):
                key = bent[self.free].tobytes()
                if key not in seen:
                    seen.add(key)
                    number += 1
                    heapq.heappush(queue, (-rank, number, bent))

    def bent(self, person: np.ndarray, hit: bool) -> list[tuple[float, np.ndarray]]:
        tree = self.tree(person)
        inner, values = tree.tree_, person[self.free]
        path = tree.decision_path(values[None]).indices
        found = []
        low, high = self.low.copy(), self.high.copy()
        for node in path[:-1]:
            attribute, cut = inner.feature[node], inner.threshold[node]
            left = values[attribute] <= cut
            below, above = np.floor(cut), np.floor(cut) + 1
            ends = (max(low[attribute], above), high[attribute]) if left else (low[attribute], below)
            sure = inner.value[node, 0].max() / inner.value[node, 0].sum()
            if ends[0] <= ends[1] and (hit or sure >= self.CONFIDENCE):
                other = person.copy()
                other[self.free[attribute]] = self.rng.integers(int(ends[0]), int(ends[1]) + 1)
                found.append((sure + 2.0 * hit, other))
            if left:
                high[attribute] = min(high[attribute], below)
            else:
                low[attribute] = max(low[attribute], above)
        return found

    def tree(self, person: np.ndarray) -> DecisionTreeClassifier:
        near = np.repeat(person[None], self.NEIGHBOURS, axis=0)
        fresh = self.rng.random((len(near), len(self.free))) < 1 / 3
        draws = np.floor(self.low + self.rng.random(fresh.shape) * (self.high - self.low + 1))
        near[:, self.free] = np.where(fresh, draws, near[:, self.free])
        labels = self.network.scores(self.encoding.encode(near)) >= 0.5
        return DecisionTreeClassifier(max_depth=self.DEPTH, min_samples_leaf=5).fit(near[:, self.free], labels)


class PlainGrft(Plain):
    """A population of 100 around each seed; its ID cases then walk together."""

    CROWD, SEEDS = 100, 20

    def people(self) -> People:
        while True:
            found: list[np.ndarray] = []
            for _ in range(self.SEEDS):
                crowd = np.repeat(self.rows[self.rng.integers(len(self.rows))][None], self.CROWD, axis=0)
                crowd = self.shaken(crowd, 2, 5)
                for _ in range(GLOBAL):
                    scores = self.all_scores(crowd)
                    yield from zip(crowd, scores, strict=True)
                    hits = (scores.min(axis=1) < 0.5) & (scores.max(axis=1) >= 0.5)
                    if hits.any():
                        found += list(crowd[hits])
                        break
                    crowd = self.bred(crowd, np.abs(scores - scores[:, :1]).sum(axis=1))
            walkers = np.array(found).reshape(-1, self.rows.shape[1])
            for _ in range(LOCAL if len(walkers) else 0):
                hopped = walkers.copy()
                place = self.rng.integers(len(self.free))
                column = self.free[place]
                hopped[:, column] = np.clip(
                    hopped[:, column] + self.rng.choice([-1.0, 1.0]), self.low[place], self.high[place]
                )
                scores = self.all_scores(hopped)
                yield from zip(hopped, scores, strict=True)
                stay = (scores.min(axis=1) >= 0.5) | (scores.max(axis=1) < 0.5)
                walkers = np.where(stay[:, None], walkers, hopped)

    def all_scores(self, people: np.ndarray) -> np.ndarray:
        rows = np.repeat(people[:, None], self.twins.m, axis=1)
        rows[:, :, self.twins.columns] = self.twins.values
        return self.network.scores(self.encoding.encode(rows.reshape(-1, people.shape[1]))).reshape(len(people), -1)

    def shaken(self, people: np.ndarray, attributes: int, reach: int) -> np.ndarray:
        moved = people.copy()
        for person in moved:
            places = self.rng.choice(len(self.free), attributes, replace=False)
            person[self.free[places]] += self.rng.integers(-reach, reach + 1, attributes)
        moved[:, self.free] = np.clip(moved[:, self.free], self.low, self.high)
        return moved

    def bred(self, crowd: np.ndarray, heights: np.ndarray) -> np.ndarray:
        fittest = np.argsort(-heights)[:10]
        children = []
        for _ in range(len(crowd) - 1):
            one, other = (crowd[fittest[np.sort(self.rng.choice(10, 3, replace=False))[0]]] for _ in range(2))
            children.append(np.where(self.rng.random(crowd.shape[1]) < 0.5, one, other))
        changed = self.rng.random(len(children)) < 0.5
        young = np.array(children)
        young[changed] = self.shaken(young[changed], min(3, len(self.free)), 3)
        return np.concatenate([crowd[fittest[:1]], young])


PLAIN: dict[str, type[Plain]] = {
    "adf": PlainAdf,
    "aequitas": PlainAequitas,
    "eidig": PlainEidig,
    "expga": PlainExpGa,
    "grft": PlainGrft,
    "maft": PlainMaft,
    "neuronfair": PlainNeuronFair,
    "sg": PlainSg,
    "themis": PlainThemis,
    "dice": PlainDice,
}
