"""certify.json of a run: a list of statements, and the models that they are about."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairbits.certify.conflicts import Sighting
from fairbits.certify.exact import domain_size
from fairbits.certify.options import Certificate, CertifyOptions
from fairbits.certify.run import Progress, certify_subject, checked
from fairbits.certify.statement import Population, Statement
from fairbits.errors import FairbitsError, OptionError
from fairbits.models import Model, Network, load_model
from fairbits.store import json_of, plain, write_whole
from fairbits.subject import Subject

FILE, RUN = "certify.json", "run.json"
#: The repaired model, in our own format.
REPAIRED = "repaired.npz"
#: What a repair left in a run's folder, and guaranteed rates of groups.
REPAIR, RATES = "repair.json", "certify_rates.json"


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
    elif (made := _by_construction(folder, subject)) is not None:
        found = replace(found, statements=(*found.statements, *made))
    epsilon = _epsilon_of_run(folder)
    found = checked(replace(found, notes=(*found.notes, *notes)), repair_sightings(folder, epsilon=epsilon))
    asked = {"budget": options.seconds, "changes": options.changes, "k": options.k, "seed": options.seed}
    write_statements(folder, found.statements, made_with=subject.identity.document(), options=asked)
    if found.rates:
        text = json.dumps(plain([one.document() for one in found.rates]), indent=2, ensure_ascii=False, allow_nan=False)
        write_whole(folder / RATES, (text + "\n").encode("utf-8", errors="replace"))
    return found


def _epsilon_of_run(folder: Path) -> float | None:
    """The ε of the run in a folder, if it is one."""
    try:
        return float(json_of(folder / RUN)["epsilon"])
    except (OSError, OptionError, ValueError, TypeError, KeyError):
        return None


def repair_sightings(folder: Path, *, epsilon: float | None) -> tuple[Sighting, ...]:
    """Whom a repair and the attack on it have met: the most that the repaired model is known to do."""
    try:
        document = json_of(folder / REPAIR)
        chosen = next(one for one in document["repairs"] if one["name"] == document["chosen"])
        met, attack = chosen["held_out"], document.get("attack_after") or {}
        rates = [rate for rate in (met.get("id_rate"), met.get("id_rate_rows")) if rate is not None]
        ks = [int(k) for k in (met.get("k_max"), met.get("k_max_rows")) if k is not None]
        seen = [Sighting(source="held_out", flips=int(max(rates, default=0) > 0), k=max(ks, default=None))]
        if attack.get("k_max") is not None:
            flips = int((attack.get("id_rate") or 0) > 0)
            seen.append(Sighting(source="attack", flips=flips, k=int(attack["k_max"])))
    except (StopIteration, OSError, OptionError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return ()  # no repair, none chosen, or a damaged file, which is named by whoever reads it as such
    return tuple(replace(one, model="repaired", epsilon=epsilon) for one in seen)


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
    return None, (f"{REPAIRED} holds no network like the subject's, so it was left out.",)


def _by_construction(folder: Path, subject: Subject) -> tuple[Statement, ...] | None:
    """What is proved about a repaired model by the way it is made: a guard, or one that drops protected columns."""
    path = folder / REPAIR
    if not path.is_file():
        return None
    try:
        found = json_of(path)
        chosen = next(one for one in found["repairs"] if one["name"] == found["chosen"])
        proof = chosen["proof"]
        if proof is None:
            return None
        k_max, flips, text = int(proof["bound"]), str(proof["property"]) == "flips", str(proof["text"])
    except StopIteration:
        return None  # no repair kept the budget
    except (OptionError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None  # a damaged repair.json is named by whoever reads it as such
    size = domain_size(subject.schema)
    people = size or 1
    whom = Population(kind="domain", count=size)
    counts = (people, people, 0, 0, float(k_max), 1.0, 0.0)
    first = Statement("proved", "k", whom.words, *counts, whom=whom, epsilon=_epsilon_of_run(folder))
    made = [replace(first, model="repaired", reason=text)]
    if flips:  # proved too: all twins get one score
        made.insert(0, replace(made[0], property="flips", bound=0.0, largest=None))
    return tuple(made)


def write_statements(
    folder: Path,
    statements: Sequence[Statement],
    *,
    made_with: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Write certify.json, whole."""
    entries = [one.document() for one in statements]
    if entries:  # said once, with the first statement
        more = {"made_with": made_with, "options": options}
        entries[0] |= {name: value for name, value in more.items() if value is not None}
    text = json.dumps(plain(entries), indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(folder / FILE, (text + "\n").encode("utf-8", errors="replace"))


def withdraw_statements(folder: Path, statements: Sequence[Statement]) -> None:
    """Say in certify.json which of its statements are withdrawn."""
    if not any(one.withdrawn for one in statements):
        return
    entries = [
        entry | {"withdrawn": one.withdrawn} for entry, one in zip(json_of(folder / FILE), statements, strict=True)
    ]
    text = json.dumps(plain(entries), indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(folder / FILE, (text + "\n").encode("utf-8", errors="replace"))


def read_statements(folder: Path) -> tuple[Statement, ...]:
    """The statements of a run; none where it was not certified."""
    path = folder / FILE
    if not path.is_file():
        return ()
    try:
        return tuple(Statement.of(document) for document in json_of(path))
    except (OSError, ValueError, RecursionError, TypeError, AttributeError) as error:
        raise OptionError(f"{str(path)!r} is damaged ({error}); delete it, and run fairbits certify again.") from None


def certify_options(folder: Path) -> dict[str, Any] | None:
    """What the statements of a run were asked for with; nothing known ({}) in files of earlier versions."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        entries = json_of(path)
        return dict(entries[0].get("options") or {}) if entries else {}
    except (OSError, ValueError, RecursionError, TypeError, AttributeError, KeyError) as error:
        raise OptionError(f"{str(path)!r} is damaged ({error}); delete it, and run fairbits certify again.") from None
