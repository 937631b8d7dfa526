"""Figures for a paper: names at the ends of lines, none over another, at most a page tall, and the numbers drawn."""

from __future__ import annotations

import csv
import json
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

import pebble
from pebble.cdag import fft_dag
from pebble.cli import main
from pebble.plots.curve import ski_slope, ski_slope_figure
from pebble.plots.dag import dag_figure
from pebble.plots.data import drawn_data
from pebble.plots.fitting import _GREYS
from pebble.plots.labels import spread
from pebble.plots.look import Look, looking
from pebble.plots.save import page

PAGE_INCHES = 9.3
GEMM = pebble.Gemm(2048, 2048, 2048)
ASKED: dict[str, tuple[Any, dict[str, Any]]] = {
    "projections": (GEMM, {"cache": "1MiB"}),
    "segments": (pebble.Gemm(12, 12, 12), {"cache": "40el"}),
    "pebbling": (pebble.Gemm(3, 3, 3), {"cache": "6el"}),
    "walk": (None, {"grid": "8x8", "schedules": "row,hilbert"}),
    "fusion": (pebble.Ffn(512, 512, 1024), {}),
    "buffers": (GEMM, {}),
    "omega": (GEMM, {"gpu": "h100-sxm5-80gb"}),
    "placement": (None, {"grid": "8x8", "sms": 4}),
    "roofline": (GEMM, {"gpu": "h100-sxm5-80gb"}),
    "energy": (GEMM, {"gpu": "a40", "schedules": "row,hilbert"}),
}


@cache
def drawn(name: str, width: str) -> pebble.Drawing:
    workload, options = ASKED[name]
    return pebble.figure(name, workload, width=width, **options)


@cache
def curve(width: float) -> Figure:
    names = "row,hilbert,grouped-8,snake-strips-16,morton,column,row+sawtooth"
    result = pebble.curve(GEMM, names, cache="2MiB", sms=32, points=12)
    with looking(Look(width_inches=width)):
        return result.figure()


@cache
def slope(width: float, style: str = "colour") -> Figure:
    with looking(Look(width_inches=width, style=style)):
        return ski_slope_figure(ski_slope(GEMM, ("row", "grouped-8", "hilbert"), points=8))


def label_boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    """The words of every panel but those inside of bars and cells, where they stand in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    results = []
    for ax in figure.axes:
        for text in ax.texts:
            if text.get_text() and ax.get_visible():
                plain = Bbox(text.get_window_extent(canvas.get_renderer()))
                if isinstance(text, Annotation):  # without its leader
                    plain = Bbox(super(Annotation, text).get_window_extent(canvas.get_renderer()))
                results.append((text.get_text(), plain.padded(-0.5)))
    return results


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    pairs = combinations(label_boxes(figure), 2)
    return [(a, b) for (a, item), (b, other) in pairs if item.overlaps(other)]


@pytest.mark.parametrize("width", ["column", "text"])
@pytest.mark.parametrize("name", ASKED)
def test_a_figure_stands_on_a_page_and_no_label_on_another(name: str, width: str) -> None:
    figure = drawn(name, width).figure()
    across, tall = figure.get_size_inches()
    assert across == pytest.approx({"column": 3.33, "text": 7.0}[width]) and tall <= PAGE_INCHES
    assert overlaps(figure) == []
    for text, box in label_boxes(figure):
        assert box.x0 >= -2 and box.x1 <= figure.bbox.width + 2, text


@pytest.mark.parametrize("width", [3.33, 7.0])
@pytest.mark.parametrize("draw", [curve, slope], ids=["curve", "ski-slope"])
def test_lines_are_named_at_their_ends(draw: Any, width: float) -> None:
    figure = draw(width)
    (ax,) = figure.axes
    assert figure.get_figheight() <= PAGE_INCHES and overlaps(figure) == []
    ends = [text for text in ax.texts if text.get_gid() == "end-label"]
    assert len(ends) >= 5
    edge = ax.get_window_extent().x1
    for note in ends:
        at, place = note.xy, ax.transData.transform(note.xy)
        assert place[0] == pytest.approx(edge, abs=2), "a name stands where its line ends"
        lines = [line for line in ax.lines if np.isclose(np.asarray(line.get_ydata(), float)[-1], at[1])]
        assert lines, note.get_text()


def test_names_keep_the_order_of_their_lines() -> None:
    (ax,) = curve(3.33).axes
    FigureCanvasAgg(curve(3.33)).draw()
    ends = [text for text in ax.texts if text.get_gid() == "end-label"]
    ends.sort(key=lambda note: note.xy[1])
    centres = [note.xyann[1] * curve(3.33).dpi / 72 + ax.transData.transform(note.xy)[1] for note in ends]
    assert centres == sorted(centres)


def test_named_lines_differ_in_dashes() -> None:
    for figure in (curve(3.33), slope(3.33)):
        (ax,) = figure.axes
        ends = {text.get_text().replace("\n", "") for text in ax.texts if text.get_gid() == "end-label"}
        named = [line for line in ax.lines if any(end in str(line.get_label()).replace(" ", "") for end in ends)]
        styles = [(str(line._dash_pattern), line.get_color(), line.get_linewidth()) for line in named]
        assert len(styles) >= 3 and len(set(styles)) == len(styles)


def test_the_two_bounds_of_a_ski_slope_look_different() -> None:
    (ax,) = slope(3.33).axes
    bounds = {str(line.get_label()): line for line in ax.lines if " bound" in str(line.get_label())}
    kernels, alone = bounds["kernel bound: cache and SMs"], bounds["cache-only bound, which kernels may beat"]
    assert kernels.get_color() != alone.get_color() and kernels.get_linewidth() > 2 * alone.get_linewidth()
    least = dict(zip(kernels.get_xdata(), kernels.get_ydata(), strict=True))
    for line in ax.lines:
        if str(line.get_label()).endswith(", LRU"):
            for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True):
                below = [bound for at, bound in least.items() if at >= x]  # it falls
                assert y >= min(below, default=0) * (1 - 1e-9)


def test_greys_are_told_apart() -> None:
    levels = sorted(to_rgb(grey)[0] for grey in _GREYS.values())
    assert all(b - a >= 0.09 for a, b in pairwise(levels))
    figure = slope(3.33, "grey")
    for note in figure.axes[0].texts:
        if isinstance(note, Annotation) and note.arrow_patch is not None:
            r, g, b, _ = note.arrow_patch.get_edgecolor()
            assert r == g == b


@pytest.mark.parametrize("width", [None, 3.33, 7.0])
@pytest.mark.parametrize("size", [4, 8])
def test_no_name_of_a_dag_stands_on_an_edge(size: int, width: float | None) -> None:
    dag = fft_dag(size)
    with looking(Look(width_inches=width)):
        figure = dag_figure(dag, "fft")
    assert overlaps(figure) == []
    (ax,) = figure.axes
    shown = {text.get_text() for text in ax.texts}
    assert {str(node) for node in dag if not dag.pred[node] or not dag.succ[node]} <= shown
    segments = [patch.get_path() for patch in ax.patches]
    assert len(segments) == dag.number_of_edges()
    upright = [box for text, box in label_boxes(figure) if text.startswith("x[")]
    for box in upright:  # below the inputs, from which edges rise
        assert box.y1 < ax.transData.transform((0, 0))[1]


def test_boxes_are_spread_as_little_as_need_be() -> None:
    assert spread([0.0, 10.0, 20.0], [4, 4, 4]) == [0, 10, 20]
    assert spread([5.0, 5.0], [4, 2]) == [3.5, 6.5]
    rng = np.random.default_rng(0)
    for _ in range(50):
        count = int(rng.integers(1, 9))
        wanted, heights = np.sort(rng.uniform(0, 50, count)).tolist(), rng.uniform(1, 12, count).tolist()
        got = spread(wanted, heights)
        for i in range(count - 1):
            assert got[i + 1] - got[i] >= (heights[i] + heights[i + 1]) / 2 - 1e-9


# the numbers


def test_the_numbers_are_those_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = drawn("fusion", "column")
    (ax,) = result.figure().axes
    lines = {str(line.get_label()): line for line in ax.lines if not str(line.get_label()).startswith("_")}
    rows = result.rows()
    assert {row["series"] for row in rows} == set(lines)
    for name, line in lines.items():
        mine = [(row["x"], row["y"]) for row in rows if row["series"] == name]
        points = np.asarray(line.get_xydata(), float)[: len(mine)]
        assert np.allclose(mine, points) and len(mine) in (1, len(line.get_xdata()))
    assert {(row["x_is"], row["y_is"]) for row in rows} == {("fast memory, MiB", "traffic, GB")}
    path, data = tmp_path / "f.svg", tmp_path / "f.csv"
    words = ["figure", "segments", "gemm", "-m", "12", "-n", "12", "-k", "12", "--cache", "40el"]
    assert main([*words, "--out", str(path), "--data", str(data), "--json"]) == 0
    spec = json.loads(capsys.readouterr().out)
    with data.open() as file:
        written = list(csv.DictReader(file))
    assert [row["series"] for row in written] == [row["series"] for row in spec["data"]]
    assert path.read_text().startswith("<?xml") and spec["figure"] == "segments"
    assert main([*words, "--data", str(tmp_path / "f.txt")]) == 2
    assert "--data" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name in ASKED if name not in ("projections",)])
def test_every_figure_has_its_numbers(name: str) -> None:
    rows = drawn(name, "column").rows()
    assert len(rows) > 3 and all(row["series"] for row in rows)
    assert drawn(name, "column").csv.count("\n") == len(rows) + 1


def test_a_placement_tells_who_does_what() -> None:
    spec = drawn("placement", "column").to_dict()["placements"]
    assert [len(element["owner"]) for element in spec] == [8] * 3
    for item in spec:
        counts = np.bincount(np.asarray(item["owner"]).ravel(), minlength=4)
        assert counts.sum() == 64 and counts.max() <= 16 + 1


def test_a_drawing_is_shown_and_saved(tmp_path: Path) -> None:
    result = drawn("segments", "column")
    assert result._repr_html_().startswith('<img alt="segments" src="data:image/png;base64,')
    result.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert result.plot() is result.figure().axes[0]
    with pytest.raises(pebble.InputError, match="drawn already"):
        result.plot(result.figure().axes[0])
    with pytest.raises(pebble.InputError, match="got cache, which this figure does not take"):
        pebble.figure("gap", cache="6MiB")
    with pytest.raises(pebble.UnknownNameError, match="did you mean walk"):
        pebble.figure("walks")
    with pytest.raises(pebble.InputError, match="width: got 'wide'"):
        pebble.figure("segments", width="wide")


@pytest.mark.parametrize("name", ["buffers", "omega"])
def test_prices_of_a_copy_show_whose_mark_is_whose_and_the_numbers_have_the_schedules(name: str) -> None:
    drawing = drawn(name, "column")
    figure = drawing.figure()
    ax = figure.axes[-1]
    legend = ax.get_legend() or figure.legends[0]
    shown = {text.get_text(): handle for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True)}
    lines = {str(line.get_label()): line for line in ax.lines}
    nets = [label for label in shown if label.endswith(("all-to-all", "cluster-16"))]
    assert nets and not any("best schedule" in label for label in shown)
    panel = [row for row in drawn_data(figure) if row["panel"] == len(figure.axes)]
    for net in nets:
        marks, handle = lines[f"{net}, best schedule"], shown[net]
        assert isinstance(handle, Line2D) and handle.get_marker() == marks.get_marker() in ("o", "^")
        bound = {row["x"]: row["y"] for row in panel if row["series"] == net}
        best = {row["x"]: row["y"] for row in panel if row["series"] == f"{net}, best schedule"}
        assert len(best) >= 3 and all(best[x] >= bound[x] * (1 - 1e-9) for x in best.keys() & bound.keys())


def test_a_legend_fills_its_rows() -> None:
    with looking(Look(width_inches=7.0)), page(7.0, 3) as figure:
        ax = figure.add_subplot()
        for number in range(4):
            ax.plot([0, 1], [0, number], label=f"line {number}")
        ax.legend()
    (legend,) = figure.legends
    assert legend._ncols == 2, "two rows of two, not of three and one"


def test_the_walk_is_no_void_above_its_plot() -> None:
    figure = pebble.figure("walk", width="text", grid="8x8").figure()
    assert figure.get_figheight() < 8.5
    *maps, plot = (ax.get_window_extent() for ax in figure.axes)
    assert min(box.y0 for box in maps) - plot.y1 < 0.15 * figure.bbox.height


def test_lines_of_one_height_show_each_other() -> None:
    figure = pebble.figure("stationarity", width="column", style="grey").figure()
    a, b, c, bound = (line for line in figure.axes[0].lines if not str(line.get_label()).startswith("_"))
    assert np.allclose(a.get_ydata(), b.get_ydata(), rtol=0.05)
    dashes = [line._unscaled_dash_pattern[1] for line in (a, b, c)]
    assert dashes[0] is None and dashes[1][1] >= dashes[1][0], "the gaps of the upper line show the lower"
    assert len({str(pattern) for pattern in dashes}) == 3 and to_rgb(bound.get_color()) == (0, 0, 0)


def test_owners_differ_in_grey() -> None:
    figure = pebble.figure("placement", width="column", style="grey", grid="8x8", sms=8).figure()
    for image in (image for ax in figure.axes for image in ax.images):
        levels = sorted(float(image.cmap(image.norm(owner))[0]) for owner in range(8))
        assert levels[-1] < 0.95 and all(b - a >= 0.09 for a, b in pairwise(levels))
