r"""Lower bounds on traffic into SMs, for buffers of their own, pooled or connected: GEMM, FFN and attention.

:math:`P` SMs hold :math:`S` values each; :math:`L` loads and :math:`W` stores cross the boundary to slow memory (L2),
:math:`R` values are copied between SMs, a copy costs :math:`\omega` times its hops. :math:`B_{sum}` is Theorem 5,
:math:`B_{pool}` the bound of one memory of :math:`P S`.

- **sm-local**: :math:`R = 0`, so :math:`L + W \ge B_{sum}` and :math:`L + W \ge B_{pool}`.
- **pooled**: one memory of :math:`P S`, the bounds of one memory: :math:`B_{pool}`.
- **connected**: without copies and second pebbles, a game of :math:`P` memories is a legal game of one memory of
  :math:`P S` with the same loads and stores at most: :math:`L + W \ge B_{pool}`. And :math:`L + W + R \ge B_{sum}`.
  With :math:`T = L + W + \omega \cdot \text{hops}` and hops :math:`\ge R`: :math:`T \ge (1 - \omega) B_{pool} + \omega
  B_{sum}`. Groups of SMs taken as one memory each give more such inequalities; the best sum of them is a linear program
  (`pebble.bounds.groupings`). For :math:`\omega \ge 1`: :math:`T \ge L + W + R \ge B_{sum}`.
- **clusters** of :math:`c` SMs: no copy leaves a cluster, so :math:`B_{pool}` becomes the sm-local bound for
  :math:`\lceil P / c \rceil` memories of :math:`c S`.
- **two partitions** (1 hop inside, 2 across), with :math:`B_{half}` for two memories of :math:`P S / 2`: the program
  says :math:`T \ge (1 - 2 \omega) B_{pool} + \omega B_{half} + \omega B_{sum}` for :math:`\omega \le 1/2`, and above
  that :math:`T \ge (1 - \omega) B_{half} + \omega B_{sum}`.
- **ring**: arcs of :math:`g` SMs as one memory each, :math:`T \ge B_g` for :math:`g` about :math:`1 / \omega`.
- **mesh**: hops are at least 1, so the line for all-to-all holds.
- **multicast**: one read of slow memory may feed up to :math:`c` SMs of a cluster. The values that enter SMs are still
  bounded by :math:`B_{sum}`; the reads are fewer. With :math:`M` reads: :math:`M + W \ge` the sm-local bound for
  :math:`\lceil P / c \rceil` memories of :math:`c S` (a cluster as one memory takes a multicast as one load), and
  :math:`c M + W \ge B_{sum}` with :math:`W \ge` the outputs, so :math:`M + W \ge (B_{sum} + (c - 1)\, \text{outputs}) /
  c`.

**Atomic adds.** Partial sums of different SMs may meet in slow memory: an atomic add is one store, and nothing is
loaded for it. The bounds above allow that, and so hold for kernels with and without it. Theorem 5 counts a store for
each partial sum that is initialised; the bounds of one memory are taken at prices at which a partial sum that leaves
costs one move (`of_sms`). With atomic adds :math:`C \mathrel{+}= A B` costs no less than :math:`C := A B`: let the
cells in slow memory begin at nothing, and leave out each load that comes before the first store of its cell, for it
loads nothing; what is left is a schedule of :math:`C := A B`. So that is what is bounded. *Without atomic adds*
(``atomic=False``) a game of :math:`P` memories is one of a memory of :math:`P S`, with all its bounds, every cell of
:math:`C` is loaded, and Theorem 5 holds with the :math:`mn` stores on top (`pebble.bounds.box`), for no cell is
initialised free.

A balanced version of each assumes that no SM does more than :math:`c` multiply-adds (groups of :math:`g` SMs: :math:`g
c`). The bounds need no assumption on replacement, and for GEMM none on recomputation. For FFN and attention values are
computed once. In bytes every transfer costs the narrowest width, and what surely crosses to slow memory its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any

from pebble.bounds.accounting import Accounting, bytes_at_least, lower_bound
from pebble.bounds.groupings import Grouping, best_program, groupings
from pebble.bounds.proofs import LowerBound, SingleClaim, Theorem
from pebble.bounds.segments import Piece
from pebble.bounds.splits import busiest_sm, least_over_splits
from pebble.bounds.uses import Use
from pebble.errors import InfeasibleError, InputError
from pebble.game.buffer_model import BufferModel
from pebble.units import ceil_div
from pebble.workloads.workload import Workload

THEOREM = Theorem("Theorem 5 and the bounds for several memories", __name__)


@dataclass(frozen=True)
class Memories(SingleClaim):
    """A bound for several memories, with the numbers of the list above that it is put together from."""

    method: str  #: what the bound is called
    elements: int  #: values moved at least
    parts: Mapping[str, Any] = field(default_factory=dict)  #: the numbers of the list above
    theorem: Theorem = THEOREM  #: what it rests on

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return dict(self.parts)


def covers_memories(problem: Accounting, recompute: bool = False) -> bool:
    """Whether these bounds cover a workload: no convolution, no unlike parts, no backward pass, no chain recomputed."""
    alike = not (problem.parts or problem.one_memory) and all(
        piece.box.overlap == 1 and piece.whole_numbers for piece in problem.of(Piece)
    )
    return alike and not (recompute and problem.chain is not None)


def check_workload(problem: Accounting, recompute: bool = False) -> None:
    """Refuse a workload that these bounds do not cover.

    Raises
    ------
    InputError
        A convolution, a workload of unlike parts, or recomputation of a chain.
    """
    workload = problem.workload
    if not covers_memories(problem):
        raise InputError(
            f"buffers: got {workload.family}, expected gemm, ffn or attention: only these are bounded for several SMs."
        )
    if recompute and problem.chain is not None:
        raise InputError(
            f"--recompute allowed: with several memories {workload.family} is bounded without recomputation only; "
            "leave it out, or use --buffers single or pooled."
        )


def buffer_lower_bound(
    problem: Accounting,
    capacity: int,
    buffers: BufferModel,
    most: int | None = None,
    recompute: bool = False,
    atomic: bool = True,
) -> LowerBound:
    """The best proven lower bound on loads + stores + omega * hops under a buffer model.

    Parameters
    ----------
    problem : Accounting
        Of a Gemm, Ffn or Attention, as `pebble.families.accounting` gives it.
    capacity : int
        S, values (of the narrowest width) that one SM holds.
    buffers : BufferModel
    most : int, optional
        Multiply-adds of the busiest SM, at least 1 / P of all; None allows any split.
    recompute : bool
        For one memory only, but for GEMM, whose bound holds anyway.
    atomic : bool
        Whether SMs may add to values in slow memory, a store each; a ``single`` memory never does.

    Returns
    -------
    LowerBound
        ``elements`` rounded down where omega makes the cost a fraction.

    Raises
    ------
    InfeasibleError
        Capacity below 3.
    InputError
        A workload without such a bound, or a share that is too small.

    Examples
    --------
    >>> from pebble.game.buffer_model import BufferModel
    >>> from pebble.families import accounting
    >>> from pebble.workloads import Gemm
    >>> told = accounting(Gemm(8192, 8192, 8192))
    >>> buffer_lower_bound(told, 229376, BufferModel("sm-local", 108)).elements
    2295985962
    >>> buffer_lower_bound(told, 229376, BufferModel("pooled", 108)).elements
    261226496
    """
    if capacity < 3:
        raise InfeasibleError(f"capacity: got {capacity} elements per SM, expected at least 3: no schedule exists.")
    atomic = atomic and buffers.kind != "single"
    problem = of_sms(problem) if atomic else problem
    workload = problem.workload
    sms = buffers.sms
    if buffers.memories == 1:
        return replace(lower_bound(problem, buffers.memory_size(capacity), recompute), atomic=atomic)
    check_workload(problem, recompute)
    if most is not None and most * sms < workload.multiply_adds:
        raise InputError(f"share: got {most} multiply-adds per SM, expected at least 1 / {sms} of all.")
    pooled = lower_bound(problem, sms * capacity).elements
    everything = grouped_bound(problem, capacity, sms, 1, most, pooled)
    parts: dict[str, Any] = {
        "capacity_elements_per_sm": capacity,
        "sms": sms,
        "most_multiply_adds_per_sm": most,
        "pooled_elements": pooled,
        "per_sm_sum_elements": everything,
    }
    if buffers.kind == "sm-local":
        value = Fraction(everything)
        shared = "any split of the work" if most is None else "balanced"
        method = "one memory of all SMs" if everything == pooled else f"segment accounting per SM, {shared}"
    else:
        cases = groupings(buffers.net)
        bounds = [grouped_bound(problem, capacity, sms, grouping.sms, most, pooled) for grouping in cases]
        value, more = _connected(buffers, cases, bounds)
        method = "(1 - omega) pooled + omega per SM" if "program" not in more else "linear program over groups of SMs"
        parts |= more
    extra = bytes_at_least(workload, 0)
    total = floor(workload.narrowest_bytes * value) + extra
    return LowerBound(floor(value), total, capacity, Memories(method, floor(value), parts))


def _connected(
    buffers: BufferModel, cases: Sequence[Grouping], bounds: Sequence[int]
) -> tuple[Fraction, dict[str, Any]]:
    """The bound with copies between SMs, and what it is put together from; ``bounds``: of each way to group the SMs."""
    net, omega = buffers.net, min(buffers.omega, Fraction(1))
    value, multipliers = best_program(bounds, cases, buffers.omega)
    given = [buffers.omega.numerator, buffers.omega.denominator]
    parts: dict[str, Any] = {"omega": given, "topology": net.name, "slow_elements": bounds[0]}
    if net.name == "partitions-2":
        parts = {"half_elements": bounds[1], **parts}
    elif value > (1 - omega) * bounds[0] + omega * bounds[-1]:
        parts["program"] = [
            {"sms": grouping.sms, "elements": bound, "multiplier": [y.numerator, y.denominator]}
            for grouping, bound, y in zip(cases, bounds, multipliers, strict=True)
            if y
        ]
    return value, parts


def of_sms(problem: Accounting) -> Accounting:
    """The same where partial sums may meet in slow memory, by atomic adds.

    Each then costs a store, which theorems that count a store and a load say differently or not at all (`Use.on_sms`).
    And outputs that begin at a value need not be loaded.
    """
    problem = problem.fresh or problem
    parts = tuple(replace(part, uses=_on_sms(part.uses)) for part in problem.parts)
    return replace(problem, uses=_on_sms(problem.uses), parts=parts)


def _on_sms(uses: Iterable[Use]) -> tuple[Use, ...]:
    return tuple(other for use in uses for other in use.on_sms())


def grouped_bound(problem: Accounting, capacity: int, sms: int, group: int, most: int | None, pooled: int) -> int:
    """Loads + stores + copies between groups of ``group`` SMs as one memory each; at least ``pooled``, that of all."""
    if group >= sms:
        return pooled
    workload = problem.workload
    if most is not None:
        most = min(workload.multiply_adds, group * most)
    best = max(pooled, workload.compulsory_elements)
    for piece in problem.of(Piece):
        # a limit on the products of an SM is one on those of the box where the box has all of them
        share = most if problem.groups * piece.work == workload.multiply_adds else None
        memories = ceil_div(sms, group)
        touched = least_over_splits(piece.box, piece.work, group * capacity, memories, share, problem.groups)
        best = max(best, touched - problem.groups * (piece.initialised - piece.added))
    return best


def multicast_bound(
    problem: Accounting, capacity: int, sms: int, multicast: int, most: int | None = None
) -> LowerBound:
    """Reads of slow memory, each of which may feed ``multicast`` SMs of a cluster, plus stores, for sm-local buffers.

    Parameters and errors as for `buffer_lower_bound`; ``multicast`` 1 is sm-local.
    """
    problem = of_sms(problem)
    local = buffer_lower_bound(problem, capacity, BufferModel("sm-local", sms), most)
    pooled = lower_bound(problem, sms * capacity).elements
    outputs = sum(o.elements for o in problem.workload.operands if o.written)
    spread = Fraction(local.elements + (multicast - 1) * outputs, multicast)
    value = max(grouped_bound(problem, capacity, sms, multicast, most, pooled) if multicast > 1 else 0, ceil(spread))
    parts = {"multicast": multicast, "sms": sms, "capacity_elements_per_sm": capacity}
    proof = Memories("reads with multicast, plus stores", value, parts)
    return LowerBound(value, bytes_at_least(problem.workload, value), capacity, proof)


def busiest_sm_elements(problem: Accounting, capacity: int, sms: int) -> int:
    """Words in and out of the SM that does the most of a GEMM, under any split."""
    (piece,) = problem.of(Piece)
    return busiest_sm(piece.box, piece.work, capacity, sms)


def balanced_share(workload: Workload, sms: int, tolerance: Fraction = Fraction(0)) -> int:
    """Multiply-adds of the busiest of P SMs when none does more than (1 + tolerance) / P of all, rounded up."""
    return ceil(Fraction(workload.multiply_adds, sms) * (1 + tolerance))
