"""Kernels that exist: what fits on an SM, and what breaks which limit."""

from dataclasses import replace

import pytest

from pebble.models.kernel_fit import MAX_STAGES, KernelNeeds, fits, most_stages
from pebble.models.machine import Machine, load_machine, machine_names
from pebble.models.quantity import Quantity

LIMITS = ["registers_per_thread", "threads_per_warp", "threads_per_block", "threads_per_sm", "blocks_per_sm"]


def gemm(bm: int, bn: int, stages: int = 1, bk: int = 64) -> KernelNeeds:
    return KernelNeeds(bm * bn, 0, bk * (bm + bn), stages, 2)


def broken(sku: str, needs: KernelNeeds, blocks: int = 1) -> list[str]:
    return [over.limit for over in fits(load_machine(sku), needs, blocks).over]


@pytest.mark.parametrize("sku", machine_names())
def test_every_machine_says_its_limits(sku: str) -> None:
    machine = load_machine(sku)
    assert all(machine.limit(name) for name in LIMITS)
    assert machine.limit("threads_per_sm") % machine.limit("threads_per_warp") == 0
    assert fits(machine, gemm(64, 64)).fits


def test_tiles_in_daily_use_fit_and_larger_ones_do_not() -> None:
    for tile in ((128, 128), (128, 256), (256, 128), (256, 192), (256, 208)):
        assert broken("h100-sxm5-80gb", gemm(*tile)) == [], tile
    assert broken("h100-sxm5-80gb", gemm(256, 256)) == ["registers_per_sm"]
    assert broken("h100-sxm5-80gb", gemm(512, 512)) == ["registers_per_sm", "registers_per_thread"]
    # 512 registers a thread and 512 KiB of them on a compute unit of an MI300X
    assert broken("mi300x", gemm(256, 256)) == []
    # B200 keeps accumulators in 256 KiB of tensor memory
    assert broken("b200-sxm", gemm(256, 256)) == []
    assert broken("b200-sxm", gemm(256, 264)) == ["tensor_memory_per_sm"]


def test_the_fewest_threads_that_can_have_the_accumulators() -> None:
    h100 = load_machine("h100-sxm5-80gb")
    results = [fits(h100, gemm(128, n)) for n in (16, 128, 256)]
    assert [(fit.threads, fit.registers_per_thread) for fit in results] == [(32, 96), (128, 160), (256, 160)]
    assert fits(h100, gemm(128, 256)).register_bytes == 256 * 160 * 4


def test_shared_memory_of_a_block_and_of_an_sm() -> None:
    # stages of 32 KiB: 163 KiB for a block of an A100, 164 KiB for all of an SM, 1 KiB of which is reserved for each
    a100 = load_machine("a100-sxm4-40gb")
    assert most_stages(a100, gemm(128, 128)) == 5
    assert most_stages(a100, gemm(128, 128), 2) == 2
    assert broken("a100-sxm4-40gb", gemm(128, 128, 5)) == []
    assert broken("a100-sxm4-40gb", gemm(128, 128, 6)) == ["shared_per_block", "shared_per_sm"]
    assert broken("a100-sxm4-40gb", gemm(128, 128, 3), 2) == ["shared_per_sm"]
    assert fits(a100, gemm(128, 128, 2), 2).shared_bytes == 2 * (64 * 1024 + 1024)
    assert most_stages(a100, gemm(16, 16, bk=16)) == MAX_STAGES
    assert most_stages(a100, gemm(4096, 4096)) == 1  # though not even one fits


def test_blocks_and_threads_of_an_sm() -> None:
    assert broken("a40", gemm(16, 16, bk=16), 16) == []
    assert broken("a40", gemm(16, 16, bk=16), 17) == ["blocks_per_sm"]
    assert broken("l40s", gemm(16, 16, bk=16), 24) == []
    assert "threads_per_sm" in broken("a40", gemm(128, 128, bk=1), 13)


def test_limits_that_a_file_leaves_out_are_not_checked() -> None:
    def size(value: int) -> Quantity:
        return Quantity(value, "KiB")

    stores = ("l2", 1024), ("l1_shared_per_sm", 64), ("registers_per_sm", 256)
    own = Machine("own", "own", quantities=(("sms", Quantity(4, "SM")), *((f"stores.{k}", size(v)) for k, v in stores)))
    assert most_stages(own, gemm(128, 128)) == 2
    assert fits(own, gemm(16, 16, bk=16), 40).fits
    assert [over.limit for over in fits(own, gemm(256, 256)).over] == ["registers_per_sm"]
    less = replace(own, quantities=(*own.quantities, ("limits.blocks_per_sm", Quantity(8, "block"))))
    assert [over.limit for over in fits(less, gemm(16, 16, bk=16), 40).over] == ["blocks_per_sm"]
