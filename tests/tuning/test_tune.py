"""What a search finds: never worse than what has a name, never below the bound, and it moves what is said."""

from __future__ import annotations

import json
import random
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble.cli import main
from pebble.errors import InputError, UnknownNameError
from pebble.families import kernel_family
from pebble.reports.kernel_time import Timing
from pebble.reports.simulated_kernel import read_kernel
from pebble.reports.tune import Tuning, tune
from pebble.reports.tune_target import read_conditions
from pebble.reports.tuned import Beyond
from pebble.schedules.tables import TileTable
from pebble.schedules.tables.own import FixedTable
from pebble.schedules.tables.registry import check_table
from pebble.simulation import KernelConfig
from pebble.simulation.table import simulate_table
from pebble.system.clock import Clock
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
    result = tune(pebble.Ffn(8192, 4096, 11008), gpu="h100-sxm5-80gb", time_limit=600)
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


DECODE = ["attention", "--queries", "1", "--keys", "4096", "--head-dim", "128", "--heads", "8", "--kv-heads", "8"]


def test_a_schedule_that_takes_less_time_is_named_though_it_moves_no_less(capsys: pytest.CaptureFixture[str]) -> None:
    by_bytes = ["tune", *DECODE, "--gpu", "h100-sxm5-80gb", "--objective", "bytes"]
    assert main([*by_bytes, "--json"]) == 0
    times = json.loads(capsys.readouterr().out)["modelled_time"]
    fastest, best = times["fastest"], times["best"]
    assert fastest["modelled_ms"] < 0.7 * best["modelled_ms"] and fastest["dram_bytes"] >= best["dram_bytes"]
    for item in (fastest, best):  # the command that times schedules says the same
        timed = pebble.time(
            pebble.Attention(1, 4096, 128, heads=8), item["name"], gpu="h100-sxm5-80gb", tile=item["tile"]
        )
        assert isinstance(timed, Timing)
        assert timed.orders[0].time.seconds * 1e3 == pytest.approx(item["modelled_ms"])
    assert main(by_bytes) == 0
    text = " ".join(capsys.readouterr().out.split())
    told = f"the fastest that was simulated takes {fastest['sustained_ms'] * 1e3:.3g} us sustained"
    assert told in text
    assert main([*by_bytes[:-2], "--json"]) == 0  # ranked by time, that one is the best
    document = json.loads(capsys.readouterr().out)
    assert document["objective"] == "time" and document["best"]["name"].startswith("split-kv")
    assert document["modelled_time"]["best"]["sustained_ms"] <= fastest["sustained_ms"] * 1.001


def test_of_those_that_move_the_same_the_fastest_is_the_best() -> None:
    tiles = "128x128x32,128x64x32,64x64x32"
    result = tune(pebble.Gemm(256, 1152, 640), objective="bytes", robust="waves", gpu="a40", tile=tiles)
    ties = [s for s in result.schedules if s.worst.dram_bytes == result.best.worst.dram_bytes]
    seconds = {}
    for tie in {s.kernel.tile: s for s in reversed(ties)}.values():
        timed = pebble.time(result.workload, tie.name, gpu="a40", tile=tie.kernel.tile)
        assert isinstance(timed, Timing)
        seconds[tie.kernel.tile] = timed.orders[0].time.seconds
    assert len(seconds) > 1 and min(seconds, key=lambda tile: seconds[tile]) == result.best.kernel.tile
    assert result.times is not None and result.times.fastest.seconds == result.times.best.seconds


def test_no_time_is_told_without_rates_or_for_an_execution_that_has_none() -> None:
    assert tune(SMALL, robust="waves", **CHIP).times is None
    small = pebble.Gemm(512, 512, 256)
    assert tune(small, robust="persistent", gpu="h100-sxm5-80gb").times is None
    result = tune(small, robust="free", gpu="h100-sxm5-80gb")
    assert result.times is not None and result.times.execution == "free"
    assert result.times.fastest.seconds <= result.times.best.seconds


@pytest.mark.parametrize(("there", "claims"), [(100, True), (90, True), (116, False)])
def test_a_gain_is_told_with_the_execution_that_takes_it_back(
    there: int, claims: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = tune(SMALL, robust="waves", **CHIP)
    assert result.baseline is not None
    without = Beyond("without a barrier (free)", there, 100)
    monkeypatch.setattr("pebble.cli.tune.tune", lambda *_, **__: replace(result, beyond=(without,)))
    assert main(["tune", "gemm", "-m", "64", "-n", "64", "-k", "64", "--cache", "1MiB"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert ("but 16% more without a barrier (free)" in text) != claims
    assert "tiles tried: 128x128x64; another may move less" in text


def test_a_note_says_that_exponentials_are_not_overlapped(capsys: pytest.CaptureFixture[str]) -> None:
    attention = ["attention", "--queries", "512", "--keys", "512", "--head-dim", "128", "--heads", "4"]
    for words in (["--schedules", "fa2,fa3"], ["--sweep", "keys=256,512"], ["--beside", "gemm -m 64 -n 64 -k 64"]):
        assert main(["time", *attention, "--gpu", "h20", *words]) == 0
        assert "the overlap of the two in FlashAttention-3 is not in the model" in " ".join(
            capsys.readouterr().out.split()
        )
    assert main(["time", "gemm", "-m", "64", "-n", "64", "-k", "64", "--gpu", "h20"]) == 0
    assert "FlashAttention-3" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("objective", "sku"), [("time", "h200-sxm-141gb"), ("energy", "h200-sxm-141gb"), ("time", "a40")]
)
def test_ranked_by_time_or_energy_the_best_is_no_worse_than_a_named_schedule(objective: str, sku: str) -> None:
    workload = pebble.Gemm(3072, 2560, 1024)
    result = tune(workload, objective=objective, robust="waves", gpu=sku)
    family, config = kernel_family(workload), result.best.kernel.config
    least = result.objective
    assert least.name == objective and result.to_dict()["objective"] == objective
    for order in family.all_schedules(workload, config.tile):
        candidate = Candidate(order, config)
        value = least.value(candidate, Condition(), measure(family, workload, candidate))
        assert result.best.worst_value <= value * least.tie
    values = [s.worst_value for s in result.schedules]
    assert values[0] <= least.tie * min(values)
    assert result.times is not None
    again = result.times.best
    seconds = (
        again.ranked_seconds
        if objective == "time"
        else None
        if again.sustained is None
        else again.sustained.total_joules
    )
    assert seconds == pytest.approx(result.best.worst_value, rel=0.02)  # wave by wave, and by its bytes


def test_what_is_not_modelled_is_refused_as_an_objective() -> None:
    for options in ({"gpu": "a40"}, {"gpu": "h200", "sms": 12}):
        with pytest.raises(InputError, match="joules are modelled"):
            tune(SMALL, objective="energy", **options)
    with pytest.raises(InputError, match="got time with cache"):
        tune(SMALL, objective="time", **CHIP)
    with pytest.raises(InputError, match="only these have a time"):
        tune(SMALL, objective="time", robust="persistent", gpu="h100")
    with pytest.raises(UnknownNameError, match="objective"):
        tune(SMALL, objective="speed", gpu="h100")
    assert tune(pebble.Gemm(512, 512, 256), robust="persistent", gpu="h100").objective.name == "bytes"


def test_what_is_searched_does_not_depend_on_how_busy_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tune(SMALL, gpu="h100", sms=12, time_limit=600)
    slowly = measure

    def slow(*given: Any, **named: Any) -> Any:
        time.sleep(0.01)
        return slowly(*given, **named)

    monkeypatch.setattr("pebble.tuning.search.measure", slow)
    again = tune(SMALL, gpu="h100", sms=12, time_limit=600)
    assert plain.counts == again.counts and not plain.ended and not again.ended
    assert [s.name for s in plain.schedules] == [s.name for s in again.schedules]


def test_where_effort_is_short_many_are_simulated_in_one_way_and_the_best_in_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plainly: Any = measure
    under: list[str] = []

    def noted(family: Any, workload: Any, candidate: Candidate, condition: Condition, *more: Any) -> Any:
        under.append(condition.name)
        return plainly(family, workload, candidate, condition, *more)

    monkeypatch.setattr("pebble.tuning.search.measure", noted)
    monkeypatch.setattr("pebble.tuning.search.EFFORT_LINES", 3_000)
    result = tune(SMALL, gpu="h100", sms=12, time_limit=600)
    assert len(result.executions) == 3 and not result.ended and result.baseline
    counts = [under.count(name) for name in result.executions]
    assert counts[0] > max(counts[1:]) and min(counts) >= 1
    first = [i for i, name in enumerate(under) if name != under[0]]
    assert first[0] >= 4, "the early ones are simulated in one way before everything is looked at"


def test_where_time_is_short_fewer_executions_are_ranked_by_and_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    plainly, over, answered = measure, threading.Event(), threading.Event()

    class Stopped(Clock):
        """Three seconds are over as soon as an execution other than the first is begun."""

        passed = property(lambda self: 3.0 * over.is_set())  # type: ignore[assignment]

    def slow(family: Any, workload: Any, candidate: Candidate, condition: Condition, *more: Any) -> Any:
        if condition.name != "waves":
            over.set()
            answered.wait(600)
        return plainly(family, workload, candidate, condition, *more)

    monkeypatch.setattr("pebble.tuning.search.measure", slow)
    monkeypatch.setattr("pebble.reports.tune.Clock", Stopped)
    result = tune(SMALL, gpu="h100", sms=12, time_limit=3)
    assert not answered.is_set()
    answered.set()  # nobody waited for what is under way
    assert result.executions == ("waves",) and result.ended
    assert any("no time was left to rank by waves@90, free" in note for note in result.notes)
