"""What a search finds: never worse than what has a name, never below the bound, and it moves what is said."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble.cli import main
from pebble.errors import InputError, UnknownNameError
from pebble.families import kernel_family
from pebble.reports.simulated_kernel import read_kernel
from pebble.reports.tune import Tuning, tune
from pebble.reports.tune_target import read_conditions
from pebble.schedules.tables import TileTable
from pebble.schedules.tables.own import FixedTable
from pebble.schedules.tables.registry import check_table
from pebble.simulation import KernelConfig
from pebble.simulation.table import simulate_table
from pebble.tuning import Candidate, Condition, measure, runnable, space_of
from pebble.workloads.workload import Workload

SMALL = pebble.Gemm(1024, 1536, 512)
CHIP = {"cache": "512KiB", "sms": 12}


def random_case(seed: int) -> tuple[Workload, dict[str, Any]]:
    """A small workload of one of the families, and a small chip."""
    draw = random.Random(seed)
    kind = ("gemm", "ffn", "attention")[seed % 3]
    sides = [128 * draw.randint(1, 9) for _ in range(3)]
    workload: Workload
    if kind == "gemm":
        workload = pebble.Gemm(*sides, accumulate=draw.random() < 0.3)
    elif kind == "ffn":
        workload = pebble.Ffn(*sides, gated=draw.random() < 0.5)
    else:
        heads = draw.choice([2, 4, 6])
        workload = pebble.Attention(sides[0], sides[0], 64, heads=heads, kv_heads=2, causal=draw.random() < 0.5)
    policy = draw.choice(["lru", "partitions-2:oldest-of-8"])
    return workload, {"cache": f"{draw.choice([192, 384, 768])}KiB", "sms": draw.randint(3, 20), "policy": policy}


def named(workload: Workload, config: KernelConfig) -> list[Any]:
    """Every named schedule, with every number that the search sweeps."""
    family = kernel_family(workload)
    return [*family.all_schedules(workload, config.tile), *space_of(workload).swept(workload, config)]


@pytest.mark.parametrize("seed", range(9))
def test_never_worse_than_a_named_schedule_and_never_below_the_bound(seed: int) -> None:
    workload, chip = random_case(seed)
    result = tune(workload, robust="waves", time_limit=600, **chip)
    family, config = kernel_family(workload), result.best.kernel.config
    traffic = []
    for schedule in named(workload, config):
        try:
            traffic.append(family.simulate(workload, schedule, config).dram_bytes)
        except InputError:  # a schedule that so few blocks cannot run
            continue
    assert traffic
    assert result.best.worst.dram_bytes <= min(traffic)
    assert result.counts[2] == result.counts[3] or len(traffic) < result.counts[3]
    for each in result.schedules:
        assert each.bound.bound.bytes <= min(t.dram_bytes for t in each.traffic)


@pytest.mark.parametrize("seed", range(6))
def test_the_tables_compute_the_workload_and_move_what_is_said(seed: int) -> None:
    workload, chip = random_case(seed)
    result = tune(workload, **chip)
    tables = [s for s in result.schedules if isinstance(s.schedule, TileTable)]
    assert tables or not result.best.kernel.config.cache_bytes
    for each in tables[:3]:
        check_table(each.schedule)
        replayed = kernel_family(workload).simulate(workload, FixedTable(each.schedule), each.kernel.config)
        assert replayed.counts.read_misses == each.traffic[0].counts.read_misses
        assert replayed.counts.write_backs == each.traffic[0].counts.write_backs


@pytest.mark.parametrize("seed", range(6))
def test_every_recipe_and_what_lies_beside_it_visits_every_tile_once(seed: int) -> None:
    workload, chip = random_case(seed)
    config = pebble.simulate(workload, named_first(workload), **chip).kernel.config
    space, draw = space_of(workload), random.Random(seed)
    recipes = list(space.made(workload, config))
    for recipe in draw.sample(recipes, min(6, len(recipes))):
        beside = list(space.near(workload, recipe, config))
        for each in [recipe, *draw.sample(beside, min(6, len(beside)))]:
            table = runnable(workload, Candidate(each, config))
            check_table(table)
            assert each.words
            assert table.name == each.name


def named_first(workload: Workload) -> str:
    """Some schedule of the family."""
    family = kernel_family(workload)
    name: str = family.all_schedules(workload, family.default_tile(workload))[0].name
    return name


def test_a_named_schedule_and_its_recipe_move_the_same() -> None:
    for workload in (SMALL, pebble.Ffn(1024, 512, 768), pebble.Attention(1024, 1024, 64, heads=4)):
        config = pebble.simulate(workload, named_first(workload), **CHIP).kernel.config
        space, compared = space_of(workload), 0
        for schedule in named(workload, config):
            recipe = space.recipe(workload, schedule, config)
            if recipe is not None:
                by_name, by_recipe = (
                    measure(kernel_family(workload), workload, Candidate(plan, config)) for plan in (schedule, recipe)
                )
                assert by_name.counts == by_recipe.counts, schedule.name
                compared += 1
        assert compared > 3


@pytest.mark.parametrize(
    "workload",
    [SMALL, pebble.Ffn(1024, 512, 768, gated=True), pebble.Attention(1024, 1024, 64, heads=4, causal=True)],
    ids=["gemm", "ffn", "attention"],
)
def test_so_they_do_where_blocks_run_free(workload: Workload) -> None:
    config = replace(read_kernel(workload, gpu="h100-sxm5-80gb", sms=12).config, cache_bytes=1 << 19)
    space, (free,) = space_of(workload), read_conditions("free")
    compared = 0
    for schedule in named(workload, config):
        recipe = space.recipe(workload, schedule, config)
        if recipe is not None:
            by_name, by_recipe = (
                measure(kernel_family(workload), workload, Candidate(plan, config), free) for plan in (schedule, recipe)
            )
            assert by_name.counts == by_recipe.counts, schedule.name
            compared += 1
    assert compared > 3


@pytest.mark.parametrize("workload", [SMALL, pebble.Ffn(512, 256, 512)], ids=["gemm", "ffn"])
def test_free_running_schedules_are_searched_for(workload: Workload) -> None:
    result = tune(workload, robust="free", gpu="h100-sxm5-80gb", sms=12)
    assert result.executions == ("free",)
    assert result.best.kernel.config.execution.is_asynchronous
    assert result.baseline is not None
    assert result.best.bound.bound.bytes <= result.best.worst.dram_bytes <= result.baseline.worst.dram_bytes
    assert [b.what for b in result.beyond] == ["with 10 % less cache", "with a barrier before each wave (waves)"]


def test_under_a_causal_mask_blocks_run_free() -> None:
    causal = pebble.Attention(1024, 1024, 64, heads=4, causal=True)
    result = tune(causal, gpu="h100-sxm5-80gb", sms=12)
    assert result.executions == ("free", "free@90")
    assert any("waves wait for the longest" in note for note in result.notes)
    best = result.best
    where = {"gpu": "h100-sxm5-80gb", "sms": 12, "tile": best.kernel.tile}
    again = pebble.simulate(causal, best.name if best.named else best.schedule, execution="free", **where)
    assert again.traffic.dram_bytes == result.best.traffic[0].dram_bytes
    assert result.export("csv").table.launch.execution == "free"
    for others in ({"cache": "512KiB", "sms": 12}, {"gpu": "h100-sxm5-80gb", "sms": 12, "robust": "waves,waves@90"}):
        assert tune(causal, **others).executions == ("waves", "waves@90")
    square = pebble.Attention(512, 512, 64, heads=4)
    assert tune(square, gpu="h100-sxm5-80gb", sms=12).executions == ("waves", "waves@90", "free")
    assert tune(square, gpu="h100-sxm5-80gb", sms=12, objective="bytes").executions == ("waves", "waves@90")


def test_the_closed_form_of_a_table_is_its_simulation() -> None:
    config = pebble.simulate(SMALL, "row", **CHIP).kernel.config
    seen = set()
    for recipe in list(space_of(SMALL).made(SMALL, config))[::3]:
        table = runnable(SMALL, Candidate(recipe, config))
        fast = simulate_table(table, config).counts
        assert fast == kernel_family(SMALL).simulate(SMALL, FixedTable(table), config).counts, recipe.name
        seen.add((recipe.sawtooth, recipe.shift))
    assert len(seen) > 2


def test_more_conditions_rank_by_the_worst() -> None:
    result = tune(SMALL, robust="waves,dynamic-5,waves@80", **CHIP)
    config = result.best.kernel.config
    assert result.executions == ("waves", "dynamic-5", "waves@80")
    assert result.best.worst.dram_bytes == max(t.dram_bytes for t in result.best.traffic)
    family = kernel_family(SMALL)
    conditions = read_conditions("waves,dynamic-5,waves@80")
    for order in family.all_schedules(SMALL, config.tile):
        worst = max(measure(family, SMALL, Candidate(order, config), c).dram_bytes for c in conditions)
        assert result.best.worst.dram_bytes <= worst
    least = [s.traffic[i].dram_bytes for i, s in enumerate(result.least_by_execution)]
    assert all(low <= t.dram_bytes for low, t in zip(least, result.best.traffic, strict=True))


def test_ctrl_c_keeps_the_best_so_far() -> None:
    steps = []

    def interrupt(what: str, done: int, total: int) -> None:
        steps.append(what)
        if what.startswith("simulating"):
            raise KeyboardInterrupt

    result = tune(SMALL, progress=interrupt, **CHIP)
    assert result.ended == "interrupted"
    assert result.baseline is not None
    assert result.best.worst.dram_bytes <= result.baseline.worst.dram_bytes
    assert "interrupted" in " ".join(result.notes)
    assert not result.to_dict()["complete"]

    def at_once(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(SMALL, progress=at_once, **CHIP)


def test_report_is_a_table_a_document_and_a_figure() -> None:
    pytest.importorskip("pandas")
    result = pebble.tune(SMALL, **CHIP)
    assert isinstance(result, Tuning)
    document = result.to_dict()
    assert result.baseline is not None
    assert document["best"]["worst_dram_bytes"] == result.best.worst.dram_bytes
    assert (
        document["best_daily"]["worst_dram_bytes"] == result.baseline.worst.dram_bytes >= result.best.worst.dram_bytes
    )
    assert document["lower_bound"]["bytes"] <= result.best.worst.dram_bytes
    frame = result.to_frame()
    assert frame["worst_dram_bytes"].is_monotonic_increasing
    assert frame["name"][0] == result.best.name
    assert len(result.plot().patches) >= 2 * len(result.distinct[:3])
    json.dumps(document)


def test_the_best_can_be_saved_simulated_and_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "best.json"
    words = ["gemm", "-m", "1024", "-n", "1536", "-k", "512", "--cache", "512KiB", "--sms", "12"]
    assert main(["tune", *words, "--save", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    again = pebble.simulate(SMALL, str(path), **CHIP)
    assert again.traffic.dram_read_bytes == document["best"]["executions"]["waves"]["dram_read_bytes"]
    assert main(["export", str(path), "--format", "csv"]) == 0
    assert "wave,slot,row,col,k_start,k_direction" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("workload", "tile"),
    [(SMALL, "64x128x64"), (pebble.Ffn(512, 256, 512), "128x64x64"), (pebble.Attention(1024, 1024, 64), "64x128")],
)
def test_a_saved_table_brings_its_tile(workload: Workload, tile: str, tmp_path: Path) -> None:
    path = tmp_path / "best.json"
    result = tune(workload, tile=tile, robust="waves", **CHIP)
    result.save(path)
    again = pebble.simulate(workload, str(path), **CHIP)
    assert again.kernel.tile == result.best.kernel.tile == tile
    assert again.traffic.dram_bytes == result.best.worst.dram_bytes
    with pytest.raises(InputError, match="expected"):
        pebble.simulate(workload, str(path), tile="32x32x64" if tile.count("x") == 2 else "32x64", **CHIP)


@pytest.mark.parametrize("columns", [60, 120])
def test_text_fits_the_terminal(columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    words = ["gemm", "-m", "1024", "-n", "1536", "-k", "512", "--cache", "512KiB", "--sms", "12", "--top", "3"]
    assert main(["tune", *words, "--robust", "waves,dynamic-5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    assert any(line.startswith("best found") for line in lines)
    assert any(line.startswith("proved bound") for line in lines)


def test_conditions_are_read() -> None:
    assert [c.name for c in read_conditions("waves, lockstep,waves@90,dynamic-5")] == ["waves", "waves@90", "dynamic-5"]
    assert read_conditions(["waves"]) == (Condition(),)
    for wrong in ("", ",", "waves@", "waves@0", "waves@101", "waves@x"):
        with pytest.raises(InputError):
            read_conditions(wrong)
    with pytest.raises(UnknownNameError):
        read_conditions("waives")


def test_what_cannot_be_tuned_is_refused() -> None:
    with pytest.raises(InputError, match="robust instead"):
        tune(SMALL, execution="waves", **CHIP)
    with pytest.raises(InputError, match="others are for gemm"):
        tune(pebble.Ffn(512, 256, 256), robust="waves,dynamic-5", **CHIP)
    with pytest.raises(InputError, match="time_limit"):
        tune(SMALL, time_limit=0, **CHIP)
    with pytest.raises(InputError):
        tune(SMALL, tile="512x512", gpu="l40s")


@pytest.mark.parametrize("where", [CHIP, {"gpu": "h200-sxm-141gb"}], ids=["cache", "gpu"])
def test_groups_of_products_are_tuned(where: dict[str, Any]) -> None:
    grouped = pebble.GroupedGemm((640, 256, 1024), n=1536, k=512)
    result = tune(grouped, robust="waves", time_limit=600, **where)
    family, config = kernel_family(grouped), result.best.kernel.config
    least = result.objective
    for order in named(grouped, config):
        candidate = Candidate(order, config)
        value = least.value(candidate, Condition(), measure(family, grouped, candidate))
        assert result.best.worst_value <= value * least.tie, order.name
    again = pebble.simulate(grouped, result.best.name, tile=result.best.kernel.tile, **where)
    assert again.traffic.dram_bytes == result.best.traffic[0].dram_bytes
    assert result.best.bound.bound.bytes <= result.best.worst.dram_bytes


def test_only_tiles_that_fit_and_cost_no_time_are_tried() -> None:
    result = tune(pebble.Gemm(2048, 2048, 512), gpu="a40", robust="waves")
    assert "128x128x64" in result.tiles
    assert not any(tile.startswith(("64x64", "64x128", "256x256")) for tile in result.tiles)
    assert tune(pebble.Gemm(2048, 2048, 512), gpu="a40", tile="64x64,128x64").tiles == ("64x64x64", "128x64x64")


@pytest.mark.slow
def test_a_large_gemm_on_one_partition() -> None:
    result = tune(pebble.Gemm(8192, 8192, 8192), gpu="l40s")
    assert result.best.traffic[0].dram_bytes <= 540_000_000
    assert result.best.bound.bound.bytes <= result.best.worst.dram_bytes


@pytest.mark.slow
def test_a_large_ffn_on_two_partitions() -> None:
    result = tune(pebble.Ffn(8192, 4096, 11008), gpu="h100-sxm5-80gb", objective="bytes", time_limit=600)
    assert result.best.traffic[0].dram_read_bytes <= 1_320_000_000
    assert result.baseline is not None
    assert result.best.worst.dram_bytes <= result.baseline.worst.dram_bytes


def test_the_best_that_has_a_table_is_saved_where_the_best_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ffn = ["ffn", "--tokens", "1018", "--d-model", "385", "--hidden", "76", "--out-dtype", "fp32"]
    saved = tmp_path / "best.json"
    assert main(["tune", *ffn, "--cache", "72MiB", "--sms", "128", "--save", str(saved)]) == 0  # a tie, by name
    spec = capsys.readouterr()
    assert "best found" in spec.out and "interleaved-1" in spec.out.partition("best common")[0]
    assert "the best of those that have one" in spec.err
    assert pebble.export(saved).table.name != "interleaved-1"


def test_what_was_found_is_printed_before_a_file_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise InputError("it cannot be written.")

    monkeypatch.setattr(Tuning, "save", fails)
    shape = ["gemm", "-m", "512", "-n", "512", "-k", "64"]
    assert main(["tune", *shape, "--cache", "512KiB", "--sms", "4", "--save", str(tmp_path / "b.json")]) == 2
    spec = capsys.readouterr()
    assert "best found" in spec.out and "cannot be written" in spec.err


def test_orders_that_need_waves_are_not_ranked_where_blocks_run_free() -> None:
    product = pebble.Gemm(4096, 4096, 4096)
    by_waves = tune(product, gpu="h100", tile="128x256x64", objective="bytes", robust="waves", time_limit=600)
    free = tune(product, gpu="h100", tile="128x256x64", objective="bytes", robust="waves,free", time_limit=600)
    needs = [any(word in found.name for word in ("+shift", "+whole", "+wave-")) for found in by_waves.schedules]
    assert any(needs)
    assert not any(word in found.name for found in free.schedules for word in ("+shift", "+whole", "+wave-"))
