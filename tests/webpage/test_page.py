"""The page: well-formed, alone, its data as they were, and what files hold stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble.cli import main
from pebble.errors import InputError
from pebble.webpage.page import json_for_html

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
ALL = (
    "compare-gemm-a100", "compare-mlp", "compare-attention", "compare-grouped", "compare-gemm-exact",
    "compare-gemm-cluster", "curve-gemm", "curve-mlp", "bound-ffn", "bound-dag", "solve-gemm", "solve-buffers",
    "solve-diamond", "replay-gemm", "simulate-gemm", "tune-gemm", "verify-gemm",
)  # fmt: skip
EMPTY = {"meta", "link", "input", "br", "img", "hr", "wbr", "col"}


class Shape(HTMLParser):
    """Every element that begins ends, in order; what elements and attributes there are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += [(tag, key, value or "") for key, value in attrs]
        self.ids += [value or "" for key, value in attrs if key == "id"]
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> at {self.getpos()}"


@pytest.fixture(scope="module")
def page() -> pebble.WebPage:
    folder = Path(__file__).parents[1] / "golden" / "documents"
    return pebble.report(*(folder / f"{name}.json" for name in ALL), title="All of it")


def test_a_page_of_everything_is_well_formed(page: pebble.WebPage) -> None:
    shape = Shape(page.html)
    assert shape.open == []
    assert len(shape.ids) == len(set(shape.ids))
    wanted = {"gap": 10, "curves": 2, "walks": 3, "bands": 1, "pebblings": 4, "certificates": 1}
    assert page.sections == wanted
    headings = [value for tag, key, value in shape.attributes if tag == "section" and key == "id"]
    assert headings == list(wanted)
    assert page.html.startswith("<!DOCTYPE html>") and "{{" not in re.sub(r"<script>.*", "", page.html, flags=re.DOTALL)


def test_nothing_is_loaded_and_only_its_own_script_runs(page: pebble.WebPage) -> None:
    shape = Shape(page.html)
    links = [v for tag, key, v in shape.attributes if key in ("src", "href", "xlink:href", "action", "data", "srcset")]
    assert links and all(link.startswith(("#", "data:")) for link in links)
    assert "@import" not in page.html and "url(http" not in page.html
    assert not [key for _, key, _ in shape.attributes if key.startswith("on")]
    assert shape.seen.count("script") == 2
    (script,) = re.findall(r"<script>(.*?)</script>", page.html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page.html
    assert "innerHTML" not in script and "eval(" not in script


def test_every_picture_and_control_has_a_name(page: pebble.WebPage) -> None:
    pictures = re.findall(r"<svg [^>]*>", page.html)
    assert pictures and all("aria-labelledby=" in p or "aria-hidden=" in p for p in pictures)
    shape = Shape(page.html)
    for tag, key, value in shape.attributes:
        if key == "aria-labelledby":
            assert value in shape.ids, (tag, value)


def test_data_come_back_as_they_were(
    golden: Callable[..., list[str]], data_of: Callable[[str], dict[str, Any]], page: pebble.WebPage
) -> None:
    data = data_of(page.html)
    document = json.loads(Path(golden("curve-gemm")[0]).read_text())
    series = {s["name"]: s["values"] for s in data["curve0"]["series"]}
    assert series == {
        "proved lower bound": document["lower_bound_bytes"],
        **{s["name"]: s["dram_bytes"] for s in document["schedules"]},
    }
    moves = json.loads(Path(golden("solve-diamond")[0]).read_text())["moves"]
    entries = [move[4].split()[:2] for move in data["pebbling2"]["moves"]]
    assert entries == moves
    assert {d["kind"] for d in data.values()} == {"curve", "walk", "bands", "pebbling"}


def test_markup_in_a_document_stays_text(
    golden: Callable[..., list[str]], data_of: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    files = []
    for name in ("compare-gemm-a100", "curve-gemm", "solve-gemm", "simulate-gemm"):
        document = json.loads(Path(golden(name)[0]).read_text())
        document["notes"] = [EVIL]
        if "workload" in document:
            document["workload"]["label"] = EVIL
        if "machine" in document:
            document["machine"]["name"] = EVIL
        if name.startswith("curve"):
            document["schedules"][0]["name"] = EVIL
        if name.startswith("solve"):
            document |= {"instance": EVIL, "moves": [["load", EVIL], ["compute", "c"], ["store", "c"]]}
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps(document))
    certificate = tmp_path / "a&b'.json"
    certificate.write_text(json.dumps({"format": EVIL, "statement": {}, "claims": []}))
    html = pebble.report(*files, certificate, title=EVIL).html
    shape = Shape(html)
    assert shape.open == []
    assert shape.seen.count("script") == 2 and "img" not in shape.seen
    assert not [key for _, key, _ in shape.attributes if key.startswith("on")]
    data = data_of(html)
    assert EVIL in [s["name"] for s in data["curve0"]["series"]]
    assert data["pebbling0"]["nodes"][0]["name"] == EVIL


@pytest.mark.parametrize("text", [EVIL, "<!--", "]]>", "\u2028", "&amp;", "\ud800"])
def test_json_in_a_page_has_nothing_of_html(text: str) -> None:
    written = json_for_html({text: [text]})
    assert not set("<>&") & set(written) and written.isascii()
    assert json.loads(written) == {text: [text]}


def test_a_certificate_is_checked_and_can_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    pebble.certify(pebble.Gemm(64, 64, 64), path, cache="1KiB")
    html = pebble.report(path).html
    assert "✓ verified" in html and "moves at least" in html
    (link,) = re.findall(r'<a download="c.json" href="data:application/json;base64,([^"]*)"', html)
    assert base64.b64decode(link) == path.read_bytes()
    document = json.loads(path.read_text())
    document["claims"][0]["elements"] += 1
    path.write_text(json.dumps(document))
    html = pebble.report(path).html
    assert "✗ refused" in html and "✓" not in html


def test_the_command_writes_it(
    golden: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.html"
    assert main(["report", *golden("simulate-gemm"), "--out", str(out)]) == 0
    assert "gap (1)" in capsys.readouterr().out
    assert out.read_text() == pebble.report(*golden("simulate-gemm")).html
    assert main(["report", *golden("solve-gemm"), "--out", str(out), "--title", "Mine", "--json"]) == 0
    spec = json.loads(capsys.readouterr().out)
    assert spec["sections"] == {"pebblings": 1} and spec["sources"] == ["solve-gemm.json"]
    assert spec["page_bytes"] == out.stat().st_size and "<title>Mine</title>" in out.read_text()


def test_the_title_says_what_the_page_is_about(golden: Callable[..., list[str]]) -> None:
    assert pebble.report(*golden("solve-diamond")).title == "diamond --size 4"
    assert pebble.report(*golden("compare-mlp")).title == "llama-2-7b:mlp"
    page = pebble.report(*golden("compare-gemm-a100", "curve-gemm", "solve-gemm", "solve-diamond"))
    assert page.title == "gemm m=8192 n=8192 k=8192 bf16; gemm -m 2 -n 2 -k 2; and 1 more"
    assert f"<title>{page.title}</title>" in page.html and f"<h1>{page.title}</h1>" in page.html


def test_bars_on_a_log_scale_have_an_axis(golden: Callable[..., list[str]]) -> None:
    """The length of each bar is where its value lies between the ticks that stand above it."""
    html = pebble.report(*golden("compare-gemm-a100")).html
    powers = {"MB": 1e6, "GB": 1e9}
    ticks = [
        (float(percent), float(number) * powers[unit])
        for percent, number, unit in re.findall(r'<i style="left:([\d.]+)%">([\d.]+) (\wB)</i>', html)
    ]
    assert len(ticks) == 3
    (left, low), *_, (right, high) = ticks
    bars = re.findall(r'<td>([\d,.]+) MB</td><td>[\d.]+×</td><td class="bar"><span style="width:([\d.]+)%">', html)
    assert len(bars) > 20
    for traffic, width in bars:
        size = float(traffic.replace(",", "")) * 1e6
        assert float(width) == pytest.approx(
            left + (right - left) * math.log(size / low) / math.log(high / low), abs=0.1
        )


def test_saving_elsewhere_is_refused(golden: Callable[..., list[str]], tmp_path: Path) -> None:
    result = pebble.report(*golden("solve-gemm"))
    assert result.rows() == [{"section": "pebblings", "entries": 1}] and "pebblings 1" in str(result)
    for path in (tmp_path / "page.pdf", tmp_path / "nowhere" / "page.html"):
        with pytest.raises(InputError, match=r"^out"):
            result.save(path)
    with pytest.raises(InputError, match=r"^title"):
        pebble.report(*golden("solve-gemm"), title="")
