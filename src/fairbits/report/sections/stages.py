"""What debugging and repair left in a run's folder, as records. A stage that left nothing is None."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fairbits.domain import quality
from fairbits.report.record import (
    Change,
    Debugged,
    GroupChange,
    Mend,
    Neuron,
    Repaired,
    ReportLayer,
    Share,
    Sized,
    Split,
    Together,
)
from fairbits.shape import check_record, reading
from fairbits.store import read_json, read_parquet

DEBUG, REPAIR = "debug.json", "repair.json"
OLDER = "Not known: this run was debugged by an earlier version; debug it again."
#: Rows of neurons.parquet that become records: a value for every neuron, split or tree and statistic.
_MAX_NEURONS = 1_000_000
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


def debugged_of(folder: Path) -> Debugged | None:
    """The record of debug.json and neurons.parquet.

    Parameters
    ----------
    folder
        Folder of the run.

    Returns
    -------
    Debugged | None
        The record; None where the run was not debugged.
    """
    if not (folder / DEBUG).is_file():
        return None
    with reading(folder / DEBUG, "delete it, and run fairbits debug again"):
        return _debugged(folder, read_json(folder / DEBUG))


def _debugged(folder: Path, found: dict[str, Any]) -> Debugged:
    suspect, attribution = found["suspect_layer"], found["attribution"] or {}
    origin, sets, trees = found["origin"], found.get("sets") or {}, found.get("units") == "trees"
    subsets = [Together(tuple(s["attributes"]), s["q_inf"], s["q_1"]) for s in attribution.get("subsets", [])]
    record = Debugged(
        samples=found["samples"],
        samples_worst=found["samples_worst"],
        k_mean=found.get("reported", found.get("k_reported", found["k_mean"])),
        accuracy=found["accuracy"],
        suspect=suspect,
        layers=tuple(_layer(layer, suspect) for layer in found["layers"]),
        neurons=_splits(folder / "neurons.parquet") if trees else _neurons(folder / "neurons.parquet", suspect),
        units="trees" if trees else "layers",
        shares=_shares(attribution, subsets),
        together=tuple(subset for subset in subsets if len(subset.attributes) > 1),
        q_inf=subsets[-1].q_inf if subsets else None,
        origin=str(origin.get("words", OLDER)),
        splits=tuple(_split(one) for one in origin.get("shares", ())),
        labels=_labels(origin.get("labels")),
        notes=tuple(found["notes"]),
        document=found,
        rule=found.get("rule", "spread"),
        measure=found.get("measure", "q_inf"),
        vote=_vote(found.get("vote")),
        sets=tuple(_sized(one) for one in sets.get("curve", ())),
        minimal=_sized(sets["minimal"]) if sets.get("minimal") else None,
    )
    check_record(record)
    return record


def _split(one: dict[str, Any]) -> Split:
    shared, own = one["shared"], one.get("own")
    return Split(
        attributes=tuple(one["attributes"]),
        shared=shared["value"],
        low=shared["low"],
        high=shared["high"],
        own=None if own is None else own["value"],
        effect=one["effect"]["value"],
    )


def _labels(found: dict[str, Any] | None) -> str:
    """What the labels carry, in a sentence."""
    if not found:
        return ""
    bits = found["bits"]
    carried = "tell" if found.get("present", bits["low"] > 0) else "tell nothing measurable:"
    return (
        f"Given the rest, the protected attributes {carried} {bits['value']:.4f} bits a row ({bits['low']:.4f} to "
        f"{bits['high']:.4f}) about the label."
    )


def _vote(found: dict[str, Any] | None) -> str:
    """How sure the vote is, in a sentence."""
    if not found or found.get("share") is None:
        return ""
    share = found["share"]
    words = (
        f"Layer {found['suspect']} has {share['value']:.0%} of the votes ({share['low']:.0%} to {share['high']:.0%}) "
        f"and wins in {found['certainty']:.0%} of resamples of the cases"
    )
    if found.get("runner_up") is not None:
        close = "a close runner-up is" if found.get("close") else "the runner-up is"
        words += f"; {close} layer {found['runner_up']} with {found['runner_up_share']['value']:.0%}"
    return f"{words}."


def _sized(one: dict[str, Any]) -> Sized:
    held = [f"neuron {do['neuron']} of layer {do['layer']}" for do in one["neurons"]]
    share = one["explained"]
    return Sized(one["size"], ", ".join(held), share["value"], share["low"], share["high"], one["accuracy"])


def _layer(layer: dict[str, Any], suspect: int | None) -> ReportLayer:
    names = ("layer", "width", "delta", "rho", "votes")
    return ReportLayer(**{name: layer[name] for name in names}, suspect=layer["layer"] == suspect)


def _shares(attribution: dict[str, Any], subsets: list[Together]) -> tuple[Share, ...]:
    alone = {subset.attributes[0]: subset.q_inf for subset in subsets if len(subset.attributes) == 1}
    total = sum(one["q_inf"] for one in attribution.get("shapley", [])) or 1.0
    return tuple(
        Share(one["attribute"], alone[one["attribute"]], one["q_inf"], one["q_inf"] / total)
        for one in attribution.get("shapley", [])
    )


def _neurons(path: Path, suspect: int | None) -> tuple[Neuron, ...]:
    """One record per neuron of the suspect layer, with its best value."""
    if suspect is None or not path.is_file():
        return ()
    with reading(path, "delete it, and run fairbits debug again"):
        return _read_neurons(row for row in _rows_of(path) if row["layer"] == suspect)


def _splits(path: Path) -> tuple[Neuron, ...]:
    """One record per split or tree that was held, whichever tree it is of."""
    if not path.is_file():
        return ()
    with reading(path, "delete it, and run fairbits debug again"):
        return _read_neurons(_rows_of(path))


def _rows_of(path: Path) -> list[dict[str, Any]]:
    return read_parquet(path, remedy="delete it, and run fairbits debug again", max_rows=_MAX_NEURONS).to_pylist()


def _read_neurons(rows: Iterable[dict[str, Any]]) -> tuple[Neuron, ...]:
    best: dict[tuple[int, int], dict[str, Any]] = {}
    acd: dict[tuple[int, int], dict[str, Any]] = {}
    curves: dict[tuple[int, int], list[tuple[float, float, bool]]] = {}
    for row in rows:
        number = row["layer"], row["neuron"]
        acd[number] = row
        row.setdefault("k_choosing", row["k_mean"])  # files of earlier versions know one figure only
        row.setdefault("k_reported", row["k_mean"])
        row.setdefault("choosing", row["k_choosing"])
        row.setdefault("reported", row["k_reported"])
        curves.setdefault(number, []).append((row["value"], row["reported"], row["kept"]))
        if row["kept"] and (number not in best or row["choosing"] < best[number]["choosing"]):
            best[number] = row
    return tuple(
        _neuron(number, acd[number], best.get(number, {}), sorted(set(curves[number]))) for number in sorted(acd)
    )


def _neuron(
    place: tuple[int, int], row: dict[str, Any], best: dict[str, Any], curve: list[tuple[float, float, bool]]
) -> Neuron:
    return Neuron(
        layer=place[0],
        neuron=place[1],
        acd=row["acd"],
        hold=best.get("value"),
        statistic=best.get("statistic"),
        accuracy=best.get("accuracy"),
        k_mean=best.get("reported"),
        acd_choosing=row.get("acd_choosing", row["acd"]),
        label=row.get("label") or "",
        acd_low=row.get("acd_low"),
        acd_high=row.get("acd_high"),
        curve=tuple(curve),
    )


def repaired_of(folder: Path) -> Repaired | None:
    """The record of repair.json.

    Parameters
    ----------
    folder
        Folder of the run.

    Returns
    -------
    Repaired | None
        The record; None where the run was not repaired.
    """
    if not (folder / REPAIR).is_file():
        return None
    with reading(folder / REPAIR, "delete it, and run fairbits repair again"):
        return _repaired(read_json(folder / REPAIR))


def _repaired(found: dict[str, Any]) -> Repaired:
    before, evidence = found["before"]["held_out"], found["evidence"]
    chosen = next((repair for repair in found["repairs"] if repair["name"] == found["chosen"]), None)
    first = found.get("layers_from", 0)  # files of earlier versions counted from 0 and did not say so
    mends = [_mend(repair, found["chosen"], first) for repair in found["repairs"]]
    # Where there are too many, those that matter stay: the chosen one, the front, then the lowest mean k.
    ranked = sorted(mends, key=lambda mend: (not mend.chosen, not mend.on_front, mend.k_mean))[:MAX_REPAIRS]
    record = Repaired(
        chosen=found["chosen"] or "",
        words=str(found.get("reason", "")) if chosen is None else _words(chosen, first),
        proof="" if chosen is None else str(chosen.get("proof", "")),
        k_max_proved=None if chosen is None else chosen.get("k_max_proved"),
        max_accuracy_loss=found["max_accuracy_loss"],
        accuracy_before=before["accuracy"],
        k_mean_before=before["k_mean"],
        held_out_cases=evidence["held_out_cases"],
        held_out_rows=evidence["held_out_rows"],
        rows_unseen=evidence["rows_unseen_by_model"],
        repairs=tuple(sorted(ranked, key=lambda mend: mend.k_mean)),
        changes=() if chosen is None else _changes(before, chosen["held_out"], found["attack"]),
        groups=_groups(found["groups"]),
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
        k_max_proved=repair.get("k_max_proved"),
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


def _changes(before: dict[str, Any], after: dict[str, Any], attack: dict[str, Any]) -> tuple[Change, ...]:
    by = quality(regression=before["balanced_accuracy"] is None)
    found = [
        Change(words.format(quality=by), before.get(name), after.get(name), kind) for name, words, kind in _FIGURES
    ]
    if attack["before"] and attack["after"]:
        found += [Change(words, attack["before"][n], attack["after"][n], kind) for n, words, kind in _ATTACK]
    return tuple(change for change in found if change.before is not None)


def _groups(groups: dict[str, Any]) -> tuple[GroupChange, ...]:
    found = []
    for before, after in zip(groups["before"], groups["after"], strict=True):
        pairs = ((before[name], after[name]) for name in ("selection", "equal_opportunity", "average_odds"))
        found.append(GroupChange(tuple(before["attributes"]), *pairs))
    return tuple(found)
