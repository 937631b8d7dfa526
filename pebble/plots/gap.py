"""Layers of models against L2 sizes: how far the best schedule known is from the proved bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pebble.families import lower_bound
from pebble.models.machine import load_machine, machine_names
from pebble.plots.look import look
from pebble.plots.save import Axes, Figure, page, small_title
from pebble.schedules.explicit import best_gemm_schedule
from pebble.workloads import named_gemm
from pebble.workloads.widths import FastMemory

LAYERS = (
    "gpt2-xl:qkv",
    "llama-2-7b:qkv",
    "llama-2-7b:gate_up",
    "llama-2-7b:down",
    "llama-3-8b:qkv",
    "llama-3-8b:gate_up",
    "llama-3-70b:gate_up",
    "llama-3-70b:down",
    "llama-3-405b:gate_up",
    "qwen2.5-7b:gate_up",
    "qwen2.5-32b:down",
    "qwen2.5-72b:gate_up",
)


_MET = "everything moves once, which is proved least"  # a dash


@dataclass(frozen=True)
class Gap:
    """Best schedule over proved bound, per layer and L2 size."""

    layers: tuple[str, ...]
    sizes: tuple[str, ...]  #: L2 sizes, with the number of GPUs that have it
    ratio: np.ndarray  #: shape (layers, sizes)
    compulsory: np.ndarray  #: the bound is the compulsory one: everything fits, shape (layers, sizes)
    tokens: int


def gap(layers: Sequence[str] = LAYERS, tokens: int = 8192) -> Gap:
    """Bound and schedule every layer at the L2 size of every GPU, one explicitly managed memory."""
    gpus: dict[int, list[str]] = {}
    for machine in map(load_machine, machine_names()):
        gpus.setdefault(machine.l2_bytes, []).append(machine.sku)
    sizes = sorted(gpus)
    ratio = np.empty((len(layers), len(sizes)))
    compulsory = np.zeros(ratio.shape, dtype=bool)
    for i, layer in enumerate(layers):
        gemm = named_gemm(layer, tokens)
        for j, size in enumerate(sizes):
            capacity = size // gemm.widest_bytes
            bound = lower_bound(gemm, capacity)
            ratio[i, j] = best_gemm_schedule(gemm, FastMemory.of_values(capacity, gemm)).elements / bound.elements
            compulsory[i, j] = bound.elements == gemm.compulsory_elements
    return Gap(tuple(layers), tuple(_size_name(size, gpus[size]) for size in sizes), ratio, compulsory, tokens)


def _size_name(size: int, gpus: list[str]) -> str:
    """The size and who has it: equal sizes have equal gaps, so that a column a GPU would repeat them."""
    chips = list(dict.fromkeys(name.partition("-")[0] for name in sorted(gpus)))
    return f"{size / 2**20:g} MiB: " + ", ".join(chips[:2]) + (", ..." if len(chips) > 2 else "")


def plot_gap(result: Gap, ax: Axes) -> Axes:
    """A table of ratios, darker where the gap is wider; a dash where the bound is met and everything moves once."""
    narrow = look().narrow
    top = max(1.1, float(result.ratio.max()))
    image = ax.imshow(result.ratio, cmap="Blues", vmin=1, vmax=top, aspect="auto")
    for (i, j), value in np.ndenumerate(result.ratio):
        met = result.compulsory[i, j] and value == 1
        text = "–" if met else f"{100 * (value - 1):.0f}" if narrow else f"{value:.2f}"
        colour = "white" if value > 1 + (top - 1) * 0.6 else "black"
        ax.text(j, i, text, ha="center", va="center", fontsize=6.5, color=colour)
    ax.set_yticks(range(len(result.layers)), result.layers, fontsize=6.5)
    ax.set_xticks(
        range(len(result.sizes)), result.sizes, fontsize=6.5, rotation=60, ha="right", rotation_mode="anchor",
    )  # fmt: skip
    ax.tick_params(length=0)
    if not narrow:
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.7, pad=0.01)
        bar.set_label("best schedule / proved bound", fontsize=7)
    small_title(ax, f"{_meaning(result)}\n–: {_MET}")
    return ax


def _meaning(result: Gap) -> str:
    """What the numbers are."""
    text = "best schedule above proved bound, in percent" if look().narrow else "best schedule / proved bound"
    return f"{text}: {result.tokens} tokens, bf16, one explicitly managed memory of the size of the L2"


def gap_figure(result: Gap) -> Figure:
    """The figure of ``pebble figure gap``; without a title a legend says what its numbers are."""
    from matplotlib.lines import Line2D

    with page(7.2, 1.9 + 0.24 * len(result.layers)) as figure:
        plot_gap(result, figure.add_subplot())
        if not look().title:
            marks = {"$12$" if look().narrow else "$1.1$": _meaning(result), "$–$": _MET}
            handles = [Line2D([], [], ls="", marker=mark, ms=2.3 * len(mark), mew=0, color="black") for mark in marks]
            figure.legend(handles, list(marks.values()), loc="outside lower left", fontsize=7, frameon=False)
    return figure
