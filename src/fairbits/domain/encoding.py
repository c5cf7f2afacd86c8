"""From codes to the inputs of a network: every attribute becomes a number, a row of a table, or nothing that is seen.

Encodings are affine: a numeric attribute enters as ``(code − shift) · scale``, any other as a row of a lookup table
(one-hot is the identity table). So the first layer of a network is itself a table: see ``first_layer``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import Codes
from fairbits.domain.schema import Schema
from fairbits.domain.twins import Twins
from fairbits.errors import ROW, ModelError, SchemaError, TableError


def table_rows(codes: Codes, low: int, size: int) -> npt.NDArray[np.int64]:
    """Row numbers in a table that has one row for each code from ``low`` on."""
    whole = np.rint(codes)
    outside = ~((whole >= low) & (whole < low + size))  # true for NaN as well
    if outside.any():
        row = int(np.argmax(outside))
        raise TableError.of_row(
            f"a code is {codes[row]:g} in {ROW}, but this attribute takes {low} to {low + size - 1}; "
            f"check the table against its schema.",
            row,
        )
    return whole.astype(np.int64) - low


@dataclass(frozen=True, slots=True)
class Numeric:
    """One input: ``(code − shift) · scale``, or NaN for the code that says that a value is missing (``gap``)."""

    column: int
    shift: float = 0.0
    scale: float = 1.0
    gap: float | None = None

    @property
    def columns(self) -> npt.NDArray[np.int64]:
        """The inputs that this part fills."""
        return np.array([self.column])

    def encode(self, codes: Codes) -> npt.NDArray[np.float64]:
        """Encode codes as one input each."""
        inputs = (codes - self.shift) * self.scale
        return (inputs if self.gap is None else np.where(codes == self.gap, np.nan, inputs))[:, None]

    def pull_back(self, gradient: npt.NDArray[np.floating], codes: Codes) -> Codes:
        """Gradient with respect to the code, from the gradient with respect to the input."""
        slope = np.asarray(gradient[:, 0] * self.scale, dtype=np.float64)
        return slope if self.gap is None else np.where(codes == self.gap, 0.0, slope)


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """Several inputs: row ``code − low`` of a table (one-hot, ordinal, any fixed embedding)."""

    columns: npt.NDArray[np.int64]
    table: npt.NDArray[np.float64]
    low: int = 0

    def __post_init__(self) -> None:
        # Copies: whoever handed them over may go on changing theirs.
        object.__setattr__(self, "columns", np.array(self.columns, dtype=np.int64))
        object.__setattr__(self, "table", np.array(self.table, dtype=np.float64))

    def encode(self, codes: Codes) -> npt.NDArray[np.float64]:
        """Encode codes as rows of the table."""
        return self.table[table_rows(codes, self.low, len(self.table))]

    def pull_back(self, gradient: npt.NDArray[np.floating], codes: Codes) -> Codes:
        """Change of the output per step of code, to first order: the mean of one step up and one step down."""
        effect = np.asarray(gradient @ self.table.T, dtype=np.float64)
        rows = table_rows(codes, self.low, len(self.table))
        up = np.minimum(rows + 1, len(self.table) - 1)
        down = np.maximum(rows - 1, 0)
        people = np.arange(len(rows))
        return np.asarray((effect[people, up] - effect[people, down]) / np.maximum(up - down, 1), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Unseen:
    """No input at all: the model never gets this attribute."""

    @property
    def columns(self) -> npt.NDArray[np.int64]:
        """The inputs that this part fills: none."""
        return np.empty(0, dtype=np.int64)

    def encode(self, codes: Codes) -> npt.NDArray[np.float64]:
        """Encode codes as no inputs at all."""
        return np.empty((len(codes), 0))

    def pull_back(self, gradient: npt.NDArray[np.floating], codes: Codes) -> Codes:  # noqa: ARG002
        """Gradient with respect to the code: zero, since the model does not see it."""
        return np.zeros(len(codes))


Part = Numeric | Lookup | Unseen


Inputs = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class FirstLayer:
    """The first layer as a sum over attributes: ``bias + Σ slope·(code − shift) + Σ table[code − low]``."""

    bias: npt.NDArray[np.float32]
    slopes: dict[int, tuple[float, npt.NDArray[np.float32]]]
    tables: dict[int, tuple[int, npt.NDArray[np.float32]]]

    def contribution(self, attribute: int, codes: Codes) -> npt.NDArray[np.float32]:
        """Contribution of one attribute to the pre-activations of the first layer."""
        if attribute in self.slopes:
            shift, slope = self.slopes[attribute]
            return (codes - shift).astype(np.float32)[:, None] * slope
        low, table = self.tables[attribute]
        return table[table_rows(codes, low, len(table))]


class Encoding:
    """How each attribute, in schema order, becomes inputs of the model.

    Parameters
    ----------
    parts
        One `Numeric`, `Lookup` or `Unseen` per attribute; together with ``fixed`` they fill every input once.
    fixed
        Inputs that are the same for everybody, by position: a column that a fitted encoder keeps for a value which the
        schema does not have.
    dtype
        Type of the inputs: float32, as networks take them, or float64 for a model that takes codes.

    Raises
    ------
    SchemaError
        If an input is filled twice or not at all.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        *,
        fixed: Mapping[int, float] | None = None,
        dtype: type[np.floating] = np.float32,
    ):
        self.parts = tuple(parts)
        self.fixed = dict(fixed or {})
        self.dtype = dtype
        filled = np.concatenate([*(part.columns for part in self.parts), np.array([*self.fixed], dtype=np.int64)])
        self.width = len(filled)
        numbers = ((i, part.gap) for i, part in enumerate(self.parts) if isinstance(part, Numeric))
        #: The attributes whose numbers may be missing with the code that says so, and those that the model never gets.
        self.gaps = {i: gap for i, gap in numbers if gap is not None}
        self.unseen = tuple(i for i, part in enumerate(self.parts) if isinstance(part, Unseen))
        if not np.array_equal(np.sort(filled), np.arange(self.width)):
            raise SchemaError(
                f"the encoding fills inputs {sorted(set(filled.tolist()))}; every input needs one attribute."
            )
        self._plain = all(part == Numeric(i) for i, part in enumerate(self.parts)) and not self.fixed

    @classmethod
    def identity(
        cls, schema: Schema, *, columns: Iterable[str] | None = None, dtype: type[np.floating] = np.float32
    ) -> Encoding:
        """Each code is one input, unchanged.

        Parameters
        ----------
        schema
            The attributes.
        columns
            Attributes that the model sees, in its order; None means all, in order of the schema.
        dtype
            Number type of the inputs.
        """
        names = schema.names if columns is None else _known(columns, schema)
        return cls([Numeric(names.index(n)) if n in names else Unseen() for n in schema.names], dtype=dtype)

    @classmethod
    def one_hot(cls, schema: Schema, *, columns: Iterable[str] | None = None) -> Encoding:
        """One input per label for categories, one input per code for everything else.

        Parameters
        ----------
        schema
            The attributes.
        columns
            Attributes that the model sees, in its order; None means all, in order of the schema.
        """
        parts: dict[str, Part] = {}
        column = 0
        for name in schema.names if columns is None else _known(columns, schema):
            attribute = schema[name]
            size = len(attribute.labels) if attribute.kind == "category" else 0
            parts[name] = Lookup(np.arange(column, column + size), np.eye(size)) if size else Numeric(column)
            column += size or 1
        return cls([parts.get(name, Unseen()) for name in schema.names])

    @classmethod
    def of_columns(cls, schema: Schema, order: Sequence[str] = ()) -> Encoding:
        """Inputs are columns of a table: one per attribute, or one per label of a category spread over several columns.

        A label that has no column of its own (a dropped value) is zero in all columns of its category; an attribute
        none of whose columns is in the order is not seen.

        Parameters
        ----------
        schema
            The attributes and their columns.
        order
            The table's columns in the order in which the model takes them; others are passed over. Empty means the
            order of the schema.
        """
        own = [attribute.own_columns for attribute in schema.attributes]
        wanted = {name for names in own for name in names}
        ranked = [name for name in order if name in wanted] or [name for names in own for name in names]
        place = {name: i for i, name in enumerate(ranked)}
        parts: list[Part] = []
        for attribute, names in zip(schema.attributes, own, strict=True):
            columns = np.array([place[name] for name in names if name in place], dtype=np.int64)
            if not len(columns):
                parts.append(Unseen())
            elif attribute.columns:
                there = [label for label, name in enumerate(attribute.columns) if name in place]
                parts.append(Lookup(columns, np.eye(len(attribute.columns))[:, there]))
            else:
                parts.append(Numeric(int(columns[0])))
        return cls(parts)

    @classmethod
    def fitting(cls, schema: Schema, inputs: int, *, columns: Iterable[str] | None = None) -> Encoding:
        """The plain encoding (columns of the table, codes, or one-hot) that makes as many inputs as the network takes.

        Parameters
        ----------
        schema
            The attributes.
        inputs
            Width of the network's input.
        columns
            Attributes that the model sees, in its order; None means all.

        Raises
        ------
        ModelError
            If none of them has this width.
        """
        names = schema.names if columns is None else _known(columns, schema)
        identity, one_hot = cls.identity(schema, columns=names), cls.one_hot(schema, columns=names)
        grouped = [cls.of_columns(schema)] if any(a.columns for a in schema.attributes) and columns is None else []
        for encoding in (*grouped, identity, one_hot):
            if encoding.width == inputs:
                return encoding
        raise ModelError(
            f"the network takes {inputs} inputs, but the {len(names)} attributes make {identity.width} as codes or "
            f"{one_hot.width} with one-hot categories; {_what_would_fit(schema, names, inputs)}"
        )

    def with_gaps(self, schema: Schema) -> Encoding:
        """The same encoding for a table in which numbers may be missing: the model gets NaN for them.

        Parameters
        ----------
        schema
            Attributes, with the code of a missing value where there may be one.
        """
        parts = [
            replace(part, gap=attribute.gap)
            if isinstance(part, Numeric) and part.gap is None and attribute.kind != "category"
            else part
            for part, attribute in zip(self.parts, schema.attributes, strict=True)
        ]
        return Encoding(parts, fixed=self.fixed, dtype=self.dtype)

    def same_as(self, other: Encoding) -> bool:
        """Whether two encodings turn every code into the same inputs.

        Parameters
        ----------
        other
            The encoding to compare with.
        """
        mine, theirs = (np.array(sorted(one.fixed.items()), dtype=np.float64) for one in (self, other))
        return np.array_equal(mine, theirs, equal_nan=True) and all(
            np.array_equal(a.columns, b.columns) and a.low == b.low and np.array_equal(a.table, b.table, equal_nan=True)
            if isinstance(a, Lookup) and isinstance(b, Lookup)
            else a == b
            for a, b in zip(self.parts, other.parts, strict=True)
        )

    def encode(self, codes: Codes) -> Inputs:
        """Encode people as inputs of the model, (n, width), of the encoding's number type.

        Parameters
        ----------
        codes
            People, (n, attributes).

        Raises
        ------
        TableError
            If a code is outside the domain of its attribute.
        """
        if self._plain:
            return np.asarray(codes, dtype=self.dtype)
        inputs = np.empty((len(codes), self.width), dtype=self.dtype)
        for column, value in self.fixed.items():
            inputs[:, column] = value
        for attribute, part in enumerate(self.parts):
            inputs[:, part.columns] = part.encode(codes[:, attribute])
        return inputs

    def encode_twins(self, codes: Codes, twins: Twins) -> Inputs:
        """Inputs of all twins, (n, m, width); people and protected values are each encoded once.

        Parameters
        ----------
        codes
            People, (n, attributes).
        twins
            Combinations of protected values.
        """
        inputs = np.repeat(self.encode(codes)[:, None, :], twins.m, axis=1)
        for position, attribute in enumerate(twins.columns):
            part = self.parts[attribute]
            inputs[:, :, part.columns] = part.encode(twins.values[:, position])
        return inputs

    def pull_back(self, gradients: npt.NDArray[np.floating], codes: Codes) -> Codes:
        """Gradients with respect to codes, (n, attributes), from gradients with respect to inputs.

        Parameters
        ----------
        gradients
            Change of the output per unit of each input, (n, width).
        codes
            People at whom they were taken, (n, attributes).
        """
        return np.column_stack(
            [part.pull_back(gradients[:, part.columns], codes[:, i]) for i, part in enumerate(self.parts)]
        )

    def first_layer(self, weights: npt.NDArray[np.floating], bias: npt.NDArray[np.floating]) -> FirstLayer:
        """The first layer as a function of codes: slopes and tables, one for each attribute.

        Parameters
        ----------
        weights
            Weights of the first layer, (width, neurons).
        bias
            Biases of the first layer, (neurons,).
        """
        exact = np.asarray(weights, dtype=np.float64)
        slopes: dict[int, tuple[float, npt.NDArray[np.float32]]] = {}
        tables: dict[int, tuple[int, npt.NDArray[np.float32]]] = {}
        offset = np.asarray(bias, dtype=np.float64)
        for column, value in self.fixed.items():
            offset = offset + value * exact[column]
        for attribute, part in enumerate(self.parts):
            if isinstance(part, Unseen):
                slopes[attribute] = (0.0, np.zeros(exact.shape[1], dtype=np.float32))
            elif isinstance(part, Numeric):
                slopes[attribute] = (part.shift, (part.scale * exact[part.column]).astype(np.float32))
            else:
                tables[attribute] = (part.low, (part.table @ exact[part.columns]).astype(np.float32))
        return FirstLayer(offset.astype(np.float32), slopes, tables)


#: About how many encoded twins a model that is asked gets at a time.
_ROWS = 65_536


def twin_inputs(encoding: Encoding, codes: Codes, twins: Twins) -> Iterator[tuple[slice, Inputs]]:
    """A few people at a time: which they are, and the inputs of all their twins, (people · m, width)."""
    people = max(1, _ROWS // twins.m)
    for start in range(0, len(codes), people):
        rows = slice(start, min(start + people, len(codes)))
        yield rows, encoding.encode_twins(codes[rows], twins).reshape(-1, encoding.width)


def _known(columns: Iterable[str], schema: Schema) -> tuple[str, ...]:
    names = tuple(columns)
    for name in names:
        schema.column(name)  # names the slip, if it is one
    if not names or len(set(names)) != len(names):
        raise SchemaError(f"the model's columns are {', '.join(names) or 'none'}; name each attribute it sees once.")
    return names


def _what_would_fit(schema: Schema, names: tuple[str, ...], inputs: int) -> str:
    """The end of the message: some columns that would make the right width, where leaving out a few does it."""
    protected = tuple(name for name in names if name in schema.protected)
    for left_out in (protected, *((name,) for name in (*protected, *names))):
        kept = tuple(name for name in names if name not in left_out)
        hot = sum(len(schema[name].labels) if schema[name].kind == "category" else 1 for name in kept)
        for how, width in (("as codes", len(kept)), ("one-hot", hot)):
            if kept and left_out and width == inputs:
                return (
                    f"without {', '.join(left_out)} they would fit {how}: if the model does not see it, list what it "
                    f"sees under [model] columns."
                )
    return "check the columns, list those that it sees under [model] columns, or state the encoding."
