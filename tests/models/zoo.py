"""One small model of every kind that an adapter reads, each with what the framework itself says about people."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairbits import Attribute, Decoder, Encoding, Schema
from fairbits.models import Model, ModelOptions, load_with_encoding

from ..conftest import random_people
from .modules import handwritten, residual, sequential

os.environ.setdefault("KERAS_BACKEND", "torch")

SCHEMA = Schema(
    attributes=(
        Attribute(name="age", kind="integer", low=1, high=3, labels=("young", "middle", "old"), protected=True),
        Attribute(name="job", kind="category", labels=("Sales", "Tech", "Farm", "Care")),
        Attribute(name="income", kind="real", low=-1.5, high=4.0),
        Attribute(name="sex", kind="category", labels=("Female", "Male"), protected=True),
        Attribute(name="hours", kind="integer", low=0, high=99),
    ),
    target="hired",
    classes=("no", "yes"),
)
REGRESSION = Schema(SCHEMA.attributes, target="wage")


@dataclass(frozen=True)
class Specimen:
    """``reference`` gives the framework's own scores of codes; ``original`` is what a repair is written back to."""

    model: Model
    encoding: Encoding
    reference: Callable[[np.ndarray], np.ndarray]
    original: Any = None
    options: ModelOptions | None = None
    schema: Schema = SCHEMA


@dataclass(frozen=True)
class Kind:
    make: Callable[[Path], Specimen]
    native: bool = False
    gradients: bool = False
    activations: bool = False
    written_back: bool = False


def table(n: int = 400) -> tuple[Any, np.ndarray, np.ndarray]:
    """People as a frame and as codes, and what is decided about them."""
    rng = np.random.default_rng(3)
    codes = random_people(rng, SCHEMA, n)
    frame = Decoder(SCHEMA).frame(codes)
    wish = 0.8 * codes[:, 2] + 0.02 * codes[:, 4] + (codes[:, 3] == 1) + rng.normal(size=n)
    return frame, codes, np.where(wish > np.median(wish), "yes", "no")


def fit(model: Any, rows: Any, target: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(rows, target)


def preprocessing(**options: Any) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

    parts = [
        ("scaled", make_pipeline(SimpleImputer(), StandardScaler()), ["income"]),
        ("squeezed", MinMaxScaler(), ["hours"]),
        ("hot", OneHotEncoder(**options), ["job"]),
        ("ordinal", OrdinalEncoder(), ["sex"]),
    ]
    return ColumnTransformer(parts, remainder="passthrough")


def perceptron(**options: Any) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((9, 5), activation="tanh", max_iter=40, random_state=0, **options)


def by_frame(model: Any, position: int = 1) -> Callable[[np.ndarray], np.ndarray]:
    return lambda codes: model.predict_proba(Decoder(SCHEMA).frame(codes))[:, position]


def of(source: Any, reference: Callable[[np.ndarray], np.ndarray], schema: Schema = SCHEMA, **options: Any) -> Specimen:
    model, encoding = load_with_encoding(source, schema, **options)
    original = source if options.get("original") is None else options["original"]
    return Specimen(model, encoding, reference, original, ModelOptions.of(options), schema)


# scikit-learn


def sklearn_pipeline(folder: Path) -> Specimen:
    io = pytest.importorskip("skops.io", reason="the sklearn extra is not installed")
    from sklearn.pipeline import Pipeline

    frame, _, target = table()
    model = fit(Pipeline([("columns", preprocessing(drop="first")), ("net", perceptron())]), frame, target)
    io.dump(model, folder / "model.skops")
    return of(folder / "model.skops", by_frame(model))


def sklearn_regression(folder: Path) -> Specimen:
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline

    frame, codes, _ = table()
    net = MLPRegressor(hidden_layer_sizes=(6,), activation="logistic", max_iter=30, random_state=0)
    model = fit(make_pipeline(preprocessing(), net), frame, codes[:, 2] * 3)
    import joblib

    joblib.dump(model, folder / "model.joblib")
    reference = lambda codes: model.predict(Decoder(SCHEMA).frame(codes))  # noqa: E731
    return of(folder / "model.joblib", reference, REGRESSION, trust_pickle=True)


def sklearn_forest(folder: Path) -> Specimen:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    frame, _, target = table()
    model = fit(make_pipeline(preprocessing(), RandomForestClassifier(10, random_state=0)), frame, target)
    return of(model, by_frame(model))


# ONNX


def onnx_own(folder: Path) -> Specimen:
    pytest.importorskip("onnx", reason="the onnx extra is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    from ..conftest import random_network

    random_network(np.random.default_rng(1), [9 - 1 + 2 - 1, 7, 5, 2], activation="gelu").save(folder / "model.onnx")
    session = runtime.InferenceSession(str(folder / "model.onnx"))
    hot = Encoding.one_hot(SCHEMA)
    return of(folder / "model.onnx", lambda codes: session.run(None, {"inputs": hot.encode(codes)})[0][:, 1])


def _skl2onnx(folder: Path, model: Any) -> Specimen:
    convert = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    text = {"job", "sex"}
    kinds = [(n, (StringTensorType if n in text else FloatTensorType)([None, 1])) for n in SCHEMA.names]
    proto = convert.to_onnx(model, initial_types=kinds, target_opset=17)
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    session = runtime.InferenceSession(str(folder / "model.onnx"))

    def reference(codes: np.ndarray) -> np.ndarray:
        frame = Decoder(SCHEMA).frame(codes)
        feed = {n: frame[[n]].to_numpy(dtype=object if n in text else np.float32) for n in SCHEMA.names}
        return np.array([row["yes"] for row in session.run(["output_probability"], feed)[0]])

    return of(folder / "model.onnx", reference)


def onnx_pipeline(folder: Path) -> Specimen:
    from sklearn.pipeline import make_pipeline

    frame, _, target = table()
    return _skl2onnx(folder, fit(make_pipeline(preprocessing(), perceptron()), frame, target))


def onnx_forest(folder: Path) -> Specimen:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    frame, _, target = table()
    forest = RandomForestClassifier(5, max_depth=3, random_state=0)
    return _skl2onnx(folder, fit(make_pipeline(preprocessing(), forest), frame, target))


# PyTorch


THREE = Schema(SCHEMA.attributes, target="grade", classes=("low", "mid", "high"))


def by_torch(module: Any, schema: Schema = SCHEMA) -> Callable[[np.ndarray], np.ndarray]:
    import torch

    def reference(codes: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            out = module(torch.tensor(Encoding.one_hot(schema).encode(codes)))
        return (torch.softmax(out, 1)[:, -1] if out.shape[1] > 1 else out[:, 0]).numpy()

    return reference


def torch_sequential(folder: Path) -> Specimen:
    torch = pytest.importorskip("torch", reason="the torch extra is not installed")
    torch.save(sequential().state_dict(), folder / "model.pt")
    return of(
        folder / "model.pt", by_torch(sequential()), factory=f"{sequential.__module__}:sequential", trust_code=True
    )


def torch_exported(folder: Path) -> Specimen:
    pytest.importorskip("torch", reason="the torch extra is not installed")
    from fairbits.models.torch import write_module

    write_module(sequential(), 9, folder / "model.pt2")
    return of(folder / "model.pt2", by_torch(sequential()))


def torch_handwritten(folder: Path) -> Specimen:
    pytest.importorskip("torch", reason="the torch extra is not installed")
    return of(handwritten(), by_torch(handwritten()))


def torch_residual(folder: Path) -> Specimen:
    pytest.importorskip("torch", reason="the torch extra is not installed")
    return of(residual(), by_torch(residual()), THREE)


def torch_exported_residual(folder: Path) -> Specimen:
    pytest.importorskip("torch", reason="the torch extra is not installed")
    from fairbits.models.torch import write_module

    write_module(residual(), 9, folder / "model.pt2")
    return of(folder / "model.pt2", by_torch(residual()), THREE, trust_pickle=True)


# Keras


def _keras(folder: Path, model: Any) -> Specimen:
    model.save(folder / "model.keras")
    hot = Encoding.one_hot(SCHEMA)

    def reference(codes: np.ndarray) -> np.ndarray:
        return np.asarray(model.predict(hot.encode(codes), verbose=0))[:, -1]

    return of(folder / "model.keras", reference)


def keras_sequential(folder: Path) -> Specimen:
    keras = pytest.importorskip("keras", reason="the keras extra is not installed")
    keras.utils.set_random_seed(0)
    layers = keras.layers
    return _keras(
        folder,
        keras.Sequential(
            [
                keras.Input((9,)),
                layers.Rescaling(0.5, offset=0.1),
                layers.Dense(8),
                layers.BatchNormalization(),
                layers.Activation("tanh"),
                layers.Dropout(0.2),
                layers.Dense(5, activation="gelu", bias_initializer="normal"),
                layers.Dense(1, activation="sigmoid"),
            ]
        ),
    )


def keras_functional(folder: Path) -> Specimen:
    keras = pytest.importorskip("keras", reason="the keras extra is not installed")
    keras.utils.set_random_seed(1)
    start = keras.Input((9,))
    x = keras.layers.Dense(6, activation="elu")(start)
    x = keras.layers.LeakyReLU(negative_slope=0.1)(keras.layers.Dense(5)(x))
    return _keras(folder, keras.Model(start, keras.layers.Dense(2, activation="softmax")(x)))


def keras_residual(folder: Path) -> Specimen:
    keras = pytest.importorskip("keras", reason="the keras extra is not installed")
    keras.utils.set_random_seed(2)
    start = keras.Input((9,))
    x = keras.layers.Dense(9, activation="tanh")(start)
    x = keras.layers.Add()([start, x])
    return _keras(folder, keras.Model(start, keras.layers.Dense(2, activation="softmax")(x)))


# Anything that predicts


def xgboost_classifier(folder: Path) -> Specimen:
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    _, codes, target = table()
    model = xgboost.XGBClassifier(n_estimators=10, n_jobs=1).fit(codes, (target == "yes").astype(int))
    return of(model, lambda codes: model.predict_proba(codes)[:, 1])


def xgboost_categories(folder: Path) -> Specimen:
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    frame, _, target = table()
    frame = frame.astype({"job": "category", "sex": "category"})
    model = xgboost.XGBClassifier(n_estimators=10, n_jobs=1, enable_categorical=True)
    model.fit(frame, (target == "yes").astype(int))

    def reference(codes: np.ndarray) -> np.ndarray:
        rows = Decoder(SCHEMA).frame(codes).astype({n: frame[n].dtype for n in ("job", "sex")})
        return model.predict_proba(rows)[:, 1]

    return of(model, reference)


def catboost_classifier(folder: Path) -> Specimen:
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    frame, _, target = table()
    quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(iterations=10, depth=3, cat_features=["job", "sex"], **quiet)
    model.fit(frame, target)
    return of(model, by_frame(model))


def lightgbm_booster(folder: Path) -> Specimen:
    """As it comes from its own file: `predict` gives probabilities, and categories have an order of their own."""
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    import pandas as pd

    frame, _, _ = table()
    target = frame["job"].isin(["Sales", "Care"]).to_numpy()
    frame = frame.astype({"job": pd.CategoricalDtype(["Farm", "Care", "Tech", "Sales"]), "sex": "category"})
    model = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1).fit(frame, target)
    model.booster_.save_model(folder / "model.txt")

    def reference(codes: np.ndarray) -> np.ndarray:
        rows = Decoder(SCHEMA).frame(codes).astype({n: frame[n].dtype for n in ("job", "sex")})
        return model.predict_proba(rows)[:, 1]

    return of(lightgbm.Booster(model_file=folder / "model.txt"), reference)


def lightgbm_classifier(folder: Path) -> Specimen:
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    frame, _, target = table()
    frame = frame.astype({"job": "category", "sex": "category"})
    model = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1).fit(frame, target)

    def reference(codes: np.ndarray) -> np.ndarray:
        rows = Decoder(SCHEMA).frame(codes).astype({n: frame[n].dtype for n in ("job", "sex")})
        return model.predict_proba(rows)[:, 1]

    return of(model, reference)


def formula(frame: Any) -> Any:
    """A function of one's own."""
    wish = 0.5 * frame["income"] + 0.7 * (frame["sex"] == "Male") - 0.2 * (frame["job"] == "Farm")
    return 1 / (1 + np.exp(-wish.to_numpy()))


def python_function(folder: Path) -> Specimen:
    pytest.importorskip("pandas", reason="pandas is not installed")
    return of(f"{__name__}:formula", lambda codes: formula(Decoder(SCHEMA).frame(codes)), trust_code=True)


ZOO: dict[str, Kind] = {
    "sklearn pipeline": Kind(sklearn_pipeline, native=True, gradients=True, activations=True, written_back=True),
    "sklearn regression": Kind(sklearn_regression, native=True, gradients=True, activations=True, written_back=True),
    "sklearn forest": Kind(sklearn_forest),
    "onnx, our own": Kind(onnx_own, native=True, gradients=True, activations=True, written_back=True),
    "onnx pipeline": Kind(onnx_pipeline, native=True, gradients=True, activations=True, written_back=True),
    "onnx forest": Kind(onnx_forest),
    "torch weights": Kind(torch_sequential, native=True, gradients=True, activations=True, written_back=True),
    "torch export": Kind(torch_exported, native=True, gradients=True, activations=True, written_back=True),
    "torch module": Kind(torch_handwritten, native=True, gradients=True, activations=True),
    "torch residual": Kind(torch_residual, gradients=True, activations=True),
    "torch residual export": Kind(torch_exported_residual, gradients=True),
    "keras sequential": Kind(keras_sequential, native=True, gradients=True, activations=True, written_back=True),
    "keras functional": Kind(keras_functional, native=True, gradients=True, activations=True, written_back=True),
    "keras residual": Kind(keras_residual, gradients=True),
    "xgboost": Kind(xgboost_classifier),
    "xgboost categories": Kind(xgboost_categories),
    "lightgbm": Kind(lightgbm_classifier),
    "lightgbm booster": Kind(lightgbm_booster),
    "catboost": Kind(catboost_classifier),
    "python function": Kind(python_function),
}
