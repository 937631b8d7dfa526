"""Layers of models against GPUs: how far the best schedule known is from the proved bound at the size of the L2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pebble.families import lower_bound
from pebble.models.machine import load_machine, machine_names
from pebble.plots.save import Axes, Figure, page, small_title
from pebble.schedules.explicit import best_gemm_schedule
from pebble.workloads import named_gemm

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


@dataclass(frozen=True)
class Gap:
    """Best schedule over proved bound, per layer and GPU."""

    layers: tuple[str, ...]
    gpus: tuple[str, ...]
    ratio: np.ndarray  #: shape (layers, gpus)
    compulsory: np.ndarray  #: the bound is the compulsory one: everything fits, shape (layers, gpus)
    tokens: int


def gap(layers: Sequence[str] = LAYERS, tokens: int = 8192) -> Gap:
    """Bound and schedule every layer at the L2 size of every GPU, one explicitly managed memory."""
    machines = sorted((load_machine(name) for name in machine_names()), key=lambda m: (m.l2_bytes, m.sku))
    ratio = np.empty((len(layers), len(machines)))
    compulsory = np.zeros(ratio.shape, dtype=bool)
    for i, layer in enumerate(layers):
        gemm = named_gemm(layer, tokens)
        for j, machine in enumerate(machines):
            capacity = machine.l2_bytes // gemm.widest_bytes
            bound = lower_bound(gemm, capacity)
            ratio[i, j] = best_gemm_schedule(gemm, capacity).elements / bound.elements
            compulsory[i, j] = bound.elements == gemm.compulsory_elements
    return Gap(
        tuple(layers), tuple(f"{m.sku}\n{m.l2_bytes / 2**20:g} MiB" for m in machines), ratio, compulsory, tokens
    )


def plot_gap(found: Gap, ax: Axes) -> Axes:
    """A table of ratios, darker where the gap is wider; a dot where everything moves once."""
    top = max(1.4, float(found.ratio.max()))
    image = ax.imshow(found.ratio, cmap="cividis_r", vmin=1, vmax=top, aspect="auto")
    for i in range(len(found.layers)):
        for j in range(len(found.gpus)):
            value = found.ratio[i, j]
            text = f"{value:.2f}" + ("•" if found.compulsory[i, j] else "")
            ax.text(
                j,
                i,
                text,
                ha="center",
                va="center",
                fontsize=6,
                color="white" if value > 1 + (top - 1) * 0.55 else "black",
            )
    ax.set_yticks(range(len(found.layers)), found.layers, fontsize=6.5)
    ax.set_xticks(range(len(found.gpus)), found.gpus, fontsize=6, rotation=60, ha="right", rotation_mode="anchor")
    ax.tick_params(length=0)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.7, pad=0.01)
    bar.set_label("best schedule / proved bound", fontsize=7)
    small_title(ax, f"{found.tokens} tokens, bf16, one explicitly managed memory of the size of the L2 (• compulsory)")
    return ax


def gap_figure(found: Gap) -> Figure:
    """The figure of ``pebble figure gap``."""
    with page(7.2, 1.9 + 0.24 * len(found.layers)) as figure:
        plot_gap(found, figure.add_subplot())
    return figure
