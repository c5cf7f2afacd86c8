"""Whether two subjects are about the same people, described in the same words."""

from __future__ import annotations

import numpy as np

from fairbits.errors import OptionError
from fairbits.subject import Subject

_REMEDY = "compare models on one table and one schema, e.g. with --subject."


def check_same_people(a: Subject, b: Subject) -> None:
    """Refuse two subjects that cannot be compared person by person, naming what differs."""
    names = set(a.schema.names) ^ set(b.schema.names)
    if names:
        raise OptionError(f"the schemas differ: only one of both has {_listed(names)}; {_REMEDY}")
    for one in a.schema.attributes:
        other = b.schema[one.name]
        if (one.kind, one.labels, one.low, one.upper) != (other.kind, other.labels, other.low, other.upper):
            raise OptionError(f"the schemas differ: {one.name!r} has other values in A than in B; {_REMEDY}")
    if a.schema.names != b.schema.names:
        raise OptionError(f"the schemas differ: the attributes come in another order in B than in A; {_REMEDY}")
    for what, x, y in (
        ("protected attributes", set(a.schema.protected), set(b.schema.protected)),
        ("target", a.schema.target, b.schema.target),
        ("classes", set(a.schema.classes), set(b.schema.classes)),
        ("favourable class", a.schema.favourable, b.schema.favourable),
        ("rules", [rule.text for rule in a.schema.rules], [rule.text for rule in b.schema.rules]),
    ):
        if x != y:
            raise OptionError(f"the schemas differ: the {what} of A are {_shown(x)}, of B {_shown(y)}; {_REMEDY}")
    if not a.schema.protected:
        raise OptionError(
            "nobody has a twin, because both models take no protected attribute; name some with --protected."
        )
    if len(a.table) != len(b.table):
        raise OptionError(f"A is about {len(a.table):,} people and B about {len(b.table):,}; {_REMEDY}")
    different = np.flatnonzero(~(np.equal(a.table.codes, b.table.codes) | _both_missing(a, b)).all(axis=1))
    if len(different):
        raise OptionError(
            f"{len(different):,} of {len(a.table):,} people differ between A and B (first: "
            f"{a.table.place(int(different[0]))}); {_REMEDY}"
        )


def _both_missing(a: Subject, b: Subject) -> np.ndarray:
    return np.isnan(a.table.codes) & np.isnan(b.table.codes)


def _listed(names: set[str]) -> str:
    some = sorted(names)
    more = f" and {len(some) - 3} more" if len(some) > 3 else ""
    return ", ".join(repr(name[:40]) for name in some[:3]) + more


def _shown(value: object) -> str:
    if isinstance(value, set):
        return ", ".join(sorted(str(one)[:40] for one in value)) or "none"
    return str(value)[:80] or "none"
