"""DuckDB over the parts of a run, in bounded memory, with no way to any other file."""

from __future__ import annotations

import itertools
import tempfile
import uuid
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from fairbits.errors import OptionError
from fairbits.store import filter as filters
from fairbits.store.cases import FIGURES, WORDS, Layout
from fairbits.store.location import is_local
from fairbits.store.parts import Part

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

MEMORY = "1GB"
#: Columns that no second run can have the same.
UNREPEATED = ("seconds",)
#: The worst first, by the measure of the run.
RANKED = {
    "q_inf": "ORDER BY k DESC, span DESC, evaluation",
    "q_1": "ORDER BY q_1 DESC, span DESC, evaluation",
}


def hide_progress(connection: duckdb.DuckDBPyConnection) -> None:
    """Have DuckDB show no bar of its own. In a notebook without ipywidgets it shows none, and refuses any change."""
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        connection.execute("SET enable_progress_bar = false")


class Questions:
    """A view ``cases`` as people read it: categories as labels, numbers as numbers.

    An integer attribute with labels has them in ``<name>_label`` besides. Small integers are widened: in DuckDB,
    ``hours * 3`` would overflow in the type that it is stored in. Evaluations among the ``doubles`` found somebody
    whom an earlier one had found, and are not shown.
    """

    def __init__(
        self,
        parts: list[Part],
        layout: Layout,
        *,
        doubles: pa.Table | None = None,
        rows: pa.Table | None = None,
        measure: str = "q_inf",
    ):
        self.layout = layout
        self._ranked = RANKED.get(measure, RANKED["q_inf"])
        #: The protected values of the rows that cases came from, which only filters that name them look at.
        self._rows = rows
        self._joined = False
        self._elsewhere: Dataset | None = None
        # DuckDB makes this folder when a ranking outgrows the memory, and removes it afterwards.
        spill = Path(tempfile.gettempdir(), f"fairbits-{uuid.uuid4().hex}")
        self._connection = duckdb.connect(":memory:", config={"python_enable_replacements": "false"})
        run = self._connection.execute
        run(f"SET memory_limit = '{MEMORY}'")
        run(f"SET temp_directory = {_text(str(spill))}")
        run("SET preserve_insertion_order = false")
        hide_progress(self._connection)
        self._show_parts(parts)
        if doubles is None or doubles.num_rows == 0:
            run("CREATE VIEW stored AS SELECT * FROM written")
        else:
            self._connection.register("found_again", doubles)
            run("CREATE TABLE doubled AS SELECT evaluation FROM found_again")
            run("CREATE VIEW stored AS SELECT * FROM written ANTI JOIN doubled USING (evaluation)")
        run(f"CREATE VIEW {filters.VIEW} AS SELECT {', '.join(self._shown())} FROM stored")
        # The parts are the only files from here on, and no setting can be changed back.
        run("SET enable_external_access = false")
        run("SET lock_configuration = true")

    def _show_parts(self, parts: list[Part]) -> None:
        """A view ``written`` of all rows: DuckDB reads files of this machine, Arrow those that are elsewhere."""
        run = self._connection.execute
        if not parts:
            self._connection.register("nothing", self.layout.arrow.empty_table())
            run("CREATE TABLE written AS SELECT * FROM nothing")
        elif all(is_local(part.path) for part in parts):
            listed = f"[{', '.join(_text(str(part.path.resolve())) for part in parts)}]"
            run(f"SET allowed_paths = {listed}")
            run(f"CREATE VIEW written AS SELECT * FROM read_parquet({listed})")
        else:
            self._elsewhere = elsewhere(parts, self.layout)
            self._connection.register("written", self._elsewhere)

    @cached_property
    def columns(self) -> list[str]:
        """The names that a filter may use."""
        found = []
        for name, attribute in zip(self.layout.names, self.layout.attributes, strict=True):
            found.append(name)
            if attribute.kind == "integer" and attribute.labels:
                found.append(self._label_name(name))
        return [*found, *FIGURES, *self._row_names]

    def ask(self, sql: str) -> pa.Table:
        """The answer to a query of our own."""
        return self._stream(sql).read_all()

    def ranked(self, *, where: str | None, top: int | None) -> pa.RecordBatchReader:
        """Cases as codes, worst first, batch after batch."""
        if where is not None and any(name.casefold() in where.casefold() for name in self._row_names):
            self._join_rows()
        clause = "" if where is None else filters.condition(self._connection, where)
        codes = "".join(f"{_name(_hidden(i))} AS {_name(n)}, " for i, n in enumerate(self.layout.names))
        limit = "" if top is None else f"LIMIT {int(top)}"
        # The filter sees only the view: inside, so that no alias of ours shadows its names.
        inner = f"SELECT * FROM {filters.VIEW} {clause}"
        cursor = self._cursor()
        try:
            with filters.in_time(cursor, where) if where is not None else nullcontext():
                sql = f"SELECT {codes}{', '.join(FIGURES)} FROM (\n{inner}\n) {self._ranked} {limit}"
                reader = pa.RecordBatchReader.from_stream(cursor.sql(sql))
                # Ranking reads everything before it gives anything: whatever can go wrong does so here.
                first = next(iter(reader), None)
        except (duckdb.Error, pa.ArrowException) as error:
            if where is None or filters.may_be_damage(error):
                raise
            raise self.explain(error, where) from None
        return pa.RecordBatchReader.from_batches(reader.schema, itertools.chain([first] if first else [], reader))

    @property
    def _row_names(self) -> list[str]:
        return [] if self._rows is None else [name for name in self._rows.column_names if name != "seed_row"]

    def _join_rows(self) -> None:
        """Show the protected values of the row that each case came from (NULL where it came from none)."""
        if self._joined:
            return
        run = self._connection.execute
        self._connection.register("rows_given", self._rows)
        run("CREATE TABLE rows_kept AS SELECT * FROM rows_given")
        names = [f"rows_kept.{_name(name)}" for name in self._row_names]
        shown = ", ".join([*self._shown(), *names])
        joined = "stored LEFT JOIN rows_kept USING (seed_row)"
        run(f"CREATE OR REPLACE VIEW {filters.VIEW} AS SELECT {shown} FROM {joined}")
        self._joined = True

    def codes(self) -> pa.RecordBatchReader:
        """The stored attributes of all cases, in the order in which they were found."""
        return self._stream(f"SELECT {', '.join(map(_name, self.layout.names))} FROM stored ORDER BY evaluation")

    def content(self) -> tuple[int, int, int]:
        """How many cases there are, and two sums over hashes of each, the time of day left out; in no order."""
        columns = ", ".join(map(_name, (*self.layout.names, *(name for name in FIGURES if name not in UNREPEATED))))
        row = self.ask(
            "SELECT count(*) AS n, sum(code)::VARCHAR AS s, bit_xor(hash(code)) AS x "
            f"FROM (SELECT hash({columns}) AS code FROM stored)"
        ).to_pylist()[0]
        return int(row["n"]), int(row["s"] or 0), int(row["x"] or 0)

    def explain(self, error: Exception, where: str) -> OptionError:
        """One sentence about what is wrong with a filter."""
        return filters.explain(error, where, self.columns, self._labels)

    def _stream(self, sql: str) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_stream(self._cursor().sql(sql))

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor for one answer: one that is not read to its end is in nobody's way."""
        cursor = self._connection.cursor()
        if self._elsewhere is not None:  # what is registered is known to one cursor only
            cursor.register("written", self._elsewhere)
        return cursor

    def decoded(self, table: pa.Table, twins: tuple[str, ...]) -> pa.Table:
        """Labels in place of codes, and the protected values of the lowest and the highest score."""
        for position, attribute in enumerate(self.layout.attributes):
            if attribute.kind != "category" and attribute.gap is not None:
                codes, field = table.column(position), table.field(position)
                gone = pa.compute.equal(codes, pa.scalar(attribute.gap, pa.float64()))
                codes = pa.compute.if_else(gone, pa.scalar(None, codes.type), codes)
                table = table.set_column(position, field.name, codes)
            if attribute.labels:
                codes = table.column(position).cast(pa.int64())
                index = pa.compute.subtract(codes, int(attribute.low)).cast(pa.int32())
                table = table.set_column(position, table.field(position).name, _dictionary(index, attribute.labels))
        for name, source in zip(WORDS, ("low_twin", "high_twin"), strict=True):
            table = table.append_column(name, _dictionary(table[source], twins))
        return table

    @cached_property
    def _labels(self) -> list[str]:
        return [label for attribute in self.layout.attributes for label in attribute.labels]

    def _shown(self) -> list[str]:
        shown = []
        for i, (name, attribute) in enumerate(zip(self.layout.names, self.layout.attributes, strict=True)):
            quoted = _name(name)
            position = f"{quoted}::INTEGER - {int(attribute.low)} + 1" if attribute.labels else ""
            labels = f"list_extract([{', '.join(_text(label) for label in attribute.labels)}], {position})"
            number = quoted if attribute.kind == "real" else f"{quoted}::BIGINT"
            if attribute.kind != "category" and attribute.gap is not None:  # a missing number is NULL
                number, position = f"nullif({number}, {attribute.gap:.0f})", f"nullif({position or 0}, 0)"
            shown.append(f"{labels if attribute.kind == 'category' else number} AS {quoted}")
            if attribute.kind == "integer" and attribute.labels:
                shown.append(f"{labels} AS {_name(self._label_name(name))}")
            shown.append(f"{quoted} AS {_name(_hidden(i))}")
        for name, kind in FIGURES.items():
            shown.append(f"{name}::INTEGER AS {name}" if kind == pa.int16() else name)
        return shown

    def _label_name(self, name: str) -> str:
        taken = {other.casefold() for other in (*self.layout.names, *FIGURES, *WORDS)}
        label = f"{name}_label"
        while label.casefold() in taken:
            label += "_"
        return label


def check_top(top: int | None) -> None:
    """Refuse a number of cases below 1."""
    if top is not None and top < 1:
        raise OptionError(f"top is {top}; ask for at least one case.")


def elsewhere(parts: list[Part], layout: Layout) -> Dataset:
    """Parts on a remote store as an Arrow dataset."""
    from pyarrow.dataset import dataset
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    place: Any = parts[0].path
    origin = layout.arrow.get_field_index("origin")
    schema = layout.arrow.set(origin, pa.field("origin", pa.string()))
    paths = [str(getattr(part.path, "path")) for part in parts]  # noqa: B009 - fsspec's, unknown to pathlib
    return dataset(paths, schema=schema, format="parquet", filesystem=PyFileSystem(FSSpecHandler(place.fs)))


def _hidden(position: int) -> str:
    """The column of the view that keeps a code. A name that nobody gives an attribute by accident."""
    return f"\x01code {position}"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''").replace("\0", "\ufffd") + "'"


def _dictionary(index: pa.ChunkedArray, values: tuple[str, ...]) -> pa.ChunkedArray:
    words = pa.array(list(values), pa.string())
    kind = pa.dictionary(pa.int32(), pa.string())
    try:
        chunks = [pa.DictionaryArray.from_arrays(chunk, words) for chunk in index.chunks]
    except pa.ArrowIndexError:
        raise OptionError(
            "a case has a value that the schema in run.json does not know: one of the two is damaged; restore both "
            "from a copy."
        ) from None
    return pa.chunked_array(chunks, type=kind)
