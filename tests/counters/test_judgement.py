"""Measured beside proved and simulated, and a row of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pebble
from pebble.cli import main
from pebble.counters import read_profile
from pebble.counters.profile import MACHINES
from pebble.errors import InputError
from pebble.models.machine import machine_names
from pebble.reports.ncu_row import COLUMNS, kit_rows, measured_row
from tests.counters.synthetic import long_lines, with_output

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "benchmarks" / "gpu" / "samples"
sys.path[:0] = [str(ROOT / "benchmarks" / "gpu"), str(ROOT / "benchmarks" / "hardware")]
WORKLOAD = pebble.Gemm(2048, 2048, 1024)
WHERE = {"cache": "2MiB", "sms": 16}
RESULT = 2048 * 2048 * 2
INPUTS = 2 * 2048 * 1024 * 2


def report(folder: Path, read: float | None, write: float | None, name: str = "gemm", **more: tuple[str, str]) -> str:
    metrics = dict(more)
    for kind, value in (("read", read), ("write", write)):
        if value is not None:
            metrics[f"dram__bytes_{kind}.sum"] = ("byte", f"{value:,.0f}")
    path = folder / "report.csv"
    path.write_text(with_output(long_lines([("copy", {"gpu__time_duration.sum": ("ns", "900")}), (name, metrics)])))
    return str(path)


@pytest.fixture(scope="module")
def simulated():
    return pebble.compare(WORKLOAD, ["row", "hilbert", "column"], **WHERE)


@pytest.mark.parametrize("order", ["hilbert", "row"])
def test_the_order_that_was_measured_is_nearest(tmp_path, simulated, order):
    (traffic,) = (t for t in simulated.orders if t.order == order)
    path = report(tmp_path, traffic.dram_read_bytes * 1.004, traffic.dram_write_bytes - traffic.residue_bytes)
    result = pebble.ncu(path).compare(WORKLOAD, schedules=["row", "hilbert"], **WHERE)
    assert result.nearest.order == order and result.nearest.error == pytest.approx(-0.004, abs=1e-4)
    assert result.bound.bound.bytes == simulated.trace.bound.bytes
    assert result.ratio == pytest.approx(result.measured.dram_bytes / simulated.trace.bound.bytes)
    assert [item.order for item in result.orders] == sorted(["row", "hilbert"], key=lambda name: name != order)
    assert result.reads.least_bytes == max(INPUTS, simulated.trace.bound.bytes - RESULT)
    assert result.reads.least_bytes <= traffic.dram_read_bytes


@pytest.mark.parametrize(
    ("read", "write", "cold", "kinds", "words"),
    [
        (None, RESULT, None, ("unknown", "least"), "not in the report"),
        (INPUTS * 0.9, RESULT, None, ("below", "least"), "--cache-control none"),
        (INPUTS * 0.9, RESULT, False, ("below", "least"), "in L2 before"),
        (INPUTS * 0.3, RESULT, None, ("below", "least"), "another workload"),
        (90e6, RESULT - 10**6, None, ("beyond", "below"), "still dirty in L2"),
        (90e6, RESULT - 5 * 10**6, None, ("beyond", "below"), "another workload or type"),
        (90e6, RESULT * 1.05, None, ("beyond", "close"), "more than the result"),
        (90e6, RESULT * 2, None, ("beyond", "beyond"), "more than the result"),
    ],
)
def test_verdicts_on_reads_and_writes_apart(tmp_path, read, write, cold, kinds, words):
    more = {"dram__bytes.sum": ("byte", f"{(read or 50e6) + write:.0f}")}
    result = pebble.ncu(report(tmp_path, read, write, **more)).compare(WORKLOAD, schedules="row", cold=cold, **WHERE)
    assert (result.reads.kind, result.writes.kind) == kinds
    assert words in result.reads.text + result.writes.text
    assert result.cold is (cold is None)


@pytest.mark.parametrize(
    ("orders", "said"),
    [("row", "not even the one order simulated reads"), ("row,column", "none of the 2 orders simulated reads")],
)
def test_only_orders_that_were_simulated_are_spoken_of(tmp_path, orders, said):
    text = pebble.ncu(report(tmp_path, 2 * INPUTS, RESULT)).compare(WORKLOAD, schedules=orders, **WHERE).reads.text
    assert f"By the model {said} notably less" in text, text


def test_the_least_reads_of_a_kernel_that_writes_more_than_its_result(tmp_path, simulated):
    result = pebble.ncu(report(tmp_path, 90e6, RESULT * 2)).compare(WORKLOAD, schedules="row", **WHERE)
    assert result.reads.least_bytes == max(INPUTS, simulated.trace.bound.bytes - 2 * RESULT - 2**21)
    assert "as much written as was" in result.reads.text


@pytest.mark.parametrize(
    ("cache", "share", "cold", "words"),
    [
        ("2MiB", 0.88, None, "so inputs were in L2 before"),
        ("2MiB", 0.88, False, "the rest was in L2 before"),
        ("512KiB", 0.6, None, "does not explain it"),
        ("512KiB", 0.6, False, "does not explain it"),
    ],
)
def test_reads_between_the_inputs_and_the_proved_least_are_below_it(tmp_path, cache, share, cold, words):
    where = {"cache": cache, "sms": 1, "tile": "64x64x32"}
    least = pebble.compare(WORKLOAD, ["row"], **where).trace.bound.bytes - RESULT
    assert share * least > 1.1 * INPUTS  # the inputs do not say it
    path = report(tmp_path, share * least, RESULT)
    result = pebble.ncu(path).compare(WORKLOAD, schedules="row", cold=cold, **where)
    assert result.reads.kind == "below" and result.reads.least_bytes == least
    assert "less than the proved least" in result.reads.text and words in result.reads.text


def test_launches_of_two_gpus_are_not_added_up(tmp_path, capsys):
    launches = [
        ("gemm", {"dram__bytes.sum": ("byte", "5,000"), "device__attribute_display_name": ("", name)})
        for name in ("NVIDIA H200", "NVIDIA A40")
    ]
    path = tmp_path / "two.csv"
    path.write_text("\n".join(long_lines(launches)))
    assert main(["ncu", "compare", str(path), "--launch", "gemm", "--workload", "gemm", "-m", "64", "-n", "64",
                 "-k", "64"]) == 2  # fmt: skip
    assert "several GPUs (NVIDIA H200, NVIDIA A40)" in capsys.readouterr().err
    assert main(["ncu", "report", str(path)]) == 0
    assert "note: launches of several GPUs: NVIDIA H200: 0; NVIDIA A40: 1" in capsys.readouterr().out


def test_a_total_below_the_bound_says_that_the_rest_comes_later(tmp_path, capsys):
    path = report(tmp_path, 1.01 * INPUTS, 0)
    shape = ["--workload", "gemm", "-m", "2048", "-n", "2048", "-k", "1024", "--schedules", "row"]
    assert main(["ncu", "compare", path, *shape, "--cache", "16MiB", "--sms", "16"]) == 0
    assert ", measured to proved; the rest is written later" in " ".join(capsys.readouterr().out.split())


def test_only_the_sum_was_measured(tmp_path, simulated):
    (row,) = (t for t in simulated.orders if t.order == "row")
    total = row.dram_bytes - row.residue_bytes
    path = report(tmp_path, None, None, **{"dram__bytes.sum": ("byte", str(total))})
    result = pebble.ncu(path).compare(WORKLOAD, schedules=["row", "hilbert"], **WHERE)
    assert result.nearest.order == "row" and result.nearest.error == 0


def test_a_real_launch_on_its_own_machine():
    result = pebble.ncu(SAMPLES / "h200_gemm_orders_raw.csv").compare(
        pebble.Gemm(8192, 8192, 8192), ["0"], ["row", "grouped-8"], tile="128x128x64", stages=4
    )
    assert result.machine.sku == "h200-sxm-141gb"  # by the report's device
    assert result.nearest.order == "row" and abs(result.nearest.error) < 0.01
    assert {order.execution for order in result.orders} == {"waves", "free"}
    assert result.bound is result.comparison.chip and result.ratio > 10
    notes = " ".join(result.notes)
    assert "33 passes" in notes and "1.64 of 1.98 GHz" in notes and "from the other partition" in notes
    assert "64.6% is found in either" in notes  # not the 51 % that counts a look-up twice


def test_how_a_report_was_taken_is_read_from_it():
    pytest.importorskip("ncu_report")
    path = Path(__file__).parent / "data" / "h100_product.ncu-rep"
    result = pebble.ncu(path).compare(pebble.Gemm(1024, 1024, 1024), schedules="row")
    assert result.machine.sku == "h100-sxm5-80gb" and result.cold
    assert any("`--cache-control all`" in note for note in result.notes)
    assert result.reads.kind == "least" and result.writes.kind == "below"
    assert result.measured.write_bytes == 0  # all of the result is still in L2


def test_orders_that_move_the_same_are_one_row(tmp_path, capsys):
    path = report(tmp_path, 15e6, RESULT, **{"sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "88.9")})
    shape = ["--workload", "gemm", "-m", "2048", "-n", "2048", "-k", "1024", "--sms", "16"]
    assert main(["ncu", "compare", path, *shape, "--cache", "48MiB"]) == 0  # which holds all
    out = capsys.readouterr().out
    assert len([line for line in out.splitlines() if " waves " in line]) == 1 and "each of the" in out
    assert "none is nearer than another" in out and "limit          SM-bound: the SMs, at 88.9 %" in out
    result = pebble.ncu(path).compare(WORKLOAD, cache="48MiB", sms=16)
    assert len(result.alike) == 1 and len(result.orders) > 20 and "no order is nearer" in result.summary()
    assert result.to_dict()["limit"]["verdict"] == "sm"
    assert main(["ncu", "compare", path, *shape, "--cache", "2MiB"]) == 0
    out = capsys.readouterr().out
    assert "each of the" not in out and "the same: " in out


def test_a_gpu_without_a_machine_file_is_simulated_by_its_attributes(tmp_path, capsys):
    attributes = {
        "device__attribute_display_name": ("", "NVIDIA GeForce GTX 1080"),
        "device__attribute_multiprocessor_count": ("", "20"),
        "device__attribute_l2_cache_size": ("byte", str(2**21)),
    }
    path = report(tmp_path, 90e6, RESULT, **attributes)
    result = pebble.ncu(path).compare(WORKLOAD, schedules="row")
    assert (result.comparison.kernel.config.sms, result.comparison.kernel.config.cache_bytes) == (20, 2**21)
    assert any("no machine file" in note and "2 MiB" in note for note in result.notes)
    beside = pebble.ncu(path).compare(WORKLOAD, schedules="row", cache="1MiB")
    assert beside.comparison.kernel.config.sms == 20 and any("20 SMs" in note for note in beside.notes)
    assert main(["ncu", "row", path, "--workload", "gemm", "-m", "64", "-n", "64", "-k", "64"]) == 2
    assert "--gpu: missing" in capsys.readouterr().err


def test_a_product_of_fp64_is_not_simulated_as_another(tmp_path):
    metrics = {
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": ("sector", f"{2048 * 2048 * 8 // 32}"),
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("sector", f"{2 * 2048**3 * 8 // 32 // 32}"),
        "dram__bytes.sum": ("byte", "300000000"),
    }
    path = tmp_path / "fp64.csv"
    path.write_text("\n".join(long_lines([("gemm<32>(const double *)", metrics)])))
    with pytest.raises(InputError, match="got a product of fp64"):
        pebble.ncu(path).compare(**WHERE)


def test_machines_of_reports_exist_and_are_those_of_the_kit():
    import measure

    assert set(MACHINES.values()) <= set(machine_names())
    assert measure.CHIPS.items() <= MACHINES.items()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--workload: missing"),
        (["--workload", "gemm", "-m", "64", "-n", "64", "-k", "64"], "--gpu: missing"),
        (["-m", "64"], "without --workload"),
        (["--workload", "gemm", "-m", "64", "-n", "64", "-k", "64", "--launch", "zzz"], "--launch"),
        (["--workload", "gemm", "-m", "64", "-n", "64", "-k", "64", "--launch", "0", "--cache", "1MiB", "--sms", "4"],
         "no DRAM bytes"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_one_sentence(tmp_path, capsys, arguments, message):
    assert main(["ncu", "compare", report(tmp_path, 90e6, RESULT), *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_the_command_its_figure_and_its_document(tmp_path, capsys):
    figure = tmp_path / "a.svg"
    shape = ["--workload", "gemm", "-m", "2048", "-n", "2048", "-k", "1024", "--cache", "2MiB", "--sms", "16"]
    arguments = ["ncu", "compare", report(tmp_path, 90e6, RESULT), *shape, "--schedules", "row,hilbert"]
    assert main([*arguments, "--figure", str(figure)]) == 0
    said = capsys.readouterr().out
    assert "measured       98.4 MB" in said and "proved bound" in said and "nearest order" in said
    assert "measured reads" in figure.read_text()
    assert main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["measured"]["dram_bytes"] == 90e6 + RESULT
    assert {"lower_bound", "nearest", "as_near", "reads", "writes", "schedules"} <= set(document)
    assert document["ratio_to_lower_bound"] > 1


def test_rows_are_the_librarys(tmp_path, capsys):
    import library

    assert COLUMNS == library.COLUMNS
    out = tmp_path / "rows.csv"
    arguments = ["ncu", "row", report(tmp_path, 90e6, RESULT), "--workload", "gemm", "-m", "2048", "-n", "2048", "-k",
                 "1024", "--cache", "2MiB", "--sms", "16", "--execution", "waves", "--date", "2026-01-02"]  # fmt: skip
    assert main([*arguments, "--schedule", "hilbert", "--append", str(out)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "measured 90.0 MB read, predicted" in said and "proved at least" in said
    assert main([*arguments, "--append", str(out), "--launched", "library"]) == 0
    first, second = library.read_rows([out])
    assert first["order"] == "hilbert" and first["dram_read_bytes"] == "90000000" and "predicted" in first["note"]
    assert second["order"] == "gemm" and "predicted" not in second["note"] and "proved" in second["note"]
    out.write_text("other,columns\n")
    capsys.readouterr()
    for wrong in (["--append", str(out)], ["--append", "x.txt"], ["--launched", "by-hand"], ["--plan", str(tmp_path)],
                  ["--date", "yesterday"], ["--date", "2026-02-30"]):  # fmt: skip
        assert main([*arguments, *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_a_report_of_the_kit_gives_a_row_a_case(tmp_path):
    import make_tables
    import measure

    plan = tmp_path / "plan"
    subprocess.run(
        [sys.executable, make_tables.__file__, "plan", str(plan), "--which", "small"], check=True, capture_output=True
    )  # fmt: skip
    cases = measure.read_plan(plan)
    number = next(i for i, case in enumerate(cases) if case["family"] == "gemm" and case["launch"] != "library")
    counters = {metric: ("", f"{10**7 + i:,}") for i, metric in enumerate(measure.METRICS.values())}
    launches = [("gemm_kernel", counters), ("end_of_case", counters)] * 2
    text = f'#{{"case": {number}}}\n' + "\n".join(long_lines(launches)) + f'\n#{{"case": {number}}}\n'
    (tmp_path / "cases.csv").write_text(text)
    rows = list(kit_rows(read_profile(tmp_path / "cases.csv"), plan, gpu="h200-sxm-141gb"))
    assert len(rows) == 2
    by_kit = measure.by_case(text)[number]  # the kit's own reading of the same output
    for row in rows:
        assert {row.row[name] for name in ("dram_read_bytes",)} == {str(by_kit["dram_read_bytes"])}
        assert row.row["order"] == cases[number]["order"] and row.row["tile"] == cases[number]["tile"]
        assert row.row["l2_read_sectors"] == str(by_kit["l2_read_sectors"]) and row.predicted_bytes
    with pytest.raises(InputError, match="its cases are not"):
        list(kit_rows(read_profile(report(tmp_path, 1e6, 1e6, "end_of_case")), plan))


def test_row_without_an_order_has_no_prediction(tmp_path):
    profile = read_profile(report(tmp_path, 90e6, RESULT))
    result = measured_row(profile, WORKLOAD, execution="waves", **WHERE)
    assert result.predicted_bytes is None and result.row["order"] == "" and result.row["launch"] == "block-per-tile"


@pytest.mark.posix
def test_one_command_from_launch_to_row(tmp_path):
    """The kit's script, with stand-ins for the GPU's side of it."""
    import library

    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "ncu").write_text(f"#!/bin/sh\ncat {report(tmp_path, 90e6, RESULT)}\n")
    (tools / "ncu").chmod(0o755)
    out = tmp_path / "rows.csv"
    command = [str(ROOT / "benchmarks/gpu/row.sh"), "h200-sxm-141gb", "grouped-8", str(out), "gemm", "-m", "2048"]
    command += ["-n", "2048", "-k", "1024"]
    environment = os.environ | {
        "PATH": f"{tools}:/usr/bin:/bin", "PEBBLE": f"{sys.executable} -m pebble", "PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("measured 90.0 MB read, predicted") == 2
    assert [row["execution"] for row in library.read_rows([out])] == ["waves", "free"]
