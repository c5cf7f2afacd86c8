"""The evaluator: compiled and plain paths, against each other and against the golden figures."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits import Attribute, Encoding, Network, Schema, Twins, load_model, qid
from fairbits.domain import Table
from fairbits.errors import ModelError, OptionError
from fairbits.measure import Evaluator, default_epsilon, measure_table

from ..conftest import random_network, random_people

HEADS = [("softmax", 2), ("softmax", 3), ("sigmoid", 1), ("linear", 1)]


class BlackBox:
    """Anything that gives scores."""

    def __init__(self, network: Network):
        self.network = network
        self.inputs = network.inputs

    def scores(self, inputs: np.ndarray) -> np.ndarray:
        return self.network.scores(inputs)


@pytest.mark.parametrize("encoding", ["codes", "one-hot"])
@pytest.mark.parametrize("partition", ["constrained", "grid"])
@pytest.mark.parametrize(("head", "outputs"), HEADS)
@pytest.mark.parametrize("favourable", [0, 1])
def test_compiled_and_plain_paths_agree(people_schema, rng, encoding, partition, head, outputs, favourable) -> None:
    schema = people_schema
    if head == "linear":
        schema = Schema(schema.attributes, target="wage")
    way = Encoding.identity(schema) if encoding == "codes" else Encoding.one_hot(schema)
    network = random_network(rng, [way.width, 13, 7, outputs], head=head, favourable=favourable)
    people = random_people(rng, schema, 301)
    options = {"epsilon": 0.03, "partition": partition}
    fast = Evaluator(network, schema, way, **options)
    plain = Evaluator(BlackBox(network), schema, way, **options)
    np.testing.assert_allclose(fast.scores(people), plain.scores(people), atol=1e-5, rtol=1e-5)
    figures, own = fast.evaluate(people), qid(fast.scores(people), **options)
    np.testing.assert_array_equal(figures.k, own.k)
    np.testing.assert_allclose(figures.q_1, own.q_1, atol=1e-5)
    other = plain.evaluate(people)
    # Scores of the two paths differ in the last bits, so a class may differ where a score lies on a boundary.
    assert (figures.k == other.k).mean() > 0.99
    if outputs != 3:  # with three classes a black box that gives one score cannot know the most likely class
        assert (figures.favourable == other.favourable).mean() > 0.99


def test_progress_is_told_and_changes_nothing(people_schema, rng) -> None:
    network = random_network(rng, [5, 9, 2])
    people = random_people(rng, people_schema, 20_000)
    evaluator = Evaluator(network, people_schema)
    told: list[tuple[int, int]] = []
    figures = evaluator.evaluate(people, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (20_000, 20_000)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    np.testing.assert_array_equal(figures.k, evaluator.evaluate(people).k)


def test_a_model_that_answers_nonsense_is_named(people_schema, rng) -> None:
    class Broken:
        inputs = 5

        def scores(self, inputs: np.ndarray) -> np.ndarray:
            return np.where(np.arange(len(inputs)) == 31, np.nan, 0.5)

    with pytest.raises(ModelError, match=r"1 scores that are not finite \(first: nan for the person in row 6\)"):
        Evaluator(Broken(), people_schema).evaluate(random_people(rng, people_schema, 50))


def test_options_are_checked(people_schema, rng) -> None:
    network = random_network(rng, [5, 9, 2])
    for options, complaint in (
        ({"epsilon": -1}, "epsilon is -1"),
        ({"partition": "gird"}, "Did you mean 'grid'"),
        ({"threads": 0}, "threads must be 1 or more"),
    ):
        with pytest.raises(OptionError, match=complaint):
            Evaluator(network, people_schema, **options)
    with pytest.raises(ModelError, match="takes 6 inputs, but the 5 attributes make 5"):
        Evaluator(random_network(rng, [6, 9, 2]), people_schema)


def test_reference_networks_end_to_end(shared) -> None:
    """Schema, twins, encoding, engine: scores within 1e-5 of the golden ones, and the same k on the grid."""
    for name in ("census", "compas", "german"):
        folder = shared / "reference" / name
        rows = [line.split(",") for line in (folder / "domain.csv").read_text().split()[1:]]
        schema = Schema(
            tuple(
                Attribute(name=n, kind="integer", low=float(low), high=float(high), protected=p == "1")
                for n, low, high, p in rows
            )
        )
        evaluator = Evaluator(load_model(folder / "model.npz"), schema, partition="grid")
        with np.load(folder / "golden.npz") as golden:
            # The golden columns run over the protected attributes in another order than ours.
            asked = np.zeros((len(golden["table"]), len(schema)))
            asked[:, golden["protected"]] = golden["table"]
            columns = Twins(schema).index_of(asked)
            np.testing.assert_allclose(evaluator.scores(golden["X"])[:, columns], golden["scores"], atol=1e-5)
            np.testing.assert_array_equal(evaluator.evaluate(golden["X"]).k, golden["k"])


def test_regression_takes_its_tolerance_from_the_target() -> None:
    schema = Schema((Attribute(name="sex", kind="integer", high=1, protected=True),), target="wage")
    wages = np.linspace(0, 1000, 1001)
    assert default_epsilon(schema, Table(np.zeros((1001, 1)), wages)) == pytest.approx(0.025 * 980)
    with pytest.raises(OptionError, match="give epsilon"):
        default_epsilon(schema, Table(np.zeros((3, 1))))
    with pytest.raises(OptionError, match="the target is 7 for almost everybody"):
        default_epsilon(schema, Table(np.zeros((3, 1)), np.full(3, 7.0)))


def planted(schema: Schema) -> Network:
    """Score jumps by 0.2 for each step of age (1..3) for people with hours >= 50; sex never matters."""
    weights = np.zeros((5, 2))
    weights[0, 0], weights[4, 0] = 1.0, 100.0  # max(0, age + 100·hours − 5000)
    weights[4, 1] = 100.0
    later = np.array([[0.0, 0.2], [0.0, -0.2]])
    return Network.build([weights, later], [np.array([-5000.0, -5000.0]), np.zeros(2)], head="softmax")


def test_a_planted_network_gives_known_figures(people_schema) -> None:
    people = np.array([[1, 0, 0.0, 0, 99], [2, 1, 0.0, 1, 99], [3, 1, 1.0, 1, 10.0]])
    found = measure_table(Evaluator(planted(people_schema), people_schema), Table(people), np.random.default_rng(0))
    assert found.evaluation.k.tolist() == [3, 3, 1]
    summary = found.summary()
    assert (summary["rows"], summary["m"], summary["k_max"]) == (3, 6, 3)
    assert summary["split_rate"] == pytest.approx(2 / 3)
    assert summary["q_1_max"] == pytest.approx(np.log2(3), abs=1e-6)
    assert found.histogram() == {1: 1, 3: 2}
    worst = found.worst(5)
    assert [person.row for person in worst] == [0, 1, 2]
    assert (worst[0].worst, worst[0].best) == ("young, Female", "old, Female")
    stakes = {(stake.attribute, stake.value): stake for stake in found.stakes()}
    assert stakes["age", "young"].lowest == 1
    assert stakes["age", "old"].highest == 1
    assert stakes["age", "middle"].lowest == 0
