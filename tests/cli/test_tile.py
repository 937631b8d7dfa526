"""`pebble tile`, `cycles` and `stream` as a user types them."""

from __future__ import annotations

import json

import pytest

import pebble
from pebble.cli import main

H100 = ["--gpu", "h100-sxm5-80gb"]
A100 = ["--gpu", "a100-sxm4-40gb"]
SMALL = ["gemm", "-m", "1000", "-n", "512", "-k", "256"]


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main([*words, "--json"]) == 0
    result: dict[str, object] = json.loads(capsys.readouterr().out)
    return result


def test_tile_ranks_by_modelled_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tile", *SMALL, *H100, "--top", "3", "--explain"]) == 0
    out = capsys.readouterr().out
    assert (
        "ours: tile" in out
        and "shared memory of a block" in out
        and "stages hide the latency" in out.replace("\n  ", " ")
    )
    result = document(capsys, "tile", *SMALL, *H100, "--top", "3")
    ranked = result["configurations"]
    assert isinstance(ranked, list) and len(ranked) == 3
    seconds = [each["modelled_seconds"] for each in ranked]
    assert seconds == sorted(seconds)
    assert ranked[0]["model"]["fits"] and ranked[0]["model"]["limits_broken"] == []


def test_tile_agrees_with_time(capsys: pytest.CaptureFixture[str]) -> None:
    mine = ["--tile", "128x128x64", "--stages", "3"]
    tile = document(capsys, "tile", *SMALL, *H100, *mine)["configurations"]
    assert isinstance(tile, list)
    order = tile[0]["schedule"]
    times = document(capsys, "time", *SMALL, *H100, *mine, "--schedules", order)["schedules"]
    assert isinstance(times, list)
    assert times[0]["modelled_ms"] == pytest.approx(1e3 * tile[0]["modelled_seconds"])


def test_waves_of_a_chain_are_those_of_both_products(capsys: pytest.CaptureFixture[str]) -> None:
    chain = ["ffn", "--tokens", "1024", "--d-model", "2048", "--hidden", "3072", *H100, "--tile", "128x128x64"]
    tile = document(capsys, "tile", *chain)["configurations"]
    separate = document(capsys, "time", *chain, "--schedules", "separate:grouped-8")["schedules"]
    assert isinstance(tile, list) and isinstance(separate, list)
    assert tile[0]["waves"] == separate[0]["waves"] == 2 + 1
    assert main(["tile", *chain]) == 0
    assert "192 + 128 blocks on 132 SMs, 1 on each: 3 waves" in " ".join(capsys.readouterr().out.split())


def test_tile_says_what_it_times() -> None:
    gemm, spec = pebble.Gemm(1000, 512, 192), list[str]()  # of which no other test asks
    pebble.tile(gemm, gpu="h100-sxm5-80gb", tile="128x64x32", progress=lambda what, done, total: spec.append(what))
    assert spec == ["tile 128x64x32, row", "tile 128x64x32, grouped-8"]
    spec.clear()
    result = pebble.tile(gemm, gpu="h100-sxm5-80gb", progress=lambda what, done, total: spec.append(what))
    assert {f"tile {choice.tile}, {choice.advice.schedule.name}" for choice in result.choices} <= set(spec)


def test_tile_follows_few_lines_where_it_must_tell_them_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles 32 deep have half lines of A in common, all of them; 96 columns of B are a line and a half."""
    monkeypatch.setattr("pebble.tuning.advisors.ours.MOST_SINGLE_LINES", 1 << 14)
    for tile, whole in (("128x64x32", True), ("128x96x32", False)):
        result = pebble.tile(pebble.Gemm(1024, 768, 512), gpu="a100-sxm4-40gb", tile=tile)
        assert result.best.time is not None and (result.best.time.simulated_share == 1) == whole


def test_tile_by_rule(capsys: pytest.CaptureFixture[str]) -> None:
    shape = ["gemm", "-m", "256", "-n", "7168", "-k", "512", "--dtype", "fp8"]
    result = document(capsys, "tile", *shape, *H100, "--advisor", "deepgemm")
    first = result["configurations"][0]
    assert (first["tile"], first["stages"], first["score"]) == ("128x112x128", 6, 3250)
    assert (first["threads"], first["warps"]) == (384, 12)  # a warpgroup loads, two multiply
    assert main(["tile", *shape, *H100, "--advisor", "deepgemm-2025-05", "--top", "2"]) == 0
    assert "ranked by the rule's own waves + idle" in capsys.readouterr().out


def test_shared_memory_of_both_rules_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    shape = ["gemm", "-m", "256", "-n", "7168", "-k", "512", "--dtype", "fp8"]
    for advisor, sums in (("deepgemm", 28672), ("deepgemm-2025-05", 28672)):
        result = document(capsys, "tile", *shape, *H100, "--advisor", advisor, "--top", "1")["configurations"][0]
        parts = result["model"]["shared_bytes"]
        assert parts["output_tile"] == sums
        assert sum(parts.values()) == result["shared_bytes_per_block"]


def test_the_k_tile_on_the_a100(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["cycles", "--tile", "256x128x16", "--dtype", "fp16", *A100]
    corrected, published = document(capsys, *words)["sets"]
    assert (corrected["constants"], published["constants"]) == ("corrected", "published")
    assert published["l2_hit_cycles"] == pytest.approx(459.2, abs=0.05)
    assert published["l2_miss_adds_cycles"] == pytest.approx(1327.8, abs=0.05)
    assert published["dram_cycles"] == pytest.approx(1787.0, abs=0.05)
    assert corrected["dram_cycles"] == pytest.approx(552 + 12288 / 10.2114, abs=0.05)
    assert main([*words, "--constants", "published"]) == 0
    out = capsys.readouterr().out
    for figure in ("459.2", "1,327.8", "1,787.0", "1,755.4", "2,048.0", "512.0", "11.84", "10.21"):
        assert figure in out
    own = document(capsys, *words, "--dram-bandwidth", "100", "--dram-latency", "600")["sets"][0]
    assert own["dram_cycles"] == 600 + 122.88 and own["dram_transfer_hides"]


def test_a_block_has_a_warpgroup_where_that_issues_tensor_instructions() -> None:
    for gpu, tile in (("h20", "64x192x64"), ("h100-sxm5-80gb", "32x32x64"), ("b200-sxm", "64x64x64")):
        result = pebble.cycles(tile, dtype="fp8", gpu=gpu)
        assert result.fit.threads == 128, gpu
    assert pebble.cycles("64x192x64", dtype="fp8", gpu="h20").fit.accumulators_per_thread == 96
    assert pebble.cycles("64x64x16", gpu="a100-sxm4-40gb", threads=32).fit.threads == 32  # asked for


def test_what_must_hit_is_rounded_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cycles", "--tile", "256x128x16", "--dtype", "fp16", *A100]) == 0
    result = pebble.cycles("256x128x16", dtype="fp16", gpu="a100-sxm4-40gb")
    assert 0.57 < result.steps[0].least_hit_share < 0.575  # more than 57 %
    assert "hidden if 58% of the bytes hit L2" in " ".join(capsys.readouterr().out.split())


def test_a_budget_of_registers_is_refused_with_the_sum(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["cycles", "--dtype", "fp16"], ["tile", *SMALL]):
        threads = ["--threads", "256"] if command[0] == "cycles" else ["--warps", "8"]
        assert main([*command, "--tile", "128x128x32", *A100, *threads, "--registers", "32"]) == 2
        error = capsys.readouterr().err
        assert "128 * 128 / 256 = 64 fp32 accumulators a thread" in error and error.count("\n") == 1


def test_stream(capsys: pytest.CaptureFixture[str]) -> None:
    result = document(capsys, "stream", "elementwise", "--items", "268435456", "--gpu", "a100-sxm4-80gb")
    assert result["bytes_in_flight_needed_per_sm"] == pytest.approx(552 * 2039e9 / 1410e6 / 108)
    assert main(["stream", "softmax", "--items", "134217728", "--row", "1048576", *A100, "--top", "2"]) == 0
    assert "in two passes" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["tile", *SMALL], "got neither of --gpu and --machine"),
        (["tile", *SMALL, *A100, "--machine", "x.toml"], "got both of --gpu and --machine"),
        (["tile", *SMALL, *A100, "--advisor", "foo"], "unknown advisor"),
        (["tile", *SMALL, *A100, "--advisor", "deepgemm"], "compute capability 9.0"),
        (["tile", *SMALL, *A100, "--stages", "3"], "without --tile"),
        (["tile", *SMALL, *A100, "--tile", "256x256x64"], "of registers"),
        (["tile", *SMALL, *A100, "--tile", "128x128x64", "--stages", "9"], "of shared memory"),
        (["tile", *SMALL, "--gpu", "gb10"], "throughput.bf16"),
        (["tile", *SMALL, *H100, "--tile", "64x64x64", "--advisor", "deepgemm"], "expected one of the two"),
        (["tile", "conv2d", "--batch", "1", *H100], ""),
        (["cycles", "--tile", "128x128", *A100], "with the depth of a step"),
        (["cycles", "--tile", "128x128x32", *H100, "--constants", "published"], "expected an A100"),
        (["cycles", "--tile", "128x128x32", *A100, "--constants", "other"], "unknown set"),
        (["cycles", "--tile", "128x128x32", *A100, "--l2-latency", "nan"], "above zero"),
        (["cycles", "--tile", "128x128x32", *A100, "--l2-latency", "600"], "600 cycles with 552 of DRAM"),
        (["cycles", "--tile", "128x128x32", *A100, "--threads", "100"], "multiple of 32"),
        (["cycles", "--tile", "128x128x32", "--gpu", "mi300x", "--threads", "96"], "multiple of 64"),
        (
            ["cycles", "--tile", "64x192x64", "--gpu", "h20", "--threads", "64"],
            "at least 128: on NVIDIA H20 a warpgroup",
        ),
        (["cycles", "--tile", "128x128x32", *A100, "--mma", "0x8x16"], "--mma: got '0x8x16'"),
        (["stream", "sort", "--items", "10", *A100], "unknown kernel"),
        (["stream", "norm", "--items", "10", "--row", "3", *A100], "divisor"),
    ],
)
def test_mistakes(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("pebble: ") and text in error and error.count("\n") == 1


def test_where_accumulators_stand_and_what_a_warp_is(capsys: pytest.CaptureFixture[str]) -> None:
    b200, amd = ["--gpu", "b200-sxm"], ["--gpu", "mi300x"]
    assert main(["cycles", "--tile", "64x256x64", *b200]) == 0
    assert "16,384 fp32 accumulators in tensor memory" in " ".join(capsys.readouterr().out.split())
    assert document(capsys, "cycles", "--tile", "64x256x64", *b200)["accumulators_per_thread"] == 0
    mine = ["--tile", "64x128x64", "--warps", "4"]
    (result,) = document(capsys, "tile", *SMALL, *amd, *mine)["configurations"]
    assert (result["threads"], result["warps"], result["model"]["warps"]) == (256, 4, 4)
    assert main(["tile", *SMALL, *b200, *mine, "--registers", "40"]) == 0
    assert "beside 8,192 fp32 accumulators in tensor memory" in " ".join(capsys.readouterr().out.split())


def test_a_tile_is_told_as_the_family_writes_it_and_once_where_blocks_are_few(
    capsys: pytest.CaptureFixture[str],
) -> None:
    attention = ["attention", "--queries", "100", "--keys", "300", "--head-dim", "64", "--heads", "4"]
    result = document(capsys, "tile", *attention, "--gpu", "l40s")["configurations"]
    assert isinstance(result, list)
    assert all(len(each["tile"].split("x")) == 2 for each in result)
    assert main(["tile", "gemm", "-m", "1", "-n", "1", "-k", "1", "--gpu", "a40", "--explain"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n1x1x1") == 2  # a row, and its explanation
    assert "the tile 16x16x64 is larger than the problem and is cut short to 1x1x1" in " ".join(out.split())
    assert "0.0052 operations a byte" in " ".join(out.split())  # 2 operations, 384 bytes


def test_rows_of_an_odd_number_of_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["stream", "softmax", "--items", "100003", "--row", "100003", "--dtype", "fp8", "--gpu", "mi300x"]
    plans = document(capsys, *words)["plans"]
    assert isinstance(plans, list) and {plan["vector_bytes"] for plan in plans} == {1}
    assert main(words) == 0
    assert "37.7 ns at least for the 200.0 kB" in " ".join(capsys.readouterr().out.split())  # at 5.3 TB/s


def test_from_python() -> None:
    result = pebble.tile(pebble.Gemm(512, 512, 512), gpu="a100-sxm4-40gb")
    assert result.best.model.fit.fits and result.rows()[0]["tile"] == str(result.best.advice.tile)
    assert pebble.cycles("128x128x64", gpu="l40s").steps[0].constants.name == "machine"
    assert "items a thread" in str(pebble.stream("norm", 2**20, gpu="a40", row=4096))


@pytest.mark.parametrize(("dtype", "tensor_cores"), [("fp32", False), ("bf16", True)])
def test_only_what_tensor_cores_multiply_is_called_theirs(
    dtype: str, tensor_cores: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cycles", "--tile", "128x128x32", "--dtype", dtype, "--gpu", "h100"]) == 0
    out = capsys.readouterr().out
    assert ("tensor-core instructions" in out and "on one tensor core" in out) is tensor_cores
    assert ("on a quarter of the SM" in out) is not tensor_cores
