"""Every option once: its name, default, check and help, for the command line, for Python, for run.json and for the
command that a report prints.

An options record is a frozen dataclass with keyword-only fields, each made by :func:`option`. What several stages share
stands in a record of its own that theirs extend. The command line makes flags of the fields (`fairbits.cli.flags`),
:func:`takes` gives a method their names as arguments, and :func:`flag_words` spells them as one would type them.
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fairbits.errors import OptionError, choose_from

Options = TypeVar("Options")
Method = TypeVar("Method", bound=Callable[..., Any])

#: The group of the flags that say what files from outside may do.
LOADING = "Loading and limits"
#: Stages of an audit that can be left out.
SKIPPABLE = ("search", "debug", "repair", "certify", "proxies")
_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)")


def seconds_of(text: str) -> float:
    """Seconds of a duration such as "90s", "1.5m" or "2h".

    Examples
    --------
    >>> seconds_of("90s"), seconds_of("1.5m"), seconds_of("2h")
    (90.0, 90.0, 7200.0)
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise OptionError(f"the budget {text!r} is not a duration; write it like 60s, 15m or 1h.")
    return float(match[1]) * _UNITS[match[2]]


def duration(seconds: float) -> str:
    """A time as options take it.

    Examples
    --------
    >>> duration(15.0), duration(0.25)
    ('15s', '0.25s')
    """
    return f"{int(seconds) if seconds == int(seconds) else seconds}s"


def names_of(text: str, flag: str = "--protected") -> tuple[str, ...]:
    """The names in a text that commas part; one that has a comma itself stands in double quotes, as in a CSV file.

    Examples
    --------
    >>> names_of('age, "sex, title"')
    ('age', 'sex, title')
    """
    found = (name.strip() for row in csv.reader(io.StringIO(text), skipinitialspace=True) for name in row)
    names = tuple(name for name in found if name)
    if not names:
        raise OptionError(f"{flag} is {text!r}; name at least one, or leave it out.")
    return names


def names_typed(names: Iterable[Any]) -> str:
    """Names as ``names_of`` reads them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def option(
    default: Any = MISSING,
    help: str = "",  # noqa: A002 - what everybody calls it
    *,
    flag: str | None = None,
    was: tuple[str, ...] = (),
    name: str | None = None,
    read: Callable[[str], Any] | None = None,
    metavar: str | None = None,
    shown: str | None = None,
    low: int | None = None,
    group: str | None = None,
    rare: bool = False,
    python_only: bool = False,
) -> Any:
    """A field of an options record.

    Parameters
    ----------
    default
        Its value where nothing is said; without one it must be given.
    help
        What it does, in a sentence, for ``--help`` and for Python's help.
    flag, was
        Its flag where that is not its name with dashes, and flags of earlier releases that still work. A field that is
        true by default has a flag that turns it off, such as ``--no-retrain``.
    name
        Its argument in Python, where that is not the field's name.
    read
        Makes a value of text, typed or handed over in Python.
    metavar, shown, low
        What stands for the value in ``--help``, and for the default; the least that a number may be.
    group, rare
        The group of ``--help`` that it stands in, and whether ``-h`` leaves it out.
    python_only
        There is no flag.
    """
    metadata = {name: value for name, value in locals().items() if name != "default"}
    if isinstance(default, dict | list):
        return field(default_factory=type(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def argument_of(one: Field[Any]) -> str:
    """What an option is called in Python."""
    return str(one.metadata.get("name") or one.name)


def flag_of(one: Field[Any]) -> str:
    """What an option is called on the command line."""
    return str(one.metadata.get("flag") or "--" + argument_of(one).replace("_", "-"))


def read_options(kind: type[Options], given: Mapping[str, Any]) -> Options:
    """An options record from arguments by their names in Python; text is read as the command line reads it."""
    known = {argument_of(one): one for one in fields(kind)}  # type: ignore[arg-type]
    strange = next((name for name in given if name not in known), None)
    if strange is not None:
        raise TypeError(f"there is no argument {strange!r}; {choose_from(strange, known)}")
    values = {}
    for name, value in given.items():
        read = known[name].metadata.get("read")
        values[known[name].name] = read(value) if read is not None and isinstance(value, str) else value
    return kind(**values)


def arguments_of(options: Any, kind: type[Any] | None = None) -> dict[str, Any]:
    """The values of a record, or of the part of it that another one describes, by their names in Python."""
    return {argument_of(one): getattr(options, one.name) for one in fields(kind or options)}


def takes(kind: type[Any]) -> Callable[[Method], Method]:
    """Give a method whose last parameter is ``**options`` the arguments of a record: signature, and help of each."""
    own = fields_of(kind)
    # The help of a flag that turns something off speaks of it being off.
    off = [one.name for one in own if one.default is True and one.metadata["flag"] is not None]
    helped = [(argument_of(one), ("False: " if one.name in off else "") + one.metadata["help"]) for one in own]
    entries = "".join(f"        {name}\n            {words}\n" for name, words in helped)

    def decorate(method: Method) -> Method:
        signature = inspect.signature(method)
        kept = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        more = [
            inspect.Parameter(
                argument_of(one), inspect.Parameter.KEYWORD_ONLY, default=_default(one), annotation=one.type
            )
            for one in own
        ]
        method.__signature__ = signature.replace(parameters=[*kept, *more])  # type: ignore[attr-defined]
        method.__doc__ = re.sub(r" {8}\*\*options\n(?: {12}.*\n)+", lambda _: entries, method.__doc__ or "")
        return method

    return decorate


def _default(one: Field[Any]) -> Any:
    if one.default_factory is not MISSING:
        return one.default_factory()
    return inspect.Parameter.empty if one.default is MISSING else one.default


def fields_of(kind: Any) -> list[Field[Any]]:
    """The fields of a record: its own, then those that it shares with others."""
    known = {one.name: one for one in fields(kind)}
    stated = (name for each in kind.__mro__ if each is not object for name in inspect.get_annotations(each))
    return [known[name] for name in dict.fromkeys(stated)]


def flag_words(options: Any, *, stated: tuple[str, ...] = ()) -> list[str]:
    """Options that are not at their defaults, or are to be stated, as one would type them; not who does the work."""
    words: list[str] = []
    left_out = {one.name for one in fields(ExecutorOptions)}
    for one in fields_of(type(options)):
        value = getattr(options, one.name)
        if one.name in left_out or one.metadata["python_only"]:
            continue
        if one.name in stated or value != _default(one):
            words += _typed(flag_of(one), value)
    return words


def _typed(flag: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [flag]
    if isinstance(value, Mapping):
        return [word for name, each in value.items() for word in (flag, f"{name}={_plain_or_json(each)}")]
    if isinstance(value, list | tuple | frozenset):
        return [flag, names_typed(sorted(value) if isinstance(value, frozenset) else value)]
    if flag == "--budget" and isinstance(value, float):
        return [flag, duration(value)]
    return [flag, repr(value) if isinstance(value, float) else str(value)]


def _plain_or_json(value: Any) -> str:
    """A value as NAME=VALUE is read: a word as it is, unless it could be read as something else."""
    if not isinstance(value, str):
        return json.dumps(value)
    try:
        json.loads(value)
    except json.JSONDecodeError:
        return value
    return json.dumps(value)


def _read_pairs(texts: Any) -> dict[str, Any]:
    """Options of a strategy, each typed as NAME=VALUE."""
    found: dict[str, Any] = {}
    for text in texts:
        name, mark, value = (part.strip() for part in text.partition("="))
        if not (name and mark and value):
            raise OptionError(f"--option {text!r} is not NAME=NUMBER or NAME=WORD, e.g. local_moves=200 or mode=semi.")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value  # a word
    return found


def _read_threads(text: str) -> int | None:
    if not text.strip().isdecimal():
        raise OptionError(f"--threads is {text}; give a number, or 0 for all cores.")
    return int(text) or None


def _read_ends(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise OptionError(f"--ends is {text!r}; give whole numbers between commas, e.g. 250000,181324.") from None


def _seed(default: int | None = 0, words: str = "Same seed, same result.") -> Any:
    return option(default, words, low=None if default is None else 0, metavar="N", shown="0")


def _budget(default: float | None, words: str = "About how long in all, e.g. 30s, 5m.", shown: str = "60s") -> Any:
    return option(default, words, name="budget", read=seconds_of, metavar="DURATION", shown=shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingOptions:
    """What files from outside may do, and how large they may be."""

    trust_code: bool = option(False, "Import the Python code that module:name or factory names.", group=LOADING)
    trust_pickle: bool = option(False, "Let the model file run code when it is opened (pickles do).", group=LOADING)
    trust: bool = option(False, "Both --trust-code and --trust-pickle.", group=LOADING)
    credential: str | None = option(
        None,
        "Environment variable whose secret the endpoint gets, and no other host.",
        metavar="NAME[@https://HOST]",
        group=LOADING,
    )
    max_model_bytes: int | None = option(None, "Bytes of a model once unpacked.", shown="536870912", group=LOADING)
    max_rows: int | None = option(None, "Rows of a table.", shown="what memory holds", group=LOADING)
    max_seconds: float | None = option(
        None, "Seconds until a foreign model has answered first.", shown="12", group=LOADING
    )
    max_requests: int | None = option(None, "Requests to a language model.", shown="10000", low=0, group=LOADING)
    max_cost: float | None = option(
        None, "What a language model may cost, in the currency of its price.", metavar="X", group=LOADING
    )

    def given(self) -> dict[str, Any]:
        """What was granted, for functions that take grants."""
        return {name: value for name, value in arguments_of(self).items() if value is not None and value is not False}

    @property
    def typed(self) -> str:
        """What was granted, as the next command needs it again."""
        return "".join(f" {word}" for word in map(shlex.quote, flag_words(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptOptions:
    """Whether a model is taken as it is."""

    as_is: bool = option(
        False,
        "Go on with a model that decides against the labels of its table.",
        flag="--allow-inverted",
        was=("--as-is",),
        rare=True,
    )


def protected_option() -> Any:
    """Who counts as protected."""
    words = "Protected attributes, in place of the audit file's."
    return option(None, words, read=names_of, metavar="A,B")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedOptions(AcceptOptions):
    """How a subject is taken by a stage that asks the model once."""

    protected: tuple[str, ...] | None = protected_option()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionOptions(ProtectedOptions):
    """How a subject is taken by a stage that can look at some people only."""

    where: str | None = option(None, "Only people for whom a rule holds, e.g. 'age < 30'.", metavar="RULE")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectOptions(RegionOptions):
    """How a subject is taken."""

    repeats: int | None = option(
        None,
        "Score a twin by the mean of so many answers, for models that vary.",
        low=1,
        metavar="R",
        shown="1",
        rare=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinsOptions:
    """Which columns of a table of twins say whose, and with which score."""

    person: str | None = option(
        None,
        "The column of people's ids, of a table of twins (with --score).",
        metavar="COLUMN",
        group="Tables of twins",
    )
    score: str | None = option(None, "The column of scores.", metavar="COLUMN", group="Tables of twins")
    threshold: float | None = option(
        None, "A decision is favourable from this score on.", shown="0.5 for probabilities", group="Tables of twins"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadOptions:
    """How many threads work."""

    threads: int | None = option(
        None, "Threads to use.", read=_read_threads, metavar="N", shown="0: all cores", rare=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions(ThreadOptions):
    """Who does the work: this process, worker processes, or a Ray cluster.

    Parameters
    ----------
    workers
        Number of worker processes; one, or none given, is this process.
    ray
        "local", or the address of a Ray cluster.
    threads
        Threads of each worker. By default one for every worker, and all cores where there is only this process.
    """

    workers: int | None = option(
        None, "Processes that share the work, with one thread each unless --threads says more.", rare=True
    )
    ray: str | None = option(
        None, "Let a Ray cluster do the work: local, auto, or its address.", metavar="ADDRESS", rare=True
    )

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise OptionError(f"workers is {self.workers}; give at least one, or leave it out.")
        if self.ray is not None and not self.ray.strip():
            raise OptionError("the address of the Ray cluster is empty; write e.g. --ray local, or --ray auto.")

    @property
    def many(self) -> bool:
        """Whether somebody asked for workers."""
        return self.workers is not None or self.ray is not None

    @property
    def elsewhere(self) -> bool:
        """Whether the work is done in other processes than this one."""
        return self.ray is not None or (self.workers or 1) > 1

    @property
    def each(self) -> int | None:
        """The threads of one worker; None: all cores."""
        return 1 if self.threads is None and self.many else self.threads

    @property
    def executor(self) -> ExecutorOptions:
        """Workers, cluster and threads alone."""
        return ExecutorOptions(**arguments_of(self, ExecutorOptions))


@dataclass(frozen=True, kw_only=True)  # without slots: others extend it beside a record that has them
class ClassOptions:
    """How scores become classes."""

    epsilon: float | None = option(
        None, "Scores closer than this count as the same.", shown="0.025, or 2.5 % of a regression's range"
    )
    partition: str = option(
        "constrained",
        "How scores become classes: constrained, or grid as in the paper's artifact.",
        shown="constrained",
        rare=True,
    )


@dataclass(frozen=True, kw_only=True)  # without slots: others extend it beside a record that has them
class PeriodOptions:
    """Figures for each period, and what tables to file must state."""

    by: str | None = option(None, "A column of periods, such as month: figures for each.", rare=True)
    data_source: str | None = option(None, "For tables to file: where the data come from.", rare=True)
    distributed: str | None = option(
        None,
        "For tables to file: since when the tool is in use.",
        flag="--in-use-since",
        was=("--distributed",),
        rare=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions(ClassOptions, ThreadOptions):
    """How the rows of a table are measured."""

    seed: int = _seed(0, "Seed of the bootstrap intervals; figures do not depend on it.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What an audit is planned for."""

    rows: int | None = option(None, "How many people there are.", shown="those of the table", low=1, metavar="N")
    rate: float | None = option(None, "The flip rate to plan for, 0 to 1.", shown="seen in the table, else 0.5")
    width: float = option(0.02, "How far an interval may reach to each side.", metavar="X")
    rise: float = option(0.02, "The rise that a gate should notice.", metavar="X")
    confidence: float = option(0.95, "Confidence of the intervals.", metavar="X")
    seed: int = _seed(0, "Seed of the people who are tried.")

    def __post_init__(self) -> None:
        for name in ("rate", "width", "rise", "confidence"):
            value = getattr(self, name)
            if value is not None and not (0 <= value <= 1 if name == "rate" else 0 < value < 1):
                raise OptionError(
                    f"--{name} is {value}; it must lie between 0 and 1, e.g. {0.95 if name == 'confidence' else 0.02}."
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleOptions(ClassOptions, ExecutorOptions):
    """Who is looked for, and by what measure. None is the default, or what the run has that goes on."""

    within: int | None = option(None, "Stay within so many changed attributes of a real row.", rare=True)
    min_plausibility: float | None = option(
        None, "Only people as ordinary as this percentile of the rows, 0 to 100.", metavar="P", rare=True
    )
    partition: str | None = option(  # type: ignore[assignment]
        None,
        "How scores become classes: constrained, or grid as in the paper's artifact.",
        shown="constrained",
        rare=True,
    )
    measure: str | None = option(
        None,
        "What the search raises, and debug and repair lower: q_inf (log2 k) or q_1 (Shannon).",
        shown="q_inf",
        rare=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(PeopleOptions):
    """What a search is asked for. None is the default, or what the run has that goes on."""

    strategy: Any = option(None, "climb, dice, random, adf and others.", metavar="NAME", shown="climb")
    budget: Any = option(None, "How long, e.g. 30s, 15m, 1h.", metavar="DURATION", shown="60s")
    evaluations: int | None = option(None, "At most so many people asked about.")
    cases: int | None = option(None, "At most so many distinct cases.", rare=True)
    queries: int | None = option(None, "At most so many scores and gradients asked of the model.", rare=True)
    ends: tuple[int, ...] | None = option(
        None,
        "End each task after so many people, as a report of a timed run prints it.",
        read=_read_ends,
        metavar="N,N,…",
        rare=True,
    )
    seed: int | None = _seed(None, "Same seed, same search, up to where the clock ends it.")
    options: Mapping[str, Any] = option(
        {},
        "An option of the strategy, e.g. local_moves=200; may be repeated.",
        flag="--option",
        read=_read_pairs,
        metavar="NAME=VALUE",
        rare=True,
    )
    shards: int | None = option(None, "Cut the search into so many shards.", shown="by budget", rare=True)
    batch: int | None = option(None, "Ask the model about so many people at a time.", shown="by its speed", rare=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions(PeriodOptions, PeopleOptions):
    """How an audit is to be done. What is None is the run's own where one goes on, and the default elsewhere."""

    seconds: float | None = _budget(None)
    skip: frozenset[str] = option(
        frozenset(),
        "Stages to leave out: search, debug, repair, certify, proxies.",
        read=lambda text: frozenset(name.strip() for name in text.split(",") if name.strip()),
        metavar="NAMES",
    )
    seed: int | None = _seed(None, "Same seed, same draws, up to where the clock ends them.")

    def __post_init__(self) -> None:
        ExecutorOptions.__post_init__(self)
        object.__setattr__(self, "skip", frozenset(self.skip))
        strange = next((name for name in sorted(self.skip) if name not in SKIPPABLE), None)
        if strange is not None:
            raise OptionError(f"stage {strange!r} cannot be skipped; {choose_from(strange, SKIPPABLE)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugOptions(ExecutorOptions):
    """Where the bits of cases are looked for."""

    samples: int = option(1000, "How many cases: the worst fifth, the others at random.")
    all_layers: bool = option(False, "Neurons of all hidden layers.")
    inside: bool = option(True, "Only attributes and labels, no layers.", flag="--no-layers")
    retrain: bool = option(False, "Train again from other seeds, however long that takes.")
    trainings: int | None = option(
        None, "How many models to train for data or training; 0: none.", shown="8, or 4 on large tables"
    )
    rule: str = option("ours", "How suspects are found: ours, code (the paper's) or text (its Algorithm 2).")
    seed: int = _seed(0, "Same seed, same cases.")
    training_workers: int | None = option(
        None, "Number of worker processes that train models; None takes those that do all else.", python_only=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairOptions(ExecutorOptions):
    """What a repair may cost, and what is tried."""

    max_accuracy_loss: float = option(0.02, "Accuracy that may be lost: 0.02 is two points.", shown="0.02")
    guarantee: int | None = option(None, "Take the cheapest that proves k ≤ N for everybody.", low=1)
    choose: str | None = option(None, "Take this repair, e.g. blind.", shown="the best")
    retrain: bool = option(True, "Leave out repairs by further training.", flag="--no-retrain")
    quick: bool = option(False, "Leave out what takes long.")
    proposals: Any = option(
        (),
        "Try also: mitigators (or reweigh, …), settings, tree, neufair, care, finetune.",
        flag="--with",
        was=("--also", "--proposals"),
        read=partial(names_of, flag="--with"),
        metavar="NAMES",
    )
    trials: int = option(20, "Settings to try, with --with settings.", low=1, rare=True)
    write_all: bool = option(False, "Also write every model that no other candidate beats.", rare=True)
    attack_budget: Any = option(
        "3s", "How long a fresh search attacks: 3s, 20000 people (as 20000), or 0 for none.", metavar="LIMIT", rare=True
    )
    seed: int = _seed(0, "Same seed, same repair.")

    def __post_init__(self) -> None:
        ExecutorOptions.__post_init__(self)
        if isinstance(self.attack_budget, str) and not self.attack_budget.strip().isdigit():
            seconds_of(self.attack_budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyOptions(ThreadOptions):
    """How a model is to be certified."""

    seconds: float = _budget(30.0, shown="30s")
    changes: int = option(1, "How far from real rows the statement about near people goes.")
    k: int | None = option(None, "Prove at most so many classes.", shown="largest")
    rates: bool = option(False, "Guaranteed rates of groups too, under a population fitted to the table.", rare=True)
    epsilon: float | None = option(
        None, "Scores closer than this count as the same.", shown="0.025, or 2.5 % of a regression's range"
    )
    seed: int = _seed(0, "Seed of the sample.")
    proofs: bool = option(
        True, "Whether to prove anything over sets of people; without, all or some are asked.", python_only=True
    )

    def __post_init__(self) -> None:
        if not SHORTEST <= self.seconds < math.inf:
            raise OptionError(
                f"the budget is {self.seconds:g} s; a statement takes at least {SHORTEST:g} s, e.g. --budget 30s."
            )
        if self.changes < 0:
            raise OptionError(f"changes is {self.changes}; give 0 (the rows themselves), 1, 2 or more.")
        if self.k is not None and self.k < 1:
            raise OptionError(f"k is {self.k}; everybody has at least one class, so ask for 1 or more.")


#: Seconds below which no budget of a certificate makes sense.
SHORTEST = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiesOptions(PeriodOptions):
    """What is asked about indirect bits."""

    justified: tuple[str, ...] | None = option(
        None,
        "Attributes that may decide, separated by commas.",
        read=partial(names_of, flag="--justified"),
        metavar="NAMES",
    )
    seed: int = _seed(0, "Same seed, same figures.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions(ClassOptions, ThreadOptions):
    """How two models are compared."""

    top: int = option(5, "How many of those who got worse to list.", low=0)
    people: int | None = option(None, "How many to compare at most.", low=1, shown="all, or what half a minute allows")
    seed: int = _seed(0, "Same seed, same intervals.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions(ClassOptions, ExecutorOptions):
    """How strategies are compared."""

    budget: Any = option("15s", "How long each run may take, e.g. 15s.", metavar="DURATION")
    repeats: int = option(10, "Runs of each strategy, each with another seed.")
    seed: int = _seed(0, "Seed of the first run.")

    def __post_init__(self) -> None:
        ExecutorOptions.__post_init__(self)
        if self.repeats < 1:
            raise OptionError(f"repeats is {self.repeats}; at least one run is needed.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions(ThreadOptions):
    """What a model is judged by."""

    policy: Any = option(None, "The policy.", metavar="FILE", shown="fairbits.toml")
    suite: Any = option(None, "The frozen people.", metavar="FILE", shown="gate/NAME, or the table")
    baseline: Any = option(None, "An earlier model's answers.", metavar="FILE", shown="gate/NAME")
    update_baseline: bool = option(False, "Take this model as the baseline from now on.")
    frozen: bool = option(False, "Refuse to go on without suite and baseline.")
    propose: Any = option(
        None,
        "Search so long, e.g. 10s, for people to add to the suite.",
        read=seconds_of,
        metavar="DURATION",
        rare=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeOptions:
    """Which people are frozen."""

    add: Path | None = option(None, "Add the run's worst cases to this suite.", metavar="FILE", group="With --freeze")
    rows: int | None = option(None, "Rows of the table, at most.", low=1, shown="20000", group="With --freeze")
    cases: int | None = option(None, "Worst cases, at most.", low=0, shown="1000", group="With --freeze")
    seed: int | None = option(None, "Seed of the sample of rows.", low=0, shown="the run's", group="With --freeze")
    force: bool = option(False, "Replace a suite that is there.", group="With --freeze")
