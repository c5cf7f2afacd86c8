"""The ladder of certificates: the strongest statement that the model and the budget allow, then weaker ones.

Blind by structure, everybody asked, cells of trees, boxes of dense networks, and a random sample for every model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fairbits.blocks import Shown
from fairbits.certify import exact
from fairbits.certify.boxes import Question, Volumes, prove
from fairbits.certify.cells import prove_cells
from fairbits.certify.conflicts import Contradiction, Sighting, Source, contradictions, rate_contradictions, withdrawn
from fairbits.certify.rates import DRAWN, FittedPopulation, RateStatement, group_rates, twin_groups
from fairbits.certify.statement import Kind, Population, Property, Statement, write_statements
from fairbits.engine import BoxNetwork, box_network, is_interval, margin_cuts, tree_boxes
from fairbits.errors import CapabilityError, FairbitsError, OptionError, SchemaError
from fairbits.measure import Evaluator, evaluator_of, rate_bound
from fairbits.models import HasTrees, Model, Network, answers_vary, load_model
from fairbits.options import CertifyOptions as CertifyOptions  # noqa: PLC0414 - exported from here, too
from fairbits.store import json_of, write_json
from fairbits.subject import Subject
from fairbits.text import percent

#: The repaired model in our own format, what a repair left in a run's folder, and guaranteed rates of groups.
RUN, REPAIRED, REPAIR, RATES = "run.json", "repaired.npz", "repair.json", "certify_rates.json"


@dataclass(frozen=True, slots=True)
class Certificate(Shown):
    """Statements about a model, what could not be proved and why, and whether somebody ended it early.

    Parameters
    ----------
    statements
        What is exact, proved or statistical about flips and k.
    notes
        What could not be proved, and why.
    stopped
        Whether a person ended it early.
    rates
        Statements about shares of people, where they were asked for.
    contradictions
        Statements that something else contradicts, which is an error of ours: they are withdrawn.
    """

    statements: tuple[Statement, ...]
    notes: tuple[str, ...] = ()
    stopped: bool = False
    rates: tuple[RateStatement, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()

    def __repr__(self) -> str:
        kinds = ", ".join(dict.fromkeys(one.kind for one in self.statements))
        return f"<Certificate: {len(self.statements) + len(self.rates)} statements{kinds and f' ({kinds})'}>"


#: How often a statistical statement is true.
CONFIDENCE = 0.99
#: Of the budget: what the statement around real rows, the sample, and (of the rest) a question about k may take.
NEAR, SAMPLE = 0.2, 0.15
#: Everybody is asked where that takes no more than this of the time that is left.
WHOLE_SHARE = 0.7
#: Of what is left where the whole domain is too hard: what people around real rows may take.
REST = 0.8
#: Seconds that a batch may take, about.
ROUND = 0.2
#: Rows that are asked about twice to see whether a model varies.
ASKED_TWICE = 256

Progress = Callable[[str], None]


def certify_subject(
    subject: Subject,
    options: CertifyOptions | None = None,
    *,
    model: Model | None = None,
    name: str = "model",
    stop: Callable[[], bool] = lambda: False,
    watch: Progress = lambda _: None,
) -> Certificate:
    """What can be said about everybody, within a budget."""
    options = options or CertifyOptions()
    evaluator = evaluator_of(subject, model=model, epsilon=options.epsilon, threads=options.threads)
    return _Ladder(subject, evaluator, options, name, stop, watch).climb()


def checked(found: Certificate, sightings: Iterable[Sighting] = ()) -> Certificate:
    """A certificate without statements that something contradicts: they are withdrawn, and it is said."""
    rates = [(one, rate_contradictions(one)) for one in found.rates]
    against = contradictions(found.statements, sightings)
    new = (one for one in (*against, *(one for _, some in rates for one in some)) if one not in found.contradictions)
    return replace(
        found,
        statements=withdrawn(found.statements, against),
        rates=tuple(replace(one, withdrawn=some[0].words()) if some else one for one, some in rates),
        contradictions=(*found.contradictions, *new),
    )


class _Ladder:
    """One climb: statements so far, and what is left of the budget."""

    def __init__(
        self,
        subject: Subject,
        evaluator: Evaluator,
        options: CertifyOptions,
        name: str,
        stop: Callable[[], bool],
        watch: Progress,
    ):
        self.subject, self.evaluator, self.options, self.name = subject, evaluator, options, name
        self.stop, self.watch = stop, watch
        self.rows = subject.table.codes
        self.end = time.perf_counter() + options.seconds
        self.found: list[Statement] = []
        self.notes: list[str] = []
        self.rates: list[RateStatement] = []
        self.decides = not evaluator.schema.regression
        self.asker = exact.Asker(evaluator)
        self.limit = round(2**evaluator.bits_limit)  # the most classes that anybody can have, whatever the model is
        self.batch = 1024
        self.sampled_pace = 0.0  # people a second, as the sample of the domain had it
        self.near = -1  # everybody within so many changes of a real row was asked

    @property
    def left(self) -> float:
        return max(0.0, self.end - time.perf_counter())

    def climb(self) -> Certificate:
        if self.options.rates:
            self._attempt(self._rates)
        model, size = self.evaluator.model, exact.domain_size(self.evaluator.schema)
        if self._settled(size):
            return self._done()
        pace = exact.people_per_second(self.asker, self.rows)
        if self._whole_domain(size, pace):
            return self._done()
        if not self.subject.table.drawn:
            self._attempt(lambda: self._near(pace, NEAR * self.options.seconds))
        self._sampled(SAMPLE * self.options.seconds)
        # The sample has shown how quick the model really is: perhaps everybody fits the budget after all.
        if self._whole_domain(size, self.sampled_pace):
            return self._done()
        if not self.options.proofs:
            self.notes.append("proofs over sets of people were left out of so short a budget: see fairbits certify.")
        elif isinstance(model, HasTrees):
            self._attempt(lambda: self._cells(model))
        elif isinstance(model, Network):
            self._attempt(lambda: self._boxes(model))
        else:
            self.notes.append(
                "proofs need the inside of a model (a dense network, or trees); this one gives scores only, so "
                "beyond those asked the statements are statistical."
            )
        return self._done()

    def _settled(self, size: int | None) -> bool:
        """Whether there is nothing to ask or prove: the model is blind, or answers differently every time."""
        native, blind = self.evaluator.native, self.evaluator.blind
        if native and not blind:
            begin = time.perf_counter()
            self.evaluator.evaluate(self.rows[:2])  # compiles, which is no part of the budget
            self.end += time.perf_counter() - begin
        # What a model remembers of its answers is not asked again.
        evenly = np.unique(np.linspace(0, max(len(self.rows) - 1, 0), ASKED_TWICE).astype(np.int64))
        if not native and answers_vary(self.evaluator.model, self.evaluator.encoding.encode(self.rows[evenly])):
            self.notes.append("the model answers the same question differently, so nothing can be proved about it.")
            self._sampled(self.left)
            return True
        if blind:
            self._blind(size)
        return blind

    def _done(self) -> Certificate:
        order = {"exact": 0, "proved": 1, "statistical": 2}
        ranked = sorted(self.found, key=lambda one: (order[one.kind], one.property))
        statements = tuple(replace(one, model=self.name) for one in ranked)
        unsettled = max((one for one in statements if one.kind == "proved"), key=lambda one: one.open, default=None)
        if unsettled is not None and unsettled.open and not self.left and not self.stop():
            self.notes.append(
                f"the budget of {self.options.seconds:g} s ended with {unsettled.open:,} of {unsettled.people:,} "
                f"people open; what is certified and falsified holds, and a longer budget settles more."
            )
        return checked(Certificate(statements, tuple(self.notes), self.stop(), tuple(self.rates)))

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (CapabilityError, SchemaError) as error:  # of a schema: an attribute with too many values to list
            self.notes.append(str(error))

    def _add(
        self,
        kind: Kind,
        property_: Property,
        whom: Population,
        counts: tuple[int, int, int],
        seconds: float,
        reason: str,
        *,
        k: int | None = None,
        largest: int | None = None,
        confidence: float = 1.0,
        share: float | None = None,
        complete: bool = True,
    ) -> None:
        people = sum(counts)
        if people == 0:
            return
        whom = replace(whom, where=self.subject.where)
        certified, falsified, unknown = counts
        if property_ == "k" and k is not None and k >= self.limit:
            self._note(f"nobody has more than {self.limit} classes, whatever the model is; at most {k} says nothing.")
            return
        if unknown == people:
            self._note(f"after {seconds:.1f} s nothing is certain about {property_} of {whom.words}. {reason}")
            return
        at_most = (falsified + unknown) / people if share is None else share
        bound = at_most if property_ == "flips" else float(k or 0)
        self.found.append(
            Statement(
                *(kind, property_, whom.words, people, certified, falsified, unknown, bound, confidence, seconds),
                share=at_most,
                largest=largest,
                reason=reason,
                complete=complete,
                whom=whom,
                epsilon=self.evaluator.epsilon,
            )
        )

    def _note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)

    def _domain(self, *, count: int | None, **fields: Any) -> Population:
        """Everybody in the domain; what the evaluator's rules and twins leave out is said."""
        schema = self.evaluator.schema
        free = [schema.attributes[i] for i in schema.free_columns]
        return Population(
            kind="domain",
            count=count,
            intervals=tuple((a.name, float(a.low), float(a.upper)) for a in free if is_interval(a)),
            without=_without(self.subject),
            values=exact.protected_values(schema),
            **fields,
        )

    def _blind(self, size: int | None) -> None:
        people = size or 1
        reason = "The model gives the protected attributes no weight, so that all twins of a person score alike."
        # Whatever values twins take, a missing one too: nothing that is protected reaches the model.
        whom = replace(self._domain(count=size, rules=self._ignored), without=(), values=())
        if self.decides:
            self._add("proved", "flips", whom, (people, 0, 0), 0.0, reason)
        self._add("proved", "k", whom, (people, 0, 0), 0.0, reason, k=1, largest=1)

    @property
    def _ignored(self) -> Literal["ignored"] | None:
        """What a proof makes of rules: boxes and cells know none."""
        return "ignored" if self.subject.schema.rules else None

    def _asked(self, asked: exact.Asked, whom: Population, *, drawn: bool = False) -> None:
        """Statements about people who were asked: all of a population, or a random sample of it."""
        reason = "Everybody was asked."
        if drawn:
            reason = f"{asked.people:,} people drawn at random (Clopper and Pearson, one-sided)."
        near = (
            f" For {asked.doubtful:,} of them rounding at the cut-off decides: libraries that add up in another order "
            f"may differ there."
        )
        # Nobody who is known already is said to be rarer than they are.
        known = max([asked.bound, *(one.largest or 1 for one in self.found)]) if drawn else asked.bound
        k = min(known, self.limit - 1) if self.options.k is None else self.options.k
        flips = (asked.people - asked.flips - asked.doubtful, asked.flips, asked.doubtful)
        questions: list[tuple[Property, tuple[int, int, int]]] = [("flips", flips), ("k", asked.counts(k))]
        for property_, counts in questions[0 if self.decides else 1 :]:
            about_k = property_ == "k"
            # Whoever rounding decides about may break the property.
            share = rate_bound(asked.people, counts[1] + counts[2], confidence=CONFIDENCE) if drawn else None
            self._add(
                "statistical" if drawn else "exact",
                property_,
                whom if drawn else replace(whom, count=asked.people),
                counts,
                asked.seconds,
                reason if about_k or drawn or not asked.doubtful else reason + near,
                k=k if about_k else None,
                largest=asked.largest if about_k else None,
                confidence=CONFIDENCE if drawn else 1.0,
                share=share,
            )

    def _whole_domain(self, size: int | None, pace: float) -> bool:
        """Ask everybody, where that fits the budget; whether it was done."""
        self.batch = int(np.clip(ROUND * pace, 16, exact.BATCH)) if pace else self.batch
        if size is None or not pace > 0 or size / pace >= WHOLE_SHARE * self.left:
            return False
        self.watch(f"asking all {size:,} people")
        asked = exact.ask(
            exact.Asker(self.evaluator.by_rules),
            exact.everybody(self.evaluator.schema, batch=self.batch),
            seconds=self.left,
            stop=self.stop,
        )
        if not asked.complete:
            self.notes.append(f"asking everybody was ended after {asked.people:,} people, who are not counted here.")
            return False
        self._asked(asked, self._domain(count=asked.people, rules="kept" if self.evaluator.validity.any else None))
        return True

    def _near(self, pace: float, seconds: float, *, draw: bool = True) -> None:
        """People around real rows: asked, where there is time for all of them and it was not done; drawn otherwise."""
        schema, changes = self.evaluator.schema, self.options.changes
        for c in range(changes, self.near, -1):
            # Whoever is like a row but for some attributes has its own protected values, as far as they can be listed.
            own = not c or exact.own_values_listed(schema)
            asker = self.asker if own else exact.Asker(self.evaluator.over_values)
            alike = schema.person_columns if own else schema.free_columns
            rows = self.rows[np.unique(self.rows[:, list(alike)], axis=0, return_index=True)[1]]
            listed = exact.listed_within(schema, rows, c)
            values = exact.protected_values(schema)
            whom = Population(kind="near" if c else "rows", changes=c, values=values)
            if listed is not None and listed <= exact.MAX_LISTED and listed < seconds * pace:
                self.watch(f"asking {whom.words}")
                asked = exact.ask(
                    asker,
                    exact.within(schema, rows, c, batch=self.batch),
                    seconds=min(2 * seconds, self.left),
                    stop=self.stop,
                )
                if asked.complete:
                    self._asked(asked, whom)
                    self.near = c
                    return
            if draw and c == changes and c > 0:
                self._sampled(0.5 * seconds, changes=c)

    def _sampled(self, seconds: float, *, changes: int | None = None) -> None:
        """A random sample of the domain, or of what is around real rows."""
        if changes is None:
            whom = self._domain(count=exact.domain_size(self.evaluator.schema), drawn=True)
        else:
            values = exact.protected_values(self.evaluator.schema)
            whom = Population(kind="near", changes=changes, drawn=True, values=values)
        self.watch(f"drawing from {whom.words}")
        rng = np.random.default_rng([self.options.seed, 0 if changes is None else changes])
        asker = exact.Asker(self.evaluator.by_rules) if changes is None else self.asker
        batch = min(self.batch, exact.DRAWN_BATCH)
        people = exact.drawn(asker.evaluator, self.rows, rng, changes=changes, batch=batch)
        asked = exact.ask(asker, people, seconds=min(seconds, self.left), stop=self.stop)
        if not asked.people:
            self.notes.append(f"the budget left no time to draw from {whom.words}.")
            return
        if changes is None:
            self.sampled_pace = asked.people / max(asked.seconds, 1e-6)
        self._asked(asked, whom, drawn=True)

    def _bare(self) -> Evaluator:
        """Asks about everybody in the domain, whatever the rules say: boxes know no rules."""
        evaluator = self.evaluator
        schema = replace(evaluator.schema, rules=())
        return Evaluator(
            evaluator.model, schema, evaluator.encoding, epsilon=evaluator.epsilon, threads=evaluator.threads, own=False
        )

    def _cells(self, trees: HasTrees) -> None:
        evaluator = self._bare()
        whom = self._domain(count=None, rules=self._ignored)
        about_trees = (evaluator.schema, evaluator.encoding, evaluator.twins)
        lead = len(evaluator.schema.classes) > 2
        if lead and evaluator.by_vector:
            raise CapabilityError("cells compare the favourable class alone, but this subject those of all classes.")
        begin = time.perf_counter()
        boxes = tree_boxes(trees, *about_trees, scored=not lead)
        prove_cells(boxes, evaluator, seconds=1.0, max_boxes=1)  # compiles, which is no part of the budget
        self.end += time.perf_counter() - begin
        whom = replace(whom, count=None if whom.intervals else boxes.people)
        reason = "Only the trees' thresholds matter: bounds over boxes between them, single cells asked."
        k = self.options.k
        # Whoever was asked or drawn is somebody of the domain; a real value between the steps is not, nor a gap.
        countable = exact.domain_size(self.evaluator.schema) is not None and not self.evaluator.validity.any
        inside = countable and self.evaluator.twins.most == self.evaluator.twins.m and not _without(self.subject)
        known = max([one.largest or 1 for one in self.found], default=1) if inside else 1
        questions = (("flips", 0.5),) if self.decides else ()
        for about, part in (*questions, ("largest" if k is None else "k", 1.0)):
            self.watch(f"{about if about == 'flips' else 'k'} over cells of the trees")
            begin, end = time.perf_counter(), time.perf_counter() + part * self.left
            if about != "flips" and lead:
                boxes = tree_boxes(trees, *about_trees)
            seconds = end - time.perf_counter()
            found = prove_cells(boxes, evaluator, about=about, k=k, seconds=seconds, stop=self.stop, known=known)
            found = replace(found, k_high=min(found.k_high, self.limit))
            counts, settled = (found.certified, found.falsified, found.open), found.open == 0
            if about == "largest":
                counts, settled = (boxes.people, 0, 0), found.k_high == found.k_low
            if about == "largest" and not settled:
                self.notes.append(
                    f"the largest k of the domain lies between {found.k_low} (somebody has it) and {found.k_high} "
                    f"(nobody exceeds it)."
                )
            self._add(
                "exact" if settled else "proved",
                "flips" if about == "flips" else "k",
                whom,
                counts,
                time.perf_counter() - begin,
                reason,
                k=found.k_high if about == "largest" else k,
                largest=None if about == "flips" else found.k_low,
                complete=settled,
            )
            if about == "flips" and found.open == boxes.people and not self.subject.table.drawn:
                # Of so many trees bounds say nothing: most of what is left goes to people around real rows.
                self._near(self.sampled_pace, REST * self.left, draw=False)

    def _rates(self) -> None:
        """Guaranteed rates of groups, one protected attribute after the other."""
        evaluator, network = self.evaluator, self.evaluator.model
        if not self.decides or not isinstance(network, Network):
            raise CapabilityError(
                "guaranteed rates need a dense network that decides; the group figures of the report are measured "
                "on the table's own rows for every model."
            )
        lead = len(evaluator.schema.classes) > 2
        if self.subject.table.drawn:
            raise CapabilityError("guaranteed rates need a table, to which the population is fitted.")
        boxes = self._box_network(network, scored=not lead)
        cuts = margin_cuts(evaluator.threshold, linear=network.head == "linear", lead=lead)
        columns = [int(column) for column in evaluator.twins.columns]
        for column in columns:
            attribute = evaluator.schema.attributes[column]
            self.watch(f"rates by {attribute.name}")
            population = FittedPopulation.of(boxes, evaluator.twins, self.rows, column)
            seconds = self.options.seconds / 3 / len(columns)
            found = group_rates(
                *(boxes, cuts, population, attribute, twin_groups(evaluator.twins, column)),
                seconds=seconds,
                threads=self.options.threads,
                stop=self.stop,
            )
            rng = np.random.default_rng([self.options.seed, column])
            people = [population.draw(boxes, evaluator, group, rng) for group in range(len(found.groups))]
            rule = evaluator.schema.rule
            favoured = [
                rule.favours_row(network.class_scores(evaluator.encoding.encode(some)))
                if lead
                else evaluator.row_scores(some) >= evaluator.threshold
                for some in people
            ]
            groups = zip(found.groups, favoured, strict=True)
            met = tuple(replace(one, drawn=DRAWN, favoured=int(some.sum())) for one, some in groups)
            self.rates.append(replace(found, groups=met))

    def _box_network(self, network: Network, *, scored: bool) -> BoxNetwork:
        """The network as boxes are bounded by it; compiling is no part of the budget."""
        evaluator = self.evaluator
        boxes = box_network(network, evaluator.schema, evaluator.encoding, evaluator.twins, scored=scored)
        begin = time.perf_counter()
        prove(boxes, Question(), seconds=1.0, threads=1, max_boxes=1)
        self.end += time.perf_counter() - begin
        return boxes

    def _boxes(self, network: Network) -> None:
        evaluator, k = self.evaluator, self.options.k
        linear, lead = network.head == "linear", len(evaluator.schema.classes) > 2
        if k is None and not self.decides:
            self.notes.append("a regression decides nothing; give --k to have a number of classes proved.")
        if self.decides:
            below, cut = margin_cuts(evaluator.threshold, linear=linear, lead=lead)
            # Where the most likely class must stay the same, it is asked of every class whether it stays that.
            asked = range(network.classes) if evaluator.by_vector else [network.favourable]
            networks = [self._box_network(network.with_favourable(c), scored=not lead) for c in asked]
            part = 1.0 if k is None or evaluator.by_vector else 0.5
            self._proved(networks, Question(cut=cut, below=below), part * self.left)
        if k is not None and evaluator.by_vector:
            raise CapabilityError("boxes count classes by one score, but this subject compares those of all classes.")
        if k is not None:
            question = Question(k=k, epsilon=evaluator.epsilon, linear=linear, classes=network.classes)
            self._proved([self._box_network(network, scored=True)], question, self.left)

    def _proved(self, networks: list[BoxNetwork], question: Question, seconds: float) -> None:
        """A question about one margin, or about several of which all must stay on their sides."""
        what = "flips" if question.k is None else f"k ≤ {question.k}"

        def on_volumes(now: Volumes) -> None:
            certified, falsified, still = (part / now.people for part in (now.certified, now.falsified, now.open))
            self.watch(
                f"{what}: {percent(certified)} certified, {percent(falsified, 2)} falsified, {percent(still)} open"
            )

        begin = time.perf_counter()
        found = [
            prove(
                *(boxes, question),
                seconds=seconds / len(networks),
                threads=self.options.threads,
                stop=self.stop,
                watch=on_volumes,
                seed=self.options.seed,
            )
            for boxes in networks
        ]
        people = networks[0].people
        # Whoever is certain of each is certain of all, and whoever breaks one breaks all. Who flips is uncertain of two
        # classes at least, the one left and the one taken, and is counted once too often.
        falsified = max(one.falsified for one in found)
        uncertain = sum(people - one.certified for one in found) - (falsified if len(found) > 1 else 0)
        certified = max(0, people - uncertain)
        reason = (
            "Linear bounds over boxes of people (branch and bound), widened by all that rounding can do to the model's "
            "own scores, in whatever order its library adds up."
        )
        if len(found) == 1 and found[0].drawn and found[0].open:
            reason += (
                f" About {100 * found[0].flips_estimate / people:.2g} % of everybody flip, as estimated from "
                f"{found[0].drawn:,} people drawn from open boxes."
            )
        self._add(
            "proved",
            "flips" if question.k is None else "k",
            self._domain(count=people if networks[0].countable else None, rules=self._ignored),
            (certified, falsified, people - certified - falsified),
            time.perf_counter() - begin,
            reason,
            k=question.k,
            complete=not any(one.open for one in found),
        )


def _without(subject: Subject) -> tuple[str, ...]:
    """Whom a domain leaves out: a number that is missing is no value of its range, a protected value no twin lacks."""
    may = subject.schema.attributes
    gone = [a.gap is not None and a.missing != "value" if a.protected else a.missing is not None for a in may]
    return tuple(a.name for a, out in zip(may, gone, strict=True) if out and (a.protected or a.kind != "category"))


def certify_run(
    folder: Path,
    subject: Subject,
    options: CertifyOptions | None = None,
    *,
    stop: Callable[[], bool] = lambda: False,
    watch: Progress = lambda _: None,
) -> Certificate:
    """Certify the model of a run, and the repaired one where there is one; written to certify.json."""
    options = options or CertifyOptions()
    repaired, notes = repaired_model(folder, subject)
    part = options if repaired is None else replace(options, seconds=max(options.seconds / 2, 0.05))
    found = certify_subject(subject, part, stop=stop, watch=watch)
    if repaired is not None:
        after = certify_subject(
            subject, part, model=repaired, name="repaired", stop=stop, watch=lambda words: watch(f"repaired: {words}")
        )
        notes += tuple(f"repaired: {note}" for note in after.notes)
        first = len(found.statements)
        later = (replace(one, claim=None if one.claim is None else one.claim + first) for one in after.contradictions)
        found = replace(
            found,
            statements=(*found.statements, *after.statements),
            stopped=found.stopped or after.stopped,
            contradictions=(*found.contradictions, *later),
        )
    else:
        found = replace(found, statements=(*found.statements, *_by_construction(folder, subject)))
    epsilon = _epsilon_of_run(folder)
    found = checked(replace(found, notes=(*found.notes, *notes)), repair_sightings(folder, epsilon=epsilon))
    asked = {"budget": options.seconds, "changes": options.changes, "k": options.k, "seed": options.seed}
    write_statements(folder, found.statements, made_with=subject.identity.document(), options=asked)
    if found.rates:
        write_json(folder / RATES, [one.document() for one in found.rates])
    return found


def _epsilon_of_run(folder: Path) -> float | None:
    """The ε of the run in a folder, if it is one."""
    try:
        return float(json_of(folder / RUN)["epsilon"])
    except (OSError, OptionError, ValueError, TypeError, KeyError):
        return None


def _chosen_repair(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """repair.json and the repair that it chose; nothing where there is none, or a damaged file that others name."""
    try:
        document = json_of(folder / REPAIR)
        return document, next(one for one in document["repairs"] if one["name"] == document["chosen"])
    except (StopIteration, OptionError, TypeError, KeyError):
        return {}, {}


def repair_sightings(folder: Path, *, epsilon: float | None) -> tuple[Sighting, ...]:
    """Whom a repair and the attack on it have met: the most that the repaired model is known to do."""
    document, chosen = _chosen_repair(folder)
    found: dict[Source, Any] = {"held_out": chosen.get("held_out"), "attack": document.get("attack_after")}

    def most(met: dict[str, Any], name: str) -> float | None:
        known = (met.get(name), met.get(f"{name}_rows"))
        return max((one for one in known if isinstance(one, int | float)), default=None)

    return tuple(
        Sighting(source=source, model="repaired", flips=int((most(met, "id_rate") or 0) > 0), k=k, epsilon=epsilon)
        for source, met in found.items()
        if isinstance(met, dict) and ((k := most(met, "k_max")) is not None or source == "held_out")
    )


def repaired_model(folder: Path, subject: Subject) -> tuple[Model | None, tuple[str, ...]]:
    """The repaired network in a run's folder, scoring the same class."""
    path = folder / REPAIRED
    if not path.is_file():
        return None, ()
    try:
        model = load_model(path)
    except FairbitsError as error:
        return None, (f"the repaired model was left out: {error}",)
    if isinstance(model, Network) and isinstance(subject.model, Network):
        return model.with_favourable(subject.model.favourable), ()
    return None, (f"{REPAIRED} holds no network like the one audited, so it was left out.",)


def _by_construction(folder: Path, subject: Subject) -> tuple[Statement, ...]:
    """What is proved about a repaired model by the way it is made: a guard, or one that drops protected columns."""
    proof = _chosen_repair(folder)[1].get("proof")
    if not isinstance(proof, dict) or not isinstance(proof.get("bound"), int):
        return ()
    size = exact.domain_size(subject.schema)
    whom = Population(kind="domain", count=size)
    made = Statement(
        *("proved", "k", whom.words, size or 1, size or 1, 0, 0, float(proof["bound"]), 1.0, 0.0),
        model="repaired",
        reason=str(proof.get("text")),
        whom=whom,
        epsilon=_epsilon_of_run(folder),
    )
    # Where all twins get one score, no decision depends on a protected value either.
    return (replace(made, property="flips", bound=0.0), made) if proof.get("property") == "flips" else (made,)
