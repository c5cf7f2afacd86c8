"""Classifiers of token ids, an ONNX graph or an exported PyTorch module, behind the tokenizer's own file: texts in.

Texts are asked together with others of as many tokens and never filled up beside longer ones, so that no score depends
on who else is asked about. A model of one length gets every text cut and filled to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits import sandbox
from fairbits.errors import ModelError, foreign
from fairbits.models.base import needed
from fairbits.models.black_box import Reading, numbers_in
from fairbits.models.guards import checked_file, options_after_trial
from fairbits.models.onnx import check_sizes, named, session_of, typed
from fairbits.models.options import DEFAULTS, ModelOptions
from fairbits.models.outputs import output_kind_of, read_note

#: What a tokenizer makes of a text, by the names under which models take it.
_PARTS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
#: Texts asked at a time, and texts and words of each on which a model is tried.
_TEXTS, _TRIAL, _WORDS = 128, 64, 8
Run = Callable[[dict[str, npt.NDArray[np.int64]]], Any]


class TokenClassifier:
    """Probabilities of texts, (n, classes), from a file of a model over token ids and a ``tokenizer.json``.

    Parameters
    ----------
    path
        An .onnx file, or a .pt2 file, which takes ``trust_pickle=True``. Its inputs are called input_ids,
        attention_mask and token_type_ids; a single one may have any name.
    tokenizer
        The file that the tokenizers library writes.
    classes
        What its outputs are called, in their order, where it does not name them; by default their numbers.
    options
        How the model is read: ``output`` says whether it puts out probabilities or logits.
    """

    def __init__(
        self,
        path: str | Path,
        tokenizer: str | Path,
        *,
        classes: Sequence[str] | None = None,
        options: ModelOptions = DEFAULTS,
    ):
        file = checked_file(path, options.max_model_bytes)
        words = checked_file(tokenizer, options.max_model_bytes, what="tokenizer")
        self._again = partial(TokenClassifier, path, tokenizer, classes=classes, options=options)
        needed("tokenizers", "text", f"the tokenizer {words.name!r}")
        if file.suffix.lower() not in (".onnx", ".pt2"):
            raise ModelError(f"the model {str(file)!r} takes no token ids here; give an .onnx or a .pt2 file.")
        graph = file.suffix.lower() == ".onnx"
        needs = ("tokenizers", "onnxruntime" if graph else "torch")
        if graph or options.trust_pickle:
            options_after_trial(file, words, options, needs=needs, job="fairbits.models.tokens:first_texts")
        with foreign(f"the model {str(file)!r} cannot be used"):
            names, length, self._run, known = (_of_graph if graph else _of_program)(file, options)
        strange = next((name for name in names if name not in _PARTS), None)
        if strange is not None and len(names) > 1:
            raise ModelError(
                f"the model {str(file)!r} takes {strange!r}, which no tokenizer makes; its inputs can be "
                f"{', '.join(_PARTS)}."
            )
        self._parts = {name: _PARTS.get(name, "ids") for name in names}
        self._tokenizer = _tokenizer(words, length)
        vocabulary = sorted(self._tokenizer.get_vocab())
        found = self._answers([" ".join(vocabulary[i::_TRIAL][:_WORDS]) for i in range(_TRIAL)])
        output = options.output or output_kind_of(found, regression=False)
        self._reading = Reading(logits=output == "logit")
        count = max(2, found.shape[1])
        given = known or classes or tuple(map(str, range(count)))
        if len(given) != count:
            raise ModelError(
                f"the model {str(file)!r} decides between {count} classes, but {len(given)} are named "
                f"({', '.join(given)}); give the column of the table that it predicts."
            )
        self.classes_ = tuple(given)
        self.notes = read_note(output, options)
        if known is None:
            self.notes += (f"the model does not name its classes; its outputs are read as {', '.join(given)}.",)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, ()

    def predict_proba(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """The probability of every class for each text."""
        table = self._reading.table(self._answers(texts))
        return np.hstack([1 - table, table]) if table.shape[1] == 1 else table

    def _answers(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        tokens = self._tokenizer.encode_batch(list(texts))
        lengths = np.array([len(one.ids) for one in tokens], dtype=np.int64)
        found: dict[int, npt.NDArray[np.float64]] = {}
        for length in np.unique(lengths):
            alike = np.flatnonzero(lengths == length)
            for mine in np.split(alike, range(_TEXTS, len(alike), _TEXTS)):
                rows = {
                    name: np.array([getattr(tokens[i], part) for i in mine], dtype=np.int64)
                    for name, part in self._parts.items()
                }
                answer = numbers_in(self._run(rows), len(mine), "the model").reshape(len(mine), -1)
                found |= dict(zip(mine.tolist(), answer, strict=True))
        return np.array([found[i] for i in range(len(tokens))])


def first_texts(given: Any, notify: sandbox.Notify) -> None:
    """In the child process: read model and tokenizer, and ask about some texts."""
    path, tokenizer, options = given
    TokenClassifier(path, tokenizer, options=options)
    notify(loaded=True, called=True)


def _tokenizer(file: Path, length: int | None) -> Any:
    """The tokenizer in a file; texts are filled up only to the one length that a model takes, if it takes one."""
    import tokenizers

    with foreign(f"the tokenizer {str(file)!r} is not a readable tokenizer.json"):
        found = tokenizers.Tokenizer.from_file(str(file))
        padding = found.padding or {}
    if length is not None:
        usual = next((place for place in map(found.token_to_id, ("[PAD]", "<pad>")) if place is not None), 0)
        found.enable_truncation(length)
        found.enable_padding(**{"pad_id": usual, **padding, "length": length})
    elif padding.get("length") is None:
        found.no_padding()
    return found


def _of_graph(file: Path, options: ModelOptions) -> tuple[list[str], int | None, Run, Sequence[str] | None]:
    graph = named(file, options.max_model_bytes)
    check_sizes(graph.model)
    run = session_of(graph, graph.nodes, graph.output)
    lengths = {one.width for one in graph.inputs} - {None}
    return (
        [one.name for one in graph.inputs],
        next(iter(lengths), None),
        lambda rows: run({one.name: typed(rows[one.name], one) for one in graph.inputs}),
        graph.classes,
    )


def _of_program(file: Path, options: ModelOptions) -> tuple[list[str], int | None, Run, None]:
    from fairbits.models.torch import open_program

    torch = needed("torch", "torch", "running an exported program")
    module, shapes = open_program(file, options, "it takes token ids")
    sizes = [shape[1] for shape in shapes.values() if len(shape) > 1 and type(shape[1]) is int]

    def ask(rows: dict[str, npt.NDArray[np.int64]]) -> Any:
        with torch.no_grad():
            return module(*(torch.tensor(rows[name]) for name in shapes)).numpy()

    return list(shapes), next(iter(sizes), None), ask, None
