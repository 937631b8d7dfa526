"""An independent checker for the moves of FFN and attention schedules: it knows the rules, not the formulas."""

from __future__ import annotations

from collections import Counter

from pebble.schedules.explicit.attention import FAMILY, PASSED
from pebble.schedules.explicit.fused import FusedSchedule
from pebble.workloads import Ffn
from pebble.workloads.widths import ALIKE
from tests.schedules.fused_moves import fused_moves

Value = tuple[str, tuple[int, ...]]


def replay(schedule: FusedSchedule) -> int:
    """Check every move, the end and the claimed traffic; the most values held. One group, for attention."""
    work = schedule.workload
    blue: set[Value] = set()
    # product -> (operands, cell, terms per cell); hidden: cells that must be finished before they are used
    if isinstance(work, Ffn):
        m, f, groups = work.tokens, work.hidden, 1
        first = {"H": ("X", "Wg" if work.gated else "W1")} | ({"U": ("X", "Wu")} if work.gated else {})
        second, inner, hidden = ("Y", "H", "W2"), work.d_model, "H"
        shapes = {o.name: (o.rows, o.cols) for o in work.operands if o.read}
        width = work.d_out
    else:
        m, f, groups = work.stacked_queries, work.keys, work.groups
        first, second, inner, hidden = {"S": ("Q", "K")}, ("O", "S", "V"), work.head_dim, "S"
        shapes = {"Q": (m, work.head_dim), "K": (f, work.head_dim), "V": (f, work.value_dim)}
        width = work.value_dim

    def seen(i: int, j: int) -> bool:
        if isinstance(work, Ffn) or not work.causal:
            return True
        return j <= i // work.group + work.keys - work.queries

    for name, (rows, cols) in shapes.items():
        blue |= {(name, (r, c)) for r in range(rows) for c in range(cols)}
    red: set[Value] = set()
    initialised: set[Value] = set()
    finished: set[Value] = set()
    updates: Counter[Value] = Counter()
    done: set[tuple[str, tuple[int, ...]]] = set()
    loads: Counter[str] = Counter()
    stores: Counter[str] = Counter()
    peak = 0
    strict = not isinstance(work, Ffn) and work.softmax == "strict"
    passed = (
        schedule.family == FAMILY
    )  # raw scores stay in slow memory, and become probabilities whenever they are loaded
    fused = any(part.plan is not None for part in (schedule, *(group for _, group in schedule.groups)))
    useless = {"U", "state"} | ({hidden} if fused else set())  # may be dropped when used up
    for op, name, index in fused_moves(schedule):
        value = (name, index)
        if op == "load":
            assert value in blue and value not in red, value
            red.add(value)
            loads[name] += 1
        elif op == "store":
            assert value in red and value not in blue, value
            blue.add(value)
            stores[name] += 1
        elif op == "delete":
            assert value in red and (value in blue or name in useless), value
            red.remove(value)
        elif op == "begin":
            assert name in ("state", PASSED) and value not in red and value not in blue
            red.add(value)
        elif op == "finish":
            assert value in red and (passed or value not in finished)
            assert PASSED not in schedule.stores or {(PASSED, (index[0], which)) for which in range(2)} <= red
            for cell in first:
                assert updates[cell, index] == inner
                assert cell == hidden or (cell, index) in red
            if strict:
                assert all(updates[hidden, (index[0], j)] == inner for j in range(f) if seen(index[0], j))
            finished.add(value)
            if not passed:
                blue.discard(value)
        else:
            assert op == "compute"
            i, j, t = index
            assert (name, index) not in done
            done.add((name, index))
            if name == second[0]:
                left, right = (second[1], (i, t)), (second[2], (t, j))
                assert left in finished and seen(i, t)
            else:
                left, right = (first[name][0], (i, t)), (first[name][1], (j, t) if name == "S" else (t, j))
                assert seen(i, j) or schedule.plan is None
            assert left in red and right in red, (name, index)
            cell = (name, (i, j))
            assert (cell in red) or cell not in initialised
            red.add(cell)
            initialised.add(cell)
            blue.discard(cell)
            updates[cell] += 1
        peak = max(peak, len(red))
        assert schedule.memory.widths != ALIKE or len(red) <= schedule.memory.bytes
    assert not red
    pairs = [(i, j) for i in range(m) for j in range(f) if seen(i, j)]
    for cell in first:
        assert sum(1 for name, _ in done if name == cell) == len(pairs) * inner
    assert sum(1 for name, _ in done if name == second[0]) == len(pairs) * width
    assert all((second[0], (i, q)) in blue for i in range(m) for q in range(width))
    # what each operand moves is what the schedule says, all hidden products together
    for traffic, claimed in ((loads, schedule.loads), (stores, schedule.stores)):
        merged: Counter[str] = Counter()
        for name, count in traffic.items():
            merged[{"Wg": "Wg+Wu", "Wu": "Wg+Wu", "U": "H"}.get(name, name)] += groups * count
        assert merged == Counter(claimed), (merged, claimed)
    return peak
