"""A fleet: every subject has its audit or its sentence, and one page ranks them."""

from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from fairbits.audit.auditing import Wishes
from fairbits.audit.fleet import audit_fleet, find_ships
from fairbits.cli.app import app
from fairbits.data.exporting import export_subject
from fairbits.errors import OptionError
from fairbits.report.fleet import Audited, Fleet, render_fleet
from tests.search.planted import planted_subject


@pytest.fixture
def harbour(tmp_path):
    """Two subjects that can be audited, one of them blind to protected values, and two that cannot."""
    folder = tmp_path / "models"
    for name in ("credit", "blind", "broken"):
        export_subject(planted_subject(), folder / name)
    from dataclasses import replace

    import numpy as np

    from fairbits import Network

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
    wishes = Wishes(1.0, skip=frozenset({"debug", "repair"}))
    fleet, page = audit_fleet(
        harbour, wishes, tmp_path / "out", progress=lambda done, total, one: seen.append((done, total))
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
    again, _ = audit_fleet(harbour, wishes, tmp_path / "out")
    assert [one.bits for one in again.ranked] == [one.bits for one in fleet.ranked]


def test_on_the_command_line(harbour, tmp_path) -> None:
    shutil.rmtree(harbour / "blind")
    asked = ["fleet", str(harbour), "--budget", "1s", "--skip", "debug,repair", "--out", str(tmp_path / "out")]
    found = CliRunner().invoke(app, asked, env={"COLUMNS": "80"})
    assert found.exit_code == 3
    assert "Of 3 models, “credit” uses the most: at least 2.58 of 2.58 bits; 2 could" in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 80 or str(tmp_path) in found.stdout


def test_folders_without_subjects(tmp_path) -> None:
    with pytest.raises(OptionError, match=r"holds no subject.toml"):
        find_ships(tmp_path, tmp_path)
    with pytest.raises(OptionError, match="is not a folder"):
        find_ships(tmp_path / "none", tmp_path)


def test_names_are_only_text() -> None:
    evil = Audited("<script>alert(1)</script>", "x", report="a/report.html", bits=1.0, bits_limit=2.0)
    page = render_fleet(Fleet("f", "t", "2026-01-01", (evil, Audited("y", "z", error="<img src=x>"))))
    assert "<script>alert" not in page
    assert "<img" not in page
