"""All repairs that are tried: the guard, distilling, neurons, shrinking, training, their mixtures, blindness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from fairbits.domain import Table
from fairbits.models import Do, Model, Network
from fairbits.repair.evidence import Halves
from fairbits.repair.judgement import Setting
from fairbits.repair.proposals.blind import blinded, shrunk
from fairbits.repair.proposals.distil import pupil_of
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.proposals.neurons import BUDGET_USED, Bench, HeldSet, held_sets, singles
from fairbits.repair.proposals.retrain import CONSISTENCY, MILD, Retrainer

#: Bounds on k that are tried beside the plain average.
GUARANTEES = (1, 2, 4, 8)
SHARES = (0.25, 0.5, 0.75, 0.9)
#: Shares that are also tried together with sets of neurons, and before training.
MIXED_SHARES = (0.5, 0.75)
TRAINED_SHARES = (0.5, 0.9)
#: Sets of neurons that are tried in mixtures.
MIXED_SETS = 2

Watch = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A model to be judged, and what was done to it."""

    name: str
    words: str
    network: Model = field(repr=False)
    neurons: tuple[Do, ...] = ()
    shrink: float = 0.0
    retrained: bool = False
    yardstick: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Planner:
    """Makes proposals for one model from the plan's half of the evidence alone."""

    network: Model
    halves: Halves
    setting: Setting
    budget: float  # the accuracy that may be lost
    seed: np.random.SeedSequence
    watch: Watch
    guarantee: int | None = None

    def proposals(self, *, suspect: int | None = None, retrain: bool = True) -> Iterator[Proposal]:
        """All repairs that are worth judging.

        Parameters
        ----------
        suspect
            The layer that debugging pointed at.
        retrain
            Also train further.

        Yields
        ------
        Iterator[Proposal]
            Proposals.
        """
        self.watch("averaging over twins")
        yield from self._guarded()
        if isinstance(self.network, Network):
            yield from self._changed(self.network, suspect, retrain)

    def _changed(self, network: Network, suspect: int | None, retrain: bool) -> Iterator[Proposal]:
        """Repairs that change weights."""
        held: list[HeldSet] = []
        if len(network.weights) > 1:
            self.watch("looking at single neurons")
            bench = Bench(network, self.halves.training, self.setting)
            floor = bench.start.accuracy - BUDGET_USED * self.budget
            yield from self._singles(bench, floor, suspect)
            self.watch("looking for sets of neurons")
            held = held_sets(bench, floor)
            yield from self._sets(held)
        self.watch("shrinking what protected inputs add")
        yield from self._shrunk(network, held)
        yield self._blind(network)
        if retrain:
            yield from self._trained(network)

    def _guarded(self) -> Iterator[Proposal]:
        """The average over twins, and scores held within reach of it; and a network that has learned the average."""
        training = self.halves.training
        guard = Guard.of(
            self.setting.subject,
            epsilon=self.setting.epsilon,
            partition=self.setting.partition,
            threads=self.setting.threads,
            rows=Table(training.rows, training.labels),
        )
        yield Proposal("average", "the average over the person's twins in place of their own score", guard)
        for most in sorted({*GUARANTEES, *(() if self.guarantee is None else (self.guarantee,))}):
            tau = None if most > 1 else self.setting.epsilon / 2  # one class: twins may still differ by less than ε
            one = guard.with_guarantee(most, tau=tau)
            if one.k_max <= most and (most > 1 or self.setting.partition == "constrained"):
                words = f"scores held within {one.tau:.4g} of the average over the person's twins"
                yield Proposal(f"guard-{most}", words, one)
        self.watch("distilling the average")
        rng = np.random.default_rng(np.random.SeedSequence(self.seed.entropy, spawn_key=(*self.seed.spawn_key, 99)))
        pupil = pupil_of(guard, training.rows, rng)
        if pupil is not None:
            yield Proposal("distilled", pupil.words, pupil.model)

    def _singles(self, bench: Bench, floor: float, suspect: int | None) -> Iterator[Proposal]:
        for name, held in singles(bench, floor).items():
            yield self._held(name, held)
        if suspect is not None:
            for name, held in singles(bench, floor, layer=suspect).items():
                yield self._held(f"{name}-suspect", held)

    def _sets(self, held: list[HeldSet]) -> Iterator[Proposal]:
        for name, one in _named(held).items():
            yield self._held(name, one)

    def _held(self, name: str, held: HeldSet) -> Proposal:
        assert isinstance(self.network, Network)  # noqa: S101 - only networks have neurons
        return Proposal(name, neurons_in_words(held.dos), self.network.with_interventions(held.dos), held.dos)

    def _shrunk(self, original: Network, held: list[HeldSet]) -> Iterator[Proposal]:
        chosen = dict(list(_named(held).items())[-MIXED_SETS:])
        for share in SHARES:
            network = self._at(original, share)
            name, words = _shrink_name(share), _shrink_words(share)
            yield Proposal(name, words, network, shrink=share)
            for extra, one in chosen.items() if share in MIXED_SHARES else ():
                mixed = network.with_interventions(one.dos)
                both = f"{words}; {neurons_in_words(one.dos)}"
                yield Proposal(f"{name}+{extra}", both, mixed, one.dos, shrink=share)

    def _blind(self, original: Network) -> Proposal:
        subject = self.setting.subject
        network = blinded(original, subject.schema, subject.encoding, self.halves.training.rows)
        words = "protected inputs held at their mean, folded into the first bias"
        return Proposal("blind", words, network, shrink=1.0)

    def _trained(self, original: Network) -> Iterator[Proposal]:
        generators = [np.random.default_rng(child) for child in self.seed.spawn(4 + len(TRAINED_SHARES))]
        lessons = Retrainer(original, self.halves, self.setting, generators.pop())
        cases = "trained further with found cases, labelled by the majority of their twins"
        alike = "trained further with a penalty on differences between twins"
        self.watch("training with the found cases")
        yield Proposal("retrain", cases, lessons.with_cases(original, generators.pop()), retrained=True)
        self.watch("training with a penalty on differences between twins")
        network = lessons.consistent(original, generators.pop(), MILD)
        yield Proposal("consistent", alike, network, retrained=True)
        for share in TRAINED_SHARES:
            network = lessons.consistent(self._at(original, share), generators.pop(), CONSISTENCY)
            words = f"{_shrink_words(share)}; then {alike}"
            yield Proposal(f"{_shrink_name(share)}+consistent", words, network, shrink=share, retrained=True)
        self.watch("training blind")
        blind = blinded(original, self.setting.subject.schema, self.setting.subject.encoding, self.halves.training.rows)
        network = lessons.blind(blind, generators.pop())
        words = "blind; then trained further, protected inputs staying without weight"
        yield Proposal("blind+retrain", words, network, shrink=1.0, retrained=True)

    def _at(self, original: Network, share: float) -> Network:
        subject = self.setting.subject
        return shrunk(original, subject.schema, subject.encoding, self.halves.training.rows, share)


def neurons_in_words(dos: tuple[Do, ...]) -> str:
    """Layer:neuron=value. Layer 1 is the first hidden one, as in debugging, files and reports; a ``Do`` counts from 0.

    Parameters
    ----------
    dos
        Interventions.

    Returns
    -------
    str
        Text.

    Examples
    --------
    >>> neurons_in_words((Do(0, 3, 1.25), Do(2, 1, 0.0)))
    '1:3=1.25 3:1=0'
    """
    return " ".join(f"{do.layer + 1}:{do.neuron}={do.value:.4g}" for do in dos)


def _named(held: list[HeldSet]) -> dict[str, HeldSet]:
    """Sets by their size; several of one size get letters."""
    names: dict[str, HeldSet] = {}
    for one in held:
        base = f"neurons-{len(one.dos)}"
        letters = iter("bcdefghijklmnopqrstuvwxyz")
        name = base
        while name in names:
            name = base + next(letters)
        names[name] = one
    return names


def _shrink_name(share: float) -> str:
    return f"shrink-{share * 100:.0f}"


def _shrink_words(share: float) -> str:
    return f"protected inputs moved {share:.0%} of the way to their mean"
