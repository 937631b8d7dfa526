"""O = softmax(Q K^T) V: operands, the launch, the library's own, and the float64 check of one query in 128."""

import functools
import math

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
import triton.experimental.gluon.language as gl
from dealing import parts_of
from hopper import HopperBuild, HopperSizes, hopper_attention_kernel
from kernels import AttentionBuild, AttentionSizes, attention_kernel
from launch import Waves, described, has_copy_engine, on_hopper, one_in_each, power_of_two, random_values, whole_lines
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as TileDescriptor

BACKENDS = ("cudnn_attention", "flash_attention", "efficient_attention")


def attention_calls(q, k, v, causal):
    """PyTorch's own kernels that take these operands; of fewer queries than keys the last sees all keys."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.bias import causal_lower_right

    square = q.shape[2] == k.shape[2]
    mask = causal_lower_right(q.shape[2], k.shape[2]) if causal and not square else None

    def call(backend):
        with sdpa_kernel(getattr(SDPBackend, backend.upper())):
            F.scaled_dot_product_attention(
                q, k, v, mask, is_causal=causal and square, enable_gqa=q.shape[1] != k.shape[1]
            )

    return {f"torch, {backend}": functools.partial(call, backend) for backend in BACKENDS}


class AttentionLaunch:
    """O = softmax(Q K^T) V per head, heads in groups that share K and V."""

    def __init__(self, shape, tile, build):
        self.batch, self.heads, self.kv_heads = shape["batch"], shape["heads"], shape["kv_heads"]
        self.queries, self.keys = shape["queries"], shape["keys"]
        self.dim, self.value_dim = shape["head_dim"], shape["value_dim"]
        self.group, self.causal, self.tile, self.build = self.heads // self.kv_heads, shape["causal"], tile, build
        self.scale = math.log2(math.e) / self.dim**0.5

    def waves(self, table, programs, how, tensors):
        """The table's launch on Q, K, V (batch, heads, rows, columns) and O with all heads' rows one below the other.

        On Hopper the kernel is one of warp groups with roles, if its tile is theirs.
        """
        bm, bn = self.tile[:2]
        d, dv = power_of_two(self.dim), power_of_two(self.value_dim)
        (slots,) = parts_of(table, programs)
        copies, kv_copies = self.batch * self.heads, self.batch * self.kv_heads
        if on_hopper() and bm == 128 and bn * max(d, dv) <= 128**2:
            waves = Waves(tensors, programs, how, self.build, warps=4)

            def rows(q, k, v, out):
                return [_rows(q, 64, d), _rows(k, bn, d), _rows(v, bn, dv), out]

            pitch = tensors[-1].stride(0)
            sizes = HopperSizes(self.queries, self.keys, self.group, self.value_dim, pitch, self.scale)
            waves.add(hopper_attention_kernel, slots, rows, [sizes], HopperBuild(waves.stages, self.causal))
            return waves
        waves = Waves(tensors, programs, how, self.build)
        build = AttentionBuild(bm, bn, d, dv, self.causal, has_copy_engine())

        def operands(q, k, v, out):
            q, k, v = (x.flatten(0, 1) for x in (q, k, v))
            out = out.unflatten(0, (copies, self.queries))
            return [described(q, 1, bm, d), described(k, 1, bn, d), described(v, 1, bn, dv), described(out, 1, bm, dv)]

        sizes = AttentionSizes(copies, kv_copies, self.queries, self.keys, self.dim, self.value_dim, self.scale)
        waves.add(attention_kernel, slots, operands, [sizes], build)
        return waves


class AttentionProblem(AttentionLaunch):
    """Attention of random operands, beside the library's."""

    def __init__(self, shape, tile, build, dtype, out_dtype):
        super().__init__(shape, tile, build)
        self.q = random_values(self.batch, self.heads, self.queries, self.dim, dtype=dtype)
        self.k = random_values(self.batch, self.kv_heads, self.keys, self.dim, dtype=dtype)
        self.v = random_values(self.batch, self.kv_heads, self.keys, self.value_dim, dtype=dtype)
        self.operands = {"Q": self.q, "K": self.k, "V": self.v}
        self.out = whole_lines(self.batch * self.heads * self.queries, self.value_dim, dtype=out_dtype)
        self.rows = one_in_each(self.queries)

    def launch(self, table, programs, how):
        """The table's kernel."""
        return self.waves(table, programs, how, (self.q, self.k, self.v, self.out))

    def libraries(self):
        """PyTorch's own kernels."""
        return attention_calls(self.q, self.k, self.v, self.causal)

    def poison(self):
        """No value of the result is left from before."""
        self.out.fill_(float("nan"))

    def sampled(self):
        """Some queries of each head."""
        return self.out.view(-1, self.queries, self.value_dim)[:, self.rows]

    def expected(self):
        """The same in float64."""
        visible = torch.arange(self.keys, device="cuda")[None] <= (self.keys - self.queries + self.rows)[:, None]
        results = []
        for q, k, v in zip(
            self.q.flatten(0, 1),
            self.k.repeat_interleave(self.group, 1).flatten(0, 1),
            self.v.repeat_interleave(self.group, 1).flatten(0, 1),
            strict=True,
        ):
            scores = q[self.rows].double() @ k.double().T / self.dim**0.5
            if self.causal:
                scores = scores.masked_fill(~visible, -math.inf)
            results.append(scores.softmax(-1) @ v.double())
        return torch.stack(results)


def _rows(matrices, height, width):
    """Matrices one below the other as tiles of a height, as `hopper` takes them."""
    x = matrices.flatten(0, 2)
    layout = gl.NVMMASharedLayout.get_default_for([height, width], gl.bfloat16)  # of fp16 alike
    return TileDescriptor(x, list(x.shape), list(x.stride()), [height, width], layout)
