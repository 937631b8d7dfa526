"""Figures in the look asked for: as wide as a column, in type that can be read, with a title or none, in grey."""

from __future__ import annotations

import shutil
import subprocess
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from pebble.cdag import gemm_dag
from pebble.cli import main
from pebble.errors import InputError
from pebble.models.machine import load_machine
from pebble.plots.curve import MARKED, ski_slope, ski_slope_figure
from pebble.plots.dag import dag_figure
from pebble.plots.look import Look, looking
from pebble.plots.pebbling import gemm_events, pebbling_figure
from pebble.plots.save import page
from pebble.plots.segments import segments_figure
from pebble.plots.walk import walk_figure
from pebble.schedules.orders import OrderParams, parse_order
from pebble.workloads import Gemm

GEMM = ["gemm", "-m", "1024", "-n", "1024", "-k", "1024"]


def some() -> dict[str, Figure]:
    orders = [parse_order(name) for name in ("row", "grouped-8", "hilbert")]
    return {
        "ski-slope": ski_slope_figure(ski_slope(Gemm(1024, 1024, 1024), ("row", "grouped-8"), points=8)),
        "segments": segments_figure(Gemm(12, 12, 12), 40),
        "walk": walk_figure(orders, 16, 16, OrderParams()),
    }


def written(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text().strip()]


def test_a_column_is_legible_and_whole() -> None:
    with looking(Look(width_inches=3.33)):
        for name, figure in some().items():
            assert figure.get_figwidth() == pytest.approx(3.33)
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
            width, height = figure.get_size_inches() * figure.dpi
            for text in written(figure):
                assert text.get_fontsize() >= 8, (name, text.get_text())
            for ax in figure.axes:
                for text in (ax._left_title, ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts):
                    if text.get_text():
                        box = text.get_window_extent(canvas.get_renderer())
                        assert box.x0 >= -3 and box.x1 <= width + 3, (name, text.get_text(), box)
                        assert box.y0 >= -3 and box.y1 <= height + 3, (name, text.get_text(), box)


def test_named_rows_and_legends_have_room() -> None:
    gemm = Gemm(3, 3, 3)
    with looking(Look(width_inches=3.33)):
        pebbling = pebbling_figure(gemm_events(gemm, 6), 6, gemm.label)
        slope = ski_slope_figure(ski_slope(Gemm(1024, 1024, 1024), ("row", "snake-strips-16+sawtooth"), points=8))
    canvas = FigureCanvasAgg(pebbling)
    canvas.draw()
    boxes = [label.get_window_extent(canvas.get_renderer()) for label in pebbling.axes[0].get_yticklabels()]
    assert len(boxes) == 27
    for above, below in pairwise(boxes):
        assert above.y0 >= below.y1 - 1
    canvas = FigureCanvasAgg(slope)
    canvas.draw()
    for text in slope.legends[0].get_texts():
        assert text.get_window_extent(canvas.get_renderer()).x1 <= slope.get_figwidth() * slope.dpi, text


def test_a_layer_of_a_dag_has_names_only_where_they_fit() -> None:
    with looking(Look(width_inches=3.33)):
        names = {text.get_text() for text in dag_figure(gemm_dag(4, 4, 4)).axes[0].texts}
    assert {"C[0,0]", "C[3,3]"} <= names and not any(name.startswith("A") for name in names)  # 16, and 32 in a row


def test_without_a_look_nothing_changes() -> None:
    assert some()["segments"].get_figwidth() == 6.4


def test_no_title_and_points() -> None:
    with looking(Look(title=False, points=10)):
        figure = some()["segments"]
    assert figure.axes[0].get_title(loc="left") == ""
    assert figure.axes[0].xaxis.label.get_fontsize() == 10


def test_grey_is_grey() -> None:
    with looking(Look(style="grey")):
        for figure in some().values():
            for line in figure.findobj(Line2D):
                assert isinstance(line, Line2D)
                r, g, b, _ = to_rgba(line.get_color())
                assert r == g == b


def test_grey_lines_differ_in_dashes_and_the_legend_follows() -> None:
    with looking(Look(style="grey")), page(3.33, 3) as figure:
        ax = figure.add_subplot()
        for number in range(4):
            ax.plot([0, 1], [number, number], label=f"line {number}")
        ax.plot([0, 1], [5, 5], color="black", label="bound")
        figure.legend(loc="outside lower center")
    drawn = [line._dash_pattern for line in ax.lines]
    assert len({str(dashes) for dashes in drawn[:4]}) == 4 and drawn[4] == (0, None)
    assert [str(h._dash_pattern) for h in figure.legends[0].legend_handles] == [str(dashes) for dashes in drawn]


def test_grey_lines_with_one_marker_get_their_own_and_none_is_the_bounds() -> None:
    with looking(Look(style="grey")), page(3.33, 3) as figure:
        ax, plain = figure.subplots(2)
        for number in range(7):
            ax.plot([0, 1], [number, number], marker="o", label=f"line {number}")
        for number, colour in enumerate(("#0072B2", "#E69F00", "#D55E00")):
            plain.plot([0, 1], [number, number], color=colour, label=f"schedule {number}")
        plain.plot([0, 1], [5, 5], "--", label="sawtooth")
        plain.plot([0, 1], [6, 6], color="black", label="the bound")
        ax.legend()
    handles = ax.get_legend().legend_handles
    assert len({line.get_marker() for line in ax.lines}) == 7
    assert [h.get_marker() for h in handles] == [line.get_marker() for line in ax.lines]
    assert len({str(line._dash_pattern) for line in plain.lines}) == 5


def test_log_is_refused_where_nothing_can_be_logarithmic() -> None:
    with looking(Look(log=True)):
        assert segments_figure(Gemm(12, 12, 12), 40).axes[0].get_yscale() == "log"
        with pytest.raises(InputError, match="no axis of values"):
            walk_figure([parse_order("row")], 8, 8, OrderParams())


@pytest.mark.parametrize(
    "look", [Look(), Look(width_inches=3.33), Look(width_inches=7.0), Look(width_inches=3.33, points=10)]
)
def test_each_gpu_is_named_at_its_own_line(look: Look) -> None:
    with looking(look):
        figure = ski_slope_figure(ski_slope(Gemm(8192, 8192, 8192), ("row",), points=4))
    ax = figure.axes[0]
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    above = [text for text in ax.texts if text.get_gid() is None]
    names = {text.get_text(): text.get_window_extent(canvas.get_renderer()) for text in above}
    sizes = {sku.partition("-")[0]: load_machine(sku).l2_bytes / 2**20 for sku in MARKED}
    lines = {name: ax.transData.transform((size, 1.0))[0] for name, size in sizes.items()}
    assert {"a40", "h100", "b200"} <= set(names) <= set(sizes)  # as many as stand apart
    for name, box in names.items():
        middle = (box.x0 + box.x1) / 2
        assert min(lines, key=lambda other: abs(lines[other] - middle)) == name
    assert not any(item.overlaps(other) for item, other in combinations(names.values(), 2))


def test_a_ski_slope_has_two_bounds_of_two_names_and_no_order_below_that_of_kernels() -> None:
    ax = ski_slope_figure(ski_slope(Gemm(8192, 8192, 8192), ("grouped-8",), points=12)).axes[0]
    curves = {str(line.get_label()): line for line in ax.lines}
    own, alone = curves["kernel bound: cache and SMs"], curves["cache-only bound, which kernels may beat"]
    assert not any("proved bound" in label for label in curves)
    order = curves["grouped-8, LRU"]
    size, traffic = order.get_xdata()[0], order.get_ydata()[0]
    assert np.interp(size, own.get_xdata(), own.get_ydata()) < traffic < np.interp(size, *alone.get_data())


def test_the_bound_of_what_is_simulated_is_below_every_order() -> None:
    slope = ski_slope(Gemm(1024, 1024, 1024), ("row", "grouped-8"), points=8)
    for traffic in slope.orders.values():
        for cache, value in zip(slope.order_caches, traffic, strict=True):
            below = [bound for c, bound in zip(slope.caches, slope.kernel_lower, strict=True) if c >= cache]
            assert not below or value >= below[0]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--width", "wide"], "column, text or inches"),
        (["--width", "1"], "2 to 20 inches"),
        (["--font", "serif:99"], "5 to 24 points"),
        (["--font", "No Such Face"], "an installed typeface"),
        (["--style", "pretty"], "colour, grey"),
        (["--style", "missing.mplstyle"], "cannot be read"),
    ],
)
def test_one_sentence_for_a_look_that_is_none(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "f.svg")
    assert main(["figure", "segments", "gemm", "-m", "9", "-n", "9", "-k", "9", "--out", out, *words]) == 2
    assert why in capsys.readouterr().err


def test_a_look_needs_a_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *GEMM, "--cache", "1MiB", "--no-title"]) == 2
    assert "--no-title: got it without --figure" in capsys.readouterr().err


def test_a_style_file_of_ones_own(tmp_path: Path) -> None:
    style, out = tmp_path / "own.mplstyle", tmp_path / "f.svg"
    style.write_text("font.size: 11\naxes.spines.top: True\n")
    words = ["figure", "segments", "gemm", "-m", "9", "-n", "9", "-k", "9", "--out", str(out)]
    assert main([*words, "--style", str(style), "--width", "column"]) == 0
    assert "11px" in out.read_text()


def test_a_misspelt_setting_of_a_style_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    style = tmp_path / "own.mplstyle"
    style.write_text("font.size: 11\naxes.spine.top: True\n")
    words = ["figure", "segments", "gemm", "-m", "9", "-n", "9", "-k", "9", "--out", str(tmp_path / "f.svg")]
    assert main([*words, "--style", str(style)]) == 2
    spec = capsys.readouterr().err
    assert "'axes.spine.top'" in spec and "http" not in spec


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex here")
@pytest.mark.parametrize(
    "words",
    [
        "gemm -m 8192 -n 8192 -k 8192 --cache 40MiB",
        "attention --queries 32768 --keys 32768 --head-dim 128 --cache 228KiB",
        "ffn --tokens 8192 --d-model 4096 --hidden 11008 --gated --cache 6MiB",
    ],
)
def test_the_proof_is_set_within_its_margins(words: str, tmp_path: Path) -> None:
    source = tmp_path / "proof.tex"
    assert main(["prove", *words.split(), "--out", str(source)]) == 0
    text = source.read_text()
    for environment in ("theorem", "proof", "thebibliography"):
        assert f"\\begin{{{environment}}}" in text and f"\\end{{{environment}}}" in text
    for _ in range(2):
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", source.name],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout and "undefined" not in done.stdout
