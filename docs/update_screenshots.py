"""Remake the screenshots that the documentation shows. Run from the repository root, with Playwright and a Chromium.

python docs/update_screenshots.py            # of the page of `pebble report`
python docs/update_screenshots.py FOLDER     # and of the documentation that Sphinx built there
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import pebble

FIGURES = Path("docs/figures")
DOCUMENTS = Path("tests/golden/documents")
SHOWN = ("compare-gemm-a100", "curve-gemm", "compare-mlp", "solve-gemm")
BROWSERS = (os.environ.get("PEBBLE_BROWSER", ""), "chromium", "chromium-browser", "google-chrome")
PHONE, DESK, NARROW = (360, 720), (1280, 900), (900, 800)
_BETWEEN = 10  # pixels


def opened(browser: Any, address: str, size: tuple[int, int], colours: str) -> Any:
    """A page of that size, in light or dark colours."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=colours)
    page = context.new_page()
    page.goto(address)
    page.wait_for_timeout(300)
    return page


def report_page(folder: Path) -> str:
    """The page of some recorded documents."""
    certificate = folder / "certificate.json"
    pebble.certify(pebble.Gemm(8192, 8192, 8192), certificate, cache="40MiB")
    path = folder / "report.html"
    pebble.report(*(DOCUMENTS / f"{name}.json" for name in SHOWN), certificate).save(path)
    return path.as_uri()


def of_report(browser: Any, folder: Path) -> None:
    """A walk, a curve, and four parts on a telephone."""
    address = report_page(folder)
    page = opened(browser, address, NARROW, "light")
    walk = page.locator("#walks article").first
    walk.get_by_role("combobox", name="order").first.select_option(label="grouped-8")
    walk.locator('[data-tile="0,3,4"]').first.hover()
    walk.screenshot(path=FIGURES / "report-walks.png")
    page = opened(browser, address, NARROW, "dark")
    page.locator("#curves article").first.screenshot(path=FIGURES / "report-curves.png")
    shots = []
    for section, colours in (("gap", "light"), ("walks", "dark"), ("bands", "light"), ("pebblings", "dark")):
        page = opened(browser, address, PHONE, colours)
        if section == "pebblings":
            game = page.locator("#pebblings .widget").first
            for _ in range(8):
                game.get_by_role("button", name="one step on").click()
        if section != "gap":
            page.evaluate("name => document.getElementById(name + '-h').scrollIntoView()", section)
        shots.append(folder / f"{section}.png")
        page.screenshot(path=shots[-1])
    beside(shots).save(FIGURES / "report-phone.png", optimize=True)


def beside(shots: list[Path]) -> Image.Image:
    """Pictures in a row."""
    images = [Image.open(shot).convert("RGB") for shot in shots]
    width = sum(image.width + _BETWEEN for image in images) - _BETWEEN
    row = Image.new("RGB", (width, max(image.height for image in images)), "#888888")
    at = 0
    for image in images:
        row.paste(image, (at, 0))
        at += image.width + _BETWEEN
    return row


def of_documentation(browser: Any, built: Path) -> None:
    """Formulas at both widths, and a tutorial."""
    for name, page, size, colours in (
        ("docs-theory", "theory", DESK, "light"),
        ("docs-theory-phone", "theory", PHONE, "dark"),
        ("docs-tutorial", "auto_tutorials/tutorial_3_architect", DESK, "light"),
    ):
        shown = opened(browser, (built / f"{page}.html").resolve().as_uri(), size, colours)
        shown.evaluate("() => document.querySelectorAll('h2')[1].scrollIntoView()")
        shown.screenshot(path=FIGURES / f"{name}.png")


if __name__ == "__main__":
    found = next(path for name in BROWSERS if name and (path := shutil.which(name)))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as temporary:
        running = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        of_report(running, Path(temporary))
        if sys.argv[1:]:
            of_documentation(running, Path(sys.argv[1]))
        running.close()
