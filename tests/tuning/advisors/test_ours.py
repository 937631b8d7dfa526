"""What any advisor answers fits its chip, and ours is never slower by the model than the others."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
from pebble.errors import InputError, UnknownNameError
from pebble.families import kernel_family
from pebble.models.kernel_fit import fits
from pebble.schedules.execution import WAVES
from pebble.simulation import KernelConfig
from pebble.timing.sustained import sustained_rates
from pebble.timing.waves import modelled_time
from pebble.tuning.advisors import ADVISORS, Advice, best_timed, parse_advisor
from pebble.workloads.workload import Workload

GPUS = ("h100-sxm5-80gb", "a100-sxm4-40gb", "l40s", "h20", "a40")
SIDES = st.integers(1, 40).map(lambda blocks: 37 * blocks)  # ragged


def all_fit(found: list[Advice], gpu: str) -> None:
    machine = pebble.gpu(gpu)
    assert found
    for each in found:
        fit = fits(machine, each.needs, each.blocks_per_sm)
        assert fit.fits, (each, fit.over)
        assert each.needs.shared_bytes <= (machine.shared_bytes_per_block or 0)
        assert 1 <= each.sms <= machine.sms and each.stages == each.needs.stages >= 1


@given(SIDES, SIDES, SIDES, st.sampled_from(GPUS))
@settings(max_examples=15, deadline=None)
def test_ours_fits_and_is_never_slower_than_the_rules(m: int, n: int, k: int, gpu: str) -> None:
    gemm, machine = pebble.Gemm(m, n, k), pebble.gpu(gpu)
    rules = []
    for name, advisor in ADVISORS.items():
        try:
            rules += advisor.advise(gemm, machine, machine.sms)[:1] if name != "ours" else []
        except InputError:
            continue
    ranked = best_timed(gemm, machine, machine.sms, tuple(rules))
    all_fit([timed.advice for timed in ranked], gpu)
    seconds = [timed.time.seconds for timed in ranked]
    assert seconds == sorted(seconds)
    family = kernel_family(gemm)
    for rule in rules:
        config = KernelConfig(
            family.cut_tile(rule.tile, gemm), rule.sms, rule.blocks_per_sm, machine.l2_bytes,
            machine.default_model.policy, WAVES, rule.stages,
        )  # fmt: skip
        program = family.program(gemm, rule.schedule, config)
        assert seconds[0] <= modelled_time(program, config, sustained_rates(machine, "bf16")).seconds


@given(st.integers(1, 9000), st.integers(1, 30000), st.integers(1, 20000), st.sampled_from(["fp8", "bf16"]))
@settings(max_examples=20, deadline=None)
def test_what_the_rules_choose_fits(m: int, n: int, k: int, dtype: str) -> None:
    for gpu in ("h100-sxm5-80gb", "h100-pcie-80gb", "h20", "h200-sxm-141gb"):
        machine = pebble.gpu(gpu)
        all_fit(ADVISORS["deepgemm"].advise(pebble.Gemm(m, n, k, dtype=dtype), machine, machine.sms), gpu)
        eight = pebble.Gemm(m, n, k, dtype="fp8")
        all_fit(ADVISORS["deepgemm-2025-05"].advise(eight, machine, machine.sms), gpu)


@pytest.mark.parametrize(
    "workload",
    [
        pebble.Ffn(512, 256, 704, gated=True),
        pebble.Attention(512, 512, 64, heads=8, kv_heads=2, causal=True),
        pebble.Attention(1, 2048, 128, heads=8),
        pebble.GroupedGemm((100, 300, 1), 512, 256),
        pebble.Gemm(1, 1, 1),
        pebble.Gemm(200, 333, 100, dtype="fp8"),
    ],
)
def test_every_family(workload: Workload) -> None:
    all_fit(ADVISORS["ours"].advise(workload, pebble.gpu("h100-sxm5-80gb"), 132), "h100-sxm5-80gb")


def test_tiles_that_fill_their_waves_and_every_chip_that_has_the_numbers() -> None:
    for gpu in ("rtx4090", "b200-sxm", "mi300x", "h200-sxm-141gb"):
        machine = pebble.gpu(gpu)
        all_fit(ADVISORS["ours"].advise(pebble.Gemm(1024, 64 * machine.sms, 64), machine, machine.sms), gpu)


def test_half_the_sms_are_slower() -> None:
    gemm = pebble.Gemm(2048, 2048, 2048)
    machine = pebble.gpu("h100-sxm5-80gb")
    whole, half = (best_timed(gemm, machine, sms, ())[0].time.seconds for sms in (132, 66))
    assert whole < half


def test_names() -> None:
    assert parse_advisor(" DeepGEMM ").name == "deepgemm"
    with pytest.raises(UnknownNameError, match="ours"):
        parse_advisor("our")


def test_one_stage_where_no_two_fit() -> None:
    """72 KiB of latent rows stay and 72 KiB come: two stages break the 163 KiB of a block, one does not."""
    latent = pebble.workload("latent-attention", queries=1, keys=2048, heads=128, latent=512, rope=64)
    found = pebble.advise(latent, gpu="a100")
    assert found.kernel.stages == 1 and found.kernel.fit is not None and found.kernel.fit.fits
    assert {row["stages"] for row in pebble.tile(latent, gpu="a100").rows()} == {1}
    assert pebble.advise(latent, gpu="h100").kernel.stages == 2


def test_no_clock_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor how busy the machine is: an hour passes with each look at the time."""
    gemm, machine = pebble.Gemm(777, 1024, 640), pebble.gpu("a40")
    plain = best_timed(gemm, machine, machine.sms, ())
    hours = count(0.0, 3600.0)
    monkeypatch.setattr("time.monotonic", lambda: next(hours))
    assert best_timed(gemm, machine, machine.sms, ()) == plain
