"""Which kernel is which: the critical one, data types, heads, shapes; and what stays ambiguous is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pebble
from pebble.cli import main
from pebble.counters import MeasuredLaunch, Metric
from pebble.counters.limits import choose, computes, critical_kernel
from pebble.counters.names import Operation, kind_of, tile_of, value_bytes
from pebble.counters.profile import Profile
from pebble.counters.shapes import read_shapes, stored_sectors, stores_of, value_sizes
from pebble.counters.stores import read_heads, read_stores
from pebble.errors import InputError
from tests.counters.synthetic import TILED, TILED_NAME, long_lines

SAMPLES = Path(__file__).parents[2] / "benchmarks" / "gpu" / "samples"
NAMES = {
    "st": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "st_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "ld": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "time": "gpu__time_duration.sum",
    "fma": "smsp__inst_executed_pipe_fma.sum",
    "double": "smsp__inst_executed_pipe_fp64.sum",
    "dmma": "sm__pipe_tensor_op_dmma_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "half": "smsp__inst_executed_pipe_fp16.sum",
    "read": "dram__bytes_read.sum",
    "l2_write": "lts__t_sectors_op_write.sum",
    "fabric": "lts__t_sectors_srcunit_ltcfabric.sum",
}


def launch(name: str, ident: str = "0", grid: tuple[int, int, int] = (64, 64, 1), **counters: float) -> MeasuredLaunch:
    metrics = {NAMES[key]: Metric(float(value), "") for key, value in counters.items()}
    return MeasuredLaunch(ident, name, metrics, grid, (256, 1, 1))


def test_stored_sectors_tell_the_data_type():
    # 128 rows of 4096: 65,536 sectors in fp32, 32,768 in bf16
    assert [r.value_bytes for r in read_stores(65536, 128, 4096).plain] == [4]
    assert [r.value_bytes for r in read_stores(32768, 128, 4096).plain] == [2]
    assert not read_stores(65536, 128, 4096).ambiguous and not read_stores(32768, 128, 4096).ambiguous
    assert read_stores(12345, 128, 4096).readings == () and "no data type fits" in read_stores(12345, 128, 4096).text


def test_stores_that_fill_no_sector_are_ambiguous():
    # a register-blocked kernel: 4 times what 2048^2 results of 4 bytes need
    verdict = read_stores(2_097_152, 2048, 2048)
    assert verdict.ambiguous and [(r.value_bytes, r.factor) for r in verdict.readings] == [
        (8, 2), (4, 4), (2, 8), (1, 16),
    ]  # fmt: skip
    assert "ambiguous" in verdict.text and "fp32" in verdict.text and "bf16" in verdict.text


def test_the_log_sum_exp_tells_the_heads():
    # 32,768 sectors of bf16 and 512 = 128 rows x 32 heads x 4 bytes / 32
    (reading,) = read_stores(33280, 128, 4096).plain
    assert (reading.value_bytes, reading.extra_sectors, reading.heads) == (2, 512, 32)
    assert read_heads(33280, 128) == ((32, 128, 2),)


@given(
    rows=st.integers(1, 512).map(lambda x: 8 * x),
    heads=st.integers(1, 128),
    dim=st.sampled_from([64, 80, 96, 128, 192, 256]),
)
def test_heads_are_found_among_those_that_fit(rows, heads, dim):
    sectors = rows * heads * (2 * dim + 4) // 32
    assert (heads, dim, 2) in read_heads(sectors, rows)
    assert heads in [r.heads for r in read_stores(sectors, rows, heads * dim).readings]


@given(rows=st.integers(1, 4096), cols=st.integers(1, 4096), size=st.sampled_from([1, 2, 4]))
def test_the_true_type_is_always_among_the_readings(rows, cols, size):
    sectors = -(-rows * cols * size // 32)
    assert size in [r.value_bytes for r in read_stores(sectors, rows, cols).plain]


def test_the_critical_kernel():
    small = launch("gemm_a", "0", tensor=50, time=1000)
    large = launch("gemm_b", "1", tensor=30, time=9000)
    slow = launch("elementwise", "2", tensor=0, time=50_000, st=10**9)
    assert critical_kernel([small, large, slow]).launch is large
    assert critical_kernel([launch("sgemm", "0", fma=5), launch("sgemm", "1", fma=9), slow]).launch.ident == "1"
    without = [launch("copy", "0", st=10), launch("fill", "1", st=30)]
    assert critical_kernel(without).launch.ident == "1" and "stored sectors" in critical_kernel(without).why
    assert critical_kernel([launch("a"), launch("b")]).why.startswith("the first")
    assert computes(launch("product", tensor=40)) is Operation.GEMM and computes(launch("product")) is Operation.OTHER


def test_launches_are_chosen_by_id_or_name():
    profile = Profile("a", "long", (launch("gemm_a", "0"), launch("gemm_b", "1"), launch("copy", "2")))
    assert [element.ident for element in choose(profile, ["gemm"])[0]] == ["0", "1"]
    assert [item.ident for item in choose(profile, ["2", "gemm_b"])[0]] == ["2", "1"]
    with pytest.raises(InputError, match="no launch has the ID or name 'softmax'"):
        choose(profile, ["softmax"])


@pytest.mark.parametrize(
    ("name", "kind", "tile", "outputs"),
    [
        ("nvjet_sm90_tst_128x64_64x8_1x2_h_bz_NNT", Operation.GEMM, "128x64x64", (2,)),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8_stage3", Operation.GEMM, "128x64x8", (4,)),
        ("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn", Operation.GEMM, "128x256", (2,)),
        ("void gemm_tiled_kernel<32>(const float *, const float *, float *)", Operation.GEMM, "32x32", (4,)),
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>", Operation.ATTENTION, None, (1, 2, 4)),
        ("ffn_kernel", Operation.FFN, None, (1, 2, 4)),
        ("fused_swiglu_bf16", Operation.FFN, None, (2,)),
        ("void gemm<double>(const double *)", Operation.GEMM, None, (8,)),
        ("ampere_dgemm_64x64_nn", Operation.GEMM, "64x64", (8,)),
        ("mlp_down_gemm", Operation.GEMM, None, (1, 2, 4)),
        ("vecAdd", Operation.OTHER, None, (1, 2, 4)),
    ],
)
def test_names(name, kind, tile, outputs):
    assert kind_of(name) is kind and value_bytes(name)[1] == outputs
    if tile is not None:
        assert str(tile_of(name)) == tile


# loads and stores of real launches of 2048^3 in fp32 on one GPU
FP32 = {
    "naive": ("gemm_naive(const float *)", (64, 64, 1), {"st": 524288, "st_requests": 131072, "ld": 5 * 2048**3 // 32}),
    "tiled": ("gemm_tiled<32>(const float *)", (64, 64, 1), {"st": 524288, "st_requests": 131072, "ld": 67108864}),
}


@pytest.mark.parametrize("which", sorted(FP32))
def test_shapes_that_launches_determine(which):
    name, grid, counters = FP32[which]
    (reading,) = read_shapes(launch(name, grid=grid, read=54e6, **counters))
    assert (reading.m, reading.n, reading.k, str(reading.tile), reading.out_bytes) == (2048, 2048, 2048, "32x32", 4)


def test_a_shape_that_two_readings_fit_is_listed_twice():
    name, counters = "gemm_register_blocked(const float *)", {"st": 2097152, "st_requests": 131072, "ld": 33554432}
    result = read_shapes(launch(name, grid=(32, 32, 1), read=42e6, **counters))
    assert {(r.m, r.n, r.k) for r in result} == {(4096, 4096, 1024), (2048, 2048, 2048)}
    (known,) = read_shapes(launch(name, grid=(32, 32, 1), read=42e6, **counters), rows=2048)
    assert (known.m, known.n, known.k, known.factor) == (2048, 2048, 2048, 4)


def test_the_pipe_that_multiplies_tells_the_type_where_the_name_does_not():
    grid, counters = (64, 64, 1), {"st": 524288, "st_requests": 131072, "ld": 67108864, "read": 54e6}
    assert value_sizes(launch("product", **counters)) == ((1, 2, 4), (1, 2, 4))
    assert value_sizes(launch("product", fma=2048**3 // 32, half=0, **counters)) == ((4,), (4,))
    assert value_sizes(launch("product", fma=1000, half=2048**3 // 64, **counters)) == ((2,), (2, 4))
    assert value_sizes(launch("hgemm_bf16", fma=2048**3 // 32, half=0, **counters))[0] == (2,)  # the name goes before
    (reading,) = read_shapes(launch("product", grid=grid, fma=2048**3 // 32, half=0, **counters))
    assert (reading.m, reading.n, reading.k, reading.out_bytes) == (2048, 2048, 2048, 4)
    assert any("load sectors of tiles and FMA instructions" in said for said in reading.rests_on)


def test_fp64_is_said_by_its_instructions():
    rows = cols = 2048
    stored, loads = rows * cols * 8 // 32, 2 * 2048**3 * 8 // 32 // 32
    counters = {"st": stored, "st_requests": stored // 8, "ld": loads, "read": 200e6}
    product = launch("product", **counters, double=2048**3 // 32, fma=10**6, half=0)
    assert value_sizes(product) == ((8,), (8,))
    verdict = stores_of(product, stored, rows, cols)
    assert not verdict.ambiguous and verdict.text.endswith("fp64")
    (reading,) = read_shapes(product)
    assert (reading.m, reading.n, reading.k, reading.out_bytes) == (2048, 2048, 2048, 8)
    assert any("load sectors of tiles and FMA instructions" in said for said in reading.rests_on)
    assert value_sizes(launch("product", dmma=60, tensor=60)) == ((8,), (8,))
    # without them fp32 stored twice over is as good, and where there are none fp64 is out
    unknown = stores_of(launch("product", **counters), stored, rows, cols)
    assert unknown.ambiguous and [r.value_bytes for r in unknown.readings] == [4, 2, 1, 8]
    none = stores_of(launch("product", **counters, double=0), stored, rows, cols)
    assert [r.value_bytes for r in none.readings] == [4, 2, 1]
    few = launch("a_gemm", "0", double=9 * 10**6, fma=10**6), launch("b_gemm", "1", fma=5 * 10**6)
    assert critical_kernel(few).launch is few[0] and critical_kernel(few).why == "most FMA instructions"


def test_heads_fill_the_columns(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(long_lines([("flash_fwd_kernel", {NAMES["st"]: ("sector", "524,800")})])))
    assert main(["ncu", "which", str(path), "--rows", "128"]) == 0
    assert "800 heads of 80" in capsys.readouterr().out  # of all batches: nothing says otherwise
    assert main(["ncu", "which", str(path), "--rows", "128", "--cols", "4096"]) == 0
    said = capsys.readouterr().out
    assert "800 heads" not in said and "heads    none of usual width fills 4,096 columns" in said
    assert "no data type fits" in said
    path.write_text("\n".join(long_lines([("flash_fwd_kernel", {NAMES["st"]: ("sector", "33,280")})])))
    assert main(["ncu", "which", str(path), "--rows", "128", "--cols", "4096", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["heads"] == [{"heads": 32, "head_dim": 128, "value_bytes": 2}]


def test_stores_by_tma_are_told_from_l2():
    # half of the sectors are passed to the other partition: 1.5 writes each
    tma = launch("nvjet_sm90_tst_128x64_64x8_1x2_h_bz_NNT", grid=(2, 64, 1), st=0, l2_write=98458, fabric=152856)
    sectors, how = stored_sectors(tma)
    assert sectors == pytest.approx(1024 * 1024 * 2 / 32, rel=0.01) and "L2" in how
    assert (1024, 1024) in [(r.m, r.n) for r in read_shapes(tma)]


def test_a_real_product_is_among_the_shapes():
    result = pebble.ncu(SAMPLES / "h200_gemm_orders_raw.csv").which("1")
    assert result.computes == "gemm" and result.ambiguous and result.shape is None
    first = result.shapes[0]
    assert (first.m, first.n, first.k, str(first.tile), first.out_bytes) == (8192, 8192, 8192, "128x128", 2)
    assert any("load sectors of tiles and tensor pipe" in said for said in first.rests_on)
    known = pebble.ncu(SAMPLES / "h200_gemm_orders_raw.csv").which("1", rows=8192, cols=8192)
    assert not known.ambiguous and known.shape == first


def test_a_network_is_no_less_critical_than_attention():
    network, attention = launch("ffn_kernel", "0", time=9000), launch("attention_kernel", "1", time=1000)
    assert critical_kernel([attention, network, launch("copy", "2", time=10**6)]).launch is network


def test_the_command(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(long_lines([(TILED_NAME, TILED)])))
    assert main(["ncu", "which", str(path), "--rows", "2048", "--cols", "2048"]) == 0
    said = capsys.readouterr().out
    assert "2048 x 2048 values: fp32" in said and "2048 x 2048 x 2048, tile 32x32" in " ".join(said.split())
    blocked = {**TILED, NAMES["st"]: ("sector", "2,097,152"), NAMES["ld"]: ("sector", "33,554,432")}
    path.write_text("\n".join(long_lines([("gemm(const float *)", blocked)])))
    assert main(["ncu", "which", str(path), "--rows", "2048", "--cols", "2048", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ambiguous"] and document["stores"]["ambiguous"]
    assert [r["sectors_touched_times"] for r in document["stores"]["readings"]] == [4, 2, 8, 16]
    flash = {NAMES["st"]: ("sector", "33,280")}
    path.write_text("\n".join(long_lines([("flash_fwd_kernel", flash)])))
    assert main(["ncu", "which", str(path), "--rows", "128"]) == 0
    assert "heads    32 heads of 128 values" in capsys.readouterr().out
    # 65 heads of 64 values store as much as 33 of 128
    path.write_text("\n".join(long_lines([("flash_fwd_kernel", {NAMES["st"]: ("sector", str(128 * 33 * 260 // 32))})])))
    assert main(["ncu", "which", str(path), "--rows", "128"]) == 0
    said = capsys.readouterr().out
    assert "heads    ambiguous; 2 fit:" in said and "33 heads of 128" in said and "65 heads of 64" in said
    assert main(["ncu", "which", str(path), "--cols", "128"]) == 2
