"""What a proof about two products in a row can reach when it cuts the schedule once, into segments of equal work.

    python benchmarks/gap/two_products.py [x ...] [--quick]

Such a proof knows four things: what a segment's products touch at least (Loomis and Whitney, for first and second
products apart), that a cut holds S values, that each value held between two uses was used in a segment before it and
will be in one after it, and how many products a cell of H has. A linear program finds the cheapest schedule that they
allow, for k = l, many rows and columns, in units of sqrt(S): whatever charges and prices a proof of this kind uses, it
proves no more. A line of the table, moves for each cell of H: x = 2 k / sqrt(S), what is proven (Theorem 8, which
knows besides that a value is in whole numbers of segments), the program's value with one move and with two for a
partial sum of Y that leaves and returns, and the best schedule known. The last column is about one product of depth x
whose results need not move: the cheapest play found of the game of one row (docs/gap.rst), which a bound by rows could
not exceed.

Cells of H are *kept*, never loaded, or *moved*, loaded once at least and so stored. The variables of a type of segment
are what it holds over its left cut and over its right one, for its own use there or here, and what it does:

    AB, D, Y      operands and outputs
    open, ready   moved cells with first products on both sides of the cut, with second ones on both sides
    over          moved cells whose last first and first second product are on the two sides
    begun, full   kept cells that are not complete, that are; and what has been done of their products
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from math import nan

import highspy
import numpy as np

from pebble.bounds.chain import Chain
from pebble.bounds.chain_lines import chain_problems
from pebble.bounds.line_search import line_bound

HELD = ("AB", "D", "Y", "open", "ready", "over", "begun", "full")
STATE = (*HELD, "first_done", "second_done")
# moved and kept cells with first products here, the same for second ones, moved cells with both; kept cells that begin,
# become complete and end here; products of kept cells; how often the segment occurs
HERE = ("f_moved", "f_kept", "s_moved", "s_kept", "both", "begin", "complete", "end", "first", "second", "times")
NAMES = tuple(f"left_{name}" for name in STATE) + tuple(f"right_{name}" for name in STATE) + HERE
SHARES = (0, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 1)  # of second products
CELLS = (0.15, 0.35, 0.55, 0.75, 1, 1.3)  # touched, in units of S
SKEW = (0.7, 1, 1.4)  # values of D over values of Y, square root
WORK = (0.85, 1, 1.15, 1.3)  # products of a segment, in units of S^1.5
Row = dict[str, float]


def segments(x: float, work: float) -> Iterator[Row]:
    """Types of segments: products of both kinds, cells with each kind, values of A and B, of D, of Y."""
    k = x / 2
    for share in SHARES:
        v1, v2 = work * (1 - share), work * share
        for e1 in sorted({max(v1 / k, e) for e in CELLS}) if v1 else [0]:
            for e2 in sorted({max(v2 / k, e) for e in CELLS}) if v2 else [0]:
                for skew in SKEW if v2 else [1]:
                    ab = 2 * v1 / e1**0.5 if v1 else 0
                    d, y = (v2 / e2**0.5 * skew, v2 / e2**0.5 / skew) if v2 else (0, 0)
                    yield {"v1": v1, "v2": v2, "e1": e1, "e2": e2, "ab": ab, "d": d, "y": y}


def rules(x: float, kind: Row) -> tuple[list[Row], list[Row]]:
    """What holds in a type of segment, as sums that are at most 0, and as sums that are 0."""
    k = x / 2
    capacity = [{**{f"{side}_{name}": 1.0 for name in HELD}, "times": -1.0} for side in ("left", "right")]
    own = [
        {f"{side}_{name}": 1.0, "times": -kind[of]}
        for side in ("left", "right")
        for name, of in (("AB", "ab"), ("D", "d"), ("Y", "y"))
    ]
    cells: list[Row] = [
        {"left_open": 1, "f_moved": -1},
        {"right_open": 1, "right_over": 1, "both": 1, "f_moved": -1},
        {"left_ready": 1, "left_over": 1, "both": 1, "s_moved": -1},
        {"right_ready": 1, "s_moved": -1},
        {"f_kept": 1, "left_begun": -1, "begin": -1},
        {"begin": 1, "f_kept": -1},
        {"complete": 1, "f_kept": -1},
        {"s_kept": 1, "left_full": -1, "complete": -1},
        {"end": 1, "s_kept": -1},
        {"first": 1, "f_kept": -k},
        {"second": 1, "s_kept": -k},
        {"first": 1, "times": -kind["v1"]},
        {"second": 1, "times": -kind["v2"]},
    ]
    for side in ("left", "right"):
        cells += [{f"{side}_first_done": 1, f"{side}_begun": -k}, {f"{side}_second_done": 1, f"{side}_full": -k}]
    flows: list[Row] = [
        {"f_moved": 1, "f_kept": 1, "times": -kind["e1"]},
        {"s_moved": 1, "s_kept": 1, "times": -kind["e2"]},
        {"left_begun": 1, "begin": 1, "complete": -1, "right_begun": -1},
        {"left_full": 1, "complete": 1, "end": -1, "right_full": -1},
        {"left_first_done": 1, "first": 1, "complete": -k, "right_first_done": -1},
        {"left_second_done": 1, "second": 1, "end": -k, "right_second_done": -1},
    ]
    return capacity + own + cells, flows


def moves(kind: Row, again: float) -> Row:
    """What a segment moves: touched and not held before; ``again`` for a value of Y.

    A moved cell is loaded once for each gap in which it is not held, and stored once: one move for each segment that
    touches it, less the gaps in which it is held, less one where its first and second products meet.
    """
    touched = kind["ab"] + kind["d"] + again * kind["y"]
    held: Row = {"left_AB": -1, "left_D": -1, "left_Y": -again, "left_open": -1, "left_ready": -1, "left_over": -1}
    return {**held, "f_moved": 1, "s_moved": 1, "both": -1, "times": touched}


def least_moves(x: float, work: float, again: float) -> float:
    """Moves for each cell of the cheapest schedule that the rules allow.

    Parameters
    ----------
    x : float
        2 k / sqrt(S), with k = l.
    work : float
        Products of a segment, in units of S^1.5.
    again : float
        Moves of a value of Y that leaves and returns: 2 in truth.
    """
    kinds, width = list(segments(x, work)), len(NAMES)
    place = {name: i for i, name in enumerate(NAMES)}
    lp = highspy.HighsLp()
    start, index, value, low, high = [0], [], [], [], []

    def add(row: dict[int, float], least: float, most: float) -> None:
        index.extend(row)
        value.extend(row.values())
        start.append(len(index))
        low.append(least)
        high.append(most)

    cost = [0.0] * (width * len(kinds))
    for number, kind in enumerate(kinds):
        offset = number * width
        for name, price in moves(kind, again).items():
            cost[offset + place[name]] = price
        for group, least in zip(rules(x, kind), (-highspy.kHighsInf, 0.0), strict=True):
            for row in group:
                add({offset + place[name]: factor for name, factor in row.items() if factor}, least, 0.0)
    offsets = range(0, width * len(kinds), width)
    for name in STATE:  # what one segment hands over, another takes
        left, right = place[f"left_{name}"], place[f"right_{name}"]
        add({o + left: 1.0 for o in offsets} | {o + right: -1.0 for o in offsets}, 0.0, 0.0)
    times = place["times"]
    add({o + times: 1.0 for o in offsets}, 1.0, 1.0)
    balance = {o + times: kind["v1"] - kind["v2"] for o, kind in zip(offsets, kinds, strict=True)}
    add({column: factor for column, factor in balance.items() if factor}, 0.0, 0.0)
    # a cell goes from first to second products once: the cells of a segment are work / x on the mean
    met = {o + place[name]: 1.0 for o in offsets for name in ("both", "right_over", "complete")}
    add(met, -highspy.kHighsInf, work / x)
    lp.num_col_, lp.num_row_ = len(cost), len(low)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, [0.0] * len(cost), [highspy.kHighsInf] * len(cost)
    lp.row_lower_, lp.row_upper_ = low, high
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = start, index, value
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.passModel(lp)
    solver.run()
    return float(solver.getInfo().objective_function_value) * x / work


def best_schedule(x: float) -> float:
    """Moves for each cell of the best schedule known: row panels, or two kernels, the second in q blocks of Y.

    The first keeps rows of A, or blocks of H with turned corners.
    """
    kappa = x / 2
    first = 1 + kappa**2
    if kappa > 1:
        first = min(first, 1 + (2 * kappa * (kappa + (kappa**2 - 1) ** 0.5)) ** 0.5)
    return min(x**2, first + min(q + kappa**2 / q for q in range(1, 2 + int(x))))


def proven(x: float) -> float:
    """Theorem 8 for each cell, with so many rows and columns that their own traffic does not count."""
    capacity, many = 4_000_000, 50_000_000
    k = round(x * capacity**0.5 / 2)
    problem = chain_problems(Chain(many, k, many, k, many**2))[0]
    return line_bound(problem, capacity).elements / many**2


def row_play(x: float) -> float:
    """What one row pays for each cell, in the cheapest play found: K values of A stay, or g cells and some of A.

    Batches of g cells, in units of sqrt(S). The last a of the x values of A that a batch meets stay for the next, the
    others are loaded once a batch. A value of B comes when it is cheapest between the load of a value of A and the end
    of a cell: r of the a values are there and all g cells, or all a values and q cells.
    """
    steps = (np.arange(200) + 0.5) / 200

    def batch(g: float, a: float) -> float:
        kept = np.minimum(a * steps[:, None] + g, a + g * steps[None, :]).mean()
        return float((x - a) / g + (x - 2 * a) * g + 2 * a * kept)

    batches = (batch(g, a) for g in np.linspace(0.8, 1.2, 41) for a in np.linspace(0, min(0.9, x / 2), 46))
    return min(x * x, *batches)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("x", nargs="*", type=float, default=[1.33, 1.6, 1.8, 2.0, 2.67, 3.58])
    parser.add_argument("--smallest", action="store_true", help="one x and one size of segments: does it run?")
    parser.add_argument("--json", action="store_true", help="the same numbers as a document")
    parser.add_argument("--quick", action="store_true", help="without the program: what is proven, and the schedules")
    args = parser.parse_args()
    sizes = () if args.quick else WORK[:1] if args.smallest else WORK
    rows = []
    for x in args.x[:1] if args.smallest else args.x:
        single, two = (max((least_moves(x, work, again) for work in sizes), default=nan) for again in (1, 2))
        rows.append((x, proven(x), single, two, best_schedule(x), row_play(x)))
    if args.json:
        names = ("x", "proven", "one", "two", "schedule", "row")
        print(json.dumps({"rows": [dict(zip(names, row, strict=True)) for row in rows]}))
        return
    print("    x  proven  Y at one  Y at two  schedule   one row")
    for row in rows:
        print("{:5.2f}  {:6.3f}  {:8.3f}  {:8.3f}  {:8.3f}  {:8.3f}".format(*row))


if __name__ == "__main__":
    main()
