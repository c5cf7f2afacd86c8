"""`fairbits data`: the built-in subjects."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairbits.cli.command import StrictCommand
from fairbits.cli.options import Json
from fairbits.cli.output import print_json

if TYPE_CHECKING:
    from fairbits.data import BuiltIn
    from fairbits.domain import Attribute

data_app = typer.Typer(help="The built-in subjects: list, show, export, add, forget and train.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A built-in subject, see `fairbits data list`.")]
#: What is told of every attribute; a kind that has no such field of its own has a constant.
ATTRIBUTE = (
    *("name", "kind", "low", "high", "step", "labels", "protected", "immutable", "allowed", "missing"),
    *("ranges", "columns", "holds"),
)


@data_app.command("list", cls=StrictCommand)
def list_subjects(as_json: Json = False) -> None:
    """All built-in subjects, and whether their data are on this machine."""
    from fairbits.data import BUILT_IN

    rows = [_overview(entry) for entry in BUILT_IN.values()]
    if as_json:
        print_json(rows)
        return
    from rich import box
    from rich.table import Table

    from fairbits.cli.console import Console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("subject", no_wrap=True)  # it is there to be typed
    for heading in ("rows", "attributes", "twins"):
        table.add_column(heading, justify="right")
    table.add_column("protected")
    table.add_column("data", no_wrap=True)
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['rows']:,}",
            str(row["attributes"]),
            str(row["m"]),
            ", ".join(row["protected"]),
            row["data"],
        )
    Console(highlight=False).print(table)


@data_app.command(cls=StrictCommand)
def show(name: Name, as_json: Json = False) -> None:
    """One subject: what it is about, whose it is, its attributes and its network."""
    from fairbits.data import built_in, load_card

    entry = built_in(name)
    about = _overview(entry) | {
        "title": entry.title,
        "description": entry.description,
        "source": entry.source,
        "licence": entry.licence,
        "target": entry.schema.target,
        "classes": list(entry.schema.classes),
        "scored_class": entry.favourable,
        "attributes": [_attribute(one) for one in entry.schema.attributes],
        "network": asdict(load_card(name)),
    }
    if as_json:
        print_json(about)
    else:
        from fairbits.cli.terminal import show as show_blocks
        from fairbits.report import built_in_blocks

        show_blocks(built_in_blocks(entry, about), f"next  fairbits measure {name}")


@data_app.command(cls=StrictCommand)
def export(
    name: Name,
    out: Annotated[Path, typer.Option(help="The folder to write to.", show_default="./NAME")] = Path(),
    codes: Annotated[bool, typer.Option("--codes", help="Write codes instead of labels.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write into a folder that is not empty.")] = False,
) -> None:
    """Write a subject as files: table.csv, model.npz and the subject.toml that ties them together."""
    from fairbits.data import load_subject
    from fairbits.subject import export_subject

    folder = out if out != Path() else Path(name)
    for path in export_subject(load_subject(name), folder, codes=codes, force=force):
        print(path)


@data_app.command(cls=StrictCommand)
def add(
    name: Annotated[str, typer.Argument(help="compas, diabetes, meps15 or meps16.")],
    file: Annotated[Path, typer.Argument(help="The publisher's file.")],
) -> None:
    """Give fairbits a table that it may not ship; checked, coded and kept in the cache folder."""
    from fairbits.data import add as add_file

    print(f"kept as {add_file(name, file)}")


@data_app.command(cls=StrictCommand)
def forget(name: Annotated[str, typer.Argument(help="A table that was added.")]) -> None:
    """Remove a table that was added."""
    from fairbits.data import forget as forget_table

    print(f"{name} is forgotten" if forget_table(name) else f"{name} was not kept; nothing to do")


@data_app.command(cls=StrictCommand)
def train(
    names: Annotated[list[str], typer.Argument(help="Built-in subjects, or 'all'.", metavar="NAME...")],
    seed: Annotated[int, typer.Option(help="Seed of the first attempt.", min=0)] = 0,
    out: Annotated[Path, typer.Option(help="The folder for NAME.npz and its card NAME.json.")] = Path("networks"),
) -> None:
    """Train the benchmark networks anew: the paper's shape, on the training rows, from a seed."""
    from fairbits.data import BUILT_IN, built_in, save_network, train_built_in

    chosen = list(BUILT_IN) if names == ["all"] else [built_in(name).name for name in names]
    for name in chosen:
        network, card = train_built_in(name, seed=seed)
        path = save_network(network, card, out)
        print(
            f"{path}: accuracy {card.accuracy_trained:.1%} on {card.rows_trained:,} training rows, "
            f"{card.accuracy_held_out:.1%} on {card.rows_held_out:,} held-out rows "
            f"(majority {card.majority_share:.1%})",
            flush=True,
        )


def _overview(entry: BuiltIn) -> dict[str, Any]:
    from fairbits.data import available
    from fairbits.domain import Twins

    where = "in the package" if entry.ships else available(entry.needs) or "not here"
    return {
        "name": entry.name,
        "rows": entry.rows,
        "attributes": len(entry.schema),
        "m": Twins(entry.schema).m,
        "protected": list(entry.schema.protected),
        "data": "generated" if entry.synthetic else where,
    }


def _attribute(attribute: Attribute) -> dict[str, Any]:
    return {field: getattr(attribute, field) for field in ATTRIBUTE}
