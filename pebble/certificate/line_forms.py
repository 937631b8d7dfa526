"""The ways to apply the line theorems to a workload, every value with its width; and for H = act(A B) and Y = H D
what a cell of H is charged.

Values take widths: an input and a complete cell of H take w, a partial sum of H takes p_H >= w, one of Y takes p, a
complete output w_o. In the classic game all are 1.

A cell has k first products, which complete it, and then l second ones, which read it. Let s segments have first
products of it and j further ones second products only. It begins free and need not be stored. Between two of the s it
is a partial sum, held over a cut or stored and loaded again: rho p_H each for rho <= 2. In front of each of the j it is
complete: held over the cut before it, at w or wider, or loaded at w; and if it is loaded at all it was stored once, at
w, after its last update: for t loads w ((j - t) rho + t + [t > 0]). All these moves are different. So for 1 <= rho <= 2
it moves, or takes room, for at least

    (s - 1) rho p_H + w min(j rho, j + 1),

which for a given n = s + j does not rise with j, since p_H >= w. Its products have sum c ln c >= E(k + l, n). The j
segments have at most l products in all. If j q >= l, with q the whole part of (k + l) / n, then E(J, j) + E(k + l - J,
s), convex in their number J, does not rise up to J = j q, so the cell has E(k, s) + E(l, j) at least. Otherwise j <= (l
- 1) / q, and the moves are the fewest at the largest j. So the charge is at least the least of

    mixed, for n = s + j: (n - 1 - j) rho p_H + w min(j rho, j + 1) + mu E(k + l, n), j = min(n - 1, (l - 1) div q),
    apart: min over s of (s - 1) rho p_H + mu E(k, s), plus min over j >= 1 of w min(j rho, j + 1) + mu E(l, j).

Both are looked through here. Mixed is at least (n - 1) w + mu E(k + l, n), which is convex in n: once that is no less
than the least so far, and no longer falls, no further n matters.

Of many segments: one of them at most has both kinds, and (a + b) ln(a + b) >= a ln a + b ln b. So with j' = j or j + 1
segments that have second products the charge is also at least

    split: min over s of (s - 1) rho p_H + mu E(k, s), plus min over j' of (j' - 1) w + mu E(l, j'),

and at least (n - 1) w + mu E(k + l, n) for some n.

A product of A B may count alpha of work and one of H D beta, and segments are equal in work, but for max(alpha, beta) -
1 that the last product of one may go beyond. Take a product of a segment of work W at random, by work: with K the sum
of x ln x over the works x of its products, W times its entropy is W ln W - K, and W times that of one coordinate given
the others is the sum of t ln t over the works t of the lines, less K. Where all products of a line count x, t ln t is x
c ln c + c x ln x, and the second terms of a direction add up to K. So

    sum over A, B of alpha c ln c + sum over D, Y of beta c ln c + sum over H of t ln t <= W ln W:

mu alpha and mu beta take the place of mu, and k and l above are the works of a cell's first and second products, since
works are whole numbers too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from .lines import BITS, MAX_KERNEL, Form, Lines, ValueKind, entropy, read_times
from .reading import RefusedError, array, integer
from .statement import (
    ALIKE,
    ATTENTION_BACKWARD,
    FFN_BACKWARD,
    GEMM_BACKWARD,
    LATENT,
    ClaimedWidths,
    Workload,
    besides_middle,
    chain_of,
    middle_of,
)

MANY = 1000  # mu (k + l) / w beyond which a cell is charged by split, or (n - 1) w + mu E(k + l, n)
MAX_STEPS = 20_000
MAX_WEIGHT = 1024

Bounds = tuple[Fraction, Fraction]  # a number from below and above


@dataclass(frozen=True)
class Hidden:
    """Cells of H, with what they take in units."""

    count: int
    k: int  #: first products of each, or their work
    l: int  #: second products of each, or their work
    complete: int = 1  #: w
    partial: int = 1  #: p_H, no less

    @property
    def length(self) -> int:
        """All products of one, or their work."""
        return self.k + self.l

    def prove(self, claimed: Any, h: int, mu: Fraction, rho: Fraction, at: str) -> Fraction:
        """What a cell is charged, from below: ``claimed`` is the n where that is, 0 for apart, s and j' for split."""
        length, w = self.length, self.complete
        if not 1 <= rho <= 2:
            raise RefusedError(at, "this theorem is about multipliers rho from 1 to 2")
        if self.partial < w:
            raise RefusedError(at, "this theorem is about partial sums that are no narrower than what they end as")
        if mu * length > MANY * w:
            if type(claimed) is not list:
                return Lines(1, length, 0, w, w).prove(claimed, h, mu, rho, at)
            s, j = array(claimed, at, 2, 2)
            firsts = Lines(1, self.k, 0, 2 * self.partial, self.partial).prove(s, h, mu, rho, f"{at}[0]")
            return firsts + Lines(1, self.l, 0, w, w).prove(j, h, mu, rho, f"{at}[1]")
        most = min(h, length)
        result = self._all(most, mu, rho, at)
        mine = result.get(integer(claimed, at, 0, most))
        if mine is None or any(high < mine[0] for _, high in result.values()):
            raise RefusedError(at, "a cell is charged less elsewhere")
        return min(low for low, _ in result.values())

    def _all(self, most: int, mu: Fraction, rho: Fraction, at: str) -> dict[int, Bounds]:
        """The charges that may be least: apart as 0, and mixed by n."""
        length, w = self.length, self.complete
        result = {0: self._disjoint(most, mu, rho, at)} if most > 1 else {}
        least = min((high for _, high in result.values()), default=None)  # so far, from above
        before: Fraction | None = None  # the floor at the last n, from above
        for n in range(1, most + 1):
            if n > MAX_STEPS:
                raise RefusedError(at, f"more than {MAX_STEPS} segments would have to be looked at")
            entropies = entropy(length, n)
            # no charge is below this floor, which is convex: once it does not fall and is no less, nothing follows
            floor, above = _charge(Fraction(w * (n - 1)), mu, entropies)
            if before is not None and least is not None and floor >= max(before, least):
                break
            before = above
            later = min(n - 1, (self.l - 1) // (length // n))
            moves = (n - 1 - later) * rho * self.partial + w * min(later * rho, Fraction(later + 1))
            result[n] = _charge(moves, mu, entropies)
            least = result[n][1] if least is None else min(least, result[n][1])
        return result

    def _disjoint(self, most: int, mu: Fraction, rho: Fraction, at: str) -> Bounds:
        w, first = self.complete, rho * self.partial
        firsts = _least(lambda s: _charge((s - 1) * first, mu, entropy(self.k, s)), min(most, self.k), at)
        held = _least(lambda j: _charge(j * rho * w, mu, entropy(self.l, j)), min(most, self.l), at)
        stored = _least(lambda j: _charge(Fraction(w * (j + 1)), mu, entropy(self.l, j)), min(most, self.l), at)
        return firsts[0] + min(held[0], stored[0]), firsts[1] + min(held[1], stored[1])


def _charge(moves: Fraction, mu: Fraction, entropies: tuple[int, int]) -> Bounds:
    low, high = (moves + mu * Fraction(x, 1 << BITS) for x in entropies)
    return low, high


def _least(charge: Callable[[int], Bounds], most: int, at: str) -> Bounds:
    """The least of a convex function on 1..most, from below and above: until it surely does not fall any more."""
    low, high = charge(1)
    for s in range(2, most + 1):
        if s > MAX_STEPS:
            raise RefusedError(at, f"more than {MAX_STEPS} segments would have to be looked at")
        below, above = charge(s)
        if below >= high:
            break
        low, high = min(low, below), min(high, above)
    return low, high


class ChainWidths(NamedTuple):
    """What values of a chain take, in one unit: A, B, D, a cell of H complete and not, one of Y not and complete."""

    a: int
    b: int
    d: int
    complete: int
    hidden: int
    partial: int
    written: int

    @classmethod
    def of(cls, widths: ClaimedWidths) -> ChainWidths:
        """Where inputs and complete cells have one width."""
        w, hidden, p, written = widths.in_units
        return cls(w, w, w, w, hidden, p, written)


def chain_forms(
    sizes: tuple[int, int, int, int], streams: int, numbers: ChainWidths, stated: Any, at: str
) -> dict[str, Form]:
    """The ways to apply the theorem to m, k, f and l with all cells of H, by name.

    ``told``: alpha and beta, what products count; without them B and D, whose values are then alike, are one kind.
    """
    m, k, f, l = sizes
    a, b, d, w, hidden, p, written = numbers
    alpha = beta = 1
    if stated is not None:
        array(stated, at, 2, 2)
        alpha, beta = (integer(x, f"{at}[{i}]", 1, MAX_WEIGHT) for i, x in enumerate(stated))

    def form(columns: int, more: int) -> Form:
        inputs = [Lines(k * columns, m, b, b, b, weight=alpha), Lines(f * l, m, d, d, d, weight=beta)]
        kinds: list[ValueKind] = [
            Lines(m * k, columns, a, a, a, weight=alpha),
            *([Lines(k * columns + f * l, m, b, b, b)] if stated is None and b == d else inputs),
            Lines(m * l, f, written, 2 * p, p, weight=beta),
            Hidden(m * f, alpha * k, beta * l, w, hidden),
        ]
        if columns > f:  # an up cell has first products only, begins free and ends nowhere
            kinds.append(Lines(m * f, alpha * k, 0, 2 * hidden, hidden))
        return Form(kinds, alpha * m * columns * k + beta * m * f * l, b * more, max(alpha, beta))

    # gate and up columns side by side; or the up cells are left out, and each up weight is loaded
    return {"chain": form(f, 0)} if streams == 1 else {"gated chain": form(2 * f, 0), "gate's chain": form(f, k * f)}


def line_forms(workload: Workload, widths: ClaimedWidths = ALIKE, stated: Any = None, at: str = "") -> dict[str, Form]:
    """Of one product, or of two in a row; ``told``: what products of a chain count."""
    if workload.separate_operands and not workload.pieces:
        m, k, f, l, cells = chain_of(workload)
        if cells != m * f:  # a mask: lines then differ in length
            return {}
        return chain_forms((m, k, f, l), workload.streams, ChainWidths.of(widths), stated, f"{at}.work_weights")
    if workload.family in (FFN_BACKWARD, ATTENTION_BACKWARD):
        return middle_of_backward(workload, widths)
    return {name: form.at(widths, at) for name, form in _product_lines(workload).items()}


def middle_of_backward(workload: Workload, widths: ClaimedWidths) -> dict[str, Form]:
    """dZ := dY W1^T, then dX := dZ W0^T and dW0 := X^T dZ, where no mask leaves cells out; or dS, dQ and dK.

    Of gate and up, a further cell begins when dZ is complete and ends nowhere: between two segments it is complete. Or
    it is left out, each up weight is loaded and its gradient stored.
    """
    (m, f, l, k, cells), more = middle_of(workload), besides_middle(workload, widths)
    if cells != m * f:
        return {}
    w, hidden, p, written = widths.in_units

    def form(columns: int, besides: int) -> Form:
        kinds: list[ValueKind] = [Lines(m * l, f, w, w, w), Lines(f * l, m, w, w, w)]
        for count, length in ((m * k, columns), (k * columns, m)):
            kinds += [Lines(count, length, w, w, w), Lines(count, length, written, 2 * p, p)]
        kinds.append(Hidden(cells, l, 2 * k, w, hidden))
        if columns > f:
            kinds.append(Lines(cells, 2 * k, 0, w, w))
        return Form(kinds, cells * l + m * columns * 2 * k, besides)

    if workload.streams == 1:
        return {"middle": form(f, more)}
    return {"gated middle": form(2 * f, more), "gate's middle": form(f, more + k * f * (w + written))}


def kernel_lines(workload: Workload, number: int, widths: ClaimedWidths, at: str) -> dict[str, Form]:
    """Of one of two kernels with H in slow memory between them; ``widths`` are those of this one."""
    m, k, f, l, cells = chain_of(workload)
    if cells != m * f:
        return {}
    if number == 1:
        form = Form([Lines(cells, l), Lines(f * l, m), Lines(m * l, f, again=2)], cells * l)
        return {"second kernel": form.at(widths, at)}
    columns = workload.streams * f
    ups = [Lines(cells, k, 0, again=2)] if workload.streams == 2 else []
    form = Form([Lines(m * k, columns), Lines(k * columns, m), Lines(cells, k, again=2), *ups], m * columns * k)
    return {"first kernel": form.at(widths, at)}


def _product_lines(workload: Workload) -> dict[str, Form]:
    """The ways to apply the line theorem to one product, or to latent attention, every value as one."""
    size = workload.size
    if workload.family == "gemm":
        m, n, k = size["m"], size["n"], size["k"]
        # C += A B: each cell is loaded once before its first update
        cells = Lines(m * n, k, 2 if workload.option["accumulate_into"] else 1, again=2)
        return {"product": Form([Lines(m * k, n), Lines(k * n, m), cells], m * n * k)}
    if workload.family == GEMM_BACKWARD:
        m, n, k = size["m"], size["n"], size["k"]
        left, right = (Lines(m * k, n), Lines(m * k, n, again=2)), (Lines(k * n, m), Lines(k * n, m, again=2))
        return {"backward": Form([*left, *right, Lines(m * n, 2 * k)], 2 * m * n * k)}
    if workload.family == LATENT:
        return {"latent": _latent_lines(workload)}
    if workload.family != "conv2d" or size["kernel"] > MAX_KERNEL:
        return {}
    channels, images = size["out_channels"], size["batch"] * size["in_channels"]
    pixels, taps = workload.operands["Y"].elements // channels, workload.operands["W"].elements // channels
    inputs = [
        Lines(positions * images, pairs * channels, overlap=pairs)
        for pairs, positions in read_times(size["height"], size["width"], size["kernel"], size["stride"])
    ]
    others = Lines(channels * taps, pixels), Lines(channels * pixels, taps, again=2)
    return {"convolution": Form([*inputs, *others], pixels * channels * taps)}


def _latent_lines(workload: Workload) -> Form:
    """Of the keys that all queries see, others loaded besides; a value of both products stands for a line of each."""
    m, k, f, l = workload.latent_sides
    late = workload.size["queries"] - 1 if workload.option["causal"] else 0
    f -= late
    inputs = Lines(m * k, f), Lines(l * f, 2 * m, overlap=2), Lines((k - l) * f, m)
    return Form([*inputs, Lines(m * l, f, again=2), Hidden(m * f, k, l)], m * f * (k + l), late * k)
