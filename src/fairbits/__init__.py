"""fairbits: how many bits of protected information a model's decisions use, for whom, and through which neurons.

>>> import fairbits
>>> result = fairbits.qid([[0.10, 0.11, 0.52, 0.53]], epsilon=0.025)
>>> int(result.k[0]), float(result.q_inf[0])
(2, 1.0)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairbits._version import __version__

if TYPE_CHECKING:
    from fairbits.audit import Audit, open_run
    from fairbits.data import load_subject
    from fairbits.domain import Attribute, Category, Decoder, Encoding, Integer, Real, Schema, Table, Twins
    from fairbits.errors import FairbitsError
    from fairbits.estimators import GuardedClassifier, bits_scorer, flip_rate_scorer
    from fairbits.gates import gate
    from fairbits.measure import qid
    from fairbits.models import Network, load_model, load_with_encoding, save_as_original
    from fairbits.repair import Guard
    from fairbits.report import plots as plot
    from fairbits.search import Budget
    from fairbits.subject import Subject, infer_schema

_HOMES = {
    "Attribute": "domain",
    "Audit": "audit",
    "Budget": "search",
    "Category": "domain",
    "Decoder": "domain",
    "Encoding": "domain",
    "FairbitsError": "errors",
    "Guard": "repair",
    "GuardedClassifier": "estimators",
    "Integer": "domain",
    "Network": "models",
    "Real": "domain",
    "Schema": "domain",
    "Subject": "subject",
    "Table": "domain",
    "Twins": "domain",
    "bits_scorer": "estimators",
    "flip_rate_scorer": "estimators",
    "gate": "gates",
    "infer_schema": "subject",
    "load_model": "models",
    "load_subject": "data",
    "load_with_encoding": "models",
    "open_run": "audit",
    "qid": "measure",
    "save_as_original": "models",
}

__all__ = [
    "Attribute",
    "Audit",
    "Budget",
    "Category",
    "Decoder",
    "Encoding",
    "FairbitsError",
    "Guard",
    "GuardedClassifier",
    "Integer",
    "Network",
    "Real",
    "Schema",
    "Subject",
    "Table",
    "Twins",
    "__version__",
    "bits_scorer",
    "flip_rate_scorer",
    "gate",
    "infer_schema",
    "load_model",
    "load_subject",
    "load_with_encoding",
    "open_run",
    "plot",
    "qid",
    "save_as_original",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that `import fairbits` costs nothing."""
    if name == "plot":
        return import_module("fairbits.report.plots")
    if name not in _HOMES:
        raise AttributeError(f"module 'fairbits' has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"fairbits.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return __all__
