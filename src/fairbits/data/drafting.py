"""A first ``subject.toml`` for somebody's own model: what a table tells, with comments for what it cannot tell."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import tomlkit

from fairbits.data.subject import Subject, load_subject
from fairbits.domain import Schema
from fairbits.domain.coarsen import coarsened
from fairbits.domain.groups import Group
from fairbits.domain.infer import infer_schema
from fairbits.domain.limits import GrantOptions
from fairbits.domain.table import numbers, plain
from fairbits.domain.toml import document_of_schema
from fairbits.errors import OptionError, TableError

if TYPE_CHECKING:
    import pyarrow as pa

_RULES = (
    "Rules that every person must keep, over names and labels. For example:",
    'rules = [\'age < 18 -> marital_status != "Married"\', "years_employed <= age - 16"]',
)
_ATTRIBUTES = (
    "One section for each attribute, in the order of the table's columns. Besides what is here:",
    "  values = [3, 6, 7]          only these values exist",
    "  immutable = true            not protected, but a search may not change it either",
    '  ranges = {"young" = 21}     the values that twins of a protected number take',
)


@dataclass(frozen=True, slots=True)
class Draft:
    """What is known about a subject before its file is written."""

    schema: Schema
    table: Path
    model: str | None = None
    delimiter: str = ","


def draft_schema(
    data: pa.Table,
    *,
    target: str,
    protected: Iterable[str],
    favourable: str | None,
    groups: Iterable[Group],
    ignored: Iterable[str],
    most_twins: int,
) -> Schema:
    """The schema of a table, with ranges for protected numbers of many values."""
    schema = infer_schema(
        data, target=target, protected=protected, favourable=favourable, groups=groups, ignored=ignored
    )
    holes = [
        f"{a.name} ({data[a.name].null_count:,})"
        for a in schema.attributes
        if a.kind != "category" and data[a.name].null_count
    ]
    if holes:
        raise TableError(f"numbers are missing in {', '.join(holes)}; fill them as your model does, or --ignore them.")
    wide = {a.name: numbers(plain(data[a.name]), a.name) for a in schema.attributes if a.protected and not a.labels}
    return coarsened(schema, wide, most=most_twins)


def write_draft(draft: Draft, out: Path, *, force: bool = False, **grants: Unpack[GrantOptions]) -> Subject | None:
    """Write the file, once the subject that it describes has been loaded from it; gives that subject.

    Nothing is left behind where it cannot be loaded. Without a model there is nothing to load yet.
    """
    if out.exists() and not force:
        raise OptionError(f"{str(out)!r} exists; choose another --out or add --force.")
    trial = out.with_name(f".{out.stem}.{os.getpid()}.toml")
    try:
        trial.write_text(draft_text(draft, out.parent), encoding="utf-8")
        subject = None if draft.model is None else load_subject(trial, **grants)
        trial.replace(out)
    except OSError as error:
        raise OptionError(f"cannot write {str(out)!r}: {error.strerror or error}.") from None
    finally:
        trial.unlink(missing_ok=True)
    return subject


def draft_text(draft: Draft, folder: Path) -> str:
    """The commented file."""
    document = tomlkit.document()
    document.add(tomlkit.comment("Written by `fairbits init`; change what it could not know, then:"))
    document.add(tomlkit.comment("  fairbits measure subject.toml"))
    document.add("name", draft.table.stem)
    document.add(tomlkit.nl())
    for line in _RULES:
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    document.add("model", _model(draft, folder))
    described = document_of_schema(draft.schema)
    document.add("table", _table(described["table"], draft, folder))
    limits = tomlkit.table()
    limits.add("twins", draft.schema.most_twins)
    limits["twins"].comment("combinations of protected values; raise it if you have the time")
    document.add("limits", limits)
    text = tomlkit.dumps(document)
    attributes = tomlkit.document()
    attributes.add("attributes", described["attributes"])
    comments = "".join(f"# {line}\n" for line in _ATTRIBUTES)
    return f"{text.rstrip()}\n\n{comments}\n{tomlkit.dumps(attributes)}"


def _model(draft: Draft, folder: Path) -> Any:
    section = tomlkit.table()
    if draft.model is None:
        section.add(tomlkit.comment('path = "model.npz"   where your model is, seen from this file'))
    else:
        section.add("path", _seen_from(draft.model, folder))
    if any(attribute.columns for attribute in draft.schema.attributes):
        section.add("encoding", "columns")
        section["encoding"].comment("the model takes the table's columns as they are, in their order")
    return section


def _table(section: Any, draft: Draft, folder: Path) -> Any:
    result = tomlkit.table()
    result.add("path", _seen_from(str(draft.table), folder))
    if draft.delimiter != ",":
        result.add("delimiter", draft.delimiter)
    for key, value in section.items():
        result.add(key, value)
    if draft.schema.classes:
        result["favourable"].comment("the class whose probability is the score")
    return result


def _seen_from(path: str, folder: Path) -> str:
    """A path as the file will read it; references to code and addresses stay as they are."""
    if not Path(path).exists():
        return path
    return Path(os.path.relpath(path, folder.resolve())).as_posix()
