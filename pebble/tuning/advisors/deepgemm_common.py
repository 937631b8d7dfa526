"""What both of DeepGEMM's rules need to know of a problem, and for what they are written."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.errors import InputError
from pebble.families.gemm import GEMM
from pebble.families.grouped import GROUPED
from pebble.models.machine import Machine
from pebble.schedules.tile import round_up
from pebble.units import ceil_div
from pebble.workloads.workload import Workload

SHARED_BYTES = 232_448  # of a block on compute capability 9.0
_ALIGNMENT = 128  # rows of an expert are padded to


@dataclass(frozen=True)
class DeepGemmProblem:
    """A product, or the experts of a mixture laid out one after the other ("contiguous").

    Attributes
    ----------
    m, n, k : int
        ``m``: all rows, those of each expert rounded up to 128.
    sms : int
    grouped, accumulate : bool
    dtype, out_dtype : str
    """

    m: int
    n: int
    k: int
    sms: int
    grouped: bool
    accumulate: bool
    dtype: str
    out_dtype: str

    def blocks(self, bm: int, bn: int) -> int:
        """Tiles of C."""
        return ceil_div(self.m, bm) * ceil_div(self.n, bn)


def problem_of(name: str, workload: Workload, machine: Machine, sms: int, dtypes: tuple[str, ...]) -> DeepGemmProblem:
    """The problem, if the rule is for it.

    Raises
    ------
    InputError
        Not a product, another type, or another chip.
    """

    def refuse(got: str, expected: str, fix: str) -> InputError:
        return InputError(f"--advisor {name}: got {got}, expected {expected}; {fix}, or --advisor ours.")

    gemm, grouped = GEMM.own(workload), GROUPED.own(workload)
    product = gemm or grouped
    if product is None:
        raise refuse(workload.label, "gemm or grouped, one product at a time", "name one, such as llama-3-8b:gate_up")
    if workload.dtype not in dtypes:
        raise refuse(workload.dtype, " or ".join(dtypes), f"use --dtype {dtypes[0]}")
    if workload.dtype == "fp8" and workload.out_dtype != "bf16":
        raise refuse(f"fp8 to {workload.out_dtype}", "fp8 to bf16, with scales 1x128 and 128x128", "leave --out-dtype")
    if workload.out_dtype not in ("bf16", "fp32"):
        raise refuse(f"--out-dtype {workload.out_dtype}", "bf16 or fp32", "use --out-dtype bf16")
    if machine.shared_bytes_per_block != SHARED_BYTES or machine.compute_capability != "9.0":
        raise refuse(machine.name, "a GPU of compute capability 9.0", "use --gpu h100-sxm5-80gb")
    rows = gemm.m if gemm else sum(round_up(each, _ALIGNMENT) for each in grouped.rows) if grouped else 0
    return DeepGemmProblem(
        rows, product.n, product.k, sms, grouped is not None, product.accumulate, product.dtype, product.out_dtype
    )


def does_not_fit(name: str, problem: DeepGemmProblem) -> InputError:
    """The scales of B are kept for all of k, and so long a k leaves no room for stages."""
    return InputError(
        f"--advisor {name}: got k = {problem.k}, expected one whose scales leave room for stages in {SHARED_BYTES:,} "
        "bytes of shared memory; cut k in parts, or use --advisor ours."
    )


def warpgroups(bm: int) -> int:
    """Threads that multiply: one warpgroup up to 64 rows, two above."""
    return 128 if bm <= 64 else 256
