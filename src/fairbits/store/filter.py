"""A filter that somebody typed: SQL over the cases and nothing else.

Three walls. The connection may touch no file but the parts, and no more memory than it was given (see ``questions``).
The text must be one condition: it is parsed, and whatever the tree holds must be known to be harmless; functions that
make much of little (lists, repetitions) or that wait are not among what is known. And the answer must come in time.
"""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import duckdb

from fairbits.errors import OptionError, choose_from

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
    if len(found) != 1 or not _is_plain(found[0]["node"]):
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


def may_be_damage(error: Exception) -> bool:
    """Whether an error may come from a damaged part and not from the filter."""
    return _FILTERS_FAULT.match(str(error)) is None


def explain(error: Exception, where: str, columns: Sequence[str], labels: Sequence[str]) -> OptionError:
    """One sentence about what is wrong with a filter."""
    message = str(error)
    unknown = _UNKNOWN_COLUMN.search(message)
    if unknown:
        name = unknown[1]
        if name in labels:
            return OptionError(
                f"the filter {_short(where)} uses {name!r} as a column; put text in single quotes: '{name}'."
            )
        return OptionError(f"the run has no column {name!r}; {choose_from(name, columns, max_shown=60)}")
    missing = _UNKNOWN_FUNCTION.search(message)
    if missing:
        return OptionError(f"the filter {_short(where)} uses the function {missing[1]!r}, which does not exist.")
    return OptionError(f"the filter {_short(where)} cannot be used: {_one_line(message)}")


def _parse(connection: duckdb.DuckDBPyConnection, statement: str, where: str) -> list[dict[str, Any]]:
    try:
        rows = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [statement]).fetchall()
    except duckdb.Error as error:
        raise explain(error, where, (), ()) from None
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


def _is_plain(node: dict[str, Any]) -> bool:
    """Whether the statement is what we wrote around the filter: no union, group, order or limit crept in."""
    extras = ("modifiers", "group_expressions", "having", "sample", "qualify")
    return (
        node["type"] == "SELECT_NODE"
        and node.get("where_clause") is not None
        and not any(node.get(extra) for extra in extras)
    )


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
        what = str(part.get("type") or kind).lower().replace("_", " ")
        raise OptionError(f'the filter {_short(where)} uses a {what}; a filter compares values, e.g. "k >= 8".')
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
    first = re.sub(r"^[A-Z][A-Za-z ]* Error:\s*", "", first)
    return f"{first[:160].rstrip('. ')}."


def _short(where: str) -> str:
    text = " ".join(where.split())
    return repr(text if len(text) <= 60 else text[:59] + "…")
