"""Blocks of named models: MODEL:mlp, MODEL:attention, and the layers that remain GEMMs."""

import pytest

from pebble.errors import InputError, UnknownNameError
from pebble.workloads import Attention, Ffn, Gemm, named_gemm, named_workload


def test_mlp_is_gated_where_the_models_is() -> None:
    assert named_workload("llama-2-7b:mlp", 8192) == Ffn(8192, 4096, 11008, gated=True, name="llama-2-7b:mlp")
    assert named_workload("gpt2:mlp", 10, "fp32") == Ffn(10, 768, 3072, dtype="fp32", name="gpt2:mlp")


def test_attention_is_causal_with_grouped_heads() -> None:
    result = named_workload("llama-3-8b:attention", 4096)
    assert result == Attention(4096, 4096, 128, heads=32, kv_heads=8, causal=True, name="llama-3-8b:attention")
    deepseek = named_workload("deepseek-v3:attention", 7)
    assert isinstance(deepseek, Attention)
    assert (deepseek.head_dim, deepseek.value_dim, deepseek.heads, deepseek.kv_heads) == (192, 128, 128, 128)


def test_other_layers_are_gemms() -> None:
    assert named_workload("llama-3-8b:gate_up", 8) == named_gemm("llama-3-8b:gate_up", 8)
    assert isinstance(named_workload("gpt2:o", 8, out_dtype="fp32"), Gemm)


def test_refusals() -> None:
    with pytest.raises(UnknownNameError, match="llama-2-7b"):
        named_workload("lama-2-7b:mlp", 8)
    with pytest.raises(UnknownNameError, match="layer of gpt2"):
        named_workload("gpt2:nothing", 8)
    with pytest.raises(InputError, match="tokens: got 0"):
        named_workload("gpt2:mlp", 0)
    with pytest.raises(InputError, match="MODEL:LAYER"):
        named_workload("gpt2", 8)
