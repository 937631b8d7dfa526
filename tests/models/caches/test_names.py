"""Names of cache models, and a model of one's own from one module."""

from __future__ import annotations

import importlib
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings

from pebble.cli import main
from pebble.errors import InputError, UnknownNameError
from pebble.models.caches import parse_policy, policies_help, registry
from tests.models.caches.literal import Case, Line, cases, make_trace, totals

EXTENDING = Path(__file__).resolve().parents[3] / "docs" / "extending.rst"


@pytest.mark.parametrize(
    "text",
    ["lru:fifo", "set-0", "set-99", "partitions-2:opt", "opt+warm", "opt+no-write-allocate", "chiplets-8",
     "lru+llc-1MiB", "lru+pad-1", "sectored:fifo", "oldest-of-0", "partitions-0", "chiplets-8+llc-5el",
     "partitions-2+no-write-allocate", "set-4:oldest-of-2"],
)  # fmt: skip
def test_names_without_meaning(text: str) -> None:
    with pytest.raises(InputError, match="got"):
        parse_policy(text)


@pytest.mark.parametrize("text", ["lruu", "", "set", "lru+hot", "oldest-of-x", "lru+map-mixed", "+", "lru+"])
def test_unknown_names(text: str) -> None:
    with pytest.raises(UnknownNameError):
        parse_policy(text)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The policy that the documentation adds, from the one module that it shows."""
    text = EXTENDING.read_text()
    block = text[text.index('   """A cache that never evicts') : text.index('``parse_policy("frozen-50")')]
    before = list(registry._KINDS)
    folder = tmp_path_factory.mktemp("policy")
    (folder / "frozen_policy.py").write_text(textwrap.dedent(block))
    sys.path.insert(0, str(folder))
    importlib.import_module("frozen_policy")
    yield
    sys.path.remove(str(folder))
    registry._KINDS[:] = before
    parse_policy.cache_clear()


@settings(max_examples=100, deadline=None)
@given(cases())
def test_a_policy_from_one_module(frozen: None, case: Case) -> None:
    sizes, touches, capacity = case
    result = parse_policy("frozen-100").simulate(make_trace(sizes, touches, 3), capacity)
    count, held, used = Line(), set[int](), 0
    for tile, op, _ in touches:
        if tile not in held and used + sizes[tile] <= capacity:
            held.add(tile)
            used += sizes[tile]
            count.reads, count.writes = count.reads + sizes[tile] * (not op), count.writes + sizes[tile] * op
        elif tile not in held:
            count.reads, count.writes = count.reads + sizes[tile] * (not op), count.writes + sizes[tile] * op
            count.backs += sizes[tile] * op
        if op and tile in held:
            count.dirty |= set(range(sum(sizes[:tile]), sum(sizes[: tile + 1])))
    assert totals(result) == count.totals()


def test_a_policy_from_one_module_is_known_everywhere(frozen: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_policy("frozen-50+warm").description == "what came first stays, in 50 % of the room, warm"
    assert "frozen-100" in policies_help()
    with pytest.raises(UnknownNameError, match="did you mean frozen-100"):
        parse_policy("frozen")
    with pytest.raises(InputError, match="no-write-allocate"):
        parse_policy("frozen-100+no-write-allocate")
    with pytest.raises(InputError, match="largest tile"):
        parse_policy("frozen-100").simulate(make_trace([3], [(0, 0, 0)]), 2)
    gemm = ("gemm", "-m", "512", "-n", "512", "-k", "256", "--cache", "128KiB", "--sms", "4")
    assert main(["compare", *gemm, "--policy", "frozen-90", "--schedules", "row,morton", "--json"]) == 0
    assert all(s["ratio_to_lower_bound"] >= 1 for s in json.loads(capsys.readouterr().out)["schedules"])
    curve = ("--schedules", "row", "--points", "3", "--from", "64KiB", "--json")
    assert main(["curve", *gemm, "--policy", "frozen-100", *curve]) == 0
