"""A fleet: every subject has its audit or its sentence, and one page ranks them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from fairbits import Attribute, Network, Schema, Table
from fairbits.audit.fleet import Fleet, FleetMember, _proved, audit_fleet, find_subjects, fleet_page
from fairbits.certify import Population, Statement
from fairbits.cli.app import app
from fairbits.errors import OptionError
from fairbits.options import AuditOptions
from fairbits.report import render_page
from fairbits.subject import make_subject
from fairbits.subject.export import export_subject
from tests.search.planted import planted_subject

SEX = Attribute(name="sex", kind="category", labels=("f", "m"), protected=True)


@pytest.fixture
def harbour(tmp_path):
    """Two subjects that can be audited, one of them blind to protected values, and two that cannot."""
    folder = tmp_path / "models"
    for name in ("credit", "blind", "broken"):
        export_subject(planted_subject(), folder / name)
    from dataclasses import replace

    network = planted_subject().model
    first = network.weights[0].copy()
    first[[0, 2]] = 0
    blind = replace(network, weights=(np.ascontiguousarray(first), *network.weights[1:]))
    assert isinstance(blind, Network)
    blind.save(folder / "blind" / "model.npz")
    (folder / "broken" / "model.npz").write_bytes(b"nothing")
    (folder / "stray.toml").write_text('name = "<b>stray</b>"\n')
    return folder


def test_one_that_fails_stops_nobody(harbour, tmp_path) -> None:
    seen = []
    options = AuditOptions(seconds=1.0, skip=frozenset({"debug", "repair"}))
    fleet, page = audit_fleet(
        harbour, options, tmp_path / "out", progress=lambda done, total, one: seen.append((done, total))
    )
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert [one.name for one in fleet.ranked] == ["credit", "blind"]
    assert fleet.ranked[0].bits == pytest.approx(2.585, abs=0.01)
    assert fleet.ranked[1].bits == 0
    assert {one.name for one in fleet.failed} == {"broken", "stray"}
    text = page.read_text()
    assert (page.parent / fleet.ranked[0].report).is_file()
    assert f'href="{fleet.ranked[0].report}"' in text
    assert all(one.error in text.replace("&#39;", "'") for one in fleet.failed if one.name == "broken")
    document = json.loads((page.parent / "fleet.json").read_text())
    assert [one["name"] for one in document["subjects"]] == ["credit", "blind", "broken", "stray"]
    shutil.rmtree(harbour / "broken")
    again, _ = audit_fleet(harbour, options, tmp_path / "out")
    assert [one.bits for one in again.ranked] == [one.bits for one in fleet.ranked]


def test_on_the_command_line(harbour, tmp_path) -> None:
    shutil.rmtree(harbour / "blind")
    asked = ["fleet", str(harbour), "--budget", "1s", "--skip", "debug,repair", "--out", str(tmp_path / "out")]
    found = CliRunner().invoke(app, [*asked, "--rank", "bits"], env={"COLUMNS": "80"})
    assert found.exit_code == 4
    assert "Of 3 models, “credit” uses the most: at least 2.58 of 2.58 bits; 2 could" in found.stdout
    assert max(len(line) for line in found.stdout.splitlines() if str(tmp_path) not in line) <= 80


def test_folders_without_subjects(tmp_path) -> None:
    with pytest.raises(OptionError, match=r"holds no subject.toml"):
        find_subjects(tmp_path, tmp_path)
    with pytest.raises(OptionError, match="is not a folder"):
        find_subjects(tmp_path / "none", tmp_path)


def test_names_are_only_text() -> None:
    evil = FleetMember("<script>alert(1)</script>", "x", report="a/report.html", bits=1.0, bits_limit=2.0)
    page = render_page(fleet_page(Fleet("f", "t", "2026-01-01", (evil, FleetMember("y", "z", error="<img src=x>")))))
    assert "<script>alert" not in page
    assert "<img" not in page


def test_bars_and_flips_say_what_the_figures_say() -> None:
    """A bar is the share of the model's own limit; a regression has no decision that could flip."""
    number = FleetMember("pay", "pay.toml", "pay/report.html", bits=2.0, bits_limit=2.0, k_max=4, cases=50)
    wide = FleetMember("wide", "w.toml", "w/report.html", bits=1.0, bits_limit=3.17, flip_rate=0.2, id_cases=7, cases=9)
    page = render_page(fleet_page(Fleet("models", "about 1 s each", "2026-01-01", (number, wide), "bits")))
    rows = page.split("<tr>")[2:4]
    assert "width: 100%" in rows[0]
    assert "width: 32%" in rows[1]
    assert (
        rows[0].count('<td class="n">–</td>') == 5
    )  # rows affected, on real rows, proved, cases that flip, indirect bits
    assert '<td class="n">7</td>' in rows[1]
    asked = replace(number, split_rate=0.93)
    page = render_page(fleet_page(Fleet("models", "about 1 s each", "2026-01-01", (asked, wide), "people")))
    assert '93.0 %<span class="remark">score differently</span>' in page  # what it is ranked by is there to see


def test_a_regression_reports_no_flips(tmp_path) -> None:
    rng = np.random.default_rng(0)
    schema = Schema((Attribute(name="a", kind="integer", low=0, high=9), SEX), target="pay")
    codes = np.column_stack([rng.integers(0, 10, 60), rng.integers(0, 2, 60)]).astype(float)
    network = Network.build([np.array([[1.0], [3.0]])], [np.zeros(1)], head="linear")
    subject = make_subject("pay", network, schema, Table(codes, codes @ [1.0, 3.0] + rng.normal(0, 0.1, 60)))
    export_subject(subject, tmp_path / "models" / "pay")
    options = AuditOptions(seconds=1.0, skip=frozenset({"debug", "repair"}))
    fleet, _ = audit_fleet(tmp_path / "models", options, tmp_path / "out")
    assert (fleet.ranked[0].id_cases, fleet.ranked[0].flip_rate) == (None, None)


def test_a_fleet_without_bits_crowns_nobody() -> None:
    none = FleetMember("a", "a.toml", "a/report.html", bits=0.0, bits_limit=2.0)
    assert Fleet("models", "", "2026-01-01", (none,)).sentence == (
        "No use of protected attributes was found in one model."
    )


@pytest.mark.parametrize(
    ("whom", "proved"),
    [
        (Population(kind="domain"), 2),
        (Population(kind="domain", intervals=(("pay", 0.0, 9.5),)), 2),
        (Population(kind="domain", without=("pay",)), None),
        (Population(kind="domain", values=(("age", (20.0, 60.0)),)), None),
        (Population(kind="near", changes=1), None),
        (None, None),
    ],
)
def test_what_is_proved_is_about_everybody(whom, proved) -> None:
    """A certificate that leaves people out, or values of their twins, bounds nothing for a fleet."""
    one = Statement("proved", "k", "some people", 10, 10, 0, 0, 2.0, 1.0, 0.0, whom=whom)
    data = SimpleNamespace(about=SimpleNamespace(blind=False), certified=(one,))
    assert _proved(data) == proved


def test_ranks() -> None:
    """By people, by found k, by proved k (nothing proved: as many as there are twins), by bits."""
    shared = {"bits_limit": 4.0, "m": 16}
    many = FleetMember("many", "m", bits=1.0, k_max=2, flip_rate=0.5, k_proved=4, **shared)
    deep = FleetMember("deep", "d", bits=3.0, k_max=8, flip_rate=0.1, k_proved=9, **shared)
    open_ = FleetMember("open", "o", bits=2.0, k_max=4, flip_rate=0.2, **shared)
    for rank, order in (
        ("people", ["many", "open", "deep"]),
        ("found", ["deep", "open", "many"]),
        ("proved", ["open", "deep", "many"]),
        ("bits", ["deep", "open", "many"]),
    ):
        fleet = Fleet("f", "t", "2026-01-01", (many, deep, open_), rank)
        assert [one.name for one in fleet.ranked] == order, rank
        assert f"“{order[0]}”" in fleet.sentence
    with pytest.raises(OptionError, match=r"^rank is 'peple'.*people"):
        audit_fleet("f", rank="peple")
