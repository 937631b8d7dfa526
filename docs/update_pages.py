"""Remake what the pages and the README show: numbers, output, figures. Run from the repository root.

    python docs/update_pages.py                            # everything, many minutes
    python docs/update_pages.py questions buffers          # these pages
    python docs/update_pages.py 03 11                      # these questions, the others as they are in the page
    python docs/update_pages.py README.md docs/tile.rst    # the output that they quote, the numbers that they claim

docs/questions.rst is made from docs/questions/*.jinja, a page such as docs/buffers.md from docs/pages/buffers.md.jinja;
of any other page the quoted output is made anew (`quoted`), and the numbers of its words and tables (`claims`); a quote
that leaves something out is named where it is stale, and so are words that are no longer so.

A template runs its commands (``run``), shows them (``shown``) and quotes what they print. ``holds`` says what the words
around the numbers claim; where that is no longer so the page is not written. A template that takes long says ``slow``
in its first line.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import json
import math
import os
import pkgutil
import shlex
import statistics
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from pebble.cli import main
from pebble.units import format_bytes, format_capacity

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))
import claims  # noqa: E402
import quoted  # noqa: E402

PAGE = DOCS / "questions.rst"
TEMPLATES = sorted((DOCS / "questions").glob("*.jinja"))
PAGES = sorted((DOCS / "pages").glob("*.jinja"))
MADE = [PAGE, *(DOCS / template.stem for template in PAGES)]
QUOTING = [
    DOCS.parent / "README.md",
    *(path for path in sorted(DOCS.glob("*.*")) if path.suffix in (".md", ".rst") and path not in MADE),
]
FIGURES = "docs/figures/"
WIDTH = 120
BETWEEN = "\n\n..\n   {}\n\n"  # a comment that tells where a question begins


class Answer(dict[str, Any]):
    """What a command printed with ``--json``, and the command."""

    command: str


def run(command: str, figures: str) -> Answer:
    """The document of a command; its figures go to the folder ``figures``.

    Raises
    ------
    RuntimeError
        The command failed.
    """
    words = shlex.split(command.replace(FIGURES, figures))
    if words[0] == "pebble":
        out = io.StringIO()
        with contextlib.redirect_stdout(out), quoted.patience(words[1]):
            failed, printed = main([*words[1:], "--json"]), out.getvalue()
    else:
        path = os.pathsep.join([str(DOCS.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run(
            [sys.executable, *words[1:], "--json"], cwd=DOCS.parent, env=os.environ | {"PYTHONPATH": path},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        failed, printed = done.returncode, done.stdout
    if failed:
        raise RuntimeError(f"{command}: exit code {failed}")
    answer = Answer(json.loads(printed[printed.index("{") :]))  # after what a library says of itself as it is loaded
    answer.command = " ".join(command.split())
    return answer


@functools.cache
def _remembered(command: str, figures: str) -> Answer:
    return run(command, figures)


def shown(*answers: Answer) -> str:
    """The commands as a block of the page, long ones over several lines."""
    lines = []
    for answer in answers:
        first, *rest = textwrap.wrap(
            answer.command, WIDTH - 10, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
        lines.append(" \\\n".join([f"   $ {first}", *(f"     {line}" for line in rest)]))
    return ".. code-block:: console\n\n" + "\n".join(lines)


def holds(claim: object) -> str:
    """Nothing, if the claim of the sentence is true.

    Raises
    ------
    AssertionError
        It is not: the sentence must be written anew.
    """
    if not claim:
        raise AssertionError("a sentence of the page is no longer what the commands say: write it anew.")
    return ""


def named(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The schedule of that name in a document."""
    return next(row for row in document["schedules"] if row["name"] == name)


def rows(path: str, **wanted: object) -> list[dict[str, Any]]:
    """Of a recorded CSV, those with these values in these columns; numbers as numbers."""
    with (DOCS.parent / path).open(newline="") as file:
        results = [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(file)]
    return [row for row in results if all(row[name] == value for name, value in wanted.items())]


def _value(text: str) -> str | int | float:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def plateau(curve: dict[str, Any], name: str, at_bytes: int) -> list[int]:
    """The smallest and the largest cache of a curve between which a schedule moves what it moves at ``at_bytes``."""
    sizes, traffic = curve["capacities_bytes"], named(curve, name)["dram_bytes"]
    first = last = sizes.index(at_bytes)
    while first > 0 and traffic[first - 1] == traffic[last]:
        first -= 1
    while last + 1 < len(sizes) and traffic[last + 1] == traffic[first]:
        last += 1
    return [sizes[first], sizes[last]]


def number(value: float, digits: int = 3) -> str:
    """So many digits, with commas."""
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{decimals}f}"


def filled(text: str) -> str:
    """Paragraphs of running text, to the width of the page; everything else as it is."""
    parts = []
    for part in text.split("\n\n"):
        lines = part.strip("\n").split("\n")
        ruled = any(line and not line.strip("=-~") for line in lines)
        plain = not ruled and not any(line.startswith((" ", "..", "- ", "=", "|", "#", "!")) for line in lines)
        parts.append(textwrap.fill(" ".join(lines), WIDTH, break_on_hyphens=False) if plain else "\n".join(lines))
    return "\n\n".join(part for part in parts if part.strip()) + "\n"


def told(template: str, figures: str = FIGURES) -> str:
    """A template with its commands run and its numbers filled in."""
    env = Environment(
        extensions=["jinja2.ext.do"], undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    env.filters.update(
        size=format_bytes, memory=format_capacity, n=number, percent=lambda share: f"{share:.0%}",
        times=lambda value: f"{value:.2f}", mb=lambda size: f"{size / 1e6:,.0f}", median=statistics.median,
    )  # fmt: skip
    env.globals.update(
        run=lambda command: _remembered(command, figures),
        shown=shown,
        holds=holds,
        named=named,
        plateau=plateau,
        recorded=lambda path: (DOCS.parent / path).read_text().strip(),
        rows=rows,
        constant=pkgutil.resolve_name,
    )
    return env.from_string(template).render()


def rendered(template: Path, figures: str = FIGURES) -> str:
    """A question, or a whole page, from its template."""
    try:
        return filled(told(template.read_text(), figures))
    except AssertionError as error:
        raise AssertionError(f"{template.name}: {error}") from error


def sections(page: str) -> dict[str, str]:
    """The questions of a page, by the name of their template."""
    result = {}
    for template in TEMPLATES:
        mark = BETWEEN.format(template.stem)
        if mark in page:
            rest = page.split(mark, 1)[1]
            result[template.stem] = rest.split("\n\n..\n   ", 1)[0].rstrip("\n") + "\n"
    return result


def is_slow(template: Path) -> bool:
    """Whether its commands take more than some seconds."""
    return "slow" in template.read_text().split("\n", 1)[0]


def assembled(result: dict[str, str]) -> str:
    """The page of these questions, in their order."""
    page = (DOCS / "questions" / "head.rst.txt").read_text().rstrip("\n")
    for template in TEMPLATES:
        if template.stem in result:
            page += BETWEEN.format(template.stem) + result[template.stem].rstrip("\n")
    return page + "\n"


SOME = "--schedules " + ",".join(
    f"{order}{way}"
    for order in ("row", "morton", "hilbert", "grouped-8", "snake-strips-16")
    for way in ("", "+sawtooth")
)  # every order at every size takes minutes
README_FIGURES = (
    "compare gemm -m 8192 -n 8192 -k 8192 --cache 40MiB --sms 108 --schedules "
    "row,hilbert,grouped-8,snake-strips-16+sawtooth --figure docs/figures/first.svg",
    "compare gemm -m 8192 -n 8192 -k 8192 --gpu a100-sxm4-40gb --figure docs/figures/compare.svg",
    f"curve gemm -m 8192 -n 8192 -k 8192 --gpu a100-sxm4-40gb --points 16 {SOME} --figure docs/figures/curve.svg",
    "figure ski-slope --out docs/figures/ski-slope.svg",
    "figure projections --out docs/figures/projections.svg",
    "figure fusion --out docs/figures/fusion.svg",
)


def update_questions(names: tuple[str, ...] = ()) -> None:
    """The page of questions; with names, only those that begin so are made anew."""
    result = sections(PAGE.read_text()) if PAGE.exists() else {}
    for template in TEMPLATES:
        if not names or template.stem.startswith(names):
            print(template.stem, file=sys.stderr)
            result[template.stem] = rendered(template)
            PAGE.write_text(assembled(result))  # after each, so that a run that is cut short loses nothing


def update_page(page: Path) -> None:
    """The output that a page quotes, the numbers that it claims, and the figures of the README."""
    text, stale = quoted.updated(page.read_text())
    by_hand = [f"pebble {command}" for command in stale]
    for claim in claims.claims():
        for part in claims.parts(told(claim.words)) if claim.page == page else ():
            if claims.missing(text, part, claim.near):
                text = claims.updated(text, part)
            by_hand += filter(None, [claims.missing(text, part, claim.near)])
    page.write_text(text)
    for what in by_hand:
        print(f"{page.name}: by hand: {what}", file=sys.stderr)
    for command in README_FIGURES if page.name == "README.md" else ():
        with contextlib.redirect_stdout(io.StringIO()):
            main(shlex.split(command))


if __name__ == "__main__":
    wanted = sys.argv[1:]
    if not wanted or "questions" in wanted:
        update_questions()
    elif numbers := tuple(name for name in wanted if name.isdigit()):
        update_questions(numbers)
    for template in PAGES:
        if not wanted or template.name.split(".")[0] in wanted:
            (DOCS / template.stem).write_text(rendered(template))
    for path in QUOTING:
        if not wanted or any(path == Path(name).resolve() for name in wanted):
            update_page(path)
