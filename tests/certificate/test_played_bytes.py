"""Schedules at random in a memory of bytes: a play holds no more than the checker derives, and moves as much."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from pebble.certificate.schedules import chain_shape
from pebble.certificate.statement import ClaimedWidths, Workload, read_workload
from pebble.certificate.upper_chain import Shape
from pebble.proof.certificate import workload_statement
from pebble.workloads import Attention, Ffn, Gemm
from tests.certificate.memory import Memory
from tests.certificate.play import play_banded, play_bands, play_blocks
from tests.certificate.strongest import settled, with_tokens
from tests.certificate.strongest_bytes import least_room, moved_in_bytes, random_in_bytes, some_widths

SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 200))]


def some_workload(rnd: random.Random) -> Gemm | Ffn | Attention:
    """Small, of any kind that schedules in bytes are known of."""
    types = rnd.choice(["bf16", "fp32", "fp8"]), rnd.choice(["bf16", "fp32", "fp8"])
    sides = [rnd.randint(1, 7) for _ in range(4)]
    match rnd.randrange(4):
        case 0:
            return Gemm(*sides[:3], *types, accumulate=rnd.random() < 0.3)
        case 1 | 2:
            return Ffn(*sides, rnd.random() < 0.4, *types)
    heads, causal = rnd.randint(1, 3), rnd.random() < 0.4
    queries = min(sides[0], 3)
    keys = queries + rnd.randint(0, 4) if causal else sides[1]
    softmax = rnd.choice(["online", "strict"])
    return Attention(queries, keys, *sides[2:], heads, rnd.choice([1, heads]), 1, causal, softmax, *types)


def turns(schedule: dict[str, Any]) -> bool:
    """Whether anything comes or goes by turned corners."""
    if any(turns(group["schedule"]) for group in schedule.get("groups", ())):
        return True
    chains = (schedule, schedule.get("first", {}), *schedule.get("kernels", ()))
    return any({"turns", "first", "enter"} & run.keys() for chain in chains for run in chain.get("runs", ()))


def products(workload: Workload, schedule: dict[str, Any]) -> list[tuple[dict[str, int], bool, dict[str, Any]]]:
    """Dimensions, whether C is read first, and the schedule of each kernel."""
    if workload.family == "gemm":
        return [(workload.size, workload.option["accumulate_into"], schedule)]
    shape = chain_shape(workload)
    first, last = {"m": shape.m, "n": shape.f, "k": shape.k}, {"m": shape.m, "n": shape.l, "k": shape.f}
    *inside, end = schedule["kernels"]
    return [*((first, False, item) for item in inside), (last, False, end)]


def play_between(size: dict[str, int], widths: ClaimedWidths, kernel: dict[str, Any]) -> tuple[int, int]:
    """(bytes held at most, bytes moved) of a softmax, row by row, or of the product of gate and up, cell by cell."""
    w, most, traffic = widths.read, 0, 0
    for _ in range(size["m"]):
        if kernel["kind"] == "product":
            for _ in range(size["n"]):
                most, traffic = max(most, 2 * w), traffic + 3 * w
            continue
        row, state = 0, 2 * widths.hidden
        for _ in range(size["n"]):  # maximum and sum
            row, traffic = row + w if kernel["row_stays"] else w, traffic + w
            most = max(most, state + row)
        for _ in range(size["n"]):  # the division
            traffic += w if kernel["row_stays"] else 2 * w
    return most, traffic


def play_chain(shape: Shape, widths: ClaimedWidths, schedule: dict[str, Any]) -> Memory:
    """Two products in bands, or gate and up, whose product H is stored complete."""
    w, hidden, p = widths.read, widths.hidden, widths.partial
    state = max(p, hidden)
    takes = {"H": (hidden, w), "U": (hidden, hidden), "Y": (p, p), "state": (state, state)}
    return play_bands(shape, schedule, dict.fromkeys(("A", "B0", "B1", "D"), (w, w)) | takes)


def play_phases(shape: Shape, widths: ClaimedWidths, schedule: dict[str, Any]) -> tuple[int, int]:
    """(bytes held at most, bytes moved) of a chain that stores H, and a product that finds some of it in memory."""
    w, hidden, p = widths.read, widths.hidden, widths.partial
    takes = {"H": (hidden, w), "U": (hidden, hidden), "Y": (p, p)}
    along, rest = replace(shape, l=schedule["columns"]), schedule["rest"]
    leave, enter = schedule.get("handed", [[0, 0, 0]] * 2)
    rows = rest["bands"][0]["width"] if "handed" in schedule else 0
    of_chain = dict.fromkeys(("A", "B0", "B1", "D"), (w, w)) | takes
    first = play_bands(along, schedule["first"], of_chain, True, (rows, leave))
    size = {"m": shape.m, "n": shape.l - along.l, "k": shape.f}
    of_product = {"A": (w, w), "B": (w, w), "C": (p, p)}
    if rest["kind"] == "banded":
        last = play_banded(size, False, rest, of_product, enter)
    else:
        last = play_blocks(size, False, rest, of_product)
    outputs = (p - widths.written) * shape.m * shape.l
    return max(first.most, last.most), first.moved + last.moved - outputs


def played(workload: Workload, widths: ClaimedWidths, schedule: dict[str, Any]) -> tuple[int, int]:
    """(bytes held at most, bytes moved) of a play."""
    w, hidden, p = widths.read, widths.hidden, widths.partial
    if schedule["kind"] == "bands":
        shape = chain_shape(workload)
        memory = play_chain(shape, widths, schedule)
        return memory.most, workload.groups * (memory.moved - (p - widths.written) * shape.m * shape.l)
    if schedule["kind"] == "token groups":
        groups = [(with_tokens(workload, item["tokens"]), item["schedule"]) for item in schedule["groups"]]
        plays = [played(part, widths, item) for part, item in groups]
        return max(most for most, _ in plays), sum(moved for _, moved in plays)
    if schedule["kind"] == "phases":
        return play_phases(chain_shape(workload), widths, schedule)
    most = traffic = 0
    kernels = products(workload, schedule)
    for number, (size, added, item) in enumerate(kernels):
        inside = number + 1 < len(kernels)
        if item["kind"] == "bands":  # gate and up
            memory = play_chain(Shape(size["m"], size["k"], size["n"], 0, 2), widths, item)
            most, traffic = max(most, memory.most), traffic + memory.moved
            continue
        if item["kind"] in ("softmax", "product"):
            held, crossed = play_between(size, widths, item)
            most, traffic = max(most, held), traffic + crossed
            continue
        together = 2 if item["kind"] == "pairs" else 1  # gate and up: two weights, two cells
        cell, whole = (together * hidden, w) if inside else (p, widths.written)
        takes = {"A": (w, w), "B": (together * w, together * w), "C": (cell, cell)}
        memory = (play_blocks if item["kind"] == "blocks" else play_banded)(size, added, item, takes)
        most = max(most, memory.most)
        traffic += memory.moved - (cell - whole) * size["m"] * size["n"] * (1 + added)
    return most, workload.groups * traffic


@pytest.mark.parametrize("seed", SEEDS)
def test_no_play_takes_more_bytes_than_the_checker_says(seed: int) -> None:
    rnd = random.Random(seed)
    exact = taken = 0
    for number in range(150):
        workload = read_workload(workload_statement(some_workload(rnd)), "workload")
        widths = some_widths(workload, rnd)
        schedule = random_in_bytes(workload, rnd)
        if turns(schedule):
            continue  # test_played_turns plays these
        if workload.option.get("causal") and "runs" in schedule:  # with a mask every band stands alone
            schedule["runs"] = [{**run, "count": 1} for run in schedule["runs"] for _ in range(run["count"])]

        def count(workload: Workload = workload, widths: ClaimedWidths = widths, schedule: Any = schedule) -> Any:
            return moved_in_bytes(workload, widths, 10**7, schedule)

        spec = settled(count, schedule)
        if spec is None:
            continue
        held, traffic = played(workload, widths, schedule)
        capacity = least_room(workload, widths, schedule)
        assert (traffic, held <= capacity) == (spec, True), (
            number,
            workload.label,
            widths,
            schedule,
            held,
            capacity,
            traffic,
            spec,
        )
        taken += 1
        exact += held == capacity
    assert taken > 40 and exact > 10
