"""A scikit-learn pipeline that decides about loans, saved with skops."""

import pandas as pd
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

people = pd.read_csv("../people.csv")
features, target = people.drop(columns="approved"), people["approved"]

encode = ColumnTransformer(
    [
        ("scaled", StandardScaler(), ["age", "years_employed", "income", "loan"]),
        ("hot", OneHotEncoder(), ["sex", "nationality", "education"]),
    ]
)
network = MLPClassifier((16, 8), alpha=0.1, early_stopping=True, learning_rate_init=0.01, random_state=0)
model = make_pipeline(encode, network).fit(features, target)
print(f"right about {model.score(features, target):.0%} of the people it learned from")

skops.io.dump(model, "model.skops")
