"""`fairbits plan`: what an audit will tell and take, before it is made."""

from __future__ import annotations

from fairbits import audit, store
from fairbits.cli.arguments import JSON, audit_of, subject_argument
from fairbits.cli.output import answer
from fairbits.options import LoadingOptions, PlanOptions, ProtectedOptions


def plan(
    *,
    subject: str | None = subject_argument(None),
    options: PlanOptions,
    about: ProtectedOptions,
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """How many rows an interval needs, what a gate would notice, how long an audit takes, how many requests.

    With a model and table, some people are asked about to see the rate and the speed (none of an endpoint's).
    """
    found = audit.plan_audit(options, None if subject is None else audit_of(subject, about, loading).subject)
    nearby = f"next  fairbits audit {subject}{loading.typed}" if subject else "next  fairbits init YOUR_TABLE.csv"
    answer(as_json, lambda: store.record_to_json(found), found.blocks, nearby)
