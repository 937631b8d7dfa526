"""The ways to apply the line theorems to a workload, every value with its width."""

from __future__ import annotations

from typing import Any

from .chain_lines import Hidden, chain_forms
from .lines import MAX_KERNEL, Form, Lines, read_times
from .statement import ALIKE, LATENT, ClaimedWidths, Workload, chain_of


def line_forms(workload: Workload, widths: ClaimedWidths = ALIKE, stated: Any = None, at: str = "") -> dict[str, Form]:
    """Of one product, or of two in a row; ``told``: what products of a chain count."""
    if workload.apart and not workload.pieces:
        m, k, f, l, cells = chain_of(workload)
        if cells != m * f:  # a mask: lines then differ in length
            return {}
        return chain_forms((m, k, f, l), workload.streams, widths, stated, f"{at}.work_weights")
    return {name: form.at(widths, at) for name, form in _product_lines(workload).items()}


def kernel_lines(workload: Workload, number: int, widths: ClaimedWidths, at: str) -> dict[str, Form]:
    """Of one of two kernels with H in slow memory between them; ``widths`` are those of this one."""
    m, k, f, l, cells = chain_of(workload)
    if cells != m * f:
        return {}
    if number == 1:
        form = Form([Lines(cells, l), Lines(f * l, m), Lines(m * l, f, again=2)], cells * l)
        return {"second kernel": form.at(widths, at)}
    columns = workload.streams * f
    ups = [Lines(cells, k, 0, again=2)] if workload.streams == 2 else []
    form = Form([Lines(m * k, columns), Lines(k * columns, m), Lines(cells, k, again=2), *ups], m * columns * k)
    return {"first kernel": form.at(widths, at)}


def _product_lines(workload: Workload) -> dict[str, Form]:
    """The ways to apply the line theorem to one product, or to latent attention, every value as one."""
    size = workload.size
    if workload.family == "gemm":
        m, n, k = size["m"], size["n"], size["k"]
        # C += A B: each cell is loaded once before its first update
        cells = Lines(m * n, k, 2 if workload.option["accumulate_into"] else 1, again=2)
        return {"product": Form([Lines(m * k, n), Lines(k * n, m), cells], m * n * k)}
    if workload.family == LATENT:
        return {"latent": _latent_lines(workload)}
    if workload.family != "conv2d" or size["kernel"] > MAX_KERNEL:
        return {}
    channels, images = size["out_channels"], size["batch"] * size["in_channels"]
    pixels, taps = workload.operands["Y"].elements // channels, workload.operands["W"].elements // channels
    inputs = [
        Lines(positions * images, pairs * channels, overlap=pairs)
        for pairs, positions in read_times(size["height"], size["width"], size["kernel"], size["stride"])
    ]
    others = Lines(channels * taps, pixels), Lines(channels * pixels, taps, again=2)
    return {"convolution": Form([*inputs, *others], pixels * channels * taps)}


def _latent_lines(workload: Workload) -> Form:
    """Of the keys that all queries see, others loaded besides; a value of both products stands for a line of each."""
    m, k, f, l = workload.latent_sides
    late = workload.size["queries"] - 1 if workload.option["causal"] else 0
    f -= late
    inputs = Lines(m * k, f), Lines(l * f, 2 * m, overlap=2), Lines((k - l) * f, m)
    return Form([*inputs, Lines(m * l, f, again=2), Hidden(m * f, k, l)], m * f * (k + l), late * k)
