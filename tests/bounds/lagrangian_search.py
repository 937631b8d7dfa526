"""The best prices of the theorem of priced lines: a linear program whose rows are ways to share a value's products.

What the checker charges is the least over such ways, a number of touches of each kind with real numbers of products; so
it is concave in the prices, and rows are added where the last prices charge too much. Only prices come from here; room
has none after a segment, so these are the best of the old theorem.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np

from pebble.certificate.lagrangian_lines import LINES, Units
from pebble.system.isolation import Library, call
from tests.bounds.lagrangian_game import MULTIPLIERS, Shape, proof_of, work_of

Touch = tuple[float, float, float]  # gap, entropy, product
Row = dict[str, float]


def spread(
    length: int, touches: Sequence[Touch], n: int, free: bool, fixed: int | None
) -> list[tuple[int, bool, float, float]]:
    """The least way for n touches with a gap: (kind, whether with a gap, how many, products of each)."""

    def at(theta: float) -> list[tuple[int, bool, float, float]]:
        many = [exp(max(-150.0, min(150.0, (theta - a) / mu - 1))) for _, mu, a in touches]
        every = range(len(touches))
        results = []
        if n:
            i = min(every, key=lambda i: touches[i][0] - touches[i][1] * many[i])
            results.append((i, True, float(n), many[i]))
        if free:
            i = max(every, key=lambda i: touches[i][1] * many[i])
            results.append((i, False, 1.0, many[i]))
        if fixed is not None:
            results.append((fixed, False, 1.0, many[fixed]))
        return results

    def total(ways: list[tuple[int, bool, float, float]]) -> float:
        return sum(number * c for _, _, number, c in ways)

    low = min(a + mu * (1 + log(length / (n + 2))) for _, mu, a in touches)
    high = max(a + mu * (1 + log(length)) for _, mu, a in touches)
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if total(at(middle)) < length else (low, middle)
    few, lots = at(low), at(high)
    share = 0.0 if total(lots) <= total(few) else (length - total(few)) / (total(lots) - total(few))
    share = max(0.0, min(1.0, share))
    mixed = [(i, gap, number * (1 - share), c) for i, gap, number, c in few]
    mixed += [(i, gap, number * share, c) for i, gap, number, c in lots]
    return [item for item in mixed if item[2] > 0]


class Program:
    """Prices as columns; what a value of each kind is charged, and G, as columns too."""

    def __init__(
        self, shape: Shape, form: str, units: Units, capacity: int, segments: int, ends: Sequence[int]
    ) -> None:
        self.shape, self.form, self.units, self.capacity, self.h, self.ends = (
            shape,
            form,
            units,
            capacity,
            segments,
            ends,
        )
        self.kinds = range(len(ends))
        self.columns: dict[str, int] = {}
        import highspy

        self.solver = highspy.Highs()
        self.solver.setOptionValue("output_flag", False)
        m, k, f, l = shape
        gated = form == "gated chain"
        self.counts = {"A": m * k, "B": k * f * (1 + gated), "D": f * l, "Y": m * l, "H": m * f, "U": m * f * gated}
        scale = max(units) / sqrt(capacity)
        for value, count in self.counts.items():
            self.column(value, -1e6, 1e6, count)
        self.column("G", -inf, inf, -segments)
        self.column("R", 0, 4, capacity)
        for i in self.kinds:
            self.column(f"before {i}", 0, 4)
            self.row({f"before {i}": 1, "R": -1}, 0)
            for key in ("first", "second"):
                self.column(f"{key} {i}", 0.02 * scale, 20 * scale)
            for line in LINES:
                self.column(f"{line} {i}", -20 * scale, 20 * scale)
            for once in (1, 2):
                self.column(f"at most {once} {i}", 0, once)
                self.row({f"before {i}": 1, f"at most {once} {i}": -1}, 0)
        low = 0
        work = work_of(shape, form)
        for i, end in enumerate(ends):
            for v in {work // segments, -(-work // segments)}:
                for second in {low, min(end, v)} if low <= v else ():
                    first = v - second
                    row = {"G": 1.0, f"before {i}": -float(capacity)}
                    row[f"first {i}"], row[f"second {i}"] = (-x * log(max(1, x)) for x in (first, second))
                    row |= {f"{line} {i}": -float(second if line in LINES[3:] else first) for line in LINES}
                    self.row(row, 0)
            low = end + 1

    def column(self, name: str, low: float, high: float, worth: float = 0) -> None:
        self.columns[name] = len(self.columns)
        self.solver.addCol(-worth, low, high, 0, np.array([], dtype=np.int32), np.array([]))

    def row(self, row: Row, least: float) -> None:
        """The sum is ``least`` or more."""
        places = np.array([self.columns[name] for name in row], dtype=np.int32)
        self.solver.addRow(least, inf, len(row), places, np.array(list(row.values()), dtype=float))

    def touches(self, line: str, gap: tuple[str, int]) -> list[Touch]:
        """At the last prices; ``gap``: its column, and the width."""
        entropy = "second" if line in LINES[3:] else "first"
        return [
            (gap[1] * self.now[f"{gap[0]} {i}"], self.now[f"{entropy} {i}"], self.now[f"{line} {i}"])
            for i in self.kinds
        ]

    def ways(
        self, line: str, length: int, gap: tuple[str, int], numbers: Sequence[int], free: bool, fixed: int | None = None
    ) -> Iterator[tuple[float, Row]]:
        """What so many touches cost: the sum and its terms."""
        entropy, touches = "second" if line in LINES[3:] else "first", self.touches(line, gap)
        before, falls = inf, True
        for n in numbers:
            row: Row = {}
            for i, again, number, c in spread(length, touches, n, free, fixed):
                row[f"{entropy} {i}"] = row.get(f"{entropy} {i}", 0) + number * c * log(c)
                row[f"{line} {i}"] = row.get(f"{line} {i}", 0) + number * c
                if again:
                    row[f"{gap[0]} {i}"] = row.get(f"{gap[0]} {i}", 0) + number * gap[1]
            cost = sum(self.now[name] * x for name, x in row.items())
            yield cost, row
            if cost > before and not falls:  # convex in n
                return
            before, falls = cost, cost < before

    def whole(self, line: str, length: int, gap: tuple[str, int] | None = None) -> Iterator[tuple[float, Row]]:
        """All in one segment."""
        for i in self.kinds:
            entropy = "second" if line in LINES[3:] else "first"
            row = {f"{entropy} {i}": length * log(length), f"{line} {i}": float(length)}
            row |= {f"{gap[0]} {i}": float(gap[1])} if gap else {}
            yield sum(self.now[name] * x for name, x in row.items()), row

    def value(self, line: str, length: int, gap: tuple[str, int]) -> tuple[float, Row]:
        """The least for a value without what is certain."""
        results = [*self.whole(line, length), *self.ways(line, length, gap, range(1, min(length, self.h)), True)]
        return min(results, key=lambda way: way[0])

    def cell(self) -> tuple[float, Row, float]:
        """The least for a cell of H, and what is certain of that."""
        _, k, _, l = self.shape
        w, added = self.units.read, ("at most 2", self.units.hidden)
        again = ((0, ("before", w)), (w, ("at most 1", w)))
        results = []
        first, terms = self.value("cells", k, added)
        for certain, gap in again:
            ways = [
                *self.whole("cells again", l, gap),
                *self.ways("cells again", l, gap, range(2, min(l, self.h) + 1), False),
            ]
            results += [(first + cost + certain, [terms, row], certain) for cost, row in ways]
        for i in self.kinds:
            before = [list(self.whole("cells", k))[i]]
            mine = f"at most 2 {i}"
            for cost, row in self.ways("cells", k, added, range(min(k, self.h) - 1), True, i):
                row[mine] = row.get(mine, 0) + self.units.hidden
                before.append((cost + self.now[mine] * self.units.hidden, row))
            after = [(*list(self.whole("cells again", l))[i], 0)]
            for certain, gap in again:
                ways = self.ways("cells again", l, gap, range(1, min(l, self.h)), False, i)
                after += [(cost + certain, row, certain) for cost, row in ways]
            single, two = min(before, key=lambda way: way[0]), min(after, key=lambda way: way[0])
            results.append((single[0] + two[0], [single[1], two[1]], two[2]))
        cost, rows, certain = min(results, key=lambda way: way[0])
        joined: Row = {}
        for row in rows:
            for name, x in row.items():
                joined[name] = joined.get(name, 0) + x
        return cost, joined, certain

    def solve(self, rounds: int) -> dict[str, Any]:
        """The proof with the best prices found."""
        m, k, f, _ = self.shape
        w, hidden, p, written = self.units
        columns = f * (2 if self.form == "gated chain" else 1)
        best, result = -inf, None
        for _ in range(rounds):
            self.solver.run()
            now = self.solver.getSolution().col_value
            self.now = {name: now[i] for name, i in self.columns.items()}
            spec = -self.solver.getInfo().objective_function_value
            charges = {
                "A": (*self.value("A", columns, ("at most 1", w)), w),
                "B": (*self.value("B", m, ("at most 1", w)), w),
                "D": (*self.value("D", m, ("at most 1", w)), w),
                "Y": (*self.value("Y", f, ("at most 2", p)), written),
                "H": self.cell(),
                "U": (*self.value("cells", k, ("at most 2", hidden)), 0),
            }
            proved = spec
            for value, (cost, row, certain) in charges.items():
                total = cost + (certain if value != "H" else 0)
                over = self.now[value] - total
                proved -= over * self.counts[value]
                if over > 1e-9 and self.counts[value]:
                    self.row({**row, value: -1.0}, -float(certain))
            if proved > best:
                best, result = proved, dict(self.now)
            if spec - best < 1e-4 * abs(spec) + 1e-3:
                break
        assert result is not None
        kinds = [{key: result[f"{key} {i}"] for key in MULTIPLIERS if key != "after"} for i in self.kinds]
        for kind in kinds:
            kind["before"] = max(0.0, kind["before"])
        return proof_of(self.form, self.h, self.ends, kinds)


def _solve(*arguments: Any) -> dict[str, Any]:
    *program, rounds = arguments
    return Program(*program).solve(rounds)


def best_proof(
    shape: Shape, form: str, units: Units, capacity: int, segments: int, ends: Sequence[int], rounds: int = 40
) -> dict[str, Any]:
    """A proof with about the best prices for ranges that end there; highspy is not loaded here."""
    result: dict[str, Any] = call(
        Library.HIGHS, f"{__name__}:_solve", shape, form, units, capacity, segments, ends, rounds
    )
    return result
