"""Layers of named models against a table of literal shapes."""

import pytest

from pebble.errors import InputError, UnknownNameError
from pebble.workloads import Gemm, model_names, model_shape, named_gemm
from pebble.workloads.named import model_layers

# model: qkv, o, gate_up (up for GPT-2), down, lm_head, each (N, K)
LITERALS = {
    "llama-2-7b": [(12288, 4096), (4096, 4096), (22016, 4096), (4096, 11008), (32000, 4096)],
    "llama-2-13b": [(15360, 5120), (5120, 5120), (27648, 5120), (5120, 13824), (32000, 5120)],
    "llama-2-70b": [(10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672), (32000, 8192)],
    "llama-3-8b": [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (128256, 4096)],
    "llama-3-70b": [(10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672), (128256, 8192)],
    "llama-3-405b": [(18432, 16384), (16384, 16384), (106496, 16384), (16384, 53248), (128256, 16384)],
    "gpt2": [(2304, 768), (768, 768), (3072, 768), (768, 3072), (50257, 768)],
    "gpt2-medium": [(3072, 1024), (1024, 1024), (4096, 1024), (1024, 4096), (50257, 1024)],
    "gpt2-large": [(3840, 1280), (1280, 1280), (5120, 1280), (1280, 5120), (50257, 1280)],
    "gpt2-xl": [(4800, 1600), (1600, 1600), (6400, 1600), (1600, 6400), (50257, 1600)],
    "qwen2.5-7b": [(4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944), (152064, 3584)],
    "qwen2.5-14b": [(7168, 5120), (5120, 5120), (27648, 5120), (5120, 13824), (152064, 5120)],
    "qwen2.5-32b": [(7168, 5120), (5120, 5120), (55296, 5120), (5120, 27648), (152064, 5120)],
    "qwen2.5-72b": [(10240, 8192), (8192, 8192), (59136, 8192), (8192, 29568), (152064, 8192)],
}
DEEPSEEK = {
    "q_a_kv_a": (2112, 7168),
    "q_b": (24576, 1536),
    "kv_b": (32768, 512),
    "o": (7168, 16384),
    "gate_up": (36864, 7168),
    "down": (7168, 18432),
    "expert_gate_up": (4096, 7168),
    "expert_down": (7168, 2048),
    "lm_head": (129280, 7168),
}


def test_every_model_is_checked_below() -> None:
    assert set(model_names()) == {*LITERALS, "deepseek-v3"}


@pytest.mark.parametrize("model", LITERALS)
def test_shapes(model: str) -> None:
    up = "up" if model.startswith("gpt2") else "gate_up"
    assert [layer.name for layer in model_layers(model)] == ["qkv", "o", up, "down", "lm_head"]
    assert [(layer.n, layer.k) for layer in model_layers(model)] == LITERALS[model]
    assert model_shape(model).gated == (up == "gate_up")
    assert model_shape(model).source


def test_deepseek() -> None:
    assert {layer.name: (layer.n, layer.k) for layer in model_layers("deepseek-v3")} == DEEPSEEK
    assert named_gemm("deepseek-v3:qkv", 7) == named_gemm("deepseek-v3:q_a_kv_a", 7)
    shape = model_shape("deepseek-v3")
    assert (shape.head_dim, shape.value_head_dim, shape.intermediate) == (192, 128, 18432)


def test_named_gemm() -> None:
    assert named_gemm("llama-3-8b:gate_up", 8192) == Gemm(8192, 28672, 4096, name="llama-3-8b:gate_up")
    fp8 = named_gemm("llama-3-8b:down", 1, "fp8", "fp32", accumulate=True)
    assert fp8 == Gemm(1, 4096, 14336, "fp8", "fp32", True, "llama-3-8b:down")


def test_gpt2_has_no_gate_but_answers_to_its_name() -> None:
    assert named_gemm("gpt2:gate_up", 64) == named_gemm("gpt2:up", 64) == Gemm(64, 3072, 768, name="gpt2:up")


def test_parameters_of_one_layer_add_up() -> None:
    # Llama-3-8B: 8,030,261,248 parameters, of which 2 x 128256 x 4096 embeddings and 65 x 4096 norms
    weights = sum(layer.n * layer.k for layer in model_layers("llama-3-8b") if layer.name != "lm_head")
    assert 32 * weights + 2 * 128256 * 4096 + 65 * 4096 == 8_030_261_248


def test_gpt2_parameters_add_up() -> None:
    # GPT-2: 124,439,808 parameters: tied embedding, 1024 positions, biases and norms
    layers = model_layers("gpt2")
    blocks = 12 * (sum(layer.n * layer.k + layer.n for layer in layers if layer.name != "lm_head") + 4 * 768)
    assert blocks + 50257 * 768 + 1024 * 768 + 2 * 768 == 124_439_808


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("llama3-8b:o", "llama-3-8b"),
        ("lama-3-8b", "unknown model 'lama-3-8b'"),
        ("", "unknown model"),
        (":o", "unknown model"),
        ("llama-3-8b", "expected MODEL:LAYER"),
        ("llama-3-8b:", "expected MODEL:LAYER"),
        ("llama-3-8b:gateup", "did you mean gate_up"),
        ("llama-3-8b:o:o", "unknown layer of llama-3-8b 'o:o'"),
        ("llama-3-8b:mlp", "pebble workloads llama-3-8b"),
        ("LLAMA-3-8B:o", "did you mean llama-3-8b"),
    ],
)
def test_unknown_names(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        named_gemm(text, 8)
    assert says in str(caught.value)
    assert isinstance(caught.value, UnknownNameError) == ("MODEL:LAYER" not in says)


@pytest.mark.parametrize("tokens", [0, -1, 2.5, "8", 2**40])
def test_bad_tokens(tokens: object) -> None:
    with pytest.raises(InputError, match=r"^tokens: got"):
        named_gemm("gpt2:o", tokens)
