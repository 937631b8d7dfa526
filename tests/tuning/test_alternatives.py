"""What stands beside the best: it moves what `pebble simulate` says, and never replaces the best."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble import models
from pebble.cli import main
from pebble.models.machine import Machine, load_machine
from pebble.models.quantity import Quantity
from pebble.reports.simulated_kernel import read_kernel
from pebble.reports.tune import Tuning, tune
from pebble.reports.tuned import has_set_aside
from pebble.schedules.tables.registry import kernel_of
from pebble.tuning import space_of
from pebble.tuning.alternatives import SHARES, WORTH
from pebble.workloads.workload import Workload

KIB = 1024
SMS = 12
MACHINE = Path(models.__file__).parent / "machines" / "l40s.toml"
TALL = pebble.Gemm(1024, 3072, 512)


def small_chip(sku: str, l2_kib: int) -> Machine:
    """A GPU with a small L2."""
    machine = load_machine(sku)
    l2 = Quantity(l2_kib, "KiB", "test", "guess")
    return replace(machine, quantities=tuple((key, l2 if key == "stores.l2" else q) for key, q in machine.quantities))


def tuned(workload: Workload, sku: str, l2_kib: int, **options: Any) -> tuple[Tuning, dict[str, Any]]:
    where = {"gpu": small_chip(sku, l2_kib), "sms": SMS}
    return tune(workload, **where, **{"tile": "all", **options}), where


@pytest.mark.parametrize(
    ("sku", "workload", "l2_kib"),
    [
        ("h100-sxm5-80gb", TALL, 1024),
        ("l40s", TALL, 1024),
        ("l40s", pebble.Ffn(1024, 512, 768, gated=True), 512),
        ("h100-sxm5-80gb", pebble.Attention(1024, 1024, 64, heads=4), 512),
    ],
    ids=["two-partitions", "gemm", "ffn", "attention"],
)
def test_a_set_aside_moves_what_simulate_says(sku: str, workload: Workload, l2_kib: int, tmp_path: Path) -> None:
    tile = "128x128" if isinstance(workload, pebble.Attention) else "all"
    result, where = tuned(workload, sku, l2_kib, tile=tile)
    assert result.set_asides
    assert result.set_aside is not None
    least = min(kept.traffic.dram_bytes for kept in result.set_asides)
    assert result.set_aside.traffic.dram_bytes == least < (1 - WORTH) * result.best.traffic[0].dram_bytes
    assert "persist" not in result.best.kernel.config.policy
    for kept in result.set_asides:
        where["tile"], schedule = kept.schedule.kernel.tile, kept.schedule.schedule.name
        if not schedule.startswith("interleaved"):  # which has no table
            schedule = str(tmp_path / "pinned.json")
            result.save(schedule, kept.schedule)
        with_it = pebble.simulate(workload, schedule, policy=f"hardware+persist-{kept.operand}-{kept.share:g}", **where)
        without = pebble.simulate(workload, schedule, **where)
        assert with_it.traffic.dram_read_bytes == kept.traffic.dram_read_bytes
        assert with_it.traffic.dram_write_bytes == kept.traffic.dram_write_bytes
        assert with_it.kernel.config.policy == kept.policy(result.best.kernel.config.policy)
        assert kept.traffic.saved_bytes == without.traffic.dram_bytes - with_it.traffic.dram_bytes
        assert kept.traffic.saved_bytes > WORTH * without.traffic.dram_bytes
        assert kept.share in SHARES
        assert kept.operand in space_of(workload).operands(workload)


def test_what_is_pinned_is_what_an_exported_file_can_keep() -> None:
    for workload in (
        TALL,
        pebble.Ffn(512, 256, 512),
        pebble.Ffn(512, 256, 512, gated=True),
        pebble.Attention(512, 512, 64, heads=2),
    ):
        kernel = read_kernel(workload, cache="1MiB", sms=4)
        *_, result = names = kernel_of(workload, kernel.config.tile).layout.names
        assert sorted(space_of(workload).operands(workload)) == sorted(set(names) - {result})


def test_only_chips_that_have_a_set_aside_are_offered_one() -> None:
    assert has_set_aside(load_machine("l40s"))
    assert has_set_aside(load_machine("a100-sxm4-40gb"))
    assert not has_set_aside(None)
    assert not has_set_aside(load_machine("mi300x"))
    older = replace(small_chip("l40s", 1024), compute_capability="7.5")
    assert not has_set_aside(older)
    assert not has_set_aside(replace(older, compute_capability=""))
    result = tune(TALL, robust="waves", gpu=older, sms=SMS)
    assert result.set_asides == ()
    assert result.to_dict()["set_aside"] is None
    assert tune(TALL, robust="waves", cache="1MiB", sms=SMS).set_asides == ()


def test_nothing_is_pinned_where_it_saves_nothing() -> None:
    result, _ = tuned(pebble.Gemm(512, 512, 512), "l40s", 64 * KIB)
    assert result.best.ratio < 1 + WORTH
    assert result.set_asides == ()
    with_one, _ = tuned(TALL, "l40s", 1024, policy="hardware+persist-A-0.5")
    assert with_one.set_asides == ()


def test_a_staggered_launch_moves_what_simulate_says(tmp_path: Path) -> None:
    result, where = tuned(TALL, "l40s", 1024)
    assert {launch.execution for launch in result.launches} == {"staggered"}
    for launch in result.launches:
        where["tile"], path = launch.schedule.kernel.tile, tmp_path / "table.json"
        result.save(path, launch.schedule)
        again = pebble.simulate(TALL, str(path), execution="staggered", **where)
        assert again.traffic.counts == launch.traffic.counts
    assert result.launches[0].traffic.dram_bytes == min(each.traffic.dram_bytes for each in result.launches)
    assert tuned(TALL, "h100-sxm5-80gb", 1024)[0].launches == ()


def test_fewer_tiles_than_blocks_at_once_are_offered_slices_of_k() -> None:
    deep = pebble.Gemm(256, 256, 2048)
    result, where = tuned(deep, "h100-sxm5-80gb", 1024, tile="128x128")
    assert [launch.execution for launch in result.launches] == ["split-k-2", "split-k-4"]
    for launch in result.launches:
        again = pebble.simulate(deep, launch.schedule.name, execution=launch.execution, tile="128x128", **where)
        assert again.traffic.counts == launch.traffic.counts
    assert any("slices" in note for note in result.notes)


def test_ctrl_c_while_pinning_keeps_the_search_and_what_was_pinned() -> None:
    def interrupt(what: str, done: int, total: int) -> None:
        if what == "keeping an operand" and done == 2:
            raise KeyboardInterrupt

    whole, where = tuned(TALL, "l40s", 1024)
    result = tune(TALL, progress=interrupt, tile="all", **where)
    assert result.ended == "interrupted"
    assert [s.name for s in result.schedules] == [s.name for s in whole.schedules]
    assert len(result.set_asides) <= len(whole.set_asides)
    assert result.launches == ()


def test_the_command_line_says_what_to_pin_and_saves_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chip = tmp_path / "small.toml"
    chip.write_text(MACHINE.read_text().replace("[stores.l2]\nvalue = 96", "[stores.l2]\nvalue = 1"))
    words = ["gemm", "-m", "1024", "-n", "3072", "-k", "512", "--machine", str(chip), "--sms", str(SMS)]
    words += ["--robust", "waves", "--tile", "all"]
    path, best = tmp_path / "pinned.json", tmp_path / "best.json"
    saving = ["--save", str(best), "--save-pinned", str(path)]
    assert main(["tune", *words, *saving, "--json"]) == 0
    said = capsys.readouterr()
    document = json.loads(said.out)
    kept = document["set_aside"]
    assert kept["run_with"] in said.err
    assert kept["dram_bytes"] < document["best"]["worst_dram_bytes"]
    where = {"machine": str(chip), "sms": SMS, "tile": kept["tile"], "policy": kept["policy"]}
    again = pebble.simulate(TALL, str(path), **where)
    assert again.traffic.dram_bytes == kept["dram_bytes"]
    assert main(["tune", *words, "--explain"]) == 0
    assert f"python pinned.py {kept['run_with']}" in capsys.readouterr().out.replace("\n  ", " ")
    nothing = ["gemm", "-m", "512", "-n", "512", "-k", "512", "--gpu", "l40s", "--save-pinned"]
    assert main(["tune", *nothing, str(tmp_path / "none.json")]) == 0
    assert "writes nothing" in capsys.readouterr().err
    assert not (tmp_path / "none.json").exists()
