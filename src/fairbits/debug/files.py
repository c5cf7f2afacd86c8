"""The files of a debugging: layers.parquet, neurons.parquet, debug_cases.parquet and debug.json, each there whole."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairbits.debug.layers import ballots_of
from fairbits.debug.records import QUANTILES, Attribution, DebugResult, NeuronEffect, NeuronSet, NeuronSets, halves
from fairbits.store import Run, write_json, write_parquet

LAYERS, NEURONS, CASES, DOCUMENT = "layers.parquet", "neurons.parquet", "debug_cases.parquet", "debug.json"
#: Neurons of each sign that debug.json names; neurons.parquet has all of them.
TOP = 3


def write_result(run: Run, result: DebugResult) -> None:
    """Write everything into the run's folder. What an earlier debugging found, and this one did not, goes."""
    tables = {LAYERS: layers_table(result), NEURONS: neurons_table(result), CASES: cases_table(result, run)}
    for name, table in tables.items():
        if table.num_rows:
            _write(run.folder / name, table)
        else:
            (run.folder / name).unlink(missing_ok=True)
    written = {**result.summary(), "content": run.content(), "made_with": run.manifest["identity"]}
    write_json(run.folder / DOCUMENT, written)


def layers_table(result: DebugResult) -> pa.Table:
    """One row per layer, layer 0 is the protected input; or one row per tree, from 1 on."""
    rows = []
    for one, role in zip(result.layers, _roles(result), strict=True):
        row: dict[str, Any] = {"layer": one.layer, "delta": one.delta, "rho": one.rho, "votes": one.votes}
        row |= {"width": one.width, "suspect": one.layer == result.suspect, "role": role}
        for name, found in (("delta", one.delta_quantiles), ("rho", one.rho_quantiles)):
            levels = found or (None,) * len(QUANTILES)
            row |= {f"{name}_q{round(100 * q):02d}": value for q, value in zip(QUANTILES, levels, strict=True)}
        rows.append(row)
    return pa.Table.from_pylist(rows)


def _roles(result: DebugResult) -> list[str]:
    """What each entry of the layers is: layer 0 is no layer of the model, but the protected input before it."""
    if result.units != "layers":
        return ["tree"] * len(result.layers)
    last = max((one.layer for one in result.layers), default=0)
    names = {0: "protected input", last: "output"}
    return [names.get(one.layer, "hidden") for one in result.layers]


def neurons_table(result: DebugResult) -> pa.Table:
    """One row per value that a neuron was held at: the whole curve of k over the value.

    `acd` is the neuron's (mean k on less mean k off, as a share of mean k), and `role` says which rows are on (active)
    and off (inactive). `k_choosing` and `acd_choosing` are from the half of the cases that chooses, `k_reported` and
    `acd` from the other, with the interval `acd_low` to `acd_high`. `choosing` and `reported` are the means of the
    measure that the run lowers. Layers count from 1, neurons from 0.

    For trees `layer` is the tree (0: several trees), `neuron` the node of a split in it (-1: the whole tree; of tree 0
    the number of a question) and `label` whom the split sends to the left; `value` is 0 (always left), 1 (always
    right), 2 (the other way), or what stands in for a tree.
    """
    rows = [
        {
            "layer": neuron.layer,
            "neuron": neuron.neuron,
            "label": neuron.label or None,
            "statistic": one.statistic,
            "value": one.value,
            "accuracy": one.accuracy,
            "k_mean": one.k_mean,
            "acd": neuron.acd,
            "kept": one.kept,
            "id_rate": one.id_rate,
            "role": "active" if one is neuron.active else "inactive" if one is neuron.inactive else None,
            "k_choosing": one.k_choosing,
            "k_reported": one.k_reported,
            "acd_choosing": neuron.acd_choosing,
            "acd_low": neuron.acd_low,
            "acd_high": neuron.acd_high,
            "q_1_mean": one.q_1_mean,
            "choosing": one.choosing,
            "reported": one.reported,
        }
        for neuron in result.neurons
        for one in neuron.candidates
    ]
    more = (*("k_choosing", "k_reported", "acd_choosing", "acd_low", "acd_high", "q_1_mean", "choosing", "reported"),)
    real = dict.fromkeys(("value", "accuracy", "k_mean", "acd", "id_rate", *more), pa.float64())
    kinds = {"layer": pa.int64(), "neuron": pa.int64(), "kept": pa.bool_(), **real}
    label = ("label",) if result.units == "trees" else ()
    names = ("layer", "neuron", "statistic", "value", "accuracy", "k_mean", "acd", "kept", "id_rate", "role", *more)
    columns = (*names, *label)
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, kinds.get(name, pa.string())) for name in columns]))


def cases_table(result: DebugResult, run: Run) -> pa.Table:
    """One row per case looked at: who it is (codes), its distances in every layer, its bits per attribute."""
    columns: dict[str, Any] = {}
    for i, name in zip(run.schema.person_columns, run.layout.names, strict=True):
        columns[name] = result.cases[:, i]
    columns |= {"k": result.k, "flips": result.flips}
    if result.delta is not None and result.rho is not None:
        if result.units == "layers":  # trees are too many to have columns of their own
            columns |= {f"delta_{layer}": column for layer, column in enumerate(result.delta.T)}
            columns |= {f"rho_{layer}": column for layer, column in enumerate(result.rho.T, 1)}
        columns["suspect_layer"] = ballots_of(result.rho)
    if result.attribution is not None:
        for place, name in enumerate(result.attribution.attributes):
            columns[f"q_inf_{name}"] = result.attribution.case_q_inf[:, place]
            columns[f"q_1_{name}"] = result.attribution.case_q_1[:, place]
    return pa.table(columns)


def document_of(result: DebugResult) -> dict[str, Any]:
    """The content of debug.json: everything but the single rows, under stable keys."""
    origin = {**asdict(result.origin), "known": result.origin.known, "words": result.origin.words}
    if result.origin.labels is not None:
        labels = origin["labels"]
        labels["label_bits"] = None if math.isnan(labels["label_bits"]) else labels["label_bits"]
        labels["present"] = result.origin.labels.present
    return {
        "subject": result.subject,
        "identity": result.identity,
        "epsilon": result.epsilon,
        "partition": result.partition,
        "seed": result.seed,
        "m": result.m,
        "samples": len(result.cases),
        "samples_worst": result.worst,
        "k_mean": result.k_mean,
        "k_choosing": result.k_choosing,
        "k_reported": result.k_reported,
        "reported": float(halves(result.figure)[1].mean()),
        "q_1_mean": None if result.q_1 is None else float(result.q_1.mean()),
        "id_rate": result.id_rate,
        "accuracy": result.accuracy,
        "units": result.units,
        "rule": result.rule,
        "measure": result.measure,
        "layers_from": 1,
        "neurons_from": 0,
        "suspect_layer": result.suspect,
        "vote": None if result.vote is None else {**asdict(result.vote), "close": result.vote.close},
        "layers": [
            {"layer": one.layer, "role": role, **asdict(one)}
            for one, role in zip(result.layers, _roles(result), strict=True)
        ],
        "positive": [_neuron(one) for one in result.top(+1, count=TOP)],
        "negative": [_neuron(one) for one in result.top(-1, count=TOP)],
        "best": [_neuron(one) for one in result.best(count=TOP)],
        "neurons_studied": len(result.neurons),
        "sets": None if result.sets is None else _sets(result.sets),
        "attribution": None if result.attribution is None else _attribution(result.attribution),
        "origin": origin,
        "notes": list(result.notes),
        "options": dict(result.options),
        "seconds": result.seconds,
    }


def _neuron(one: NeuronEffect) -> dict[str, Any]:
    sides = {
        name: None if value is None else asdict(value)
        for name, value in (
            ("active", one.active),
            ("inactive", one.inactive),
            ("remedy", one.remedy),
            ("best", one.best),
        )
    }
    named = {"label": one.label} if one.label else {}
    interval = {"acd_low": one.acd_low, "acd_high": one.acd_high}
    return {"layer": one.layer, "neuron": one.neuron, **named, "acd": one.acd, **interval, **sides}


def _sets(found: NeuronSets) -> dict[str, Any]:
    """Layers from 1, as everywhere else in the file."""

    def plain(one: NeuronSet) -> dict[str, Any]:
        held = [{"layer": do.layer + 1, "neuron": do.neuron, "value": do.value} for do in one.neurons]
        rest = {"explained_choosing": one.explained_choosing, "accuracy": one.accuracy}
        return {"size": len(held), "neurons": held, "explained": asdict(one.explained), **rest}

    minimal = None if found.minimal is None else plain(found.minimal)
    return {"most": found.most, "minimal": minimal, "curve": [plain(one) for one in found.curve]}


def _attribution(found: Attribution) -> dict[str, Any]:
    return {
        "attributes": list(found.attributes),
        "shapley": [
            {"attribute": name, "q_inf": found.q_inf[name], "q_1": found.q_1[name]} for name in found.attributes
        ],
        "subsets": [asdict(subset) for subset in found.subsets],
    }


def _write(path: Path, table: pa.Table) -> None:
    write_parquet(path, table, compression="lz4")
