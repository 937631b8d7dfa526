"""Figures that say what they show once, in type that runs over nothing, and with every value inside their axes."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from pebble.plots.gap import gap, gap_figure
from pebble.plots.labels import in_lines
from pebble.plots.look import WIDTHS_INCHES, Look, looking
from pebble.plots.segments import projections_figure
from pebble.reports.kernel_compare import Comparison, compare_kernels
from pebble.reports.time_concurrent import SideBySide, time_concurrent
from pebble.workloads import Gemm

COLUMN = Look(width_inches=WIDTHS_INCHES["column"])


def boxes(figure: Figure, texts: list[Text]) -> list[Bbox]:
    """Where texts stand, in pixels, once the figure is drawn."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return [text.get_window_extent(canvas.get_renderer()) for text in texts]


@pytest.fixture(scope="module")
def found() -> Comparison:
    names = "row,cutlass2-horizontal,column,hilbert,grouped-8,cutlass3-8,row+sawtooth"
    return compare_kernels(Gemm(2048, 1024, 512), names, cache="1MiB", sms=16)


def test_schedules_with_one_bar_share_it_and_its_name_says_so(found: Comparison) -> None:
    ax = found.figure().axes[0]
    shown = [(t.dram_read_bytes, t.dram_write_bytes, found.lru_bytes.get(t.order)) for t in found.orders]
    names = [" ".join(label.get_text().split()) for label in ax.get_yticklabels()]
    assert len(names) == len(set(shown)) < len(shown)
    assert sorted(", ".join(names).split(", ")) == sorted(t.order for t in found.orders)
    assert len(ax.texts) == len(names)  # a number for each bar


def test_a_bar_of_many_says_how_many(found: Comparison) -> None:
    alike = tuple(replace(found.orders[0], order=f"snake-strips-{i + 10}+sawtooth") for i in range(9))
    ax = replace(found, orders=alike, alternatives={}).figure().axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["snake-strips-10+sawtooth and 8 more"]


def test_equals_in_the_table_are_equals_in_the_figure(found: Comparison) -> None:
    together = found.together(lambda t: found.lru_bytes.get(t.order))
    of = {t.order: bar for bar, tied in enumerate(together) for t in tied}
    assert all(len({of[t.order] for t in tied}) == 1 for tied in found.equals)


def test_bars_of_a_mark_of_their_own_stay_apart(found: Comparison) -> None:
    lru = {t.order: 1000 * place for place, t in enumerate(found.orders)}
    ax = replace(found, alternatives={"lru": lru}).figure().axes[0]
    assert len(ax.get_yticks()) == len(found.orders)


@pytest.mark.parametrize("points", [8, 10])
def test_long_names_leave_the_bars_of_a_column_room(found: Comparison, points: int) -> None:
    first = found.orders[0]
    many = tuple(replace(first, order=f"separate:thunderkittens-{i % 10}+saw{i}") for i in range(60))
    lru = {t.order: first.dram_bytes + i for i, t in enumerate(many)}
    with looking(replace(COLUMN, points=points)):
        figure = replace(found, orders=many, alternatives={"lru": lru}).figure()
    ax = figure.axes[0]
    labels = list(ax.get_yticklabels())
    at = boxes(figure, [*labels, *ax.texts])
    names, numbers = at[: len(labels)], at[len(labels) :]
    for column in (names, numbers):
        assert all(above.y0 >= below.y1 - 1 for above, below in pairwise(column))
    assert min(box.x0 for box in names) >= 0 and max(box.x1 for box in numbers) <= figure.bbox.width + 1
    assert all(text.get_fontsize() >= points for text in (*labels, *ax.texts))
    assert ax.get_window_extent().width > figure.bbox.width * (0.4 if points == 8 else 0.25)
    assert figure.get_figheight() < 10 * points / 8
    assert f"best {len(labels)}; {60 - len(labels)} more" in " ".join(ax.get_xlabel().split())


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("row", ["row"]),
        ("row and 2 more", ["row and 2 more"]),
        ("grouped-8+sawtooth and 2 more", ["grouped-8+sawtooth", "and 2 more"]),
        ("separate:thunderkittens-8+sawtooth", ["separate:thunderkittens-8", "+sawtooth"]),
        ("separate:cutlass2-horizontal+sawtooth", ["separate:", "cutlass2-horizontal", "+sawtooth"]),
        ("row, morton, grouped-8+sawtooth", ["row, morton,", "grouped-8+sawtooth"]),
        ("row, cutlass2-horizontal+sawtooth", ["row,", "cutlass2-horizontal", "+sawtooth"]),
        ("x" * 60, ["x" * 25, "x" * 25, "x" * 10]),
        (":" * 30, [":" * 25, ":" * 5]),
    ],
)
def test_names_break_where_their_parts_meet(name: str, lines: list[str]) -> None:
    assert in_lines(name, 25).split("\n") == lines


@pytest.mark.parametrize("width", [None, *WIDTHS_INCHES.values()])
def test_schedules_of_one_energy_share_a_bar(width: float | None) -> None:
    orders = "row,row+sawtooth,column,hilbert,morton"
    result = compare_kernels(Gemm(2048, 2048, 2048), orders, gpu="a40", energy="7nm", tile="128x128")
    assert len({(t.dram_bytes, t.l2_bytes) for t in result.orders}) < len(result.orders)
    with looking(Look(width_inches=width)):
        figure = result.energy_figure()
    (ax,) = figure.axes
    labels = ax.get_yticklabels()
    shown = [label.get_text() for label in labels]
    assert shown[0] == "at the bounds"
    assert sorted(", ".join(shown[1:]).replace("\n", " ").split(", ")) == sorted(t.order for t in result.orders)
    ends = {round(max(p.get_x() + p.get_width() for p in ax.patches if p.get_y() < at < p.get_y() + 0.75), 12)
            for at in ax.get_yticks()}  # fmt: skip
    assert len(ends) == len(shown), "no two bars alike"
    names = boxes(figure, labels)
    assert not any(Bbox.intersection(item, other) for item, other in combinations(names, 2))


@pytest.mark.parametrize("width", [None, *WIDTHS_INCHES.values()])
@pytest.mark.parametrize(
    ("gemm", "capacity"),
    [
        (Gemm(8192, 8192, 8192), 40 * 2**19),
        (Gemm(400, 400, 10), 400),
        (Gemm(4096, 3, 4096), 3 * 2**20),
        (Gemm(3, 4096, 4096), 3 * 2**20),
        (Gemm(2, 2, 90000), 2**20),
        (Gemm(90000, 2, 2), 2**20),
    ],
)
def test_texts_of_the_box_run_over_no_face(gemm: Gemm, capacity: int, width: float | None) -> None:
    with looking(Look(width_inches=width)):
        figure = projections_figure(gemm, capacity)
    (ax,) = figure.axes
    title: Text = getattr(ax, "_left_title")  # noqa: B009 - the only way to a title at the left
    top, *at = boxes(figure, [title, *ax.texts])  # drawn once, as it is for a file
    assert top.y1 <= figure.bbox.height and min(box.y0 for box in at) > 0
    faces = [patch.get_path().transformed(patch.get_transform()) for patch in ax.patches]
    for text, box in zip(ax.texts, at, strict=True):
        points = [(box.x0 + box.width * x / 9, box.y0 + box.height * y / 9) for x in range(10) for y in range(10)]
        within = [face.contains_points(points) for face in faces]
        if len(text.get_text()) == 1:
            assert any(inside.all() for inside in within), text
        else:
            assert not any(inside.any() for inside in within), text
    assert not any(Bbox.intersection(item, other) for item, other in combinations(at, 2))
    said = " ".join(text.get_text() for text in figure.legends[0].get_texts())
    assert all(name in said for name in ("A: ", "B: ", "C: ", " rows, ", " columns, ", "depth ", "multiply-adds"))


@pytest.fixture(scope="module")
def beside() -> SideBySide:
    single, two = Gemm(512, 512, 512), Gemm(1024, 1024, 512)
    return time_concurrent(single, two, "row", "row", [2, 54, 90], gpu="a100-sxm4-40gb")


def inside(figure: Figure) -> bool:
    (ax,) = figure.axes
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    curves = [line for line in ax.lines if len(line.get_xdata()) > 2]
    assert len(curves) == 3
    return all(left <= x <= right and low <= y <= high for line in curves for x, y in line.get_xydata())


def test_no_curve_leaves_its_axes(beside: SideBySide) -> None:
    assert beside.splits[0].time.seconds > 3 * beside.in_turn_seconds
    far = beside.figure()
    assert inside(far) and far.axes[0].get_yscale() == "log" and "logarithmic" in far.axes[0].get_ylabel()
    near = replace(beside, splits=(beside.splits[1],) * 3).figure()
    assert inside(near) and near.axes[0].get_yscale() == "linear" and near.axes[0].get_ylim()[0] == 0


@pytest.mark.parametrize(("width", "unit"), [(None, "best schedule / proved bound"), (3.33, "in percent")])
def test_a_table_without_a_title_says_what_its_numbers_are(width: float | None, unit: str) -> None:
    result = gap(("llama-2-7b:qkv",), 512)
    fields = {}
    for title in (True, False):
        with looking(Look(width_inches=width, title=title)):
            figure = gap_figure(result)
        fields[title] = [" ".join(text.get_text().split()) for legend in figure.legends for text in legend.get_texts()]
        if not title:
            handles = [handle for legend in figure.legends for handle in legend.legend_handles]
            assert all(isinstance(handle, Line2D) for handle in handles)
            at = boxes(figure, list(figure.legends[0].get_texts()))
            assert max(box.x1 for box in at) <= figure.bbox.width
    assert fields[True] == []
    meaning, met = fields[False]
    assert unit in meaning and "512 tokens, bf16" in meaning and "moves once" in met
