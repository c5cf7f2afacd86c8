"""A subject without a target: what the model is decides whether its scores are probabilities or quantities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fairbits
from fairbits import Network, Schema, Table
from fairbits.errors import OptionError

from ..conftest import random_network, random_people
from .modules import residual
from .zoo import SCHEMA, fit, perceptron, preprocessing, table

UNNAMED = Schema(SCHEMA.attributes)


def audit_of(model, **options) -> fairbits.Audit:
    people = random_people(np.random.default_rng(0), SCHEMA, 50)
    return fairbits.Audit(model, Table(people), UNNAMED, **options)


@pytest.mark.parametrize(("outputs", "head"), [(1, "sigmoid"), (2, "softmax"), (3, "softmax")])
def test_a_network_that_classifies_is_a_classifier(outputs: int, head, rng) -> None:
    network = random_network(rng, [9, 6, outputs], head=head)
    audit = audit_of(network)
    schema = audit.subject.schema
    assert schema.classes == ("0", "1", "2")[: max(outputs, 2)]
    assert (schema.favourable, schema.regression) == ("1", False)
    assert "no target is named, so the classes are the model's own (0, 1" in audit.subject.notes[0]
    measured = audit.measure()
    assert measured.evaluator.epsilon == 0.025
    assert measured.summary()["flip_rate"] is not None
    named = fairbits.Audit(network, audit.subject.table, replace(UNNAMED, classes=schema.classes, favourable="1"))
    (order,) = named.subject.notes
    assert "go in by their order" in order
    assert named.measure().summary() == measured.summary()


def test_a_network_that_predicts_a_quantity_stays_a_regression(rng) -> None:
    audit = audit_of(random_network(rng, [9, 6, 1], head="linear"))
    assert audit.subject.schema.regression
    with pytest.raises(OptionError, match="give epsilon, or name the target"):
        audit.measure()
    assert audit.measure(epsilon=0.1).summary()["flip_rate"] is None


def test_the_model_s_own_names_are_used() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    frame, _, target = table(120)
    for final in (perceptron(), RandomForestClassifier(5, random_state=0)):
        model = fit(make_pipeline(preprocessing(), final), frame, target)
        subject = audit_of(model).subject
        assert subject.schema.classes == ("no", "yes")
        assert isinstance(subject.model, Network) == (type(final).__name__ == "MLPClassifier")
        codes = subject.table.codes
        shares = model.predict_proba(fairbits.Decoder(SCHEMA).frame(codes))
        np.testing.assert_allclose(subject.model.scores(subject.encoding.encode(codes)), shares[:, 1], atol=1e-5)


def test_a_module_of_several_outputs_classifies() -> None:
    pytest.importorskip("torch", reason="the torch extra is not installed")
    subject = audit_of(residual()).subject
    assert (subject.schema.classes, subject.schema.favourable) == (("0", "1", "2"), "1")
    assert subject.model.scores(subject.encoding.encode(subject.table.codes)).min() > 0
