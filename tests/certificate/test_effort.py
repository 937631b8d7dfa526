"""What a small file can make the checker do is limited: it refuses instead of running for hours or filling memory."""

from __future__ import annotations

import random
from math import ceil
from typing import Any

import pytest

from pebble.certificate import RefusedError, cutting_planes, games
from pebble.certificate.cutting_planes import HEADER, check_log
from pebble.certificate.formula import at_least, check_first
from pebble.certificate.games import read_game
from pebble.certificate.geometry import Box, prove_touched
from pebble.certificate.lines import read_times


def test_windows_far_apart_are_not_counted_position_by_position() -> None:
    assert read_times(2**32, 2**31, 7, 2**30) == [(1, 4 * 7 * 2 * 7)]


def largest(box: Box, v: int, total: int) -> bool:
    """Whether some whole a + b + c = total are enough for v products."""
    low = [ceil(x) for x in box.least(v)]
    return any(
        box.overlap * a * b * (total - a - b) >= v * v
        for a in range(low[0], total)
        for b in range(low[1], total - a - low[2] + 1)
    )


@pytest.mark.parametrize("seed", range(20))
def test_whole_numbers_are_proved_exactly_where_none_are_enough(seed: int) -> None:
    rnd = random.Random(seed)
    results = set()
    for _ in range(100):
        box = Box(*(rnd.randint(1, rnd.choice([3, 9, 30])) for _ in range(3)), rnd.choice([1, 1, 2, 4, 9]))
        v, spec = rnd.randint(1, min(200, box.rows * box.cols * box.depth)), rnd.randint(1, 40)
        share = {"products": v, "segments": 1, "touched": spec, "whole_numbers": True}
        try:
            prove_touched(box, v, share, "share")
            proved = True
        except RefusedError:
            proved = False
        assert proved == (not largest(box, v, spec - 1)), (box, v, spec)
        results.add(proved)
    assert results == {True, False}


def test_numbers_of_many_digits_count_as_many_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    formula = [at_least([(1, x) for x in range(1, 10)], 1)]
    monkeypatch.setattr(cutting_planes, "MAX_HELD_TERMS", 100)
    for factor, most in ((2, 9), (2**4000, 1)):
        log = [HEADER, "f", *[f"p 1 {factor} *"] * most]
        with pytest.raises(RefusedError, match="without a contradiction"):
            check_log(formula, "\n".join(log))
        with pytest.raises(RefusedError, match=r"100 (terms )?at one time"):
            check_log(formula, "\n".join([*log, log[-1]]))


def test_constraints_that_wait_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    formula = [at_least([(1, x) for x in range(1, 10)], 1)]
    monkeypatch.setattr(cutting_planes, "MAX_HELD_TERMS", 100)
    assert_refused(formula, "p " + "1 2 * " * 9 + "+ " * 8, "without a contradiction")
    assert_refused(formula, "p " + "1 2 * " * 10 + "+ " * 9, "100 terms at one time")
    assert_refused(formula, "p 1 " + "1 + " * 100, "without a contradiction")  # two at a time


@pytest.mark.parametrize("line", ["p 1 " + "1 + " * 100, "rup +1 x1 +1 ~x1 >= 1 ;\n" * 300, "rup +1 x10 >= 1 ;"])
def test_what_operations_and_propagations_read_is_limited(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # x1 >= x2 >= .. >= x10, the last first: unit propagation from x10 = 0 takes a round for each
    chain = [at_least([(1, 10)], 1) if "x10" in line else at_least([(1, x) for x in range(1, 10)], 1)]
    chain += [at_least([(1, x), (-1, x + 1)], 0) for x in range(9, 0, -1)] if "x10" in line else []
    assert_refused(chain, line, "without a contradiction")
    monkeypatch.setattr(cutting_planes, "MAX_READ_TERMS", 10)
    assert_refused(chain, line, "more than 10 terms to check")


def test_a_line_is_not_longer_than_what_is_read_at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    formula = [at_least([(1, 1)], 1), at_least([(1, -1)], 1)]
    log = f"{HEADER}\nf 2\n" + "\n" * 5000 + "pol 1 2 +\n" + "* a remark\n" * 500 + "c 3"
    assert check_log(formula, log) == 3
    monkeypatch.setattr(cutting_planes, "MAX_LINE", 640)  # of which 40 begin a block
    assert check_log(formula, log) == 3
    with pytest.raises(RefusedError, match="a line has more than 600 characters"):
        check_log(formula, log.replace("1 2 +", "1" + " 2 +" * 200))


def assert_refused(formula: list[Any], line: str, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        check_log(formula, f"{HEADER}\nf\n{line}\n")


def test_operands_of_a_pebbling_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [["a", 1, "input"], ["b", 1, "input"], ["c", 1, "output"]]
    fields = {"variant": "recompute", "capacity": 3, "values": values, "tasks": [["t", 2, [0, 1], []]]}
    again = [["compute", "t"], ["delete", "c"]] * 4
    moves = [["load", "a"], ["load", "b"], *again, ["compute", "t"], ["store", "c"]]
    assert games.replay(read_game(fields, "game"), moves, "moves") == 3
    monkeypatch.setattr(games, "MAX_OPERANDS", 9)
    with pytest.raises(RefusedError, match="more than 9 operands"):
        games.replay(read_game(fields, "game"), moves, "moves")


def test_the_size_of_a_formula_is_known_before_its_symmetries_are_followed() -> None:
    n = 100
    values = [[f"a{i}", 1, "input"] for i in range(n)] + [[f"c{i}", 1, "output"] for i in range(n)]
    tasks = [[f"t{i}", n + i, [i], []] for i in range(n)]
    game = read_game({"variant": "one-shot", "capacity": 3, "values": values, "tasks": tasks}, "game")
    turn = [(i + 1) % n for i in range(n)] + [n + (i + 1) % n for i in range(n)]
    with pytest.raises(RefusedError, match="games of 1 to 40 tasks"):
        check_first(game, [0], [turn], "at")
