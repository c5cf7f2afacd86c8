"""Results in a notebook: as the page shows them, as a figure, as a frame of the library that the user's table was of.

Results stand in layers below this one and must not know it. They are :class:`fairbits.blocks.Shown`, which asks the
front of the package for this module when a notebook asks it; what a result looks like is a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np

from fairbits.blocks import Block, Paragraph, People, Strong, paragraphs
from fairbits.certify import Certificate
from fairbits.debug import DebugResult
from fairbits.errors import OptionError
from fairbits.measure import Measurement
from fairbits.repair import RepairResult
from fairbits.report.compute import measured_now, people_sentence
from fairbits.report.html import render_fragment
from fairbits.report.looks import people_of, search_look
from fairbits.report.sections.details import debug_blocks
from fairbits.report.sections.repairs import points, repair_blocks
from fairbits.report.sections.summary import certificate_blocks, flip_blocks
from fairbits.report.sections.treatment import bits_table
from fairbits.store import Run
from fairbits.text import number

#: People that a result shows.
PEOPLE = 3
#: Libraries of frames, in the order in which they are taken where the user's table was of neither.
LIBRARIES = ("pandas", "polars")
#: What a result looks like: its blocks, its figure by the name in ``fairbits.plot``, and its rows by column.
_View: TypeAlias = tuple[Callable[[Any], Iterator[Block]], str, Callable[[Any], Mapping[str, Any]]]


def html_of(result: Any) -> str:
    """A result as a part of a page, with its style."""
    return render_fragment(_view(result)[0](result))


def figure_of(result: Any) -> Any:
    """A result as a matplotlib figure, made without pyplot."""
    from fairbits.report import plots

    return getattr(plots, _view(result)[1])(result)


def frame_of(result: Any) -> Any:
    """A result as a data frame: of the library that the user's own table came from, else of pandas, else of polars."""
    columns = dict(_view(result)[2](result))
    # A table stands in a measurement, and in the subject that a run was started with.
    own = getattr(result, "table", None) or getattr(getattr(result, "_given", None), "table", None)
    library = getattr(own, "library", None) or next((name for name in LIBRARIES if find_spec(name) is not None), None)
    if library is None:
        raise OptionError(
            "a frame needs pandas or polars, and neither is here; install one, such as: pip install pandas"
        )
    if library == "polars":
        import polars

        return polars.DataFrame(columns)
    pd = import_module("modin.pandas" if library == "modin" else "pandas")
    index = pd.Index(columns.pop("row"), name="row") if "row" in columns else None
    return pd.DataFrame(columns, index=index)


def _view(result: Any) -> _View:
    return next(_VIEWS[kind] for kind in type(result).__mro__ if kind in _VIEWS)


def _measurement(found: Measurement) -> Iterator[Block]:
    measured = measured_now(found)
    twins = f"{number(len(found))} people, {number(found.evaluator.m)} twins each; ε = {found.evaluator.epsilon:g}."
    yield Paragraph(Strong(people_sentence(measured)), kind=measured.kind)
    yield Paragraph(twins, tone="small")
    yield from flip_blocks(measured)
    yield bits_table(measured)
    yield People(people_of(found, PEOPLE), not found.schema.regression)
    yield from paragraphs((one.text for one in found.limits), "note")


def _run(run: Run) -> Iterator[Block]:
    if run.summary is None:
        yield Paragraph(Strong(f"{run.manifest['subject']}: {number(len(run))} cases so far; {run.status}."))
    else:
        yield from search_look(run, top=PEOPLE, lines=())
    yield Paragraph(f"In {run.folder}.", tone="small")


def _figures(found: Measurement) -> dict[str, Any]:
    columns = {name: getattr(found.evaluation, name) for name in ("k", "q_inf", "q_1", "low", "high", "flips")}
    return {"row": found.table.names(), **{name: np.asarray(values) for name, values in columns.items()}}


def _cases(run: Run) -> dict[str, Any]:
    table = run.cases()
    return {name: table[name].to_numpy() for name in table.column_names}


def _repairs(found: RepairResult) -> dict[str, Any]:
    """As held-out evidence has it, the model as it is first."""
    figures = [found.before_held_out, *(one.held_out for one in found.repairs)]
    return {
        "repair": ["as it is", *(one.name for one in found.repairs)],
        **_columns(figures, "accuracy", "k_mean", "k_mean_rows", "id_rate", "id_rate_rows"),
        "accuracy_change_95": [None, *(points(one) or None for one in found.repairs)],
        "k_max_proved": [None, *(None if one.proof is None else one.proof.bound for one in found.repairs)],
        "within_budget": [True, *(one.within_budget for one in found.repairs)],
        "chosen": [False, *(one is found.chosen for one in found.repairs)],
    }


def _statements(found: Certificate) -> dict[str, Any]:
    names = ("kind", "property", "model", "population", "people", "certified", "falsified", "open", "bound")
    return {
        **_columns(found.statements, *names, "confidence"),
        "statement": [one.sentence() for one in found.statements],
    }


def _columns(rows: Iterable[Any], *names: str) -> dict[str, list[Any]]:
    return {name: [getattr(one, name) for one in rows] for name in names}


_NEURONS = ("layer", "neuron", "acd", "acd_low", "acd_high", "label")
_VIEWS: dict[type[Any], _View] = {
    Measurement: (_measurement, "severity", _figures),
    Run: (_run, "severity", _cases),
    DebugResult: (debug_blocks, "shapley", lambda found: _columns(found.neurons, *_NEURONS)),
    RepairResult: (repair_blocks, "pareto", _repairs),
    Certificate: (certificate_blocks, "statements", _statements),
}
