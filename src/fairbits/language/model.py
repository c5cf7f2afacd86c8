"""What decides about texts, and such a decider as a model of codes: a person becomes texts, and their scores a mean.

So whatever asks a model about people (measure, search, gate) can ask what decides about their texts: a function, a
network behind an encoder, or a language model (:class:`Chat`), an OpenAI-compatible endpoint that chooses between
stated options. There the score is the probability of the favourable option among all of them: from the
log-probabilities of the first word of the answer, or, where ``answers`` says how many, from so many answers. How much
of the probability the options take at all is kept; below one half the model mostly says something else.

Its answers are kept on disk as they come, one JSON object to a line: a run that was stopped goes on, and one that is
done can be made again without the endpoint. Secrets come from the environment and go to the granted host alone, as for
any endpoint (:mod:`fairbits.models.http`).
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Decoder, Doubles, Schema
from fairbits.errors import ModelError, OptionError, SchemaError, foreign
from fairbits.language.template import Wording, Words
from fairbits.models import (
    DEFAULTS,
    Array,
    BlackBox,
    Client,
    Do,
    Model,
    ModelOptions,
    Network,
    attribute,
    classes_of,
    headers_for,
    read_model,
)
from fairbits.text import percent, shortened

#: Texts whose numbers an encoder need not make again.
REMEMBERED = 100_000


class Decider(Protocol):
    """What decides about texts: the score of the favourable class for each."""

    def scores(self, texts: Sequence[str], *, again: int = 0) -> Doubles:
        """Scores, (n,); ``again`` is 1 where the same texts are asked a second time."""


class FunctionDecider:
    """Any function of texts, or any object with ``predict_proba``, such as a scikit-learn pipeline."""

    def __init__(self, original: Any, *, favourable: str | None = None):
        self.original = original
        asked = attribute(original, "predict_proba")
        self._ask = asked if callable(asked) else original
        if not callable(self._ask):
            raise ModelError(
                f"a {type(original).__name__!r} decides about no texts: it is no function of them and has no "
                f"predict_proba; give a function that makes a score of each text."
            )
        #: Its outputs by name, where it names them.
        self.classes = classes_of(original) if callable(asked) else None
        known = self.classes or ()
        self.place = known.index(favourable) if favourable in known else -1

    def scores(self, texts: Sequence[str], *, again: int = 0) -> Doubles:  # noqa: ARG002 - asked anew every time
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
        options: ModelOptions = DEFAULTS,
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

    def scores(self, texts: Sequence[str], *, again: int = 0) -> Doubles:  # noqa: ARG002 - it always answers the same
        """The network's score of each text."""
        return np.asarray(self.network.scores(self.encoded(texts)), np.float64)

    def activations(self, texts: Sequence[str]) -> tuple[Array, ...]:
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


#: Takes the mean over each row's own texts: of values by text, (texts, …), to those by row, (n, …).
Means = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


def _means(sizes: npt.NDArray[np.int64], back: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Means over the ``sizes`` texts of different rows, and for each row (``back``) that of the one it is like."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.asarray((np.add.reduceat(values, starts, axis=0).T / sizes).T[back])


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
            self._encoded = decider
            self.activations, self.with_interventions = self._activations, self._with_interventions

    def __reduce__(self) -> tuple[Any, ...]:
        return TextModel, (self.decider, self.schema, self.wordings)

    def _activations(self, inputs: npt.ArrayLike) -> tuple[Array, ...]:
        texts, mean = self._texts(np.asarray(inputs, np.float64))
        return tuple(mean(layer).astype(np.float32) for layer in self._encoded.activations(texts))

    def _with_interventions(self, interventions: Sequence[Do]) -> BlackBox:
        held = self._encoded.with_interventions(interventions)
        return TextModel(held, self.schema, self.wordings).read_as(self.reading)

    def encoded(self, codes: Codes) -> tuple[npt.NDArray[np.float32], Means]:
        """What the frozen encoder makes of the texts about people, and what makes their scores one for each person."""
        texts, mean = self._texts(codes)
        return self._encoded.encoded(texts), mean

    def _scores(self, codes: Codes) -> Doubles:
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
        return list(chain.from_iterable(texts)), partial(_means, np.array([*map(len, texts)]), back.ravel())

    def text_of(self, codes: Codes, place: int, realisation: int = 0, wording: Wording | None = None) -> str:
        wording = wording or self.wording
        return wording.formats(self.decoder, codes[None])[0] % wording.words[place][realisation]

    def realised(
        self, wording: Wording, codes: Codes, words: Sequence[Sequence[Words]], *, again: int = 0
    ) -> list[Doubles]:
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


#: Requests between two looks at what may be spent.
CHUNK = 256
#: Bytes of an answer, at most.
MAX_ANSWER = 1_000_000
#: Below this share of probability the options say little about what the model does.
ENOUGH = 0.5
#: Tokens of a text are about its letters divided by this, where the endpoint counts none.
LETTERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """How a language model is asked.

    Parameters
    ----------
    options
        What it chooses between, as it would write them.
    favourable
        The option whose probability is the score; by default the last.
    model
        What the endpoint calls the model.
    system
        What stands before every text, as the system's message.
    answers
        Ask so often, and count; 0 takes log-probabilities.
    temperature
        Of the answers that are counted.
    price
        Of a million tokens that go in, and of a million that come out.
    """

    options: tuple[str, ...]
    favourable: str
    model: str = ""
    system: str = ""
    answers: int = 0
    temperature: float = 1.0
    price: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        words = [option.strip().lower() for option in self.options]
        if len(words) < 2 or not all(words):
            raise SchemaError('[model] options must be a list of at least two words, e.g. ["no", "yes"].')
        if self.favourable not in self.options:
            raise SchemaError(f"[model] favourable is {self.favourable!r}; it must be one of the options.")
        for one in words:
            if sum(other.startswith(one) for other in words) > 1:
                raise SchemaError(f"[model] options has {one!r}, with which another one begins; choose other words.")

    def body(self, text: str) -> dict[str, Any]:
        system = [{"role": "system", "content": self.system}] if self.system else []
        asked: dict[str, Any] = {"model": self.model, "messages": [*system, {"role": "user", "content": text}]}
        if self.answers:
            return {**asked, "max_tokens": 8, "temperature": self.temperature}
        return {**asked, "max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": 20}

    def chosen(self, said: str) -> str | None:
        """The option that an answer, or its first word, begins with or is the beginning of."""
        word = said.strip().strip("\"'*`(").lower()
        for option in self.options if word else ():
            whole = option.strip().lower()
            if whole.startswith(word) or (word.startswith(whole) and not word[len(whole) :][:1].isalnum()):
                return option
        return None


class Chat:
    """A language model behind an address; ``answers`` is the file that its answers are kept in."""

    def __init__(self, url: str, chat: ChatOptions, options: ModelOptions, answers: Path | None = None):
        self.url, self.chat, self.options, self.answers = url.rstrip("/"), chat, options, answers
        self.classes = chat.options
        self._kept = {} if answers is None else _read(answers, options.max_model_bytes)
        self._lock = threading.Lock()
        #: Requests sent from here, and tokens in and out.
        self.requests, self.tokens, self.about = 0, [0, 0], ""
        self._mass: list[float] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return Chat, (self.url, self.chat, self.options, self.answers)

    def scores(self, texts: Sequence[str], *, again: int = 0) -> npt.NDArray[np.float64]:
        """The probability of the favourable option for each text; kept answers are not asked for again."""
        wanted = {text: [self._key(text, number) for number in self._numbers(again)] for text in dict.fromkeys(texts)}
        missing = [(key, text) for text, keys in wanted.items() for key in keys if key not in self._kept]
        if missing:
            self._check_limits(len(missing), missing[0][1])
            self._ask_all(missing)
        found = {text: self._score(keys) for text, keys in wanted.items()}
        silent = [text for text, score in found.items() if score is None]
        if silent:
            kept = "" if self.answers is None else f"; what {str(self.answers)!r} keeps is not asked for again"
            raise ModelError(
                f"the model answered {shortened(self._kept[wanted[silent[0]][0]]['said'], 60)!r} to "
                f"{shortened(silent[0], 120)!r}, where one of {', '.join(map(repr, self.chat.options))} was expected, "
                f"and named no option for {len(silent):,} of {len(found):,} texts; say in the template what to answer "
                f"with, or leave their rows out of the table{kept}."
            )
        return np.array([found[text] for text in texts])

    def missing(self, texts: Sequence[str], *, again: int = 0) -> int:
        """How many requests asking about texts takes, beyond the answers that are kept."""
        keys = {self._key(text, number) for text in set(texts) for number in self._numbers(again)}
        return len(keys - self._kept.keys())

    def _numbers(self, again: int) -> range:
        """Which of a text's answers are meant: the first ones, or as many more."""
        repeats = max(1, self.chat.answers)
        return range(again * repeats, (again + 1) * repeats)

    def notes(self) -> tuple[str, ...]:
        """What was asked for, what it cost, and how much of the probability the options take."""
        cost = "" if self.cost is None else f", {self.cost:.4f} in the currency of its price"
        found = [
            f"{self.requests:,} requests were answered by {self.url}, {self.about}{sum(self.tokens):,} tokens{cost}."
        ]
        if self._mass:
            mass = float(np.mean(self._mass))
            words = f"the options {', '.join(map(repr, self.chat.options))} take {percent(mass, 0)} of the probability"
            warning = "; below half of it, scores say little about what the model does: name what it answers"
            found.append(f"{words}{warning if mass < ENOUGH else ''}.")
        return tuple(found)

    @property
    def cost(self) -> float | None:
        """What the requests have cost, where the price is known."""
        price = self.chat.price
        return None if price is None else (self.tokens[0] * price[0] + self.tokens[1] * price[1]) / 1e6

    def _key(self, text: str, number: int) -> str:
        asked = json.dumps([self.url, self.chat.body(text), number], sort_keys=True)
        return hashlib.sha256(asked.encode()).hexdigest()[:32]

    def _check_limits(self, count: int, text: str) -> None:
        limit, left = self.options, self.options.max_requests - self.requests
        if count > left:
            raise OptionError(
                f"{count:,} more requests are needed, and {max(left, 0):,} of {limit.max_requests:,} are left; raise "
                f"--max-requests, or ask about fewer people: what was answered is kept."
            )
        if limit.max_cost is None:
            return
        if self.chat.price is None:
            raise OptionError("--max-cost needs the price of a million tokens; write price = [in, out] under [model].")
        each = [one / self.requests for one in self.tokens] if self.requests else self._guessed(text)
        more = count * (each[0] * self.chat.price[0] + each[1] * self.chat.price[1]) / 1e6
        if (self.cost or 0.0) + more > limit.max_cost:
            raise OptionError(
                f"{count:,} more requests would cost about {more:.4f}, and {self.cost or 0.0:.4f} of "
                f"{limit.max_cost:g} are spent; raise --max-cost: what was answered is kept."
            )

    def _ask_all(self, missing: Sequence[tuple[str, str]]) -> None:
        headers, name = headers_for(self.url, self.options), self.options.credential_header
        if name == "Authorization" and name in headers and " " not in headers[name]:
            headers[name] = f"Bearer {headers[name]}"
        client = Client(f"{self.url}/chat/completions", self.options, headers)
        try:
            for start in range(0, len(missing), CHUNK):
                self._check_limits(len(missing) - start, missing[start][1])
                self._ask(client, missing[start : start + CHUNK])
        finally:
            client.close()

    def _ask(self, client: Client, missing: Sequence[tuple[str, str]]) -> None:
        def read(one: slice, content: bytes) -> None:
            (key, text), answer = missing[one.start], self._answer_in(content)
            with self._lock:
                self.requests += 1
                counted = any(answer["tokens"])
                self.about = self.about if counted else "about "
                more = answer["tokens"] if counted else self._guessed(text)
                self.tokens = [mine + one for mine, one in zip(self.tokens, more, strict=True)]
                self._keep(key, answer)

        client.send(
            len(missing),
            lambda one: json.dumps(self.chat.body(missing[one.start][1])).encode(),
            lambda _: MAX_ANSWER,
            read,
        )

    def _guessed(self, text: str) -> list[int]:
        """About how many tokens a request takes, where the endpoint has not counted them."""
        return [(len(self.chat.system) + len(text)) // LETTERS, int(self.chat.body(text)["max_tokens"])]

    def _answer_in(self, content: bytes) -> dict[str, Any]:
        """What is kept of an answer: its first words, the probabilities of options, and tokens."""
        try:
            document = json.loads(content)
            choice = document["choices"][0]
            said = str(choice["message"]["content"] or "")
            used = document.get("usage") or {}
            tokens = [int(used.get(name) or 0) for name in ("prompt_tokens", "completion_tokens")]
            listed = None if self.chat.answers else ((choice.get("logprobs") or {}).get("content") or [{}])[0]
            top = None if not listed else [(str(one["token"]), float(one["logprob"])) for one in listed["top_logprobs"]]
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            start = shortened(content[:240].decode("utf-8", "replace"), 60)
            raise ModelError(
                f"the endpoint {self.url!r} answered {start!r}, which is no chat completion; check that the address "
                f"ends in /v1 and speaks OpenAI's protocol."
            ) from None
        if not top and not self.chat.answers:
            raise ModelError(
                f"the endpoint {self.url!r} gives no log-probabilities; write answers = 20 under [model] to count so "
                f"many answers instead."
            )
        options: dict[str, float] = {}
        for token, logarithm in top or [(said, 0.0)]:  # an answer that is counted is sure of itself
            option = self.chat.chosen(token)
            if option is not None and math.isfinite(logarithm):
                options[option] = options.get(option, 0.0) + math.exp(min(logarithm, 0.0))
        return {"said": said[:200], "options": options, "tokens": tokens}

    def _keep(self, key: str, answer: dict[str, Any]) -> None:
        self._kept[key] = answer
        if self.answers is None:
            return
        try:
            with self.answers.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, **answer}) + "\n")
        except OSError as error:
            raise OptionError(f"answers cannot be kept in {str(self.answers)!r}: {error.strerror or error}.") from None

    def _score(self, keys: Sequence[str]) -> float | None:
        """The probability of the favourable option; None where the answers name none."""
        found = [self._kept[key] for key in keys]
        total: Counter[str] = Counter()
        for answer in found:
            total.update(answer["options"])
        mass = float(sum(total.values()))
        if mass <= 0:
            return None
        self._mass.append(mass / len(found))
        return total.get(self.chat.favourable, 0.0) / mass


def _read(path: Path, limit: int) -> dict[str, Mapping[str, Any]]:
    """The answers that are kept in a file; a line that was cut off is passed over."""
    if not path.is_file():
        return {}
    if path.stat().st_size > limit:
        raise OptionError(f"the answers in {str(path)!r} take more than {limit:,} bytes; raise --max-model-bytes.")
    found: dict[str, Mapping[str, Any]] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            one = json.loads(line)
            options = {str(name): float(mass) for name, mass in one["options"].items()}
            found[str(one["key"])] = {"said": str(one["said"]), "options": options}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
    return found
