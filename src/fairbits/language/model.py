"""A decider about texts as a model of codes: a person becomes texts, and their scores a mean.

So whatever asks a model about people (measure, search, gate) can ask what decides about their texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Decoder, Schema
from fairbits.errors import ModelError
from fairbits.language.template import Wording, Words
from fairbits.models import (
    Array,
    BlackBox,
    Do,
    Model,
    ModelOptions,
    Network,
    attribute,
    classes_of,
    foreign,
    read_model,
)

#: Texts whose numbers an encoder need not make again.
REMEMBERED = 100_000
Floats = npt.NDArray[np.float64]


class Decider(Protocol):
    """What decides about texts: the score of the favourable class for each."""

    def scores(self, texts: Sequence[str], *, again: int = 0) -> Floats:
        """Scores, (n,); ``again`` is 1 where the same texts are asked a second time."""


class FunctionDecider:
    """Any function of texts, or any object with ``predict_proba``, such as a scikit-learn pipeline."""

    def __init__(self, original: Any, *, favourable: str | None = None):
        self.original = original
        asked = attribute(original, "predict_proba")
        self._ask = asked if callable(asked) else original
        if not callable(self._ask):
            raise ModelError(f"a {type(original).__name__!r} decides about no texts: it is no function of them.")
        #: Its outputs by name, where it names them.
        self.classes = classes_of(original) if callable(asked) else None
        known = self.classes or ()
        self.place = known.index(favourable) if favourable in known else -1

    def scores(self, texts: Sequence[str], *, again: int = 0) -> Floats:  # noqa: ARG002 - asked anew every time
        """The last column of its answers, or that of the favourable class where it names its classes."""
        with foreign(f"the decider failed on {len(texts):,} texts"):
            found = np.asarray(self._ask(list(texts)), dtype=np.float64)
        found = found[:, self.place] if found.ndim == 2 and found.shape[1] > 1 else found.reshape(-1)
        if found.shape != (len(texts),):
            raise ModelError(
                f"the decider was asked about {len(texts):,} texts and answered {found.shape[0]:,} scores; give "
                f"one for each text."
            )
        return found


class EncodedNetwork:
    """A network behind a frozen encoder: its layers can be looked into, and its neurons held.

    ``encode`` makes a row of numbers of each text; what it made is remembered, because a network that is debugged is
    asked about the same texts many times. It is a function, or has ``transform`` as the vectorizers of scikit-learn.
    ``network`` is one of ours, a module of PyTorch or Keras, or a file that holds one, such as ONNX.
    """

    classes = None

    def __init__(
        self,
        encode: Any,
        network: Any,
        seen: dict[str, npt.NDArray[np.float32]] | None = None,
        *,
        options: ModelOptions | None = None,
    ):
        found = network if isinstance(network, Network) else read_model(network, None, options).model
        if not isinstance(found, Network):
            raise ModelError(
                f"a {type(network).__name__!r} is no network of plain layers, so its neurons cannot be held; give a "
                f"function of texts instead, which asks it as a whole."
            )
        transform = attribute(encode, "transform")
        self._encode = transform if callable(transform) else encode
        if not callable(self._encode):
            raise ModelError(f"a {type(encode).__name__!r} encodes no texts: it is no function and has no transform.")
        self.encode, self.network = encode, found
        self._seen = {} if seen is None else seen

    def scores(self, texts: Sequence[str], *, again: int = 0) -> Floats:  # noqa: ARG002 - it always answers the same
        """The network's score of each text."""
        return np.asarray(self.network.scores(self.encoded(texts)), np.float64)

    def activations(self, texts: Sequence[str]) -> tuple[Array, ...]:
        """The outputs of every layer for each text."""
        return self.network.activations(self.encoded(texts))

    def with_interventions(self, interventions: Sequence[Do]) -> EncodedNetwork:
        """The same encoder before a network with some neurons held."""
        return EncodedNetwork(self.encode, self.network.with_interventions(interventions), self._seen)

    def encoded(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The numbers of each text, (n, inputs)."""
        if len(self._seen) > REMEMBERED:
            self._seen.clear()
        new = list(dict.fromkeys(text for text in texts if text not in self._seen))
        if new:
            with foreign(f"the encoder failed on {len(new):,} texts"):
                found = self._encode(new)
                found = np.asarray(found.toarray() if hasattr(found, "toarray") else found, np.float32)
            if found.shape != (len(new), self.network.inputs):
                raise ModelError(
                    f"the encoder made an array of shape {found.shape} of {len(new):,} texts; the network takes "
                    f"{self.network.inputs:,} numbers for each."
                )
            self._seen.update(zip(new, found, strict=True))
        return np.stack([self._seen[text] for text in texts])


@dataclass(frozen=True)
class Means:
    """Takes the mean over each row's own texts, where texts of equal rows are there once."""

    sizes: npt.NDArray[np.int64]
    back: npt.NDArray[np.int64]

    def __call__(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Of values by text, (texts, …), to those by row, (n, …)."""
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        return np.asarray((np.add.reduceat(values, starts, axis=0).T / self.sizes).T[self.back])


class TextModel(BlackBox):
    """A decider about the texts that codes become, in the words of the first of its families.

    A row's score is the mean over the realisations of its combination of protected values. So are the outputs of
    layers, where the decider shows them.
    """

    def __init__(self, decider: Decider, schema: Schema, wordings: Mapping[str, Wording]):
        self.decider, self.schema, self.wordings = decider, schema, wordings
        self.decoder = Decoder(schema)
        self.wording = next(iter(wordings.values()))
        super().__init__(self._scores, len(self.decoder.names), name="the decider", own=True, outputs=1)
        if isinstance(decider, EncodedNetwork):
            self.activations, self.with_interventions = self._activations, self._with_interventions

    def __reduce__(self) -> tuple[Any, ...]:
        return TextModel, (self.decider, self.schema, self.wordings)

    def _activations(self, inputs: npt.ArrayLike) -> tuple[Array, ...]:
        assert isinstance(self.decider, EncodedNetwork)  # noqa: S101 - only then it is offered
        texts, mean = self._texts(np.asarray(inputs, np.float64))
        return tuple(mean(layer).astype(np.float32) for layer in self.decider.activations(texts))

    def _with_interventions(self, interventions: Sequence[Do]) -> BlackBox:
        assert isinstance(self.decider, EncodedNetwork)  # noqa: S101 - only then it is offered
        held = self.decider.with_interventions(interventions)
        return TextModel(held, self.schema, self.wordings).read_as(self.reading)

    def encoded(self, codes: Codes) -> tuple[npt.NDArray[np.float32], Means]:
        """What the frozen encoder makes of the texts about people, and what makes their scores one for each person."""
        assert isinstance(self.decider, EncodedNetwork)  # noqa: S101 - nobody else has an encoder
        texts, mean = self._texts(codes)
        return self.decider.encoded(texts), mean

    def _scores(self, codes: Codes) -> Floats:
        texts, mean = self._texts(codes)
        return mean(self.decider.scores(texts))

    def _texts(self, codes: Codes) -> tuple[list[str], Means]:
        """The texts about people, each once, and what takes the mean over each row's own."""
        rows, back = np.unique(codes, axis=0, return_inverse=True)
        free = rows[:, self.schema.free_columns]
        other = np.concatenate([[True], (free[1:] != free[:-1]).any(axis=1)])  # protected columns are the last
        formats, words = self.wording.formats(self.decoder, rows[other]), self.wording.words
        texts = [
            [formats[person] % one for one in words[place]]
            for person, place in zip(np.cumsum(other) - 1, self.wording.places(self.schema, rows), strict=True)
        ]
        return list(chain.from_iterable(texts)), Means(np.array([len(each) for each in texts]), back.ravel())

    def text_of(self, codes: Codes, place: int, realisation: int = 0, wording: Wording | None = None) -> str:
        """One text about one person."""
        wording = wording or self.wording
        return wording.formats(self.decoder, codes[None])[0] % wording.words[place][realisation]

    def realised(
        self, wording: Wording, codes: Codes, words: Sequence[Sequence[Words]], *, again: int = 0
    ) -> list[Floats]:
        """Scores of people by realisation, (people, realisations), for each list of words; all asked at once."""
        formats = wording.formats(self.decoder, codes)
        texts = [text % one for group in words for text in formats for one in group]
        found = self.decider.scores(texts, again=again)
        ends = np.cumsum([len(formats) * len(group) for group in words])[:-1]
        return [piece.reshape(len(formats), -1) for piece in np.split(found, ends)]


def network_of(model: Model) -> Network | None:
    """The network whose neurons can be held: the model itself, or what stands behind a frozen encoder."""
    if isinstance(model, TextModel) and isinstance(model.decider, EncodedNetwork):
        return model.decider.network
    return model if isinstance(model, Network) else None
