"""The moves of the second of two phases of a chain, in the events of `chain_moves`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pebble.schedules.explicit.moves import gemm_moves
from pebble.schedules.explicit.phases import Phases
from tests.schedules.panel_moves import Event


def rest_moves(plan: Phases, order: Sequence[int]) -> Iterator[Event]:
    """The product of H and the other columns of D: its first rows are the last of H, its first indices what stayed.

    ``order``: in which the last panel went through the columns of H.
    """
    m, columns, rows = plan.chain.m, plan.columns, plan.handed.rows
    back = order[::-1]
    for op, name, index in gemm_moves(plan.rest, plan.handed.enter):
        if op == "compute":
            i, q, e = index
            yield op, "Y", ((i - rows) % m, columns + q, back[e])
        elif name == "A":
            yield op, "H", (0, (index[0] - rows) % m, back[index[1]])
        elif name == "B":
            yield op, "D", (back[index[0]], columns + index[1])
        else:
            yield op, "Y", ((index[0] - rows) % m, columns + index[1])
