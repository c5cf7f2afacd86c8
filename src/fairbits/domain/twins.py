"""The twins of a person: the same person under every combination of protected values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from fairbits.domain.attribute import Codes, nearest
from fairbits.domain.schema import Schema
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

    Raises
    ------
    SchemaError
        If no attribute is protected, or if there are more combinations than that.
    """

    def __init__(self, schema: Schema, *, max_twins: int | None = None):
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
        grid = np.meshgrid(*domains, indexing="ij")
        # Where protected attributes are only observed, a person's only twin is the person.
        self.values: Codes = np.stack([axis.ravel() for axis in grid], axis=1) if grid else np.empty((1, 0))

    @property
    def m(self) -> int:
        """How many twins a person has (the person included)."""
        return len(self.values)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Each combination as people read it, e.g. "30–39, White, Female"."""
        attributes = [self.schema.attributes[i] for i in self.columns]
        return tuple(
            ", ".join(a.read_twin(code) for a, code in zip(attributes, row, strict=True)) for row in self.values
        )

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

    def index_of(self, codes: Codes) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Position of each person among their own twins: the nearest twin, where twins stand for ranges of values.

        Parameters
        ----------
        codes
            People, (n, attributes).

        Returns
        -------
        np.ndarray[tuple[int], np.dtype[np.int64]]
            Positions from 0 to m − 1, (n,).
        """
        index = np.zeros(len(codes), dtype=np.int64)
        for i in self.columns:
            values = self.schema.attributes[i].twin_values()
            index = index * len(values) + nearest(values, codes[:, i])
        return index
