"""A layer in bands of tokens: played value by value, legal, with the traffic and the room that it announces."""

from __future__ import annotations

from itertools import product

import pytest

import pebble
from pebble.families import FAMILIES, lower_bound
from pebble.schedules.explicit.fused import FusedSchedule
from pebble.schedules.explicit.token_bands import TokenBands, best_token_bands
from pebble.workloads import TransformerLayer
from pebble.workloads.widths import ALIKE, FastMemory, Widths
from tests.rooms import in_values
from tests.schedules.layer_moves import Memory, feed_forward

WIDE = Widths(2, 4, 4, 2)


def play(bands: TokenBands, widths: Widths) -> Memory:
    """The bands, literally; what is called by columns is (name, column, row)."""
    layer, memory = bands.layer, Memory(widths)
    heads, groups, key, value, d = layer.heads, layer.kv_heads, layer.head_dim, layer.value_dim, layer.d_model
    sides = {"q": (heads, key), "k": (groups, key), "v": (groups, value)}
    into = [(name, h * side + x) for name, (count, side) in sides.items() for h in range(count) for x in range(side)]
    state = max(widths.hidden, widths.partial)
    for start in range(0, layer.tokens, bands.rows):
        rows = range(start, min(start + bands.rows, layer.tokens))
        last = rows.stop == layer.tokens
        for x, i in product(range(d), rows):
            memory.load("qkv.A", "x", x, i)
        memory.product("qkv.B", "wqkv", "x", rows, list(into), d, bands.weights_stay)
        for x, i in product(range(d), rows):
            memory.drop("x", x, i)
        for (name, column), i in product(into, rows):
            if name != "q" and not last and i >= bands.kept:
                memory.store(f"attention.{name.upper()}", name, column, i)
        for g in range(groups):
            away = [
                (name, g * side + x, j)
                for name, side in (("k", key), ("v", value)) for x in range(side) for j in range(bands.kept, start)
            ]  # fmt: skip
            for vector in away:
                memory.load(f"attention.{str(vector[0]).upper()}", *vector, given=False)
            for h, i in product(range(g * heads // groups, (g + 1) * heads // groups), rows):
                for what in ("maximum", "sum", "factor"):
                    memory.put((what,), state)
                for j in range(i + 1):
                    for x in range(key):
                        memory.add(("s", h, i, j), ("q", h * key + x, i), ("k", g * key + x, j), width=widths.hidden)
                    memory.put(("s", h, i, j), widths.read)
                    for x in range(value):
                        cell = ("heads", h * value + x, i)
                        memory.add(cell, ("s", h, i, j), ("v", g * value + x, j), width=widths.hidden)
                    memory.drop("s", h, i, j)
                for what in ("maximum", "sum", "factor"):
                    memory.drop(what)
                for x in range(key):
                    memory.drop("q", h * key + x, i)
                for x in range(value):
                    memory.put(("heads", h * value + x, i), widths.read)
            for vector in away:
                memory.drop(*vector)
        for name, column in into:
            for j in range(rows.stop):
                if (name, column, j) in memory.held and (last or j >= bands.kept):
                    memory.drop(name, column, j)
        memory.product("o.B", "wo", "heads", rows, [("p", c) for c in range(d)], heads * value, bands.weights_stay)
        for x, i in product(range(heads * value), rows):
            memory.drop("heads", x, i)
        if bands.ffn is None:
            feed_forward(memory, layer, rows)
        for x, i in product(range(d), rows):
            if bands.ffn is not None:
                memory.store("o.C", "p", x, i)
            memory.drop("p", x, i)
    return memory


LAYERS = [
    TransformerLayer(5, 3, 4, 4, 2, 2, 3, True),
    TransformerLayer(6, 4, 3, 2, 1, 3, 2, False),
    TransformerLayer(4, 2, 2, 1, 1, 2, 2, True),
]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("widths", [ALIKE, WIDE])
@pytest.mark.parametrize("after", [False, True])
def test_played_value_by_value(layer: TransformerLayer, widths: Widths, after: bool) -> None:
    ffn = in_values(FAMILIES["ffn"].best_schedule, layer.mlp, 40) if after else None
    for rows, kept, stay in product(range(1, layer.tokens + 1), range(layer.tokens + 1), (False, True)):
        bands = TokenBands(layer, rows, kept, stay, ffn, FastMemory(10**6, widths))
        played = play(bands, widths)
        assert played.peak <= bands.peak(widths)
        assert stay or bands.peak(widths) <= played.peak + 3 * widths.hidden * (layer.tokens + 4)
        own = {name: n for name, n in bands.loads.items() if n and not (after and name.startswith("mlp."))}
        assert own == dict(played.loads)
        own = {name: n for name, n in bands.stores.items() if n and not (after and name.startswith("mlp."))}
        assert own == dict(played.stores)
        products = layer.multiply_adds - (layer.mlp.multiply_adds if after else 0)
        assert len(played.done) == products
        moved = sum(played.loads.values()) + sum(played.stores.values())
        assert bands.bytes == moved * widths.read + (ffn.bytes if ffn else 0)  # here w is w_o


@pytest.mark.parametrize("capacity", [60, 100, 200, 400, 1000, 4000])
def test_never_below_the_bound_and_never_above_its_kernels(capacity: int) -> None:
    layer = TransformerLayer(24, 8, 20, 4, 2, 4, 4)
    known = in_values(FAMILIES["layer"].best_schedule, layer, capacity)
    each = [in_values(FAMILIES[kernel.FAMILY].best_schedule, kernel, capacity) for kernel in layer.kernels]
    assert lower_bound(layer, capacity).elements <= known.elements <= sum(schedule.elements for schedule in each)
    assert known.peak_elements <= capacity
    if capacity == 4000:
        assert isinstance(known, TokenBands) and known.elements == layer.compulsory_elements


def test_more_memory_never_moves_more() -> None:
    layer, before = TransformerLayer(48, 8, 24, 4, 2, 4), None
    for capacity in range(80, 2400, 120):
        known = in_values(FAMILIES["layer"].best_schedule, layer, capacity)
        assert before is None or known.elements <= before
        before = known.elements


def test_a_layer_of_a_model_on_a_chip() -> None:
    found = pebble.bound("llama-3-8b:layer", tokens=2048, gpu="h100-sxm5-80gb")
    assert found.upper is not None
    assert found.upper.bytes == found.lower.bytes  # all of it once: nothing moves less
    layer = pebble.workload("llama-3-8b:layer", tokens=8192)
    assert isinstance(layer, TransformerLayer)
    memory = FastMemory(116 * 2**20, WIDE)
    bands = best_token_bands(layer, memory, None)
    weights = 2 * (4096 * (6144 + 4096) + 3 * 4096 * 14336)
    assert bands is not None and bands.bands == 2 and bands.bytes == 2 * weights + 2 * 2 * 8192 * 4096
    ffn = FAMILIES["ffn"].best_schedule(layer.mlp, memory)
    assert isinstance(ffn, FusedSchedule) and best_token_bands(layer, memory, ffn) == bands


@pytest.mark.parametrize(
    ("tokens", "room", "accumulators", "dtype"),
    [
        (300, "64KiB", "fp32", "bf16"),
        (300, "12KiB", "fp32", "bf16"),
        (300, "12KiB", "off", "bf16"),
        (40, "1MiB", "off", "fp8"),
    ],
)
def test_parts_add_up_to_the_bound_and_to_the_schedule(tokens: int, room: str, accumulators: str, dtype: str) -> None:
    layer = TransformerLayer(tokens, 64, 256, 4, 2, 16, dtype=dtype, out_dtype=dtype)
    found = pebble.bound(layer, cache=room, accumulators=accumulators)
    assert [part["name"] for part in found.parts] == ["qkv", "attention", "o", "mlp"] and found.upper is not None
    assert sum(part["bytes"] for part in found.parts) == found.lower.bytes
    assert sum(part["schedule_bytes"] for part in found.parts) == found.upper.bytes
    for part in found.parts:
        assert part["bytes"] <= part["alone_bytes"] <= part["alone_schedule_bytes"]
        assert part["bytes"] <= part["schedule_bytes"]
    assert found.to_dict()["parts"] == found.parts
    assert pebble.bound(layer.mlp, cache=room).parts == []
