r"""A batch of matrix products, or the experts of a mixture: independent products that share their widths.

**Groups of products**: each is a part by itself, a box :math:`m_g \times n \times k` accounted for as one GEMM. No
value is handed over, so the parts add up whatever the interleaving, and recomputation does not help.
"""

from __future__ import annotations

from collections import Counter

from pebble.bounds import Accounting, Part, Piece
from pebble.families.base import Explicit, Family
from pebble.families.gemm import GEMM
from pebble.families.parts import in_turn
from pebble.workloads import GroupedGemm
from pebble.workloads.parameters import Parameter, flag, needed


class GroupedFamily(Family[GroupedGemm]):
    """``grouped``, and ``gemm --batch``."""

    name = "grouped"
    shape = GroupedGemm
    computes = "C_g := A_g B_g for groups of --rows each, such as experts; `gemm --batch N` for equal ones"
    example = "grouped --rows 512,384,1024,128 -n 4096 -k 7168"
    parameters = (
        Parameter("--rows", "counts", "rows of each group, such as the tokens of each expert", required=True),
        *needed(n="columns of every B and C", k="columns of every A"),
        flag("--accumulate-into", "C += A B, C is read as well as written", "accumulate"),
    )
    recompute_helps = False

    def accounting(self, workload: GroupedGemm) -> Accounting:
        parts = []
        for gemm, count in Counter(workload.gemms).items():
            piece = Piece.product(gemm.m, gemm.n, gemm.k, added=gemm.m * gemm.n if gemm.accumulate else 0)
            parts.append(Part(f"m={gemm.m}", (piece,), gemm.compulsory_elements, count))
        return Accounting(
            workload,
            parts=tuple(parts),
            game="$C_g$ ($m_g \\times n$) $:= A_g$ ($m_g \\times k$) $B_g$ ($k \\times n$) for every group $g$, "
            "one multiply-add per triple, in any order",
            symbols={"n": workload.n, "k": workload.k, "groups": len(workload.rows)},
        )

    def best_schedule(self, workload: GroupedGemm, capacity: int) -> Explicit | None:
        sizes = Counter(workload.gemms)
        return in_turn(((f"m={g.m}", GEMM.best_schedule(g, capacity), n) for g, n in sizes.items()), capacity)


GROUPED = GroupedFamily()
