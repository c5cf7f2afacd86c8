"""What a person is made of, and how scores become decisions.

The attributes in order, which of them are protected, what is decided; ranges keep protected numbers of many values to a
number of twins that can be asked about.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import Attribute, Codes, is_number
from fairbits.domain.rule import Rule
from fairbits.errors import SchemaError, choose_from

#: Where nothing else is said, a favourable decision needs at least this probability.
DEFAULT_THRESHOLD = 0.5
#: More than one half: the cut-off of a classifier that gives a tie to its other class.
ABOVE_HALF = 0.5 + 2.0**-53


def says_yes(label: str) -> bool:
    """Whether the last of sorted classes is the favourable one by what it says; of other words a person must know."""
    return is_number(label) or label.strip().lower() in {"true", "yes", "y", "t"}


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """How a model's scores become a class.

    Between two classes a score of at least ``threshold`` (both as float32, the precision of scores: see ``rounded``)
    is the favourable one. Between three or more the most likely class is decided, and a tie goes to the favourable one,
    then to the first (see ``rounded_table`` for models whose library decides ties otherwise). A regression
    (``classes`` 0) decides nothing.
    """

    classes: int
    favourable: int
    threshold: float | None

    def favours(self, scores: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether each score of the favourable class is a favourable decision, between two classes."""
        cut = DEFAULT_THRESHOLD if self.threshold is None else self.threshold
        return np.asarray(np.asarray(scores, dtype=np.float32) >= np.float32(cut))

    def rounded(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """Scores of a model that computes in float64 as float32, each on the side of the threshold where it was."""
        found = scores.astype(np.float32)
        if self.threshold is not None:
            cut = np.float32(self.threshold)
            found[(scores < self.threshold) & (found >= cut)] = np.nextafter(cut, np.float32(-np.inf))
        return found

    def rounded_table(self, table: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """Probabilities of three classes or more as float32, the favourable one below a class that is decided instead:
        one that is larger in float64 or, as libraries have it, as large and earlier."""
        found = table.astype(np.float32)
        if self.classes > 2:
            best = found.max(axis=-1)
            lost = (np.argmax(table, axis=-1) != self.favourable) & (found[..., self.favourable] >= best)
            found[lost, self.favourable] = np.nextafter(best[lost], np.float32(-np.inf))
        return found

    def decide(self, scores: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The position of the class that each score decides for, between two classes."""
        return np.where(self.favours(scores), self.favourable, 1 - self.favourable).astype(np.int64)

    def both(self, scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The probabilities of both classes, where there are two."""
        pair = (1 - scores, scores) if self.favourable == 1 else (scores, 1 - scores)
        return np.stack(pair, axis=-1)

    def most_likely(self, table: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The position of the class that each row of probabilities decides for."""
        if self.classes == 2:
            return self.decide(table[..., self.favourable])
        return np.where(self.favours_row(table), self.favourable, np.argmax(table, axis=-1)).astype(np.int64)

    def favours_row(self, table: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether each row of probabilities is a favourable decision, between three classes or more."""
        return np.asarray(table[..., self.favourable] >= table.max(axis=-1))


def rule_words(favourable: str | None, threshold: float | None, *, probability: bool = True) -> str:
    """A decision rule in words.

    Examples
    --------
    >>> rule_words("approved", 0.5)
    'favourable when P(approved) ≥ 0.5'
    >>> rule_words("approved", None), rule_words(None, None)
    ("favourable when 'approved' is the most likely class", 'a number is predicted, nothing is decided')
    """
    if favourable is None:
        return "a number is predicted, nothing is decided"
    if threshold is None:
        return f"favourable when {favourable!r} is the most likely class"
    if not probability:
        return f"favourable when the score of {favourable!r} is at least {threshold:.15g}"
    return f"favourable when P({favourable}) " + ("> 0.5" if threshold == ABOVE_HALF else f"≥ {threshold:.15g}")


#: More combinations of protected values than this are refused: a table of scores per person would be of no use.
MAX_TWINS = 100_000
#: What is compared between twins: the favourable class, or all classes at once.
Compared = Literal["favourable", "vector"]


@dataclass(frozen=True, slots=True)
class Chances:
    """A protected attribute that is known as probabilities only, such as those of BISG: a column for each group.

    What they leave of 1 is the last group. ``likely`` names the observed attribute that takes the likeliest group.
    """

    attribute: str
    columns: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def likely(self) -> str:
        """The observed attribute that holds the group of probability one half or more, where there is one."""
        return f"{self.attribute} (most likely)"

    @property
    def likely_group(self) -> Attribute:
        """That attribute."""
        return Attribute(name=self.likely, kind="category", labels=self.labels, protected=True)


@dataclass(frozen=True, repr=False)
class Schema:
    """The attributes of a person in column order, and the target that the model predicts.

    Parameters
    ----------
    attributes
        What the model takes about a person, in the order of the codes.
    target
        The column that the model predicts; None where the table has no labels.
    classes
        The target's values in the order of the model's outputs; empty for a regression.
    favourable
        The class whose probability is the score; None for a regression.
    rules
        Which people there can be; given as text, see docs/own.md.
    plausible
        Which twins of a person are plausible, as text too: the others are asked about, but figures among plausible
        twins leave them out. ``own age`` is the person's own value.
    scores
        What twins are compared in: "favourable", the probability of the favourable class, or "vector", the
        probabilities of all classes.
    max_twins
        Largest number of twins that a person may have.
    threshold
        Score from which on a decision between two classes is favourable, on the score's own scale: a probability of
        the favourable class, 0.5 where it is None, or points where the model gives points. With three classes or more
        the most likely one is decided.
    order_guessed
        Whether the order of the classes is only that of their names, because no file or option says which output is
        which.
    observed
        Protected attributes that are in the table and no input of the model: codes of people, twins and encodings leave
        them out.
    justified
        Names of the attributes that may decide, for indirect bits.
    notes
        What was left out of the schema, and why, as sentences.
    score_range
        How far scores spread (1 to 99 %) that decide between two classes and are no probabilities; None where they are.
    chances
        Protected attributes of which the table has probabilities only; the likeliest group of each is in ``observed``.
    """

    attributes: tuple[Attribute, ...]
    target: str | None = None
    classes: tuple[str, ...] = ()
    favourable: str | None = None
    rules: tuple[Rule, ...] = ()
    scores: Compared = "favourable"
    max_twins: int = MAX_TWINS
    threshold: float | None = None
    order_guessed: bool = field(default=False, compare=False)
    observed: tuple[Attribute, ...] = ()
    justified: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)
    score_range: float | None = None
    plausible: tuple[Rule, ...] = ()
    chances: tuple[Chances, ...] = ()

    #: Attribute names in column order, those of the protected ones, and the columns of these and of all others.
    names: tuple[str, ...] = field(init=False, compare=False)
    protected: tuple[str, ...] = field(init=False, compare=False)
    protected_columns: tuple[int, ...] = field(init=False, compare=False)
    free_columns: tuple[int, ...] = field(init=False, compare=False)
    #: Whether the target is a number and not a class; whether scores are probabilities, not numbers or points.
    regression: bool = field(init=False, compare=False)
    probabilities: bool = field(init=False, compare=False)
    #: Which output of the network is the favourable class (0 for a regression), and how scores become decisions.
    favourable_index: int = field(init=False, compare=False)
    rule: DecisionRule = field(init=False, compare=False)

    def __post_init__(self) -> None:
        settled: dict[str, Any] = {
            name: tuple(getattr(self, name)) for name in ("attributes", "observed", "justified", "classes")
        }
        every = [(i, one.name, one.protected) for i, one in enumerate(settled["attributes"])]
        settled |= {
            "names": tuple(name for _, name, _ in every),
            "protected": tuple(name for _, name, guarded in every if guarded),
            "protected_columns": tuple(i for i, _, guarded in every if guarded),
            "free_columns": tuple(i for i, _, guarded in every if not guarded),
        }
        vars(self).update(settled)
        if not self.attributes and not self.observed:
            raise SchemaError("a schema needs at least one attribute, but got none; list them under [attributes].")
        names = Counter((*self.names, *(one.name for one in self.observed)))
        double = next((name for name, count in names.items() if count > 1), None)
        if double is not None:
            raise SchemaError(f"attribute {double!r} is listed twice; names must differ.")
        if self.target in names:
            raise SchemaError(f"target {self.target!r} is also an attribute; a model must not see its own target.")
        same = next((one for one in self.attributes if one.protected and one.twin_count == 1 and not one.open), None)
        if same is not None:
            raise SchemaError(
                f"protected attribute {same.name!r} has the single value {same.read(same.first)!r}, so it has no "
                f"twins; describe its other values under [attributes], or protect another one."
            )
        self._settle_target()
        if self.justified:
            self.check_justified(self.justified)
        for name in ("rules", "plausible"):
            texts = (rule.text if isinstance(rule, Rule) else rule for rule in getattr(self, name))
            vars(self)[name] = tuple(Rule.of(text, self.attributes, own=name == "plausible") for text in texts)

    def __repr__(self) -> str:
        shown = ", ".join([*self.names[:6], *(["…"] if len(self) > 6 else [])])
        decided = "" if self.target is None else f", target: {self.target}"
        return (
            f"<Schema of {len(self)} attributes ({shown}), protected: {', '.join(self.protected) or 'none'}{decided}>"
        )

    def check_justified(self, names: Iterable[str]) -> None:
        """Refuse justified attributes that are not there, or that are protected themselves.

        Parameters
        ----------
        names
            Attributes that may decide.

        Raises
        ------
        SchemaError
            If one is not in the schema, or is protected.
        """
        guarded = {*self.protected, *(one.name for one in self.observed)}
        for name in names:
            if name in guarded:
                raise SchemaError(
                    f"justified attribute {name!r} is protected itself, so knowing it would hide what is asked; "
                    f"leave it out of justified."
                )
            if name not in self.names:
                free = [one for one in self.names if one not in guarded]
                raise SchemaError(f"justified attribute {name!r} is not in the schema; {choose_from(name, free)}")

    def _settle_target(self) -> None:
        if len(self.classes) == 1:
            raise SchemaError(f"the target has the single class {self.classes[0]!r}; a decision needs at least two.")
        if not self.classes and self.favourable is not None:
            raise SchemaError(f"favourable is {self.favourable!r}, but the target has no classes; name them.")
        if self.classes and self.favourable is None:
            last = vars(self)["favourable"] = self.classes[-1]
            if self.order_guessed and not says_yes(last):
                note = f"nobody said which class of {self.target} is favourable: {last!r} is taken, the last by name."
                vars(self)["notes"] = (*self.notes, note)
        if self.favourable is not None and {*self.classes} == {"false", "true"}:
            vars(self)["favourable"] = self.favourable.lower()  # as Python and its tables spell truth values
        if self.classes and self.favourable not in self.classes:
            remedy = choose_from(str(self.favourable), self.classes)
            raise SchemaError(f"favourable value {self.favourable!r} is not a class of the target; {remedy}")
        if self.scores not in get_args(Compared):
            raise SchemaError(f"scores is {self.scores!r}; {choose_from(str(self.scores), get_args(Compared))}")
        if self.scores == "vector" and not self.classes:
            raise SchemaError("scores is 'vector', but the target has no classes; a regression has one score only.")
        if self.max_twins < 1:
            raise SchemaError(f"the limit of twins is {self.max_twins}; it must be 1 or more.")
        if self.threshold is not None:
            self._check_threshold(self.threshold)
            vars(self)["threshold"] = float(self.threshold)
        own = 0 if self.favourable is None else self.classes.index(self.favourable)
        cut = DEFAULT_THRESHOLD if self.threshold is None else self.threshold
        vars(self).update(
            regression=not self.classes,
            probabilities=bool(self.classes) and self.score_range is None,
            favourable_index=own,
            rule=DecisionRule(len(self.classes), own, cut if len(self.classes) == 2 else None),
        )

    def _check_threshold(self, stated: object) -> None:
        if isinstance(stated, bool) or not isinstance(stated, int | float) or not math.isfinite(stated):
            raise SchemaError(
                f"the threshold is {stated!r}; it must be a number on the score's scale: between 0 and 1 for "
                f"probabilities, e.g. 0.5."
            )
        if not self.classes:
            raise SchemaError(f"the threshold is {stated:g}, but a regression decides nothing; leave it out.")
        if len(self.classes) > 2:
            raise SchemaError(
                f"the threshold is {stated:g}, but the target has {len(self.classes)} classes, and the most likely one "
                f"is decided; leave it out."
            )

    @cached_property
    def person_columns(self) -> tuple[int, ...]:
        """Columns that tell two people apart: the free ones, and protected ones of which twins take some values only,
        so that a person's own is one more.
        """
        return tuple(i for i, attribute in enumerate(self.attributes) if not attribute.protected or attribute.open)

    @cached_property
    def movable_columns(self) -> tuple[int, ...]:
        """Columns of the attributes that a search may change."""
        return tuple(i for i in self.free_columns if not self.attributes[i].immutable)

    def __len__(self) -> int:
        return len(self.attributes)

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.column(name)]

    def column(self, name: str) -> int:
        """Position of an attribute in the table, from 0.

        Parameters
        ----------
        name
            Name of the attribute.

        Raises
        ------
        SchemaError
            If there is no such attribute.
        """
        if name not in self.names:
            raise SchemaError(f"attribute {name!r} is not in the schema; {choose_from(name, self.names)}")
        return self.names.index(name)

    def with_protected(self, names: Iterable[str]) -> Schema:
        """The same schema with exactly these attributes protected; observed ones stay observed.

        Parameters
        ----------
        names
            Attributes to protect.

        Raises
        ------
        SchemaError
            If one is not in the schema.
        """
        chosen = list(names)
        strange = next((one for one in chosen if one not in (*self.names, *(one.name for one in self.observed))), None)
        if strange is not None:
            raise SchemaError(
                f"protected attribute {strange!r} is not in the table; {choose_from(strange, self.names)}"
            )
        if all(attribute.protected == (attribute.name in chosen) for attribute in self.attributes):
            return self
        return replace(self, attributes=tuple(replace(one, protected=one.name in chosen) for one in self.attributes))

    def read(self, codes: Sequence[float] | Codes) -> dict[str, str]:
        """One person in words: names of attributes with labels or numbers.

        Parameters
        ----------
        codes
            One row of codes, (attributes,).
        """
        return {attribute.name: attribute.read(code) for attribute, code in zip(self.attributes, codes, strict=True)}

    def codes_of(self, person: dict[str, str]) -> Codes:
        """Codes of a person given in words, (attributes,); undoes ``read``.

        Parameters
        ----------
        person
            A label or a number as text for every attribute.

        Raises
        ------
        SchemaError
            If an attribute is unknown, lacks a value, or the value is outside its domain.
        """
        unknown = next((name for name in person if name not in self.names), None)
        if unknown is not None:
            raise SchemaError(f"attribute {unknown!r} is not in the schema; {choose_from(unknown, self.names)}")
        missing = [name for name in self.names if name not in person]
        if missing:
            raise SchemaError(f"the person has no value for {', '.join(missing)}; give one for every attribute.")
        return np.array([attribute.code_of(person[attribute.name]) for attribute in self.attributes])

    def clip(self, codes: Codes) -> Codes:
        """The nearest people inside the domain, (n, attributes).

        Parameters
        ----------
        codes
            People, (n, attributes).
        """
        return np.column_stack([attribute.clip(codes[:, i]) for i, attribute in enumerate(self.attributes)])


#: A protected number with at most this many values keeps them all.
FEW_VALUES = 12
#: Ranges that a protected number gets to begin with.
RANGES = 6


def coarsened(schema: Schema, columns: Mapping[str, Codes], *, max_twins: int) -> Schema:
    """The schema with ranges for protected numbers of many values, as many ranges as the limit of twins allows."""
    plain = [a for a in schema.attributes if a.protected and a.kind != "category" and not a.labels]
    wide = [a.name for a in plain if a.kind == "real" or a.count > FEW_VALUES]
    for count in range(RANGES, 1, -1):
        attributes = [with_ranges(a, columns[a.name], count) if a.name in wide else a for a in schema.attributes]
        if twins_of(attributes) <= max_twins:
            return replace(schema, attributes=tuple(attributes), max_twins=max_twins)
    sizes = {a.name: a.twin_count for a in attributes if a.protected}
    widest = max(sizes, key=lambda name: sizes[name])
    parts = " × ".join(f"{name} {size}" for name, size in sizes.items())
    raise SchemaError(
        f"the protected attributes have {twins_of(attributes):,} combinations ({parts}), more than {max_twins:,}; "
        f"merge values of {widest!r} in the table, protect fewer attributes, or raise --max-twins."
    )


def with_ranges(attribute: Attribute, values: Codes, count: int) -> Attribute:
    """The attribute cut into ranges that hold about as many people each; the median value stands for its range."""
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, count + 1)[1:-1], method="higher"))
    place = np.searchsorted(cuts, values, side="right")
    inside = [np.sort(values[place == here]) for here in np.unique(place)]
    ends = [(one[0], one[-1]) for one in inside]
    for read in (attribute.read, "{:.17g}".format):  # the names of ranges differ, however many digits it takes
        names = [read(low) if low == high else f"{read(low)}–{read(high)}" for low, high in ends]
        if len({*names}) == len(names):
            break
    return replace(
        attribute,
        ranges=tuple((name, float(one[len(one) // 2])) for name, one in zip(names, inside, strict=True)),
        cuts=tuple(float(low) for low, _ in ends[1:]),
    )


def twins_of(attributes: list[Attribute]) -> int:
    """Number of combinations of protected values."""
    return int(np.prod([float(a.twin_count) for a in attributes if a.protected]))
