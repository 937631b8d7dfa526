"""What would change nothing, or does not belong together, is refused in one sentence."""

from pathlib import Path

import pytest

import pebble
from pebble.cli import main
from pebble.errors import InputError
from pebble.workloads.workload import Workload

GEMM = ["gemm", "-m", "512", "-n", "512", "-k", "512"]
WHERE = ["--cache", "1MiB", "--sms", "4"]


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = str(tmp_path / "t.npz")
    assert main(["simulate", *GEMM, *WHERE, "--schedule", "row", "--write-trace", path]) == 0
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(list(arguments)) == 2
    spec = capsys.readouterr()
    assert spec.out == "" and len(spec.err.splitlines()) == 1
    return spec.err


@pytest.mark.parametrize(
    "given",
    [
        ["--tile", "64x64x64"],
        ["--execution", "stream-k"],
        ["--cluster", "2x1"],
        ["--sms", "7"],
        ["--blocks-per-sm", "2"],
        ["--stages", "2"],
        ["--seed", "3"],
        ["--residual"],
    ],
)
def test_a_trace_takes_no_option_of_a_kernel(given: list[str], trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    spec = refused(capsys, "simulate", "--trace", trace, "--cache", "1MiB", *given)
    assert f"{given[0]}: got it with --trace" in spec


@pytest.mark.parametrize("given", [["--execution", "stream-k"], ["--cluster", "2x1"], ["--seed", "3"], ["--residual"]])
def test_beside_a_workload_it_takes_those_that_the_bound_depends_on(
    given: list[str], trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *GEMM, *WHERE, "--trace", trace, "--stages", "2", "--tile", "64x64x64"]) == 0
    assert f"{given[0]}: got it with --trace" in refused(capsys, "simulate", *GEMM, *WHERE, "--trace", trace, *given)


def test_a_trace_of_another_workload_is_refused(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    other = ["gemm", "-m", "4096", "-n", "512", "-k", "512"]
    spec = refused(capsys, "simulate", *other, *WHERE, "--trace", trace)
    assert "A has 262,144 values of 2 bytes, expected 2,097,152 of 2" in spec
    assert "of 2 bytes, expected" in refused(capsys, "simulate", *GEMM, "--dtype", "fp32", *WHERE, "--trace", trace)


@pytest.mark.parametrize(
    ("workload", "schedule"),
    [
        (pebble.GroupedGemm((130, 1, 500), 256, 320), "row"),
        (pebble.Ffn(256, 256, 512, gated=True), "row-fused-1"),
        (pebble.Attention(256, 256, 64, heads=4, kv_heads=2), "fa2"),
        (pebble.Gemm(256, 256, 256, "bf16", "fp32", True), "row"),
    ],
    ids=lambda one: getattr(one, "family", ""),
)
def test_a_trace_of_the_workload_is_taken(workload: Workload, schedule: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t.npz")
    pebble.simulate(workload, schedule, cache="1MiB", sms=4, write_trace=path)
    result = pebble.simulate(workload, trace=path, cache="1MiB", sms=4)
    assert result.document()["ratio_to_lower_bound"] >= 1


def test_a_trace_below_the_bound_says_why(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    shape = "rows=512 cols=512 tile_rows=64 tile_cols=64 element_bytes=2"
    path.write_text(f"# pebble trace 1\n# operand mine {shape}\noperand,row,col,op\nmine,0,0,r\n")
    result = pebble.simulate(pebble.Gemm(512, 512, 512), trace=str(path), cache="1MiB", sms=4)
    assert any("no trace of that workload" in note for note in result.document()["notes"])


@pytest.mark.parametrize("command", [["simulate", "--schedule", "row"], ["compare", "--schedules", "row"]])
def test_an_input_is_read_again_by_a_network_alone(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "expected an ffn" in refused(capsys, command[0], *GEMM, *WHERE, *command[1:], "--residual")
    with pytest.raises(InputError, match="expected an ffn"):
        pebble.time(pebble.Gemm(512, 512, 512), "row", gpu="h100-sxm5-80gb", residual=True)


def test_a_seed_of_which_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    row = ["--schedule", "row", "--seed", "3"]
    assert "--seed: got it with --execution waves" in refused(capsys, "simulate", *GEMM, *WHERE, *row)
    assert "--seed: got it with" in refused(capsys, "simulate", *GEMM, "--gpu", "h100-sxm5-80gb", *row)
    assert main(["simulate", *GEMM, *WHERE, *row, "--execution", "dynamic-5"]) == 0
    for command in (["time", "--schedules", "row"], ["curve", "--schedules", "row"]):
        chip = ["--gpu", "h100-sxm5-80gb", "--seed", "3"]
        assert "--seed: got it with --execution waves" in refused(capsys, command[0], *GEMM, *chip, *command[1:])
    assert "--seed: got it with" in refused(capsys, "export", "row", *GEMM, "--gpu", "h100-sxm5-80gb", "--seed", "3")


def test_no_chip_no_kernel_that_it_cannot_run(capsys: pytest.CaptureFixture[str]) -> None:
    spec = refused(capsys, "compare", *GEMM, *WHERE, "--schedules", "row", "--allow-infeasible")
    assert "--allow-infeasible: got it with --cache" in spec


def test_tokens_of_no_layer(tmp_path: Path) -> None:
    gemm = {"family": "gemm", "m": 64, "n": 64, "k": 64}
    with pytest.raises(InputError, match=r"tokens: got .5. without a layer"):
        pebble.sweep({"workloads": [gemm], "tokens": [5], "machines": "a40"}, tmp_path / "r.duckdb")


NETWORK = ["ffn", "--tokens", "512", "--d-model", "512", "--hidden", "512"]
CYCLES = ["cycles", "--tile", "128x128x64", "--gpu", "a100-sxm4-40gb"]
ROW = ["--schedules", "row"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["compare", *NETWORK, *WHERE, "--cluster", "2x1"], "--cluster: got 2x1 with ffn"),
        (["export", "row", *GEMM, *WHERE, "--cluster", "2x1"], "--cluster: got 2x1 with export"),
        (["compare", *GEMM, *WHERE, *ROW, "--schedule", "x.csv", "--cluster", "2x1"], "--cluster: got 2x1 with x.csv"),
        ([*CYCLES, "--l2-bandwidth", "0"], "--l2-bandwidth: got '0'"),
        ([*CYCLES, "--dram-bandwidth", "inf"], "--dram-bandwidth: got 'inf'"),
        (["compare", *GEMM, *WHERE, *ROW, "--execution", "split-k-0"], "expected split-k-N with N from 1 to 256"),
        (["compare", *GEMM, *WHERE, *ROW, "--execution", "split-k-100000"], "expected split-k-N with N from 1 to 256"),
        (["simulate", *GEMM, *WHERE, "--schedule", "row,column"], "got 'row,column', expected one;"),
        (["export", "list.json", *GEMM, *WHERE], "list.json: got 3 whole numbers, expected"),
        (["export", "bytes.csv", *GEMM, *WHERE], "bytes.csv: got bytes that are no text, expected"),
    ],
)
def test_a_message_names_what_was_given(
    given: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("row,col\n" + "".join(f"{i},{j}\n" for i in range(4) for j in range(4)))
    Path("list.json").write_text("[1, 2, 3]")
    Path("bytes.csv").write_bytes(bytes(range(1, 256)))
    assert told in refused(capsys, *given)


def test_a_sweep_advises_no_option_that_it_has_not(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    gemm = {"family": "gemm", "m": 4096, "n": 4096, "k": 64}
    for number, requested in enumerate(({"tiles": "2048x2048x64"}, {"sms": 10_000})):
        store = tmp_path / f"{number}.duckdb"
        pebble.sweep({"workloads": [gemm], "machines": "a40", "orders": "row", **requested}, store, jobs=1)
        (row,) = pebble.results(store).rows()
        assert row["status"] == "refused" and "expected" in row["reason"] and "allow" not in row["reason"]


def test_a_triton_file_is_for_a_chip_that_runs_it(capsys: pytest.CaptureFixture[str]) -> None:
    spec = refused(capsys, "export", "row", *GEMM, "--gpu", "mi300x", "--format", "triton")
    assert "got it for AMD Instinct MI300X, expected an NVIDIA GPU" in spec
    assert main(["export", "row", *GEMM, "--gpu", "mi300x", "--format", "csv"]) == 0
    saved = pebble.export("row", pebble.Gemm(512, 512, 512), gpu="mi300x").table
    with pytest.raises(InputError, match="expected an NVIDIA GPU"):
        pebble.export(saved, format="triton")


def test_a_trace_of_another_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    shape = "rows=512 cols=512 tile_rows=64 tile_cols=64 element_bytes=2"
    path.write_text(f"# pebble trace 2\n# operand A {shape}\noperand,row,col,op\nA,0,0,r\n")
    spec = refused(capsys, "simulate", "--trace", str(path), "--cache", "1MiB")
    assert "line 1: got a trace of version '2', expected 1" in spec
