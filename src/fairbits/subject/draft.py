"""A first ``subject.toml`` for somebody's own model: what a table tells, with comments for what it cannot tell.

Where a model does not say what it was trained on, the ways in which its table can be read are tried one by one.
"""

from __future__ import annotations

import os
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt
import tomlkit

from fairbits.domain import (
    Attribute,
    Codes,
    Encoding,
    GrantOptions,
    Integers,
    RawTable,
    Schema,
    Table,
    arrow_of,
    coarsened,
    numbers,
    one_hot_groups,
    plain,
    rule_name,
    table_from_arrow,
    with_held,
)
from fairbits.errors import FairbitsError, OptionError, SchemaError, TableError
from fairbits.models import DEFAULTS, ModelOptions, attribute, order_note, read_model, speaks_of
from fairbits.subject.export import document_of_schema
from fairbits.subject.infer import infer_schema
from fairbits.subject.quality import against_labels, quality_of
from fairbits.subject.subject import Subject, make_subject
from fairbits.subject.toml import chances_of_section, subject_of_toml
from fairbits.text import harmless

if TYPE_CHECKING:
    import pyarrow as pa


_RULES = (
    "Rules that every person must keep, over names and labels: twins that break one are never asked. For example:",
    'rules = [\'age < 18 -> marital_status != "Married"\', "years_employed <= age - 16"]',
)
_PLAUSIBLE = (
    "Rules for plausible twins: everybody is asked, and figures among plausible twins stand beside those among all.",
)
_PROPOSED = "Those below are pairs of values that hardly ever meet in the table. Another kind:"
_NONE_PROPOSED = "No two values were found that hardly ever meet in the table. An example of another kind:"
#: Proposed rules that a file shows.
MAX_PROPOSED = 100
#: Keys of [model] that help where a model does not fit at once.
_MODEL_HINTS = (
    'score_of = "approved"                  the class that a single output speaks of',
    'output = "logit"                       what comes out: probability, logit or value',
    'input_format = "array"                 what goes in: frame, array or codes',
    'columns = ["age", "income"]            the columns that it sees, in its order',
    'inputs = {x_num = ["age", "income"]}   the attributes that go into each of several inputs',
    'factory = "package.module:function"    what builds the module that a file of weights belongs to',
)
#: What makes figures better where a table has it.
_TABLE_HINTS = (
    'test = "test.csv"   rows that the model has not seen: accuracy and repairs are judged on them',
    'split = "column"    the same, where a column of this table says which rows those are',
    'person = "column"   whose row it is, where people have several',
)
#: Reasons that are mended there speak of it.
_TABLE = "under [table]"
_ATTRIBUTES = (
    "One section for each attribute, in the order of the table's columns. Besides what is here:",
    "  values = [3, 6, 7]          only these values exist",
    "  immutable = true            not protected, but a search may not change it either",
    '  protected = "observed"      protected, in the table, and no input of the model',
    '  protected = "probabilities" the columns are probabilities of its groups: columns = ["p_black", "p_white"]',
    '  ranges = {"young" = 21}     the values that twins of a protected number take',
    '  missing = "model"           people may lack it, and the model fills its own gaps',
    '  missing = "value"           the same, and twins of a protected attribute may lack it too',
)


def draft_text(draft: Draft, out: Path) -> str:
    """The commented text of a subject file."""
    folder = out.parent
    document = tomlkit.document()
    _comment(
        document, "Written by `fairbits init`; change what it could not know, then:", f"  fairbits measure {out.name}"
    )
    document.add("name", draft.table.stem)
    document.add(tomlkit.nl())
    numbers = [a.name for a in draft.schema.attributes if a.protected and a.kind != "category" and not a.labels]
    name = rule_name(numbers[0] if numbers else "age")
    example = tomlkit.string(f"{name} >= own {name} - 10 and {name} <= own {name} + 10")
    title = _PROPOSED if draft.proposed else _NONE_PROPOSED
    _comment(document, *_RULES, *_PLAUSIBLE, title, f"  {example.as_string()}")
    proposed = tomlkit.array()
    for one in draft.proposed[:MAX_PROPOSED]:
        quoted = tomlkit.string(one.text, literal="'" not in one.text)
        proposed.add_line(quoted, indent="  ", comment=one.evidence)
    proposed.add_line(indent="")
    document.add("plausible", proposed if draft.proposed else tomlkit.array())
    if len(draft.proposed) > MAX_PROPOSED:
        _comment(document, f"{len(draft.proposed) - MAX_PROPOSED} weaker ones are left out.")
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
        _comment(section, 'path = "model.npz"   where your model is, seen from this file')
    else:
        section.add("path", _seen_from(draft.model, folder))
    for key, value in draft.options.section().items():
        section.add(key, value)
    if "score_of" in section:
        area = draft.said_by_labels
        said = "" if area is None else f"; so its scores agree with the labels (AUC {area:.2f})"
        section["score_of"].comment(f"the class that the model's one output speaks of{said}")
    if any(attribute.columns for attribute in draft.schema.attributes):
        section.add("encoding", "columns")
        section["encoding"].comment("the model takes the table's columns as they are")
    if draft.trouble is not None or draft.model is None:
        _comment(section, *(line for line in _MODEL_HINTS if line.partition(" ")[0] not in section))
    return section


def _explain(section: Any, title: str, reason: str) -> None:
    """A reason as a comment of several lines, where it can be mended."""
    _comment(section, title, *textwrap.wrap(harmless(reason), 100))


def _comment(section: Any, *lines: str) -> None:
    for line in lines:
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
        _comment(result, "threshold = 0.5   a decision is favourable from this probability on")
    _comment(result, *_TABLE_HINTS)
    return result


def _seen_from(path: str, folder: Path) -> str:
    """A path as the file will read it; references to code and addresses stay as they are."""
    return Path(os.path.relpath(path, folder.resolve())).as_posix() if Path(path).exists() else path


def draft_schema(data: pa.Table, *, max_twins: int, **asked: Any) -> Schema:
    """The schema of a table (:func:`infer_schema`), with ranges for protected numbers of many values."""
    schema = infer_schema(data, **asked)
    wide = {a.name: _numbers(data, a) for a in schema.attributes if a.protected and not a.labels}
    return coarsened(schema, wide, max_twins=max_twins)


def _numbers(data: pa.Table, attribute: Attribute) -> Codes:
    return numbers(plain(data[attribute.name]).drop_null(), attribute.name)


def widened_schema(schema: Schema, data: pa.Table) -> Schema:
    """The schema with room for the numbers of another table."""

    def widened(one: Attribute) -> Attribute:
        if one.kind == "category" or one.labels or one.allowed or one.name not in data.column_names:
            return one
        values = _numbers(data, one)
        low, high = min(one.low, values.min(initial=one.low)), max(one.upper, values.max(initial=one.upper))
        return one if (low, high) == (one.low, one.upper) else replace(one, low=low, high=high)

    return replace(schema, attributes=tuple(map(widened, schema.attributes)))


def other_schemas(data: pa.Table, schema: Schema, **asked: Any) -> tuple[Schema, ...]:
    """What else a model may have been trained on, for one that does not take the schema as it is.

    The columns that were left out, texts such as "02139" as numbers (it may have been trained without their zeros), or
    both.
    """
    import pyarrow as pa

    changed, read = data, []
    for place, name in enumerate(data.column_names):
        kind = data[name].type
        if name == asked.get("target") or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            continue
        present = data[name].drop_null().unique().to_pylist()
        if present and all(text.isascii() and text.strip().isdecimal() and len(text) < 16 for text in present):
            changed = changed.set_column(place, name, plain(data[name]).cast(pa.int64()))
            read.append(name)
    others: list[Schema] = []
    wider = _drafted(data, **asked, everything=True) if schema.notes else None
    kept = "" if wider is None else ", ".join(name for name in wider.names if name not in schema.names)
    if wider is not None and kept:
        note = "kept in the schema, though dates and identifiers tell little about people, because the model does not"
        others.append(replace(wider, notes=(*wider.notes, f"{note} take people without: {kept}.")))
    for everything in (False, True)[: 1 + len(others)] if read else ():
        numeric = _drafted(changed, **asked, everything=everything)
        if numeric is not None:
            note = "texts of digits are taken as numbers, because the model does not take them as texts"
            others.append(replace(numeric, notes=(*numeric.notes, f"{note}: {', '.join(read)}.")))
    return tuple(others)


def _is_regressor(model: Any) -> bool:
    """Whether an object says, as scikit-learn's do, that it predicts amounts."""
    tags = attribute(model, "__sklearn_tags__")
    if not callable(tags) or isinstance(model, type):
        return False
    with suppress(Exception):  # a pipeline asks its last step, which is foreign code
        return bool(tags().estimator_type == "regressor")
    return False


def _drafted(data: pa.Table, **asked: Any) -> Schema | None:
    try:
        return draft_schema(data, **asked)
    except FairbitsError:  # a column of lists, or numbers that no code can hold: no model takes it from here
        return None


def _without_unseen(schema: Schema, encoding: Encoding) -> Schema | None:
    """The schema without what the model never sees, protected attributes excepted; None where it sees everything."""
    unseen = [schema.attributes[i] for i in encoding.unseen if not schema.attributes[i].protected]
    kept = tuple(attribute for attribute in schema.attributes if attribute not in unseen)
    named = {name for rule in schema.rules for name in (schema.names[i] for i in rule.columns)}
    if not unseen or not kept or named & {attribute.name for attribute in unseen}:
        return None
    names = ", ".join(attribute.name for attribute in unseen)
    return replace(
        schema, attributes=kept, notes=(*schema.notes, f"left out of the schema: {names} (the model never sees it).")
    )


#: Combinations of protected values that a draft allows, unless somebody says otherwise.
DRAFTED_TWINS = 1000


@dataclass(frozen=True, slots=True)
class Draft:
    """What is known about a subject before its file is written; then the subject that it describes, or the trouble."""

    schema: Schema
    table: Path
    model: str | None = None
    delimiter: str = ","
    options: ModelOptions = field(default_factory=ModelOptions)
    said_by_labels: float | None = None
    trouble: str | None = None
    others: tuple[Schema, ...] = ()
    data: pa.Table | None = None
    proposed: tuple[ProposedRule, ...] = ()
    subject: Subject | None = None
    notes: tuple[str, ...] = ()


def subject_of_table(
    model: Any,
    table: Any,
    *,
    target: str,
    protected: Iterable[str],
    favourable: object = None,
    ignored: Iterable[str] = (),
    max_twins: int = DRAFTED_TWINS,
    threshold: float | None = None,
    name: str = "subject",
    person: str | None = None,
    weight: str | None = None,
    test: Any = None,
    plausible: Iterable[str] = (),
    probabilities: Mapping[str, Any] | None = None,
    options: ModelOptions = DEFAULTS,
    as_is: bool = False,
) -> Subject:
    """A subject from a model and a table alone: the schema is inferred, and fitted to what the model takes.

    Where neither the model nor the options say which output speaks of which of two classes, the reading that agrees
    with the labels is taken, and a note says so. ``test`` is a table of people whom the model has never seen.
    """
    data = arrow_of(table, max_rows=options.max_rows)
    unseen = None if test is None else arrow_of(test, max_rows=options.max_rows)
    chances = tuple(chances_of_section(one, section) for one, section in (probabilities or {}).items())
    aside = (person, weight, *(name for one in chances for name in one.columns))
    ignored = (*ignored, *(name for name in aside if name is not None and name not in ignored))
    asked: dict[str, Any] = {
        "target": target,
        "protected": (protected,) if isinstance(protected, str) else tuple(protected),
        "favourable": favourable,
        "groups": one_hot_groups(data, leave_out=(target, *ignored)),
        "ignored": ignored,
        "max_twins": max_twins,
        "threshold": threshold,
    }
    for key, column in (("person", person), ("weight", weight)):
        if column is not None and column in (target, *asked["protected"]):
            raise SchemaError(f"{key} is {column!r}, which is protected or the target too; name another column.")
    raw, likely = RawTable(table, data), tuple(one.likely_group for one in chances)
    schema = draft_schema(data, **asked)
    if len(schema.classes) > 2 and favourable is None and _is_regressor(model):
        note = f"{target} is taken for an amount and not for {len(schema.classes)} classes, as the model predicts one."
        schema = replace(schema, classes=(), favourable=None, notes=(*schema.notes, note))

    def coded(found: pa.Table, given: Any, one: Schema) -> Table:
        file = given if isinstance(given, str | Path) else None
        return table_from_arrow(found, one, file=file, person=person, weight=weight)

    def made(one: Schema, chosen: ModelOptions) -> Subject:
        one = one if unseen is None else widened_schema(one, unseen)
        rules: Any = tuple(plausible)  # text, which the schema parses
        one = replace(one, plausible=rules, chances=chances, observed=(*one.observed, *likely))
        people = replace(coded(data, table, one), index=raw.index, library=raw.library)
        one = with_held(one, people.codes, raw)
        try:
            held_out = None if unseen is None else coded(unseen, test, one)
        except TableError as error:
            raise TableError(f"the test table does not fit: {error}") from None
        loaded = read_model(model, one, chosen)
        subject = make_subject(name, loaded, one, people, test=held_out, options=chosen, original=model, raw=raw)
        subject.model.scores(subject.encoding.encode(people.codes[:2]))  # a function says only here what it misses
        return subject

    subject, _, _ = _settled(made, schema, options, lambda: other_schemas(data, schema, **asked), as_is=as_is)
    turned = subject.schema.classes != schema.classes or subject.options != options
    return replace(subject, notes=(*subject.notes, *_order_notes(options, subject))) if turned else subject


_Make = Callable[[Schema, ModelOptions], Subject]


def _settled(
    made: _Make,
    schema: Schema,
    options: ModelOptions,
    others: Callable[[], Iterable[Schema]],
    *,
    as_is: bool,
    observe: bool = False,
) -> tuple[Subject, Schema, ModelOptions]:
    """The subject, with the schema and the options that the model takes and that agree with the labels.

    The first schema that fits, without what the model never sees; protected attributes that it never sees are then
    observed, if asked for. The two classes the other way round, where that was a guess and the labels contradict it.
    """
    subject, schema = _first_fitting(made, schema, options, others)
    for narrower in (_with_observed, _without_unseen)[not observe :]:
        other = narrower(schema, subject.encoding)
        if other is not None:
            with suppress(FairbitsError):  # it may want the column, though it makes nothing of it
                subject, schema = made(other, options), other
    subject = _with_quality(subject)
    if as_is or _against(subject) is None:
        return subject, schema, options
    way = _other_way_round(schema, options, subject)
    turned = None if way is None else _with_quality(made(*way))
    if way is None or turned is None or _against(turned) is not None:
        return subject, schema, options  # refused by whoever checks it
    return turned, *way


def _first_fitting(
    made: _Make, schema: Schema, options: ModelOptions, others: Callable[[], Iterable[Schema]]
) -> tuple[Subject, Schema]:
    """What comes of a schema, or of the first other one that the model takes."""
    try:
        return made(schema, options), schema
    except FairbitsError as error:
        complaint = error
    strange = "does not describe" in str(complaint)
    for other in others():
        try:
            return made(other, options), other
        except FairbitsError as error:
            wider = strange and len(other) > len(schema)
            if wider or isinstance(error, SchemaError):  # with all columns there it says what is really wrong
                complaint = error
    raise complaint from None


def _with_observed(schema: Schema, encoding: Encoding) -> Schema | None:
    """Protected attributes that the model does not take as observed: nobody has twins in them."""
    watched = tuple(schema.attributes[i] for i in encoding.unseen if schema.attributes[i].protected)
    left = tuple(one for one in schema.attributes if one not in watched)
    return replace(schema, attributes=left, observed=(*schema.observed, *watched)) if watched else None


def _with_quality(subject: Subject) -> Subject:
    return replace(
        subject, quality=quality_of(subject.model, subject.encoding, subject.schema, subject.table, test=subject.test)
    )


def write_draft(
    draft: Draft, out: Path, *, force: bool = False, as_is: bool = False, **grants: Unpack[GrantOptions]
) -> Draft:
    """Write the file, with the reason as a comment at the place to edit where the model does not fit.

    Where there are labels and nobody has said which output speaks of which class, the reading that agrees with them
    is taken, and written down.
    """
    if out.exists() and not force:
        raise OptionError(f"{str(out)!r} exists; choose another --out or add --force.")
    trial = out.with_name(f".{out.stem}.{os.getpid()}.toml")

    def loaded(one: Draft) -> Subject:
        trial.write_text(draft_text(one, out), encoding="utf-8")
        return subject_of_toml(trial, grants)

    try:
        found = draft if draft.model is None else _tried(draft, loaded, as_is=as_is)
        if draft.data is not None:
            codes = table_from_arrow(draft.data, found.schema, file=draft.table).codes
            found = replace(found, proposed=tuple(proposed_rules(found.schema, codes)))
        trial.write_text(draft_text(found, out), encoding="utf-8")
        trial.replace(out)
    except OSError as error:
        raise OptionError(f"cannot write {str(out)!r}: {error.strerror or error}.") from None
    finally:
        trial.unlink(missing_ok=True)
    return found


def _tried(draft: Draft, loaded: Callable[[Draft], Subject], *, as_is: bool) -> Draft:
    """The draft that loads and agrees with the labels; else as it is, with the trouble."""
    try:
        subject, schema, options = _settled(
            lambda schema, options: loaded(replace(draft, schema=schema, options=options)),
            draft.schema,
            draft.options,
            lambda: draft.others,
            as_is=as_is,
            observe=True,
        )
    except FairbitsError as error:
        return replace(draft, trouble=str(error))
    against = _against(subject)
    if against is not None and not as_is:
        return replace(draft, schema=schema, trouble=against)
    notes = (*schema.notes, *_order_notes(draft.options, subject))
    single = speaks_of(subject.model, subject.schema)
    if single is not None and not subject.named:
        options = replace(options, score_of=single)
    settled = replace(schema, classes=subject.schema.classes, order_guessed=False)
    said = None if draft.options.score_of is not None else _said_by_labels(subject)
    told: dict[str, Any] = {"said_by_labels": said, "subject": subject.checked(as_is=as_is), "notes": notes}
    return replace(draft, schema=settled, options=options, **told)


def _said_by_labels(subject: Subject) -> float | None:
    """The AUC, where its whole interval says that the model is the right way round."""
    found = subject.quality
    return None if found is None or found.auc_low is None or found.auc_low <= 0.5 else found.auc


def _order_notes(options: ModelOptions, subject: Subject) -> tuple[str, ...]:
    """How it was settled which output speaks of which class, where neither the user nor the model says it."""
    schema, area = subject.schema, _said_by_labels(subject)
    if options.score_of is not None or subject.named or len(schema.classes) < 2:
        return ()
    single = speaks_of(subject.model, schema)
    if area is None:
        return order_note(replace(schema, order_guessed=True), None, ModelOptions(), single=single is not None)
    what = "its outputs" if single is None else "its one output"
    read = f"in the order {', '.join(schema.classes)}" if single is None else f"as speaking of {single!r}"
    return (
        f"the model does not say which class {what} belong{'' if single is None else 's'} to; read {read}, because so "
        f"its scores agree with the labels (AUC {area:.2f}).",
    )


def _other_way_round(schema: Schema, options: ModelOptions, subject: Subject) -> tuple[Schema, ModelOptions] | None:
    """The two classes the other way round; None where the user or the model has said which is which."""
    classes = subject.schema.classes
    if options.score_of is not None or subject.named or len(classes) != 2:
        return None
    single = speaks_of(subject.model, subject.schema)
    if single is not None:
        other = next(name for name in classes if name != single)
        return schema, replace(options, score_of=other)
    return replace(schema, classes=classes[::-1], order_guessed=False), options


def _against(subject: Subject) -> str | None:
    """Why a subject, whose quality is known, is refused for what its labels say."""
    assert subject.quality is not None  # noqa: S101 - every trial has it
    return against_labels(subject.quality, subject.model, subject.schema, named=subject.named)


#: Most meetings as a share of what independence gives, and the chance of any proposal where all is independent.
MEETINGS, CHANCE = 0.05, 0.05
#: A category of more values than this is an identifier or a place; a number of more values is no category.
MAX_LABELS, MAX_NUMBERS = 100, 12


@dataclass(frozen=True, slots=True)
class ProposedRule:
    """A rule about plausible twins, and its evidence: rows that break it, and how many independence would give."""

    text: str
    rows: int
    expected: float

    @property
    def evidence(self) -> str:
        """The evidence in words."""
        many = {0: "no row breaks it", 1: "1 row breaks it"}.get(self.rows, f"{self.rows:,} rows break it")
        return f"{many}; {self.expected:,.0f} would if the values were independent"


def proposed_rules(schema: Schema, codes: Codes) -> list[ProposedRule]:
    """The rules about plausible twins that a table supports, the one with the strongest evidence first.

    All pairs of a protected value with another one, or with a value of an unprotected category, are looked at. Given
    how often each value occurs, independent values would meet in E rows on average. A pair is proposed where at most 5
    % of E rows have it, and so few have a chance of at most 0.05 / pairs by the Poisson law of mean E. So a table in
    which everything is independent gives no proposal in at least 95 % of draws. A few rows that say otherwise are slips
    or exceptions: Census has one female husband among 13,193.
    """
    from scipy.special import pdtr

    tables = list(_tables(schema, codes))
    pairs = sum(int(np.count_nonzero(expected)) for _, _, _, expected in tables)
    found = []
    for one, other, rows, expected in tables:
        rare = (rows <= MEETINGS * expected) & (expected > 0)
        rare &= pdtr(rows, expected) <= CHANCE / max(pairs, 1)
        alike: dict[tuple[int, ...], list[int]] = defaultdict(list)  # values of one that the same values never meet
        for value in np.flatnonzero(rare.any(axis=1)):
            alike[tuple(np.flatnonzero(rare[value]).tolist())].append(int(value))
        for barred, values in alike.items():
            here = np.ix_(values, barred)
            left = [place for place in range(len(_codes(other))) if place not in barred]
            text = f"{_among(one, values)} -> {_among(other, left)}"
            found.append(ProposedRule(text, int(rows[here].sum()), float(expected[here].sum())))
    return sorted(found, key=lambda proposal: proposal.rows - proposal.expected)


def _tables(schema: Schema, codes: Codes) -> Iterator[tuple[Attribute, Attribute, Integers, npt.NDArray[np.float64]]]:
    """Pairs of attributes, the second one protected, with the rows of each pair of values, and those expected."""
    for column in schema.protected_columns:
        for beside, one in enumerate(schema.attributes):
            if beside == column or (one.protected and beside > column) or not (one.protected or _category(one)):
                continue
            other = schema.attributes[column]
            first, second = _places(one, codes[:, beside]), _places(other, codes[:, column])
            known = (first >= 0) & (second >= 0)
            shape = len(_codes(one)), len(_codes(other))
            rows = np.bincount(first[known] * shape[1] + second[known], minlength=shape[0] * shape[1]).reshape(shape)
            yield one, other, rows, np.outer(rows.sum(axis=1), rows.sum(axis=0)) / max(int(known.sum()), 1)


def _category(attribute: Attribute) -> bool:
    if attribute.kind == "category":
        return attribute.count - (attribute.gap is not None) <= MAX_LABELS
    return attribute.discrete and attribute.count <= MAX_NUMBERS


def _codes(attribute: Attribute) -> Codes:
    """The values that rules name: those of twins, without the one that stands for a missing value."""
    values = attribute.twin_values() if attribute.protected else attribute.values()
    return values[np.isfinite(values) & (values != (np.nan if attribute.gap is None else attribute.gap))]


def _places(attribute: Attribute, codes: Codes) -> Integers:
    """Which of these values each row has, by its range; −1 where it has none."""
    values = _codes(attribute)
    if attribute.ranges:
        known = np.isfinite(codes) & (codes != (np.nan if attribute.gap is None else attribute.gap))
        return np.where(known, np.searchsorted(attribute.cuts, codes, side="right"), -1)
    place = np.minimum(np.searchsorted(values, codes), len(values) - 1)
    return np.where(values[place] == codes, place, -1)


def _among(attribute: Attribute, places: list[int]) -> str:
    """The condition that an attribute has one of these values, as short as may be."""
    name = rule_name(attribute.name)
    if attribute.ranges:
        return _within(name, attribute.cuts, places)
    said = [_value(attribute, code) for code in _codes(attribute)]
    others = [value for place, value in enumerate(said) if place not in places]
    chosen, equal, among = [said[place] for place in places], "=", "in"
    if len(others) < len(chosen):
        chosen, equal, among = others, "!=", "not in"
    return f"{name} {equal} {chosen[0]}" if len(chosen) == 1 else f"{name} {among} {{{', '.join(chosen)}}}"


def _within(name: str, cuts: tuple[float, ...], places: list[int]) -> str:
    parts = []
    for first in (place for place in places if place - 1 not in places):
        last = first
        while last + 1 in places:
            last += 1
        ends = ([f"{name} >= {cuts[first - 1]:.15g}"] if first else []) + (
            [f"{name} < {cuts[last]:.15g}"] if last < len(cuts) else []
        )
        parts.append(" and ".join(ends))
    return parts[0] if len(parts) == 1 else f"({' or '.join(f'({part})' for part in parts)})"


def _value(attribute: Attribute, code: float) -> str:
    if not attribute.labels:
        return f"{code:.15g}"
    label = attribute.labels[int(code - attribute.low)]
    return '"' + label.replace("\\", "\\\\").replace('"', '\\"') + '"'
