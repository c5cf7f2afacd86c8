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
from fairbits.models import Network, estimator_ending, fit_to_schema, load_model, read_model, save_estimator
from fairbits.repair.placement import NAME, ONNX, SUBJECT, Export, check_scores, placed, tried_subject
from fairbits.repair.proposals.group_thresholds import GroupThresholds, thresholds_text
from fairbits.repair.records import Fitted
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
            save_estimator(fitted.estimator, path)
            check_scores(wanted, _asked(path, fitted, subject)(people), path.name)
            models.append(path.name)
        except FairbitsError as error:
            warnings.append(f"the model could not be written as {ending}: {error}")

        def check(found: Subject) -> None:
            check_scores(wanted, np.asarray(found.model.scores(found.encoding.encode(people))), SUBJECT)

        others = tried_subject(subject, aside, path.name, check, warnings) if models else []
        return placed(subject, aside, folder, models, others, warnings)


def export_thresholds(model: GroupThresholds, subject: Subject, folder: Path, people: Codes) -> Export:
    """Write thresholds by group as a small Python file around the model itself; of a network also as ONNX.

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
    wanted = model.people_scores(people)
    models: list[str] = []
    warnings: list[str] = []
    writers = {ONNX: _thresholds_onnx} if isinstance(model.model, Network) else {}
    with tempfile.TemporaryDirectory() as place:
        aside = Path(place)
        for ending, write in {**writers, ".py": _thresholds_module}.items():
            path = aside / f"{NAME}{ending}"
            try:
                check_scores(wanted, write(model, subject, path, people), path.name)
                models.append(path.name)
            except FairbitsError as error:
                path.unlink(missing_ok=True)
                warnings.append(f"the model could not be written as {ending}: {error}")

        def check(found: Subject) -> None:
            check_scores(wanted, np.asarray(found.model.scores(found.encoding.encode(people))), SUBJECT)

        native = f"{NAME}{ONNX}"
        others = tried_subject(subject, aside, native, check, warnings) if native in models else []
        return placed(subject, aside, folder, models, others, warnings)


def _thresholds_onnx(model: GroupThresholds, subject: Subject, path: Path, people: Codes) -> Scores:
    from fairbits.repair.proposals.onnx import write_thresholds_onnx

    write_thresholds_onnx(model, path)
    return np.asarray(load_model(path).scores(subject.encoding.encode(people)))


def _thresholds_module(model: GroupThresholds, subject: Subject, path: Path, people: Codes) -> Scores:
    text = thresholds_text(model)
    path.write_text(text, encoding="utf-8")
    space: dict[str, Any] = {"__name__": NAME}
    exec(compile(text, path.name, "exec"), space)  # noqa: S102 - our own text, tried as a user would

    def asked(frame: Any) -> Scores:
        codes = table_from_arrow(as_arrow(frame), replace(subject.schema, target=None)).codes
        return np.asarray(model.model.scores(subject.encoding.encode(codes)))

    return np.asarray(space["Thresholded"](asked).scores(Decoder(subject.schema).frame(people)))


def _asked(path: Path, fitted: Fitted, subject: Subject) -> Callable[[Codes], Scores]:
    loaded = read_model(path, subject.schema, subject.options)
    encoding = loaded.encoding or fitted.encoding
    found = fit_to_schema(replace(loaded, encoding=encoding), subject.schema, options=subject.options)
    return lambda people: np.asarray(found.model.scores(encoding.encode(people)))
