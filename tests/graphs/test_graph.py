"""Graphs without PyTorch or ONNX: what is counted of uses, views, pieces and of what is not needed."""

from __future__ import annotations

import pytest

import pebble
from pebble.errors import InputError
from pebble.families import family_of
from pebble.graphs import shapes
from pebble.graphs.graph import Builder, Graph, View, masked, use
from pebble.models.machine import Machine
from pebble.reports.audit import Audit
from pebble.reports.capacity import chip_capacity
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.workloads import Attention, Conv2d, Einsum, Ffn, Gemm
from pebble.workloads.widths import FastMemory, Widths

A40 = pebble.gpu("a40")


def made(*steps: str) -> Graph:
    """x of 8 times w of 8 x 4, then what the steps say, each of the one before."""
    b = Builder("test")
    b.tensor("x", (16, 8), "bf16", 2, "input")
    b.tensor("w", (8, 4), "bf16", 2, "weight")
    x, w = b.views["x"], b.views["w"]
    b.operation("mm", "product", [use(x), use(w)], [("mm", (16, 4), "bf16", 2)], shapes.product(x, w, "bf16"))
    last = "mm"
    for step in steps:
        v = b.views[last]
        if step == "relu":
            b.operation(step, "elementwise", [use(v)], [(step, v.shape, "bf16", 2)])
        elif step == "mask":
            b.operation(step, "elementwise", [masked(v)], [(step, v.shape, "bf16", 2)])
        elif step == "odd":
            b.operation(step, "odd", [use(v)], [(step, v.shape, "bf16", 2)], known=False)
        elif step == "rows":
            b.view(step, v, (2, 4))
        elif step == "turn":
            b.view(step, v, (4, 16))
        last = step
    return b.graph([last])


def test_operations_alone_and_fused() -> None:
    result = Audit(made("relu"), A40)
    mm, relu = result.floors
    assert mm.alone_bytes == 2 * (16 * 8 + 8 * 4 + 16 * 4)
    assert relu.alone_bytes == 2 * 2 * 64
    assert (mm.fused_bytes, relu.fused_bytes) == (2 * (16 * 8 + 8 * 4), 2 * 64)
    assert result.floor_bytes == 2 * (128 + 32 + 64)
    assert result.alone_bytes - result.floor_bytes == 2 * 2 * 64 == result.between[0].bytes


def test_a_view_moves_nothing_and_a_part_needs_nothing_whole() -> None:
    assert Audit(made("turn"), A40).floor_bytes == 2 * (128 + 32 + 64)
    part = Audit(made("rows"), A40)  # two of the rows: nothing is sure of what the product reads
    assert part.floor_bytes == 2 * 8 and part.floor_seconds < Audit(made(), A40).floor_seconds


def test_what_a_mask_hides_is_not_work() -> None:
    result = Audit(made("mask"), A40)
    assert result.floor_bytes == 2 * (128 + 32 + 64)
    assert result.graph.needed == {"mm": "some", "mask": "all"}
    assert result.floors[1].alone_bytes == 2 * 64


def test_an_operation_that_is_not_known_is_listed_and_not_counted() -> None:
    result = Audit(made("odd"), A40)
    assert [floor.operation.name for floor in result.unknown] == ["odd"]
    assert result.floor_bytes == 2 * 64  # its result is stored; what it needs is not known
    assert result.to_dict()["unknown"] == ["odd"]
    assert result.alone_bytes == result.floors[0].alone_bytes + 2 * 64


def test_pieces_share_nothing_and_other_views_may() -> None:
    b = Builder("test")
    b.tensor("x", (4, 6), "bf16", 2, "input")
    b.pieces(["q", "k", "v"], b.views["x"], [(4, 2)] * 3)
    b.view("s", b.views["x"], (4, 3))
    g = b.graph([])
    q, k, s = (use(b.views[name]) for name in "qks")
    assert g.bytes_of([q]) == 16 and g.bytes_of([q, k]) == 32 and g.bytes_of([q, q]) == 16
    assert g.bytes_of([q, s]) == 24 and g.bytes_of([q, k, use(b.views["v"]), s]) == 48
    b.view("wide", b.views["q"], (7, 4, 2))
    assert use(b.views["wide"]).elements == 8 and not b.views["wide"].plain


def big(m: int, n: int, k: int, *, shared: bool = False, handed: bool = False) -> Audit:
    b = Builder("big")
    b.tensor("a", (m, k), "bf16", 2, "input")
    b.tensor("b", (k, n), "bf16", 2, "input")
    name = "a"
    if handed:
        b.operation("relu", "elementwise", [use(b.views["a"])], [("h", (m, k), "bf16", 2)])
        name = "h"
    x, w = b.views[name], b.views["b"]
    b.operation("mm", "product", [use(x), use(w)], [("c", (m, n), "bf16", 2)], shapes.product(x, w, "bf16"))
    outputs = ["c"]
    if shared:
        b.operation("twice", "elementwise", [use(w)], [("d", (k, n), "bf16", 2)])
        outputs.append("d")
    return Audit(b.graph(outputs), A40)


def test_a_product_of_its_own_moves_in_a_graph_what_it_moves_alone() -> None:
    alone = big(16384, 16384, 16384)
    assert (
        alone.floor_bytes == alone.alone_bytes == pebble.bound("gemm", m=16384, n=16384, k=16384, gpu="a40").lower.bytes
    )
    assert not alone.computed_once
    handed = big(16384, 16384, 16384, handed=True)
    assert handed.computed_once
    assert handed.compulsory_bytes < handed.floor_bytes == alone.floor_bytes  # what is handed to it was read before
    shared = big(16384, 16384, 16384, shared=True)  # its loads may serve another
    assert shared.floor_bytes == shared.compulsory_bytes


@pytest.mark.parametrize("room", [400, 2000, 10000])
@pytest.mark.parametrize("sides", [(64, 64, 64, 64), (200, 40, 160, 40), (30, 300, 20, 300), (500, 60, 30, 90)])
def test_no_schedule_of_two_products_moves_less_than_the_floor(
    monkeypatch: pytest.MonkeyPatch, sides: tuple[int, int, int, int], room: int
) -> None:
    m, k, f, l = sides
    b = Builder("chain")
    for name, shape in {"a": (m, k), "b": (k, f), "d": (f, l)}.items():
        b.tensor(name, shape, "bf16", 2, "input")
    for result, left, right, shape in (("h", "a", "b", (m, f)), ("y", "h", "d", (m, l))):
        x, w = b.views[left], b.views[right]
        work = shapes.product(x, w, "bf16")
        b.operation(f"mm_{result}", "product", [use(x), use(w)], [(result, shape, "bf16", 2)], work)
    monkeypatch.setattr(Machine, "on_chip_bytes", room)
    known = best_ffn_schedule(Ffn(m, k, f, l), FastMemory(room, Widths(2, 4, 4, 2)))
    result = Audit(b.graph(["y"]), A40)
    assert known is not None and result.floor_bytes <= known.bytes
    assert result.compulsory_bytes < result.floor_bytes or room > 400


def test_of_a_result_that_is_stored_in_part_the_rest_may_stay() -> None:
    b = Builder("parts")
    n = 16384
    b.tensor("a", (n, n), "bf16", 2, "input")
    b.tensor("b", (n, n), "bf16", 2, "input")
    x, w = b.views["a"], b.views["b"]
    b.operation("mm", "product", [use(x), use(w)], [("c", (n, n), "bf16", 2)], shapes.product(x, w, "bf16"))
    b.pieces(["left", "right"], b.views["c"], [(n, n // 2)] * 2)
    b.operation("sum", "reduction", [use(b.views["right"])], [("s", (n,), "bf16", 2)])
    part = Audit(b.graph(["left", "s"]), A40)
    whole = big(n, n, n)
    assert (
        part.computed_once and part.floor_bytes == whole.floor_bytes - n * n + 2 * n
    )  # half a result of 2 bytes less, and s
    assert part.between[0].bytes == 2 * n * n  # the store and the load of the half that is summed


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((5, 3, 8), (8, 4), Gemm(15, 4, 8)),
        ((5, 3, 8), (1, 8, 4), Gemm(15, 4, 8)),
        ((8,), (8, 4), Gemm(1, 4, 8)),
        ((3, 8), (8,), Gemm(3, 1, 8)),
        ((2, 5, 3, 8), (5, 8, 4), Einsum("abmk,bkn->abmn", (("a", 2), ("b", 5), ("m", 3), ("k", 8), ("n", 4)))),
        ((2, 1, 3, 8), (2, 5, 8, 4), Einsum("amk,abkn->abmn", (("a", 2), ("m", 3), ("k", 8), ("b", 5), ("n", 4)))),
    ],
)
def test_products_by_their_shapes(a: tuple[int, ...], b: tuple[int, ...], expected: object) -> None:
    found = shapes.product(*(View(n, s, "bf16", _size(s)) for n, s in (("a", a), ("b", b))), "bf16")
    assert found == expected


def _size(shape: tuple[int, ...]) -> int:
    result = 1
    for n in shape:
        result *= n
    return result


def view(name: str, *shape: int, elements: int = 0) -> View:
    return View(name, shape, "bf16", elements or _size(shape))


def test_what_shares_values_is_no_product_of_two() -> None:
    assert shapes.product(view("a", 4, 4), view("a", 4, 4), "bf16") is None
    assert shapes.product(view("a", 4, 4, elements=4), view("b", 4, 4), "bf16") is None
    assert shapes.einsum("ij,jk,kl->il", [view(c, 4, 4) for c in "abc"], "bf16") is None
    assert shapes.einsum("ij,jk->ik", [view(c, 4, 4) for c in "ab"], "fp64") is None


def test_attention_and_convolution_by_their_shapes() -> None:
    q, k, v = view("q", 2, 8, 64, 16), view("k", 2, 2, 96, 16), view("v", 2, 2, 96, 16)
    assert shapes.attention(q, k, v, "bf16", False) == Attention(
        queries=64, keys=96, head_dim=16, value_dim=16, heads=8, kv_heads=2, batch=2
    )
    few = [view(name, 2, 8, 96, 16, elements=2 * 2 * 96 * 16) for name in "kv"]  # heads repeated, or keys: not known
    assert shapes.attention(q, *few, "bf16", False) is None
    assert shapes.attention(q, k, v, "bf16", True) is None  # conventions differ
    x, w = view("x", 2, 4, 9, 9), view("w", 6, 4, 3, 3)
    assert shapes.convolution(x, w, "bf16", [2], [1], 1) == Conv2d(2, 4, 6, 9, 9, 3, 2)
    deep = shapes.convolution(x, view("w", 4, 1, 3, 5), "bf16", [1, 2], [2, 1], 4)
    assert deep is not None
    capacity = chip_capacity(A40, deep)
    assert family_of(deep).lower_bound(deep, capacity.elements).elements == deep.compulsory_elements
    assert shapes.pooled(x, (2, 4, 4, 4), [2, 2], [2, 2], [0, 0]) == 2 * 4 * 8 * 8


def test_a_file_is_needed(tmp_path: object) -> None:
    for target, words in (("model.py", "expected FILE.py:NAME"), ("model.pt", "FILE.py:NAME"), (3, "FILE.py:NAME")):
        with pytest.raises(InputError, match=words):
            pebble.audit(target, gpu="a40")
    assert isinstance(A40, Machine)
