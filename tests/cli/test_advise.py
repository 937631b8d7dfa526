"""pebble advise: what it advises runs, is no slower than what it is compared with, and stands above its limits."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble.cli import main
from pebble.errors import InputError
from pebble.families import kernel_family, workload
from pebble.models.machine import load_machine
from pebble.reports.kernel_time import Timing
from pebble.tuning.choice import choose

GEMM = ["gemm", "-m", "1k", "-n", "1536", "-k", "512"]
FFN = ["ffn", "--tokens", "512", "--d-model", "384", "--hidden", "1024", "--gated"]
DECODE = ["attention", "--queries", "1", "--keys", "2048", "--head-dim", "128", "--heads", "8", "--kv-heads", "2"]
CAUSAL = ["attention", "--queries", "1024", "--keys", "1024", "--head-dim", "64", "--heads", "4", "--causal"]
GROUPED = ["grouped", "--rows", "256,17,1000", "-n", "512", "-k", "256"]
LATENT = ["latent-attention", "--queries", "1", "--keys", "1024", "--heads", "64", "--latent", "256", "--rope", "64"]
WHOLE = ["attention", "--queries", "2k", "--keys", "2k", "--head-dim", "64", "--heads", "16", "--causal"]
CASES = [GEMM, FFN, DECODE, CAUSAL, GROUPED, LATENT]
HEADS = ["attention", "--queries", "8k", "--keys", "8k", "--head-dim", "128", "--heads", "32", "--causal"]


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert isinstance(result, dict)
    return result


def next_words(screen: str) -> list[str]:
    """The command of ``next``, as a shell takes it from the screen."""
    return shlex.split(screen.split("\nnext ")[1].replace("\\\n", ""))


@pytest.mark.parametrize("shape", CASES, ids=lambda shape: shape[0])
@pytest.mark.parametrize("gpu", ["h100", "a40"])
def test_it_is_above_its_limits_and_below_what_it_is_compared_with(
    shape: list[str], gpu: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = document(capsys, "advise", *shape, "--gpu", gpu)
    kernel, expect, limit = result["kernel"], result["expect"], result["limit"]
    assert {"tile", "stages", "warps", "execution", "order"} <= set(kernel)
    assert kernel["fit"] is not None and kernel["execution"] == ("free" if "--causal" in shape else "waves")
    assert expect["sustained_ms"] > limit["ms"] > 0 and expect["dram_bytes"] >= limit["dram_bytes"] > 0
    assert result["against"] and all(item["sustained_ms"] >= expect["sustained_ms"] for item in result["against"])
    assert expect["sustained_ms"] >= expect["single_ms"] and (expect["joules"] is None) == (gpu == "a40")
    assert result["tried"][0]["order"] == kernel["order"] and result["table"] is None


@pytest.mark.parametrize("shape", [GEMM, FFN, DECODE, WHOLE], ids=lambda shape: shape[0])
def test_other_commands_say_the_same_of_it(shape: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    result = document(capsys, "advise", *shape, "--gpu", "h100")
    kernel = result["kernel"]
    assert (kernel["tile_from"], kernel["stages_from"]) == ("advised", "advised")
    how = ["--tile", kernel["tile"], "--stages", f"{kernel['stages']}", "--blocks-per-sm", f"{kernel['blocks_per_sm']}"]
    how += ["--execution", kernel["execution"]]
    names = [kernel["order"], *(element["order"] for element in result["against"])]
    timed = document(capsys, "time", *shape, "--gpu", "h100", *how, "--schedules", ",".join(names))
    by_name = {each_item["name"]: each_item for each_item in timed["schedules"]}
    for key in ("sustained_ms", "single_ms", "joules", "dram_bytes"):
        assert by_name[kernel["order"]][key] == pytest.approx(result["expect"][key])
    assert timed["time"]["floor_us"] == pytest.approx(1e3 * result["limit"]["ms"])
    for item in result["against"]:
        assert by_name[item["order"]]["sustained_ms"] == pytest.approx(item["sustained_ms"])


def test_the_orders_in_daily_use_are_never_faster_under_any_tile_that_looks_as_fast() -> None:
    chip = load_machine("a40")
    for given in (pebble.Gemm(2048, 3072, 1024), pebble.Ffn(1024, 512, 2048)):
        choice = choose(given, chip, chip.sms)
        for tried in (*choice.orders, *choice.tiles):
            assert tried.time.seconds >= choice.best.time.seconds
            timed = pebble.time(
                given, str(tried.advice.schedule.name), gpu=chip, tile=str(tried.advice.tile),
                stages=tried.advice.stages, blocks_per_sm=tried.advice.blocks_per_sm,
            )  # fmt: skip
            assert isinstance(timed, Timing)
            assert timed.orders[0].time.seconds == pytest.approx(tried.time.seconds)
        assert {order.advice.schedule.name for order in choice.orders} >= set(kernel_family(given).baseline)


@pytest.mark.parametrize("shape", [*CASES, HEADS], ids=lambda shape: shape[0])
def test_it_is_a_short_screen(
    shape: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["advise", *shape, "--gpu", "h100"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 12 and all(len(line) <= 100 for line in lines)
    names = [line.split()[0] for line in lines[1:] if not line.startswith(" ")]
    asked = [name for name in names if name not in ("note", "trust")]
    assert asked == ["use", "expect", "against", "limit", "ratio", "binds", "next"]
    assert main(["advise", *shape, "--gpu", "h100", "--explain"]) == 0
    assert "its evidence: `pebble machines h100-sxm5-80gb --explain`" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("dim", [64, 128, 256])
def test_attention_on_hopper_has_the_tile_of_its_file(dim: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is fastest with one tile; the model, of plain kernels, prefers narrower ones."""
    heads = ["attention", "--queries", "4k", "--keys", "4k", "--head-dim", f"{dim}", "--heads", "16", "--causal"]
    kernel = document(capsys, "advise", *heads, "--gpu", "h100")["kernel"]
    written = pebble.export("fa3", pebble.Attention(4096, 4096, dim, heads=16, causal=True), "json", gpu="h100")
    assert kernel["tile"] == ("128x64" if dim > 128 else "128x128")
    assert (kernel["order"], kernel["stages"], kernel["execution"]) == ("fa3", 2 if dim > 128 else 3, "free")
    assert written.table.launch.stages == kernel["stages"]


def test_what_no_tile_fits_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    wide = ["latent-attention", "--queries", "1", "--keys", "1024", "--heads", "64", "--latent", "4096", "--rope", "64"]
    assert main(["advise", *wide, "--gpu", "a40"]) == 2  # 16 rows of Q alone take 130 KiB, of 99
    assert "expected a workload with a tile that fits NVIDIA A40" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--gpu", "a100"], ["--gpu", "h20", "--sms", "50"], ["--gpu", "4090"]])
@pytest.mark.parametrize("shape", [[*GEMM, "--dtype", "fp32"], FFN], ids=lambda shape: shape[0])
def test_what_is_saved_runs_in_its_own_kernel(
    shape: list[str], more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "best.json"
    result = document(capsys, "advise", *shape, *more, "--save", str(saved))
    simulated = document(capsys, "simulate", *shape, *more[:2], "--schedule", str(saved))
    assert simulated["dram_bytes"] == result["expect"]["dram_bytes"]
    for key in ("tile", "stages", "blocks_per_sm"):
        assert simulated["kernel"][key] == result["kernel"][key]


@pytest.mark.parametrize("shape", [GEMM, FFN, WHOLE], ids=lambda shape: shape[0])
def test_what_comes_next_works(
    shape: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # a path that is broken is none
    saved = tmp_path / "best.json"
    result = document(capsys, "advise", *shape, "--gpu", "h100", "--save", str(saved))
    assert result["table"] == str(saved)
    simulated = document(capsys, "simulate", *shape, "--gpu", "h100", "--schedule", str(saved))
    assert simulated["dram_bytes"] == result["expect"]["dram_bytes"]
    for more in (["--save", str(saved)], [], ["--sms", "100"]):
        assert main(["advise", *shape, "--gpu", "h100", *more]) == 0
        words = next_words(capsys.readouterr().out)
        assert words[:2] == ["pebble", "export"]
        kernel = tmp_path / "kernel.py"
        assert main([*words[1:-1], str(kernel)]) == 0
        capsys.readouterr()
        assert "triton" in kernel.read_text() and ("--sms" in words) == ("--sms" in more)


@pytest.mark.parametrize(
    "shape",
    [["gemm", "-m", "300", "-n", "520", "-k", "256", "--dtype", "fp8", "--gpu", "h20"],
     ["ffn", "--tokens", "300", "--d-model", "512", "--hidden", "1111", "--gated", "--gpu", "mi300x"]],
    ids=["fp8", "AMD"],
)  # fmt: skip
def test_what_triton_does_not_run_is_written_as_a_table(
    shape: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert main(["advise", *shape]) == 0
    screen = capsys.readouterr().out
    assert "note      a table is written, not a kernel" in screen
    *words, path = next_words(screen)
    assert path == "table.csv" and main([*words[1:], str(tmp_path / path)]) == 0
    assert "wave,slot,row,col" in (tmp_path / path).read_text()


def test_what_is_simulated_in_part_is_about_so_much(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert main(["advise", "gemm", "-m", "16384", "-n", "16384", "-k", "16384", "--gpu", "a40"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:])
    assert all("about " in lines[name] for name in ("expect", "against", "ratio"))


def test_what_has_no_table_is_said_and_not_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk = ["attention", "--queries", "128", "--keys", "16384", "--head-dim", "128", "--heads", "1"]
    order = document(capsys, "advise", *chunk, "--gpu", "h100")["kernel"]["order"]
    assert order.startswith(("split-kv", "flash-decoding"))
    assert main(["advise", *chunk, "--gpu", "h100", "--save", str(tmp_path / "best.json")]) == 2
    captured = capsys.readouterr()
    assert f"note pebble writes no kernel for {order}; next writes fa2," in " ".join(captured.out.split())
    assert f"{order}: there is no table of it" in captured.err and not list(tmp_path.iterdir())
    words = next_words(captured.out)
    assert main([*words[1:-1], str(tmp_path / "kernel.py")]) == 0
    assert len(list(tmp_path.iterdir())) == 1
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "100")
    strict = ["attention", "--queries", "64", "--keys", "64", "--head-dim", "64", "--softmax", "strict"]
    assert main(["advise", *strict, "--gpu", "a40"]) == 0
    words = next_words(capsys.readouterr().out)
    assert words[1] == "compare" and main(words[1:]) == 0


@pytest.mark.parametrize("shape", [GEMM, FFN], ids=lambda shape: shape[0])
def test_the_walk_of_a_library_stands_beside(shape: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    *_, library = document(capsys, "advise", *shape, "--gpu", "h100")["against"]
    assert library["what"].startswith("cuBLAS, modelled: ") and "cutlass3-8" in library["order"]
    other = document(capsys, "advise", *shape, "--gpu", "mi300x")["against"]
    assert not any("cuBLAS" in item["what"] for item in other)


def test_a_decode_step_has_an_exported_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", *DECODE, "--gpu", "h100"]) == 0
    words = next_words(capsys.readouterr().out)
    assert words[:2] == ["pebble", "export"] and words[2].startswith(("flash-decoding", "split-kv"))
    assert main([*words[1:-1], str(tmp_path / "kernel.py")]) == 0
    assert "decode_kernel" in (tmp_path / "kernel.py").read_text()
    said = " ".join(capsys.readouterr().out.split())
    assert f"evenly to its blocks, however {words[2]} splits them; the predicted bytes are those of {words[2]}" in said


def test_what_cannot_be_advised_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "conv2d", "--in-channels", "8", "--out-channels", "8", "--height", "16", "--width", "16",
                 "--kernel", "3", "--gpu", "h100"]) == 2  # fmt: skip
    assert capsys.readouterr().err.count("\n") == 2  # the SKU, and one sentence
    assert main(["advise", *GEMM]) == 2
    assert "got neither of --gpu and --machine" in capsys.readouterr().err
    with pytest.raises(InputError, match="sms"):
        pebble.advise(workload("gemm", m=64, n=64, k=64), gpu="a40", sms=85)


def test_the_report() -> None:
    result = pebble.advise(pebble.Gemm(1024, 1024, 512), gpu="a40")
    assert str(result).startswith("gemm m=1024 n=1024 k=512 bf16 on NVIDIA A40: tile ")
    assert result.rows()[0]["sustained_ms"] == min(row["sustained_ms"] for row in result.rows())
    assert result.to_dict()["machine"]["sku"] == "a40"
