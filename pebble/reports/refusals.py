"""What is given and would change nothing, or does not belong together: one sentence each, before any work is done."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pebble.errors import InputError, check_flag
from pebble.families import family_of
from pebble.traces import Trace
from pebble.workloads.workload import Workload

LESS_THAN_BOUND = (
    "the trace moves less than the bound, so it is no trace of that workload and kernel: it leaves out operands or "
    "what it need not read, or the kernel that it is of holds more"
)


def check_residual(workload: Workload, residual: object) -> None:
    """Refuse a residual input where there is none to read again.

    Raises
    ------
    InputError
        Not True or False, or a workload that is no FFN.
    """
    if check_flag("residual", residual) and not family_of(workload).has_residual:
        raise InputError(
            f"--residual: got it with {workload.label}, expected an ffn, whose input is read again to be added to the "
            "output; leave it out."
        )


def check_seed(options: Mapping[str, object], kind: str) -> None:
    """Refuse a seed of which nothing is drawn.

    Raises
    ------
    InputError
        An execution of that kind has neither skew nor a pace of its own.
    """
    if options.get("seed") is not None and kind not in ("dynamic", "free"):
        raise InputError(
            f"--seed: got it with --execution {kind}, expected dynamic-S or free, which draw; leave it out."
        )


def check_trace_of(workload: Workload, trace: Trace, path: str) -> None:
    """Refuse a trace of another workload, by what its file says of the operands that both name.

    Matrices that share a name are numbered in a file: A, A.1, A.2.

    Raises
    ------
    InputError
        An operand of another size or width.
    """
    for operand in workload.operands:
        name = re.compile(re.escape(operand.name) + r"(\.\d+)?")
        there = [o for o in trace.operands if name.fullmatch(trace.operand_names[o.operand])]
        values = sum(o.copies * o.rows * o.cols for o in there)
        widths = {o.element_bytes for o in there}
        if there and (values, widths) != (operand.elements, {operand.element_bytes}):
            sizes = " and ".join(map(str, sorted(widths)))
            raise InputError(
                f"--trace: got {path}, in which {operand.name} has {values:,} values of {sizes} bytes, expected "
                f"{operand.elements:,} of {operand.element_bytes} as in {workload.label}; name the workload of the "
                "trace, or none."
            )
