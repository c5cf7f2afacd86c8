"""Networks as .npz files: W0, b0, W1, b1 … and, where they differ from ReLU and softmax, what lies between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import MAX_MODEL_BYTES
from fairbits.errors import ModelError
from fairbits.models.black_box import reason
from fairbits.models.limits import check_archive, check_arrays, is_archive
from fairbits.models.native.activations import Activation
from fairbits.models.native.network import Network


def read_npz(path: str | Path, *, max_model_bytes: int = MAX_MODEL_BYTES) -> Network:
    """A network from a .npz file: never runs code from it, and unpacks no more than is allowed."""
    path = Path(path)
    if not is_archive(path):
        raise ModelError(f"the network {str(path)!r} is not a readable .npz file: it is no zip archive.")
    _check_kinds(path, check_arrays(path, check_archive(path, max_model_bytes), max_model_bytes))
    try:
        # Opened here and not by NumPy, which would leave a damaged file open.
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # noqa: BLE001 - a damaged archive can break anything inside
        raise ModelError(f"the network {str(path)!r} is not a readable .npz file: {reason(error)}") from None
    layers = 0
    while f"W{layers}" in arrays:
        if f"b{layers}" not in arrays:
            raise ModelError(f"the network {str(path)!r} has W{layers} but no b{layers}; every layer needs both.")
        layers += 1
    if layers == 0:
        held = ", ".join(sorted(arrays)) or "nothing"
        raise ModelError(
            f"the network {str(path)!r} has no W0; layers are named W0, b0, W1, b1 …, but it holds {held}."
        )
    try:
        return _network(arrays, layers)
    except (ValueError, TypeError) as error:  # arrays of the wrong kind or shape
        raise ModelError(f"the network {str(path)!r} holds arrays that make no network: {reason(error)}") from None


def _check_kinds(path: Path, kinds: dict[str, np.dtype[Any]]) -> None:
    """Weights are real numbers: complex ones, dates, records and texts would be bent into some."""
    for name, kind in kinds.items():
        weights = name[:1] in "Wb" and name[1:].isascii() and name[1:].isdigit()
        if (weights or name in {"alphas", "favourable"}) and kind.kind not in "fiub":
            raise ModelError(
                f"the network {str(path)!r} has {name} of type {kind}, where real numbers are needed; save it again "
                f"as float32."
            )


def _network(arrays: dict[str, npt.NDArray[Any]], layers: int) -> Network:
    names = arrays.get("activations")
    alphas = arrays.get("alphas", np.zeros(layers - 1))
    after = "relu" if names is None else [Activation(str(n), float(a)) for n, a in zip(names, alphas, strict=True)]
    return Network.build(
        [arrays[f"W{i}"] for i in range(layers)],
        [arrays[f"b{i}"] for i in range(layers)],
        activation=after,
        head=str(arrays["head"]) if "head" in arrays else None,  # type: ignore[arg-type]  # checked by Network
        favourable=int(arrays["favourable"]) if "favourable" in arrays else None,
    )


def write_npz(network: Network, path: str | Path) -> None:
    """Write a network so that ``read_npz`` reads it."""
    arrays: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {}
    for i, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        arrays[f"W{i}"], arrays[f"b{i}"] = w, b
    arrays["activations"] = np.array([a.name for a in network.activations_after], dtype=np.str_)
    arrays["alphas"] = np.array([a.alpha for a in network.activations_after], dtype=np.float64)
    arrays["head"] = np.array(network.head)
    arrays["favourable"] = np.array(network.favourable)
    with Path(path).open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # NumPy's stub does not take ** of arrays
