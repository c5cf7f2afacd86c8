"""The benchmark networks that ship with the package, each with its card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairbits.data.registry import built_in, load_stored
from fairbits.errors import ModelError
from fairbits.models import Network, read_npz, write_npz

if TYPE_CHECKING:
    from fairbits.data.training import Card

NETWORKS = Path(__file__).parent / "networks"


def load_network(name: str, *, folder: Path = NETWORKS) -> Network:
    """The network of a built-in subject."""
    path = folder / f"{name}.npz"
    if not path.exists():
        raise ModelError(f"there is no network for {name!r} in {folder}; make it with `fairbits data train {name}`.")
    return read_npz(path)


def load_card(name: str, *, folder: Path = NETWORKS) -> Card:
    """The card of a built-in network: where it comes from and how good it is."""
    from fairbits.data.training import Card

    return Card.read(folder / f"{name}.json")


def train_built_in(name: str, *, seed: int = 0) -> tuple[Network, Card]:
    """Train the network of a built-in subject anew."""
    from fairbits.data.training import train

    entry, stored = built_in(name), load_stored(name)
    table = stored.table()
    held_out = table.unseen()
    if held_out is None:
        raise ModelError(f"subject {name!r} holds no rows out, so nothing could be said about its network.")
    return train(name, entry.schema, entry.encoding(), table.training(), held_out, origin=stored.origin, seed=seed)


def save_network(network: Network, card: Card, folder: Path) -> Path:
    """Write the network and its card side by side."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{card.subject}.npz"
    write_npz(network, path)
    path.with_suffix(".json").write_text(card.to_json(), encoding="utf-8")
    return path
