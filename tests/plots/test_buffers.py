"""The buffers figure."""

import warnings

import pytest

from pebble.cli import main
from pebble.plots.buffers import Chip, buffers_figure
from pebble.plots.look import WIDTHS_INCHES, Look, looking
from pebble.workloads import Attention, Gemm


def test_three_panels() -> None:
    for workload in (Gemm(512, 512, 512), Attention(512, 512, 64)):
        figure = buffers_figure(workload, [Chip("small", 16, 2**16)])
        assert len(figure.axes) == 3
        line = figure.axes[2].lines[0].get_ydata()
        assert list(line) == sorted(line)


def test_placement_from_the_command_line(tmp_path, capsys) -> None:
    out = tmp_path / "p.svg"
    assert main(["figure", "placement", "--grid", "8x8", "--sms", "4", "--out", str(out)]) == 0
    first = out.read_bytes()
    assert main(["figure", "placement", "--grid", "8x8", "--sms", "4", "--out", str(out)]) == 0
    assert out.read_bytes() == first
    assert main(["figure", "placement", "--grid", "8", "--out", str(out)]) == 2
    assert "16x16" in capsys.readouterr().err


@pytest.mark.parametrize("width", [None, *WIDTHS_INCHES.values()])
def test_panels_side_by_side_leave_each_other_room_for_legends(width: float | None) -> None:
    with looking(Look(width_inches=width)), warnings.catch_warnings():
        warnings.simplefilter("error")  # of a layout whose panels collapsed
        figure = buffers_figure(Gemm(1024, 1024, 1024), [Chip("A100", 108, 2**18), Chip("H200", 132, 2**18)])
    page = figure.bbox.width
    panels = sorted((ax.get_window_extent().x0, ax.get_window_extent().width) for ax in figure.axes)
    assert all(wide > page * (0.5 if width == WIDTHS_INCHES["column"] else 0.2) for _, wide in panels)
    legends = [legend.get_window_extent() for ax in figure.axes if (legend := ax.get_legend()) is not None]
    assert legends and all(box.x0 >= 0 and box.x1 <= page for box in legends)
