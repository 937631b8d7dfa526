"""A figure of a proof: ski-slope, projections, segments, pebbling, walk, gap, fusion, buffers, omega,
placement, roofline, stationarity, energy.

examples:
  pebble figure ski-slope --out ski-slope.pdf
  pebble figure projections gemm -m 4096 -n 4096 -k 4096 --cache 6MiB --out box.svg
  pebble figure segments gemm -m 24 -n 24 -k 24 --cache 60el --out segments.svg
  pebble figure pebbling --solution solved.json --out pebbling.svg     (from `pebble solve ... --json`)
  pebble figure walk --schedules row,hilbert --grid 16x16 --out walk.png
  pebble figure fusion llama-2-7b:mlp --tokens 8192 --out fusion.pdf
  pebble figure buffers --out buffers.svg
  pebble figure omega gemm -m 8192 -n 8192 -k 8192 --gpu h100-sxm5-80gb --out omega.svg
  pebble figure placement --grid 16x16 --sms 8 --out placement.svg
  pebble figure roofline gemm -m 8192 -n 8192 -k 8192 --gpu h100-sxm5-80gb --out roofline.svg
  pebble figure stationarity --cache 6MiB --out stationarity.svg
  pebble figure energy llama-2-7b:mlp --tokens 8192 --gpu a40 --schedules row-fused-8,separate:row --out energy.svg
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pebble.cli import _output
from pebble.cli._look import add_look_arguments, look_of, write_figure
from pebble.cli._workload_argument import add_workload_arguments, given_parameters, optional_workload
from pebble.errors import InputError, UnknownNameError
from pebble.families import accounting, family_of
from pebble.reports.target import chip_of, whole
from pebble.system.files import read_bytes, shown
from pebble.units import parse_size
from pebble.workloads import Ffn, Gemm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Drawn = Figure | tuple[Figure, dict[str, Any]]  # some have numbers for --json beside

_MAX_SIDE = 128
_MAX_ORDERS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble figure``."""
    parser.add_argument("name", metavar="NAME", help=", ".join(FIGURES))
    add_workload_arguments(parser, required=False)
    parser.add_argument("--out", metavar="FILE", help="a name that ends in .pdf, .svg or .png; default NAME.svg")
    parser.add_argument(
        "--cache", metavar="SIZE", help="projections, segments, pebbling, stationarity: fast memory, such as 60el"
    )
    parser.add_argument(
        "--schedules",
        metavar="A,B",
        help="ski-slope, walk: tile orders, up to four; roofline, energy: any number (all)",
    )
    parser.add_argument("--gpu", metavar="SKU", help="omega, roofline, energy: a GPU of `pebble machines`")
    parser.add_argument("--machine", metavar="FILE", help="omega, roofline, energy: a machine file of your own")
    parser.add_argument("--accumulator", metavar="TYPE", help="roofline: of sums, fp32 or fp16 (fp32)")
    parser.add_argument("--energy", metavar="TABLE", help="energy: the published table, 7nm or k40 (7nm)")
    parser.add_argument("--sms", metavar="P", help="ski-slope, walk: SMs of the kernel (108); placement: SMs (8)")
    parser.add_argument("--grid", metavar="RxC", help="walk, placement: the tile grid (32x32, 16x16)")
    parser.add_argument("--segments", metavar="H", help="segments: how many (as many as prove most)")
    parser.add_argument("--solution", metavar="FILE", help="pebbling: what `pebble solve ... --json` printed")
    add_look_arguments(parser, figure=None)


def run(args: argparse.Namespace) -> int:
    """Draw the figure and write it."""
    from pebble.plots.save import check_figure_path

    if args.name not in FIGURES:
        raise UnknownNameError("figure", args.name, FIGURES, "pebble figure --help")
    path = args.out or f"{args.name}.svg"
    check_figure_path(path, "--out")
    look_of(args)
    draw, allowed = FIGURES[args.name]
    for option in (
        "cache",
        "schedules",
        "sms",
        "grid",
        "segments",
        "solution",
        "gpu",
        "machine",
        "accumulator",
        "energy",
    ):
        if getattr(args, option) is not None and option not in allowed:
            raise InputError(f"{args.name}: got --{option}, which this figure does not take; leave it out.")
    if "workload" not in allowed and (args.workload is not None or given_parameters(args)):
        got = "the shape of a workload" if args.workload is None else f"the workload {args.workload!r}"
        raise InputError(f"{args.name}: got {got}, which this figure does not take; leave it out.")
    numbers = write_figure(args, lambda: draw(args), path)
    if args.json:
        _output.print_json({"figure": args.name, "out": path, **numbers})
    else:
        _output.say(f"{args.name}: written to {path}")
    return 0


def _workload(args: argparse.Namespace, otherwise: Any) -> Any:
    """The workload given, of the same family as the one drawn otherwise."""
    workload = optional_workload(args)
    if workload is None:
        return otherwise
    if type(workload) is not type(otherwise):
        raise InputError(
            f"{args.name}: got {family_of(workload).name}, expected {family_of(otherwise).name} for this figure."
        )
    return workload


def _capacity(args: argparse.Namespace, workload: Gemm, otherwise: str) -> int:
    elements = parse_size(args.cache or otherwise, "--cache").to_elements(workload.widest_bytes)
    if elements < 3:
        raise InputError(f"--cache: got {elements} values, expected at least 3 (a value each of A, B and C).")
    return elements


def _orders(args: argparse.Namespace, otherwise: str) -> list[str]:
    names = (args.schedules or otherwise).split(",")
    if len(names) > _MAX_ORDERS:
        raise InputError(f"--schedules: got {len(names)}, expected at most {_MAX_ORDERS} to tell apart.")
    return names


def _ski_slope(args: argparse.Namespace) -> Figure:
    from pebble.plots.ski_slope import ORDERS, ski_slope, ski_slope_figure

    gemm = _workload(args, Gemm(8192, 8192, 8192))
    sms = whole("--sms", args.sms or "108", 1, 1024)
    return ski_slope_figure(ski_slope(gemm, _orders(args, ",".join(ORDERS)), sms))


def _projections(args: argparse.Namespace) -> Figure:
    from pebble.plots.projections import projections_figure

    gemm = _workload(args, Gemm(8192, 8192, 8192))
    return projections_figure(gemm, _capacity(args, gemm, "40MiB"))


def _segments(args: argparse.Namespace) -> Figure:
    from pebble.plots.segments import segments_figure

    gemm = _workload(args, Gemm(24, 24, 24))
    count = whole("--segments", args.segments, 1, 60) if args.segments else 0
    return segments_figure(gemm, _capacity(args, gemm, "120el"), min(count, gemm.multiply_adds))


def _pebbling(args: argparse.Namespace) -> Figure:
    from pebble.plots.pebbling import gemm_events, pebbling_figure

    if args.solution is not None:
        return pebbling_figure(*_solution(args.solution))
    gemm = _workload(args, Gemm(3, 3, 3))
    capacity = _capacity(args, gemm, "6el")
    events = gemm_events(gemm, capacity)
    return pebbling_figure(events, capacity, f"{gemm.label}, best explicit schedule")


def _solution(path: str) -> tuple[list[tuple[str, str, tuple[str, ...]]], int, str]:
    """The moves that `pebble solve --json` printed."""
    from pebble.plots.pebbling import MAX_EVENTS

    try:
        document = json.loads(read_bytes(path, "--solution: "))
        moves = [tuple(map(str, move)) for move in document["moves"]]
        capacity, title = int(document["capacity"]), f"{document['instance']}, {document['variant']}"
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"--solution: {shown(path)} is not what `pebble solve ... --json` prints.") from None
    if not moves or len(moves) > MAX_EVENTS or capacity < 1:
        raise InputError(f"--solution: got {len(moves)} moves, expected 1 to {MAX_EVENTS}.")
    events: list[tuple[str, str, tuple[str, ...]]] = []
    for op, node, *source in moves:
        if op in ("compute", "slide"):
            if source:
                events.append(("delete", source[0], ()))
            events.append(("compute", node.partition("+=")[0], ()))
        else:
            events.append((op, node, ()))
    return events, capacity, f"{title}: {document.get('upper_bound')} moved, {document.get('status')}"


def _walk(args: argparse.Namespace) -> Figure:
    from pebble.plots.walk import walk_figure
    from pebble.schedules.orders import OrderParams, parse_order

    sides = (args.grid or "32x32").split("x")
    if len(sides) != 2:
        raise InputError(f"--grid: got {args.grid!r}, expected rows and columns such as 16x16.")
    rows, cols = (whole("--grid", side, 1, _MAX_SIDE) for side in sides)
    orders = [parse_order(name) for name in _orders(args, "row,grouped-8,hilbert,snake-strips-16")]
    return walk_figure(orders, rows, cols, OrderParams(sms=whole("--sms", args.sms or "108", 1, 1024)))


def _gap(args: argparse.Namespace) -> Figure:
    from pebble.plots.gap import gap, gap_figure

    return gap_figure(gap())


def _fusion(args: argparse.Namespace) -> Figure:
    from pebble.plots.fusion import fusion, fusion_figure

    return fusion_figure(fusion(_workload(args, Ffn(8192, 4096, 11008))))


def _buffers(args: argparse.Namespace) -> Figure:
    from pebble.bounds.memories import check_workload
    from pebble.models.machine import load_machine
    from pebble.plots.buffers import Chip, buffers_figure

    workload = optional_workload(args) or Gemm(8192, 8192, 8192)
    check_workload(accounting(workload))
    chips = []
    for name, sku in (("A100", "a100-sxm4-40gb"), ("H200", "h200-sxm-141gb")):
        machine = load_machine(sku)
        chips.append(Chip(name, machine.sms, machine.sm_bytes))
    return buffers_figure(workload, chips)


def _omega(args: argparse.Namespace) -> Figure:
    from pebble.bounds.memories import check_workload
    from pebble.models.rates import copy_price
    from pebble.plots.buffers import Chip, omega_figure

    workload = optional_workload(args) or Gemm(8192, 8192, 8192)
    check_workload(accounting(workload))
    if args.gpu is None and args.machine is None:
        raise InputError("omega: expected --gpu SKU or --machine FILE, whose SMs copy from each other.")
    machine = chip_of(args.gpu, args.machine)
    price = copy_price(machine)
    chip = Chip(machine.name, machine.sms, machine.sm_bytes)
    return omega_figure(workload, chip, None if price is None else price.omega)


def _placement(args: argparse.Namespace) -> Figure:
    from pebble.game.buffer_model import Topology
    from pebble.plots.placement import placement_figure
    from pebble.schedules.orders import OrderParams, parse_order
    from pebble.solvers.placement import MAX_EXACT_SMS, block_deal, deal, place_exact, place_fast

    sides = (args.grid or "16x16").split("x")
    if len(sides) != 2:
        raise InputError(f"--grid: got {args.grid!r}, expected tiles such as 16x16.")
    rows, cols = (whole("--grid", side, 1, _MAX_SIDE) for side in sides)
    sms = whole("--sms", args.sms or "8", 1, min(256, rows * cols))
    down = max(d for d in range(1, sms + 1) if sms % d == 0 and d * d <= sms)
    place = place_exact if sms <= MAX_EXACT_SMS else place_fast
    hilbert = parse_order("hilbert").tiles(rows, cols, OrderParams(sms=sms, tile_m=128, tile_n=128))
    blocks = block_deal(rows, cols, sms // down, down)
    cases = [
        ("blocks", blocks, "ring"),
        ("blocks", blocks, f"mesh-{down}x{sms // down}"),
        ("hilbert", deal(hilbert, rows, cols, sms), f"mesh-{down}x{sms // down}"),
    ]
    return placement_figure([(name, place(slots, Topology(net, sms))) for name, slots, net in cases])


def _roofline(args: argparse.Namespace) -> Figure:
    from pebble.plots.roofline import roofline_figure
    from pebble.reports.roofline import roofline

    workload = optional_workload(args) or Gemm(8192, 8192, 8192)
    where = {"gpu": args.gpu, "machine": args.machine}
    if args.gpu is None and args.machine is None:
        raise InputError("roofline: expected --gpu SKU or --machine FILE, whose roofs are drawn.")
    return roofline_figure(roofline(workload, args.schedules or "all", args.accumulator, **where))


def _stationarity(args: argparse.Namespace) -> tuple[Figure, dict[str, Any]]:
    from pebble.plots.stationarity import stationarity, stationarity_figure

    gemm = _workload(args, Gemm(32768, 32768, 32768))
    found = stationarity(gemm, _capacity(args, gemm, "6MiB"))
    return stationarity_figure(found), found.to_json()


def _energy(args: argparse.Namespace) -> Figure:
    from pebble.reports.kernel_compare import compare_kernels

    workload = optional_workload(args) or Gemm(8192, 8192, 8192)
    if args.gpu is None and args.machine is None:
        raise InputError("energy: expected --gpu SKU or --machine FILE, whose DRAM is priced.")
    where = {"gpu": args.gpu, "machine": args.machine}
    return compare_kernels(workload, args.schedules or "all", energy=args.energy or "7nm", **where).energy_figure()


# name -> how it is drawn, and the arguments it takes
FIGURES: dict[str, tuple[Callable[[argparse.Namespace], Drawn], tuple[str, ...]]] = {
    "ski-slope": (_ski_slope, ("workload", "schedules", "sms")),
    "projections": (_projections, ("workload", "cache")),
    "segments": (_segments, ("workload", "cache", "segments")),
    "pebbling": (_pebbling, ("workload", "cache", "solution")),
    "walk": (_walk, ("schedules", "grid", "sms")),
    "gap": (_gap, ()),
    "fusion": (_fusion, ("workload",)),
    "buffers": (_buffers, ("workload",)),
    "omega": (_omega, ("workload", "gpu", "machine")),
    "placement": (_placement, ("grid", "sms")),
    "roofline": (_roofline, ("workload", "schedules", "gpu", "machine", "accumulator")),
    "stationarity": (_stationarity, ("workload", "cache")),
    "energy": (_energy, ("workload", "schedules", "gpu", "machine", "energy")),
}
