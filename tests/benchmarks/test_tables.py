"""What the scripts beside the library of measurements say of it."""

from __future__ import annotations

import csv
import importlib
import statistics
import sys
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest

import pebble
from pebble.models import launches
from pebble.timing.power import STATIC_WATTS

HARDWARE = Path(__file__).resolve().parents[2] / "benchmarks" / "hardware"


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(HARDWARE))
    for name in ("library", "predict"):  # of this folder, whatever another test imported by these names
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(request.param)


@pytest.mark.parametrize("script", ["beside"], indirect=True)
def test_gains_are_those_of_the_rows(script: ModuleType) -> None:
    rows = list(csv.DictReader((HARDWARE / "side_by_side/measured.csv").open(newline="")))
    result = script.cases()
    assert sum(len(case.gains) for case in result) == len(rows)
    row = rows[0]
    alone = float(row["gemm_alone_ms"]) + float(row["read_alone_ms"])
    assert result[0].gains[int(row["read_sms"])] == pytest.approx(alone / float(row["together_ms"]))
    for case in result:
        assert case.best[1] == max(case.gains.values()) <= case.at_most


@pytest.mark.parametrize("script", ["policies"], indirect=True)
def test_policies_are_set_beside_held_out_launches(script: ModuleType) -> None:
    rows = script.chosen_rows()
    assert {row["chip"] for row in rows} == {"h100-sxm5-80gb", "h200-sxm-141gb"} and len(rows) >= 50
    small = min(rows, key=lambda row: int(row["m"]) * int(row["n"]) * int(row["k"]))
    read = {policy: script.predicted((small, policy)) for policy in ("opt", "lru")}
    assert 0 < read["opt"] <= read["lru"]
    spec = script.summary([0.5, 1.0, 2.0])
    assert (spec["geometric_mean"], spec["least"], spec["most"]) == (pytest.approx(1), 0.5, 2.0)
    assert spec["within_5_percent"] == spec["within_10_percent"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("script", ["exports"], indirect=True)
def test_the_page_has_the_lines_of_exported_files(script: ModuleType) -> None:
    rows = script.measured(script.MEASURED, "free")
    assert all(float(row["error"]) < 0.01 for row in rows)
    printed = f"{script.table(rows)}\n\n{script.summary(rows)}"
    assert "\n".join(line.rstrip() for line in printed.splitlines()) in (HARDWARE / "README.md").read_text()


@pytest.mark.parametrize("script", ["exports"], indirect=True)
def test_ratios_are_this_files_over_the_librarys(script: ModuleType) -> None:
    row = {"milliseconds": "3", "library_milliseconds": "2", "sustained_milliseconds": "1"}
    row |= {"library_sustained_milliseconds": "4", "joules": "", "library_joules": "2", "result_bytes": "10"}
    row |= {"dram_read_bytes": "20", "dram_write_bytes": "4", "library_read_bytes": "30", "library_write_bytes": "20"}
    row |= {"bound_bytes": "25", "predicted_read_bytes": "22"}
    found = script.ratios(row)
    assert found == {"single": 1.5, "sustained": 0.25, "bytes": 0.6, "bound": 0.5, "predicted": 1.1}


def test_the_page_has_what_longer_rounds_say() -> None:
    """Ratios to the library, of files that leave the last round as it falls and of files that deal tiles evenly."""
    with (HARDWARE / "exports/h200_rounds.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    ratios: dict[str, list[float]] = {"free": [], "even": []}
    for row in rows:
        ratios[row["how"]].append(
            float(row["sustained_milliseconds"]) / float(row["library_sustained_milliseconds"])
        )  # fmt: skip
    page = " ".join((HARDWARE / "README.md").read_text().split())
    (free, worst), (even, slowest) = ((statistics.median(each), max(each)) for each in ratios.values())
    assert f"a median of {free:.3f} of the library's sustained time, {worst:.3f} at worst" in page
    assert f"`even` {even:.3f}, {slowest:.3f}" in page


@pytest.mark.parametrize("script", ["clocks"], indirect=True)
def test_the_program_ships_what_the_rows_say(script: ModuleType) -> None:
    """Counted here once more, row by row."""
    rows = script.recorded(script.RECORDED)
    assert Path(launches.__file__).with_name("launches.toml").read_text() == script.shares(rows)
    kept = [
        row
        for row in rows
        if (row.row["family"], row.row["chip"], row.row["execution"]) == ("gemm", "h200-sxm-141gb", "waves")
        and row.queued and not row.fitted and row.row["launch"] != "library"
    ]  # fmt: skip
    near = [sum(abs(float(row.row["modelled_ms"]) / row.measured - 1) <= part for row in kept) for part in (0.05, 0.1)]
    spans = [extreme(row.measured for row in kept) for extreme in (min, max)]
    assert launches.launches_like("gemm", "h200-sxm-141gb", "waves", 1.0) == (*spans, len(kept), *near)
    assert launches.launches_like("gemm", "h200-sxm-141gb", "waves", spans[1] * 1.01) is None
    assert {row.row["dtype"] for row in kept} == {launches.MEASURED_DTYPE}


@pytest.mark.parametrize("script", ["exports"], indirect=True)
def test_the_program_ships_what_files_took(script: ModuleType) -> None:
    """And two of the modelled times are those that the program says today."""
    assert Path(launches.__file__).with_name("exported.toml").read_text() == script.shares()
    with script.MODELLED.open(newline="") as file:
        rows = {(row["chip"], row["case"]): row for row in csv.DictReader(file)}
    known = script.layers()
    for key in [("h100-sxm5-80gb", "att-8k-causal"), ("h200-sxm-141gb", "gemm-8192x8192x8192")]:
        row = rows[key]
        found = pebble.time(
            known[key[1]][2], row["schedule"], gpu=key[0], tile=row["tile"], stages=int(row["stages"]),
            execution=row["execution"],
        ).orders[0]  # fmt: skip
        assert found.sustained is not None
        assert 1e3 * found.sustained.seconds == pytest.approx(float(row["sustained_ms"]), rel=1e-4)


@pytest.mark.parametrize("script", ["advised"], indirect=True)
def test_the_page_has_what_blind_advice_was_worth(script: ModuleType) -> None:
    took = {(row["chip"], row["case"]): row for row in script.read("measured.csv")}
    page = (HARDWARE / "README.md").read_text()
    said = script.read("predicted.csv")
    assert sorted(took) == sorted((row["chip"], row["case"]) for row in said)
    for number in sorted({row["round"] for row in said}):
        times, moved, library = list[float](), list[float](), dict[str, list[float]]()
        for row in said:
            if row["round"] == number:
                ran = took[row["chip"], row["case"]]
                assert float(ran["error"]) < 3e-3
                seconds = float(ran["sustained_milliseconds"])
                times.append(seconds / float(row["sustained_ms"]))
                library.setdefault(row["chip"], []).append(seconds / float(ran["library_sustained_milliseconds"]))
                counted = int(ran["dram_read_bytes"]) + int(ran["dram_write_bytes"])
                moved.append(counted / int(row["dram_bytes"]))
        (line,) = (line for line in page.splitlines() if line.startswith(f"| {number} |"))
        near = [sum(abs(ratio - 1) <= 0.05 for ratio in ratios) for ratios in (times, moved)]
        off = f"{max(abs(ratio - 1) for ratio in moved):.0%}".replace("%", " %")
        chips = [chip for chip in ("h200-sxm-141gb", "h100-sxm5-80gb") if chip in library]
        medians = [f"{statistics.median(library[chip]):.3f}" for chip in chips]
        assert line.split(" | ")[2:] == [
            f"{min(times):.3f} to {max(times):.3f}",
            f"{near[0]} of {len(times)}",
            f"{near[1]} of {len(moved)}, {off} off at most",
            f"{', '.join(medians)} |",
        ]


@pytest.mark.parametrize("script", ["exports"], indirect=True)
def test_files_run_the_faster_way(script: ModuleType) -> None:
    """Of groups and FFNs, measured both ways: the page's medians, and which is the default."""
    ratios = {
        how: {
            (row["chip"], row["family"], row["case"]): script.ratios(row)["sustained"]
            for row in script.measured(script.MEASURED, how)
            if row["family"] in ("grouped", "ffn")
        }
        for how in ("free", "even")
    }
    page = (HARDWARE / "README.md").read_text()
    assert len(ratios["free"]) == 18 and all(ratios["free"][case] < even for case, even in ratios["even"].items())
    for (chip, family), *cases in (
        (key, *(even for case, even in ratios["even"].items() if case[:2] == key))
        for key in dict.fromkeys(case[:2] for case in ratios["even"])
    ):
        assert f"{statistics.median(cases):.3f}" in page, (chip, family)
    launch = files("pebble.schedules.export").joinpath("templates", "launch.py").read_text(encoding="utf-8")
    assert '\nFASTEST = "free"' in launch


@pytest.mark.parametrize("script", ["cliffs"], indirect=True)
def test_the_page_says_how_often_a_range_held(script: ModuleType) -> None:
    with script.RECORDED.open(newline="") as file:
        rows = [line.split() for line in script.summary(list(csv.DictReader(file))).splitlines()[1:]]
    cliffs, inside, others, near = (
        {kind: sum(int(row[at]) for row in rows if row[0] == kind) for kind in ("of", "exported")}
        for at in (-4, -3, -2, -1)
    )
    page = " ".join((HARDWARE / "README.md").read_text().split())
    assert f"{inside['of']} of {cliffs['of']} launches at a cliff on which the rule was chosen" in page
    assert f"{inside['exported']} of {cliffs['exported']} exported files that were kept out" in page
    assert f"{near['of']} of {others['of']} and {near['exported']} of {others['exported']} are within 10 %" in page
    lines = script.far_summary(script.long_products()).splitlines()[1:]
    (many, held), (files_, in_it), (blind, right) = (line.split()[-2:] for line in lines)
    assert f"{held} of {many} launches on which it was chosen fell into it, {in_it} of {files_} exported files" in page
    assert f"and {right} of {blind} launches that were named when it stood" in page
    assert f"{script.FEWER} to {script.MORE} of what is modelled" in page
    with (script.HERE / "blind/long_products.csv").open(newline="") as file:
        launches = list(csv.DictReader(file))
    of_modelled = [int(row["dram_read_bytes"]) / int(row["predicted_read_bytes"]) for row in launches]
    assert f"which read {min(of_modelled):.2f} to {max(of_modelled):.2f} of what is modelled" in page
    for workload in {row["workload"] for row in launches}:
        times = [float(row["sustained_milliseconds"]) for row in launches if row["workload"] == workload]
        assert len(times) == 3 and max(times) < 1.015 * min(times)


@pytest.mark.parametrize("script", ["fit_attention"], indirect=True)
def test_constants_of_exported_attention_are_the_best_on_what_they_were_fitted_to(script: ModuleType) -> None:
    every = list(script.layers())
    fitted_on = [layer for layer in every if (layer.table, layer.chip) == ("exports", script.FITTED_ON)]
    assert len(fitted_on) == 8
    steps, softmax = script.MASKED_STEPS, script.SOFTMAX_OPERATIONS
    used = script.error(fitted_on, steps, softmax)
    for near in ((steps - 1, softmax), (steps + 1, softmax), (steps, softmax - 0.2), (steps, softmax + 0.2)):
        assert used < script.error(fitted_on, *near)
    today = [layer.over_measured(steps, softmax)[1] for layer in every if layer.table.startswith(script.TODAY)]
    others = [layer for layer in every if layer not in fitted_on and not layer.table.startswith(script.TODAY)]
    checks = [layer.over_measured(steps, softmax)[1] for layer in others]
    assert len(checks) >= 40 and all(abs(ratio - 1) < 0.07 for ratio in checks)
    page = " ".join((HARDWARE.parents[1] / "docs/time-model.rst").read_text().split())
    assert f"takes {softmax:g} times the energy" in page
    exported = [layer.over_measured(steps, softmax)[1] for layer in every if layer.table == "exports"]
    near = sum(abs(ratio - 1) <= 0.05 for ratio in exported)
    assert (
        f"Of the {len(exported)} layers in ``exports/`` on both chips the modelled sustained time of {near} was" in page
    )
    near = sum(abs(ratio - 1) <= 0.05 for ratio in today)
    assert f"of {len(today)} layers it is within 5 % for {near}, {min(today):.2f} to {max(today):.2f} of it" in page


def test_decode_steps_stand_beside_flash_decoding() -> None:
    with (HARDWARE / "exports/flash_decoding.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    page = " ".join((HARDWARE / "README.md").read_text().split())
    spans = {}
    for chip in ("h200-sxm-141gb", "h100-sxm5-80gb"):
        here = [row for row in rows if row["chip"] == chip]
        assert len(here) == 3 and all("flash_attention" in row["library"] for row in here)
        ratios = [float(row["sustained_milliseconds"]) / float(row["library_sustained_milliseconds"]) for row in here]
        spans[chip] = f"{min(ratios):.2f} to {max(ratios):.2f}"
    assert f"takes {spans['h200-sxm-141gb']} on the H200 and {spans['h100-sxm5-80gb']} on the H100" in page


@pytest.mark.parametrize("script", ["exports"], indirect=True)
def test_the_page_has_the_lines_of_tuned_orders(script: ModuleType) -> None:
    printed = script.by_orders(list(csv.DictReader(script.TUNED_ORDERS.open(newline=""))))
    page = [line.strip() for line in (HARDWARE / "README.md").read_text().splitlines()]
    assert all(line.strip() in page for line in printed.splitlines())


def test_the_page_says_what_small_products_lose() -> None:
    page = " ".join((HARDWARE / "README.md").read_text().split())
    spans: dict[bool, list[float]] = {False: [], True: []}
    said = []
    rows = list(csv.DictReader((HARDWARE / "exports" / "small_products.csv").open(newline="")))
    best: dict[tuple[int, ...], str] = {}
    for row in sorted(rows, key=lambda row: float(row["microseconds"])):
        best.setdefault(tuple(int(row[side]) for side in "mnk"), row["tile"])
    assert len(best) == 7 and {*best.values()} == {"128x256x64"} and "were slower on seven of seven" in page
    for row in (row for row in rows if row["tile"] == "128x256x64"):
        m, n, k = (int(row[side]) for side in "mnk")
        waves = -(-m // 128) * -(-n // 256) / 132
        assert waves <= 1.6 or 2 < waves < 2.5
        took = float(row["microseconds"])
        spans[waves > 2].append(took / float(row["library_microseconds"]))
        timed = pebble.time(pebble.Gemm(m, n, k), gpu="h200", schedules=row["schedule"], tile=row["tile"])
        said.append(1e3 * timed.to_dict()["schedules"][0]["modelled_ms"] / took)
    few, two = (f"{min(each):.2f} to {max(each):.2f}" for each in spans.values())
    assert f"a file takes {two} times cuBLAS's single launch, with one or one and a half {few}" in page
    assert f"`time` says {min(said):.2f} to {max(said):.2f} of what such a file takes once" in page


@pytest.mark.slow
@pytest.mark.parametrize("script", ["fit_static"], indirect=True)
def test_an_h100_draws_besides_what_brings_its_layers_nearest(script: ModuleType) -> None:
    found = list(script.layers())
    off = {watts: script.miss([layer.share(watts) for layer in found]) for watts in script.TRIED}
    assert min(off, key=lambda watts: off[watts]) == STATIC_WATTS["hbm3"]


@pytest.mark.parametrize("script", ["blind_orders"], indirect=True)
def test_blind_orders_say_what_is_written_down(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables, the page, and two of the predictions as the program makes them today."""
    script.compare(every=False)
    printed = capsys.readouterr().out
    assert printed == (HARDWARE / "predicted" / "blind_orders.txt").read_text()
    page = " ".join((HARDWARE / "README.md").read_text().split())
    rows = ("| H200, 1 | 28 | 26, 28 |", "| H100, 1 | 28 | 25, 26 |", "| H200, 2 | 36 | 36, 36 | 32, 36 | 57 of 57 |")
    for said in ("51 are within 5 %", "54 within 10 %", *rows):
        assert said in page
    sustained = [line[line.index("within") :] for line in printed.splitlines() if "sustained_ms" in line]
    near = ["within 5 % 26, within 10 % 28 of 28", "within 5 % 25, within 10 % 26 of 28"]
    assert [*sustained[:2], sustained[3]] == [*near, "within 5 % 36, within 10 % 36 of 36"]
    assert "57 ranked right; the one ranked first costs 0.1% on the mean, 0.8% at worst" in printed
    told, newest = script.read("orders_predicted.csv"), {tuple(map(str, shape)) for shape in script.ROUNDS[-1]}
    for key, row in [item for item in told.items() if item[0][2:5] in newest][:2]:
        sku, make, *sizes, tile, order = key
        again = script.predict(sku, make, tuple(int(size) for size in sizes), tile, order)
        assert {name: float(again[name]) for name in script.VALUES} == pytest.approx(
            {name: float(row[name]) for name in script.VALUES}, rel=1e-4
        )
