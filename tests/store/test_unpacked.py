"""Files of a run that are small as they lie there and large once they are unpacked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from fairbits.errors import OptionError
from fairbits.store import files, read_parquet


def test_a_sound_table_is_read_as_it_is(tmp_path: Path) -> None:
    table = pa.table({"layer": [1, 2, 3], "name": ["a", "b", "c"]}).replace_schema_metadata({"kept": "yes"})
    parquet.write_table(table, tmp_path / "t.parquet")
    found = read_parquet(tmp_path / "t.parquet", remedy="make it again")
    assert found.equals(table, check_metadata=True)
    assert read_parquet(tmp_path / "t.parquet", remedy="make it again", columns=["layer"]).column_names == ["layer"]
    parquet.write_table(table.slice(0, 0), tmp_path / "none.parquet")
    assert read_parquet(tmp_path / "none.parquet", remedy="make it again").num_rows == 0


def test_rows_are_counted_before_they_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"a": pa.array(np.zeros(200_000, np.int8))}), path)
    with pytest.raises(OptionError, match=r"200,000 rows.*at most 1,000 .*make it again"):
        read_parquet(path, remedy="make it again", max_rows=1_000)


def test_a_long_text_that_stands_often_is_noticed_while_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    monkeypatch.setattr(files, "MAX_UNPACKED", 1 << 20)
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int32)), pa.array(["x" * 1_000]))
    parquet.write_table(pa.table({"a": words.cast(pa.string())}), path)
    assert path.stat().st_size < 20_000
    with pytest.raises(OptionError, match=r"rows.parquet' takes more than 1 MB unpacked; make it again"):
        read_parquet(path, remedy="make it again")


def test_damage_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(OptionError, match=r"rows.parquet' is damaged \(.*\); make it again"):
        read_parquet(path, remedy="make it again")
