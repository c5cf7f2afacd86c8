"""The explorer as one file: opened from disk, its script counts k as the engine does, and it asks nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from fairbits import Subject, Table
from fairbits.cli.app import app
from fairbits.cli.commands import look as command
from fairbits.domain.rule import Rule
from fairbits.errors import OptionError
from fairbits.explore import Explorer, page, write_page
from fairbits.explore.explorer import asked_of, row_of
from fairbits.models import Activation, Network
from fairbits.subject import make_subject

from ..audit.test_tasks import task
from ..browsing import launched
from ..conftest import random_people
from ..report.conftest import build_subject, ordinary_schema
from .conftest import explorer_of

PEOPLE = 2_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


def opened(browser: Any, explorer: Explorer, folder: Path) -> Any:
    context = browser.new_context()
    found = context.new_page()
    complaints: list[str] = []
    found.on("console", lambda message: complaints.append(message.text))
    found.on("pageerror", lambda error: complaints.append(str(error)))
    context.on("request", lambda asked: complaints.append(asked.url) if not asked.url.startswith("file:") else None)
    found.goto(write_page(explorer, folder / "explorer.html").as_uri())
    found.locator("#k").filter(has_not_text="…").wait_for()
    assert complaints == []
    return found


def forest(kind: Any, **options: Any) -> Subject:
    """Trees over the ordinary people."""
    network = build_subject(ordinary_schema(), "trees")
    table = network.table
    model = kind(random_state=0, **options).fit(table.codes, table.labels.astype(int))
    return make_subject("trees", model, network.schema, table)


def curved(*activations: str) -> Subject:
    """A network with other activations."""
    subject = build_subject(ordinary_schema(), "curved")
    plain: Any = subject.model
    weights = [plain.weights[0] * 0.3, *plain.weights[1:]]
    network = Network.build(
        weights, plain.biases, activation=[Activation(name, 0.3) for name in activations], head=plain.head
    )
    return make_subject("curved", network, subject.schema, Table(subject.table.codes))


def ruled() -> Subject:
    plain = ordinary_schema()
    texts = ('age = "old" -> job != "Farm"', 'job in {"Care", "Farm"} and sex = "Male" -> hours * 2 <= 9')
    return build_subject(replace(plain, rules=tuple(Rule.of(text, plain.attributes) for text in texts)), "ruled")


SUBJECTS: dict[str, tuple[Any, int]] = {
    "network": (lambda: build_subject(ordinary_schema(), "small"), PEOPLE),
    "forest": (lambda: forest(RandomForestClassifier, n_estimators=10, max_depth=6), PEOPLE),
    "boosted": (lambda: forest(GradientBoostingClassifier, n_estimators=20), 1000),
    "ruled": (ruled, 1000),
    "regression": (lambda: task("regression", rules=()), 300),
    "tanh, sigmoid": (lambda: curved("tanh", "sigmoid"), 400),
    "gelu, elu": (lambda: curved("gelu", "elu"), 400),
    "gelu_tanh, leaky_relu": (lambda: curved("gelu_tanh", "leaky_relu"), 400),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_k_is_the_engines(browser: Any, tmp_path: Path, name: str) -> None:
    make, people = SUBJECTS[name]
    explorer = explorer_of(make(), tmp_path / "run")
    found = opened(browser, explorer, tmp_path)
    schema = explorer.schema
    drawn = random_people(np.random.default_rng(1), schema, people)[:, list(schema.person_columns)].tolist()
    # Somebody whose twins all break a rule has no figures, here and there.
    rows = np.stack([row_of(one, schema) for one in drawn])
    valid = explorer.evaluator.by_rules.valid_twins(rows)
    there = np.ones(people, bool) if valid is None else valid.any(axis=1)
    figures = explorer.evaluator.by_rules.evaluate(rows[there])
    asked = [one for one, real in zip(drawn, there, strict=True) if real]
    script = (
        "people => people.map((one) => figuresOf(rowOf(one))).map((one) => [one.k, one.favourable, one.q_1, one.low])"
    )
    answers = found.evaluate(script, asked)
    k, favourable, q_1, low = np.array(answers).T
    np.testing.assert_array_equal(k, figures.k)
    assert figures.k.max() > 1
    np.testing.assert_array_equal(favourable, figures.favourable)
    np.testing.assert_allclose(q_1, figures.q_1, atol=1e-6)
    np.testing.assert_array_equal(low.astype(np.float32), figures.low)


def test_a_held_neuron_and_a_changed_person(browser: Any, explorer: Explorer, tmp_path: Path) -> None:
    found = opened(browser, explorer, tmp_path)
    codes = explorer.everybody()[0]["codes"]
    assert found.locator("#row-form").is_hidden()
    assert found.locator("#guarding").is_hidden()
    assert "stays where it is" in found.locator("footer").text_content()
    for hold in ([{"layer": 1, "neuron": 3, "at": "mean"}], [{"layer": 2, "neuron": n, "at": "max"} for n in (0, 5)]):
        wanted = explorer.answer(asked_of({"codes": codes, "hold": hold, "layer": 2}, explorer.schema))
        answer = found.evaluate("body => asked('/answer', {}, body)", {"codes": codes, "hold": hold, "layer": 2})
        np.testing.assert_allclose(answer["scores"], wanted["scores"], atol=1e-6)
        np.testing.assert_allclose(answer["spread"], wanted["spread"], atol=1e-5)
        assert (answer["k"], answer["worst"], answer["best"], answer["before"]["k"]) == (
            wanted["k"],
            wanted["worst"],
            wanted["best"],
            wanted["before"]["k"],
        )
        assert answer["classes"] == wanted["classes"]
    found.get_by_label("hours", exact=True).first.fill("77")
    assert "hours takes 0 to 9" in found.locator("#fault:visible").text_content()


def test_hostile_labels_are_text(browser: Any, hostile_explorer: Explorer, tmp_path: Path) -> None:
    found = opened(browser, hostile_explorer, tmp_path)
    assert found.locator("img").count() == 0
    assert found.locator("script").count() == 2


def test_other_models_and_large_ones_are_served(
    explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MAX_BYTES", 1000)
    with pytest.raises(OptionError, match="MB, more than 0; serve it instead with: fairbits explore"):
        write_page(explorer, tmp_path / "large.html")
    vector = explorer_of(task("vector", rules=()), tmp_path / "vector")
    with pytest.raises(OptionError, match=r"whole vectors .*serve the page instead with: fairbits explore"):
        write_page(vector, tmp_path / "vector.html")
    assert not list(tmp_path.glob("*.html"))


def test_the_command_writes_it(explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "open_run", lambda *_: explorer.run)
    done = CliRunner().invoke(app, ["explore", "RUN", "--out", str(tmp_path / "one.html")], catch_exceptions=False)
    assert done.exit_code == 0
    assert str(tmp_path / "one.html") in done.output
    assert "<script" in (tmp_path / "one.html").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_in_a_notebook_the_same_page_stands_in_a_frame(browser: Any, explorer: Explorer) -> None:
    pytest.importorskip("anywidget")
    from fairbits.explore import explorer_widget

    widget = explorer_widget(explorer.run, subject=explorer.subject, height=500)
    notebook = browser.new_page()
    notebook.set_content("<div id=cell></div>")
    render = widget._esm.replace("export default { render };", "")
    notebook.evaluate(
        "([code, page]) => new Function(code + '; return render')()"
        "({ model: { get: (name) => ({ page, height: 500 })[name] }, el: document.getElementById('cell') })",
        [str(render), widget.page],
    )
    k = notebook.frame_locator("iframe").locator("#k").filter(has_not_text="…")
    k.wait_for()
    assert k.inner_text().strip()
