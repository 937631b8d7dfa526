"""C_g = A_g B_g for groups of rows: operands, the launch, the library's own, and the float64 check."""

import torch
from kernels import gemm_kernel
from launch import Waves, is_ragged, line_of, one_in_each, random_values, whole_lines


class GroupedProblem:
    """C_g = A_g B_g; the A_g and the C_g lie one below the other."""

    def __init__(self, shape, tile, stages, dtype, out_dtype):
        self.groups, self.n, self.k = shape["rows"], shape["n"], shape["k"]
        self.tile, self.stages, m = tile, stages, sum(self.groups)
        self.a = random_values(m, self.k, dtype=dtype)
        self.b = random_values(len(self.groups), self.k, self.n, dtype=dtype)
        self.operands = {"A": self.a, "B": self.b}
        self.out = whole_lines(m, self.n, dtype=out_dtype)
        self.rows, self.cols = one_in_each(m), one_in_each(self.n)

    def launch(self, table, programs, barrier):
        """The table's kernel."""
        bm, bn, bk = self.tile
        places, top = [], 0
        for group, height in enumerate(self.groups):
            places += [(row, top + height, group) for row in range(top, top + height, bm)]
            top += height
        line = min(line_of(self.a.dtype), line_of(self.out.dtype))
        rows = [(self.k, bk), *((height, bm) for height in self.groups)]
        meta = {"BM": bm, "BN": bn, "BK": bk, "GROUPED": True, "BARRIER": barrier}
        meta |= {"PHASES": bool((table[:, 8] > 0).any()), "RAGGED": is_ragged(rows, [(self.n, bn), (self.k, bk)], line)}
        where = torch.tensor(places, dtype=torch.int32).to(self.a.device)
        args = [self.a, self.b, self.out, "TABLE", where, top, self.n, self.k]
        return Waves(gemm_kernel, args, meta, table, programs, self.stages)

    def library(self):
        """torch.matmul for each group."""
        for a, b in zip(self.a.split(self.groups), self.b, strict=True):
            torch.matmul(a, b)

    def poison(self):
        """No value of the result is left from before."""
        self.out.fill_(float("nan"))

    def sampled(self):
        """Some values of the result."""
        return self.out[self.rows][:, self.cols]

    def expected(self):
        """The same in float64."""
        ends = torch.tensor(self.groups).cumsum(0).to(self.rows.device)
        group = torch.bucketize(self.rows, ends, right=True)
        parts = [self.a[self.rows[group == g]].double() @ b[:, self.cols].double() for g, b in enumerate(self.b)]
        return torch.cat(parts)
