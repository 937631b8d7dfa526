"""A DAG drawn in layers: inputs below, each value above its operands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from pebble.cdag.building import Dag
from pebble.cdag.validate import validate_dag
from pebble.errors import InputError
from pebble.plots.look import POINTS, look
from pebble.plots.save import BLUE, GREEN, GREY, ORANGE, Axes, Figure, page, small_title

MAX_DRAWN = 2000
_MOST_LABELS = 70
_SWEEPS = 8
_MOST_ARROWS = 600
_POINTS, _LETTER = 5, 0.62  # of names, where no width is asked for; a letter's width in its height
_SHARE = 0.9  # of the width of a page that layers have
# role -> colour, marker, so that grey copies can be read too
_ROLES = {"input": (BLUE, "o"), "value": (ORANGE, "s"), "cell": (GREEN, "D"), "task": (GREY, ".")}


def plot_dag(dag: Dag, ax: Axes | None = None) -> Axes:
    """Draw a DAG in layers; outputs have a black rim.

    Parameters
    ----------
    dag : networkx.DiGraph
        Up to 2,000 nodes; names of up to 70 values are written.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default the current axes.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        No DAG for the game, or too large to draw.
    """
    validate_dag(dag)
    if len(dag) > MAX_DRAWN:
        raise InputError(f"figure: got a DAG of {len(dag):,} nodes, expected at most {MAX_DRAWN:,}; use larger tiles.")
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.gca()
    at = layered_positions(dag)
    size = max(8.0, min(60.0, 4000 / len(dag)))
    _draw_edges(ax, [(at[u], at[v]) for u, v in dag.edges], size)
    cells = {data["accumulator"] for _, data in dag.nodes(data=True) if "accumulator" in data}
    groups: dict[tuple[str, bool], list[Hashable]] = {}
    for node, data in dag.nodes(data=True):
        role = "task" if "accumulator" in data else "cell" if node in cells else "value" if dag.pred[node] else "input"
        output = role != "task" and bool(data.get("output", not dag.succ[node]))
        groups.setdefault((role, output), []).append(node)
    for (role, output), nodes in sorted(groups.items()):
        colour, marker = _ROLES[role]
        ax.scatter(
            [at[n][0] for n in nodes],
            [at[n][1] for n in nodes],
            s=size,
            c=colour,
            marker=marker,
            edgecolors="black" if output else "none",
            linewidths=1.2,
            label=f"{role}, output" if output else role,
            zorder=2,
        )
    _write_names(ax, dag, at, size)
    ax.set_axis_off()
    ax.margins(0.05)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=len(groups), frameon=False)
    return ax


def _write_names(ax: Axes, dag: Dag, at: dict[Hashable, tuple[float, float]], size: float) -> None:
    """The names of up to 70 values, where no edge runs: below inputs, above outputs, else at the right of the node.

    In a layer where they would collide there are none; upright, below and above, where that makes room.
    """
    named = [node for node, data in dag.nodes(data=True) if "accumulator" not in data]
    if len(named) > _MOST_LABELS:
        return
    wide, points = look().width_inches, (look().points or POINTS) if look().width_inches else _POINTS
    space = 72 * _SHARE * (wide or float(ax.figure.bbox.width / ax.figure.dpi))
    layers = Counter(at[node][1] for node in dag)
    away = 0.5 * size**0.5 + 1.5
    for node in named:
        text, each = str(node), space / layers[at[node][1]]
        across, line = _LETTER * points * len(text) + 3, 1.25 * points
        free = (0, -away) if not dag.pred[node] else (0, away) if not dag.succ[node] else (away, 0)
        upright = bool(free[1]) and each < across
        if each < (line if upright else across if free[1] else across + away):
            continue
        ax.annotate(
            text, at[node], free, textcoords="offset points", fontsize=_POINTS, ha="left" if free[0] else "center",
            va="center" if free[0] else "top" if free[1] < 0 else "bottom", rotation=90 if upright else 0,
        )  # fmt: skip


def _draw_edges(ax: Axes, edges: list[tuple[tuple[float, float], tuple[float, float]]], size: float) -> None:
    """Arrows from operand to result where they can be told apart, else plain lines."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import FancyArrowPatch

    darker = "0.35" if len(edges) <= _MOST_ARROWS else "0.55"
    if len(edges) > _MOST_ARROWS:
        ax.add_collection(LineCollection(edges, colors=darker, linewidths=0.3, zorder=1))
        return
    for start, end in edges:
        ax.add_patch(
            FancyArrowPatch(
                start, end, arrowstyle="-|>,head_width=0.13,head_length=0.28", mutation_scale=8, color=darker, lw=0.5,
                shrinkA=0, shrinkB=0.5 * size**0.5 + 0.5, zorder=1,
            )
        )  # fmt: skip


def dag_figure(dag: Dag, title: str = "") -> Figure:
    """A figure of its own around :func:`plot_dag`, sized to the DAG."""
    layers = _layers(dag)
    widest = max(layers.count(layer) for layer in set(layers))
    size = min(16.0, 3 + 0.35 * widest), min(12.0, 1.3 + 0.75 * (max(layers) + 1))
    with page(*size) as figure:
        ax = plot_dag(dag, figure.add_subplot())
        small_title(ax, title, pad=34 if look().narrow else None)
    return figure


def layered_positions(dag: Dag) -> dict[Hashable, tuple[float, float]]:
    """x, y of each node: y is the longest path from an input, x orders a layer to shorten the edges.

    Layers are swept up and down, each node moving to the mean of its neighbours (the barycentre heuristic of
    Sugiyama, Tagawa and Toda 1981); ties keep the order before, so the drawing is the same every time.
    """
    layer_of = dict(zip(dag, _layers(dag), strict=True))
    layers: list[list[Hashable]] = [[] for _ in range(max(layer_of.values()) + 1)]
    for node in dag:
        layers[layer_of[node]].append(node)
    x: dict[Hashable, float] = {}
    for row in layers:
        _spread(row, x)
    for sweep in range(_SWEEPS):
        neighbours = dag.pred if sweep % 2 == 0 else dag.succ
        for row in layers if sweep % 2 == 0 else reversed(layers):
            wanted = {n: sum(x[p] for p in neighbours[n]) / len(neighbours[n]) if neighbours[n] else x[n] for n in row}
            row.sort(key=wanted.__getitem__)
            _spread(row, x)
    return {node: (x[node], float(layer_of[node])) for node in dag}


def _spread(row: list[Hashable], x: dict[Hashable, float]) -> None:
    for i, node in enumerate(row):
        x[node] = (i + 0.5) / len(row)


def _layers(dag: Dag) -> list[int]:
    """Longest path from an input to each node, in the order of the nodes; an input sits just below its first use."""
    import networkx as nx

    layer: dict[Hashable, int] = {}
    order = list(nx.topological_sort(dag))
    for node in order:
        layer[node] = 1 + max((layer[p] for p in dag.pred[node]), default=-1)
    for node in order:
        if not dag.pred[node] and dag.succ[node]:
            layer[node] = min(layer[s] for s in dag.succ[node]) - 1
    return [layer[node] for node in dag]
