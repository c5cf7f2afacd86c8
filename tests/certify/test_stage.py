"""certify as a command, as a method and as a stage of an audit: one file, one section, both models."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import fairbits
from fairbits.certify import CertifyOptions, Statement, certify_run, read_statements
from fairbits.certify.run import REPAIRED
from fairbits.certify.statement import FILE, write_statements
from fairbits.cli.app import app
from fairbits.domain import Attribute, Schema, Table
from fairbits.errors import OptionError

KEYS = {
    *("kind", "property", "population", "people", "certified", "falsified", "open", "bound", "confidence", "seconds"),
}


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(0)
    schema = Schema(
        (
            Attribute(name="income", kind="integer", low=0, high=9),
            Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
            Attribute(name="job", kind="integer", low=0, high=7),
        ),
        target="ok",
        classes=("no", "yes"),
    )
    codes = np.stack([rng.choice(a.values(), 80) for a in schema.attributes], axis=1)
    # Pays where income + 2 sex >= 5: incomes 3 and 4 flip.
    network = fairbits.Network.build(
        [np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 0.01]]), np.array([[1.0], [0.0]])], [np.zeros(2), np.array([-4.5])]
    )
    labels = (codes[:, 0] + 2 * codes[:, 1] > 4.5).astype(float)
    return fairbits.Audit(network, Table(codes, labels), schema, name="paid")


def test_the_door_in_python(audit):
    found = audit.certify(budget="5s", threads=1)
    assert repr(found).startswith(f"<Certificate: {len(found.statements)} statements (")
    flips = next(one for one in found.statements if one.property == "flips")
    assert (flips.kind, flips.people, flips.falsified, flips.open) == ("exact", 80, 16, 0)


def test_a_stage_of_the_audit_writes_and_shows_it(audit, tmp_path):
    done = audit.audit(budget="2s", out=tmp_path / "run", threads=1, skip=["debug", "repair"])
    assert len(repr(done)) < 120 + len(str(tmp_path))
    assert done.seconds["certify"] is not None
    document = json.loads((tmp_path / "run" / FILE).read_text())
    assert all(set(one) >= KEYS for one in document)
    assert all(one["certified"] + one["falsified"] + one["open"] == one["people"] for one in document)
    page = done.page.read_text(encoding="utf-8")
    assert "How certain" in page
    assert "Of 80 people, 20 % flip." in re.sub("<[^>]*>", "", page)
    assert "How certain" in (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    skipped = audit.audit(budget="1s", out=tmp_path / "other", threads=1, skip=["search", "debug", "repair", "certify"])
    assert skipped.seconds["certify"] is None
    assert not (tmp_path / "other" / FILE).exists()


def test_the_repaired_model_is_certified_too(audit, tmp_path):
    run = audit.audit(budget="1s", out=tmp_path / "run", threads=1, skip=["search", "debug", "repair", "certify"]).run
    network = audit.subject.model
    weights = [w.copy() for w in network.weights]
    weights[0][1] = 0.0
    fairbits.Network.build(weights, network.biases).save(run.folder / REPAIRED)
    found = run.certify(budget="4s", threads=1)
    after = [one for one in read_statements(run.folder) if one.model == "repaired"]
    assert after
    assert {one.kind for one in after} == {"proved"}
    assert all(one.falsified == one.open == 0 for one in after)
    assert len(found.statements) == len(read_statements(run.folder))


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / FILE).write_text("[{}]")
    with pytest.raises(OptionError, match="damaged"):
        read_statements(tmp_path)
    one = Statement("exact", "flips", "all", 10**30, 10**30, 0, 0, 0.0, 1.0, 0.0)
    write_statements(tmp_path, [one])
    assert read_statements(tmp_path) == (one,)


def test_the_command(audit, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run = audit.audit(budget="1s", out=tmp_path / "run", threads=1, skip=["search", "debug", "repair", "certify"]).run
    monkeypatch.setattr("fairbits.audit.run.subject_of", lambda *_, **__: audit.subject)
    shown = CliRunner().invoke(app, ["certify", str(run.folder), "--budget", "3s", "--threads", "1"])
    assert shown.exit_code == 0, shown.output
    assert "(exact) Of 80 people, 20 % flip." in shown.output
    assert shown.output.splitlines()[-1].startswith("next  fairbits report ")
    assert max(map(len, shown.output.splitlines()[:-1])) <= 80  # the last holds the folder of the tests
    raw = CliRunner().invoke(app, ["certify", str(run.folder), "--budget", "3s", "--threads", "1", "--json"])
    assert {one["property"] for one in json.loads(raw.stdout)["statements"]} == {"flips", "k"}
    for wrong in (["--budget", "soon"], ["--k", "0"], ["--changes", "-1"]):
        assert CliRunner().invoke(app, ["certify", str(run.folder), *wrong]).exit_code != 0


def test_what_is_proved_by_construction_stands_beside_the_model(audit, tmp_path):
    subject = audit.subject
    for name, bound, kinds in (("average", 1, ["flips", "k"]), ("guard-2", 2, ["k"])):
        proof = "all twins get one score, says a text that decides nothing"
        chosen = {"name": name, "proof": {"bound": bound, "property": kinds[0], "text": proof}}
        (tmp_path / "repair.json").write_text(json.dumps({"chosen": name, "repairs": [chosen]}))
        found = certify_run(tmp_path, subject, CertifyOptions(seconds=5, threads=1))
        after = [one for one in found.statements if one.model == "repaired"]
        assert [one.property for one in after] == kinds
        assert all(one.reason == proof and one.open == 0 and one.falsified == 0 for one in after)
        assert after[-1].bound == bound
    words = '{"chosen": "x", "repairs": [{"name": "x", "proof": "all twins get one score", "k_max_proved": 1}]}'
    for text in ('{"chosen": null, "repairs": []}', "{", '{"chosen": "x", "repairs": 3}', words):
        (tmp_path / "repair.json").write_text(text)
        found = certify_run(tmp_path, subject, CertifyOptions(seconds=5, threads=1))
        assert all(one.model == "model" for one in found.statements)
