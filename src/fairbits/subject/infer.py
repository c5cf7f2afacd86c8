"""A first schema from nothing but a table: kinds, domains, labels, and columns that say nothing about a person."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import (
    AMOUNT,
    MAX_WHOLE,
    MISSING,
    Attribute,
    Category,
    Holds,
    Integer,
    Real,
    Schema,
    arrow_of,
    numbers,
    plain,
    text_of,
    values_of,
)
from fairbits.errors import SchemaError, TableError, choose_from

#: A target with at most this many different whole numbers is a class; with more it is a regression.
MAX_CLASSES = 20
#: A dictionary of numbers (a pandas category of them) with at most this many is a category.
MAX_NUMBERS = 1000
#: A protected column of at most so many different whole numbers with gaps between them holds codes, where each has on
#: average at least so many rows.
MAX_CODES, ROWS_PER_CODE = 20, 5
#: In a shorter table, values that all differ say nothing yet.
MIN_ROWS = 20
#: Text of which so many of the rows have a value of their own names people, and is nothing that they share.
DISTINCT = 0.9

_IDENTIFIER = re.compile(
    r"(^|[_\W])(id|ids|uuid|guid|index|key|nr|no|num|number|rowid|ssn|account|acct|ref|reference|serial|record|case"
    r"|person|customer|client|applicant|patient|employee|member|user)$"
    r"|^(unnamed: \d+|__index_level_\d+__)?$",
    re.IGNORECASE,
)
_INNER_ID = re.compile(r"[a-z]I[Dd]$")  # customerId
#: Numbers that name a place or an office: nobody has one more of them.
_PLACE = re.compile(
    r"(^|[_\W])(zips?|zip_?code|post_?code|postal(_?code)?|plz|fips|(census_?)?tract|county_?code|msa"
    r"|branch(_?(id|code|no))?|store(_?(id|no))?|school_?id|region_?(id|code)|area_?code|sic|naics)(_?\d+)?$"
    r"|[a-z](Zip|PostCode|PostalCode)$",
    re.IGNORECASE,
)
_TIME = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?")
_MONTHS = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DATE = re.compile(
    r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T]\d{1,2}:\d{2}.*)?"
    rf"|\d{{1,2}}[- ./]?{_MONTHS}[- ,./]+\d{{2,4}}"  # 3 Jan 2022
    rf"|{_MONTHS.replace('(', '(?:', 1)}[- ]\d{{1,2}},? \d{{4}}"  # January 3, 2022
    rf"|{_MONTHS.replace('(', '(?:', 1)}[- ]\d{{2,4}}",  # Dec-2015
    re.IGNORECASE,
)
#: Whole numbers from and to which yyyymmdd is a date that people of a table have.
_FIRST_DAY, _LAST_DAY = 18_000_101, 21_991_231


def infer_schema(
    table: Any,
    *,
    target: str | None = None,
    protected: str | Iterable[str] = (),
    favourable: object = None,
    groups: Iterable[Attribute] = (),
    ignored: Iterable[str] = (),
    everything: bool = False,
    threshold: float | None = None,
) -> Schema:
    """The narrowest schema that holds every row of a table.

    Dates, identifiers and empty columns are left out, and ``schema.notes`` says so; protected ones never are. Numbers
    that are missing are left to the model (``missing = "model"``).

    Parameters
    ----------
    table
        A file, or an Arrow, pandas or polars table.
    target
        The column that the model predicts.
    protected
        The protected attributes.
    favourable
        The value of the target whose probability is the score; by default the last class.
    groups
        Columns that are one category together.
    ignored
        Columns to leave out.
    everything
        Keep dates, identifiers and empty columns, for a model that takes them.
    threshold
        The probability from which on a decision between two classes is favourable; 0.5 by default.

    Returns
    -------
    Schema
        One attribute for each column that is left.

    Raises
    ------
    TableError
        If a column that was named is not in the table, or the table cannot be read.
    """
    data = arrow_of(table)
    classes = infer_classes(data, target)
    chosen = (protected,) if isinstance(protected, str) else tuple(protected)
    by_first = {group.own_columns[0]: group for group in groups}
    inside = {column: group for group in by_first.values() for column in group.own_columns}
    left_out = {target, *ignored}
    columns = [name for name in data.column_names if name not in left_out and inside.get(name) is by_first.get(name)]
    names = [by_first[name].name if name in by_first else name for name in columns]
    for name in chosen:
        if name == target:
            raise SchemaError(
                f"target {target!r} cannot be protected as well; leave it out of the protected attributes."
            )
        if name not in names:
            raise TableError(f"protected attribute {name!r} is not in the table; {choose_from(name, names)}")
    idle = {} if everything else {n: no_attribute(n, data[n]) for n in columns if n not in (*chosen, *by_first)}
    reasons = {name: why for name, why in idle.items() if why}
    attributes = tuple(
        replace(by_first[name], protected=by_first[name].name in chosen)
        if name in by_first
        else infer_attribute(name, data[name], protected=name in chosen)
        for name in columns
        if name not in reasons
    )
    if not attributes:
        why = _reasons_text(reasons) or "it has none but the target"
        raise TableError(f"no column of the table tells anything about people ({why}); give a table with attributes.")
    notes: tuple[str, ...] = (f"left out of the schema: {_reasons_text(reasons)}.",) if reasons else ()
    notes += tuple(note for a in attributes for note in _name_notes(a))
    named = None if favourable is None else text_of(favourable)
    return Schema(attributes, target, classes, named, threshold=threshold, order_guessed=True, notes=notes)


def _name_notes(attribute: Attribute) -> tuple[str, ...]:
    """A note on numbers that were taken for names."""
    if attribute.kind == "integer" and attribute.allowed:
        return (
            f"the numbers of {attribute.name} name something and are no amounts, so only the {attribute.count:,} of "
            f"the table exist (values = [...] lists them).",
        )
    zeros = next((label for label in attribute.labels if re.fullmatch(r"0\d+", label)), None)
    if attribute.kind != "category" or zeros is None or attribute.columns:
        return ()
    return (f"{attribute.name} is a category of {attribute.count:,} values, since {zeros!r} begins with a zero.",)


def _reasons_text(reasons: dict[str, str]) -> str:
    return ", ".join(f"{name.strip() or 'a column without a name'} ({why})" for name, why in reasons.items())


def no_attribute(name: str, column: Any) -> str:  # noqa: PLR0911 - one per kind of column
    """The reason why a column says nothing about what a person is like."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_temporal(kind):
        return "dates" if pa.types.is_date(kind) or pa.types.is_timestamp(kind) else "times"
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return f"{str(kind)[:40]}, neither text nor numbers"
    values = plain(column)
    if values.null_count == len(values):
        return "empty"
    present = values.drop_null()
    different = pc.count_distinct(present).as_py()
    if pa.types.is_string(values.type):
        texts = present.unique().to_pylist()
        for how, what in ((_DATE, "dates"), (_TIME, "times")):
            if all(how.fullmatch(text.strip()) for text in texts):
                return what
        if len(present) < MIN_ROWS or different <= DISTINCT * len(present):
            return ""
        if all(AMOUNT.fullmatch(text) for text in texts):
            return f"numbers written as text, such as {present[0]}; write them as 1234.56"
        return "identifiers: nearly every row has a value of its own"
    if pa.types.is_floating(values.type):
        return ""
    found = numbers(present, name)
    if np.abs(found).max() > MAX_WHOLE:
        return "whole numbers beyond 1e15, which are not exact"
    if _are_days(found):
        return "dates"
    if values.null_count == 0 and len(values) >= MIN_ROWS and (np.diff(found) == 1).all():
        return "identifiers: it counts the rows"
    named = _IDENTIFIER.search(name) is not None or _INNER_ID.search(name) is not None
    own = named and different == len(values) >= MIN_ROWS
    return "identifiers: every row has its own number" if own else ""


def _are_days(found: npt.NDArray[np.float64]) -> bool:
    """Whether all whole numbers are dates written as yyyymmdd."""
    values = np.unique(found)
    if values[0] < _FIRST_DAY or values[-1] > _LAST_DAY:
        return False
    month, day = values // 100 % 100, values % 100
    return len(values) > 1 and bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())


def infer_attribute(name: str, column: Any, *, protected: bool = False) -> Attribute:
    """The attribute that a column holds.

    Text, truth values and pandas categories are categories, whole numbers are integers, other numbers are real.
    """
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    listed = pa.types.is_dictionary(column.type)
    column = plain(column)
    missing = column.null_count > 0
    if len(column) == column.null_count:
        if pa.types.is_string(column.type):
            return Category(name=name, labels=(MISSING,), protected=protected)
        return Integer(name=name, high=0, missing="model", protected=protected)
    holds: Holds | None = None
    if pa.types.is_string(column.type):
        found = sorted(set(column.drop_null().to_pylist()))
        if pa.types.is_temporal(kind) and not pa.types.is_time(kind):
            holds = "date"
        elif not pa.types.is_boolean(kind):
            seen = values_of(Category(name="x", labels=tuple(found)))
            holds = None if seen.dtype == object else "text"  # "1" and "true" would be taken for numbers and truths
    else:
        values = numbers(column.drop_null(), name)
        only, floats = np.unique(values), pa.types.is_floating(column.type)
        if not listed or len(only) > MAX_NUMBERS:
            whole = bool((only == np.rint(only)).all()) and (not floats or np.abs(only).max() <= MAX_WHOLE)
            allowed = tuple(places_of(name, values, protected=protected).tolist()) if whole else ()
            asked: dict[str, Any] = {"protected": protected, "missing": "model" if missing else None}
            make = Integer if whole else Real
            return make(name=name, low=float(only[0]), high=float(only[-1]), allowed=allowed, **asked)
        found = [text_of(float(value)) for value in only]
    return Category(name=name, labels=(*found, *([MISSING] * missing)), protected=protected, holds=holds)


def places_of(name: str, values: Any, *, protected: bool = False) -> Any:
    """The values of a column of whole numbers that are names: postal codes, or protected codes with gaps between them.

    Nobody has race 3 where the table knows 1, 2, 6 and 9.
    """
    found = np.unique(values)
    if _PLACE.search(name) or not protected:
        return found if _PLACE.search(name) and 2 < len(found) <= MAX_NUMBERS else found[:0]
    gaps = 1 < len(found) <= MAX_CODES and found[-1] - found[0] >= len(found)
    return found if gaps and len(values) >= ROWS_PER_CODE * len(found) else found[:0]


def infer_classes(data: Any, target: str | None) -> tuple[str, ...]:
    """The classes of a target in sorted order, as a classifier would number them; none for a regression."""
    if target is None:
        return ()
    if target not in data.column_names:
        raise TableError(f"target {target!r} is not in the table; {choose_from(target, data.column_names)}")
    values = [value for value in plain(data[target]).unique().to_pylist() if value is not None]
    if not values:
        raise TableError(f"target {target!r} has no value in any row; name another column, or fill it.")
    continuous = any(isinstance(v, float) and not v.is_integer() for v in values)
    numeric = all(isinstance(v, int | float) for v in values)
    if continuous or (numeric and len(values) > MAX_CLASSES):
        return ()
    return tuple(text_of(value) for value in sorted(values))
