"""What a reviewer looks for: people first, files with hashes, who and when, kinds of figures, a block to sign."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from fairbits import Attribute, Audit, Budget, Network, Schema, Subject, Table, load_subject
from fairbits.blocks import Bullets, Fold, Page, PagePart, Paragraph, Strong, TableBlock, label, share
from fairbits.cli.app import app
from fairbits.cli.terminal import show
from fairbits.errors import OptionError
from fairbits.measure import evaluator_of, harms_of
from fairbits.report import (
    ReportData,
    audit_look,
    compute_report,
    summary_of,
    write_report,
)
from fairbits.report.compute import in_labels
from fairbits.report.markdown import render_markdown_page
from fairbits.report.sections.repairs import repair_blocks, shown_repairs
from fairbits.report.sections.summary import cards
from fairbits.store import Run, read_json
from fairbits.subject import make_subject
from fairbits.subject.export import export_subject
from tests.report.drawn import render_markdown, render_words

from ..browsing import launched
from .conftest import build_subject, ordinary_schema, unlinked
from .test_browser import opened

GATE = {
    "verdict": "fail",
    "checks": [
        {"name": "flip_rate", "value": 0.144, "low": 0.12, "high": 0.17, "threshold": 0.1, "verdict": "fail"},
        {"name": "<b>k</b>", "value": None, "low": None, "high": None, "threshold": 4, "verdict": "inconclusive"},
    ],
    "new_cases": [{"k": 3, "attributes": {"job": "clerk"}}] * 3,
    "waived": [],
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a subject in files, debugged and repaired with options that are not the usual ones."""
    folder = tmp_path_factory.mktemp("own")
    export_subject(build_subject(ordinary_schema(), "small", seed=5), folder / "subject")
    run = Audit.of(load_subject(folder / "subject" / "subject.toml")).search(
        budget=Budget(evaluations=1500), out=folder / "run", threads=1
    )
    run.debug(samples=50, all_layers=True, threads=1)
    run.repair(
        max_accuracy_loss=0.3, choose="average", retrain=False, attack_budget=Budget(evaluations=400), threads=1, seed=2
    )
    return run.folder


@pytest.fixture(scope="module")
def data(own: Path) -> ReportData:
    return compute_report(Run.open(own), threads=1)


@pytest.fixture(scope="module")
def page_file(data: ReportData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(data, tmp_path_factory.mktemp("page") / "out")


@pytest.fixture(scope="module")
def page(page_file: Path) -> str:
    return page_file.read_text(encoding="utf-8")


def test_the_page_opens_with_people(data: ReportData, page: str) -> None:
    document = render_markdown(data)
    rate = data.measured.flip_rate
    assert rate is not None
    who = "of these 400 people would get a different decision if only their age or sex differed."
    sentence = f"{100 * rate.value:.1f} % {who}"
    assert data.opening.people == sentence
    heading = re.sub("<[^>]+>", "", re.search("<h1>(.*?)</h1>", page, re.DOTALL)[1])  # type: ignore[index]
    assert heading == sentence
    assert document.splitlines()[2].startswith("**" + sentence.replace("%", "%"))
    assert summary_of(data)["report"]["people"] == sentence
    quality = data.about.quality
    for figure in (
        f"{100 * (quality.accuracy or 0):.1f} %",
        f"{quality.auc:.3f}",
        f"{100 * (quality.base_rate or 0):.1f} %",
    ):
        assert figure in page.partition('id="affected"')[0]


def test_files_are_named_with_the_hash_that_sha256sum_gives(data: ReportData, page: str, own: Path) -> None:
    found = {one.what: one for one in data.opening.sources}
    for what, name in (("model", "model.npz"), ("table", "table.csv"), ("audit file", "subject.toml")):
        digest = hashlib.sha256((own.parent / "subject" / name).read_bytes()).hexdigest()
        assert (found[what].name, found[what].sha256) == (name, digest)
        assert digest in page
    assert read_json(own / "run.json")["made_by"] == data.opening.made_by
    assert data.opening.made_by in page
    listed = {one.path: one.sha256 for one in data.files}
    assert listed["repair.json"] == hashlib.sha256((own / "repair.json").read_bytes()).hexdigest()
    assert not {"report.html", "manifest.json"} & set(listed)


def test_statements_carry_their_kind(data: ReportData, page: str) -> None:
    for kind in ("exact", "statistical", "lower bound"):
        assert f'">{kind}</span>' in page
    assert data.opening.kind == "exact"
    folded = ("drivers", "inside", "origin", "severity")
    for section in ("summary", "affected", "treatment", "people", "certainty", *folded):
        body = re.split(r'</section>|<details class="detail"', page.partition(f' id="{section}"')[2])[0]
        assert re.search(r'class="tag (exact|proved|statistical|lower-bound)"', body), section


def test_no_figure_stands_three_times_at_the_head(data: ReportData, page: str) -> None:
    head = re.sub("<[^>]+>", " ", page.partition('<section id="affected"')[0].partition("<body>")[2])
    rate = data.measured.flip_rate
    assert rate is not None
    assert head.count(f"{100 * rate.value:.1f} %") == 2  # in the first sentence, and in the table with its interval


def test_the_worst_people_say_who_they_are(data: ReportData, page: str, own: Path) -> None:
    person = next(one for one in data.people if one.real)
    row = int(re.search(r"row (\d+)", person.place)[1]) - 1  # type: ignore[index]
    subject = load_subject(own.parent / "subject" / "subject.toml")
    values = subject.schema.read(subject.table.codes[row])
    assert person.own == {name: values[name] for name in subject.schema.protected}
    summary = page.partition('id="row-1"')[2].partition("</summary>")[0]
    for words in (", ".join(person.own.values()), person.worst, person.best):
        assert words in re.sub("<[^>]+>", "", summary)
    assert all(one.own == {} for one in data.people if not one.real)


def test_harms_are_what_was_planted() -> None:
    """Men gain 0.2 in score and pass the threshold from a skill of 4 on, women from 6 on."""
    schema = Schema(
        (
            Attribute(name="sex", kind="category", labels=("F", "M"), protected=True),
            Attribute(name="skill", kind="integer", low=0, high=9),
        ),
        classes=("no", "yes"),
        target="hired",
    )
    network = Network.build([np.array([[0.2], [0.1]])], [np.array([-0.1])], head="linear")
    codes = np.column_stack([np.zeros(10), np.arange(10.0)])
    regression = replace(schema, classes=(), favourable=None)
    pay = make_subject("pay", network, regression, Table(codes, codes[:, 1]))
    women, men = harms_of(evaluator_of(pay, epsilon=0.01, threads=1), codes)
    assert (women.value, women.lost, men.lost) == ("F", None, None)
    assert (women.gap, men.gap) == (pytest.approx(-0.1, abs=1e-6), pytest.approx(0.1, abs=1e-6))
    decides = Network.build([np.array([[0.0, 2.0], [0.0, 1.0]])], [np.array([0.0, -5.5])])
    hired = make_subject("hired", decides, schema, Table(codes, (codes[:, 1] > 4).astype(float)))
    women, men = harms_of(evaluator_of(hired, threads=1), codes)
    assert (women.lost, men.lost) == (pytest.approx(0.2), 0.0)
    assert women.gap == pytest.approx(-men.gap)
    assert women.gap < 0


def test_harms_are_on_every_face(data: ReportData, page: str) -> None:
    harms = data.measured.harms
    assert [(harm.attribute, harm.value) for harm in harms] == [(s.attribute, s.value) for s in data.measured.stakes]
    assert data.measured.harmed_people == 400
    assert "decisions lost" in page
    assert "decisions lost" in render_markdown(data)
    assert summary_of(data)["measure"]["harms"][0]["gap"] == harms[0].gap


def test_the_verdict_of_the_gate(page: str, own: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(own, folder)
    identity = json.loads((folder / "run.json").read_text())["identity"]["id"]
    (folder / "gate.json").write_text(json.dumps({**GATE, "identity": identity}))
    shown = compute_report(Run.open(folder), threads=1)
    failed, document = render_words(shown), render_markdown(shown)
    assert '<p class="verdict fail">The gate failed.' in failed
    assert "&lt;b&gt;k&lt;/b&gt;" in failed
    assert "The gate failed." in document
    assert "against the policy and no baseline" in document  # what was judged, in the short form too
    assert summary_of(shown)["gate"]["verdict"] == "fail"
    assert "No limits set" in page
    assert "No limits set" not in failed
    # a first run has judged nothing, and a verdict about another model is not this run's
    (folder / "gate.json").write_text(
        json.dumps({**GATE, "verdict": "pass", "checks": [], "pending": ["flip_rate_rise"], "identity": identity})
    )
    first = compute_report(Run.open(folder), threads=1)
    assert "The gate has judged nothing yet" in render_words(first)
    assert "The gate passed" not in render_words(first)
    for other in ({**GATE, "identity": "0123456789abcdef"}, GATE):
        (folder / "gate.json").write_text(json.dumps(other))
        strange = compute_report(Run.open(folder), threads=1)
        for face in (render_words(strange), render_markdown(strange)):
            assert "about another model, schema or table" in face
            assert "The gate failed" not in face
        assert summary_of(strange)["gate"] is None
    (folder / "gate.json").write_text(json.dumps({"verdict": "perhaps", "checks": []}))
    with pytest.raises(OptionError, match="no verdict"):
        compute_report(Run.open(folder), threads=1)


@pytest.mark.parametrize("name", ["debug.json", "repair.json", "certify.json", "proxies.json"])
def test_a_stage_about_another_model_is_refused(own: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(own, folder)
    run = Audit.of(load_subject(own.parent / "subject" / "subject.toml")).open(folder)
    if name == "certify.json":
        run.certify(budget=0.2, threads=1)
    if name == "proxies.json":
        Audit.of(run.subject).proxies(out=folder)
    compute_report(Run.open(folder), threads=1)
    document = json.loads((folder / name).read_text())
    for entry in document if isinstance(document, list) else [document]:
        if "made_with" in entry:  # in a list the first entry has it for all
            entry["made_with"]["ingredients"]["model"] = "0123456789abcdef"
    (folder / name).write_text(json.dumps(document))
    with pytest.raises(OptionError, match=rf"{name}.*another model; restore"):
        compute_report(Run.open(folder), threads=1)
    for entry in document if isinstance(document, list) else [document]:  # as an earlier version wrote it
        entry.pop("made_with", None)
        entry["identity"] = "another"
    (folder / name).write_text(json.dumps(document))
    with pytest.raises(OptionError, match="identity another"):
        compute_report(Run.open(folder), threads=1)


def test_the_printed_commands_make_it_again(
    data: ReportData, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Search, debug and repair with their own options: the same cases, and the same figures of every repair."""
    for file in (own.parent / "subject").iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    commands = data.reproduction.commands
    assert [command.split()[1] for command in commands] == ["search", "debug", "repair", "report"]
    assert "--all-layers" in commands[1]
    for option in ("--no-retrain", "--choose average", "--max-accuracy-loss 0.3", "--attack-budget 400", "--seed 2"):
        assert option in commands[2]
    for command in commands:
        done = CliRunner().invoke(app, shlex.split(command)[1:], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    first, second = (read_json(folder / "repair.json") for folder in (own, tmp_path / "again"))
    attacks = ("attack_before", "attack_after")
    for name in ("chosen", "options", "before_plan", "before_held_out", "repairs", *attacks, "content"):
        assert first[name] == second[name], name
    assert first["max_accuracy_loss"] == second["max_accuracy_loss"]
    debugs = [read_json(folder / "debug.json") for folder in (own, tmp_path / "again")]
    for name in ("layers", "positive", "neurons_studied", "samples", "options"):
        assert debugs[0][name] == debugs[1][name], name


def test_an_attack_by_the_clock_is_made_again_by_people(own: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(own, folder)
    run = Audit.of(load_subject(own.parent / "subject" / "subject.toml")).open(folder)
    options: dict[str, Any] = {"choose": "average", "retrain": False, "threads": 1}
    timed = run.repair(attack_budget=Budget(seconds=0.3), **options)
    assert timed.attack_before is not None
    counted = run.repair(attack_budget=Budget(evaluations=timed.attack_before.evaluations), **options)
    assert counted.attack_before == timed.attack_before
    assert counted.attack_after == timed.attack_after


@pytest.mark.parametrize("kind", ["audited", "hostile", "searched"])
def test_the_audit_in_one_look(request: pytest.FixtureRequest, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = request.getfixturevalue(kind)
    subject: Subject = request.getfixturevalue("hostile_subject" if kind == "hostile" else "subject")
    data = compute_report(run, subject=subject, threads=1)
    faults = dict.fromkeys(("repair", "certify", "proxies", "debug"), "it did not fit into the budget " * 20)
    show(
        audit_look(data, asked=(), faults=faults, seconds={"search": 1.0}, waited="1.0 s in all"),
        "page  report.html",
        "next  x",
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 25
    assert max(map(cell_len, lines)) <= 80
    assert lines[-2:] == ["page  report.html", "next  x"]
    order = ["people", "accuracy", "bits", "cause", "repair", "certain"]
    placed = [order.index(line.split(" ")[0]) for line in lines if line.split(" ")[0] in order]
    assert placed == sorted(placed)
    if kind != "hostile":  # whose names are cleaned before a terminal sees them
        assert data.opening.people[:40] in " ".join(lines[:2])


def test_the_page_says_what_the_summary_says(data: ReportData, page: str) -> None:
    """Every figure of the first part is one of summary.json, and none stands there with two values."""
    summary = summary_of(data)
    measure, body = summary["measure"], unlinked(page).partition('<section id="summary"')[2].partition("</section>")[0]
    cell = r'<tr><th scope="row"><bdi>(.*?)</bdi></th><td class="n">(.*?)<span class="remark">(.*?)</span></td>'
    rows = {name: figures for name, *figures in re.findall(cell, body)}
    expected = {}
    for name in ("age", "sex", "age and sex"):
        ends = [measure[f"flip_rate{'' if ' ' in name else '_by'}{end}"] for end in ("", "_low", "_high")]
        value, low, high = (100 * (one if " " in name else one[name]) for one in ends)
        said = f"{name} together" if " " in name else f"only {name}"
        expected[said] = [f"{value:.1f} %", f"{low:.1f} to {high:.1f} %"]
    assert rows == expected
    cards = dict(re.findall(r'<p class="what">(.*?)</p><p class="big">(.*?)</p>', body))
    assert cards["Mean bits, real rows"] == f"{measure['q_inf_mean']:.2f}"
    assert cards["Accuracy"] == f"{100 * summary['accuracy']:.1f} %"
    assert cards["Decided favourably"] == f"{100 * summary['favourable_rate']:.1f} %"
    chosen = next(one for one in summary["repair"]["repairs"] if one["chosen"])
    repairs = page.partition('<section id="repairs"')[2].partition("</section>")[0]
    marked = re.sub("<[^>]+>", "|", repairs.partition('<tr class="chosen">')[2].partition("</tr>")[0])
    for value in (
        f"{100 * chosen['accuracy']:.1f} %",
        f"{100 * chosen['id_rate_rows']:.1f} %",
        f"{chosen['k_mean']:.2f}",
    ):
        assert f"|{value}|" in marked


def test_the_lowest_impact_ratio_of_every_attribute_is_at_the_head(data: ReportData) -> None:
    given = {"age": {"young": 0.1, "old": 1.0}, "sex": {"f": 0.35, "m": 1.0}}
    tables = [
        {"attribute": name, "attributes": [name], "groups": [{"group": g, "impact_ratio": r} for g, r in of.items()]}
        for name, of in given.items()
    ]
    card = next(one for one in cards(replace(data, proxies={"groups": tables})) if one.what == "Lowest impact ratio")
    assert (card.value, card.small) == ("0.10", "young (age); 0.35 for f (sex)")


def test_few_repairs_are_shown_first_and_none_twice(data: ReportData) -> None:
    found = data.repaired
    assert found is not None
    assert found.chosen is not None
    one = found.repairs[-1]
    assert len(shown_repairs(replace(found, repairs=(*found.repairs, replace(one, name="again"))))) == len(
        shown_repairs(found)
    )
    far = [replace(one, name=f"way {i}", held_out=replace(one.held_out, k_mean=50.0 + i)) for i in range(20)]
    blocks = list(repair_blocks(replace(found, repairs=(*found.repairs, *far))))
    first = next(block for block in blocks if isinstance(block, TableBlock))
    names = [row[0] for row in first.rows]
    assert names[0] == "as it is"
    assert found.chosen.name in names
    assert len(names) == 9
    assert any(isinstance(block, Fold) and "more repairs" in str(block.title) for block in blocks)


def test_the_document_is_short(data: ReportData) -> None:
    document = render_markdown(data)
    assert len(document.splitlines()) <= 200
    assert "**k ≤ 1** (proved) for everybody: " in document
    assert not re.search(r"\S  \(|– → –.*– → –.*– → –", document)  # doubled spaces, rows that say nothing


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


def test_the_page_prints(browser: Any, page_file: Path) -> None:
    """On paper the block to sign is there whole, nothing is cut at the side, and the ground is white."""
    page, complaints = opened(browser, page_file.as_uri(), color_scheme="dark", viewport={"width": 720, "height": 1000})
    page.emulate_media(media="print")
    assert page.locator("#sign-off .signing").is_visible()
    assert not page.locator("#look").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") in (
        "rgb(255, 255, 255)",
        "rgba(0, 0, 0, 0)",
    )
    for block in (".signing", ".person"):
        assert page.evaluate(f"getComputedStyle(document.querySelector('{block}')).breakInside") == "avoid"
    heights = page.evaluate("[...document.querySelectorAll('.person')].map(one => one.getBoundingClientRect().height)")
    assert max(heights) < 500  # two of them have room on a page
    # browsers leave backgrounds out on paper; bars and keys are made of them
    assert page.evaluate("getComputedStyle(document.querySelector('.zero')).printColorAdjust") == "exact"
    wide = "[...document.querySelectorAll('table')].map(one => one.getBoundingClientRect().right)"
    assert max(page.evaluate(wide)) <= 720
    content = page.pdf(format="A4")
    assert content.startswith(b"%PDF")
    assert complaints == []


def test_what_is_wider_than_a_phone_has_a_cue(browser: Any, page_file: Path) -> None:
    page, _ = opened(browser, page_file.as_uri(), viewport={"width": 390, "height": 800})
    script = """() => [...document.querySelectorAll('main *')].filter(one => {
        const style = getComputedStyle(one);
        return one.clientWidth && one.scrollWidth > one.clientWidth + 1 && style.overflowX !== 'visible';
    }).map(one => getComputedStyle(one).overflowX + ' ' + getComputedStyle(one).backgroundImage.slice(0, 15))"""
    found = [entry for entry in page.evaluate(script) if "hidden" not in entry]
    assert found
    assert all(entry == "auto linear-gradient" for entry in found), found


def test_a_phone_shows_who_flips_among_plausible_twins(browser: Any, page_file: Path) -> None:
    page, _ = opened(browser, page_file.as_uri(), viewport={"width": 390, "height": 800})
    table = page.locator("#summary .table").first
    assert "different decision" in table.inner_text()
    assert table.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_bold_words_stay_bold_beside_a_space() -> None:
    said = [Paragraph((Strong("Jennifer "), "asks for a loan."))]
    made = render_markdown_page(Page("loans", "audit", "loans", "A sentence.", (), [PagePart("part", "Part", said)]))
    assert "**Jennifer** asks for a loan." in made


def test_long_tables_leave_markdown_short() -> None:
    table = TableBlock([label("group"), share("rate")], [(f"group {i}", i / 40) for i in range(40)])
    parts = [PagePart(f"part-{i}", f"Part {i}", [table]) for i in range(14)]
    made = render_markdown_page(Page("loans", "audit", "loans", "A sentence.", (), parts))
    assert 100 < len(made.splitlines()) <= 200
    assert made.count("more rows are on the page") == 14


def test_a_shorter_markdown_loses_no_attribute_and_no_short_table() -> None:
    values = [(f"{name}: {i}", i / 9) for name, many in (("age", 9), ("race", 5), ("sex", 2)) for i in range(many)]
    columns = [label("value"), share("rate")]
    flips = TableBlock(columns, [*((f"only {name}", 0.1) for name in ("age", "race", "sex")), ("together", 0.4)])
    folds = [Fold(f"Fold {i}", [Paragraph("A finding.")]) for i in range(40)]
    notes = [Paragraph(f"Note: {i}.", tone="note") for i in range(3)]
    parts = [PagePart(f"part-{i}", f"Part {i}", [flips, TableBlock(columns, values)]) for i in range(6)]
    parts += [PagePart("rest", "Rest", [*notes, Paragraph("Said:"), Bullets(["one", "two"]), *folds])]
    made = render_markdown_page(Page("loans", "audit", "loans", "A sentence.", (), parts))
    assert len(made.splitlines()) <= 200
    assert made.count("| together | 40.0 % |") == 6
    for first in ("age: 0", "race: 0", "sex: 0"):
        assert made.count(f"| {first} |") == 6
    assert made.count("more rows are on the page") == 6
    assert "- Note: 0.\n- Note: 1.\n- Note: 2.\n\nSaid:\n- one\n- two\n\n**Fold 0**: A finding.\n" in made


def test_rules_of_plausible_twins_are_read_in_labels() -> None:
    schema = load_subject("census").schema
    shown = [in_labels(rule.text, schema) for rule in schema.plausible]
    assert shown[0] == "age >= own age - 1 group and age <= own age + 1 group"
    assert 'marital_status = "Widowed" -> age >= "30–39"' in shown
    assert not [rule for rule in shown if re.search(r"[<>]=? \d", rule)]
    plain = Schema((Attribute(name="age", kind="integer", low=18, high=74, protected=True),))
    assert in_labels("age >= 20 and age <= own age + 10", plain) == "age >= 20 and age <= own age + 10"
