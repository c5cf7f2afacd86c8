"""Subjects by name: those that are built in, and your own from a subject.toml."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Unpack

from fairbits.data.registry import BUILT_IN, load_table
from fairbits.data.trainer import load_network
from fairbits.domain import GrantOptions
from fairbits.errors import SchemaError, choose_from
from fairbits.subject import Subject, make_subject, subject_of_toml


def load_subject(name_or_toml: str | Path, **grants: Unpack[GrantOptions]) -> Subject:
    """A built-in subject by its name, or your own from a ``subject.toml``.

    Parameters
    ----------
    name_or_toml
        A built-in name, or the path of a ``subject.toml``.
    **grants
        What the files may do, which they cannot say themselves: ``trust_code`` imports code that they name,
        ``trust_pickle`` opens pickles, ``trust`` both; ``credential="NAME"`` gives the endpoint the secret in that
        environment variable; ``max_model_bytes``, ``max_rows`` and ``max_seconds`` bound what is read.
    """
    text = str(name_or_toml)
    if text in BUILT_IN:
        return _built_in(text)
    if text.endswith(".toml") or Path(text).exists():
        return subject_of_toml(Path(text), grants)
    raise SchemaError(
        f"subject {text!r} is neither a file nor built in; {choose_from(text, BUILT_IN)}"
        f" For your own model give an audit file (subject.toml)."
    )


def _built_in(name: str) -> Subject:
    entry, table, test = BUILT_IN[name], load_table(name), None
    held_out = table.held_out
    if entry.own_test_rows and held_out is not None:
        test = replace(table.rows(held_out), held_out=None, numbers=None)
        table = replace(table.training(), numbers=None)  # they came in files of their own, which count from 1
    notes = (f"these people are {table.origin}.",) if entry.synthetic else ()
    return make_subject(
        name, load_network(name), entry.schema, table, encoding=entry.encoding(), test=test, notes=notes, source=name
    )
