"""The least loads and stores of a tiny C += A B on SMs that add to C in slow memory: every state, cheapest first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import product

State = tuple[int, tuple[frozenset[str], ...], tuple[int, ...]]  # products done, what each SM holds, how many it did


def atomic_optimum(shape: tuple[int, int, int], capacity: int, sms: int, most: int | None = None) -> int:
    """An SM begins a partial sum at nothing; whatever it holds of C leaves by an atomic add, which costs a store."""
    m, n, k = shape
    products = [(f"A{i},{q}", f"B{q},{j}", f"C{i},{j}") for i, j, q in product(range(m), range(n), range(k))]
    inputs = sorted({operand for a, b, _ in products for operand in (a, b)})
    limit = len(products) if most is None else most

    def steps(state: State) -> Iterator[tuple[int, State]]:
        done, held, did = state
        for sm, mine in enumerate(held):
            free_capacity = len(mine) < capacity

            def with_(now: frozenset[str], then: int = done, more: int = 0, at: int = sm) -> State:
                # the work of each counts where it is limited only
                counts = tuple(c + more * (p == at) for p, c in enumerate(did)) if most is not None else did
                return then, (*held[:at], now, *held[at + 1 :]), counts

            for item in mine:
                yield int(item.startswith("C")), with_(mine - {item})
            for item in inputs if free_capacity else ():
                if item not in mine:
                    yield 1, with_(mine | {item})
            for number, (a, b, c) in enumerate(products):
                fits = c in mine or free_capacity
                if not done >> number & 1 and fits and a in mine and b in mine and did[sm] < limit:
                    yield 0, with_(mine | {c}, done | 1 << number, 1)

    start: State = (0, (frozenset(),) * sms, (0,) * sms)
    least, waiting = {start: 0}, deque([start])
    settled: set[State] = set()
    while waiting:
        state = waiting.popleft()
        if state in settled:
            continue
        settled.add(state)
        done, held, _ = state
        if done == (1 << len(products)) - 1 and not any(item.startswith("C") for mine in held for item in mine):
            return least[state]
        for cost, after in steps(state):
            total = least[state] + cost
            if total < least.get(after, total + 1):
                least[after] = total
                (waiting.append if cost else waiting.appendleft)(after)
    raise AssertionError("no schedule")
