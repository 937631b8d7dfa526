"""C_g = A_g B_g for groups of rows: operands, the launch, the library's own, and the float64 check."""

from typing import NamedTuple

import torch
from dealing import parts_of
from kernels import ProductBuild, ProductSizes, gemm_kernel
from launch import Waves, described, one_in_each, random_values, whole_lines


class Groups(NamedTuple):
    """Several products, their A and C one below the other.

    ``places`` has three numbers for each tile row: its first row, the end of its product's rows, which product it is.
    """

    count: int
    places: object
    rows_of_c: object


class GroupedLaunch:
    """C_g = A_g B_g; the A_g and the C_g lie one below the other."""

    def __init__(self, shape, tile, build):
        self.groups, self.n, self.k = shape["rows"], shape["n"], shape["k"]
        self.tile, self.build, self.accumulates = tile, build, shape["accumulate"]

    def waves(self, table, programs, how, tensors):
        """The table's launches on A, B and C."""
        bm, bn, bk = self.tile
        places, top = [], 0
        for group, height in enumerate(self.groups):
            places += [(row, top + height, group) for row in range(top, top + height, bm)]
            top += height
        where = torch.tensor(places, dtype=torch.int32).to(tensors[0].device)

        def operands(bn, parts, a, b, out):
            weights, result = described(b, 1, bk, bn), described(out, bm, bn // parts)
            return [described(a, bm, bk), weights, None, result, Groups(len(self.groups), where, out)]

        waves = Waves(tensors, programs, how, self.build)
        for slots in parts_of(table, programs, alike=(3, 4, 7)):
            first, steps, adds = (int(slots[0, column]) for column in (3, 4, 7))
            build = ProductBuild(bm, bk, bn, GROUPED=True, ADDS=adds == 1 or self.accumulates)
            waves.add_product(gemm_kernel, slots, operands, [ProductSizes(top, self.n, self.k), first, steps], build)
        return waves


class GroupedProblem(GroupedLaunch):
    """Such products of random operands, beside the library's."""

    def __init__(self, shape, tile, build, dtype, out_dtype):
        super().__init__(shape, tile, build)
        m = sum(self.groups)
        self.a = random_values(m, self.k, dtype=dtype)
        self.b = random_values(len(self.groups), self.k, self.n, dtype=dtype)
        self.operands = {"A": self.a, "B": self.b}
        self.out = whole_lines(m, self.n, dtype=out_dtype)
        self.before = random_values(m, self.n, dtype=dtype) if self.accumulates else None
        self.rows, self.cols = one_in_each(m), one_in_each(self.n)

    def launch(self, table, programs, how):
        """The table's kernel."""
        return self.waves(table, programs, how, (self.a, self.b, self.out))

    def libraries(self):
        """torch.matmul, or torch.addmm, for each group; torch._grouped_mm where PyTorch has it."""
        ends = torch.tensor(self.groups).cumsum(0).to(device=self.a.device, dtype=torch.int32)
        products = self.out.new_empty(self.out.shape, dtype=self.a.dtype)

        each = list(zip(self.a.split(self.groups), self.b, products.split(self.groups), strict=True))

        def loop():
            for a, b, c in each:
                torch.matmul(a, b, out=c)

        def added():
            for (a, b, c), before in zip(each, self.before.split(self.groups), strict=True):
                torch.addmm(before, a, b, out=c)

        def together():
            torch._grouped_mm(self.a, self.b, ends)

        if self.accumulates:
            return {"torch.addmm of each group": added}
        return {"torch.matmul of each group": loop, "torch._grouped_mm": together}

    def poison(self):
        """No value of the result is left from before; where the products are added to C, C is as it was."""
        if self.accumulates:
            self.out.copy_(self.before)
        else:
            self.out.fill_(float("nan"))

    def sampled(self):
        """Some values of the result."""
        return self.out[self.rows][:, self.cols]

    def expected(self):
        """The same in float64."""
        ends = torch.tensor(self.groups).cumsum(0).to(self.rows.device)
        group = torch.bucketize(self.rows, ends, right=True)
        parts = [self.a[self.rows[group == g]].double() @ b[:, self.cols].double() for g, b in enumerate(self.b)]
        result = torch.cat(parts)
        return result + self.before[self.rows][:, self.cols].double() if self.accumulates else result
