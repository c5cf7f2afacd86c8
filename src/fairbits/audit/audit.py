"""A model and a table in, figures out: what the command line does, for Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairbits.data import Subject, load_subject, make_subject
from fairbits.domain import Encoding, Schema, Table
from fairbits.domain.reading import as_arrow, read_arrow
from fairbits.domain.table import table_from_arrow
from fairbits.measure import Evaluator, Measurement, Progress, default_epsilon, measure_table
from fairbits.models import ModelOptions, read_model

if TYPE_CHECKING:
    from fairbits.search import Budget
    from fairbits.store import Run


class Audit:
    """One model, one table, one schema.

    ``model`` is a loaded model, a file, an address, a reference to code, or an object of scikit-learn, PyTorch, Keras
    or anything else that predicts; ``table`` a file, an Arrow, pandas or polars table, or a :class:`~fairbits.Table`
    of codes. ``options`` are those of :class:`~fairbits.models.ModelOptions`, such as ``trust_pickle=True``.
    """

    def __init__(
        self,
        model: Any,
        table: Any,
        schema: Schema,
        *,
        encoding: Encoding | None = None,
        name: str = "subject",
        **options: Any,
    ):
        chosen = ModelOptions.of(options)
        loaded = read_model(model, schema, chosen)
        people = _table(table, schema)
        self.subject = make_subject(name, loaded, schema, people, encoding=encoding, options=chosen)

    @classmethod
    def of(cls, subject: Subject | str | Path, *, trust_pickle: bool = False) -> Audit:
        """An audit of a built-in subject or a ``subject.toml``."""
        audit = cls.__new__(cls)
        audit.subject = subject if isinstance(subject, Subject) else load_subject(subject, trust_pickle=trust_pickle)
        return audit

    def measure(
        self,
        *,
        epsilon: float | None = None,
        partition: str = "constrained",
        threads: int | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Measurement:
        """The bits of everybody in the table. ``threads`` None means all cores; the seed only moves the intervals."""
        subject = self.subject
        evaluator = Evaluator(
            subject.model,
            subject.schema,
            subject.encoding,
            epsilon=default_epsilon(subject.schema, subject.table) if epsilon is None else epsilon,
            partition=partition,
            threads=threads,
            rows=subject.table.codes,
        )
        return measure_table(evaluator, subject.table, np.random.default_rng(seed), progress=progress)

    def search(
        self,
        *,
        budget: Budget | str = "60s",
        strategy: str | None = None,
        seed: int = 0,
        epsilon: float | None = None,
        partition: str = "constrained",
        within: int | None = None,
        min_plausibility: float | None = None,
        threads: int | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        force: bool = False,
        **options: Any,
    ) -> Run:
        """Search for the people whose twins are treated most differently; every case is kept in the folder ``out``.

        ``budget`` is a duration such as "30s" or a :class:`~fairbits.search.Budget`; ``options`` are the strategy's.
        """
        from fairbits.search import DEFAULT, Budget, Settings, search_subject, seconds_of

        limit = Budget(seconds=seconds_of(budget)) if isinstance(budget, str) else budget
        settings = Settings(
            limit, strategy or DEFAULT, options, seed, epsilon, partition, within, min_plausibility, threads
        )
        return search_subject(self.subject, settings, out, resume=resume, force=force)


def _table(table: Any, schema: Schema) -> Table:
    if isinstance(table, Table):
        return table
    data = read_arrow(table) if isinstance(table, str | Path) else as_arrow(table)
    return table_from_arrow(data, schema)
