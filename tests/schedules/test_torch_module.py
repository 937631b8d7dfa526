"""The module of `--format torch`: operators that choose a schedule by shape, or PyTorch's own call with one warning."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pebble.errors import InputError
from pebble.schedules.attention_names import parse_attention_schedule
from pebble.schedules.export.torch_module import torch_source
from pebble.schedules.ffn import parse_ffn_schedule
from pebble.schedules.orders import parse_order
from pebble.schedules.tables import Launch, TileTable
from pebble.schedules.tables.registry import named_table
from pebble.schedules.tile import TileShape
from pebble.workloads import Attention, Ffn, Gemm, GroupedGemm, LatentAttention

PRODUCT, ROWS = Launch(TileShape(128, 128, 64), 132, 1, 4), Launch(TileShape(128, 128, 1), 132, 1, 2)
FLASH = parse_attention_schedule("fa2")
TABLES = [
    named_table(Gemm(256, 384, 128), parse_order("grouped-2+sawtooth"), PRODUCT),
    named_table(GroupedGemm((64, 32, 128), 64, 128), parse_order("row"), PRODUCT),
    named_table(Ffn(256, 64, 128, gated=True), parse_ffn_schedule("separate:row"), PRODUCT),
    named_table(Attention(128, 256, 64, heads=4, kv_heads=2, causal=True), FLASH, ROWS),
    named_table(Attention(1, 512, 64, heads=8, kv_heads=2, batch=2), FLASH, Launch(TileShape(16, 128, 1), 132, 1, 3)),
]


def refused(table: TileTable) -> None:
    with pytest.raises(InputError, match="operators"):
        torch_source([table])


def test_what_has_no_operator_is_refused() -> None:
    refused(named_table(Gemm(256, 256, 64, accumulate=True), parse_order("row"), PRODUCT))
    refused(named_table(LatentAttention(8, 512, 64, 32, heads=4), FLASH, ROWS))


@pytest.fixture
def operators(tmp_path: Path) -> ModuleType:
    """The module of all tables."""
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    path = tmp_path / "operators_of_tables.py"
    path.write_text(torch_source(TABLES))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def operands(kind: torch.dtype | None = None) -> dict[str, tuple[Any, ...]]:  # noqa: F821 - PyTorch may be absent
    """For each operator, of sizes for which there is a schedule."""
    import torch

    def random(*sizes: int) -> Any:
        return torch.randn(*sizes, dtype=kind or torch.bfloat16)

    return {
        "matmul": (random(256, 128), random(128, 384)),
        "grouped_matmul": (random(224, 128), random(3, 128, 64), [64, 32, 128]),
        "mlp": (random(2, 128, 64), random(64, 128), random(128, 64), random(64, 128)),
        "attention": (random(1, 4, 128, 64), random(1, 2, 256, 64), random(1, 2, 256, 64), True),
    }


def expected(name: str, given: tuple[Any, ...]) -> Any:
    """The same in float64, written out."""
    import torch

    a, b, *more = (x.double() if isinstance(x, torch.Tensor) else x for x in given)
    if name == "matmul":
        return a @ b
    if name == "grouped_matmul":
        return torch.cat([x @ w for x, w in zip(a.split(more[0]), b, strict=True)])
    if name == "mlp":
        gate = a @ more[1]
        return (gate * torch.sigmoid(gate) * (a @ b)) @ more[0]
    scores = a @ b.repeat_interleave(2, 1).mT / 8
    scores.masked_fill_(torch.ones(128, 256).tril(128) == 0, -torch.inf)
    return scores.softmax(-1) @ more[0].repeat_interleave(2, 1)


@pytest.mark.parametrize("name", ["matmul", "grouped_matmul", "mlp", "attention"])
def test_without_a_gpu_pytorch_computes_and_says_so_once(operators: ModuleType, name: str) -> None:
    import torch

    given = operands()[name]
    with pytest.warns(UserWarning, match=f"{name}: the kernels need an NVIDIA GPU"):
        result = getattr(operators, name)(*given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = getattr(operators, name)(*given)
    reference = expected(name, given)
    assert result.shape == reference.shape
    assert float((result.double() - reference).norm() / reference.norm()) < 0.01
    torch.testing.assert_close(again, result)


def test_fake_kernels_and_schemas_hold(operators: ModuleType) -> None:
    import torch

    given = operands()
    kinds = {"matmul": "matmul", "grouped_matmul": "grouped", "mlp": "mlp", "attention": "attention"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, kind in kinds.items():
            torch.library.opcheck(getattr(operators, f"{kind}_operator"), given[name])
        a, b = given["matmul"]
        torch.library.opcheck(operators.matmul_out_operator, (a, b, torch.empty(256, 384, dtype=a.dtype)))


def test_torch_compile_takes_them_whole(operators: ModuleType) -> None:
    import torch

    given = operands()

    def network(a: Any, b: Any, x: Any, up: Any, down: Any, gate: Any) -> Any:
        return operators.matmul(a, b) + 1, operators.mlp(x, up, down, gate)

    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = compiled(*given["matmul"], *given["mlp"])
        torch.testing.assert_close(result, network(*given["matmul"], *given["mlp"]))


def test_gradients_and_a_result_that_is_there(operators: ModuleType) -> None:
    import torch

    a, b = operands(torch.float32)["matmul"]
    a.requires_grad_()
    operators.matmul(a, b).sum().backward()
    torch.testing.assert_close(a.grad, b.sum(1).expand(256, 128), rtol=1e-4, atol=1e-4)
    out = torch.empty(256, 384)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert operators.matmul(a.detach(), b, out=out) is out
    torch.testing.assert_close(out, a.detach() @ b, rtol=1e-4, atol=1e-4)


def test_a_schedule_runs_for_its_sizes_on_gpus_with_its_sms(
    operators: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU that is only pretended: which schedule is launched on what."""
    import torch

    ran: list[tuple[str, str]] = []
    monkeypatch.setattr(operators.Schedule, "fits", lambda schedule, device: schedule.programs <= 132)
    monkeypatch.setattr(
        operators.Schedule, "run", lambda schedule, tensors, transposed: ran.append((schedule.kind, str(transposed)))
    )
    monkeypatch.setattr(
        operators,
        "why_not",
        lambda schedules, tensors: "" if schedules and all(map(operators.lies_well, tensors)) else "none",
    )
    monkeypatch.setattr(operators, "has_copy_engine", lambda: True)
    given = operands()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, each in given.items():
            getattr(operators, name)(*each)
        a, b = given["matmul"]
        operators.matmul(a, b.T.contiguous().T)  # stored transposed
        operators.matmul(a[:, 1:], b[1:])  # begins between 16 bytes, and other sizes
        operators.matmul(a[:128], b)
        x, up, down, _ = given["mlp"]
        operators.mlp(x, up, down)  # no schedule without a gate
        q = torch.randn(2, 8, 1, 64, dtype=torch.bfloat16)
        kv = torch.randn(2, 2, 512, 64, dtype=torch.bfloat16)
        operators.attention(q, kv, kv)
    assert [kind for kind, _ in ran] == ["gemm", "grouped", "ffn", "attention", "gemm", "decode"]
    assert ran[4] == ("gemm", "b")
