"""A layer by groups of heads: played value by value, legal, with the traffic and the room that it announces."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

import pebble
from pebble.certificate import RefusedError, check
from pebble.families import FAMILIES
from pebble.families.schedules import PartSchedule
from pebble.schedules.explicit.after_heads import Kernels, LastBands, Projection, Then
from pebble.schedules.explicit.ffn import best_ffn_schedule, ffn_schedules, one_panel_ffn
from pebble.schedules.explicit.fused import FusedSchedule
from pebble.schedules.explicit.head_groups import HeadGroups, TokensHeld, WeightsHeld
from pebble.schedules.explicit.head_groups_search import best_head_groups
from pebble.workloads import Ffn, TransformerLayer
from pebble.workloads.widths import ALIKE, FastMemory, Widths
from tests.rooms import in_values
from tests.schedules.fused_moves import fused_moves
from tests.schedules.layer_moves import Memory, feed_forward

WIDE = Widths(2, 4, 4, 2)


def play(schedule: HeadGroups, widths: Widths) -> Memory:
    """All of it but kernels afterwards, literally; what is called by columns is (name, column, row)."""
    layer, memory = schedule.layer, Memory(widths)
    if isinstance(schedule.front, WeightsHeld):
        for first in range(0, layer.kv_heads, schedule.front.groups):
            groups = range(first, min(first + schedule.front.groups, layer.kv_heads))
            groups_go(schedule, schedule.front, groups, memory)
    else:
        for start in range(0, layer.tokens, schedule.front.rows):
            tokens_go(
                schedule, schedule.front.stay, range(start, min(start + schedule.front.rows, layer.tokens)), memory
            )
    match schedule.then:
        case Projection():
            project(schedule, schedule.then.handed, memory)
        case LastBands():
            in_bands(schedule, schedule.then, memory)
    return memory


def groups_go(schedule: HeadGroups, front: WeightsHeld, groups: range, memory: Memory) -> None:
    """Some groups of heads, from X to their outputs."""
    layer, last = schedule.layer, groups.stop == schedule.layer.kv_heads
    key, value, shared = layer.head_dim, layer.value_dim, layer.heads // layer.kv_heads
    heads = range(groups.start * shared, groups.stop * shared)
    made = [("q", h * key + x) for h in heads for x in range(key)]
    made += [("k", g * key + x) for g in groups for x in range(key)]
    made += [("v", g * value + x) for g in groups for x in range(value)]
    for column, t in product(made, range(layer.d_model)):
        memory.load("qkv.B", "wqkv", t, *column)
    for i in range(layer.tokens):
        for t in range(layer.d_model):
            if ("x", t, i) not in memory.held:
                memory.load("qkv.A", "x", t, i)
            for column in made:
                memory.add((*column, i), ("x", t, i), ("wqkv", t, *column), width=memory.of.hidden)
            if last or i >= front.stay:
                memory.drop("x", t, i)
        for column in made:
            memory.put((*column, i), memory.of.read)
        for h in heads:
            attend(schedule, h, i, memory)
    for name, x in made:
        for i in range(layer.tokens) if name != "q" else ():
            memory.drop(name, x, i)
    for column, t in product(made, range(layer.d_model)):
        memory.drop("wqkv", t, *column)


def tokens_go(schedule: HeadGroups, kept: int, rows: range, memory: Memory) -> None:
    """A band of tokens, group by group, from X to their outputs."""
    layer, last = schedule.layer, rows.stop == schedule.layer.tokens
    shared, sides = layer.heads // layer.kv_heads, (("k", layer.head_dim), ("v", layer.value_dim))
    for t, i in product(range(layer.d_model), rows):
        memory.load("qkv.A", "x", t, i)
    for g in range(layer.kv_heads):
        vectors = [(name, g * side + x) for name, side in sides for x in range(side)]
        memory.product("qkv.B", f"wkv {g}", "x", rows, list(vectors), layer.d_model, False)
        away = [(*vector, j) for vector in vectors for j in range(kept, rows.start)]
        for vector in away:
            memory.load(f"attention.{vector[0].upper()}", *vector, given=False)
        for h in range(g * shared, (g + 1) * shared):
            queries = [("q", h * layer.head_dim + x) for x in range(layer.head_dim)]
            memory.product("qkv.B", f"wq {h}", "x", rows, list(queries), layer.d_model, False)
            for i in rows:
                attend(schedule, h, i, memory)
        for vector in away:
            memory.drop(*vector)
        for (name, x), i in product(vectors, rows):
            if not last and i >= kept:
                memory.store(f"attention.{name.upper()}", name, x, i)
            if last or i >= kept:
                memory.drop(name, x, i)
        for (name, x), j in product(vectors, range(min(kept, rows.start)) if last else ()):
            memory.drop(name, x, j)
    for t, i in product(range(layer.d_model), rows):
        memory.drop("x", t, i)


def attend(schedule: HeadGroups, h: int, i: int, memory: Memory) -> None:
    """One query of a head and all keys up to it; it gives way to its output, of which some columns stay."""
    layer = schedule.layer
    g, key, value = h * layer.kv_heads // layer.heads, layer.head_dim, layer.value_dim
    for what in ("maximum", "sum", "factor"):
        memory.put((what,), max(memory.of.hidden, memory.of.partial))
    for j in range(i + 1):
        for x in range(key):
            memory.add(("s", h, i, j), ("q", h * key + x, i), ("k", g * key + x, j), width=memory.of.hidden)
        memory.put(("s", h, i, j), memory.of.read)
        for x in range(value):
            cell = ("heads", h * value + x, i)
            memory.add(cell, ("s", h, i, j), ("v", g * value + x, j), width=memory.of.hidden)
        memory.drop("s", h, i, j)
    for what in ("maximum", "sum", "factor"):
        memory.drop(what)
    for x in range(key):
        memory.drop("q", h * key + x, i)
    for x in range(h * value, (h + 1) * value):
        memory.put(("heads", x, i), memory.of.read)
        if x < layer.projection.k - schedule.columns_stay:
            memory.store("attention.O", "heads", x, i)
            memory.drop("heads", x, i)


def project(schedule: HeadGroups, handed: int, memory: Memory) -> None:
    """The projection with its weights held; what it hands on is still there at the end, and nothing else."""
    layer, d, inner = schedule.layer, schedule.layer.d_model, schedule.layer.projection.k
    for x, c in product(range(inner), range(d)):
        memory.load("o.B", "wo", x, c)
    for i in range(layer.tokens):
        for x in range(inner):
            if ("heads", x, i) not in memory.held:
                memory.load("o.A", "heads", x, i, given=False)
            for c in range(d):
                memory.add(("p", c, i), ("heads", x, i), ("wo", x, c), width=memory.of.hidden)
            if x < inner - schedule.columns_stay:
                memory.drop("heads", x, i)
        for c in range(d):
            memory.put(("p", c, i), memory.of.read)
        for x in range(inner - schedule.columns_stay, inner):
            memory.drop("heads", x, i)
        for c in range(d) if i < layer.tokens - handed else ():
            memory.store("o.C", "p", c, i)
            memory.drop("p", c, i)
    for x, c in product(range(inner), range(d)):
        memory.drop("wo", x, c)
    assert set(memory.held) == {("p", c, layer.tokens - 1 - i) for c in range(d) for i in range(handed)}


def in_bands(schedule: HeadGroups, bands: LastBands, memory: Memory) -> None:
    """Bands of tokens through projection and FFN."""
    layer, inner = schedule.layer, schedule.layer.projection.k
    for start in range(0, layer.tokens, bands.rows):
        rows = range(start, min(start + bands.rows, layer.tokens))
        for x, i in product(range(inner), rows):
            if ("heads", x, i) not in memory.held:
                memory.load("o.A", "heads", x, i, given=False)
        columns = [("p", c) for c in range(layer.d_model)]
        memory.product("o.B", "wo", "heads", rows, list(columns), inner, bands.weights_stay)
        for x, i in product(range(inner), rows):
            memory.drop("heads", x, i)
        feed_forward(memory, layer, rows, bands.weights_stay)
        for c, i in product(range(layer.d_model), rows):
            memory.drop("p", c, i)


LAYERS = [
    TransformerLayer(5, 3, 4, 4, 2, 2, 3, True),
    TransformerLayer(4, 4, 3, 3, 3, 3, 2, False),
    TransformerLayer(6, 2, 2, 6, 3, 1, 1, True),
]


def of_itself(counts: Any, then: Then) -> dict[str, int]:
    """What is not moved by kernels afterwards."""
    kernels = () if isinstance(then, LastBands) else ("mlp.",) if isinstance(then, Projection) else ("mlp.", "o.")
    return {name: n for name, n in counts.items() if n and not name.startswith(kernels)}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("widths", [ALIKE, WIDE])
def test_played_value_by_value(layer: TransformerLayer, widths: Widths) -> None:
    memory, inner = FastMemory(10**6, widths), layer.projection.k
    ffn = in_values(FAMILIES["ffn"].best_schedule, layer.mlp, 40)
    projection = in_values(FAMILIES["gemm"].best_schedule, layer.projection, 40)
    ways: list[Then] = [Kernels(projection, ffn), Projection(ffn, 1), Projection(ffn, layer.tokens)]
    ways += [LastBands(rows, stay) for rows, stay in ((1, True), (2, False), (layer.tokens, False))]
    fronts = [WeightsHeld(groups, stay) for groups in range(1, layer.kv_heads + 1) for stay in (0, 3)]
    bands = [TokensHeld(rows, stay) for rows in (1, 2, 3, layer.tokens) for stay in (0, 2)]
    for front, then in product([*fronts, *bands], ways):
        for columns in (0,) if isinstance(then, Kernels) else (0, inner // 2, inner):
            schedule = HeadGroups(layer, front, columns, then, memory)
            played = play(schedule, widths)
            assert of_itself(schedule.loads, then) == dict(played.loads)
            assert of_itself(schedule.stores, then) == dict(played.stores)
            assert played.peak <= schedule.peak(widths)
            own = layer.qkv.multiply_adds + layer.attention.multiply_adds
            o = 0 if isinstance(then, Kernels) else layer.projection.multiply_adds
            mlp = layer.mlp.multiply_adds if isinstance(then, LastBands) else 0
            assert len(played.done) == own + o + mlp


@pytest.mark.parametrize("widths", [ALIKE, WIDE])
def test_no_more_room_is_asked_for_than_about_what_is_held(widths: Widths) -> None:
    layer = LAYERS[0]
    slack = 4 * (widths.hidden + widths.partial) + widths.hidden * (layer.value_dim + 1)
    fronts = [WeightsHeld(1, 0), WeightsHeld(1, 3), WeightsHeld(2), TokensHeld(2), TokensHeld(3, 2)]
    for front, columns in product(fronts, (0, 5)):
        schedule = HeadGroups(layer, front, columns, LastBands(1, False), FastMemory(10**6, widths))
        assert schedule.peak(widths) <= play(schedule, widths).peak + slack


def some_ffns(count: int) -> Iterator[FusedSchedule]:
    """Small networks in small memories, by all families."""
    draw = random.Random(5)
    for _ in range(count):
        ffn = Ffn(*(draw.randint(2, 7) for _ in range(3)), gated=draw.random() < 0.5)
        memory = FastMemory(draw.randint(40, 400), draw.choice([ALIKE, WIDE]))
        yield from ffn_schedules(ffn, memory)
        panel = one_panel_ffn(ffn, memory, 10**9)
        yield from () if panel is None else (panel,)


def test_a_network_holds_no_more_when_it_is_handed_its_first_rows() -> None:
    """The rows that its first band holds anyway: from the start there, they are not loaded, and there is room."""
    seen: set[str] = set()
    for schedule in some_ffns(7):
        d, handed = schedule.workload.operands[0].cols, schedule.first_rows
        if not handed:
            continue
        seen.add(schedule.family)
        for rows in {1, handed}:
            held = {("X", (i, t)) for i in range(rows) for t in range(d)}
            loads, peak = Counter[str](), len(held)
            for op, name, index in fused_moves(schedule):
                value = name, tuple(index)
                if op == "delete":
                    held.discard(value)
                elif op in ("load", "begin") or (op == "compute" and name in ("H", "U", "Y")):
                    cell = (name, value[1][:2]) if op == "compute" else value
                    loads[name] += op == "load" and cell not in held
                    held.add(cell)
                    peak = max(peak, len(held))
            assert loads["X"] == schedule.loads["X"] - rows * d
            assert peak <= schedule.peak_elements
    assert {"row panel", "two phases"} <= seen


def test_never_below_the_bound_and_in_its_memory() -> None:
    draw, found = random.Random(9), Counter[str]()
    for _ in range(14):
        shared, groups = draw.randint(1, 3), draw.randint(1, 4)
        tokens, d, hidden, key = (draw.randint(2, high) for high in (40, 16, 30, 6))
        layer = TransformerLayer(tokens, d, hidden, shared * groups, groups, key, draw.randint(1, 6))
        widths, capacity = draw.choice([ALIKE, WIDE]), draw.randint(300, 6000)
        memory = FastMemory(capacity, widths)
        ffn = best_ffn_schedule(layer.mlp, memory)
        schedule = best_head_groups(layer, memory, None, [] if ffn is None else [ffn], float("inf"))
        if schedule is None:
            continue
        found[type(schedule.then).__name__] += 1
        assert schedule.fits and all(schedule.peak(of) <= size for size, of in memory.limits)
        room = None if widths == ALIKE else memory
        least = FAMILIES["layer"].lower_bound(layer, capacity // widths.read, False, room)
        assert (least.elements if widths == ALIKE else least.bytes) <= (
            schedule.elements if widths == ALIKE else schedule.bytes
        )
        if schedule.elements * layer.tokens < 2 * 10**4:
            assert play(schedule, widths).peak <= capacity
    assert len(found) == 2


@pytest.mark.parametrize("accumulators", ["off", "fp32"])
@pytest.mark.parametrize("kibibytes", [4, 6, 8, 10])
def test_the_checker_counts_the_same(kibibytes: int, accumulators: str) -> None:
    layer = TransformerLayer(60, 24, 40, 6, 6, 6)
    found = pebble.bound(layer, cache=f"{kibibytes}KiB", accumulators=accumulators)
    assert found.upper is not None and sum(part["schedule_bytes"] for part in found.parts) == found.upper.bytes
    document = json.loads(json.dumps(found.certificate()))
    check(document)
    assert isinstance(found.upper, HeadGroups)
    claim = next(claim for claim in document["claims"] if "upper" in claim["claim"])
    for name, value in claim["schedule"].items():
        if type(value) is int:
            claim["schedule"][name] = value + 1
            with pytest.raises(RefusedError):
                check(document)
            claim["schedule"][name] = value


@pytest.mark.parametrize("kibibytes", [1, 2])
def test_kernels_one_after_the_other_are_certified_in_bytes(kibibytes: int) -> None:
    layer = TransformerLayer(60, 24, 40, 6, 2, 6)
    found = pebble.bound(layer, cache=f"{kibibytes}KiB", accumulators="fp32")
    assert isinstance(found.upper, PartSchedule)
    claim = next(claim for claim in found.certificate()["claims"] if claim["claim"] == "upper bound in bytes")
    assert claim["bytes"] == found.upper.bytes and len(claim["schedule"]["parts"]) == 4


def test_a_part_has_the_accumulators_of_the_layer() -> None:
    """Inputs in fp32 are no narrower than sums; sums of outputs in bf16 are wider than these."""
    layer = TransformerLayer(8, 4, 6, 2, 1, 2, dtype="fp32", out_dtype="bf16")
    memory = FastMemory(1000, Widths.of(layer, 4))
    assert memory.of_part(layer.mlp).widths == memory.widths == Widths(4, 4, 4, 2)
    assert memory.of_part(layer.projection).widths == Widths(4, 4, 4, 4)


def test_layers_of_models() -> None:
    """All of it once where the outputs of all heads stay; else what passes between the parts is less by a third."""
    found = pebble.bound("gpt2-xl:layer", tokens=8192, cache="72MiB", accumulators="fp32")
    assert isinstance(found.upper, HeadGroups) and found.upper.bytes == found.lower.bytes
    found = pebble.bound("llama-2-7b:layer", tokens=8192, cache="72MiB", accumulators="fp32")
    assert isinstance(found.upper, HeadGroups) and isinstance(found.upper.then, Projection)
    apart = sum(part["alone_schedule_bytes"] for part in found.parts)
    assert found.upper.bytes < 0.7 * apart
