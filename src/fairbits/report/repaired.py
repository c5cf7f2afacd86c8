"""What a report says of a repair: its record, and how that is read from repair.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairbits.domain import quality
from fairbits.shape import check_record, reading
from fairbits.store import read_json

REPAIR = "repair.json"
#: Repairs shown; all of them are in repairs.parquet.
MAX_REPAIRS = 40
_FIGURES = (
    ("accuracy", "{quality} on rows", "share"),
    ("balanced_accuracy", "balanced accuracy on rows", "share"),
    ("k_mean", "mean k of cases", "number"),
    ("k_max", "largest k of cases", "whole"),
    ("q_inf_mean", "mean bits (Q∞) of cases", "number"),
    ("id_rate", "cases whose decision flips", "share"),
    ("k_mean_rows", "mean k of rows", "number"),
    ("k_max_rows", "largest k of rows", "whole"),
    ("id_rate_rows", "rows whose decision flips", "share"),
    ("indirect_bits", "indirect bits, through other attributes", "number"),
)
_ATTACK = (
    ("evaluations", "people asked, fresh search", "whole"),
    ("k_max", "largest k, fresh search", "whole"),
    ("k_mean", "mean k, fresh search", "number"),
    ("id_rate", "ID rate, fresh search", "share"),
)


@dataclass(frozen=True, slots=True)
class Mend:
    """One repair on held-out evidence."""

    name: str
    words: str
    accuracy: float
    k_mean: float
    id_rate: float | None
    within_budget: bool
    yardstick: bool
    on_front: bool
    chosen: bool
    k_max_proved: int | None = None
    change_low: float | None = None
    change_high: float | None = None
    raises: str = ""  # what there is more of on the plan's half: people who flip, or mean k of rows


@dataclass(frozen=True, slots=True)
class Change:
    """One figure before and after the chosen repair."""

    name: str
    before: float | None
    after: float | None
    kind: str  # "share", "number" or "whole"


@dataclass(frozen=True, slots=True)
class GroupChange:
    """Differences between groups of people before and after: largest rate minus smallest."""

    attributes: tuple[str, ...]
    selection: tuple[float | None, float | None]
    equal_opportunity: tuple[float | None, float | None]
    average_odds: tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Repaired:
    """What repairs cost and buy.

    Attributes
    ----------
    chosen, words
        The repair that was written, and what was done; "" where none keeps the budget.
    max_accuracy_loss
        The accuracy that may be lost.
    accuracy_before, k_mean_before
        Figures of the model as it is, on held-out evidence.
    held_out_cases, held_out_rows, rows_unseen
        How many cases and rows judge, and whether the model was not trained on those rows.
    repairs
        All repairs.
    changes, groups
        What the chosen one changes, in figures and for groups of people.
    files
        The files that were written.
    warnings
        What a reader must know, as sentences.
    document
        The content of repair.json.
    proof, k_max_proved
        What is proved of the chosen one, and the most classes that anybody can have; "" and None where nothing is.
    """

    chosen: str
    words: str
    max_accuracy_loss: float
    accuracy_before: float
    k_mean_before: float
    held_out_cases: int
    held_out_rows: int
    rows_unseen: bool
    repairs: tuple[Mend, ...]
    changes: tuple[Change, ...]
    groups: tuple[GroupChange, ...]
    files: tuple[str, ...]
    warnings: tuple[str, ...]
    document: Mapping[str, Any]
    proof: str = ""
    k_max_proved: int | None = None

    @property
    def regression(self) -> bool:
        """Whether the model predicts a number: there are no decisions, so no ID rates either."""
        return all(mend.id_rate is None for mend in self.repairs)

    @property
    def quality(self) -> str:
        """What ``accuracy`` is, in words."""
        return quality(regression=self.regression)


def repaired_of(folder: Path) -> Repaired | None:
    """The record of repair.json."""
    if not (folder / REPAIR).is_file():
        return None
    with reading(folder / REPAIR, "delete it, and run fairbits repair again"):
        return _repaired(read_json(folder / REPAIR))


def _repaired(found: dict[str, Any]) -> Repaired:
    before, evidence = found["before_held_out"], found["evidence"]
    chosen = next((repair for repair in found["repairs"] if repair["name"] == found["chosen"]), None)
    first = found.get("layers_from", 0)  # files of earlier versions counted from 0 and did not say so
    mends = [_mend(repair, found["chosen"], first) for repair in found["repairs"]]
    # Where there are too many, those that matter stay: the chosen one, the front, then the lowest mean k.
    ranked = sorted(mends, key=lambda mend: (not mend.chosen, not mend.on_front, mend.k_mean))[:MAX_REPAIRS]
    record = Repaired(
        chosen=found["chosen"] or "",
        words=str(found.get("reason", "")) if chosen is None else _words(chosen, first),
        proof="" if chosen is None or not chosen.get("proof") else str(chosen["proof"]["text"]),
        k_max_proved=None if chosen is None or not chosen["proof"] else chosen["proof"]["bound"],
        max_accuracy_loss=found["max_accuracy_loss"],
        accuracy_before=before["accuracy"],
        k_mean_before=before["k_mean"],
        held_out_cases=evidence["held_out_cases"],
        held_out_rows=evidence["held_out_rows"],
        rows_unseen=evidence["rows_unseen_by_model"],
        repairs=tuple(sorted(ranked, key=lambda mend: mend.k_mean)),
        changes=()
        if chosen is None
        else _changes(before, chosen["held_out"], found["attack_before"], found["attack_after"]),
        groups=_groups({"before": found["groups_before"], "after": found["groups_after"]}),
        files=tuple(found["files"]),
        warnings=(*evidence["notes"], *found["warnings"]),
        document=found,
    )
    check_record(record)
    return record


def _mend(repair: dict[str, Any], chosen: str | None, first: int) -> Mend:
    after = repair["held_out"]
    flags = {name: bool(repair[name]) for name in ("within_budget", "yardstick", "on_front")}
    flags["on_front"] = not repair["dominated"] if "dominated" in repair else flags["on_front"]
    figures = {name: after[name] for name in ("accuracy", "k_mean", "id_rate")}
    return Mend(
        name=repair["name"],
        words=_words(repair, first),
        chosen=repair["name"] == chosen,
        k_max_proved=repair["proof"]["bound"] if repair.get("proof") else None,
        change_low=_opposite(repair.get("held_out_loss_high")),
        change_high=_opposite(repair.get("held_out_loss_low")),
        raises=str(repair.get("raises", "")),
        **figures,
        **flags,
    )


def _opposite(loss: float | None) -> float | None:
    return None if loss is None else -loss


def _words(repair: dict[str, Any], first: int) -> str:
    """What was done; ``first`` is what the file calls the first hidden layer, which is layer 1 on the page."""
    held = [
        f"neuron {do['neuron']} of layer {do['layer'] - first + 1} at {do['value']:.4g}" for do in repair["neurons"]
    ]
    parts = [f"protected inputs moved {repair['shrink']:.0%} of the way to their mean"] if repair["shrink"] else []
    if held:
        parts.append("holds " + ", ".join(held[:4]) + (f" and {len(held) - 4} more" if len(held) > 4 else ""))
    if repair["retrained"]:
        parts.append("trained further")
    return "; ".join(parts) or str(repair["words"])


def _changes(before: dict[str, Any], after: dict[str, Any], attack: Any, attacked: Any) -> tuple[Change, ...]:
    by = quality(regression=before["balanced_accuracy"] is None)
    found = [
        Change(words.format(quality=by), before.get(name), after.get(name), kind) for name, words, kind in _FIGURES
    ]
    if attack and attacked:
        found += [Change(words, attack[n], attacked[n], kind) for n, words, kind in _ATTACK]
    return tuple(change for change in found if change.before is not None)


def _groups(groups: dict[str, Any]) -> tuple[GroupChange, ...]:
    found = []
    for before, after in zip(groups["before"], groups["after"], strict=True):
        pairs = ((before[name], after[name]) for name in ("selection", "equal_opportunity", "average_odds"))
        found.append(GroupChange(tuple(before["attributes"]), *pairs))
    return tuple(found)
