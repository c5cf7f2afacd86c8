"""The sentences of a report, and how it writes numbers."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.domain import joined, shortened, unsigned_zero
from fairbits.measure import people_headline

if TYPE_CHECKING:
    from fairbits.measure import Noise
    from fairbits.report.record import About, Measured, Searched

DOI = "10.1109/ICSE48619.2023.00136"
CITATION = (
    "Verya Monjezi, Ashutosh Trivedi, Gang Tan, Saeid Tizpaz-Niari: Information-Theoretic Testing and Debugging of "
    "Fairness Defects in Deep Neural Networks. ICSE 2023."
)
_SEARCH = (
    "A search finds what it finds: its largest k is a lower bound, unless it has reached its limit. Only figures "
    "called exact rest on everybody they speak of."
)
LIMITS = (
    "Twins are the same person with other protected values. Some of them may be people who could not exist; the "
    "further a person is from a real row, the likelier that is.",
    _SEARCH,
    "Bits count the direct use of protected attributes. A decision that uses none of them may still use attributes "
    "that stand in for them (proxies).",
    "Scores closer than ε count as the same. A smaller ε gives more classes, a larger one fewer; compare figures only "
    "at the same ε and partition.",
    "Intervals say how much a figure would move with other rows drawn like these. They do not cover a table that "
    "misses some people altogether.",
    "Equal scores for all twins do not make a decision right, lawful or just; they say that these attributes did not "
    "move it.",
)


def limits(about: About) -> tuple[str, ...]:
    """Sentences on what the figures cannot say; those of a model that is blind to protected attributes are exact.

    Parameters
    ----------
    about
        Facts about the subject.

    Returns
    -------
    tuple[str, ...]
        Sentences.
    """
    return tuple(line for line in LIMITS if not (about.blind and line is _SEARCH))


def sentence(about: About, bits: float, noise: Noise | None = None) -> str:
    """The report in one sentence; a second one where the model's answers vary by themselves.

    Parameters
    ----------
    about
        Facts about the subject.
    bits
        Bits of the worst person.
    noise
        How much the model's answers vary, if they do.

    Returns
    -------
    str
        One sentence, or two.
    """
    names = joined([shortened(name, 60) for name in about.protected])
    if not about.protected:
        return "The model takes no protected attribute: direct bits are exactly 0, and nobody has a twin."
    if about.blind:
        return (
            f"This model uses exactly 0 of {about.bits_limit:.2f} bits of {names} directly: by the way it is made, no "
            f"twin can score differently."
        )
    if bits == 0:
        return f"No use of {names} was found: 0.00 of {about.bits_limit:.2f} bits."
    found = f"This model uses up to {bits:.2f} of {about.bits_limit:.2f} bits of {names}."
    if noise is None:
        return found
    return f"{found} Its answers vary: one and the same twin shows up to {noise.null_q_inf_max:.2f} bits."


def people_sentence(about: About, measured: Measured) -> str:
    """What happens to people, in one sentence: how many of them would be decided otherwise as somebody else.

    Parameters
    ----------
    about
        Facts about the subject.
    measured
        Figures of the rows.

    Returns
    -------
    str
        The sentence.
    """
    return people_headline(
        about.protected,
        measured.rows,
        measured.split_rate,
        measured.flip_rate,
        epsilon=about.epsilon,
        complete=measured.complete,
    )


def people_kind(about: About, measured: Measured) -> str:
    """What kind of figure the first sentence gives.

    Parameters
    ----------
    about
        Facts about the subject.
    measured
        Figures of the rows.

    Returns
    -------
    str
        Kind of the figure.
    """
    if about.blind:
        return "proved"
    return "exact" if measured.complete and measured.noise is None else "statistical"


def examined(about: About, measured: Measured, searched: Searched) -> tuple[str, ...]:
    """Sentences on what the figures rest on.

    Parameters
    ----------
    about
        Facts about the subject.
    measured
        Figures of the rows.
    searched
        Facts about the search.

    Returns
    -------
    tuple[str, ...]
        Sentences.
    """
    sizes = " × ".join(f"{shortened(n, 40)} {s}" for n, s in zip(about.protected, about.sizes, strict=True))
    rows = f"all {measured.rows:,}" if measured.complete else f"{measured.rows:,} of {measured.rows_total:,}"
    twins = (
        f", each under all {about.m:,} combinations of protected values ({sizes})" if about.protected else " as it is"
    )
    found = [f"Examined: {rows} rows of the table{twins}."]
    removed = measured.figures.get("twins_removed")
    if removed:
        found.append(f"Left out: {removed:,} twins of these rows that cannot exist under the rules.")
    figures = searched.figures
    if figures.get("strategy") != "exhaustive":
        asked, seconds = figures.get("evaluations"), figures.get("seconds")
        how = f"strategy {figures['strategy']}, seed {figures['seed']}" + (f", {seconds:.0f} s" if seconds else "")
        within = f" within {figures['within']} changed attributes of a real row" if figures.get("within") else ""
        found.append(f"Searched: {number(asked)} people{within} ({how}); {figures['cases']:,} distinct ones were kept.")
    elif figures.get("exact") and not about.blind:
        found.append(f"Enumerated: {figures['cases']:,} distinct people on or next to the rows of the table.")
    return tuple(found)


def not_examined(about: About, searched: Searched, *, proxies: bool = False) -> tuple[str, ...]:
    """Sentences on what the figures say nothing about.

    Parameters
    ----------
    about
        Facts about the subject.
    searched
        Facts about the search.
    proxies
        Whether it was studied what the score tells through other attributes.

    Returns
    -------
    tuple[str, ...]
        Sentences.
    """
    asked = searched.figures.get("evaluations") or 0
    everybody = "" if math.isinf(about.domain) else f" (the domain has about {power(about.domain)} different people)"
    left = f"Not examined: people that the search did not reach{everybody}"
    if asked >= about.domain or about.blind:
        left = "Not examined: values outside the stated domains"
    stand_ins = "" if proxies else "; attributes that stand in for protected ones"
    return (f"{left}{stand_ins}; whether the labels are right.",)


def search_facts(about: About, searched: Searched) -> list[tuple[str, str]]:
    """Facts about the search as pairs of name and value; a regression has no decision that could flip.

    Parameters
    ----------
    about
        Facts about the subject.
    searched
        Facts about the search.

    Returns
    -------
    list[tuple[str, str]]
        Pairs.
    """
    figures = searched.figures

    def seconds(name: str) -> str:
        return "–" if figures.get(name) is None else f"{figures[name]:.2f} s"

    flips = [
        ("cases whose decision flips", number(figures["id_cases"])),
        ("until the first flip", seconds("seconds_to_first_id")),
        ("until 1,000 flips", seconds("seconds_to_1000_id")),
    ]
    return [
        ("strategy", str(figures.get("strategy"))),
        ("people asked about", number(figures.get("evaluations"))),
        ("scores computed", number(figures.get("queries"))),
        ("distinct cases kept", number(figures["cases"])),
        *([] if about.regression else flips[:1]),
        (
            "mean k where seeds began, ended",
            f"{number(figures.get('k_initial'), 1)}, {number(figures.get('k_final'), 1)}",
        ),
        *([] if about.regression else flips[1:]),
    ]


def commands(
    manifest: Mapping[str, Any], summary: Mapping[str, Any], stages: Mapping[str, Mapping[str, Any] | None]
) -> tuple[str, ...]:
    """Commands that give the same cases and figures: by evaluations, because seconds depend on the machine.

    Parameters
    ----------
    manifest
        Settings of the search.
    summary
        Content of summary.json.
    stages
        Documents of debug and repair, by name.

    Returns
    -------
    tuple[str, ...]
        Commands in order.
    """
    source = manifest.get("source") or manifest["subject"]
    name = shlex.quote(shortened(Path(str(source)).name, 100))
    words = ["fairbits search", name]
    if manifest["strategy"] == "exhaustive":
        words.append("--on-data" if manifest["options"].get("distance") == 0 else "--exhaustive 1")
    else:
        words.append(f"--strategy {manifest['strategy']}")
        words += [f"--option {shlex.quote(f'{key}={_option(value)}')}" for key, value in manifest["options"].items()]
    words += _limits(manifest, summary)
    words.append(f"--seed {manifest['seed']} --epsilon {manifest['epsilon']!r} --partition {manifest['partition']}")
    if manifest.get("measure", "q_inf") != "q_inf":
        words.append(f"--measure {manifest['measure']}")
    if manifest.get("repeats", 1) != 1:
        words.append(f"--repeats {manifest['repeats']}")
    if manifest.get("within") is not None:
        words.append(f"--within {manifest['within']}")
    if manifest.get("min_plausibility") is not None:
        words.append(f"--min-plausibility {manifest['min_plausibility']!r}")
    if manifest.get("as_is"):
        words.append("--as-is")
    if manifest["protected"]:
        words.append(f"--protected {shlex.quote(','.join(shortened(p, 200) for p in manifest['protected']))}")
    words.append("--out again")
    found = [" ".join(words)]
    if manifest.get("own_strategy"):
        found = [
            f"# strategy {manifest['strategy']!r} was an object: search with it from Python, into the folder again"
        ]
    for stage, document in stages.items():
        if document is not None:
            place = f"proxies {name} --out" if stage == "proxies" else stage
            options = _STAGES[stage](document)
            found.append(" ".join([f"fairbits {place} again --seed {document['seed']}", *options]))
    return (*found, "fairbits report again")


def _debug_options(document: Mapping[str, Any]) -> list[str]:
    """As `fairbits debug` takes them; a document of an earlier version knows the samples only."""
    asked = document.get("options") or {}
    found = [f"--samples {asked.get('samples', document['samples'])}"]
    flags = {"--all-layers": asked.get("all_layers"), "--retrain": asked.get("retrain")}
    flags["--no-layers"] = not asked.get("inside", True)
    if document.get("rule", "spread") != "spread":
        found.append(f"--rule {document['rule']}")
    made = (document.get("origin") or {}).get("trainings")
    if made is not None:
        found.append(f"--trainings {made}")
    return found + [name for name, wanted in flags.items() if wanted]


def _repair_options(document: Mapping[str, Any]) -> list[str]:
    """As `fairbits repair` takes them: the attack by people asked, because seconds depend on the machine."""
    asked = document.get("options") or {}
    found = [f"--max-accuracy-loss {document['max_accuracy_loss']!r}"]
    if asked.get("guarantee") is not None:
        found.append(f"--guarantee {asked['guarantee']}")
    if asked.get("choose") is not None:
        found.append(f"--choose {shlex.quote(shortened(str(asked['choose']), 100))}")
    if not asked.get("retrain", True):
        found.append("--no-retrain")
    if asked.get("quick"):
        found.append("--quick")
    if asked.get("also"):
        found.append(f"--also {shlex.quote(','.join(shortened(str(name), 60) for name in asked['also']))}")
    attack = document["attack"]["before"]
    return [*found, f"--attack-budget {0 if attack is None else attack['evaluations']}"]


def _certify_options(document: Mapping[str, Any]) -> list[str]:
    """As `fairbits certify` takes them."""
    asked = document.get("options") or {}
    found = [f"--budget {asked['budget']:g}s"] if asked.get("budget") else []
    found += [f"--changes {asked['changes']}"] if asked.get("changes") is not None else []
    return found + ([f"--k {asked['k']}"] if asked.get("k") is not None else [])


def _proxies_options(document: Mapping[str, Any]) -> list[str]:
    """As `fairbits proxies` takes them."""
    justified = ",".join(shortened(str(name), 200) for name in document.get("justified") or ())
    found = [f"--justified {shlex.quote(justified)}"] if justified else []
    stated = {"by": document.get("by"), "distributed": (document.get("filing") or {}).get("distributed")}
    return found + [f"--{name} {shlex.quote(shortened(str(one), 200))}" for name, one in stated.items() if one]


#: What a stage was asked for, as its command takes it.
_STAGES = {
    "debug": _debug_options,
    "repair": _repair_options,
    "certify": _certify_options,
    "proxies": _proxies_options,
}


def _limits(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    """The budget without its clock: where that ended each task, and into how many the search was cut."""
    limits, ends = manifest["budget"], summary.get("ends")
    found = [f"--{name} {limits[name]}" for name in ("evaluations", "cases", "queries") if limits.get(name) is not None]
    if ends is None and limits.get("ends"):
        ends = limits["ends"]
    cut = manifest.get("shards")
    if cut is not None and (cut > 1 or found):
        found.append(f"--shards {cut}")
    if ends is not None:
        found.append(f"--ends {','.join(map(str, ends))}")
    if manifest.get("batch") is not None:
        found.append(f"--batch {manifest['batch']}")
    return found


def _option(value: Any) -> str:
    """A value as ``--option`` reads it: a word as it is, unless it could be read as something else."""
    if not isinstance(value, str):
        return json.dumps(value)
    try:
        json.loads(value)
    except json.JSONDecodeError:
        return value
    return json.dumps(value)


def budget(limits: Mapping[str, Any]) -> str:
    """A budget in words.

    Parameters
    ----------
    limits
        Limits by name.

    Returns
    -------
    str
        Text.
    """
    units = {"seconds": "s", "evaluations": "people asked", "cases": "cases"}
    parts = [f"{limits[name]:,.15g} {unit}" for name, unit in units.items() if limits.get(name) is not None]
    return "none" if limits.get("seconds") == 1e9 else " or ".join(parts) or "none"


def number(value: float | None, digits: int = 0) -> str:
    """A number with thousands set apart; a dash for None.

    Parameters
    ----------
    value
        The number.
    digits
        Number of decimals.

    Returns
    -------
    str
        Text.
    """
    return "–" if value is None else unsigned_zero(f"{value:,.{digits}f}")


def power(value: float) -> str:
    """A very large number as a power of ten.

    Parameters
    ----------
    value
        The number.

    Returns
    -------
    str
        Text.

    Examples
    --------
    >>> power(1.34e14), power(5400)
    ('1.3 × 10¹⁴', '5,400')
    """
    if value < 1e6:
        return number(value)
    digits, exponent = f"{value:.1e}".split("e+")
    return f"{digits} × 10{str(int(exponent)).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage; a dash for None.

    Parameters
    ----------
    value
        From 0 to 1.
    digits
        Number of decimals.

    Returns
    -------
    str
        Text.
    """
    return "–" if value is None else unsigned_zero(f"{100 * value:.{digits}f} %")


def signed(value: float | None, digits: int = 2) -> str:
    """A number that shows its sign; a dash for None.

    Parameters
    ----------
    value
        The number.
    digits
        Number of decimals.

    Returns
    -------
    str
        Text.
    """
    return "–" if value is None else unsigned_zero(f"{value:+,.{digits}f}").replace("-", "−")


def by_kind(value: float | None, kind: str) -> str:
    """A figure as text, by its kind.

    Parameters
    ----------
    value
        The figure.
    kind
        "share", "whole" or another.

    Returns
    -------
    str
        Text.
    """
    if kind == "share":
        return percent(value)
    return number(value, 0 if kind == "whole" else 2)
