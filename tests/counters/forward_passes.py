"""Reports of whole forward passes, made by hand: kernels named as those of cuBLAS, CUTLASS, Triton, FlashAttention."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import ceil, exp

from pebble.counters import MeasuredLaunch, Metric
from pebble.counters.names import tile_of
from tests.counters.synthetic import NEW_BASE, base, quoted

OPERATIONS = "sm__ops_path_tensor_src_{}.sum"
STORES = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
READS = "dram__bytes_read.sum"
FMA = "sm__sass_thread_inst_executed_op_ffma_pred_on.sum"
Row = tuple[str, tuple[int, int, int], dict[str, float]]


@dataclass(frozen=True)
class Model:
    """A transformer, and how its kernels are called."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    key_heads: int
    dim: int
    vocab: int = 0
    gated: bool = True
    fused_input: bool = False  # queries, keys and values by one product
    fused_gate: bool = False  # gate and up by one product
    tokens: int = 512
    last_row: bool = False  # the vocabulary of the last token alone
    product: str = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"
    attention: str = (
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<{dim}, 64, 64, 4, 0, 0, "
        "cutlass::half_t, pytorch_flash::Flash_kernel_traits<{dim}, 64, 64, 4, cutlass::half_t>>, 0, 1, 0, 0, 1, 1>"
    )
    size: int = 2
    source: str = "fp16_dst_fp32"


LLAMA_13B = Model(40, 5120, 13824, 40, 40, 128, 32000)
LLAMA_3_8B = Model(
    32, 4096, 14336, 32, 8, 128, 128256, fused_input=True, fused_gate=True,
    product="nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", source="bf16_dst_fp32",
    attention="void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, bf16>>>",
)  # fmt: skip
GPT2 = Model(
    12, 768, 3072, 12, 12, 64, 50257, gated=False, fused_input=True,
    product="triton_tem_fused_addmm_bf16_64x64_0", source="bf16_dst_fp32", attention="_attn_fwd",
)  # fmt: skip
BERT = Model(
    12, 768, 3072, 12, 12, 64, gated=False, product="ampere_sgemm_128x64_tn", size=4, source="",
    attention="void fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)",
)  # fmt: skip


def products_of(model: Model) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """N and K of the products before and after the attention."""
    query, keys = model.heads * model.dim, model.key_heads * model.dim
    inputs = [query + 2 * keys] if model.fused_input else [query, keys, keys]
    up = [2 * model.intermediate] if model.fused_gate else [model.intermediate] * (2 if model.gated else 1)
    after = [(model.hidden, query), *((n, model.hidden) for n in up), (model.hidden, model.intermediate)]
    return [(n, model.hidden) for n in inputs], after


def rows_of(model: Model, counters: str = "operations", noise: float = 0.0, seed: int = 0) -> list[Row]:
    """Every kernel of a pass; ``counters``: which of the products, with the stores: operations, reads, loads."""
    draw = random.Random(seed)

    def noisy(value: float) -> float:
        return value * exp(draw.gauss(0, noise)) if noise else value

    def product(n: int, k: int, m: int) -> Row:
        tile = tile_of(model.product)
        assert tile is not None
        down, across = ceil(m / tile.bm), ceil(n / tile.bn)
        counts = {STORES: noisy(m * n * model.size / 32)}
        if counters == "operations" and model.source:
            counts[OPERATIONS.format(model.source)] = noisy(2 * down * tile.bm * across * tile.bn * k)
        elif counters == "operations":
            counts[FMA] = noisy(m * n * k)
            counts["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"] = 0.0
        elif counters == "loads":
            counts[LOADS] = noisy(m * n * k * model.size / 32 * (1 / tile.bm + 1 / tile.bn))
        else:
            counts[READS] = noisy((m + n) * k * model.size)
        return model.product, (across, down, 1), counts

    def other(name: str) -> Row:
        return name, (model.tokens, 1, 1), {STORES: noisy(model.tokens * model.hidden * model.size / 32)}

    inputs, after = products_of(model)
    rows = [other("void at::native::indexSelectLargeIndex<c10::Half, long, unsigned int, 2, 2, -2, true>")]
    for _ in range(model.layers):
        rows.append(other("void vllm::rms_norm_kernel<c10::Half>"))
        rows += [product(n, k, model.tokens) for n, k in inputs]
        rows.append(other("void vllm::rotary_embedding_kernel<c10::Half, true>"))
        rows.append(other("void vllm::reshape_and_cache_flash_kernel<__half, __half>"))
        stored = model.tokens * model.heads * (model.dim * model.size + 4) / 32
        rows.append(
            (model.attention.format(dim=model.dim), (ceil(model.tokens / 64), 1, model.heads), {STORES: stored})
        )
        rows.append(product(*after[0], model.tokens))
        rows.append(other("void vllm::fused_add_rms_norm_kernel<c10::Half, 8>"))
        rows += [product(n, k, model.tokens) for n, k in after[1:-1]]
        rows.append(other("void vllm::act_and_mul_kernel<c10::Half>"))
        rows.append(product(*after[-1], model.tokens))
    rows.append(other("void vllm::rms_norm_kernel<c10::Half>"))
    if model.vocab:
        rows.append(product(model.vocab, model.hidden, 1 if model.last_row else model.tokens))
    return rows


def launches_of(rows: list[Row]) -> tuple[MeasuredLaunch, ...]:
    """The same as launches."""
    return tuple(
        MeasuredLaunch(str(i), name, {key: Metric(float(round(value)), "") for key, value in counts.items()}, grid)
        for i, (name, grid, counts) in enumerate(rows)
    )


def report_of(rows: list[Row], edit: Callable[[list[str]], list[str]] = list) -> str:
    """The same as ``ncu --csv --page raw`` prints it; ``edit``: of the lines."""
    return "\n".join(edit(list(_lines(rows)))) + "\n"


def _lines(rows: list[Row]) -> Iterator[str]:
    names = list(dict.fromkeys(name for *_, counts in rows for name in counts))
    units = ["byte" if "bytes" in name else "sector" if "sectors" in name else "" for name in names]
    yield quoted([*NEW_BASE, *names])
    yield quoted([*[""] * len(NEW_BASE), *units])
    for ident, (kernel, grid, counts) in enumerate(rows):
        cells = [*base(ident, kernel, "({}, {}, {})".format(*grid))[:-1], "9.0"]
        yield quoted([*cells, *(f"{counts[name]:.0f}" if name in counts else "n/a" for name in names)])


__all__ = ["BERT", "GPT2", "LLAMA_3_8B", "LLAMA_13B", "Model", "launches_of", "replace", "report_of", "rows_of"]
