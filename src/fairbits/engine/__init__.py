"""The engine: fused kernels that score and measure all twins of a person, thousands of people at a time."""

from fairbits.engine.evaluate import Evaluation, Partition, classes, evaluate, scores
from fairbits.engine.foresight import Contributions, arranged, contributions_of, contributions_through
from fairbits.engine.gradients import gradients, inner_gradients
from fairbits.engine.interventions import Effects, accuracies, study
from fairbits.engine.lowering import plan_of
from fairbits.engine.masked import masked
from fairbits.engine.plan import Activation, Head, Plan
from fairbits.engine.vectors import vectors

__all__ = [
    "Activation",
    "Contributions",
    "Effects",
    "Evaluation",
    "Head",
    "Partition",
    "Plan",
    "accuracies",
    "arranged",
    "classes",
    "contributions_of",
    "contributions_through",
    "evaluate",
    "gradients",
    "inner_gradients",
    "masked",
    "plan_of",
    "scores",
    "study",
    "vectors",
]
