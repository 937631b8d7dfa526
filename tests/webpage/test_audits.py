"""The page of an audit: what was measured beside what is proved, arcs between those that hand a tensor on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble.api.audits import _measured
from pebble.cli import main
from pebble.errors import InputError
from pebble.reports.audit import Audit
from pebble.webpage import audits
from pebble.webpage.documents import Document, read_document
from pebble.webpage.page import page_of
from pebble.webpage.report import save_answer
from tests.graphs.test_graph import A40, made


def document(result: Audit) -> Document:
    return Document("audit.json", "audit", json.loads(json.dumps(result.to_dict())), "")


def test_what_was_measured_stands_beside_what_is_proved() -> None:
    alone = Audit(made("relu"), A40).floors[0].alone_bytes
    result = Audit(made("relu"), A40, {"mm": 2 * alone})
    assert result.measured_over_alone == 2
    first, second = result.rows()
    assert (first["measured_bytes"], first["measured_over_alone"], second["measured_bytes"]) == (2 * alone, 2, None)
    assert "measured_bytes" not in Audit(made("relu"), A40).rows()[0]
    with pytest.raises(InputError, match=r"got 'mul', expected operations of test, such as mm, relu\."):
        Audit(made("relu"), A40, {"mul": 3})


def test_bytes_of_kernels_are_read_and_added(tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    path.write_text("operation,dram_bytes\nmm, 5\nrelu,7\nmm,6\n")
    assert _measured(path) == {"mm": 11, "relu": 7}
    path.write_text("operation,bytes\nmm,5\n")
    with pytest.raises(InputError, match="expected operation and dram_bytes"):
        _measured(str(path))
    path.write_text("operation,dram_bytes\nmm,5.5\n")
    with pytest.raises(InputError, match=r"got '5\.5' bytes of mm"):
        _measured(path)


def test_the_picture_has_every_operation_and_every_tensor_between() -> None:
    result = Audit(made("relu", "mask"), A40, {"mm": 1000})
    picture = audits.picture_of(document(result))
    assert [row.name for row in picture.rows] == ["mm", "relu", "mask"]
    assert {(writer, reader) for writer, reader, _ in picture.arcs} == {(0, 1), (1, 2)}
    assert picture.left_out == 0 and len(picture.saves) == 2
    ratio = 1000 / result.floors[0].alone_bytes
    assert picture.about.endswith(f"the kernel that was measured moves {ratio:.2f} times the proved least")
    drawn = audits.svg(picture, "a")
    assert "alone, in the graph, measured<" in drawn
    assert "measured" not in audits.svg(audits.picture_of(document(Audit(made("relu"), A40))), "a")
    assert drawn.count('class="alone"') == 3 and drawn.count('class="measured"') == 1
    widths = [float(width) for width in re.findall(r'class="(?:alone|fused)"[^>]*width="([0-9.]+)"', drawn)]
    assert max(widths) <= 250 and all(fused <= alone for alone, fused in zip(widths[::2], widths[1::2], strict=True))


def test_what_is_assumed_stands_on_the_page() -> None:
    result = pebble.audit("mixtral-8x7b", tokens=8, gpu="h200-sxm-141gb")
    assert audits.picture_of(document(result)).about.endswith(f"; {result.graph.assumption}")


@pytest.mark.parametrize(
    ("times", "message", "color"),
    [
        (108, "1.08x the proved least", "brightgreen"),
        (120, "1.20x the proved least", "green"),
        (250, "2.50x the proved least", "yellow"),
        (400, "4.00x the proved least", "orange"),
        (99, "0.99x the proved least", "lightgrey"),  # its operands were in the cache
    ],
)
def test_a_badge_says_how_many_times_the_proved_least(times: int, message: str, color: str) -> None:
    alone = Audit(made("relu"), A40).floors[0].alone_bytes
    badge = Audit(made("relu"), A40, {"mm": -(-times * alone // 100)}).badge
    assert badge == {"schemaVersion": 1, "label": "DRAM traffic", "message": message, "color": color}
    assert Audit(made("relu"), A40).badge is None


def test_a_badge_as_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured, badge = tmp_path / "kernels.csv", tmp_path / "badge.json"
    alone = pebble.audit("gpt2", tokens=64, gpu="a40").rows()[1]["alone_bytes"]
    measured.write_text(f"operation,dram_bytes\n0.norm_1,{2 * alone}\n")
    words = ["audit", "gpt2", "--tokens", "64", "--gpu", "a40", "--badge", str(badge)]
    assert main([*words, "--measured", str(measured)]) == 0
    assert json.loads(badge.read_text())["message"] == "2.00x the proved least"
    assert "1 kernel moves 2.00 times the proved least" in capsys.readouterr().out
    assert main(words) == 2
    assert "--badge: got no --measured" in capsys.readouterr().err
    measured.write_text("operation,dram_bytes\n")
    assert main([*words, "--measured", str(measured)]) == 2
    assert "expected one that moves something" in " ".join(capsys.readouterr().err.split())


def test_of_many_operations_those_that_move_most_are_drawn() -> None:
    spec: dict[str, Any] = Audit(made("relu"), A40).to_dict()
    row = {"kind": "elementwise", "fused_bytes": 0}
    spec["operations"] = [{"name": f"op{i}", "alone_bytes": i, **row} for i in range(audits.MOST + 5)]
    spec["between"] = [{"tensor": "t", "bytes": 8, "writer": "op1", "readers": ["op9"]}]
    picture = audits.picture_of(Document("audit.json", "audit", spec, ""))
    assert picture.left_out == 5 and picture.rows[0].name == "op5" and picture.arcs == ()


def test_a_page_and_a_file_show_the_same(tmp_path: Path) -> None:
    result = Audit(made("relu"), A40)
    save_answer(result, tmp_path / "audit.html")
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(result.to_dict()))
    assert read_document(path).kind == "audit"
    page = pebble.report(path)
    assert page.sections == {"audit": 1} and page.title == "test"
    assert page.html == (tmp_path / "audit.html").read_text()


def test_names_of_operations_are_text() -> None:
    spec: dict[str, Any] = Audit(made("relu"), A40).to_dict()
    spec["operations"][0]["name"] = "<script>alert(1)</script>"
    html, _ = page_of([Document("audit.json", "audit", spec, "")], "title")
    assert "<script>alert" not in html
