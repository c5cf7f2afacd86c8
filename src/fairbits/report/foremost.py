"""The splits and trees that matter most, as all faces of a report show them."""

from __future__ import annotations

from fairbits.report.debugged import Debugged, Neuron

#: How many are shown; neurons.parquet has all of them.
MAX_SPLITS = 10


def foremost(found: Debugged) -> list[Neuron]:
    """The splits and trees that lower mean k most when they are held."""
    known = [one for one in found.neurons if one.acd is not None and (one.acd_choosing or 0.0) > 0]
    return sorted(known, key=lambda one: -(one.acd_choosing or 0.0))[:MAX_SPLITS]


def split_name(one: Neuron) -> str:
    """A split or a tree in a few words."""
    return f"tree {one.layer}: {one.label}" if one.layer else f"all trees: {one.label}"
