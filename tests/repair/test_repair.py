"""From a run to a repaired file: what is chosen, what is written, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairbits import Audit, Network, Subject, Table, load_model, load_subject, open_run
from fairbits.debug import debug_run
from fairbits.errors import MissingDependencyError, OptionError, TableError
from fairbits.measure import Estimate, Evaluator
from fairbits.models import onnx as onnx_writing
from fairbits.repair import Proof, RepairCandidate, RepairResult, read_repair, repair_run
from fairbits.repair.choice import Planner, keeps_budget, pick, undominated
from fairbits.repair.proposals import weights as retraining_module
from fairbits.repair.records import Proposal
from fairbits.repair.run import cautions
from fairbits.repair.writers import export
from fairbits.repair.writers import files as writing
from fairbits.report.sections.repairs import words_of
from fairbits.search import Budget
from fairbits.store import Run, RunWriter
from fairbits.subject import make_subject
from tests.conftest import random_network
from tests.repair import planted
from tests.repair.conftest import CARRIER, SCHEMA, people, searched, wired, write_subject
from tests.store.conftest import MANIFEST

FIXED = ["repair", "neurons", "accuracy_before", "accuracy_after", "k_mean_before", "k_mean_after"]
FIXED += ["id_rate_before", "id_rate_after", "held_out"]


@pytest.fixture(autouse=True)
def _short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retraining_module, "UPDATES", 150)


def repair(run: Run, **options: Any) -> RepairResult:
    return open_run(run.folder).repair(**{"attack_budget": None, **options})


def test_one_neuron_is_enough(run: Run) -> None:
    result = repair(run, attack_budget=Budget(evaluations=1000), choose="neurons-1", retrain=False, threads=1)
    chosen = result.chosen
    assert chosen is not None
    assert chosen.k_max_proved == 1  # its carrier held, no twin can score differently
    assert [(do.layer, do.neuron) for do in chosen.neurons] == [CARRIER]
    assert (chosen.held_out.k_mean, chosen.held_out.k_max, chosen.held_out.id_rate_rows) == (1, 1, 0)
    assert chosen.held_out.accuracy == result.before_held_out.accuracy == 1
    assert result.before_held_out.k_mean > 1.3
    assert result.attack_before is not None
    assert result.attack_after is not None
    assert result.attack_before.k_max == 3
    assert result.attack_after.k_max == 1
    assert result.attack_after.seed != run.manifest["seed"]
    assert not result.evidence.rows_unseen_by_model
    assert any("set aside" in note for note in result.evidence.notes)
    assert result["blind"].held_out.k_max == 1
    assert result["blind"].k_max_proved == 1


def test_both_attacks_ask_about_as_many_people_whatever_the_clock_says(run: Run) -> None:
    """Half a second, which is another number of people every time: the second attack takes the first one's."""
    result = repair(run, attack_budget="0.5s", quick=True, threads=1)
    assert result.attack_before is not None
    assert result.attack_after is not None
    assert result.attack_before.evaluations == result.attack_after.evaluations > 0


def test_layers_count_from_one_in_files_and_words(run: Run) -> None:
    """As debug counts them; the Python object is a `Do`, whose layers are positions."""
    found = debug_run(run, threads=1)
    result = repair(run, choose="neurons-1", retrain=False, threads=1)
    assert result.chosen is not None
    do = result.chosen.neurons[0]
    document = json.loads((run.folder / "repair.json").read_text())
    mine = next(one for one in document["repairs"] if one["name"] == document["chosen"])
    assert document["layers_from"] == 1
    assert mine["neurons"][0]["layer"] == do.layer + 1 == found.best()[0].layer == CARRIER[0] + 1
    rows = pq.read_table(run.folder / "repairs.parquet").to_pylist()
    assert next(row for row in rows if row["chosen"])["neurons"].startswith(f"{do.layer + 1}:{do.neuron}=")
    repaired = read_repair(run.folder)
    assert repaired is not None
    assert repaired.chosen is not None
    assert repaired.chosen.neurons == result.chosen.neurons
    assert f"neuron {do.neuron} of layer {do.layer + 1} at" in words_of(repaired.chosen)


def test_what_is_written(run: Run) -> None:
    result = repair_run(run, choose="neurons-1", threads=1)
    assert result.chosen is not None
    table = pq.read_table(run.folder / "repairs.parquet")
    assert table.column_names[: len(FIXED)] == FIXED
    assert table.num_rows == 2 * len(result.repairs)
    rows = [row for row in table.to_pylist() if row["chosen"] and row["held_out"]]
    assert [row["repair"] for row in rows] == [result.chosen.name]
    assert rows[0]["k_mean_after"] == result.chosen.held_out.k_mean
    document = json.loads((run.folder / "repair.json").read_text())
    assert document["chosen"] == result.chosen.name
    assert document["about_blinding"].startswith("Blinding ends the direct use")
    back = read_repair(run.folder)
    assert back is not None
    assert back.chosen is not None
    assert (back.chosen.name, back.files, back.subject_file) == (result.chosen.name, result.files, result.subject_file)
    in_memory = {"network": None, "source": None, "fitted": None}
    assert back.repairs == tuple(replace(one, **in_memory) for one in result.repairs)
    assert (back.evidence, back.groups_after, back.estimates_before) == (
        result.evidence,
        result.groups_after,
        result.estimates_before,
    )
    assert {"retrain", "consistent", "blind+retrain"} <= set(result.names)
    assert result["blind+retrain"].held_out.k_max == 1
    assert [path.name for path in result.files] == ["repaired.npz", "repaired.onnx"]
    subject = load_subject(run.manifest["source"])
    for path in result.files:
        network = load_model(path)
        assert Evaluator(network, SCHEMA, threads=1).evaluate(subject.table.codes).k.max() == 1
    # The folder is still a run, and --force may still replace it.
    assert Run.open(run.folder).status == "finished"
    RunWriter.create(run.folder, MANIFEST, SCHEMA, force=True).finish("finished", {})


def test_the_same_seed_gives_the_same_repair(tmp_path: Path) -> None:
    subject = load_subject(write_subject(tmp_path / "subject"))
    results = []
    for threads in (1, 2):
        run = searched(subject, tmp_path / f"run{threads}")
        results.append(repair_run(run, seed=3, threads=threads))
    one, two = results
    assert one.names == two.names
    assert one.chosen.name == two.chosen.name
    for a, b in zip(one.repairs, two.repairs, strict=True):
        assert (a.neurons, a.plan, a.held_out) == (b.neurons, b.plan, b.held_out)
        if isinstance(a.network, Network):
            assert all(np.array_equal(v, w) for v, w in zip(a.network.weights, b.network.weights, strict=True))


def test_the_suspect_layer_of_debugging(run: Run) -> None:
    # As `fairbits debug` counts: 0 is the protected input, 1 the first layer, and the last decides.
    rows = [{"layer": layer, "rho": 1.0, "votes": votes} for layer, votes in ((0, 0), (1, 3), (2, 9))]
    pq.write_table(pa.Table.from_pylist(rows), run.folder / "layers.parquet")
    result = repair_run(run, retrain=False, threads=1)
    assert [(do.layer, do.neuron) for do in result["deactivate-suspect"].neurons] == [CARRIER]


def test_from_python(tmp_path: Path) -> None:
    audit = Audit(wired(), people(), SCHEMA)
    run = searched(audit.subject, tmp_path / "run")
    result = audit.repair(run, attack_budget=Budget(evaluations=200), quick=True, threads=1)
    assert result.chosen.held_out.k_max == 1
    assert result.attack_after is not None


def test_onnx_comes_back_as_onnx(tmp_path: Path) -> None:
    run = searched(load_subject(write_subject(tmp_path / "subject", ending=".onnx")), tmp_path / "run")
    result = repair_run(run, choose="blind", quick=True, threads=1)
    assert result.chosen.name == "blind"
    assert [path.name for path in result.files] == ["repaired.onnx"]
    assert any("proxies" in warning for warning in result.warnings)


def test_without_onnx_it_says_how(
    subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    def missing() -> None:
        raise MissingDependencyError.of("onnx", "onnx", "reading and writing ONNX files")

    monkeypatch.setattr(onnx_writing, "import_onnx", missing)
    network = random_network(rng, [3, 4, 2])
    (tmp_path / "repaired.onnx").write_bytes(b"of an earlier repair")
    written = export(network, subject, tmp_path, people().codes)
    assert [path.name for path in written.files] == ["repaired.npz"]
    assert "pip install 'onnx>=" in written.warnings[0]
    assert not (tmp_path / "repaired.onnx").exists()


def test_a_file_that_comes_back_different_is_removed(
    subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Whatever goes wrong on the way into a file, the file's own answers in a fresh process bring it out."""
    network, other = random_network(rng, [3, 4, 2]), random_network(rng, [3, 4, 2])
    monkeypatch.setattr(writing, "save_as_original", lambda *_, **__: other.save(_[2]))
    written = export(network, subject, tmp_path, people().codes)
    assert "repaired.npz" not in [path.name for path in written.files]
    assert not (tmp_path / "repaired.npz").exists()
    check = next(one for one in written.checks if one.file == "repaired.npz")
    assert not check.kept
    assert check.fresh
    assert check.equal < check.rows == len(people())
    assert "its scores differ by" in check.why
    assert any("is not the model that was judged" in warning for warning in written.warnings)


def test_rows_that_the_model_never_saw(tmp_path: Path) -> None:
    table = people()
    held_out = np.arange(len(table)) % 4 == 0
    subject = make_subject("wired", wired(), SCHEMA, replace(table, held_out=held_out))
    result = repair_run(searched(subject, tmp_path / "run"), subject=subject, quick=True, threads=1)
    assert result.evidence.rows_unseen_by_model
    assert (result.evidence.held_out_rows, result.evidence.plan_rows, result.evidence.training_rows) == (50, 50, 300)


def test_a_regression(tmp_path: Path) -> None:
    schema = replace(SCHEMA, classes=(), favourable=None)
    first = wired()
    network = Network.build(
        (*first.weights[:1], first.weights[1][:, 1:]), (first.biases[0], first.biases[1][1:]), head="linear"
    )
    table = people()
    subject = make_subject("pay", network, schema, Table(table.codes, table.codes[:, 0] - 4.5))
    result = repair_run(searched(subject, tmp_path / "run"), subject=subject, threads=1)
    assert result.chosen.held_out.k_mean < result.before_held_out.k_mean
    assert result.chosen.held_out.id_rate is None
    assert result.before_held_out.accuracy > 0.9
    assert result.groups_before == ()


class _BlackBox:
    inputs = 3

    def scores(self, inputs: npt.ArrayLike) -> npt.NDArray[np.float32]:
        return wired().scores(inputs)


def test_refusals(run: Run, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"budget is -0\.1; give the loss"):
        repair_run(run, max_accuracy_loss=-0.1)
    with pytest.raises(OptionError, match="seed is -1"):
        repair_run(run, seed=-1)
    with pytest.raises(OptionError, match=r"no repair 'blin' here.*Did you mean 'blind'"):
        repair_run(run, choose="blin", retrain=False)
    box = make_subject("box", _BlackBox(), SCHEMA, people())
    guarded = repair_run(searched(box, tmp_path / "box", evaluations=50), subject=box, threads=1)
    assert guarded.chosen is not None
    assert guarded.chosen.k_max_proved == 1
    assert [path.name for path in guarded.files] == ["repaired.py"]
    with pytest.raises(OptionError, match="guarantee is 0; give the most classes"):
        repair_run(run, guarantee=0)
    with pytest.raises(OptionError, match="guarantee is 2 and the repair 'blind' is to be taken"):
        repair_run(run, guarantee=2, choose="blind")
    with pytest.raises(OptionError, match="started from Python; hand over its model and table"):
        repair_run(tmp_path / "box")
    nameless = make_subject("nameless", wired(), replace(SCHEMA, target=None), Table(people().codes))
    with pytest.raises(TableError, match="no labels, so nobody can say"):
        repair_run(searched(nameless, tmp_path / "nameless", evaluations=50), subject=nameless)
    empty = RunWriter.create(tmp_path / "empty", run.manifest, SCHEMA)
    empty.finish("finished", {})
    with pytest.raises(OptionError, match="has no cases, so there is nothing to repair by"):
        repair_run(tmp_path / "empty")
    blind = make_subject("blind", wired().with_interventions([_do()]), SCHEMA, people())
    with pytest.raises(OptionError, match="have k = 1, so there is nothing to lower"):
        repair_run(searched(blind, tmp_path / "blind", evaluations=50), subject=blind)
    random_network(np.random.default_rng(0), [3, 3, 2]).save(Path(run.manifest["source"]).parent / "model.npz")
    with pytest.raises(OptionError, match="was made with another model"):
        repair_run(run)


def test_a_folder_that_takes_no_files_is_refused_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("fairbits.store.folder.TemporaryFile", refuse)
    told: list[str] = []
    with pytest.raises(OptionError, match=r"cannot write to .*: Permission denied; make it writable"):
        repair_run(run, watch=told.append)
    assert told == []


def test_a_budget_that_nothing_meets(run: Run) -> None:
    result = repair_run(run, retrain=False, threads=1)

    def costly(repair: RepairCandidate, loss: float) -> RepairCandidate:
        plan = replace(repair.plan, accuracy=1 - loss, k_mean=1.1)
        ends = {"loss": loss, "loss_upper": loss + 0.01, "balanced_loss": loss, "balanced_loss_upper": loss}
        return replace(repair, within_budget=False, plan=plan, **ends)

    repairs = [costly(r, 0.05 if r.name == "shrink-90" else 0.25) for r in result.repairs]
    chosen, reason = pick(repairs, result.before_plan, 0.01, rows=300)
    assert chosen is None
    assert "within a loss of 0.01: shrink-90, the nearest, loses 5.00 points of accuracy on the 300 rows" in reason
    assert "may lose up to 6.00 where 1.00 are allowed" in reason
    better = [replace(r, loss=-0.02) for r in repairs]
    _, reason = pick(better, result.before_plan, 0.01, rows=37)
    assert "gains 2.00 points of accuracy on the 37 rows it was chosen on, and may lose up to 6.00" in reason
    named, _ = pick(repairs, result.before_plan, 0.01, choose="blind")
    assert named is not None
    assert named.name == "blind"
    chosen, reason = pick(repairs, result.before_plan, 0.01, guarantee=1, rows=300)
    assert chosen is None
    assert reason.startswith("no repair with a proof of k ≤ 1 is sure to keep accuracy")


def test_nothing_is_written_as_repaired_where_no_repair_keeps_the_budget(run: Run) -> None:
    (run.folder / "repaired.npz").write_bytes(b"of an earlier repair")
    result = repair_run(run, max_accuracy_loss=0.0001, quick=True, threads=1)
    assert result.chosen is None
    assert result.files == ()
    assert "100 rows" in result.reason
    assert not list(run.folder.glob("repaired.*"))
    assert json.loads((run.folder / "repair.json").read_text())["chosen"] is None
    assert not any(row["chosen"] for row in pq.read_table(run.folder / "repairs.parquet").to_pylist())
    repaired = read_repair(run.folder)
    assert repaired is not None
    assert repaired.chosen is None
    from click.testing import CliRunner

    from fairbits.cli.app import app

    asked = ["repair", str(run.folder), "--max-accuracy-loss", "0.0001", "--quick", "--attack-budget", "0"]
    ended = CliRunner().invoke(app, asked)
    assert ended.exit_code == 1
    assert "None recommended: no repair" in ended.stdout


def test_the_choice_as_a_table(run: Run) -> None:
    """Name: accuracy on the plan, mean k, proved k, within the budget."""
    start = repair_run(run, quick=True, threads=1)
    model = start.repairs[0]

    def made(name: str, accuracy: float, k: float, proved: int | None, within: bool) -> RepairCandidate:
        plan = replace(model.plan, accuracy=accuracy, balanced_accuracy=accuracy, k_mean=k, id_rate=0.0)
        proof = None if proved is None else Proof(proved, "flips" if name in ("average", "blind") else "k", "why")
        return replace(model, name=name, plan=plan, proof=proof, within_budget=within, loss_upper=1 - accuracy)

    cases = [
        # Proved beats found, even where what was found is lower.
        ([("found", 1.0, 1.0, None, True), ("guard-8", 0.99, 2.0, 8, True)], "guard-8"),
        # The lowest proved k.
        ([("guard-8", 1.0, 2.0, 8, True), ("guard-2", 0.99, 1.5, 2, True)], "guard-2"),
        # Not if it breaks the budget.
        ([("guard-8", 1.0, 1.2, 8, True), ("average", 0.9, 1.0, 1, False)], "guard-8"),
        # Of equal ones the cheaper, and the dominated one never.
        ([("blind", 0.98, 1.0, 1, True), ("average", 0.99, 1.0, 1, True)], "average"),
        # Nothing proved keeps the budget: the lowest mean k.
        ([("a", 1.0, 1.2, None, True), ("b", 0.99, 1.1, None, True), ("average", 0.5, 1.0, 1, False)], "b"),
        ([("average", 0.5, 1.0, 1, False)], None),
        # One class each, but decisions still flip under the guard.
        ([("guard-1", 1.0, 1.0, 1, True), ("average", 0.99, 1.0, 1, True)], "average"),
    ]
    for rows, wanted in cases:
        repairs = [made(*row) for row in rows]
        repairs = [replace(r, dominated=not u) for r, u in zip(repairs, undominated(repairs), strict=True)]
        chosen, _ = pick(repairs, start.before_plan, 0.02)
        assert (chosen.name if chosen else None) == wanted
        if chosen is not None:
            assert not chosen.dominated


class _Steep:
    """Few classes, many flips: the decision hangs on sex for skills of 3 to 6, where it was 4 and 5."""

    name = "steep"

    def propose(self, _: Planner) -> Iterator[Proposal]:
        first = [[90.0, -90.0], [360.0, -360.0], [0.0, 0.0]]
        network = Network.build([first, [[1.0], [-1.0]]], [[-585.0, 585.0], [0.0]], head="sigmoid")
        yield Proposal("steep", "steeper in skill and in sex", network)


def test_nobody_signs_a_repair_that_makes_more_people_flip(tmp_path: Path) -> None:
    table = planted.table()
    labels = (table.codes[:, 0] - 4.5 + 4 * (table.codes[:, 1] - 0.5) > 0).astype(np.float64)
    subject = make_subject("steep", planted.network(), planted.SCHEMA, replace(table, labels=labels))
    run = planted.searched(subject, tmp_path / "run")
    result = repair_run(run, subject=subject, proposals=[_Steep()], quick=True, threads=1)
    steep = result["steep"]
    assert steep.within_budget
    assert not steep.dominated
    assert steep.plan.accuracy == 1 > result.before_plan.accuracy
    assert steep.plan.k_mean < 0.8 * result.before_plan.k_mean
    assert steep.plan.id_rate_rows > 1.5 * result.before_plan.id_rate_rows
    assert "flips" in steep.raises
    assert result.chosen is not steep
    assert not any(r.raises for r in result.repairs if r.k_max_proved == 1)
    rows = {row["repair"]: row for row in pq.read_table(run.folder / "repairs.parquet").to_pylist()}
    assert rows["steep"]["raises"] == steep.raises
    assert rows["average"]["raises"] == ""
    assert rows["average"]["held_out_loss_low"] == result["average"].held_out_loss_low
    chosen, reason = pick([steep], result.before_plan, 0.02, rows=600)
    assert chosen is None
    assert reason.startswith("the only repairs that keep accuracy make more people flip: steep, ")
    costly = replace(result["average"], within_budget=False, loss_upper=0.05, balanced_loss_upper=0.12)
    _, reason = pick([steep, costly], result.before_plan, 0.02, rows=600)
    assert "; of the others, average, the nearest, loses " in reason
    assert "may lose up to 12.00 where 4.00 are allowed; give more rows that the model has not seen" in reason
    assert pick([steep], result.before_plan, 0.02, choose="steep")[0] is steep


@pytest.mark.parametrize("guarantee", [1, 2])
def test_a_guarantee(run: Run, guarantee: int) -> None:
    result = repair(run, guarantee=guarantee, attack_budget=Budget(evaluations=500), retrain=False, threads=1)
    assert result.chosen is not None
    assert result.chosen.k_max_proved is not None
    assert result.chosen.k_max_proved <= guarantee
    assert result.attack_after is not None
    assert result.attack_after.k_max <= guarantee
    rows = pq.read_table(run.folder / "repairs.parquet").to_pylist()
    assert {row["k_max_proved"] for row in rows if row["repair"] == "guard-2"} == {2}
    assert "guard-4" not in {row["repair"] for row in rows}  # three twins have no more than three classes anyway
    assert {row["k_max_proved"] for row in rows if row["repair"] == "shrink-50"} == {None}
    assert {"average", "guard-1", "guard-2", "distilled", "blind"} <= set(result.names)
    distilled = result["distilled"]
    assert distilled.k_max_proved == 1
    assert 0.9 < distilled.fidelity <= 1  # type: ignore[operator]
    assert 0 < distilled.fidelity_apart < 0.05  # type: ignore[operator]
    told = next(line for line in result.warnings if line.startswith("distilled was taught the average"))
    alike, right = (f"{100 * share:.1f} %" for share in (distilled.fidelity, distilled.held_out.accuracy))
    assert f"{alike} are decided alike, and its accuracy is {right}" in told
    assert {row["fidelity"] for row in rows if row["repair"] == "distilled"} == {distilled.fidelity}
    assert {row["fidelity"] for row in rows if row["repair"] == "blind"} == {None}
    result = repair_run(run, choose="average" if guarantee == 1 else "guard-2", quick=True, threads=1)
    assert [path.name for path in result.files] == ["repaired.onnx", "repaired.py"]
    assert result.subject_file is not None
    again = load_subject(result.subject_file)
    assert Evaluator(again.model, again.schema, again.encoding, threads=1).evaluate(people().codes).k.max() <= guarantee
    repaired = read_repair(run.folder)
    assert repaired is not None
    assert repaired.chosen is not None
    assert repaired.chosen.proof == result.chosen.proof
    assert repaired.chosen.proof is not None
    assert repaired.chosen.proof.text.startswith("Proved for everybody")


def test_deciding_for_the_majority_is_no_repair() -> None:
    """Hardly any accuracy, and most of the balanced accuracy: one rule has a limit for both."""
    fine = Estimate(0.005, 0.0, 0.01)
    assert keeps_budget(fine, Estimate(0.02, 0.0, 0.04), 0.02)
    assert not keeps_budget(fine, Estimate(0.02, 0.0, 0.041), 0.02)
    assert not keeps_budget(Estimate(0.0, -0.01, 0.021), None, 0.02)


def _do():  # type: ignore[no-untyped-def]
    from fairbits.models import Do

    return Do(*CARRIER, 0.0)


def test_a_run_of_shannon_bits_is_judged_and_worded_by_them(run: Run) -> None:
    result = repair_run(run, choose="blind", retrain=False, quick=True, threads=1)
    before, blind = (result.before_plan, result.before_held_out), result["blind"]
    worse = replace(blind, plan=replace(blind.plan, q_1_mean=9.0), held_out=replace(blind.held_out, q_1_mean=9.0))
    assert pick([worse], before[0], 0.02, measure="q_inf")[0] is worse
    nothing, reason = pick([worse], before[0], 0.02, measure="q_1")
    assert nothing is None
    assert reason.startswith("no candidate lowers mean Q1 of the cases that they are chosen on; search longer")
    told = " ".join(cautions(worse, before, 0.02, "q_1"))
    assert "does not lower mean Q1" in told
    assert "mean k" not in told
    assert "does not lower" not in " ".join(cautions(worse, before, 0.02, "q_inf"))
