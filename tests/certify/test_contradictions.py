"""One check over all statements of a run: what contradicts is said at the top, withdrawn, and a failure."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import fairbits
from fairbits.certify import Population, Sighting, Statement, contradictions, read_statements, withdrawn
from fairbits.certify.statement import FILE, write_statements
from fairbits.cli.app import app
from fairbits.domain import Attribute, Schema, Table
from fairbits.errors import ContradictionError
from fairbits.store.folder import prepare

DOMAIN = Population(kind="domain", count=1000)


def _statement(kind="proved", property_="flips", whom=DOMAIN, counts=(1000, 0, 0), bound=0.0, **more):
    people = sum(counts)
    return Statement(kind, property_, whom.words, people, *counts, bound, 1.0, 0.0, whom=whom, epsilon=0.025, **more)


NOBODY = _statement()
K_3 = _statement(property_="k", bound=3.0)
NEAR = _statement("exact", whom=Population(kind="near", changes=1, count=50), counts=(49, 1, 0))
FLIP, FOUND = Sighting(source="rows", flips=1), Sighting(source="search", flips=3)


@pytest.mark.parametrize(
    ("statements", "sightings", "found"),
    [
        # proofs against the rows, the search and the attack
        ([NOBODY], [Sighting(source="rows", flips=1)], [("flips", "rows", 1)]),
        ([NOBODY], [Sighting(source="search", flips=7)], [("flips", "search", 7)]),
        ([K_3], [Sighting(source="search", k=4, epsilon=0.025)], [("k", "search", 4)]),
        ([K_3], [Sighting(source="search", k=3, epsilon=0.025)], []),
        ([K_3], [Sighting(source="search", k=9, epsilon=0.1)], []),  # another tolerance, another question
        ([replace(K_3, model="repaired")], [Sighting(source="search", k=9, epsilon=0.025)], []),
        (
            [replace(K_3, model="repaired")],
            [Sighting(source="attack", model="repaired", k=9, epsilon=0.025)],
            [("k", "attack", 9)],
        ),
        # against people who were asked, and against drawn ones
        (
            [NOBODY, _statement("exact", whom=Population(kind="near", changes=1, count=50), counts=(49, 1, 0))],
            [],
            [("flips", "statement", 1)],
        ),
        (
            [NOBODY, _statement("statistical", whom=replace(DOMAIN, drawn=True), counts=(999_891, 109, 0))],
            [],
            [("flips", "sample", 109)],
        ),
        (
            [_statement("exact", counts=(900, 100, 0)), _statement("statistical", whom=replace(DOMAIN, drawn=True))],
            [],
            [("flips", "sample", 0)],
        ),
        (
            [
                _statement("exact", counts=(900, 100, 0)),
                _statement("statistical", whom=replace(DOMAIN, drawn=True), counts=(905, 95, 0)),
            ],
            [],
            [],
        ),
        # certified against falsified: more people around rows flip than in the whole domain
        (
            [
                _statement("exact", counts=(998, 2, 0)),
                _statement("exact", whom=Population(kind="rows", count=9), counts=(4, 5, 0)),
            ],
            [],
            [("flips", "statement", 5)],
        ),
        # bounds against the largest k that somebody has
        (
            [K_3, _statement("exact", "k", Population(kind="rows", count=9), (9, 0, 0), 5.0, largest=5)],
            [],
            [("k", "statement", 5)],
        ),
        # other populations
        ([replace(NOBODY, whom=replace(DOMAIN, without=("pay",)))], [FLIP], []),
        ([replace(NOBODY, whom=replace(DOMAIN, values=(("age", (20.0, 60.0)),)))], [FLIP], []),
        ([replace(NOBODY, whom=replace(DOMAIN, rules="kept"))], [FLIP], []),
        (
            [replace(NOBODY, whom=replace(DOMAIN, values=(("age", (20.0, 60.0)),))), NEAR],
            [],
            [],
        ),
        ([NOBODY, NEAR], [], [("flips", "statement", 1)]),
        ([_statement("exact", whom=Population(kind="rows"), counts=(9, 0, 0))], [FOUND], []),
        ([_statement("exact", whom=Population(kind="rows"), counts=(9, 0, 0))], [FLIP], [("flips", "rows", 1)]),
        # open people allow everything
        ([_statement(counts=(900, 0, 100))], [FLIP], []),
    ],
)  # fmt: skip
def test_what_cannot_both_be_true_is_found(statements, sightings, found):
    against = contradictions(statements, sightings)
    assert [(one.property, one.source, one.found) for one in against] == [(p, s, pytest.approx(f)) for p, s, f in found]
    after = withdrawn(statements, against)
    assert [bool(one.withdrawn) for one in after] == [any(c.claim == i for c in against) for i in range(len(after))]
    assert all(not one.is_certain() and "error of ours" in one.sentence() for one in after if one.withdrawn)
    assert contradictions(after, sightings) == ()


def test_claims_that_are_made_elsewhere_are_checked_too():
    seen = [Sighting(source="rows", flips=2, k=2, epsilon=0.025)]
    found = contradictions((), seen, bounds=[("model", 1, "flips")], epsilon=0.025)
    assert [(one.property, one.claim) for one in found] == [("k", None), ("flips", None)]
    others = [("model", 2, "k"), ("repaired", 1, "flips")]
    assert contradictions((), seen, bounds=others, epsilon=0.025) == ()  # type: ignore[arg-type]
    one_class = [Sighting(source="attack", model="repaired", flips=3, k=1, epsilon=0.025)]  # within ε of the cut-off
    assert contradictions((), one_class, bounds=[("repaired", 1, "k")], epsilon=0.025) == ()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    rng = np.random.default_rng(0)
    schema = Schema(
        (
            Attribute(name="income", kind="integer", low=0, high=9),
            Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
        ),
        target="ok",
        classes=("no", "yes"),
    )
    codes = np.stack([rng.choice(a.values(), 80) for a in schema.attributes], axis=1)
    network = fairbits.Network.build([np.array([[1.0], [2.0]]), np.array([[1.0]])], [np.zeros(1), np.array([-4.5])])
    table = Table(codes, (codes[:, 0] + 2 * codes[:, 1] > 4.5).astype(float))
    audit = fairbits.Audit(network, table, schema, name="paid")
    folder = tmp_path_factory.mktemp("run") / "run"
    return audit.audit(budget="2s", out=folder, threads=1, skip=["debug", "repair"]).run, audit.subject


def test_a_run_without_contradictions_says_so(run):
    record = json.loads((run[0].folder / "run.json").read_text())
    assert record["checks"]["contradictions"] == []
    assert "Error" not in (run[0].folder / "report.md").read_text()
    fairbits.open_run(run[0].folder, subject=run[1])  # run.json is one of ours still


def test_a_false_proof_is_withdrawn_everywhere_and_fails(run, tmp_path, monkeypatch):
    import shutil

    folder = tmp_path / "run"
    shutil.copytree(run[0].folder, folder)
    first = json.loads((folder / FILE).read_text())[0]
    false = replace(NOBODY, whom=Population(kind="domain", count=1000), reason="Wrong on purpose.")
    write_statements(folder, [false], made_with=first["made_with"], options=first["options"])
    monkeypatch.setattr("fairbits.audit.run.subject_of", lambda *_, **__: run[1])
    shown = CliRunner().invoke(app, ["report", str(folder)])
    assert isinstance(shown.exception, ContradictionError), shown.output
    assert shown.exception.exit_code == 4
    page, text = ((folder / name).read_text(encoding="utf-8") for name in ("report.html", "report.md"))
    for face in (page, text):
        assert "two statements of this run contradict each other" in face
        assert "Nobody flips" not in face
        assert "nobody flips" not in face
    assert text.index("Error") < text.index("##")
    checks = json.loads((folder / "run.json").read_text())["checks"]
    assert checks["contradictions"][0]["property"] == "flips"
    assert checks["contradictions"][0]["source"] in ("rows", "search")
    assert json.loads((folder / "summary.json").read_text())["certify"][0]["withdrawn"]
    assert read_statements(folder)[0].withdrawn
    assert json.loads((folder / FILE).read_text())[0]["made_with"] == first["made_with"]


def test_a_run_with_all_stages_can_be_replaced(run):
    assert (run[0].folder / FILE).is_file()
    prepare(run[0].folder, force=True)  # raises where a file is not ours


def test_the_identity_is_said_once(run):
    entries = json.loads((run[0].folder / FILE).read_text())
    assert ["made_with" in one for one in entries] == [True] + [False] * (len(entries) - 1)
    assert len(read_statements(run[0].folder)) == len(entries)
