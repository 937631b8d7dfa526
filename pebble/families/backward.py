r"""The backward passes of training.

**gemm-backward**: :math:`dA = dC\,B^T` and :math:`dB = A^T dC`, two products that share :math:`dC`: one box
(:mod:`pebble.bounds.backward`). Schedules: both at once, with a block of :math:`A` and :math:`dA`, of :math:`B` and
:math:`dB` or of :math:`dC` that stays; or one after the other, each by itself, which reads :math:`dC` twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TypeVar

from pebble.bounds import Accounting, backward_uses
from pebble.cdag.backward import gemm_backward_dag
from pebble.cdag.catalogue import DagFamily
from pebble.errors import InfeasibleError
from pebble.families.family import Family
from pebble.families.gemm import GEMM
from pebble.families.schedules import Explicit, in_turn
from pebble.schedules.explicit.backward import backward_schedules
from pebble.workloads import Gemm, GemmBackward
from pebble.workloads.parameters import needed
from pebble.workloads.widths import FastMemory
from pebble.workloads.workload import Workload

W = TypeVar("W", bound=Workload)


class BackwardFamily(Family[W]):
    """What the backward passes share: no kernel is simulated; schedules under explicit control are compared."""

    side_by_side = True

    def instead(self, workload: W) -> str:
        return f"no kernel of {self.name} is simulated; `pebble bound` and `pebble compare` take this one"


class GemmBackwardFamily(BackwardFamily[GemmBackward]):
    """``gemm-backward``."""

    name = "gemm-backward"
    shape = GemmBackward
    computes = "dA := dC B^T and dB := A^T dC, the backward pass of C := A B"
    example = "gemm-backward -m 8192 -n 8192 -k 8192"
    parameters = needed(m="rows of A and dC", n="columns of B and dC", k="columns of A, rows of B")
    recompute_helps = False

    def accounting(self, workload: GemmBackward) -> Accounting:
        return Accounting(
            workload,
            backward_uses(workload.m, workload.n, workload.k),
            game="$dA := dC\\,B^{T}$ and $dB := A^{T} dC$ with $A$ ($m \\times k$), $B$ ($k \\times n$), $dC$ "
            "($m \\times n$), multiply-adds in any order. That of $dA_{it}$ with $dC_{ij}$ is the point $(i, j, t)$ of "
            "a box, that of $dB_{tj}$ with it the point $(i, j, k + t)$",
            symbols=workload.dimensions,
            one_memory=True,
        )

    def schedules(self, workload: GemmBackward, memory: FastMemory) -> Mapping[str, Explicit]:
        w = workload
        of = w.dtype, w.out_dtype
        parts = ("dA", Gemm(w.m, w.k, w.n, *of)), ("dB", Gemm(w.k, w.n, w.m, *of))
        found: dict[str, Explicit] = {}
        with suppress(InfeasibleError):
            separate = in_turn([(name, GEMM.best_schedule(gemm, memory), 1) for name, gemm in parts], memory)
            if separate is not None:
                found["one after the other"] = separate
        kept = {"A": "A and dA stay", "B": "B and dB stay", "C": "dC stays"}
        return found | {kept[plane]: item for plane, item in backward_schedules(workload, memory).items()}

    @property
    def dag(self) -> DagFamily:
        return self.dag_of(gemm_backward_dag, "m x n x k", "-m 2 -n 1 -k 2", "dC B^T and A^T dC")


GEMM_BACKWARD = GemmBackwardFamily()
