"""A changed network, written back in the format that it came in: same shape, other weights."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.errors import ModelError
from fairbits.models.callables import is_reference, named_model
from fairbits.models.native.network import Network
from fairbits.models.options import ModelOptions
from fairbits.models.pickles import PICKLES, read_pickle, read_skops, write_pickle, write_skops


def ending_of(original: Any, options: ModelOptions | None = None) -> str:
    """The ending of the file that a changed network goes to: the original's own, or the usual one of its framework."""
    found = settled_original(original, options or ModelOptions())
    if isinstance(found, Path):
        return found.suffix.lower()
    framework = _framework_of(found)
    return {"fairbits": ".npz", "keras": ".keras", "torch": ".pt2"}.get(framework, ".skops")


def save_as_original(network: Network, original: Any, path: str | Path, *, options: ModelOptions | None = None) -> None:
    """Write a network in the format of the model that it came from.

    An ONNX graph keeps its nodes and gets new initialisers; where a layer has none of its own, our own export of the
    network is written instead. The file appears whole or not at all.

    Parameters
    ----------
    network
        The network.
    original
        A path, a reference to code, or an object.
    path
        Where to write.
    options
        How the model is to be read and called.

    Raises
    ------
    ModelError
        If it cannot be written, or the original has other layers.
    """
    options = options or ModelOptions()
    target = Path(path)
    # The ending stays last: frameworks go by it.
    partial = target.with_name(f".part-{target.name}")
    try:
        found = settled_original(original, options)
        if isinstance(found, Path):
            _from_file(network, found, partial, options)
        else:
            _from_object(network, found, partial)
        partial.replace(target)
    except OSError as error:
        raise ModelError(f"the model cannot be written to {str(target)!r}: {error.strerror or error}.") from None
    finally:
        partial.unlink(missing_ok=True)


def settled_original(original: Any, options: ModelOptions) -> Any:
    """A path as a path, a reference as what it names, anything else as it is."""
    if isinstance(original, str) and is_reference(original) and not Path(original).exists():
        return named_model(original, trust_code=options.trust_code)
    return Path(original) if isinstance(original, str) else original


def _framework_of(model: Any) -> str:
    """Ours where nothing else is known: a network alone, or one whose origin was not kept."""
    homes = {home.__module__.partition(".")[0] for home in type(model).__mro__}
    if model is None or "fairbits" in homes:
        return "fairbits"
    return next((name for name in ("keras", "torch") if name in homes), "sklearn")


def _from_file(network: Network, original: Path, path: Path, options: ModelOptions) -> None:
    suffix = original.suffix.lower()
    if path.suffix.lower() != suffix:
        raise ModelError(f"the original is a {suffix} file, so the changed model must end in {suffix} too.")
    if suffix == ".npz":
        network.save(path)
    elif suffix == ".onnx":
        _onnx(network, original, path)
    elif suffix == ".skops":
        write_skops(_changed_sklearn(network, read_skops(original, trust_pickle=options.trust_pickle)), path)
    elif suffix in PICKLES:
        write_pickle(_changed_sklearn(network, read_pickle(original, trust_pickle=options.trust_pickle)), path)
    elif suffix == ".pt2":
        from fairbits.models.torch.writer import rewrite_pt2

        rewrite_pt2(network, original, path)
    elif suffix in {".pt", ".pth"}:
        from fairbits.models.torch.writer import rewrite_weights

        rewrite_weights(network, original, path, options)
    elif suffix == ".keras":
        from fairbits.models.keras import rewrite_keras

        rewrite_keras(network, original, path)
    else:
        raise ModelError(f"a network cannot be written back as {suffix!r}; use .npz or .onnx.")


def _from_object(network: Network, original: Any, path: Path) -> None:
    framework = _framework_of(original)
    if framework == "fairbits":
        network.save(path)
    elif framework == "keras":
        from fairbits.models.keras import rewrite_keras

        rewrite_keras(network, original, path)
    elif framework == "torch":
        from fairbits.models.torch.writer import rewrite_module

        rewrite_module(network, original, path)
    else:
        changed = _changed_sklearn(network, original)
        (write_skops if path.suffix == ".skops" else write_pickle)(changed, path)


def _onnx(network: Network, original: Path, path: Path) -> None:
    from fairbits.models.onnx.writer import has_encoders, rewrite_onnx, write_onnx

    try:
        rewrite_onnx(network, original, path)
    except ModelError:
        if has_encoders(original):  # our own graph would begin behind them
            raise
        write_onnx(network, path)


def _changed_sklearn(network: Network, estimator: Any) -> Any:
    """A copy of a pipeline whose perceptron has the network's weights."""
    from fairbits.models.sklearn_networks import is_linear, linear_with, perceptron_in
    from fairbits.models.sklearn_pipelines import final_of

    changed = copy.deepcopy(estimator)
    if is_linear(final_of(changed)):
        linear_with(final_of(changed), network)
        return changed
    perceptron = perceptron_in(changed)
    if [w.shape for w in perceptron.coefs_] != [w.shape for w in network.weights]:
        raise ModelError(
            f"the original perceptron has other layers than the network, whose widths are {network.widths}."
        )
    for old, new in ((perceptron.coefs_, network.weights), (perceptron.intercepts_, network.biases)):
        for i, array in enumerate(new):
            same = np.asarray(old[i], dtype=np.float32) == array
            old[i] = np.where(same, old[i], array).astype(old[i].dtype)  # untouched weights keep every bit
    return changed
