"""The page in a real browser: nothing asked of a network, nothing wrong on the console, all of it by keyboard."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble.webpage.bands import bands_of
from pebble.webpage.documents import read_document
from pebble.webpage.drawing import bytes_text

pytestmark = pytest.mark.slow
GOLDEN = Path(__file__).parents[1] / "golden" / "documents"
NAMES = (
    "compare-gemm-a100", "compare-mlp", "compare-attention", "curve-gemm", "solve-gemm", "solve-buffers",
    "solve-diamond", "bound-ffn", "tune-gemm",
)  # fmt: skip
EVIL = "</script><script>document.title = 'broken'</script><img src=x onerror=\"document.title = 'broken'\">"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    names = (os.environ.get("PEBBLE_BROWSER", ""), "chromium", "chromium-browser", "google-chrome")
    result = next((path for name in names if name and (path := shutil.which(name))), None)
    if result is None:
        pytest.skip("no Chromium is installed; set PEBBLE_BROWSER to one")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=result, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    certificate = folder / "certificate.json"
    pebble.certify(pebble.Gemm(64, 64, 64), certificate, cache="1KiB")
    path = folder / "report.html"
    pebble.report(*(GOLDEN / f"{name}.json" for name in NAMES), certificate).save(path)
    return path.as_uri()


@pytest.fixture
def opened(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page; whatever it asks of a network or says on the console fails the test."""
    options = {"viewport": {"width": 1100, "height": 800}, "color_scheme": "light", **getattr(request, "param", {})}
    context = browser.new_context(**options)
    page = context.new_page()
    requested: list[str] = []
    said: list[str] = []
    page.on("request", lambda r: requested.append(r.url))
    page.on("console", lambda m: said.append(m.text))
    page.on("pageerror", lambda e: said.append(str(e)))
    page.goto(address)
    yield page
    assert [url for url in requested if not url.startswith((address, "data:"))] == []
    assert said == []
    context.close()


def focused(page: Any, within: str) -> bool:
    result: bool = page.evaluate("s => document.querySelector(s).contains(document.activeElement)", within)
    return result


def test_a_walk_by_buttons_slider_and_keys(opened: Any) -> None:
    walk = opened.locator("#walks .widget").first
    figures = walk.locator(".figures").first
    walk.get_by_role("button", name="to the start").click()
    assert figures.inner_text().startswith("Tile 0 of 576")
    assert walk.locator(".done").count() == 0
    walk.get_by_role("button", name="one step on").click()
    assert figures.inner_text().startswith("Tile 1 of 576: 131.1 kB")
    assert walk.locator(".view").first.locator(".now").count() == 1
    opened.keyboard.press("Shift+Tab")  # from the button to Play, by keyboard
    slider = walk.get_by_role("slider")
    slider.focus()
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("ArrowRight")
    assert figures.inner_text().startswith("Tile 3 of 576")
    opened.keyboard.press("End")
    assert figures.inner_text().startswith("Tile 576 of 576")
    assert walk.locator(".view").first.locator(".done").count() == 576
    walk.get_by_role("button", name="one step back").press("Enter")
    assert figures.inner_text().startswith("Tile 575 of 576")
    kinds = {name: walk.locator(f".{name} .glyph").count() for name in ("hit", "left", "right", "miss")}
    assert kinds["miss"] > 0 and kinds["left"] + kinds["right"] > 0


def test_a_walk_begins_where_the_best_has_fetched_less_than_the_worst(opened: Any) -> None:
    for walk in opened.locator("#walks .widget").all():
        fetched = []
        for figures in walk.locator(".figures").all_inner_texts():
            number, unit = re.findall(r": ([\d.]+) (\wB) fetched in all", figures)[0]
            fetched.append(float(number) * {"kB": 1e3, "MB": 1e6, "GB": 1e9}[unit])
            assert ". The whole problem moves " in figures
        best, worst = fetched
        assert best < worst


def test_a_walk_plays_and_pauses(opened: Any) -> None:
    walk = opened.locator("#walks .widget").first
    walk.get_by_role("button", name="to the start").click()
    walk.get_by_role("button", name="Play").press("Space")
    for _ in range(200):  # by evaluation, since the page's policy allows no waiting by text
        if int(walk.get_by_role("slider").input_value()) >= 5:
            break
        opened.wait_for_timeout(50)
    walk.get_by_role("button", name="Pause").press("Space")
    there = walk.get_by_role("slider").input_value()
    assert int(there) >= 5
    opened.wait_for_timeout(200)
    assert walk.get_by_role("slider").input_value() == there
    assert walk.get_by_role("button", name="Play").count() == 1


def test_a_tile_tells_itself_to_pointer_and_keys(opened: Any) -> None:
    view = opened.locator("#walks .view").first
    readout = view.locator(".readout")
    view.locator('[data-tile="0,3,5"]').hover()
    assert readout.inner_text().startswith("C tile (3, 5): number ")
    assert " of SM " in readout.inner_text() and " hit" in readout.inner_text()
    svg = view.locator("svg.walk")
    svg.focus()
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("ArrowRight")
    assert readout.inner_text().startswith("C tile (4, 6): number ")
    opened.keyboard.press("Enter")
    number = readout.inner_text().partition("number ")[2].partition(",")[0]
    assert view.locator(".figures").inner_text().startswith(f"Tile {number} of 576")
    assert view.locator('[data-tile="0,4,6"].now').count() == 1


def test_another_order_is_another_walk(opened: Any) -> None:
    view = opened.locator("#walks .view").first
    opened.locator("#walks .widget").first.get_by_role("slider").evaluate(
        "s => { s.value = 24; s.dispatchEvent(new Event('input')); }"
    )
    view.get_by_role("combobox", name="order").select_option(label="grouped-8+sawtooth")
    first = view.locator(".done").evaluate_all("tiles => tiles.map(t => t.dataset.tile)")
    view.get_by_role("combobox", name="order").select_option(label="cutlass2-horizontal")
    second = view.locator(".done").evaluate_all("tiles => tiles.map(t => t.dataset.tile)")
    assert len(first) == len(second) == 24 and first != second
    assert second == [f"0,0,{column}" for column in range(24)]


def test_a_curve_tells_its_values(opened: Any) -> None:
    curve = opened.locator("#curves .widget").first
    curve.locator("svg.plot").hover(position={"x": 300, "y": 200})
    assert curve.locator(".readout").inner_text().startswith("At ")
    curve.locator("svg.plot").focus()
    opened.keyboard.press("Home")
    assert "At 64 KiB: bound" in curve.locator(".readout").inner_text()
    opened.keyboard.press("ArrowRight")
    second = curve.locator(".readout").inner_text()
    assert second.startswith("At ") and "At 64 KiB" not in second
    opened.keyboard.press("ArrowLeft")
    assert "At 64 KiB" in curve.locator(".readout").inner_text()


def test_band_heights_by_slider(opened: Any) -> None:
    bands = opened.locator("#bands .widget").first
    readout, slider = bands.locator(".readout"), bands.get_by_role("slider", name="rows of a band")
    spec = bands_of(read_document(GOLDEN / "compare-mlp.json"))
    assert spec is not None
    least = min((height for height in spec.heights if height["moved_bytes"]), key=lambda h: h["moved_bytes"])
    shown = f"{least['rows']} rows a band, {least['bands']} bands; moves {bytes_text(least['moved_bytes'])}"
    assert shown in readout.inner_text()
    slider.focus()
    opened.keyboard.press("Home")
    assert "rows a band, 256 bands" in readout.inner_text()
    opened.keyboard.press("End")
    assert readout.inner_text().startswith("8192 rows a band, 1 band;")
    assert "row-fused-64 (8192 rows) simulated: 9.538 GB" in readout.inner_text()
    bands.locator("svg.plot").focus()
    opened.keyboard.press("ArrowLeft")
    assert readout.inner_text().startswith("4096 rows a band")


def test_a_pebbling_by_buttons_and_keys(opened: Any) -> None:
    game = opened.locator("#pebblings .widget").first
    readout = game.locator(".readout")
    assert readout.inner_text().startswith("Before the first move. Loads 0, stores 0")
    assert game.locator(".in-blue").count() == 8 and game.locator(".in-red").count() == 0
    game.get_by_role("button", name="one step on").click()
    assert readout.inner_text().startswith("Move 1 of 34: load A[0,0]. Loads 1")
    assert game.locator(".in-red.now").count() == 1
    game.locator("svg.dag").focus()
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("ArrowRight")
    assert readout.inner_text().startswith("Move 3 of 34: compute C[0,0]")
    assert game.locator(".edge.on").count() > 0
    opened.keyboard.press("End")
    assert "Loads 9, stores 4; values in fast memory 0." in readout.inner_text()
    assert game.locator(".in-blue").count() == 12
    opened.keyboard.press("ArrowLeft")
    assert readout.inner_text().startswith("Move 33 of 34")


def test_pebbles_of_several_sms(opened: Any) -> None:
    game = opened.locator("#pebblings .widget").nth(1)
    game.get_by_role("button", name="to the end").click()
    assert "Loads 4, stores 4, copies 2" in game.locator(".readout").inner_text()


def test_colours_follow_the_system_and_the_button(opened: Any) -> None:
    def paper() -> str:
        result: str = opened.evaluate("getComputedStyle(document.body).backgroundColor")
        return result

    button = opened.get_by_role("button", name="Dark colours")
    light = paper()
    assert (light, button.get_attribute("aria-pressed")) == ("rgb(255, 255, 255)", "false")
    button.focus()
    opened.keyboard.press("Enter")
    assert paper() != light and button.get_attribute("aria-pressed") == "true"
    button.click()
    assert paper() == light and button.get_attribute("aria-pressed") == "false"
    opened.emulate_media(color_scheme="dark")
    assert paper() == light  # what was chosen stays
    opened.reload()
    assert paper() != light and button.get_attribute("aria-pressed") == "true"


def test_every_control_is_reached_by_tab_and_has_a_name(opened: Any) -> None:
    unnamed = opened.evaluate(
        """[...document.querySelectorAll("button, select, input, a, svg[tabindex]")].filter((e) =>
             !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length ||
               e.getAttribute("aria-labelledby"))).map((e) => e.outerHTML)"""
    )
    assert unnamed == []
    opened.keyboard.press("Tab")
    assert focused(opened, ".skip")
    reached = set()
    for _ in range(120):
        opened.keyboard.press("Tab")
        reached |= {part for part in ("#walks", "#bands", "#pebblings", "#curves") if focused(opened, part)}
    assert reached == {"#walks", "#bands", "#pebblings", "#curves"}


@pytest.mark.parametrize(
    "opened",
    [{"viewport": {"width": w, "height": 740}, "color_scheme": c} for w in (360, 1100) for c in ("light", "dark")],
    indirect=True,
)  # fmt: skip
def test_the_body_never_scrolls_sideways_and_text_has_contrast(opened: Any) -> None:
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.locator("details").first.evaluate("d => { d.open = true; }")
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ratios = opened.evaluate(
        """() => {
          const light = (text) => {
            const [r, g, b] = text.match(/[0-9.]+/g).map((v) => v / 255)
              .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const paper = (e) => {
            for (let at = e; at; at = at.parentElement) {
              const colour = getComputedStyle(at).backgroundColor;
              if (!colour.startsWith("rgba(0, 0, 0, 0")) return light(colour);
            }
          };
          return [...document.querySelectorAll("p, th, td, li, small, a, h2, h3, button")].map((e) => {
            const [a, b] = [light(getComputedStyle(e).color), paper(e)].sort((x, y) => y - x);
            return (a + 0.05) / (b + 0.05);
          });
        }"""
    )
    assert min(ratios) >= 4.5


def test_markup_of_a_document_never_runs(browser: Any, tmp_path: Path) -> None:
    text = (GOLDEN / "compare-gemm-a100.json").read_text().replace("gemm m=8192 n=8192 k=8192 bf16", "LABEL")
    path = tmp_path / "d.json"
    path.write_text(text.replace("LABEL", EVIL.replace('"', '\\"')))
    moves = tmp_path / "s.json"
    name = EVIL.replace('"', '\\"')
    moves.write_text(
        f'{{"instance": "{name}", "capacity": 3, "variant": "one-shot", "moves": [["load", "{name}"], ["load", "a"]]}}'
    )
    out = tmp_path / "report.html"
    pebble.report(path, moves, title="whole").save(out)
    page = browser.new_page()
    page.goto(out.as_uri())
    page.get_by_role("button", name="one step on").last.click()
    assert page.title() == "whole"
    assert page.locator("img").count() == 0 and page.locator("script").count() == 2
    assert EVIL in page.locator("#gap h3").inner_text()
    assert EVIL[:100] in page.locator("#pebblings .readout").inner_text()
    page.close()


def test_print_shows_tables_and_no_controls(opened: Any) -> None:
    opened.emulate_media(media="print")
    assert opened.locator("#gap table").first.is_visible()
    assert not opened.locator(".controls").first.is_visible() and not opened.locator("#theme").is_visible()


def test_rows_of_a_sweep_are_narrowed_by_words(browser: Any, tmp_path: Path) -> None:
    rows = [
        {"workload": f"gemm {size}", "machine": machine, "schedule": "row", "dram_bytes": size}
        for size in (100, 200, 300)
        for machine in ("a40", "l40s")
    ]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"store": "s", "columns": {}, "rows": rows}))
    pebble.report(path).save(tmp_path / "report.html")
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    visible = page.locator("#sweeps tbody tr:visible")
    assert visible.count() == 6
    page.get_by_label("show rows with").fill("L40S 200")
    assert visible.count() == 1 and "gemm 200" in visible.inner_text()
    assert page.get_by_text("1 of 6 rows").is_visible()
    page.close()
