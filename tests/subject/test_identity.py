"""A figure is about one model, one table, one schema: whatever can change a score or a verdict tells two apart."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairbits import Attribute, Audit, Budget, Encoding, Network, Schema, Subject, Table, load_subject
from fairbits.audit import audit_subject
from fairbits.domain import Numeric
from fairbits.errors import OptionError
from fairbits.explore import Explorer
from fairbits.models import ModelOptions
from fairbits.options import AuditOptions
from fairbits.report import compute_report
from fairbits.report.compute import MEASURED, kept_measurement, measure_rows
from fairbits.search import Settings, search_subject
from fairbits.store import Run, subject_of, write_json
from fairbits.subject import Identity, Probe, check_identity, differences, identity_of, make_subject
from fairbits.subject.identity import INGREDIENTS, NEUTRAL_OPTIONS, origin_of
from tests.repair.conftest import SCHEMA, people, wired, write_subject

THREE = replace(SCHEMA, classes=("no", "maybe", "yes"))


def network(**changes: Any) -> Network:
    """One output, so that the head can be changed alone."""
    weights = [np.array([[1.0, 0.0], [0.2, 1.0], [0.0, 0.1]]), np.array([[1.0], [0.5]])]
    made = Network.build(weights, [np.zeros(2), np.array([-4.5])], activation="relu", head="sigmoid")
    return replace(made, **changes)


def subject(**changes: Any) -> Subject:
    return replace(make_subject("wired", network(), SCHEMA, people()), **changes)


def other_weights() -> Network:
    weights = [np.array(w) for w in network().weights]
    weights[0][2, 1] = 0.2
    return network(weights=tuple(weights))


def other_attribute(name: str, **changes: Any) -> Schema:
    return replace(SCHEMA, attributes=tuple(replace(a, **changes) if a.name == name else a for a in SCHEMA.attributes))


def scaled(shift: float = 0.0) -> Encoding:
    return Encoding([Numeric(0, shift=shift), Numeric(1), Numeric(2)])


TEST = Table(people(20).codes, people(20).labels)
PLAIN: Callable[[], Subject] = subject
#: Every option of a model that can change a score, with a value for it.
OPTIONS: dict[str, Any] = {
    "favourable": 1,
    "columns": ["sex", "shoe"],
    "output": "logit",
    "score_of": "yes",
    "input_format": "codes",
    "factory": "nets:build",
    "layers": ["first"],
    "headers": {"X-Version": "2"},
    "inputs": {"first": ["sex"], "second": ["skill", "shoe"]},
}
#: What differs, and which ingredient says so.
PARTS = {
    **dict.fromkeys(("weights", "biases", "activations", "head", "scored_class"), "model"),
    **{"encoding": "encoding", "scaling": "encoding", "protected_values": "protected"},
    **dict.fromkeys(("classes", "favourable", "target"), "target"),
    **dict.fromkeys(("compared", "rules", "attributes"), "attributes"),
    **dict.fromkeys(("rows", "labels", "held_out", "test_rows", "test_labels"), "table"),
    **dict.fromkeys((f"option {name}" for name in OPTIONS), "options"),
}
ALONE: dict[str, tuple[Callable[[], Subject], Callable[[], Subject]]] = {
    "weights": (PLAIN, lambda: subject(model=other_weights())),
    "biases": (PLAIN, lambda: subject(model=network(biases=(np.zeros(2), np.array([-4.4]))))),
    "activations": (
        PLAIN,
        lambda: subject(model=replace(network(), activations_after=wired("tanh").activations_after)),
    ),
    "head": (PLAIN, lambda: subject(model=network(head="linear"))),
    "scored_class": (PLAIN, lambda: subject(model=network(favourable=0))),
    "encoding": (PLAIN, lambda: subject(encoding=Encoding([Numeric(1), Numeric(0), Numeric(2)]))),
    "scaling": (lambda: subject(encoding=scaled()), lambda: subject(encoding=scaled(1.0))),
    "classes": (PLAIN, lambda: subject(schema=replace(SCHEMA, classes=("nay", "yes")))),
    "favourable": (PLAIN, lambda: subject(schema=replace(SCHEMA, favourable="no"))),
    "target": (PLAIN, lambda: subject(schema=replace(SCHEMA, target="taken"))),
    "compared": (lambda: subject(schema=THREE), lambda: subject(schema=replace(THREE, scores="vector"))),
    "rules": (PLAIN, lambda: subject(schema=replace(SCHEMA, rules=("shoe < 40 or skill < 9",)))),  # type: ignore[arg-type]
    "attributes": (PLAIN, lambda: subject(schema=other_attribute("shoe", high=41))),
    "protected_values": (
        lambda: subject(schema=replace(SCHEMA, attributes=_ages((("young", 1.0), ("old", 8.0))))),
        lambda: subject(schema=replace(SCHEMA, attributes=_ages((("young", 1.0), ("old", 9.0))))),
    ),
    "rows": (PLAIN, lambda: subject(table=replace(people(), codes=people().codes[::-1].copy()))),
    "labels": (PLAIN, lambda: subject(table=replace(people(), labels=1 - np.asarray(people().labels)))),
    "held_out": (PLAIN, lambda: subject(table=replace(people(), held_out=np.arange(400) < 40))),
    "test_rows": (
        lambda: subject(test=TEST),
        lambda: subject(test=replace(TEST, codes=TEST.codes[::-1].copy())),
    ),
    "test_labels": (
        lambda: subject(test=TEST),
        lambda: subject(test=replace(TEST, labels=1 - np.asarray(TEST.labels))),
    ),
    **{
        f"option {name}": (PLAIN, lambda name=name, value=value: subject(options=ModelOptions(**{name: value})))  # type: ignore[misc]
        for name, value in OPTIONS.items()
    },
}


def test_options_are_named_with_both_values() -> None:
    """Also where a class is called like an option that was not given; and what headers hold is nobody else's."""
    found = [subject(options=ModelOptions(score_of=said)).identity for said in ("approved", "none")]
    words = differences(found[0].document(), found[1])
    assert words == ['other options of the model ({"score_of": "approved"} there, {"score_of": "none"} here)']
    unsaid = subject(options=ModelOptions()).identity
    assert differences(unsaid.document(), found[1]) == [
        'other options of the model (none there, {"score_of": "none"} here)'
    ]
    secret = subject(options=ModelOptions(headers={"X-Key": "secret"})).identity
    assert len(differences(unsaid.document(), secret)) == 1
    assert "secret" not in json.dumps(secret.document())


def test_every_option_can_change_a_score_or_only_says_how_to_ask() -> None:
    """And a run made with one grant goes on with another."""
    named = {entry.name for entry in fields(ModelOptions)}
    assert named == NEUTRAL_OPTIONS | set(OPTIONS)
    granted = subject(options=ModelOptions(trust=True, max_rows=10_000, cache=3)).identity
    assert differences(subject().identity.document(), granted) == []


def _ages(ranges: tuple[tuple[str, float], ...]) -> tuple[Attribute, ...]:
    first, *rest = SCHEMA.attributes
    return (replace(first, protected=True, ranges=ranges), *(replace(a, protected=False) for a in rest))


@pytest.mark.parametrize("name", ALONE)
def test_each_ingredient_alone(name: str) -> None:
    before, after = (make().identity for make in ALONE[name])
    changed = dict(set(before.ingredients.items()) ^ set(after.ingredients.items()))
    assert set(changed) == {PARTS[name]}
    assert before.id != after.id
    with pytest.raises(OptionError, match=rf"the run in 'x' was made with {INGREDIENTS[PARTS[name]]}") as refused:
        check_identity({"identity": before.document()}, after, what="the run in 'x'")
    assert "\n" not in str(refused.value)
    # And the same made twice is the same, also when it has been through JSON.
    again = ALONE[name][0]().identity
    check_identity(json.loads(json.dumps({"identity": before.document()})), again, what="the run in 'x'")


def test_the_protected_attributes_make_other_twins() -> None:
    other = subject().with_protected(["shoe"]).identity
    found = differences(subject().identity.document(), other)
    assert len(found) == 1
    assert re.fullmatch(r"other protected attributes \(sex \w+ there, shoe \w+ here\)", found[0])


def test_the_threshold_is_an_ingredient() -> None:
    parts = subject()
    found = [
        identity_of(parts.model, parts.encoding, parts.schema, parts.table, threshold=threshold).document()
        for threshold in (0.5, 0.4)
    ]
    here = Identity(found[1]["ingredients"], Probe.read(found[1]["probe"]))
    assert differences(found[0], here) == ["another threshold (0.5 there, 0.4 here)"]


def test_relu_and_tanh_are_told_apart(tmp_path: Path) -> None:
    run = searched(make_subject("wired", wired(), SCHEMA, people()), tmp_path / "run")
    other = make_subject("wired", wired("tanh"), SCHEMA, people())
    with pytest.raises(OptionError, match=r"the run in .*run' was made with another model; restore"):
        subject_of(run, other)


def searched(about: Subject, folder: Path) -> Run:
    return search_subject(about, Settings(budget=Budget(evaluations=200), strategy="random", threads=1), folder)


STAGES: dict[str, Callable[[Run, Subject], Any]] = {
    "resume": lambda run, about: search_subject(
        about, Settings(budget=Budget(evaluations=300), strategy="random", threads=1), run.folder, resume=True
    ),
    "audit": lambda run, about: audit_subject(about, AuditOptions(seconds=1.0, threads=1), run.folder, resume=True),
    "debug": lambda run, about: Audit.of(about).debug(run, inside=False),
    "repair": lambda run, about: Audit.of(about).repair(run, retrain=False, attack_budget=None),
    "report": lambda run, about: compute_report(run, subject=about),
    "explore": lambda run, about: Explorer(run, subject=about),
}


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_refuses_another_model(stage: str, tmp_path: Path) -> None:
    run = searched(subject(), tmp_path / "run")
    before = sorted((path.name, path.read_bytes()) for path in run.folder.rglob("*") if path.is_file())
    with pytest.raises(OptionError, match="made with another model; restore"):
        STAGES[stage](run, subject(model=other_weights()))
    assert sorted((path.name, path.read_bytes()) for path in run.folder.rglob("*") if path.is_file()) == before


def test_a_measurement_of_another_model_is_not_used_again(tmp_path: Path) -> None:
    from fairbits.measure import evaluator_of

    about = subject()
    evaluator = evaluator_of(about)
    write_json(tmp_path / MEASURED, measure_rows(evaluator, about, 0))
    assert kept_measurement(tmp_path, subject(), evaluator) is not None
    with pytest.raises(OptionError, match=r"measurement in .*measure.json' was made with another table; restore"):
        kept_measurement(tmp_path, ALONE["labels"][1](), evaluator)


def test_a_run_without_an_identity_is_refused(tmp_path: Path) -> None:
    run = searched(subject(), tmp_path / "run")
    del run.manifest["identity"]
    with pytest.raises(OptionError, match="does not say which model it is about"):
        subject_of(run, subject())


def scorer(steepness: float) -> Callable[[Any], Any]:
    return lambda rows: 1 / (1 + np.exp(-steepness * (rows["skill"] - 4.5)))


def boxed(function: Any, **rest: Any) -> Audit:
    return Audit(function, people(), SCHEMA, name="boxed", **rest)


def test_functions_of_one_source_are_told_apart_by_their_scores(tmp_path: Path) -> None:
    run = boxed(scorer(1.0)).search(budget=Budget(evaluations=50), strategy="random", out=tmp_path / "run", threads=1)
    assert boxed(scorer(1.0)).open(run.folder).subject.name == "boxed"
    ones, others = boxed(scorer(1.0)).subject.identity, boxed(scorer(1.2)).subject.identity
    assert ones.ingredients == others.ingredients
    assert ones.id != others.id
    with pytest.raises(OptionError, match=r"another model \(scores differ: \d+ of 255 probed, the furthest 0\.\d+"):
        _ = boxed(scorer(1.2)).open(run.folder).subject
    with pytest.raises(OptionError, match="another file or code of the model"):
        _ = boxed(lambda rows: np.full(len(rows), 0.5)).open(run.folder).subject


def test_an_estimator_that_was_trained_again_is_another_model(tmp_path: Path) -> None:
    from sklearn.naive_bayes import GaussianNB  # stays with its library, so that training it again is felt

    table = people()
    codes, labels = table.codes, np.where(table.labels == 1, "yes", "no")
    model = GaussianNB().fit(codes, labels)
    audit = Audit(model, table, SCHEMA, input_format="codes")
    run = audit.search(budget=Budget(evaluations=50), strategy="random", out=tmp_path / "run", threads=1)
    run.debug(inside=False, samples=20)
    model.fit(codes, labels[::-1])
    with pytest.raises(OptionError, match=r"another model \(scores differ"):
        audit.open(run.folder).debug(inside=False, samples=20)


def test_the_last_bit_of_a_score_is_no_other_model() -> None:
    def nearly(rows: Any) -> Any:
        return scorer(1.0)(rows) + 3e-7

    first, second = boxed(scorer(1.0)).subject.identity.probe, boxed(nearly).subject.identity.probe
    assert first.difference(second) is None
    assert first != second


def test_code_is_named_and_its_module_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "loan_rules.py"
    write_subject(tmp_path / "about")
    text = (tmp_path / "about" / "subject.toml").read_text().replace("model.npz", "loan_rules:score")
    (tmp_path / "about" / "subject.toml").write_text(text)
    code = "WEIGHT = {}\n\ndef score(rows):\n    return 1 / (1 + 2.718 ** (4.5 - WEIGHT * rows['skill']))\n"

    def loaded(weight: str) -> Identity:
        file.write_text(code.format(weight))
        sys.modules.pop("loan_rules", None)
        __import__("importlib").invalidate_caches()
        return load_subject(tmp_path / "about" / "subject.toml", trust_code=True).identity

    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        first, same, other = loaded("1.0"), loaded("1.0"), loaded("1.00")
    finally:
        sys.dont_write_bytecode = before
        sys.modules.pop("loan_rules", None)
    assert first == same
    (found,) = differences(first.document(), other)
    assert found.startswith("another file or code of the model (code loan_rules:score ")


def test_the_bytes_of_a_model_file(tmp_path: Path) -> None:
    path = write_subject(tmp_path / "about")
    first = load_subject(path).identity
    file = tmp_path / "about" / "model.npz"
    held = dict(np.load(file))
    np.savez(file, **held)  # the same weights, other bytes
    found = differences(first.document(), load_subject(path).identity)
    assert len(found) == 1
    assert found[0].startswith("another file or code of the model (file ")
    assert origin_of(file, ModelOptions()) == origin_of(str(file), ModelOptions())


def test_a_torch_module_has_weights_that_no_probe_needs_to_find() -> None:
    torch = pytest.importorskip("torch", reason="the torch extra is not installed")

    class Branching(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, unused: float) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)
            with torch.no_grad():
                self.layer.weight.copy_(torch.tensor([[1.0, 0.2, 0.0]]))
                self.layer.bias.fill_(-4.5)
            self.unused = torch.nn.Parameter(torch.tensor(unused))

        def forward(self, rows: Any) -> Any:
            return torch.sigmoid(self.layer(rows) + 0 * self.layer(rows))

    first, second = (Audit(Branching(unused), people(), SCHEMA).subject.identity for unused in (1.0, 2.0))
    assert first.probe.scores == second.probe.scores
    assert differences(first.document(), second) == ["another model"]


def test_answers_that_vary_are_the_same_model_and_a_constant_is_not() -> None:
    rng = np.random.default_rng(0)
    noisy = boxed(lambda rows: rng.random(len(rows)))
    first, again = noisy.subject.identity, replace(noisy.subject).identity
    assert first.probe.varies
    assert first.probe.scores != again.probe.scores
    assert differences(first.document(), again) == []
    assert first.id == again.id
    for other, words in (
        (lambda rows: np.full(len(rows), 0.5), "answers vary otherwise (100 % of those probed there, 0 % here)"),
        (lambda rows: rng.random(len(rows)) / 2, "mean score differs by -0.2"),
        (lambda rows: (rng.random(len(rows)) > 0.5) * 1.0, "answers vary otherwise (100 % of those probed there"),
    ):
        found = first.probe.difference(boxed(other).subject.identity.probe)
        assert str(found).startswith(words)


@pytest.mark.parametrize("level", [0.001, 0.05, 0.3])
def test_one_varying_model_is_never_refused(level: float) -> None:
    """Forty pairs of askings: with five standard errors not one in thousands of pairs may be refused."""
    rng = np.random.default_rng(5)
    centres = rng.random(256)
    probes = [Probe.of(*(np.clip(centres + rng.normal(0, level, 256), 0, 1) for _ in range(2))) for _ in range(80)]
    assert all(a.difference(b) is None for a, b in zip(probes[::2], probes[1::2], strict=True))


def test_the_identity_is_the_same_in_every_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import fairbits; print(fairbits.load_subject('heart').identity.id)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == load_subject("heart").identity.id


def test_a_probe_on_record_may_hold_any_number_of_json() -> None:
    """10³⁰ is a number to JSON and more than a machine's integers hold."""
    stored = Probe((10**30, 0.5))
    assert "scores differ" in str(stored.difference(Probe((0.5, 0.5))))
