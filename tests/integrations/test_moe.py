"""Configurations of fused experts: the schema that vLLM reads, and that they follow the batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pebble import cli
from pebble.errors import InputError
from pebble.integrations.moe import BATCHES, moe_configs, routed
from pebble.workloads.named import MIXTURES

KEYS = {"BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages"}


def test_a_file_has_every_batch_and_the_name_that_is_looked_for(tmp_path: Path) -> None:
    words = ["export", "mixtral-8x7b", "--format", "vllm-moe", "--gpu", "h100", "--tensor-parallel", "2"]
    assert cli.main([*words, "-o", str(tmp_path)]) == 0
    path = tmp_path / "E=8,N=7168,device_name=NVIDIA_H100_80GB_HBM3.json"
    configs = json.loads(path.read_text())
    assert list(configs) == [str(tokens) for tokens in BATCHES]
    for entry in configs.values():
        assert set(entry) == KEYS
        assert all(value & (value - 1) == 0 for key, value in entry.items() if key.startswith("BLOCK"))
    assert configs["1"]["BLOCK_SIZE_M"] == 16  # one row an expert
    assert configs["4096"]["BLOCK_SIZE_M"] >= 128
    for entry in configs.values():  # a block takes its whole tile, however few rows its expert has
        m, n, k = (entry[f"BLOCK_SIZE_{side}"] for side in "MNK")
        assert entry["num_stages"] * 2 * k * (m + n) <= 227 * 1024
        assert m * n // (32 * entry["num_warps"]) <= 255 - 32


def test_the_name_tells_the_type() -> None:
    assert moe_configs(MIXTURES["qwen3-30b-a3b"], "h200-sxm-141gb", "fp8").name == (
        "E=128,N=768,device_name=NVIDIA_H200,dtype=fp8_w8a8.json"
    )


def test_every_token_has_its_experts() -> None:
    mixture = MIXTURES["mixtral-8x7b"]
    for tokens in (1, 7, 512):
        rows = routed(mixture, tokens)
        assert sum(rows) == tokens * mixture.top_k
        assert max(rows) <= tokens


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gpt5", "--gpu", "h100"], "unknown model with experts 'gpt5'"),
        (["mixtral-8x7b"], "expected MODEL --gpu SKU"),
        (["mixtral-8x7b", "--gpu", "h100", "--tensor-parallel", "5"], "expected a divisor of the 14336 columns"),
        (["mixtral-8x7b", "--gpu", "h100", "--dtype", "fp32"], "--dtype: got fp32"),
    ],
)
def test_wrong_words_are_told(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", *words, "--format", "vllm-moe"]) == 2
    assert said in capsys.readouterr().err


def test_a_data_type_without_a_file_is_refused() -> None:
    with pytest.raises(InputError, match="expected one with such a file"):
        moe_configs(MIXTURES["deepseek-v3"], "h100", "fp32")
