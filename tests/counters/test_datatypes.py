"""The data type that a kernel multiplies in, by counters first and by its name where they are silent."""

from __future__ import annotations

import pytest

import pebble
from pebble.cli import main
from pebble.counters import MeasuredLaunch, Metric
from pebble.counters.datatypes import data_type, tensor_operations
from pebble.counters.names import operand_types
from tests.counters.synthetic import long_lines

FMA = "sm__sass_thread_inst_executed_op_{}_pred_on.sum"
OPERATIONS = "sm__ops_path_tensor_src_{}.sum"
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
STORES = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
N = 2048
DGEMM = {
    FMA.format("dfma"): ("inst", f"{N**3:,}"), FMA.format("ffma"): ("inst", "0"), FMA.format("hfma"): ("inst", "0"),
    TENSOR: ("%", "0.00"), STORES: ("sector", f"{N * N * 8 // 32:,}"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("sector", f"{2 * N**3 * 8 // 32 // 32:,}"),
}  # fmt: skip


def launch(name: str = "product", capability: str = "9.0", **counters: float) -> MeasuredLaunch:
    metrics = {key.replace("_of_", "."): Metric(float(value), "") for key, value in counters.items()}
    return MeasuredLaunch("0", name, metrics, (64, 64, 1), (256, 1, 1), "", capability)


def counted(name: str = "product", capability: str = "9.0", **by: float) -> MeasuredLaunch:
    """With counters by short names: dfma, ffma, hfma, tensor, st, or the source type of tensor operations."""
    pipes = {"tensor": TENSOR, "pipe": "smsp__inst_executed_pipe_fma.sum"}
    names = {"st": STORES, **pipes, **{key: FMA.format(key) for key in ("dfma", "ffma", "hfma", "dadd")}}
    metrics = {names.get(key, OPERATIONS.format(key)): Metric(float(value), "") for key, value in by.items()}
    return MeasuredLaunch("0", name, metrics, (64, 64, 1), (256, 1, 1), "", capability)


@pytest.mark.parametrize(
    ("single", "types"),
    [
        (counted(dfma=N**3, ffma=0), ("fp64",)),
        (counted(ffma=N**3, dfma=10**5, hfma=0, tensor=0), ("fp32",)),  # a few of fp64 are no fp64 product
        (counted(dadd=10**9), ("fp64",)),
        (counted(bf16_dst_fp32=10**12, tf32_dst_fp32=0), ("bf16",)),
        (counted(fp16_dst_fp16=0, fp16_dst_fp32=10**12), ("fp16",)),
        (counted(fp8_dst_fp32_sparsity_off=10**12, ffma=10**9), ("fp8",)),  # the FFMA are its epilogue
        (counted("sm80_xmma_gemm_f32f32_f32f32_f32_nn", tf32_dst_fp32=10**12), ("tf32",)),
        (counted("ampere_bf16_s16816gemm_bf16_128x128", tensor=60), ("bf16",)),
        (counted("ampere_sgemm_128x64_tn", tensor=60), ("tf32",)),  # tensor cores have no fp32
        (counted("gemm", tensor=60, capability="7.0"), ("fp16",)),
        (counted(hfma=N**3, ffma=0, tensor=0), ("fp16", "bf16")),
        (counted("product_half", hfma=N**3, ffma=0, tensor=0), ("fp16",)),
        (counted("gemm", tensor=60), ("bf16", "fp16", "tf32", "fp8", "int8", "fp64")),
        (counted(ffma=10**6, st=10**6), ("fp32", "a type of tensor cores")),  # too few to be the product
        (counted(ffma=8 * N**2 * 8, st=N * N * 4 / 32), ("fp32",)),
        (counted("dgemm_kernel"), ("fp64",)),
        (counted("copy", ffma=0, dfma=0, hfma=0, tensor=0), ()),
        (counted("copy"), ()),
    ],
)  # fmt: skip
def test_the_type_is_told_or_called_ambiguous(single, types):
    verdict = data_type(single)
    assert verdict.types == types
    assert verdict.text.startswith("ambiguous: ") == verdict.ambiguous == (len(types) > 1)
    assert verdict.text.startswith("not told") == (not types)


def test_kinds_of_tensor_instructions_narrow_the_type():
    hmma = launch("gemm", sm__inst_executed_pipe_tensor_op_hmma_of_sum=10**6)
    assert data_type(hmma).types == ("bf16", "fp16", "tf32") and "HMMA" in data_type(hmma).text
    assert data_type(launch("gemm", sm__inst_executed_pipe_tensor_op_dmma_of_sum=10**6)).types == ("fp64",)
    assert data_type(launch("gemm", sm__inst_executed_pipe_tensor_op_imma_of_sum=10**6)).types == ("int8",)
    peak = launch("dgemm", sm__inst_executed_pipe_tensor_op_hmma_of_sum_of_peak_sustained=10**6)
    assert data_type(peak).types == ("fp64",)  # the peak says nothing of what ran


def test_the_fp32_pipe_counts_addresses_too():
    copy = counted("copy", pipe=10**6, tensor=0)
    assert data_type(copy).types == () and "which counts addresses too" in data_type(copy).text
    product = counted(pipe=10**6, tensor=0, st=10**4)
    assert data_type(product).types == ("fp32",)
    tensor = launch("product", sm__inst_executed_pipe_tensor_of_sum=10**6, smsp__inst_executed_pipe_fma_of_sum=10**6)
    assert data_type(tensor).ambiguous and "the tensor pipe is at work" in data_type(tensor).text


def test_counters_go_before_a_name_that_says_otherwise():
    verdict = data_type(counted("ampere_bf16_s16816gemm", fp16_dst_fp32=10**12))
    assert verdict.types == ("fp16",)
    kept = data_type(counted("hgemm_bf16", ffma=N**3, hfma=0, tensor=0))
    assert kept.types == ("fp32",) and "may be how values are kept" in kept.text
    weak = data_type(counted("gemm(const float *)"))
    assert weak.types == ("fp32",) and "the name alone" in weak.text and "profile " in weak.text


def test_operations_of_all_results_are_added_once():
    total = counted(fp8=30.0, fp8_dst_fp16=10, fp8_dst_fp32=20, int8=5)
    assert tensor_operations(total) == {"fp8": 30.0, "int8": 5.0}
    parts = counted(fp16_dst_fp16=10, fp16_dst_fp32_sparsity_on=20, fp16_dst_fp32_sparsity_off=3)
    assert tensor_operations(parts) == {"fp16": 33.0}
    assert data_type(counted(fp16_dst_fp32=10**9, fp8_dst_fp32=10**9)).types == ("fp16", "fp8")


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT", ("fp16",)),
        ("nvjet_tst_64x8_64x16_2x1_v_bz_TNT", ("bf16",)),
        ("cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4", ("tf32",)),
        ("cutlass_75_tensorop_s1688gemm_f16_256x128_nn_align8", ("fp16",)),
        ("cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_32x3_tn_align8", ("bf16",)),
        ("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x64", ("fp8",)),
        ("ampere_h16816gemm_128x128_ldg8_stages_32x5_tn", ("fp16",)),
        ("fmha_cutlassF_f16_aligned_64x64_rf_sm80", ("fp16",)),
        ("void cutlass::Kernel<cutlass_80_tensorop_i16832gemm_s8_128x128>", ("int8",)),
        ("void dot<double, float>(const double *, const float *)", ("fp64", "fp32")),
        ("triton_tem_fused_mm_0", ()),
    ],
)
def test_names_of_libraries(name, types):
    assert operand_types(name) == types


def test_the_commands_tell_fp64_from_fp32(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(long_lines([("gemm(void *)", DGEMM)])))
    for command in (["report", str(path)], ["which", str(path)]):
        assert main(["ncu", *command]) == 0
        assert "fp64: 8,589,934,592 fp64 instructions" in " ".join(capsys.readouterr().out.split())
    result = pebble.ncu(path).which()
    assert result.to_dict()["data_types"] == ["fp64"] and "8-byte results" in result.shape.text
    swapped = DGEMM | {FMA.format("dfma"): ("inst", "0"), FMA.format("ffma"): ("inst", f"{N**3:,}")}
    path.write_text("\n".join(long_lines([("gemm(void *)", swapped)])))
    assert pebble.ncu(path).which().to_dict()["data_types"] == ["fp32"]
