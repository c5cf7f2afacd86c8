"""Data or training: shares of planted truths, what covers them, real refits, and what cannot be refitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairbits import Audit, Network, Table
from fairbits.debug import debug_run, origin_shares, shared_part, train_here
from fairbits.debug.origin import origin_trainer
from fairbits.debug.records import Origin, OriginShare
from fairbits.errors import CapabilityError, ModelError, OptionError, TableError
from fairbits.measure import Estimate, evaluator_of
from fairbits.scale import ExecutorOptions, train_out_by
from fairbits.subject import Subject, make_subject
from tests.conftest import random_network
from tests.debug.conftest import SCHEMA, Maker, table_of


def planted(rng: np.random.Generator, effect: float, *, common: bool, trainings: int, people: int = 120) -> np.ndarray:
    """Scores in which z has a known effect, and every training an error of size 1: its own, or alike for everybody."""
    z = np.array([-1.0, 1.0])
    size = (trainings, 1, 1) if common else (trainings, people, 1)
    return rng.normal(size=(1, people, 1)) + (effect + rng.normal(size=size)) * z * np.ones((1, people, 1))


@pytest.mark.parametrize("effect", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(("common", "trainings"), [(False, 4), (True, 4), (True, 8)])
def test_the_interval_covers_the_truth(effect: float, common: bool, trainings: int) -> None:
    rng = np.random.default_rng(7)
    truth = effect**2 / (effect**2 + 1)
    hits = 0
    for _ in range(60):
        found = shared_part(planted(rng, effect, common=common, trainings=trainings), rng=rng, resamples=150).shared
        hits += found.low <= truth <= found.high
    assert hits >= 54


@pytest.mark.parametrize("trainings", [4, 8])
def test_the_interval_covers_the_truth_where_few_people_make_up_most(trainings: int) -> None:
    """Effects with a heavy tail; drawn from those seen alone, the interval held 81 and 63 % of the time.

    In 250 such samples it holds 96.4 % of the time with 4 trainings and 95.2 % with 8."""
    held, light = 0, []
    for seed in range(50):
        rng = np.random.default_rng([seed, trainings, 9])
        effect = np.exp(1.5 * rng.normal(size=(1, 150, 1))) / np.exp(2.25)  # whose square has mean 1
        error = rng.normal(size=(trainings, 150, 1))
        found = shared_part((effect + error) * np.array([-1.0, 1.0]), rng=rng, resamples=150).shared
        held += found.low <= 0.5 <= found.high
        found = shared_part((1.0 + error) * np.array([-1.0, 1.0]), rng=rng, resamples=150).shared
        light.append(found.high - found.low)
    assert held >= 46  # the square of the heaviest has a tail that 150 people barely show
    assert np.mean(light) < (0.5 if trainings == 4 else 0.3)  # and no wider where nobody stands out


def test_shares_by_hand(rng: np.random.Generator) -> None:
    scores = rng.normal(size=(3, 10, 4))
    own = rng.normal(size=(10, 4))
    found = shared_part(scores, own=own, rng=rng)
    apart = scores - scores.mean(axis=2, keepdims=True)
    mine = own - own.mean(axis=1, keepdims=True)
    v = (apart**2).mean()
    c = np.mean([(apart[r] * apart[q]).mean() for r in range(3) for q in range(3) if r != q])
    assert found.effect.value == pytest.approx(np.sqrt(v))
    assert found.shared.value == pytest.approx(max(c / v, 0.0))
    assert found.single.value == pytest.approx(1 - found.shared.value)
    assert found.own is not None
    assert found.own.value == pytest.approx(max((mine * apart.mean(axis=0)).mean() / (mine**2).mean(), 0.0))
    same = shared_part(np.stack([scores[0]] * 3), own=scores[0], rng=rng)
    assert (same.shared.value, same.shared.low) == pytest.approx((1.0, 1.0))
    valid = np.ones((10, 4), dtype=bool)
    valid[:, 3] = False
    three = shared_part(scores[:, :, :3], rng=np.random.default_rng(0))
    masked = shared_part(scores, valid=valid, rng=np.random.default_rng(0))
    assert masked.shared.value == pytest.approx(three.shared.value)
    with pytest.raises(OptionError, match="two trainings or more"):
        shared_part(scores[:1], rng=rng)


def test_one_attribute_is_shared_and_the_other_an_accident(rng: np.random.Generator, people_schema) -> None:
    sizes = [len(people_schema.attributes[i].twin_values()) for i in people_schema.protected_columns]
    assert len(sizes) > 1
    people, trainings = 80, 6
    first = np.arange(sizes[0]).reshape(-1, *[1] * (len(sizes) - 1)) * np.ones(sizes)
    noise = rng.normal(size=(trainings, people, *[1] * (len(sizes) - 1), sizes[-1])) * np.ones(sizes)
    scores = (first + noise).reshape(trainings, people, -1)
    found = origin_shares(people_schema, scores, scores[0], valid=None, rng=rng)
    by_name = {one.attributes: one for one in found}
    assert by_name[(people_schema.protected[0],)].shared.low > 0.99
    assert by_name[(people_schema.protected[-1],)].shared.value < 0.1
    assert found[0].attributes == tuple(people_schema.protected)


def test_a_run_says_both_shares(make_run: Maker, carrier: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairbits.data.trainer.epochs_for", lambda _rows: 100)
    run = make_run(carrier, rows=300, labels="own")
    found = debug_run(run, samples=40, trainings=3, threads=1, sets=False)
    origin = found.origin
    assert origin.trainings == 3
    assert origin.shares[0].shared.value > 0.5  # the labels are the network's own: any training learns the sex
    assert "comes with the data" in origin.words
    again = debug_run(
        run, samples=40, trainings=3, threads=1, sets=False, train_out=train_out_by(ExecutorOptions(workers=1))
    )
    assert again.origin.shares == origin.shares
    none = debug_run(run, samples=40, trainings=0, threads=1, sets=False)
    assert not none.origin.shares
    late = debug_run(run, samples=40, patience=0.0, threads=1, sets=False)
    assert "was not run: 8 trainings take about" in late.origin.words
    monkeypatch.setattr("fairbits.debug.run.quick_epochs", lambda _rows: 3)
    quick = debug_run(run, samples=40, patience=0.2, threads=1, sets=False).origin
    assert (quick.trainings, quick.epochs) == (3, 3)
    assert "3 short trainings of ours on these rows (3 epochs" in quick.words
    with pytest.raises(OptionError, match="trainings is 1; give 2 or more"):
        debug_run(run, trainings=1)


def test_where_time_is_over_the_smallest_set_goes_and_the_shares_stay(
    make_run: Maker, carrier: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shares stand in the summary of a page; the smallest set of neurons is a detail."""
    monkeypatch.setattr("fairbits.data.trainer.epochs_for", lambda _rows: 20)
    over = False

    def stage(words: str) -> None:
        nonlocal over
        over = over or words.startswith("looking for the smallest set")
        if over:
            raise OptionError("the time is over.")

    run = make_run(carrier, rows=300, evaluations=400)
    found = debug_run(run, samples=200, threads=1, stage=stage)
    assert over
    assert found.sets is None
    assert found.origin.shares


def frame(rng: np.random.Generator, rows: int = 400) -> pd.DataFrame:
    sex = rng.choice(["f", "m"], rows)
    skill = rng.integers(0, 10, rows)
    chance = 1 / (1 + np.exp(-(skill - 4.5 + 2.0 * (sex == "m"))))
    return pd.DataFrame({"sex": sex, "skill": skill, "hired": np.where(rng.random(rows) < chance, "yes", "no")})


def audit_of(data: pd.DataFrame, model: object) -> Audit:
    return Audit.from_table(model, data, target="hired", protected=["sex"], favourable=str(data["hired"].max()))


@pytest.mark.parametrize("kind", ["forest", "linear", "network", "lightgbm", "xgboost", "catboost"])
def test_estimators_are_cloned_and_fitted_again(rng: np.random.Generator, kind: str) -> None:
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    data = frame(rng)
    made = {
        "forest": RandomForestClassifier(20, max_depth=4, random_state=0),
        "linear": LogisticRegression(),
        "network": MLPClassifier((6,), max_iter=40, random_state=0),
    }
    if kind == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        made["lightgbm"] = lightgbm.LGBMClassifier(n_estimators=10, subsample=0.5, subsample_freq=1, verbose=-1)
    if kind == "xgboost":
        xgboost = pytest.importorskip("xgboost")
        made["xgboost"] = xgboost.XGBClassifier(n_estimators=10, subsample=0.5, random_state=0, n_jobs=1)
        data["hired"] = (data["hired"] == "yes").astype(int)  # it takes no labels in words
    if kind == "catboost":
        catboost = pytest.importorskip("catboost")
        made["catboost"] = catboost.CatBoostClassifier(
            iterations=10,
            subsample=0.5,
            bootstrap_type="Bernoulli",
            random_seed=0,
            verbose=0,
            allow_writing_files=False,
        )
    encoder = make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough")
    model = make_pipeline(encoder, made[kind])
    with pytest.warns(match=".*") if kind == "network" else _quiet():
        model.fit(data[["sex", "skill"]], data["hired"])
    audit = audit_of(data, model)
    subject = audit.subject
    found = train_here(subject, subject.table.codes[:50], [1, 2])
    assert found[0].scores.shape == (50, 2)
    again = train_here(subject, subject.table.codes[:50], [1])[0]
    assert np.array_equal(again.scores, found[0].scores)
    assert np.array_equal(found[0].scores, found[1].scores) == (kind == "linear")
    gap = found[0].scores[:, 1] - found[0].scores[:, 0]
    assert abs(gap.mean()) > (0.01 if kind == "network" else 0.05)  # it learned what the labels hold about the sex


def category_frame(rng: np.random.Generator, rows: int = 400) -> pd.DataFrame:
    """Towns whose effect has nothing to do with their order: categories and their numbers teach different trees."""
    data = pd.DataFrame({"sex": rng.choice(["f", "m"], rows), "town": rng.choice(list("abcdefgh"), rows)})
    odds = 2.0 * data["town"].isin(["b", "e", "g"]) + 1.0 * (data["sex"] == "m") - 1.2
    data["hired"] = (rng.random(rows) < 1 / (1 + np.exp(-odds))).astype(int)
    return data


def booster_of(kind: str, data: pd.DataFrame) -> Any:
    """A booster that was told about categories, in each of the ways that there are."""
    plain, labels = data[["sex", "town"]], data["hired"]
    frame, numbers = plain.astype("category"), plain.apply(lambda column: column.astype("category").cat.codes)
    if kind == "histogram":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(max_iter=4, categorical_features="from_dtype").fit(frame, labels)
    library = pytest.importorskip(kind.partition("-")[0])
    if kind.startswith("lightgbm"):
        made = library.LGBMClassifier(n_estimators=4, n_jobs=1, verbose=-1, min_child_samples=5)
        if kind == "lightgbm-columns":
            return made.fit(numbers, labels, categorical_feature=[0, 1])
        return made.fit(frame, labels)
    if kind.startswith("xgboost"):
        made = library.XGBClassifier(
            n_estimators=4,
            n_jobs=1,
            enable_categorical=True,
            max_cat_to_onehot=1,
            early_stopping_rounds=50 if kind == "xgboost-stopped" else None,
        )
        return made.fit(frame, labels, eval_set=[(frame, labels)], verbose=False)
    named = {"cat_features": ["sex", "town"]}
    quiet = {"iterations": 4, "verbose": 0, "allow_writing_files": False, "one_hot_max_size": 20}
    at_fit = kind == "catboost-columns"
    made = library.CatBoostClassifier(**quiet, random_seed=5, **({} if at_fit else named))
    return made.fit(plain, labels, **(named if at_fit else {}))


@pytest.mark.parametrize(
    "kind",
    [
        "histogram",
        "lightgbm",
        "lightgbm-columns",
        "xgboost",
        "xgboost-stopped",
        "catboost",
        "catboost-columns",
    ],
)
def test_boosters_are_fitted_again_on_the_categories_that_they_learned_from(
    rng: np.random.Generator, kind: str
) -> None:
    data = category_frame(rng)
    model = booster_of(kind, data)
    if kind == "lightgbm-columns":
        for name in ("sex", "town"):
            data[name] = data[name].astype("category").cat.codes
    subject = audit_of(data, model).subject
    people = subject.table.codes
    again = train_here(subject, people, [5])[0].scores
    own = evaluator_of(subject).scores(people)
    assert again == pytest.approx(own, abs=1e-5)  # nothing is drawn, or from the same seed: the same model


def test_catboost_draws_lots_although_no_parameter_says_so(rng: np.random.Generator) -> None:
    catboost = pytest.importorskip("catboost")
    data = frame(rng)
    encoded = data.assign(sex=(data["sex"] == "m").astype(int))
    model = catboost.CatBoostClassifier(iterations=5, verbose=0, allow_writing_files=False)
    model.fit(encoded[["sex", "skill"]], encoded["hired"])
    subject = audit_of(encoded, model).subject
    first, second = train_here(subject, subject.table.codes[:40], [1, 2])
    assert not np.array_equal(first.scores, second.scores)


def test_a_finished_booster_says_that_it_cannot_be_trained_again(rng: np.random.Generator, tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    data = frame(rng)
    data["sex"] = (data["sex"] == "m").astype(int)
    data["hired"] = (data["hired"] == "yes").astype(int)
    booster = lightgbm.train(
        {"objective": "binary", "verbose": -1}, lightgbm.Dataset(data[["sex", "skill"]], data["hired"]), 3
    )
    booster.save_model(tmp_path / "model.txt")
    with pytest.raises(CapabilityError, match=r"a \.txt is a finished model"):
        origin_trainer(audit_of(data, str(tmp_path / "model.txt")).subject)
    with pytest.raises(CapabilityError, match="'Booster' has no fit of its own"):
        origin_trainer(audit_of(data, booster).subject)


def _quiet():
    from contextlib import nullcontext

    return nullcontext()


def test_what_cannot_be_trained_again_says_so(rng: np.random.Generator, make_run: Maker, carrier: Network) -> None:
    few = make_subject("few", carrier, SCHEMA, table_of(rng, carrier, rows=60, labels="own"))
    with pytest.raises(TableError, match="60 rows to train on"):
        origin_trainer(few)
    table = table_of(rng, carrier, rows=400, labels="own")
    rare = make_subject("rare", carrier, SCHEMA, Table(table.codes, (np.arange(400) < 3).astype(np.float64)))
    with pytest.raises(TableError, match="only 3 rows are labelled 'yes'"):
        origin_trainer(rare)

    class Scores:
        inputs = 3

        def scores(self, inputs):
            return carrier.scores(inputs)

    box = make_subject("box", Scores(), SCHEMA, table)
    with pytest.raises(CapabilityError, match="cannot be fitted again here; give the scikit-learn style estimator"):
        origin_trainer(box)
    odd = Network.build(carrier.weights, carrier.biases, activation="gelu", head="sigmoid")
    with pytest.raises(CapabilityError, match="activation gelu are not trained here"):
        origin_trainer(make_subject("odd", odd, SCHEMA, table))
    run = make_run(random_network(rng, [3, 4, 2]), rows=60, evaluations=40)
    found = debug_run(run, samples=30, threads=1, sets=False)
    assert not found.origin.shares
    assert "60 rows" in found.origin.words
    assert found.origin.words.count(".") == 1


def test_whose_trainings_they_were_and_a_recipe_of_ones_own(
    rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_recipe.py").write_text(
        "import numpy as np\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.compose import make_column_transformer\n"
        "from sklearn.preprocessing import OneHotEncoder\n"
        "seeds = []\n"
        "def train(rows, labels, seed):\n"
        "    assert list(rows.columns) == ['sex', 'skill'] and set(labels) == {'yes', 'no'}, labels\n"
        "    seeds.append(seed)\n"
        "    some = np.random.default_rng(seed).integers(0, len(rows), len(rows))\n"
        "    coded = make_column_transformer((OneHotEncoder(), ['sex']), remainder='passthrough')\n"
        "    return make_pipeline(coded, LogisticRegression()).fit(rows.iloc[some], np.asarray(labels)[some])\n"
        "def broken(rows, labels, seed):\n"
        "    raise ValueError('no such rows')\n"
    )
    monkeypatch.chdir(tmp_path)
    data = frame(rng)

    def model(rows: pd.DataFrame) -> np.ndarray:
        return np.asarray(1 / (1 + np.exp(4.5 - rows["skill"].to_numpy(float) - (rows["sex"] == "m"))))

    def subject(**options: object) -> Subject:
        known = {"target": "hired", "protected": ["sex"], "favourable": "yes"}
        return Audit.from_table(model, data, **known, **options).subject

    with pytest.raises(CapabilityError, match="name a recipe of your own with train under"):
        origin_trainer(subject())
    with pytest.raises(ModelError, match=r"own_recipe:train.*add trust_code=True"):
        origin_trainer(subject(train="own_recipe:train"))
    own = subject(train="own_recipe:train", trust_code=True)
    assert own.identity.id == subject().identity.id  # how others like it are trained is no part of what it answers
    trained = train_here(own, own.table.codes[:20], [1, 2])
    import own_recipe  # type: ignore[import-not-found]

    assert own_recipe.seeds == [1, 2]
    assert trained[0].scores.shape == (20, 2)
    assert origin_trainer(own).recipe == "by your own recipe (own_recipe:train)"
    with pytest.raises(CapabilityError, match="could not train a model: ValueError: no such rows"):
        train_here(subject(train="own_recipe:broken", trust_code=True), own.table.codes[:20], [1])


def test_the_words_say_whose_and_how_many() -> None:
    one = Estimate(0.4, 0.3, 0.5)
    share = OriginShare(("sex",), one, one, None, one, one)
    words = Origin((share,), "", None, 8, 100, True, 1.0, "by fairbits' own recipe").words
    assert "8 trainings on these rows by fairbits' own recipe agree on it" in words
    assert 'train = "module:function"' in words
    own = Origin((share,), "", None, 8, 100, True, 1.0, "by your own recipe (a:b)").words
    assert "module:function" not in own
