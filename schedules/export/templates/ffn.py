"""Y = act(X W1) W2, gated or not: operands, the launch, the library's own, and the float64 check of one row in 128."""

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from kernels import ffn_kernel
from launch import Waves, is_ragged, line_of, one_in_each, random_values, whole_lines


class FfnProblem:
    """Y = H W2, H = silu(X W1) or silu(X W1) * (X Wu)."""

    def __init__(self, shape, tile, stages, dtype, out_dtype):
        tokens, d_model, hidden, d_out = (shape[name] for name in ("tokens", "d_model", "hidden", "d_out"))
        self.sizes, self.gated, self.tile, self.stages = (tokens, d_model, hidden, d_out), shape["gated"], tile, stages
        self.x = random_values(tokens, d_model, dtype=dtype)
        self.ups = random_values(1 + self.gated, d_model, hidden, dtype=dtype, scale=d_model**-0.5)
        self.w2 = random_values(hidden, d_out, dtype=dtype, scale=hidden**-0.5)
        self.side_by_side = torch.cat(list(self.ups), dim=1)
        self.h = whole_lines(tokens, hidden, dtype=dtype)
        self.out = whole_lines(tokens, d_out, dtype=out_dtype)
        names = ("Wg", "Wu") if self.gated else ("W1",)
        self.operands = {"X": self.x, **dict(zip(names, self.ups, strict=True)), "W2": self.w2, "H": self.h}
        self.rows = one_in_each(tokens)

    def launch(self, table, programs, barrier):
        """The table's kernel."""
        bm, bn, bk = self.tile
        tokens, d_model, hidden, d_out = self.sizes
        meta = {"BM": bm, "BN": bn, "BK": bk, "GATED": self.gated, "BARRIER": barrier}
        line = min(line_of(self.x.dtype), line_of(self.out.dtype))
        rows, widths = [(tokens, bm), (d_model, bk), (hidden, bk)], [(d_model, bk), (hidden, bn), (d_out, bn)]
        meta["RAGGED"] = is_ragged(rows, widths, line)
        args = [self.x, self.ups[0], self.ups[-1], self.h, self.w2, self.out, "TABLE", *self.sizes]
        return Waves(ffn_kernel, args, meta, table, programs, self.stages)

    def library(self):
        """Two torch.matmul with the activation between them."""
        up = torch.matmul(self.x, self.side_by_side)
        if self.gated:
            gate, up = up.chunk(2, dim=1)
            up = F.silu(gate) * up
        else:
            up = F.silu(up)
        torch.matmul(up, self.w2)

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
