"""Kernels of every family on every machine: what fits never holds more than the chip."""

import pytest

from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.models.kernel_fit import fits
from pebble.models.machine import Machine, load_machine, machine_names
from pebble.models.quantity import Quantity
from pebble.reports.capacity import chip_capacity
from pebble.reports.kernel_notes import kernel_notes
from pebble.reports.simulated_kernel import read_kernel, trace_bound
from pebble.workloads import Attention, Ffn, Gemm
from pebble.workloads.workload import Workload

WORKLOADS = [
    *(Gemm(4096, 4096, 4096, dtype) for dtype in ("bf16", "fp8", "fp32")),
    Gemm(4096, 4096, 4096, "fp8", "fp32"),
    *(Ffn(4096, 4096, 11008, gated=gated, dtype=dtype) for gated in (False, True) for dtype in ("bf16", "fp32")),
    *(Attention(4096, 4096, dim, dtype=dtype) for dim in (64, 128, 256, 512) for dtype in ("bf16", "fp32")),
]
SIDES = (16, 64, 128, 192, 256, 512)


@pytest.mark.parametrize("sku", machine_names())
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: f"{w.label} {w.dtype}")
def test_the_default_kernel_fits_and_no_more_stages_would(workload: Workload, sku: str) -> None:
    kernel = read_kernel(workload, gpu=sku)
    family, machine = kernel_family(workload), load_machine(sku)
    assert kernel.fit is not None
    assert kernel.fit.fits
    more = family.kernel_needs(workload, kernel.config.tile, kernel.stages + 1)
    assert kernel.stages == 64 or not fits(machine, more).fits
    family.check(workload, kernel.config)


@pytest.mark.parametrize("sku", machine_names())
def test_what_a_kernel_that_fits_can_hold_is_on_the_chip(sku: str) -> None:
    machine = load_machine(sku)
    admitted = refused = 0
    for workload in (Gemm(4096, 4096, 4096), Gemm(4096, 4096, 4096, "fp8"), Attention(4096, 4096, 128)):
        for bm in SIDES:
            for bn in SIDES:
                for blocks in (1, 2, 4):
                    try:
                        kernel = read_kernel(workload, gpu=sku, tile=f"{bm}x{bn}", blocks_per_sm=blocks)
                    except InputError:
                        refused += 1
                        continue
                    admitted += 1
                    held = trace_bound(workload, kernel).capacity
                    assert held.bytes <= chip_capacity(machine, workload).bytes
    assert admitted > 20
    assert refused > 20


def test_needs_are_what_a_block_holds() -> None:
    single = kernel_family(gemm := Gemm(4096, 4096, 4096))
    assert single.kernel_needs(gemm, single.default_tile(gemm), 3).values == 128 * 128 + 3 * 64 * 256
    ffn = Ffn(4096, 4096, 11008, gated=True)
    two = kernel_family(ffn).kernel_needs(ffn, kernel_family(ffn).default_tile(ffn), 2)
    assert (two.accumulator_bytes, two.shared_bytes) == (2 * 64 * 1024, 2 * 3 * 16 * 1024)
    attention = Attention(4096, 4096, 128)
    tile = kernel_family(attention).default_tile(attention)
    flash = kernel_family(attention).kernel_needs(attention, tile, 2)
    assert flash.accumulator_bytes == 4 * 128 * (128 + 64 + 2)
    assert flash.shared_bytes == 2 * (128 * 128 + 2 * 64 * 256)


def test_a_tile_that_does_not_fit_a_small_chip_is_halved() -> None:
    wide = Attention(4096, 4096, 256)
    assert read_kernel(wide, gpu="h100-sxm5-80gb").tile == "128x64"
    kernel = read_kernel(wide, gpu="gb10")
    assert kernel.tile == "64x64"
    assert any("the tile 128x64 would need" in note for note in kernel_notes(wide, kernel))
    with pytest.raises(InputError, match="shared memory"):
        read_kernel(wide, gpu="gb10", tile="128x64")


def test_more_blocks_than_an_sm_takes_get_a_smaller_default_tile_or_a_reason() -> None:
    gemm = Gemm(4096, 4096, 4096)
    assert read_kernel(gemm, gpu="h100-sxm5-80gb", blocks_per_sm=4).tile == "128x64x64"
    with pytest.raises(InputError, match=r"blocks_per_sm: got 64 .* of which there are 32"):
        read_kernel(gemm, gpu="h100-sxm5-80gb", blocks_per_sm=64)
    assert read_kernel(gemm, gpu="h100-sxm5-80gb", blocks_per_sm=64, allow_infeasible=True).tile == "128x128x64"


def test_a_machine_of_ones_own_needs_no_limits() -> None:
    stores = {"l2": 4096, "l1_shared_per_sm": 128, "registers_per_sm": 256}
    sizes = ((f"stores.{name}", Quantity(value, "KiB")) for name, value in stores.items())
    own = Machine("own", "own", quantities=(("sms", Quantity(8, "SM")), *sizes))
    assert read_kernel(Gemm(512, 512, 512), gpu=own).stages == 4
    with pytest.raises(InputError, match="256 KiB of fp32 accumulators"):
        read_kernel(Gemm(512, 512, 512), gpu=own, tile="256x256")
