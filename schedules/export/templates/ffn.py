"""Y = act(X W1) W2, gated or not: operands, the launch, the library's own, and the float64 check of one row in 128."""

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
import triton
import triton.language as tl
from dealing import in_pairs, parts_of
from kernels import ProductBuild, ProductSizes, gemm_kernel
from launch import Waves, described, one_in_each, random_values, whole_lines


@triton.jit
def activation_kernel(wide, narrow, hidden, pitch, out_pitch, GATED: tl.constexpr, COLUMNS: tl.constexpr):
    """silu of a row of the up product, or of its gate times its up: what a library runs between its products."""
    row, at = tl.program_id(0).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    there = at < hidden
    x = tl.load(wide + row * pitch + at, mask=there, other=0.0).to(tl.float32)
    x = x * tl.sigmoid(x)
    if GATED:
        x *= tl.load(wide + row * pitch + hidden + at, mask=there, other=0.0).to(tl.float32)
    tl.store(narrow + row * out_pitch + at, x.to(narrow.dtype.element_ty), mask=there)


class FfnLaunch:
    """Y = H W2, H = silu(X W1) or silu(X Wg) * (X Wu)."""

    def __init__(self, shape, tile, build):
        self.sizes = tuple(shape[name] for name in ("tokens", "d_model", "hidden", "d_out"))
        self.gated, self.tile, self.build = shape["gated"], tile, build
        self.turned = [name in shape.get("transposed", ()) for name in ("up", "down")]

    def waves(self, table, programs, how, tensors):
        """The table's launches, of one product each, on X, W1 or Wu, Wg or None, W2, H and Y.

        A launch begins when what it reads is written.
        """
        bm, bn, bk = self.tile
        tokens, d_model, hidden, d_out = self.sizes
        up_turned, down_turned = self.turned

        def weights(w, bn, turned):
            return w if w is None else described(w, *((bn, bk) if turned else (bk, bn)))

        def up(bn, parts, x, w1, gate, w2, h, y):
            both = [weights(w, bn, up_turned) for w in (w1, gate)]
            return [described(x, bm, bk), *both, described(h, bm, bn // parts), None]

        def down(bn, parts, x, w1, gate, w2, h, y):
            result = described(y, bm, bn // parts)
            return [described(h, bm, bk), weights(w2, bn, down_turned), None, result, None]

        waves = Waves(tensors, programs, how, self.build)
        for slots in parts_of(table, programs, alike=(0, 3, 4, 7)):
            product, first, steps, adds = (int(slots[0, column]) for column in (0, 3, 4, 7))
            build = ProductBuild(bm, bk, bn, ADDS=adds == 1, B_TRANSPOSED=self.turned[product])
            if product == 0:
                build = build._replace(GATED=self.gated, SILU=not self.gated)
                waves.add_product(gemm_kernel, slots, up, [ProductSizes(tokens, hidden, d_model), first, steps], build)
                continue
            if how != "waves" and 2 * bn <= self.build["widths"][1]:  # one product has room for what two had
                slots, build = in_pairs(slots), build._replace(BN=2 * bn)
            waves.add_product(gemm_kernel, slots, down, [ProductSizes(tokens, d_out, hidden), first, steps], build)
        return waves


class FfnProblem(FfnLaunch):
    """Such a network of random operands, beside the library's."""

    def __init__(self, shape, tile, build, dtype, out_dtype):
        super().__init__(shape, tile, build)
        tokens, d_model, hidden, d_out = self.sizes
        self.x = random_values(tokens, d_model, dtype=dtype)
        self.ups = random_values(1 + self.gated, d_model, hidden, dtype=dtype, scale=d_model**-0.5)
        self.w2 = random_values(hidden, d_out, dtype=dtype, scale=hidden**-0.5)
        self.side_by_side = torch.cat(list(self.ups), dim=1)
        self.h = whole_lines(tokens, hidden, dtype=dtype)
        self.out = whole_lines(tokens, d_out, dtype=out_dtype)
        names = ("Wg", "Wu") if self.gated else ("W1",)
        self.operands = {"X": self.x, **dict(zip(names, self.ups, strict=True)), "W2": self.w2, "H": self.h}
        self.rows = one_in_each(tokens)

    def launch(self, table, programs, how):
        """The table's kernels."""
        gate = self.ups[0] if self.gated else None
        return self.waves(table, programs, how, (self.x, self.ups[-1], gate, self.w2, self.h, self.out))

    def libraries(self):
        """Two torch.matmul with the activation between them, as PyTorch has it and in one kernel."""
        wide, narrow = whole_lines(len(self.x), self.side_by_side.shape[1], dtype=self.x.dtype), self.h.clone()
        result = torch.empty_like(self.out, dtype=self.x.dtype)

        def plain():
            up = torch.matmul(self.x, self.side_by_side)
            if self.gated:
                gate, up = up.chunk(2, dim=1)
                up = F.silu(gate) * up
            else:
                up = F.silu(up)
            torch.matmul(up, self.w2)

        def in_one():
            torch.matmul(self.x, self.side_by_side, out=wide)
            grid = (len(self.x), triton.cdiv(self.sizes[2], 1024))
            activation_kernel[grid](wide, narrow, self.sizes[2], wide.stride(0), narrow.stride(0), self.gated, 1024)
            torch.matmul(narrow, self.w2, out=result)

        return {"two torch.matmul and the activation": plain, "two torch.matmul, activation in one kernel": in_one}

    def poison(self):
        """No value of the results is left from before."""
        self.out.fill_(float("nan"))
        self.h.fill_(float("nan"))

    def sampled(self):
        """Some rows of the result."""
        return self.out[self.rows]

    def expected(self):
        """The same in float64."""
        x = self.x[self.rows].double()
        h = F.silu(x @ self.ups[0].double())
        return (h * (x @ self.ups[1].double()) if self.gated else h) @ self.w2.double()
