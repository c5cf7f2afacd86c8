"""A subject: a model, the people it decides about, and the words to read both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from fairbits.data.networks import load_network
from fairbits.data.registry import BUILT_IN, load_stored
from fairbits.domain import Encoding, Schema, Table
from fairbits.domain.consistency import check_rules
from fairbits.domain.infer import infer_classes
from fairbits.domain.limits import GrantOptions
from fairbits.domain.reading import is_there, read_arrow
from fairbits.domain.table import plain, scores_of_column, table_from_arrow, with_nulls
from fairbits.domain.toml import read_document, schema_of_document, section_of
from fairbits.errors import ModelError, OptionError, SchemaError, TableError, choose_from
from fairbits.models import Loaded, Model, ModelOptions, Network, Repeated, fit_to_schema, read_model
from fairbits.models.callables import is_reference
from fairbits.models.direction import names_decide, output_order
from fairbits.models.http import Endpoint
from fairbits.models.loaded import told_by_model
from fairbits.models.loading import adapt, is_url
from fairbits.models.recorded import Recorded
from fairbits.subject import Identity, Probe, identity_of
from fairbits.subject.checks import against_labels, quality_of, quality_of_scores
from fairbits.subject.ingredients import of_origin
from fairbits.subject.probe import still_answers
from fairbits.subject.quality import Quality

_SECTIONS = ("name", "rules", "justified", "model", "table", "limits", "attributes")
_TABLE_KEYS = (
    *("path", "target", "favourable", "classes", "threshold", "scores", "score", "justified", "delimiter", "missing"),
)
#: Trust is not among them: it is the word of whoever runs fairbits, not of whoever wrote the file.
_MODEL_KEYS = (
    *("path", "encoding", "columns", "output", "score_of", "input_format", "eats", "factory", "layers", "batch"),
    *(
        "authorization_env",
        "credential_header",
        "headers",
        "timeout",
        "retries",
        "wait",
        "concurrency",
        "rate",
        "cache",
    ),
)
_ENCODINGS = ("codes", "one-hot", "columns")
#: Values of a protected number that a note lists.
MOST_SHOWN = 8


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """What a run is about. ``test`` holds people whom the model has never seen, where there is such a table."""

    name: str
    schema: Schema
    model: Model
    encoding: Encoding
    table: Table
    test: Table | None = None
    notes: tuple[str, ...] = ()
    source: str | None = None  # what load_subject was given, where it was
    original: Any = None  # what the model was read from: a file, a reference to code, or an object
    options: ModelOptions = field(default_factory=ModelOptions)  # and how
    named: bool = False  # whether the model itself names its classes, so that nobody had to say their order
    quality: Quality | None = None  # how it agrees with the labels, once it was checked
    as_is: bool = False  # whether it was accepted although it decides against the labels
    origin: Mapping[str, str] | None = None  # the ingredients of its identity that were known when it was read
    _identity: Identity | None = field(default=None, init=False, repr=False)

    def short(self) -> str:
        """Its name, its model and its people, in a line."""
        model = type(self.model.original if isinstance(self.model, Repeated) else self.model).__name__
        return f"{self.name!r}: {model}, {len(self.table):,} people, protected: {', '.join(self.schema.protected)}"

    def __repr__(self) -> str:
        return f"<Subject {self.short()}>"

    def checked(self, *, as_is: bool = False) -> Subject:
        """The same subject, its model held against the labels of its table.

        Parameters
        ----------
        as_is
            Accept a model that decides against the labels, and say so in a note.

        Returns
        -------
        Subject
            With its ``quality``.

        Raises
        ------
        ModelError
            If the model decides against the labels: the interval of its AUC lies below one half.
        """
        if self.table.scores is not None:
            return replace(self, quality=self.quality or quality_of_scores(self.schema, self.table))
        found = self.quality or quality_of(self.model, self.encoding, self.schema, self.table)
        against = against_labels(found, self.model, self.schema, named=self.named)
        if against is None or self.as_is:
            return replace(self, quality=found)
        if not as_is:
            raise ModelError(against)
        note = (
            f"the model decides against the labels (AUC {found.auc:.3f}, 95 % interval {found.auc_low:.3f} to "
            f"{found.auc_high:.3f}); it is examined as it is, because that was asked for."
        )
        return replace(self, quality=found, as_is=True, notes=(*self.notes, note))

    def with_protected(self, names: Iterable[str]) -> Subject:
        """The same subject with exactly these attributes protected."""
        schema = self.schema.with_protected(names)
        old = _protected_notes(self.schema, self.encoding)
        notes = tuple(note for note in self.notes if note not in old)
        return replace(self, schema=schema, notes=(*notes, *_protected_notes(schema, self.encoding)))

    def with_repeats(self, repeats: int) -> Subject:
        """The same subject, every score of which is the mean of so many answers of the model.

        A native network gives the same answer every time, so it stays as it is.
        """
        inner = self.model.original if isinstance(self.model, Repeated) else self.model
        wrapped = Repeated(inner, repeats)  # refuses a number that makes no sense
        return replace(self, model=inner if repeats == 1 or isinstance(inner, Network) else wrapped)

    @property
    def scores_only(self) -> bool:
        """Whether the model is not at hand and the table holds its scores."""
        return self.table.scores is not None

    @property
    def repeats(self) -> int:
        """How many answers of the model make one score."""
        return self.model.repeats if isinstance(self.model, Repeated) else 1

    @property
    def identity(self) -> Identity:
        """Which model, table and schema this is, with a probe of the scores.

        An object in memory may have been trained again since it was last asked: a few answers are compared each time.
        """
        if self._identity is not None and self._unchanged(self._identity.probe):
            return self._identity
        found = identity_of(
            self.model,
            self.encoding,
            self.schema,
            self.table,
            test=self.test,
            options=self.options,
            origin=self.origin,
            threshold=self.schema.rule.threshold,
        )
        object.__setattr__(self, "_identity", found)
        return found

    def _unchanged(self, probe: Probe) -> bool:
        """Whether the model is still the one that was probed; a network cannot change, and a service is slow to ask."""
        inner = self.model.original if isinstance(self.model, Repeated) else self.model
        if isinstance(inner, Network | Endpoint):
            return True
        return still_answers(probe, self.model, self.encoding, self.schema, self.table)


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
        return _from_toml(Path(text), grants)
    raise SchemaError(
        f"subject {text!r} is neither a file nor built in; {choose_from(text, BUILT_IN)}"
        f" For your own model give a subject.toml."
    )


def make_subject(
    name: str,
    model: Model | Loaded,
    schema: Schema,
    table: Table,
    *,
    encoding: Encoding | None = None,
    options: ModelOptions | None = None,
    notes: tuple[str, ...] = (),
    original: Any = None,
    **rest: Any,
) -> Subject:
    """A subject whose parts fit each other. ``original`` is what the model was read from."""
    options = options or ModelOptions()
    loaded = model if isinstance(model, Loaded) else adapt(model, schema, options)
    made_from = model if original is None and not isinstance(model, Loaded) else original
    rest |= {"original": original, "origin": of_origin(made_from, options)}
    schema, told = told_by_model(schema, loaded)
    named = loaded.named or names_decide(schema, loaded.classes)
    loaded = replace(loaded, classes=output_order(schema, loaded.classes, options))
    schema, table = _in_model_order(loaded, schema, table)
    if encoding is not None:
        loaded = replace(loaded, encoding=encoding.with_gaps(schema))
    fitted = fit_to_schema(loaded, schema, options=options)
    assert fitted.encoding is not None  # noqa: S101 - settled by fit_to_schema
    said = (
        *notes,
        *schema.notes,
        *told,
        *fitted.notes,
        *_protected_notes(schema, fitted.encoding),
        *check_rules(schema, table.codes),
    )
    return Subject(name, schema, fitted.model, fitted.encoding, table, notes=said, options=options, named=named, **rest)


def _in_model_order(loaded: Loaded, schema: Schema, table: Table) -> tuple[Schema, Table]:
    """Where the model names its classes, the schema lists them in the order of its outputs, and labels follow."""
    classes = loaded.classes
    if classes is None or classes == schema.classes or set(classes) != set(schema.classes):
        return schema, table
    moved = np.array([classes.index(name) for name in schema.classes])
    labels = None if table.labels is None else moved[table.labels.astype(np.int64)].astype(np.float64)
    return replace(schema, classes=classes), replace(table, labels=labels)


def _protected_notes(schema: Schema, encoding: Encoding) -> tuple[str, ...]:
    """What must be known about the protected attributes to read the figures."""
    return (*_unseen_notes(schema, encoding), *between_notes(schema))


def between_notes(schema: Schema) -> tuple[str, ...]:
    """A protected number whose twins skip values: what lies between them, a row's own value included, is not asked."""
    notes = []
    for attribute in schema.attributes:
        if attribute.protected and attribute.gap is not None and attribute.missing != "value":
            notes.append(
                f"{attribute.name} may be missing in the table; twins take its values and never lack it "
                f'(missing = "value" makes that a value of twins too).'
            )
        every = attribute.kind == "category" or (attribute.kind == "integer" and attribute.stride == 1)
        if not attribute.protected or not (attribute.ranges or not (every or attribute.allowed)):
            continue
        if attribute.twin_count > schema.most_twins:
            continue  # refused where the twins are made
        values = [attribute.read(code) for code in attribute.twin_values()]
        shown = ", ".join(values if len(values) <= MOST_SHOWN else [*values[: MOST_SHOWN - 1], "…", values[-1]])
        notes.append(
            f"twins take {len(values)} values of {attribute.name} ({shown}); others, even a row's own, are not asked: "
            f"the figures are exact for these values, and lower bounds where all values count."
        )
    return tuple(notes)


def _unseen_notes(schema: Schema, encoding: Encoding) -> tuple[str, ...]:
    names = [schema.names[i] for i in encoding.unseen if schema.attributes[i].protected]
    if not names:
        return ()
    return (
        f"the model never sees {', '.join(names)}, so twins cannot differ in it; check whether other attributes "
        f"stand in for it.",
    )


def _built_in(name: str) -> Subject:
    entry, stored = BUILT_IN[name], load_stored(name)
    table, test = stored.table(), None
    held_out = table.held_out
    if entry.own_test_rows and held_out is not None:
        test = replace(table.rows(held_out), held_out=None, numbers=None)
        table = replace(table.training(), numbers=None)  # they came in files of their own, which count from 1
    notes = (f"these people are {stored.origin}.",) if entry.synthetic else ()
    return make_subject(
        name, load_network(name), entry.schema, table, encoding=entry.encoding(), test=test, notes=notes, source=name
    )


def _from_toml(file: Path, grants: GrantOptions) -> Subject:
    document = read_document(file)
    _known_keys(document, _SECTIONS, f"subject file {str(file)!r}")
    model_section, table_section = section_of(document, "model"), section_of(document, "table")
    _known_keys(model_section, _MODEL_KEYS, "[model]")
    _known_keys(table_section, _TABLE_KEYS, "[table]")
    place = _path(table_section, "table", file)
    max_rows = ModelOptions.of(grants).max_rows
    data = read_arrow(place, delimiter=str(table_section.get("delimiter", ",")), max_rows=max_rows)
    target = table_section.get("target")
    if target is not None and not isinstance(target, str):
        raise SchemaError(f"[table] target is {str(target)[:40]!r}; it must be the name of a column, in quotes.")
    _check_described(document, target, data.column_names, file)
    if target is not None and target not in data.column_names:
        raise TableError(f"target {target!r} is not in the table; {choose_from(str(target), data.column_names)}")
    schema = schema_of_document(document, classes=() if target is None else infer_classes(data[target]))
    schema = _with_missing(schema, table_section.get("missing"), data)
    if "score" in table_section:
        return _of_scores(document, data, schema, place, file)
    options = _options(model_section, grants)
    source = _source(model_section, file)
    loaded = read_model(source, schema, options)
    encoding = _stated_encoding(model_section.get("encoding"), schema, options, data.column_names)
    table = table_from_arrow(data, schema, file=place)
    name = str(document.get("name", file.stem))
    return make_subject(
        name,
        loaded,
        schema,
        table,
        encoding=encoding,
        options=options,
        notes=_outside_notes(file, source, table_section),
        source=str(file.resolve()),
        original=source,
    )


def _with_missing(schema: Schema, stated: object, data: Any) -> Schema:
    """[table] missing = "model": every column with holes is left to the model."""
    if stated is None:
        return schema
    if stated != "model":
        raise SchemaError(f'[table] missing is {str(stated)[:40]!r}; say "model", or leave it out.')
    holes = {name for name in data.column_names if with_nulls(plain(data[name])).null_count}
    attributes = tuple(
        replace(a, missing="model", high=None if a.kind == "category" else a.high)
        if a.name in holes and a.missing is None and a.gap is None and not a.columns
        else a
        for a in schema.attributes
    )
    return replace(schema, attributes=attributes)


def _of_scores(document: Any, data: Any, schema: Schema, place: Path, file: Path) -> Subject:
    """A subject whose model is not at hand: the table holds its scores."""
    section, column = section_of(document, "model"), section_of(document, "table")["score"]
    if not isinstance(column, str):
        raise SchemaError(f"[table] score is {str(column)[:40]!r}; it must be the name of a column, in quotes.")
    if section:
        key = next(iter(section))
        raise SchemaError(
            f"[table] score is {column!r}, so the model is not asked, but [model] has {key!r}; leave one of both out."
        )
    if column in (schema.target, *schema.names, *(one.name for one in schema.observed)):
        raise SchemaError(f"[table] score is {column!r}, which is an attribute or the target too; name another column.")
    if len(schema.classes) > 2:
        raise SchemaError(
            f"[table] score is {column!r}, but the target has {len(schema.classes)} classes, and one score does not "
            f"decide between them; give the model, or leave the target out."
        )
    table = table_from_arrow(data, schema, file=place)
    # Without a target the scores may be probabilities or not: nothing is decided then.
    table = replace(table, scores=scores_of_column(data, column, regression=schema.regression))
    return Subject(
        str(document.get("name", file.stem)),
        schema,
        Recorded(len(schema)),
        Encoding(()),
        table,
        notes=("the model is not at hand: the scores are those of the table.",),
        source=str(file.resolve()),
    )


def _check_described(document: Any, target: Any, columns: list[str], file: Path) -> None:
    """A file with none of the described columns is no table of this subject: what it holds is not repeated."""
    described = section_of(document, "attributes")
    wanted = {str(target), *described}
    for fields in described.values():
        if isinstance(fields, Mapping) and isinstance(fields.get("columns"), list):
            wanted |= {str(column) for column in fields["columns"]}
    if described and not wanted & set(columns):
        raise TableError(
            f"the table of {str(file)!r} has {len(columns):,} columns, and none of them is described there; check the "
            f"path and the delimiter under [table]."
        )


def _outside_notes(file: Path, source: str | Path, table_section: Any) -> tuple[str, ...]:
    """Files that a subject file reaches outside its own folder: whoever runs it should know."""
    home = file.parent.resolve()
    paths = [("model", source), ("table", _path(table_section, "table", file))]
    found = [(name, path.resolve()) for name, path in paths if isinstance(path, Path)]
    return tuple(
        f"the {name} lies outside the folder of the subject file: {str(path)!r}."
        for name, path in found
        if not path.is_relative_to(home)
    )


def _options(section: Any, grants: GrantOptions) -> ModelOptions:
    given = {key: value for key, value in section.items() if key not in {"path", "encoding"}}
    granted = ModelOptions.of(grants)
    try:
        stated = ModelOptions.of(given)
    except OptionError as error:
        raise SchemaError(f"[model] is wrong: {error}") from None
    return replace(stated, **granted.grants())


def _source(section: Any, file: Path) -> str | Path:
    """Code and addresses as they stand, files beside the subject file."""
    stated = section.get("path")
    if isinstance(stated, str) and (is_url(stated) or (is_reference(stated) and not is_there(file.parent / stated))):
        return stated
    return _path(section, "model", file)


def _path(section: Any, name: str, file: Path) -> Path:
    path = section.get("path")
    if not isinstance(path, str):
        other = ', or score = "COLUMN" under [table] where the table holds its scores' if name == "model" else ""
        raise SchemaError(f'{str(file)!r} does not say where the {name} is; write path = "…" under [{name}]{other}.')
    return file.parent / path


def _stated_encoding(stated: object, schema: Schema, options: ModelOptions, columns: list[str]) -> Encoding | None:
    """By its name. A table that is one-hot encoded already is what its network takes, column by column."""
    if stated == "columns" or (
        stated is None and options.columns is None and any(attribute.columns for attribute in schema.attributes)
    ):
        return Encoding.of_columns(schema, columns)
    if stated is None:
        return None
    if stated not in _ENCODINGS:
        raise SchemaError(f"[model] encoding is {stated!r}; {choose_from(str(stated), _ENCODINGS)}")
    make = Encoding.identity if stated == "codes" else Encoding.one_hot
    return make(schema, columns=options.columns)


def _known_keys(section: Any, known: tuple[str, ...], where: str) -> None:
    for key in section:
        if key not in known:
            raise SchemaError(f"{where} has the unknown key {key!r}; {choose_from(key, known)}")
