"""What the workload of each family reads and writes: operands by name, from its dimensions alone."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from .reading import RefusedError

UNITS = 32  # of a byte, in which values of formats are counted


class Format(NamedTuple):
    """Bits of a value, and how many values along the sum share one scale, of so many bytes, over how many rows."""

    bits: int
    block: int = 0
    scale: int = 1
    rows: int = 1

    @property
    def units(self) -> int:
        """Of a value, and its share of a full block's scale, rounded down."""
        return UNITS * self.bits // 8 + (UNITS * self.scale // (self.block * self.rows) if self.block else 0)

    def bytes_of(self, rows: int, depth: int) -> int:
        """Of a matrix whose rows are packed into whole bytes, with all its scales."""
        scales = self.scale * -(-rows // self.rows) * -(-depth // self.block) if self.block else 0
        return rows * -(-depth * self.bits // 8) + scales


FORMATS = {
    "mxfp8": Format(8, 32),
    "mxfp4": Format(4, 32),
    "nvfp4": Format(4, 16),
    "fp8-1x128": Format(8, 128, 4),
    "fp8-128x128": Format(8, 128, 4, 128),
    "bf16": Format(16),
    "fp16": Format(16),
    "fp32": Format(32),
    "fp8": Format(8),
}
STATISTICS = ("L", "delta")  # of a row of attention, in fp32
STATISTIC_WIDTH = 4


class Stated(Protocol):
    """What operands follow from."""

    @property
    def size(self) -> dict[str, int]:
        """Dimensions by name."""

    @property
    def option(self) -> dict[str, bool]:
        """Flags by name."""

    @property
    def rows(self) -> tuple[int, ...]:
        """Of each group, where products are grouped."""

    @property
    def in_width(self) -> int:
        """Bytes of a value of an input."""

    @property
    def out_width(self) -> int:
        """Bytes of a value of an output."""

    @property
    def formats(self) -> dict[str, str]:
        """Of operands that have their own."""

    @property
    def streams(self) -> int:
        """Hidden products: gate and up, or one."""


class Operand(NamedTuple):
    """A matrix in slow memory: how many values, the bytes of each, and how often each crosses at least."""

    elements: int
    width: int
    moves: int  #: once to be read, once to be written


def of_gemm(w: Stated, at: str) -> dict[str, Operand]:
    m, n, k = w.size["m"], w.size["n"], w.size["k"]
    return _product(m * k, k * n, m * n, w)


def of_gemm_backward(w: Stated, at: str) -> dict[str, Operand]:
    m, n, k = w.size["m"], w.size["n"], w.size["k"]
    return _with_gradients(w, {"A": m * k, "B": k * n}, {"dC": m * n})


def _with_gradients(w: Stated, sizes: dict[str, int], others: dict[str, int]) -> dict[str, Operand]:
    """Inputs whose gradients are outputs, and other inputs."""
    inputs = {name: Operand(count, w.in_width, 1) for name, count in (sizes | others).items()}
    return inputs | {f"d{name}": Operand(count, w.out_width, 1) for name, count in sizes.items()}


def of_grouped(w: Stated, at: str) -> dict[str, Operand]:
    total, n, k = sum(w.rows), w.size["n"], w.size["k"]
    return _product(total * k, len(w.rows) * k * n, total * n, w)


def _product(a: int, b: int, c: int, w: Stated) -> dict[str, Operand]:
    twice = 2 if w.option["accumulate_into"] else 1
    return {"A": Operand(a, w.in_width, 1), "B": Operand(b, w.in_width, 1), "C": Operand(c, w.out_width, twice)}


def of_ffn(w: Stated, at: str) -> dict[str, Operand]:
    m, k, f, l = w.size["tokens"], w.size["d_model"], w.size["hidden"], w.size["d_out"]
    up = Operand(w.streams * k * f, w.in_width, 1)
    ends = {"W2": Operand(f * l, w.in_width, 1), "Y": Operand(m * l, w.out_width, 1)}
    return {"X": Operand(m * k, w.in_width, 1), "Wg+Wu" if w.streams == 2 else "W1": up, **ends}


def of_attention(w: Stated, at: str) -> dict[str, Operand]:
    size, i = w.size, w.in_width
    if size["heads"] % size["kv_heads"]:
        raise RefusedError(f"{at}.kv_heads", "expected a divisor of the heads")
    if w.option["causal"] and size["keys"] < size["queries"]:
        raise RefusedError(f"{at}.keys", "a causal mask needs at least as many keys as queries")
    above, below = size["batch"] * size["heads"] * size["queries"], size["batch"] * size["kv_heads"] * size["keys"]
    d, e = size["head_dim"], size["value_dim"]
    inputs = {"Q": Operand(above * d, i, 1), "K": Operand(below * d, i, 1), "V": Operand(below * e, i, 1)}
    return {**inputs, "O": Operand(above * e, w.out_width, 1)}


def of_ffn_backward(w: Stated, at: str) -> dict[str, Operand]:
    m, d, f, e = w.size["tokens"], w.size["d_model"], w.size["hidden"], w.size["d_out"]
    first, saved = ("W0", "H") if w.streams == 1 else ("Wg+Wu", "G+U")
    others = {"dY": m * e, **({} if w.option["recomputed"] else {saved: w.streams * m * f})}
    return _with_gradients(w, {"X": m * d, first: w.streams * d * f, "W1": f * e}, others)


def of_attention_backward(w: Stated, at: str) -> dict[str, Operand]:
    rows, columns = (matrix.elements // w.size["head_dim"] for matrix in list(of_attention(w, at).values())[:2])
    d, e = w.size["head_dim"], w.size["value_dim"]
    both = _with_gradients(w, {"Q": rows * d, "K": columns * d, "V": columns * e}, {"dO": rows * e})
    return both | {name: Operand(rows, STATISTIC_WIDTH, 1) for name in STATISTICS}


def of_scaled_gemm(w: Stated, at: str) -> dict[str, Operand]:
    m, n, k = w.size["m"], w.size["n"], w.size["k"]
    sides = zip("AB", (m, n), w.formats.values(), strict=True)
    inputs = {x: Operand(FORMATS[name].bytes_of(rows, k), 1, 1) for x, rows, name in sides}
    return inputs | {"C": Operand(m * n, w.out_width, 1)}


def of_scaled_ffn(w: Stated, at: str) -> dict[str, Operand]:
    m, k, f, l = w.size["tokens"], w.size["d_model"], w.size["hidden"], w.size["d_out"]
    x, weights = FORMATS[w.formats["dtype_x"]], FORMATS[w.formats["dtype_w"]]
    ups = {name: weights.bytes_of(f, k) for name in (("Wg", "Wu") if w.streams == 2 else ("W1",))}
    inputs = {"X": x.bytes_of(m, k), **ups, "W2": weights.bytes_of(l, f)}
    return {name: Operand(size, 1, 1) for name, size in inputs.items()} | {"Y": Operand(m * l, w.out_width, 1)}


def of_latent(w: Stated, at: str) -> dict[str, Operand]:
    size, i = w.size, w.in_width
    if w.option["causal"] and size["keys"] < size["queries"]:
        raise RefusedError(f"{at}.keys", "a causal mask needs at least as many keys as queries")
    above, both = size["batch"] * size["heads"] * size["queries"], size["latent"] + size["rope"]
    inputs = {"Q": Operand(above * both, i, 1), "KV": Operand(size["batch"] * size["keys"] * both, i, 1)}
    return {**inputs, "O": Operand(above * size["latent"], w.out_width, 1)}


def of_conv2d(w: Stated, at: str) -> dict[str, Operand]:
    kernel, stride = w.size["kernel"], w.size["stride"]
    if kernel > min(w.size["height"], w.size["width"]):
        raise RefusedError(f"{at}.kernel", "it is larger than the input")
    pixels = read = 1
    for extent in (w.size["height"], w.size["width"]):
        out = 1 + (extent - kernel) // stride
        pixels *= out
        # windows of `kernel` positions start every `stride`: they overlap, or leave gaps that nothing reads
        read *= out * kernel if stride >= kernel else kernel + (out - 1) * stride
    batch, ins, channels = w.size["batch"], w.size["in_channels"], w.size["out_channels"]
    return {
        "X": Operand(batch * ins * read, w.in_width, 1),
        "W": Operand(channels * ins * kernel * kernel, w.in_width, 1),
        "Y": Operand(batch * channels * pixels, w.out_width, 1),
    }


def of_layer(w: Stated, at: str) -> dict[str, Operand]:
    t, d, f, heads, shared, key, val = w.size.values()
    qkv, out = d * ((heads + shared) * key + shared * val), heads * val * d
    return {
        "X": Operand(t * d, w.in_width, 1),
        "weights": Operand(qkv + out + (w.streams + 1) * d * f, w.in_width, 1),
        "Y": Operand(t * d, w.out_width, 1),
    }
