"""Operands, launches and float64 checks of the three families, on the current GPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kernels
import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from launch import (
    WARPS,
    Library,
    is_ragged,
    line_of,
    occupancy,
    one_in_each,
    power_of_two,
    random_values,
    whole_lines,
)
from tables import Table, check_cover, ffn_slots, is_ready, read_table, tile_slots
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

Case = dict[str, str]
BACKENDS = {"sdpa-flash": SDPBackend.FLASH_ATTENTION, "sdpa-cudnn": SDPBackend.CUDNN_ATTENTION}


def numbers(case: Case, *names: str) -> tuple[int, ...]:
    """Whole numbers of a case."""
    return tuple(int(case[name]) for name in names)


def sides(case: Case) -> tuple[int, ...]:
    """The tile's sides."""
    return tuple(int(side) for side in case["tile"].split("x"))


class Launch:
    """One case, compiled and ready: ``run()`` launches it, ``reset()`` must come before."""

    def __init__(self, case: Case, kernel: Any, args: list[Any], meta: dict[str, Any], slots: torch.Tensor) -> None:
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        self.counter = torch.zeros(1, dtype=torch.int32, device="cuda")
        self.slots = slots
        persistent = case["launch"] == "persistent"
        self.programs = sms * int(case["blocks_per_sm"]) if persistent else len(slots)
        self.programs = min(self.programs, len(slots))
        place = args.index("TABLE")
        self.args = [*args[:place], slots, len(slots), self.counter, *args[place + 1 :]]
        self.meta = meta | {"num_warps": WARPS, "num_stages": int(case["stages"])}
        self.kernel = kernel
        compiled = kernel.warmup(*self.args, **self.meta, grid=(1,))
        compiled._init_handles()
        self.fits = occupancy(compiled)
        self.blocks_per_sm = int(case["blocks_per_sm"]) if persistent else self.fits
        self.resources = f"{compiled.n_regs} registers, {compiled.n_spills} spills, {compiled.metadata.shared} B shared"
        if persistent and self.fits < int(case["blocks_per_sm"]):
            raise ValueError(f"{case['order']}: {self.fits} blocks fit an SM, so a barrier over all would never end.")

    def reset(self) -> None:
        """The barrier's counter back to zero."""
        self.counter.zero_()

    def run(self) -> None:
        """Launch."""
        self.kernel[(self.programs,)](*self.args, **self.meta)


class LibraryLaunch(Library):
    """A library's own kernels."""

    blocks_per_sm, resources = "", ""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__(call)
        call()  # workspaces and plans are made at the first call


LINE = line_of(torch.bfloat16)


def _random(*shape: int, scale: float = 1.0) -> torch.Tensor:
    return random_values(*shape, dtype=torch.bfloat16, scale=scale)


class Problem:
    """Operands of one problem, shared by its cases; ``sampled`` and ``expected`` are the float64 check."""

    out: torch.Tensor

    def __init__(self, case: Case, folder: Path) -> None:
        self.folder = folder

    def prepare(self, case: Case) -> Launch | LibraryLaunch:
        """Compile a case; a table is checked to cover every tile once."""
        return LibraryLaunch(self.library(case)) if case["launch"] == "library" else self.launch(case)

    def library(self, case: Case) -> Callable[[], None]:
        raise NotImplementedError

    def launch(self, case: Case) -> Launch:
        raise NotImplementedError

    def slots(self, case: Case, slots_of: Callable[[Table, int], Table]) -> Table:
        """The case's table as kernels read it: ready-made (the float64 check is then all that tests it), or dealt."""
        table = read_table(self.folder / case["table"])
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        return table if is_ready(table) else slots_of(table, sms * int(case["blocks_per_sm"]))

    def sampled(self) -> torch.Tensor:
        raise NotImplementedError

    def expected(self) -> torch.Tensor:
        raise NotImplementedError

    def error(self, launch: Launch | LibraryLaunch) -> float:
        """Launch over a poisoned result; relative error of the samples, infinite where a value was not written."""
        self.out.fill_(float("nan"))
        launch.reset()
        launch.run()
        torch.cuda.synchronize()
        if not all(bool(torch.isfinite(part).all()) for part in self.out.split(4096)):
            return math.inf
        expected = self.expected()
        return float((self.sampled().double() - expected).norm() / expected.norm())


class GemmProblem(Problem):
    """C = A B; one sample in each 128 x 128 values."""

    def __init__(self, case: Case, folder: Path) -> None:
        super().__init__(case, folder)
        self.m, self.n, self.k = numbers(case, "m", "n", "k")
        self.a, self.b = _random(self.m, self.k), _random(self.k, self.n)
        self.out = whole_lines(self.m, self.n, dtype=torch.bfloat16)
        self.rows, self.cols = one_in_each(self.m), one_in_each(self.n)
        self._expected = self.a[self.rows].double() @ self.b[:, self.cols].double()

    def library(self, case: Case) -> Callable[[], None]:
        return lambda: torch.matmul(self.a, self.b, out=self.out)

    def launch(self, case: Case) -> Launch:
        bm, bn, bk = sides(case)

        def slots_of(table: Table, wave: int) -> Table:
            check_cover(table, -(-self.m // bm), -(-self.n // bn))
            return tile_slots(table, -(-self.k // bk), wave, case["order"].endswith("+sawtooth"))

        slots = self.slots(case, slots_of)
        phases = bool(slots[:, 8].any())
        meta = {"BM": bm, "BN": bn, "BK": bk, "GROUPED": False, "PHASES": phases}
        meta["BARRIER"] = case["execution"] == "waves"
        meta["RAGGED"] = is_ragged([(self.m, bm), (self.k, bk)], [(self.n, bn), (self.k, bk)], LINE)
        args = [self.a, self.b, self.out, "TABLE", self.out, self.m, self.n, self.k]
        return Launch(case, kernels.gemm_kernel, _Args(args), meta, torch.from_numpy(slots).cuda())

    def sampled(self) -> torch.Tensor:
        return self.out[self.rows][:, self.cols]

    def expected(self) -> torch.Tensor:
        return self._expected


class FfnProblem(Problem):
    """Y = H W2; one row in each 128, all columns."""

    def __init__(self, case: Case, folder: Path) -> None:
        super().__init__(case, folder)
        self.tokens, self.d_model, self.hidden, gated = numbers(case, "tokens", "d_model", "hidden", "gated")
        self.gated = bool(gated)
        up = (1 + self.gated) * self.hidden
        self.x = _random(self.tokens, self.d_model)
        self.ups = _random(1 + self.gated, self.d_model, self.hidden, scale=self.d_model**-0.5)
        self.w2 = _random(self.hidden, self.d_model, scale=self.hidden**-0.5)
        self.side_by_side = torch.empty(self.tokens, up, device="cuda", dtype=torch.bfloat16)
        self.h = whole_lines(self.tokens, self.hidden, dtype=torch.bfloat16)
        self.out = whole_lines(self.tokens, self.d_model, dtype=torch.bfloat16)
        self.rows = one_in_each(self.tokens)
        x = self.x[self.rows].double()
        h = F.silu(x @ self.ups[0].double())
        self._expected = (h * (x @ self.ups[1].double()) if self.gated else h) @ self.w2.double()

    def library(self, case: Case) -> Callable[[], None]:
        weights = torch.cat(list(self.ups), dim=1)

        def call() -> None:
            torch.matmul(self.x, weights, out=self.side_by_side)
            torch.matmul(self.h, self.w2, out=self.out)

        return call

    def launch(self, case: Case) -> Launch:
        bm, bn, bk = sides(case)

        def slots_of(table: Table, wave: int) -> Table:
            check_cover(table[table[:, 1] == 0][:, 2:4], -(-self.tokens // bm), -(-self.hidden // bn))
            return ffn_slots(table, wave, case["order"].endswith("+sawtooth"))

        slots = self.slots(case, slots_of)
        meta = {"BM": bm, "BN": bn, "BK": bk, "GATED": self.gated, "BARRIER": case["execution"] == "waves"}
        rows = [(self.tokens, bm), (self.d_model, bk), (self.hidden, bk)]
        meta["RAGGED"] = is_ragged(rows, [(self.d_model, bk), (self.d_model, bn), (self.hidden, bn)], LINE)
        args = [self.x, self.ups[0], self.ups[-1], self.h, self.w2, self.out, "TABLE"]
        args += [self.tokens, self.d_model, self.hidden, self.d_model]
        return Launch(case, kernels.ffn_kernel, _Args(args), meta, torch.from_numpy(slots).cuda())

    def error(self, launch: Launch | LibraryLaunch) -> float:
        if isinstance(launch, LibraryLaunch):
            return 0.0  # two bare products, without the activation between them
        self.h.fill_(float("nan"))
        return super().error(launch)

    def sampled(self) -> torch.Tensor:
        return self.out[self.rows]

    def expected(self) -> torch.Tensor:
        return self._expected


class AttentionProblem(Problem):
    """O = softmax(Q K^T) V; one query in each 128 of every head."""

    def __init__(self, case: Case, folder: Path) -> None:
        super().__init__(case, folder)
        self.queries, self.keys, self.dim, self.heads, self.kv_heads, self.batch, causal = numbers(
            case, "queries", "keys", "head_dim", "heads", "kv_heads", "batch", "causal"
        )
        self.causal = bool(causal)
        self.q = _random(self.batch, self.heads, self.queries, self.dim)
        self.k, self.v = (_random(self.batch, self.kv_heads, self.keys, self.dim) for _ in "kv")
        self.result = whole_lines(self.batch, self.heads, self.queries, self.dim, dtype=torch.bfloat16)
        self.out = self.result.view(-1, self.dim)
        self.rows = one_in_each(self.queries)
        self._expected = self._reference()

    def _reference(self) -> torch.Tensor:
        seen = torch.arange(self.keys, device="cuda")[None] <= (self.keys - self.queries + self.rows)[:, None]
        results = []
        for batch in range(self.batch):
            for head in range(self.heads):
                kv = head // (self.heads // self.kv_heads)
                scores = self.q[batch, head][self.rows].double() @ self.k[batch, kv].double().T / self.dim**0.5
                if self.causal:
                    scores = scores.masked_fill(~seen, -math.inf)
                results.append(scores.softmax(-1) @ self.v[batch, kv].double())
        return torch.stack(results)

    def library(self, case: Case) -> Callable[[], None]:
        backend, grouped = BACKENDS[case["order"]], self.heads != self.kv_heads
        # is_causal would align the first queries with the first keys
        mask = causal_lower_right(self.queries, self.keys) if self.causal else None

        def call() -> None:
            with sdpa_kernel(backend):
                self.result = F.scaled_dot_product_attention(self.q, self.k, self.v, mask, enable_gqa=grouped)

        return call

    def launch(self, case: Case) -> Launch:
        bm, bn = sides(case)

        def slots_of(table: Table, wave: int) -> Table:
            check_cover(table, -(-self.queries // bm), self.batch * self.heads)
            ahead = self.keys - self.queries if self.causal else self.keys  # of the first query, in keys
            last = np.minimum((table[:, 0] + 1) * bm, self.queries) - 1  # query of each tile
            seen = np.minimum((ahead + last) // bn + 1, -(-self.keys // bn))
            return tile_slots(table, seen, wave, case["order"].endswith("+sawtooth"), backwards=True)

        slots = self.slots(case, slots_of)
        d = power_of_two(self.dim)
        meta = {"D": d, "DV": d, "BM": bm, "BN": bn, "CAUSAL": self.causal, "BARRIER": case["execution"] == "waves"}
        meta["RAGGED"] = is_ragged([(self.queries, bm), (self.keys, bn)], [(self.dim, d)], LINE)
        self.result = self.out.view_as(self.q)
        args = [self.q, self.k, self.v, self.out, "TABLE", self.queries, self.keys, self.heads // self.kv_heads]
        args += [self.dim, self.dim, math.log2(math.e) / self.dim**0.5]
        return Launch(case, kernels.attention_kernel, _Args(args), meta, torch.from_numpy(slots).cuda())

    def error(self, launch: Launch | LibraryLaunch) -> float:
        if isinstance(launch, Launch):
            self.result = self.out.view_as(self.q)
            return super().error(launch)
        launch.run()
        return float((self.sampled().double() - self._expected).norm() / self._expected.norm())

    def sampled(self) -> torch.Tensor:
        return self.result.reshape(-1, self.queries, self.dim)[:, self.rows]

    def expected(self) -> torch.Tensor:
        return self._expected


class _Args(list):  # type: ignore[type-arg]
    """Arguments with the place of the table marked; tensors are not compared with the mark."""

    def index(self, mark: object, *_: int) -> int:  # type: ignore[override]
        return next(at for at, value in enumerate(self) if isinstance(value, str) and value == mark)


PROBLEMS = {"gemm": GemmProblem, "ffn": FfnProblem, "attention": AttentionProblem}
