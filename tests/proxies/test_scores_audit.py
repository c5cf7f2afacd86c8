"""The audit of a table of scores: a manifest, a signature, going on, fleets, and tables to file."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fairbits import Audit, load_subject
from fairbits.audit import report_scores
from fairbits.audit.fleet import audit_fleet
from fairbits.cli.app import app
from fairbits.errors import OptionError
from fairbits.options import AuditOptions
from fairbits.report import verify

from ..browsing import launched
from .test_subjects import ATTRIBUTES, TABLE, _people, _subject


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scores")
    _people(folder)
    _subject(folder, TABLE + 'score = "p"\n' + ATTRIBUTES)
    Audit.of(folder / "subject.toml").audit(out=folder / "run", distributed="2026-01-01", data_source="loans of 2025")
    return folder


def run(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_files_and_their_manifest(audited: Path) -> None:
    found = verify(audited / "run")
    assert found.good
    names = {"manifest.json", "proxies.json", "report.html", "report.md", "scores.json", "summary.json"}
    assert {path.name for path in (audited / "run").iterdir()} >= names
    record = json.loads((audited / "run" / "scores.json").read_text())
    assert record["status"] == "finished"
    assert record["identity"]["id"] == load_subject(audited / "subject.toml").identity.id
    manifest = json.loads((audited / "run" / "manifest.json").read_text())
    assert manifest["identity"] == record["identity"]["id"]


def test_the_page_says_what_a_reviewer_files(audited: Path) -> None:
    for name in ("report.html", "report.md"):
        text = (audited / "run" / name).read_text()
        for words in ("impact ratio", "not at hand", "Sign-off"):
            assert words in text, (name, words)
        assert "2026-01-01" not in text.partition("Details")[0]  # tables to file are a page of their own
    section = re.sub(r"</?bdi[^>]*>", "", (audited / "run" / "filing.html").read_text())
    for words in ("2026-01-01", "loans of 2025", "unknown", "impact ratio"):
        assert words in section
    assert "By sex: 1,200 people" in section
    assert "By sex × race: 1,200 people" in section
    assert '<td class="n">50</td>' in section  # of unknown sex


def test_forms_are_made_of_scores_and_a_statement_is_refused(audited: Path, tmp_path: Path) -> None:
    made = run("report", audited / "run", "--form", "bom,card,profile,word", "--out", tmp_path / "forms")
    assert made.exit_code == 0, made.output
    bill = json.loads((tmp_path / "forms" / "bom.cdx.json").read_text())
    metrics = bill["components"][0]["modelCard"]["quantitativeAnalysis"]["performanceMetrics"]
    assert {"sex: f", "sex: m"} <= {one.get("slice") for one in metrics}
    page = (tmp_path / "forms" / "report.md").read_text()
    sentence = page.split("**")[1]
    assert sentence in (tmp_path / "forms" / "model-card.md").read_text()
    assert "Evaluation: impact" in (tmp_path / "forms" / "profile.html").read_text()
    assert (tmp_path / "forms" / "report.docx").read_bytes().startswith(b"PK")
    assert verify(tmp_path / "forms").good
    with pytest.raises(OptionError, match="a table of scores has no model that a gate could judge"):
        report_scores(audited / "run", out=tmp_path / "none", forms=["statement"])
    assert not (tmp_path / "none").exists()


def test_what_to_do_next_can_be_done(audited: Path, tmp_path: Path) -> None:
    done = run("audit", audited / "subject.toml", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    *_, last = done.stdout.strip().splitlines()
    assert last.startswith("next  fairbits report ")
    assert run(*last.split()[2:]).exit_code == 0
    assert (tmp_path / "run" / "profile.html").is_file()


def test_signed_and_checked_again(audited: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    signed = run("report", audited / "run", "--sign", key, "--out", tmp_path / "signed")
    assert signed.exit_code == 0, signed.output
    assert run("report", tmp_path / "signed", "--verify").exit_code == 0
    page = tmp_path / "signed" / "report.html"
    page.write_text(page.read_text().replace("50", "51"))
    assert run("report", tmp_path / "signed", "--verify").exit_code == 1


def test_an_audit_of_scores_goes_on(audited: Path, tmp_path: Path) -> None:
    subject = load_subject(audited / "subject.toml").checked()
    first = Audit.of(subject).audit(out=tmp_path / "run", seed=3)
    assert first.study is not None
    again = Audit.of(subject).audit(out=tmp_path / "run", resume=True)
    assert again.study is None  # what is there is kept
    assert again.document["attributes"] == first.document["attributes"]
    (tmp_path / "run" / "proxies.json").unlink()  # as if it had been killed before
    whole = Audit.of(subject).audit(out=tmp_path / "run", resume=True, distributed="2026-03-01")
    assert whole.study is not None
    assert whole.document["attributes"] == first.document["attributes"]
    assert "2026-03-01" in whole.page.with_name("filing.html").read_text()
    with pytest.raises(OptionError, match="has seed 3, but 4 was asked for"):
        Audit.of(subject).audit(out=tmp_path / "run", seed=4, resume=True)
    with pytest.raises(OptionError, match="holds an audit already"):
        Audit.of(subject).audit(out=tmp_path / "run")
    resumed = run("audit", "--resume", tmp_path / "run")
    assert resumed.exit_code == 0, resumed.output
    assert len(resumed.stdout.splitlines()) <= 25


def test_another_table_is_refused(audited: Path, tmp_path: Path) -> None:
    _people(tmp_path)
    file = _subject(tmp_path, TABLE + 'score = "p"\n' + ATTRIBUTES)
    Audit.of(file).audit(out=tmp_path / "run")
    lines = (tmp_path / "people.csv").read_text().splitlines()
    cells = lines[1].split(",")
    cells[5] = "0.123456"
    (tmp_path / "people.csv").write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]) + "\n")
    for words in (("audit", "--resume", tmp_path / "run"), ("report", tmp_path / "run")):
        done = run(*words)
        assert isinstance(done.exception, OptionError)
        assert "made with another table" in str(done.exception)


def test_a_fleet_takes_tables_of_scores(audited: Path, tmp_path: Path) -> None:
    ships = tmp_path / "ships" / "one"
    ships.mkdir(parents=True)
    _people(ships)
    _subject(ships, TABLE + 'score = "p"\n' + ATTRIBUTES)
    for _ in range(2):  # the second time what was finished is kept
        fleet, page = audit_fleet(tmp_path / "ships", AuditOptions(seconds=5.0, threads=1), tmp_path / "out")
        one = fleet.subjects[0]
        assert one.error is None
        assert one.scores_only
        assert one.bits is None
        assert one.indirect is not None
        assert one.indirect > 0.2
        assert one.indirect_about == "sex"
        assert "tells at least 0." in fleet.sentence
        assert "scores only" in page.read_text()
    assert (tmp_path / "out" / str(one.report)).is_file()


def test_no_cases_and_one_sentence(audited: Path) -> None:
    done = run("cases", audited / "run")
    assert isinstance(done.exception, OptionError)
    assert "audit of a table of scores" in str(done.exception)
    assert run("proxies", audited / "subject.toml", "--out", audited / "px").exit_code == 0


def test_nothing_is_cut_off(audited: Path, tmp_path: Path) -> None:
    with launched() as browser:
        for width in (390, 1280):
            page = browser.new_page(viewport={"width": width, "height": 800})
            page.goto((audited / "run" / "filing.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            # the tables to file fit as they are: nothing to scroll to on paper or on a phone
            wide = (
                "[...document.querySelectorAll('#filing .table')].filter(one => one.scrollWidth > one.clientWidth + 1)"
            )
            assert page.evaluate(f"{wide}.length") == 0
        printed = page.pdf(format="A4")
        assert printed.startswith(b"%PDF")
