r"""A product whose operands have block scales: one box, with a width for each operand (:mod:`pebble.bounds.scaled`).

A scale belongs to the values along :math:`k` that it multiplies; the per-tensor scale of NVFP4 is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from pebble.bounds import Accounting, LowerBound, lower_bound, product_uses
from pebble.bounds.scaled import ScaledWidths, scaled_bound
from pebble.errors import InputError
from pebble.families.family import Family
from pebble.families.schedules import Explicit
from pebble.schedules.explicit.scaled import scaled_schedules
from pebble.workloads import ScaledGemm
from pebble.workloads.parameters import Parameter, needed
from pebble.workloads.scaled import FORMATS, UNITS
from pebble.workloads.widths import FastMemory

_NAMES = ", ".join(FORMATS)


class ScaledFamily(Family[ScaledGemm]):
    """``scaled-gemm``."""

    name = "scaled-gemm"
    shape = ScaledGemm
    computes = "C := A B of operands with block scales along k: mxfp8, mxfp4, nvfp4, or plain types"
    example = "scaled-gemm -m 8192 -n 8192 -k 8192 --dtype-a mxfp8 --dtype-b mxfp4"
    parameters = (
        *needed(m="rows of A and C", n="columns of B and C", k="columns of A, rows of B"),
        Parameter("--dtype-a", "choice", f"format of A: {_NAMES} (dtype)", choices=(*FORMATS,)),
        Parameter("--dtype-b", "choice", f"format of B: {_NAMES} (dtype)", choices=(*FORMATS,)),
    )
    recompute_helps = False
    side_by_side = True
    certified = False

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
        if memory is None:
            raise InputError(
                "scaled-gemm: got a number of values, expected bytes, such as 40MiB: its values differ in width."
            )
        values = lower_bound(self.accounting(workload).quick, capacity, recompute)
        a, b = (of.units for of in workload.formats)
        partial, written = (UNITS * width for width in (memory.widths.partial, memory.widths.written))
        widths = ScaledWidths(a, b, partial, written, UNITS)
        return scaled_bound(
            (workload.m, workload.n, workload.k), widths, memory.bytes, workload.compulsory_bytes, values
        )

    def schedules(self, workload: ScaledGemm, memory: FastMemory) -> Mapping[str, Explicit]:
        return scaled_schedules(workload, memory)

    def instead(self, workload: ScaledGemm) -> str:
        return f"no kernel of {self.name} is simulated; `pebble bound` and `pebble compare` take this one"


SCALED = ScaledFamily()
