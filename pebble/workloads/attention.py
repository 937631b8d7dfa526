"""Attention: O = softmax(Q K^T) V, per head."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from pebble.errors import InputError, UnknownNameError
from pebble.workloads.workload import Operand, Workload

SOFTMAX = ("online", "strict")


class SoftmaxWorkload(Workload):
    """Rows of queries that meet keys, head by head: what the shapes of attention share.

    Attributes
    ----------
    queries, keys : int
        Rows of Q and O per head, and rows of keys.
    heads, batch : int
        Query heads, and independent sequences.
    causal : bool
        The last query sees all keys, each query before it one key less; needs keys >= queries.
    """

    queries: int
    keys: int
    heads: int
    batch: int
    causal: bool

    @property
    @abstractmethod
    def columns(self) -> tuple[int, int]:
        """Of Q, and of O."""

    @property
    @abstractmethod
    def groups(self) -> int:
        """Independent pieces: no value belongs to two of them."""

    @property
    @abstractmethod
    def stacked_queries(self) -> int:
        """Rows of Q that meet the same keys."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.causal and self.keys < self.queries:
            raise InputError(
                f"keys: got {self.keys} for {self.queries} causal queries, expected at least as many keys as queries "
                "(the last query sees all keys, each one before it one key less)."
            )

    @property
    def pairs_per_head(self) -> int:
        """Pairs of a query and a key that it sees, in one head."""
        masked = self.queries * (self.queries - 1) // 2 if self.causal else 0
        return self.queries * self.keys - masked

    @property
    def multiply_adds(self) -> int:
        """Elementary products of both products over the pairs that are seen."""
        return self.batch * self.heads * self.pairs_per_head * sum(self.columns)

    @property
    def unmasked_flops(self) -> int:
        return 2 * self.batch * self.heads * self.queries * self.keys * sum(self.columns)


class SharedHeads(SoftmaxWorkload):
    """Query heads that share key/value heads in equal groups.

    Attributes
    ----------
    head_dim, value_dim : int
        Columns of Q and K, and of V and O.
    kv_heads : int
        Key/value heads, which divide the query heads; by default as many.
    """

    head_dim: int
    value_dim: int
    kv_heads: int

    def __post_init__(self) -> None:
        self._default("value_dim", self.head_dim)
        self._default("kv_heads", self.heads)
        super().__post_init__()
        if self.heads % self.kv_heads:
            raise InputError(f"kv-heads: got {self.kv_heads}, expected a divisor of the {self.heads} heads.")

    @property
    def shape_text(self) -> str:
        dims = str(self.head_dim) if self.value_dim == self.head_dim else f"{self.head_dim}/{self.value_dim}"
        shape = f"queries={self.queries} keys={self.keys} head-dim={dims}"
        if (self.batch, self.heads) != (1, 1):
            shape += f" batch={self.batch} heads={self.heads} kv-heads={self.kv_heads}"
        return shape

    @property
    def columns(self) -> tuple[int, int]:
        return self.head_dim, self.value_dim

    @property
    def group(self) -> int:
        """Query heads that share one key/value head."""
        return self.heads // self.kv_heads

    @property
    def groups(self) -> int:
        """Independent pieces: sequences times key/value heads. No value belongs to two of them."""
        return self.batch * self.kv_heads

    @property
    def stacked_queries(self) -> int:
        """Rows of Q that meet one K: the queries of all heads of a group."""
        return self.group * self.queries


@dataclass(frozen=True)
class Attention(SharedHeads):
    """O = softmax(Q K^T) V over batch sequences and heads, with grouped key/value heads.

    Scores and probabilities are intermediates of the inputs' type; scaling and softmax cost no traffic of their own.

    Parameters
    ----------
    queries, keys : int
        Rows of Q and O, and of K and V, per head. One query is a decode step.
    head_dim : int
        Columns of Q and K.
    value_dim : int, optional
        Columns of V and O; by default ``head_dim``.
    heads, kv_heads : int
        Query heads, and key/value heads; the latter divide the former, which share them in equal groups. By
        default as many key/value heads as heads.
    batch : int
        Independent sequences.
    causal : bool
        The last query sees all keys, each query before it one key less; needs keys >= queries.
    softmax : {"online", "strict"}
        ``online``: a score may be used before its row is complete. ``strict``: only after.
    dtype : str
        Type of Q, K, V: bf16, fp16, fp32 or fp8.
    out_dtype : str, optional
        Type of O; by default the inputs', bf16 for fp8.
    name : str, optional
        What the user called it.

    Raises
    ------
    InputError
        A dimension below 1 or above 2^32, kv_heads that do not divide heads, or causal with fewer keys than queries.
    UnknownNameError
        An unknown data type or softmax.

    Examples
    --------
    >>> Attention(8192, 8192, 128).compulsory_elements
    4194304
    """

    FAMILY = "attention"
    DIMENSIONS = ("queries", "keys", "head_dim", "value_dim", "heads", "kv_heads", "batch")

    queries: int
    keys: int
    head_dim: int
    value_dim: int = 0
    heads: int = 1
    kv_heads: int = 0
    batch: int = 1
    causal: bool = False
    softmax: str = "online"
    dtype: str = "bf16"
    out_dtype: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.softmax not in SOFTMAX:
            raise UnknownNameError("softmax", self.softmax, SOFTMAX, "pebble workloads")

    @property
    def options_text(self) -> str:
        return super().options_text + (" strict" if self.softmax == "strict" else "")

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Q, K, V and O, all sequences and heads stacked."""
        rows, cols = self.batch * self.heads * self.queries, self.groups * self.keys
        return (
            self._read("Q", rows, self.head_dim),
            self._read("K", cols, self.head_dim),
            self._read("V", cols, self.value_dim),
            self._written("O", rows, self.value_dim),
        )
