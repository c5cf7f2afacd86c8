"""Questions to the cases of a run, by DuckDB: in bounded memory, with no way to any other file.

A filter that somebody typed meets three walls. The connection may touch no file but the parts, and no more memory than
it was given. The text must be one condition: it is parsed, and whatever the tree holds must be known to be harmless;
functions that make much of little (lists, repetitions) or that wait are not among what is known. And the answer must
come in time.
"""

from __future__ import annotations

import itertools
import json
import re
import tempfile
import threading
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from fairbits.errors import OptionError, choose_from
from fairbits.store.files import is_local
from fairbits.store.parts import FIGURES, WORDS, Layout, Part, sql_name, sql_text

VIEW = "cases"
_UNKNOWN_COLUMN = re.compile(r'column "(.+?)" not found', re.IGNORECASE)
_UNKNOWN_FUNCTION = re.compile(r"Function with name (\S+) does not exist", re.IGNORECASE)
_FILTERS_FAULT = re.compile(
    r"(Binder|Parser|Catalog|Conversion|Out of Range|Out of Memory|Permission|Not implemented|Invalid Input|INTERRUPT)"
    r" Error",
    re.IGNORECASE,
)
_NODES = ("SELECT_NODE", "SET_OPERATION_NODE")
#: Characters of a filter.
MAX_LETTERS = 20_000
#: Seconds until a filter must have answered; ``time_limit`` changes it.
SECONDS = 15.0
#: Seconds between two interrupts of one that is late.
_AGAIN = 0.05
_seconds: ContextVar[float | None] = ContextVar("fairbits_filter_seconds", default=None)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: What a condition is made of. Not among them: windows, lambdas, lists, structures.
_CLASSES = _words(
    "CONJUNCTION COMPARISON COLUMN_REF CONSTANT BETWEEN CASE SUBQUERY COLLATE PARAMETER STAR OPERATOR "
    "FUNCTION CAST TYPE"
)
_OPERATORS = _words(
    "COMPARE_IN COMPARE_NOT_IN OPERATOR_NOT OPERATOR_IS_NULL OPERATOR_IS_NOT_NULL OPERATOR_COALESCE OPERATOR_CAST"
)
#: Operators, arithmetic, text and figures over cases: each takes little time and gives no more than it was given.
_FUNCTIONS = _words(
    "+ - * / // % ** ^ & | || ~~ !~~ ~~* !~~* ~~~ ~ !~ @ abs round floor ceil ceiling trunc sign sqrt "
    "cbrt exp ln log log2 log10 pow power mod divide add subtract multiply greatest least isnan isinf "
    "isfinite even sin cos tan atan lower upper lcase ucase length len strlen trim ltrim rtrim contains "
    "starts_with ends_with prefix suffix substring substr left right strpos instr position reverse "
    "regexp_matches regexp_full_match like_escape ilike_escape not_like_escape not_ilike_escape concat "
    "levenshtein ascii unicode nullif ifnull if coalesce count count_star sum avg mean min max median "
    "stddev stddev_samp stddev_pop variance var_samp var_pop quantile_cont quantile_disc any_value first "
    "bool_and bool_or"
)
_TYPES = _words(
    "boolean bool logical tinyint smallint int2 integer int int4 bigint int8 hugeint utinyint usmallint "
    "uinteger ubigint float real float4 double float8 decimal numeric varchar text string char bpchar"
)


def condition(connection: duckdb.DuckDBPyConnection, where: str) -> str:
    """The filter as the end of an SQL statement, once it is known to be harmless."""
    if not where.strip():
        raise OptionError('the filter is empty; write e.g. "k >= 8", or leave --where out.')
    if len(where) > MAX_LETTERS:
        raise OptionError(f"the filter {_short(where)} has {len(where):,} characters; {MAX_LETTERS:,} are the most.")
    # A line of its own, so that a comment in the filter does not swallow the bracket.
    clause = f"WHERE (\n{where}\n)"
    found = _parse(connection, f"SELECT * FROM {VIEW} {clause}", where)
    # Whether the statement is what we wrote around the filter: no union, group, order or limit crept in.
    node = found[0]["node"]
    extras = ("modifiers", "group_expressions", "having", "sample", "qualify")
    whole = node["type"] == "SELECT_NODE" and node.get("where_clause") is not None and not any(map(node.get, extras))
    if len(found) != 1 or not whole:
        raise OptionError(f'the filter {_short(where)} is more than one condition; write e.g. "k >= 8 and flips".')
    for part in _dicts(found[0]):
        _check_known(part, where)
        if _reads_elsewhere(part):
            raise OptionError(f"the filter {_short(where)} reads from elsewhere; it may only look at the run's cases.")
    return clause


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Give the filters of this context another time."""
    if not 0 < seconds < threading.TIMEOUT_MAX:
        raise OptionError(f"the time limit of a filter is {seconds!r}; it must be a number of seconds larger than 0.")
    token = _seconds.set(seconds)
    try:
        yield
    finally:
        _seconds.reset(token)


@contextmanager
def in_time(connection: duckdb.DuckDBPyConnection, where: str) -> Iterator[None]:
    """Interrupt a query that takes too long."""
    seconds = _seconds.get() or SECONDS
    late, done = threading.Event(), threading.Event()

    def watch() -> None:
        if not done.wait(seconds):
            late.set()
        while not done.wait(_AGAIN):  # an interrupt before the work begins would be forgotten
            connection.interrupt()

    threading.Thread(target=watch, name="fairbits-filter", daemon=True).start()
    try:
        yield
    except Exception:  # raised again as it is, unless the interrupt from the watching thread is what was raised
        if late.is_set():
            raise OptionError(
                f"the filter {_short(where)} took longer than {seconds:g} s; make it simpler, or give it more time "
                f"with --time-limit."
            ) from None
        raise
    finally:
        done.set()


def explain_filter(error: Exception, where: str, columns: Sequence[str], labels: Sequence[str]) -> OptionError:
    """One sentence about what is wrong with a filter."""
    message = str(error)
    if unknown := _UNKNOWN_COLUMN.search(message):
        name = unknown[1]
        if name in labels:
            return OptionError(
                f"the filter {_short(where)} uses {name!r} as a column; put text in single quotes: '{name}'."
            )
        return OptionError(f"the run has no column {name!r}; {choose_from(name, columns, max_shown=60)}")
    if missing := _UNKNOWN_FUNCTION.search(message):
        return OptionError(f"the filter {_short(where)} uses the function {missing[1]!r}, which does not exist.")
    return OptionError(f"the filter {_short(where)} cannot be used: {_one_line(message)}")


def _parse(connection: duckdb.DuckDBPyConnection, statement: str, where: str) -> list[dict[str, Any]]:
    try:
        rows = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [statement]).fetchall()
    except duckdb.Error as error:
        raise explain_filter(error, where, (), ()) from None
    try:
        found: dict[str, Any] = json.loads(rows[0][0])
        deque(_dicts(found), maxlen=0)
    except RecursionError:
        raise OptionError(f"the filter {_short(where)} is nested too deeply; make it flatter.") from None
    if found["error"]:
        reason = _one_line(str(found.get("error_message", "it is not SQL")))
        if "Only SELECT" in reason:
            raise OptionError(f'the filter {_short(where)} is more than one condition; write e.g. "k >= 8 and flips".')
        raise OptionError(f"the filter {_short(where)} is not valid SQL: {reason}")
    return list(found["statements"])


def _reads_elsewhere(part: dict[str, Any]) -> bool:
    kind = str(part.get("type", ""))
    if kind.endswith("_NODE") and (kind not in _NODES or part.get("cte_map", {}).get("map")):
        return True
    source = part.get("from_table")
    if source is None or source.get("type") == "EMPTY":
        return False
    own = source.get("type") == "BASE_TABLE" and source.get("table_name", "").lower() == VIEW
    return not own or bool(source.get("schema_name") or source.get("catalog_name"))


def _check_known(part: dict[str, Any], where: str) -> None:
    """Refuse what is not known to be harmless."""
    kind = str(part.get("class", ""))
    function = str(part.get("function_name", "")).lower()
    if "function_name" in part and function not in _FUNCTIONS:
        raise OptionError(
            f"the filter {_short(where)} uses the function {function!r}, which does not exist or is not for filters; "
            f"compare columns with values, e.g. \"k >= 8 and lower(job) = 'sales'\"."
        )
    if kind and (kind not in _CLASSES or (kind == "OPERATOR" and part.get("type") not in _OPERATORS)):
        what = f"a {str(part.get('type') or kind).lower().replace('_', ' ')}"
        raise OptionError(f'the filter {_short(where)} uses {what}; a filter compares values, e.g. "k >= 8".')
    if kind == "TYPE" or "cast_type" in part:
        named = part.get("type_name") or (part.get("cast_type") or {}).get("id") or ""
        if named.lower() not in _TYPES:
            raise OptionError(f"the filter {_short(where)} turns a value into {named!r}; use a number, text or truth.")


def _dicts(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _dicts(item)


def _one_line(message: str) -> str:
    """The first line, without the kind of error before it and the help after it."""
    first = message.strip().splitlines()[0] if message.strip() else "no reason given"
    return re.sub(r"^[A-Z][A-Za-z ]* Error:\s*", "", first)[:160].rstrip(". ") + "."


def _short(where: str) -> str:
    text = " ".join(where.split())
    return repr(text if len(text) <= 60 else text[:59] + "…")


MEMORY = "1GB"
#: The column that numbers people who are looked up. A name that nobody gives an attribute by accident.
PLACE = "\x01place"
#: Columns that no second run can have the same.
UNREPEATED = ("seconds",)
#: The worst first, by the measure of the run.
RANKED = {
    "q_inf": "ORDER BY k DESC, span DESC, evaluation",
    "q_1": "ORDER BY q_1 DESC, span DESC, evaluation",
}


def connected(parts: Sequence[Part], layout: Layout) -> duckdb.DuckDBPyConnection:
    """A connection of bounded memory with a view ``written`` of all rows.

    DuckDB reads files of this machine itself, Arrow those that are elsewhere.
    """
    connection = duckdb.connect(":memory:", config={"python_enable_replacements": "false"})
    run = connection.execute
    run(f"SET memory_limit = '{MEMORY}'")
    # DuckDB makes this folder when a question outgrows the memory, and removes it afterwards.
    run(f"SET temp_directory = {sql_text(str(Path(tempfile.gettempdir(), f'fairbits-{uuid.uuid4().hex}')))}")
    run("SET preserve_insertion_order = false")
    # In a notebook without ipywidgets DuckDB shows no bar of its own, and refuses any change.
    if run("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        run("SET enable_progress_bar = false")
    if not parts:
        connection.register("nothing", layout.arrow.empty_table())
        run("CREATE TABLE written AS SELECT * FROM nothing")
    elif is_local(parts[0].path):
        listed = f"[{', '.join(sql_text(str(part.path.resolve())) for part in parts)}]"
        run(f"SET allowed_paths = {listed}")
        run(f"CREATE VIEW written AS SELECT * FROM read_parquet({listed})")
    else:
        connection.register("written", elsewhere(parts, layout))
    return connection


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
        self._parts = parts
        self._connection = connected(parts, layout)
        run = self._connection.execute
        if doubles is None or doubles.num_rows == 0:
            run("CREATE VIEW stored AS SELECT * FROM written")
        else:
            self._connection.register("found_again", doubles)
            run("CREATE TABLE doubled AS SELECT evaluation FROM found_again")
            run("CREATE VIEW stored AS SELECT * FROM written ANTI JOIN doubled USING (evaluation)")
        run(f"CREATE VIEW {VIEW} AS SELECT {', '.join(self._shown())} FROM stored")
        # The parts are the only files from here on, and no setting can be changed back.
        run("SET enable_external_access = false")
        run("SET lock_configuration = true")

    @cached_property
    def columns(self) -> list[str]:
        """The names that a filter may use."""
        named = zip(self.layout.names, self.layout.attributes, strict=True)
        own = [(name, self._label_name(name)) if a.kind == "integer" and a.labels else (name,) for name, a in named]
        return [*itertools.chain.from_iterable(own), *FIGURES, *self._row_names]

    def ask(self, sql: str) -> pa.Table:
        """The answer to a query of our own."""
        return self._stream(sql).read_all()

    def ranked(self, *, where: str | None, top: int | None) -> pa.RecordBatchReader:
        """Cases as codes, worst first, batch after batch."""
        if where is not None and any(name.casefold() in where.casefold() for name in self._row_names):
            self._join_rows()
        clause = "" if where is None else condition(self._connection, where)
        codes = "".join(f"{sql_name(_hidden(i))} AS {sql_name(n)}, " for i, n in enumerate(self.layout.names))
        limit = "" if top is None else f"LIMIT {int(top)}"
        # The filter sees only the view: inside, so that no alias of ours shadows its names.
        inner = f"SELECT * FROM {VIEW} {clause}"
        cursor = self._cursor()
        try:
            with in_time(cursor, where) if where is not None else nullcontext():
                sql = f"SELECT {codes}{', '.join(FIGURES)} FROM (\n{inner}\n) {self._ranked} {limit}"
                reader = pa.RecordBatchReader.from_stream(cursor.sql(sql))
                # Ranking reads everything before it gives anything: whatever can go wrong does so here.
                first = next(iter(reader), None)
        except (duckdb.Error, pa.ArrowException) as error:
            if where is None or _FILTERS_FAULT.match(str(error)) is None:  # perhaps a part is damaged
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
        shown = ", ".join([*self._shown(), *(f"rows_kept.{sql_name(name)}" for name in self._row_names)])
        run(f"CREATE OR REPLACE VIEW {VIEW} AS SELECT {shown} FROM stored LEFT JOIN rows_kept USING (seed_row)")
        self._joined = True

    def seed_rows(self, people: pa.Table) -> pa.Table:
        """The row of the table that people with these codes came from, by their ``PLACE`` among them."""
        cursor, names = self._cursor(), ", ".join(map(sql_name, self.layout.names))
        cursor.register("people", people)
        sql = f"SELECT {sql_name(PLACE)}, seed_row FROM stored JOIN people USING ({names})"
        return pa.RecordBatchReader.from_stream(cursor.sql(sql)).read_all()

    def codes(self) -> pa.RecordBatchReader:
        """The stored attributes of all cases, in the order in which they were found."""
        return self._stream(f"SELECT {', '.join(map(sql_name, self.layout.names))} FROM stored ORDER BY evaluation")

    def content(self) -> tuple[int, int, int]:
        """How many cases there are, and two sums over hashes of each, the time of day left out; in no order."""
        columns = ", ".join(map(sql_name, (*self.layout.names, *(name for name in FIGURES if name not in UNREPEATED))))
        row = self.ask(
            "SELECT count(*) AS n, sum(code)::VARCHAR AS s, bit_xor(hash(code)) AS x "
            f"FROM (SELECT hash({columns}) AS code FROM stored)"
        ).to_pylist()[0]
        return int(row["n"]), int(row["s"] or 0), int(row["x"] or 0)

    def explain(self, error: Exception, where: str) -> OptionError:
        """One sentence about what is wrong with a filter."""
        labels = [label for attribute in self.layout.attributes for label in attribute.labels]
        return explain_filter(error, where, self.columns, labels)

    def _stream(self, sql: str) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_stream(self._cursor().sql(sql))

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor for one answer: one that is not read to its end is in nobody's way."""
        cursor = self._connection.cursor()
        if self._parts and not is_local(self._parts[0].path):  # what is registered is known to one cursor only
            cursor.register("written", elsewhere(self._parts, self.layout))
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
                index = pa.compute.subtract(table.column(position).cast(pa.int64()), int(attribute.low)).cast(
                    pa.int32()
                )
                table = table.set_column(position, table.field(position).name, _dictionary(index, attribute.labels))
        for name, source in zip(WORDS, ("low_twin", "high_twin"), strict=True):
            table = table.append_column(name, _dictionary(table[source], twins))
        return table

    def _shown(self) -> list[str]:
        shown = []
        for i, (name, attribute) in enumerate(zip(self.layout.names, self.layout.attributes, strict=True)):
            quoted = sql_name(name)
            position = f"{quoted}::INTEGER - {int(attribute.low)} + 1" if attribute.labels else ""
            labels = f"list_extract([{', '.join(sql_text(label) for label in attribute.labels)}], {position})"
            number = quoted if attribute.kind == "real" else f"{quoted}::BIGINT"
            if attribute.kind != "category" and attribute.gap is not None:  # a missing number is NULL
                number, position = f"nullif({number}, {attribute.gap:.0f})", f"nullif({position or 0}, 0)"
            shown.append(f"{labels if attribute.kind == 'category' else number} AS {quoted}")
            if attribute.kind == "integer" and attribute.labels:
                shown.append(f"{labels} AS {sql_name(self._label_name(name))}")
            shown.append(f"{quoted} AS {sql_name(_hidden(i))}")
        figures = (f"{name}::INTEGER AS {name}" if kind == pa.int16() else name for name, kind in FIGURES.items())
        return [*shown, *figures]

    def _label_name(self, name: str) -> str:
        taken = {other.casefold() for other in (*self.layout.names, *FIGURES, *WORDS)}
        label = f"{name}_label"
        while label.casefold() in taken:
            label += "_"
        return label


def elsewhere(parts: Sequence[Part], layout: Layout) -> pa.dataset.Dataset:
    """Parts on a remote store as an Arrow dataset."""
    from pyarrow.dataset import dataset
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    place: Any = parts[0].path
    schema = layout.arrow.set(layout.arrow.get_field_index("origin"), pa.field("origin", pa.string()))
    paths = [str(getattr(part.path, "path")) for part in parts]  # noqa: B009 - fsspec's, unknown to pathlib
    return dataset(paths, schema=schema, format="parquet", filesystem=PyFileSystem(FSSpecHandler(place.fs)))


def _hidden(position: int) -> str:
    """The column of the view that keeps a code. A name that nobody gives an attribute by accident."""
    return f"\x01code {position}"


def _dictionary(index: pa.ChunkedArray, values: tuple[str, ...]) -> pa.ChunkedArray:
    words = pa.array(list(values), pa.string())
    try:
        chunks = [pa.DictionaryArray.from_arrays(chunk, words) for chunk in index.chunks]
    except pa.ArrowIndexError:
        raise OptionError(
            "a case has a value that the schema in run.json does not know: one of the two is damaged; restore both "
            "from a copy."
        ) from None
    return pa.chunked_array(chunks, type=pa.dictionary(pa.int32(), pa.string()))
