"""The benchmark networks that ship: the paper's shape, trained by one seeded command, with a card that says how.

The paper trains 64-32-16-8-4-2, ReLU, softmax with Adam (learning rate 0.01, batches of 128) for 1000 epochs. So do we,
but for at most 100 epochs or 20,000 updates (more only over-fits the small tables and takes hours on the large ones),
and on standardised inputs. The scaling is folded into the first layer afterwards: the network takes the plain codes.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairbits._version import __version__
from fairbits.data.registry import built_in, load_stored
from fairbits.domain import Encoding, Schema, Table
from fairbits.errors import FairbitsError, ModelError, TableError
from fairbits.models import Activation, Network, read_npz, write_npz
from fairbits.subject import balanced_accuracy

NETWORKS = Path(__file__).parent / "networks"


def load_network(name: str, *, folder: Path = NETWORKS) -> Network:
    """The network of a built-in subject."""
    path = folder / f"{name}.npz"
    if not path.exists():
        raise ModelError(f"there is no network for {name!r} in {folder}; make it with `fairbits data train {name}`.")
    return read_npz(path)


def load_card(name: str, *, folder: Path = NETWORKS) -> Card:
    """The card of a built-in network: where it comes from and how good it is."""

    return Card.read(folder / f"{name}.json")


def train_built_in(name: str, *, seed: int = 0) -> tuple[Network, Card]:
    """Train the network of a built-in subject anew."""

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


HIDDEN = (64, 32, 16, 8, 4)
BATCH = 128
UPDATES = 20_000
MAX_EPOCHS = 100
LEARNING_RATE = 0.01
#: A network this deep and narrow sometimes dies (every ReLU off); the next seed is tried, at most so often.
ATTEMPTS = 5
#: What scikit-learn calls an activation, and what it is called here.
_NATIVE = {"relu": "relu", "tanh": "tanh", "logistic": "sigmoid", "identity": "identity"}


@dataclass(frozen=True, slots=True)
class Card:
    """What a network is, where it comes from and how good it is."""

    subject: str
    table: str
    rows_trained: int
    rows_held_out: int
    accuracy_trained: float
    accuracy_held_out: float
    balanced_accuracy_held_out: float
    majority_share: float
    shape: list[int]
    epochs: int
    seed: int
    command: str
    version: str
    date: str

    def to_json(self) -> str:
        """As it lies beside the network."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def read(cls, path: Path) -> Card:
        """Read a card that was written by ``to_json``."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def train(
    name: str, schema: Schema, encoding: Encoding, trained: Table, held_out: Table, *, origin: str, seed: int = 0
) -> tuple[Network, Card]:
    """Train a network of the paper's shape."""
    if trained.labels is None or held_out.labels is None:
        raise TableError(f"subject {name!r} has no labels to learn from; name its target.")
    majority = float(np.bincount(trained.labels.astype(np.int64)).max() / len(trained))
    epochs = epochs_for(len(trained))
    for attempt in range(seed, seed + ATTEMPTS):
        network = fit(encoding.encode(trained.codes), trained.labels, epochs=epochs, seed=attempt)
        network = network.with_favourable(schema.favourable_index)
        if _decided_as_labelled(network, encoding, trained).mean() > majority + 0.001:
            break
    else:
        raise FairbitsError(
            f"{ATTEMPTS} networks for {name!r} from seed {seed} on learned nothing beyond the majority class "
            f"({majority:.1%}); try another --seed."
        )
    right = _decided_as_labelled(network, encoding, held_out)
    card = Card(
        subject=name,
        table=origin,
        rows_trained=len(trained),
        rows_held_out=len(held_out),
        accuracy_trained=round(float(_decided_as_labelled(network, encoding, trained).mean()), 4),
        accuracy_held_out=round(float(right.mean()), 4),
        balanced_accuracy_held_out=round(balanced_accuracy(right, held_out.labels), 4),
        majority_share=round(majority, 4),
        shape=[network.inputs, *network.widths],
        epochs=epochs,
        seed=attempt,
        command=f"fairbits data train {name} --seed {seed}",
        version=__version__,
        date=datetime.now(UTC).date().isoformat(),
    )
    return network, card


def epochs_for(rows: int) -> int:
    """How often training passes over a table."""
    return min(MAX_EPOCHS, -(-UPDATES * BATCH // rows))


def fit(
    inputs: npt.NDArray[np.float32],
    labels: npt.NDArray[np.float64],
    *,
    epochs: int,
    seed: int,
    hidden: tuple[int, ...] = HIDDEN,
    activation: str = "relu",
    regression: bool = False,
) -> Network:
    """Train one network, in one thread: the result must not depend on the number of cores."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from threadpoolctl import threadpool_limits

    mean = inputs.mean(axis=0, dtype=np.float64)
    spread = inputs.std(axis=0, dtype=np.float64)
    spread[spread == 0] = 1.0
    centre, unit = (float(labels.mean()), float(labels.std()) or 1.0) if regression else (0.0, 1.0)
    learner = (MLPRegressor if regression else MLPClassifier)(
        activation=activation,
        hidden_layer_sizes=hidden,
        batch_size=min(BATCH, len(inputs)),
        learning_rate_init=LEARNING_RATE,
        max_iter=epochs,
        n_iter_no_change=epochs,
        tol=0.0,
        random_state=seed,
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fixed number of epochs is the plan
        targets = (labels - centre) / unit if regression else labels.astype(np.int64)
        learner.fit(((inputs - mean) / spread).astype(np.float32), targets)
    weights, biases = learner.coefs_, learner.intercepts_
    if regression:
        weights, biases = [*weights[:-1], weights[-1] * unit], [*biases[:-1], biases[-1] * unit + centre]
    return _plain(weights, biases, mean, spread, activation=_NATIVE[activation], regression=regression)


def _plain(
    weights: list[npt.NDArray[np.floating]],
    biases: list[npt.NDArray[np.floating]],
    mean: npt.NDArray[np.float64],
    spread: npt.NDArray[np.float64],
    *,
    activation: str = "relu",
    regression: bool = False,
) -> Network:
    """Fold the scaling into the first layer, and write the single logistic output as a softmax of two."""
    first = weights[0].astype(np.float64) / spread[:, None]
    offset = biases[0] - mean @ first
    w, b = [first, *weights[1:]], [offset, *biases[1:]]
    if regression:
        return Network.build(w, b, activation=Activation(activation), head="linear")
    if w[-1].shape[1] == 1:
        w[-1], b[-1] = np.hstack([-w[-1] / 2, w[-1] / 2]), np.concatenate([-b[-1] / 2, b[-1] / 2])
    return Network.build(w, b, activation=Activation(activation), head="softmax")


def _decided_as_labelled(network: Network, encoding: Encoding, table: Table) -> npt.NDArray[np.bool_]:
    return np.asarray(network.labels(encoding.encode(table.codes)) == table.labels)
