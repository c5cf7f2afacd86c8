"""One statement about a population: of what kind it is, for how many it is certain, and what follows.

certify.json of a run is a list of them; the identity of the model stands with the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from pathlib import Path
from typing import Any, Literal

from fairbits.shape import reading
from fairbits.store import json_of, plain, record_from_json, write_json
from fairbits.text import power

FILE, _REMEDY = "certify.json", "delete it, and run fairbits certify again"

Kind = Literal["exact", "proved", "statistical"]
Property = Literal["flips", "k"]
#: The share of a population that may be open in what is called certain.
MOST_OPEN = 0.999
#: A smaller share reads better as a number of people.
FEWEST = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """Whom a statement speaks of.

    Parameters
    ----------
    kind
        ``domain`` (everybody whom the schema allows), ``near`` (rows of the table with some attributes changed), or
        ``rows`` (the people of the table, alike ones counted once).
    count
        How many people they are; None where a real attribute makes them uncountable, or where nobody counted them.
    changes
        Of ``near``: how many attributes are changed at most.
    drawn
        Whether people were drawn at random: uniformly from the domain, or a row with attributes drawn anew.
    rules
        Whether people whom the rules leave out are among them ("ignored") or not ("kept"); None without rules.
    intervals
        Real attributes, of which every value between the two ends is meant: (name, low, high).
    without
        Attributes whose missing value is left out.
    values
        Protected attributes of which twins take some values only, one for each range: (name, values).
    where
        The rule that all of them keep, where only some people are looked at.
    """

    kind: Literal["domain", "near", "rows"]
    count: int | None = None
    changes: int = 0
    drawn: bool = False
    rules: Literal["kept", "ignored"] | None = None
    intervals: tuple[tuple[str, float, float], ...] = ()
    without: tuple[str, ...] = ()
    values: tuple[tuple[str, tuple[float, ...]], ...] = ()
    where: str | None = None

    @property
    def everybody(self) -> bool:
        """Whether nobody whom the schema allows is left out: what is certain here is certain of every person."""
        return self.kind == "domain" and not self.drawn and not self.without and not self.values

    @property
    def words(self) -> str:
        """Whom it speaks of, in words.

        Examples
        --------
        >>> Population(kind="domain", intervals=(("pay", 0, 90.5),)).words
        'everybody in the domain (pay anywhere from 0 to 90.5)'
        >>> Population(kind="near", changes=1).words
        'everybody within 1 change of a row'
        """
        some = f"{self.changes} {'attribute' if self.changes == 1 else 'attributes'}"
        if self.kind == "rows":
            said = "the people of the table, alike ones counted once"
        elif self.kind == "near":
            near = f"everybody within {self.changes} {'change' if self.changes == 1 else 'changes'} of a row"
            said = f"real rows with {some} drawn anew" if self.drawn else near
        else:
            said = "the domain, drawn uniformly" if self.drawn else "everybody in the domain"
        if self.rules is not None and self.kind == "domain" and not self.drawn:
            said += ", as the rules allow" if self.rules == "kept" else ", those whom the rules leave out too"
        if self.intervals:
            ends = [f"{name} anywhere from {low:g} to {high:g}" for name, low, high in self.intervals]
            said += f" ({_listed(ends)})"
        if self.without:
            said += f", except those whose {_listed(self.without)} {'is' if len(self.without) == 1 else 'are'} missing"
        if self.values:
            own = "" if self.kind == "domain" else " and the row's own"
            shown = [f"{name} at {', '.join(f'{value:g}' for value in some)}{own} only" for name, some in self.values]
            said += f"; twins with {_listed(shown)}"
        return said if self.where is None else f"{said}, of people with {self.where}"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:3]) + (", …" if len(words) > 3 else "")


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
        How many they are; for a sample, how many were drawn. Where an attribute is real, people are uncountable: then
        equal parts of the domain are counted, each with everybody in it.
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
    whom
        Whom it speaks of, as fields: what ``population`` says in words.
    epsilon
        The tolerance between scores that k is counted by.
    withdrawn
        Why it is not true, where something else that was found contradicts it: an error of ours. Then nothing follows
        from it, and nobody shows it as certain.
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
    whom: Population | None = None
    epsilon: float | None = None
    withdrawn: str = ""

    def __post_init__(self) -> None:
        if (
            self.certified + self.falsified + self.open != self.people
            or min(self.certified, self.falsified, self.open) < 0
        ):
            raise ValueError(f"{self.certified} + {self.falsified} + {self.open} people are not {self.people}")

    def document(self) -> dict[str, Any]:
        """The statement as it stands in certify.json."""
        return dict(plain(self))

    def is_certain(self) -> bool:
        """Whether it is a certainty worth the name: not withdrawn, and of more than a thousandth of the population."""
        return not self.withdrawn and self.open <= MOST_OPEN * self.people

    def sentence(self, *, tagged: bool = True) -> str:
        """What it says, in one sentence; its kind at the end, unless that stands beside it.

        Examples
        --------
        >>> Statement("exact", "flips", "everybody in the domain", 200, 199, 1, 0, 0.005, 1.0, 0.1).sentence()
        'Of 200 people, 0.5 % flip (exact).'
        """
        what = "flip" if self.property == "flips" else f"have k above {self.bound:g}"
        kind = f" ({self.kind})" if tagged else ""
        if self.withdrawn:
            return f"Withdrawn, an error of ours: {self.withdrawn}"
        if self.kind == "statistical":
            return (
                f"At most {percent(self.share, up=True)} {what}, at {percent(self.confidence)} confidence: "
                f"{self.falsified:,} of {self.people:,} drawn do{kind}."
            )
        uncountable = self.whom is not None and self.whom.kind == "domain" and self.whom.count is None
        whole = "Of everybody, by volume," if uncountable else f"Of {count(self.people)} people,"
        if self.open == 0:
            if self.falsified == 0:
                return f"{'Nobody' if uncountable else f'{whole} nobody'} {_single(what)}{kind}."
            return f"{whole} {percent(self.falsified / self.people)} {what}{kind}."
        if self.open > MOST_OPEN * self.people:
            known = f", {count(self.falsified)} certainly {what}" if self.falsified and not uncountable else ""
            return f"{whole} little is certain: {percent(self.open / self.people, up=True)} remains open{known}."
        broken = self.falsified / self.people
        do = count(self.falsified) if 0 < broken < FEWEST and not uncountable else percent(broken, down=True)
        return (
            f"{whole} {percent(self.certified / self.people, down=True)} certainly do not "
            f"{what}, {do} certainly do{kind}; {percent(self.open / self.people, up=True)} remains open."
        )


def _single(what: str) -> str:
    return what.replace("flip", "flips").replace("have", "has")


def count(people: int) -> str:
    """A number of people as text, short where it is long.

    Examples
    --------
    >>> count(1234), count(12_345_678_901)
    ('1,234', '1.2 × 10¹⁰')
    """
    return f"{people:,}" if people < 10**9 else power(people)


def percent(share: float, *, up: bool = False, down: bool = False) -> str:
    """A share in percent, rounded to the safe side where it is a bound.

    Examples
    --------
    >>> percent(0.005), percent(0.99999, down=True), percent(4.6e-6, up=True), percent(0.0)
    ('0.5 %', '99.99 %', '0.00046 %', '0 %')
    """
    value = 100 * share
    if value in (0, 100):
        return f"{value:g} %"
    digits = 2 if value >= 0.1 else 1 - floor(log10(value))
    scaled = value * 10**digits
    whole = ceil(scaled - 1e-9) if up else floor(scaled + 1e-9) if down else round(scaled)
    return f"{whole / 10**digits:.{digits}f}".rstrip("0").rstrip(".") + " %"


def write_statements(
    folder: Path,
    statements: Sequence[Statement],
    *,
    made_with: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Write certify.json, whole."""
    entries = [one.document() for one in statements]
    if entries:  # said once, with the first statement
        more = {"made_with": made_with, "options": options}
        entries[0] |= {name: value for name, value in more.items() if value is not None}
    write_json(folder / FILE, entries)


def withdraw_statements(folder: Path, statements: Sequence[Statement]) -> None:
    """Say in certify.json which of its statements are withdrawn."""
    if any(one.withdrawn for one in statements):
        pairs = zip(json_of(folder / FILE), statements, strict=True)
        write_json(folder / FILE, [entry | {"withdrawn": one.withdrawn} for entry, one in pairs])


def read_statements(folder: Path) -> tuple[Statement, ...]:
    """The statements of a run; none where it was not certified."""
    with reading(folder / FILE, _REMEDY):
        return tuple(record_from_json(Statement, entry) for entry in _entries(folder) or ())


def certify_options(folder: Path) -> dict[str, Any] | None:
    """What the statements of a run were asked for with; None where it was not certified."""
    with reading(folder / FILE, _REMEDY):
        entries = _entries(folder)
        return None if entries is None else dict(entries[0].get("options") or {}) if entries else {}


def _entries(folder: Path) -> Any:
    return json_of(folder / FILE) if (folder / FILE).is_file() else None
