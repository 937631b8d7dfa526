"""O = softmax(Q K^T) V: operands, the launch, the library's own, and the float64 check of one query in 128."""

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from kernels import attention_kernel
from launch import Waves, is_ragged, line_of, one_in_each, power_of_two, random_values, whole_lines


class AttentionProblem:
    """O = softmax(Q K^T) V per head, heads in groups that share K and V."""

    def __init__(self, shape, tile, stages, dtype, out_dtype):
        batch, heads, self.kv_heads = shape["batch"], shape["heads"], shape["kv_heads"]
        self.queries, self.keys = shape["queries"], shape["keys"]
        self.dim, self.value_dim = shape["head_dim"], shape["value_dim"]
        self.group, self.causal, self.tile, self.stages = heads // self.kv_heads, shape["causal"], tile, stages
        self.q = random_values(batch, heads, self.queries, self.dim, dtype=dtype)
        self.k = random_values(batch, self.kv_heads, self.keys, self.dim, dtype=dtype)
        self.v = random_values(batch, self.kv_heads, self.keys, self.value_dim, dtype=dtype)
        self.operands = {"Q": self.q, "K": self.k, "V": self.v}
        self.out = whole_lines(batch * heads * self.queries, self.value_dim, dtype=out_dtype)
        self.rows = one_in_each(self.queries)

    def launch(self, table, programs, barrier):
        """The table's kernel."""
        bm, bn = self.tile[:2]
        d, dv = power_of_two(self.dim), power_of_two(self.value_dim)
        meta = {"D": d, "DV": dv, "BM": bm, "BN": bn, "CAUSAL": self.causal, "BARRIER": barrier}
        line = min(line_of(self.q.dtype), line_of(self.out.dtype))
        meta["RAGGED"] = is_ragged([(self.queries, bm), (self.keys, bn)], [(self.dim, d), (self.value_dim, dv)], line)
        args = [self.q, self.k, self.v, self.out, "TABLE", self.queries, self.keys, self.group]
        args += [self.dim, self.value_dim, math.log2(math.e) / self.dim**0.5]
        return Waves(attention_kernel, args, meta, table, programs, self.stages)

    def library(self):
        """PyTorch's own attention; where queries are fewer than keys, ``is_causal`` would mask others than we do."""
        from torch.nn.attention.bias import causal_lower_right

        mask = causal_lower_right(self.queries, self.keys) if self.causal else None
        F.scaled_dot_product_attention(self.q, self.k, self.v, mask, enable_gqa=self.group > 1)

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
