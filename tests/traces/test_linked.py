"""Loops that only other loops call are compiled into these, and stay what they were."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from pebble.traces.jit import Lazy, inner, merged


@merged
def _doubled(values, at: int) -> int:
    return 2 * values[at]


@inner
def _sum_from(values, at: int) -> int:
    if at < 0:
        raise ValueError("before the first")
    total = 0
    for i in range(at, len(values)):
        total += _doubled(values, i)
    return total


def _made(loop):
    return loop.made() if isinstance(loop, Lazy) else loop


@pytest.fixture(scope="module")
def sums():
    """A loop that calls the others, compiled anew: of what numba reads from a file it compiles no part."""
    sum_from = _made(_sum_from)

    @numba.njit
    def loop(values, result, first: int) -> int:
        for i in range(len(values)):
            result[i] = sum_from(values, first + i)
        return sum_from(values, first)

    return loop


def _address(loop) -> int:
    (compiled,) = loop.overloads.values()
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cpython_wrapper_name)


def test_callers_have_what_they_call_and_it_does_not_run_alone(sums) -> None:
    result = np.zeros(5, np.int64)
    assert sums(np.arange(5), result, 0) == 10 * 2
    assert result.tolist() == [20, 20, 18, 14, 8]
    assert _address(sums)
    assert not _address(_made(_sum_from))
    assert not _address(_made(_doubled))


def test_what_they_raise_comes_through(sums) -> None:
    with pytest.raises(ValueError, match="before the first"):
        sums(np.arange(5), np.zeros(5, np.int64), -1)
