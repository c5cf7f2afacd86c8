"""What is proved about a model for everybody in the domain, by looking at the model and at nothing that is said of it.

There are three checkers. A guard holds scores near the average over the twins: its arithmetic bounds k. A network,
trees or an encoding that give protected attributes no weight, no split or no input cannot tell twins apart. And neither
can a pipeline whose first step drops the protected columns. A proposal has no way to say that something is proved; and
a bound that nobody could exceed anyway is no promise, so it is none here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairbits.errors import FairbitsError
from fairbits.measure import Evaluator
from fairbits.models import Model, adapt, drops_protected
from fairbits.repair.judgement import Setting
from fairbits.repair.proposals.clip import proved_classes
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.records import Figures, Proof

#: Rows on which an estimator must score as the model that is judged, for what it shows to count.
COMPARED = 200
_ONE_SCORE = "so all twins of a person get one score, k = 1, and no decision depends on a protected value."


def established(model: Model, setting: Setting, *, source: Any = None) -> Proof | None:
    """What holds for everybody by the way a model is made; ``source`` is the estimator that it asks, if it asks one."""
    evaluator = setting.evaluator(model)
    if type(model) is Guard:
        return _of_guard(model, evaluator)
    ours = type(model).__module__.partition(".")[0] == "fairbits"
    if ours and evaluator.blind:
        return Proof(1, "flips", f"Proved for everybody: nothing protected has a weight in it, {_ONE_SCORE}")
    if ours and source is not None and _drops_protected(source, model, setting):
        words = "Proved for everybody: its first step drops the protected columns,"
        return Proof(1, "flips", f"{words} {_ONE_SCORE}")
    return None


def contradicted(proof: Proof, *seen: Figures) -> str:
    """What figures say against a proof, in words; "" where nothing does. It can only be an error of ours."""
    largest = max(max(one.k_max, one.k_max_rows) for one in seen)
    flips = max(max(one.id_rate or 0.0, one.id_rate_rows or 0.0) for one in seen)
    if largest > proof.bound:
        return f"somebody has k = {largest}, above the {proof.bound} that was proved"
    if proof.property == "flips" and flips > 0:
        return f"{flips:.2%} of decisions flip, where it was proved that none does"
    return ""


def _of_guard(guard: Guard, evaluator: Evaluator) -> Proof | None:
    if guard.varies or not guard.fits(evaluator):
        return None
    if guard.tau == 0:
        return Proof(1, "flips", guard.proof)
    bound = proved_classes(guard.tau, evaluator.epsilon, evaluator.partition, vector=evaluator.by_vector)
    most = round(2**evaluator.bits_limit)  # nobody can have more, guarded or not
    return Proof(bound, "k", guard.proof) if 0 < bound < most else None


def _drops_protected(estimator: Any, model: Model, setting: Setting) -> bool:
    """Whether a fitted estimator drops the protected columns first, and is what the model asks."""
    subject = setting.subject
    if not drops_protected(estimator, subject.schema, subject.options):
        return False
    rows = subject.encoding.encode(subject.table.codes[:COMPARED])
    try:
        asked = adapt(estimator, subject.schema, subject.options).model
        return asked.inputs == model.inputs and np.array_equal(asked.scores(rows), model.scores(rows), equal_nan=True)
    except FairbitsError:
        return False
