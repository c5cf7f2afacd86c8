"""The commented text of a first ``subject.toml``."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit

from fairbits.domain import harmless
from fairbits.subject.toml import document_of_schema

if TYPE_CHECKING:
    from fairbits.subject.draft import Draft

_RULES = (
    "Rules that every person must keep, over names and labels. For example:",
    'rules = [\'age < 18 -> marital_status != "Married"\', "years_employed <= age - 16"]',
)
#: Keys of [model] that help where a model does not fit at once.
_MODEL_HINTS = (
    'score_of = "approved"                  the class that a single output speaks of',
    'output = "logit"                       what comes out: probability, logit or value',
    'input_format = "array"                 what goes in: frame, array or codes',
    'columns = ["age", "income"]            the columns that it sees, in its order',
    'inputs = {x_num = ["age", "income"]}   the attributes that go into each of several inputs',
    'factory = "package.module:function"    what builds the module that a file of weights belongs to',
)
#: Reasons that are mended there speak of it.
_TABLE = "under [table]"
_ATTRIBUTES = (
    "One section for each attribute, in the order of the table's columns. Besides what is here:",
    "  values = [3, 6, 7]          only these values exist",
    "  immutable = true            not protected, but a search may not change it either",
    '  protected = "observed"      protected, in the table, and no input of the model',
    '  ranges = {"young" = 21}     the values that twins of a protected number take',
    '  missing = "model"           people may lack it, and the model fills its own gaps',
    '  missing = "value"           the same, and twins of a protected attribute may lack it too',
)


def draft_text(draft: Draft, out: Path) -> str:
    """The commented text of a subject file."""
    folder = out.parent
    document = tomlkit.document()
    document.add(tomlkit.comment("Written by `fairbits init`; change what it could not know, then:"))
    document.add(tomlkit.comment(f"  fairbits measure {out.name}"))
    document.add("name", draft.table.stem)
    document.add(tomlkit.nl())
    for line in _RULES:
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    document.add("model", _model(draft, folder))
    described = document_of_schema(draft.schema)
    document.add("table", _table(described["table"], draft, folder))
    limits = tomlkit.table()
    limits.add("twins", draft.schema.max_twins)
    limits["twins"].comment("combinations of protected values; raise it if you have the time")
    document.add("limits", limits)
    text = tomlkit.dumps(document)
    attributes = tomlkit.document()
    attributes.add("attributes", described["attributes"])
    notes = (harmless(note[:1].upper() + note[1:]) for note in draft.schema.notes)
    left_out = [line for note in notes for line in textwrap.wrap(note, 110)]
    comments = "".join(f"# {line}\n" for line in (*_ATTRIBUTES, *left_out))
    return f"{text.rstrip()}\n\n{comments}\n{tomlkit.dumps(attributes)}"


def _model(draft: Draft, folder: Path) -> Any:
    section = tomlkit.table()
    at_table = draft.trouble is not None and _TABLE in draft.trouble
    if draft.trouble is not None and not at_table:
        _explain(section, "The model does not fit yet:", draft.trouble)
    if draft.model is None:
        section.add(tomlkit.comment('path = "model.npz"   where your model is, seen from this file'))
    else:
        section.add("path", _seen_from(draft.model, folder))
    for key, value in draft.options.section().items():
        section.add(key, value)
    if "score_of" in section:
        section["score_of"].comment(_why(draft))
    if any(attribute.columns for attribute in draft.schema.attributes):
        section.add("encoding", "columns")
        section["encoding"].comment("the model takes the table's columns as they are")
    if draft.trouble is not None or draft.model is None:
        for line in _MODEL_HINTS:
            if line.partition(" ")[0] not in section:
                section.add(tomlkit.comment(line))
    return section


def _why(draft: Draft) -> str:
    """How it is known which class the output speaks of."""
    what = "the class that the model's one output speaks of"
    if draft.said_by_labels is None:
        return what
    return f"{what}; so its scores agree with the labels (AUC {draft.said_by_labels:.2f})"


def _explain(section: Any, title: str, reason: str) -> None:
    """A reason as a comment of several lines, where it can be mended."""
    for line in (title, *textwrap.wrap(harmless(reason), 100)):
        section.add(tomlkit.comment(line))


def _table(section: Any, draft: Draft, folder: Path) -> Any:
    result = tomlkit.table()
    if draft.trouble is not None and _TABLE in draft.trouble:
        _explain(result, "The model does not agree with this table yet:", draft.trouble)
    result.add("path", _seen_from(str(draft.table), folder))
    if draft.delimiter != ",":
        result.add("delimiter", draft.delimiter)
    for key, value in section.items():
        result.add(key, value)
    if draft.schema.classes:
        result["favourable"].comment("the class whose probability is the score")
    if len(draft.schema.classes) == 2 and "threshold" not in result:
        result.add(tomlkit.comment("threshold = 0.5   a decision is favourable from this probability on"))
    return result


def _seen_from(path: str, folder: Path) -> str:
    """A path as the file will read it; references to code and addresses stay as they are."""
    if not Path(path).exists():
        return path
    return Path(os.path.relpath(path, folder.resolve())).as_posix()
