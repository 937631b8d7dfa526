"""The program that says what a proof with one cut can reach: between what is proven and the schedules known."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def asked(expression: str) -> Any:
    """An expression's value, in a process of its own: highspy goes with no other library that carries HiGHS."""
    code = f"import json, two_products as t; print(json.dumps({expression}))"
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT / "benchmarks" / "gap"), str(ROOT)])}
    spec = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | paths, capture_output=True, text=True, check=True
    )
    return json.loads(spec.stdout.splitlines()[-1])  # a library may say its name first


def test_between_the_segment_bound_and_the_schedules() -> None:
    single, two, best = asked("[t.least_moves(1.8, 1, 1), t.least_moves(1.8, 1, 2), t.best_schedule(1.8)]")
    assert 2 * 1.8 - 1 < single < two < best


def test_where_row_panels_are_proven_best_the_program_says_so() -> None:
    assert asked("t.least_moves(1.0, 1, 1)") == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(("x", "moves"), [(1.0, 1.0), (2.0, 4.0), (4.0, 8.8637)])
def test_schedules(x: float, moves: float) -> None:
    """A row panel; that or two kernels that hold an operand; two kernels that hold blocks of their results."""
    assert asked(f"t.best_schedule({x})") == pytest.approx(moves, abs=1e-4)


def test_proven() -> None:
    assert 2.2 < asked("t.proven(1.6)") < 2.56


def test_a_play_of_one_row_pays_less_than_cells_or_operands_alone() -> None:
    plays = asked("[t.row_play(x) for x in (1.0, 1.8, 3.0)]")
    assert plays == pytest.approx([1.0, 3.047, 5.447], abs=2e-3)
