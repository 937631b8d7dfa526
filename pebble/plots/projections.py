"""The segment as a box with its three projections: why few values allow only so much work."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from pebble.bounds import Box, Segments
from pebble.families import lower_bound
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, style
from pebble.proof.shares import least_sum
from pebble.workloads import Gemm

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    """Draw the best segment of a GEMM, in the proportions of its sides, and its shadows on three walls."""
    proof = lower_bound(gemm, capacity).proof
    segments = proof.segments if isinstance(proof, Segments) else 1
    products = gemm.multiply_adds // segments
    rows, cols, depth = best_box(gemm, products)
    longest = max(rows, cols, depth)
    i, j, l = (max(0.25, x / longest) for x in (rows, cols, depth))
    far = _WALL
    walls = {
        "A": ([(0, far, 0), (i, far, 0), (i, far, l), (0, far, l)], BLUE),
        "B": ([(far, 0, 0), (far, j, 0), (far, j, l), (far, 0, l)], ORANGE),
        "C": ([(0, 0, far), (i, 0, far), (i, j, far), (0, j, far)], GREEN),
    }
    for corners, colour in walls.values():
        _face(ax, corners, colour, 0.55, 1)
    box: list[list[Point]] = [
        [(0, 0, l), (i, 0, l), (i, j, l), (0, j, l)],
        [(i, 0, 0), (i, j, 0), (i, j, l), (i, 0, l)],
        [(0, j, 0), (i, j, 0), (i, j, l), (0, j, l)],
    ]
    for corners, light in zip(box, (0.92, 0.78, 0.85), strict=True):
        _face(ax, corners, str(light), 1, 3)
    pairs: list[tuple[Point, Point]] = [
        ((0, 0, 0), (0, far, 0)),
        ((i, 0, l), (i, far, l)),
        ((0, 0, l), (0, far, l)),
        ((i, 0, 0), (i, far, 0)),
    ]
    pairs += [((0, 0, 0), (far, 0, 0)), ((0, j, l), (far, j, l)), ((0, 0, l), (far, 0, l)), ((0, j, 0), (far, j, 0))]
    pairs += [((0, 0, 0), (0, 0, far)), ((i, j, 0), (i, j, far)), ((i, 0, 0), (i, 0, far)), ((0, j, 0), (0, j, far))]
    for start, end in pairs:
        xs, ys = zip(_flat(start), _flat(end), strict=True)
        ax.plot(xs, ys, color=GREY, lw=0.5, ls=":", zorder=0)
    counts = (("A", rows * depth, (i / 2, far, l / 2)), ("B", cols * depth, (far, j / 2, l / 2)))
    for name, count, at in (*counts, ("C", rows * cols, (i / 2, j / 2, far))):
        ax.text(*_flat(at), f"{name}\n{count:,.0f}", ha="center", va="center", fontsize=7.5, zorder=5)
    middle = _flat((i / 2, j / 2, l))
    ax.text(*middle, f"{products:,}\nmultiply-adds", ha="center", va="center", fontsize=7, zorder=5)
    for text, at in (
        (f"{rows:,.0f} rows", (i / 2, j, 0)),
        (f"{cols:,.0f} columns", (i, j / 2, 0)),
        (f"depth {depth:,.0f}", (i, 0, l / 2)),
    ):
        x, y = _flat(at)
        shift = {"depth": (5, 0, "left", "center")}.get(text.split()[0], (0, -4, "center", "top"))
        turn = 0.0 if text.startswith("depth") else 30.0 if "columns" in text else -30.0
        if turn:
            shift = (9 if turn > 0 else -9, -3, "center", "top")
        ax.annotate(text, (x, y), shift[:2], textcoords="offset points", ha=shift[2], va=shift[3], fontsize=7,
                    rotation=turn, rotation_mode="anchor" if not turn else "default", zorder=6)  # fmt: skip
    share = f"one of {segments:,} segments" if segments > 1 else "the whole work, one segment"
    least = Box(gemm.m, gemm.n, gemm.k).touched_whole(products)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title(
        f"{gemm.label}, S = {capacity:,} values: {share}\n"
        f"$v^2 \\leq a\\,b\\,c$: its {products:,} multiply-adds touch\n"
        f"at least {least:,} values; at most S of them were held",
        fontsize=8,
        loc="left",
    )
    return ax


def _flat(point: Point) -> tuple[float, float]:
    """Isometric: i to the lower right, j to the lower left, l up."""
    i, j, l = point
    return 0.866 * (j - i) * -1, l - 0.5 * (i + j)


def _face(ax: Axes, corners: list[Point], colour: str, alpha: float, zorder: int) -> None:
    from matplotlib.patches import Polygon

    ax.add_patch(
        Polygon(
            [_flat(c) for c in corners],
            closed=True,
            facecolor=colour,
            edgecolor="black",
            lw=0.7,
            alpha=alpha,
            zorder=zorder,
        )
    )
    ax.update_datalim([_flat(c) for c in corners])
    ax.autoscale_view()


def projections_figure(gemm: Gemm, capacity: int) -> Figure:
    """The figure of ``pebble figure projections``."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(style()):
        figure = Figure(figsize=(5.6, 5.4), layout="constrained")
        ax = plot_projections(gemm, capacity, figure.add_subplot())
        ax.margins(0.06)
    return figure
