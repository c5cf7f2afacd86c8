"""The repaired network as a file: written aside, loaded again, compared, and only then put into the run."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairbits.errors import FairbitsError, MissingDependencyError
from fairbits.models import Network, load_model
from fairbits.store.files import write_whole

NAME = "repaired"
ONNX = ".onnx"
TOLERANCE = 1e-6


def export(
    network: Network, folder: Path, ending: str, inputs: npt.NDArray[np.float32]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write the network in its own format and as ONNX; gives the files, and what could not be done."""
    ready: dict[str, bytes] = {}
    warnings: list[str] = []
    with tempfile.TemporaryDirectory() as aside:
        for kind in dict.fromkeys((ending, ONNX)):
            try:
                ready[kind] = _written(network, Path(aside) / f"{NAME}{kind}", inputs)
            except MissingDependencyError as error:
                warnings.append(str(error))
    for kind, content in ready.items():
        write_whole(folder / f"{NAME}{kind}", content)
    # A file of an earlier repair in a format that this one could not write would pass for this one's.
    for kind in {".npz", ONNX} - ready.keys():
        (folder / f"{NAME}{kind}").unlink(missing_ok=True)
    return tuple(folder / f"{NAME}{kind}" for kind in ready), tuple(warnings)


def _written(network: Network, path: Path, inputs: npt.NDArray[np.float32]) -> bytes:
    network.save(path)
    found = load_model(path)
    if not isinstance(found, Network):
        raise FairbitsError(f"{path.name} came back as something else than a network; nothing was written.")
    check_same(network, found, inputs, path.name)
    return path.read_bytes()


def check_same(wanted: Network, found: Network, inputs: npt.NDArray[np.float32], name: str) -> None:
    """Refuse a file that came back with another shape or other scores."""
    shape, other = (wanted.inputs, *wanted.widths), (found.inputs, *found.widths)
    if shape != other:
        raise FairbitsError(f"{name} came back with the layers {other} in place of {shape}; nothing was written.")
    expected = wanted.scores(inputs)
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    distance = float(np.abs(expected - found.scores(inputs)).max(initial=0.0)) / scale
    if not distance <= TOLERANCE:
        raise FairbitsError(f"{name} came back with scores that differ by {distance:.2g}; nothing was written.")
