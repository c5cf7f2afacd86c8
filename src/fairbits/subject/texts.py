"""The subject of an audit file with ``kind = "text"``: people of a table, put into words, and what decides about them.

Its attributes are the slots: columns of the table, and protected ones that the cues of the first family speak of. A
table that does not say who is what has every person once under each combination, as a table of twins has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import Category, Schema, Table, arrow_of, table_from_arrow, whole_column
from fairbits.errors import SchemaError, TableError, choose_from
from fairbits.language import (
    REALISATIONS,
    Chat,
    ChatOptions,
    CueFamily,
    EncodedNetwork,
    FunctionDecider,
    TextModel,
    Wording,
    read_cues,
    read_template,
    templates_of_texts,
)
from fairbits.models import DEFAULTS, Loaded, ModelOptions, TokenClassifier, is_url, read_decider, secret_note
from fairbits.shape import Keys, check_section, fits
from fairbits.subject.infer import infer_classes, infer_schema
from fairbits.subject.subject import Subject, make_subject
from fairbits.text import shortened

#: What is decided about a text, where only a function's score is known.
CLASSES = ("unfavourable", "favourable")
_TEXT_KEYS: Keys = {
    **dict.fromkeys(("template", "column"), (str, "it must be text in quotes.")),
    "realisations": (int, "it must be a whole number, 1 or more."),
    "protected": (list[str], 'it must be a list, e.g. ["sex", "race"].'),
    **dict.fromkeys(("families", "words"), (Any, "")),
}
CHAT_KEYS = ("options", "model", "system", "answers", "temperature", "price")
#: The slot that words of a column of texts become.
_WORD = "word"


def subject_of_texts(
    decider: Any,
    table: Any,
    text: Mapping[str, Any],
    *,
    folder: Path,
    chat: Mapping[str, Any] | None = None,
    favourable: str | None = None,
    threshold: float | None = None,
    target: str | None = None,
    split: str | None = None,
    person: str | None = None,
    weight: str | None = None,
    encoder: Any = None,
    tokenizer: str | Path | None = None,
    name: str = "text",
    source: str | None = None,
    answers: Path | None = None,
    options: ModelOptions = DEFAULTS,
) -> Subject:
    """The subject of a decider about texts; ``text`` is what [text] says."""
    check_section(text, _TEXT_KEYS, "[text]")
    if ("template" in text) == ("column" in text):
        raise SchemaError("[text] needs a template, or the name of a column of texts, and not both.")
    if text.get("realisations", 1) < 1:
        raise SchemaError(f"[text] realisations is {text['realisations']}; give 1 or more, e.g. 8.")
    file = Path(table) if isinstance(table, str | Path) else None
    data = arrow_of(table, max_rows=options.max_rows)
    families = _families(text, folder)
    known = infer_classes(data, target)
    if tokenizer is not None and encoder is not None:
        raise SchemaError("[model] has an encoder and a tokenizer; leave out one of both.")
    asked = decider
    stated = options.score_of
    if tokenizer is not None:
        if len(known) == 2 and stated in known:
            favourable, known = favourable or known[-1], tuple(sorted(known, key=lambda one: one == stated))
        asked = TokenClassifier(decider, tokenizer, classes=known or None, options=options)
    made = _decider(asked, chat or {}, favourable, options, answers, encoder)
    named = getattr(made, "classes", None)
    if named and stated is not None:
        if len(named) > 2 or stated != named[-1]:
            raise SchemaError(
                f"score_of is {stated!r}, but the model's outputs are those of {', '.join(named)}; leave score_of out."
            )
        options = replace(options, score_of=None)  # settled: the order of the outputs says it
    classes = named or known or CLASSES
    if favourable is not None and favourable not in classes:
        raise SchemaError(f"favourable is {favourable!r}; {choose_from(favourable, classes)}")
    decided = {"classes": classes, "favourable": favourable or classes[-1], "threshold": threshold, "target": target}
    read = _of_column if "column" in text else _of_template
    aside = {"file": file, "split": split, "person": person, "weight": weight}
    schema, people, wordings, notes = read(text, data, families, decided, aside)
    model = TextModel(made, schema, wordings)
    if isinstance(asked, TokenClassifier):
        notes = (*notes, *asked.notes)
    if isinstance(made, Chat):
        notes = (*notes, *secret_note(made.url, options))
    return make_subject(
        name,
        Loaded(model, model.decoder.encoding),
        schema,
        people,
        options=options,
        notes=notes,
        source=source,
        original=decider if isinstance(decider, str | Path) else made,
    )


def _families(text: Mapping[str, Any], folder: Path) -> dict[str, tuple[str | None, dict[str, CueFamily]]]:
    """By family: its own template, if it has one, and the cues for each of its slots."""
    stated = text.get("families")
    if not isinstance(stated, Mapping) or not stated:
        example = '[text.families.names] with person = "first-names-sex"'
        raise SchemaError(f"the text names no cues; write e.g. {example}, where person is a slot of the template.")
    found = {}
    for name, section in stated.items():
        if not isinstance(section, Mapping) or not {*section} - {"template"}:
            raise SchemaError(f'[text.families.{name}] names no slot; write e.g. person = "first-names-sex".')
        cues = {slot: read_cues(one, folder, slot) for slot, one in section.items() if slot != "template"}
        wanted = text.get("protected")
        if wanted is not None:
            cues = {slot: one.only([each for each in one.attributes if each in wanted]) for slot, one in cues.items()}
            lost = next((slot for slot, one in cues.items() if not one.attributes), None)
            if lost is not None:
                raise SchemaError(
                    f"the cues of {lost!r} say nothing about {', '.join(wanted)}; check [text] protected."
                )
        template = section.get("template")
        if not fits(template, str | None):
            raise SchemaError(f"[text.families.{name}] template is {str(template)[:40]!r}; it must be a text.")
        found[name] = (template, cues)
    return found


def _decider(
    decider: Any,
    chat: Mapping[str, Any],
    favourable: str | None,
    options: ModelOptions,
    answers: Path | None,
    encoder: Any,
) -> Any:
    if isinstance(decider, str) and is_url(decider):
        given = dict(chat)
        stated = given.pop("options", ["no", "yes"])
        if not fits(stated, list[str] | tuple[str, ...]):
            raise SchemaError('[model] options must be a list of at least two words, e.g. ["no", "yes"].')
        price = given.pop("price", None)
        if price is not None and not (fits(price, list[float]) and len(price) == 2 and min(price) >= 0):
            raise SchemaError(
                f"[model] price is {str(price)[:40]!r}; give a million tokens in, and out, e.g. [0.5, 1.5]."
            )
        kinds = {"model": str, "system": str, "answers": int, "temperature": float}
        for key, kind in kinds.items():
            if key in given and not (fits(given[key], kind) and (kind is str or given[key] >= 0)):
                must = "a text in quotes" if kind is str else "a number of 0 or more"
                raise SchemaError(f"[model] {key} is {str(given[key])[:40]!r}; it must be {must}.")
        asked = ChatOptions(
            options=tuple(stated),
            favourable=favourable or stated[-1],
            price=None if price is None else (float(price[0]), float(price[1])),
            **given,
        )
        return Chat(decider, asked, options, answers)
    if chat:
        raise SchemaError(f"[model] has {next(iter(chat))!r}, which only a language model takes; leave it out.")
    if encoder is not None:
        encode = read_decider(encoder, options) if isinstance(encoder, str | Path) else encoder
        return EncodedNetwork(encode, decider, options=options)
    found = read_decider(decider, options) if isinstance(decider, str | Path) else decider
    return found if isinstance(found, EncodedNetwork) else FunctionDecider(found, favourable=favourable)


def _of_template(
    text: Mapping[str, Any],
    data: Any,
    families: Mapping[str, Any],
    decided: Mapping[str, Any],
    aside: Mapping[str, Any],
) -> tuple[Schema, Table, dict[str, Wording], tuple[str, ...]]:
    """One template for everybody: its slots are columns of the table, or filled by cues."""
    first = next(iter(families.values()))[1]
    count = text.get("realisations", REALISATIONS)
    wordings = {}
    words = _words(text, data)
    for slot, choices in words.items():
        data = data.append_column(slot, [[choices[0]] * data.num_rows])
    for name, (template, cues) in families.items():
        told = {one for family in cues.values() for one in family.attributes}
        both = next((slot for slot in cues if slot in data.column_names and slot not in told), None)
        if both is not None:
            raise SchemaError(f"{both!r} is a slot of {name!r} and a column of the table; choose another name.")
        columns = [column for column in data.column_names if column not in {*told, *cues}]
        read = read_template(text["template"] if template is None else template, columns, list(cues))
        wordings[name] = Wording(name, cues, read, realisations=count)
    used = [one for one in data.column_names if any(one in each.columns for each in wordings.values())]
    protected = next(iter(wordings.values())).values
    known = [name for name in protected if name in data.column_names]
    real = [one for one in used if one not in words]
    for one in real:  # a text cannot leave open what its template says
        whole_column(data, one, "column")
    inferred = (
        *(infer_schema(data.select(real), everything=True).attributes if real else ()),
        *(Category(name=slot, labels=tuple(words[slot])) for slot in used if slot in words),
    )
    attributes = (*inferred, *(Category(name=name, labels=one, protected=True) for name, one in protected.items()))
    schema = Schema(attributes, **decided)
    if len(known) == len(protected):
        return schema, table_from_arrow(data, schema, **aside), wordings, ()
    if known:
        lost = next(name for name in protected if name not in known)
        raise TableError(f"the table has {known[0]!r} and not {lost!r}; it needs all protected attributes, or none.")
    if inferred or decided["target"] is not None:
        given = table_from_arrow(data, Schema(inferred, **decided), **aside)
    else:
        given = Table(np.empty((1, 0)), file=aside["file"])
    return (
        schema,
        crossed(given, [len(one) for one in protected.values()]),
        wordings,
        (
            f"the table does not say {', '.join(protected)}: each of its {len(given):,} rows stands once for every "
            f"combination, in the words of {next(iter(families))!r} ({', '.join(one.name for one in first.values())}).",
        ),
    )


def _words(text: Mapping[str, Any], data: Any) -> dict[str, list[str]]:
    """Slots with words that a search may put in instead of the first one, which everybody in the table has."""
    words = text.get("words", {})
    if not fits(words, dict[str, list[str]]):
        raise SchemaError('[text.words] must have lists of words, e.g. verb = ["asks", "wants"].')
    for slot, choices in words.items():
        if len(choices) < 2 or len(set(choices)) < len(choices) or not all(map(str.strip, choices)):
            raise SchemaError(f"[text.words] {slot} is {str(choices)[:40]!r}; give two different words or more.")
        if slot in data.column_names:
            raise SchemaError(f"[text.words] has {slot!r}, which is a column of the table; choose another name.")
    return dict(words)


def crossed(given: Table, sizes: list[int]) -> Table:
    """Every row of a table under every combination of protected values, each row one person if no id says whose."""
    grid = np.stack(np.meshgrid(*(np.arange(size) for size in sizes), indexing="ij"), axis=-1).reshape(-1, len(sizes))
    row = np.repeat(np.arange(len(given)), len(grid))
    rows = given.rows(row)
    whole = np.column_stack([rows.codes, np.tile(grid, (len(given), 1))]).astype(np.float64)
    person = row if given.person is None else rows.person
    return replace(rows, codes=np.ascontiguousarray(whole), numbers=row + 1, person=person)


def _of_column(
    text: Mapping[str, Any],
    data: Any,
    families: Mapping[str, Any],
    decided: Mapping[str, Any],
    aside: Mapping[str, Any],
) -> tuple[Schema, Table, dict[str, Wording], tuple[str, ...]]:
    """A column of texts: the words in it that are cues of the first family become slots."""
    column = text["column"]
    if column not in data.column_names:
        raise TableError(
            f"the column of texts {column!r} is not in the table; {choose_from(column, data.column_names)}"
        )
    if len(families) > 1 or any(slots.keys() != {_WORD} for _, slots in families.values()):
        raise SchemaError(f'a column of texts takes one family with the slot {_WORD!r}, e.g. word = "first-names-sex".')
    ((name, (_, cues)),) = families.items()
    texts = [str(one or "") for one in data[column].to_pylist()]
    templates, found = templates_of_texts(texts, cues[_WORD])
    kept = [i for i, values in enumerate(found) if values is not None]
    if not kept:
        raise TableError(f"no text in {column!r} has words of {cues[_WORD].name!r} for one value; check the cues.")
    unique = {template: place for place, template in enumerate(dict.fromkeys(templates[i] for i in kept))}
    said = [re.sub(r"%\(([\w.]+)\)s", r"{\1}", template).replace("%%", "%") for template in unique]
    labels = [f"{place}: {shortened(text, 60)}" for place, text in enumerate(said, 1)]
    count = text.get("realisations", REALISATIONS)
    wording = Wording(name, cues, column=column, texts=tuple(unique), realisations=count)
    protected = [Category(name=one, labels=values, protected=True) for one, values in wording.values.items()]
    schema = Schema((Category(name=column, labels=tuple(labels)), *protected), **decided)
    told = {one.name: values for one, values in zip(protected, zip(*filter(None, found), strict=True), strict=True)}
    given = data.take(kept)
    for each, values in {column: [labels[unique[templates[i]]] for i in kept], **told}.items():
        rest = given.drop_columns(each) if each in given.column_names else given
        given = rest.append_column(each, [values])
    left_out = (
        f"{len(texts) - len(kept):,} of {len(texts):,} texts are left out: they have no word of "
        f"{cues[_WORD].name!r}, or words for different values or forms."
    )
    people = replace(table_from_arrow(given, schema, **aside), numbers=np.array(kept) + 1)
    return schema, people, {name: wording}, (left_out,) if len(kept) < len(texts) else ()
