"""A language model as the decider: scores, kept answers, limits, secrets, and what bad answers get."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairbits import Audit
from fairbits.cli.app import app
from fairbits.errors import FairbitsError, OptionError
from fairbits.language import Chat
from fairbits.measure import study_words, text_model
from tests.language.conftest import FakeModel, wary_of_women

Fake = Callable[..., FakeModel]
Write = Callable[..., Path]


def chat_of(audit: Audit) -> Chat:
    model = text_model(audit.subject)
    assert model is not None
    assert isinstance(model.decider, Chat)
    return model.decider


def test_scores_are_shares_of_the_options(fake: Fake, audit_file: Write) -> None:
    audit = Audit.of(audit_file(fake(wary_of_women).url))
    study = audit.words()
    names = study.families[0]
    assert names.means == pytest.approx({"woman": 0.5, "man": 0.75})
    assert names.found.claimed
    assert names.found.above is not None
    assert names.found.above.value == 1
    assert [null.bits for null in names.found.nulls] == [0, 0, 0]
    assert "take 80 % of the probability." in study.notes[1]


def test_little_mass_is_warned_of(fake: Fake, audit_file: Write) -> None:
    audit = Audit.of(audit_file(fake(lambda _: {"Sure": 0.7, "yes": 0.2, "no": 0.1}).url))
    assert "take 30 % of the probability; below half of it" in audit.words().notes[1]


def test_a_run_is_replayed_without_the_endpoint(fake: Fake, audit_file: Write, tmp_path: Path) -> None:
    model = fake(wary_of_women)
    file = audit_file(model.url)
    whole = Audit.of(file).words()
    model.stop()
    again = Audit.of(file)
    assert again.words().families == whole.families
    assert chat_of(again).requests == 0
    kept = tmp_path / "loans.answers.jsonl"
    kept.write_text(kept.read_text()[:-20])  # the last line was cut off
    with pytest.raises(FairbitsError, match="gave no scores"):
        Audit.of(audit_file(model.url, model="retries = 0")).words()


def test_a_stopped_run_goes_on(fake: Fake, audit_file: Write) -> None:
    model = fake(wary_of_women)
    file = audit_file(model.url)
    with pytest.raises(OptionError, match="10 of 10 are left; raise --max-requests"):
        Audit.of(file, max_requests=10)
    assert not model.asked
    left = chat_of(Audit.of(file))
    asked = len(model.asked)
    assert left.requests == asked > 10
    assert chat_of(Audit.of(file)).requests == 0


def test_costs_are_limited(fake: Fake, audit_file: Write) -> None:
    model = fake(wary_of_women)
    with pytest.raises(OptionError, match="price of a million tokens"):
        Audit.of(audit_file(model.url), max_cost=1.0)
    with pytest.raises(OptionError, match=r"would cost about 0\.\d+"):
        Audit.of(audit_file(model.url, model="price = [100, 100]"), max_cost=0.01)
    audit = Audit.of(audit_file(model.url, model="price = [1, 2]"), max_cost=1.0)
    audit.words()
    decider = chat_of(audit)
    assert decider.cost == pytest.approx(decider.requests * 22 / 1e6)


def test_costs_are_limited_where_no_tokens_are_counted(
    fake: Fake, audit_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fake(wary_of_women)
    answer = model.answer
    monkeypatch.setattr(model, "answer", lambda body: {**answer(body), "usage": None})
    audit = Audit.of(audit_file(model.url, model="price = [1e6, 0]"), max_cost=600.0)
    spent = chat_of(audit).cost
    assert spent == pytest.approx(chat_of(audit).requests * 14, rel=0.2)
    assert "about" in chat_of(audit).notes()[0]
    with pytest.raises(OptionError, match="of 600 are spent; raise --max-cost"):
        audit.words()


@pytest.mark.parametrize("flag", ["--max-requests", "--max-cost"])
def test_a_limit_of_nothing_lets_nothing_be_asked(fake: Fake, audit_file: Write, flag: str) -> None:
    model = fake(wary_of_women)
    found = CliRunner().invoke(app, ["measure", str(audit_file(model.url)), flag, "0"])
    assert isinstance(found.exception, OptionError), found.output
    assert not model.asked


def test_answers_are_counted_where_there_are_no_log_probabilities(fake: Fake, audit_file: Write) -> None:
    said = iter(["Yes.", "no, sorry", "**Yes**", "I would rather not"] * 10_000)
    model = fake(lambda _: next(said))
    with pytest.raises(FairbitsError, match="no log-probabilities; write answers = 20"):
        Audit.of(audit_file(model.url)).words()
    audit = Audit.of(audit_file(model.url, model="answers = 4\nconcurrency = 1"))
    assert set(audit.words().families[0].means.values()) == {2 / 3}
    assert all(body["temperature"] == 1 and "logprobs" not in body for body in model.asked[-8:])


def test_prose_is_named(fake: Fake, audit_file: Write) -> None:
    model = fake(lambda _: {"As": 0.6, "I": 0.4})
    with pytest.raises(
        FairbitsError, match=r"answered 'As' to '.*' was expected, and named no option for .* say in the template"
    ):
        Audit.of(audit_file(model.url))


def test_one_text_without_an_answer_costs_only_its_own_row(fake: Fake, audit_file: Write, tmp_path: Path) -> None:
    model = fake(wary_of_women)
    path = audit_file(model.url)
    Audit.of(path).words()
    asked = len(model.asked)
    kept = tmp_path / "loans.answers.jsonl"
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    lines[0] |= {"said": "As an AI", "options": {}}
    kept.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(
        FairbitsError, match=r"'As an AI' .* for 1 of .* leave their rows out of the table; what .* keeps is not"
    ):
        Audit.of(path).words()
    assert len(model.asked) == asked  # nothing is asked for again, and nothing is lost


def test_what_is_no_completion_is_named(fake: Fake, audit_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fake(wary_of_women)
    monkeypatch.setattr(model, "answer", lambda body: {"scores": [1]})
    with pytest.raises(FairbitsError, match="no chat completion"):
        Audit.of(audit_file(model.url))


def test_the_key_comes_from_the_environment(
    fake: Fake, audit_file: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = fake(wary_of_women)
    monkeypatch.setenv("LOAN_KEY", "sk-1")
    Audit.of(audit_file(model.url, model='system = "You are a loan officer."'), credential="LOAN_KEY")
    assert {headers["Authorization"] for headers in model.headers} == {"Bearer sk-1"}
    assert model.asked[0]["messages"][0] == {"role": "system", "content": "You are a loan officer."}
    assert "sk-1" not in (tmp_path / "loans.answers.jsonl").read_text()


def test_a_dry_run_asks_nothing(fake: Fake, audit_file: Write) -> None:
    model = fake(wary_of_women)
    file = audit_file(model.url)
    found = CliRunner().invoke(app, ["measure", str(file), "--dry-run"])
    assert found.exit_code == 0, found.output
    assert not model.asked
    assert found.stdout.count("Answer yes or no.") == 3
    planned = int(found.stdout.split(" requests")[0].split()[-1])
    audit = Audit.of(file)
    tried = len(model.asked)  # whether it answers at all
    plan = audit.plan()
    assert (plan.requests, plan.seconds) == (planned - tried, None)
    assert len(model.asked) == tried
    audit.measure()
    study_words(audit.subject)
    assert len(model.asked) == planned


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ('options = ["yes"]', "at least two words"),
        ('options = ["yes", "yes please"]', "with which another one begins"),
        ('favourable = "maybe"', "must be one of the options"),
        ("price = [1]", r"price is '\[1\]'"),
        ("answers = -1", "answers is '-1'"),
        ("n = 3", "unknown key 'n'"),
    ],
)
def test_options_that_make_no_sense(audit_file: Write, model: str, words: str) -> None:
    with pytest.raises(FairbitsError, match=words):
        Audit.of(audit_file("http://127.0.0.1:9/v1", model=model))
