"""scikit-learn pipelines and searches taken apart: their steps, their last step, the winner of a search."""

from __future__ import annotations

from typing import Any

from fairbits.models.black_box import attribute


def is_pipeline(estimator: Any) -> bool:
    """Whether it is a pipeline: ``steps`` are pairs of a name and a step, and not just any attribute of that name."""
    steps = attribute(estimator, "steps")
    return isinstance(steps, list) and bool(steps) and all(isinstance(s, tuple) and len(s) == 2 for s in steps)


def winner(estimator: Any) -> Any:
    """The best estimator of a finished search over settings; anything else stands for itself."""
    found = attribute(estimator, "best_estimator_")
    return found if callable(attribute(found, "predict")) else estimator


def final_of(estimator: Any) -> Any:
    """The last step of a pipeline, or of the best model of a finished search."""
    return taken_apart(winner(estimator))[1]


def last_step(estimator: Any) -> tuple[str, Any]:
    """The last step of a pipeline, and what the names of its parameters begin with."""
    prefix, final = "", estimator
    while isinstance(getattr(final, "steps", None), list):
        name, step = final.steps[-1]
        prefix, final = f"{prefix}{name}__", step
    return prefix, final


def taken_apart(estimator: Any) -> tuple[list[Any], Any]:
    """The encoders in front, and what stands at the end of the pipeline."""
    steps: list[Any] = []
    while is_pipeline(estimator):
        steps += [step for _, step in estimator.steps[:-1] if step not in (None, "passthrough")]
        estimator = estimator.steps[-1][1]
    return steps, estimator
