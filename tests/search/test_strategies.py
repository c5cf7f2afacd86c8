"""Every strategy against one table of demands."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits.measure import Evaluator
from fairbits.search import DISTANCES, STRATEGIES, Budget, Settings, search_subject
from fairbits.search.problem import Problem
from fairbits.search.strategies.exhaustive import Exhaustive
from fairbits.store import Run

from .planted import WORST_K, every_person, planted_subject

PHASES = {"seeds": 20, "local_moves": 30}
SMALL = {
    "climb": {"seeds": 20, "generations": 40},
    "aequitas": {"draws": 50, "local_moves": 30},
    "expga": {"crowd": 40, "generations": 20, "samples": 20},
    "grft": {"seeds": 3, "crowd": 10, "local_moves": 30},
    "sg": {"seeds": 20, "neighbours": 200, "batches": 10},
    "themis": {"least": 1000},
    **dict.fromkeys(("dice", "adf", "eidig", "maft", "neuronfair"), PHASES),
}
#: These look for k; the others are content when two twins get different decisions.
SEEKING_K = ("climb", "dice", "random")


def settings(strategy: str, evaluations: int | None = None, **more) -> Settings:
    if evaluations is None:  # ten times everybody there is; sg fits a tree for every few people here
        evaluations = 1_500 if strategy == "sg" else 3_000
    options = {"options": SMALL.get(strategy, {}), **more}
    return Settings(budget=Budget(evaluations=evaluations), strategy=strategy, **options)


def codes_of(run) -> np.ndarray:
    return np.concatenate(list(run.codes()))


@pytest.fixture(scope="module", params=sorted(STRATEGIES))
def strategy(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def run(strategy: str, tmp_path_factory) -> Run:
    """Of the strategy as it is; only read."""
    return search_subject(planted_subject(), settings(strategy), tmp_path_factory.mktemp(strategy) / "run")


@pytest.mark.parametrize("partition", ["constrained", "grid"])
def test_the_worst_people_are_found(strategy: str, run: Run, partition: str, tmp_path) -> None:
    subject = planted_subject()
    truth = Evaluator(subject.model, subject.schema, partition=partition).evaluate(every_person(subject.schema))
    if partition != run.manifest["partition"]:
        run = search_subject(subject, settings(strategy, partition=partition), tmp_path / "run")
    assert run.summary["id_cases"] > 0
    if strategy in SEEKING_K:
        assert run.summary["k_max"] == truth.k.max()
    if partition == "constrained":
        assert truth.k.max() == WORST_K


def test_every_case_is_what_it_says(run: Run) -> None:
    subject = planted_subject()
    codes, table = codes_of(run), run.cases(labels=False)
    free = list(subject.schema.free_columns)
    order = np.argsort(table["evaluation"].to_numpy())
    ranked = np.column_stack([table[subject.schema.names[i]].to_numpy() for i in free])
    np.testing.assert_array_equal(ranked[order], codes[:, free])
    figures = Evaluator(subject.model, subject.schema).evaluate(codes)
    for name in ("k", "low", "high", "q_1", "low_twin", "high_twin", "favourable"):
        np.testing.assert_array_equal(table[name].to_numpy()[order], getattr(figures, name))
    np.testing.assert_array_equal(table["flips"].to_numpy(zero_copy_only=False)[order], figures.flips)
    for i in free:
        assert subject.schema.attributes[i].valid(codes[:, i]).all()
    assert len(np.unique(codes[:, free], axis=0)) == len(codes)
    changed = (codes[:, None, free] != subject.table.codes[None, :, free]).sum(axis=2).min(axis=1)
    np.testing.assert_array_equal(table["changed"].to_numpy()[order], changed)


def test_the_budget_is_kept_to_the_last_person(strategy: str, tmp_path) -> None:
    run = search_subject(planted_subject(), settings(strategy, 1_234), tmp_path / "e")
    assert run.summary["evaluations"] == 1_234
    assert run.summary["queries"] >= 1_234 * 6
    few = Settings(budget=Budget(cases=17), strategy=strategy, options=SMALL.get(strategy, {}))
    assert len(search_subject(planted_subject(), few, tmp_path / "c")) == 17


def test_seconds_end_a_search_on_an_injected_clock(strategy: str, tmp_path) -> None:
    ticks = iter(range(10**9))
    chosen = Settings(budget=Budget(seconds=200.0), strategy=strategy, options=SMALL.get(strategy, {}))
    run = search_subject(planted_subject(), chosen, tmp_path / "run", clock=lambda: float(next(ticks)))
    assert run.status == "finished"
    assert 200 <= run.summary["seconds"] < 260
    assert run.summary["evaluations"] > 0


def test_same_seed_same_cases_whatever_the_threads(strategy: str, tmp_path) -> None:
    runs = [
        search_subject(planted_subject(), settings(strategy, 1_500, seed=seed, threads=threads), tmp_path / f"{i}")
        for i, (seed, threads) in enumerate([(5, 1), (5, 3), (6, 1)])
    ]
    codes = [codes_of(run) for run in runs]
    np.testing.assert_array_equal(codes[0], codes[1])
    assert not np.array_equal(codes[0], codes[2])


@pytest.mark.parametrize("within", [0, 2])
def test_people_stay_near_real_ones_when_asked(strategy: str, within: int, tmp_path) -> None:
    run = search_subject(planted_subject(), settings(strategy, 1_500, within=within), tmp_path / "run")
    changed = run.cases()["changed"].to_numpy().max()
    assert changed == 0 if within == 0 else 0 < changed <= within


def test_seeds_are_followed(tmp_path) -> None:
    """K_I is the mean k of the rows as picked, K_F at least that, and every chain knows its row."""
    subject = planted_subject()
    run = search_subject(subject, settings("dice", 4_000), tmp_path / "run")
    assert 1 <= run.summary["k_initial"] <= run.summary["k_final"] <= WORST_K
    rows = run.cases()["seed_row"].to_numpy()
    assert rows.min() >= 0
    assert rows.max() < len(subject.table)
    assert 0 <= run.summary["local_success_rate"] <= 1


def test_exhaustive_is_exactly_everybody_near(tmp_path) -> None:
    subject = planted_subject(rows=7)
    evaluator = Evaluator(subject.model, subject.schema)
    people = every_person(subject.schema)
    free = list(subject.schema.free_columns)
    distance = (people[:, None, free] != subject.table.codes[None, :, free]).sum(axis=2).min(axis=1)
    for reach in (0, 1):
        chosen = Settings(budget=Budget(seconds=60), strategy="exhaustive", options={"distance": reach})
        run = search_subject(subject, chosen, tmp_path / str(reach))
        near = people[distance <= reach]
        assert run.status == "finished"
        assert len(run) == len(near)
        truth = int(evaluator.evaluate(near).k.max())
        assert run.summary["k_max"] == run.summary["k_max_on_data" if reach == 0 else "k_max_within_1"] == truth
        asked = ["k_max_on_data", "k_max_within_1"][: reach + 1]
        # What has reached the limit is exact, too: whoever was not asked cannot have more.
        full = [name for name in DISTANCES if run.summary[name] == run.summary["m"] and name not in asked]
        assert run.summary["exact"] == asked + full
    problem = Problem(evaluator, subject.table)
    assert Exhaustive(problem, 1).people == len(np.unique(subject.table.codes[:, free], axis=0)) * (1 + 9 + 9 + 2)


def test_an_exact_search_that_was_cut_short_says_so(tmp_path) -> None:
    chosen = Settings(budget=Budget(evaluations=20), strategy="exhaustive", options={"distance": 1})
    run = search_subject(planted_subject(), chosen, tmp_path / "run")
    assert run.status == "interrupted"
    assert "k_max_within_1" not in run.summary["exact"]


def test_a_k_that_cannot_be_more_is_exact(tmp_path, capsys) -> None:
    """As many classes as twins: no search can find more, and terminal and page say so."""
    from fairbits.cli.terminal import show
    from fairbits.report import compute_report, search_look
    from tests.report.drawn import render_markdown, render_words

    subject = planted_subject()
    run = search_subject(subject, settings("climb"), tmp_path / "run")
    assert run.summary["k_max"] == run.summary["m"] == WORST_K
    assert {"k_max_on_data", "k_max"} <= set(run.summary["exact"])
    show(search_look(run, top=1, lines=()))
    assert "(exact): it cannot be more" in capsys.readouterr().out
    data = compute_report(run, subject=subject)
    assert (data.near[-1].people, data.near[-1].exact) == ("anywhere", True)
    for page in (render_words(data), render_markdown(data)):
        assert "it cannot be more" in page


def test_black_boxes_are_searched_without_gradients(tmp_path) -> None:
    from dataclasses import replace

    from fairbits.errors import CapabilityError

    subject = planted_subject()

    class Box:
        inputs = 5

        def scores(self, inputs: np.ndarray) -> np.ndarray:
            return subject.model.scores(inputs)

    boxed = replace(subject, model=Box())
    for name, kind in STRATEGIES.items():
        if not kind.needs_gradients:
            summary = search_subject(boxed, settings(name), tmp_path / name).summary
            assert summary["k_max"] == WORST_K if name in SEEKING_K else summary["id_cases"] > 0
    with pytest.raises(CapabilityError, match=r"strategy 'dice' needs gradients.*use one of: climb, random"):
        search_subject(boxed, settings("dice"), tmp_path / "dice")
    assert not (tmp_path / "dice").exists()
