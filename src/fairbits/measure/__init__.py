"""Scores → classes → bits; label flips; rates and means with intervals."""

from fairbits.measure.bits import DEFAULT_EPSILON, Qid, bits_limit, qid
from fairbits.measure.evaluate import Evaluator, Progress
from fairbits.measure.holding import Held, hold
from fairbits.measure.intervals import Estimate, bayes_factor, bounded_means, rate_bound, wilson
from fairbits.measure.noise import Noise, noise_of
from fairbits.measure.population import Measurement, Person, Stake, measure_table
from fairbits.measure.subjects import default_epsilon, evaluator_of

__all__ = [
    "DEFAULT_EPSILON",
    "Estimate",
    "Evaluator",
    "Held",
    "Measurement",
    "Noise",
    "Person",
    "Progress",
    "Qid",
    "Stake",
    "bayes_factor",
    "bits_limit",
    "bounded_means",
    "default_epsilon",
    "evaluator_of",
    "hold",
    "measure_table",
    "noise_of",
    "qid",
    "rate_bound",
    "wilson",
]
