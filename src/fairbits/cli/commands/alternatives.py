"""`fairbits alternatives`: every less discriminatory alternative that is known here, as a log and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from fairbits.cli.options import (
    AsIs,
    Json,
    Out,
    Protected,
    Subject,
    Threads,
    granting,
    named_subject,
    names_of,
    threads_of,
)
from fairbits.cli.output import print_json
from fairbits.cli.render.progress import working

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions

#: Typer reads annotations at run time, and not in the newer spelling.
_Text = Optional[str]  # noqa: UP045
_Path = Optional[Path]  # noqa: UP045
Seed = Annotated[int, typer.Option(help="Same seed, same candidates.", min=0)]
Force = Annotated[bool, typer.Option("--force", help="Replace a run that is in the folder.")]
Evaluations = Annotated[int, typer.Option(help="People that the search before it asks about.", min=1)]


@granting
def alternatives(
    subject: Subject,
    proposals: Annotated[
        _Text,
        typer.Option(help="What to try, by commas: weights, reweigh, … or mitigators.", show_default="everything"),
    ] = None,
    trials: Annotated[int, typer.Option(help="Settings of the model's own training to try; 0 for none.", min=0)] = 20,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out surgery on weights, which takes longest.")] = False,
    run: Annotated[_Path, typer.Option(help="A run of this subject, in place of a new search.", metavar="RUN")] = None,
    evaluations: Evaluations = 20_000,
    protected: Protected = None,
    out: Out = None,
    force: Force = False,
    seed: Seed = 0,
    threads: Threads = 0,
    as_is: AsIs = False,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Less discriminatory alternatives: guard, repairs, mitigators and other settings on one front, filed."""
    names = None if proposals is None else names_of(proposals, "--proposals")
    words = ["alternatives", *([] if names is None else ["--proposals", ",".join(names)])]
    words += ["--trials", str(trials), *(["--quick"] if quick else [])]
    find(
        subject,
        words,
        as_json=as_json,
        as_is=as_is,
        protected=protected,
        grants=grants,
        run=run,
        proposals=names,
        trials=trials,
        quick=quick,
        evaluations=evaluations,
        out=out,
        force=force,
        seed=seed,
        threads=threads_of(threads),
    )


def find(
    subject: str,
    words: list[str],
    *,
    as_json: bool,
    as_is: bool,
    protected: str | None,
    grants: GrantOptions,
    run: Path | None = None,
    **options: Any,
) -> None:
    """Find alternatives and show them.

    Parameters
    ----------
    subject
        Name or file of the subject.
    words
        The command and its own options, for the command that makes it again.
    as_json
        Print JSON.
    as_is
        Accept a model that decides against the labels of its table.
    protected
        Names of protected attributes with commas between them; None keeps the subject's.
    run
        Folder of a run to take cases from.
    **options
        Those of :meth:`~fairbits.Audit.alternatives`.
    """
    import shlex

    from fairbits.audit import Audit
    from fairbits.cli.options import grants_as_words
    from fairbits.cli.render.alternatives import show
    from fairbits.errors import OptionError
    from fairbits.store import Run, subject_of

    if run is not None and (options["out"] is not None or options["force"]):
        raise OptionError("--run writes into the folder of that run; leave --out and --force out.")
    audit = Audit.of(named_subject(subject, protected, grants), as_is=as_is)
    opened = None if run is None else Run.open(run)
    if opened is not None:
        subject_of(opened, audit.subject, **grants)  # refuses a run of another model
    said = ["fairbits", words[0], subject, *words[1:], "--seed", str(options["seed"])]
    said += ["--protected", protected] if protected is not None else []
    said += ["--run", str(run)] if run is not None else ["--evaluations", str(options["evaluations"])]
    said += ["--as-is"] if as_is else []
    with working(shown=not as_json) as watch:
        found = audit.alternatives(
            run=opened, command=shlex.join([*said, *grants_as_words(grants)]), watch=watch, **options
        )
    if as_json:
        print_json({"run": str(found.folder), **found.document()})
    else:
        show(found)
