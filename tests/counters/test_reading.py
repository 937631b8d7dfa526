"""Every layout of a report reads the same, and what is missing is named."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pebble.cli import main
from pebble.counters import QUANTITIES, Profile, read_profile
from pebble.counters.quantities import SECTOR_BYTES
from pebble.errors import InputError
from tests.counters import synthetic
from tests.counters.synthetic import OLD, TILED, TILED_NAME, european, long_lines, quoted, wide_lines, with_output

SAMPLES = Path(__file__).parents[2] / "benchmarks" / "gpu" / "samples"
DATA = Path(__file__).parent / "data"


def read(folder: Path, text: str | bytes, name: str = "report.csv") -> Profile:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_profile(path)


def check_tiled(profile: Profile) -> None:
    launch = profile.launches[0]
    assert launch.value("dram_read_bytes") == 53_261_312
    assert launch.value("dram_write_bytes") == 3_377_920
    assert launch.value("dram_bytes") == 53_261_312 + 3_377_920
    assert launch.value("time_nanoseconds") == 10_195_552
    # 2 M N K / T loads of 4 bytes by tiles of T = 32
    assert launch.value("l1_load_sectors") == 2 * 2048**3 // 32 * 4 // SECTOR_BYTES == 67_108_864
    assert launch.value("l1_store_sectors") == 2048 * 2048 * 4 // SECTOR_BYTES
    assert launch.value("l2_hit_percent") == 87.5
    assert (launch.grid, launch.block, launch.compute_capability) == ((64, 64, 1), (32, 32, 1), "12.0")
    assert launch.short_name == "tiled_gemm<32>"
    assert [quantity.what for quantity in launch.missing] == ["L2 sectors", "L1 hit rate", "tensor pipe active"]


@pytest.mark.parametrize("layout", [long_lines, wide_lines])
@pytest.mark.parametrize("metrics", [TILED, european(TILED)], ids=["american", "european"])
@pytest.mark.parametrize("wrap", [with_output, "\n".join], ids=["with output", "bare"])
def test_every_layout_reads_the_same(tmp_path, layout, metrics, wrap):
    check_tiled(read(tmp_path, wrap(layout([(TILED_NAME, metrics)]))))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
def test_encodings_that_shells_write(tmp_path, encoding):
    check_tiled(read(tmp_path, "\r\n".join(long_lines([(TILED_NAME, TILED)])).encode(encoding)))


def test_a_table_without_its_header_and_one_resaved_without_quotes(tmp_path):
    lines = long_lines([(TILED_NAME, TILED)])
    check_tiled(read(tmp_path, "\n".join(lines[1:])))
    resaved = [line.replace('"', "") for line in long_lines([("gemm", {"dram__bytes_read.sum": ("byte", "5000")})])]
    resaved = [line.replace("(32, 32, 1)", "32").replace("(64, 64, 1)", "64") for line in resaved]
    whole = read(tmp_path, "\n".join([*resaved, ""]))
    assert whole.launches[0].value("dram_read_bytes") == 5000 and not whole.notes
    assert "its last number may be cut off" in read(tmp_path, "\n".join(resaved)[:-1]).notes[-1]  # 500


def test_the_raw_page_of_old_versions(tmp_path):
    profile = read(tmp_path, with_output(wide_lines([("vecAdd", OLD)] * 3, old=True)))
    assert len(profile.launches) == 3 and profile.layout == "wide"
    launch = profile.launches[2]
    result = {key: launch.value(key) for key in QUANTITIES if launch.value(key) is not None}
    assert result == {
        "time_nanoseconds": 2720, "dram_read_bytes": 7552, "dram_write_bytes": 384, "dram_bytes": 7936,
        "l1_load_sectors": 26, "l1_store_sectors": 13, "l1_load_requests": 8, "l1_store_requests": 4,
    }  # fmt: skip
    assert launch.blocks == 1 and launch.device == "NVIDIA GeForce GTX 1080"
    assert launch.metrics["memory_type"].value == 68  # a list is summed


def test_units_are_scaled_row_by_row(tmp_path):
    metrics = {
        "dram__bytes_read.sum": ("Gbyte", "4.364671"),
        "dram__bytes_write.sum": ("Mbyte", "132.196096"),
        "gpu__time_duration.sum": ("ms", "2.085280"),
        "smsp__cycles_elapsed.avg.per_second": ("cycle/nsecond", "1.64"),
        "device__attribute_l2_cache_size": ("MiB", "50"),
    }
    for layout in (long_lines, wide_lines):
        launch = read(tmp_path, "\n".join(layout([("gemm", metrics)]))).launches[0]
        assert launch.value("dram_read_bytes") == 4_364_671_000
        assert launch.value("dram_write_bytes") == 132_196_096
        assert launch.value("time_nanoseconds") == 2_085_280
        assert launch.value("sm_clock_hz") == pytest.approx(1.64e9)
        assert launch.value("l2_bytes") == 50 * 2**20
    rounded = read(tmp_path, "\n".join(long_lines([("gemm", {"dram__bytes_read.sum": ("Gbyte", "4.36")})])))
    assert any("rounded" in note for note in rounded.notes)


@pytest.mark.parametrize("layout", [long_lines, wide_lines])
@pytest.mark.parametrize(
    ("metrics", "read_bytes", "nanoseconds", "note"),
    [
        ({"dram__bytes_read.sum": ("byte", "54.208")}, 54_208, None, "as counts are whole"),
        ({"dram__bytes_read.sum": ("byte", "54,208")}, 54_208, None, ""),
        ({"gpu__time_duration.sum": ("ms", "10.195")}, None, 10_195_000, "such as 10.195, is taken as 10.195"),
        ({"gpu__time_duration.sum": ("ms", "10,195")}, None, 10_195_000_000, "such as 10,195, is taken as 10,195"),
        # one number that can be read one way only tells of the rest
        ({"a.pct": ("%", "65,77"), "gpu__time_duration.sum": ("ms", "10,195")}, None, 10_195_000, "and 65,77"),
    ],
)  # fmt: skip
def test_numbers_that_may_be_read_either_way(tmp_path, layout, metrics, read_bytes, nanoseconds, note):
    profile = read(tmp_path, "\n".join(layout([("gemm", metrics)])))
    launch = profile.launches[0]
    assert (launch.value("dram_read_bytes"), launch.value("time_nanoseconds")) == (read_bytes, nanoseconds)
    assert note in "; ".join(profile.notes) and bool(note) == bool(profile.notes)


def test_columns_in_another_order(tmp_path):
    lines = long_lines([("gemm", {"dram__bytes_read.sum": ("byte", "5,000")})])
    turned = [quoted(list(reversed(next(csv.reader([line]))))) for line in lines]
    assert read(tmp_path, "\n".join(turned)).launches[0].value("dram_read_bytes") == 5000


def test_dram_bytes_of_a_details_page_without_counters(tmp_path):
    lines = long_lines([("gemm", {"Duration": ("ms", "1.05")})], section="GPU Speed Of Light Throughput")
    more = long_lines([("gemm", {"Memory Throughput": ("Gbyte/s", "290.87")})], section="Memory Workload Analysis")
    result = read(tmp_path, "\n".join([*lines, *more[1:]])).launches[0].find("dram_bytes")
    assert result is not None and result.value == pytest.approx(305.4e6, rel=1e-3) and not result.exact


def test_rules_several_launches_and_missing_values(tmp_path):
    other = {"dram__bytes_read.sum": ("byte", "n/a"), "gpu__time_duration.sum": ("us", "11.36")}
    for layout in (lambda launches: long_lines(launches, rules=True), wide_lines):
        profile = read(tmp_path, with_output(layout([(TILED_NAME, TILED), ("softmax", other)])))
        assert [launch.ident for launch in profile.launches] == ["0", "1"]
        assert not any("could not" in note for note in profile.notes)
        assert profile.launches[1].value("time_nanoseconds") == 11_360
        assert "DRAM bytes read" in [quantity.what for quantity in profile.launches[1].missing]


def test_two_values_of_one_metric_are_told(tmp_path):
    single, two = (long_lines([("gemm", {"dram__bytes_read.sum": ("byte", value)})]) for value in ("5,000", "9,000"))
    launch = read(tmp_path, "\n".join([*single, two[1]])).launches[0]
    assert launch.value("dram_read_bytes") == 5000 and "several values" in launch.notes[0]


def test_what_is_cut_off_is_left_out_and_told(tmp_path):
    text = "\n".join(long_lines([(TILED_NAME, TILED)]))
    profile = read(tmp_path, text[: text.index("67,108,864") + 4])  # "67,1 without its end is not 671
    assert profile.launches[0].value("l1_load_sectors") is None
    assert any("1 row of the table could not be read" in note for note in profile.notes)
    wide = wide_lines([(TILED_NAME, TILED)])
    profile = read(tmp_path, "\n".join([wide[0], wide[2]]))
    assert any("row of units is missing" in note for note in profile.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no table"),
        ("hello\nworld\n", "no table"),
        ("==ERROR== ERR_NVGPUCTRPERM - no permission to access counters\n", "ERR_NVGPUCTRPERM"),
        (quoted(synthetic.LONG), "no launch"),
        ("\n".join(wide_lines([("a", TILED)])[:2]), "no launch"),
    ],
)
def test_what_is_no_report_is_one_sentence(tmp_path, capsys, text, message):
    path = tmp_path / "report.csv"
    path.write_text(text)
    assert main(["ncu", "report", str(path)]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_the_three_layouts_of_one_real_profile_agree():
    pytest.importorskip("ncu_report")
    rep, raw = (read_profile(SAMPLES / f"h200_gemm_orders{end}") for end in (".ncu-rep", "_raw.csv"))
    details = read_profile(SAMPLES / "h200_gemm_orders_details.csv")
    assert [p.layout for p in (rep, raw, details)] == ["ncu-rep", "wide", "long"]
    for item, two, three in zip(rep.launches, raw.launches, details.launches, strict=True):
        assert not item.missing and item.device == two.device == "NVIDIA H200"
        assert (item.grid, item.block) == (two.grid, two.block) == (three.grid, three.block)
        for key in QUANTITIES:
            here = [launch.value(key) for launch in (item, two, three)]
            share = 1 if QUANTITIES[key].unit == "%" else 0  # shares are printed to so many decimals, however small
            assert here[0] is not None or here[1:] == [None, None]
            assert here[1] is None or here[1] == pytest.approx(here[0], rel=1e-5, abs=1e-6 * share)
            assert here[2] is None or here[2] == pytest.approx(here[0], rel=6e-3, abs=6e-3 * share)
    assert rep.launches[0].value("dram_read_bytes") == 4_364_671_488


def test_a_real_report_says_how_it_was_taken():
    pytest.importorskip("ncu_report")
    profile = read_profile(DATA / "h100_product.ncu-rep")
    (launch,) = profile.launches
    assert launch.kernel == "product" and launch.grid == (64, 1, 1) and launch.block == (256, 1, 1)
    # 1024^3 in bf16: A and B read once, the result still dirty in L2
    assert launch.value("dram_read_bytes") == pytest.approx(2 * 2 * 1024**2, rel=0.01)
    assert launch.value("l1_store_sectors") == 1024 * 1024 * 2 / SECTOR_BYTES
    assert not profile.notes
    assert [profile.option(name, "kernel") for name in ("cache-control", "clock-control", "replay-mode")] == [
        "all", "none", "kernel",
    ]  # fmt: skip


def test_the_package_of_nvidia_is_asked_for_where_it_is_not(monkeypatch):
    from pebble.counters import ncu_rep

    monkeypatch.setitem(__import__("sys").modules, "ncu_report", None)
    monkeypatch.setattr(ncu_rep, "call", lambda library, function, path: ncu_rep.load(path))
    with pytest.raises(InputError, match="`pip install ncu-report`"):
        read_profile(DATA / "h100_product.ncu-rep")


def test_the_listing_names_what_is_missing(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "report.csv"
    path.write_text(
        with_output(long_lines([(TILED_NAME, TILED), ("vecAdd", {"dram__read_bytes": ("Kbyte", "7.552")})]))
    )
    assert main(["ncu", "report", str(path)]) == 0
    said = capsys.readouterr().out
    assert "53.3 MB" in said and "67,108,864" in said and "missing: L2 sectors (lts__t_sectors.sum)" in said
    assert "* critical kernel: 0 tiled_gemm<32>" in said
    assert main(["ncu", "report", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["critical"]["id"] == "0" and document["layout"] == "long"
    first, second = document["launches"]
    assert first["l1_load_sectors"] == 67_108_864 and first["missing"] == [
        "L2 sectors",
        "L1 hit rate",
        "tensor pipe active",
    ]
    assert second["dram_read_bytes"] == 7552 and "time" in second["missing"]
