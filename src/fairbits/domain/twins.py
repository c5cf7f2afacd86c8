"""The twins of a person: the same person under every combination of protected values.

Where twins take some values of a number only (ranges, steps), or where a person may lack a value, people have values
of their own that no twin takes. These are twins as well: every combination with the person's own value in place of one
that twins take. They stand after the m combinations that everybody has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import Codes
from fairbits.domain.schema import Schema
from fairbits.domain.words import shortened
from fairbits.errors import SchemaError


class Twins:
    """The m combinations of protected values.

    Order: the protected attributes in column order, the last one changing fastest (as ``itertools.product``).

    Parameters
    ----------
    schema
        The attributes; at least one is protected.
    max_twins
        Largest number of combinations; by default what the schema says.
    own
        Whether a person's own value is one more where twins take some values only; without, all have the same twins.

    Raises
    ------
    SchemaError
        If no attribute is protected, or if there are more combinations than that.
    """

    def __init__(self, schema: Schema, *, max_twins: int | None = None, own: bool = True):
        limit = schema.max_twins if max_twins is None else max_twins
        if not schema.protected and not schema.observed:
            raise SchemaError(
                "no attribute is protected, so there are no twins to compare; "
                "mark at least one with protected = true, or name it with --protected."
            )
        self.schema = schema
        self.columns = np.array(schema.protected_columns, dtype=np.int64)
        sizes = {schema.attributes[i].name: schema.attributes[i].twin_count for i in schema.protected_columns}
        m = math.prod(sizes.values())
        if m > limit:
            widest = max(sizes, key=lambda name: sizes[name])
            parts = " × ".join(f"{name} {size}" for name, size in sizes.items())
            raise SchemaError(
                f"the protected attributes have {m:,} combinations ({parts}), more than {limit:,}; "
                f"coarsen {widest!r} with a larger step or ranges, or raise the limit (twins under [limits])."
            )
        domains = [schema.attributes[i].twin_values() for i in schema.protected_columns]
        # Where protected attributes are only observed, a person's only twin is the person.
        self.values: Codes = _product(domains)
        self._domains = domains
        self._open = [own and schema.attributes[i].open for i in schema.protected_columns]
        every = _product([np.append(d, np.nan) if o else d for d, o in zip(domains, self._open, strict=True)])
        mine = np.isnan(every).any(axis=1)
        #: All combinations, those at a person's own value last; NaN where it is the person's own.
        self.patterns: Codes = np.concatenate([every[~mine], every[mine]])
        self._place_of = np.argsort(np.argsort(mine, kind="stable"), kind="stable")

    @property
    def m(self) -> int:
        """How many combinations everybody has (the person included, where twins take all values)."""
        return len(self.values)

    @property
    def most(self) -> int:
        """How many twins a person can have, those at the person's own values included."""
        return len(self.patterns)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Each combination as people read it, e.g. "30–39, White, Female"."""
        return self.all_labels[: self.m]

    @cached_property
    def all_labels(self) -> tuple[str, ...]:
        """The same, followed by those at a person's own values: "own age, White, Female"."""
        attributes = [self.schema.attributes[i] for i in self.columns]
        return tuple(
            ", ".join(
                f"own {a.name}" if np.isnan(code) else a.read_twin(code)
                for a, code in zip(attributes, row, strict=True)
            )
            for row in self.patterns
        )

    def label(self, twin: int, person: Codes) -> str:
        """One twin of one person as people read it, the person's own value by its name.

        Parameters
        ----------
        twin
            Position of the twin among all combinations.
        person
            The person's codes, (attributes,).

        Returns
        -------
        str
            Such as "33, Female".
        """
        if twin < self.m:
            return self.labels[twin]
        own = zip(self.columns, self.patterns[twin], strict=True)
        attributes = self.schema.attributes
        return ", ".join(
            attributes[i].read(person[i]) if np.isnan(code) else attributes[i].read_twin(code) for i, code in own
        )

    def as_twins(self, codes: Codes, twins: npt.NDArray[np.integer[Any]]) -> Codes:
        """People as one of their twins each.

        Parameters
        ----------
        codes
            People, (n, attributes).
        twins
            Positions of the twins among all combinations, (n,).

        Returns
        -------
        Codes
            The twins, (n, attributes).
        """
        rows = codes.copy()
        chosen = self.patterns[twins]
        rows[:, self.columns] = np.where(np.isnan(chosen), codes[:, self.columns], chosen)
        return rows

    def own(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Which combinations at their own values people have beside the m that everybody has.

        Parameters
        ----------
        codes
            People, (n, attributes).

        Returns
        -------
        npt.NDArray[np.bool_]
            Truth values, (n, most − m).
        """
        known = self._known(codes)
        wanted = np.isnan(self.patterns[self.m :])
        return np.asarray((known.astype(np.int64) @ wanted.T.astype(np.int64)) == 0)

    def has_own(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Who has a value of their own that no twin of others takes.

        Parameters
        ----------
        codes
            People, (n, attributes).

        Returns
        -------
        npt.NDArray[np.bool_]
            Truth values, (n,).
        """
        return np.asarray(~self._known(codes).all(axis=1))

    def _known(self, codes: Codes) -> npt.NDArray[np.bool_]:
        known = [np.isin(codes[:, i], d) for i, d in zip(self.columns, self._domains, strict=True)]
        return np.stack(known, axis=1) if known else np.empty((len(codes), 0), np.bool_)

    def place_of(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Position of people as they are among all their combinations, their own values as such.

        Parameters
        ----------
        codes
            People, (n, attributes).

        Returns
        -------
        npt.NDArray[np.int64]
            Positions from 0 to most − 1, (n,).
        """
        index = np.zeros(len(codes), dtype=np.int64)
        for i, values, own in zip(self.columns, self._domains, self._open, strict=True):
            place = np.maximum(self.schema.attributes[i].twin_place(codes[:, i]), 0)
            place = np.where(np.isin(codes[:, i], values), place, len(values)) if own else place
            index = index * (len(values) + own) + place
        return np.asarray(self._place_of[index])

    def expand(self, codes: Codes) -> Codes:
        """All twins of a batch of people, (n, m, attributes): person first, then twin.

        Parameters
        ----------
        codes
            People, (n, attributes).

        Returns
        -------
        Codes
            Their twins, (n, m, attributes).
        """
        twins = np.repeat(codes[:, None, :], self.m, axis=1)
        twins[:, :, self.columns] = self.values
        return twins

    def blocks(self, codes: Codes, *, rows: int = 65_536) -> Iterator[tuple[slice, Codes]]:
        """Twins of a batch of people in pieces, through one buffer.

        The protected columns are written once; each piece only fills in its people. The next piece overwrites the
        buffer: use a piece or copy it before going on.

        Parameters
        ----------
        codes
            People, (n, attributes).
        rows
            About how many twins a piece holds.

        Yields
        ------
        Iterator[tuple[slice, Codes]]
            The rows of a piece, and its twins, (people, m, attributes).
        """
        people = max(1, rows // self.m)
        buffer = np.empty((min(people, len(codes)), self.m, codes.shape[1]))
        buffer[:, :, self.columns] = self.values
        free = np.setdiff1d(np.arange(codes.shape[1]), self.columns)
        for start in range(0, len(codes), people):
            batch = codes[start : start + people]
            piece = buffer[: len(batch)]
            piece[:, :, free] = batch[:, None, free]
            yield slice(start, start + len(batch)), piece

    def index_of(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Position of the combination that stands for each person: by the ranges, where twins stand for ranges.

        Parameters
        ----------
        codes
            People, (n, attributes).

        Returns
        -------
        npt.NDArray[np.int64]
            Positions from 0 to m − 1, (n,); a missing value that no twin takes counts as the first value.
        """
        index = np.zeros(len(codes), dtype=np.int64)
        for i, values in zip(self.columns, self._domains, strict=True):
            index = index * len(values) + np.maximum(self.schema.attributes[i].twin_place(codes[:, i]), 0)
        return index


def _product(domains: list[Codes]) -> Codes:
    """All combinations, the last domain changing fastest; one empty one where there are no domains."""
    grid = np.meshgrid(*domains, indexing="ij")
    return np.stack([axis.ravel() for axis in grid], axis=1) if grid else np.empty((1, 0))


#: Rows of the table that must have a combination of protected values.
MIN_ROWS = 10
#: Values of a protected number that a sentence lists.
MAX_SHOWN = 8
#: Which figures of a measurement rest on the values that twins take.
TWIN_FIGURES = ("k_mean", "k_max", "q_inf_mean", "q_inf_max", "q_1_mean", "q_1_max", "split_rate", "flip_rate")
#: What kind of figure it is: certain, at least so much, or an estimate.
FigureKind = Literal["exact", "lower bound", "statistical"]


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that was not asked.

    Attributes
    ----------
    limit
        "values" (twins take some values of a protected number only), "missing" (twins of others never lack a value),
        "support" (some combinations of protected values hardly occur) or "training" (accuracy on rows that the model
        may know).
    figures
        The figures that it limits, by their names in JSON.
    kind
        What these figures become, where it changes their kind.
    attribute
        The attribute that it is about.
    count, of
        How many values were asked, or combinations are supported, of how many.
    values
        The values that were asked, in words.
    """

    limit: Literal["values", "missing", "support", "training"]
    figures: tuple[str, ...]
    kind: FigureKind | None = None
    attribute: str | None = None
    count: int | None = None
    of: int | None = None
    values: str | None = None

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Limit:
        """Undo ``document``; the sentence is made anew."""
        return cls(**{**{name: document[name] for name in cls.__slots__}, "figures": tuple(document["figures"])})

    @property
    def text(self) -> str:
        """The same in a sentence."""
        name = shortened(self.attribute or "", 60)
        if self.limit == "values":
            return (
                f"Twins take {self.count} values of {name} ({self.values}) and each person's own; others are not "
                f"asked: the figures are lower bounds where all values count."
            )
        if self.limit == "missing":
            return (
                f"{name} may be missing in the table; twins of those who have a value never lack it "
                f'(missing = "value" makes that a value of twins too).'
            )
        if self.limit == "support":
            return (
                f"Of {self.of:,} combinations of protected values, {self.count:,} are those of at least {MIN_ROWS} "
                f"rows; the others are people whom the table hardly knows."
            )
        return "Accuracy is on rows that the model may have been trained on; on others it is likely lower."

    def document(self) -> dict[str, Any]:
        """As JSON, the sentence included."""
        return {**asdict(self), "figures": list(self.figures), "text": self.text}


def twin_limits(schema: Schema) -> tuple[Limit, ...]:
    """What the twins of a schema leave out."""
    found = []
    for column in schema.protected_columns:
        attribute = schema.attributes[column]
        if attribute.gap is not None and attribute.missing != "value":
            found.append(Limit("missing", TWIN_FIGURES, attribute=attribute.name))
        if attribute.representatives and attribute.twin_count <= schema.max_twins:  # more are refused
            values = [attribute.read(code) for code in attribute.twin_values()]
            shown = ", ".join(values if len(values) <= MAX_SHOWN else [*values[: MAX_SHOWN - 1], "…", values[-1]])
            found.append(
                Limit(
                    "values",
                    TWIN_FIGURES,
                    kind="lower bound",
                    attribute=attribute.name,
                    count=attribute.twin_count,
                    values=shown,
                )
            )
    return tuple(found)
