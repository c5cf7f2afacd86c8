"""A Keras model that decides about loans, trained on a table that is one-hot encoded already."""

import os

os.environ["KERAS_BACKEND"] = "torch"  # or leave it out, and have TensorFlow or JAX

import keras
import pandas as pd

people = pd.read_csv("../people.csv")
encoded = pd.get_dummies(people, columns=["sex", "nationality", "education"], dtype=int)
encoded.to_csv("encoded.csv", index=False)
features = encoded.drop(columns="approved").to_numpy("float32")
target = (people["approved"] == "yes").to_numpy("float32")

keras.utils.set_random_seed(0)
scale = keras.layers.Normalization()
scale.adapt(features)
model = keras.Sequential(
    [
        keras.Input((features.shape[1],)),
        scale,
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(8, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(features, target, epochs=30, verbose=0)
print(f"right about {model.evaluate(features, target, verbose=0)[1]:.0%} of the people it learned from")
model.save("model.keras")
