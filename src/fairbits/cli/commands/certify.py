"""`fairbits certify`: what can be proved about a model, and for how many people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from fairbits.cli.grants import granting
from fairbits.cli.options import (
    AsIs,
    Epsilon,
    Json,
    Protected,
    Threads,
    audit_of,
    threads_of,
)
from fairbits.cli.output import print_json
from fairbits.cli.signals import INTERRUPTED, gentle_stop

if TYPE_CHECKING:
    from fairbits.audit import Audit, AuditRun
    from fairbits.certify import Certificate
    from fairbits.domain import GrantOptions
    from fairbits.subject import Subject

_Number = Optional[int]  # noqa: UP045 - typer reads the annotation at run time


@granting
def certify(
    subject: Annotated[
        str, typer.Argument(help="A built-in subject, a subject.toml, or the folder of a run.", show_default=False)
    ],
    budget: Annotated[str, typer.Option(help="About how long in all, e.g. 30s, 5m.")] = "30s",
    changes: Annotated[int, typer.Option(help="How far from real rows the statement about near people goes.")] = 1,
    k: Annotated[_Number, typer.Option("--k", help="Prove at most so many classes.", show_default="largest")] = None,
    rates: Annotated[
        bool, typer.Option("--rates", help="Guaranteed rates of groups too, under a population fitted to the table.")
    ] = False,
    epsilon: Epsilon = None,
    protected: Protected = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample.", min=0)] = 0,
    threads: Threads = 0,
    as_is: AsIs = False,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """What can be said about everybody: exact, proved over sets of people, or statistical.

    Ends with the budget or Ctrl-C; what is certain by then is said. In a run's folder it goes to certify.json.
    """
    from fairbits.search import seconds_of

    options: dict[str, Any] = {"budget": seconds_of(budget), "changes": changes, "k": k, "seed": seed}
    options |= {"epsilon": epsilon, "threads": threads_of(threads), "rates": rates}
    folder = Path(subject)
    run = folder if (folder / "run.json").is_file() else None
    if run is not None:
        from fairbits.audit import AuditRun
        from fairbits.errors import OptionError

        if protected is not None:
            raise OptionError(f"--protected is {protected!r}, but a run has its own; leave it out.")
        door: Audit | AuditRun = AuditRun.open(run, **grants)
    else:
        door = audit_of(subject, protected=protected, as_is=as_is, grants=grants)
    loaded = door.subject
    with _line(shown=not as_json) as progress, gentle_stop() as stop:
        found = door.certify(**options, progress=progress, stop=stop)
    if as_json:
        print_json(document(loaded, found))
    else:
        from fairbits.blocks import Paragraph, Strong, paragraphs
        from fairbits.cli.terminal import show
        from fairbits.report import certificate_blocks

        head = [Paragraph(Strong(f"{loaded.name}: what can be said about everybody"))]
        show([*head, *paragraphs(loaded.lines(), "small"), *certificate_blocks(found)])
    if found.contradictions:
        from fairbits.errors import ContradictionError

        raise ContradictionError(found.contradictions[0].said())
    if found.stopped:
        raise typer.Exit(INTERRUPTED)


def document(subject: Subject, found: Certificate) -> dict[str, Any]:
    """Everything that the terminal shows, as JSON."""
    return {
        "subject": subject.name,
        "identity": subject.identity.id,
        "quality": None if subject.quality is None else subject.quality.figures(),
        "statements": [one.document() for one in found.statements],
        "rates": [one.document() for one in found.rates],
        "notes": list(found.notes),
        "contradictions": [one.document() for one in found.contradictions],
        "stopped": found.stopped,
    }


@contextmanager
def _line(*, shown: bool) -> Iterator[Callable[[str], None]]:
    """One line on stderr that says what is being done; nothing where stderr is no terminal."""
    from fairbits.cli.console import Console

    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield lambda _: None
        return
    with console.status("…") as line:
        yield lambda what: line.update(f"{what} …")
