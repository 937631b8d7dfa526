"""The argument of segments: one as a box with its three projections, why few values allow only so much work; and a
real schedule cut into them, touched = held + loaded + initialised.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pebble.bounds import Box, LagrangianBound, LineBound, Segments
from pebble.bounds.shares import least_sum
from pebble.errors import InputError
from pebble.families import lower_bound
from pebble.plots.look import look
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, RED, Axes, Figure, page, small_title, value_axis
from pebble.schedules.explicit import ExplicitProduct, best_gemm_schedule
from pebble.schedules.explicit.moves import gemm_moves
from pebble.workloads import Gemm
from pebble.workloads.widths import FastMemory

Point = tuple[float, float, float]
_WALL = -1.12  # where the walls stand, in lengths of the box


def best_box(gemm: Gemm, products: int) -> tuple[float, float, float]:
    """Sides (rows, columns, depth) of the box of so many multiply-adds that touches fewest values."""
    m, n, k = gemm.m, gemm.n, gemm.k
    limits = (Fraction(products, n), Fraction(products, m), Fraction(products, k))
    total, multipliers = least_sum(limits, Fraction(products * products))
    fixed = [x for x, p in zip(limits, multipliers, strict=True) if p > 0]
    free = max(1, 3 - len(fixed))
    each = (total - sum(fixed)) / free
    a, b, c = (float(x if p > 0 else each) for x, p in zip(limits, multipliers, strict=True))
    return products / b, products / a, products / c


def plot_projections(gemm: Gemm, capacity: int, ax: Axes) -> Axes:
    """Draw the best segment of a GEMM, in the proportions of its sides, and its shadows on three walls.

    A face may be thin and its numbers long, so that on the faces there are letters alone: the labels of the legend
    say the numbers.
    """
    proof = lower_bound(gemm, capacity).proof
    segments = proof.segments if isinstance(proof, Segments | LineBound | LagrangianBound) else 1
    products = gemm.multiply_adds // segments
    rows, cols, depth = best_box(gemm, products)
    longest = max(rows, cols, depth)
    i, j, l = (max(0.25, x / longest) for x in (rows, cols, depth))
    walls = (
        (1, "A", rows * depth, BLUE, 0.85),
        (0, "B", cols * depth, ORANGE, 0.78),
        (2, "C", rows * cols, GREEN, 0.92),
    )
    whole = f"{rows:,.0f} rows, {cols:,.0f} columns, depth {depth:,.0f}: {products:,} multiply-adds"
    _fill(ax, _face((i, j, l), 2, l), "0.92", 1, 3, whole)
    for axis, name, count, colour, light in walls:
        wall = _face((i, j, l), axis, _WALL)
        _fill(ax, wall, "white", 1, 1)  # over the dotted lines
        _fill(ax, wall, colour, 0.55, 1, f"{name}: {count:,.0f} values")
        _fill(ax, _face((i, j, l), axis, (i, j, l)[axis]), str(light), 1, 3)
        for start, end in zip(_face((i, j, l), axis, 0), wall, strict=True):
            xs, ys = zip(_flat(start), _flat(end), strict=True)
            ax.plot(xs, ys, color=GREY, lw=0.5, ls=":", zorder=0)
        x, y, z = (sum(along) / 4 for along in zip(*wall, strict=True))
        ax.text(*_flat((x, y, z)), name, ha="center", va="center_baseline", fontsize=8, zorder=5)
    around: dict[str, Any] = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"}  # over the dotted lines
    for side, at, shift, across, up in (
        ("rows", (i / 2, j, 0), (-3, -3), "right", "top"),
        ("columns", (i, j / 2, 0), (3, -3), "left", "top"),
        ("depth", (i, 0, l / 2), (4, 0), "left", "center"),
    ):
        ax.annotate(side, _flat(at), shift, textcoords="offset points", ha=across, va=up, fontsize=7.5, bbox=around,
                    zorder=0.5)  # fmt: skip
    share = f"one of {segments:,} segments" if segments > 1 else "the whole work, one segment"
    least = Box(gemm.m, gemm.n, gemm.k).touched_whole(products)
    ax.set_aspect("equal", anchor="N")  # right below the title
    ax.set_axis_off()
    small_title(
        ax,
        f"{gemm.label}, S = {capacity:,} values: {share}\n"
        f"$v^2 \\leq a\\,b\\,c$: its {products:,} multiply-adds touch{' ' if look().narrow else chr(10)}"
        f"at least {least:,} values; at most S of them were held",
    )
    return ax


def _flat(point: Point) -> tuple[float, float]:
    """Isometric: i to the lower right, j to the lower left, l up."""
    i, j, l = point
    return 0.866 * (j - i) * -1, l - 0.5 * (i + j)


def _face(box: Point, axis: int, value: float) -> list[Point]:
    """The corners of a box's face across an axis, moved to where that axis has a value."""
    first, second = (x for x in range(3) if x != axis)
    corners = [[0.0, 0.0, 0.0] for _ in range(4)]
    for corner, (along_first, along_second) in zip(corners, ((0, 0), (1, 0), (1, 1), (0, 1)), strict=True):
        corner[axis], corner[first], corner[second] = value, along_first * box[first], along_second * box[second]
    return [(i, j, l) for i, j, l in corners]


def _fill(ax: Axes, corners: list[Point], colour: str, alpha: float, zorder: int, label: str = "") -> None:
    from matplotlib.patches import Polygon

    at = [_flat(corner) for corner in corners]
    ax.add_patch(
        Polygon(at, closed=True, fc=colour, ec="black", lw=0.7, alpha=alpha, zorder=zorder, label=label or None)
    )
    ax.update_datalim(at)
    ax.autoscale_view()


def projections_figure(gemm: Gemm, capacity: int) -> Figure:
    """The figure of ``pebble figure projections``."""
    with page(5.6, 6) as figure:
        ax = plot_projections(gemm, capacity, figure.add_subplot())
        ax.margins(0.06)
        figure.set_figheight(1.3 + figure.get_figwidth() * ax.get_data_ratio())  # the box, its title and legend
        figure.legend(loc="outside lower left", fontsize=7.5, frameon=False)
    return figure


MAX_PRODUCTS = 300_000

Value = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Segment:
    """One segment of a schedule."""

    products: int  #: multiply-adds in it
    #: values touched in it, by how they came to be there: in fast memory at its start, loaded first in it, or (of C)
    #: initialised in it
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
        results.append(
            Segment(since, kinds.count("held"), kinds.count("loaded"), kinds.count("initialised"), loads, stores)
        )
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
                    origin[value] = (
                        "initialised" if new else "held" if value in at_start and value not in fresh else "loaded"
                    )
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
        ([s.initialised for s in cut], GREEN, "initialised (C)"),
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
