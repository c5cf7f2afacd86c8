"""A scikit-learn pipeline that decides about loans, converted to ONNX with its encoders."""

import pandas as pd
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

people = pd.read_csv("../people.csv")
features, target = people.drop(columns="approved"), people["approved"]
text = ["sex", "nationality", "education"]

encode = ColumnTransformer([("hot", OneHotEncoder(), text)], remainder=StandardScaler())
network = MLPClassifier((16, 8), alpha=0.1, early_stopping=True, learning_rate_init=0.01, random_state=0)
model = make_pipeline(encode, network).fit(features, target)
print(f"right about {model.score(features, target):.0%} of the people it learned from")

inputs = [(name, (StringTensorType if name in text else FloatTensorType)([None, 1])) for name in features]
with open("model.onnx", "wb") as file:
    file.write(to_onnx(model, initial_types=inputs, options={"zipmap": False}).SerializeToString())
