"""Before an audit: how many rows an interval needs, what a gate would notice, how long it takes, how much is asked.

A gate that holds a rate to a limit fails a model when the lower end of the rate's interval lies above it. How often
that happens to a model that is worse by so much is its power: it follows from the binomial distribution and the
interval itself.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from fairbits.blocks import Block, Paragraph, Strong
from fairbits.domain import Codes
from fairbits.engine import Evaluation
from fairbits.errors import OptionError
from fairbits.language import Chat
from fairbits.measure import Evaluator, evaluator_of, planned_requests, text_model, wilson
from fairbits.models import Endpoint
from fairbits.options import PlanOptions
from fairbits.subject import Subject
from fairbits.text import number, percent

#: People who are asked about to see how fast a model answers, and what rate is to be expected.
_TRIED = 2_000
#: The power at which a change counts as noticed.
POWER = 0.8
_MOST_ROWS = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlan:
    """What to expect of an audit. ``kind`` of ``rate``: "assumed", or "statistical" where some people were asked.

    Attributes
    ----------
    people
        How many people there are.
    rate
        The flip rate that is planned for.
    half_width, wanted, rows_needed
        How far the interval of the rate reaches, how far it may reach, and how many people that takes.
    rise, power, noticed_rise
        A rise above the limit, how often a gate with the limit ``rate`` fails it, and the rise it fails 4 times of 5.
    twins, questions, requests
        Twins of a person, twins that one measurement asks about, and requests that an endpoint gets for it (a language
        model for its words and nulls, too, beyond answers that are kept).
    seconds
        How long a measurement takes here; None where no model was tried.
    """

    people: int
    rate: float
    kind: str
    half_width: float
    wanted: float
    rows_needed: int
    rise: float
    power: float
    noticed_rise: float | None
    twins: int | None = None
    questions: int | None = None
    requests: int | None = None
    seconds: float | None = None

    def blocks(self) -> Iterator[Block]:
        """The plan in sentences."""
        assumed = "assumed" if self.kind == "assumed" else "seen among some of them"
        yield Paragraph(
            Strong(
                f"{number(self.people)} people tell a flip rate of {percent(self.rate)} ({assumed}) to within "
                f"± {_points(self.half_width)}; ± {_points(self.wanted)} take {number(self.rows_needed)} people."
            )
        )
        noticed = (
            "no rise is failed 4 times of 5"
            if self.noticed_rise is None
            else f"a rise of {_points(self.noticed_rise)} is failed 4 times of 5"
        )
        yield Paragraph(
            f"A gate whose limit is that rate fails a model that lies {_points(self.rise)} above it in "
            f"{percent(self.power)} of samples; {noticed}. Changes against a baseline of the same people are noticed "
            f"sooner."
        )
        if self.questions is not None:
            takes = "" if self.seconds is None else f" and takes about {number(max(self.seconds, 0.1), 1)} s here"
            yield Paragraph(
                f"One measurement asks about {number(self.questions)} twins ({number(self.twins)} of each){takes}; "
                f"an audit takes its budget (60 s by default) and what the stage that it ends in needs."
            )
        if self.requests is not None:
            yield Paragraph(f"The endpoint gets about {number(self.requests)} requests for one measurement.")


def _points(share: float) -> str:
    return f"{number(100 * share, 1)} points"


def timed(evaluator: Evaluator, codes: Codes) -> tuple[Evaluation, float]:
    """Figures of some people, and the seconds that each of them took here."""
    began = time.perf_counter()
    found = evaluator.evaluate(codes)
    return found, max((time.perf_counter() - began) / len(codes), 1e-9)


def half_width_of(rate: float, people: int, level: float) -> float:
    """How far the interval of a rate reaches to its longer side."""
    found = wilson(round(rate * people), people, level=level)
    return max(found.high - found.value, found.value - found.low)


def rows_for(rate: float, wanted: float, level: float) -> int:
    """The fewest people who make the interval of a rate as narrow as that: it only narrows."""
    return 1 + bisect_left(range(1, _MOST_ROWS), True, key=lambda n: half_width_of(rate, n, level) <= wanted)


def fewest_failed(limit: float, people: int, level: float) -> int:
    """The fewest flips whose interval lies above the limit wholly: it rises with them."""
    return 1 + bisect_left(range(1, people + 1), True, key=lambda flips: wilson(flips, people, level=level).low > limit)


def noticed_rise(limit: float, people: int, level: float) -> float | None:
    """The least rise, in steps of a thousandth, that is failed four times of five."""
    rises = np.arange(1, math.floor((1 - limit) * 1000) + 1) / 1000
    powers = stats.binom.sf(fewest_failed(limit, people, level) - 1, people, limit + rises)
    found = np.flatnonzero(powers >= POWER)
    return float(rises[found[0]]) if len(found) else None


def plan_audit(options: PlanOptions, subject: Subject | None = None) -> AuditPlan:
    """Plan for a model and its table, or for a number of people alone."""
    if subject is None and options.rows is None:
        raise OptionError("there is nothing to plan for; name a model and table, or say how many --rows there are.")
    people, rate, kind = options.rows or 0, options.rate, "assumed"
    about: dict[str, int | float] = {}
    if subject is not None:
        table = subject.table
        people = people or (len(table) if table.person is None else len(np.unique(table.person)))
        evaluator = evaluator_of(subject)
        rows = options.rows or len(table)
        about = {"twins": evaluator.m_in_table, "questions": rows * evaluator.m_in_table}
        words = text_model(subject)
        if isinstance(subject.model, Endpoint):  # every question may be paid for
            about["requests"] = math.ceil(about["questions"] / subject.model.service.pace.rows)
        elif words is not None and isinstance(words.decider, Chat):
            if options.rows is not None:
                raise OptionError("how much a language model is asked follows from its table; leave --rows out.")
            about["requests"] = planned_requests(subject)[1]
        else:
            order = np.random.default_rng(options.seed).permutation(len(table))
            tried = table.rows(np.sort(order[:_TRIED]))
            evaluator.evaluate(tried.codes[:1])  # what is compiled or opened at first is no part of the rate
            found, each = timed(evaluator, tried.codes)
            about["seconds"] = each * rows
            if rate is None and not subject.schema.regression:
                rate, kind = float(np.mean(found.flips)), "statistical"
    rate = 0.5 if rate is None else rate
    if people < 1 or not 0 <= rate <= 1:
        raise OptionError(f"{people} people at a rate of {rate} cannot be planned for; give 1 or more, and 0 to 1.")
    level = options.confidence
    return AuditPlan(
        people=people,
        rate=rate,
        kind=kind,
        half_width=half_width_of(rate, people, level),
        wanted=options.width,
        rows_needed=rows_for(rate, options.width, level),
        rise=options.rise,
        power=float(stats.binom.sf(fewest_failed(rate, people, level) - 1, people, min(rate + options.rise, 1.0))),
        noticed_rise=noticed_rise(rate, people, level),
        **about,  # type: ignore[arg-type]
    )
