"""A report as forms that others file: CycloneDX, in-toto, a model card, a bias profile, a Word document."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest

import fairbits
from fairbits.report.forms import FORMS
from tests.browsing import launched
from tests.cli.calling import fairbits as shell


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms") / "run"
    audit = fairbits.Audit.of("german")
    audit.search(budget="1s", evaluations=2_000, out=folder, threads=1)
    audit.proxies(out=folder)
    return fairbits.open_run(folder)


@pytest.fixture(scope="module")
def written(run, tmp_path_factory):
    out = tmp_path_factory.mktemp("written")
    run.report(out=out, forms=["bom", "card", "profile", "word"])
    return out


def test_the_bill_of_materials_is_valid(written):
    validation = pytest.importorskip("cyclonedx.validation.json")
    from cyclonedx.schema import SchemaVersion

    text = (written / "bom.cdx.json").read_text()
    assert validation.JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    summary = json.loads((written / "summary.json").read_text())
    card = json.loads(text)["components"][0]["modelCard"]
    flips = card["quantitativeAnalysis"]["performanceMetrics"][0]
    assert float(flips["value"]) == summary["measure"]["flip_rate"]
    ends = flips["confidenceInterval"]
    assert float(ends["lowerBound"]) < float(flips["value"]) < float(ends["upperBound"])
    assert [one["groupAtRisk"] for one in card["considerations"]["fairnessAssessments"]] == [
        "people by sex",
        "people by age",
    ]


def test_the_bill_of_materials_has_every_group(written, run):
    card = json.loads((written / "bom.cdx.json").read_text())["components"][0]["modelCard"]
    told = {
        (one["type"], one["slice"]): (float(one["value"]), *(float(end) for end in one["confidenceInterval"].values()))
        for one in card["quantitativeAnalysis"]["performanceMetrics"]
        if "slice" in one and "confidenceInterval" in one
    }
    tables = json.loads((run.folder / "proxies.json").read_text())["groups"]
    for table in tables:
        for group in table["groups"]:
            found = told["favourable rate (impact)", f"{table['attribute']}: {group['group']}"]
            wanted = [group[f"selection_rate{end}"] for end in ("", "_low", "_high")]
            assert found == pytest.approx(wanted, rel=1e-5)
    assert len(told) >= sum(len(table["groups"]) for table in tables) > 4


def test_the_model_card_is_one_of_the_hub(written, run, monkeypatch):
    """The Hub's own library reads it; nothing is sent anywhere."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    card = hub.ModelCard.load(written / "model-card.md")
    measured = json.loads((written / "summary.json").read_text())["measure"]
    assert card.data.model_name == "german"
    results = {(one.metric_type, one.metric_name): one for one in card.data.eval_results}
    assert {one.task_type for one in results.values()} == {"tabular-classification"}
    values = {kind: one.metric_value for (kind, _), one in results.items()}
    for name in ("flip_rate", "flip_rate_low", "flip_rate_high", "q_inf_mean"):
        assert values[name] == measured[name]
    quality = fairbits.Audit.of("german").subject.quality
    assert (values["accuracy"], values["roc_auc"]) == (quality.accuracy, quality.auc)
    table = json.loads((run.folder / "proxies.json").read_text())["groups"][0]
    for group in table["groups"]:
        said = f"favourable rate (impact), {table['attribute']}: {group['group']}"
        assert results["selection_rate", said].metric_value == group["selection_rate"]
    # Written again by that library, it says the same.
    assert hub.ModelCard(str(card)).data.eval_results == card.data.eval_results
    assert "## Evaluation: impact" in card.text
    assert "No limits set" in card.text


def test_the_profile_takes_three_pages_of_paper(written):
    text = (written / "profile.html").read_text(encoding="utf-8")
    assert "impact ratio" in text
    assert "By sex × age" not in text
    with launched() as browser:
        page = browser.new_page()
        page.goto((written / "profile.html").as_uri())
        for paper in ("A4", "Letter"):
            assert int(re.findall(rb"/Count (\d+)", page.pdf(format=paper))[0]) <= 3, paper


def test_the_manifest_has_the_forms(written):
    listed = {one["path"] for one in json.loads((written / "manifest.json").read_text())["files"]}
    assert {"bom.cdx.json", "model-card.md", "profile.html", "report.docx"} <= listed


def test_a_statement_needs_a_gate_and_never_passes_where_nothing_was_judged(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(fairbits.FairbitsError, match="no gate has judged"):
        run.report(out=tmp_path / "out", forms=["statement"])
    assert not (tmp_path / "out").exists()
    from click.testing import CliRunner

    from fairbits.cli.app import app

    for limit, result in ((None, "WARNED"), ("flip_rate=0.9", "PASSED"), ("flip_rate=0.1", "FAILED")):
        policy = tmp_path / "policy.toml"
        policy.write_text("" if limit is None else f"[checks]\n{limit}\n")
        command = ["gate", str(run.folder), *([] if limit is None else ["--policy", str(policy)])]
        CliRunner().invoke(app, command)
        fairbits.open_run(run.folder).report(out=tmp_path / "out", forms=["statement"])
        statement = json.loads((tmp_path / "out" / "statement.intoto.json").read_text())
        assert statement["predicate"]["result"] == result
        assert statement["subject"][0]["digest"]


def test_the_word_document_says_what_the_page_says(written):
    docx = pytest.importorskip("docx")
    document = docx.Document(io.BytesIO((written / "report.docx").read_bytes()))
    summary = json.loads((written / "summary.json").read_text())
    said = [paragraph.text for paragraph in document.paragraphs]
    assert summary["report"]["people"] in said
    assert {"Summary", "Limitations", "Sign-off"} <= set(said)
    assert len(document.tables) > 3


def test_unknown_forms_are_refused(run):
    with pytest.raises(fairbits.FairbitsError, match="'pdf' is no form; choose from: bom, statement"):
        run.report(forms=["pdf"])
    assert list(FORMS) == ["bom", "statement", "card", "profile", "word"]


SCORED = """
name = "scored"
[table]
path = "people.csv"
target = "y"
classes = ["bad", "good"]
favourable = "good"
score = "score"
[attributes.sex]
kind = "category"
labels = ["f", "m"]
protected = "observed"
[attributes.region]
kind = "category"
labels = [REGIONS]
protected = "observed"
[attributes.race]
protected = "probabilities"
columns = ["p_w", "p_b", "p_o"]
labels = ["White", "Black", "Other"]
"""


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """The audit of a table of scores with many groups, some of them known as probabilities only."""
    folder, rng, n = tmp_path_factory.mktemp("scored"), np.random.default_rng(3), 1_200
    regions = [f"region {i}" for i in range(14)]
    sex, region, chances = rng.choice(["f", "m"], n), rng.choice(regions, n), rng.dirichlet([2, 1, 1], n)
    score = 1 / (1 + np.exp(-rng.normal(0, 1, n) - 0.8 * (sex == "m")))
    y = np.where(rng.random(n) < score, "good", "bad")
    people = pd.DataFrame({"sex": sex, "region": region, "score": score, "y": y})
    people[["p_w", "p_b", "p_o"]] = chances
    people.to_csv(folder / "people.csv", index=False)
    (folder / "subject.toml").write_text(SCORED.replace("REGIONS", ", ".join(f'"{one}"' for one in regions)))
    assert shell("audit", folder / "subject.toml", "--out", folder / "run").returncode == 0
    assert shell("report", folder / "run", "--form", "bom,card,profile,word").returncode == 0
    return folder / "run"


def test_forms_of_a_table_of_scores_have_its_groups(scored):
    card = json.loads((scored / "bom.cdx.json").read_text())["components"][0]["modelCard"]
    told = {
        (one["type"], one.get("slice")): (one["value"], one.get("confidenceInterval"))
        for one in card["quantitativeAnalysis"]["performanceMetrics"]
    }
    proxies = json.loads((scored / "proxies.json").read_text())
    for group in proxies["probable"][0]["groups"]:
        value, ends = told["favourable rate (impact)", f"race (by probability): {group['group']}"]
        assert float(value) == pytest.approx(group["selection_rate"]["value"], rel=1e-5)
        assert float(ends["upperBound"]) == pytest.approx(group["selection_rate"]["high"], rel=1e-5)
    harms = {one["groupAtRisk"]: one["harms"] for one in card["considerations"]["fairnessAssessments"]}
    women = proxies["groups"][0]["groups"][0]
    assert f"of f is {women['impact_ratio']:.2f}" in harms["people by sex"]
    assert "race (by probability): Black" in (scored / "model-card.md").read_text()


def test_a_profile_of_many_groups_takes_three_pages_too(scored):
    text = (scored / "profile.html").read_text(encoding="utf-8")
    assert "examined: sex, region and race (most likely)." in text
    assert "with the lowest ratios" in text
    with launched() as browser:
        page = browser.new_page()
        page.goto((scored / "profile.html").as_uri())
        for paper in ("A4", "Letter"):
            assert int(re.findall(rb"/Count (\d+)", page.pdf(format=paper))[0]) <= 3, paper


def test_forms_say_what_bits_must_exceed(tmp_path):
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(40), 8)
    sexes = np.tile(["f", "m"], 160)
    frame = pd.DataFrame({"id": people, "sex": sexes, "p": (0.5 + 0.1 * rng.normal(size=320)).clip(0, 1)})
    twins = fairbits.Audit.from_twins(frame, person="id", protected=["sex"], score="p")
    texts = fairbits.Audit.from_texts(
        lambda texts: [0.6 if "Bob" in one else 0.4 for one in texts],
        pd.DataFrame({"amount": [5, 9]}),
        template="{who} wants {amount}.",
        families={"names": {"who": {"sex": {"f": ["Ann", "Eve"], "m": ["Bob", "Leo"]}}}},
    )
    for audit, said in ((twins, "null bits, of one and the same twin"), (texts, "Names: 1.00 bits of sex on average")):
        run = audit.audit(out=tmp_path / audit.subject.name, budget=1.0, skip=["search", "repair"]).run
        run.report(forms=["bom", "profile"])
        bom = json.loads((run.folder / "bom.cdx.json").read_text())
        limits = bom["components"][0]["modelCard"]["considerations"]["technicalLimitations"]
        profile = (run.folder / "profile.html").read_text()
        assert any(said.lower() in one.lower() for one in limits)
        assert said.lower() in profile.lower()
        assert "Held in releases" not in profile  # no gate has judged it


def test_no_gate_judges_a_table_of_scores(scored):
    for command, said in (
        (["report", scored, "--form", "statement"], "no model that a gate could judge"),
        (["gate", scored], "is the audit of a table of scores"),
    ):
        refused = shell(*command)
        assert refused.returncode == 2
        assert said in refused.stderr
