"""docs/images/ratios.svg, the README's chart, drawn from figures that stand in the documents: `python -m tools.chart`.

Nothing is measured here: every bar is read from docs/paper.md, docs/benchmarks.md or docs/tables, and a test sees that
the picture still shows what they say.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from statistics import median

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURE = DOCS / "images" / "ratios.svg"
OURS, THEIRS = "#3b6ea5", "#b8b8b8"


def ratios() -> dict[str, float]:
    """How many times as fast, by what is compared."""
    with (DOCS / "tables" / "rivals.csv").open(encoding="utf-8", newline="") as file:
        plain = [float(row["ratio"].replace(",", "")) for row in csv.DictReader(file) if row["strategy"] == "dice"]
    paper = (DOCS / "paper.md").read_text(encoding="utf-8")
    (grft,) = re.findall(r"beside climb, geometric mean.*?grft ([\d.]+)", paper)
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    trees = dict(re.findall(r"^\| (\w+)[^|]*\| 90 \|.*?([\d.]+) × \|$", text, re.MULTILINE))
    return {
        "the paper's search, person by person": median(plain),
        "GRFT (ICSE 2025), batched too": 1 / float(grft),
        "HistGradientBoosting's own scores": float(trees["HistGradientBoosting"]),
        "LightGBM's": float(trees["LightGBM"]),
        "XGBoost's": float(trees["XGBoost"]),
        "a scikit-learn forest's": float(trees["forest"]),
    }


def certified() -> dict[str, tuple[str, str]]:
    """Percent of everybody certified, ours and FairQuant's, in the same CPU seconds, by network."""
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+-\d+) \| [\d.]+ \| ([\d.]+) % \|.*\| ([\d.]+) % in", text, re.MULTILINE)
    return {name: (ours, theirs) for name, ours, theirs in rows}


def times(ratio: float) -> str:
    """A ratio as the chart writes it."""
    return f"{ratio:.1f} ×" if ratio < 10 else f"{ratio:.0f} ×"


def draw(file: Path) -> None:
    """The chart: speed on the left, certified shares on the right."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "fairbits", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(8.4, 2.7), layout="constrained", facecolor="white")
        left, right = figure.subplots(1, 2, width_ratios=(1.35, 1))
        found = ratios()
        left.barh(list(found), list(found.values()), color=OURS, height=0.62)
        left.set_xscale("log")
        left.set_xlim(1, 2 * max(found.values()))
        for place, ratio in enumerate(found.values()):
            left.text(ratio * 1.08, place, times(ratio), va="center")
        left.set_title("times as fast as … (log scale)", loc="left", fontweight="bold")
        shares = certified()
        for place, (ours, theirs) in enumerate(shares.values()):
            for share, shift, colour, who in ((ours, -0.2, OURS, "fairbits"), (theirs, 0.2, THEIRS, "FairQuant")):
                right.barh(place + shift, float(share), 0.36, color=colour, label=None if place else who)
                right.text(float(share) + 1, place + shift, f"{share} %", va="center")
        right.set_yticks(range(len(shares)), list(shares))
        right.set_xlim(0, 128)
        right.set_title("certified in equal CPU time", loc="left", fontweight="bold")
        right.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.04, -0.04), fontsize=8)
        for axes in (left, right):
            axes.invert_yaxis()
            axes.spines[:].set_visible(False)
            axes.tick_params(length=0, labelbottom=False, bottom=False, which="both")
        figure.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    draw(PICTURE)
    print(PICTURE)
