"""The workload that an operation on tensors of given shapes is; None where no theorem is about it as it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from pebble.errors import PebbleError
from pebble.graphs.graph import View
from pebble.workloads import DTYPE_BYTES, Attention, Conv2d, Einsum, Gemm, Workload

_BATCH = "abcdefghij"


def separate(*views: View) -> bool:
    """Whether tensors share nothing and show each of their elements once."""
    return all(view.plain for view in views) and len({view.tensor for view in views}) == len(views)


def product(a: View, b: View, out_dtype: str, transposed: bool = False) -> Workload | None:
    """A matrix product of the last two dimensions, batches before them; ``transposed``: B is n x k."""
    if not separate(a, b) or not _typed(a, b, out_dtype) or min(len(a.shape), len(b.shape)) < 1:
        return None
    left = a.shape if len(a.shape) > 1 else (1, *a.shape)
    right = b.shape if len(b.shape) > 1 else (*b.shape, 1)
    if len(b.shape) > 1 and transposed:
        right = (*right[:-2], right[-1], right[-2])
    (*before, m, k), (*behind, inner, n) = left, right
    if k != inner or min(*left, *right) < 1 or max(len(before), len(behind)) > len(_BATCH):
        return None
    if not any(size > 1 for size in behind):  # one B for all
        return _made(lambda: Gemm(prod(before) * m, n, k, a.dtype, out_dtype))
    length = max(len(before), len(behind))
    before, behind = [1] * (length - len(before)) + before, [1] * (length - len(behind)) + behind
    letters = _BATCH[:length]
    sizes = {c: max(x, y) for c, x, y in zip(letters, before, behind, strict=True)} | {"m": m, "k": k, "n": n}
    of_a = "".join(c for c, x in zip(letters, before, strict=True) if x > 1 or sizes[c] == 1)
    of_b = "".join(c for c, x in zip(letters, behind, strict=True) if x > 1 or sizes[c] == 1)
    return _made(lambda: Einsum(f"{of_a}mk,{of_b}kn->{letters}mn", tuple(sizes.items()), (), a.dtype, out_dtype))


def einsum(subscripts: str, operands: Sequence[View], out_dtype: str) -> Workload | None:
    """An einsum of two operands: of more, a contraction by pairs may move less than the nest as written."""
    left, arrow, _ = subscripts.replace(" ", "").partition("->")
    words = left.split(",")
    if len(operands) != 2 or not arrow or "." in subscripts or len(words) != 2:
        return None
    if not separate(*operands) or not _typed(operands[0], operands[1], out_dtype):
        return None
    sizes: dict[str, int] = {}
    for word, view in zip(words, operands, strict=True):
        if len(word) != len(view.shape) or any(
            sizes.setdefault(c, n) != n for c, n in zip(word, view.shape, strict=True)
        ):
            return None
    return _made(lambda: Einsum(subscripts.replace(" ", ""), tuple(sizes.items()), (), operands[0].dtype, out_dtype))


def attention(q: View, k: View, v: View, out_dtype: str, causal: bool) -> Workload | None:
    """Scaled dot product attention; of a causal one with as many keys as queries, where all conventions agree."""
    shapes = [view.shape for view in (q, k, v)]
    if any(len(shape) < 3 for shape in shapes) or not _typed(q, k, out_dtype) or v.dtype != q.dtype:
        return None
    (*before, m, d), (*_, n, inner), (*_, e) = shapes
    batch, heads = prod(before[:-1]), before[-1]
    each = batch * n * d
    if d != inner or min(m, n, d, e, batch, heads) < 1 or (causal and m != n):
        return None
    if not (q.plain and k.plain and v.plain) or len({q.tensor, k.tensor, v.tensor}) < 3:
        return None  # of an expanded K nobody knows whether heads or keys are repeated
    if k.elements % each or v.elements != k.elements // d * e:
        return None
    shared = k.elements // each
    if not shared or heads % shared:
        return None
    return _made(
        lambda: Attention(
            queries=m,
            keys=n,
            head_dim=d,
            value_dim=e,
            heads=heads,
            kv_heads=shared,
            batch=batch,
            causal=causal,
            dtype=q.dtype,
            out_dtype=out_dtype,
        )
    )


def convolution(
    x: View, w: View, out_dtype: str, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> Workload | None:
    """The outputs that no padding reaches: a part of the convolution, which moves no more than all of it."""
    if not separate(x, w) or not _typed(x, w, out_dtype) or len(x.shape) != len(w.shape) or len(x.shape) < 3:
        return None
    (batch, ins, *space), (outs, depth, *kernel) = x.shape, w.shape
    dims = len(space)
    stride, dilation = _each(stride, dims), _each(dilation, dims)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if groups < 1 or depth * groups != ins or outs % groups or min(*x.shape, *w.shape) < 1:
        return None
    if any(r > n for r, n in zip(reach, space, strict=True)):
        return None
    square = dims == 2 and groups == 1 and len({*stride}) == 1 == len({*kernel}) and {*dilation} == {1}
    if square:
        return _made(lambda: Conv2d(batch, ins, outs, space[0], space[1], kernel[0], stride[0], x.dtype, out_dtype))
    if dims > 3:
        return None
    sides = [(n - r) // s + 1 for n, r, s in zip(space, reach, stride, strict=True)]
    sizes = {"n": batch, "g": groups, "c": depth, "o": outs // groups}
    sizes |= {f"y{i}": side for i, side in enumerate(sides)} | {f"r{i}": k for i, k in enumerate(kernel)}
    at = [f"{s}y{i}+{d}r{i}" for i, (s, d) in enumerate(zip(stride, dilation, strict=True))]
    places, taps = " ".join(f"y{i}" for i in range(dims)), " ".join(f"r{i}" for i in range(dims))
    text = f"n g c {' '.join(at)}, g o c {taps} -> n g o {places}"
    return _made(lambda: Einsum(text, tuple(sizes.items()), (), x.dtype, out_dtype))


def pooled(x: View, out: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int]) -> int:
    """Elements that windows read at least."""
    dims = len(kernel)
    space, result = x.shape[-dims:], out[-dims:]
    read = prod(x.shape[:-dims])
    for n, y, k, s, p in zip(space, result, kernel, stride, padding, strict=True):
        read *= max(1, min(n, (y - 1) * s + k - 2 * p)) if s <= k else min(n, y)
    return min(read, x.elements)


def _each(values: Sequence[int], dims: int) -> list[int]:
    return list(values) * dims if len(values) == 1 else list(values)


def _typed(a: View, b: View, out_dtype: str) -> bool:
    return a.dtype == b.dtype and a.dtype in DTYPE_BYTES and out_dtype in DTYPE_BYTES


def _made(make: Callable[[], Workload]) -> Workload | None:
    """A workload, or None where it is too large or odd for its family."""
    try:
        return make()
    except PebbleError:
        return None
