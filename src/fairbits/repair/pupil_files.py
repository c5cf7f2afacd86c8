"""A fitted estimator as files: its library's own format, skops or a pickle; loaded again, and compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import Codes
from fairbits.models import Model, ending_of, load_with_encoding, save_estimator
from fairbits.repair.placement import Export, Scores, export_compared
from fairbits.subject import Subject


def export_pupil(estimator: Any, model: Model, subject: Subject, folder: Path, people: Codes) -> Export:
    """Write an estimator that was fitted again, in the format that the original came in and its library's own."""
    endings = dict.fromkeys([ending_of(subject.original, subject.options), ".skops", *_native(estimator)])

    def written(path: Path) -> Callable[[Codes], Scores]:
        save_estimator(estimator, path)
        found, encoding = load_with_encoding(path, subject.schema, **_options(subject, path.suffix))
        return lambda codes: np.asarray(found.scores(encoding.encode(codes)))

    return export_compared(
        dict.fromkeys(endings, written),
        lambda codes: np.asarray(model.scores(subject.encoding.encode(codes))),
        subject,
        folder,
        people,
        what="the repaired model",
        pickles=tuple(endings),
    )


def _native(estimator: Any) -> list[str]:
    """The ending of the library's own format, for boosters that are no step of a pipeline."""
    home = type(estimator).__module__.partition(".")[0]
    return {"lightgbm": [".txt"], "xgboost": [".json"], "catboost": [".cbm"]}.get(home, [])


def _options(subject: Subject, ending: str) -> dict[str, Any]:
    options = {name: value for name, value in subject.options.section().items() if value is not None}
    return {**options, **subject.options.grants(), "trust_pickle": ending not in {".txt", ".json", ".cbm"}}
