"""Whom one can start from: the worst rows of the table, the worst cases of the search, any row by its number."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairbits.domain import Codes
from fairbits.errors import OptionError
from fairbits.measure import Evaluator
from fairbits.report import distance_words, kept_measurement, row_words
from fairbits.store import Run
from fairbits.subject import Subject

#: Rows and cases to choose from.
MOST = 12


class Gallery:
    """People as the page takes them: a name, k where it is known, the free codes, and which twin a real row is."""

    def __init__(self, run: Run, subject: Subject, evaluator: Evaluator):
        self._run, self._table, self._evaluator = run, subject.table, evaluator
        self._kept = kept_measurement(run.folder, subject, evaluator)

    def everybody(self) -> list[dict[str, Any]]:
        """Real people first, then those that the search found."""
        found = [*self._rows(), *self._cases("changed <> 0")]
        return found or [self.row(1)]

    def row(self, number: int) -> dict[str, Any]:
        """One row of the table."""
        if not 1 <= number <= len(self._table):
            raise OptionError(f"row {number} is not in the table, which has rows 1 to {len(self._table)}.")
        codes = self._table.codes[number - 1]
        own = int(self._evaluator.twins.index_of(codes[None])[0])
        return self._person(row_words(self._table, number - 1), codes, real=True, own=own)

    def _rows(self) -> list[dict[str, Any]]:
        """As measured; where nothing was measured yet, the rows that the search came across."""
        if self._kept is None:
            return self._cases("changed = 0")
        people = [self.row(number + 1) for number in self._kept["worst_rows"]]
        figures = self._evaluator.evaluate(np.stack([self._table.codes[n] for n in self._kept["worst_rows"]]))
        return [{**person, "k": int(k)} for person, k in zip(people, figures.k, strict=True)]

    def _cases(self, where: str) -> list[dict[str, Any]]:
        table = self._run.cases(where=where, top=MOST, labels=False)
        found = []
        for batch in table.to_batches():
            for codes, row in zip(self._run.layout.codes_of(batch), batch.to_pylist(), strict=True):
                person = self._person(distance_words(row["changed"]), codes, real=row["changed"] == 0)
                found.append({**person, "k": row["k"]})
        return found

    def _person(self, name: str, codes: Codes, *, real: bool, own: int | None = None) -> dict[str, Any]:
        free = self._evaluator.schema.person_columns
        return {"name": name, "real": real, "k": None, "codes": [float(codes[i]) for i in free], "own": own}
