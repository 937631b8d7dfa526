"""Triton's autotuner with the time model: on configurations as Triton hands them over, and with the package itself."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

import pebble
from pebble.errors import InputError, UnknownNameError
from pebble.integrations.triton import attention, gemm, perf_model, prune
from pebble.reports.advise import TRIED


@dataclass
class Config:
    """What is read of a ``triton.Config``."""

    kwargs: dict[str, Any]
    num_warps: int
    num_stages: int


def space(make: Any) -> list[Any]:
    """48 configurations of the tutorial's kernel."""
    sides = product((64, 128), (64, 128, 256), (32, 64), (1, 8), (4, 8))
    return [
        make({"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": g}, num_warps=w, num_stages=3)
        for m, n, k, g, w in sides
    ]


SHAPE = {"M": 4096, "N": 4096, "K": 4096}


def test_few_are_kept_the_fastest_by_the_model_first() -> None:
    configs = space(Config)
    kept = prune(gemm(), gpu="h100", dtype="bf16")(configs, SHAPE)
    assert len(kept) == 3  # 5 % of 48
    time = perf_model(gemm(), gpu="h100", dtype="bf16")
    times = {
        id(c): time(**SHAPE, **c.kwargs, num_warps=c.num_warps, num_stages=c.num_stages, num_ctas=1) for c in configs
    }
    assert times[id(kept[0])] <= 1.01 * min(times.values())
    assert kept[0].kwargs["BLOCK_SIZE_N"] == 256
    tiles = [tuple(value for key, value in c.kwargs.items() if "BLOCK" in key) for c in kept]
    assert len({(tile, c.num_warps) for tile, c in zip(tiles, kept, strict=True)}) >= 2  # not one tile in three orders


def test_names_of_arguments_are_the_users() -> None:
    configs = [Config({"BM": m, "BN": 128, "BK": 64}, 4, 3) for m in (64, 128)]
    kernel = gemm("rows", "cols", "depth", tile=("BM", "BN", "BK"), group=None)
    kept = prune(kernel, keep=1, gpu="a100", dtype="fp16")(configs, {}, rows=8192, cols=8192, depth=8192)
    assert [c.kwargs["BM"] for c in kept] == [128]


def test_attention_kernels_are_ranked_by_their_shape() -> None:
    kernel = attention(
        lambda v: {"queries": v["N_CTX"], "keys": v["N_CTX"], "head_dim": v["HEAD_DIM"], "heads": v["H"]}
    )
    configs = [Config({"BLOCK_M": m, "BLOCK_N": n}, 8, 3) for m in (64, 128) for n in (32, 64, 128)]
    shape = {"N_CTX": 8192, "HEAD_DIM": 128, "H": 32}
    kept = prune(kernel, keep=2, gpu="h200", dtype="bf16")(configs, shape)
    assert len(kept) == 2


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [({"M": 0, "N": 8, "K": 8}, "bf16"), ({"M": "many", "N": 8, "K": 8}, "bf16"), ({"N": 8, "K": 8}, "bf16")],
)
def test_what_is_not_known_keeps_every_configuration(shape: dict[str, Any], dtype: str) -> None:
    configs = space(Config)
    assert prune(gemm(), gpu="h100", dtype=dtype)(configs, shape) == configs
    assert perf_model(gemm(), gpu="h100", dtype=dtype)(**shape, **configs[0].kwargs, num_warps=4, num_stages=3) == 0


def test_wrong_arguments_are_told_at_once() -> None:
    with pytest.raises(InputError, match="keep: got 0"):
        prune(gemm(), keep=0)
    with pytest.raises(UnknownNameError):
        perf_model(gemm(), gpu="h1000")


def test_triton_itself_compiles_only_what_is_kept() -> None:
    triton = pytest.importorskip("triton")
    runtime = pytest.importorskip("triton.runtime.autotuner")
    kept = prune(gemm(), gpu="h100", dtype="bf16")
    tuner = runtime.Autotuner.__new__(runtime.Autotuner)  # without a driver, which a machine without a GPU lacks
    tuner.configs, tuner.nargs = space(triton.Config), dict(SHAPE)
    tuner.early_config_prune, tuner.perf_model, tuner.configs_top_k = kept, None, 1.0
    assert len(tuner.prune_configs({})) == 3
    tuner.early_config_prune, tuner.perf_model, tuner.configs_top_k = None, perf_model(gemm(), "h100", "bf16"), 2
    assert len(tuner.prune_configs({})) == 2


def test_what_is_asked_of_pruning_is_looked_at() -> None:
    for keep in (0, -1, float("inf"), "x", None, True):
        with pytest.raises(InputError, match="keep: got"):
            prune(gemm(), keep=keep)  # type: ignore[arg-type]
    assert prune(gemm(), gpu="h100", dtype="bf16")([], SHAPE) == []
    configs = space(Config)
    theirs = prune(gemm(), gpu="h100", dtype="float16")(configs, SHAPE)
    assert theirs == prune(gemm(), gpu="h100", dtype="fp16")(configs, SHAPE) != configs


def test_advise_says_which_kernels_it_tries() -> None:
    """On this chip the model prefers one that is not among them: shorter steps, and no room for the result."""
    (first,) = prune(gemm(), keep=1, gpu="a100-sxm4-40gb", dtype="bf16")(space(Config), SHAPE)
    advised = pebble.advise(pebble.Gemm(4096, 4096, 4096), gpu="a100-sxm4-40gb", progress=False)
    values = {**SHAPE, **first.kwargs, "num_warps": first.num_warps, "num_stages": first.num_stages}
    assert first.kwargs["BLOCK_SIZE_K"] < advised.best.advice.tile.bk
    assert perf_model(gemm(), gpu="a100-sxm4-40gb", dtype="bf16")(**values) < advised.best.seconds * 1e3
    assert TRIED in advised.notes
