"""One door for models: files by their ending, code by its name, services by their address, objects as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fairbits.domain import Encoding, Schema, is_there
from fairbits.errors import FairbitsError, ModelError
from fairbits.models.base import Model
from fairbits.models.black_box import attribute, homes_of, is_model, owned
from fairbits.models.callables import check_reference, is_reference, named_model
from fairbits.models.limits import check_archive, check_arrays, check_file, is_archive
from fairbits.models.native.network import Network
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded, fit_to_schema, read_output
from fairbits.models.pickles import PICKLES

Reader = Callable[[Path, Schema | None, ModelOptions], Loaded]


def load_model(source: Any, *, schema: Schema | None = None, **options: Any) -> Model:
    """The model at a path, address or reference, ready to score encoded rows.

    Files: .npz, .onnx, .skops, .pt2, .pt with ``factory``, .keras, and pickles with ``trust_pickle=True``. With a
    schema the model scores its favourable class; see :func:`load_with_encoding` for how its rows are made.

    Parameters
    ----------
    source
        A path, an address, a reference such as package.module:name, or an object.
    schema
        The attributes, and what is decided; None where they are not known.
    **options
        Those of :class:`~fairbits.models.ModelOptions`, such as ``trust_pickle=True``.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    ModelError
        If it cannot be read.
    """
    chosen = ModelOptions.of(options)
    loaded = read_model(source, schema, chosen)
    return loaded.model if schema is None else fit_to_schema(loaded, schema, options=chosen).model


def load_with_encoding(source: Any, schema: Schema, **options: Any) -> tuple[Model, Encoding]:
    """The model, and how the schema's codes become its rows.

    Parameters
    ----------
    source
        A path, an address, a reference such as package.module:name, or an object.
    schema
        The attributes, and what is decided.
    **options
        Those of :class:`~fairbits.models.ModelOptions`.

    Returns
    -------
    tuple[Model, Encoding]
        Model and encoding.

    Raises
    ------
    ModelError
        If it cannot be read, or does not fit the schema.
    """
    chosen = ModelOptions.of(options)
    loaded = fit_to_schema(read_model(source, schema, chosen), schema, options=chosen)
    return loaded.model, loaded.encoding


def read_model(source: Any, schema: Schema | None = None, options: ModelOptions | None = None) -> Loaded:
    """Read a model with the adapter for its kind."""
    options = options or ModelOptions()
    if not isinstance(source, str | Path):
        return adapt(source, schema, options)
    text = str(source)
    if is_url(text):
        from fairbits.models.http import from_url

        return from_url(text, schema, options)
    file = Path(source)
    if isinstance(source, str) and is_reference(text) and not is_there(file):
        check_reference(text, trust_code=options.trust_code)
        return adapt(named_model(text, trust_code=options.trust_code), schema, options)
    return _reader(_checked(file, options))(file, schema, options)


def is_url(text: str) -> bool:
    """Whether a text is the address of a service."""
    return text.startswith(("http://", "https://"))


def adapt(model: Any, schema: Schema | None = None, options: ModelOptions | None = None) -> Loaded:
    """Adapt an object in memory: our own kinds, scikit-learn, PyTorch, Keras, anything that predicts, any function."""
    options = options or ModelOptions()
    homes = homes_of(model)
    if isinstance(model, Loaded):
        return model
    if "fairbits" in homes or is_model(model):
        return Loaded(owned(model))
    if "keras" in homes:
        from fairbits.models.keras import from_keras

        return from_keras(model, schema, options)
    if "torch" in homes:
        from fairbits.models.torch.adapter import from_torch

        return from_torch(model, schema, options)
    if callable(attribute(model, "predict_proba")) or callable(attribute(model, "predict")):
        from fairbits.models.sklearn import from_sklearn

        return from_sklearn(model, schema, options)
    if callable(model):
        from fairbits.models.predictors import from_function

        return from_function(model, schema, options)
    entries = model.items() if isinstance(model, Mapping) else ()
    inside = next((str(name) for name, one in entries if callable(attribute(one, "predict"))), None)
    if inside is not None:
        raise ModelError(
            f"a {type(model).__name__!r} is no model, but its {inside[:60]!r} is one; hand over or save that alone."
        )
    raise ModelError(f"a {type(model).__name__!r} is no model: it has neither scores, predict_proba nor predict.")


def save_network(network: Network, path: str | Path) -> None:
    """Write a network in the format that the ending names."""
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in {".npz", ".onnx"}:
        raise ModelError(f"a network cannot be saved as {str(file)!r}; use .npz or .onnx.")
    try:
        if suffix == ".npz":
            from fairbits.models.native.npz import write_npz

            write_npz(network, file)
        else:
            from fairbits.models.onnx.writer import write_onnx

            write_onnx(network, file)
    except OSError as error:
        raise ModelError(f"the model cannot be written to {str(file)!r}: {error.strerror or error}.") from None


def _checked(file: Path, options: ModelOptions) -> Path:
    if not is_there(file):
        raise ModelError(f"the model {str(file)!r} does not exist; check the path.")
    if file.is_dir():
        raise ModelError(f"the model {str(file)!r} is a folder; name the file in it.")
    if file.stat().st_size == 0:
        raise ModelError(f"the model {str(file)!r} is empty; export it again.")
    suffix = file.suffix.lower()
    if suffix in _ARCHIVES and not is_archive(file):
        # Frameworks say strange things here: that the file is missing, or that it might be trusted.
        raise ModelError(
            f"the model {str(file)!r} is not a readable {suffix} file: it should be a zip archive, and is damaged or "
            f"something else; export it again."
        )
    check_file(file, options.max_model_bytes)
    if suffix in _ARCHIVES or (suffix in {".pt", ".pth"} and is_archive(file)):
        check_archive(file, options.max_model_bytes)
    return file


def _reader(file: Path) -> Reader:
    suffix = file.suffix.lower()
    if suffix in PICKLES:
        return _pickled
    if suffix not in _READERS:
        known = ", ".join(_READERS)
        raise ModelError(f"the model {str(file)!r} has the ending {suffix!r}, which is not known; use {known}.")
    return _READERS[suffix]


def _npz(file: Path, _schema: Schema | None, options: ModelOptions) -> Loaded:
    from fairbits.models.native.npz import read_npz

    network = read_npz(file, max_model_bytes=options.max_model_bytes)
    return Loaded(
        read_output(network if options.favourable is None else network.with_favourable(options.favourable), options)
    )


def _onnx(file: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    from fairbits.models.onnx.adapter import read_onnx

    return read_onnx(file, schema, options)


def _skops(file: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    from fairbits.models.pickles import check_references, plain_skops, read_skops, refuse_untrusted

    try:
        check_arrays(file, check_archive(file, options.max_model_bytes), options.max_model_bytes)
    except ModelError:
        if not options.trust_pickle:
            raise
    else:
        check_references(file)
    if not options.trust_pickle:
        refuse_untrusted(file)
    if not plain_skops(file):
        options = _tried(file, schema, options, "skops.io", "sklearn.ensemble", "pandas")
    return _in_file(read_skops(file, trust_pickle=options.trust_pickle), file, schema, options)


def _pickled(file: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    from fairbits.models.pickles import names_sklearn, read_pickle

    if options.trust_pickle:
        # Imported here while the child imports it, and not counted as the model's own time.
        more = ("sklearn.ensemble",) if names_sklearn(file) else ()
        options = _tried(file, schema, options, "joblib", "pandas", *more)
    return _in_file(read_pickle(file, trust_pickle=options.trust_pickle), file, schema, options)


def _pt2(file: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    from fairbits.models.torch.files import read_pt2

    return read_pt2(file, schema, options)


def _weights(file: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    from fairbits.models.torch.files import read_weights

    return read_weights(file, schema, options)


def _keras(file: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    from fairbits.models.keras import read_file

    return read_file(file, schema, options)


def _booster(file: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    from fairbits.models.trees import read_booster

    return read_booster(file, schema, options)


def _tried(file: Path, schema: Schema | None, options: ModelOptions, *needs: str) -> ModelOptions:
    """The options for a model that has been loaded and called in a child process first."""
    from fairbits.models.trial import tried

    return tried(file, schema, options, needs=needs)


def _in_file(model: Any, file: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    try:
        return adapt(model, schema, options)
    except FairbitsError as error:
        raise type(error)(f"the model in {str(file)!r}: {error}") from None


_ARCHIVES = {".npz", ".skops", ".pt2", ".keras"}
_READERS: dict[str, Reader] = {
    ".npz": _npz,
    ".onnx": _onnx,
    ".skops": _skops,
    ".pt2": _pt2,
    ".pt": _weights,
    ".pth": _weights,
    ".keras": _keras,
    ".txt": _booster,
    ".json": _booster,
    ".ubj": _booster,
    ".cbm": _booster,
}
