"""What a repair leaves in the run's folder: repairs.parquet, and repair.json with everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairbits._version import __version__
from fairbits.measure import Estimate
from fairbits.repair.proposals.blind import WARNING
from fairbits.repair.proposals.weights import neurons_in_words
from fairbits.repair.records import Figures, RepairCandidate, RepairResult
from fairbits.store import write_json, write_parquet

TABLE, DOCUMENT = "repairs.parquet", "repair.json"
_WHOLE = ("k_max", "k_max_rows")
#: Fields of a candidate that are columns as they are.
_PLAIN = (
    *("shrink", "retrained", "yardstick", "within_budget", "on_front", "words", "family", "coding", "k_max_proved"),
    *("dominated", "raises", "loss_upper", "balanced_loss_upper", "held_out_loss_low", "held_out_loss_high"),
    *("fidelity", "fidelity_apart"),
)
#: Held-out figures that have an interval.
_RANGED = ("accuracy", "balanced_accuracy", "bits", "flips", "impact_ratio", "indirect_bits")
_FIGURES = tuple(field.name for field in fields(Figures))
#: One row per repair and half of the evidence: ``held_out`` says which. Fixed columns first.
COLUMNS = pa.schema(
    [
        ("repair", pa.string()),
        ("neurons", pa.string()),
        *(
            (f"{name}_{when}", pa.float64())
            for name in ("accuracy", "k_mean", "id_rate")
            for when in ("before", "after")
        ),
        ("held_out", pa.bool_()),
        ("neuron_count", pa.int32()),
        ("shrink", pa.float64()),
        ("retrained", pa.bool_()),
        ("yardstick", pa.bool_()),
        ("within_budget", pa.bool_()),
        ("on_front", pa.bool_()),
        ("chosen", pa.bool_()),
        *(
            (f"{name}_{when}", pa.int32() if name in _WHOLE else pa.float64())
            for name in _FIGURES
            if name not in ("accuracy", "k_mean", "id_rate")
            for when in ("before", "after")
        ),
        ("words", pa.string()),
        ("k_max_proved", pa.int32()),  # the most classes that anybody can have; null where nothing is proved
        ("dominated", pa.bool_()),
        ("loss_upper", pa.float64()),
        ("balanced_loss_upper", pa.float64()),
        ("held_out_loss_low", pa.float64()),  # 95 % interval of the accuracy lost on held-out rows
        ("held_out_loss_high", pa.float64()),
        ("fidelity", pa.float64()),  # of a distilled model: held-out rows decided as by the average
        ("fidelity_apart", pa.float64()),  # and the mean distance of its scores from the average
        ("raises", pa.string()),  # what there is more of on the plan's half; empty where nothing is
        ("family", pa.string()),  # who proposed it
        ("coding", pa.string()),  # which groups it was told about
        ("proved", pa.string()),  # "flips" or "k"; null where nothing is proved
        # Held-out figures with their 95 % intervals; null in rows about the plan's part.
        *((f"{name}_held_out{end}", pa.float64()) for name in _RANGED for end in ("", "_low", "_high")),
        ("files", pa.string()),
    ]
)


def write(
    result: RepairResult, folder: Path, content: str | None = None, *, made_with: Mapping[str, Any] | None = None
) -> None:
    """Write both files, each whole or not at all."""
    write_parquet(folder / TABLE, pa.Table.from_pylist(_rows(result), schema=COLUMNS))
    write_json(folder / DOCUMENT, {**document(result), "content": content, "made_with": made_with})


def document(result: RepairResult) -> dict[str, Any]:
    """The content of repair.json."""
    return {
        "subject": result.subject,
        "identity": result.identity,
        "version": __version__,
        "seed": result.seed,
        "layers_from": 1,  # the first hidden layer is layer 1, as in layers.parquet; neurons count from 0
        "max_accuracy_loss": result.max_accuracy_loss,
        "options": dict(result.options),
        "epsilon": result.epsilon,
        "partition": result.partition,
        "measure": result.measure,
        "chosen": None if result.chosen is None else result.chosen.name,
        "reason": result.reason,
        "left_out": [{"proposal": name, "reason": reason} for name, reason in result.left_out],
        "evidence": asdict(result.evidence),
        "before": {"plan": asdict(result.before_plan), "held_out": asdict(result.before_held_out)},
        "estimates_before": None if result.estimates_before is None else asdict(result.estimates_before),
        "repairs": [_plain(repair) for repair in result.repairs],
        "groups": {
            "before": [asdict(group) for group in result.groups_before],
            "after": [asdict(group) for group in result.groups_after],
        },
        "attack": {
            "before": None if result.attack_before is None else asdict(result.attack_before),
            "after": None if result.attack_after is None else asdict(result.attack_after),
        },
        "files": [path.name for path in result.files],
        "written": [asdict(check) for check in result.written],
        "subject_file": None if result.subject_file is None else result.subject_file.name,
        "warnings": list(result.warnings),
        "about_blinding": WARNING,
    }


def _plain(one: RepairCandidate) -> dict[str, Any]:
    apart = ("network", "fitted", "source")
    kept = {f.name: getattr(one, f.name) for f in fields(one) if f.name not in apart}
    kept |= {name: asdict(kept[name]) for name in ("plan", "held_out", "proof", "estimates") if kept[name] is not None}
    kept["neurons"] = [{"layer": do.layer + 1, "neuron": do.neuron, "value": do.value} for do in one.neurons]
    return {**kept, "k_max_proved": one.k_max_proved}


def _rows(result: RepairResult) -> list[dict[str, Any]]:
    rows = []
    for one in result.repairs:
        parts = ((False, result.before_plan, one.plan), (True, result.before_held_out, one.held_out))
        for held_out, before, after in parts:
            row: dict[str, Any] = {
                "repair": one.name,
                "neurons": neurons_in_words(one.neurons),
                "held_out": held_out,
                "neuron_count": len(one.neurons),
                "chosen": one is result.chosen,
                "proved": None if one.proof is None else one.proof.property,
                "files": " ".join(one.files),
            }
            row |= {name: getattr(one, name) for name in _PLAIN}
            for name in _FIGURES:
                row[f"{name}_before"], row[f"{name}_after"] = getattr(before, name), getattr(after, name)
            if held_out and one.estimates is not None:
                for name in _RANGED:
                    row |= Estimate.named(f"{name}_held_out", getattr(one.estimates, name))
            rows.append(row)
    return rows
