"""The commands whose figures are kept."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

#: Strategies whose steps are as they were.
STRATEGIES = ("random", "adf", "aequitas", "eidig", "maft", "expga", "sg", "themis")
SUBJECTS = ("heart", "german", "students", "bank")
#: Options that figures depend on.
VARIANTS = {
    "measure heart grid": "--partition grid --epsilon 0.05",
    "measure german sex": "--protected sex",
    "search heart near rows": "--exhaustive 1 --threads 1",
    "search heart plausible": "--strategy random --min-plausibility 20 --evaluations 2000 --seed 3 --threads 1",
    "search heart grft": "--strategy grft --evaluations 5000 --seed 3 --threads 1",
    "search heart shards": "--strategy random --shards 3 --evaluations 2000 --seed 3 --threads 1",
    "search heart grid": "--strategy aequitas --partition grid --evaluations 2000 --seed 5 --threads 1",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A command whose figures are kept.

    Attributes
    ----------
    words
        Words of the command line; ``{name}`` is the folder of another command.
    now
        More words since then, which ask for what the command did then.
    quick
        Whether the tests run it.
    """

    words: tuple[str, ...]
    now: tuple[str, ...] = ()
    quick: bool = True


def commands() -> dict[str, Command]:
    """The commands by name; one that needs the folder of another comes after it.

    Returns
    -------
    dict of str to Command
        Words of the command lines.
    """
    found = {f"measure {name}": Command(("measure", name)) for name in SUBJECTS}
    budget = ("--seed", "3", "--threads", "1", "--evaluations")
    for strategy in STRATEGIES:
        now = ("--option", "crowd=1024") if strategy == "expga" else ()  # which follows the budget today
        found[f"search heart {strategy}"] = Command(("search", "heart", "--strategy", strategy, *budget, "2000"), now)
    found["search german random"] = Command(("search", "german", "--strategy", "random", *budget, "2000"))
    found["search heart near"] = Command(("search", "heart", "--strategy", "random", "--within", "1", *budget, "2000"))
    for name, more in VARIANTS.items():
        found[name] = Command((*name.split()[:2], *more.split()), quick=False)
    found["search heart rows"] = Command(("search", "heart", "--on-data", "--threads", "1"))
    for name, quick in (("heart", True), ("bank", False)):
        # Files of one's own hold no rows out, so that repairs are judged on the rows that they were judged on then.
        found[f"export {name}"] = Command(
            ("data", "export", name, "--codes", "--out", f"{{export {name}}}"), quick=quick
        )
        words = ("search", f"{{export {name}}}/subject.toml", "--strategy", "random", *budget, "400")
        found[f"search {name} files"] = Command(words, quick=quick)
    for name in SUBJECTS[2:]:
        words = ("search", name, "--strategy", "random", *budget, "2000")
        found[f"search {name} random"] = Command(words, quick=False)
    found |= _about("heart files", ("--all-layers", "--samples", "100"), quick=True)
    found |= _about("bank files", ("--all-layers", "--samples", "100"), quick=False)
    for name in SUBJECTS:
        found |= _about(f"{name} random", ("--all-layers", "--samples", "300"), quick=False)
    found |= _about("heart aequitas", (), quick=False)
    default = ("debug", "{search bank random}", "--seed", "1", "--threads", "1", "--all-layers", "--samples", "300")
    found["debug bank default"] = Command(default, ("--trainings", "0"), quick=False)
    drawn = ("init", "{export heart}/table.csv", "--target", "disease", "--protected", "age,sex", "--yes")
    found["init heart"] = Command((*drawn, "--out", "{export heart}/drawn.toml"), quick=False)
    found["data list"] = Command(("data", "list"))
    found["data show"] = Command(("data", "show", "heart"))
    found["paper datasets"] = Command(("paper", "datasets"), quick=False)
    for name in SUBJECTS[:2]:
        skipped = ("audit", name, "--threads", "1", "--seed", "3", "--skip")
        found[f"audit {name}"] = Command((*skipped, "search,repair"), ("certify",), quick=False)
    found["compare heart"] = Command(("compare", "heart", "random,aequitas,expga,sg,themis"))
    return found


def needed(part: str) -> dict[str, Command]:
    """Commands whose name contains this, those whose folders they work on, and those that added to them before."""
    known = commands()
    folders = {name: set(re.findall(r"{(.+?)}", " ".join(each.words))) for name, each in known.items()}
    order = list(known)
    wanted, before = {name for name in known if part in name}, set[str]()
    while wanted != before:
        before = set(wanted)
        for name in before:
            wanted |= folders[name] | {other for other in order[: order.index(name)] if folders[name] & folders[other]}
    return {name: command for name, command in known.items() if name in wanted}


def contest(subject: str, strategies: str) -> str:
    """`fairbits compare … --json` with a budget of evaluations, which the command line has not."""
    from fairbits import Budget, load_subject
    from fairbits.options import CompareOptions
    from fairbits.paper import compare

    terms = CompareOptions(budget=Budget(evaluations=2000), repeats=2, seed=3, threads=1)
    return json.dumps(compare(load_subject(subject), terms, strategies.split(",")).as_dict())


def _about(name: str, debug: tuple[str, ...], *, quick: bool) -> dict[str, Command]:
    """What is done with the cases of a search, one after the other: each adds to the folder of the run."""
    run, threads = f"{{search {name}}}", ("--threads", "1")
    # The layers of today's own rule, and a model trained again, are nothing that there was then.
    paper = ("--rule", "code", "--trainings", "0")
    # A repair that both know, so that the same one is attacked and written.
    repair = ("repair", run, "--no-retrain", "--choose", "shrink-50", "--attack-budget", "0", "--seed", "2", *threads)
    done = {
        "cases": Command(("cases", run, "--top", "10", "--where", "k >= 3 and flips")),
        "debug": Command(("debug", run, "--seed", "1", *threads, *debug), paper),
        "repair": Command(repair),
        "report": Command(("report", run, *threads)),
        "measure repaired": Command(("measure", f"{run}/repaired.toml", "--top", "0", *threads)),
    }
    return {f"{what} {name}": Command(each.words, each.now, quick) for what, each in done.items()}
