"""The theorems that bound a product, or two in a row, by themselves: in values, or in bytes where values have widths.

The classic game is that of all widths 1. A proof of segments names the bytes that a cell counts, or it is about values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

from .cases import by_cases
from .gated import Counted, prove_gated, read_counted
from .lagrangian_lines import Units, by_multipliers
from .line_forms import kernel_lines, line_forms
from .lines import by_lines
from .operands import STATISTIC_WIDTH, STATISTICS
from .passes import of_attention_backward, prove_passes, row_and_column
from .projections import by_projections
from .reading import RefusedError, choice, fields, tagged
from .segments import by_segments, by_use, cut_by_distinct, cut_by_second, kernel_part, parts_of, use_of
from .statement import ALIKE, ATTENTION_BACKWARD, FFN_BACKWARD, ClaimedWidths, Workload, chain_of
from .visits import by_visits

REDONE = ("recompute, cut by second products", "recompute, cut by distinct products")
HANDED_OVER = ("compulsory", "segments", "lines")  # of a product that uses what another computes, or computes for it
ONE_KERNEL = (*HANDED_OVER, "visits")  # of a product
CHAIN = ("passes", "priced lines", "cases of shares")
IN_BYTES = (*ONE_KERNEL, *CHAIN, "tied segments")


@dataclass(frozen=True)
class KernelClaim:
    """What is bounded by itself: a product or a chain, or one of two kernels with H in slow memory between them."""

    workload: Workload
    widths: ClaimedWidths  #: what values take, in this kernel
    capacity: int
    kernel: int | None = None  #: which of two, or all in one

    @property
    def least(self) -> int:
        """What every schedule moves of one of the equal groups."""
        workload, widths = self.workload, self.widths
        if self.kernel is None:
            operands = workload.operands.values()
            return sum(o.elements * o.moves * (1 if widths == ALIKE else o.width) for o in operands) // workload.groups
        m, k, f, l, cells = chain_of(workload)
        if self.kernel == 0:
            return widths.read * (m * k + workload.streams * k * f + cells)
        return widths.read * (cells + f * l) + widths.written * m * l

    def moves(self, proof: Any, at: str, among: tuple[str, ...]) -> int:
        """What one of them moves at least, as a proof says by one of these theorems."""
        return THEOREMS[tagged(proof, at, "theorem", among)](self, proof, at)


def _compulsory(problem: KernelClaim, proof: Any, at: str) -> int:
    """That every operand moves needs no further word."""
    fields(proof, at, ("theorem",))
    return problem.least


def _segments(problem: KernelClaim, proof: Any, at: str) -> int:
    workload, number = problem.workload, problem.kernel
    if "output_cell_bytes" in proof:
        return by_use(use_of(workload, number, problem.widths, proof, at), problem.capacity, proof, at)
    if problem.widths != ALIKE:
        raise RefusedError(at, "'output_cell_bytes' is missing")
    if number is not None:
        return by_segments(kernel_part(workload, number), problem.capacity, proof, at)
    forms = parts_of(workload)
    part = forms[choice(proof.get("form"), f"{at}.form", tuple(forms))]
    return by_segments(part, problem.capacity, proof, at, ("form",))


def _lines(problem: KernelClaim, proof: Any, at: str) -> int:
    workload, widths, spec = problem.workload, problem.widths, proof.get("work_weights")
    if problem.kernel is None:
        forms = line_forms(workload, widths, spec, at)
    else:
        forms = kernel_lines(workload, problem.kernel, widths, at)
    if not forms:
        what = "a mask" if workload.option.get("causal") else f"such a {workload.family}"
        raise RefusedError(f"{at}.theorem", f"this theorem is not about {what}")
    chain = ("work_weights",) if workload.separate_operands and problem.kernel is None else ()
    return by_lines(forms, widths, problem.capacity, proof, at, chain)


def _passes(problem: KernelClaim, proof: Any, at: str) -> int:
    fields(proof, at, ("theorem", "cuttings"))
    workload, unit, (w, _, p, _) = problem.workload, problem.widths.unit, problem.widths.in_units
    if workload.family == ATTENTION_BACKWARD:
        wide = 1 if problem.widths == ALIKE else STATISTIC_WIDTH // unit
        rows, columns = of_attention_backward(workload, w, p, len(STATISTICS) * wide)
    else:
        rows, columns = row_and_column(workload, *_in_one_kernel(problem, at)[:4])
        rows = rows._replace(values=(w * rows.values[0], p * rows.values[1]))
        columns = columns._replace(values=(w * columns.values[0], 0))
    again = prove_passes(rows, columns, problem.capacity // unit, proof["cuttings"], f"{at}.cuttings", w)
    return problem.least + unit * again


def _visits(problem: KernelClaim, proof: Any, at: str) -> int:
    if problem.kernel is not None:
        raise RefusedError(f"{at}.theorem", "this theorem is not about a kernel of two")
    return by_visits(problem.workload, problem.widths, problem.capacity, proof, at)


def _multipliers(problem: KernelClaim, proof: Any, at: str) -> int:
    unit, units = problem.widths.unit, Units(*problem.widths.in_units)
    chain = _in_one_kernel(problem, at)
    return unit * by_multipliers(chain, problem.workload.streams, units, problem.capacity // unit, proof, at)


def _cases(problem: KernelClaim, proof: Any, at: str) -> int:
    unit, units = problem.widths.unit, Units(*problem.widths.in_units)
    chain = _in_one_kernel(problem, at)
    return unit * by_cases(chain, problem.workload.streams, units, problem.capacity // unit, proof, at)


def _in_one_kernel(problem: KernelClaim, at: str) -> tuple[int, int, int, int, int]:
    if not problem.workload.linked or problem.kernel is not None:
        raise RefusedError(f"{at}.theorem", "this theorem is about two products in one kernel")
    return chain_of(problem.workload)


def _gated(problem: KernelClaim, proof: Any, at: str) -> int:
    workload, widths, counted = problem.workload, problem.widths, Counted()
    more: tuple[str, ...] = ()
    if problem.kernel is not None or workload.streams != 2 or not workload.separate_operands:
        raise RefusedError(f"{at}.theorem", "this theorem is about gate, up and down in one kernel")
    if widths != ALIKE:
        counted, more = read_counted(widths, proof, at), ("output_cell_bytes", "work_weights")
    total = prove_gated(*chain_of(workload)[:4], counted, proof, at, more)
    h: int = proof["segments"]
    return widths.unit * ceil(total - (h - 1) * (problem.capacity // widths.unit))


def _projections(problem: KernelClaim, proof: Any, at: str) -> int:
    nest = problem.workload.nest
    if nest is None or problem.widths != ALIKE:
        raise RefusedError(f"{at}.theorem", "this theorem is about an einsum, in values")
    return by_projections(nest, problem.capacity, proof, at)


def _redone(problem: KernelClaim, proof: Any, at: str) -> int:
    chain = chain_of(problem.workload)
    # the up weights, which the gate's chain does not have
    more = chain[1] * chain[2] if problem.workload.streams == 2 else 0
    rule = cut_by_second if proof["theorem"] == REDONE[0] else cut_by_distinct
    return rule(*chain, problem.capacity, proof, at) + more


THEOREMS: dict[str, Callable[[KernelClaim, Any, str], int]] = {
    "compulsory": _compulsory,
    "segments": _segments,
    "lines": _lines,
    "passes": _passes,
    "visits": _visits,
    "priced lines": _multipliers,
    "cases of shares": _cases,
    "tied segments": _gated,
    "projections": _projections,
    **dict.fromkeys(REDONE, _redone),
}


def fused_theorems(workload: Workload, redo: bool) -> tuple[str, ...]:
    """Those about one kernel in values, with or without recomputation."""
    if workload.nest is not None:
        return ("compulsory", *(() if redo and workload.nest.gone else ("projections",)))
    if workload.family in (FFN_BACKWARD, ATTENTION_BACKWARD):
        passes = ("passes",) if workload.family == ATTENTION_BACKWARD else ()
        return ("compulsory", *(() if redo else ("segments", "lines", *passes)))
    chain = (*CHAIN, *REDONE) if workload.separate_operands else ()
    return (*ONE_KERNEL, *chain, *(("tied segments",) if workload.streams == 2 and not redo else ()))
