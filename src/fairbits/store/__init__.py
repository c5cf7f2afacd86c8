"""A search run on disk: manifest, append-only Parquet parts, DuckDB questions, resume."""

from fairbits.store.records import Case
from fairbits.store.run import Run
from fairbits.store.sharded import ShardedWriter
from fairbits.store.shards import ShardWriter
from fairbits.store.subjects import subject_of
from fairbits.store.writer import RunWriter

__all__ = ["Case", "Run", "RunWriter", "ShardWriter", "ShardedWriter", "subject_of"]
