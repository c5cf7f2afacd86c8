"""Refitted estimators and thresholds by group as files: written aside, loaded again, compared, then put into place."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Decoder, as_arrow, table_from_arrow
from fairbits.errors import FairbitsError
from fairbits.models import estimator_ending, fit_to_schema, read_model, write_estimator
from fairbits.repair.placement import NAME, SUBJECT, Export, check_scores, placed, remove_old, tried_subject
from fairbits.repair.proposals.group_thresholds import GroupThresholds, thresholds_text
from fairbits.repair.records import Fitted
from fairbits.store import write_whole
from fairbits.subject import Subject

#: People whose scores a file must give back.
_COMPARED = 500

Scores = npt.NDArray[Any]


def export_estimator(fitted: Fitted, subject: Subject, folder: Path, people: Codes) -> Export:
    """Write a refitted estimator in the format that the original came in, and a subject file about it.

    Parameters
    ----------
    fitted
        The model and its estimator.
    subject
        The subject before the repair.
    folder
        Where the files go.
    people
        Whose scores files are compared by.
    """
    ending = estimator_ending(fitted.estimator, subject.original, subject.options)
    people = people[:_COMPARED]
    wanted = np.asarray(fitted.model.scores(fitted.encoding.encode(people)))
    models: list[str] = []
    warnings: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        aside = Path(place)
        path = aside / f"{NAME}{ending}"
        try:
            write_estimator(fitted.estimator, path)
            check_scores(wanted, _asked(path, fitted, subject)(people), path.name)
            models.append(path.name)
        except FairbitsError as error:
            warnings.append(f"the model could not be written as {ending}: {error}")

        def check(found: Subject) -> None:
            check_scores(wanted, np.asarray(found.model.scores(found.encoding.encode(people))), SUBJECT)

        others = tried_subject(subject, aside, path.name, check, warnings) if models else []
        return placed(subject, aside, folder, models, others, warnings)


def export_thresholds(model: GroupThresholds, subject: Subject, folder: Path, people: Codes) -> Export:
    """Write thresholds by group as a small Python file around the model itself.

    Parameters
    ----------
    model
        The thresholds, and the model that they are put on.
    subject
        The subject before the repair.
    folder
        Where the file goes.
    people
        Whose scores the file must give back.
    """
    people = people[:_COMPARED]
    text = thresholds_text(model)
    space: dict[str, Any] = {"__name__": NAME}
    exec(compile(text, f"{NAME}.py", "exec"), space)  # noqa: S102 - our own text, tried as a user would

    def asked(frame: Any) -> Scores:
        codes = table_from_arrow(as_arrow(frame), replace(subject.schema, target=None)).codes
        return np.asarray(model.model.scores(subject.encoding.encode(codes)))

    found = space["Thresholded"](asked).scores(Decoder(subject.schema).frame(people))
    try:
        check_scores(model.people_scores(people), found, f"{NAME}.py")
    except FairbitsError as error:
        remove_old(folder)
        return Export((), None, (f"the model could not be written as .py: {error}",))
    remove_old(folder, [f"{NAME}.py"])
    write_whole(folder / f"{NAME}.py", text.encode())
    return Export((folder / f"{NAME}.py",), None, ())


def _asked(path: Path, fitted: Fitted, subject: Subject) -> Callable[[Codes], Scores]:
    loaded = read_model(path, subject.schema, subject.options)
    encoding = loaded.encoding or fitted.encoding
    found = fit_to_schema(replace(loaded, encoding=encoding), subject.schema, options=subject.options)
    return lambda people: np.asarray(found.model.scores(encoding.encode(people)))
