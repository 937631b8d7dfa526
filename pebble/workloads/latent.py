"""Latent attention: all heads read one latent matrix, as keys and as values (MLA as DeepSeek runs it)."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.workloads.attention import SoftmaxWorkload
from pebble.workloads.workload import Operand


@dataclass(frozen=True)
class LatentAttention(SoftmaxWorkload):
    """O = softmax(Q KV^T) V over batch sequences and heads, where V is the first ``latent`` columns of KV.

    Of a sequence there is one KV, keys x (latent + rope), for all heads. Up- and down-projections are absorbed in Q and
    O, as in decoding. Scores and probabilities are intermediates of the inputs' type; softmax is online.

    Parameters
    ----------
    queries, keys : int
        Rows of Q and O per head, and of KV. One query is a decode step.
    latent, rope : int
        Columns of KV that are keys and values, and those that are keys alone; Q has both, O the former.
    heads, batch : int
        Query heads, and independent sequences.
    causal : bool
        The last query sees all keys, each query before it one key less; needs keys >= queries.
    dtype : str
        Type of Q and KV: bf16, fp16, fp32 or fp8.
    out_dtype : str, optional
        Type of O; by default the inputs', bf16 for fp8.
    name : str, optional
        What the user called it.

    Raises
    ------
    InputError
        A dimension below 1 or above 2^32, or causal with fewer keys than queries.
    UnknownNameError
        An unknown data type.

    Examples
    --------
    >>> LatentAttention(1, 32768, heads=128).compulsory_elements  # KV once: 18,874,368 of these
    19013632
    """

    FAMILY = "latent-attention"
    DIMENSIONS = ("queries", "keys", "latent", "rope", "heads", "batch")

    queries: int
    keys: int
    latent: int = 512
    rope: int = 64
    heads: int = 1
    batch: int = 1
    causal: bool = False
    dtype: str = "bf16"
    out_dtype: str = ""
    name: str = ""

    @property
    def shape_text(self) -> str:
        shape = f"queries={self.queries} keys={self.keys} latent={self.latent} rope={self.rope}"
        return shape + (f" batch={self.batch} heads={self.heads}" if (self.batch, self.heads) != (1, 1) else "")

    @property
    def head_dim(self) -> int:
        """Columns of Q and KV."""
        return self.latent + self.rope

    @property
    def value_dim(self) -> int:
        """Columns of O."""
        return self.latent

    @property
    def columns(self) -> tuple[int, int]:
        return self.head_dim, self.value_dim

    @property
    def softmax(self) -> str:
        """How rows are normalised: a score is used before its row is complete."""
        return "online"

    @property
    def groups(self) -> int:
        """Independent pieces: sequences. No value belongs to two of them."""
        return self.batch

    @property
    def stacked_queries(self) -> int:
        """Rows of Q that meet one KV: the queries of all heads."""
        return self.heads * self.queries

    @property
    def pairs_per_group(self) -> int:
        """Pairs of a query of some head and a key that it sees, in one sequence."""
        return self.heads * self.pairs_per_head

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Q, KV and O, all sequences and heads stacked."""
        rows = self.batch * self.stacked_queries
        return (
            self._read("Q", rows, self.head_dim),
            self._read("KV", self.batch * self.keys, self.head_dim),
            self._written("O", rows, self.value_dim),
        )
