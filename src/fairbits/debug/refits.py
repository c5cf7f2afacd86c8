"""The same shape trained anew: with another seed, and without the protected columns; measured on the same cases.

If another seed gives about the same bits, the data make networks of this shape use them. A network without the
protected columns cannot use them directly (k = 1); what it shows is the accuracy that the columns were worth.
"""

from __future__ import annotations

import numpy as np

from fairbits.data import epochs_for, fit
from fairbits.debug.neurons import accuracy_of
from fairbits.debug.records import How, Retrained
from fairbits.domain import Codes
from fairbits.errors import ModelError, TableError
from fairbits.measure import Evaluator
from fairbits.models import Network
from fairbits.subject import Subject

#: Rows of the table that networks are compared on, at most.
MAX_ROWS = 5000


def retrain(
    evaluator: Evaluator, subject: Subject, cases: Codes, *, seed: int, rng: np.random.Generator
) -> tuple[Retrained, ...]:
    """Train the same shape with another seed, and without the protected columns.

    Parameters
    ----------
    evaluator
        The model, and how people are evaluated.
    subject
        The model, its table and its schema.
    cases
        People, (n, attributes).
    seed
        Same seed, same result.
    rng
        Source of random numbers.

    Returns
    -------
    tuple[Retrained, ...]
        Figures of both on the cases.

    Raises
    ------
    ModelError
        If the model is no native classifier.
    TableError
        If there are no labels.
    """
    network = subject.model
    if not isinstance(network, Network) or network.head == "linear":
        raise ModelError("retraining needs a native classifier; leave --retrain out for this model.")
    if subject.table.labels is None:
        raise TableError("the table has no labels to learn from; name its target, or leave --retrain out.")
    codes = subject.table.codes
    rows = codes[rng.permutation(len(codes))[:MAX_ROWS]]
    before = float(evaluator.evaluate(rows).k.mean())
    found = []
    hows: tuple[How, ...] = ("other seed", "without protected")
    for how in hows:
        trained = _trained(subject, network, seed=seed, blind=how == "without protected")
        found.append(_measured(how, trained, evaluator, subject, cases, rows, before))
    return tuple(found)


def _trained(subject: Subject, network: Network, *, seed: int, blind: bool) -> Network:
    table, encoding = subject.table.training(), subject.encoding
    inputs = encoding.encode(table.codes)
    kept = np.ones(encoding.width, dtype=np.bool_)
    if blind:
        kept[np.concatenate([encoding.parts[i].columns for i in subject.schema.protected_columns])] = False
    fitted = fit(
        inputs[:, kept], np.asarray(table.labels), epochs=epochs_for(len(table)), seed=seed, hidden=network.widths[:-1]
    )
    first = np.zeros((encoding.width, fitted.widths[0]), np.float32)
    first[kept] = fitted.weights[0]  # inputs that it never saw have no weight: it takes the same rows
    whole = Network.build([first, *fitted.weights[1:]], fitted.biases, activation="relu", head="softmax")
    return whole.with_favourable(subject.schema.favourable_index)


def _measured(
    how: How, network: Network, evaluator: Evaluator, subject: Subject, cases: Codes, rows: Codes, before: float
) -> Retrained:
    asked = evaluator.with_model(network)
    figures, accuracy = asked.evaluate(cases), accuracy_of(network, subject)
    return Retrained(
        how=how,
        accuracy=float("nan") if accuracy is None else accuracy,
        k_mean=float(figures.k.mean()),
        id_rate=float(figures.flips.mean()),
        k_rows=float(asked.evaluate(rows).k.mean()),
        k_rows_before=before,
    )
