"""A model of somebody else's making that speaks our protocol: asked with copies, believed only in what it can do.

Its attributes may look like ours and mean something else (``classes``, ``favourable``, ``scores``). So a foreign
object is wrapped once, when it comes in; from there on only our own types are asked what they can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.errors import FairbitsError, ModelError
from fairbits.models.base import Array, Do, Model, Slope, Wrapper
from fairbits.models.black_box import Reading, all_scores, numbers_in, reason


class ForeignModel(Wrapper):
    """An object with ``inputs`` and ``scores``, and those of the other capabilities that it has as methods.

    Every array that it gets is a copy, and so is every array that is taken from it: it can neither write into ours nor
    change an answer afterwards.
    """

    def __init__(self, model: Any):
        self.original = model
        self.inputs = int(model.inputs)
        self.name = f"the model {type(model).__name__!r}"
        offers: dict[str, Any] = {
            "gradients": self._gradients,
            "class_scores": self._class_scores,
            "activations": self._activations,
            "layer_gradients": self._layer_gradients,
            "with_interventions": self._with_interventions,
            "save": attribute(model, "save"),
        }
        for name, method in offers.items():
            if callable(attribute(model, name)):
                setattr(self, name, method)  # a protocol is met by what an object has

    def __reduce__(self) -> tuple[Any, ...]:
        return ForeignModel, (self.original,)

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The favourable-class probability (or the predicted value) of each encoded row."""
        rows = np.array(inputs)
        return Reading().score(numbers_in(self._call("scores", rows), len(rows), self.name), self.name)

    def _gradients(self, inputs: npt.ArrayLike, *, of: Slope = "margin") -> Array:
        # A model with one kind of slope need not know the word.
        asked = {} if of == "margin" else {"of": of}
        return np.array(self._call("gradients", np.array(inputs), **asked))

    def _class_scores(self, inputs: npt.ArrayLike) -> Array:
        found = all_scores(self._call("class_scores", np.array(inputs)), len(np.asarray(inputs)), self.name)
        return found.astype(np.float32)

    def _activations(self, inputs: npt.ArrayLike) -> tuple[Array, ...]:
        return tuple(np.array(layer) for layer in self._call("activations", np.array(inputs)))

    def _layer_gradients(self, inputs: npt.ArrayLike, layer: int, slopes: Array) -> Array:
        return np.array(self._call("layer_gradients", np.array(inputs), layer, np.array(slopes)))

    def _with_interventions(self, interventions: Sequence[Do]) -> Model:
        return owned(self._call("with_interventions", interventions))

    def _call(self, method: str, *given: Any, **named: Any) -> Any:
        try:
            return getattr(self.original, method)(*given, **named)
        except FairbitsError:
            raise
        except Exception as error:  # a method of somebody else's model may raise anything
            raise ModelError(f"{self.name} failed in {method}(): {reason(error)}") from error


def is_model(found: Any) -> bool:
    """Whether an object speaks our protocol: ``scores`` is a method, ``inputs`` a whole number."""
    width, scores = attribute(found, "inputs"), attribute(found, "scores")
    return callable(scores) and isinstance(width, int | np.integer) and not isinstance(width, bool)


def attribute(found: Any, name: str) -> Any:
    """An attribute of a foreign object; None where it has none, or raises an error instead of giving it."""
    try:
        return getattr(found, name, None)
    except Exception:  # noqa: BLE001 - a property is foreign code, and an attribute that fails is one that is not there
        return None


def owned(model: Any) -> Model:
    """The model as one of our own types: itself, or behind a wrapper."""
    if "fairbits" in {home.__module__.partition(".")[0] for home in type(model).__mro__}:
        own: Model = model
        return own
    if not is_model(model):
        raise ModelError(
            f"a {type(model).__name__!r} is no model: `scores` must be a method and `inputs` the number of inputs; "
            f"hand it over as a function, or with predict_proba or predict."
        )
    return ForeignModel(model)
