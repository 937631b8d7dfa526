"""The program over histories of values: its prices against all histories, its sums against bounds and optima."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# of every history of a value in three segments the price, its moves counted from the gaps between its uses
EVERY_HISTORY = """
from itertools import product
import random
import numpy as np

def least(values, program, duals):
    tables = list(program.prices(values, duals))
    last, move = len(values.done[0]) - 1, values.count / program.capacity
    found = []
    for middle in product(range(last + 1), repeat=2):
        steps = (0, *middle, last)
        if any(a > b for a, b in zip(steps, steps[1:])):
            continue
        used = [t for t in range(3) if steps[t + 1] > steps[t]]
        price = sum(tables[t][0][steps[t], steps[t + 1]] for t in used)
        for held in product((False, True), repeat=len(used) - 1):
            room, moves, stored = 0.0, values.begins, False
            for (before, after), stays in zip(zip(used, used[1:]), held):
                complete = values.both and steps[before + 1] >= values.steps
                if stays:
                    room += sum(tables[t][1] for t in range(before, after))
                elif complete:
                    moves += 1 + (not stored)
                    stored = True
                else:
                    moves += values.again
            found.append(price + room + move * moves)
    return min(found)

draw = random.Random(4)
worst = 0.0
for trial in range(60):
    nest = h.chain(Ffn(3, 2, 3, 2, gated=trial % 2 == 1), 2)
    program = h.Program(nest, 6, ((0.0, 1.0),) * 3)
    duals = {key: draw.uniform(-3, 3) for key in program.row}
    for key in duals:
        if key[0] not in ("count", "first", "second"):
            duals[key] = -abs(duals[key])
    for values in nest.values:
        price, history = program.cheapest(values, duals)
        worst = max(worst, abs(price - least(values, program, duals)))
        room = {t: -duals["cut", str(t)] * values.count / 6 for t in range(2)}
        tables = list(program.prices(values, duals))
        steps = (0, *history.done)
        again = sum(tables[t][0][steps[t], steps[t + 1]] for t in range(3) if steps[t + 1] > steps[t])
        again += sum(room[t] for t in history.held) + history.moves * values.count / 6
        worst = max(worst, abs(price - again))
print(json.dumps(worst))
"""


def asked(code: str) -> Any:
    """What a program prints, in a process of its own: highspy goes with no other library that carries HiGHS."""
    head = "import json, histories as h\nfrom pebble.workloads import Ffn, Gemm\n"
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT / "benchmarks" / "gap"), str(ROOT)])}
    spec = subprocess.run(
        [sys.executable, "-c", head + code], env=os.environ | paths, capture_output=True, text=True, check=True
    )
    return json.loads(spec.stdout.splitlines()[-1])  # a library may say its name first


def test_the_cheapest_history_is_the_least_of_all() -> None:
    assert asked(EVERY_HISTORY) < 1e-9


def test_of_one_product_it_says_what_is_proved() -> None:
    """8192^3 with 50 MiB: Theorem 7 proves 256,901,120 values, in four segments."""
    code = "print(json.dumps(h.Program(h.product(Gemm(8192, 8192, 8192), 12), 50 * 2**19, ((1, 1),) * 4).solve()[:2]))"
    least, proved = asked(code)
    assert proved <= least * (1 + 1e-9)
    assert least == pytest.approx(256_901_120, rel=1e-3)


# tokens, d, hidden, d_out, gated; S; segments; and the optimum (benchmarks/gap/exact.csv). Steps are single products.
SMALL = [
    ((3, 2, 2, 2, False), 5, 4, 32),
    ((2, 3, 2, 3, False), 5, 3, 33),
    ((3, 1, 2, 3, False), 6, 3, 28),
    ((2, 2, 2, 2, True), 6, 3, 27),
    ((3, 2, 1, 2, True), 5, 3, 24),
]


@pytest.mark.parametrize(("shape", "capacity", "segments", "optimum"), SMALL)
def test_no_optimum_is_below_it(
    shape: tuple[int, int, int, int, bool], capacity: int, segments: int, optimum: int
) -> None:
    """The optimal schedule is one that the program allows, in whatever case it is."""
    found = asked(f"print(json.dumps(h.cases(h.chain(Ffn(*{shape}), 6), {capacity}, {segments}, 30)))")
    assert found["free"] <= found["high"] + 1e-6
    assert found["low"] <= optimum + 1e-6
    assert found["free"] <= optimum + 1e-6


@pytest.mark.parametrize("name", ["products", "random", "chains"])
def test_no_schedule_is_below_what_is_recorded(name: str) -> None:
    """A schedule is one that the program allows, but for shares of products that are no whole steps."""
    with (ROOT / "benchmarks" / "gap" / f"reach_{name}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            assert float(row["free"]) <= 1.003 * float(row["schedule"])
            assert not row["reach"] or float(row["free"]) <= float(row["reach"]) * 1.003
