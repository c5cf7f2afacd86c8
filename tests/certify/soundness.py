"""Random small networks, against every way of computing them that a library may choose: no certificate may be false.

A network is asked in float32 in several random orders of summation, by PyTorch where it is installed, and (a few
people) in exact rational arithmetic, of smooth activations with 60 digits. Weights from 1e-6 to 1e6, ties, one-hot and
scaled inputs, real attributes far from zero, rules, 2 to 16 twins, all activations and heads, two to five classes.
``python -m tests.certify.soundness 2000`` checks so many networks.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from itertools import pairwise, product
from unittest.mock import patch

import mpmath
import numpy as np

from fairbits.certify.boxes import Question, prove
from fairbits.certify.exact import Asker
from fairbits.domain import Attribute, Encoding, Numeric, Schema, Twins
from fairbits.engine import FLIPPING, STEADY, box_network, margin_cuts
from fairbits.measure import Evaluator
from fairbits.models import Activation, Network
from fairbits.models.native.network import NAMES

THRESHOLDS = (0.5, 0.5, 0.3, 0.9, 0.9999, 0.001)
MAX_PEOPLE = 160


def _attribute(rng, name):
    kind = rng.choice(["integer", "category", "real", "listed", "far", "far-real"])
    if kind == "integer":
        return Attribute(name=name, kind="integer", low=int(rng.integers(-3, 3)), high=int(rng.integers(4, 9)))
    if kind == "category":
        return Attribute(name=name, kind="category", labels=tuple("abcdef"[: rng.integers(2, 6)]))
    if kind == "listed":
        return Attribute(name=name, kind="real", low=0, high=1, allowed=(0.1, 0.2, 0.3, 0.7))
    if kind == "far":
        return Attribute(name=name, kind="integer", low=10**6, high=10**6 + int(rng.integers(3, 9)))
    low = 1e6 if kind == "far-real" else float(rng.normal())
    return Attribute(name=name, kind="real", low=low, high=low + 10.0 ** rng.integers(-3, 3))


def _schema(rng, regression, many=2, vector=False):
    free = [_attribute(rng, f"a{i}") for i in range(rng.integers(1, 4))]
    m = int(rng.integers(2, 17))
    protected = [Attribute(name="p", kind="category", labels=tuple(f"v{i}" for i in range(m)), protected=True)]
    if m % 2 == 0 and m > 2:
        protected = [
            Attribute(name="p", kind="category", labels=("x", "y"), protected=True),
            Attribute(name="q", kind="integer", low=0, high=m // 2 - 1, protected=True),
        ]
    rules = ()
    if rng.random() < 0.2 and len(protected) == 2:
        rules = ('p == "x" -> q != 0',)
    both = [*free, *protected]
    order = rng.permutation(len(both))
    classes_of = () if regression else ("no", "yes", "third", "fourth", "fifth")[:many]
    about = {"favourable": "yes", "scores": "vector" if vector else "favourable"} if many > 2 else {}
    return Schema(tuple(both[i] for i in order), target="t", classes=classes_of, rules=rules, **about)


def _encoding(rng, schema):
    made = Encoding.one_hot(schema) if rng.random() < 0.5 else Encoding.identity(schema)
    if rng.random() < 0.4:
        parts = [
            Numeric(
                part.column, shift=float(rng.normal()) + (1e6 if a.low >= 1e6 else 0.0), scale=1 / rng.uniform(1, 9)
            )
            if isinstance(part, Numeric) and not a.protected
            else part
            for a, part in zip(schema.attributes, made.parts, strict=True)
        ]
        made = Encoding(parts)
    return made


def _network(rng, inputs, head, outputs):
    hidden = [int(h) for h in rng.integers(1, 7, rng.integers(0, 3))]
    widths = [inputs, *hidden, outputs]
    flavour = rng.choice(["plain", "large", "small", "ties", "mixed", "cancel"])
    weights, biases = [], []
    for a, b in pairwise(widths):
        w, c = rng.normal(0, 1.5 / np.sqrt(a), (a, b)), rng.normal(0, 0.5, b)
        if flavour == "ties":
            w, c = rng.integers(-2, 3, (a, b)) / 2, rng.integers(-2, 3, b) / 2
        elif flavour == "mixed":
            w = w * 10.0 ** rng.integers(-6, 7, (a, b))
        elif flavour in ("large", "small"):
            w, c = w * (1e6 if flavour == "large" else 1e-6), c * (1e6 if flavour == "large" else 1e-6)
        weights.append(w)
        biases.append(c)
    if flavour == "cancel" and hidden:  # two halves that cancel but for rounding
        w = weights[-2]
        w[:, w.shape[1] // 2 :] = w[:, : w.shape[1] - w.shape[1] // 2]
        biases[-2][w.shape[1] // 2 :] = biases[-2][: w.shape[1] - w.shape[1] // 2]
        v = weights[-1]
        v[len(v) // 2 :] = -v[: len(v) - len(v) // 2]
        biases[-1][:] = 0.0
    after = [Activation("relu")] * len(hidden)
    if rng.random() < 0.6:  # of all kinds, mixed
        after = [Activation(str(rng.choice(NAMES)), float(rng.choice([0.01, 0.2, 1.0, 1.7]))) for _ in hidden]
    favourable = 0 if head == "linear" else 1 if outputs > 2 else int(rng.integers(0, 2))
    return Network.build(weights, biases, activation=after, head=head, favourable=favourable)


def _people(rng, schema):
    columns = []
    for i in schema.free_columns:
        a = schema.attributes[i]
        if a.discrete or a.allowed:
            columns.append(a.domain_values())
        else:
            inside = np.concatenate([rng.uniform(a.low, a.high, 6), a.low + a.stride * np.arange(0, 100, 30)])
            columns.append(np.concatenate([[a.low, a.high], inside]))
    everyone = np.array(list(product(*columns)))
    if len(everyone) > MAX_PEOPLE:
        everyone = everyone[rng.choice(len(everyone), MAX_PEOPLE, replace=False)]
    people = np.tile([float(a.first) for a in schema.attributes], (len(everyone), 1))
    people[:, list(schema.free_columns)] = everyone
    return people


def _sum32(rng, x, w, b):
    """x @ w + b in float32, terms added one after the other in a random order."""
    terms = np.concatenate([x[:, :, None] * w[None], np.broadcast_to(b, (len(x), 1, len(b)))], axis=1)
    return np.add.accumulate(terms[:, rng.permutation(terms.shape[1])], axis=1, dtype=np.float32)[:, -1]


def _head(logits, network):
    one = np.float32(1)
    with np.errstate(over="ignore", invalid="ignore"):
        if network.head == "linear":
            return logits[:, 0]
        if network.head == "sigmoid":
            p = one / (one + np.exp(-logits[:, 0]))
            return p if network.favourable == 1 else one - p
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        return p if network.classes > 2 else p[:, network.favourable]


def _libraries(rng, network, inputs):
    """The scores of the network's inputs, of all classes where they are many, as different libraries compute them."""
    flat = inputs.astype(np.float32)
    weights = [(np.asarray(w), np.asarray(b)) for w, b in zip(network.weights, network.biases, strict=True)]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(3):
            value = flat
            for layer, (w, b) in enumerate(weights):
                value = _sum32(rng, value, w, b)
                value = network.activations_after[layer](value) if layer + 1 < len(weights) else value
            yield _head(value, network)
        yield np.asarray(network.class_scores(flat) if network.classes > 2 else network.scores(flat), np.float32)
    torch = sys.modules.get("torch")
    if torch is not None:
        value = torch.from_numpy(flat)
        for layer, (w, b) in enumerate(weights):
            value = torch.nn.functional.linear(value, torch.from_numpy(w.T.copy()), torch.from_numpy(b.copy()))
            value = _torch(torch, network.activations_after[layer])(value) if layer + 1 < len(weights) else value
        if network.head == "softmax":
            p = torch.softmax(value, 1).numpy()
            yield p if network.classes > 2 else p[:, network.favourable]
        elif network.head == "sigmoid":
            p = torch.sigmoid(value[:, 0])
            yield (p if network.favourable == 1 else 1 - p).numpy()
        else:
            yield value[:, 0].numpy()


def _torch(torch, activation):
    f, alpha = torch.nn.functional, activation.alpha
    return {
        "relu": torch.relu,
        "identity": lambda x: x,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "leaky_relu": lambda x: f.leaky_relu(x, alpha),
        "elu": lambda x: f.elu(x, alpha),
        "gelu": f.gelu,
        "gelu_tanh": lambda x: f.gelu(x, approximate="tanh"),
    }[activation.name]


def _precise(activation):
    """An activation of a fraction: exact, or with 60 digits."""
    alpha = Fraction(float(np.float32(activation.alpha)))

    def smooth(x):
        x, a = mpmath.mpf(x.numerator) / x.denominator, mpmath.mpf(alpha.numerator) / alpha.denominator
        cube = mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)
        y = {
            "tanh": lambda: mpmath.tanh(x),
            "sigmoid": lambda: 1 / (1 + mpmath.exp(-x)),
            "elu": lambda: x if x > 0 else a * mpmath.expm1(x),
            "gelu": lambda: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
            "gelu_tanh": lambda: x * (1 + mpmath.tanh(cube)) / 2,
        }[activation.name]()
        return Fraction(*mpmath.libmp.to_rational(y._mpf_)) if abs(y) > 1e-300 else Fraction(0)

    plain = {
        "relu": lambda x: max(x, Fraction(0)),
        "identity": lambda x: x,
        "leaky_relu": lambda x: x if x > 0 else alpha * x,
    }
    return plain.get(activation.name, smooth)


def _rational(network, inputs):
    """Margins in exact arithmetic: float32 weights are fractions, and so are float64 inputs."""
    found = []
    for row in inputs:
        value = [Fraction(float(x)) for x in row]
        for layer, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
            value = [
                sum((x * Fraction(float(y)) for x, y in zip(value, w[:, k], strict=True)), Fraction(float(b[k])))
                for k in range(w.shape[1])
            ]
            if layer + 1 < len(network.weights):
                value = [_precise(network.activations_after[layer])(x) for x in value]
        if network.head == "softmax":
            found.append(value[network.favourable] - max(v for c, v in enumerate(value) if c != network.favourable))
        else:
            found.append(value[0] if network.favourable == 1 or network.head == "linear" else -value[0])
    return found


def _membership(kept, boxes, people):
    """Of every person: whether some settled box says that they are steady, and that they flip."""
    inside, places = boxes.places(people)
    assert inside.all(), "somebody lies outside of the domain"
    steady, flipping = (np.zeros(len(people), np.bool_) for _ in range(2))
    wide = boxes.layers.wide
    for statuses, firsts, lasts, masks in kept:
        for status, first, last, mask in zip(statuses, firsts, lasts, masks, strict=True):
            numbers = places[:, : boxes.numeric]
            mine = ((numbers >= first) & (numbers <= last + wide)).all(axis=1)
            for a, bits in enumerate(mask):
                mine &= (int(bits) >> places[:, boxes.numeric + a].astype(int)) & 1 == 1
            (steady if status == STEADY else flipping)[mine] = True
    return steady, flipping


def check(seed, *, rationals=3):  # noqa: PLR0912, PLR0915 - every certificate of one network
    """One network: every certificate about it against everybody who is asked; gives how much was settled."""
    rng = np.random.default_rng(seed)
    mpmath.mp.dps = 60
    head = str(rng.choice(["sigmoid", "softmax", "linear"], p=[0.4, 0.4, 0.2]))
    regression = head == "linear"
    outputs = int(rng.choice([2, 2, 3, 5])) if head == "softmax" else 1
    many, vector = outputs > 2, bool(rng.random() < 0.3)
    schema = _schema(rng, regression, max(outputs, 2), vector)
    encoding = _encoding(rng, schema)
    network = _network(rng, encoding.width, head, outputs)
    threshold = float(rng.choice(THRESHOLDS))
    twins, people = Twins(schema), _people(rng, schema)
    flat = twins.expand(people).reshape(-1, len(schema))
    inputs = np.zeros((len(flat), encoding.width))
    for i, part in enumerate(encoding.parts):
        inputs[:, part.columns] = part.encode(flat[:, i])
    libraries = [scores.reshape(len(people), twins.m, -1) for scores in _libraries(rng, network, inputs)]
    tables = [scores for scores in libraries if np.isfinite(scores).all()]
    if not tables:
        return 0.0
    libraries = [np.ascontiguousarray(scores[..., network.favourable if many else 0]) for scores in tables]
    span = float(np.ptp(libraries[0])) if regression else 1.0
    epsilon = max(float(rng.choice([0.025, 0.1, 0.25])) * span, 1e-30)
    # Few parts of a real attribute, so that what a part holds matters as much as where it begins.
    parts = patch("fairbits.engine.boxes.PARTS", int(np.random.default_rng(seed).choice([1, 2, 16])))
    with parts:
        boxes = box_network(network, schema, encoding, twins, scored=True)
        decided = [box_network(network, schema, encoding, twins)]
        if many and vector:
            decided = [box_network(network.with_favourable(c), schema, encoding, twins) for c in range(outputs)]
    evaluator = Evaluator(network, schema, encoding, epsilon=epsilon, threads=1)
    evaluator.threshold = threshold
    valid = evaluator.valid_twins(people)
    there = np.ones(libraries[0].shape, np.bool_) if valid is None else valid
    settled = 0.0
    if not regression:
        labels = [_labels(scores, network, threshold, vector=vector) for scores in tables]
        flips = np.stack([_differ(label, there) for label in labels])
        told = Asker(evaluator).ask(people)[0]
        assert not flips[:, told == STEADY].any(), f"seed {seed}: asked as steady, and flips"
        assert flips[:, told == FLIPPING].all(), f"seed {seed}: asked as flipping, and does not"
        below, above = margin_cuts(threshold, lead=many)
        for place, one in enumerate(decided):
            favourable = place if len(decided) > 1 else network.favourable
            mine = [label == place for label in labels] if len(decided) > 1 else labels
            every = np.stack([_differ(label, np.ones_like(there)) for label in mine])
            found = prove(one, Question(cut=above, below=below), seconds=60, threads=1, max_boxes=60, keep=True)
            steady, flipping = _membership(found.kept, one, people)
            assert not every[:, steady].any(), f"seed {seed}: a steady box has somebody who flips"
            assert every[:, flipping].all(), f"seed {seed}: a flipping box has somebody who does not"
            if one.countable and one.factor == 1 and len(people) == one.people:
                assert found.certified <= (~every).all(axis=0).sum(), f"seed {seed}: too many certified"
                assert found.falsified <= every.all(axis=0).sum(), f"seed {seed}: too many falsified"
            if threshold == 0.5 or many:
                some = rng.choice(len(people), min(rationals, len(people)), replace=False)
                for person in some.tolist():
                    if steady[person] or flipping[person]:
                        rows = inputs.reshape(len(people), twins.m, -1)[person]
                        signs = {margin >= 0 for margin in _rational(network.with_favourable(favourable), rows)}
                        assert len(signs) == (1 if steady[person] else 2), f"seed {seed}: not in exact arithmetic"
            settled = (found.certified + found.falsified) / found.people
    _, least, most = Asker(evaluator).ask(people)
    ks = []
    for scores, table in zip(libraries, tables, strict=True):
        if evaluator.by_vector:
            ks.append(evaluator.figures_of_classes(table, valid).k)
        else:
            ks.append(evaluator.figures_of_scores(np.ascontiguousarray(scores), valid).k)
    ks = np.stack(ks)
    assert (least <= ks).all(), f"seed {seed}: fewer classes than the fewest"
    assert (ks <= most).all(), f"seed {seed}: more classes than the most"
    if valid is None and not evaluator.by_vector:
        limit = int(rng.integers(1, 4))
        question = Question(k=limit, epsilon=epsilon, linear=regression, classes=network.classes)
        found = prove(boxes, question, seconds=60, threads=1, max_boxes=60, keep=True)
        steady, flipping = _membership(found.kept, boxes, people)
        assert (ks[:, steady] <= limit).all(), f"seed {seed}: more than k classes"
        assert (ks[:, flipping] > limit).all(), f"seed {seed}: not more than k classes"
        if regression:
            settled = (found.certified + found.falsified) / found.people
    return settled


def _labels(table, network, threshold, *, vector):
    """What a library decides about every twin: a class, or whether it is the favourable one."""
    if network.classes <= 2:
        return table[..., 0] >= np.float32(threshold)
    return table.argmax(axis=2) if vector else table.argmax(axis=2) == network.favourable


def _differ(labels, there):
    """Whose twins, of those who are there, do not all get one label."""
    first = np.take_along_axis(labels, there.argmax(axis=1)[:, None], axis=1)
    return ((labels != first) & there).any(axis=1)


if __name__ == "__main__":
    import torch  # noqa: F401 - asked as well

    settled = []
    failed = 0
    for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else 0, int(sys.argv[1])):
        try:
            settled.append(check(number, rationals=6))
        except AssertionError as error:
            failed += 1
            sys.stdout.write(f"{error}\n")
    sys.stdout.write(f"{len(settled)} networks hold, {failed} do not; {np.mean(settled):.1%} settled on average\n")
