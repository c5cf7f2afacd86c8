"""Refitted estimators and thresholds by group as files: written aside, loaded again, compared, then put into place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.data import Fitted
from fairbits.domain import Codes, Decoder, as_arrow, table_from_arrow
from fairbits.models import Network, estimator_ending, fit_to_schema, load_model, read_model, save_estimator
from fairbits.repair.placement import NAME, ONNX, Export, Scores, Writer, export_compared
from fairbits.repair.proposals.group_thresholds import GroupThresholds, thresholds_text
from fairbits.subject import Subject


def export_estimator(fitted: Fitted, subject: Subject, folder: Path, people: Codes) -> Export:
    """Write a refitted estimator in the format that the original came in, and a subject file about it."""
    return export_compared(
        {
            estimator_ending(fitted.estimator, subject.original, subject.options): lambda path: _saved(
                path, fitted, subject
            )
        },
        lambda codes: np.asarray(fitted.model.scores(fitted.encoding.encode(codes))),
        subject,
        folder,
        people,
        what="the refitted model",
    )


def export_thresholds(model: GroupThresholds, subject: Subject, folder: Path, people: Codes) -> Export:
    """Write thresholds by group as a small Python file around the model itself; of a network also as ONNX."""
    writers: dict[str, Writer] = {}
    if isinstance(model.model, Network):
        writers[ONNX] = lambda path: _thresholds_onnx(model, subject, path)
    writers[".py"] = lambda path: _thresholds_module(model, subject, path)
    return export_compared(
        writers, model.people_scores, subject, folder, people, what="the model with thresholds", described=(ONNX,)
    )


def _thresholds_onnx(model: GroupThresholds, subject: Subject, path: Path) -> Callable[[Codes], Scores]:
    from fairbits.repair.proposals.onnx import write_thresholds_onnx

    write_thresholds_onnx(model, path)
    found = load_model(path)
    return lambda people: np.asarray(found.scores(subject.encoding.encode(people)))


def _thresholds_module(model: GroupThresholds, subject: Subject, path: Path) -> Callable[[Codes], Scores]:
    text = thresholds_text(model)
    path.write_text(text, encoding="utf-8")
    space: dict[str, Any] = {"__name__": NAME}
    exec(compile(text, path.name, "exec"), space)  # noqa: S102 - our own text, tried as a user would

    def asked(frame: Any) -> Scores:
        codes = table_from_arrow(as_arrow(frame), replace(subject.schema, target=None)).codes
        return np.asarray(model.model.scores(subject.encoding.encode(codes)))

    decoder = Decoder(subject.schema)
    return lambda people: np.asarray(space["Thresholded"](asked).scores(decoder.frame(people)))


def _saved(path: Path, fitted: Fitted, subject: Subject) -> Callable[[Codes], Scores]:
    save_estimator(fitted.estimator, path)
    loaded = read_model(path, subject.schema, subject.options)
    encoding = loaded.encoding or fitted.encoding
    found = fit_to_schema(replace(loaded, encoding=encoding), subject.schema, options=subject.options)
    return lambda people: np.asarray(found.model.scores(encoding.encode(people)))
