"""scikit-learn and other Python models in files: skops without running code, pickle only on the user's word."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

from fairbits.errors import MissingDependencyError, ModelError
from fairbits.models.black_box import reason
from fairbits.models.trees.ensemble import Damaged

PICKLES = (".pkl", ".pickle", ".joblib")
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


#: Parts of a .skops file with all references followed: forests of a thousand trees have a tenth of it.
_MAX_PARTS = 2_000_000
#: Nodes of a .skops file that hold plain values.
_PLAIN_NODES = {
    *("DictNode", "DefaultDictNode", "ListNode", "TupleNode", "SetNode", "SliceNode", "JsonNode", "TypeNode"),
    *("DTypeNode", "NdArrayNode", "MaskedArrayNode", "RandomStateNode", "RandomGeneratorNode", "CachedNode"),
}  # fmt: skip
#: Classes whose every call is a few NumPy products over arrays that the file holds: they cannot loop or crash. All
#: others (trees, neighbours, kernels: compiled code that walks through tables) are tried out in a child process.
_PLAIN_CLASSES = {
    *("Pipeline", "ColumnTransformer", "FeatureUnion", "SimpleImputer", "MissingIndicator", "FunctionTransformer"),
    *("OneHotEncoder", "OrdinalEncoder", "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"),
    *("LabelBinarizer", "LabelEncoder", "MLPClassifier", "MLPRegressor", "AdamOptimizer", "SGDOptimizer"),
    *("LogisticRegression", "LogisticRegressionCV", "LinearRegression", "Ridge", "RidgeClassifier", "Lasso"),
    *("SGDClassifier", "SGDRegressor", "Perceptron", "DummyClassifier", "DummyRegressor", "_RemainderColsList"),
}  # fmt: skip


def check_references(path: Path) -> None:
    """Refuse a .skops file whose description, every reference in it followed, is far larger than it looks.

    A part may be named again by its number, and whoever reads it, skops included, reads that part again: ten lists that
    each name the one before ten times are ten thousand million parts.
    """
    sizes: dict[Any, int] = {}

    def size(node: Any) -> int:
        if isinstance(node, list):
            return sum(map(size, node))
        if not isinstance(node, dict):
            return 0
        number = node.get("__id__")
        number = number if isinstance(number, int | str) else None
        if node.get("__loader__") == "CachedNode":
            return sizes.get(number, 1)
        found = 1 + sum(map(size, node.values()))
        if number is not None:
            sizes[number] = found
        return found

    try:
        parts = size(_description(path))
    except (LookupError, ValueError, OSError, RecursionError, zipfile.BadZipFile):
        return  # whoever reads it says what is wrong
    if parts > _MAX_PARTS:
        shown = f"{parts:,}" if parts < 10**12 else f"{parts:.0e}"
        raise ModelError(
            f"the model {str(path)!r} names its own parts again and again, {shown} in all, where {_MAX_PARTS:,} are "
            f"allowed; save it again."
        )


def _description(path: Path) -> Any:
    """What a .skops file says that it holds."""
    with zipfile.ZipFile(path) as file:
        return json.loads(file.read("schema.json"))


def plain_skops(path: Path) -> bool:
    """Whether a .skops file holds nothing but arrays and classes that compute with NumPy alone; loads none of it."""
    try:
        waiting: list[Any] = [_description(path)]
    except Exception:  # noqa: BLE001 - a damaged archive is named by whoever reads it
        return False
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if "__loader__" in node and str(node["__loader__"]) not in _PLAIN_NODES:
                home = str(node.get("__module__")).partition(".")[0]
                if (
                    node["__loader__"] != "ObjectNode"
                    or home != "sklearn"
                    or str(node.get("__class__")) not in _PLAIN_CLASSES
                ):
                    return False
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return True


def refuse_untrusted(path: Path) -> None:
    """Refuse a .skops file with types that are not known to be safe."""
    trusted_types(path, trust_pickle=False)


def _skops_io() -> Any:
    """The package skops.io, without PyTorch.

    To know their names, skops has scikit-learn list all of its estimators, which imports every package inside of it.
    One of them does nothing but import PyTorch, where that is installed, and takes a second: an empty module stands in
    for it meanwhile.
    """
    bridge = "sklearn.externals.array_api_compat.torch"
    stands_in = bridge not in sys.modules
    if stands_in:
        sys.modules[bridge] = ModuleType(bridge)
    try:
        from skops import io
    except ImportError:
        raise MissingDependencyError("skops", "sklearn", "reading .skops files") from None
    finally:
        if stands_in:
            del sys.modules[bridge]
    return io


def trusted_types(path: Path, *, trust_pickle: bool) -> list[str]:
    """The types of a .skops file that skops has to be told of; refused where they are neither known nor trusted."""
    io = _skops_io()
    try:
        unknown: list[str] = io.get_untrusted_types(file=path)
    except Exception as error:  # noqa: BLE001 - a damaged archive can break anything inside
        raise ModelError(f"the model {str(path)!r} is not a readable .skops file: {reason(error)}") from None
    doubtful = [name for name in unknown if name not in _HARMLESS and not _METRIC.fullmatch(name)]
    if doubtful and not trust_pickle:
        more = f" and {len(doubtful) - 8} more" if len(doubtful) > 8 else ""
        raise ModelError(
            f"the model {str(path)!r} holds types that are not known to be safe: {', '.join(doubtful[:8])}{more}; "
            f"if you trust whoever made it, add --trust-pickle."
        )
    return unknown


def read_skops(path: Path, *, trust_pickle: bool) -> Any:
    """The object in a .skops file."""
    unknown = trusted_types(path, trust_pickle=trust_pickle)
    from skops import io

    try:
        model = io.load(path, trusted=unknown)
        if "sklearn.tree._tree.Tree" in unknown or any(name.endswith("TreePredictor") for name in unknown):
            from fairbits.models.trees.sklearn import check_trees

            check_trees(model)
        return model
    except Damaged as error:
        raise ModelError(f"the model {str(path)!r} is damaged: {error}") from None
    except Exception as error:  # noqa: BLE001 - a damaged archive can break anything inside
        raise ModelError(f"the model {str(path)!r} is not a readable .skops file: {reason(error)}") from None


def write_skops(model: Any, path: Path) -> None:
    """Write an object as .skops."""
    try:
        from skops import io
    except ImportError:
        raise MissingDependencyError("skops", "sklearn", "writing .skops files") from None
    io.dump(model, path, compression=zipfile.ZIP_DEFLATED)


def read_pickle(path: Path, *, trust_pickle: bool) -> Any:
    """The object in a pickle or joblib file: runs whatever code the file holds, so only on the user's word."""
    if not trust_pickle:
        raise ModelError(
            f"the model {str(path)!r} is a pickle, which runs code when it is opened; save it as .skops or .onnx, "
            f"or add --trust-pickle if you trust whoever made it."
        )
    import joblib  # comes with scikit-learn, and reads plain pickles too

    try:
        return joblib.load(path)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - unpickling runs foreign code
        raise ModelError(f"the model {str(path)!r} cannot be unpickled: {reason(error)}") from None


def write_pickle(model: Any, path: Path) -> None:
    """Write an object with joblib for .joblib, else with pickle."""
    if path.suffix == ".joblib":
        import joblib

        joblib.dump(model, path)
        return
    import pickle

    path.write_bytes(pickle.dumps(model))
