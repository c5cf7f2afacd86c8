"""Neurons that can be switched: the hidden layers, and the values that each neuron can be held at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.debug import MAX_ROWS, NAMES, can_hold, values_of
from fairbits.errors import OptionError, choose_from
from fairbits.models import Do, HasActivations, HasInterventions, kind_of
from fairbits.subject import Subject

#: What a neuron can be held at: nothing, or the least, the mean, the most that it puts out over the table.
STATISTICS = ("zero", "min", "mean", "max")
#: Neurons of one layer that the page shows; more could not be told apart.
MAX_NEURONS = 512


@dataclass(frozen=True, slots=True)
class Hold:
    """A neuron to be held; layers count from 1, as on the page."""

    layer: int
    neuron: int
    at: str


@dataclass(frozen=True, slots=True, eq=False)
class Switches:
    """The values of every hidden neuron, (statistics, width) for each layer, and which of them it can put out.

    Without layers, ``reason`` says why there are none.
    """

    values: tuple[npt.NDArray[np.float32], ...] = ()
    possible: tuple[npt.NDArray[np.bool_], ...] = ()
    reason: str = ""

    @classmethod
    def of(cls, subject: Subject) -> Switches:
        """The switches of a subject's model."""
        model = subject.model
        if not (isinstance(model, HasActivations) and isinstance(model, HasInterventions)):
            kind = kind_of(model)
            return cls(reason=f"This model gives scores only ({kind}): its neurons can be neither seen nor held.")
        codes = subject.table.codes
        widths = [layer.shape[1] for layer in model.activations(subject.encoding.encode(codes[:1]))[:-1]]
        if not widths:
            return cls(reason="This model has no hidden layer, so there is no neuron to hold.")
        if len(codes) > MAX_ROWS:  # evenly spread, so that the same table gives the same values
            codes = codes[np.linspace(0, len(codes) - 1, MAX_ROWS).astype(np.int64)]
        chosen = [NAMES.index(name) for name in STATISTICS]
        tables = values_of(subject, codes, range(len(widths)))
        possible = []
        for layer, table in enumerate(tables):
            seen = table[[NAMES.index("min"), NAMES.index("max")]]
            able = [
                [can_hold(model, Do(layer, neuron, float(table[row, neuron])), seen[:, neuron]) for row in chosen]
                for neuron in range(table.shape[1])
            ]
            possible.append(np.array(able, dtype=np.bool_).T)
        return cls(tuple(table[chosen] for table in tables), tuple(possible))

    def do(self, hold: Hold) -> Do:
        """The intervention that a hold means."""
        if not self.values:
            raise OptionError(f"no neuron can be held: {self.reason[0].lower()}{self.reason[1:]}")
        if not 1 <= hold.layer <= len(self.values):
            raise OptionError(f"layer {hold.layer} is not a hidden layer; there are 1 to {len(self.values)}.")
        width = self.values[hold.layer - 1].shape[1]
        if not 0 <= hold.neuron < width:
            raise OptionError(f"neuron {hold.neuron} is not in layer {hold.layer}, which has 0 to {width - 1}.")
        if hold.at not in STATISTICS:
            raise OptionError(f"a neuron cannot be held at {hold.at[:40]!r}; {choose_from(hold.at[:40], STATISTICS)}")
        place = STATISTICS.index(hold.at)
        value = float(self.values[hold.layer - 1][place, hold.neuron])
        if not self.possible[hold.layer - 1][place, hold.neuron]:
            raise OptionError(
                f"neuron {hold.neuron} of layer {hold.layer} cannot be held at {value:.4g}: its activation never "
                f"puts that out; choose another value."
            )
        return Do(hold.layer - 1, hold.neuron, value)

    def dos(self, holds: Sequence[Hold]) -> tuple[Do, ...]:
        """All interventions in a fixed order."""
        found: dict[tuple[int, int], Do] = {}
        for hold in holds:
            if (hold.layer, hold.neuron) in found:
                raise OptionError(f"neuron {hold.neuron} of layer {hold.layer} is held twice; name it once.")
            found[hold.layer, hold.neuron] = self.do(hold)
        return tuple(found[key] for key in sorted(found))

    def document(self, suspect: int | None, acd: dict[int, float]) -> list[dict[str, Any]]:
        """Facts about each hidden layer for the page."""
        layers = []
        for number, (values, possible) in enumerate(zip(self.values, self.possible, strict=True), start=1):
            shown = slice(0, MAX_NEURONS)
            layers.append(
                {
                    "layer": number,
                    "width": values.shape[1],
                    "suspect": number == suspect,
                    "values": np.round(values[:, shown].astype(float), 6).tolist(),
                    "possible": possible[:, shown].tolist(),
                    "acd": [acd.get(neuron) for neuron in range(values.shape[1])[shown]] if number == suspect else None,
                }
            )
        return layers
