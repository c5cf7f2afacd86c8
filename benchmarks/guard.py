"""What the guard costs on the built-in subjects: accuracy on held-out rows, the proved k, and what an attack finds.

Makes docs/tables/guard-cost.csv. Nothing is searched beforehand: the guard needs the training rows alone. A fresh
search attacks the network as it is and each guard, and must find nobody above what is proved. Subjects whose data are
not on this machine are left out.

    python benchmarks/guard.py [--subjects census,heart] [--attack 20000] [--json FILE]

With --export SECONDS every guard is written to its files first, and the ONNX file itself, loaded again, is attacked for
so long: nobody may be found above the proved k. `--export 60` is the long form. `--export-only 1,2` attacks the files
of these guarantees and measures nothing else.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairbits import Guard, load_subject
from fairbits.domain import Table
from fairbits.errors import CapabilityError, FairbitsError
from fairbits.models import Model, load_model
from fairbits.repair.judgement import answers_of
from fairbits.repair.proposals.distil import distilled
from fairbits.repair.proposals.weights import trained_from_scratch
from fairbits.repair.writers import export
from fairbits.search import Budget, Settings, search_subject
from fairbits.subject import Subject, balanced_accuracy

SUBJECTS = ("census", "compas", "german", "default", "heart", "bank", "diabetes", "students", "meps15", "meps16")
GUARANTEES = (2, 4, 8)


def measured(name: str, attack: int, exported: float = 0.0) -> dict[str, Any]:
    """One subject: guarded, distilled, attacked."""
    subject = load_subject(name)
    held_out = subject.test or subject.table.unseen()
    if held_out is None or held_out.labels is None:
        raise FairbitsError(f"{name} holds no rows out.")
    guard = Guard.of(subject)
    models: dict[str, Model] = {"average": guard}
    models |= {f"guard-{most}": guard.with_guarantee(most) for most in GUARANTEES}
    known = subject.table.training()
    models["distilled"] = distilled(guard, known.codes, np.random.default_rng(0))
    try:
        anew = trained_from_scratch(
            subject.model, subject.schema, subject.encoding, known.codes, known.labels, np.random.default_rng(0)
        )
        models["refitted"] = anew.network
    except CapabilityError:
        pass  # a large table: nothing is trained anew
    found: dict[str, Any] = {"subject": name, "rows": len(held_out), "m": guard.m, "shift": guard.shift}
    found["before"] = _figures(subject.model, subject, held_out)
    for kind, model in models.items():
        found[kind] = _figures(model, subject, held_out)
    scores = [np.asarray(m.scores(subject.encoding.encode(held_out.codes))) for m in (models["distilled"], guard)]
    found["fidelity"] = float(np.abs(scores[0] - scores[1]).mean())
    if attack:
        found["attack"] = {
            kind: _attacked(replace(subject, model=model), attack)
            for kind, model in (("before", subject.model), *models.items())
        }
    if exported:
        found["exported"] = {
            kind: _export_attacked(model, subject, held_out, exported)
            for kind, model in models.items()
            if isinstance(model, Guard)
        }
    return found


def exported(name: str, guarantees: list[int], seconds: float) -> str:
    """One subject: what a search finds against the files of some guards, in words."""
    subject = load_subject(name)
    held_out = subject.test or subject.table.unseen() or subject.table
    guard, found = Guard.of(subject), []
    for most in guarantees:
        proved, met, asked = _export_attacked(guard.with_guarantee(most), subject, held_out, seconds)
        found.append(f"{met} of {proved} ({asked:,} people asked)")
    return f"{name}: {', '.join(found)}"


def _export_attacked(guard: Guard, subject: Subject, rows: Table, seconds: float) -> tuple[int, int, int]:
    """The proved k, the largest that a search finds against the ONNX file loaded again, and how many it asked about."""
    with tempfile.TemporaryDirectory() as folder:
        written = export(guard, subject, Path(folder), rows.codes)
        path = next(path for path in written.files if path.suffix == ".onnx")
        settings = Settings(budget=Budget(seconds=seconds), seed=1_000_003)
        about = replace(subject, model=load_model(path, schema=subject.schema))
        run = search_subject(about, settings, Path(folder) / "attack")
        summary = run.summary or {}
        return guard.k_max, int(summary["k_max"]), int(summary["evaluations"])


def _figures(model: Model, subject: Subject, rows: Table) -> tuple[float, float]:
    answers = answers_of(model, subject, rows.codes)
    assert rows.labels is not None  # noqa: S101 - asked for above
    right = answers == rows.labels
    return float(right.mean()), balanced_accuracy(right, rows.labels)


def _attacked(subject: Subject, evaluations: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(budget=Budget(evaluations=evaluations), seed=1_000_003)
        run = search_subject(subject, settings, Path(folder) / "attack")
        return int((run.summary or {})["k_max"])


def line(found: dict[str, Any]) -> str:
    """One row of the table."""
    start = found["before"]
    cells = [found["subject"], f"{found['rows']:,}", str(found["m"]), f"{start[0]:.1%} ({start[1]:.1%})"]
    kinds = ("average", "distilled", "refitted", *(f"guard-{most}" for most in GUARANTEES))
    for kind in kinds:
        if kind in found:
            accuracy, balance = (100 * (found[kind][i] - start[i]) for i in (0, 1))
            cells.append(f"{accuracy:+.1f} ({balance:+.1f})")
        else:
            cells.append("")
    attack = found.get("attack")
    cells.append(
        "" if attack is None else f"{attack['before']} → {', '.join(str(attack[k]) for k in list(attack)[1:])}"
    )
    exported = found.get("exported")
    cells.append("" if exported is None else ", ".join(f"{k} of {most}" for most, k, _ in exported.values()))
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subjects", default=",".join(SUBJECTS))
    parser.add_argument("--attack", type=int, default=20_000)
    parser.add_argument("--export", type=float, default=0.0, help="seconds of a search against each exported guard")
    parser.add_argument("--export-only", default="", help="guarantees whose files alone are attacked, as 1,2")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.export_only:
        for name in options.subjects.split(","):
            guarantees = [int(most) for most in options.export_only.split(",")]
            print(exported(name, guarantees, options.export or 60.0), flush=True)
        return
    every = []
    print(
        "| subject | rows | m | as it is | average, k = 1 | distilled, k = 1 | refitted, k = 1 | k ≤ 2 | k ≤ 4 | "
        "k ≤ 8 | largest k found | in files, of proved |\n" + "| --- " * 12 + "|"
    )
    for name in options.subjects.split(","):
        try:
            every.append(measured(name, options.attack, options.export))
        except FairbitsError as error:
            print(f"left out: {name}: {error}")
            continue
        print(line(every[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(every, indent=1))


if __name__ == "__main__":
    main()
