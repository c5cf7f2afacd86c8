"""The gate: a model, frozen people, a policy and a baseline in; pass, fail or inconclusive out.

Command, pytest plugin and CI action all call :func:`gate`; nothing else gives a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from fairbits._version import __version__
from fairbits.data import load_subject
from fairbits.diff import Answers
from fairbits.domain import GrantOptions
from fairbits.errors import OptionError
from fairbits.gates.judge import Judgement
from fairbits.gates.outputs import FILE, gate_text, write_text
from fairbits.gates.policy import (
    Policy,
    check_current,
    find_policy,
    policy_of,
    read_policy,
    today,
    usual_policy,
)
from fairbits.gates.result import GateResult
from fairbits.gates.suite import (
    BASELINE,
    CASES,
    ROWS,
    SUITE,
    Suite,
    cases_of,
    container_path,
    freeze_run,
    freeze_subject,
    read_baseline,
    read_suite,
    replay,
    with_cases,
    write_baseline,
    write_suite,
)
from fairbits.store import SCORES_RECORD, folder_name, place_of, timestamp
from fairbits.subject import Subject
from fairbits.text import harmless, shortened

#: Suites, baselines and verdicts lie below this folder unless somebody says otherwise.
FOLDER = "gate"

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Subjected:
    """What is judged: the subject, the run it was taken from, and the file that a reader should look at."""

    subject: Subject
    run: Path | None
    location: str
    beside: Path | None

    @property
    def folder(self) -> Path:
        """Where its suite and its baseline lie by default."""
        return Path(FOLDER) / folder_name(self.subject.name)


def open_subject(
    given: Subject | str | Path,
    *,
    protected: Iterable[str] | None = None,
    as_is: bool = False,
    **grants: Unpack[GrantOptions],
) -> Subjected:
    """What a gate is about: a loaded subject, a name, a subject.toml, or the folder of a run."""
    run = None
    if isinstance(given, Subject):
        subject, source = given, given.source
    elif any((place_of(given) / record).is_file() for record in ("run.json", SCORES_RECORD)):
        if protected is not None:
            raise OptionError("protected attributes were named, but a run has its own; leave --protected out.")
        from fairbits.store import Run, subject_of  # and with them DuckDB, which a subject in files does not need

        opened = Run.open(given)
        run, subject, as_is = opened.folder, subject_of(opened, **grants), True
        source = opened.manifest.get("source")
    else:
        subject, source = load_subject(str(given), **grants), str(given)
    if protected is not None:
        subject = subject.with_protected(list(protected))
    file = Path(str(source)) if source is not None and str(source).endswith(".toml") else None
    location = "fairbits.toml" if file is None else _shown(file)
    return Subjected(subject.checked(as_is=as_is), run, location, None if file is None else file.parent)


def _shown(file: Path) -> str:
    """A file as a reader of a repository names it: relative to where the command runs, or its name alone."""
    try:
        return file.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        return file.name


def settle_policy(given: Policy | Mapping[str, Any] | str | Path | None, beside: Path | None = None) -> Policy:
    """The policy that is applied: the one given, or the default."""
    if isinstance(given, Policy):
        return given
    if isinstance(given, Mapping):
        return policy_of(given)
    found = find_policy(Path(), beside) if given is None else Path(given)
    return usual_policy() if found is None else read_policy(found)


def gate(
    subject: Subject | str | Path,
    *,
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    suite: Suite | str | Path | None = None,
    baseline: str | Path | None = None,
    out: str | Path | None = None,
    update_baseline: bool = False,
    frozen: bool = False,
    protected: Iterable[str] | None = None,
    as_is: bool = False,
    threads: int | None = None,
    propose: float | str | None = None,
    day: date | None = None,
    progress: Progress | None = None,
    **grants: Unpack[GrantOptions],
) -> GateResult:
    """Judge a model: score frozen people again, hold the figures against a policy and an earlier model.

    Parameters
    ----------
    subject
        A loaded subject, the name of a built-in one, a subject.toml, or the folder of a run.
    policy
        A file, a document such as ``{"checks": {"flip_rate": 0.05}}``, or None for ``fairbits.toml`` here or beside
        the subject; where there is none, "no worse than the baseline".
    suite
        Frozen people; by default those that the policy names, ``gate/NAME/suite.parquet``, or the rows of the table.
    baseline
        An earlier model's answers; by default those that the policy names, or ``gate/NAME/baseline.parquet``. Where
        there are none, this model's answers are written there.
    out
        The folder for gate.json; by default the run's own, or ``gate/NAME``.
    update_baseline
        Take this model's answers as the baseline from now on, after the verdict.
    frozen
        Refuse to go on where the suite or the baseline is missing, and write neither: for pipelines.
    protected, as_is
        As for ``fairbits measure``.
    threads
        None means all cores; the verdict does not depend on it.
    propose
        Search so long, as "10s", for people whom the suite lacks; they are listed and never change the verdict.
    day
        Today, for waivers; by universal time by default.
    progress
        Called with (done, all) people.
    **grants
        What files from outside may do, as for :func:`~fairbits.load_subject`.

    Returns
    -------
    GateResult
        ``verdict``, ``exit_code``, ``checks``, ``new_cases`` and ``document()``, which is written to gate.json.

    Raises
    ------
    FairbitsError
        For a suite of another schema, a baseline of another suite, unknown checks, waivers that nobody signed: misuse.
    """
    if frozen and update_baseline:
        raise OptionError("frozen and update_baseline exclude each other: the one writes nothing, the other writes.")
    seconds = None if propose is None else _seconds(propose)  # before anything is read, judged or written
    about = open_subject(subject, protected=protected, as_is=as_is, **grants)
    chosen = settle_policy(policy, about.beside)
    now = day or today()
    max_rows = grants.get("max_rows")
    check_current(chosen.waivers, now)  # before anything is computed
    people, notes = _suite(about, chosen, suite, frozen=frozen, max_rows=max_rows)
    place = container_path(_first(baseline, chosen.baseline, about.folder / BASELINE), BASELINE)
    before = None
    if place.is_file():
        with suppress(OptionError) if update_baseline else nullcontext():  # what is replaced need not be of this suite
            before = read_baseline(place, people, max_rows=max_rows)
    if before is None and frozen:
        raise OptionError(
            f"there is no baseline {str(place)!r}; run the gate once without --frozen, and keep the file."
        )
    answers = replay(about.subject, people, threads=threads, progress=progress)
    found = Judgement(about.subject.schema, people, answers, before, chosen, day=now)
    if before is None or update_baseline:
        write_baseline(place, answers, people, about.subject)
        waiting = f"{', '.join(found.pending)} could not be judged yet, and will be from the next run on."
        new = f"there was no baseline: this model's answers were written to {str(place)!r}."
        old = f"the baseline {str(place)!r} was replaced by this model's answers; the verdict is against the old one."
        notes += (old if before is not None else f"{new} {waiting}" if found.pending else new,)
    notes += _notes(about.subject, people, before, answers)
    idle = [
        f"{one.about} by {one.owner}, {'expired on' if one.has_ended(now) else 'until'} {one.expires.isoformat()}"
        for one in chosen.waivers
        if one not in (*found.waived, *found.expired)
    ]
    if idle:
        notes += (f"waivers that cover nothing now, and can go: {'; '.join(idle[:5])}.",)
    proposed: tuple[Mapping[str, Any], ...] = ()
    folder = Path(out) if out is not None else about.run or about.folder
    if seconds is not None:
        proposed = propose_people(about.subject, people, answers, folder / "proposed", seconds=seconds, threads=threads)
    result = GateResult(
        about.subject.name,
        answers.identity,
        tuple(found.checks),
        tuple(found.findings),
        frozenset(found.new),
        found.waived,
        found.expired,
        chosen.waivers,
        tuple(found.pending),
        people.description(),
        None if before is None else {"file": place.name, "identity": before.identity, "suite": people.id},
        {
            "file": None if chosen.file is None else chosen.file.name,
            "confidence": chosen.confidence,
            "seed": chosen.seed,
        },
        notes,
        timestamp(),
        __version__,
        about.location,
        proposed,
        about.subject.quality,
    )
    write_text(folder / FILE, gate_text(result))
    return result


def _seconds(propose: float | str) -> float:
    """How long to search for people whom the suite lacks."""
    from fairbits.search import Budget, seconds_of

    found = seconds_of(propose) if isinstance(propose, str) else float(propose)
    Budget(seconds=found)  # refuses what is no time to search
    return found


def _first(*places: str | Path | None) -> Path:
    return Path(next(one for one in places if one is not None))


def _suite(
    about: Subjected, policy: Policy, given: Suite | str | Path | None, *, frozen: bool, max_rows: int | None
) -> tuple[Suite, tuple[str, ...]]:
    if isinstance(given, Suite):
        return given, ()
    usual = about.folder / SUITE
    stated = given if given is not None else policy.suite
    if stated is not None or usual.is_file():
        return read_suite(container_path(_first(stated, usual), SUITE), about.subject, max_rows=max_rows), ()
    if frozen:
        raise OptionError(f"there is no suite {str(usual)!r}; make one with `fairbits gate RUN --freeze`, and keep it.")
    if about.subject.scores_only:
        return freeze_subject(about.subject), ()  # the replay says that there is no model
    found = freeze_subject(about.subject, rows=100_000)
    return found, (
        f"no suite is frozen, so the {len(found):,} rows of the table are the people; when the table changes, so do "
        f"they: `fairbits gate --freeze` keeps them.",
    )


def _notes(subject: Subject, suite: Suite, before: Answers | None, answers: Answers) -> tuple[str, ...]:
    rule = answers.rule if before is None or not before.rule else before.rule
    notes = (
        (
            subject.identity.probe.varies,
            "the model's answers vary, so another replay may come to another verdict; see --repeats.",
        ),
        (
            not (suite.origin == 0).any(),
            "the suite has no rows of a table: rates and means are about cases that a search chose.",
        ),
        (subject.name != suite.subject, f"the suite was frozen for a model and table called {suite.subject!r}."),
        (before is not None and before.identity == answers.identity, "the baseline is of this very model."),
        (
            rule != answers.rule,
            f"the baseline decides by another rule ({shortened(rule, 160)} there, "
            f"{shortened(answers.rule, 160)} here); changes of flips and rates are due to both, model and rule.",
        ),
        (
            not subject.schema.protected_columns,
            "the model takes no protected column, so nobody has a twin: flips and bits are 0 whatever it does; check "
            "indirect_bits and impact_ratio instead.",
        ),
    )
    return tuple(words for holds, words in notes if holds)


def freeze(
    given: Subject | str | Path,
    *,
    out: str | Path | None = None,
    add: str | Path | None = None,
    rows: int | None = None,
    cases: int | None = None,
    seed: int | None = None,
    force: bool = False,
    **grants: Unpack[GrantOptions],
) -> tuple[Suite, Path]:
    """Freeze people from a run, or the rows of a subject's table, as a suite."""
    from fairbits.store import Run

    about = open_subject(given, as_is=True, **grants)
    path = container_path(_first(out, add, about.folder / SUITE), SUITE)
    if path.exists() and not force and add is None:
        raise OptionError(f"the suite {str(path)!r} exists; choose another --out, or replace it with --force.")
    if add is not None and about.run is None:
        raise OptionError("people can be added from a run only; give the folder that a search wrote.")
    most, top = ROWS if rows is None else rows, CASES if cases is None else cases
    if about.run is None:
        found = freeze_subject(about.subject, rows=most, seed=seed or 0)
    elif add is None:
        found = freeze_run(Run.open(about.run), about.subject, rows=most, cases=top, seed=seed)
    else:
        suite = read_suite(container_path(add, SUITE), about.subject, max_rows=grants.get("max_rows"))
        found = replace(
            with_cases(suite, *cases_of(Run.open(about.run), about.subject, top=top)),
            source=f"{suite.source} and run {about.run.name}"[:400],
        )
    write_suite(found, path)
    return found, path


#: How many of the worst cases are looked at, and how many are listed.
LOOKED_AT, LISTED = 1000, 10


def propose_people(
    subject: Subject,
    suite: Suite,
    answers: Answers,
    folder: Path,
    *,
    seconds: float,
    threads: int | None = None,
) -> tuple[Mapping[str, Any], ...]:
    """Search for people who are worse off than anybody frozen; the verdict is not asked."""
    from fairbits.scale import search
    from fairbits.search import Budget, Settings

    settings = Settings(
        budget=Budget(seconds=seconds),
        seed=suite.seed,
        epsilon=suite.epsilon,
        partition=suite.partition,
        threads=threads,
    )
    schema = subject.schema
    columns = list(subject.schema.person_columns)
    found = []
    known = {row.tobytes() for row in np.ascontiguousarray(suite.table.codes[:, columns])}
    for case in search(subject, settings, folder, force=True).worst(LOOKED_AT):
        own = [schema.attributes[i].code_of(case.attributes[schema.names[i]]) for i in columns]
        if case.k > answers.k.max() and np.asarray(own, dtype=np.float64).tobytes() not in known:
            person = {harmless(name): harmless(value) for name, value in case.attributes.items()}
            found.append({"k": case.k, "flips": case.flips, "changed": case.changed, "attributes": person})
    return tuple(found[:LISTED])
