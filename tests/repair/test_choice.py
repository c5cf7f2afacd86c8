"""Chosen on what nobody has seen, proved by nobody's words, promised only what is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from fairbits import Attribute, Encoding, Guard, Schema, Subject, Table
from fairbits.repair import Planner, Proposal, repair_run
from fairbits.repair.choice import contradicted, established, pick
from fairbits.repair.judgement import Setting, split
from fairbits.repair.run import study
from fairbits.store import Run
from fairbits.subject import make_subject
from tests.repair import planted
from tests.repair.conftest import searched, wired

WIDE = Schema(
    attributes=(
        Attribute(name="place", kind="integer", low=0, high=9999),
        Attribute(name="sex", kind="category", labels=("a", "b"), protected=True),
    ),
    target="hired",
    classes=("no", "yes"),
)


@dataclass
class Remembering:
    """Knows the rows that it was shown, and guesses about everybody else; protected values are nothing to it."""

    rows: npt.NDArray[np.float64]
    labels: npt.NDArray[np.float64]
    inputs: int = 2

    def scores(self, inputs: npt.ArrayLike) -> npt.NDArray[np.float32]:
        known = dict(zip(self.rows[:, 0].tolist(), self.labels.tolist(), strict=True))
        return np.array([known.get(place, 0.5) for place in np.asarray(inputs)[:, 0].tolist()], np.float32)


@dataclass
class Memory:
    """A proposal that learns its training rows by heart, and what it may not learn from where it is told to."""

    part: str = "training"
    name: str = "memory"

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        half = getattr(planner.halves, self.part)
        yield Proposal("remembered", "every row by heart", Remembering(half.rows, half.labels), retrained=True)


def _sexist(table: Table) -> Subject:
    """A model that is right about everybody, and moves its score by a tenth with the sex."""

    @dataclass
    class Right:
        inputs: int = 2

        def scores(self, inputs: npt.ArrayLike) -> npt.NDArray[np.float32]:
            given = np.asarray(inputs)
            return (0.1 + 0.7 * (given[:, 0] % 2) + 0.1 * given[:, 1]).astype(np.float32)

    return make_subject("right", Right(), WIDE, table, encoding=Encoding.identity(WIDE))


def _places(rows: int, *, held_out: bool) -> Table:
    rng = np.random.default_rng(3)
    codes = np.column_stack([rng.permutation(10_000)[:rows], rng.integers(0, 2, rows)]).astype(np.float64)
    mask = np.arange(rows) % 4 == 0 if held_out else None
    return Table(codes, codes[:, 0] % 2, mask)


@pytest.mark.parametrize("held_out", [False, True])
def test_who_learns_rows_by_heart_is_not_chosen_for_it(held_out: bool, tmp_path: Path) -> None:
    """It is right about every row that it was shown, k = 1, and right about half of all others."""
    subject = _sexist(_places(800, held_out=held_out))
    run = searched(subject, tmp_path / "run", evaluations=300)
    result = repair_run(run, subject=subject, proposals=[Memory()], threads=1)
    mine = result["remembered"]
    assert mine.plan.accuracy < 0.7
    assert mine.held_out.accuracy < 0.7
    assert not mine.within_budget
    assert result.chosen is not None
    assert result.chosen.name != "remembered"
    assert result.evidence.rows_unseen_by_model is held_out
    assert (result.evidence.training_rows, result.evidence.plan_rows) == ((600, 100) if held_out else (400, 200))
    noted = any("may have been trained on them" in note for note in result.evidence.notes)
    assert noted is not held_out


def test_no_row_and_no_case_is_in_two_parts(tmp_path: Path) -> None:
    for held_out in (False, True):
        subject = _sexist(_places(400, held_out=held_out))
        run = searched(subject, tmp_path / f"run-{held_out}", evaluations=300)
        parts = split(run, subject, np.random.default_rng(1))
        for name in ("rows", "cases"):
            groups = [
                {tuple(one) for one in getattr(part, name)} for part in (parts.training, parts.plan, parts.held_out)
            ]
            assert all(groups)
            assert sum(map(len, groups)) == len(set.union(*groups))


def test_thresholds_are_not_fitted_to_the_rows_that_they_are_chosen_on(tmp_path: Path) -> None:
    from fairbits.testing import check_repair

    assert "held_out" in check_repair(planted_thresholds(), evaluations=200)


def planted_thresholds():  # type: ignore[no-untyped-def]
    from fairbits.repair.proposals.mitigators import ThresholdsByGroup

    return ThresholdsByGroup()


class _Boasting:
    """Says that it is proved, in every way that a proposal can."""

    name = "boasting"

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        words = "Proved for everybody: all twins of a person get one score, k = 1."
        yield Proposal("unchanged", words, planner.network)

        class Calm(Guard):
            def __init__(self) -> None:
                self.tau, self.k_max, self.varies, self.inputs = 0.0, 1, False, 3

            def fits(self, _: object) -> bool:  # type: ignore[override]
                return False

            def scores(self, inputs: npt.ArrayLike) -> npt.NDArray[np.float32]:
                return wired().scores(inputs)

            def people_scores(self, codes: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
                return wired().scores(codes)

        yield Proposal("calm", words, Calm())


def test_nobody_proves_anything_by_saying_so(run: Run) -> None:
    with pytest.raises(TypeError, match="proof"):
        Proposal("mine", "words", wired(), proof="Proved for everybody")  # type: ignore[call-arg]
    result = repair_run(run, proposals=[_Boasting()], quick=True, threads=1)
    for name in ("unchanged", "calm"):
        assert result[name].held_out.k_max > 1
        assert result[name].proof is None
        assert result[name].k_max_proved is None
    assert result["blind"].proof is not None
    assert result["blind"].proof.property == "flips"


def test_what_is_proved_of_a_guard_is_by_its_own_arithmetic(subject: Subject) -> None:
    setting = Setting(subject, 0.025, "constrained", 1)
    guard = Guard.of(subject, epsilon=0.025, threads=1)
    two = guard.with_guarantee(2)
    two.k_max = 1  # whatever it says
    found = established(two, setting)
    assert found is not None
    assert (found.bound, found.property) == (2, "k")
    plain = established(guard, setting)
    assert plain is not None
    assert (plain.bound, plain.property) == (1, "flips")
    near = established(guard.with_guarantee(tau=0.0125), setting)
    assert near is not None
    assert (near.bound, near.property) == (1, "k")  # decisions may still flip
    for empty in (3, 4, 8):  # three twins: nobody can have more
        assert established(guard.with_guarantee(empty), setting) is None


def test_a_proof_that_figures_contradict(run: Run) -> None:
    result = repair_run(run, quick=True, threads=1)
    blind = result["blind"]
    assert blind.proof is not None
    assert contradicted(blind.proof, blind.plan, blind.held_out) == ""
    assert "k = 3" in contradicted(blind.proof, blind.plan, replace(blind.held_out, k_max=3))
    assert "flip" in contradicted(blind.proof, replace(blind.plan, id_rate_rows=0.1))


def test_a_guarantee_that_the_table_holds_is_given(tmp_path: Path) -> None:
    """Whatever the default would export with k = 1, the guarantee of 1 exports too, or something cheaper."""
    subject = planted.network_subject()
    run = planted.searched(subject, tmp_path / "run")
    free = repair_run(run, subject=subject, max_accuracy_loss=0.2, quick=True, threads=1)
    assert free.chosen is not None
    assert free.chosen.k_max_proved == 1
    bound = repair_run(run, subject=subject, max_accuracy_loss=0.2, quick=True, threads=1, guarantee=1)
    assert bound.chosen is not None
    assert bound.chosen.k_max_proved == 1
    for budget in (0.0, 0.01, 0.03, 0.05, 0.1):
        found = repair_run(run, subject=subject, max_accuracy_loss=budget, quick=True, threads=1, guarantee=1)
        fitting = [one for one in found.repairs if one.within_budget and one.k_max_proved == 1]
        assert (found.chosen is not None) is bool(fitting)


def test_nothing_to_choose_from_says_what_helps(tmp_path: Path) -> None:
    from fairbits.repair.choice import pick

    subject = make_subject("wired", wired(), planted.SCHEMA, planted.table())
    found = study(planted.searched(subject, tmp_path / "run"), subject, [], threads=1)
    chosen, reason = pick(found.candidates, found.before[0].figures, 0.02)
    assert chosen is None
    assert "--with" in reason


def test_the_chosen_is_judged_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairbits.repair import choice as candidates_module
    from fairbits.repair import run as run_module

    judged: list[int] = []
    real = run_module.judge

    def counted(model, half, setting):  # type: ignore[no-untyped-def]
        judged.append(id(model))
        return real(model, half, setting)

    monkeypatch.setattr(run_module, "judge", counted)
    monkeypatch.setattr(candidates_module, "judge", counted)
    result = repair_run(run, quick=True, threads=1)
    assert result.groups_after
    assert len(judged) == 2 * (1 + len(result.repairs))


@dataclass
class _Tailed:
    """Treats almost everybody's twins alike, and parts those of one in thirty further than before; nobody flips."""

    apart: float
    name: str = "tailed"

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        apart = self.apart

        class Calmer:
            inputs = 2

            def scores(self, inputs: npt.ArrayLike) -> npt.NDArray[np.float32]:
                given = np.asarray(inputs)
                few = given[:, 0] % 30 < 2
                return (0.1 + 0.55 * (given[:, 0] % 2) + apart * few * given[:, 1]).astype(np.float32)

        yield Proposal("calmer", "most people's twins alike", Calmer())


@pytest.mark.parametrize("apart", [0.3, 0.05])
def test_a_repair_that_worsens_the_tail_is_marked_and_not_chosen(apart: float, tmp_path: Path) -> None:
    subject = _sexist(_places(3000, held_out=False))
    run = searched(subject, tmp_path / "run", evaluations=300)
    result = repair_run(run, subject=subject, proposals=[_Tailed(apart)], threads=1, quick=True)
    mine, worse = result["calmer"], apart > 0.1
    assert mine.within_budget
    assert mine.plan.k_mean_rows < result.before_plan.k_mean_rows
    assert (mine.held_out.gap_tail, result.before_held_out.gap_tail) == pytest.approx((apart, 0.1), abs=1e-6)
    words = f"the gap of the worst 1 % of rows 0.1 → {apart:g}" if worse else ""
    assert (mine.raises, mine.worse_tail) == (words, words)
    chosen, why = pick([replace(mine, dominated=False)], result.before_plan, 0.02)
    assert (chosen is None) is worse
    assert ("widen the largest gaps between twins" in why) is worse
