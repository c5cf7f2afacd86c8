"""One door for model files: the ending says which adapter reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fairbits.errors import ModelError
from fairbits.models.network import Network


def load_model(path: str | Path) -> Network:
    """The network in a file, ready to score encoded rows."""
    file = Path(path)
    if not file.exists():
        raise ModelError(f"the model {str(file)!r} does not exist; check the path.")
    if file.is_dir():
        raise ModelError(f"the model {str(file)!r} is a folder; name the file in it.")
    if file.stat().st_size == 0:
        raise ModelError(f"the model {str(file)!r} is empty; export it again.")
    return _adapter(file)[0](file)


def save_network(network: Network, path: str | Path) -> None:
    """Write a network in the format that the ending names."""
    file = Path(path)
    write = _adapter(file)[1]
    try:
        write(network, file)
    except OSError as error:
        raise ModelError(f"the model cannot be written to {str(file)!r}: {error.strerror or error}.") from None


def _adapter(file: Path) -> tuple[Callable[[Path], Network], Callable[[Network, Path], None]]:
    suffix = file.suffix.lower()
    if suffix == ".npz":
        from fairbits.models.npz import read_npz, write_npz

        return read_npz, write_npz
    if suffix == ".onnx":
        from fairbits.models.onnx import read_onnx, write_onnx

        return read_onnx, write_onnx
    if suffix in {".pkl", ".pickle", ".joblib"}:
        raise ModelError(
            f"the model {str(file)!r} is a pickle, which runs code when it is opened; save it as .npz or .onnx."
        )
    raise ModelError(f"the model {str(file)!r} has the ending {suffix!r}, which is not known; use .npz or .onnx.")
