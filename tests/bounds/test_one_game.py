"""One game: values are bytes where every width is 1, and widths that are all larger by a factor are other units."""

from __future__ import annotations

import json
import random

import pytest

from pebble.bounds import Accounting, Goal, LowerBound, Piece, WeightedBound
from pebble.bounds.lagrangian import lagrangian_chains
from pebble.bounds.lagrangian_choice import multipliers_at
from pebble.bounds.uses import GroupProof, weighted
from pebble.certificate import RefusedError, check
from pebble.errors import InfeasibleError
from pebble.families import accounting, family_of
from pebble.proof.certificate import FORMAT, VERSION, bound_certificate, workload_statement
from pebble.reports.capacity import Known, best_schedule
from pebble.workloads import Attention, Conv2d, Ffn, Gemm, GroupedGemm
from pebble.workloads.widths import ALIKE, FastMemory, Widths
from pebble.workloads.workload import Workload

SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 130))]
# between a partial sum and what it ends as lies a whole charge that is tried too
SOME = [ALIKE, Widths(1, 4, 4, 2), Widths(1, 2, 3, 1), Widths(2, 5, 5, 3)]


def some_workload(rnd: random.Random, dtype: str = "fp8", out_dtype: str = "fp8") -> Workload:
    """Of any family with theorems in bytes, small or of some hundreds; prices are for larger ones."""
    most, types = rnd.choice([6, 30, 200]), {"dtype": dtype, "out_dtype": out_dtype}
    m, n, k, l = (rnd.randint(1, most) for _ in range(4))
    match rnd.choice(["gemm", "grouped", "ffn", "attention", "conv2d"]):
        case "gemm":
            return Gemm(m, n, k, accumulate=rnd.random() < 0.3, **types)
        case "grouped":
            return GroupedGemm((m, n, m), k, l, **types)
        case "ffn":
            return Ffn(m, n, k, l, gated=rnd.random() < 0.5, **types)
        case "attention":
            return Attention(m, m + n, k, l, heads=2, kv_heads=rnd.choice([1, 2]), causal=rnd.random() < 0.4, **types)
    return Conv2d(1, rnd.randint(1, 9), rnd.randint(1, 9), 7, 6, rnd.randint(1, 3), rnd.randint(1, 2), **types)


def some_capacity(rnd: random.Random, workload: Workload) -> int:
    return int(3 * (sum(operand.elements for operand in workload.operands) + 3) ** rnd.uniform(0, 1.05))


def proofs(told: Accounting, widths: Widths, capacity: int) -> list[GroupProof]:
    """What each theorem says of a group by itself, in units of the widths; segments have tests of their own."""
    uses = (use for use in weighted(told.uses, widths) if not use.slow and not use.counts_touched)
    return [proof for use in uses for proof in use.proofs(Goal(capacity))]


@pytest.mark.parametrize("seed", SEEDS)
def test_widths_that_grow_alike_change_the_unit_alone(seed: int) -> None:
    """Bound and claim: of values at widths of 1, and of any widths."""
    rnd = random.Random(seed)
    for _ in range(4):
        workload, widths, factor = some_workload(rnd), rnd.choice(SOME), rnd.randint(2, 5)
        spec, capacity = accounting(workload), some_capacity(rnd, workload)
        wider = Widths(*(factor * width for width in (widths.read, widths.hidden, widths.partial, widths.written)))
        ones, others = proofs(spec, widths, capacity), proofs(spec, wider, factor * capacity + rnd.randrange(factor))
        assert len(ones) == len(others)
        for item, other in zip(ones, others, strict=True):
            assert item.elements == other.elements, (workload, widths, capacity, factor)
            assert item.claim() == other.claim()
        uses = zip(pieces(spec, widths), pieces(spec, wider), strict=True) if widths != ALIKE else ()
        for piece, same in uses:
            low, high = piece.bound(capacity).bytes, same.bound(factor * capacity).bytes
            assert factor * (low - 1) < high <= factor * low, (workload, widths, capacity, factor)


def pieces(told: Accounting, widths: Widths) -> tuple[Piece, ...]:
    """The uses of the segment theorems in bytes."""
    if told.chain is not None:
        return told.chain.pieces_at(widths)
    return tuple(use for piece in told.of(Piece) for use in piece.at(widths))


def test_prices_grow_with_the_widths() -> None:
    chain = accounting(Ffn(400, 60, 400, 60)).chain
    assert chain is not None
    single, other = (
        multipliers_at(*lagrangian_chains(chain, spec), 2000, (90,)) for spec in (ALIKE, Widths(3, 3, 3, 3))
    )
    assert single is not None and other is not None
    assert (single.elements, single.bytes) == (other.elements, other.bytes // 3)
    assert single.claim() == other.claim()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_claim_in_values_is_one_in_bytes_of_widths_one(seed: int) -> None:
    """What the checker accepts of values of one byte it accepts of bytes, with the same number, and not one more."""
    rnd, met = random.Random(seed), 0
    while met < 4:
        workload = some_workload(rnd)
        spec, capacity = accounting(workload), some_capacity(rnd, workload)
        if spec.parts or spec.spilled(capacity):
            continue
        for proof in proofs(spec, ALIKE, capacity):
            count = spec.groups * proof.elements
            claim = {
                "claim": "lower bound in bytes",
                "game": {"recompute": "forbidden", "kernels": "fused"},
                "widths_bytes": {"partial_hidden": 1, "partial_output": 1},
                "capacity_bytes": capacity,
                "bytes": count,
                "proof": {"theorem": "segments in bytes", "kernels": [proof.claim()]},
            }
            document = {"format": FORMAT, "version": VERSION, "claims": [claim]}
            document["statement"] = {"workload": workload_statement(workload)}
            assert f"moves at least {count:,} bytes" in check(json.loads(json.dumps(document)))[0]
            claim["bytes"] = count + 1
            with pytest.raises(RefusedError):
                check(json.loads(json.dumps(document)))
            met += 1


def asked(workload: Workload, room: FastMemory) -> LowerBound | None:
    narrow = min(room.widths.read, room.widths.written)
    try:
        return family_of(workload).lower_bound(workload, room.bytes // narrow, False, room)
    except InfeasibleError:
        return None


@pytest.mark.parametrize("seed", SEEDS)
def test_twice_the_widths_and_the_memory_are_twice_the_bound(seed: int) -> None:
    """The whole bound; segments are rounded up to bytes, of which a unit has two."""
    rnd, met = random.Random(seed), 0
    while met < 3:
        state = rnd.getstate()
        workload = some_workload(rnd, "fp8", "bf16")
        rnd.setstate(state)
        wider = some_workload(rnd, "bf16", "fp32")
        size = some_capacity(rnd, workload) + 8
        single = asked(workload, FastMemory(size, Widths.of(workload, 4)))
        two = asked(wider, FastMemory(2 * size, Widths.of(wider, 8)))
        assert (single is None) == (two is None)
        if single is None or two is None:
            continue
        met += 1
        slack = sum(kernel.times for kernel in single.proof.kernels) if isinstance(single.proof, WeightedBound) else 0
        assert 2 * single.bytes - slack <= two.bytes <= 2 * single.bytes, (workload, size)
        assert single.method == two.method
        schedule = best_schedule(wider, FastMemory(2 * size, Widths.of(wider, 8)))
        assert schedule is None or two.bytes <= schedule.bytes
        check(json.loads(json.dumps(bound_certificate(wider, Known(two, None, None, ())))))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_memory_of_bytes_whose_values_are_alike_is_one_of_values(seed: int) -> None:
    rnd, met = random.Random(seed), 0
    while met < 4:
        dtype = rnd.choice(["fp8", "bf16", "fp32"])
        workload = some_workload(rnd, dtype, dtype)
        capacity, width = some_capacity(rnd, workload), workload.in_bytes
        memory = FastMemory(width * capacity + rnd.randrange(width), Widths.of(workload))
        result = asked(workload, memory)
        if result is None:
            continue
        met += 1
        values = family_of(workload).lower_bound(workload, capacity)
        assert (result.bytes, result.elements, result.method) == (values.bytes, values.elements, values.method)
        assert bound_certificate(workload, Known(result, None, None, ())) == bound_certificate(
            workload, Known(values, None, None, ())
        )
