"""Every command says by which rule the model decides and how it agrees with the labels; stages refuse another one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairbits import gate, load_subject
from fairbits.audit.fleet import Fleet, FleetMember, write_fleet
from fairbits.gates import freeze_subject, gate_markdown
from fairbits.text import percent
from tests.cli.calling import fairbits
from tests.repair.conftest import searched, write_subject

FIGURES = ("accuracy", "auc", "auc_low", "auc_high", "favourable_rate", "base_rate", "threshold", "decision")
CUT = 0.8


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A subject with a cut-off of its own, and a run of it."""
    folder = tmp_path_factory.mktemp("cut")
    file = write_subject(folder / "about")
    file.write_text(file.read_text().replace("[table]", f"[table]\nthreshold = {CUT}"))
    searched(load_subject(file).checked(), folder / "run", evaluations=600)
    return folder


@pytest.fixture(scope="module")
def by_hand(place: Path) -> dict[str, Any]:
    subject = load_subject(place / "about" / "subject.toml")
    scores = subject.model.scores(subject.encoding.encode(subject.table.codes))
    decided, labels = scores >= np.float32(CUT), np.asarray(subject.table.labels) == 1
    high, low = scores[labels], scores[~labels]
    auc = np.mean((high[:, None] > low) + 0.5 * (high[:, None] == low))
    assert (scores >= 0.5).mean() > decided.mean()  # one half would give other figures
    return {
        "accuracy": (decided == labels).mean(),
        "favourable_rate": decided.mean(),
        "base_rate": labels.mean(),
        "auc": auc,
        "threshold": CUT,
        "decision": "favourable when P(yes) ≥ 0.8",
    }


COMMANDS: dict[str, tuple[str, ...]] = {
    "measure": ("about/subject.toml",),
    "cases": ("run",),
    "debug": ("run", "--samples", "20"),
    "certify": ("about/subject.toml", "--budget", "0.2s"),
    "proxies": ("about/subject.toml",),
    "gate": ("about/subject.toml", "--out", "gated"),
    "compare": (
        "about/subject.toml",
        "--strategies",
        "random",
        "--budget",
        "0.1s",
        "--repeats",
        "1",
        "--out",
        "compared",
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_header_of_every_command(command: str, place: Path, by_hand: dict[str, Any]) -> None:
    words = fairbits(command, *COMMANDS[command], cwd=place)
    assert words.returncode in (0, 1), words.stderr
    said = " ".join(words.stdout.split())
    assert f"Favourable when P(yes) ≥ 0.8: {percent(by_hand['favourable_rate'])} of 400 rows" in said
    assert f"labelled so: {percent(by_hand['base_rate'])}." in said
    judged = f"accuracy {percent(by_hand['accuracy'])}, AUC {by_hand['auc']:.3f} (95 % interval"
    assert f"Against the labels, on 400 rows it may have been trained on: {judged}" in said
    if command == "cases":
        return  # a list of people, one after the other
    document = json.loads(fairbits(command, *COMMANDS[command], "--json", cwd=place).stdout)
    figures = document.get("quality") or document
    assert set(FIGURES) <= set(figures)
    for name, value in by_hand.items():
        assert figures[name] == (pytest.approx(value) if isinstance(value, float) else value)


def test_the_page_of_a_comparison(place: Path, by_hand: dict[str, Any]) -> None:
    if not (place / "compared" / "compare.html").exists():
        fairbits("compare", *COMMANDS["compare"], cwd=place)
    assert f"accuracy {percent(by_hand['accuracy'])}" in (place / "compared" / "compare.html").read_text()


def test_a_baseline_by_another_cut_off(place: Path, tmp_path: Path, by_hand: dict[str, Any]) -> None:
    """A gate may compare them, since the cut-off is part of what changed; it says so."""
    found = [load_subject(place / "about" / "subject.toml") for _ in range(2)]
    found[0] = replace(found[0], schema=replace(found[0].schema, threshold=0.5))
    for subject in found:
        result = gate(
            subject,
            policy={"checks": {"flip_rate": 1.0}},
            suite=freeze_subject(subject),
            baseline=tmp_path / "baseline.parquet",
            out=tmp_path,
            threads=1,
        )
    assert any("≥ 0.5 there, favourable when P(yes) ≥ 0.8 here" in note for note in result.notes)
    assert f"accuracy {percent(by_hand['accuracy'])}" in gate_markdown(result).replace("\\", "")


def test_a_fleet_says_it_of_every_model(tmp_path: Path, place: Path) -> None:
    quality = load_subject(place / "about" / "subject.toml").checked().quality
    assert quality is not None
    member = FleetMember("a", "a.toml", "a/report.html", bits=1.0, bits_limit=2.0, quality=quality.figures())
    fleet = Fleet("here", "60 s each", "2026-01-01", (member,))
    assert quality.lines()[1] in write_fleet(fleet, tmp_path).read_text()
    assert set(FIGURES) <= set(fleet.document()["subjects"][0]["quality"])


#: What is changed in the subject's file, and what the refusal says.
CHANGES: dict[str, tuple[str, str, str]] = {
    "threshold": (f"threshold = {CUT}", "threshold = 0.7", "another threshold (0.8 there, 0.7 here)"),
    "output": ("[model]", '[model]\noutput = "probability"', '(none there, {"output": "probability"} here)'),
    "score_of": ("[model]", '[model]\nscore_of = "yes"', '(none there, {"score_of": "yes"} here)'),
    "input": ("[model]", '[model]\ninput_format = "codes"', '(none there, {"input_format": "codes"} here)'),
}
STAGES: dict[str, tuple[str, ...]] = {
    "search": ("--resume", "run", "--evaluations", "700"),
    "audit": ("--resume", "run", "--budget", "2s"),
    "debug": ("run",),
    "repair": ("run",),
    "report": ("run",),
    "explore": ("run", "--no-browser"),
    "certify": ("run",),
    "gate": ("run",),
}


@pytest.mark.parametrize(
    ("stage", "change"), [*((stage, "score_of") for stage in STAGES), *(("debug", change) for change in CHANGES)]
)
def test_every_stage_names_what_was_changed_in_the_file(stage: str, change: str, place: Path) -> None:
    file = place / "about" / "subject.toml"
    before, (old, new, sentence) = file.read_text(), CHANGES[change]
    file.write_text(before.replace(old, new, 1))
    try:
        done = fairbits(stage, *STAGES[stage], cwd=place)
    finally:
        file.write_text(before)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in " ".join(done.stderr.split())
