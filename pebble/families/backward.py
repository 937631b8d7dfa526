r"""The backward passes of training.

**gemm-backward**: :math:`dA = dC\,B^T` and :math:`dB = A^T dC`, two products that share :math:`dC`: one box
(:mod:`pebble.bounds.backward`). Schedules: both at once, with a block of :math:`A` and :math:`dA`, of :math:`B` and
:math:`dB` or of :math:`dC` that stays; or one after the other, each by itself, which reads :math:`dC` twice.

**ffn-backward**: two such passes, of :math:`Y = H W_1` and of :math:`Z = X W_0`, of which the first hands :math:`dZ`,
its :math:`dA` times :math:`\mathrm{act}'(Z)`, to the second as its :math:`dC`.

- *Parts* (Theorem 6): each is a box by itself, from which the cells of :math:`dZ` are taken off. Where :math:`H` is
  computed again its values are handed over too. The product for it belongs to the part of the first layer, since it
  reads :math:`X` and :math:`W_0`: columns of its own in a box :math:`2 f \times m \times 2 d`, where a value of
  :math:`W_0` stands for two pairs of a column and a depth, the overlap :math:`R = 2` of Theorem 1; or it is left out.
- *One chain* (Theorem 14): :math:`dH`, :math:`dX` and :math:`dW_0`, with :math:`dZ` between them. The saved :math:`H`
  is loaded besides, and :math:`dW_1` stored.
- *Gated*, :math:`dZ` is :math:`dG` and :math:`dU` side by side, and :math:`W_0` is :math:`W_g` and :math:`W_u`.
  :math:`H` begins free where :math:`G` and :math:`U` are, as if another part handed it over; that these are read once
  is counted with the part of the second layer.

**attention-backward**: five products over the pairs of a query and a key, in a group of heads that share :math:`K` and
:math:`V` with their queries stacked; groups share no value.

- *One chain* (Theorem 14): :math:`dP`, :math:`dQ` and :math:`dK`, with :math:`dS`, in the place of :math:`dP`, between
  them. :math:`dV` is stored besides, and the statistics of the rows are loaded.
- *Whole pairs*: the pass bound holds with a pair as a cell, whole in a segment when all its products, of :math:`S, dP,
  dV, dQ` and :math:`dK`, are there. Where it is, all values of its query are used (:math:`Q, dO, L, \delta` and the
  sums of :math:`dQ`) and all of its key (:math:`K, V` and the sums of :math:`dK` and :math:`dV`). Where it is not, its
  :math:`P` or its :math:`dS` is touched in two segments, since one operation touches both: it is held over a cut, or
  stored and loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from pebble.bounds import (
    Accounting,
    Box,
    ByPasses,
    Grid,
    Piece,
    WorkloadPart,
    backward_uses,
)
from pebble.bounds.middle import Middle, middle_uses
from pebble.cdag.backward import attention_backward_dag, ffn_backward_dag, gemm_backward_dag
from pebble.cdag.catalogue import SUMS, DagFamily
from pebble.errors import InfeasibleError
from pebble.families.attention import ATTENTION
from pebble.families.family import Family
from pebble.families.gemm import GEMM
from pebble.families.schedules import Explicit, in_turn
from pebble.schedules.explicit.backward import Elementwise, backward_schedules
from pebble.schedules.explicit.panels import Panels, attention_panels, ffn_panels, largest, rest_panels
from pebble.workloads import AttentionBackward, FfnBackward, Gemm, GemmBackward
from pebble.workloads.backward import STATISTICS
from pebble.workloads.parameters import flag, needed, optional
from pebble.workloads.widths import FastMemory
from pebble.workloads.workload import Workload

W = TypeVar("W", bound=Workload)
_SEPARATE = "one after the other"
_GAME = (
    "$dH := dY\\,W_1^{T}$, $dW_1 := H^{T} dY$, $dZ := dH \\odot \\mathrm{act}'(Z)$, $dX := dZ\\,W_0^{T}$ and $dW_0 := "
    "X^{T} dZ$, multiply-adds in any order"
)
_NEVER = "; $dZ$ need never be in slow memory"
_AGAIN = ", with $H := \\mathrm{act}(X W_0)$ computed again"
_GATED_GAME = (
    "$H := \\mathrm{act}(G) \\odot U$, $dH := dY\\,W_1^{T}$, $dW_1 := H^{T} dY$, $dG := dH \\odot U \\odot "
    "\\mathrm{act}'(G)$, $dU := dH \\odot \\mathrm{act}(G)$, $dX := dG\\,W_g^{T} + dU\\,W_u^{T}$, $dW_g := X^{T} dG$ "
    "and $dW_u := X^{T} dU$, multiply-adds in any order"
)
_GATED_AGAIN = ", with $G := X W_g$ and $U := X W_u$ computed again"
_STAYS = {"A": "A and dA stay", "B": "B and dB stay", "C": "dC stays"}


class BackwardFamily(Family[W]):
    """What the backward passes share: no kernel is simulated; schedules under explicit control are compared."""

    side_by_side = True

    def instead(self, workload: W) -> str:
        return f"no kernel of {self.name} is simulated; `pebble bound` and `pebble compare` take this one"


class GemmBackwardFamily(BackwardFamily[GemmBackward]):
    """``gemm-backward``."""

    name = "gemm-backward"
    shape = GemmBackward
    computes = "dA := dC B^T and dB := A^T dC, the backward pass of C := A B"
    example = "gemm-backward -m 8192 -n 8192 -k 8192"
    parameters = needed(m="rows of A and dC", n="columns of B and dC", k="columns of A, rows of B")
    recompute_helps = False

    def accounting(self, workload: GemmBackward) -> Accounting:
        return Accounting(
            workload,
            backward_uses(workload.m, workload.n, workload.k),
            game="$dA := dC\\,B^{T}$ and $dB := A^{T} dC$ with $A$ ($m \\times k$), $B$ ($k \\times n$), $dC$ "
            "($m \\times n$), multiply-adds in any order. That of $dA_{it}$ with $dC_{ij}$ is the point $(i, j, t)$ of "
            "a box, that of $dB_{tj}$ with it the point $(i, j, k + t)$",
            symbols=workload.dimensions,
            one_memory=True,
        )

    def schedules(self, workload: GemmBackward, memory: FastMemory) -> Mapping[str, Explicit]:
        w = workload
        of = w.dtype, w.out_dtype
        parts = ("dA", Gemm(w.m, w.k, w.n, *of)), ("dB", Gemm(w.k, w.n, w.m, *of))
        found: dict[str, Explicit] = {}
        with suppress(InfeasibleError):
            separate = in_turn([(name, GEMM.best_schedule(gemm, memory), 1) for name, gemm in parts], memory)
            if separate is not None:
                found[_SEPARATE] = separate
        return found | {_STAYS[plane]: item for plane, item in backward_schedules(workload, memory).items()}

    @property
    def dag(self) -> DagFamily:
        return self.dag_of(gemm_backward_dag, "m x n x k", "-m 2 -n 1 -k 2", "dC B^T and A^T dC")


class FfnBackwardFamily(BackwardFamily[FfnBackward]):
    """``ffn-backward``."""

    name = "ffn-backward"
    shape = FfnBackward
    computes = "dX, dW0, dW1 of Y := act(X W0) W1 from dY and the saved H, or H --recomputed"
    example = "ffn-backward --tokens 8192 --d-model 4096 --hidden 11008"
    parameters = (
        *needed(tokens="rows of X and dY", d_model="columns of X", hidden="columns of the hidden layer"),
        *optional(d_out="columns of dY (d-model)"),
        flag("--recomputed", "H, or gate and up, is computed again from X instead of being read"),
        flag("--gated", "gate and up products (SwiGLU)"),
    )

    def accounting(self, workload: FfnBackward) -> Accounting:
        m, d, f, e, s = workload.tokens, workload.d_model, workload.hidden, workload.d_out, workload.up_products
        again, gated, saved = workload.recomputed, workload.gated, workload.saved
        own = saved if gated else 0  # of which the second layer makes its H, which nobody gives it then
        names, handed = ("H", "dH", "W1", "dW1", "dY"), ("H", "dH") if again or gated else ("dH",)
        second = backward_uses(m, e, f, names, handed, own)
        first = backward_uses(m, s * f, d, ("X", "dX", "W0", "dW0", "dZ"), ("dZ",))
        if again:  # with X W0 beside them a value of W0 is met twice
            box, cells = Box(2 * s * f, m, 2 * d, 2), 2 * m * s * f
            work = (3 * m * s * f * d,)
            first += (Piece("recomputed", "segment accounting", box, work, cells, whole_numbers=False),)
        alone, narrow = backward_uses(m, e, f, names), backward_uses(m, s * f, d, ("X", "dX", "W0", "dW0", "dZ"))
        parts = (
            WorkloadPart(
                "second layer", second, m * e + 2 * f * e + saved,
                alone=alone, handed=len(handed) * m * f, written=f * e, hands_on=True, besides=own,
            ),
            WorkloadPart(
                "first layer", first, 2 * (m + s * f) * d, alone=narrow, handed=s * m * f, written=(m + s * f) * d
            ),
        )  # fmt: skip
        middle = Middle(m, f, e, d, m * f, ("dY", "W1", "X", "W0", "dZ"), saved, f * e, gated=gated)
        return Accounting(
            workload,
            middle_uses(middle),
            parts=parts,
            computed_once=True,
            one_memory=True,
            game=(_GATED_GAME if gated else _GAME)
            + ((_GATED_AGAIN if gated else _AGAIN) if again else "")
            + ("; $dG$ and $dU$, $dZ$ together, need never be in slow memory" if gated else _NEVER),
            symbols=workload.dimensions,
        )

    def schedules(self, workload: FfnBackward, memory: FastMemory) -> Mapping[str, Explicit]:
        """Layer by layer, with dZ (and H, unless that was saved) through slow memory; or in panels."""
        ways: dict[str, list[Explicit | None]] = {
            "layer by layer": [_by_layers(workload, memory, label) for label in (_SEPARATE, *_STAYS.values())],
            "product by product": [_by_layers(workload, memory, _SEPARATE, apart=True)],
        }
        for of_columns, item in ((True, "hidden columns"), (False, "tokens")):
            ways[f"panels of {item}"] = list(_in_panels(workload, memory, of_columns))
        found = {name: [way for way in among if way is not None] for name, among in ways.items()}
        return {name: min(among, key=lambda way: way.bytes) for name, among in found.items() if among}

    @property
    def dag(self) -> DagFamily:
        example = "--tokens 1 --d-model 1 --hidden 2"
        return self.dag_of(ffn_backward_dag, "tokens x d-model x hidden x d-out", example, "dX, dW0 and dW1")


Parts = list[tuple[str, Explicit | None, int]]


def _up_again(w: FfnBackward, memory: FastMemory) -> Parts:
    """H, or G and U, computed again and stored, where they were not saved."""
    up = Gemm(w.tokens, w.up_products * w.hidden, w.d_model, w.dtype, w.dtype)
    return [("G and U" if w.gated else "H", GEMM.best_schedule(up, memory.handing_on), 1)] if w.recomputed else []


def _by_layers(w: FfnBackward, memory: FastMemory, label: str, apart: bool = False) -> Explicit | None:
    """One layer after the other: the second as ``label`` says, the first at its best, or both product by product."""
    second, first = w.layers
    cells, inside = w.tokens * w.hidden, memory.handing_on
    wide = memory if memory.cost.written >= memory.cost.read else inside  # dH and dW1 take that at most
    # where H and dH stay together H need not come again; G and U do, and dU begins
    stays = label == _STAYS["A"] and not w.gated
    again = (
        Elementwise(memory, {"G": cells, "U": cells}, {"dU": cells}) if w.gated else Elementwise(memory, {"H": cells})
    )
    beside = memory.widths.read * again.peak_elements
    if memory.bytes <= beside:
        return None
    values = None if memory.values is None else memory.values - again.peak_elements
    of_second = GEMM_BACKWARD.schedules(second, replace(wide, bytes=memory.bytes - beside, values=values))
    of_first = GEMM_BACKWARD.schedules(first, memory)
    chosen = of_first.get(_SEPARATE) if apart else min(of_first.values(), key=lambda one: one.bytes, default=None)
    with suppress(InfeasibleError):  # one of them does not fit
        made = Elementwise(memory, {"G": cells, "U": cells}, {"H": cells}, "value by value")
        parts: Parts = [
            *_up_again(w, memory),
            *([("H", made, 1)] if w.gated else []),
            ("second layer", of_second.get(label), 1),
            *([] if stays else [("act'", again, 1)]),
            ("first layer", chosen, 1),
        ]
        return in_turn(parts, memory)
    return None


def _in_panels(w: FfnBackward, memory: FastMemory, of_columns: bool) -> Iterator[Explicit]:
    """In panels, which make all of dX and dW0, or all of one of the two, or as much of one as fits; then the rest."""
    d = w.d_model
    shares = {(d, d), (d, 0), (0, d), (0, 0)}
    shares.add((_most(w, memory, lambda x: ffn_panels(w, of_columns, x, 0)), 0))
    shares.add((0, _most(w, memory, lambda y: ffn_panels(w, of_columns, 0, y))))
    for x, y in sorted(shares, reverse=True):
        panels = ffn_panels(w, of_columns, x, y)
        for item in largest(w, memory, panels):
            if not panels.left:
                yield item
                continue
            before: Parts = [*(_up_again(w, memory) if panels.cells else []), ("panels", item, 1)]
            for after in _rest(w, memory, x, y):
                with suppress(InfeasibleError):
                    together = in_turn([*before, *after], memory)
                    if together is not None:
                        yield together


def _most(w: FfnBackward, memory: FastMemory, panels: Callable[[int], Panels]) -> int:
    """The most columns of d_model with which all items are one panel; 0 where none are."""
    low, high = 0, w.d_model
    while low < high:
        middle = (low + high + 1) // 2
        fits = any(item.size == item.panels.items for item in largest(w, memory, panels(middle)))
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _rest(w: FfnBackward, memory: FastMemory, x: int, y: int) -> Iterator[Parts]:
    """What is left of dX and dW0: in panels, or product by product."""
    m, d, f = w.tokens, w.d_model, w.up_products * w.hidden
    for of_columns in (True, False):
        for item in largest(w, memory, rest_panels(w, of_columns, x, y)):
            yield [("rest", item, 1)]
    of = w.dtype, w.out_dtype
    with suppress(InfeasibleError):
        products: Parts = [("dX", GEMM.best_schedule(Gemm(m, d - y, f, *of), memory), 1)] if y < d else []
        if x < d:
            products.append(("dW0", GEMM.best_schedule(Gemm(d - x, f, m, *of), memory), 1))
        yield products
    if x == y == 0:
        for schedule in GEMM_BACKWARD.schedules(w.layers[1], memory).values():
            yield [("first layer", schedule, 1)]


class AttentionBackwardFamily(BackwardFamily[AttentionBackward]):
    """``attention-backward``."""

    name = "attention-backward"
    shape = AttentionBackward
    computes = "dQ, dK, dV of attention from dO and statistics of the rows, scores recomputed; --causal"
    example = "attention-backward --queries 8192 --keys 8192 --head-dim 128"
    parameters = ATTENTION.parameters[:-1]  # the softmax is known from its statistics

    def accounting(self, workload: AttentionBackward) -> Accounting:
        m, k, f, l = workload.stacked_queries, workload.head_dim, workload.keys, workload.value_dim
        pairs, states = workload.group * workload.pairs_per_head, len(STATISTICS)
        full = Grid.causal(workload.queries, f, 1, 1, workload.group) if workload.causal else Grid.full(m, 1, f, 1)
        grid = replace(full, k=k + l + states, l=k, column=2 * (k + l), column_sums=k + l, statistics=states)
        middle = Middle(m, f, l, k, pairs, ("dO", "V", "Q", "K", "dS"), 0, f * l, states * m)
        uses = *middle_uses(middle), ByPasses(grid)
        return Accounting(
            workload,
            uses,
            groups=workload.groups,
            computed_once=True,
            one_memory=True,
            game="per group of heads that share $K$ and $V$, their queries stacked: $P := \\exp(Q K^{T} - L)$, "
            "$dP := dO\\,V^{T}$, $dS := P \\odot (dP - \\delta)$, $dV := P^{T} dO$, $dQ := dS\\,K$, $dK := dS^{T} Q$. "
            "A pair of a query and a key is a cell, with the accumulators $P$ and $dS$. Rows are queries: in the "
            "proof $A$ has their $Q$, $dO$, $L$ and $\\delta$ and $Y$ is $dQ$, while $B$ and $D$ have $K$, $V$, $dK$ "
            "and $dV$",
            symbols={"m": m, "k": k, "f": f, "l": l, "pairs": pairs, "groups": workload.groups},
        )

    def schedules(self, workload: AttentionBackward, memory: FastMemory) -> Mapping[str, Explicit]:
        every = attention_panels(workload)
        return {f"panels of {p.item}": item for p in every for item in largest(workload, memory, p)}

    @property
    def dag(self) -> DagFamily:
        example = "--queries 1 --keys 2 --head-dim 1"
        return DagFamily(self.name, "dQ, dK and dV", attention_backward_dag, (*self.parameters, SUMS[0]), example)


GEMM_BACKWARD = GemmBackwardFamily()
FFN_BACKWARD = FfnBackwardFamily()
ATTENTION_BACKWARD = AttentionBackwardFamily()
