"""Which two models are meant: runs, subjects, or model files that share a subject."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from fairbits.data import BUILT_IN, load_subject
from fairbits.domain import GrantOptions
from fairbits.errors import OptionError
from fairbits.models import ModelOptions, is_reference, is_url, read_model
from fairbits.store import Run, subject_of
from fairbits.subject import Subject, make_subject


def sides_of(
    a: str | Path, b: str | Path, *, subject: str | Path | None = None, **grants: Unpack[GrantOptions]
) -> tuple[Subject, Subject]:
    """Both models as subjects."""
    shared = None if subject is None else _subject(subject, grants) or load_subject(subject, **grants)
    found = [_subject(one, grants) for one in (a, b)]
    shared = shared or found[0] or found[1]
    for place, text in enumerate((a, b)):
        if found[place] is not None:
            continue
        if not _is_model(str(text)):
            found[place] = load_subject(text, **grants)  # says what is there instead
            shared = shared or found[place]
    if shared is None:
        raise OptionError(
            f"{str(a)!r} and {str(b)!r} are models, and nothing says whom they decide about; add --subject with a "
            f"subject.toml or a built-in subject."
        )
    sides = [one or with_model(shared, str(text), **grants) for one, text in zip(found, (a, b), strict=True)]
    return sides[0], sides[1]


def with_model(subject: Subject, model: Any, **grants: Unpack[GrantOptions]) -> Subject:
    """The same people and schema with another model."""
    options = ModelOptions.of({**subject.options.section(), **grants})
    loaded = read_model(model, subject.schema, options)
    fits = loaded.encoding is None and loaded.model.inputs == subject.encoding.width
    return make_subject(
        str(model) if isinstance(model, str | Path) else type(model).__name__,
        loaded,
        subject.schema,
        subject.table,
        encoding=subject.encoding if fits else None,
        options=options,
        original=model,
        test=subject.test,
    )


def _subject(text: str | Path, grants: GrantOptions) -> Subject | None:
    """The subject of a run or a subject file; None for anything else."""
    name = str(text)
    if (Path(name) / "run.json").is_file():
        return subject_of(Run.open(name), **grants)
    if name in BUILT_IN or name.endswith(".toml"):
        return load_subject(name, **grants)
    return None


def _is_model(text: str) -> bool:
    return Path(text).is_file() or is_url(text) or is_reference(text)
