"""A section for a model card (Hugging Face, skops) from a run: what was measured, on whom, and the gate's verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairbits.errors import OptionError
from fairbits.gates.files import FILE
from fairbits.gates.markdown import _code, _safe
from fairbits.store import Run, read_json

TITLE = "Use of protected attributes"


def card_section(folder: str | Path, *, level: int = 2) -> str:
    """A Markdown section about a run, to be put into a model card."""
    run = Run.open(folder)
    summary = run.summary or {}
    measured = _optional(run.folder / "measure.json")
    names = ", ".join(_safe(name) for name in run.schema.protected)
    lines = [] if level == 0 else [f"{'#' * level} {TITLE}", ""]
    lines += [
        f"Measured with fairbits {_code(str(run.versions.get('fairbits', '')))} (quantitative individual "
        f"discrimination, QID): how many classes k, and bits log2 k, the scores of one person fall into when only "
        f"{names} change. Scores closer than {run.manifest['epsilon']:g} count as the same.",
        "",
        "| figure | value | kind |",
        "| --- | ---: | --- |",
    ]
    figures = measured.get("figures", measured)
    for key, words in (
        ("rows", "people examined, rows of the table"),
        ("k_mean", "their mean k"),
        ("k_max", "largest k among them"),
        ("flip_rate", "share of them whose decision flips"),
    ):
        value = figures.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            shown = f"{value:.1%}" if key == "flip_rate" else f"{value:,.2f}" if key == "k_mean" else f"{value:,.0f}"
            lines.append(f"| {words} | {shown} | exact |")
    for key, words in (("cases", "people that the search examined"), ("id_cases", "of them, decision flips")):
        if isinstance(summary.get(key), int):
            lines.append(f"| {words} | {summary[key]:,} | found |")
    if isinstance(summary.get("k_max"), int):
        kind = "exact: it cannot be more" if "k_max" in summary.get("exact", ()) else "lower bound"
        lines.append(f"| largest k that the search found | {summary['k_max']} | {kind} |")
    lines += ["", *_verdict(_optional(run.folder / FILE), run.manifest["identity"]["id"])]
    return "\n".join(lines).rstrip() + "\n"


def _verdict(document: dict[str, Any], identity: str) -> list[str]:
    checks = document.get("checks")
    if document.get("verdict") not in ("pass", "fail", "inconclusive") or not isinstance(checks, list):
        return ["No gate has judged this model yet (`fairbits gate`)."]
    if document.get("identity") != identity:
        return ["The gate's verdict in this run's folder is about another model, so it is left out (`fairbits gate`)."]
    lines = [
        f"Verdict of the gate: **{document.get('headline', document['verdict'])}**.",
        "",
        "| check | value | allowed | verdict |",
    ]
    lines.append("| --- | ---: | ---: | --- |")
    for one in checks:
        if isinstance(one, dict):
            sign = "≥" if one.get("direction") == "min" else "≤"
            value, threshold = (
                f"{one[key]:.4g}" if isinstance(one.get(key), int | float) else "not known"
                for key in ("value", "threshold")
            )
            waived = " (waived)" if one.get("waived") else ""
            verdict = _safe(str(one.get("verdict")))
            lines.append(f"| {_safe(str(one.get('name')))} | {value} | {sign} {threshold} | {verdict}{waived} |")
    return lines


def _optional(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return read_json(path)
    except (OptionError, RecursionError):
        raise OptionError(f"{str(path)!r} is damaged; delete it, and make it again.") from None
