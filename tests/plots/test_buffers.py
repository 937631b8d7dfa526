"""The buffers figure."""

from pebble.cli import main
from pebble.plots.buffers import Chip, buffers_figure
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
