"""Real reports for the documentation: `python -m tools.gallery` puts them into docs/_gallery; `make docs` runs it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import fairbits

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "_gallery" / "gallery"  # what lies below docs/_gallery is copied beside the pages
BUDGET = "30s"


def loans() -> fairbits.Audit:
    """The pipeline of the README."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    people = pd.read_csv(ROOT / "examples" / "people.csv")
    encode = make_column_transformer((OneHotEncoder(), ["sex", "nationality", "education"]), remainder=StandardScaler())
    model = make_pipeline(encode, LogisticRegression()).fit(people.drop(columns="approved"), people["approved"])
    options = {"target": "approved", "favourable": "yes", "protected": ["sex", "nationality"], "name": "loans"}
    return fairbits.Audit.from_table(model, people, **options)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    audits = {"census": fairbits.Audit.of("census"), "german": fairbits.Audit.of("german"), "loans": loans()}
    for name, audit in audits.items():
        with tempfile.TemporaryDirectory() as place:
            done = audit.audit(budget=BUDGET, out=Path(place) / name)
            shutil.copy(str(done.page), FOLDER / f"{name}.html")
        print(done.data.sentence)


if __name__ == "__main__":
    main()
