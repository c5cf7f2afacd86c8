"""Shards on a Ray cluster. Ray decides where; what all shards share lies once in the object store of every node."""

from __future__ import annotations

import atexit
import logging
import socket
import time
import uuid
from typing import Any, Self

from fairbits.engine import thread_count
from fairbits.errors import FairbitsError, MissingDependencyError, OptionError
from fairbits.scale.executor import Executor, Fault, Job, TaskOutcome, fault_of

LOCAL = "local"
#: Seconds that workers may take to prepare; a cluster that is still growing takes shards as it comes.
PATIENCE = 120.0
#: Seconds between two looks at the head, and how often it may be silent.
LOOK_EVERY, SILENCES = 5.0, 8
LOST = Fault("head", "the connection to the head of the Ray cluster was lost")


class Ray(Executor):
    """A cluster that is there already (by its address), or one that is started here and ended afterwards."""

    name = "ray"

    def __init__(self, job: Job, *, address: str, workers: int | None, threads: int):
        try:
            import ray
        except ImportError:
            raise MissingDependencyError.of("ray", "ray", "a Ray cluster") from None
        self._ray, self._job, self._address = ray, job, address
        self._workers, self._threads = workers, threads
        self._mine = False
        self._running: dict[Any, int] = {}
        self._unsent: list[int] = []
        self._broken = (ray.exceptions.RaySystemError, ConnectionError)

    def __enter__(self) -> Self:
        """Connect, hand over what is shared, and count the slots."""
        ray = self._ray
        if not ray.is_initialized():
            self._connect()
            self._mine = True
        cores = int(ray.cluster_resources().get("CPU", 0))
        self.slots = self._workers or max(1, cores // self._threads)
        if cores < self._threads:
            raise OptionError(f"the Ray cluster has {cores} cores, but a worker needs {self._threads}.")
        self._hand_over()
        self._warm_up()
        return self

    def _hand_over(self) -> None:
        """Give the cluster what all shards share."""
        address = str(self._ray.get_runtime_context().gcs_address)
        self._head = address if _answers(address) else None  # through a proxy, the head itself is out of sight
        self._look_at, self._silent = time.monotonic() + LOOK_EVERY, 0
        self._shared = self._ray.put(self._job)
        self._token = uuid.uuid4().hex
        # Ray's own retries are off: the coordinator counts attempts and puts on record why each failed.
        self._perform = self._ray.remote(num_cpus=self._threads, max_retries=0)(_perform)

    def _warm_up(self) -> None:
        """Let workers prepare before the clock starts. It is no matter which, and a node that dies will be met again:
        only what is wrong with the job itself ends the run here.
        """
        ready = self._ray.remote(num_cpus=self._threads, max_retries=0)(_state)
        waiting = [ready.remote(self._token, [self._shared], self._threads) for _ in range(self.slots)]
        ended, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=PATIENCE)
        for reference in ended:
            fault = self._outcome(-1, reference).fault
            if fault is not None and fault.error is not None and fault.kind == "error":
                raise fault.error

    def submit(self, number: int, shard: Any) -> None:
        """Give a shard to Ray; what all shards share is fetched only by a worker that is new to the job."""
        try:
            self._running[self._perform.remote(self._token, [self._shared], self._threads, shard)] = number
        except self._broken:
            self._unsent.append(number)

    def collect(self, seconds: float) -> list[TaskOutcome]:
        """Outcomes of shards that have ended; when the head no longer answers, everything in progress is lost."""
        try:
            self._look_at_head()
            if self._unsent:
                return self._connect_again()
            ended, _ = self._ray.wait(list(self._running), timeout=seconds, num_returns=1)
            return [self._outcome(self._running.pop(reference), reference) for reference in ended]
        except self._broken:
            return self._connect_again()

    def _look_at_head(self) -> None:
        """A head that is back within the minute finds its shards again by itself. Of one that is not, Ray would end
        this process without a word about the run; so we do, a little earlier.
        """
        now = time.monotonic()
        if self._head is None or now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY
        self._silent = 0 if _answers(self._head) else self._silent + 1
        if self._silent >= SILENCES:
            self._mine = False
            atexit.unregister(self._ray.shutdown)  # it would wait for the head
            raise self._gone()

    def _gone(self) -> FairbitsError:
        return FairbitsError(
            f"{LOST.words}, and it did not come back ({self._address}); what was finished is safe: go on with --resume."
        )

    def _connect_again(self) -> list[TaskOutcome]:
        """Another connection, or another cluster where it is our own; the coordinator has the shards done again."""
        lost = [*self._running.values(), *self._unsent]
        self._running, self._unsent = {}, []
        self._ray.shutdown()
        try:
            self._connect()
        except FairbitsError as error:
            raise self._gone() from error
        self._mine = True
        self._hand_over()
        return [TaskOutcome(number, fault=LOST) for number in lost]

    def stop(self) -> None:
        """Cancel what is being done; what it has written stays."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)

    def __exit__(self, *_: object) -> None:
        """Leave the cluster as it was."""
        if self._mine:
            self._ray.shutdown()

    def _connect(self) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            if self._address == LOCAL:
                cores = thread_count(None) if self._workers is None else self._workers * self._threads
                self._ray.init(address="local", num_cpus=cores, include_dashboard=False, **quiet)
            else:
                self._ray.init(address=self._address, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = str(error).strip().splitlines()[0][:160].rstrip(". ")
            raise FairbitsError(
                f"the Ray cluster at {self._address!r} cannot be reached ({reason}); check the address, or use "
                f"--ray local."
            ) from error

    def _outcome(self, number: int, reference: Any) -> TaskOutcome:
        try:
            return TaskOutcome(number, self._ray.get(reference))
        except Exception as error:  # noqa: BLE001 - judged by the coordinator
            return TaskOutcome(number, fault=_fault(self._ray.exceptions, error))


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=2.0).close()
    except (OSError, ValueError):
        return False
    return True


def _fault(kinds: Any, error: Exception) -> Fault:
    """What Ray says about a shard that was not done."""
    if isinstance(error, kinds.RayTaskError):
        return fault_of(error.cause if isinstance(error.cause, Exception) else error)
    known: tuple[tuple[Any, str, str], ...] = (
        (kinds.OutOfMemoryError, "memory", "Ray ended it because its node ran out of memory"),
        ((kinds.NodeDiedError, kinds.LocalRayletDiedError), "node", "its Ray node died"),
        ((kinds.WorkerCrashedError, kinds.TaskCancelledError), "killed", "its Ray worker died"),
        (kinds.ObjectLostError, "node", "what it needed, or its result, was lost with a Ray node"),
        ((kinds.RaySystemError, ConnectionError), LOST.kind, LOST.words),
    )
    named = (Fault(kind, words, error) for classes, kind, words in known if isinstance(error, classes))
    return next(named, None) or fault_of(error)


_states: dict[str, tuple[Job, Any]] = {}


def _state(token: str, shared: list[Any], threads: int) -> None:
    """In a worker of Ray: prepare, once, and keep the state for all shards."""
    if token not in _states:
        import ray
        from threadpoolctl import threadpool_limits

        job: Job = ray.get(shared[0])
        threadpool_limits(threads)
        _states.clear()
        _states[token] = job, job.prepare(job.shared)


def _perform(token: str, shared: list[Any], threads: int, shard: Any) -> Any:
    _state(token, shared, threads)
    job, state = _states[token]
    return job.perform(state, shard, lambda: False)
