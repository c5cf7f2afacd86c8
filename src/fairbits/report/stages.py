"""What debugging and repairing left in a run's folder, as the records that those stages return."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from fairbits.debug import Attribution, Candidate, DebugResult, LayerEffect, NeuronEffect, NeuronSets, Origin, Vote
from fairbits.models import Do, Model
from fairbits.repair import RepairResult
from fairbits.shape import fits, reading
from fairbits.store import read_json, read_parquet

DEBUG, REPAIR = "debug.json", "repair.json"
#: Rows of neurons.parquet that become records: a value for every neuron, split or tree and statistic.
_MAX_NEURONS = 1_000_000


def debugged_of(folder: Path) -> DebugResult | None:
    """What debugging found; single cases are not read again but for their k."""
    path = folder / DEBUG
    if not path.is_file():
        return None
    remedy = "delete it, and run fairbits debug again"
    with reading(path, remedy):
        found = read_json(path)
        cases = read_parquet(folder / "debug_cases.parquet", remedy=remedy, max_rows=_MAX_NEURONS)
        if cases.num_rows != found["samples"]:
            raise ValueError(f"samples are {found['samples']!r}, and not {cases.num_rows}")
        labels = found["origin"]["labels"]
        if labels is not None and labels["label_bits"] is None:
            labels["label_bits"] = math.nan
        bits = [cases[name].to_numpy() for name in cases.column_names if name.startswith("q_1_")]
        return DebugResult(
            **{name: _record(kind, found[name]) for name, kind in _PLAIN.items()},
            suspect=_record(int | None, found["suspect_layer"]),
            cases=np.empty((cases.num_rows, 0), np.float32),
            worst=_record(int, found["samples_worst"]),
            k=cases["k"].to_numpy(),
            flips=cases["flips"].to_numpy(zero_copy_only=False),
            q_1=np.sum(bits, axis=0) if found["measure"] == "q_1" and bits else None,
            delta=None,
            rho=None,
            neurons=_neurons(folder / "neurons.parquet", remedy),
            sets=_record(NeuronSets | None, _from_zero(found["sets"])),
            attribution=_attribution(found["attribution"]),
            notes=_record(tuple[str, ...], found["notes"]),
            regression=found["id_rate"] is None,
        )


def repaired_of(folder: Path) -> RepairResult | None:
    """What a repair found; the models themselves are in their files."""
    path = folder / REPAIR
    if not path.is_file():
        return None
    with reading(path, "delete it, and run fairbits repair again"):
        found = _from_zero(read_json(path))
        chosen = found.pop("chosen")
        for name in ("before", "groups", "attack"):
            found |= {f"{name}_{part}": value for part, value in found.pop(name).items()}
        found["repairs"] = [{**one, "network": None} for one in found["repairs"]]
        found["left_out"] = [(one["proposal"], one["reason"]) for one in found["left_out"]]
        found["files"] = [folder / name for name in found["files"]]
        found["subject_file"] = None if found["subject_file"] is None else folder / found["subject_file"]
        result = _record(RepairResult, {**found, "chosen": None, "folder": folder})
        return dataclasses.replace(result, chosen=None if chosen is None else result[chosen])


#: Fields of a debugging that its document has under their own names.
_PLAIN: dict[str, Any] = {
    **dict.fromkeys(("subject", "partition", "identity", "units", "rule", "measure"), str),
    **dict.fromkeys(("seed", "m"), int),
    **dict.fromkeys(("epsilon", "seconds"), float),
    "accuracy": float | None,
    "layers": tuple[LayerEffect, ...],
    "origin": Origin,
    "vote": Vote | None,
    "options": Mapping[str, Any],
}


def _record(kind: Any, value: Any) -> Any:
    """A value of JSON as what an annotation names, records and tuples in it included."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        return _record(next(one for one in inner if one is not type(None)), value)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        known = [field.name for field in dataclasses.fields(kind) if field.name in value]
        return kind(**{name: _record(hints[name], value[name]) for name in known})
    if origin is tuple:
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_record(one, item) for one, item in zip(kinds, value, strict=True))
    missing = isinstance(value, float) and math.isnan(value)
    if kind is not Model and not missing and not fits(value, kind):
        raise TypeError(f"{value!r} is no {kind}")
    return value


def _from_zero(document: Any) -> Any:
    """Neurons as a ``Do`` counts them: files count layers from 1."""
    if isinstance(document, list):
        return [_from_zero(one) for one in document]
    if not isinstance(document, dict):
        return document
    found = {name: _from_zero(value) for name, value in document.items()}
    if document.keys() == set(Do.__dataclass_fields__):
        found["layer"] -= 1
    return found


def _attribution(found: dict[str, Any] | None) -> Attribution | None:
    if found is None:
        return None
    shares = {name: {one["attribute"]: one[name] for one in found["shapley"]} for name in ("q_inf", "q_1")}
    nobody = np.empty((0, len(found["attributes"])))
    return _record(Attribution, {**found, **shares, "case_q_inf": nobody, "case_q_1": nobody})


def _neurons(path: Path, remedy: str) -> tuple[NeuronEffect, ...]:
    """Every neuron, split or tree that was held, with all values tried."""
    if not path.is_file():
        return ()
    rows: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in read_parquet(path, remedy=remedy, max_rows=_MAX_NEURONS).to_pylist():
        rows.setdefault((row["layer"], row["neuron"]), []).append(row)
    return tuple(_neuron(same) for same in rows.values())


def _neuron(rows: list[dict[str, Any]]) -> NeuronEffect:
    tried = [_record(Candidate, row) for row in rows]
    by_role = {row["role"]: one for row, one in zip(rows, tried, strict=True)}
    sides = {role: by_role.get(role) for role in ("active", "inactive")}
    names = ("layer", "neuron", "acd", "acd_choosing", "acd_low", "acd_high")
    first = {name: rows[0][name] for name in names}
    return NeuronEffect(**first, **sides, candidates=tuple(tried), label=rows[0].get("label") or "")
