"""Operands, launches and float64 checks of the three families, on the current GPU: those of exported files.

What runs is what `pebble export --format triton` writes; only the tables and the libraries' calls are the plan's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from attention import AttentionProblem
from ffn import FfnProblem
from gemm import GemmProblem
from launch import Library
from measuring import relative_error
from tables import Table, check_cover, ffn_slots, is_ready, read_table, tile_slots
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

Case = dict[str, str]
BACKENDS = {"sdpa-flash": SDPBackend.FLASH_ATTENTION, "sdpa-cudnn": SDPBackend.CUDNN_ATTENTION}
PART_BYTES = 32 * 1024  # of a result in shared memory, beside the stages
WARP_GROUPS_FROM = 128 * 128  # values of a tile that keep two groups of four warps busy


def numbers(case: Case, *names: str) -> dict[str, int]:
    """Whole numbers of a case."""
    return {name: int(case[name]) for name in names}


def sides(case: Case) -> tuple[int, ...]:
    """The tile's sides."""
    return tuple(int(side) for side in case["tile"].split("x"))


class LibraryLaunch(Library):
    """A library's own kernels."""

    blocks_per_sm, resources = "", ""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__(call)
        call()  # workspaces and plans are made at the first call


class Problem:
    """Operands of one problem, shared by its cases."""

    family: ClassVar[Any]

    def __init__(self, case: Case, folder: Path) -> None:
        self.folder = folder
        self.exported = self.family(self.shape(case), sides(case), {}, torch.bfloat16, torch.bfloat16)
        expected = self.exported.expected()
        self.exported.expected = lambda: expected  # the same for all cases

    def shape(self, case: Case) -> dict[str, Any]:
        """What the exported file says of the workload."""
        raise NotImplementedError

    def prepare(self, case: Case) -> Any:
        """Compile a case; a table is checked to cover every tile once."""
        if case["launch"] == "library":
            return LibraryLaunch(self.library(case))
        bm, bn, *_ = sides(case)
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        table = read_table(self.folder / case["table"])  # ready-made: the float64 check is then all that tests it
        slots = table if is_ready(table) else self.slots(case, table, sms * int(case["blocks_per_sm"]))
        persistent = case["launch"] == "persistent"
        programs = min(len(slots), sms * int(case["blocks_per_sm"])) if persistent else len(slots)
        parts = -(-bm * bn * 2 // PART_BYTES)
        warps = 8 if bm * bn >= WARP_GROUPS_FROM else 4
        self.exported.tile = sides(case)
        parts = 1 << (parts - 1).bit_length()
        self.exported.build = {"stages": int(case["stages"]), "warps": warps, "parts": parts, "width": bn}
        self.exported.build["widths"] = bn, bn
        launch = self.exported.launch(torch.from_numpy(slots), programs, case["execution"])
        launch.blocks_per_sm = int(case["blocks_per_sm"]) if persistent else launch.fits
        return launch

    def library(self, case: Case) -> Callable[[], None]:
        raise NotImplementedError

    def slots(self, case: Case, table: Table, wave: int) -> Table:
        """The case's table as kernels read it."""
        raise NotImplementedError

    def error(self, launch: Any) -> float:
        """Launch over a poisoned result; relative error of the samples, infinite where a value was not written."""
        return float(relative_error(self.exported, launch))


class Products(Problem):
    """C = A B; one sample in each 128 x 128 values."""

    family = GemmProblem

    def shape(self, case: Case) -> dict[str, Any]:
        return {**numbers(case, "m", "n", "k"), "accumulate": False}

    def library(self, case: Case) -> Callable[[], None]:
        e = self.exported
        return lambda: torch.matmul(e.a, e.b, out=e.out)

    def slots(self, case: Case, table: Table, wave: int) -> Table:
        (bm, bn, bk), e = sides(case), self.exported
        check_cover(table, -(-e.m // bm), -(-e.n // bn))
        return tile_slots(table, -(-e.k // bk), wave, case["order"].endswith("+sawtooth"))


class Ffns(Problem):
    """Y = H W2; one row in each 128, all columns."""

    family = FfnProblem

    def shape(self, case: Case) -> dict[str, Any]:
        sizes = numbers(case, "tokens", "d_model", "hidden")
        return {**sizes, "d_out": sizes["d_model"], "gated": case["gated"] == "1"}

    def library(self, case: Case) -> Callable[[], None]:
        e = self.exported
        wide = e.x.new_empty(len(e.x), e.side_by_side.shape[1])

        def call() -> None:  # two bare products, without the activation between them
            torch.matmul(e.x, e.side_by_side, out=wide)
            torch.matmul(e.h, e.w2, out=e.out)

        return call

    def slots(self, case: Case, table: Table, wave: int) -> Table:
        (bm, bn, _), (tokens, _, hidden, _) = sides(case), self.exported.sizes
        check_cover(table[table[:, 1] == 0][:, 2:4], -(-tokens // bm), -(-hidden // bn))
        return ffn_slots(table, wave, case["order"].endswith("+sawtooth"))

    def error(self, launch: Any) -> float:
        return 0.0 if isinstance(launch, LibraryLaunch) else super().error(launch)


class Attentions(Problem):
    """O = softmax(Q K^T) V; one query in each 128 of every head."""

    family = AttentionProblem

    def shape(self, case: Case) -> dict[str, Any]:
        sizes = numbers(case, "queries", "keys", "head_dim", "heads", "kv_heads", "batch")
        return {**sizes, "value_dim": sizes["head_dim"], "causal": case["causal"] == "1"}

    def library(self, case: Case) -> Callable[[], None]:
        backend, e = BACKENDS[case["order"]], self.exported
        # is_causal would align the first queries with the first keys
        mask = causal_lower_right(e.queries, e.keys) if e.causal else None

        def call() -> None:
            with sdpa_kernel(backend):
                result = F.scaled_dot_product_attention(e.q, e.k, e.v, mask, enable_gqa=e.group > 1)
            self.result = result.reshape(-1, e.value_dim)

        return call

    def slots(self, case: Case, table: Table, wave: int) -> Table:
        (bm, bn), e = sides(case), self.exported
        check_cover(table, -(-e.queries // bm), e.q.shape[0] * e.q.shape[1])
        ahead = e.keys - e.queries if e.causal else e.keys  # of the first query, in keys
        last = np.minimum((table[:, 0] + 1) * bm, e.queries) - 1  # query of each tile
        seen = np.minimum((ahead + last) // bn + 1, -(-e.keys // bn))
        return tile_slots(table, seen, wave, case["order"].endswith("+sawtooth"), backwards=True)

    def error(self, launch: Any) -> float:
        if isinstance(launch, LibraryLaunch):
            launch.run()
            self.exported.out.copy_(self.result)
            result, expected = self.exported.sampled().double(), self.exported.expected()
            return float((result - expected).norm() / expected.norm())
        return super().error(launch)


PROBLEMS: dict[str, type[Problem]] = {"gemm": Products, "ffn": Ffns, "attention": Attentions}
