r"""Any einsum: sums of products over named indices.

- *Two operands* without windows, each index of one operand alone in the output: a matrix product, or equal ones. An
  index in all three arrays is a group by itself; those of the first operand and the output are the rows, of the second
  and the output the columns, those of both operands the depth. Each product is a part, accounted for as one GEMM.
- *All else* (three operands or more, windows, an operand in two places, indices to be summed first): the projections of
  the nest (Theorem 11), with each order of a window's coordinates. Indices that stand in one place of every array are
  groups: the bounds add.
- Where points may share a product in a way that is not looked through, compulsory traffic alone is proved.
"""

from __future__ import annotations

from pebble.bounds import Accounting, LowerBound, Projections
from pebble.cdag.catalogue import DagFamily
from pebble.cdag.einsum import einsum_dag
from pebble.families.family import Family
from pebble.families.gemm import GEMM
from pebble.families.grouped import product_part
from pebble.families.schedules import Explicit, in_turn
from pebble.workloads import Einsum, Gemm
from pebble.workloads.parameters import Parameter
from pebble.workloads.widths import FastMemory

_PRODUCT = "product"


class EinsumFamily(Family[Einsum]):
    """``einsum``."""

    name = "einsum"
    shape = Einsum
    computes = "any einsum with named indices, windows (2y+r) and repeated operands included"
    example = "einsum bhqd,bhkd->bhqk --sizes b=1,h=32,q=4096,k=4096,d=128"
    parameters = (
        Parameter("--subscripts", "text", "as in numpy, or spaced with windows: 'c y+r, o c r -> o y'", required=True),
        Parameter("--sizes", "sizes", "size of each index", required=True),
        Parameter(
            "--operands", "names", "names of the operands; equal ones are one array: A,A", keyword="operand_names"
        ),
    )
    recompute_helps = False

    def accounting(self, workload: Einsum) -> Accounting:
        nest = workload.nest
        game, symbols = _game(workload), dict(workload.sizes)
        gemm = _product(workload)
        if gemm is not None:
            part = product_part(_PRODUCT, gemm, nest.groups)
            return Accounting(workload, parts=(part,), game=game, symbols=symbols)
        return Accounting(
            workload,
            _projections(workload),
            groups=nest.groups,
            computed_once=bool(nest.summed_first),
            game=game,
            symbols=symbols,
        )

    def lower_bound(
        self,
        workload: Einsum,
        capacity: int,
        recompute: bool = False,
        memory: FastMemory | None = None,
        cases: int = 0,
    ) -> LowerBound:
        """In bytes where it is a product; by values alone elsewhere."""
        in_bytes = memory if _product(workload) is not None else None
        return super().lower_bound(workload, capacity, recompute, in_bytes)

    def best_schedule(self, workload: Einsum, memory: FastMemory) -> Explicit | None:
        gemm = _product(workload)
        if gemm is None:
            return None
        return in_turn([(_PRODUCT, GEMM.best_schedule(gemm, memory), workload.nest.groups)], memory)

    def instead(self, workload: Einsum) -> str:
        gemm = _product(workload)
        if gemm is None:
            return super().instead(workload)
        batch = f" --batch {workload.nest.groups}" * (workload.nest.groups > 1)
        return f"this einsum is `gemm -m {gemm.m} -n {gemm.n} -k {gemm.k}{batch}`, which has kernels"

    @property
    def dag(self) -> DagFamily:
        example = "--subscripts ik,kj->ij --sizes i=2,j=2,k=2"
        return DagFamily(self.name, "any einsum", einsum_dag, self.parameters, example)


def _product(workload: Einsum) -> Gemm | None:
    """The product of one group, if it is one."""
    sides = workload.nest.within_a_group().product
    return None if sides is None else Gemm(*sides, workload.dtype, workload.out_dtype)


def _projections(workload: Einsum) -> tuple[Projections, ...]:
    nest = workload.nest
    if not nest.counted:
        return ()
    group = nest.within_a_group()
    inner = group.summed()
    names = list(dict.fromkeys(access.array for access in inner.accesses))
    arrays = tuple(names.index(access.array) for access in inner.accesses)
    # what is summed first enters free
    changed = [inner.values(new) for old, new in zip(group.inputs, inner.inputs, strict=True) if old != new]
    return tuple(
        Projections(order, inner.coordinates(order), arrays, inner.points, nest.symmetry, sum(changed))
        for order in inner.orders()
    )


def _game(workload: Einsum) -> str:
    nest = workload.nest
    text = f"`{workload.subscripts}`: at each point of the box of all indices one value of each operand, multiplied, "
    text += "is added to one cell of the output, in any order"
    if nest.summed_first:
        text += f"; operands are summed over {', '.join(sorted(nest.summed_first))} first"
    if len(nest.inputs) > 2:
        text += "; the nest as written: to contract it by pairs, with intermediates, is another computation"
    return text


EINSUM = EinsumFamily()
