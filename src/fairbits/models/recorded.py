"""A model that is not at hand: only the scores that it once gave are, in the table."""

from __future__ import annotations

from typing import NoReturn

import numpy.typing as npt

from fairbits.errors import CapabilityError


class Recorded:
    """Stands where the model of a subject with scores only would be, and says what cannot be asked of it."""

    def __init__(self, inputs: int):
        self.inputs = inputs

    def scores(self, inputs: npt.ArrayLike) -> NoReturn:  # noqa: ARG002 - there is no model to give them to
        """Refuse: only the scores in the table are known."""
        raise no_model()


def no_model() -> CapabilityError:
    """What to say where a model is needed and only its scores are there."""
    return CapabilityError(
        "this subject has the scores of its rows only ([table] score), so nobody else can be scored; use "
        "`fairbits measure` or `fairbits proxies`, or name the model with path under [model]."
    )
