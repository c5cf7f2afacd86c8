"""A search run on disk: manifest, records of tasks, Parquet parts, DuckDB questions, resume."""

from fairbits.store.records import Case
from fairbits.store.run import Run
from fairbits.store.subjects import subject_of
from fairbits.store.tasks import TaskRecord
from fairbits.store.writer import RunWriter, TaskWriter, WriteError

__all__ = ["Case", "Run", "RunWriter", "TaskRecord", "TaskWriter", "WriteError", "subject_of"]
