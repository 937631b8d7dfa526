"""The arithmetic of one k-tile: cycles on the tensor cores, from L2 and from DRAM, and the stages that hide the loads.

On an A100 two sets of constants are told side by side: as published, and corrected, each with its reason.

examples:
  pebble cycles --tile 256x128x16 --dtype fp16 --gpu a100-sxm4-40gb
  pebble cycles --tile 128x128x64 --gpu h100-sxm5-80gb --stages 4 --dram-latency 700
  pebble cycles --tile 128x128x32 --gpu a100-sxm4-40gb --threads 256 --registers 128
"""

from __future__ import annotations

import argparse

from pebble.api.kernels import cycles
from pebble.cli import _output
from pebble.cli._look import add_look_arguments, check_figure, write_figure
from pebble.models.sm_constants import SETS
from pebble.reports.cycles import OVERRIDES, Cycles
from pebble.workloads.workload import DTYPE_BYTES

_UNITS = {"bandwidth": "B", "latency": "CYCLES", "cycles": "CYCLES", "cores": "N"}
_HELP = {
    "l2_bandwidth": "bytes per clock and SM from L2",
    "dram_bandwidth": "bytes per clock and SM from DRAM, the SM's share",
    "l2_latency": "cycles until the first byte of a load that hits L2",
    "dram_latency": "cycles of a load that misses (published: on top of those of L2)",
    "mma_cycles": "cycles of one instruction on one tensor core",
    "tensor_cores": "tensor cores of an SM",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble cycles``."""
    parser.add_argument("--tile", metavar="BMxBNxBK", required=True, help="block tile and the depth of a step")
    parser.add_argument("--dtype", default="bf16", help="type of A and B: " + ", ".join(DTYPE_BYTES) + " (bf16)")
    parser.add_argument("--gpu", metavar="SKU", help="a GPU of `pebble machines`, such as a100-sxm4-40gb")
    parser.add_argument("--machine", metavar="FILE", help="a machine file of your own (`pebble machines --help`)")
    parser.add_argument(
        "--threads",
        metavar="N",
        help="of a block (the fewest with the accumulators, a warp for each tensor core at least)",
    )
    parser.add_argument("--registers", metavar="N", help="a budget for each thread, refused where it is too small")
    parser.add_argument("--stages", metavar="N", help="steps whose tiles a block holds at once (what fits)")
    group = parser.add_argument_group("constants (those of the machine file, unless given)")
    group.add_argument("--constants", metavar="SET", help=f"A100: {' or '.join(SETS)}, to judge by ({SETS[1]})")
    group.add_argument("--mma", metavar="MxNxK", help="tensor-core instruction (16x16x16)")
    for name in OVERRIDES:
        metavar = _UNITS[name.partition("_")[2]]
        group.add_argument(f"--{name.replace('_', '-')}", metavar=metavar, help=_HELP[name])
    add_look_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Count and print."""
    check_figure(args)
    names = ("dtype", "gpu", "machine", "constants", "threads", "registers", "stages", "mma", *OVERRIDES)
    result = cycles(args.tile, **{name: vars(args)[name] for name in names})
    if args.json:
        _output.print_report(result)
    else:
        _print(result)
    if args.figure is not None:
        write_figure(args, result.figure)
    return 0


def _print(result: Cycles) -> None:
    say, needs = _output.say, result.fit.needs
    each = f"{result.fit.accumulators_per_thread} fp32 accumulators each"
    if result.fit.tensor_bytes:
        each = f"{needs.accumulators:,} fp32 accumulators in tensor memory"
    say(
        f"{result.gpu.name}, one k-tile of {result.tile} {result.dtype}: {result.steps[0].bytes:,} bytes, "
        f"{result.steps[0].flops:,} operations; {result.fit.threads} threads with {each}, "
        f"{result.stages} stages of {needs.stage_bytes:,} bytes"
    )
    print()
    print(_output.table(["cycles", *(step.constants.name for step in result.steps)], _lines(result)))
    print()
    say(
        f"Beside the steps: an activation of all sums takes {result.activation_cycles:,.0f} cycles of the "
        f"special-function units, once a tile; to promote all sums to fp32 (fp8) takes {result.promotion_cycles:,.0f} "
        "of the vector pipes. Other blocks of the SM may compute meanwhile, this one does not."
    )
    for step in result.steps:
        print()
        say(f"{step.constants.name}: {result.verdict(step)}")
        say(f"why: {step.constants.reason}", "  ")


def _lines(result: Cycles) -> list[list[str]]:
    steps = result.steps
    instructions, one = "tensor-core instructions", "on one tensor core"
    if result.dtype == "fp32":  # not tf32: its products are those of plain cores
        instructions, one = f"{'x'.join(map(str, steps[0].constants.mma))} at a time", "on a quarter of the SM"

    def row(name: str, values: list[str]) -> list[str]:
        return [name, *values]

    c = [step.constants for step in steps]
    return [
        row(instructions, [f"{s.instructions:,}" for s in steps]),
        row("cycles of one", [f"{s.constants.mma_cycles.value:g}" for s in steps]),
        row(one, [f"{s.core_cycles:,.1f}" for s in steps]),
        row("on the SM (compute)", [f"{s.compute_cycles:,.1f}" for s in steps]),
        row("L2 latency", [f"{item.l2_latency.value:g}" for item in c]),
        row("L2 B/clk per SM", [f"{each_item.l2_rate.value:.2f}" for each_item in c]),
        row("L2 hit", [f"{s.l2_cycles:,.1f}" for s in steps]),
        row("DRAM latency", [f"{element.dram_latency.value:g}" + " more" * element.adds for element in c]),
        row("DRAM B/clk per SM", [f"{one.dram_rate.value:.2f}" for one in c]),
        row("a miss adds", [f"{s.dram_more_cycles:,.1f}" for s in steps]),
        row("L2 miss in all", [f"{s.dram_cycles:,.1f}" for s in steps]),
    ]
