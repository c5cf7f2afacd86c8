"""A model over token ids and its tokenizer's file, in an audit file: an ONNX graph, or a module exported by torch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairbits import Audit
from fairbits.errors import FairbitsError, MissingDependencyError, ModelError
from fairbits.models import ModelOptions, TokenClassifier

onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")

WOMEN, MEN = ["ann", "eve", "mia", "zoe"], ["bob", "leo", "max", "tom"]
WORDS = ["[PAD]", "[UNK]", *WOMEN, *MEN, "asks", "for", "much", "little"]
#: What a word adds to the logit of the second class: men's names and little money help.
WEIGHTS = np.array([0.0, 0.0, *[-1.0] * 4, *[1.0] * 4, 0.0, 0.0, -0.3, 0.3], np.float32)


def write_tokenizer(file: Path, **padding: Any) -> Path:
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]")  # noqa: S106
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if padding:
        made.enable_padding(**padding)
    made.save(str(file))
    return file


def write_graph(file: Path, *, length: int | None = None, mask: bool = True, ends: str = "", fill: float = 0.0) -> Path:
    """The sum of the words' weights, as logits of two classes or behind a softmax; what is filled in adds ``fill``."""
    helper, tensor = onnx.helper, onnx.TensorProto
    weights = WEIGHTS.copy()
    weights[0] = fill
    table = onnx.numpy_helper.from_array(np.stack([-weights, weights], axis=1), "table")
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["words"])]
    size = "length" if length is None else length
    names = ["input_ids", *["attention_mask"] * mask]
    if mask:
        nodes += [
            helper.make_node("Cast", ["attention_mask"], ["there"], to=tensor.FLOAT),
            helper.make_node("Unsqueeze", ["there", "last"], ["wide"]),
            helper.make_node("Mul", ["words", "wide"], ["kept"]),
        ]
    constants = [table, *(onnx.numpy_helper.from_array(np.array([i]), n) for i, n in ((2, "last"), (1, "middle")))]
    nodes.append(helper.make_node("ReduceSum", ["kept" if mask else "words", "middle"], ["sums"], keepdims=0))
    nodes.append(helper.make_node("Softmax" if ends else "Identity", ["sums"], ["logits"]))
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info(name, tensor.INT64, ["texts", size]) for name in names],
        [helper.make_tensor_value_info("logits", tensor.FLOAT, ["texts", 2])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    file.write_bytes(model.SerializeToString())
    return file


def expected(texts: list[str]) -> np.ndarray:
    sums = np.array([sum(WEIGHTS[WORDS.index(word)] for word in text.split()) for text in texts])
    return 1 / (1 + np.exp(-2 * sums))


def audit_file(folder: Path, model: str, *, more: str = "", table: str = "") -> Path:
    (folder / "people.csv").write_text("amount,paid\nmuch,no\nlittle,yes\nmuch,yes\nlittle,no\n")
    write_tokenizer(folder / "tokenizer.json")
    file = folder / "loans.toml"
    file.write_text(
        f'kind = "text"\n[text]\ntemplate = "{{who}} asks for {{amount}}"\n[text.families.names.who.sex]\n'
        f"woman = {WOMEN}\nman = {MEN}\n"
        f'[model]\npath = "{model}"\ntokenizer = "tokenizer.json"\n{more}\n[table]\npath = "people.csv"\n{table}\n'
    )
    return file


TEXTS = ["bob asks for much", "ann", "eve much", "tom asks for little", "zoe asks for much little much"]


@pytest.mark.parametrize("ends", ["", "softmax"])
def test_the_scores_are_those_of_the_graph(ends: str, tmp_path: Path) -> None:
    made = TokenClassifier(write_graph(tmp_path / "m.onnx", ends=ends), write_tokenizer(tmp_path / "tokenizer.json"))
    assert made.classes_ == ("0", "1")
    found = made.predict_proba(TEXTS)
    np.testing.assert_allclose(found[:, 1], expected(TEXTS), atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    assert ("logits" if not ends else "probabilities") in made.notes[0]


@pytest.mark.parametrize("favourable", ["yes", "no", ""])
@pytest.mark.parametrize("last", ["yes", "no"])
def test_score_of_says_whose_the_last_output_is(favourable: str, last: str, tmp_path: Path) -> None:
    write_graph(tmp_path / "m.onnx")
    more = f'score_of = "{last}"\n' + (f'favourable = "{favourable}"' if favourable else "")
    subject = Audit.of(audit_file(tmp_path, "m.onnx", more=more, table='target = "paid"'), as_is=True).subject
    plain = TokenClassifier(tmp_path / "m.onnx", tmp_path / "tokenizer.json")
    for row, score in zip(subject.table.codes[:2], subject.model.scores(subject.table.codes[:2]), strict=True):
        amount = subject.schema["amount"].labels[int(row[0])]
        texts = [f"{name} asks for {amount}" for name in (WOMEN, MEN)[int(row[1])]]
        assert score == pytest.approx(
            plain.predict_proba(texts)[:, int((favourable or "yes") == last)].mean(), abs=1e-6
        )
    assert any(f"outputs are read as {'no, yes' if last == 'yes' else 'yes, no'}" in one for one in subject.notes)


@pytest.mark.parametrize("padding", [{}, {"pad_id": 0}])
def test_no_score_depends_on_who_else_is_asked_about(padding: dict[str, int], tmp_path: Path) -> None:
    """A graph without a mask counts whatever is filled in: so nothing is."""
    graph = write_graph(tmp_path / "m.onnx", mask=False, fill=5.0)
    made = TokenClassifier(graph, write_tokenizer(tmp_path / "tokenizer.json", **padding))
    alone = np.concatenate([made.predict_proba([text]) for text in TEXTS])
    np.testing.assert_allclose(made.predict_proba(TEXTS), alone, atol=1e-7)
    np.testing.assert_allclose(alone[:, 1], expected(TEXTS), atol=1e-6)


def test_a_model_of_one_length_gets_texts_of_that_length(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "m.onnx", length=4)
    made = TokenClassifier(graph, write_tokenizer(tmp_path / "tokenizer.json"))
    cut = [" ".join(text.split()[:4]) for text in TEXTS]
    np.testing.assert_allclose(made.predict_proba(TEXTS)[:, 1], expected(cut), atol=1e-6)


@pytest.mark.parametrize(("favourable", "place"), [("yes", 1), ("no", 0)])
def test_an_audit_file_names_model_and_tokenizer(favourable: str, place: int, tmp_path: Path) -> None:
    write_graph(tmp_path / "m.onnx")
    file = audit_file(tmp_path, "m.onnx", more=f'favourable = "{favourable}"', table='target = "paid"')
    audit = Audit.of(file)
    assert any("outputs are read as no, yes" in note for note in audit.subject.notes)
    names = [WOMEN, MEN]
    rows = audit.subject.table.codes
    amounts = audit.subject.schema["amount"].labels
    for row, score in zip(rows, audit.subject.model.scores(rows), strict=True):
        texts = [f"{name} asks for {amounts[int(row[0])]}" for name in names[int(row[1])]]
        share = expected(texts).mean()
        assert score == pytest.approx(share if place else 1 - share, abs=1e-6)
    summary = audit.measure().summary()
    assert summary["flip_rate"] == 1.0
    assert summary["k_max"] == 2


def test_an_exported_module_takes_a_grant(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Classifier(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = torch.nn.Embedding.from_pretrained(torch.tensor(np.stack([-WEIGHTS, WEIGHTS], axis=1)))

        def forward(self, input_ids: Any) -> Any:
            return self.words(input_ids).sum(dim=1)

    dynamic = torch.export.Dim.DYNAMIC
    program = torch.export.export(
        Classifier().eval(), (torch.zeros(2, 3, dtype=torch.int64),), dynamic_shapes=({0: dynamic, 1: dynamic},)
    )
    torch.export.save(program, str(tmp_path / "m.pt2"))
    file = audit_file(tmp_path, "m.pt2")
    with pytest.raises(ModelError, match="trust_pickle"):
        Audit.of(file)
    assert Audit.of(file, trust_pickle=True).measure().summary()["flip_rate"] == 1.0
    made = TokenClassifier(
        tmp_path / "m.pt2", tmp_path / "tokenizer.json", options=ModelOptions(trust_pickle=True, output="logit")
    )
    np.testing.assert_allclose(made.predict_proba(TEXTS)[:, 1], expected(TEXTS), atol=1e-6)


def test_what_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, graph = write_tokenizer(tmp_path / "tokenizer.json"), write_graph(tmp_path / "m.onnx")
    (tmp_path / "other.json").write_text('{"model": {"type": "Nonsense"}}')
    proto = onnx.load(str(graph))
    proto.graph.input[1].name = proto.graph.node[1].input[0] = "segments"
    (tmp_path / "odd.onnx").write_bytes(proto.SerializeToString())
    for path, tokenizer, said in (
        (graph, tmp_path / "none.json", r"the tokenizer .*none.json' does not exist"),
        (graph, tmp_path / "other.json", r"the tokenizer .*other.json' is not a readable tokenizer.json"),
        (tmp_path / "odd.onnx", words, "takes 'segments', which no tokenizer makes"),
        (words, words, "takes no token ids here; give an .onnx or a .pt2 file"),
    ):
        with pytest.raises(ModelError, match=said):
            TokenClassifier(path, tokenizer)
    with pytest.raises(ModelError, match=r"decides between 2 classes, but 3 are named \(a, b, c\)"):
        TokenClassifier(graph, words, classes=["a", "b", "c"])
    with pytest.raises(FairbitsError, match="favourable is 'maybe'; choose from: 0, 1"):
        Audit.of(audit_file(tmp_path, "m.onnx", more='favourable = "maybe"'))
    with pytest.raises(FairbitsError, match="has an encoder and a tokenizer"):
        Audit.of(audit_file(tmp_path, "m.onnx", more='encoder = "words.skops"'))
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingDependencyError, match="'tokenizers', which is not installed: pip install tok"):
        TokenClassifier(graph, words)
