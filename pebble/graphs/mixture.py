"""The forward pass of a model with experts: routers, routed and shared experts, and DeepSeek's latent attention.

Which experts a token takes depends on its values, so a routing is assumed. ``any``: the tokens choose the fewest
experts that they can, all of them the same, so that the floor holds whatever they choose. ``even``: every expert gets
as many tokens as any other, to within one.

Routed experts are two grouped products with an activation between; a token goes through the first once for each of its
experts and is read there once. How the second is bounded depends on its groups, so theorems are used of it where the
routing is even. Combining weighs the results of a token and adds up.

Latent attention is written in the form that multiplies less: keys and values of all heads made of the latents and then
attended to, or up-projections absorbed in queries and outputs, as in a decode step. The latents are what is cached.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from pebble.errors import InputError
from pebble.graphs.graph import Graph, Use
from pebble.graphs.transformer import Pass
from pebble.workloads import Attention, GroupedGemm, LatentAttention, Workload, element_bytes
from pebble.workloads.named import KV_RANK, Q_RANK, ROPE, Mixture, ModelShape

ROUTINGS = ("any", "even")
_CHOICE = 4  # bytes of the number of an expert


def mixture_pass(
    name: str, mixture: Mixture, shape: ModelShape, sizes: tuple[int, int, int], dtype: str, routing: str
) -> MixturePass:
    """What makes the graph; ``sizes`` as for `Pass`.

    Raises
    ------
    InputError
        No such routing.
    """
    if routing not in ROUTINGS:
        raise InputError(f"routing: got {routing[:40]!r}, expected any or even.")
    latent = shape.value_head_dim != shape.head_dim
    of = LatentMixturePass if latent else MixturePass
    return of(name, mixture, shape, sizes, dtype, routing)


class MixturePass(Pass):
    """Layers with experts, after those without."""

    def __init__(
        self, name: str, mixture: Mixture, shape: ModelShape, sizes: tuple[int, int, int], dtype: str, routing: str
    ) -> None:
        hidden, inside = shape.hidden, mixture.shared * mixture.intermediate
        sides = {
            "qkv": (hidden, (shape.heads + 2 * shape.kv_heads) * shape.head_dim),
            "q_a_kv_a": (hidden, Q_RANK + KV_RANK + ROPE),
            "q_b": (Q_RANK, shape.heads * shape.head_dim),
            "o": (shape.heads * shape.value_head_dim, hidden),
            "gate_up": (hidden, 2 * shape.intermediate),
            "down": (shape.intermediate, hidden),
            "router": (hidden, mixture.experts),
            "shared_gate_up": (hidden, 2 * inside),
            "shared_down": (inside, hidden),
            "lm_head": (hidden, shape.vocab),
        }
        super().__init__(name, shape, sides, sizes, dtype)
        self.mixture, self.routing = mixture, routing
        self.routed = self.tokens * mixture.top_k
        self.groups = (self.tokens,) * mixture.top_k if routing == "any" else evenly(self.routed, mixture.experts)

    def graph(self) -> Graph:
        """All of it, and what is assumed."""
        return replace(super().graph(), assumption=self.assumption)

    @property
    def assumption(self) -> str:
        """The routing, in a sentence."""
        experts = f"{len(self.groups)} of {self.mixture.experts} experts a layer"
        if self.routing == "any":
            return f"any routing: {experts} are read, the fewest that tokens can choose"
        least, most = min(self.groups), max(self.groups)
        rows = f"{least}" if least == most else f"{least} or {most}"
        return f"even routing: {experts} are read, by {rows} {'token' if most == 1 else 'tokens'} each"

    def _ffn(self, at: str, x: str) -> str:
        if int(at.rstrip(".")) < self.mixture.dense_layers:
            return super()._ffn(at, x)
        mixture, size = self.mixture, element_bytes(self.dtype)
        ids, shares = f"{at}ids", f"{at}shares"
        reads = [self._all(self._product(f"{at}router", x))]
        shape = (self.tokens, mixture.top_k)
        results = [(ids, shape, "int32", _CHOICE), (shares, shape, self.dtype, size)]
        self.builder.operation(f"{at}top_k", "indexing", reads, results)
        inside = self._grouped(f"{at}experts_gate_up", x, ids, mixture.hidden, 2 * mixture.intermediate, False)
        act = f"{at}experts_activation"
        self._routed(act, "elementwise", [self._all(inside)], mixture.intermediate)
        outside = self._grouped(
            f"{at}experts_down", act, ids, mixture.intermediate, mixture.hidden, self.routing == "even"
        )
        reads = [self._all(outside), self._all(shares)]
        if mixture.shared:
            width = mixture.shared * mixture.intermediate
            wide = self._product(f"{at}shared_gate_up", x)
            act = f"{at}shared_activation"
            self._operation(act, "elementwise", [self._all(wide)], {act: width})
            reads.append(self._all(self._product(f"{at}shared_down", act)))
        return self._operation(f"{at}combine", "elementwise", reads)

    def _grouped(self, name: str, x: str, ids: str, k: int, n: int, bounded: bool) -> str:
        """A product with the weight of each token's experts; ``bounded`` where its groups are known."""
        weight = self._stored(f"{name}.weight", (self.mixture.experts, k, n)).tensor
        chosen = replace(self._all(ids), extra=True)
        work = GroupedGemm(self.groups, n, k, self.dtype, self.dtype)
        reads = [self._all(x), Use(weight, len(self.groups) * k * n), chosen]
        self._routed(name, "experts", reads, n, work if bounded else None, None if bounded else work)
        return name

    def _routed(
        self,
        name: str,
        kind: str,
        reads: list[Use],
        width: int,
        workload: Workload | None = None,
        work: Workload | None = None,
    ) -> None:
        """With a row for each token and each of its experts."""
        results = [(name, (self.routed, width), self.dtype, element_bytes(self.dtype))]
        self.builder.operation(name, kind, reads, results, workload)
        self.builder.operations[-1] = replace(self.builder.operations[-1], work=work)


class LatentMixturePass(MixturePass):
    """With the attention of DeepSeek-V3."""

    def _attend(self, at: str, x: str) -> tuple[str, ...]:
        shape, heads = self.shape, self.shape.heads
        q_a, kv_a, k_rope, q_nope, q_rope = (f"{at}{name}" for name in ("q_a", "kv_a", "k_rope", "q_nope", "q_rope"))
        self._product(f"{at}q_a_kv_a", x, {q_a: Q_RANK, kv_a: KV_RANK, k_rope: ROPE})
        q, latent = self._norm(f"{at}norm_q", q_a, Q_RANK), self._norm(f"{at}norm_kv", kv_a, KV_RANK)
        nope = shape.head_dim - ROPE
        self._product(f"{at}q_b", q, {q_nope: heads * nope, q_rope: heads * ROPE})
        turned = {f"{q_rope}.turned": heads * ROPE, f"{k_rope}.turned": ROPE}
        self._operation(f"{at}rope", "elementwise", [self._all(q_rope), self._all(k_rope)], turned)
        q_rope, k_rope = turned
        latents, ropes = [self._all(latent)], [self._all(k_rope)]
        if earlier := self.batch * (self.keys - self.rows):
            latents.append(self._stored(f"{at}latent.cache", (earlier, KV_RANK), "cache"))
            ropes.append(self._stored(f"{at}k_rope.cache", (earlier, ROPE), "cache"))
        attend = self._absorbed if self.absorbed else self._expanded
        return attend(at, (q_nope, q_rope), latents, ropes), latent, k_rope

    @property
    def _attention(self) -> Attention:
        """Of keys and values for each head."""
        shape = self.shape
        return Attention(
            self.rows, self.keys, shape.head_dim, shape.value_head_dim, shape.heads, shape.heads, self.batch, True,
            dtype=self.dtype, out_dtype=self.dtype,
        )  # fmt: skip

    @property
    def _latent_attention(self) -> LatentAttention:
        return LatentAttention(
            self.rows, self.keys, KV_RANK, ROPE, self.shape.heads, self.batch, True, self.dtype, self.dtype
        )

    @cached_property
    def absorbed(self) -> bool:
        """Whether that form multiplies less."""
        shape = self.shape
        both = KV_RANK * shape.heads * (shape.head_dim - ROPE + shape.value_head_dim)  # of one row of either form
        expanded = self.batch * self.keys * both + self._attention.multiply_adds
        return self.tokens * both + self._latent_attention.multiply_adds < expanded

    def _expanded(self, at: str, q: tuple[str, str], latents: list[Use], ropes: list[Use]) -> str:
        shape, rows = self.shape, self.batch * self.keys
        keys, values = shape.heads * (shape.head_dim - ROPE), shape.heads * shape.value_head_dim
        weight = self._stored(f"{at}kv_b.weight", (KV_RANK, keys + values))
        size, made = element_bytes(self.dtype), (f"{at}k_nope", f"{at}v")
        results = [(name, (rows, width), self.dtype, size) for name, width in zip(made, (keys, values), strict=True)]
        work = GroupedGemm((rows,), keys + values, KV_RANK, self.dtype, self.dtype)
        self.builder.operation(f"{at}kv_b", "product", [*latents, weight], results, work)
        reads = [*map(self._all, q), self._all(made[0]), *ropes, self._all(made[1])]
        name = f"{at}attention"  # all heads share the part of a key that is turned, so no theorem on keys by head
        self._operation(name, "attention", reads, {name: values})
        self.builder.operations[-1] = replace(self.builder.operations[-1], work=self._attention)
        return name

    def _absorbed(self, at: str, q: tuple[str, str], latents: list[Use], ropes: list[Use]) -> str:
        heads, nope, value = self.shape.heads, self.shape.head_dim - ROPE, self.shape.value_head_dim
        inside = self._by_head(f"{at}absorb_k", q[0], nope, KV_RANK)
        reads = [self._all(inside), self._all(q[1]), *latents, *ropes]
        name = f"{at}attention"
        self._operation(name, "attention", reads, {name: heads * KV_RANK}, self._latent_attention)
        return self._by_head(f"{at}absorb_v", name, KV_RANK, value)

    def _by_head(self, name: str, x: str, k: int, n: int) -> str:
        """A product for each head."""
        heads = self.shape.heads
        weight = self._stored(f"{name}.weight", (heads, k, n))
        work = GroupedGemm((self.tokens,) * heads, n, k, self.dtype, self.dtype)
        return self._operation(name, "product", [self._all(x), weight], {name: heads * n}, work)


def evenly(rows: int, experts: int) -> tuple[int, ...]:
    """Rows of each expert that gets any.

    Examples
    --------
    >>> evenly(10, 4), evenly(3, 8)
    ((3, 3, 2, 2), (1, 1, 1))
    """
    each, more = divmod(rows, experts)
    return tuple(each + (at < more) for at in range(experts) if each or at < more)
