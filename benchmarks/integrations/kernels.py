"""The Triton kernels that `tuners.py` times: a product in groups of rows, and two grouped products of experts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

BF16 = torch.bfloat16


@triton.jit
def product_kernel(a, b, c, M, N, K, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr,
                   BLOCK_SIZE_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr):  # fmt: skip
    """C := A B, a block a tile, in groups of rows."""
    pid = tl.program_id(0)
    rows, cols = tl.cdiv(M, BLOCK_SIZE_M), tl.cdiv(N, BLOCK_SIZE_N)
    group = pid // (GROUP_SIZE_M * cols)
    height = min(rows - group * GROUP_SIZE_M, GROUP_SIZE_M)
    inside = pid % (GROUP_SIZE_M * cols)
    row = (group * GROUP_SIZE_M + inside % height) * BLOCK_SIZE_M
    col = inside // height * BLOCK_SIZE_N
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BLOCK_SIZE_M, BLOCK_SIZE_K])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BLOCK_SIZE_K, BLOCK_SIZE_N])
    total = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_SIZE_K):
        total = tl.dot(left.load([row, k]), right.load([k, col]), total)
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BLOCK_SIZE_M, BLOCK_SIZE_N])
    out.store([row, col], total.to(c.dtype.element_ty))


@triton.jit
def expert_kernel(a, b, c, places, sizes, DIVIDE: tl.constexpr, BLOCK_SIZE_M: tl.constexpr,
                  BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr):  # fmt: skip
    """C[row] := A[token of row] B[expert of block]^T, rows sorted by expert and padded to whole blocks."""
    (token_of, expert_of), (blocks, N, K) = places, sizes
    pid = tl.program_id(0)
    cols = tl.cdiv(N, BLOCK_SIZE_N)
    group = pid // (GROUP_SIZE_M * cols)
    height = min(blocks - group * GROUP_SIZE_M, GROUP_SIZE_M)
    inside = pid % (GROUP_SIZE_M * cols)
    block, col = group * GROUP_SIZE_M + inside % height, inside // height
    rows = tl.load(token_of + block * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M))
    real = rows >= 0
    expert = tl.load(expert_of + block).to(tl.int64)
    at = col * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    depth = tl.arange(0, BLOCK_SIZE_K)
    left = a + (rows // DIVIDE)[:, None].to(tl.int64) * K + depth[None, :]
    right = b + expert * N * K + at[None, :] * K + depth[:, None]
    total = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_SIZE_K):
        inner = depth < K - k
        x = tl.load(left + k, mask=real[:, None] & inner[None, :], other=0.0)
        w = tl.load(right + k, mask=(at < N)[None, :] & inner[:, None], other=0.0)
        total = tl.dot(x, w, total)
    out = c + rows[:, None].to(tl.int64) * N + at[None, :]
    tl.store(out, total.to(c.dtype.element_ty), mask=real[:, None] & (at < N)[None, :])


def allocate() -> None:
    """Memory for descriptors that are made on the device."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))


def launched(kernel: Any, grid: int, operands: tuple[Any, ...], config: dict[str, int], **others: int) -> None:
    """Launch a kernel under a configuration."""
    kernel[(grid,)](*operands, **others, **config)


def compiled(what: tuple[str, dict[str, int]]) -> None:
    """Compile a configuration into Triton's cache, on operands as those of the measurements are."""
    kind, config = what
    allocate()
    try:
        if kind == "product":
            run, _ = product_of(512, 512, 512)
        else:
            entry = {"rows": [16] * 4, "widths": [[512, 512], [512, 256]], "experts": 4, "top_k": 2, "tokens": 32}
            run = experts(entry)
        run(config)
        torch.cuda.synchronize()
    except Exception:  # refused again, and told, when it is timed
        pass


def product_of(m: int, n: int, k: int) -> tuple[Callable[[dict[str, int] | None], None], Callable[[], None]]:
    """A launch of the product under a configuration, PyTorch's own for None; and a check of the first against it."""
    allocate()
    torch.manual_seed(0)
    a, b = torch.randn(m, k, device="cuda", dtype=BF16), torch.randn(k, n, device="cuda", dtype=BF16)
    c = torch.empty(m, n, device="cuda", dtype=BF16)

    def run(config: dict[str, int] | None) -> None:
        if config is None:
            torch.matmul(a, b, out=c)
            return
        grid = triton.cdiv(m, config["BLOCK_SIZE_M"]) * triton.cdiv(n, config["BLOCK_SIZE_N"])
        launched(product_kernel, grid, (a, b, c, m, n, k), config)

    def check() -> None:
        sides = {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8}
        run({**sides, "num_warps": 8, "num_stages": 3})
        ours = c.clone()
        run(None)
        error = ((ours - c).float().norm() / c.float().norm()).item()
        assert error < 1e-2, f"{m}x{n}x{k}: relative error {error}"

    return run, check


def experts(entry: dict[str, Any]) -> Callable[[dict[str, int]], None]:
    """A launch of both products of a mixture under a configuration."""
    allocate()
    torch.manual_seed(0)
    (wide, hidden), (_, inside) = entry["widths"]
    tokens, top_k, count = entry["tokens"], entry["top_k"], entry["experts"]
    x = torch.randn(tokens, hidden, device="cuda", dtype=BF16)
    up = torch.randn(count, wide, hidden, device="cuda", dtype=BF16)
    down = torch.randn(count, hidden, inside, device="cuda", dtype=BF16)
    between = torch.randn(tokens * top_k, inside, device="cuda", dtype=BF16)
    first = torch.empty(tokens * top_k, wide, device="cuda", dtype=BF16)
    second = torch.empty(tokens * top_k, hidden, device="cuda", dtype=BF16)
    sorted_by: dict[int, tuple[torch.Tensor, torch.Tensor, int]] = {}

    def padded(side: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Rows of each block of ``side``, -1 where it has none, and the expert of each block."""
        rows: list[int] = []
        owner: list[int] = []
        begin = 0
        for expert, number in enumerate(entry["rows"]):
            blocks = -(-number // side)
            rows += [*range(begin, begin + number), *[-1] * (blocks * side - number)]
            owner += [expert] * blocks
            begin += number
        made = (torch.tensor(values, device="cuda", dtype=torch.int32) for values in (rows, owner))
        return (*made, len(owner))

    def run(config: dict[str, int]) -> None:
        side = config["BLOCK_SIZE_M"]
        if side not in sorted_by:
            sorted_by[side] = padded(side)
        token_of, expert_of, blocks = sorted_by[side]
        for a, b, c, n, k, divide in ((x, up, first, wide, hidden, top_k), (between, down, second, hidden, inside, 1)):
            grid = blocks * triton.cdiv(n, config["BLOCK_SIZE_N"])
            operands = (a, b, c, (token_of, expert_of), (blocks, n, k))
            launched(expert_kernel, grid, operands, config, DIVIDE=divide)

    return run
