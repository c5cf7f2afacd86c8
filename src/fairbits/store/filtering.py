"""A filter that somebody typed: SQL over the cases and nothing else.

Two walls. The connection may touch no file but the parts (see ``questions``). And the text must be one condition:
it is parsed, and the tree is searched for anything that reads from elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb

from fairbits.errors import OptionError, choose_from

VIEW = "cases"
_UNKNOWN_COLUMN = re.compile(r'column "(.+?)" not found', re.IGNORECASE)
_UNKNOWN_FUNCTION = re.compile(r"Function with name (\S+) does not exist", re.IGNORECASE)
_FILTERS_FAULT = re.compile(
    r"(Binder|Parser|Catalog|Conversion|Out of Range|Permission|Not implemented) Error", re.IGNORECASE
)
_NODES = ("SELECT_NODE", "SET_OPERATION_NODE")


def condition(connection: duckdb.DuckDBPyConnection, where: str) -> str:
    """The filter as the end of a statement, once it is known to be harmless."""
    if not where.strip():
        raise OptionError('the filter is empty; write e.g. "k >= 8", or leave --where out.')
    # A line of its own, so that a comment in the filter does not swallow the bracket.
    clause = f"WHERE (\n{where}\n)"
    found = _parse(connection, f"SELECT * FROM {VIEW} {clause}", where)
    if len(found) != 1 or not _is_plain(found[0]["node"]):
        raise OptionError(f'the filter {_short(where)} is more than one condition; write e.g. "k >= 8 and flips".')
    for part in _dicts(found[0]):
        if _reads_elsewhere(part):
            raise OptionError(f"the filter {_short(where)} reads from elsewhere; it may only look at the run's cases.")
    return clause


def may_be_damage(error: Exception) -> bool:
    """Whether an error may come from a broken part and not from the filter."""
    return _FILTERS_FAULT.match(str(error)) is None


def explain(error: Exception, where: str, columns: Sequence[str], labels: Sequence[str]) -> OptionError:
    """What DuckDB says about a filter, in one sentence."""
    message = str(error)
    unknown = _UNKNOWN_COLUMN.search(message)
    if unknown:
        name = unknown[1]
        if name in labels:
            return OptionError(
                f"the filter {_short(where)} uses {name!r} as a column; put text in single quotes: '{name}'."
            )
        return OptionError(f"the run has no column {name!r}; {choose_from(name, columns, most=60)}")
    missing = _UNKNOWN_FUNCTION.search(message)
    if missing:
        return OptionError(f"the filter {_short(where)} uses the function {missing[1]!r}, which does not exist.")
    return OptionError(f"the filter {_short(where)} cannot be used: {_one_line(message)}")


def _parse(connection: duckdb.DuckDBPyConnection, statement: str, where: str) -> list[dict[str, Any]]:
    try:
        rows = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [statement]).fetchall()
    except duckdb.Error as error:
        raise explain(error, where, (), ()) from None
    found: dict[str, Any] = json.loads(rows[0][0])
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
