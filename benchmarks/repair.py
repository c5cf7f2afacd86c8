"""What repairs cost and buy on the built-in subjects, on cases and rows that no repair has seen.

For docs/tables/repairs-chosen.csv. Each subject is searched with a budget of evaluations, then repaired; a fresh search
from another seed attacks the network before and after. Same seeds, same table, whatever the threads. Subjects whose
data are not on this machine are left out.

    python benchmarks/repair.py [--subjects census,heart] [--evaluations 200000] [--attack 50000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from fairbits import open_run
from fairbits.data import load_subject
from fairbits.errors import FairbitsError
from fairbits.repair import RepairCandidate, RepairResult
from fairbits.search import Budget, Settings, search_subject

SUBJECTS = ("census", "compas", "german", "default", "heart", "bank", "diabetes", "students", "meps15", "meps16")
SINGLE = ("deactivate", "activate")


def measured(name: str, evaluations: int, attack: int) -> dict[str, Any]:
    """One subject: searched, repaired, attacked."""
    with tempfile.TemporaryDirectory() as folder:
        run = search_subject(load_subject(name), Settings(budget=Budget(evaluations=evaluations)), Path(folder) / name)
        begin = time.perf_counter()
        result = open_run(run.folder).repair(attack_budget=Budget(evaluations=attack))
        seconds = time.perf_counter() - begin
    before, kinds = result.before_held_out, _kinds(result)
    return {
        "subject": name,
        "seconds": seconds,
        "rows": result.evidence.held_out_rows,
        "accuracy": before.accuracy,
        "k_mean": before.k_mean,
        "id_rate": before.id_rate,
        "chosen": None if result.chosen is None else result.chosen.name,
        "k_max_proved": None if result.chosen is None else result.chosen.k_max_proved,
        "dominated": None if result.chosen is None else result.chosen.dominated,
        "loss_low": None if result.chosen is None else result.chosen.held_out_loss_low,
        "budget": result.max_accuracy_loss,
        **{kind: None if one is None else _change(one, result) for kind, one in kinds.items()},
        "attack_before": [result.attack_before.k_max, result.attack_before.id_rate] if result.attack_before else None,
        "attack_after": [result.attack_after.k_max, result.attack_after.id_rate] if result.attack_after else None,
        "groups": [
            {
                "attributes": b.attributes,
                "before": [b.selection, b.average_odds],
                "after": [a.selection, a.average_odds],
            }
            for b, a in zip(result.groups_before, result.groups_after, strict=True)
        ],
    }


def _kinds(result: RepairResult) -> dict[str, RepairCandidate | None]:
    """The best of each kind, all picked on the plan's half within the budget, as the chosen one is."""

    def best(*prefixes: str) -> RepairCandidate | None:
        allowed = [r for r in result.repairs if r.name.startswith(prefixes) and r.within_budget]
        return min(allowed, key=lambda r: r.plan.k_mean, default=None)

    return {
        "single": best(*SINGLE),
        "neurons": best("neurons", *SINGLE),
        "untrained": min(
            (r for r in result.repairs if r.within_budget and not (r.retrained or r.yardstick)),
            key=lambda r: r.plan.k_mean,
            default=None,
        ),
        "best": result.chosen,
        "blind": result["blind"],
        "blind_retrained": result["blind+retrain"],
    }


def _change(one: RepairCandidate, result: RepairResult) -> dict[str, Any]:
    before, after = result.before_held_out, one.held_out
    return {
        "name": one.name,
        "k": after.k_mean / before.k_mean - 1,
        "points": 100 * (after.accuracy - before.accuracy),
        "plan_points": 100 * (one.plan.accuracy - result.before_plan.accuracy),
        "balanced_points": 100 * ((after.balanced_accuracy or 0.0) - (before.balanced_accuracy or 0.0)),
        "id_rate": after.id_rate,
    }


def _cell(found: dict[str, Any] | None) -> str:
    return "–" if found is None else f"{found['k']:+.0%} at {found['points']:+.1f}"


def _markdown(rows: list[dict[str, Any]]) -> str:
    heads = (
        "subject",
        "rows",
        "accuracy",
        "mean k",
        "one neuron",
        "set of neurons",
        "no training",
        "chosen",
        "",
        "balanced",
        "ID rate",
        "blind",
        "blind, trained",
        "fresh search: largest k, ID rate",
    )
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for row in rows:
        attack = "–"
        if row["attack_before"] and row["attack_after"]:
            (k0, id0), (k1, id1) = row["attack_before"], row["attack_after"]
            attack = f"{k0} → {k1}, {id0:.0%} → {id1:.1%}"
        cells = (
            row["subject"],
            f"{row['rows']:,}",
            f"{row['accuracy']:.1%}",
            f"{row['k_mean']:.2f}",
            _cell(row["single"]),
            _cell(row["neurons"]),
            _cell(row["untrained"]),
            f"**{_cell(row['best'])}**",
            row["chosen"] or "none keeps the budget",
            f"{row['best']['balanced_points']:+.1f}" if row["best"] else "–",
            f"{row['id_rate']:.0%} → {row['best']['id_rate']:.1%}" if row["best"] else "–",
            f"{row['blind']['points']:+.1f}",
            f"{row['blind_retrained']['points']:+.1f}",
            attack,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _verdict(rows: list[dict[str, Any]]) -> str:
    """The figures that this is about."""
    rows = [r for r in rows if r["best"] is not None]
    halved = [r["subject"] for r in rows if r["best"]["k"] <= -0.5 and r["best"]["points"] >= -2.0]
    worse = [r["subject"] for r in rows if r["single"] is not None and r["best"]["k"] > r["single"]["k"]]
    dominated = [r["subject"] for r in rows if r["dominated"]]
    broken = [r["subject"] for r in rows if r["loss_low"] is not None and r["loss_low"] > r["budget"]]
    proved = [r["subject"] for r in rows if r["k_max_proved"] is not None]
    return (
        f"chosen repair dominated on its own evidence: {', '.join(dominated) or 'none'} of {len(rows)}\n"
        f"budget broken on held-out rows beyond the 95 % interval: {', '.join(broken) or 'none'}\n"
        f"with a proved k: {len(proved)} of {len(rows)}\n"
        f"mean k at least halved within two points of accuracy: {len(halved)} of {len(rows)} ({', '.join(halved)})\n"
        f"worse than the best single neuron: {', '.join(worse) or 'none'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subjects", default=",".join(SUBJECTS))
    parser.add_argument("--evaluations", type=int, default=200_000)
    parser.add_argument("--attack", type=int, default=50_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    for name in options.subjects.split(","):
        try:
            rows.append(measured(name, options.evaluations, options.attack))
        except FairbitsError as error:
            print(f"{name}: {error}", flush=True)
            continue
        print(
            f"{name}: {rows[-1]['chosen']} {_cell(rows[-1]['best'])}, proved k: {rows[-1]['k_max_proved']}, "
            f"{rows[-1]['seconds']:.0f} s",
            flush=True,
        )
        if options.json is not None:
            options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    print("\n" + _markdown(rows) + "\n\n" + _verdict(rows))


if __name__ == "__main__":
    main()
