"""The segment as a box with its three projections: why few values allow only so much work."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pebble.bounds import Box, LagrangianBound, LineBound, Segments
from pebble.bounds.shares import least_sum
from pebble.families import lower_bound
from pebble.plots.look import look
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, Axes, Figure, page, small_title
from pebble.workloads import Gemm

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
