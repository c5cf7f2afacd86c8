"""One statement about a population: of what kind it is, for how many it is certain, and what follows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["exact", "proved", "statistical"]
Property = Literal["flips", "k"]


@dataclass(frozen=True, slots=True)
class Statement:
    """What is known about a population.

    Parameters
    ----------
    kind
        ``exact`` (everybody was asked), ``proved`` (bounds over sets of people) or ``statistical`` (a random sample).
    property
        ``flips``: no twin gets another decision. ``k``: at most ``bound`` classes.
    population
        Whom it speaks of, in words.
    people
        How many they are; for a sample, how many were drawn.
    certified, falsified, open
        People of whom the property is certain, certainly broken, and not known; together they are everybody.
    bound
        For ``flips``, the largest share of the population that can flip. For ``k``, the number of classes K.
    confidence
        1 where it is certain; for a sample, how often such a statement is true.
    seconds
        What it took.
    share
        The largest share of the population that can break the property.
    largest
        The largest k that was seen, where k was asked.
    model
        ``model``, or ``repaired`` for the model that a repair made.
    reason
        Why it holds, in a sentence.
    complete
        False where the budget or somebody ended the work early.
    """

    kind: Kind
    property: Property
    population: str
    people: int
    certified: int
    falsified: int
    open: int
    bound: float
    confidence: float
    seconds: float
    share: float = 0.0
    largest: int | None = None
    model: str = "model"
    reason: str = ""
    complete: bool = True

    def __post_init__(self) -> None:
        if (
            self.certified + self.falsified + self.open != self.people
            or min(self.certified, self.falsified, self.open) < 0
        ):
            raise ValueError(f"{self.certified} + {self.falsified} + {self.open} people are not {self.people}")

    def document(self) -> dict[str, Any]:
        """The statement as it stands in certify.json."""
        return asdict(self)

    @classmethod
    def of(cls, document: dict[str, Any]) -> Statement:
        """The statement of a document; keys of later versions are passed over.

        Parameters
        ----------
        document
            One entry of certify.json.

        Returns
        -------
        Statement
            The statement.
        """
        return cls(**{name: document[name] for name in cls.__dataclass_fields__ if name in document})

    def sentence(self) -> str:
        """What it says, in one sentence.

        Examples
        --------
        >>> Statement("exact", "flips", "everybody in the domain", 200, 199, 1, 0, 0.005, 1.0, 0.1).sentence()
        'Of 200 people, 0.5 % flip (exact).'
        """
        what = "flip" if self.property == "flips" else f"have k above {self.bound:g}"
        if self.kind == "statistical":
            return (
                f"At most {percent(self.share, up=True)} {what}, at {self.confidence:.0%} confidence: "
                f"{self.falsified:,} of {self.people:,} drawn do (statistical)."
            )
        if self.open == 0:
            if self.falsified == 0:
                return f"Of {count(self.people)} people, nobody {_single(what)} ({self.kind})."
            return f"Of {count(self.people)} people, {percent(self.falsified / self.people)} {what} ({self.kind})."
        return (
            f"Of {count(self.people)} people, {percent(self.certified / self.people, down=True)} certainly do not "
            f"{what}, {percent(self.falsified / self.people, down=True)} certainly do, "
            f"{percent(self.open / self.people, up=True)} open ({self.kind})."
        )


def _single(what: str) -> str:
    return what.replace("flip", "flips").replace("have", "has")


def count(people: int) -> str:
    """A number of people as text, short where it is long.

    Examples
    --------
    >>> count(1234), count(12_345_678_901)
    ('1,234', '1.23·10^10')
    """
    if people < 10**9:
        return f"{people:,}"
    exponent = len(str(people)) - 1
    return f"{people / 10**exponent:.2f}·10^{exponent}"


def percent(share: float, *, up: bool = False, down: bool = False) -> str:
    """A share in percent, rounded to the safe side where it is a bound.

    Examples
    --------
    >>> percent(0.005), percent(0.99999, down=True), percent(4.6e-6, up=True), percent(0.0)
    ('0.5 %', '99.99 %', '0.00046 %', '0 %')
    """
    from math import ceil, floor, log10

    value = 100 * share
    if value in (0, 100):
        return f"{value:g} %"
    digits = 2 if value >= 0.1 else 1 - floor(log10(value))
    scaled = value * 10**digits
    whole = ceil(scaled - 1e-9) if up else floor(scaled + 1e-9) if down else round(scaled)
    return f"{whole / 10**digits:.{digits}f}".rstrip("0").rstrip(".") + " %"
