"""A fitted estimator as files: its library's own format, skops or a pickle; loaded again, and compared."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from fairbits.data import load_subject
from fairbits.domain import Codes
from fairbits.errors import FairbitsError
from fairbits.models import Model, ending_of, load_with_encoding, save_estimator
from fairbits.repair.export import NAME, SUBJECT, TOLERANCE, Export, remove_old
from fairbits.repair.subject import TABLE, has_table_file, subject_text
from fairbits.store import write_whole
from fairbits.subject import Subject, table_of_subject

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
    ready: list[str] = []
    warnings: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        aside = Path(place)
        for ending in dict.fromkeys([ending_of(subject.original, subject.options), ".skops", *_native(estimator)]):
            path = aside / f"{NAME}{ending}"
            try:
                save_estimator(estimator, path)
                found, encoding = load_with_encoding(path, subject.schema, **_options(subject, ending))
                _check(wanted, np.asarray(found.scores(encoding.encode(some))), path.name)
            except FairbitsError as error:
                path.unlink(missing_ok=True)
                warnings.append(f"the repaired model was not written as {ending}: {error}")
                continue
            models.append(path.name)
        ready += models
        if models:
            ready += _subject_files(subject, aside, models[0], some, wanted, warnings)
        remove_old(folder, ready)
        for name in ready:
            if name != SUBJECT:
                write_whole(folder / name, (aside / name).read_bytes())
    if SUBJECT in ready:
        write_whole(folder / SUBJECT, subject_text(subject, models[0], folder).encode())
    return Export(tuple(folder / n for n in models), folder / SUBJECT if SUBJECT in ready else None, tuple(warnings))


def _native(estimator: Any) -> list[str]:
    """The ending of the library's own format, for boosters that are no step of a pipeline."""
    home = type(estimator).__module__.partition(".")[0]
    return {"lightgbm": [".txt"], "xgboost": [".json"], "catboost": [".cbm"]}.get(home, [])


def _options(subject: Subject, ending: str) -> dict[str, Any]:
    options = {name: value for name, value in subject.options.section().items() if value is not None}
    return {**options, **subject.options.grants(), "trust_pickle": ending not in {".txt", ".json", ".cbm"}}


def _check(wanted: Any, found: Any, name: str) -> None:
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    distance = float(np.abs(wanted - found).max(initial=0.0)) / scale
    if not distance <= TOLERANCE:
        raise FairbitsError(f"{name} came back with scores that differ by {distance:.2g}, so it was not kept.")


def _subject_files(
    subject: Subject, aside: Path, model: str, people: Codes, wanted: Any, warnings: list[str]
) -> list[str]:
    """A subject file about the first of the files, tried out as a user would."""
    names = [SUBJECT]
    try:
        if not has_table_file(subject):
            pq.write_table(table_of_subject(subject), aside / TABLE, compression="zstd")
            names.append(TABLE)
        (aside / SUBJECT).write_text(subject_text(subject, model, aside), encoding="utf-8")
        grants = subject.options.grants()
        grants["trust_pickle"] = True  # our own file, just written
        found = load_subject(aside / SUBJECT, **grants)
        _check(wanted, np.asarray(found.model.scores(found.encoding.encode(people))), SUBJECT)
    except FairbitsError as error:
        warnings.append(f"{SUBJECT} was left out, because it did not come back as the repaired model: {error}")
        return []
    return names
