"""Graphs from PyTorch and from ONNX files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble.cli import main
from pebble.errors import InputError

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.to(torch.bfloat16)

    def forward(self, x):
        q, k, v = (y.view(*y.shape[:2], 4, -1).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + y.transpose(1, 2).reshape(x.shape)
        return x + self.down(nn.functional.gelu(self.up(x)))


def get_init_inputs():
    return [64]


def get_inputs():
    return [torch.rand(2, 32, 64, dtype=torch.bfloat16)]
"""
WIDTH = 64


def test_a_file_with_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    assert main(["audit", f"{path}:Model", "--gpu", "a40", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    weights = 2 * WIDTH + 3 * WIDTH**2 + 8 * WIDTH**2 + 5 * WIDTH
    assert document["graph"]["floor_bytes"] == 2 * (weights + 2 * 2 * 32 * WIDTH)
    assert document["unknown"] == []
    kinds = [row["kind"] for row in document["operations"]]
    assert kinds == ["norm", "product", "attention", "elementwise", "product", "elementwise", "product", "elementwise"]
    attention = document["operations"][2]
    assert attention["alone_bytes"] == 2 * 4 * 2 * 32 * WIDTH and "causal" in attention["workload"]
    assert main(["audit", f"{path}:Model", "--gpu", "a40"]) == 0
    assert "one kernel an operation" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(InputError, match="has no 'Other'"):
        pebble.audit(f"{path}:Other", gpu="a40")


def audit(function: Any, *inputs: Any) -> Any:
    return pebble.from_torch(function, inputs, gpu="a40")


def test_functions() -> None:
    torch = pytest.importorskip("torch")
    x, w = torch.empty(64, 32, device="meta"), torch.empty(32, 16, device="meta")
    assert audit(lambda a, b: a @ b, x, w).floor_bytes == 4 * (64 * 32 + 32 * 16 + 64 * 16)
    # one input given twice is read once; a column of the result needs no more than it is
    assert audit(lambda a, b: a + b, x, x).floor_bytes == 4 * 2 * 64 * 32
    assert audit(lambda a, b: (a @ b)[:, :1], x, w).floor_bytes == 4 * 64
    assert audit(lambda a, b: a[:8] * 2, x, w).floor_bytes == 4 * 2 * 8 * 32
    # a view of an input moves nothing, and a table is read where it is looked up
    assert audit(lambda a: a.t(), x).floor_bytes == 0
    ids = torch.zeros(10, dtype=torch.long, device="meta")
    found = audit(lambda table, i: torch.nn.functional.embedding(i, table), x, ids)
    assert found.floor_bytes == 4 * 32 + 8 * 10 + 4 * 10 * 32
    windows = audit(lambda a: a.unfold(0, 3, 2) * 1, x)  # the last row is in none
    assert windows.floor_bytes == 4 * (63 * 32 + 31 * 32 * 3)
    assert audit(lambda a, b: torch.broadcast_tensors(a, b)[1] + 1, x, x[:1].clone()).floor_bytes == 4 * (32 + 64 * 32)
    odd = audit(lambda a: torch.linalg.inv(a[:16, :16]) + 1, x)
    assert [floor.operation.kind for floor in odd.unknown]
    assert odd.alone_bytes >= odd.floor_bytes


def test_attention_written_out_stays_on_chip() -> None:
    torch = pytest.importorskip("torch")
    q, k, v = (torch.empty(2, 4, 128, 64, device="meta", dtype=torch.bfloat16) for _ in range(3))

    def written(q: Any, k: Any, v: Any) -> Any:
        return torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v

    result, fused = audit(written, q, k, v), audit(torch.nn.functional.scaled_dot_product_attention, q, k, v)
    assert result.floor_bytes == fused.floor_bytes == 2 * 4 * q.numel()
    assert result.alone_bytes > 3 * 2 * 2 * 4 * 128 * 128
    (found,) = result.written_out
    assert found.operations == ("matmul", "mul", "softmax", "matmul_1")
    assert found.fused_bytes == result.floor_bytes and found.alone_bytes == result.alone_bytes
    assert not fused.written_out
    assert result.between[0].bytes == 2 * 2 * 2 * 4 * 128 * 128


def test_convolutions_norms_and_pools() -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 8, 3, groups=8), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 5),
    )  # fmt: skip
    result = pebble.from_torch(net.to("meta"), (torch.empty(2, 3, 32, 32, device="meta"),), gpu="h100")
    assert not result.unknown
    weights = (3 * 8 * 9 + 8) + 4 * 8 + (8 * 9 + 8) + (8 * 5 + 5)
    assert result.floor_bytes == 4 * (weights + 2 * 3 * 32 * 32 + 2 * 5)


def test_tied_weights_are_read_once() -> None:
    torch = pytest.importorskip("torch")

    class Tied(torch.nn.Module):  # type: ignore[name-defined, misc]  # torch is not there for mypy
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = torch.nn.Linear(16, 16, bias=False), torch.nn.Linear(16, 16, bias=False)
            self.two.weight = self.one.weight

        def forward(self, x: Any) -> Any:
            return self.two(torch.relu(self.one(x)))

    assert pebble.from_torch(Tied(), torch.empty(8, 16), gpu="a40").floor_bytes == 4 * (256 + 2 * 128)


def test_a_part_without_gradients_is_no_graph_of_its_own() -> None:
    torch = pytest.importorskip("torch")

    class Halves(torch.nn.Module):  # type: ignore[name-defined, misc]  # torch is not there for mypy
        def __init__(self) -> None:
            super().__init__()
            self.up = torch.nn.Linear(16, 16, bias=False)

        def forward(self, x: Any) -> Any:
            with torch.no_grad():
                scale = x.cos()
            return self.up(x) * scale

    result = pebble.from_torch(Halves(), torch.empty(8, 16), gpu="a40")
    assert not result.unknown and result.floor_bytes == 4 * (256 + 2 * 128)
    assert len(result.floors) == 3


def test_what_is_written_in_place_is_no_more_than_what_is_left_of_it() -> None:
    torch = pytest.importorskip("torch")
    cache, new = torch.empty(64, 16, device="meta"), torch.empty(1, 16, device="meta")

    def step(cache: Any, new: Any) -> Any:
        cache[3:4] = new
        return cache.sum(0)

    assert audit(step, cache, new).floor_bytes <= 4 * (63 * 16 + 16 + 16)  # the row before is not read

    def returned(cache: Any, new: Any) -> Any:
        return cache.index_put_((torch.zeros(1, dtype=torch.long, device="meta"),), new)

    assert audit(returned, cache, new).floor_bytes <= 4 * 2 * 16 + 8

    def part(x: Any, w: Any) -> Any:
        y = x @ w
        y[1:] = 0
        return y

    x, w = torch.empty(32, 8, device="meta"), torch.empty(8, 4, device="meta")
    assert audit(part, x, w).floor_bytes <= 4 * (8 + 8 * 4 + 32 * 4)
    assert audit(lambda a, b: (a @ b).relu_().add_(1), x, w).floor_bytes == 4 * (32 * 8 + 8 * 4 + 32 * 4)
    assert audit(lambda a: a + 1, torch.empty(1, 8).expand(100, 8)).floor_bytes == 4 * (8 + 800)


def test_what_cannot_be_exported_is_one_sentence(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match="cannot follow"):
        audit(lambda a: a if float(a.sum()) > 0 else -a, torch.empty(4))
    path = tmp_path / "bad.py"
    path.write_text("def f(x): return x\n")
    with pytest.raises(InputError, match="has no inputs"):
        pebble.audit(f"{path}:f", gpu="a40")
    path.write_text("1 / 0\n")
    with pytest.raises(InputError, match="ZeroDivisionError"):
        pebble.audit(f"{path}:f", gpu="a40")


def test_an_onnx_file(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[1, 0]),
        helper.make_node("Gemm", ["t", "v", "b"], ["y"], transB=1),
        helper.make_node("Softmax", ["y"], ["z"], axis=-1),
    ]
    weights = [helper.make_tensor(n, kind, s, [0.0] * (s[0] * s[-1] if len(s) > 1 else s[0])) for n, s in
               (("w", (8, 4)), ("v", (6, 16)), ("b", (6,)))]  # fmt: skip
    values = [helper.make_tensor_value_info("x", kind, (16, 8)), helper.make_tensor_value_info("z", kind, (4, 6))]
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:], weights)), path)
    result = pebble.audit(str(path), gpu="a40")
    assert [floor.operation.kind for floor in result.floors] == ["product", "elementwise", "product", "softmax"]
    assert result.graph.views == 1 and not result.unknown
    assert result.floor_bytes == 4 * (16 * 8 + 8 * 4 + 6 * 16 + 6 + 4 * 6)
    values[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:], weights)), path)
    with pytest.raises(InputError, match="not fixed"):
        pebble.audit(str(path), gpu="a40")
