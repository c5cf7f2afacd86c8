"""One door for models: files by their ending, code by its name, services by their address, objects as they are.

Code is ``package.module:name``: a function, a predictor, a module or a network. A changed network goes back out by the
same door, in the format in which it came in: same shape, other weights.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pickle
import re
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fairbits.domain import Encoding, Schema
from fairbits.errors import FairbitsError, ModelError, choose_from, foreign
from fairbits.models.base import Model, needed
from fairbits.models.black_box import attribute, homes_of, is_model, wrap_foreign
from fairbits.models.guards import check_archive, check_arrays, checked_file, is_archive, options_after_trial
from fairbits.models.native.network import Network, read_npz
from fairbits.models.options import DEFAULTS, ModelOptions
from fairbits.models.outputs import Loaded, fit_to_schema, read_output
from fairbits.models.trees.ensemble import Damaged

PICKLES = (".pkl", ".pickle", ".joblib")
_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
#: No model comes from there, and much of it (exec, fork, exit) does harm to whoever calls it with rows.
_NO_MODELS = frozenset({*sys.stdlib_module_names, *sys.builtin_module_names})


def is_reference(text: str) -> bool:
    return _REFERENCE.fullmatch(text) is not None


def check_reference(reference: str, *, trust_code: bool) -> None:
    """Refuse a reference that names no code, names the standard library, or is not trusted; imports nothing."""
    if not is_reference(reference):
        raise ModelError(f"{reference!r} does not name Python code; write package.module:name.")
    home = reference.partition(":")[0].partition(".")[0]
    if home in _NO_MODELS:
        raise ModelError(f"{reference!r} belongs to Python itself, which has no models; name a function of your own.")
    if not trust_code:
        raise ModelError(
            f"{reference!r} names Python code, and importing it runs it; add --trust-code if you trust whoever wrote "
            f"it (trust_code=True in Python)."
        )


def named_object(reference: str, *, trust_code: bool = False) -> Any:
    """The object that a reference names.

    Modules are looked for where Python looks and, like ``python -m``, in this folder.
    """
    check_reference(reference, trust_code=trust_code)
    module_name, _, path = reference.partition(":")
    found: Any = _module(module_name)
    for name in path.split("."):
        if not hasattr(found, name):
            public = [entry for entry in dir(found) if not entry.startswith("_")]
            raise ModelError(f"{module_name!r} has no {path!r}; {choose_from(name, public)}")
        found = getattr(found, name)
    # What a module of one's own only passes on is refused: ``mymodule:os.fork``, or ``from builtins import exec``.
    home = getattr(found, "__module__", None) or type(found).__module__
    if inspect.ismodule(found):
        raise ModelError(f"{reference!r} is a module; name a function or a model in it.")
    code = inspect.isroutine(found) or inspect.isclass(found)
    if code and str(home).partition(".")[0] in _NO_MODELS - {"__main__"}:
        raise ModelError(
            f"{reference!r} belongs to Python itself ({home}), which has no models; name a function of your own."
        )
    return found


def named_model(reference: str, *, trust_code: bool = False) -> Any:
    """The model that a reference names.

    A function or class that takes no argument is called and makes the model; one that takes rows is the model.
    """
    found = named_object(reference, trust_code=trust_code)
    if not (inspect.isroutine(found) or inspect.isclass(found)) or _takes_something(found):
        return found
    return made_by(found, reference)


def made_by(factory: Any, reference: str) -> Any:
    """The model that a factory makes.

    An exit that it asks for is an error; if it forks, the copy of this process ends.
    """
    me = os.getpid()
    try:
        with foreign(f"{reference!r} failed to make a model"):
            return factory()
    finally:
        _only(me)


def _only(process: int) -> None:
    """End a copy of the process that foreign code has made by a fork: it must not go on with our work."""
    if os.getpid() != process:
        os._exit(70)


def _takes_something(found: Any) -> bool:
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):  # compiled code may not tell
        return True
    return any(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in parameters)


def _module(name: str) -> Any:
    here, me = str(Path.cwd()), os.getpid()
    added = here not in sys.path
    if added:
        sys.path.append(here)
    try:
        with foreign(f"the Python module {name!r} cannot be imported; install it or go to its folder"):
            return importlib.import_module(name)
    finally:
        _only(me)
        if added and here in sys.path:
            sys.path.remove(here)


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
    """
    chosen = ModelOptions.of(options)
    loaded = fit_to_schema(read_model(source, schema, chosen), schema, options=chosen)
    return loaded.model, loaded.encoding


def read_model(source: Any, schema: Schema | None = None, options: ModelOptions = DEFAULTS) -> Loaded:
    if isinstance(source, str) and is_url(source):
        return _own("http:from_url")(source, schema, options)
    file = settled_original(source, options)
    if not isinstance(file, Path):
        return adapt(file, schema, options)
    suffix = checked_file(file, options.max_model_bytes).suffix.lower()
    if suffix == ".npz":
        network = read_npz(file, max_model_bytes=options.max_model_bytes)
        favoured = network if options.favourable is None else network.with_favourable(options.favourable)
        return Loaded(read_output(favoured, options))
    _check_packed(file, options)
    if suffix not in _READERS:
        known = ", ".join(name for name in (".npz", *_READERS) if name not in PICKLES)
        raise ModelError(f"the model {str(file)!r} has the ending {suffix!r}, which is not known; use {known}.")
    return _own(_READERS[suffix])(file, schema, options)


def _own(place: str) -> Callable[..., Any]:
    """A function of this package, imported when it is needed."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"fairbits.models.{module}"), name)


def read_decider(source: str | Path, options: ModelOptions) -> Any:
    """What a reference names or a file of scikit-learn holds, before anything is known about its inputs."""
    file = settled_original(source, options)
    if not isinstance(file, Path):
        return file
    _check_packed(checked_file(file, options.max_model_bytes), options)
    ending = file.suffix.lower()
    if ending not in (*PICKLES, ".skops"):
        raise ModelError(
            f"the decider {str(file)!r} is a {ending or 'nameless'} file; texts take a .skops file, a pickle, "
            f"module:function, an address that ends in /v1, or an .onnx or .pt2 file with its tokenizer or encoder "
            f"under [model]."
        )
    return read_object(file, trust_pickle=options.trust_pickle)


def is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def adapt(model: Any, schema: Schema | None = None, options: ModelOptions = DEFAULTS) -> Loaded:
    """Adapt an object in memory: our own kinds, scikit-learn, PyTorch, Keras, anything that predicts, any function."""
    homes = homes_of(model)
    if isinstance(model, Loaded):
        return model
    if "fairbits" in homes or is_model(model):
        return Loaded(wrap_foreign(model))
    adapters = {
        "keras:from_keras": "keras" in homes,
        "torch:from_torch": "torch" in homes,
        "sklearn:from_sklearn": any(callable(attribute(model, name)) for name in ("predict_proba", "predict")),
        "predictors:from_function": callable(model),
    }
    way = next((name for name, meant in adapters.items() if meant), None)
    if way is not None:
        return _own(way)(model, schema, options)
    entries = model.items() if isinstance(model, Mapping) else ()
    inside = next((str(name) for name, one in entries if callable(attribute(one, "predict"))), None)
    if inside is not None:
        raise ModelError(
            f"a {type(model).__name__!r} is no model, but its {inside[:60]!r} is one; hand over or save that alone."
        )
    raise ModelError(f"a {type(model).__name__!r} is no model: it has neither scores, predict_proba nor predict.")


def _check_packed(file: Path, options: ModelOptions) -> None:
    """Hold what is packed in a file against the limits."""
    suffix = file.suffix.lower()
    if suffix in _ARCHIVES and not is_archive(file):
        # Frameworks say strange things here: that the file is missing, or that it might be trusted.
        raise ModelError(
            f"the model {str(file)!r} is not a readable {suffix} file: it should be a zip archive, and is damaged or "
            f"something else; export it again."
        )
    if suffix in _ARCHIVES or (suffix in {".pt", ".pth"} and is_archive(file)):
        entries = check_archive(file, options.max_model_bytes)
        if suffix == ".skops" and not options.trust_pickle:
            check_arrays(file, entries, options.max_model_bytes)


def _object(file: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    """A .skops file, or a pickle, which is opened only where it is trusted."""
    safe = file.suffix.lower() == ".skops"
    if safe or options.trust_pickle:
        # Imported here while the child imports it, and not counted as the model's own time.
        options = options_after_trial(
            file, schema, options, needs=("skops.io" if safe else "joblib", "sklearn.ensemble", "pandas")
        )
    return adapt_content(read_object(file, trust_pickle=options.trust_pickle), file, schema, options)


def adapt_content(model: Any, file: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    try:
        return adapt(model, schema, options)
    except FairbitsError as error:
        raise type(error)(f"the model in {str(file)!r}: {error}") from None


_ARCHIVES = {".skops", ".pt2", ".keras"}  # .npz is checked by its reader
_FRAMEWORKS = {
    **{".npz": "fairbits", ".onnx": "onnx", ".keras": "keras", ".skops": "sklearn"},
    **dict.fromkeys(PICKLES, "sklearn"),
    **dict.fromkeys((".pt2", ".pt", ".pth"), "torch"),
}
#: The function that reads a kind of file, by its ending; .npz is our own.
_READERS = {
    ".onnx": "onnx:read_onnx",
    **dict.fromkeys((".skops", *PICKLES), "registry:_object"),
    ".pt2": "torch:read_pt2",
    **dict.fromkeys((".pt", ".pth"), "torch:read_weights"),
    ".keras": "keras:read_file",
    **dict.fromkeys((".txt", ".json", ".ubj", ".cbm"), "trees.adapter:read_file"),
}
#: The function that writes a network into an original of a framework.
_WRITERS = {
    **{"onnx": "onnx:rewrite_onnx", "keras": "keras:rewrite_keras"},
    **{"torch": "torch:rewrite_torch", "sklearn": "sklearn:rewrite_sklearn"},
}


def ending_of(original: Any, options: ModelOptions = DEFAULTS) -> str:
    """The ending of the file that a changed network goes to: the original's own, or the usual one of its framework."""
    found = settled_original(original, options)
    if isinstance(found, Path):
        return found.suffix.lower()
    return {"fairbits": ".npz", "keras": ".keras", "torch": ".pt2"}.get(_framework_of(found), ".skops")


def save_as_original(network: Network, original: Any, path: str | Path, *, options: ModelOptions = DEFAULTS) -> None:
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
    """
    target = Path(path)
    # The ending stays last: frameworks go by it.
    partial = target.with_name(f".part-{target.name}")
    try:
        _rewritten(network, settled_original(original, options), partial, options)
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
    if isinstance(model, Path):
        return _FRAMEWORKS.get(model.suffix.lower(), "")
    homes = homes_of(model)
    if model is None or "fairbits" in homes:
        return "fairbits"
    return next((name for name in ("keras", "torch") if name in homes), "sklearn")


def _rewritten(network: Network, original: Any, path: Path, options: ModelOptions) -> None:
    ending = original.suffix.lower() if isinstance(original, Path) else path.suffix
    if path.suffix.lower() != ending:
        raise ModelError(f"the original is a {ending} file, so the changed model must end in {ending} too.")
    framework = _framework_of(original)
    if framework == "fairbits":
        network.save(path)
    elif framework in _WRITERS:
        _own(_WRITERS[framework])(network, original, path, options)
    else:
        raise ModelError(f"a network cannot be written back as {ending!r}; use .npz or .onnx.")


#: Types inside every perceptron and every encoder that skops leaves to its users to trust: they hold numbers only.
_HARMLESS = {
    "numpy.dtype",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    # Trees are arrays; they are read as data and checked before anything follows their child numbers.
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    # What ensembles of ensembles and calibrated ones keep their parts in; the parts are listed by themselves.
    "sklearn.utils._bunch.Bunch",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.impute._iterative.IterativeImputer",
    "sklearn.impute._iterative._ImputerTriplet",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.StratifiedKFold",
    # The knots and weights of a SplineTransformer, and what makes arrays of them.
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "scipy.interpolate._bsplines.BSpline",
    # Inside a HistGradientBoosting with categories: the check of its own columns. Whatever function a partial holds
    # is listed by itself, so that no other comes in with it.
    "functools.partial",
    "sklearn.utils.validation.check_array",
    # What chose the columns of a SelectKBest, and what finished searches over settings or thresholds were judged by:
    # functions of numbers that nobody calls when it predicts. (The functions of scikit-learn's metrics: see below.)
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.feature_selection._univariate_selection.f_regression",
    "sklearn.feature_selection._univariate_selection.r_regression",
    "sklearn.feature_selection._mutual_info.mutual_info_classif",
    "sklearn.feature_selection._mutual_info.mutual_info_regression",
    "sklearn.metrics._scorer._Scorer",
    "sklearn.metrics._scorer._CurveScorer",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
    # Gaussian processes: the kernels are formulas with a few numbers.
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    *(
        f"sklearn.gaussian_process.kernels.{kernel}"
        for kernel in (
            *("CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern"),
            *("Product", "RBF", "RationalQuadratic", "Sum", "WhiteKernel"),
        )
    ),
}
_METRIC = re.compile(r"sklearn\.metrics\._[a-z_]+\.[a-z0-9_]+_(score|loss|error)")


def trusted_types(path: Path, *, trust_pickle: bool) -> list[str]:
    """The types of a .skops file that skops has to be told of; refused where they are neither known nor trusted."""
    io = needed("skops.io", "sklearn", "reading .skops files")
    with foreign(f"the model {str(path)!r} is not a readable .skops file"):
        unknown: list[str] = io.get_untrusted_types(file=path)
    doubtful = [name for name in unknown if name not in _HARMLESS and not _METRIC.fullmatch(name)]
    if doubtful and not trust_pickle:
        more = f" and {len(doubtful) - 8} more" if len(doubtful) > 8 else ""
        raise ModelError(
            f"the model {str(path)!r} holds types that are not known to be safe: {', '.join(doubtful[:8])}{more}; "
            f"if you trust whoever made it, add --trust-pickle."
        )
    return unknown


def read_object(path: Path, *, trust_pickle: bool) -> Any:
    """The object in a file: a pickle or joblib file runs whatever code it holds, so only on the user's word."""
    if path.suffix.lower() != ".skops":
        if not trust_pickle:
            raise ModelError(
                f"the model {str(path)!r} is a pickle, which runs code when it is opened; save it as .skops or .onnx, "
                f"or add --trust-pickle if you trust whoever made it."
            )
        import joblib  # comes with scikit-learn, and reads plain pickles too

        with foreign(f"the model {str(path)!r} cannot be unpickled"):
            return joblib.load(path)
    unknown = trusted_types(path, trust_pickle=trust_pickle)
    from skops import io

    with foreign(f"the model {str(path)!r} is not a readable .skops file"):
        model = io.load(path, trusted=unknown)
    if "sklearn.tree._tree.Tree" in unknown or any(name.endswith("TreePredictor") for name in unknown):
        from fairbits.models.trees.readers import check_trees

        try:
            check_trees(model)
        except Damaged as error:
            raise ModelError(f"the model {str(path)!r} is damaged: {error}") from None
    return model


def write_object(model: Any, path: Path) -> None:
    if path.suffix.lower() == ".skops":
        needed("skops.io", "sklearn", "writing .skops files").dump(model, path, compression=zipfile.ZIP_DEFLATED)
    elif path.suffix == ".joblib":
        needed("joblib", "sklearn", "writing .joblib files").dump(model, path)
    else:
        path.write_bytes(pickle.dumps(model))
