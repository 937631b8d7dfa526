"""A real schedule cut into segments: touched = held + loaded + begun, and what geometry demands."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.bounds import Box
from pebble.errors import InputError
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, RED, Axes, Figure, page, small_title, value_axis
from pebble.schedules.explicit import ExplicitProduct, best_gemm_schedule
from pebble.schedules.explicit.moves import gemm_moves
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory

MAX_PRODUCTS = 300_000

Value = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Segment:
    """One segment of a schedule."""

    products: int  #: multiply-adds in it
    #: values touched in it, by how they came to be there: in fast memory at its start, loaded first in it, or (of C)
    #: begun in it
    held: int
    loaded: int
    initialised: int
    loads: int  #: in it; a value may be loaded twice
    stores: int

    @property
    def touched(self) -> int:
        """Values touched."""
        return self.held + self.loaded + self.initialised


def cut_schedule(schedule: ExplicitProduct, segments: int) -> list[Segment]:
    """Play a schedule and cut it after equal shares of the multiply-adds.

    Raises
    ------
    InputError
        The schedule is too long to be played.
    """
    work = schedule.gemm.multiply_adds
    if work > MAX_PRODUCTS:
        raise InputError(f"figure: got {work:,} multiply-adds to play, expected at most {MAX_PRODUCTS:,}.")
    red: set[Value] = set()
    initialised_before: set[tuple[int, ...]] = set()
    results: list[Segment] = []
    origin: dict[Value, str] = {}
    at_start: set[Value] = set()
    loads = stores = done = since = 0
    fresh: set[Value] = set()

    def close() -> None:
        nonlocal loads, stores, since
        kinds = list(origin.values())
        results.append(Segment(since, kinds.count("held"), kinds.count("loaded"), kinds.count("begun"), loads, stores))
        loads = stores = since = 0
        origin.clear()
        at_start.clear()
        at_start.update(red)
        fresh.clear()

    for op, name, index in gemm_moves(schedule):
        if op == "load":
            red.add((name, index))
            fresh.add((name, index))
            loads += 1
        elif op == "store":
            stores += 1
        elif op == "delete":
            red.discard((name, index))
        else:
            if done == work * (len(results) + 1) // segments and len(results) + 1 < segments:
                close()
            i, j, l = index
            touched: list[Value] = [("A", (i, l)), ("B", (l, j)), ("C", (i, j))]
            for value in touched:
                if value not in origin:
                    new = value[0] == "C" and value[1] not in initialised_before and value not in red
                    origin[value] = "begun" if new else "held" if value in at_start and value not in fresh else "loaded"
            initialised_before.add((i, j))
            red.add(("C", (i, j)))
            done += 1
            since += 1
    close()
    return results


def plot_segments(schedule: ExplicitProduct, segments: int, ax: Axes) -> Axes:
    """Stacked bars per segment, the capacity and the least that the geometry allows as lines."""
    from matplotlib.ticker import MaxNLocator

    gemm = schedule.gemm
    cut = cut_schedule(schedule, segments)
    at = list(range(1, len(cut) + 1))
    bottom = [0] * len(cut)
    for values, colour, label in (
        ([s.held for s in cut], GREY, "held at the start"),
        ([s.loaded for s in cut], BLUE, "loaded"),
        ([s.initialised for s in cut], GREEN, "begun (C)"),
    ):
        ax.bar(at, values, bottom=bottom, color=colour, width=0.8, label=label)
        bottom = [b + v for b, v in zip(bottom, values, strict=True)]
    ax.axhline(schedule.memory.bytes, color="black", lw=1.2, ls="--", label=f"capacity S = {schedule.memory.bytes}")
    least = [Box(gemm.m, gemm.n, gemm.k).touched_whole(s.products) for s in cut]
    edges = [x + d for x in at for d in (-0.5, 0.5)]
    ax.plot(
        edges, [v for v in least for _ in range(2)], color=RED, lw=1.4, label="least any segment of this work touches"
    )
    ax.plot(at, [s.loads for s in cut], color=ORANGE, marker="o", ms=3, lw=0, label="loads made")
    ax.set_xlim(0.4, len(cut) + 0.6)
    if not value_axis(ax.yaxis, [*bottom, schedule.memory.bytes, *least]):
        ax.set_ylim(0, max([*bottom, schedule.memory.bytes]) * 1.08)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel(f"segment ({cut[0].products} multiply-adds each)")
    ax.set_ylabel("values touched")
    bound = sum(least) - (len(cut) - 1) * schedule.memory.bytes
    small_title(
        ax,
        f"{gemm.label}: {schedule.name}\nmoves {schedule.elements:,} values; sum of least touched - (h - 1) S = "
        f"{bound:,}",
    )
    return ax


def segments_figure(gemm: Gemm, capacity: int, segments: int = 0) -> Figure:
    """The figure of ``pebble figure segments``; by default the number of segments that proves most."""
    with page(6.4, 3.8) as figure:
        schedule = best_gemm_schedule(gemm, FastMemory.of_values(capacity, gemm))
        count = segments or Box(gemm.m, gemm.n, gemm.k).bound(gemm.multiply_adds, capacity)[1]
        plot_segments(schedule, min(count, 60), figure.add_subplot())
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    return figure
