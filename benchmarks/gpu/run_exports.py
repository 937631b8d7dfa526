"""Check, time and profile exported Triton files on the GPU of this machine.

    python benchmarks/gpu/run_exports.py FOLDER OUT.csv              # all of it
    python benchmarks/gpu/run_exports.py FOLDER OUT.csv --check      # only every result against float64
    python benchmarks/gpu/run_exports.py FOLDER OUT.csv --no-ncu     # without DRAM bytes

FOLDER holds files of `pebble export --format triton`. OUT.csv gets a row for each file and each way to run it: the
error against float64; bytes of DRAM, bytes that SMs receive, that L2 serves and that cross its fabric; and, unless it
is the table's waves, which are for the prediction's sake, milliseconds of single launches and of sustained runs and
joules a launch, each beside those of the fastest of PyTorch's own calls. Nothing of pebble is needed. No setting of the
GPU is changed.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import io
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

MEASURED = (
    "error", "milliseconds", "library_milliseconds", "sustained_milliseconds", "library_sustained_milliseconds",
    "joules", "library_joules", "dram_read_bytes", "dram_write_bytes", "library_read_bytes", "library_write_bytes",
    "sm_bytes", "l2_request_bytes", "fabric_bytes",
    "library_sm_bytes", "library_l2_request_bytes", "library_fabric_bytes",
)  # fmt: skip
COLUMNS = (
    "date", "chip", "case", "workload", "schedule", "tile", "stages", "how", "copy_engine", "registers_spilled",
    "predicted_read_bytes", "predicted_write_bytes", "library", *MEASURED, "torch", "triton",
)  # fmt: skip
# what DRAM moves, what SMs receive, what L2 serves them and takes from them, what crosses between its partitions
METRICS = {
    "read_bytes": ("dram__bytes_read.sum", 1),
    "write_bytes": ("dram__bytes_write.sum", 1),
    "sm_bytes": ("l1tex__m_xbar2l1tex_read_bytes.sum", 1),
    "l2_request_bytes": ("lts__t_sectors_srcunit_tex.sum", 32),
    "fabric_bytes": ("lts__t_sectors_srcunit_ltcfabric.sum", 32),
}
DRAM = ("read_bytes", "write_bytes")
NCU = ("ncu", "--profile-from-start", "off", "--clock-control", "none", "--cache-control", "all")
BETWEEN = "spin_kernel"  # of torch.cuda._sleep, which parts one launch from the next in a profile
TIMED = SimpleNamespace(check=False, time=True, sustained=True, repeats=12, rounds=6, seconds=0.5)
HOWS = ("free", "even", "waves")

Row = dict[str, Any]


def load(path: Path) -> ModuleType:
    """An exported file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_").replace(".", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Triton reads the source of kernels
    spec.loader.exec_module(module)
    return module


def ways(module: ModuleType, asked: str) -> list[str]:
    """How it is run, of what is asked: free, and of a product evenly and with the table's waves, if it has them."""
    product = hasattr(module, "gemm_kernel") and module.ABOUT["execution"] == "waves"
    return [how for how in asked.split(",") if product or how == "free"]


def measured(path: Path, hows: str, only_check: bool, against: str = "") -> list[Row]:
    """The rows of one file, without bytes; beside calls of the library that have ``against`` in their names."""
    import torch
    import triton

    module, rows, launches = load(path), [], []
    gpu = torch.cuda.get_device_properties(0)
    torch.manual_seed(0)
    problem = module.problem()
    for how in ways(module, hows):
        launches.append(launch := problem.launch(module.unpacked(module.TABLE, 9), module.PROGRAMS, how))
        row = {"date": time.strftime("%Y-%m-%d"), "chip": gpu.name, "case": path.stem, **module.ABOUT}
        row |= {"stages": launch.stages, "how": how, "copy_engine": int(module.has_copy_engine())}
        row |= {"registers_spilled": launch.spills, "torch": torch.__version__, "triton": triton.__version__}
        row["error"] = f"{module.relative_error(problem, launch):.2e}"
        rows.append(row)
    if not only_check:
        timed = [launch for launch in launches if launch.how != "waves"]
        calls = module.takers({name: call for name, call in problem.libraries().items() if against in name})
        if against and not calls:
            raise SystemExit(f"--against {against}: got no call of that name that takes these operands.")
        results = module.compared(timed, calls, TIMED)
        for row, result in zip(rows[: len(timed)], results, strict=True):
            row |= {name: round(value, 5) if isinstance(value, float) else value for name, value in result.items()}
        del timed
    del problem, launches, launch
    torch.cuda.empty_cache()
    return rows


def compile_all(paths: list[Path], jobs: int) -> None:
    """Every kernel once, in processes of their own, into Triton's cache."""

    def build(path: Path) -> None:
        subprocess.run([sys.executable, __file__, "--build", str(path)], capture_output=True, check=False)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(build, paths))


def profiled(hows: str, paths: list[Path]) -> None:
    """Child process under ncu: each file's launch, and then the library's first, parted by a pause."""
    import torch

    for path in paths:
        module = load(path)
        problem, table = module.problem(), module.unpacked(module.TABLE, 9)
        library = next(iter(module.takers(problem.libraries()).values()))
        launches = [problem.launch(table, module.PROGRAMS, how) for how in ways(module, hows)]
        for each in (*launches, library):
            each.run()  # compiled, planned
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            each.run()
            torch.cuda._sleep(1)
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
        del problem, launches, library
        torch.cuda.empty_cache()


def bytes_of(paths: list[Path], hows: str) -> dict[str, list[Row]]:
    """The bytes of each launch of `profiled` by the file's name, the library's last."""
    command = [
        *NCU,
        "--csv",
        "--print-units",
        "base",
        "--metrics",
        ",".join(metric for metric, _ in METRICS.values()),
        sys.executable,
        __file__,
    ]
    done = subprocess.run([*command, "--profiled", hows, *map(str, paths)], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if not lines:
        raise SystemExit(f"ncu printed no table: {done.stdout[-500:]} {done.stderr[-500:]}")
    totals, last = [Counter[str]()], ""
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        if BETWEEN in row["Kernel Name"]:
            totals += [Counter()] * (row["ID"] != last)
            last = row["ID"]
        else:
            name, size = next((name, size) for name, (metric, size) in METRICS.items() if metric == row["Metric Name"])
            value = row["Metric Value"].replace(",", "")
            if value.replace(".", "").isdigit():  # a counter that a chip has not says n/a
                totals[-1][name] += size * int(float(value))
    result, each = {}, iter(totals)
    for path in paths:
        result[path.stem] = [dict(next(each)) for _ in range(len(ways(load(path), hows)) + 1)]
    return result


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of exported files")
    parser.add_argument("output", type=Path, help="the table to write")
    parser.add_argument("--check", action="store_true", help="only compare with float64")
    parser.add_argument("--no-ncu", action="store_true", help="no DRAM bytes")
    parser.add_argument("--jobs", type=int, default=8, metavar="N", help="processes that compile first, 0: none (8)")
    parser.add_argument(
        "--rounds", type=int, default=6, metavar="N", help="sustained rounds of each, in every order (6)"
    )
    parser.add_argument("--seconds", type=float, default=0.5, metavar="S", help="of a round (0.5)")
    parser.add_argument("--how", default=",".join(HOWS), metavar="A,B", help="of a product (free,even,waves)")
    parser.add_argument(
        "--against", default="", metavar="NAME", help="only calls with such names, as flash_attention; no DRAM bytes"
    )
    parser.add_argument("--match", default="*", metavar="GLOB", help="only the files with such names")
    args = parser.parse_args()
    try:
        import torch
        import triton  # noqa: F401

        has_gpu = torch.cuda.is_available()
    except ImportError:
        has_gpu = False
    if not has_gpu:
        sys.exit("run_exports.py: needs PyTorch, Triton and an NVIDIA GPU.")
    paths, wrong = sorted(args.folder.glob(f"{args.match}.py")), 0
    rows: list[Row] = []
    TIMED.rounds, TIMED.seconds = args.rounds, args.seconds
    if args.jobs:
        compile_all(paths, args.jobs)
    for path in paths:
        try:
            result = measured(path, args.how, args.check, args.against)
        except (Exception, SystemExit) as error:  # what one file cannot do is no reason to leave out the others
            print(f"{path.stem}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            wrong += 1
            continue
        rows += result
        for row in result:
            wrong += float(row["error"]) > 0.01
            print(f"{path.stem}: {summary(row)}", flush=True)
        write(args.output, rows)
    if not (args.no_ncu or args.check or args.against):
        there = {row["case"] for row in rows}
        found_bytes = bytes_of([path for path in paths if path.stem in there], args.how)
        for row in rows:
            ours = found_bytes[row["case"]].pop(0)
            row |= {f"dram_{name}" if name in DRAM else name: value for name, value in ours.items()}
        for row in rows:
            row |= {f"library_{name}": value for name, value in found_bytes[row["case"]][-1].items()}
        write(args.output, rows)
    return int(wrong > 0)


def summary(row: Row) -> str:
    """A row in short."""
    text = f"{row['how']} error {row['error']}"
    if "joules" in row:
        single = row["milliseconds"] / row["library_milliseconds"]
        sustained = row["sustained_milliseconds"] / row["library_sustained_milliseconds"]
        text += f", {row['sustained_milliseconds']:.4f} ms, of {row['library']}'s {sustained:.3f}, single {single:.3f}"
        text += f", joules {row['joules'] / row['library_joules']:.3f}"
    return text + f", {row['stages']} stages, {row['registers_spilled']} spilled"


def write(path: Path, rows: list[Row]) -> None:
    """The table, as far as it is."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--profiled"]:
        profiled(sys.argv[2], [Path(name) for name in sys.argv[3:]])
    elif sys.argv[1:2] == ["--build"]:
        measured(Path(sys.argv[2]), ",".join(HOWS), True)
    else:
        sys.exit(main())
