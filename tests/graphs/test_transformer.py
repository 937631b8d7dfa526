"""Forward passes of named models: counted by hand, layer by layer, beside PyTorch, and never above single kernels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pebble
from pebble.cli import main
from pebble.graphs.layers import in_any_layer, saved_between
from pebble.reports.audit import Audit
from pebble.reports.decode import decode_step
from pebble.workloads import model_names, named
from pebble.workloads.named import MIXTURES, ModelShape

TINY = ModelShape(hidden=8, intermediate=16, layers=2, heads=4, kv_heads=2, head_dim=2, vocab=32, gated=True)
LAYER = 16 * 8 + 8 * 8 + 32 * 8 + 16 * 8 + 2 * 8  # values of qkv, o, gate and up, down, two norms


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(named._MODELS, "tiny", TINY)
    return "tiny"


def test_a_tiny_model_counted_by_hand(tiny: str) -> None:
    result = pebble.audit(tiny, tokens=3, gpu="a40")
    weights = 2 * LAYER + 8 + 32 * 8 + 8  # final norm, logits, one row of the embedding
    outputs = 3 * 32 + 2 * 2 * 3 * 4  # logits; keys and values of two layers
    assert result.floor_parts == {
        "weights": 2 * weights, "KV cache": 0, "inputs": 4 * 3, "outputs": 2 * outputs, "products": 0,
    }  # fmt: skip
    assert result.floor_bytes == sum(result.floor_parts.values())
    alone = {floor.operation.name: floor.alone_bytes for floor in result.floors}
    assert len(alone) == 1 + 2 * 11 + 2
    assert alone["embedding"] == 4 * 3 + 2 * (8 + 3 * 8)
    assert alone["1.norm_1"] == 2 * (2 * 3 * 8 + 8)
    assert alone["0.qkv"] == 2 * (3 * 8 + 16 * 8 + 3 * 16)
    assert alone["0.rope"] == 2 * 2 * 3 * 12
    assert alone["0.attention"] == 2 * 3 * (8 + 4 + 4 + 8)
    assert alone["0.residual_1"] == 2 * 3 * 3 * 8
    assert alone["1.gate_up"] == 2 * (3 * 8 + 32 * 8 + 3 * 32)
    assert alone["1.activation"] == 2 * 3 * (32 + 16)
    assert alone["lm_head"] == 2 * (3 * 8 + 32 * 8 + 3 * 32)
    adds = {floor.operation.name: floor.multiply_adds for floor in result.floors}
    assert adds["0.attention"] == 4 * 6 * (2 + 2) and adds["0.down"] == 3 * 16 * 8  # of 9 pairs a mask hides 3


def test_each_layer_adds_the_same(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    floors = []
    for layers in (1, 2, 5):
        monkeypatch.setitem(named._MODELS, tiny, ModelShape(8, 16, layers, 4, 2, 2, 32, gated=True))
        result = pebble.audit(tiny, tokens=3, batch=2, gpu="a40")
        floors.append((result.floor_bytes, result.alone_bytes, len(result.floors)))
    one, two, five = floors
    assert all(c - b == 3 * (b - a) for a, b, c in zip(one, two, five, strict=True))
    assert two[0] - one[0] == 2 * (LAYER + 2 * 6 * 4)


def test_a_decode_step_reads_the_cache_once_and_stores_one_token(tiny: str) -> None:
    result = pebble.audit(tiny, context=5, batch=3, gpu="a40")
    assert result.floor_parts["KV cache"] == 2 * (2 * 2 * 3 * 4 * 4)  # two layers, K and V, 4 earlier tokens
    assert result.floor_parts["outputs"] == 2 * 3 * (32 + 2 * 2 * 4)
    assert result.floor_parts["weights"] == pebble.audit(tiny, tokens=3, gpu="a40").floor_parts["weights"]
    chunk = pebble.audit(tiny, tokens=2, context=5, gpu="a40")
    adds = {floor.operation.name: floor.multiply_adds for floor in chunk.floors}
    assert adds["0.attention"] == 4 * (4 + 5) * (2 + 2)
    assert (
        pebble.audit(tiny, tokens=5, context=5, gpu="a40").floor_bytes
        == pebble.audit(tiny, tokens=5, gpu="a40").floor_bytes
    )


def test_a_decode_step_of_a_model_is_its_layers() -> None:
    step, layers = decode_step("llama-3-8b", 8, 4096, 10**6), 32
    result = pebble.audit("llama-3-8b", context=4096, batch=8, gpu="h100-sxm5-80gb")
    stored = layers * 2 * 8 * 1024 * 2  # of the new token
    assert result.floor_parts["KV cache"] == layers * step.kv_bytes - stored
    others = 2 * (128256 * 4096 + 4096 + 65 * 4096)  # logits, a row of the embedding, norms
    assert result.floor_parts["weights"] == layers * step.weight_bytes + others


@pytest.mark.parametrize("model", [name for name in model_names() if name not in MIXTURES])
def test_no_floor_is_above_that_of_single_kernels(model: str) -> None:
    for sizes in ({"tokens": 1024 if model.startswith("gpt2") else 4096}, {"context": 1024, "batch": 4}):
        result = pebble.audit(model, gpu="h100-sxm5-80gb", **sizes)
        assert 0 < result.compulsory_bytes <= result.floor_bytes <= result.alone_bytes
        assert result.floor_seconds <= result.alone_seconds
        assert all(
            floor.fused_bytes + floor.part_bytes <= floor.alone_bytes
            for floor in result.floors
            if floor.operation.workload
        )
        assert not result.unknown


def test_an_ffn_counts_as_in_a_layer_by_itself() -> None:
    result = pebble.audit("llama-3-8b", tokens=8192, gpu="h100-sxm5-80gb")
    *_, mlp = pebble.bound("llama-3-8b:layer", tokens=8192, gpu="h100-sxm5-80gb").parts
    own = 2 * (3 * 4096 * 14336 + 8192 * 4096)
    assert mlp["theorem"] == "Theorem 10" and result.computed_once
    assert result.floor_parts["products"] == 32 * (mlp["bytes"] - own) > 0
    assert result.compulsory_bytes == result.floor_bytes - result.floor_parts["products"]


def test_weights_that_are_tied_are_read_once() -> None:
    parts = pebble.audit("gpt2", tokens=64, gpu="a40").floor_parts
    layer = 768 * (3 * 768 + 768 + 2 * 4 * 768) + 2 * 768
    assert parts["weights"] == 2 * (50257 * 768 + 64 * 768 + 12 * layer + 768)


def test_weights_that_are_tied_are_counted_where_they_are_read_whole() -> None:
    """Not at the embedding, which reads a row for sure."""
    for sizes in ({"tokens": 64}, {"context": 64, "batch": 4}):
        fused = {floor.operation.name: floor.fused_bytes for floor in pebble.audit("gpt2", gpu="a40", **sizes).floors}
        tokens = sizes.get("tokens", sizes.get("batch", 0))
        assert fused["lm_head"] == 2 * 50257 * (768 + tokens)
        assert fused["embedding"] == 4 * tokens + 2 * 768 * sizes.get("tokens", 1)


def test_pytorch_finds_the_same(tiny: str) -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm_1, self.norm_2 = nn.RMSNorm(8), nn.RMSNorm(8)
            sides = {"qkv": (8, 16), "o": (8, 8), "gate_up": (8, 32), "down": (16, 8)}
            for name, side in sides.items():
                setattr(self, name, nn.Linear(*side, bias=False))

        def forward(self, x):  # type: ignore[no-untyped-def]
            q, k, v = (y.view(1, 3, -1, 2).transpose(1, 2) for y in self.qkv(self.norm_1(x)).split((8, 4, 4), -1))
            q, k = q.cos(), k.cos()
            heads = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + self.o(heads.transpose(1, 2).reshape(1, 3, 8))
            gate, up = self.gate_up(self.norm_2(x)).chunk(2, -1)
            return x + self.down(nn.functional.silu(gate) * up), k, v

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.layers = nn.Embedding(32, 8), nn.ModuleList([Layer(), Layer()])
            self.norm, self.lm_head = nn.RMSNorm(8), nn.Linear(8, 32, bias=False)

        def forward(self, ids):  # type: ignore[no-untyped-def]
            x, stored = self.embedding(ids), []
            for layer in self.layers:
                x, k, v = layer(x)
                stored += [k, v]
            return self.lm_head(self.norm(x)), stored

    with torch.device("meta"):
        model, ids = Model().to(torch.bfloat16), torch.zeros(1, 3, dtype=torch.int32)
    assert (
        pebble.from_torch(model, (ids,), gpu="a40").floor_parts == pebble.audit(tiny, tokens=3, gpu="a40").floor_parts
    )


def test_equal_layers_are_told_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    assert main(["audit", "gpt2", "--tokens", "64", "--gpu", "a40", "--report", str(page)]) == 0
    shown = capsys.readouterr().out
    row = next(line.split() for line in shown.splitlines() if line.startswith("up "))
    result = pebble.audit("gpt2", tokens=64, gpu="a40")
    assert row[:3] == ["up", "product", "12"]
    assert "up of 12 layers, from up to activation" in shown
    assert "12 x up" in page.read_text() and "norm_1 of 12 layers" not in shown
    assert main(["audit", "gpt2", "--tokens", "64", "--gpu", "a40", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in document["operations"]] == [floor.operation.name for floor in result.floors]
    assert document["graph"]["floor_parts_bytes"]["kv_cache"] == 0


def test_only_what_is_alike_is_added() -> None:
    assert (in_any_layer("0.q.turned"), in_any_layer("relu_3"), in_any_layer("3")) == ("q.turned", "relu_3", "3")
    items = [("0.x", 5, "0.a", ["0.b"]), ("1.x", 6, "1.a", ["1.b"]), ("y", 10, "b", ["c", "d"])]
    assert saved_between(items) == ["11 B: x of 2 layers, from a to b", "10 B: y, from b to c, d"]


def test_a_measured_kernel_is_named_with_its_layer(tiny: str) -> None:
    alone = next(f.alone_bytes for f in pebble.audit(tiny, tokens=3, gpu="a40").floors if f.operation.name == "1.qkv")
    result = pebble.audit(tiny, tokens=3, gpu="a40", measured={"1.qkv": 3 * alone})
    assert isinstance(result, Audit) and result.measured_over_alone == 3
