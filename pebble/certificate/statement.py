"""What is claimed about: the workload, read from its dimensions alone. Everything else is recomputed here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any, NamedTuple

from .nests import Nest, read_nest
from .operands import (
    FORMATS,
    STATISTICS,
    Operand,
    of_attention,
    of_attention_backward,
    of_conv2d,
    of_ffn,
    of_ffn_backward,
    of_gemm,
    of_gemm_backward,
    of_grouped,
    of_latent,
    of_layer,
    of_scaled_ffn,
    of_scaled_gemm,
)
from .reading import RefusedError, array, choice, fields, flag, integer, tagged

WIDTHS = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1}
MAX_DIMENSION = 2**32
MAX_GROUPS = 4096
MAX_WIDTH = 64
LATENT = "latent-attention"
EINSUM = "einsum"
GEMM_BACKWARD, FFN_BACKWARD, ATTENTION_BACKWARD = "gemm-backward", "ffn-backward", "attention-backward"
SCALED, SCALED_FFN = "scaled-gemm", "scaled-ffn"
_HEADED = ("attention", LATENT, ATTENTION_BACKWARD)


class ClaimedWidths(NamedTuple):
    """What a value takes of a memory: one in the classic game, or its bytes."""

    read: int  #: w, an input or a complete cell of an intermediate
    hidden: int  #: p_H, a cell of an intermediate that is initialised and not complete
    partial: int  #: p, a cell of the output that is initialised and not complete
    written: int  #: w_o, a complete output

    @property
    def wider(self) -> int:
        """Of a cell of the output and what meets it."""
        return max(self.read, self.partial)

    @property
    def state(self) -> int:
        """Of a maximum or a sum of a row."""
        return max(self.hidden, self.partial)

    @property
    def unit(self) -> int:
        """The greatest common divisor of all, in which lower bounds count."""
        return gcd(*self)

    @property
    def narrower(self) -> ClaimedWidths:
        """Where outputs and intermediates are looked at as one, what either takes at least."""
        return ClaimedWidths(self.read, self.hidden, min(self.hidden, self.partial), min(self.read, self.written))

    @property
    def in_units(self) -> ClaimedWidths:
        """The same in these units."""
        return ClaimedWidths(*(width // self.unit for width in self))

    @property
    def handing_on(self) -> ClaimedWidths:
        """In a kernel whose result is an intermediate: complete, it is like an input."""
        return ClaimedWidths(self.read, self.hidden, self.hidden, self.read)


ALIKE = ClaimedWidths(1, 1, 1, 1)


@dataclass(frozen=True)
class Piece:
    """A part of a workload, or ``count`` equal ones: groups of heads, products of one size."""

    name: str
    workload: Workload  #: what it computes, as a workload of its own
    taken: int  #: its values that another part computes, or uses so that they need not be stored
    least: int  #: values of the whole that it alone moves: weights, inputs and outputs
    count: int
    written: int = 0  #: those of them that are outputs, where parts are linked
    hands_on: bool = False  #: whether it hands cells on beside these


@dataclass(frozen=True)
class Workload:
    """A workload, its operands by name, and the parts that it is made of, if it is."""

    family: str
    size: dict[str, int]
    option: dict[str, bool]  #: flags, and ``strict`` for attention
    rows: tuple[int, ...]  #: of each group, where products are grouped
    in_width: int  #: bytes of a value of an input, and of every intermediate
    out_width: int  #: bytes of a value of an output
    operands: dict[str, Operand] = field(default_factory=dict)
    pieces: tuple[Piece, ...] = ()
    nest: Nest | None = None  #: of an einsum
    formats: dict[str, str] = field(default_factory=dict)  #: of operands that have their own, with block scales

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
        rows = [f"rows={','.join(map(str, self.rows))}"] if self.rows else []
        options = [name for name, on in self.option.items() if on]
        nest = [self.nest.text] if self.nest else []
        named = [f"{name}={value}" for name, value in (self.size | self.formats).items()]
        return " ".join([self.family, *nest, *rows, *named, *options])

    @property
    def linked(self) -> bool:
        """Whether one product uses what another computes."""
        return self.separate_operands or self.family in (LATENT, FFN_BACKWARD, ATTENTION_BACKWARD, SCALED_FFN)

    @property
    def separate_operands(self) -> bool:
        """Whether it is two products in a row, each of whose operands are matrices of their own."""
        return self.family in ("ffn", "attention", "layer")

    @property
    def streams(self) -> int:
        """Hidden products: gate and up, or one."""
        return 2 if self.option.get("gated") else 1

    # Attention

    @property
    def groups(self) -> int:
        """Independent pieces: key/value heads of all sequences, one in each where they are latent; slices of a nest;
        else 1."""
        if self.nest is not None:
            return self.nest.groups
        return self.size["batch"] * self.size.get("kv_heads", 1) if self.family in _HEADED else 1

    @property
    def sharing(self) -> int:
        """Query heads that share a key/value head."""
        return self.size["heads"] // self.size.get("kv_heads", 1)

    @property
    def rows_of_group(self) -> int:
        """Queries that meet one K."""
        return self.sharing * self.size["queries"]

    @property
    def pairs(self) -> int:
        """Scores of one group: the first query sees keys - queries + 1 keys, the last all, when causal."""
        queries, keys = self.size["queries"], self.size["keys"]
        if self.option["causal"]:
            return self.sharing * (queries * (2 * keys - queries + 1) // 2)
        return self.sharing * queries * keys

    @property
    def latent_sides(self) -> tuple[int, int, int, int]:
        """Of a sequence of latent attention: rows of Q, columns of KV, keys, and columns that are values too."""
        return self.rows_of_group, self.size["latent"] + self.size["rope"], self.size["keys"], self.size["latent"]


def chain_of(workload: Workload) -> tuple[int, int, int, int, int]:
    """m, k, f, l and the cells of H, for H = act(A B), Y = H D with A m x k, B k x f, D f x l; of one group.

    What is proved of a chain charges B and D apart, so it is refused for a workload where they are one matrix.
    """
    size = workload.size
    if not workload.separate_operands:
        raise RefusedError("statement.workload.family", "this theorem is about two products with operands of their own")
    if workload.family == "ffn":
        m, f = size["tokens"], size["hidden"]
        return m, size["d_model"], f, size["d_out"], m * f
    return workload.rows_of_group, size["head_dim"], size["keys"], size["value_dim"], workload.pairs


def strict_stores(workload: Workload, capacity: int) -> int:
    """Scores of a group that a strict softmax must store.

    When the last score of a row enters its sum, all scores of the row are computed and none is used; beside the sum
    at most S - 1 are held.
    """
    if workload.family != "attention" or not workload.option["strict"]:
        return 0
    queries, keys = workload.size["queries"], workload.size["keys"]
    over = max(0, keys + 1 - capacity)  # of the last query, which sees all keys
    if not workload.option["causal"]:
        return workload.sharing * queries * over
    rows = min(queries, over)  # over, over - 1, ...: one key less for each query before
    return workload.sharing * (rows * (2 * over - rows + 1) // 2)


def read_workload(value: Any, at: str) -> Workload:
    """The workload of a statement."""
    family = tagged(value, at, "family", _FAMILIES)
    dimensions, flags, besides, _ = _FAMILIES[family]
    fields(value, at, ("family", "dtype", "out_dtype", *dimensions, *flags, *besides))
    option = {name: flag(value[name], f"{at}.{name}") for name in flags}
    rows: tuple[int, ...] = ()
    if family == "attention":
        option["strict"] = choice(value["softmax"], f"{at}.softmax", ("online", "strict")) == "strict"
    elif family == "grouped":
        entries = array(value["rows"], f"{at}.rows", 1, MAX_GROUPS)
        rows = tuple(integer(m, f"{at}.rows[{i}]", 1, MAX_DIMENSION) for i, m in enumerate(entries))
    bytes_in, bytes_out = (WIDTHS[choice(value[x], f"{at}.{x}", WIDTHS)] for x in ("dtype", "out_dtype"))
    if family == EINSUM:
        return _einsum(value, at, bytes_in, bytes_out)
    if family in (SCALED, SCALED_FFN):  # a value may take less than a byte
        formats = {name: choice(value[name], f"{at}.{name}", tuple(FORMATS)) for name in besides}
        size = {name: integer(value[name], f"{at}.{name}", 1, MAX_DIMENSION) for name in dimensions}
        bare = Workload(family, size, option, (), 1, bytes_out, formats=formats)
        return replace(bare, operands=_FAMILIES[family].operands(bare, at))
    return _workload(at, family, {name: value[name] for name in dimensions}, option, bytes_in, bytes_out, rows)


def _einsum(value: Any, at: str, bytes_in: int, bytes_out: int) -> Workload:
    """A nest; where it is matrix products of two operands, equal parts."""
    nest = read_nest(value["subscripts"], value["sizes"], value["operand_names"], at)
    operands = {name: Operand(count, bytes_in, 1) for name, count in nest.values.items()}
    operands[nest.output] = Operand(nest.cells, bytes_out, 1)
    bare = Workload(EINSUM, dict(nest.sizes), {}, (), bytes_in, bytes_out, operands, nest=nest)
    if nest.product is None:
        return bare
    size = dict(zip("mnk", nest.product, strict=True))
    single = _workload(at, "gemm", size, {"accumulate_into": False}, bytes_in, bytes_out)
    return replace(bare, pieces=(Piece("product", single, 0, single.compulsory, nest.groups),))


def _workload(
    at: str, family: str, size: dict[str, int], option: dict[str, bool], i: int, o: int, rows: tuple[int, ...] = ()
) -> Workload:
    """A workload with inputs of ``i`` bytes and outputs of ``o``, its dimensions checked."""
    for name, number in size.items():
        integer(number, f"{at}.{name}", 1, MAX_DIMENSION)
    bare = Workload(family, size, option, rows, i, o)
    whole = replace(bare, operands=_FAMILIES[family].operands(bare, at))
    return replace(whole, pieces=_PIECES[family](whole, at)) if family in _PIECES else whole


def without_initial(w: Workload) -> Workload:
    """The same that begins at nothing: with atomic adds C += A B costs no less than C := A B."""
    if not w.option.get("accumulate_into"):
        return w
    option = {**w.option, "accumulate_into": False}
    return _workload("statement.workload", w.family, w.size, option, w.in_width, w.out_width, w.rows)


def with_separate_operands(w: Workload) -> Workload:
    """The attention whose keys and values are matrices of their own: a schedule of it is one of latent attention."""
    size = {name: w.size[name] for name in ("queries", "keys", "heads", "batch")}
    size |= {"head_dim": w.size["latent"] + w.size["rope"], "value_dim": w.size["latent"], "kv_heads": 1}
    return _workload("workload", "attention", size, {**w.option, "strict": False}, w.in_width, w.out_width)


def _grouped_pieces(w: Workload, at: str) -> tuple[Piece, ...]:
    results = []
    for m, count in Counter(w.rows).items():
        single = _workload(at, "gemm", {"m": m, **w.size}, w.option, w.in_width, w.out_width)
        results.append(Piece(f"m={m}", single, 0, single.compulsory, count))
    return tuple(results)


def _layer_pieces(w: Workload, at: str) -> tuple[Piece, ...]:
    t, d, f, heads, shared, key, val = w.size.values()
    width, i = (heads + shared) * key + shared * val, w.in_width
    plain = {"accumulate_into": False}
    qkv = _workload(at, "gemm", {"m": t, "n": width, "k": d}, plain, i, i)
    document = {
        "queries": t,
        "keys": t,
        "head_dim": key,
        "value_dim": val,
        "heads": heads,
        "kv_heads": shared,
        "batch": 1,
    }
    attention = _workload(at, "attention", document, {"causal": True, "strict": False}, i, i)
    out = _workload(at, "gemm", {"m": t, "n": d, "k": heads * val}, plain, i, i)
    mlp = _workload(at, "ffn", {"tokens": t, "d_model": d, "hidden": f, "d_out": d}, w.option, i, w.out_width)
    groups = attention.groups
    return (
        Piece("qkv", qkv, t * width, t * d + d * width, 1),
        Piece("attention", attention, attention.compulsory // groups, 0, groups),
        Piece("o", out, t * heads * val + t * d, heads * val * d, 1),
        Piece("mlp", mlp, t * d, mlp.compulsory - t * d, 1, t * d),
    )


def _backward_pieces(w: Workload, at: str) -> tuple[Piece, ...]:
    """The backward passes of Y := H W1 and of Z := X W0, or of gate and up side by side.

    The first hands on dH, and is handed H unless that is what was saved; the second is handed dZ. What was saved of
    gate and up belongs to the first, whose H is made of it.
    """
    (m, d, f, e), s, again = w.size.values(), w.streams, w.option["recomputed"]
    saved, given = (0 if again else s * m * f), again or s == 2
    size = {"m": m, "n": e, "k": f}, {"m": m, "n": s * f, "k": d}
    second, first = (_workload(at, GEMM_BACKWARD, sides, {"again": False}, w.in_width, w.out_width) for sides in size)
    first = replace(first, option={"again": again})
    own = saved if s == 2 else 0
    return (
        Piece("second layer", second, (2 if given else 1) * m * f - own, m * e + 2 * f * e + saved, 1, f * e, True),
        Piece("first layer", first, s * m * f, 2 * (m + s * f) * d, 1, (m + s * f) * d),
    )


_BESIDES_MIDDLE = {FFN_BACKWARD: ("dW1", "H", "G+U"), ATTENTION_BACKWARD: ("dV", *STATISTICS)}


def middle_of(workload: Workload) -> tuple[int, int, int, int, int]:
    """m, f, l, k and the cells of the middle of a backward pass, of one group.

    A cell (i, j) of dZ := dY W1^T, or of dS := dO V^T, has ``l`` first products. Then it is used ``k`` times for dX, or
    dQ, and ``k`` times for dW0, or dK.
    """
    size = workload.size
    if workload.family == FFN_BACKWARD:
        m, k, f, l = size.values()
        return m, f, l, k, m * f
    return workload.rows_of_group, size["keys"], size["value_dim"], size["head_dim"], workload.pairs


def besides_middle(workload: Workload, widths: ClaimedWidths = ALIKE) -> int:
    """What surely moves of a group besides, in units: the other gradient, what was saved, statistics of rows."""
    known = [workload.operands[name] for name in _BESIDES_MIDDLE[workload.family] if name in workload.operands]
    total = sum(one.elements * (1 if widths == ALIKE else one.width // widths.unit) for one in known)
    return total // workload.groups


class _Family(NamedTuple):
    dimensions: tuple[str, ...]
    flags: tuple[str, ...]
    besides: tuple[str, ...]
    operands: Callable[[Workload, str], dict[str, Operand]]


_NETWORK = ("tokens", "d_model", "hidden", "d_out")
_HEADS = ("queries", "keys", "head_dim", "value_dim", "heads", "kv_heads", "batch")
_IMAGES = ("batch", "in_channels", "out_channels", "height", "width", "kernel", "stride")
_DIMENSIONS = ("tokens", "d_model", "hidden", "heads", "kv_heads", "head_dim", "value_dim")
_FAMILIES = {
    "gemm": _Family(("m", "n", "k"), ("accumulate_into",), (), of_gemm),
    "ffn": _Family(_NETWORK, ("gated",), (), of_ffn),
    "attention": _Family(_HEADS, ("causal",), ("softmax",), of_attention),
    LATENT: _Family(("queries", "keys", "latent", "rope", "heads", "batch"), ("causal",), (), of_latent),
    "conv2d": _Family(_IMAGES, (), (), of_conv2d),
    "grouped": _Family(("n", "k"), ("accumulate_into",), ("rows",), of_grouped),
    "layer": _Family(_DIMENSIONS, ("gated",), (), of_layer),
    GEMM_BACKWARD: _Family(("m", "n", "k"), (), (), of_gemm_backward),
    FFN_BACKWARD: _Family(_NETWORK, ("recomputed", "gated"), (), of_ffn_backward),
    ATTENTION_BACKWARD: _Family(_HEADS, ("causal",), (), of_attention_backward),
    SCALED: _Family(("m", "n", "k"), (), ("dtype_a", "dtype_b"), of_scaled_gemm),
    SCALED_FFN: _Family(_NETWORK, ("gated",), ("dtype_x", "dtype_w", "dtype_h"), of_scaled_ffn),
    EINSUM: _Family((), (), ("subscripts", "sizes", "operand_names"), lambda w, at: {}),
}
_PIECES = {"grouped": _grouped_pieces, "layer": _layer_pieces, FFN_BACKWARD: _backward_pieces}


def read_widths(workload: Workload, stated: Any, at: str) -> ClaimedWidths:
    """Bytes of a value; what partial sums take is told: no less than what they end as."""
    fields(stated, at, ("partial_hidden", "partial_output"))
    return ClaimedWidths(
        workload.in_width,
        integer(stated["partial_hidden"], f"{at}.partial_hidden", workload.in_width, MAX_WIDTH),
        integer(stated["partial_output"], f"{at}.partial_output", workload.out_width, MAX_WIDTH),
        workload.out_width,
    )
