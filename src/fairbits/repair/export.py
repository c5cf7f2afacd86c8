"""The repaired network as files: written aside, loaded again, compared, and only then put into the run.

It goes out in the format that it came in, and as ONNX; a subject file beside them lets every command take it up.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.data import Fitted
from fairbits.domain import Codes, Encoding
from fairbits.errors import FairbitsError, MissingDependencyError
from fairbits.models import CanSave, Model, Network, ending_of, fit_to_schema, load_model, read_model, save_as_original
from fairbits.repair.placement import NAME, NPZ, ONNX, SUBJECT, Export, check_scores, placed, remove_old, tried_subject
from fairbits.repair.proposals.group_thresholds import GroupThresholds
from fairbits.repair.proposals.guard import Guard
from fairbits.subject import Subject

Floats = npt.NDArray[np.float32]


def export(  # noqa: PLR0911 - one line for each kind of model
    model: Model, subject: Subject, folder: Path, people: Codes, *, fitted: Fitted | None = None, source: Any = None
) -> Export:
    """Write a repaired model into the folder."""
    if source is not None:
        from fairbits.repair.pupil_files import export_pupil

        return export_pupil(source, model, subject, folder, people)
    if isinstance(model, Guard):
        from fairbits.repair.guard_files import export_guard

        return export_guard(model, subject, folder, people)
    if isinstance(model, GroupThresholds):
        from fairbits.repair.estimator_files import export_thresholds

        return export_thresholds(model, subject, folder, people)
    if fitted is not None and fitted.estimator is not None:
        from fairbits.repair.estimator_files import export_estimator

        return export_estimator(fitted, subject, folder, people)
    if not isinstance(model, Network) and isinstance(model, CanSave):
        return _own_file(model, folder)
    if not isinstance(model, Network):
        note = f"a repaired {type(model).__name__!r} has no file format here; give it save(path) to have it written."
        remove_old(folder)
        return Export((), None, (note,))
    return export_network(model, subject, folder, people)


def _own_file(model: CanSave, folder: Path) -> Export:
    """A model from outside that writes itself: nobody here can read it back to compare."""
    remove_old(folder, [NAME])
    path = folder / NAME
    model.save(path)
    note = f"{NAME} was written by the proposal itself, in a format of its own; it was not loaded again."
    return Export((path,), None, (note,))


def export_network(network: Network, subject: Subject, folder: Path, people: Codes) -> Export:
    """Write a native network: in the format that it came in, and as ONNX."""
    with tempfile.TemporaryDirectory() as place:
        aside = _Aside(network, subject, Path(place), people)
        aside.write_original()
        aside.write_onnx()
        others = aside.write_subject()
        return placed(subject, aside.folder, folder, aside.models, others, aside.warnings)


@dataclass(slots=True)
class _Aside:
    """Files on their way: ``models`` are those that came back the same."""

    network: Network
    subject: Subject
    folder: Path
    people: Codes
    models: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def write_original(self) -> None:
        """In the format that it came in; in our own where that cannot hold the repair."""
        ending = ending_of(self.subject.original, self.subject.options)
        path = self.folder / f"{NAME}{ending}"
        try:
            save_as_original(self.network, self.subject.original, path, options=self.subject.options)
            self._check_encoded(path)
        except FairbitsError as error:
            path.unlink(missing_ok=True)
            if ending == NPZ:
                raise
            self.warnings.append(
                f"the repaired network could not be written as {ending}, the format that it came in: {error}"
            )
            path = self.folder / f"{NAME}{NPZ}"
            self.network.save(path)
            self._check_plain(path)
        self._done(path)

    def write_onnx(self) -> None:
        """As ONNX, which most runtimes read. It takes encoded rows where the original takes people."""
        path = self.folder / f"{NAME}{ONNX}"
        if path.name in self.models:
            return
        try:
            self.network.save(path)
            self._check_plain(path)
        except MissingDependencyError as error:
            self.warnings.append(str(error))
            return
        self._done(path)

    def write_subject(self) -> list[str]:
        """A subject file about the first of the models, tried out as a user would; gives what is ready."""

        def check(found: Subject) -> None:
            self._compare(found.model, found.encoding, SUBJECT)

        return tried_subject(self.subject, self.folder, self.models[0], check, self.warnings)

    def _done(self, path: Path) -> None:
        self.models.append(path.name)

    def _check_encoded(self, path: Path) -> None:
        """A file that may bring encoders of its own."""
        options, schema = self.subject.options, self.subject.schema
        loaded = read_model(path, schema, options)
        encoding = loaded.encoding or self.subject.encoding
        found = fit_to_schema(replace(loaded, encoding=encoding), schema, options=options)
        self._compare(found.model, encoding, path.name)

    def _check_plain(self, path: Path) -> None:
        self._compare(load_model(path), self.subject.encoding, path.name)

    def _compare(self, found: Model, encoding: Encoding, name: str) -> None:
        wanted = self.network.scores(self.subject.encoding.encode(self.people))
        check_same(self.network, wanted, found, encoding.encode(self.people), name)


def check_same(network: Network, wanted: Floats, found: Model, inputs: Floats, name: str) -> None:
    """Refuse a file that came back with another shape or other scores."""
    if isinstance(found, Network):
        shape, other = (network.inputs, *network.widths), (found.inputs, *found.widths)
        if shape != other:
            raise FairbitsError(f"{name} came back with the layers {other} in place of {shape}, so it was not kept.")
    check_scores(wanted, found.scores(inputs), name)
