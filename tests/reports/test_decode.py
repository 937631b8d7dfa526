"""The decode table against numbers worked out by hand."""

import json

import pytest

from pebble.cli import main
from pebble.errors import InputError
from pebble.reports.decode import decode_step


def test_llama_3_8b_by_hand() -> None:
    step = decode_step("llama-3-8b", batch=4, context=8192, on_chip_bytes=2**26)
    assert step.kv_bytes == 2 * 4 * 8 * 8192 * 128 * 2
    assert step.weight_bytes == 2 * (4096 * 6144 + 4096 * 4096 + 4096 * 28672 + 14336 * 4096)
    assert step.attention_bound_bytes == step.kv_bytes + 2 * (4 * 32 * 128 * 2)  # Q and O besides
    assert step.intermediate_bytes == 2 * 4 * (2 * 4096 + 3 * 14336)  # residual and FFN input; gate, up, their product


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_share_grows_with_batch_and_context(dtype: str) -> None:
    shares = [decode_step("llama-2-7b", b, c, 2**25, dtype).kv_share for b, c in ((1, 1024), (1, 4096), (8, 4096))]
    assert 0 < shares[0] < shares[1] < shares[2] < 1


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "llama-3-8b", "--gpu", "h100-sxm5-80gb", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert len(steps) == 7 * 8
    assert {s["batch"] for s in steps} == {1, 2, 4, 8, 16, 32, 64}
    assert min(s["context"] for s in steps) == 1024
    assert max(s["context"] for s in steps) == 131072
    for s in steps:
        assert s["layer_bytes"] == s["kv_bytes"] + s["weight_bytes"] + s["activation_bytes"]
        assert s["intermediates_fit_on_chip"] == (s["intermediate_bytes"] <= 116 * 2**20)


def test_compressed_caches_are_refused() -> None:
    with pytest.raises(InputError, match="compressed"):
        decode_step("deepseek-v3", 1, 1024, 2**20)
