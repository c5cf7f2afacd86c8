"""AHRQ's transport files, in miniature."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fairbits.data import load_table, sources
from fairbits.data.coding import meps
from fairbits.errors import TableError
from tests.data.xport import xport

YEAR = meps.YEARS["meps15"]


def people(count: int) -> dict[str, np.ndarray]:
    """Complete answers of panel 19, under the file's names, with a variable that nobody needs."""
    columns = {theirs: np.ones(count) for theirs in meps.columns_of(YEAR).values()}
    columns |= {"PANEL": np.full(count, 19.0), "AGE53X": np.linspace(0, 85, count), "DUPERSID": np.arange(count) + 1.0}
    columns |= {"PCS42": np.full(count, 55.25), "MCS42": np.full(count, -9.0), "K6SUM42": np.full(count, -1.0)}
    columns |= {"HISPANX": np.full(count, 2.0), "SEX": np.arange(count) % 2 + 1.0}
    return columns


def write(path: Path, columns: dict[str, np.ndarray]) -> Path:
    content = xport({name: values.tolist() for name, values in columns.items()})
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("h181.ssp", content)
    else:
        path.write_bytes(content)
    return path


def test_the_selection(tmp_path: Path) -> None:
    columns = people(10)
    columns["PANEL"][0] = 20  # another panel
    columns["REGION53"][1] = -1  # even "inapplicable" drops a row here
    columns["HIBPDX"][2] = -1  # but not here
    columns["HIBPDX"][3] = -8  # "don't know"
    columns["EDUCYR"][4] = -7  # refused, in a variable that the model does not use
    columns["HISPANX"][5] = 1
    columns["RACEV2X"][6] = 2
    columns["IPNGTD15"][7] = 6  # 1 + 1 + 1 + 6 + 1 nights and visits
    numbers = meps.read_official(write(tmp_path / "h181.ssp", columns), YEAR)
    assert len(numbers["AGE"]) == 6
    assert numbers["race"].tolist() == [1, 0, 0, 1, 1, 1]
    assert numbers["sex"].tolist() == [0, 1, 0, 1, 0, 1]
    assert numbers[meps.UTILISATION].tolist() == [0, 0, 0, 1, 0, 0]
    coded = meps.code(numbers, YEAR)
    person = YEAR.schema.read(coded.codes[0])
    assert (person["high_blood_pressure"], person["region"]) == ("not asked", "Northeast")
    assert (person["mental_score"], person["distress_score"]) == ("−9.0 to −0.5", "not asked")
    assert person["physical_score"] == "over 47.7 to 55.9"


@pytest.mark.parametrize("name", ["h181ssp.zip", "h181.ssp"])
def test_data_add(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sources.SOURCES, "meps15", replace(sources.SOURCES["meps15"], rows=20))
    sources.add("meps15", write(tmp_path / name, people(20)))
    table = load_table("meps15", network=False)
    assert table.codes.shape == (20, 41)
    assert table.codes[:, 0].min() == 1
    assert table.codes[:, 0].max() == 9


def test_the_wrong_year_lacks_variables(tmp_path: Path, cache: Path) -> None:
    file = write(tmp_path / "h192ssp.zip", people(5))
    with pytest.raises(TableError, match=r"lacks 7 of the \d+ variables.*OBTOTV16.*this panel is in h192ssp.zip"):
        sources.add("meps16", file)


def test_too_few_people(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(TableError, match=r"has 5 rows for 'meps15', but the dataset has 15,830; download h181ssp.zip"):
        sources.add("meps15", write(tmp_path / "h181.ssp", people(5)))


def test_no_transport_file(tmp_path: Path, cache: Path) -> None:
    file = tmp_path / "h181.ssp"
    file.write_bytes(b"something else" * 100)
    with pytest.raises(TableError, match=r"cannot read .* as a SAS transport file .*give h181ssp.zip"):
        sources.add("meps15", file)
    empty = tmp_path / "h181ssp.zip"
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("readme.txt", "nothing here")
    with pytest.raises(TableError, match=r"cannot read .*h181ssp.zip as a SAS transport file"):
        sources.add("meps15", empty)


def test_a_code_outside_the_codebook(tmp_path: Path) -> None:
    columns = people(5)
    columns["REGION53"][3] = 9
    numbers = meps.read_official(write(tmp_path / "h181.ssp", columns), YEAR)
    with pytest.raises(TableError, match="column 'REGION' holds 9, which the codebook does not list"):
        meps.code(numbers, YEAR)


def test_the_table_of_development_passes(shared: Path, cache: Path) -> None:
    sources.add("meps16", shared / "data" / "meps16" / "panel21_fy2016.csv")
    assert len(load_table("meps16", network=False)) == 15_675
