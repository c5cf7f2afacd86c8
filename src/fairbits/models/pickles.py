"""scikit-learn and other Python models in files: skops without running code, pickle only on the user's word."""

from __future__ import annotations

import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

from fairbits.errors import ModelError
from fairbits.models.base import needed
from fairbits.models.black_box import foreign
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


def read_skops(path: Path, *, trust_pickle: bool) -> Any:
    """The object in a .skops file."""
    unknown = trusted_types(path, trust_pickle=trust_pickle)
    from skops import io

    with foreign(f"the model {str(path)!r} is not a readable .skops file"):
        model = io.load(path, trusted=unknown)
    if "sklearn.tree._tree.Tree" in unknown or any(name.endswith("TreePredictor") for name in unknown):
        from fairbits.models.trees.sklearn import check_trees

        try:
            check_trees(model)
        except Damaged as error:
            raise ModelError(f"the model {str(path)!r} is damaged: {error}") from None
    return model


def read_pickle(path: Path, *, trust_pickle: bool) -> Any:
    """The object in a pickle or joblib file: runs whatever code the file holds, so only on the user's word."""
    if not trust_pickle:
        raise ModelError(
            f"the model {str(path)!r} is a pickle, which runs code when it is opened; save it as .skops or .onnx, "
            f"or add --trust-pickle if you trust whoever made it."
        )
    import joblib  # comes with scikit-learn, and reads plain pickles too

    with foreign(f"the model {str(path)!r} cannot be unpickled"):
        return joblib.load(path)


def read_object(path: Path, *, trust_pickle: bool) -> Any:
    """The object in a file, by its ending."""
    return (read_skops if path.suffix.lower() == ".skops" else read_pickle)(path, trust_pickle=trust_pickle)


def write_object(model: Any, path: Path) -> None:
    """Write an object with skops, joblib or pickle, by the ending of the file."""
    if path.suffix.lower() == ".skops":
        needed("skops.io", "sklearn", "writing .skops files").dump(model, path, compression=zipfile.ZIP_DEFLATED)
    elif path.suffix == ".joblib":
        needed("joblib", "sklearn", "writing .joblib files").dump(model, path)
    else:
        path.write_bytes(pickle.dumps(model))
