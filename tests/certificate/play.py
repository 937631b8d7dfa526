"""Schedules as a certificate writes them, played product by product: what moves and is held is counted, not derived.

It shares no formula with the checker: a memory of named values, and the order of the products.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from tests.certificate.memory import Memory, Value

NOTHING = (0, (0, 0, 0))  # rows of H, and a corner: group, turned and plain columns


Widths = dict[str, tuple[int, int]]


def play_blocks(
    size: dict[str, int], accumulate: bool, schedule: dict[str, Any], widths: Widths | None = None
) -> Memory:
    """One GEMM in blocks of the stationary operand."""
    names = {frozenset("mk"): "A", frozenset("kn"): "B", frozenset("mn"): "C"}
    p, q = {"C": "mn", "A": "mk", "B": "kn"}[schedule["stationary"]]
    extent = dict(zip((p, q), schedule["block"], strict=True))
    if schedule["walks_first"] == p:
        p, q = q, p
    (r,) = set("mnk") - {p, q}
    memory = Memory({"A", "B", "C"} if accumulate else {"A", "B"}, widths=widths)
    done = set()

    def value(**at: int) -> Value:
        single, other = sorted(at)
        return (names[frozenset(at)], at[single], at[other])

    rows = [range(i, min(i + extent[p], size[p])) for i in range(0, size[p], extent[p])]
    cols = [range(j, min(j + extent[q], size[q])) for j in range(0, size[q], extent[q])]
    walk = [(i, j if i % 2 == 0 else len(cols) - 1 - j) for i in range(len(rows)) for j in range(len(cols))]
    forward, held_p, held_q = True, set(), set()
    for number, (i, j) in enumerate(walk):
        order = list(range(size[r])) if forward else list(reversed(range(size[r])))
        keep_p, keep_q = set(), set()
        if number + 1 < len(walk):
            if walk[number + 1][0] == i:
                count = schedule["across"][0 if i + 1 < len(rows) else 1]
                keep_p = set(order[len(order) - count :])
            else:
                count = schedule["down"][2 if i == len(rows) - 2 else i % 2]
                keep_q = set(order[len(order) - count :])
        for e in order:
            hold_p = e in held_p | keep_p or (e not in held_q | keep_q and len(rows[i]) <= len(cols[j]))
            held, passing = (rows[i], cols[j]) if hold_p else (cols[j], rows[i])
            for outer, inner in product(passing, held):
                x, y = (inner, outer) if hold_p else (outer, inner)
                three = value(**{p: x, q: y}), value(**{p: x, r: e}), value(**{q: y, r: e})
                for item in three:
                    memory.touch(item, item[0] == "C")
                done.add(three)
                if inner == held[-1] and e not in (held_q | keep_q if hold_p else held_p | keep_p):
                    memory.drop(three[2] if hold_p else three[1])
            for x in rows[i]:
                if e not in keep_p:
                    memory.drop(value(**{p: x, r: e}))
            for y in cols[j]:
                if e not in keep_q:
                    memory.drop(value(**{q: y, r: e}))
        for x, y in product(rows[i], cols[j]):
            memory.drop(value(**{p: x, q: y}))
        forward, held_p, held_q = not forward, keep_p, keep_q
    assert len(done) == size["m"] * size["n"] * size["k"] and not memory.red
    return memory


def play_banded(
    size: dict[str, int], added: bool, schedule: dict[str, Any], widths: Widths | None = None, found: Any = (0, 0, 0)
) -> Memory:
    """One GEMM in bands, with turned corners; ``found``: the corner by which columns of A that are there give way."""
    names = {frozenset("mk"): "A", frozenset("kn"): "B", frozenset("mn"): "C"}
    axes_of = {name: set(axes) for axes, name in names.items()}
    memory = Memory({"A", "B", "C"} if added else {"A", "B"}, widths=widths)
    q, done = schedule["axis"], set()

    def value(**at: int) -> Value:
        single, other = sorted(at)
        return (names[frozenset(at)], at[single], at[other])

    # every block: its axes, its sides, and the corner that leads on with the axis along which its vectors lie
    blocks: list[tuple[str, dict[str, list[int]], Any, Any]] = []
    start, bands = 0, [(b, copy + 1 < b["count"]) for b in schedule["bands"] for copy in range(b["count"])]
    for number, (band, again) in enumerate(bands):
        (p,) = axes_of[band["stationary"]] - {q}
        rows = list(range(size[p]))
        cuts = [len(range(i, size[p], band["blocks"])) for i in range(band["blocks"])]
        parts = [rows[sum(cuts[:i]) : sum(cuts[: i + 1])] for i in range(band["blocks"])]
        for at, part in enumerate(parts if number % 2 == 0 else reversed(parts)):
            last = at + 1 == band["blocks"]
            turn = (band["down"] if again else band["next"]) if last else [band["across"]] * 2
            blocks.append((p, {p: part, q: list(range(start, start + band["width"]))}, turn, p if last else q))
        start += band["width"]
    forward, came, enter = True, q, found
    memory.there(value(m=i, k=e) for i in blocks[0][1].get("m", ()) for e in range(enter[1] + enter[2]))
    for number, (p, sides, (leave, following), along) in enumerate(blocks):
        (r,) = {"m", "n", "k"} - {p, q}
        order = list(range(size[r])) if forward else list(reversed(range(size[r])))
        after = blocks[number + 1][1].get(along, []) if number + 1 < len(blocks) else []
        stay = {x for x in sides[along] if x in after}
        last = len(order) - leave[1] - leave[2]

        def product_at(shared: str, x: int, y: int, e: int, r: str = r, p: str = p) -> None:
            other = p if shared == q else q
            three = value(**{shared: x, other: y}), value(**{shared: x, r: e}), value(**{other: y, r: e})
            for item in three:
                memory.touch(item, item[0] == "C")
            done.add(three)

        def one_index(held: str, e: int, stay: set[int], r: str = r, p: str = p, sides: Any = sides) -> None:
            other = p if held == q else q
            for y in sides[other]:
                for x in sides[held]:
                    product_at(held, x, y, e)
                memory.drop(value(**{other: y, r: e}))
            for x in set(sides[held]) - stay:
                memory.drop(value(**{held: x, r: e}))

        def turned(
            shared: str, chunk: list[int], group: int, leaving: bool, r: str = r, p: str = p, sides: Any = sides,
            stay: set[int] = stay,
        ) -> None:  # fmt: skip
            other = p if shared == q else q
            lines = sides[other] if leaving else sides[other][::-1]
            groups = [lines[i : i + group] for i in range(0, len(lines), group)]
            for item in groups if leaving else groups[::-1]:
                for x in sides[shared]:
                    for y, e in product(item, chunk):
                        product_at(shared, x, y, e)
                    if leaving:
                        for y in item:
                            memory.drop(value(**{shared: x, other: y}))
                    elif item is groups[0]:
                        for e in chunk:
                            memory.drop(value(**{shared: x, r: e}))
                for y, e in product(item, chunk):
                    memory.drop(value(**{other: y, r: e}))
            for x, e in product(set(sides[shared]) - stay, chunk):
                memory.drop(value(**{shared: x, r: e}))

        if enter[1]:
            turned(came, order[: enter[1]], enter[0], False)
        for e in order[enter[1] : enter[1] + enter[2]]:
            one_index(came, e, set())
        for e in order[enter[1] + enter[2] : last]:
            one_index(p if len(sides[p]) <= len(sides[q]) else q, e, set())
        for e in order[last : last + leave[2]]:
            one_index(along, e, stay)
        if leave[1]:
            turned(along, order[last + leave[2] :], leave[0], True)
        for x, y in product(sides[p], sides[q]):
            memory.drop(value(**{p: x, q: y}))
        forward, came, enter = not forward, along, following
    assert len(done) == size["m"] * size["n"] * size["k"] and not memory.red
    return memory


def play_bands(
    shape: Any, schedule: dict[str, Any], widths: Widths | None = None, stored: bool = False, handed: Any = NOTHING
) -> Memory:
    """H = act(A B), Y = H D in bands; ``shape`` has m, k, f, l, streams, state and a query's rows, 0 without mask.

    H is ``stored``, but for what is ``handed`` on: the last rows, and the corner by which its columns come to stay.
    """
    rows_side, k, l = schedule["side"] == "rows", shape.k, shape.l
    memory = Memory({"A", "B0", "B1", "D"}, frozenset({"U", "state"}), widths)
    bands, start = [], 0
    for run in schedule["runs"]:
        for copy in range(run["count"]):
            last = copy + 1 == run["count"]
            bands.append((range(start, start + run["extent"]), run, run["kept"][1 if last else 0]))
            start += run["extent"]
    across = shape.f if rows_side else shape.m

    def sees(i: int, j: int) -> bool:
        return not shape.sharing or j <= i // shape.sharing + shape.f - shape.m // shape.sharing

    def weights(t: int, j: int) -> list[Value]:
        return [(f"B{u}", t, j) for u in range(shape.streams)]

    for band, run, kept in bands:
        if rows_side:  # column by column of H
            needs = [
                v
                for j in range(shape.f)
                for v in [w for t in range(k) for w in weights(t, j)] + [("D", j, q) for q in range(l)]
            ]
        else:
            needs = [("Y", i, q) for i in range(shape.m) for q in range(l)]
            needs += [("A", i, t) for i in range(shape.m) for t in range(k)]
        keep = set(needs[:kept])
        own: set[Value] = set()  # what stays between the blocks of this band

        def done_with(value: Value, keep: set[Value] = keep, own: set[Value] = own) -> None:
            if value not in keep and value not in own:
                memory.drop(value)

        step = -(-across // run["blocks"])
        first, second = run["stay"]
        own |= {("A", i, t) for i in band for t in range(first)} if rows_side else {
            w for t in range(first) for j in band for w in weights(t, j)
        }  # fmt: skip
        own |= {("Y" if rows_side else "D", x, q) for x in band for q in range(second)}
        _, turned, plain = handed[1] if band[-1] + 1 == shape.m else NOTHING[1]
        alone = across - turned
        ends = range(alone - plain, alone)  # columns of H that stay beside the panel
        blocks = [range(b, min(b + step, alone - len(ends))) for b in range(0, alone - len(ends), step)]
        blocks += [range(b, b + 1) for b in ends]
        spilled = run.get("spilled", 0)
        for phase in (0, 1) if spilled else (2,):
            for block in blocks:
                rows, cols = (band, block) if rows_side else (block, band)
                if phase != 1:
                    _first(memory, shape, rows, cols, sees, weights, done_with, own)
                    for i, j in product(rows, cols):
                        memory.finish(("H", i, j))
                if spilled and phase == 0:
                    if block[0] < spilled:
                        for i, j in product(rows, cols):
                            memory.drop(("H", i, j))
                    continue
                _second(memory, shape, rows, cols, sees, done_with, own)
                for i, j in product(rows, cols):
                    if not (j in ends and i > band[-1] - handed[0]):
                        memory.drop(("H", i, j), needed=l == 0 or stored)
                if not rows_side or block is blocks[-1]:
                    for i in rows:
                        for s in range(shape.state):
                            memory.drop(("state", i, s))
            if phase == 0:  # A goes before Y comes
                for value in [v for v in memory.red if v[0] == "A"]:
                    memory.drop(value)
        if turned:
            _in_place_of_a(memory, shape, band, range(alone, across), handed)
        for value in own - keep:
            memory.drop(value)
    assert len([v for v in memory.red if v[0] != "state"]) == handed[0] * sum(handed[1][1:])
    return memory


def _first(
    memory: Memory, shape: Any, rows: Any, cols: Any, sees: Any, weights: Any, done_with: Any, own: set[Value]
) -> None:
    everything = all(("A", i, t) in own for i in rows for t in range(shape.k)) or all(
        w in own for j in cols for t in range(shape.k) for w in weights(t, j)
    )
    for i in rows:
        # the factor for outputs that come back is needed only if some do
        for s in range(min(shape.state, 2) if everything and _all_stay(shape, rows, cols, own) else shape.state):
            memory.touch(("state", i, s), True)
    for t in range(shape.k):
        a_stays, b_stays = ("A", rows[0], t) in own, weights(t, cols[0])[0] in own
        hold_a = a_stays or (not b_stays and len(rows) <= shape.streams * len(cols))
        pairs = product(cols, rows) if hold_a else product(rows, cols)
        for item, other in pairs:
            i, j = (other, item) if hold_a else (item, other)
            if sees(i, j):
                for u, w in enumerate(weights(t, j)):
                    if hold_a:  # one weight at a time: see below
                        continue
                    for value in (("A", i, t), w):
                        memory.touch(value)
                    memory.touch(("HU"[u], i, j), True)
            if not hold_a and other == cols[-1]:
                done_with(("A", i, t))
        if hold_a:
            for j in cols:
                for u, w in enumerate(weights(t, j)):
                    for i in rows:
                        if sees(i, j):
                            memory.touch(("A", i, t))
                            memory.touch(w)
                            memory.touch(("HU"[u], i, j), True)
                    done_with(w)
        for i in rows:
            done_with(("A", i, t))
        for j in cols:
            for w in weights(t, j):
                done_with(w)
    for i, j in product(rows, cols):
        memory.drop(("U", i, j))


def _in_place_of_a(memory: Memory, shape: Any, rows: range, cols: range, handed: Any) -> None:
    """The last columns of H, begun all together: one group of columns of A after another meets them and goes."""
    group = handed[1][0]
    for start in range(0, shape.k, group):
        ts = range(start, min(start + group, shape.k))
        weights = [(f"B{u}", t, j) for t in ts for u in range(shape.streams) for j in cols]
        for i in rows:
            for name, t, j in weights:
                memory.touch(("A", i, t))
                memory.touch((name, t, j))
                memory.touch(("HU"[int(name[1])], i, j), True)
            for t in ts:
                memory.drop(("A", i, t))
        for w in weights:
            memory.drop(w)
    for i, j in product(rows, cols):
        memory.drop(("U", i, j))
        memory.finish(("H", i, j))
    for j, q in product(cols, range(shape.l)):
        for i in rows:
            memory.touch(("H", i, j))
            memory.touch(("D", j, q))
            memory.touch(("Y", i, q), True)
        memory.drop(("D", j, q))
    for i, j in product(rows, cols):
        if i <= rows[-1] - handed[0]:
            memory.drop(("H", i, j))


def _all_stay(shape: Any, rows: Any, cols: Any, own: set[Value]) -> bool:
    return all(("Y", i, q) in own for i in rows for q in range(shape.l)) or all(
        ("D", j, q) in own for j in cols for q in range(shape.l)
    )


def _second(memory: Memory, shape: Any, rows: Any, cols: Any, sees: Any, done_with: Any, own: set[Value]) -> None:
    for q in range(shape.l):
        y_stays, d_stays = ("Y", rows[0], q) in own, ("D", cols[0], q) in own
        hold_y = y_stays or (not d_stays and len(rows) <= len(cols))
        for item, other in product(cols, rows) if hold_y else product(rows, cols):
            i, j = (other, item) if hold_y else (item, other)
            if sees(i, j):
                memory.touch(("H", i, j))
                memory.touch(("D", j, q))
                memory.touch(("Y", i, q), True)
            if other == (rows if hold_y else cols)[-1]:
                done_with(("D", j, q) if hold_y else ("Y", i, q))
        for i in rows:
            done_with(("Y", i, q))
        for j in cols:
            done_with(("D", j, q))
