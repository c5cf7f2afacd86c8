"""A subject.toml for a table and a model of one's own, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from fairbits.domain import Attribute, GrantOptions, one_hot_groups, read_arrow
from fairbits.errors import OptionError, choose_from
from fairbits.models import ModelOptions
from fairbits.subject import Draft, draft_schema, other_schemas, write_draft

#: Combinations of protected values at most.
MAX_TWINS = 1000


def draft_subject(
    table: str | Path,
    *,
    target: str,
    protected: Iterable[str],
    model: str | None = None,
    favourable: str | None = None,
    threshold: float | None = None,
    ignored: Sequence[str] = (),
    groups: Sequence[Attribute] | None = None,
    max_twins: int = MAX_TWINS,
    delimiter: str = ",",
    out: str | Path = "subject.toml",
    force: bool = False,
    as_is: bool = False,
    options: ModelOptions | None = None,
    data: pa.Table | None = None,
    **grants: Unpack[GrantOptions],
) -> Draft:
    """Infer what people are made of from a table, and write a commented subject.toml; what ``fairbits init`` does."""
    check_draft(out, force=force)
    found = read_arrow(table, delimiter=delimiter) if data is None else data
    check_ignored(ignored, found)
    if groups is None:
        groups = list(one_hot_groups(found, leave_out=(target, *ignored)))
    asked: dict[str, Any] = {
        "target": target,
        "protected": list(protected),
        "favourable": favourable,
        "groups": list(groups),
        "ignored": tuple(ignored),
        "max_twins": max_twins,
        "threshold": threshold,
    }
    schema = draft_schema(found, **asked)
    others = other_schemas(found, schema, **asked)
    draft = Draft(schema, Path(table), model, delimiter, options or ModelOptions(), others=others, data=found)
    return write_draft(draft, Path(out), force=force, as_is=as_is, **grants)


def check_draft(out: str | Path, *, force: bool) -> None:
    """Refuse a file that is there already."""
    if Path(out).exists() and not force:
        raise OptionError(f"{str(out)!r} exists; choose another --out or add --force.")


def check_ignored(ignored: Sequence[str], data: pa.Table) -> None:
    """Refuse to leave out what is not there."""
    for name in ignored:
        if name not in data.column_names:
            remedy = choose_from(name, data.column_names)
            raise OptionError(f"--ignore names {name!r}, which is not in the table; {remedy}")
