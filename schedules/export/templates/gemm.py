"""C = A B, or C += A B: operands, the launch, the library's own, the float64 check of one value in each 128 x 128."""

import torch
from dealing import parts_of
from kernels import ProductBuild, ProductSizes, gemm_kernel
from launch import Waves, described, one_in_each, random_values, whole_lines


class GemmLaunch:
    """C = A B, or C += A B, where an operand may lie in memory transposed."""

    def __init__(self, shape, tile, build):
        self.m, self.n, self.k = shape["m"], shape["n"], shape["k"]
        self.tile, self.build, self.accumulates = tile, build, shape["accumulate"]
        self.turned = [name in shape.get("transposed", "") for name in "ab"]

    def waves(self, table, programs, how, tensors):
        """The table's launches on A, B and C as they lie in memory."""
        bm, bn, bk = self.tile
        turned = self.turned

        def operands(bn, parts, a, b, out):
            blocks = (bm, bk), (bk, bn)
            a, b = (
                described(x, *(block[::-1] if t else block)) for x, block, t in zip((a, b), blocks, turned, strict=True)
            )
            return [a, b, None, described(out, bm, bn // parts), None]

        waves = Waves(tensors, programs, how, self.build)
        for slots in parts_of(table, programs, alike=(3, 4, 7)):
            first, steps, adds = (int(slots[0, column]) for column in (3, 4, 7))
            adds = adds == 1 or self.accumulates
            build = ProductBuild(bm, bk, bn, ADDS=adds, A_TRANSPOSED=turned[0], B_TRANSPOSED=turned[1])
            waves.add_product(gemm_kernel, slots, operands, [ProductSizes(self.m, self.n, self.k), first, steps], build)
        return waves


class GemmProblem(GemmLaunch):
    """Such a product of random operands, beside the library's."""

    def __init__(self, shape, tile, build, dtype, out_dtype):
        super().__init__(shape, tile, build)
        sides = (self.m, self.k), (self.k, self.n)
        self.stored = [
            random_values(*(side[::-1] if turned else side), dtype=dtype)
            for side, turned in zip(sides, self.turned, strict=True)
        ]
        self.a, self.b = (x.T if turned else x for x, turned in zip(self.stored, self.turned, strict=True))
        self.operands = {"A": self.stored[0], "B": self.stored[1]}
        self.out = whole_lines(self.m, self.n, dtype=out_dtype)
        self.before = random_values(self.m, self.n, dtype=dtype) if self.accumulates else None
        self.product = torch.empty(self.m, self.n, device="cuda", dtype=dtype)
        self.rows, self.cols = one_in_each(self.m), one_in_each(self.n)

    def launch(self, table, programs, how):
        """The table's kernel."""
        return self.waves(table, programs, how, (*self.stored, self.out))

    def libraries(self):
        """torch.matmul, or torch.addmm."""
        if self.accumulates:
            return {"torch.addmm": lambda: torch.addmm(self.before, self.a, self.b, out=self.product)}
        return {"torch.matmul": lambda: torch.matmul(self.a, self.b, out=self.product)}

    def poison(self):
        """No value of the result is left from before; where the product is added to C, C is as it was."""
        if self.accumulates:
            self.out.copy_(self.before)
        else:
            self.out.fill_(float("nan"))

    def sampled(self):
        """Some values of the result."""
        return self.out[self.rows][:, self.cols]

    def expected(self):
        """The same in float64."""
        product = self.a[self.rows].double() @ self.b[:, self.cols].double()
        return product + self.before[self.rows][:, self.cols].double() if self.accumulates else product
