"""Two models about the same people, with the command that compares them again and the page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Unpack

from fairbits.audit.command import SubjectOrigin, command_of
from fairbits.diff import TOP, ModelDiff, diff_subjects, sides_of, write_diff
from fairbits.domain import GrantOptions
from fairbits.errors import OptionError
from fairbits.subject import Subject


def diff_models(
    a: str | Path,
    b: str | Path,
    *,
    subject: str | Path | None = None,
    protected: Iterable[str] | None = None,
    epsilon: float | None = None,
    partition: str = "constrained",
    seed: int = 0,
    threads: int | None = None,
    top: int = TOP,
    people: int | None = None,
    html: str | Path | None = None,
    **grants: Unpack[GrantOptions],
) -> ModelDiff:
    """What changes for the same people from one model to another: runs, subjects or models."""
    check_page(html)
    sides = sides_of(a, b, subject=subject, **grants)
    names = None if protected is None else tuple(protected)
    before, after = (one if names is None else one.with_protected(names) for one in sides)
    return diff_sides(
        (before, after),
        (str(a), str(b)),
        SubjectOrigin(name=None if subject is None else str(subject), protected=names, grants=grants),
        html=html,
        epsilon=epsilon,
        partition=partition,
        seed=seed,
        threads=threads,
        top=top,
        people=people,
    )


def diff_sides(
    sides: tuple[Subject, Subject],
    names: tuple[str | None, str | None],
    origin: SubjectOrigin,
    *,
    html: str | Path | None = None,
    **options: Any,
) -> ModelDiff:
    """Compare two subjects, and write the page where one is wanted."""
    check_page(html)
    typed = {name: options[name] for name in ("seed", "partition", "top")}
    typed |= {"subject": origin.name, "protected": origin.protected, "epsilon": options["epsilon"]}
    found = diff_subjects(*sides, command=command_of("diff", names, typed, origin.grants), **options)
    if html is not None:
        write_diff(found, Path(html))
    return found


def check_page(html: str | Path | None) -> None:
    """Refuse a page that could not be written, before anything is computed."""
    if html is not None and not Path(html).parent.is_dir():
        raise OptionError(f"the folder {str(Path(html).parent)!r} does not exist; make it, or choose another --html.")
