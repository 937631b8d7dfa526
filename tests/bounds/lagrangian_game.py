"""Two products in a row in any order, several accumulators merged, played with the farthest next use evicted.

And prices at random, and what they prove with all ways to share products looked through.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf, log, sqrt
from operator import add
from typing import Any, NamedTuple

from pebble.certificate.lagrangian_lines import LINES, Units

Value = tuple[Any, ...]
Shape = tuple[int, int, int, int]  # m, k, f, l
ONE = Units(1, 1, 1, 1)
MULTIPLIERS = ("before", "after", "first", "second", *LINES)
OLD = (0.0, 0.0)  #: shares: what is moved is paid by the segment after a gap


@dataclass(frozen=True)
class Step:
    """A product, a merge, or gate times up."""

    reads: tuple[Value, ...]
    target: Value
    gone: tuple[Value, ...] = ()  #: accumulators that end here
    second: bool = False
    product: bool = True


@dataclass
class Played:
    """What a schedule moved, and what it held."""

    moved: int
    held: list[dict[Value, int]]  #: just after each product, with the width of each value


def chain_steps(
    shape: Shape, order: Iterable[tuple[int, ...]], gated: bool, most: int, rnd: random.Random
) -> list[Step]:
    """Steps of a chain whose products come in an order: (i, j, t), of the first product, (i, j, q, 2) of the second.

    In a gated chain (i, j, t, 1) are up products. A cell is added up in ``most`` accumulators at most, merged as soon
    as its last product is done, or before.
    """
    m, k, f, l = shape
    left = {("H", i, j): k for i, j in product(range(m), range(f))}
    left |= {("U", *key[1:]): k for key in left} if gated else {}
    left |= {("Y", i, q): f for i, q in product(range(m), range(l))}
    initialised: dict[Value, list[int]] = {}
    steps: list[Step] = []

    def into(cell: Value) -> Value:
        mine = initialised.setdefault(cell, [])
        number = rnd.randrange(most)
        if number not in mine:
            mine.append(number)
        return (*cell, number)

    def merge(cell: Value) -> None:
        mine = initialised[cell]
        while len(mine) > 1 and (left[cell] == 0 or rnd.random() < 0.1):
            rnd.shuffle(mine)
            gone = mine.pop()
            steps.append(Step(((*cell, gone),), (*cell, mine[0]), ((*cell, gone),), product=False))

    for i, j, t, *kind in order:
        if kind == [2]:
            h, target = ("H", i, j), ("Y", i, t)
            assert left[h] == 0 and (not gated or left["U", i, j] == 0)
            reads: tuple[Value, ...] = ((*h, initialised[h][0]), ("D", j, t))
        else:
            target = ("U" if kind else "H", i, j)
            reads = ("A", i, t), ("B", t, j, *kind)
        left[target] -= 1
        steps.append(Step(reads, into(target), second=kind == [2]))
        merge(target)
        if gated and kind != [2] and left["H", i, j] == 0 == left["U", i, j]:
            up = ("U", i, j, initialised["U", i, j][0])
            steps.append(Step((up,), ("H", i, j, initialised["H", i, j][0]), (up,), product=False))
    return steps


def play(
    steps: Sequence[Step],
    capacity: int,
    units: Units = ONE,
    leaves: Callable[[int], bool] = lambda product: False,
) -> Played | None:
    """What a schedule moves when the value used last is evicted; None where a step does not fit.

    ``leaves`` is asked for each value that is held after a product, by its number, whether it is evicted there too.
    """
    uses: dict[Value, list[int]] = {}
    for number, step in enumerate(steps):
        for value in (*step.reads, step.target):
            uses.setdefault(value, []).append(number)
    updates: dict[Value, int] = {}
    for step in steps:  # updates of all accumulators of a cell, merges too: after the last it is complete
        updates[step.target[:3]] = updates.get(step.target[:3], 0) + 1
    done: dict[Value, int] = {}
    at = dict.fromkeys(uses, 0)
    held: dict[Value, int] = {}
    dirty: set[Value] = set()
    stored: set[Value] = set()
    traffic, before = 0, list[dict[Value, int]]()

    def width(value: Value) -> int:
        if value[0] in "ABD":
            return units.read
        complete = done.get(value[:3], 0) == updates[value[:3]]
        if value[0] == "Y":
            return units.written if complete else units.partial
        return units.read if complete and value[0] == "H" else units.hidden

    def next_use(value: Value) -> float:
        return uses[value][at[value]] if at[value] < len(uses[value]) else inf

    def evict(value: Value) -> int:
        taken, changed = held.pop(value), value in dirty
        if changed:
            stored.add(value)
            dirty.discard(value)
        return taken if changed else 0

    for step in steps:
        touched = (*step.reads, step.target)
        for value in touched:
            if value not in held:
                if value[0] in "ABD" or value in stored:
                    traffic += width(value)
                held[value] = width(value)
        while sum(held.values()) > capacity:
            out = max((v for v in held if v not in touched), key=lambda v: (next_use(v), v[0] in "ABD"), default=None)
            if out is None:
                return None
            traffic += evict(out)
        dirty.add(step.target)
        stored.discard(step.target)
        done[step.target[:3]] = done.get(step.target[:3], 0) + 1
        held[step.target] = width(step.target)
        for value in touched:
            at[value] += 1
            if value in step.gone or (next_use(value) == inf and value[0] != "Y"):
                held.pop(value, None)
                dirty.discard(value)
            elif next_use(value) == inf and done[value[:3]] == updates[value[:3]]:
                traffic += held.pop(value)
        if step.product:
            traffic += sum(evict(value) for value in list(held) if leaves(len(before)))
            before.append(dict(held))
    return Played(traffic, before)


def some_order(shape: Shape, gated: bool, rnd: random.Random) -> list[tuple[int, ...]]:
    """Products in blocks, in which both kinds alternate in some way; at times fully at random."""
    m, k, f, l = shape
    first = [
        (i, j, t, *up) for i, j, t in product(range(m), range(f), range(k)) for up in ([(), (1,)] if gated else [()])
    ]
    second = [(i, j, q, 2) for i, j, q in product(range(m), range(f), range(l))]
    sides = {axis: rnd.choice([1, 2, 3, 4, 6, 16]) for axis in "mkfl"}
    axes = rnd.sample("mfx", 3)
    lag = rnd.choice([0, 0, 1, 2, 99])  # blocks of columns that second products are behind

    def key(one: tuple[int, ...]) -> tuple[object, ...]:
        i, j, t, *kind = one
        behind = lag if kind == [2] else 0
        place = {"m": i // sides["m"], "f": j // sides["f"] + behind, "x": 0}
        inside = (t // sides["l" if kind == [2] else "k"],)
        outer = tuple(place[a] for a in axes)
        return (*outer, kind == [2], *inside, *(rnd.random() for _ in range(1)))

    scattered = rnd.random() < 0.1
    order = sorted(first + second, key=(lambda _: rnd.random()) if scattered else key)
    return completed_first(order, shape, gated)


def completed_first(order: Sequence[tuple[int, ...]], shape: Shape, gated: bool) -> list[tuple[int, ...]]:
    """The same, second products put off until their cell is complete."""
    left: dict[tuple[int, int], int] = {}
    waiting: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    results = []
    for item in order:
        cell = item[0], item[1]
        if item[3:] == (2,):
            if left.get(cell, 0) < shape[1] * (1 + gated):
                waiting.setdefault(cell, []).append(item)
                continue
            results.append(item)
        else:
            results.append(item)
            left[cell] = left.get(cell, 0) + 1
            if left[cell] == shape[1] * (1 + gated):
                results += waiting.pop(cell, [])
    return results


# prices


def text(multiplier: float) -> str:
    """As a certificate writes it: a whole multiple of 2^-64."""
    return str(Fraction(int(multiplier * 2**64), 2**64))


def proof_of(
    form: str,
    segments: int,
    ends: Sequence[int],
    kinds: Sequence[dict[str, float]],
    shares: tuple[float, float] = OLD,
) -> dict[str, Any]:
    """A proof with prices given as floats; of room after a segment it is 0 where none is told."""
    entries = [
        {"to": end, **{key: text(kind.get(key, 0.0) if key == "after" else kind[key]) for key in MULTIPLIERS}}
        for end, kind in zip(ends, kinds, strict=True)
    ]
    both = dict(zip(("one", "two"), map(text, shares), strict=True))
    return {"theorem": "priced lines", "form": form, "segments": segments, "shares": both, "kinds": entries}


def work_of(shape: Shape, form: str) -> int:
    """All products."""
    m, k, f, l = shape
    return m * f * ((2 if form == "gated chain" else 1) * k + l)


def some_ends(longest: int, count: int, rnd: random.Random) -> list[int]:
    """Where ranges end."""
    return [*sorted(rnd.sample(range(longest), min(count - 1, longest))), longest]


def some_shares(rnd: random.Random) -> tuple[float, float]:
    """Shares of what is moved."""
    return rnd.choice([0.0, 1.0, rnd.uniform(0, 1)]), rnd.choice([0.0, 1.0, 2.0, rnd.uniform(0, 2)])


def some_multipliers(count: int, capacity: int, rnd: random.Random) -> list[dict[str, float]]:
    """Rooms that rise or fall with second products, entropies of about 1 / sqrt(S), offsets of any size."""
    sides = []
    for most in (rnd.choice([2.6, 2.6, 8]), rnd.choice([0, 1, 2.6, 8])):
        ends = sorted(rnd.uniform(0, most) for _ in range(2))
        sides.append(ends if rnd.random() < 0.5 else ends[::-1])
    mu = rnd.choice([1, 1, 4]) * rnd.uniform(0.3, 2) / sqrt(capacity)
    size = rnd.choice([0.0, 0.2, 1, 3, 10, 30]) / sqrt(capacity)
    results = []
    for i in range(count):
        kind = {line: rnd.uniform(-size, size) for line in LINES}
        kind["before"], kind["after"] = (low + (high - low) * i / count for low, high in sides)
        kind["first"], kind["second"] = (mu * rnd.uniform(0.7, 1.4) for _ in range(2))
        results.append(kind)
    return results


# the least over all ways to share products, with whole numbers: every sequence of parts, gap by gap


class Touch(NamedTuple):
    """A part in a segment of one kind."""

    before: float  #: prices of room
    after: float
    entropy: float
    product: float

    def of(self, c: int) -> float:
        """Its products, without gaps."""
        return self.entropy * c * log(c) + self.product * c


def apart(width: float, moves: float) -> Callable[[Touch, Touch], float]:
    """What a gap between two parts costs by the moves that the theorem starts from: held, or moved so often."""
    return lambda one, other: width * min(moves, one.after + other.before)


def shared(width: float, moves: float, share: float) -> Callable[[Touch, Touch], float]:
    """And what is charged for it where the parts on both sides pay, each its share."""
    return lambda one, other: width * (min(share, one.after) + min(moves - share, other.before))


Gap = Callable[[Touch, Touch], float]
Rows = list[list[list[float]]]  # [parts][products][kind of the last]


def rows_of(length: int, touches: Sequence[Touch], gap: Gap, most: int, start: Sequence[float]) -> Rows:
    """The least for 1..most parts and 0..length products, by the kind of the last part; ``start``: before the first."""
    cost = [[0.0] + [t.of(c) for c in range(1, length + 1)] for t in touches]
    gaps = [[gap(touch, other) for touch in touches] for other in touches]
    rows = [
        [[inf] * len(touches)] + [[start[i] + cost[i][c] for i in range(len(touches))] for c in range(1, length + 1)]
    ]
    for _ in range(1, most):
        last, row = rows[-1], []
        into = [[min(map(add, last[x], gaps[i]), default=inf) for i in range(len(touches))] for x in range(length + 1)]
        for x in range(length + 1):
            row.append(
                [min((into[x - c][i] + cost[i][c] for c in range(1, x)), default=inf) for i in range(len(touches))]
            )
        rows.append(row)
    return rows


def value_charge(length: int, touches: Sequence[Touch], gap: Gap, most: int) -> float:
    """The least for a value without what is certain."""
    return min(min(row[length]) for row in rows_of(length, touches, gap, min(most, length), [0.0] * len(touches)))


def cell_charge(
    k: int,
    l: int,
    firsts: Sequence[Touch],
    seconds: Sequence[Touch],
    sums: Gap,
    ways: Sequence[tuple[float, Gap]],
    most: int,
) -> float:
    """The least for a cell of H; ``ways``: what is certain of further segments, and the gaps before them."""
    before = rows_of(k, firsts, sums, min(most, k), [0.0] * len(firsts))
    at = [min(row[k][i] for row in before) for i in range(len(firsts))]  # by the kind of the last first part
    results = []
    for certain, gap in ways:
        # the first second part is in another segment
        start = [min(at[j] + gap(seconds[j], other) for j in range(len(firsts))) for other in seconds]
        results.append(certain + min(min(row[l]) for row in rows_of(l, seconds, gap, min(most, l), start)))
        # or in the same: then nothing is certain if it is the only one
        after = rows_of(l, seconds, gap, min(most, l), at)
        results += [min(row[l]) + (certain if number else 0.0) for number, row in enumerate(after)]
    return min(results)


def with_whole_numbers(
    shape: Shape, form: str, units: Units, capacity: int, proof: dict[str, Any], by_moves: bool = False
) -> float:
    """What prices prove when all ways to share products are looked through, in floating point.

    ``by_moves``: with gaps that cost what is moved or held, whatever the shares; no less.
    """
    m, k, f, l = shape
    w, hidden, p, written = units
    gated = form == "gated chain"
    h: int = proof["segments"]
    kinds = [{key: float(Fraction(x)) for key, x in kind.items() if key != "to"} for kind in proof["kinds"]]
    single, two = (float(Fraction(proof["shares"][key])) for key in ("one", "two"))

    def touches(line: str) -> list[Touch]:
        entropy = "second" if line in LINES[3:] else "first"
        return [Touch(kind["before"], kind["after"], kind[entropy], kind[line]) for kind in kinds]

    def gap(width: int, moves: int) -> Gap:
        return apart(width, moves) if by_moves else shared(width, moves, single if moves == 1 else two)

    columns = f * (1 + gated)
    total = m * k * (w + value_charge(columns, touches("A"), gap(w, 1), h))
    total += k * columns * (w + value_charge(m, touches("B"), gap(w, 1), h))
    total += f * l * (w + value_charge(m, touches("D"), gap(w, 1), h))
    total += m * l * (written + value_charge(f, touches("Y"), gap(p, 2), h))
    ways = ((0.0, apart(w, inf)), (float(w), gap(w, 1)))
    total += m * f * cell_charge(k, l, touches("cells"), touches("cells again"), gap(hidden, 2), ways, h)
    if gated:
        total += m * f * value_charge(k, touches("cells"), gap(hidden, 2), h)
    work, most, low = work_of(shape, form), -inf, 0
    for kind, spec in zip(kinds, proof["kinds"], strict=True):
        for v in {work // h, -(-work // h)}:
            for second in range(low, min(spec["to"], v) + 1):
                first = v - second
                value = (kind["before"] + kind["after"]) * capacity
                value += kind["first"] * first * log(max(1, first)) + kind["second"] * second * log(max(1, second))
                value += sum(kind[x] for x in LINES[:3]) * first + sum(kind[x] for x in LINES[3:]) * second
                most = max(most, value)
        low = spec["to"] + 1
    return total - h * most + capacity * sum(min(kind[side] for kind in kinds) for side in ("before", "after"))
