"""Cues, templates and texts: what goes in, what comes out, and one sentence for what is wrong."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from fairbits import Audit, Network
from fairbits.blocks import Columns, Page, PagePart, Paragraph, plain
from fairbits.errors import FairbitsError
from fairbits.language import BUILT_IN, EncodedNetwork, marked, read_cues, templates_of_texts
from fairbits.measure import text_model
from fairbits.models import read_model
from fairbits.report import wording_blocks
from fairbits.report.html import render_page
from fairbits.report.markdown import render_markdown_page

Write = Callable[..., Path]
SEX = {"sex": {"woman": ["Ann", "Eve"], "man": ["Bob", "Leo"], "neutral": ["Kim", "Lou"]}}
PEOPLE = pd.DataFrame({"amount": [5, 9, 20], "why": ["a car", "fees", "a 10% share"]})


def counted(texts: list[str]) -> np.ndarray:
    """A decider that likes men, and small amounts."""
    return np.array([0.2 + 0.4 * ("Bob" in text or "Leo" in text) + 0.1 * (" 5 " in text) for text in texts])


def audit(decider: Any = counted, **more: Any) -> Audit:
    given: dict[str, Any] = {"template": "{who} wants {amount} for {why}.", "families": {"names": {"who": SEX}}}
    return Audit.from_texts(decider, PEOPLE, **{**given, **more})


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_cues_have_words_for_every_combination(name: str) -> None:
    family = read_cues(name, Path(), "who")
    sizes = [len(family.values(attribute)) for attribute in family.attributes]
    assert len({cue.values for cue in family.cues}) == np.prod(sizes)
    words = [cue.forms["word"] for cue in family.cues]
    assert len(set(words)) == len(words)
    least = min(sum(cue.values == one for cue in family.cues) for one in {cue.values for cue in family.cues})
    assert least >= 8 or name.startswith("pronouns")
    assert len(family.neutral) == len(family.cues) / len({cue.values for cue in family.cues}) or least >= 8


def test_every_text_is_asked_and_averaged() -> None:
    asked: list[str] = []

    def decide(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return counted(texts)

    found = audit(decide).measure()
    wanted = {f"{n} wants {a} for {w}." for n in ("Ann", "Eve", "Bob", "Leo") for a, w in PEOPLE.to_numpy()}
    assert set(asked) == wanted
    assert found.summary()["k_mean"] == 2
    assert found.summary()["people"] == 3
    assert found.evaluation.high.max() == pytest.approx(0.7)


def test_signs_of_percent_and_braces_stay_as_they_are() -> None:
    made = audit(template="{who}: 50%({amount})s, %s %(x)s {{why}} {why}")
    model = text_model(made.subject)
    assert model is not None
    assert model.text_of(made.subject.table.codes[-1], 0) == "Ann: 50%(20)s, %s %(x)s {why} a 10% share"


def test_forms_and_capitals() -> None:
    made = audit(template="{Who} takes {who.possessive} {amount}.", families={"pronouns": {"who": "pronouns-sex"}})
    model = text_model(made.subject)
    assert model is not None
    assert model.text_of(made.subject.table.codes[0], 0) == "She takes her 5."
    assert model.text_of(made.subject.table.codes[0], 1) == "He takes his 5."


def test_words_say_about_one_attribute_whatever_else_they_say() -> None:
    made = audit(families={"names": {"who": "first-names-sex-race"}}, protected=["race"])
    assert made.subject.schema.protected == ("race",)
    assert made.measure().evaluator.m == 2


def test_a_word_that_says_two_things_is_said_once_about_either(tmp_path: Path) -> None:
    words = [
        ("f", "a", "Kim"),
        ("f", "b", "Kim"),
        ("f", "a", "Ann"),
        ("f", "b", "Eve"),
        ("m", "a", "Bob"),
        ("m", "b", "Leo"),
    ]
    lines = ["sex,race,word", *(",".join(one) for one in words)]
    (tmp_path / "cues.csv").write_text("\n".join(lines))
    family = read_cues("cues.csv", tmp_path, "who").only(["sex"])
    assert [one["word"] for one in family.drawn({"sex": "f"}, 8)] == ["Kim", "Ann", "Eve"]


def test_a_table_that_knows_who_is_what_is_taken_as_it_is() -> None:
    made = Audit.from_texts(
        counted, PEOPLE.assign(sex=["man", "woman", "man"]), template="{who} wants {amount}.",
        families={"names": {"who": SEX}},
    )  # fmt: skip
    assert len(made.subject.table) == 3
    assert made.subject.table.person is None
    assert len(made.measure().worst(9)) == 3


def test_a_column_of_texts() -> None:
    table = pd.DataFrame({"text": ["Bob likes 5 %.", "EVE met Ann.", "Ann met Bob.", "nobody", "Leo left."]})
    made = Audit.from_texts(counted, table, column="text", families={"names": {"word": SEX}})
    assert made.subject.schema.read(made.subject.table.codes[1])["sex"] == "woman"
    assert any("2 of 5 texts are left out" in note for note in made.subject.notes)
    assert made.measure().summary()["flip_rate"] == 1
    model = text_model(made.subject)
    assert model is not None
    assert model.text_of(made.subject.table.codes[0], 0) == "Ann likes 5 %."


def test_a_column_of_texts_with_labels_and_people_held_out() -> None:
    table = pd.DataFrame({
        "text": ["Bob likes 5 %.", "nobody", "EVE met Ann.", "Leo left."], "paid": ["no", "yes", "yes", "no"],
        "sex": ["it is", "not the", "words that", "say so"], "fold": [1, 0, 0, 1],
    })  # fmt: skip
    made = Audit.from_texts(
        counted, table, column="text", families={"names": {"word": SEX}}, target="paid", split="fold"
    )  # fmt: skip
    people = made.subject.table
    assert people.labels is not None
    assert people.held_out is not None
    assert people.labels.tolist() == [0, 1, 0]
    assert people.held_out.tolist() == [True, False, True]
    assert people.numbers.tolist() == [1, 3, 4]
    assert [made.subject.schema.read(row)["sex"] for row in people.codes] == ["man", "woman", "man"]


def test_a_table_says_whose_rows_they_are_and_how_many_they_stand_for() -> None:
    people = pd.DataFrame({"amount": [5, 9, 20, 30], "id": ["a", "b", "a", "c"], "times": [1, 2, 3, 4]})
    given = {"families": {"names": {"who": SEX}}, "person": "id", "weight": "times"}
    made = Audit.from_texts(counted, people, template="{who} wants {amount}.", **given)
    table = made.subject.table
    assert table.person is not None
    assert table.weight is not None
    assert table.person.tolist() == [0, 0, 1, 1, 0, 0, 2, 2]
    assert table.weight.tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert made.words().families[0].people == 3  # their rows are not independent
    texts = people.assign(text=["Ann wants 5.", "Bob wants 9.", "nobody", "Ann wants 30."])
    table = Audit.from_texts(counted, texts, column="text", **given | {"families": {"n": {"word": SEX}}}).subject.table
    assert table.person is not None
    assert table.person.tolist() == [0, 1, 2]


def test_pronouns_in_texts_keep_their_form_and_their_capital() -> None:
    templates, values = templates_of_texts(["He shaves himself."], read_cues("pronouns-sex", Path(), "word"))
    assert values == [("male",)]
    assert templates == ["%(Word)s shaves %(word.reflexive)s."]


def test_a_text_whose_word_stands_for_several_forms_is_left_out() -> None:
    texts = ["She lost her wallet.", "He lost his wallet."]
    assert templates_of_texts(texts, read_cues("pronouns-sex", Path(), "word"))[1] == [None, ("male",)]


def test_accents_match_however_a_file_writes_them() -> None:
    cues = read_cues({"sex": {"woman": ["Ärztin"], "man": ["Arzt"]}}, Path(), "word")
    assert templates_of_texts([unicodedata.normalize("NFD", "Die ÄRZTIN.")], cues) == (["Die %(Word)s."], [("woman",)])


def test_people_of_a_column_are_called_by_what_they_wrote() -> None:
    table = pd.DataFrame({"text": ["Bob likes 5 %.", "Ann left."]})
    made = Audit.from_texts(counted, table, column="text", families={"names": {"word": SEX}})
    assert made.subject.schema["text"].labels == ("1: {Word} likes 5 %.", "2: {Word} left.")


def test_numbers_and_days_are_said_as_people_write_them() -> None:
    people = pd.DataFrame({"amount": [5.0, 9.5], "day": pd.to_datetime(["2024-01-02", "2024-03-01"])})
    made = Audit.from_texts(
        counted, people, template="{who}: {amount}, {day}.", families={"names": {"who": SEX}}
    )  # fmt: skip
    model = text_model(made.subject)
    assert model is not None
    assert [model.text_of(made.subject.table.codes[row], 0) for row in (0, 2)] == [
        "Ann: 5, 2024-01-02.",
        "Ann: 9.5, 2024-03-01.",
    ]


@pytest.mark.parametrize("values", [[5, None, 7], ["a", None, "b"]])
def test_a_gap_cannot_be_said(values: list[Any]) -> None:
    with pytest.raises(FairbitsError, match=r"column 'amount' has no value in 1 of .*first is row 2"):
        Audit.from_texts(
            counted, pd.DataFrame({"amount": values}), template="{who} wants {amount}.", families={"n": {"who": SEX}}
        )


def test_a_file_of_cues_may_begin_with_a_mark_of_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "cues.csv").write_text("sex,word\nwoman,Ann\nman,Bob\n", encoding="utf-8-sig")
    (tmp_path / "cues.toml").write_text('[sex]\nwoman = ["Ann"]\nman = ["Bob"]\n', encoding="utf-8-sig")
    for name in ("cues.csv", "cues.toml"):
        assert read_cues(name, tmp_path, "who").attributes == ("sex",)


def test_a_text_whose_word_stands_for_several_values_is_left_out() -> None:
    both = {"sex": {"woman": ["Ann", "Kim"], "man": ["Bob", "Kim"]}}
    assert templates_of_texts(["Ann left", "Kim left"], read_cues(both, Path(), "word"))[1] == [("woman",), None]


def test_a_pipeline_over_text() -> None:
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression())
    pipeline.fit(["Ann pays", "Bob pays", "Eve fails", "Leo fails"], ["good", "good", "bad", "bad"])
    made = audit(pipeline, favourable="good")
    assert made.subject.schema.classes == ("bad", "good")
    texts = ["Ann wants 5 for a car.", "Eve wants 5 for a car."]
    code = made.subject.table.codes[0]
    assert made.subject.model.scores(code[None])[0] == pytest.approx(pipeline.predict_proba(texts)[:, 1].mean())


def test_search_moves_through_the_template(tmp_path: Path) -> None:
    run = audit().search(evaluations=200, out=tmp_path / "run", seed=0)
    assert run.summary["k_max"] == 2
    assert run.summary["cases"] > 3


@pytest.mark.parametrize("strategy", ["climb", "expga"])
def test_searches_replace_words_of_the_template(strategy: str, tmp_path: Path) -> None:
    def decide(texts: list[str]) -> np.ndarray:  # men who demand are heard, and nobody of the table demands
        return np.array([0.2 + 0.6 * ("Bob demands" in one or "Leo demands" in one) for one in texts])

    more = {"template": "{who} {verb} {amount} {why}.", "words": {"verb": ["wants", "seeks", "demands"]}}
    made = audit(decide, **more)
    assert made.measure().summary()["k_max"] == 1
    run = made.search(strategy=strategy, evaluations=300, out=tmp_path / "run", seed=0)
    assert run.summary["k_max"] == 2
    assert run.summary["cases"] > 3


@pytest.mark.parametrize("kind", ["torch", "onnx"])
def test_networks_of_other_libraries_behind_an_encoder(kind: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1), torch.nn.Sigmoid())

    def encode(texts: list[str]) -> np.ndarray:
        return np.array([["Bob" in one or "Leo" in one, " 5 " in one] for one in texts], np.float32)

    network: Any = module
    if kind == "onnx":
        network = tmp_path / "network.onnx"
        read_model(module).model.save(network)
    made = audit(EncodedNetwork(encode, network))
    numbers = torch.tensor(encode(["Ann wants 5 for a car."]))
    wanted = module(numbers).item()
    assert made.subject.model.scores(made.subject.table.codes[:1])[0] == pytest.approx(wanted, abs=1e-6)


def test_an_encoder_before_something_else_is_refused() -> None:
    with pytest.raises(FairbitsError, match=r"'DecisionTreeClassifier' is no network"):
        EncodedNetwork(lambda texts: [[0.0]] * len(texts), DecisionTreeClassifier().fit([[0], [1]], [0, 1]))


def test_a_network_behind_an_encoder_is_debugged(tmp_path: Path) -> None:
    def encode(texts: list[str]) -> np.ndarray:  # man or not, small amount or not
        return np.array([["Bob" in one or "Leo" in one, " 5 " in one] for one in texts], np.float32)

    weights = [np.array([[4.0, 0.0], [0.0, 1.0]]), np.array([[1.0], [0.5]])]  # the first neuron knows the men
    network = Network.build(weights, [np.zeros(2), np.array([-1.0])], activation="relu", head="sigmoid")
    made = audit(EncodedNetwork(encode, network))
    run = made.search(evaluations=60, out=tmp_path / "run", seed=0)
    found = run.debug(trainings=0)
    worst = max(found.neurons, key=lambda one: one.acd)
    assert (worst.layer, worst.neuron) == (1, 0)


def test_what_changed_is_marked() -> None:
    left, right = marked("Ann wants 5.", "Bob wants 5.")
    assert left == [("Ann ", True), ("wants 5.", False)]
    assert right == [("Bob ", True), ("wants 5.", False)]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"template": "{who} wants {sum}."}, "unknown slot 'sum'; choose from: who, amount, why"),
        ({"template": "{who} wants {amount"}, "the template is wrong"),
        ({"template": "{who!r}"}, "with a format"),
        ({"template": "{who.object}"}, "have no 'who.object'"),
        ({"template": "Somebody wants {amount}."}, r"'names' has no slot \{who\}, so its cues would never be said"),
        ({"template": ""}, r"'names' has no slot \{who\}, so its cues would never be said"),
        ({"families": {"names": {"amount": "first-names-sex"}}}, "'amount' is a slot of 'names' and a column"),
        ({"template": None}, "a template, or the name of a column"),
        ({"families": {}}, "the text names no cues"),
        ({"families": {"names": {"who": {"sex": {"woman": [], "man": ["Bob"]}}}}}, "no words for 'woman'"),
        ({"families": {"names": {"who": {"sex": {"": ["Ann"], "man": ["Bob"]}}}}}, "no words for ''"),
        ({"families": {"names": {"who": {"sex": {"woman": ["Ann"]}}}}}, "fewer than two values of 'sex'"),
        ({"families": {"names": {"who": {"sex": {"woman": ["Ann"] * 4, "man": ["Bob"]}}}}}, "'Ann' 4 times for woman"),
        ({"families": {"names": {"who": "first-name"}}}, "neither built in nor a .csv or .toml file; choose from"),
        ({"families": {"names": {"who": "none.csv"}}}, "does not exist"),
        ({"realisations": 0}, "realisations is 0"),
        ({"decider": lambda texts: texts[:1]}, "failed|answered"),
        ({"decider": 3}, "decides about no texts: it is no function of them and has no predict_proba"),
    ],
)
def test_what_is_wrong_is_said(more: dict[str, Any], words: str) -> None:
    with pytest.raises(FairbitsError, match=words):
        audit(**more)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("sex,word\nwoman,Ann\n,Bob\n", "nothing under 'sex' in line 3"),
        ("sex,word\nwoman,\nman,Bob\n", "nothing under 'word' in line 2"),
        ("word\nAnn\n", "need a header"),
        ("sex,word,weight\nwoman,Ann,0\nman,Bob,1\n", "the weight '0'"),
        ("sex,word\nwoman,Ann\nwoman,Eve\nwoman,Ann\nman,Bob\n", "have the word 'Ann' 2 times for woman"),
        ("sex,word\nwoman,Ann, Mary\nman,Bob\n", "have 3 cells in line 2, and 2 in the header"),
        ("sex,word,word\nwoman,Ann,Eve\nman,Bob,Leo\n", "and then word, each once, e.g. sex,word"),
        ("sex,word\n", "fewer than two values of 'sex'"),
        ("sex,race,word\nwoman,a,Ann\nman,b,Bob\n", "no word for sex woman, race b"),
    ],
)
def test_a_file_of_cues_that_is_wrong(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "cues.csv").write_text(content)
    with pytest.raises(FairbitsError, match=words):
        audit(families={"names": {"who": str(tmp_path / "cues.csv")}})


def test_weights_choose_among_more_words_than_are_asked(tmp_path: Path) -> None:
    lines = [f"{sex},{sex}{i},{1 if i else 1000}" for sex in ("woman", "man") for i in range(20)]
    (tmp_path / "cues.csv").write_text("\n".join(["sex,word,weight", *lines]))
    family = read_cues(str(tmp_path / "cues.csv"), Path(), "who")
    chosen = [one["word"] for one in family.drawn({"sex": "man"}, 3)]
    assert len(set(chosen)) == 3
    assert "man0" in chosen


def test_an_audit_file_has_a_page_with_words_and_nulls(audit_file: Write, tmp_path: Path) -> None:
    (tmp_path / "loan_texts.py").write_text(
        "import numpy as np\n\ndef decide(texts):\n"
        "    return np.array([0.3 + 0.3 * (text[:3] in ('Bob', 'Leo', 'Max', 'Tom')) for text in texts])\n"
    )
    made = Audit.of(audit_file("loan_texts:decide"), trust_code=True)
    found = made.audit(out=tmp_path / "run", budget=1.0, skip="debug,repair,certify,proxies")
    page = (tmp_path / "run" / "report.md").read_text()
    assert "Words and their nulls" in page
    assert "**Ann** asks for" in page.replace("**Ann **", "**Ann** ")
    assert "claimed" in page
    assert found.data.words is not None
    assert found.data.words.families[0].found.claimed
    assert "In names: 1.00 bits of sex on average" in found.data.direct
    assert "nothing is claimed" not in found.data.opening.people
    found.run.report(forms=["card", "profile"])
    for name in ("model-card.md", "profile.html"):
        assert "none by the nulls" in (tmp_path / "run" / name).read_text()
    assert '"type": "text-classification"' in (tmp_path / "run" / "model-card.md").read_text()


def test_a_prompt_of_several_lines_keeps_its_lines_on_the_page() -> None:
    study = audit(template="{who} asks:\n\n\t{amount}, please, says {who}.", families={"names": {"who": SEX}}).words()
    blocks = list(wording_blocks(study))
    sides = next(block for block in blocks if isinstance(block, Columns)).parts
    lines = [[plain(one.text) for one in side[1:] if isinstance(one, Paragraph)] for side in sides]
    assert [[line.strip() for line in side] for side in lines] == [
        [f"{name} asks:", f"5, please, says {name}."] for name in ("Ann", "Bob")
    ]
    asked = [plain(block.text) for block in blocks if isinstance(block, Paragraph)]
    assert "Ann asks:" in asked
    assert "    5, please, says Ann." in asked


def test_a_long_prompt_is_on_the_page_in_full() -> None:
    story = "This is a long story of a person. " * 100
    study = audit(template="{who} wants {amount}. " + story + "END", families={"names": {"who": SEX}}).words()
    parts = [PagePart("words", "Words", list(wording_blocks(study)))]
    page = Page("subject", "command", "title", "sentence.", (), parts)
    for whole in (render_markdown_page(page), render_page(page)):
        assert whole.count("END") == 1
        assert whole.count("long story") >= 100
    assert "**as man: 0.600" in render_markdown_page(page)


def test_words_that_are_said_again_are_no_further_realisations() -> None:
    names = {"sex": {value: [f"{value}{i}" for i in range(8)] for value in "fm"}}
    clubs = {"sex": {value: [f"{value}-club{i}" for i in range(2)] for value in "fm"}}
    claimed = 0
    for seed in range(20):
        likes = np.random.default_rng(seed).normal(0.5, 0.15, 4)
        liked = dict(zip(["f-club0", "f-club1", "m-club0", "m-club1"], likes.tolist(), strict=True))

        def decide(texts: list[str], liked: dict[str, float] = liked) -> np.ndarray:
            return np.array([liked[text.split()[-1]] for text in texts])

        families = {"both": {"who": names, "club": clubs}}
        study = audit(decide, template="{who} wants {amount} and is in {club}", families=families).words()
        assert study.families[0].realisations == 2
        claimed += study.families[0].found.claimed
    assert claimed == 0
