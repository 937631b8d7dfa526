"""Every benchmark runs: its smallest case, from its own folder, so that what is recorded can be made again."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from pebble.reports.kernel_time import CUT

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "benchmarks"
PREDICTED = str(HERE / "hardware/predicted")
# what it is asked, {} for a folder of its own; and what it must print
RUNS = {
    "cachesim/compare.py": ("--smallest", "lock-step LRU, closed form"),
    "cachesim/hardware_model.py": ("--smallest --rounds 1", "| 1024x1024x1024 | row | 4.2 |"),
    "exact/against_cpsat.py": ("--smallest --time-limit 5", "gemm -m 2 -n 2 -k 2 in-place        4      14"),
    "exact/buffers.py": ("gemm-1x1x2 --capacities 3 --table {}/buffers.csv", "gemm-1x1x2 3 2 pooled  any 5..5"),
    "exact/ladder.py": ("gemm 1x2x2 --time-limit 5 --out {}/ladder.csv", "2 of 2 proved"),
    "exact/tiles.py": ("gemm-256x128x64 --splits any --table {}/tiles.csv", "gemm-256x128x64 128x128x64 2"),
    "exact_table.py": ("--smallest --solver heuristic", "1 cases; proved: heuristic 1"),
    "first_call.py": ("--smallest --rounds 1", "| Ffn(8192, 4096, 11008) | 6MiB |"),
    "gap/cases.py": ("{}/cases.csv --smallest", "ffn ffn 8192x(4096,11008) 40960"),
    "gap/exact.py": ("run {}/exact.csv --smallest --time-limit 20", "gemm 2x2x3 5 16 16 compulsory traffic 19 19 19"),
    "gap/gap.py": ("table {}/gap.csv --smallest --certificates", "1 of 1"),
    "gap/long_chains.py": ("--smallest", "2.00       2.98        3.42"),
    "gap/reach.py": ("products reach.csv --smallest", "gemm 4096x4096x4096 6144 83.00 95.03 13 83.00"),
    "gap/refute.py": ("gemm 20", "0 violations"),
    "gap/refute_cases.py": ("32", "0 violations"),
    "gap/segments.py": ("{}/segments.csv --smallest", "by_work: 1.000 to 1.000 of the bound, 0 of 1 above the optimum"),
    "gap/splits.py": ("{}/splits.csv --smallest", "gemm 4096x4096x4096 6144 95034223 m"),
    "gap/two_products.py": ("--smallest 1.6", "1.60   2.270"),
    "gap/wide.py": ("{}/wide.csv --smallest --certificates", "1 of 1"),
    "gpu/make_tables.py": ("plan {}/plan --which small", "52 cases in"),
    "growth.py": ("--smallest {}/growth.svg", "| orders | 1 to 1 | LRU, closed form |"),
    "hardware/advised.py": ("", "att-chunk"),
    "hardware/bandwidth.py": ("", "1/2    2,855 GB/s, 85.2%    3,859 GB/s, 80.4%"),
    "hardware/beside.py": ("", "h200-sxm-141gb   8192"),
    "hardware/beside_clocks.py": (f"--recorded {PREDICTED}/side_by_side.csv", "1.19 at 32"),
    "hardware/blind.py": ("", "predicted / measured"),
    "hardware/blind_orders.py": ("", "29 ranked right"),
    "hardware/cliffs.py": ("", "within 10 %"),
    "hardware/clocks.py": (f"--recorded {PREDICTED}/clocks.csv", "1.19 at 32"),
    "hardware/exports.py": ("", "within 5 % of predicted"),
    "hardware/fit.py": ("--every 1000 --spread 0.001 --jobs 1", "(1 kernels)"),
    "hardware/fit_attention.py": ("--quick", "modelled over measured"),
    "hardware/fit_clocks.py": ("--every 400", "with the rates in use"),
    "hardware/fit_power.py": ("--every 5 --list", "ranked right"),
    "hardware/fit_requests.py": ("--every 61 --fit", "blind, H200, fabric"),
    "hardware/fit_static.py": ("--first 1", "1 layers: measured over modelled"),
    "hardware/pipes.py": ("", "h200-sxm-141gb: 13 of 15 within 10 %, mean 1.06, 1.02 to 1.11"),
    "hardware/policies.py": ("--smallest --jobs 1", "1 launches"),
    "hardware/predict.py": (f"--recorded {PREDICTED}/rows.csv", "rows kept out of it"),
    "hardware/split_k.py": ("", "k is cut, the others: 11 of 20 within 10 %, 7.7% in the median, 24.9% at most"),
    "hardware/tuned.py": ("", "of the library's bytes"),
    "hardware_check.py": ("--smallest", "H20 fp16 4096^3, persistent"),
    "kernelbench.py": ("--smallest", "level1         1"),
    "integrations/fit.py": ("--only blind_43", "blind_43: 30 products, half of the times within 5.9%"),
    "integrations/tuners.py": (
        f"table {HERE}/integrations/recorded/fitted_36.json {HERE}/integrations/recorded/fitted_36.csv",
        "ours: median 1.028, worst 1.090",
    ),
    "prove_optima.py": (f"{ROOT}/tests/solvers/optima.csv --solver heuristic --only diamond.2", "0 s"),
    "quick_look.py": ("--layers 1 --jobs 1", "in the median"),
    "sweep.py": ("--sweep {}/sweep.toml", "measured 1 rows in 1 batches"),
}
NEED_MORE = {
    "blocks.py": "",
    "gpu/bandwidth.py": "out.csv",
    "gpu/block_a_tile.py": "plan.csv out.csv",
    "gpu/counted.py": "folder",
    "gpu/check_operators.py": "module.py",
    "gpu/distances.py": "out.csv",
    "gpu/forward.py": "llama-2-13b 512",
    "gpu/measure.py": "check plan",
    "gpu/pipes.py": "out.csv",
    "gpu/run_exports.py": "folder out.csv",
    "gpu/side_by_side.py": "out.csv",
    "gpu/split_k.py": "out.csv",
    "integrations/llama_block.py": "llama-3-8b",
}
# in a process of their own: two load a second HiGHS beside that of OR-Tools, one replaces a function of a solver
ALONE = {"exact/against_cpsat.py", "gap/reach.py", "gap/two_products.py"}
SWEEP = 'workloads = [{family = "gemm", m = 256, n = 256, k = 256}]\nmachines = ["a100-sxm4-80gb"]\norders = ["row"]\n'


def run(script: str, arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, as from the script's own folder; its neighbours are forgotten, as folders share names."""
    path, before = HERE / script, set(sys.modules)
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
    monkeypatch.setattr(sys, "argv", [str(path), *arguments.split()])
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    finally:
        for name in set(sys.modules) - before:
            if str(HERE) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def test_every_script_is_here() -> None:
    scripts = {str(path.relative_to(HERE)) for path in HERE.rglob("*.py") if "__main__" in path.read_text()}
    assert scripts == {*RUNS, *NEED_MORE}


@pytest.mark.parametrize("script", RUNS)
def test_its_smallest_case(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP)
    arguments, spec = RUNS[script]
    if script in ALONE:
        command = [sys.executable, str(HERE / script), *arguments.split()]
        assert spec in subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
        return
    run(script, arguments.format(tmp_path), monkeypatch)
    assert spec in capsys.readouterr().out


def test_no_floor_of_kernelbench_is_above_its_counters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the passes measured on an H200, eager and compiled; the figures are those of the page on audits."""
    run("kernelbench.py", f"--recorded {HERE}/kernelbench_h200.csv", monkeypatch)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [
        ["layers", "eager", "3", "0", "11.58", "1.23"],
        ["layers", "compiled", "3", "0", "11.48", "0.83"],
        ["level1", "eager", "100", "0", "1.92", "1.42"],
        ["level1", "compiled", "100", "0", "1.45", "1.14"],
        ["level2", "eager", "100", "0", "9.30", "1.50"],
        ["level2", "compiled", "100", "0", "3.57", "0.90"],
        ["level3", "eager", "45", "0", "27.29", "1.11"],
        ["level3", "compiled", "45", "0", "17.98", "0.79"],
    ]


def test_a_pass_below_its_floor_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a byte, in all that it moves or in what it reads."""
    head = "level,problem,how,floor_bytes,weights_and_inputs_bytes,one_kernel_an_operation_bytes,"
    rows = ("less,eager,100,60,120,60,39", "unread,eager,100,60,120,59,90", "right,eager,100,60,120,60,40")
    table = tmp_path / "counted.csv"
    table.write_text("\n".join([f"{head}read_bytes,written_bytes,counted", *(f"level1,{row},x" for row in rows)]))
    run("kernelbench.py", f"--recorded {table}", monkeypatch)
    shown = capsys.readouterr().out
    assert shown.splitlines()[1].split()[:4] == ["level1", "eager", "3", "2"]
    assert "violated: less" in shown and "violated: unread" in shown and "violated: right" not in shown


def test_a_pass_is_what_its_range_moves_less_what_ends_it(tmp_path: Path) -> None:
    """As `ncu` prints ranges and `counted.py` names them."""
    names = ("ID", "Kernel Name", "Metric Name", "Metric Value")
    flushed = 256 << 20
    rows = [
        (0, "read", f"{flushed + 64:,}"), (0, "write", "32"),
        (1, "read", f"{flushed + 1000:,}"), (1, "write", "2,000"),
    ]  # fmt: skip
    lines = ["==PROF== Connected", ",".join(f'"{name}"' for name in names)]
    lines += [f'"{at}","range","dram__bytes_{what}.sum","{value}"' for at, what, value in rows]
    (tmp_path / "passes.csv").write_text("\n".join(lines))
    passes = [{"problem": "nothing", "how": "eager"}, {"problem": "level1/1_it", "how": "compiled"}]
    (tmp_path / "passes.jsonl").write_text("\n".join(map(json.dumps, passes)))
    found = runpy.run_path(str(HERE / "kernelbench.py"))["counted"](tmp_path / "passes.csv", tmp_path / "passes.jsonl")
    assert found["nothing", "eager"] == {"read_bytes": 64, "written_bytes": 32}
    assert found["level1/1_it", "compiled"] == {"read_bytes": 1000, "written_bytes": 2000}


@pytest.mark.parametrize("script", NEED_MORE)
def test_without_a_gpu_it_says_what_it_needs(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("torch", "triton"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SystemExit) as end:
        run(script, NEED_MORE[script], monkeypatch)
    assert re.search(
        "needs PyTorch(, (Triton|pynvml|transformers) and an NVIDIA GPU| and transformers)",
        f"{end.value}{capsys.readouterr().err}",
    )


def test_without_its_peer_the_comparison_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "")
    with pytest.raises(SystemExit):
        run("cachesim/compare.py", "", monkeypatch)
    assert "needs libcachesim 0.3.5" in capsys.readouterr().err


@pytest.mark.parametrize("script", sorted(HERE.rglob("*.sh")), ids=lambda path: path.name)
def test_a_shell_script_without_arguments_says_what_it_takes(script: Path) -> None:
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True)
    assert done.returncode and "usage:" in done.stderr


def test_pages_name_scripts_that_are_there() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.rst"), *(ROOT / "docs").glob("*.md"), *HERE.rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"benchmarks/[\w/]+\.(?:py|sh)\b", page.read_text())}
    assert len(named) > 20
    assert not {name for name in named if not (ROOT / name).exists()}


def test_the_rates_of_dram_on_the_page_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("hardware/bandwidth.py", "", monkeypatch)
    page = (HERE / "hardware/README.md").read_text()
    block = page.split("## What DRAM delivers")[1].split("```text\n")[1].split("\n```")[0]
    assert set(block.splitlines()) <= set(capsys.readouterr().out.splitlines())


def test_what_is_said_of_the_pipes_of_an_sm_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("hardware/pipes.py", "", monkeypatch)
    told = capsys.readouterr().out.splitlines()
    page = " ".join((ROOT / "docs/time-model.rst").read_text().split())
    counts = [re.fullmatch(r"(\S+): (\d+) of (\d+) within 10 %.*", line) for line in told]
    h100, h200 = (match for match in counts if match)
    assert f"{h100[2]} of {h100[3]} launches on the H100 and {h200[2]} of {h200[3]} on the H200 are within 10 %" in page
    start = told.index("time with more blocks an SM over that with one") + 2
    cells = [line.split() for line in told[start : told.index("what is added to a tile, microseconds of an SM")]]
    for words, key in (
        ("two blocks, 64 x 64, head-dim 128", ("128", "64x64", "4", "2")),
        ("two blocks, 64 x 64, head-dim 64", ("64", "64x64", "4", "2")),
        ("four blocks, 64 x 64, head-dim 64", ("64", "64x64", "4", "4")),
        ("two blocks, 128 x 64, head-dim 64, 8 warps", ("64", "128x64", "8", "2")),
        ("two blocks, 64 x 128, head-dim 64, 4 warps", ("64", "64x128", "4", "2")),
    ):
        (first, second) = ([*cell[5:]] for cell in cells if tuple(cell[1:5]) == key)
        assert f"{words} {first[0]} {second[0]} {first[1]}" in page, words
        assert first[1] == second[1]


def test_what_is_said_of_cut_products_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("hardware/split_k.py", "", monkeypatch)
    told = capsys.readouterr().out.splitlines()[-4:]
    chosen_on, others = (re.search(r": (\d+) of 20 within 10 %.*, ([\d.]+)% at most", line) for line in told[:2])
    lost = re.search(r"([\d.]+)% slower than the fastest on the mean, ([\d.]+)% at most", told[3])
    assert chosen_on and others and lost
    page = " ".join((ROOT / "docs/time-model.rst").read_text().split())
    assert (
        f"where {chosen_on[1]} of 20 launches are within 10 %; of five others {others[1]} of 20 are, {others[2]} %"
        in page
    )
    assert f"{lost[1]} % slower than the fastest on the mean, {lost[2]} % at worst" in page
    assert f"of 40 single launches on an H200 {int(chosen_on[1]) + int(others[1])} are within" in CUT
