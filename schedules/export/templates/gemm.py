"""C = A B: operands, the launch, the library's own, and the float64 check of one value in each 128 x 128."""

import torch
from kernels import gemm_kernel
from launch import Waves, is_ragged, line_of, one_in_each, random_values, whole_lines


class GemmProblem:
    """C = A B."""

    def __init__(self, shape, tile, stages, dtype, out_dtype):
        self.m, self.n, self.k = shape["m"], shape["n"], shape["k"]
        self.tile, self.stages = tile, stages
        self.a, self.b = random_values(self.m, self.k, dtype=dtype), random_values(self.k, self.n, dtype=dtype)
        self.operands = {"A": self.a, "B": self.b}
        self.out = whole_lines(self.m, self.n, dtype=out_dtype)
        self.product = torch.empty(self.m, self.n, device="cuda", dtype=dtype)
        self.rows, self.cols = one_in_each(self.m), one_in_each(self.n)

    def launch(self, table, programs, barrier):
        """The table's kernel."""
        bm, bn, bk = self.tile
        phases = bool((table[:, 8] > 0).any())
        meta = {"BM": bm, "BN": bn, "BK": bk, "GROUPED": False, "PHASES": phases, "BARRIER": barrier}
        line = min(line_of(self.a.dtype), line_of(self.out.dtype))
        meta["RAGGED"] = is_ragged([(self.m, bm), (self.k, bk)], [(self.n, bn), (self.k, bk)], line)
        args = [self.a, self.b, self.out, "TABLE", self.out, self.m, self.n, self.k]
        return Waves(gemm_kernel, args, meta, table, programs, self.stages)

    def library(self):
        """torch.matmul."""
        torch.matmul(self.a, self.b, out=self.product)

    def poison(self):
        """No value of the result is left from before."""
        self.out.fill_(float("nan"))

    def sampled(self):
        """Some values of the result."""
        return self.out[self.rows][:, self.cols]

    def expected(self):
        """The same in float64."""
        return self.a[self.rows].double() @ self.b[:, self.cols].double()
