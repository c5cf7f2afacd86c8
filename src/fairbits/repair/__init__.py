"""Repair: neurons held at a value, protected inputs shrunk, further training; judged on what no repair has seen."""

from fairbits.repair.blinding import blinded, shrunk
from fairbits.repair.groups import group_figures
from fairbits.repair.records import Attack, Attacked, Figures, GroupFigures, GroupRate, Repair, RepairResult
from fairbits.repair.repairing import repair_run

__all__ = [
    "Attack",
    "Attacked",
    "Figures",
    "GroupFigures",
    "GroupRate",
    "Repair",
    "RepairResult",
    "blinded",
    "group_figures",
    "repair_run",
    "shrunk",
]
