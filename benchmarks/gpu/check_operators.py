"""Check a module of `pebble export --format torch` on the GPU: alone, under `torch.compile`, in a CUDA graph.

    python benchmarks/gpu/check_operators.py MODULE.py

For each of its schedules random operands are drawn, and the result is compared with float64 of the same and with what a
compiled function and a replayed graph give. Nothing of pebble is needed.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

from run_exports import load


def operands(key: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The operator of a schedule and operands for it."""
    import torch

    kind, *sizes, dtype, _ = key

    def random(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=dtype) * shape[-2] ** -0.5

    if kind == "gemm":
        m, n, k = sizes
        return "matmul", (random(m, k), random(k, n))
    if kind == "grouped":
        rows, n, k = sizes
        return "grouped_matmul", (random(sum(rows), k), random(len(rows), k, n), list(rows))
    if kind == "ffn":
        tokens, d_model, hidden, d_out, gated = sizes
        more = (random(d_model, hidden),) if gated else ()
        return "mlp", (random(tokens, d_model), random(d_model, hidden), random(hidden, d_out), *more)
    batch, heads, queries, dim, kv_heads, keys, value_dim, causal = sizes
    q, k, v = (
        random(batch, heads, queries, dim),
        random(batch, kv_heads, keys, dim),
        random(batch, kv_heads, keys, value_dim),
    )
    return "attention", (q, k, v, causal)


def relative(result: Any, expected: Any) -> float:
    """Error of a result."""
    return float((result.double() - expected.double()).norm() / expected.double().norm())


def main() -> int:
    """Check each schedule of a module."""
    try:
        import torch
        import triton  # noqa: F401

        has_gpu = torch.cuda.is_available()
    except ImportError:
        has_gpu = False
    if not has_gpu or len(sys.argv) != 2:
        sys.exit("usage: check_operators.py MODULE.py; needs PyTorch, Triton and an NVIDIA GPU.")
    module, wrong = load(Path(sys.argv[1])), 0
    warnings.simplefilter("error", UserWarning)  # a schedule that does not run is said so
    references = {"matmul": torch.matmul, "grouped_matmul": module.grouped_reference, "mlp": module.mlp_reference,
                  "attention": module.attention_reference}  # fmt: skip
    for key in module.SCHEDULES:
        name, given = operands(key)
        call = getattr(module, name)
        doubles = [x.double() if isinstance(x, torch.Tensor) else x for x in given]
        if name == "mlp" and len(doubles) == 3:
            doubles.append(None)
        expected = references[name](*doubles)
        alone = call(*given)
        torch.compiler.reset()  # the next schedule is not the same function again, of which only some are compiled
        compiled = torch.compile(lambda *x, call=call: call(*x) * 1, fullgraph=True)(*given)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = call(*given)
        captured.fill_(float("nan"))
        graph.replay()
        graph.replay()
        torch.cuda.synchronize()
        errors = [relative(x, expected) for x in (alone, compiled, captured)]
        wrong += not all(error < 0.01 for error in errors)
        print(
            f"{name} {key[1:-2]}: alone, compiled, in a graph: " + ", ".join(f"{error:.1e}" for error in errors),
            flush=True,
        )
        del expected, alone, compiled, captured, graph
        torch.cuda.empty_cache()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
