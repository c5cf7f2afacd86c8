"""A fitted estimator as files: its library's own format, skops or a pickle; loaded again, and compared."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import Codes
from fairbits.errors import FairbitsError
from fairbits.models import Model, ending_of, load_with_encoding, save_estimator
from fairbits.repair.placement import NAME, SUBJECT, Export, check_scores, placed, tried_subject
from fairbits.subject import Subject

#: People whose scores files must give back.
_COMPARED = 500


def export_pupil(estimator: Any, model: Model, subject: Subject, folder: Path, people: Codes) -> Export:
    """Write an estimator that was fitted again, in the format that the original came in and its library's own.

    Parameters
    ----------
    estimator
        What is written.
    model
        The same as fairbits scores it; files must give back its scores.
    subject
        The subject of the original.
    folder
        Where the files go.
    people
        Who is scored.

    Returns
    -------
    Export
        The files, a subject file about the first of them, and in words what could not be written.
    """
    some = people[np.linspace(0, len(people) - 1, min(_COMPARED, len(people))).astype(np.int64)]
    wanted = np.asarray(model.scores(subject.encoding.encode(some)))
    models: list[str] = []
    warnings: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        aside = Path(place)
        for ending in dict.fromkeys([ending_of(subject.original, subject.options), ".skops", *_native(estimator)]):
            path = aside / f"{NAME}{ending}"
            try:
                save_estimator(estimator, path)
                found, encoding = load_with_encoding(path, subject.schema, **_options(subject, ending))
                check_scores(wanted, np.asarray(found.scores(encoding.encode(some))), path.name)
            except FairbitsError as error:
                path.unlink(missing_ok=True)
                warnings.append(f"the repaired model was not written as {ending}: {error}")
                continue
            models.append(path.name)

        def check(found: Subject) -> None:
            check_scores(wanted, np.asarray(found.model.scores(found.encoding.encode(some))), SUBJECT)

        others = tried_subject(subject, aside, models[0], check, warnings, trust_pickle=True) if models else []
        return placed(subject, aside, folder, models, others, warnings)


def _native(estimator: Any) -> list[str]:
    """The ending of the library's own format, for boosters that are no step of a pipeline."""
    home = type(estimator).__module__.partition(".")[0]
    return {"lightgbm": [".txt"], "xgboost": [".json"], "catboost": [".cbm"]}.get(home, [])


def _options(subject: Subject, ending: str) -> dict[str, Any]:
    options = {name: value for name, value in subject.options.section().items() if value is not None}
    return {**options, **subject.options.grants(), "trust_pickle": ending not in {".txt", ".json", ".cbm"}}
