"""The best bound on a small product from what its segments touch, as a linear program over all possible segments.

    python benchmarks/gap/segments.py benchmarks/gap/segments.csv

A segment touches a values of A, b of B and c cells, and does v products: v^2 <= a b c, v <= n a, v <= m b, v <= k c. A
column is a triple of whole numbers for its v, in the first segment, in the last, or between. Each has variables for
what it holds at its start and at its end (S values at most), loads, stores and initialises. Rows: all products are
done, every value of A and of B is loaded, every cell is initialised once and stored at last, what is held at the end of
one segment is held at the start of another. Segments are cut by work, into h equal ones, or by moves, T each (T = S:
those of Hong and Kung); the least sum of moves is a bound. So its dual is: multipliers are rounded to fractions, and
what they lack at a column is paid for at the most that the column can be, so that the number is exact.

One line for each row of exact.csv with a product: the bound of today, the best of the program by work and by moves over
all h and all T, and the optimum.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import NamedTuple

from ortools.linear_solver import pywraplp

COLUMNS = ("shape", "capacity", "bound", "by_work", "segments", "by_moves", "moves", "optimum")
FIRST, BETWEEN, LAST = range(3)
DENOMINATOR = 1 << 30  # of multipliers
Sum = dict[int, int]


class Program:
    """Minimise costs times x >= 0, with sums of x between whole numbers, each variable at most some number."""

    def __init__(self) -> None:
        self.costs: list[int] = []
        self.most: list[int] = []
        self.rows: list[tuple[Sum, int | None, int | None]] = []

    def variable(self, cost: int, most: int) -> int:
        """Its number."""
        self.costs.append(cost)
        self.most.append(most)
        return len(self.costs) - 1

    def add(self, row: Sum, low: int | None, high: int | None) -> None:
        """A sum between two numbers."""
        self.rows.append((row, low, high))

    def bound(self) -> int:
        """A number that the least sum is not below, exactly; 0 where the solver finds none."""
        solver = pywraplp.Solver.CreateSolver("GLOP")
        none = solver.infinity()
        variables = [solver.NumVar(0, none, "") for _ in self.costs]
        for variable, cost in zip(variables, self.costs, strict=True):
            solver.Objective().SetCoefficient(variable, cost)
        solver.Objective().SetMinimization()
        constraints = []
        for row, low, high in self.rows:
            constraint = solver.Constraint(-none if low is None else low, none if high is None else high)
            for number, factor in row.items():
                constraint.SetCoefficient(variables[number], factor)
            constraints.append(constraint)
        if solver.Solve() != pywraplp.Solver.OPTIMAL:
            return 0
        total, lacking = Fraction(0), [Fraction(cost) for cost in self.costs]
        for constraint, (row, low, high) in zip(constraints, self.rows, strict=True):
            multiplier = Fraction(round(constraint.dual_value() * DENOMINATOR), DENOMINATOR)
            side = low if multiplier > 0 else high
            if not multiplier or side is None:  # a multiplier of the wrong sign counts as none
                continue
            total += multiplier * side
            for number, factor in row.items():
                lacking[number] -= multiplier * factor
        return ceil(total + sum(min(lack, Fraction(0)) * most for lack, most in zip(lacking, self.most, strict=True)))


class Product(NamedTuple):
    """C := A B, what fast memory holds, and moves that suffice."""

    m: int
    n: int
    k: int
    capacity: int
    enough: int  #: and no fewer than the products: no segment occurs more often

    @property
    def work(self) -> int:
        """Products."""
        return self.m * self.n * self.k

    def least_triples(self, products: int) -> list[tuple[int, int, int]]:
        """(a, b, c) that permit so many products, none of them at least another in all three."""
        m, n, k = self.m, self.n, self.k
        found = []
        for a in range(-(-products // n), m * k + 1):
            for b in range(-(-products // m), k * n + 1):
                c = max(-(-products * products // (a * b)), -(-products // k))
                if c <= m * n:
                    found.append((a, b, c))
        return [
            one
            for one in found
            if not any(o != one and all(x <= y for x, y in zip(o, one, strict=True)) for o in found)
        ]


def program(product: Product, works: dict[int, int | None], moves: int | None) -> Program:
    """Segments of these works, so many of each (None: any number); with ``moves`` each but the last has so many."""
    m, n, k, S, enough = product
    result = Program()
    total: dict[str, Sum] = {name: {} for name in ("work", "load A", "load B", "begin", "store", "A", "B", "C")}
    places: dict[int, Sum] = {FIRST: {}, BETWEEN: {}, LAST: {}}
    for work, count in works.items():
        of_work: Sum = {}
        for a, b, c in product.least_triples(work):
            for place in (FIRST, BETWEEN, LAST):
                times = result.variable(0, enough)
                x = {name: result.variable(name != "begin", enough) for name in ("load A", "load B", "load C")}
                x |= {name: result.variable(name != "begin", enough) for name in ("store", "begin")}
                starts = {name: result.variable(0, enough * S) for name in "ABC"} if place != FIRST else {}
                ends = {name: result.variable(0, enough * S) for name in "ABC"} if place != LAST else {}
                for name, least in (("A", a), ("B", b), ("C", c)):
                    there = {x[f"load {name}"]: 1} | ({starts[name]: 1} if starts else {})
                    there |= {x["begin"]: 1} if name == "C" else {}
                    result.add({**there, times: -least}, 0, None)
                    after = {ends[name]: -1} if ends else {}
                    # a cell that was there is held at the end, or was stored; an operand may be dropped
                    result.add(
                        {**there, **after, **({x["store"]: -1} if name == "C" else {})}, 0, 0 if name == "C" else None
                    )
                    total[name] |= {starts[name]: 1} if starts else {}
                    total[name] |= {ends[name]: -1} if ends else {}
                for held in (starts, ends):
                    if held:
                        result.add({**dict.fromkeys(held.values(), 1), times: -S}, None, 0)
                if moves:
                    moved = {x[name]: 1 for name in ("load A", "load B", "load C", "store")}
                    result.add({**moved, times: -moves}, None if place == LAST else 0, 0)
                places[place][times] = of_work[times] = 1
                total["work"][times] = work
                for name in ("load A", "load B", "begin", "store"):
                    total[name][x[name]] = 1
        if count is not None:
            result.add(of_work, count, count)
    result.add(total["work"], product.work, None)
    for name, least, most in (
        ("load A", m * k, None), ("load B", k * n, None), ("begin", m * n, m * n), ("store", m * n, None),
        ("A", 0, 0), ("B", 0, 0), ("C", 0, 0),
    ):  # fmt: skip
        result.add(total[name], least, most)
    for place in (FIRST, LAST):
        result.add(places[place], 1, 1)
    return result


def by_work(product: Product) -> tuple[int, int]:
    """The best bound of h segments of equal work, whole shares; and h."""
    best = (0, 0)
    for segments in range(2, product.work + 1):
        share, more = divmod(product.work, segments)
        works = {share: segments - more} | ({share + 1: more} if more else {})
        best = max(best, (program(product, works, None).bound(), segments))
    return best


def by_moves(product: Product) -> tuple[int, int]:
    """The best bound of segments of T moves, T below the compulsory so that there are two; and T."""
    compulsory = product.m * product.k + product.k * product.n + product.m * product.n
    works = dict.fromkeys(range(1, product.work + 1))
    tried = range(1, min(compulsory, 2 * product.capacity + 1))
    return max((program(product, works, moves).bound(), moves) for moves in tried)


def rows(table: Path, smallest: bool) -> Iterator[dict[str, str]]:
    """The products of a table of optima."""
    with table.open(newline="") as file:
        known = [row for row in csv.DictReader(file) if row["family"] == "gemm" and row["optimum"]]
    for row in known[:1] if smallest else known:
        m, n, k = map(int, row["shape"].split("x"))
        product = Product(m, n, k, int(row["capacity"]), max(m * n * k, int(row["schedule_elements"])))
        (work, segments), (moved, moves) = by_work(product), by_moves(product)
        numbers = (row["bound"], work, segments, moved, moves, row["optimum"])
        yield dict(zip(COLUMNS, (row["shape"], row["capacity"], *map(str, numbers)), strict=True))


def main() -> None:
    """Write the table and say how the program compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--smallest", action="store_true", help="one row: does it run?")
    spec = parser.parse_args()
    result = list(rows(Path(__file__).with_name("exact.csv"), spec.smallest))
    with spec.csv.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(result)
    for name in ("by_work", "by_moves"):
        shares = [int(row[name]) / int(row["bound"]) for row in result]
        wrong = sum(int(row[name]) > int(row["optimum"]) for row in result)
        print(
            f"{name}: {min(shares):.3f} to {max(shares):.3f} of the bound, {wrong} of {len(result)} above the optimum"
        )


if __name__ == "__main__":
    main()
