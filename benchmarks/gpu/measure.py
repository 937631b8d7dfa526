"""Check, measure and time the cases of a plan on the GPU of this machine.

    python benchmarks/gpu/measure.py check PLAN                       # every result against float64
    python benchmarks/gpu/measure.py run PLAN OUT.csv                 # check, time by events, bytes by Nsight Compute
    python benchmarks/gpu/measure.py run PLAN OUT.csv --no-ncu        # without ncu: times only

PLAN is the folder that make_tables.py wrote. OUT.csv is in the format of the library of measurements. Needs PyTorch,
Triton and, for bytes, ncu on the PATH with leave to read counters. The clocks and other settings of the GPU stay as
they are.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = ("benchmarks/gpu", "benchmarks/hardware", "schedules/export/templates")  # the kernels are in the last
sys.path[:0] = [str(ROOT / place) for place in PLACES]

from library import SHAPE_COLUMNS, Writer, shape_name  # noqa: E402 - the folder beside this one

METRICS = {
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "l2_read_sectors": "lts__t_sectors_op_read.sum",
    "ncu_nanoseconds": "gpu__time_duration.sum",
}
NCU = ("ncu", "--profile-from-start", "off", "--clock-control", "none", "--cache-control", "all")
QUEUED_CYCLES = 1_000_000  # the GPU sleeps until the launch is queued: an event's time then holds no work of the CPU
LIMIT = 0.01  # relative error that 16-bit operands and results may have
CHIPS = {
    "NVIDIA H200": "h200-sxm-141gb", "NVIDIA H100 80GB HBM3": "h100-sxm5-80gb", "NVIDIA H100 PCIe": "h100-pcie-80gb",
    "NVIDIA A100-SXM4-40GB": "a100-sxm4-40gb", "NVIDIA A100-SXM4-80GB": "a100-sxm4-80gb", "NVIDIA L40S": "l40s",
    "NVIDIA A40": "a40", "NVIDIA B200": "b200-sxm", "NVIDIA H20": "h20", "NVIDIA A30": "a30",
}  # fmt: skip
Case = dict[str, str]
Results = dict[int, dict[str, object]]


def read_plan(folder: Path) -> list[Case]:
    """The cases of a plan."""
    with open(folder / "plan.csv", newline="") as file:
        return list(csv.DictReader(file))


def problems(cases: list[Case], chosen: range) -> Iterator[tuple[list[int], Case]]:
    """Numbers of the cases that share one problem, and the first of them."""

    def key(at: int) -> tuple[str, ...]:
        case = cases[at]
        return (case["family"], *(case[name] for name in SHAPE_COLUMNS[case["family"]]))

    for _, numbers in groupby(chosen, key):
        listed = list(numbers)
        yield listed, cases[listed[0]]


def say(**values: object) -> None:
    """One line for the parent process."""
    print("#" + json.dumps(values), flush=True)


def check_and_time(folder: Path, repeats: int) -> None:
    """Child process: each case checked, then timed in turn with the others of its problem."""
    import torch
    from problems import PROBLEMS

    torch.manual_seed(time.time_ns())
    cases = read_plan(folder)
    gpu = torch.cuda.get_device_properties(0)
    say(chip=gpu.name, torch=torch.__version__)
    for numbers, first in problems(cases, range(len(cases))):
        problem = PROBLEMS[first["family"]](first, folder)
        launches = {}
        for at in numbers:
            try:
                launches[at] = problem.prepare(cases[at])
            except (RuntimeError, ValueError, SystemExit) as error:
                say(case=at, refused=str(error).splitlines()[0])
                continue
            launch = launches[at]
            say(case=at, error=problem.error(launch), blocks_per_sm=launch.blocks_per_sm, resources=launch.resources)
        seen: dict[int, list[float]] = {at: [] for at in launches}
        for _ in range(repeats):
            for at, launch in launches.items():
                launch.reset()
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
                torch.cuda._sleep(QUEUED_CYCLES)
                begin.record()
                launch.run()
                end.record()
                torch.cuda.synchronize()
                seen[at].append(begin.elapsed_time(end))
        for at, times in seen.items():
            if times:
                say(case=at, milliseconds=round(statistics.median(times), 4))
        del problem, launches
        torch.cuda.empty_cache()


def launch_for_profile(folder: Path, chosen: range) -> None:
    """Child process under ncu: each case once, ended by a launch of `end_of_case`."""
    import torch
    from kernels import end_of_case
    from problems import PROBLEMS

    mark = torch.zeros(1, dtype=torch.int32, device="cuda")
    end_of_case[(1,)](mark)
    cases = read_plan(folder)
    torch.manual_seed(time.time_ns())
    for numbers, first in problems(cases, chosen):
        problem = PROBLEMS[first["family"]](first, folder)
        for at in numbers:
            try:
                launch = problem.prepare(cases[at])
            except (RuntimeError, ValueError, SystemExit):
                continue
            launch.reset()
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            launch.run()
            end_of_case[(1,)](mark)
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
            say(case=at)
        del problem
        torch.cuda.empty_cache()


def read_child(line: str) -> dict[str, object]:
    """A line of `say`, or nothing."""
    try:
        return json.loads(line[1:]) if line.startswith("#{") else {}
    except json.JSONDecodeError:
        return {}


def by_case(output: str) -> Results:
    """Metrics of a profile, summed over the kernels of each case; the library's kernel names too."""
    order = [int(str(result["case"])) for result in map(read_child, output.splitlines()) if "case" in result]
    at = output.find('"ID"')
    if at < 0:
        raise SystemExit(f"ncu printed no table:\n{output[-2000:]}")
    lines = [line for line in output[at:].splitlines() if line.startswith('"')]
    kernels: dict[int, dict[str, str]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        kernel = kernels.setdefault(int(row["ID"]), {"name": row["Kernel Name"]})
        kernel[row["Metric Name"]] = row["Metric Value"].replace(",", "")
    results: Results = {}
    totals: dict[str, float] = {}
    names: list[str] = []
    cases = iter(order)
    for _, kernel in sorted(kernels.items()):
        if kernel["name"].startswith("end_of_case"):
            done = {name: int(totals[name]) for name in METRICS}
            results[next(cases)] = done | {"kernels": " + ".join(names)}
            totals, names = {}, []
            continue
        names.append(kernel["name"].split("(")[0].split("<")[0])
        for name, metric in METRICS.items():
            totals[name] = totals.get(name, 0) + float(kernel[metric])
    return results


def profile(folder: Path, chosen: range, reports: Path | None = None) -> Results:
    """Run cases under ncu; what it prints is kept in ``reports``, as `pebble ncu` reads it."""
    command = [*NCU, "--csv", "--print-units", "base", "--metrics", ",".join(METRICS.values()), sys.executable]
    command += [__file__, "launch", str(folder), "--from", str(chosen.start), "--to", str(chosen.stop)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-1500:], done.stderr[-1500:], file=sys.stderr)
    if reports is not None:
        (reports / f"cases-{chosen.start:04}-{chosen.stop:04}.csv").write_text(done.stdout)
    return by_case(done.stdout)


def portions(cases: list[Case], size: int) -> Iterator[range]:
    """Runs of whole problems with about ``size`` cases each: one process under ncu a run."""
    start = 0
    for numbers, _ in problems(cases, range(len(cases))):
        if numbers[-1] + 1 - start >= size:
            yield range(start, numbers[-1] + 1)
            start = numbers[-1] + 1
    if start < len(cases):
        yield range(start, len(cases))


def library_row(case: Case, timed: dict[str, object], measured: dict[str, object], about: dict[str, str]) -> Case:
    """One row of the library of measurements."""
    row: dict[str, object] = {name: value for name, value in case.items() if name != "table"} | about
    row |= {name: value for name, value in measured.items() if name not in ("kernels", "ncu_nanoseconds")}
    row["milliseconds"] = timed.get("milliseconds", "")
    tools = []
    if measured:
        tools.append("bytes: ncu --cache-control all --clock-control none, one launch")
    if row["milliseconds"] != "":
        tools.append(f"time: CUDA events, queued launch, median of {timed['repeats']}")
    row["tool"] = "; ".join(tools)
    if case["launch"] == "library":
        row["note"] = f"{case['note']}; {measured.get('kernels', '')}".rstrip("; ")
    else:
        row["blocks_per_sm"] = timed.get("blocks_per_sm", case["blocks_per_sm"])
    return {name: str(value) for name, value in row.items()}


def run(args: argparse.Namespace) -> int:
    """Check and time all cases, then profile them portion by portion, writing rows as they come."""
    cases = read_plan(args.plan)
    began = time.monotonic()
    timed: Results = {at: {"repeats": args.repeats} for at in range(len(cases))}
    about = {"date": time.strftime("%Y-%m-%d"), "source": "own"}
    command = [sys.executable, __file__, "time", str(args.plan), "--repeats", str(args.repeats)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            result = read_child(line)
            if "chip" in result:
                about["chip"] = CHIPS.get(str(result["chip"]), str(result["chip"]))
            elif "case" in result:
                timed[int(str(result.pop("case")))] |= result
    wrong = 0
    for at, result in timed.items():
        bad = float(str(result.get("error", "inf"))) > LIMIT
        wrong += bad
        if bad or args.verbose:
            case = cases[at]
            print(
                f"{case['family']} {shape_name(case)} {case.get('tile')} {case['order']} {case['execution']}: {result}"
            )
    seconds = time.monotonic() - began
    print(f"{len(cases) - wrong} of {len(cases)} cases agree with float64 within {LIMIT:.0%}; {seconds:.0f} s")
    if args.output is None:
        return int(wrong > 0)
    writer = Writer(args.output)
    if args.reports is not None:
        args.reports.mkdir(parents=True, exist_ok=True)
    left = [at for at in timed if "milliseconds" in timed[at] and float(str(timed[at]["error"])) <= LIMIT]
    for chosen in portions(cases, args.portion):
        if args.no_ncu or time.monotonic() - began > args.deadline:
            break
        measured = profile(args.plan, chosen, args.reports)
        here = [at for at in left if at in measured]
        writer.write(library_row(cases[at], timed[at], measured[at], about) for at in here)
        left = [at for at in left if at not in measured]
        print(f"{chosen.stop} of {len(cases)} cases profiled, {time.monotonic() - began:.0f} s", flush=True)
    writer.write(library_row(cases[at], timed[at], {}, about) for at in left)
    return int(wrong > 0)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    names = ("check", "run", "time", "launch")
    parsers = {name: commands.add_parser(name) for name in names}
    for command in parsers.values():
        command.add_argument("plan", type=Path, help="the folder that make_tables.py wrote")
        command.add_argument("--repeats", type=int, default=5, help="timed launches of each case (5)")
    parsers["run"].add_argument("output", type=Path, help="the table to write")
    for name in ("check", "run"):
        command = parsers[name]
        command.add_argument("--no-ncu", action="store_true", help="times only")
        command.add_argument("--portion", type=int, default=40, help="cases of one process under ncu (40)")
        command.add_argument("--deadline", type=float, default=1e9, help="start no profile after this many seconds")
        command.add_argument("--reports", type=Path, metavar="FOLDER", help="keep what ncu prints, for `pebble ncu`")
        command.add_argument("--verbose", action="store_true", help="print every case's error, time and resources")
        command.set_defaults(output=None)
    for side in ("--from", "--to"):
        parsers["launch"].add_argument(side, type=int, required=True, dest=side.strip("-") + "_case")
    args = parser.parse_args()
    absent = [name for name in ("torch", "triton") if find_spec(name) is None]
    if absent:
        parser.error(f"needs PyTorch, Triton and an NVIDIA GPU: {' and '.join(absent)} cannot be imported here.")
    if args.command == "time":
        check_and_time(args.plan, args.repeats)
    elif args.command == "launch":
        launch_for_profile(args.plan, range(args.from_case, args.to_case))
    else:
        return run(args)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
