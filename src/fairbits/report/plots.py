"""The report's pictures as functions: ``fairbits.plot.twins(case, run)`` … give figures that show in a notebook.

A figure is an ordinary matplotlib figure, made without pyplot: global settings stay as they are, and ``savefig`` works.
"""

from __future__ import annotations

from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from fairbits.certify import Certificate
from fairbits.debug import DebugResult, read_debug
from fairbits.errors import OptionError
from fairbits.measure import Evaluator, Measurement, Person
from fairbits.repair import RepairResult, read_repair
from fairbits.report.compute import evaluator_of_run, searched_of, summary_of_run
from fairbits.report.figures import charts, portraits
from fairbits.report.figures.svg import Picture
from fairbits.report.record import Axes, Portrait
from fairbits.report.sections.people import axes_of, portrait_of
from fairbits.store import Case, Run, subject_of

#: What knows the model that the twins of a person are scored with.
Source = Run | Measurement | Evaluator
Found = TypeVar("Found")
#: Loading a subject takes longer than a picture: it is done once for each run at hand.
_EVALUATORS: WeakKeyDictionary[Run, Evaluator] = WeakKeyDictionary()


def twins(case: Case | Person | dict[str, str], source: Source) -> Picture:
    """The scores of all twins of one person: a heat map for two or three protected attributes, else a line.

    ``case`` is one of ``run.worst()``, one of ``measurement.worst()``, or a person as names and labels.

    Parameters
    ----------
    case
        One of ``run.worst()`` or ``measurement.worst()``, or a person as names and labels.
    source
        The run, measurement or evaluator that it belongs to.
    """
    drawn = _person(case, source)
    return portraits.heat_map(*drawn) or portraits.line(*drawn) or portraits.staircase(*drawn)


def steps(case: Case | Person | dict[str, str], source: Source) -> Picture:
    """The scores of all twins of one person from the lowest to the highest, with the ε-classes as bands.

    Parameters
    ----------
    case
        One of ``run.worst()`` or ``measurement.worst()``, or a person as names and labels.
    source
        The run, measurement or evaluator that it belongs to.
    """
    return portraits.staircase(*_person(case, source))


def severity(of: Run | Measurement) -> Picture:
    """Number of people at each k: the cases of a run, or the rows of a measurement.

    Parameters
    ----------
    of
        The run or measurement.
    """
    if isinstance(of, Measurement):
        return charts.severity([(k, people, None) for k, people in of.histogram().items()], "rows")
    return charts.severity(_filled(searched_of(of, summary_of_run(of)).histogram, of), "cases")


def progress(run: Run) -> Picture:
    """The largest k and the number of cases over the seconds of a search.

    Parameters
    ----------
    run
        An opened run.
    """
    return charts.progress(_filled(searched_of(run, summary_of_run(run)).progress, run))


def shapley(of: Run | DebugResult) -> Picture:
    """Bits of each protected attribute, from debugging.

    Parameters
    ----------
    of
        The run, or the result of debugging.

    Raises
    ------
    OptionError
        If the run was not debugged.
    """
    found = of if isinstance(of, DebugResult) else _debugged(of)
    if found.attribution is None:
        raise OptionError(f"{found.subject!r} has one protected attribute, so there are no shares to draw.")
    return charts.shapley(found.attribution)


def network(run: Run) -> Picture:
    """The network as layers, with the neurons of the suspect layer; or the trees of an ensemble, with their splits.

    Parameters
    ----------
    run
        The run.

    Raises
    ------
    OptionError
        If the run was not debugged.
    """
    found = _debugged(run)
    _filled(found.layers, run)
    return charts.trees(found) if found.units == "trees" else charts.network(found)[0]


def curves(run: Run) -> Picture:
    """Mean k (or Q1) over the value that a neuron is held at, for the neurons with the largest effects.

    Parameters
    ----------
    run
        The run.

    Raises
    ------
    OptionError
        If the run was not debugged, or no neuron has an effect.
    """
    return _filled(charts.curves(_debugged(run)), run, "has no neuron with an effect to draw")


def pareto(of: Run | RepairResult) -> Picture:
    """Accuracy against mean k of all repairs, on held-out evidence.

    Parameters
    ----------
    of
        The run, or the result of a repair.

    Raises
    ------
    OptionError
        If the run was not repaired.
    """
    if isinstance(of, Run):
        of = _filled(read_repair(of.folder), of, "was not repaired; call run.repair() first")
    return charts.pareto(of)


def statements(of: Certificate) -> Picture:
    """How much of each population is certified, open and falsified.

    Parameters
    ----------
    of
        The certificate.

    Raises
    ------
    OptionError
        If it has no statement.
    """
    if not of.statements:
        raise OptionError("the certificate has no statement to draw; give it more time.")
    return charts.statements(of.statements)


def _evaluator(source: Source) -> Evaluator:
    if isinstance(source, Evaluator):
        return source
    if isinstance(source, Measurement):
        return source.evaluator
    if source not in _EVALUATORS:
        # A run that was started from Python has its subject at hand, and may be the only one who knows it.
        _EVALUATORS[source] = evaluator_of_run(source, subject_of(source, getattr(source, "subject", None)))
    return _EVALUATORS[source]


def _person(case: Any, source: Source) -> tuple[Portrait, Axes]:
    """A portrait; protected values do not matter, so they may be missing."""
    evaluator = _evaluator(source)
    schema = evaluator.schema
    own = case if isinstance(case, dict) else case.attributes
    person = {**{name: schema[name].read(schema[name].low) for name in schema.protected}, **own}
    return portrait_of(evaluator, schema.codes_of(person)), axes_of(evaluator)


def _debugged(run: Run) -> DebugResult:
    return _filled(read_debug(run.folder), run, "was not debugged; call run.debug() first")


def _filled(found: Found | None, run: Run, lack: str = "has nothing to draw here") -> Found:
    """What a picture is made of, if the run has it."""
    if not found:
        raise OptionError(f"the run in {str(run.folder)!r} {lack}.")
    return found


__all__ = [
    "Axes",
    "Picture",
    "Portrait",
    "curves",
    "network",
    "pareto",
    "progress",
    "severity",
    "shapley",
    "statements",
    "steps",
    "twins",
]
