r"""Products whose operands have block scales, each with a width for each operand (:mod:`pebble.bounds.scaled`).

A scale belongs to the values along the sum that it multiplies; the per-tensor scale of NVFP4 is left out.

**scaled-gemm**: one box. **scaled-ffn**: two products in a row, as those of ``ffn``, with formats of :math:`X`, of the
weights and of the hidden layer. Partial sums of the hidden layer are as wide as accumulators, at least as wide as what
they end as, and a byte at least.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from pebble.bounds import Accounting, Chain, LowerBound, lower_bound, product_uses
from pebble.bounds.chain import ChainSegments
from pebble.bounds.chain_lines import ChainLines
from pebble.bounds.scaled import ScaledWidths, scaled_bound, scaled_network_uses, scaled_product_uses
from pebble.errors import InfeasibleError, InputError
from pebble.families.family import Family
from pebble.families.schedules import Explicit, in_turn
from pebble.schedules.explicit.backward import Elementwise
from pebble.schedules.explicit.scaled import scaled_panels, scaled_schedules
from pebble.workloads import ScaledFfn, ScaledGemm
from pebble.workloads.parameters import Parameter, flag, needed, optional
from pebble.workloads.scaled import FORMATS, UNITS, Formatted
from pebble.workloads.widths import FastMemory, Widths
from pebble.workloads.workload import DTYPE_BYTES

F = TypeVar("F", bound=Formatted)


def _format(option: str, of: str) -> Parameter:
    return Parameter(option, "choice", f"format of {of}: {', '.join(FORMATS)} (dtype)", choices=(*FORMATS,))


class FormattedFamily(Family[F]):
    """What these share: no kernel is simulated, and values are counted in bytes only."""

    recompute_helps = False
    side_by_side = True

    def instead(self, workload: F) -> str:
        return f"no kernel of {self.name} is simulated; `pebble bound` and `pebble compare` take this one"

    def of_values(self, workload: F, capacity: int, recompute: bool, memory: FastMemory | None) -> LowerBound:
        """What counting values proves, which is nothing in bytes.

        Raises
        ------
        InputError
            A memory of values.
        """
        if memory is None:
            raise InputError(
                f"{self.name}: got a number of values, expected bytes, such as 40MiB: its values differ in width."
            )
        return lower_bound(self.accounting(workload).quick, capacity, recompute)


class ScaledFamily(FormattedFamily[ScaledGemm]):
    """``scaled-gemm``."""

    name = "scaled-gemm"
    shape = ScaledGemm
    computes = "C := A B of operands with block scales along k: mxfp8, mxfp4, nvfp4, fp8 by 128, or plain types"
    example = "scaled-gemm -m 8192 -n 8192 -k 8192 --dtype-a mxfp8 --dtype-b mxfp4"
    parameters = (
        *needed(m="rows of A and C", n="columns of B and C", k="columns of A, rows of B"),
        _format("--dtype-a", "A"),
        _format("--dtype-b", "B"),
    )

    def accounting(self, workload: ScaledGemm) -> Accounting:
        sides = workload.m, workload.n, workload.k
        return Accounting(workload, product_uses(*sides), symbols=workload.dimensions, one_memory=True)

    def lower_bound(
        self,
        workload: ScaledGemm,
        capacity: int,
        recompute: bool = False,
        memory: FastMemory | None = None,
        cases: int = 0,
    ) -> LowerBound:
        values = self.of_values(workload, capacity, recompute, memory)
        assert memory is not None
        a, b = (of.units for of in workload.formats)
        partial, written = memory.widths.partial, memory.widths.written
        widths = ScaledWidths({"A": a, "B": b}, UNITS * partial, UNITS * written, UNITS)
        uses = scaled_product_uses(workload.m, workload.n, workload.k, widths)
        own = Widths(1, partial, partial, written)
        return scaled_bound(uses, widths, own, memory.bytes, workload.compulsory_bytes, values)

    def schedules(self, workload: ScaledGemm, memory: FastMemory) -> Mapping[str, Explicit]:
        return scaled_schedules(workload, memory)


class ScaledFfnFamily(FormattedFamily[ScaledFfn]):
    """``scaled-ffn``."""

    name = "scaled-ffn"
    shape = ScaledFfn
    recompute_helps = True
    computes = "Y := act(X W1) W2 of operands with block scales, and a hidden layer with one; --gated"
    example = "scaled-ffn --tokens 8192 --d-model 4096 --hidden 11008 --dtype-x mxfp8 --dtype-w mxfp4"
    parameters = (
        *needed(tokens="rows of X and Y", d_model="columns of X", hidden="columns of the hidden layer"),
        *optional(d_out="columns of Y (d-model)"),
        flag("--gated", "gate and up products (SwiGLU)"),
        _format("--dtype-x", "X"),
        _format("--dtype-w", "the weights"),
        _format("--dtype-h", "the hidden layer"),
    )

    def accounting(self, workload: ScaledFfn) -> Accounting:
        chain = _chain(workload)
        uses = ChainSegments(chain), ChainLines(chain)
        return Accounting(workload, uses, symbols=workload.dimensions, one_memory=True, computed_once=True)

    def lower_bound(
        self,
        workload: ScaledFfn,
        capacity: int,
        recompute: bool = False,
        memory: FastMemory | None = None,
        cases: int = 0,
    ) -> LowerBound:
        values = self.of_values(workload, capacity, recompute, memory)
        assert memory is not None
        x, weights, h = workload.formats
        partial, written = memory.widths.partial, memory.widths.written
        # what is no wider than inputs may be no more than what it ends as
        hidden = memory.widths.hidden if memory.widths.hidden > workload.in_bytes else 1
        complete = UNITS * h.bits // 8
        cells = complete, max(complete, UNITS * hidden)
        inputs = {"X": x.units, "a weight": weights.units}
        widths = ScaledWidths(inputs, UNITS * partial, UNITS * written, UNITS, cells)
        uses = [] if recompute else scaled_network_uses(_chain(workload), widths)
        own = Widths(1, hidden, partial, written)
        return scaled_bound(uses, widths, own, memory.bytes, workload.compulsory_bytes, values)

    def schedules(self, workload: ScaledFfn, memory: FastMemory) -> Mapping[str, Explicit]:
        found: dict[str, Explicit] = {**scaled_panels(workload, memory)}
        with suppress(InfeasibleError):
            if apart := _layer_by_layer(workload, memory):
                found["layer by layer"] = apart
        return found


def _layer_by_layer(w: ScaledFfn, memory: FastMemory) -> Explicit | None:
    """One product after the other, H in slow memory: in its format where that is a plain type, or as bf16."""
    stored = w.dtype_h if w.dtype_h in DTYPE_BYTES else "bf16"
    width, cells = DTYPE_BYTES[stored], w.tokens * w.hidden
    sums = max(width, memory.widths.hidden)
    inside = replace(memory, widths=Widths(width, sums, sums, width))
    first = ScaledGemm(w.tokens, w.up_products * w.hidden, w.d_model, w.dtype_x, w.dtype_w, out_dtype=stored)
    last = ScaledGemm(w.tokens, w.d_out, w.hidden, stored, w.dtype_w, out_dtype=w.out_dtype)
    made = Elementwise(inside, {"G": cells, "U": cells}, {"H": cells}, "value by value")
    parts: list[tuple[str, Explicit | None, int]] = [
        ("gate and up" if w.gated else "first product", SCALED.best_schedule(first, inside), 1),
        *([("H", made, 1)] if w.gated else []),
        ("second product", SCALED.best_schedule(last, memory), 1),
    ]
    return in_turn(parts, memory)


def _chain(w: ScaledFfn) -> Chain:
    return Chain(w.tokens, w.d_model, w.hidden, w.d_out, w.tokens * w.hidden, w.gated)


SCALED = ScaledFamily()
SCALED_FFN = ScaledFfnFamily()
