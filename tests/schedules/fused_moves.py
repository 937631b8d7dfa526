"""The moves of an explicit schedule of an FFN or of attention, in the workload's own names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pebble.schedules.explicit import ExplicitProduct
from pebble.schedules.explicit.attention import FAMILY, PASSED
from pebble.schedules.explicit.chain import ChainPlan
from pebble.schedules.explicit.fused import FusedSchedule, Kernel
from pebble.schedules.explicit.gemm import BandedProduct, GateAndUp
from pebble.schedules.explicit.moves import gemm_moves
from pebble.schedules.explicit.phases import Phases
from pebble.schedules.explicit.remainder import PanelsWithRemainder
from pebble.workloads import Ffn
from tests.schedules.chain_moves import Event, chain_moves


def fused_moves(schedule: FusedSchedule) -> Iterator[Event]:
    """Play the schedule; for attention, one group of it.

    Parameters
    ----------
    schedule : FusedSchedule
        Meant for small ones: it yields at least one event per multiply-add.

    Yields
    ------
    (str, str, tuple of int)
        ``load``, ``store``, ``delete`` of a value by row and column, ``begin`` of softmax state, ``compute`` of an
        update (i, j, t) of C[i, j] += A[i, t] B[t, j], whatever the product is called, and ``finish`` of a hidden
        value or score (activation, times ``U`` when gated; softmax). K is keys x head_dim. The rows of attention are
        the queries of all heads of a group, the heads of one query next to each other.
    """
    before = 0  # rows of the groups that came first
    for tokens, group in schedule.groups:
        for op, name, (row, *rest) in fused_moves(group):
            yield op, name, (row if name.startswith("W") else before + row, *rest)
        before += tokens
    if schedule.plan is not None:
        yield from _renamed(schedule, schedule.plan)
        return
    if schedule.family == FAMILY:
        yield from _with_row_state(schedule)
        return
    gated = isinstance(schedule.workload, Ffn) and schedule.workload.gated
    products = 0
    for number, kernel in enumerate(schedule.kernels):
        if isinstance(kernel, Kernel):
            yield from _softmax(schedule, kernel) if kernel.name == "softmax" else _gate_times_up(schedule)
        elif isinstance(kernel, ChainPlan):
            yield from _renamed(schedule, kernel)
        elif isinstance(kernel, GateAndUp):
            yield from _pairs(kernel)
        else:
            last = number + 1 == len(schedule.kernels)
            names = _gemm_names(schedule, "last" if last else "up" if gated and products else "first")
            finishes = isinstance(schedule.workload, Ffn) and not gated and not last
            yield from _gemm(kernel, names, finishes, schedule)
            products += 1


def _with_row_state(schedule: FusedSchedule) -> Iterator[Event]:
    """Scores, with the maximum and sum of a row from its first score to its last; outputs, with both from then on."""
    first, last = schedule.kernels
    assert isinstance(first, BandedProduct) and isinstance(last, BandedProduct)
    held = [PASSED] if PASSED in schedule.stores else []
    for kernel, whole in ((first, first.gemm.n), (last, last.gemm.n * last.gemm.k)):
        names = _gemm_names(schedule, "first" if kernel is first else "last")
        terms = first.gemm.k if kernel is first else 1
        left: Counter[tuple[int, ...]] = Counter()  # updates of a cell; of a row, what needs its state
        rows: Counter[int] = Counter()
        there: set[int] = set()
        for op, operand, index in gemm_moves(kernel):
            name, row = names[operand], index[0]
            if op == "load" and name == "S" and kernel is last and row not in there:
                there.add(row)
                yield from (("load", element, (row, which)) for element in held for which in range(2))
            yield op, name, (index[1], index[0]) if name == "K" else index
            if op == "load" and name == "S" and kernel is last:
                yield "finish", name, index
            if op != "compute":
                continue
            left[index[:2]] += 1
            if kernel is first and left[index[:2]] == terms and row not in there:
                there.add(row)
                yield from (("begin", item, (row, which)) for item in held for which in range(2))
            rows[row] += kernel is last or left[index[:2]] == terms
            if rows[row] == whole and row in there:
                there.remove(row)
                moves = ("store", "delete") if kernel is first else ("delete",)
                yield from (
                    (move, each_item, (row, which)) for each_item in held for which in range(2) for move in moves
                )


def _gemm_names(schedule: FusedSchedule, which: str) -> dict[str, str]:
    if isinstance(schedule.workload, Ffn):
        weights = {"first": "Wg" if schedule.workload.gated else "W1", "up": "Wu", "last": "W2"}[which]
        cells = {"first": "H", "up": "U", "last": "Y"}[which]
        return {"A": "H" if which == "last" else "X", "B": weights, "C": cells}
    return {"A": "S", "B": "V", "C": "O"} if which == "last" else {"A": "Q", "B": "K", "C": "S"}


def _gemm(kernel: ExplicitProduct, names: dict[str, str], finishes: bool, schedule: FusedSchedule) -> Iterator[Event]:
    left: dict[tuple[int, ...], int] = {}
    for op, operand, index in gemm_moves(kernel):
        name = names[operand]
        yield op, name, (index[1], index[0]) if name == "K" else index
        if finishes and op == "compute":
            cell = index[:2]
            left[cell] = left.get(cell, kernel.gemm.k) - 1
            if left[cell] == 0:
                yield "finish", name, cell


def _pairs(kernel: GateAndUp) -> Iterator[Event]:
    """Gate and up side by side: each move of a weight or of a product is two, and a cell is stored once."""
    for op, operand, index in gemm_moves(kernel):
        if operand == "A":
            yield op, "X", index
        elif operand == "B":
            yield op, "Wg", index
            yield op, "Wu", index
        else:
            if op == "store":
                yield "finish", "H", index
                yield "delete", "U", index
            yield op, "H", index
            if op == "compute":
                yield op, "U", index


def _gate_times_up(schedule: FusedSchedule) -> Iterator[Event]:
    assert isinstance(schedule.workload, Ffn)
    for i in range(schedule.workload.tokens):
        for j in range(schedule.workload.hidden):
            yield "load", "H", (i, j)
            yield "load", "U", (i, j)
            yield "finish", "H", (i, j)
            yield "delete", "U", (i, j)
            yield "store", "H", (i, j)
            yield "delete", "H", (i, j)


def _softmax(schedule: FusedSchedule, kernel: Kernel) -> Iterator[Event]:
    assert not isinstance(schedule.workload, Ffn)
    keys = range(schedule.workload.keys)
    stays = kernel.row_stays
    for i in range(schedule.workload.stacked_queries):
        yield "begin", "state", (i, 0)
        yield "begin", "state", (i, 1)
        for j in keys:
            yield "load", "S", (i, j)
            if not stays:
                yield "delete", "S", (i, j)
        for j in keys:
            if not stays:
                yield "load", "S", (i, j)
            yield "finish", "S", (i, j)
            yield "store", "S", (i, j)
            yield "delete", "S", (i, j)
        yield "delete", "state", (i, 0)
        yield "delete", "state", (i, 1)


def _renamed(schedule: FusedSchedule, plan: ChainPlan | PanelsWithRemainder | Phases) -> Iterator[Event]:
    ffn = schedule.workload if isinstance(schedule.workload, Ffn) else None
    weights, cells = ["K"], ["S", "U"]
    others = {"A": "Q", "D": "V", "Y": "O"}
    if ffn is not None:
        weights, cells = ["Wg", "Wu"] if ffn.gated else ["W1"], ["H", "U"]
        others = {"A": "X", "D": "W2", "Y": "Y"}
    for op, operand, index in chain_moves(plan):
        if operand == "B":
            s, t, j = index
            yield op, weights[s], (t, j) if ffn is not None else (j, t)
        elif operand == "H":
            yield (op, cells[0], index) if op == "finish" else (op, cells[index[0]], index[1:])
        else:
            yield op, others.get(operand, operand), index
