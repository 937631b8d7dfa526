"""The forward pass of a named model as a graph: embedding, every layer, final norm, logits.

A layer is: norm, QKV, rotary position (GPT-2 has learned positions, added to the embedding), causal attention with
grouped heads, output projection, residual, norm, FFN, residual. What the graph reads: token ids of 4 bytes, all
weights, and the cached keys and values of earlier tokens. What it leaves: the logits of every token, and the keys and
values of the new tokens. The tables of rotary position can be computed, so they are not read; biases are left out.
"""

from __future__ import annotations

from dataclasses import replace

from pebble.graphs.graph import Builder, Graph, Shape, Use, use
from pebble.workloads import Attention, Ffn, Gemm, Workload, element_bytes
from pebble.workloads.named import ModelShape

_ID = 4  # bytes of the number of a token


class Pass:
    """One operation after the other.

    Parameters
    ----------
    name : str
    shape : ModelShape
    sides : dict of str to (int, int)
        Rows and columns of the weight of each product.
    sizes : (int, int, int)
        New tokens of a sequence, keys that the last of them sees, and sequences.
    dtype : str
    learned : bool
        GPT-2: positions are learned, and the matrix that embeds makes the logits.
    """

    def __init__(
        self,
        name: str,
        shape: ModelShape,
        sides: dict[str, tuple[int, int]],
        sizes: tuple[int, int, int],
        dtype: str,
        learned: bool = False,
    ) -> None:
        self.builder, self.shape, self.dtype = Builder(name), shape, dtype
        self.rows, self.keys, self.batch = sizes
        self.tokens = self.batch * self.rows
        self.sides, self.learned = sides, learned

    def graph(self) -> Graph:
        """All of it."""
        shape, outputs = self.shape, list[str]()
        table = self._stored("lm_head.weight" if self.learned else "embedding.weight", (shape.vocab, shape.hidden))
        self.builder.tensor("ids", (self.tokens,), "int32", _ID, "input")
        reads = [Use(table.tensor, shape.hidden), self._all("ids")]  # one row: all tokens may be the same
        if self.learned:
            reads.append(self._stored("positions.weight", (self.rows, shape.hidden)))
        x = self._operation("embedding", "indexing", reads)
        for layer in range(shape.layers):
            x, *new = self._layer(f"{layer}.", x)
            outputs += new
        return self.builder.graph([self._product("lm_head", self._norm("norm", x)), *outputs])

    def _layer(self, at: str, x: str) -> tuple[str, ...]:
        """Its result, and what is kept of the new tokens."""
        heads, *new = self._attend(at, self._norm(f"{at}norm_1", x))
        x = self._add(f"{at}residual_1", x, self._product(f"{at}o", heads))
        return self._add(f"{at}residual_2", x, self._ffn(at, self._norm(f"{at}norm_2", x))), *new

    def _attend(self, at: str, x: str) -> tuple[str, ...]:
        """The heads' outputs, and the new keys and values."""
        shape = self.shape
        wide, narrow = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        q, k, v = f"{at}q", f"{at}k", f"{at}v"
        self._product(f"{at}qkv", x, {q: wide, k: narrow, v: narrow})
        if not self.learned:
            turned = {f"{q}.turned": wide, f"{k}.turned": narrow}
            self._operation(f"{at}rope", "elementwise", [self._all(q), self._all(k)], turned)
            q, k = turned
        reads = [self._all(q), self._all(k), self._all(v)]
        if earlier := self.keys - self.rows:
            caches = f"{at}k.cache", f"{at}v.cache"
            reads += [self._stored(name, (self.batch * earlier, narrow), "cache") for name in caches]
        work = Attention(
            self.rows, self.keys, shape.head_dim, heads=shape.heads, kv_heads=shape.kv_heads, batch=self.batch,
            causal=True, dtype=self.dtype, out_dtype=self.dtype,
        )  # fmt: skip
        return self._operation(f"{at}attention", "attention", reads, {f"{at}attention": wide}, work), k, v

    def _ffn(self, at: str, x: str) -> str:
        """Two products with an activation between."""
        shape = self.shape
        inside = self._product(f"{at}{'gate_up' if shape.gated else 'up'}", x)
        act = f"{at}activation"
        self._operation(act, "elementwise", [self._all(inside)], {act: shape.intermediate})
        down = self._product(f"{at}down", act)
        ffn = Ffn(self.tokens, shape.hidden, shape.intermediate, 0, shape.gated, self.dtype, self.dtype)
        self.builder.operations[-1] = replace(self.builder.operations[-1], chain=ffn)
        return down

    def _all(self, name: str) -> Use:
        return use(self.builder.views[name])

    def _stored(self, name: str, shape: Shape, role: str = "weight") -> Use:
        self.builder.tensor(name, shape, self.dtype, element_bytes(self.dtype), role)
        return self._all(name)

    def _operation(
        self, name: str, kind: str, reads: list[Use], widths: dict[str, int] | None = None, work: Workload | None = None
    ) -> str:
        """With results of these widths, one as wide as the model by default; the name of the first."""
        widths = widths or {name: self.shape.hidden}
        size = element_bytes(self.dtype)
        results = [(result, (self.tokens, width), self.dtype, size) for result, width in widths.items()]
        self.builder.operation(name, kind, reads, results, work)
        return results[0][0]

    def _norm(self, name: str, x: str, width: int = 0) -> str:
        width = width or self.shape.hidden
        return self._operation(name, "norm", [self._all(x), self._stored(f"{name}.weight", (width,))], {name: width})

    def _add(self, name: str, x: str, y: str) -> str:
        return self._operation(name, "elementwise", [self._all(x), self._all(y)])

    def _product(self, name: str, x: str, widths: dict[str, int] | None = None) -> str:
        """With its weight; the results of several widths stand side by side in it."""
        k, n = self.sides[name.rpartition(".")[2]]
        weight = f"{name}.weight"
        reads = [self._all(x), self._all(weight) if weight in self.builder.tensors else self._stored(weight, (k, n))]
        work = Gemm(self.tokens, n, k, self.dtype, self.dtype)
        return self._operation(name, "product", reads, widths or {name: n}, work)
