"""The list of subjects, the split, and what importing costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fairbits.data import BUILT_IN, load_table, registry, sources
from fairbits.errors import OptionError
from tools.tables import main

NOTICE = Path(__file__).resolve().parents[2] / "NOTICE"


def test_label_one_is_the_scored_class() -> None:
    for subject in BUILT_IN.values():
        assert subject.schema.favourable_index == 1
        assert subject.schema.favourable == subject.schema.classes[1]


def test_an_unknown_name_is_met_with_a_guess() -> None:
    with pytest.raises(OptionError, match=r"nothing built in is called 'germany'.*Did you mean 'german'"):
        load_table("germany")


def test_only_free_tables_are_in_the_package() -> None:
    files = sorted(path.name for path in registry.TABLES.iterdir())
    free = ("bank", "census", "default", "german", "heart", "meps15-synthetic", "meps16-synthetic", "students")
    assert files == [f"{name}.parquet" for name in free]
    assert sum((registry.TABLES / name).stat().st_size for name in files) < 1_500_000
    notice = NOTICE.read_text(encoding="utf-8")
    assert all(name in notice for name in files)


@pytest.mark.parametrize("name", ["german", "default", "heart", "bank", "students", "meps15-synthetic"])
def test_the_split_is_the_seeded_one(name: str) -> None:
    held_out = load_table(name).held_out
    assert held_out is not None
    assert np.array_equal(held_out, sources.seeded_split(name, len(held_out)))
    assert held_out.sum() == round(len(held_out) / 4)


def test_the_split_never_changes() -> None:
    """Trained weights and published figures depend on it."""
    assert sources.seeded_split("heart", 12).nonzero()[0].tolist() == [2, 5, 6]
    assert not np.array_equal(sources.seeded_split("heart", 297), sources.seeded_split("bank", 297))


def test_census_holds_out_the_official_rows() -> None:
    held_out = load_table("census").held_out
    assert held_out is not None
    assert not held_out[:32_561].any()
    assert held_out[32_561:].all()


def test_import_is_light_and_leaves_no_trace(tmp_path: Path) -> None:
    heavy = ["pyarrow", "pandas", "sklearn", "numba", "platformdirs"]
    code = f"import sys, fairbits.data; print([m for m in {heavy} if m in sys.modules])"
    homes = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"), str(tmp_path))
    environment = {**os.environ, **homes, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"
    assert list(tmp_path.iterdir()) == []


def test_build_says_what_it_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main([str(tmp_path)]) == 2
    assert "cannot read" in capsys.readouterr().err
