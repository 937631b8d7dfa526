"""What is claimed about: the workload, read from its dimensions alone. Everything else is recomputed here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .reading import RefusedError, choice, fields, flag, integer

WIDTHS = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1}
MAX_DIMENSION = 2**32

_DIMENSIONS = {
    "gemm": ("m", "n", "k"),
    "ffn": ("tokens", "d_model", "hidden", "d_out"),
    "attention": ("queries", "keys", "head_dim", "value_dim", "heads", "kv_heads", "batch"),
    "conv2d": ("batch", "in_channels", "out_channels", "height", "width", "kernel", "stride"),
}
_FLAGS = {"gemm": ("accumulate_into",), "ffn": ("gated",), "attention": ("causal",), "conv2d": ()}


@dataclass(frozen=True)
class Operand:
    """A matrix in slow memory.

    Attributes
    ----------
    elements : int
        Its values.
    width : int
        Bytes of each.
    moves : int
        How often each value crosses at least: once to be read, once to be written.
    """

    elements: int
    width: int
    moves: int


@dataclass(frozen=True)
class Workload:
    """A workload and its operands by name.

    Attributes
    ----------
    family : str
    size : dict
        Dimensions.
    option : dict
        Flags, and ``strict`` for attention.
    operands : dict
        By name.
    in_width, out_width : int
        Bytes of a value of an input (and of every intermediate), and of an output.
    """

    family: str
    size: dict[str, int]
    option: dict[str, bool]
    operands: dict[str, Operand]
    in_width: int
    out_width: int

    @property
    def narrow(self) -> int:
        """Bytes of the narrowest value: no value takes less room, no transfer costs less."""
        return min(self.in_width, self.out_width)

    @property
    def compulsory(self) -> int:
        """Transfers that every schedule makes: each operand read once, each output written once."""
        return sum(o.elements * o.moves for o in self.operands.values())

    def bytes_of(self, elements: int, hidden: int = 0) -> int:
        """Bytes that ``elements`` transfers are at least: the narrowest width each, and what is wider on those that
        surely happen, the compulsory ones and ``hidden`` of intermediates."""
        wider = sum(o.elements * o.moves * (o.width - self.narrow) for o in self.operands.values())
        return elements * self.narrow + wider + hidden * (self.in_width - self.narrow)

    @property
    def label(self) -> str:
        """Family and dimensions, for a sentence."""
        options = [name for name, on in self.option.items() if on]
        return " ".join([self.family, *(f"{name}={n}" for name, n in self.size.items()), *options])

    # Attention

    @property
    def groups(self) -> int:
        """Independent pieces: key/value heads of all sequences; 1 for other families."""
        return self.size["batch"] * self.size["kv_heads"] if self.family == "attention" else 1

    @property
    def sharing(self) -> int:
        """Query heads that share a key/value head."""
        return self.size["heads"] // self.size["kv_heads"]

    @property
    def rows(self) -> int:
        """Queries that meet one K."""
        return self.sharing * self.size["queries"]

    @property
    def pairs(self) -> int:
        """Scores of one group: the first query sees keys - queries + 1 keys, the last all, when causal."""
        queries, keys = self.size["queries"], self.size["keys"]
        if self.option["causal"]:
            return self.sharing * (queries * (2 * keys - queries + 1) // 2)
        return self.sharing * queries * keys


def read_workload(value: Any, at: str) -> Workload:
    """The workload of a statement."""
    if type(value) is not dict:
        raise RefusedError(at, "expected an object")
    family = choice(value.get("family"), f"{at}.family", _DIMENSIONS)
    extra = ("softmax",) if family == "attention" else ()
    fields(value, at, ("family", "dtype", "out_dtype", *_DIMENSIONS[family], *_FLAGS[family], *extra))
    size = {name: integer(value[name], f"{at}.{name}", 1, MAX_DIMENSION) for name in _DIMENSIONS[family]}
    option = {name: flag(value[name], f"{at}.{name}") for name in _FLAGS[family]}
    if family == "attention":
        option["strict"] = choice(value["softmax"], f"{at}.softmax", ("online", "strict")) == "strict"
    wide_in = WIDTHS[choice(value["dtype"], f"{at}.dtype", WIDTHS)]
    wide_out = WIDTHS[choice(value["out_dtype"], f"{at}.out_dtype", WIDTHS)]
    operands = _OPERANDS[family](size, option, wide_in, wide_out, at)
    return Workload(family, size, option, operands, wide_in, wide_out)


def _gemm(size: dict[str, int], option: dict[str, bool], i: int, o: int, at: str) -> dict[str, Operand]:
    m, n, k = size["m"], size["n"], size["k"]
    twice = 2 if option["accumulate_into"] else 1
    return {"A": Operand(m * k, i, 1), "B": Operand(k * n, i, 1), "C": Operand(m * n, o, twice)}


def _ffn(size: dict[str, int], option: dict[str, bool], i: int, o: int, at: str) -> dict[str, Operand]:
    m, k, f, l = size["tokens"], size["d_model"], size["hidden"], size["d_out"]
    up = {"Wg+Wu": Operand(2 * k * f, i, 1)} if option["gated"] else {"W1": Operand(k * f, i, 1)}
    return {"X": Operand(m * k, i, 1), **up, "W2": Operand(f * l, i, 1), "Y": Operand(m * l, o, 1)}


def _attention(size: dict[str, int], option: dict[str, bool], i: int, o: int, at: str) -> dict[str, Operand]:
    if size["heads"] % size["kv_heads"]:
        raise RefusedError(f"{at}.kv_heads", "expected a divisor of the heads")
    if option["causal"] and size["keys"] < size["queries"]:
        raise RefusedError(f"{at}.keys", "a causal mask needs at least as many keys as queries")
    above, below = size["batch"] * size["heads"] * size["queries"], size["batch"] * size["kv_heads"] * size["keys"]
    d, e = size["head_dim"], size["value_dim"]
    return {
        "Q": Operand(above * d, i, 1),
        "K": Operand(below * d, i, 1),
        "V": Operand(below * e, i, 1),
        "O": Operand(above * e, o, 1),
    }


def _conv2d(size: dict[str, int], option: dict[str, bool], i: int, o: int, at: str) -> dict[str, Operand]:
    kernel, stride = size["kernel"], size["stride"]
    if kernel > min(size["height"], size["width"]):
        raise RefusedError(f"{at}.kernel", "it is larger than the input")
    outs, reads = [], []
    for extent in (size["height"], size["width"]):
        out = 1 + (extent - kernel) // stride
        outs.append(out)
        # windows of `kernel` positions start every `stride`: they overlap, or leave gaps that nothing reads
        reads.append(out * kernel if stride >= kernel else kernel + (out - 1) * stride)
    batch, ins, channels = size["batch"], size["in_channels"], size["out_channels"]
    return {
        "X": Operand(batch * ins * reads[0] * reads[1], i, 1),
        "W": Operand(channels * ins * kernel * kernel, i, 1),
        "Y": Operand(batch * channels * outs[0] * outs[1], o, 1),
    }


_OPERANDS = {"gemm": _gemm, "ffn": _ffn, "attention": _attention, "conv2d": _conv2d}
