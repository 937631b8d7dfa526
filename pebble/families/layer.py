r"""A transformer layer: QKV, attention, output projection and FFN, with everything between free to stay on chip.

**Transformer layer**: four parts, of which attention counts once for each group of heads that share K and V. Handed
over are Q, K and V, the heads' outputs and the projection's output; the input X, all weights and the output Y are the
layer's own. Norms, rotary positions, biases and residual additions are no operations of this layer, and K and V need
not be stored for later steps: the bound is about the layer without them. No value is computed twice; where that is
allowed, only compulsory traffic is claimed. In bytes each part moves what it moves alone, less what is handed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from pebble.bounds import Accounting, ByLines, LineProblem, LowerBound, Piece, WorkloadPart, sum_of_kernels
from pebble.bounds.chain_lines import chain_problems
from pebble.families.attention import ATTENTION
from pebble.families.family import Family
from pebble.families.ffn import FFN
from pebble.families.gemm import GEMM
from pebble.families.schedules import Explicit, in_turn
from pebble.schedules.explicit.after_heads import Kernels
from pebble.schedules.explicit.ffn import one_panel_ffn
from pebble.schedules.explicit.fused import FusedSchedule
from pebble.schedules.explicit.gemm_search import ExplicitProduct
from pebble.schedules.explicit.head_groups import HeadGroups
from pebble.schedules.explicit.head_groups_search import best_head_groups
from pebble.schedules.explicit.token_bands import best_token_bands
from pebble.workloads import Gemm, TransformerLayer
from pebble.workloads.parameters import flag, needed, optional
from pebble.workloads.widths import FastMemory
from pebble.workloads.workload import Workload


class LayerFamily(Family[TransformerLayer]):
    """``layer``, and ``MODEL:layer``."""

    name = "layer"
    shape = TransformerLayer
    computes = "a transformer layer in prefill: QKV, causal attention, output projection, FFN (bounds only)"
    example = "layer --tokens 8192 --d-model 4096 --hidden 14336 --heads 32 --kv-heads 8 --head-dim 128 --gated"
    parameters = (
        *needed(
            tokens="rows of X and Y",
            d_model="columns of X and Y",
            hidden="columns of the hidden layer",
            heads="query heads",
            kv_heads="key/value heads",
            head_dim="columns of a query or key",
        ),
        *optional(value_dim="columns of a value (head-dim)"),
        flag("--gated", "gate and up products (SwiGLU)"),
    )

    def instead(self, workload: TransformerLayer) -> str:
        model, _, block = workload.name.partition(":")
        named = [f"{model}:{kernel}" for kernel, _, _ in _kernels(workload)]
        kernels = named if block == "layer" else [kernel.label for kernel in workload.kernels]
        return f"simulate each of its four kernels by itself: {', '.join(kernels)}"

    def part_kernels(self, workload: TransformerLayer) -> Sequence[Workload]:
        return workload.kernels

    def accounting(self, workload: TransformerLayer) -> Accounting:
        """Q, K, V, the heads' outputs and the projection's are handed over; X, weights and Y are the layer's own."""
        qkv, attention, projection, mlp = workload.kernels
        inside = attention.compulsory_elements // attention.groups  # Q, K, V and O of one group
        handed = mlp.tokens * mlp.d_model
        heads, ffn = ATTENTION.accounting(attention), FFN.accounting(mlp)
        parts = (
            _product("qkv", qkv, own_input=True),
            WorkloadPart("attention", _less(heads.of(Piece), inside), 0, attention.groups, heads.uses, inside),
            _product("o", projection),
            WorkloadPart(
                "mlp",
                (
                    *_less(ffn.of(Piece), handed),
                    *map(ByLines, chain_problems(FFN.chain(mlp), own_input=False)),
                ),
                mlp.compulsory_elements - handed,
                alone=ffn.uses,
                handed=handed,
                written=mlp.tokens * mlp.d_out,
            ),
        )
        return Accounting(
            workload,
            parts=parts,
            computed_once=True,
            game="a transformer layer: $QKV := X W_{qkv}$, causal attention per head, $P := O W_o$, and the FFN of "
            "$P$; everything between $X$ and $Y$ may stay in fast memory",
            symbols=workload.dimensions,
        )

    def separate_bound(
        self,
        workload: TransformerLayer,
        capacity: int,
        memory: FastMemory | None = None,
        recompute: bool = False,
    ) -> LowerBound:
        """The sum of the kernels' bounds: each reads its inputs from memory and writes its outputs there."""
        results = []
        for _, family, kernel in _kernels(workload):
            room = None if memory is None else memory.of_part(kernel)
            most = capacity if room is None else room.bytes // kernel.narrowest_bytes
            results.append(family.lower_bound(kernel, most, recompute, room))
        return sum_of_kernels(workload, results, capacity, recompute)

    def best_schedule(self, workload: TransformerLayer, memory: FastMemory) -> Explicit | None:
        """The least of: its kernels one after the other, bands of tokens, groups of heads."""
        kernels = _kernels(workload)
        parts = [(name, family.best_schedule(kernel, memory.of_part(kernel)), 1) for name, family, kernel in kernels]
        _, _, projection, ffn = (schedule for _, schedule, _ in parts)
        ffn = ffn if isinstance(ffn, FusedSchedule) else None
        known: list[Explicit | None] = [in_turn(parts, memory), best_token_bands(workload, memory, ffn)]
        below = min((schedule.bytes for schedule in known if schedule), default=inf)
        if ffn is None or below > memory.compulsory(workload):
            known.append(_head_groups(workload, memory, projection, ffn, below))
        return min((schedule for schedule in known if schedule), key=lambda schedule: schedule.bytes, default=None)


def _kernels(layer: TransformerLayer) -> list[tuple[str, Family[Any], Workload]]:
    """Its kernels in order: what each is called, its family, and the workload."""
    return list(zip(("qkv", "attention", "o", "mlp"), (GEMM, ATTENTION, GEMM, FFN), layer.kernels, strict=True))


def _head_groups(
    layer: TransformerLayer, memory: FastMemory, projection: Explicit | None, ffn: FusedSchedule | None, below: float
) -> HeadGroups | None:
    """Groups of heads, and what may follow: the FFN that moves least, or one that is handed all of its input."""
    ffns, kernels = [], None
    if ffn is not None:
        handed = 2 * memory.cost.read * layer.tokens * layer.d_model  # bytes that need not be stored and loaded
        panel = one_panel_ffn(layer.mlp, ffn.memory, ffn.bytes + handed)
        ffns = [ffn] if panel is None or panel == ffn else [ffn, panel]
        kernels = Kernels(projection, ffn) if isinstance(projection, ExplicitProduct) else None
    return best_head_groups(layer, memory, kernels, ffns, below)


def _product(name: str, gemm: Gemm, own_input: bool = False) -> WorkloadPart:
    """A product whose result, and perhaps whose input, is handed over."""
    m, n, k = gemm.m, gemm.n, gemm.k
    handed = m * n + (0 if own_input else m * k)
    uses = Piece.product(m, n, k, handed), ByLines(LineProblem.product(m, n, k, (int(own_input), 1, 0)))
    return WorkloadPart(name, uses, gemm.compulsory_elements - handed, alone=GEMM.accounting(gemm).uses, handed=handed)


def _less(pieces: Iterable[Piece], handed_over: int) -> tuple[Piece, ...]:
    return tuple(replace(piece, initialised=piece.initialised + handed_over) for piece in pieces)


LAYER = LayerFamily()
