"""The engine: fused kernels that score and measure all twins of a person, thousands of people at a time."""

from fairbits.engine.box_layers import BoxNetwork, box_network
from fairbits.engine.evaluate import Evaluation, Partition, classes, evaluate, scores
from fairbits.engine.foresight import Contributions, Foresight, arranged, contributions_of, contributions_through
from fairbits.engine.gradients import foresight, gradients
from fairbits.engine.interventions import Effects, accuracies, study
from fairbits.engine.lowering import plan_of
from fairbits.engine.masked import masked
from fairbits.engine.plan import Activation, Head, Plan
from fairbits.engine.trees import TreePlan, tree_class_scores, tree_plan, tree_scores
from fairbits.engine.vectors import vectors

__all__ = [
    "Activation",
    "BoxNetwork",
    "Contributions",
    "Effects",
    "Evaluation",
    "Foresight",
    "Head",
    "Partition",
    "Plan",
    "TreePlan",
    "accuracies",
    "arranged",
    "box_network",
    "classes",
    "contributions_of",
    "contributions_through",
    "evaluate",
    "foresight",
    "gradients",
    "masked",
    "plan_of",
    "scores",
    "study",
    "tree_class_scores",
    "tree_plan",
    "tree_scores",
    "vectors",
]
