"""Proposals that change weights: neurons, shrunk inputs, blindness, further training, and their mixtures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairbits.errors import CapabilityError
from fairbits.models import Do, Network
from fairbits.repair.proposals.anew import trained_anew
from fairbits.repair.proposals.blind import blinded, shrunk
from fairbits.repair.proposals.neurons import BUDGET_USED, Bench, HeldSet, held_sets, singles
from fairbits.repair.proposals.proposer import Planner, Proposal
from fairbits.repair.proposals.retrain import CONSISTENCY, MILD, Retrainer

SHARES = (0.25, 0.5, 0.75, 0.9)
#: Shares that are also tried together with sets of neurons, and before training.
MIXED_SHARES = (0.5, 0.75)
TRAINED_SHARES = (0.5, 0.9)
#: Sets of neurons that are tried in mixtures.
MIXED_SETS = 2


@dataclass(frozen=True, slots=True)
class Surgery:
    """Repairs of a native network; other models show no weights, and get none."""

    name: str = "weights"

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Everything that changes weights and is worth judging."""
        if isinstance(planner.network, Network):
            yield from _Changes(planner).proposals(planner.network)


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """Repairs of one network that change its weights."""

    planner: Planner

    def proposals(self, network: Network) -> Iterator[Proposal]:
        """Repairs that change weights."""
        suspect, retrain = self.planner.suspect, self.planner.retrain
        held: list[HeldSet] = []
        if len(network.weights) > 1:
            self.planner.watch("looking at single neurons")
            bench = Bench(network, self.planner.halves.training, self.planner.setting)
            floor = bench.start.accuracy - BUDGET_USED * self.planner.budget
            yield from self._singles(bench, floor, suspect)
            if not self.planner.quick:
                self.planner.watch("looking for sets of neurons")
                held = held_sets(bench, floor)
                yield from self._sets(held)
        self.planner.watch("shrinking what protected inputs add")
        yield from self._shrunk(network, held)
        yield self._blind(network)
        if retrain and not self.planner.quick:
            self.planner.watch("training anew without protected inputs")
            yield from self._anew(network)
            yield from self._trained(network)

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
        assert isinstance(self.planner.network, Network)  # noqa: S101 - only networks have neurons
        return Proposal(name, neurons_in_words(held.dos), self.planner.network.with_interventions(held.dos), held.dos)

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
        subject = self.planner.setting.subject
        network = blinded(original, subject.schema, subject.encoding, self.planner.halves.training.rows)
        words = "protected inputs held at their mean, folded into the first bias"
        return Proposal("blind", words, network, shrink=1.0)

    def _trained(self, original: Network) -> Iterator[Proposal]:
        generators = [np.random.default_rng(child) for child in self.planner.seed.spawn(4 + len(TRAINED_SHARES))]
        lessons = Retrainer(original, self.planner.halves, self.planner.setting, generators.pop())
        cases = "trained further with found cases, labelled by the majority of their twins"
        alike = "trained further with a penalty on differences between twins"
        self.planner.watch("training with the found cases")
        yield Proposal("retrain", cases, lessons.with_cases(original, generators.pop()), retrained=True)
        self.planner.watch("training with a penalty on differences between twins")
        network = lessons.consistent(original, generators.pop(), MILD)
        yield Proposal("consistent", alike, network, retrained=True)
        for share in TRAINED_SHARES:
            network = lessons.consistent(self._at(original, share), generators.pop(), CONSISTENCY)
            words = f"{_shrink_words(share)}; then {alike}"
            yield Proposal(f"{_shrink_name(share)}+consistent", words, network, shrink=share, retrained=True)
        self.planner.watch("training blind")
        blind = blinded(
            original,
            self.planner.setting.subject.schema,
            self.planner.setting.subject.encoding,
            self.planner.halves.training.rows,
        )
        network = lessons.blind(blind, generators.pop())
        words = "blind; then trained further, protected inputs staying without weight"
        yield Proposal("blind+retrain", words, network, shrink=1.0, retrained=True)

    def _anew(self, network: Network) -> Iterator[Proposal]:
        """For small tables: a network of the same shape from random weights, blind, fitted to the labels."""
        subject, training = self.planner.setting.subject, self.planner.halves.training
        seed = self.planner.seed
        rng = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 98)))
        try:
            made = trained_anew(network, subject.schema, subject.encoding, training.rows, training.labels, rng)
        except CapabilityError:
            return  # large tables and regressions: the repairs above are what there is
        yield Proposal("refitted", made.words, made.network, shrink=1.0, retrained=True)

    def _at(self, original: Network, share: float) -> Network:
        subject = self.planner.setting.subject
        return shrunk(original, subject.schema, subject.encoding, self.planner.halves.training.rows, share)


def neurons_in_words(dos: tuple[Do, ...]) -> str:
    """Layer:neuron=value. Layer 1 is the first hidden one, as in debugging, files and reports; a ``Do`` counts
    from 0.
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
