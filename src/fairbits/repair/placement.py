"""Files of a repaired model on their way into a run: written aside, loaded again, compared, then put into place."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from fairbits.data import load_subject
from fairbits.domain import Codes
from fairbits.errors import FairbitsError
from fairbits.repair.subject import TABLE, has_table_file, says_encoding, subject_text
from fairbits.store import write_whole
from fairbits.subject import Subject, table_of_subject

NAME = "repaired"
NPZ, ONNX, SUBJECT = ".npz", ".onnx", f"{NAME}.toml"
#: Scores may move by this much of their scale: parameters that a normalisation divides are rounded once more.
TOLERANCE = 1e-5
#: People whose scores files must give back.
_COMPARED = 500

Scores = npt.NDArray[Any]
#: Writes the file, and gives back how the file, loaded again, scores people.
Writer = Callable[[Path], Callable[[Codes], Scores]]


@dataclass(frozen=True, slots=True)
class Export:
    """The model files, the subject file about the first of them, and in words what could not be done."""

    files: tuple[Path, ...]
    subject_file: Path | None
    warnings: tuple[str, ...]


def remove_old(folder: Path, kept: Sequence[str] = ()) -> None:
    """Take away files of an earlier repair, which would pass for this one's."""
    for old in (*folder.glob(f"{NAME}.*"), folder / TABLE):
        if old.name not in kept:
            old.unlink(missing_ok=True)


def export_compared(
    writers: Mapping[str, Writer],
    scores: Callable[[Codes], Scores],
    subject: Subject,
    folder: Path,
    people: Codes,
    *,
    what: str,
    described: Sequence[str] | None = None,
    pickles: Sequence[str] = (),
) -> Export:
    """Write a model in several formats, keep the files that give back its scores, and put them into the run."""
    some = people[np.linspace(0, len(people) - 1, min(_COMPARED, len(people))).astype(np.int64)]
    wanted = np.asarray(scores(some))
    written: list[str] = []
    warnings: list[str] = []

    def check(found: Subject) -> None:
        check_scores(wanted, np.asarray(found.model.scores(found.encoding.encode(some))), SUBJECT)

    with tempfile.TemporaryDirectory() as place:
        aside = Path(place)
        for ending, write in writers.items():
            path = aside / f"{NAME}{ending}"
            try:
                check_scores(wanted, np.asarray(write(path)(some)), path.name)
            except FairbitsError as error:
                path.unlink(missing_ok=True)
                warnings.append(f"{what} was not written as {ending}: {error}")
                continue
            written.append(ending)
        first = next((ending for ending in (written if described is None else described) if ending in written), None)
        written.sort(key=lambda ending: ending != first)  # the subject file is about the first
        others = []
        if first is not None:
            name, trusted = f"{NAME}{first}", first in pickles
            others = tried_subject(subject, aside, name, check, warnings, trust_pickle=trusted)
        return placed(subject, aside, folder, [f"{NAME}{ending}" for ending in written], others, warnings)


def check_scores(wanted: Scores, found: Scores, name: str) -> None:
    """Refuse a file that gives back other scores."""
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    distance = float(np.abs(wanted - found).max(initial=0.0)) / scale
    if not distance <= TOLERANCE:
        raise FairbitsError(f"{name} came back with scores that differ by {distance:.2g}, so it was not kept.")


def tried_subject(
    subject: Subject,
    aside: Path,
    model: str,
    check: Callable[[Subject], None],
    warnings: list[str],
    *,
    trust_pickle: bool = False,
) -> list[str]:
    """Write a subject file about a model file beside it, and try it out as a user would."""
    names = [SUBJECT]
    grants = subject.options.grants() | ({"trust_pickle": True} if trust_pickle else {})
    try:
        if not has_table_file(subject):
            pq.write_table(table_of_subject(subject), aside / TABLE, compression="zstd")
            names.append(TABLE)
        (aside / SUBJECT).write_text(subject_text(subject, model, aside), encoding="utf-8")
        check(load_subject(aside / SUBJECT, **grants))
    except FairbitsError as error:
        why = f"it did not come back as the repaired model: {error}"
        if model.endswith((NPZ, ONNX)) and not says_encoding(subject):
            why = (
                f"{model} takes rows as the encoders of the original make them (it has encoders of its own), which a "
                f"subject file cannot say; feed it what they put out."
            )
        warnings.append(f"{SUBJECT} was left out, because {why}")
        return []
    return names


def placed(
    subject: Subject, aside: Path, folder: Path, models: Sequence[str], others: Sequence[str], warnings: Sequence[str]
) -> Export:
    """Put files into the run, in place of those of an earlier repair."""
    ready = [*models, *others]
    remove_old(folder, ready)
    for name in ready:
        if name != SUBJECT:
            write_whole(folder / name, (aside / name).read_bytes())
    if SUBJECT in ready:  # written anew: seen from here, the table lies elsewhere
        write_whole(folder / SUBJECT, subject_text(subject, models[0], folder).encode())
    files = tuple(folder / name for name in models)
    return Export(files, folder / SUBJECT if SUBJECT in ready else None, tuple(warnings))
