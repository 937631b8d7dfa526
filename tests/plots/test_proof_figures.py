"""Proof figures: drawn on small instances, the same bytes every time, nothing cut off, numbers that are true."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

import pebble
from pebble.api.kernels import cycles
from pebble.cli import main
from pebble.cli.figure import FIGURES
from pebble.game import replay
from pebble.plots.bands import bands_figure
from pebble.plots.buffers import Chip, omega_figure
from pebble.plots.choices import fusion, fusion_figure, stationarity, stationarity_figure
from pebble.plots.curve import ski_slope, ski_slope_figure
from pebble.plots.gap import gap, gap_figure
from pebble.plots.pebbling import gemm_events, lanes_figure, pebbling_figure
from pebble.plots.segments import best_box, cut_schedule, projections_figure, segments_figure
from pebble.plots.time import roofline_figure
from pebble.plots.walk import reuse_distances, walk_figure
from pebble.reports.bands import bands_of, heights_of
from pebble.reports.decode import decode
from pebble.reports.kernel_compare import compare_kernels as compare
from pebble.reports.roofline import roofline
from pebble.schedules.explicit import best_gemm_schedule
from pebble.schedules.explicit.gemm_search import banded_products
from pebble.schedules.orders import OrderParams, parse_order
from pebble.workloads import Attention, Conv2d, Ffn, Gemm
from tests.rooms import in_values


def figures() -> dict[str, Figure]:
    orders = [parse_order(name) for name in ("row", "grouped-8", "hilbert", "snake-strips-16")]
    return {
        "ski-slope": ski_slope_figure(ski_slope(Gemm(1024, 1024, 1024), ("row", "grouped-8"), points=12)),
        "projections": projections_figure(Gemm(8192, 8192, 8192), 40 * 2**19),
        "projections, flat": projections_figure(Gemm(4000, 4000, 20), 3000),
        "projections, whole": projections_figure(Gemm(64, 32, 16), 4000),
        "segments": segments_figure(Gemm(12, 12, 12), 40),
        "pebbling": pebbling_figure(gemm_events(Gemm(3, 3, 3), 6), 6, "3 x 3 x 3"),
        "walk": walk_figure(orders, 16, 16, OrderParams()),
        "gap": gap_figure(gap(("llama-2-7b:qkv", "llama-3-405b:gate_up"), 512)),
        "fusion": fusion_figure(fusion(Ffn(512, 256, 1024), 6, 2**14, 2**22)),
        "roofline": roofline_figure(roofline(Gemm(1024, 1024, 1024), "row,hilbert,grouped-8", gpu="a40")),
        "roofline, attention": roofline_figure(roofline(Attention(512, 512, 64, heads=4), gpu="a100-sxm4-40gb")),
        "roofline, bound alone": roofline_figure(roofline(Conv2d(2, 8, 8, 16, 16, 3), gpu="b200-sxm")),
        "stationarity": stationarity_figure(stationarity(Gemm(2048, 2048, 1), 2**14)),
        "energy": compare(Gemm(1024, 1024, 1024), "row,hilbert", gpu="a40", energy="7nm").energy_figure(),
        "bands": bands_figure([bands_of(Ffn(512, 256, 640), "a40"), bands_of(Ffn(512, 256, 640), "h20")], "an FFN"),
        "omega": omega_figure(Gemm(512, 512, 512), Chip("a chip", 4, 2**16), Fraction(5, 2)),
        "omega, not measured": omega_figure(Gemm(512, 512, 512), Chip("a chip", 4, 2**16), None),
    }


@pytest.fixture(scope="module")
def drawn() -> dict[str, Figure]:
    return figures()


def test_these_are_figures_of_the_command(drawn: dict[str, Figure]) -> None:
    assert {name.partition(",")[0] for name in drawn} <= set(FIGURES)


def test_nothing_is_cut_off(drawn: dict[str, Figure]) -> None:
    others = {
        "cycles": cycles("256x128x16", dtype="fp16", gpu="a100-sxm4-40gb").figure(),
        "cycles, one set": cycles("128x128x64", gpu="h100-sxm5-80gb").figure(),
        "decode": decode("llama-3-8b", gpu="a40").figure(),
    }
    for name, figure in (drawn | others).items():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        width, height = figure.get_size_inches() * figure.dpi
        axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
        ticks = {id(t) for axis in axes for minor in (False, True) for t in axis.get_ticklabels(minor=minor)}
        for text in figure.findobj(Text):
            assert isinstance(text, Text)
            if not text.get_text().strip() or not text.get_visible():
                continue
            box = text.get_window_extent(canvas.get_renderer())
            if box.width == 0 or box.x0 > 3 * width or box.y0 > 3 * height:
                continue  # a tick outside the view
            inside = box.x0 >= -2 and box.x1 <= width + 2 and box.y0 >= -2 and box.y1 <= height + 2
            assert inside or id(text) in ticks, (name, text.get_text(), box)


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_the_same_bytes_every_time(suffix: str, tmp_path: Path) -> None:
    for name in ("segments", "walk", "projections"):
        sizes = ["gemm", "-m", "12", "-n", "12", "-k", "12", "--cache", "40el"] if name != "walk" else ["--grid", "8x8"]
        paths = [tmp_path / f"{i}.{suffix}" for i in range(2)]
        for path in paths:
            assert main(["figure", name, *sizes, "--out", str(path)]) == 0
        first, second = (path.read_bytes() for path in paths)
        assert first == second and len(first) > 1000


def test_text_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "walk.svg"
    assert main(["figure", "walk", "--grid", "8x8", "--schedules", "row,hilbert", "--out", str(path)]) == 0
    assert "hilbert</text>" in path.read_text()


@pytest.mark.parametrize("capacity", [7, 16, 40, 90])
def test_segments_obey_the_accounting(capacity: int) -> None:
    gemm = Gemm(9, 8, 7)
    for schedule in in_values(banded_products, gemm, capacity):
        for count in (1, 2, 5, 11):
            cut = cut_schedule(schedule, count)
            assert len(cut) == count
            assert sum(s.products for s in cut) == gemm.multiply_adds
            assert sum(s.loads for s in cut) == sum(schedule.loads.values())
            assert sum(s.stores for s in cut) == sum(schedule.stores.values())
            assert sum(s.initialised for s in cut) == gemm.m * gemm.n
            assert all(s.held <= capacity and s.loaded <= s.loads for s in cut)
            touched = sum(s.touched for s in cut)
            assert touched <= sum(schedule.loads.values()) + (count - 1) * capacity + gemm.m * gemm.n


def test_the_pebbling_is_the_schedule() -> None:
    gemm, capacity = Gemm(3, 4, 2), 7
    events = gemm_events(gemm, capacity)
    kinds = [op for op, _, _ in events]
    schedule = in_values(best_gemm_schedule, gemm, capacity)
    assert kinds.count("load") + kinds.count("store") == schedule.elements
    assert kinds.count("compute") == gemm.multiply_adds


def test_boxes_have_the_work() -> None:
    for gemm, products in ((Gemm(100, 100, 100), 1000), (Gemm(4000, 4000, 20), 10**6), (Gemm(8, 8, 8), 512)):
        rows, cols, depth = best_box(gemm, products)
        assert rows * cols * depth == pytest.approx(products)
        assert rows <= gemm.m * 1.0001 and cols <= gemm.n * 1.0001 and depth <= gemm.k * 1.0001


def test_reuse_distances() -> None:
    tiles = np.array([[0, 0], [0, 1], [1, 1], [1, 0]])
    assert reuse_distances(tiles, 2).tolist() == [-1, -1, 1, -1, -1, 1, 1, 3]


def test_a_solution_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solution = tmp_path / "s.json"
    moves = [["load", "a"], ["load", "b"], ["slide", "c", "a"], ["store", "c"]]
    document = {"instance": "sum", "variant": "one-shot-sliding", "capacity": 2, "moves": moves, "status": "optimal"}
    solution.write_text(json.dumps({**document, "upper_bound": 3}))
    assert main(["figure", "pebbling", "--solution", str(solution), "--out", str(tmp_path / "p.svg")]) == 0
    for text in ("", "[]", '{"moves": [[]]}', '{"moves": 5, "capacity": 1}', "[" * 100_000):
        solution.write_text(text)
        assert main(["figure", "pebbling", "--solution", str(solution), "--out", str(tmp_path / "p.svg")]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_solution_on_two_sms_has_a_lane_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = pebble.solve("gemm", 5, m=2, n=2, k=1, buffers="connected", sms=2, balanced=True, omega="1/4")
    solution, out = tmp_path / "s.json", str(tmp_path / "p.svg")
    solution.write_text(json.dumps(result.document()))
    assert main(["figure", "pebbling", "--solution", str(solution), "--out", out]) == 0
    moves = result.result.moves
    targets = {move.node: move.node.partition("+=")[0] for move in moves if move.op == "compute"}
    lanes = lanes_figure(moves, targets, 2, "two").axes
    tasks = [sm.computations for sm in replay(result.game, result.result.pebbling).per_sm]
    for sm, ax in enumerate(lanes):
        assert ax.get_ylabel() == f"SM {sm}" and ax.get_title(loc="left").endswith(f"{tasks[sm]} computations")
        mine = {targets.get(m.node, m.node) for m in moves if m.sm == sm}
        assert [label.get_text() for label in ax.get_yticklabels()] == sorted(mine)
    document = result.document()
    for change in ({"moves": 5}, {"sms": "two"}, {"buffers": "pooled"}, {"moves": [["load", "a"]]}, {"sms": 99}):
        solution.write_text(json.dumps({**document, **change}))
        assert main(["figure", "pebbling", "--solution", str(solution), "--out", out]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "nothing",
        "walk --cache 5el",
        "walk --grid 3",
        "walk --grid 0x4",
        "walk --grid 999x999",
        "walk --schedules row,row,row,row,row",
        "gap gemm -m 4 -n 4 -k 4",
        "fusion gemm -m 4 -n 4 -k 4",
        "segments gemm -m 400 -n 400 -k 400 --cache 40el",
        "segments --cache 2el",
        "pebbling gemm -m 40 -n 40 -k 40 --cache 40el",
        "walk --out walk.doc",
    ],
)
def test_wrong_arguments(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = [] if "--out" in words else ["--out", str(tmp_path / "f.svg")]
    assert main(["figure", *words.split(), *out]) == 2
    said = capsys.readouterr().err
    assert said.startswith("pebble: ") and said.count("\n") == 1


def test_points_of_the_roofline_are_below_its_roofs() -> None:
    result = roofline(Gemm(1024, 1024, 1024), "all", gpu="a40")
    for point in (result.bound, *result.orders):
        roofs = (result.peak.per_second, point.intensity * result.dram.per_second)
        assert point.operations_per_second == pytest.approx(min(roofs))
        assert point.intensity <= result.bound.intensity
    assert result.sm_intensity == 2 * 128 * 128 / (256 * 2)
    assert result.orders == tuple(sorted(result.orders, key=lambda point: (point.intensity, point.name)))


def test_a_memory_has_no_roofs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = str(tmp_path / "x.svg")
    assert main(["figure", "roofline", "gemm", "-m", "8", "-n", "8", "-k", "8", "--out", out]) == 2
    assert "--gpu SKU or --machine FILE" in capsys.readouterr().err
    assert main(["figure", "roofline", "gemm", "-m", "8", "-n", "8", "-k", "8", "--gpu", "gb10", "--out", out]) == 2
    assert "no throughput.bf16" in capsys.readouterr().err


def test_stationarity_is_the_schedules_own() -> None:
    result = stationarity(Gemm(4096, 4096, 1), 2**14)
    for i, k in enumerate(result.depths):
        single = Gemm(4096, 4096, k)
        best = in_values(best_gemm_schedule, single, 2**14)
        # plain blocks of one operand: the best schedule may mix them and turn corners
        least = min(traffic[i] for traffic in result.traffic.values())
        assert result.bounds[i] <= best.elements <= least <= 1.1 * best.elements
        assert result.traffic[result.winners[i]][i] == least
    assert result.switch is not None and 1.5 < result.switch < 2.5  # 1 + kappa^2 meets 1 + 2 kappa at 2
    assert result.winners[0] == "A" and result.winners[-1] == "C"


def test_cycles_bars_add_up_to_the_cycles() -> None:
    result = cycles("256x128x16", dtype="fp16", gpu="a100-sxm4-40gb")
    (ax,) = result.figure().axes
    ends = [float(text.get_text().replace(",", "")) for text in ax.texts]
    for i, step in enumerate(result.steps):
        cycles_of = (step.compute_cycles, step.l2_cycles, step.dram_cycles)
        assert ends[3 * i : 3 * i + 3] == [round(item) for item in cycles_of]


def test_the_figure_of_bands_shows_what_time_says() -> None:
    drawing = pebble.figure("bands", Ffn(512, 256, 640), gpu="a40")
    timed = pebble.time(Ffn(512, 256, 640), ["row-fused-2", "row-fused-2-flags"], gpu="a40")
    panels = {(row["panel"], row["series"], row["x"]): row["y"] for row in drawing.rows()}
    for name, series in (("row-fused-2", "bands, barriers"), ("row-fused-2-flags", "bands, flags")):
        time = next(each.time for each in timed.orders if each.order == name)
        shown = [panels[panel, series, 2] for panel in (1, 2, 3)]
        assert shown == pytest.approx([1e3 * time.seconds, time.dram_bytes / 1e9, 100 * time.occupancy], rel=1e-6)
    tiles = -(-512 // timed.kernel.config.tile.bm)
    assert {x for panel, series, x in panels if series == "bands, flags"} == set(heights_of(tiles))
