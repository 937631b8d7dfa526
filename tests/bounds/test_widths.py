"""Bounds in bytes: below the exact optimum of tiny games of widths, never below what counting values proves."""

import random

import pytest

from pebble.api.traffic import bound
from pebble.bounds import Accounting, Piece, WeightedBound, WorkloadPart
from pebble.bounds import lower_bound as bound_of
from pebble.bounds.accounting import product_uses
from pebble.bounds.box import FRACTION_BITS, shares_of
from pebble.bounds.chain import Chain
from pebble.bounds.weighted import in_bytes
from pebble.cdag.products import gemm_dag
from pebble.errors import InfeasibleError, InputError, UnknownNameError
from pebble.families import family_of, read_workload
from pebble.reports.bound import bound_workload
from pebble.workloads import Attention, Conv2d, Ffn, Gemm, GroupedGemm, TransformerLayer
from pebble.workloads.widths import FastMemory, Widths
from pebble.workloads.workload import Workload
from tests.bounds.weighted_game import chain_game, product_game
from tests.brute_force import brute_force

BF16, FP8 = Widths(2, 4, 4, 2), Widths(1, 4, 4, 2)


def strongest(pieces: tuple[Piece, ...], capacity: int) -> int:
    """The most that any h and any charge proves; the bound looks at fewer."""

    def total(piece: Piece, h: int) -> int:
        touched = sum(count * piece.touched(max(0, v - piece.slack)) for v, count in shares_of(piece.work, h))
        return -((-touched) >> FRACTION_BITS) - (h - 1) * capacity - piece.initialised + piece.added

    return max(total(piece, h) for piece in pieces for h in range(1, piece.work + 1))


@pytest.mark.parametrize(
    ("m", "n", "k", "widths", "spare", "added"),
    [
        (1, 1, 4, BF16, 0, False),
        (1, 2, 2, BF16, 0, False),
        (2, 2, 1, BF16, 2, False),
        (2, 2, 2, BF16, 0, False),
        (2, 2, 2, FP8, 2, False),
        (2, 2, 2, Widths(1, 1, 2, 1), 1, True),
        (2, 1, 3, FP8, 1, False),
        (1, 2, 3, Widths(4, 4, 4, 2), 4, False),
        (2, 2, 2, Widths(1, 1, 1, 1), 2, False),
    ],
)
def test_no_product_moves_less(m: int, n: int, k: int, widths: Widths, spare: int, added: bool) -> None:
    capacity = 2 * widths.read + widths.partial + spare
    optimum = product_game(m, n, k, widths, added).least(capacity)
    pieces = Piece.product(m, n, k, added=m * n if added else 0).at(widths)
    assert optimum is not None
    assert max(piece.bound(capacity).bytes for piece in pieces) <= strongest(pieces, capacity) <= optimum


@pytest.mark.parametrize(
    ("sides", "widths", "spare"),
    [
        ((1, 1, 2, 1), BF16, 0),
        ((1, 2, 2, 1), FP8, 1),
        ((1, 1, 2, 2), BF16, 2),
        ((1, 2, 1, 2), BF16, 0),
        ((2, 1, 1, 2), FP8, 0),
        ((2, 2, 1, 1), Widths(1, 2, 1, 1), 1),
        ((2, 1, 2, 1), Widths(1, 1, 2, 2), 2),
    ],
)
def test_no_chain_moves_less(sides: tuple[int, int, int, int], widths: Widths, spare: int) -> None:
    m, k, f, l = sides
    capacity = 2 * widths.read + max(widths.hidden, widths.partial) + spare
    optimum = chain_game(m, k, f, l, widths).least(capacity)
    assert optimum is not None
    assert strongest(Chain(m, k, f, l, m * f).pieces_at(widths), capacity) <= optimum


def test_with_one_width_the_oracle_plays_the_game_of_values() -> None:
    """The same optimum as the search that the referee's game is checked by, and twice that in twice the bytes."""
    for sides, capacity in (((2, 1, 2), 3), ((2, 2, 1), 4), ((1, 2, 2), 3)):
        values = brute_force(gemm_dag(*sides), capacity, "in-place")
        assert product_game(*sides, Widths(1, 1, 1, 1)).least(capacity) == values
        assert product_game(*sides, Widths(2, 2, 2, 2)).least(2 * capacity + 1) == 2 * (values or 0)


def test_a_wider_partial_sum_costs_no_less() -> None:
    results = [product_game(2, 1, 2, Widths(1, 1, p, 1)).least(5) for p in (1, 2, 3)]
    assert results == sorted(x or 0 for x in results)


def random_workload(draw: random.Random) -> Workload:
    def side(most: int = 3000) -> int:
        return int(most ** draw.random())

    types = {"dtype": draw.choice(["bf16", "fp8", "fp32"]), "out_dtype": draw.choice(["", "bf16", "fp8", "fp32"])}
    queries, heads = side(), draw.choice([1, 2, 4])
    return draw.choice(
        (
            lambda: Gemm(side(), side(), side(), accumulate=draw.random() < 0.3, **types),
            lambda: Ffn(side(), side(), side(), side(), gated=draw.random() < 0.5, **types),
            lambda: Attention(
                queries, queries + side(99), side(200), causal=heads > 1, heads=4, kv_heads=heads, **types
            ),
            lambda: GroupedGemm((side(), side(), side()), side(), side(), **types),
            lambda: Conv2d(side(8), side(99), side(99), side(30) + 3, side(30) + 3, 3, draw.choice([1, 2]), **types),
        )
    )()


@pytest.mark.parametrize("seed", range(60))
def test_between_what_values_prove_and_every_schedule(seed: int) -> None:
    draw = random.Random(seed)
    workload = random_workload(draw)
    size = 12 + int(2 ** (22 * draw.random()))
    plain = bound_workload(workload, cache=f"{size}B")
    wide = bound_workload(workload, cache=f"{size}B", accumulators="fp32")
    assert wide.lower.bytes >= plain.lower.bytes
    assert wide.lower.elements == plain.lower.elements
    assert wide.upper is None or wide.upper.bytes >= wide.lower.bytes
    assert plain.upper is None or plain.upper.bytes >= plain.lower.bytes
    if wide.separate is not None:
        assert wide.separate.bytes >= wide.lower.bytes
    more = bound_workload(workload, cache=f"{size + 1 + size // 9}B", accumulators="fp32")
    assert more.lower.bytes <= wide.lower.bytes


def test_the_headline_figures() -> None:
    gemm = bound_workload(Gemm(8192, 8192, 8192), cache="40MiB", accumulators="fp32")
    assert isinstance(gemm.lower.proof, WeightedBound)
    assert gemm.lower.bytes == 606934090
    ffn = bound_workload(Ffn(8192, 4096, 11008), cache="6MiB", accumulators="fp32")
    assert ffn.lower.bytes == pytest.approx(2098879576, rel=2e-4)  # as good as the prices found
    attention = bound_workload(Attention(32768, 32768, 128), cache="228KiB", accumulators="fp32")
    assert attention.lower.bytes == 1793840128


def test_large_products_tend_to_the_root_of_the_widths() -> None:
    """2 V w sqrt(p / S) for values of w bytes and accumulators of p."""
    side, size = 2**20, 2**26
    memory = FastMemory(size, Widths(1, 4, 4, 1))
    family, workload = family_of(Gemm(2, 2, 2)), Gemm(side, side, side, "fp8", "fp8")
    result = family.lower_bound(workload, size, memory=memory)
    assert result.bytes == pytest.approx(2 * side**3 * (4 / size) ** 0.5, rel=0.01)


def test_too_little_room_for_an_accumulator() -> None:
    gemm = Gemm(4, 4, 4)
    assert bound_workload(gemm, cache="7B").capacity.elements == 3
    with pytest.raises(InfeasibleError, match="at least 8 bytes"):
        bound_workload(gemm, cache="7B", accumulators="fp32")
    assert bound_workload(gemm, cache="8B", accumulators="fp32").upper is not None


def test_sizes_in_values_and_unknown_widths_are_refused() -> None:
    with pytest.raises(InputError, match="expected bytes"):
        bound_workload(Gemm(4, 4, 4), cache="80el", accumulators="fp32")
    with pytest.raises(UnknownNameError, match="did you mean fp32"):
        bound_workload(Gemm(4, 4, 4), cache="80B", accumulators="fp16")
    with pytest.raises(InputError, match="accumulators"):
        bound(Gemm(4, 4, 4), cache="80B", accumulators="fp32", buffers="pooled", sms=2)


@pytest.mark.parametrize(
    ("sides", "widths", "spare"),
    [((2, 2, 1, 2), BF16, 0), ((1, 2, 2, 2), BF16, 2), ((2, 2, 1, 2), FP8, 1), ((2, 1, 1, 3), Widths(1, 2, 2, 1), 1)],
)
def test_parts_that_hand_values_over_move_what_they_move_alone_less_these(
    sides: tuple[int, int, int, int], widths: Widths, spare: int
) -> None:
    m, k, f, l = sides
    capacity = 2 * widths.read + max(widths.hidden, widths.partial) + spare
    inside = Widths(widths.read, widths.hidden, widths.hidden, widths.read)
    alone = product_game(m, f, k, inside).least(capacity), product_game(m, l, f, widths).least(capacity)
    together = chain_game(m, k, f, l, widths).least(capacity)
    assert together is not None and None not in alone
    assert sum(least or 0 for least in alone) - 2 * widths.read * m * f <= together
    parts = (
        WorkloadPart("first", (), m * k + k * f, alone=product_uses(m, f, k), handed=m * f),
        WorkloadPart("second", (), f * l + m * l, alone=product_uses(m, l, f), handed=m * f, written=m * l),
    )
    names = {1: "fp8", 2: "bf16"}
    ffn = Ffn(m, k, f, l, False, names[widths.read], names[widths.written])
    told = Accounting(ffn, parts=parts, computed_once=True)
    proved = in_bytes(told, bound_of(told, 3), FastMemory(capacity, widths))
    assert proved.bytes <= together


def test_layers_prove_in_bytes_what_their_parts_prove_alone_less_what_is_handed_over() -> None:
    layer = read_workload("llama-2-7b:layer", {"tokens": 512})
    plain, wide = (bound_workload(layer, cache="1MiB", accumulators=x).lower for x in ("off", "fp32"))
    assert wide.elements == plain.elements and wide.bytes > 1.2 * plain.bytes
    assert isinstance(wide.proof, WeightedBound)
    assert isinstance(layer, TransformerLayer)
    for part, kernel in zip(wide.proof.kernels, layer.kernels, strict=True):
        assert (
            part.times * (part.bytes + part.handed)
            == bound_workload(kernel, cache="1MiB", accumulators="fp32").lower.bytes
        )
    assert bound_workload(layer, cache="1MiB", accumulators="fp32", recompute=True).lower.bytes < plain.bytes
