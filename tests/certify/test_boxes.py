"""Branch and bound: every statement about small random networks is checked by asking everybody."""

from __future__ import annotations

from collections import namedtuple
from fractions import Fraction
from itertools import pairwise, product

import numba
import numpy as np
import pytest
from scipy import special

from fairbits.certify import boxes as boxes_module
from fairbits.certify.boxes import DRAWN, Question, bound, prove
from fairbits.certify.exact import class_bounds
from fairbits.domain import Attribute, Encoding, Schema, Twins
from fairbits.engine import FLIPPING, STEADY, box_network, margin_cuts
from fairbits.engine.boxes import _curve_of
from fairbits.engine.kernels.boxes import EITHER, ON, relax, shares_above
from fairbits.measure.bits import constrained
from fairbits.models import Activation, Network
from fairbits.models.native.network import NAMES

Curves = namedtuple("Curves", ["kinds", "curves"])


@numba.njit
def _relax(layers, low, high, centre, lines, work):
    relax(layers, 0, len(low), low, high, centre, lines, work)


Ranges = namedtuple("Ranges", ["numeric", "wide", "first_value"])


@numba.njit
def _shares(layers, slopes, less, more, first, last, masks, parts):
    return shares_above(layers, slopes, less, more, first, last, masks, parts, np.empty((2, len(parts))))


@pytest.mark.parametrize("seed", range(40))
def test_counted_shares_are_no_larger_than_what_everybody_gives(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 3, 3).astype(np.float64) + 1e6 * (seed % 4 == 3)
    last = first + rng.integers(0, 12, 3)
    sizes, masks = (4, 6), np.array([rng.integers(1, 16), rng.integers(1, 64)], np.uint64)
    layers = Ranges(3, np.zeros(3), np.array([3, 7, 13]))
    slopes = rng.normal(0, 10.0 ** rng.integers(-6, 7, 13) if seed % 3 == 0 else np.ones(13))
    slopes = np.round(2 * slopes) / 2 if seed % 2 else slopes  # ties
    values = [slopes[i] * np.arange(first[i], last[i] + 1) for i in range(3)]
    for place, size, mask in zip((3, 7), sizes, masks, strict=True):
        values.append(np.array([slopes[place + v] for v in range(size) if int(mask) >> v & 1]))
    sums = np.array([sum(map(Fraction, some)) for some in product(*values)])
    for less in (float(-np.quantile(sums.astype(float), q)) for q in (0.001, 0.1, 0.5, 0.9, 0.999)):
        more = less + float(rng.exponential()) * (seed % 5 > 0)
        for bins in (2, 128, 4096):
            found = _shares(layers, slopes, less, more, first, last, masks, np.empty(bins))
            for share, constant in zip(found, (less, more), strict=True):
                true = (sums + Fraction(constant) > 0).mean()
                assert share <= true
                if bins == 4096 and seed % 2 == 0 and seed % 3:
                    assert share >= true - 0.03


def _schema():
    return Schema(
        (
            Attribute(name="age", kind="integer", low=18, high=25),
            Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
            Attribute(name="job", kind="category", labels=("a", "b", "c", "d")),
            Attribute(name="hours", kind="integer", low=0, high=11),
            Attribute(name="race", kind="category", labels=("x", "y", "z"), protected=True),
            Attribute(name="score", kind="integer", low=-2, high=4),
        ),
        target="ok",
        classes=("no", "yes"),
    )


def _network(rng, inputs, hidden, head="sigmoid", favourable=1, *, classes=2, activation="relu"):
    widths = [inputs, *hidden, classes if head == "softmax" else 1]
    weights = [rng.normal(0, 1.5 / np.sqrt(a), (a, b)) for a, b in pairwise(widths)]
    weights[0][0] /= 8
    biases = [rng.normal(0, 0.5, b) for b in widths[1:]]
    after = Activation(activation, 0.3)
    return Network.build(weights, biases, activation=after, head=head, favourable=favourable)


def _everybody(schema, encoding, twins, network):
    free = [schema.attributes[i].values() for i in schema.free_columns]
    people = np.zeros((int(np.prod([len(v) for v in free])), len(schema)))
    people[:, list(schema.free_columns)] = np.array(list(product(*free)))
    flat = twins.expand(people).reshape(-1, len(schema))
    parts = np.zeros((len(flat), encoding.width))
    for i, part in enumerate(encoding.parts):
        parts[:, part.columns] = part.encode(flat[:, i])
    value = parts
    for i, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        value = value @ w.astype(np.float64) + b.astype(np.float64)
        value = network.activations_after[i](value) if i + 1 < len(network.weights) else value
    if network.head == "softmax":
        margin = value[:, network.favourable] - np.delete(value, network.favourable, axis=1).max(axis=1)
    else:
        margin = value[:, 0] if network.favourable == 1 or network.head == "linear" else -value[:, 0]
    return people, margin.reshape(len(people), twins.m)


def _inside(boxes, network, people):
    """Which people lie in which kept boxes' union, by status."""
    found = {STEADY: np.zeros(len(people), int), FLIPPING: np.zeros(len(people), int)}
    steps = np.stack(
        [
            np.searchsorted(v, people[:, c])
            for c, v in zip(network.columns[: network.numeric], network.values, strict=False)
        ],
        axis=1,
    )
    for statuses, firsts, lasts, masks in boxes:
        for status, first, last, mask in zip(statuses, firsts, lasts, masks, strict=True):
            mine = ((steps >= first) & (steps <= last)).all(axis=1)
            for place, bits in enumerate(mask):
                where = network.numeric + place
                allowed = [v for b, v in enumerate(network.values[where]) if int(bits) >> b & 1]
                mine &= np.isin(people[:, network.columns[where]], allowed)
            found[int(status)] += mine
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("hidden", "head", "coded"), [((6,), "sigmoid", True), ((8, 5), "softmax", False), ((), "sigmoid", False)]
)
def test_flips_are_what_brute_force_finds(seed, hidden, head, coded):
    _flips_are_found(seed, hidden, head, coded)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("activation", NAMES[1:])
def test_flips_are_found_with_every_activation(activation, classes):
    _flips_are_found(classes, (5, 3), "softmax", False, classes=classes, activation=activation)


def _flips_are_found(seed, hidden, head, coded, **about):
    rng = np.random.default_rng(seed)
    schema = _schema()
    twins = Twins(schema)
    encoding = Encoding.identity(schema) if coded else Encoding.one_hot(schema)
    network = _network(rng, encoding.width, hidden, head, favourable=seed % 2, **about)
    boxes = box_network(network, schema, encoding, twins)
    people, margin = _everybody(schema, encoding, twins, network)
    distinct = np.unique(margin.round(9))
    middle = distinct[int(0.3 * len(distinct)) : int(0.6 * len(distinct))]
    place = int(np.diff(middle).argmax())
    cut = float(middle[place : place + 2].mean())  # between two people, further from both than float32 rounds
    flips = (margin >= cut).any(axis=1) & (margin < cut).any(axis=1)
    assert boxes.people == len(people)
    for limit in (1, 40, None):
        found = prove(boxes, Question(cut=cut, below=cut), seconds=60, threads=1, max_boxes=limit, keep=True)
        assert found.certified + found.falsified + found.open == len(people)
        assert found.certified <= (~flips).sum()
        assert found.falsified <= flips.sum()
        inside = _inside(found.kept, boxes, people)
        assert not flips[inside[STEADY] > 0].any()
        assert flips[inside[FLIPPING] > 0].all()
        assert (inside[STEADY] + inside[FLIPPING]).max() <= 1
    assert found.open == 0
    assert found.falsified == flips.sum()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_twins_are_bounded_apart_or_together_as_brute_force_allows(seed, activation):
    rng = np.random.default_rng(seed)
    schema = _schema()
    twins, encoding = Twins(schema), Encoding.one_hot(schema)
    network = _network(rng, encoding.width, (8, 6), "sigmoid", activation=activation)
    boxes = box_network(network, schema, encoding, twins)
    people, margin = _everybody(schema, encoding, twins, network)
    cut = float(np.quantile(margin, 0.4)) + 1e-9
    up, down = (margin >= cut).all(axis=1), (margin < cut).all(axis=1)
    (_, last, masks), n = boxes.whole(), 60
    ends = np.sort(np.floor(rng.random((n, 2, boxes.numeric)) * (last + 1)), axis=1)
    sets = rng.integers(1, int(masks[0, 0]) + 1, (n, 1)).astype(np.uint64)
    for apart in (EITHER, ON):
        states = np.zeros((n, len(boxes.layers.kinds) + 1), np.int8)
        states[:, -1] = apart
        found = bound(boxes, (cut, cut), (ends[:, 0].copy(), ends[:, 1].copy(), sets.copy(), states), bins=128)
        for i in range(n):
            box = (np.array([STEADY]), ends[i : i + 1, 0], ends[i : i + 1, 1], sets[i : i + 1])
            mine = _inside([box], boxes, people)[STEADY] > 0
            steady = (up | down)[mine].mean()
            assert found.certified[i] <= steady + 1e-12
            assert found.flipping[i] <= 1.0 - steady + 1e-12
            assert found.status[i] != STEADY or steady == 1.0
            assert found.status[i] != FLIPPING or steady == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_people_met_in_open_boxes_are_counted_once_and_flip(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    schema = _schema()
    twins, encoding = Twins(schema), Encoding.one_hot(schema)
    network = _network(rng, encoding.width, (9, 6), "sigmoid")
    boxes = box_network(network, schema, encoding, twins)
    people, margin = _everybody(schema, encoding, twins, network)
    cut = float(np.median(margin))
    flips = (margin > cut + 1e-9).any(axis=1) & (margin < cut - 1e-9).any(axis=1)
    # A clock that counts its readings, so that the part of the budget that looks for people who flip is always reached.
    monkeypatch.setattr(boxes_module, "FALSIFY", 0.9)
    followed = []
    plain = boxes_module._Proof._followed
    monkeypatch.setattr(
        boxes_module._Proof, "_followed", lambda self, front: followed.append(len(front.boxes)) or plain(self, front)
    )
    for seconds in (30, 60):
        time = iter(range(10**6))
        found = prove(
            boxes,
            Question(cut=cut, below=cut),
            seconds=seconds,
            threads=1,
            clock=lambda t=time: float(next(t)),
            keep=True,
        )
        assert found.certified + found.falsified + found.open == len(people)
        assert found.certified <= (~flips).sum()
        assert found.falsified <= flips.sum()
        inside = _inside(found.kept, boxes, people)
        assert flips[inside[FLIPPING] > 0].all()
        assert (inside[STEADY] + inside[FLIPPING]).max() <= 1
        assert found.falsified > 0
        assert found.drawn == DRAWN
        assert found.flips_estimate == pytest.approx(flips.sum(), rel=0.1)
    assert sum(followed) > 0


@pytest.mark.parametrize(("head", "classes"), [("sigmoid", 2), ("linear", 0), ("softmax", 3)])
def test_at_most_k_classes_is_what_brute_force_finds(head, classes):
    rng = np.random.default_rng(5)
    schema = _schema()
    twins, encoding = Twins(schema), Encoding.one_hot(schema)
    network = _network(rng, encoding.width, (7, 4), head, classes=classes)
    boxes = box_network(network, schema, encoding, twins, scored=True)
    people, margin = _everybody(schema, encoding, twins, network)
    scores = special.expit(margin) if head == "sigmoid" else margin
    if classes > 2:
        flat = encoding.encode(twins.expand(people).reshape(-1, len(schema)))
        scores = network.class_scores(flat)[:, network.favourable].astype(float).reshape(margin.shape)
    k = constrained(scores, 0.1).max(axis=1) + 1
    for limit in range(1, int(k.max()) + 1):
        question = Question(k=limit, epsilon=0.1, linear=head == "linear", classes=classes)
        found = prove(boxes, question, seconds=60, threads=1, max_boxes=6000, keep=True)
        inside = _inside(found.kept, boxes, people)
        assert (k[inside[STEADY] > 0] <= limit).all()
        assert (k[inside[FLIPPING] > 0] > limit).all()
        assert found.certified + found.falsified + found.open == len(people)
        assert found.open <= 0.01 * len(people)
        early = prove(boxes, question, seconds=60, threads=1, max_boxes=100)
        assert early.certified <= (k <= limit).sum()
        assert early.falsified <= (k > limit).sum()


def test_people_beyond_64_bits_are_counted_exactly():
    attributes = [Attribute(name="sex", kind="category", labels=("f", "m"), protected=True)]
    attributes += [Attribute(name=f"a{i}", kind="integer", low=0, high=999) for i in range(24)]
    schema = Schema(tuple(attributes), target="ok", classes=("no", "yes"))
    weights = np.zeros((25, 2))
    weights[0], weights[1] = [0.5, 0.0], [0.001, -0.001]
    network = Network.build([weights, np.array([[1.0], [-1.0]])], [np.zeros(2), np.array([-0.75])])
    boxes = box_network(network, schema, Encoding.identity(schema), Twins(schema))
    assert boxes.people == 1000**24
    found = prove(boxes, Question(), seconds=30, threads=1)
    # 0.5 sex + 0.001 a0 >= 0.75 flips for a0 in 250..749; the people on the cut itself are open or counted.
    share = 1000**23  # of which a count of doubles gives away a millionth at most
    assert 499 * share - share // 10**6 <= found.falsified <= 500 * share
    assert 499 * share - share // 10**6 <= found.certified <= 500 * share


def test_what_a_layer_puts_out_at_least_settles_a_box_that_no_line_does():
    """A neuron that is on in the middle is bounded by the line through 0, which falls as deep as its input does."""
    attributes = [Attribute(name="sex", kind="category", labels=("f", "m"), protected=True)]
    attributes += [Attribute(name=f"a{i}", kind="integer", low=0, high=99) for i in range(2)]
    schema = Schema(tuple(attributes), target="ok", classes=("no", "yes"))
    first = np.array([[5.0], [1.0], [1.0]])
    network = Network.build([first, np.array([[1.0]])], [np.array([-90.0]), np.array([0.5])], head="sigmoid")
    boxes = box_network(network, schema, Encoding.identity(schema), Twins(schema))
    found = prove(boxes, Question(), seconds=30, threads=1, max_boxes=1)
    assert found.certified == found.people == 100**2


def test_intervals_of_scores_bound_classes():
    rng = np.random.default_rng(0)
    scores = rng.random((400, 7))
    lows, highs = scores - rng.random((400, 7)) * 0.05, scores + rng.random((400, 7)) * 0.05
    fewest, most = class_bounds(lows, highs, 0.1)
    k = constrained(scores, 0.1).max(axis=1) + 1
    assert (fewest <= k).all()
    assert (k <= most).all()
    exact = class_bounds(scores, scores, 0.1)
    np.testing.assert_array_equal(exact[1], k)
    # A twin that may score far above those that begin later.
    assert class_bounds(np.array([[0.0, 0.01]]), np.array([[0.2, 0.05]]), 0.1)[1].tolist() == [2]


def test_every_activation_has_bounds_of_its_curvature():
    """What `box_network` takes for the largest second derivative, and for how it fades, is no less than that."""
    for name in NAMES:
        curve = _curve_of(Activation(name, 0.25))
        x = np.linspace(-9, 9, 36_001)
        x = x[np.abs(x) > 1e-3]
        slope = Activation(name, 0.25).slope(x)
        bend = np.abs(np.gradient(slope, x))[np.abs(x) > 2e-3]
        assert np.abs(slope).max() <= curve.steep + 1e-9
        if curve.bend:
            assert 0.9 * curve.bend < bend.max() < curve.bend + 1e-6
            assert (bend <= curve.decay * np.exp(-np.abs(x[np.abs(x) > 2e-3])) + 1e-6)[x[np.abs(x) > 2e-3] < 0].all()


@pytest.mark.parametrize("name", NAMES)
def test_lines_enclose_an_activation(name):
    """Over ranges narrow, wide, on one side and on both; and where the middle lies, they are close to it."""
    rng = np.random.default_rng(3)
    curve, activation = _curve_of(Activation(name, 0.25)), Activation(name, 0.25)
    low = np.concatenate([rng.normal(0, 3, 150), rng.normal(0, 300, 50)])
    high = low + np.abs(rng.normal(0, 1, 200)) * 10.0 ** rng.integers(-6, 3, 200)
    centre = rng.uniform(low, high)
    lines = np.empty((7, 200))
    layers = Curves(np.full(200, curve.kind), np.tile(curve.row, (200, 1)))
    work = np.empty(64), np.empty(64), np.empty(64, np.int64)
    _relax(layers, low, high, centre, lines, work)
    for k in range(200):
        x = np.concatenate([np.linspace(low[k], high[k], 500), np.linspace(-5, 5, 501)])
        x = np.unique(np.clip(x, low[k], high[k]))
        y = activation(x)
        room = 1e-12 * (1 + np.abs(y).max())
        assert (lines[0, k] * x + lines[1, k] <= y + room).all()
        assert (lines[2, k] * x + lines[3, k] >= y - room).all()
        assert lines[4, k] <= y.min() + room
        assert lines[5, k] >= y.max() - room
        width = high[k] - low[k]
        apart = (lines[2, k] - lines[0, k]) * centre[k] + lines[3, k] - lines[1, k]
        assert apart <= np.ptp(y) + min(0.3, 0.2 * width) + room


def test_rounded_steps_are_not_taken_for_even_ones():
    """0.1, 0.2, … 1.2 are no line of steps of 0.1 in doubles; what they stray from it is in the slack."""
    pay = Attribute(name="pay", kind="real", low=0, high=2, allowed=tuple(round(0.1 * i, 1) for i in range(1, 13)))
    sex = Attribute(name="sex", kind="category", labels=("f", "m"), protected=True)
    schema = Schema((pay, sex), target="ok", classes=("no", "yes"))
    network = Network.build([[[1e6], [0.5]], [[1.0]]], [[0.0], [-1.0]], head="sigmoid")
    layers = box_network(network, schema, Encoding.identity(schema), Twins(schema)).layers
    assert layers.numeric == 1
    line = [Fraction(0.1) + i * Fraction(0.1) for i in range(12)]
    stray = max(abs(Fraction(a) - b) for a, b in zip(pay.allowed, line, strict=True))
    assert stray > 0
    assert float(stray * 10**6) <= layers.drift[0] < 1e-6


@pytest.mark.parametrize("threshold", [0.5, 0.3, 0.7, 0.001, 0.9999, 0.1 + 0.2])
def test_margins_on_either_side_of_a_cut_are_decided_alike_by_every_sigmoid(threshold):
    """σ(-1e-9) is a half in float32, and reaches it."""
    below, cut = margin_cuts(threshold)
    centre, reach = np.log(threshold / (1 - threshold)), 2e-6 / (threshold * (1 - threshold))
    margins = np.unique(np.concatenate([centre + np.linspace(-reach, reach, 40_001), [0.0, -1e-9, 1e-9, below, cut]]))
    single = margins.astype(np.float32)
    one = np.float32(1)
    ways = [one / (one + np.exp(-single)), np.exp(single) / (one + np.exp(single)), one - one / (one + np.exp(single))]
    ways.append(special.expit(single))
    room = 2.0**-23 * np.abs(margins)  # what the margin itself is rounded by is another error
    for scores in ways:
        favourable = scores >= np.float32(threshold)
        assert favourable[margins - room >= cut].all()
        assert not favourable[margins + room < below].any()
    assert (margins < below).any()
    assert (margins >= cut).any()
