"""One process, many processes, or a Ray cluster: the same shards, the same cases."""

from fairbits.scale.coordinating import Carried, carry_out
from fairbits.scale.hands import Hands, open_executor
from fairbits.scale.job import Executor, Fault, Job, Signals

__all__ = ["Carried", "Executor", "Fault", "Hands", "Job", "Signals", "carry_out", "open_executor"]
