"""Thousands of random command lines: exit codes as documented, one sentence for a mistake, and Ctrl-C always works."""

from __future__ import annotations

import pytest

from tests.cli.random_command_lines import faults

pytestmark = pytest.mark.posix


@pytest.mark.parametrize("seed", [1])
def test_a_few_command_lines(seed):
    result = faults(seed, 40)
    assert not result, "\n".join(result)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 104))
def test_many_command_lines(seed):
    result = faults(seed, 1000)
    assert not result, "\n".join(result)
