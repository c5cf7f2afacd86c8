"""Where the outputs of two networks of one shape part, layer by layer.

The distance of a layer is the mean absolute difference of its outputs, and a layer's rise is how much it adds to the
layers before it, as in CRADLE (Pham, Lutellier, Qi, Tan: "CRADLE: Cross-Backend Validation to Detect and Localize Bugs
in Deep Learning Libraries", ICSE 2019) and Audee (Guo et al., ASE 2020), which look for the layer that introduces an
inconsistency between two executions of one network.
"""

from __future__ import annotations

import numpy as np

from fairbits.diff.records import LayerShift
from fairbits.domain import Codes
from fairbits.models import HasActivations
from fairbits.subject import Subject

#: Relative distances below this are rounding of single precision.
ROUNDING = 1e-5
#: Keeps a rise finite where the layers before agree.
_TINY = 1e-7


def layer_shifts(a: Subject, b: Subject, codes: Codes) -> tuple[tuple[LayerShift, ...], str]:
    """The layers of both models, and why there are none where there are none."""
    if not isinstance(a.model, HasActivations) or not isinstance(b.model, HasActivations):
        return (), ""
    outputs = [s.model.activations(s.encoding.encode(codes)) for s in (a, b)]  # type: ignore[attr-defined]
    shapes = [[layer.shape[1] for layer in side] for side in outputs]
    if shapes[0] != shapes[1]:
        words = ["–".join(map(str, shape)) for shape in shapes]
        return (), f"the networks have other shapes ({words[0]} and {words[1]}): their layers cannot be compared."
    found, before = [], 0.0
    for number, (one, other) in enumerate(zip(*outputs, strict=True), 1):
        x, y = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
        distance = float(np.abs(x - y).mean())
        relative = distance / max(float(np.abs(x).mean()), _TINY)
        rise = (distance - before) / (before + _TINY)
        found.append(LayerShift(number, x.shape[1], distance, relative, rise))
        before = max(before, distance)
    return tuple(found), ""


def parting(layers: tuple[LayerShift, ...]) -> tuple[int | None, int | None]:
    """The first layer whose outputs differ by more than rounding, and the later one that adds most to it."""
    parted = next((one.layer for one in layers if one.relative > ROUNDING), None)
    if parted is None:
        return None, None
    later = [one for one in layers if one.layer > parted]
    most = max(later, key=lambda one: one.rise, default=None)
    return parted, most.layer if most is not None and most.rise > 0 else None
