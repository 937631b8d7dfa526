"""How each figure is drawn from what is asked for, and what it takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError
from pebble.families import accounting, family_of
from pebble.models.machine import Machine
from pebble.reports.target import chip_of, whole
from pebble.system.files import read_bytes, shown
from pebble.units import parse_size
from pebble.workloads import Ffn, Gemm
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Drawn = Figure | tuple[Figure, dict[str, Any]]  # some have numbers of their own

_MAX_SIDE = 128
_MAX_ORDERS = 4


@dataclass(frozen=True)
class FigureSpec:
    """A figure asked for: its name, the workload if one was given, and what else; None is not given."""

    name: str
    workload: Workload | None
    cache: str | None = None
    schedules: str | None = None
    gpu: str | Machine | None = None
    machine: str | None = None
    accumulator: str | None = None
    energy: str | None = None
    sms: int | str | None = None
    grid: str | None = None
    segments: int | str | None = None
    solution: str | None = None


def _workload(problem: FigureSpec, otherwise: Any) -> Any:
    """The workload given, of the same family as the one drawn otherwise."""
    workload = problem.workload
    if workload is None:
        return otherwise
    if type(workload) is not type(otherwise):
        raise InputError(
            f"{problem.name}: got {family_of(workload).name}, expected {family_of(otherwise).name} for this figure."
        )
    return workload


def _capacity(problem: FigureSpec, workload: Gemm, otherwise: str) -> int:
    elements = parse_size(problem.cache or otherwise, "--cache").to_elements(workload.widest_bytes)
    if elements < 3:
        raise InputError(f"--cache: got {elements} values, expected at least 3 (a value each of A, B and C).")
    return elements


def _orders(problem: FigureSpec, otherwise: str) -> list[str]:
    names = (problem.schedules or otherwise).split(",")
    if len(names) > _MAX_ORDERS:
        raise InputError(f"--schedules: got {len(names)}, expected at most {_MAX_ORDERS} to tell apart.")
    return names


def _ski_slope(problem: FigureSpec) -> Figure:
    from pebble.plots.curve import ORDERS, ski_slope, ski_slope_figure

    gemm = _workload(problem, Gemm(8192, 8192, 8192))
    sms = whole("--sms", problem.sms or "108", 1, 1024)
    return ski_slope_figure(ski_slope(gemm, _orders(problem, ",".join(ORDERS)), sms))


def _projections(problem: FigureSpec) -> Figure:
    from pebble.plots.segments import projections_figure

    gemm = _workload(problem, Gemm(8192, 8192, 8192))
    return projections_figure(gemm, _capacity(problem, gemm, "40MiB"))


def _segments(problem: FigureSpec) -> Figure:
    from pebble.plots.segments import segments_figure

    gemm = _workload(problem, Gemm(24, 24, 24))
    count = whole("--segments", problem.segments, 1, 60) if problem.segments else 0
    return segments_figure(gemm, _capacity(problem, gemm, "120el"), min(count, gemm.multiply_adds))


def _pebbling(problem: FigureSpec) -> Figure:
    from pebble.plots.pebbling import gemm_events, pebbling_figure

    if problem.solution is not None:
        document = _document(problem.solution)
        if document.get("sms", 1) > 1:
            return _lanes(document, problem.solution)
        return pebbling_figure(*_solution(document, problem.solution))
    gemm = _workload(problem, Gemm(3, 3, 3))
    capacity = _capacity(problem, gemm, "6el")
    events = gemm_events(gemm, capacity)
    return pebbling_figure(events, capacity, f"{gemm.label}, best explicit schedule")


def _document(path: str) -> dict[str, Any]:
    """What `pebble solve --json` printed."""
    try:
        document = json.loads(read_bytes(path, "--solution: "))
        if type(document) is not dict or not isinstance(document.get("sms", 1), int):
            raise TypeError
    except (ValueError, TypeError, RecursionError):
        raise _not_a_solution(path) from None
    return document


def _not_a_solution(path: str) -> InputError:
    return InputError(f"--solution: {shown(path)} is not what `pebble solve ... --json` prints.")


def _lanes(document: dict[str, Any], path: str) -> Figure:
    """A lane an SM."""
    from pebble.game import read_moves
    from pebble.plots.pebbling import lanes_figure

    if document.get("buffers") == "pooled":
        raise InputError("figure: got pooled buffers, one memory that all SMs share; it has no lanes.")
    try:
        moves = read_moves(document["moves"], memories=document["sms"])
        title = f"{document['instance']}, {document['buffers']}, {document['upper_bound']:,} moved"
        if any(move.sm is None for move in moves):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise _not_a_solution(path) from None
    targets = {move.node: re.split(r"\+=|/=|=|\*=", move.node)[0] for move in moves if move.op == "compute"}
    return lanes_figure(moves, targets, document["sms"], f"{title}, {document.get('status')}")


def _solution(document: dict[str, Any], path: str) -> tuple[list[tuple[str, str, tuple[str, ...]]], int, str]:
    """The moves of one memory."""
    from pebble.plots.pebbling import MAX_EVENTS, move_events

    try:
        moves = [tuple(map(str, move)) for move in document["moves"]]
        capacity, title = int(document["capacity"]), f"{document['instance']}, {document['variant']}"
    except (ValueError, KeyError, TypeError):
        raise _not_a_solution(path) from None
    if not moves or len(moves) > MAX_EVENTS or capacity < 1:
        raise InputError(f"--solution: got {len(moves)} moves, expected 1 to {MAX_EVENTS}.")
    return move_events(moves), capacity, f"{title}: {document.get('upper_bound')} moved, {document.get('status')}"


def _walk(problem: FigureSpec) -> Figure:
    from pebble.plots.walk import walk_figure
    from pebble.schedules.orders import OrderParams, parse_order

    sides = (problem.grid or "32x32").split("x")
    if len(sides) != 2:
        raise InputError(f"--grid: got {problem.grid!r}, expected rows and columns such as 16x16.")
    rows, cols = (whole("--grid", side, 1, _MAX_SIDE) for side in sides)
    orders = [parse_order(name) for name in _orders(problem, "row,grouped-8,hilbert,snake-strips-16")]
    return walk_figure(orders, rows, cols, OrderParams(sms=whole("--sms", problem.sms or "108", 1, 1024)))


def _gap(problem: FigureSpec) -> Figure:
    from pebble.plots.gap import gap, gap_figure

    return gap_figure(gap())


def _fusion(problem: FigureSpec) -> Figure:
    from pebble.plots.choices import fusion, fusion_figure

    return fusion_figure(fusion(_workload(problem, Ffn(8192, 4096, 11008))))


def _buffers(problem: FigureSpec) -> Figure:
    from pebble.bounds.memories import check_workload
    from pebble.models.machine import load_machine
    from pebble.plots.buffers import Chip, buffers_figure

    workload = problem.workload or Gemm(8192, 8192, 8192)
    check_workload(accounting(workload))
    chips = []
    for name, sku in (("A100", "a100-sxm4-40gb"), ("H200", "h200-sxm-141gb")):
        machine = load_machine(sku)
        chips.append(Chip(name, machine.sms, machine.sm_bytes))
    return buffers_figure(workload, chips)


def _omega(problem: FigureSpec) -> Figure:
    from pebble.bounds.memories import check_workload
    from pebble.models.rates import copy_cost
    from pebble.plots.buffers import Chip, omega_figure

    workload = problem.workload or Gemm(8192, 8192, 8192)
    check_workload(accounting(workload))
    if problem.gpu is None and problem.machine is None:
        raise InputError("omega: expected --gpu SKU or --machine FILE, whose SMs copy from each other.")
    machine = chip_of(problem.gpu, problem.machine)
    of_copies = copy_cost(machine)
    chip = Chip(machine.name, machine.sms, machine.sm_bytes)
    return omega_figure(workload, chip, None if of_copies is None else of_copies.omega)


def _placement(problem: FigureSpec) -> tuple[Figure, dict[str, Any]]:
    from pebble.game.buffer_model import Topology
    from pebble.plots.pebbling import placement_figure
    from pebble.schedules.orders import OrderParams, parse_order
    from pebble.solvers.placement import MAX_EXACT_SMS, block_deal, deal, place_exact, place_fast

    sides = (problem.grid or "16x16").split("x")
    if len(sides) != 2:
        raise InputError(f"--grid: got {problem.grid!r}, expected tiles such as 16x16.")
    rows, cols = (whole("--grid", side, 1, _MAX_SIDE) for side in sides)
    sms = whole("--sms", problem.sms or "8", 1, min(256, rows * cols))
    down = max(d for d in range(1, sms + 1) if sms % d == 0 and d * d <= sms)
    place = place_exact if sms <= MAX_EXACT_SMS else place_fast
    hilbert = parse_order("hilbert").tiles(rows, cols, OrderParams(sms=sms, tile_m=128, tile_n=128))
    blocks = block_deal(rows, cols, sms // down, down)
    cases = [
        ("blocks", blocks, "ring"),
        ("blocks", blocks, f"mesh-{down}x{sms // down}"),
        ("hilbert", deal(hilbert, rows, cols, sms), f"mesh-{down}x{sms // down}"),
    ]
    placed = [(name, place(slots, Topology(net, sms))) for name, slots, net in cases]
    entries = [
        {
            "order": name,
            "network": result.topology.name,
            "panel_hops": result.cost,
            "gap": result.gap,
            "owner": result.owner.tolist(),
            "row_home": result.row_home.tolist(),
            "col_home": result.col_home.tolist(),
        }
        for name, result in placed
    ]
    return placement_figure(placed), {"placements": entries}


def _roofline(problem: FigureSpec) -> Figure:
    from pebble.plots.time import roofline_figure
    from pebble.reports.roofline import roofline

    workload = problem.workload or Gemm(8192, 8192, 8192)
    if problem.gpu is None and problem.machine is None:
        raise InputError("roofline: expected --gpu SKU or --machine FILE, whose roofs are drawn.")
    return roofline_figure(
        roofline(workload, problem.schedules or "all", problem.accumulator, gpu=problem.gpu, machine=problem.machine)
    )


def _stationarity(problem: FigureSpec) -> tuple[Figure, dict[str, Any]]:
    from pebble.plots.choices import stationarity, stationarity_figure

    gemm = _workload(problem, Gemm(32768, 32768, 32768))
    result = stationarity(gemm, _capacity(problem, gemm, "6MiB"))
    return stationarity_figure(result), result.to_json()


def _energy(problem: FigureSpec) -> Figure:
    from pebble.reports.kernel_compare import compare_kernels

    workload = problem.workload or Gemm(8192, 8192, 8192)
    if problem.gpu is None and problem.machine is None:
        raise InputError("energy: expected --gpu SKU or --machine FILE, whose DRAM is priced.")
    result = compare_kernels(
        workload, problem.schedules or "all", energy=problem.energy or "7nm", gpu=problem.gpu, machine=problem.machine
    )
    return result.energy_figure()


def _bands(problem: FigureSpec) -> Figure:
    from pebble.plots.bands import bands_figure
    from pebble.reports.bands import CHIPS, bands_of

    ffn = _workload(problem, Ffn(8192, 4096, 11008))
    chips: tuple[str | Machine, ...] = CHIPS
    if problem.gpu is not None or problem.machine is not None:
        chips = (chip_of(problem.gpu, problem.machine),)
    return bands_figure([bands_of(ffn, chip) for chip in chips], ffn.label)


# name -> how it is drawn, and the arguments it takes
FIGURES: dict[str, tuple[Callable[[FigureSpec], Drawn], tuple[str, ...]]] = {
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
    "bands": (_bands, ("workload", "gpu", "machine")),
    "energy": (_energy, ("workload", "schedules", "gpu", "machine", "energy")),
}
