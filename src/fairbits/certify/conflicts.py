"""No page contradicts itself: one check over everything that a run claims, against everything that it has seen.

Claims are statements that are exact or proved; what speaks against them are other statements (exact counts, people
drawn at random) and people who were met elsewhere: the table's rows, the cases of a search, the attack on a repair.
Where two cannot both be true, one of them is an error of ours. Then the claim is withdrawn, and nothing is built on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from scipy.stats import binom

from fairbits.certify.statement import Population, Property, Statement

if TYPE_CHECKING:
    from fairbits.certify.rates import RateStatement

Source = Literal["rows", "search", "attack", "held_out", "statement", "sample"]

#: How unlikely a sample must be under a claim before the two contradict each other.
UNLIKELY = 1e-12
_SOURCES = {
    "rows": "the table's own rows",
    "search": "the cases of the search",
    "attack": "the search against the repaired model",
    "held_out": "the evidence of the repair",
    "statement": "people who were asked or proved about",
    "sample": "people drawn at random",
}
_WHAT = {"flips": "people who flip", "k": "classes", "rate": "decided for"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """People who were met: how many of them flip, and the largest k among them."""

    source: Source
    model: str = "model"
    flips: int | None = None
    k: float | None = None
    epsilon: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """A claim that cannot be true together with something that was seen.

    Parameters
    ----------
    model
        ``model`` or ``repaired``.
    property
        What is claimed: ``flips`` or ``k``, or the ``rate`` of a group.
    population
        Of whom, in words.
    claimed
        The most that the claim allows (the least, where less was found): people or a share of them who flip, have more
        classes or are decided for, or a number of classes.
    source, found
        What speaks against it, and how many that has.
    claim
        The statement's place in certify.json, counted from 0; None where the claim is made elsewhere: by the model's
        structure, or by a repair.
    """

    model: str
    property: Property | Literal["rate"]
    population: str
    claimed: float
    source: Source
    found: float
    claim: int | None = None

    def words(self) -> str:
        """The contradiction in a sentence."""
        what = _WHAT[self.property]
        whose = "" if self.model == "model" else f"of the {self.model} model, "
        most = "most" if self.found > self.claimed else "least"
        return (
            f"{whose}at {most} {self.claimed:g} {what} were claimed for {self.population}, but "
            f"{_SOURCES[self.source]} have {self.found:g}"
        )

    def said(self) -> str:
        """The contradiction as an error of ours."""
        return (
            f"two statements of this run contradict each other: {self.words()}; the claim is withdrawn. It is an error "
            f"inside fairbits: please report it."
        )

    def document(self) -> dict[str, Any]:
        """The contradiction as it stands in run.json."""
        return {**asdict(self), "words": self.said()}


def contradictions(
    statements: Sequence[Statement],
    sightings: Iterable[Sighting] = (),
    *,
    bounds: Iterable[tuple[str, int, Property]] = (),
    epsilon: float | None = None,
) -> tuple[Contradiction, ...]:
    """What of a run's claims cannot be true; ``bounds`` are claims made elsewhere, (model, most classes, what of it).

    Of "k" only classes are claimed: scores of one class may lie on both sides of the cut-off. Of "flips", one class,
    and that no decision flips. Claims about k are compared where they are about the same ε; ``epsilon`` is that of
    ``bounds``.
    """
    seen = tuple(sightings)
    found: list[Contradiction] = []
    for place, claim in enumerate(statements):
        if claim.kind == "statistical" or claim.whom is None or claim.withdrawn:
            continue
        found += (replace(one, claim=place) for one in _against(claim, claim.whom, statements, seen))
    for model, most, about in bounds:
        made = Population(kind="domain")
        claim = Statement(
            "proved", "k", made.words, 1, 1, 0, 0, most, 1.0, 0.0, model=model, whom=made, epsilon=epsilon
        )
        found += _against(claim, made, statements, seen)
        if about == "flips":
            found += _against(replace(claim, property="flips", bound=0.0), made, statements, seen)
    return tuple(found)


def rate_contradictions(rates: RateStatement, model: str = "model") -> tuple[Contradiction, ...]:
    """Guaranteed rates against decisions about people who were drawn from the same population."""
    found = []
    for one in rates.groups:
        low, high = (min(max(end, 0.0), 1.0) for end in (one.low, one.high))  # sums of doubles miss 0 and 1
        if one.drawn and binom.sf(one.favoured - 1, one.drawn, high) < UNLIKELY:
            claimed = high
        elif one.drawn and binom.cdf(one.favoured, one.drawn, low) < UNLIKELY:
            claimed = low
        else:
            continue
        population = f"{rates.attribute} = {one.group} among {rates.population}"
        share = one.favoured / one.drawn
        found.append(
            Contradiction(
                model=model, property="rate", population=population, claimed=claimed, source="sample", found=share
            )
        )
    return tuple(found)


def withdrawn(statements: Sequence[Statement], found: Iterable[Contradiction]) -> tuple[Statement, ...]:
    """The statements, those that are contradicted marked as such."""
    reasons: dict[int, list[str]] = {}
    for one in found:
        if one.claim is not None:
            reasons.setdefault(one.claim, []).append(one.words())
    return tuple(
        replace(one, withdrawn=f"{'; '.join(reasons[place])}.") if place in reasons else one
        for place, one in enumerate(statements)
    )


def _against(
    claim: Statement, whom: Population, others: Sequence[Statement], seen: Sequence[Sighting]
) -> Iterator[Contradiction]:
    """Everything that speaks against one claim."""
    for one in seen:
        if one.model == claim.model and _meets(whom, one.source):
            yield from _met(claim, one.source, one.flips, one.k, one.epsilon)
    for other in others:
        if other is claim or other.model != claim.model or other.whom is None or other.withdrawn:
            continue
        inside = _within(other.whom, whom)
        source: Source = "sample" if other.kind == "statistical" else "statement"
        if inside:
            flips = other.falsified if other.property == "flips" else None
            yield from _met(claim, source, flips, other.largest, other.epsilon)
        if other.property != claim.property or (
            claim.property == "k" and not (claim.bound == other.bound and _near(claim.epsilon, other.epsilon))
        ):
            continue
        most, least = claim.falsified + claim.open, claim.falsified
        if inside and other.kind != "statistical" and None not in (whom.count, other.whom.count):
            if other.falsified > most > 0:  # nobody at all is said above
                yield _contradiction(claim, most, source, other.falsified)
        elif other.kind == "statistical" and replace(other.whom, drawn=False, count=None) == replace(whom, count=None):
            hits, room = other.falsified, other.falsified + other.open
            if most > 0 and binom.sf(hits - 1, other.people, most / claim.people) < UNLIKELY:
                yield _contradiction(claim, most / claim.people, source, hits / other.people)
            elif least > 0 and binom.cdf(room, other.people, least / claim.people) < UNLIKELY:
                yield _contradiction(claim, least / claim.people, source, room / other.people)


def _met(
    claim: Statement, source: Source, flips: int | None, k: float | None, epsilon: float | None
) -> Iterator[Contradiction]:
    """What people who are among those of a claim say against it."""
    if claim.property == "flips":
        if claim.certified == claim.people and flips:
            yield _contradiction(claim, 0, source, flips)
    elif claim.certified == claim.people and k is not None and k > claim.bound and _near(epsilon, claim.epsilon):
        yield _contradiction(claim, claim.bound, source, k)


def _contradiction(claim: Statement, claimed: float, source: Source, found: float) -> Contradiction:
    return Contradiction(
        model=claim.model,
        property=claim.property,
        population=claim.population,
        claimed=float(claimed),
        source=source,
        found=float(found),
    )


def _near(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and abs(one - other) <= 1e-9 * abs(other)


def _meets(whom: Population, source: Source) -> bool:
    """Whether rows or cases are among the people of a claim, whatever they have and lack."""
    if whom.kind == "domain":
        return whom.everybody and whom.rules != "kept"
    return source == "rows" and not whom.values


def _within(inner: Population, outer: Population) -> bool:
    """Whether all people of one population are surely among those of another, and so are their twins."""
    if outer.drawn:
        return False
    if outer.kind == "domain":
        apart = outer.without and (inner.kind != "domain" or not set(outer.without) <= set(inner.without))
        ruled = outer.rules == "kept" and not (inner.kind == "domain" and (inner.drawn or inner.rules == "kept"))
        twins = outer.values and (inner.kind != "domain" or inner.values != outer.values)
        return not (apart or ruled or twins)
    if inner.kind == "domain" or inner.drawn:
        return False
    # Rows are changed in as many attributes at most.
    return inner.changes <= outer.changes and inner.values == outer.values
