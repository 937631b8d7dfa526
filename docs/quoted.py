"""Output of commands that pages quote: where it is, whether it is what they print now, and how it is made anew.

A block quotes a command, ``$ pebble ...``, and under it what it prints. A line ``...`` leaves something out. Where
lines break and how wide tables are makes no difference, nor how long the run took.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from pebble.cli import main
from pebble.system.clock import Clock

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 100
LEFT_OUT = "..."
SAMPLES = (ROOT / "benchmarks/gpu/samples", ROOT / "tests/counters/data")  # reports that pages name by their file names
_CONSOLE = re.compile(r"^\.\. code-block:: console\n\n((?:   .*\n|\n)+)|^```console\n((?:.*\n)+?)```", re.MULTILINE)
_SHELL = re.compile(r"```sh\n(?:[^\n]*&& \S*)?pebble ([^\n]+)\n```\n+(?:prints\n+)?```text\n(.*?)\n```", re.DOTALL)
_QUICK = (
    "advise",
    "audit",
    "bound",
    "coalesce",
    "cycles",
    "decode",
    "machines",
    "schedules",
    "stream",
    "time",
    "workloads",
)
_PATIENT = ("tile", "tune")
LAGRANGIAN = "Lagrangian line accounting"
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_NEAR = 0.002


class Quote(NamedTuple):
    """A command of a page, without ``pebble``, and what is quoted under it."""

    command: str
    shown: str
    at: tuple[int, int]  #: where that is in the page
    indent: str

    @property
    def words(self) -> list[str]:
        """Of the command."""
        return shlex.split(self.command)

    @property
    def quick(self) -> bool:
        """Whether it takes some seconds at most."""
        return self.words[0] in _QUICK


def quotes(page: str) -> list[Quote]:
    """What a page quotes, in its order; commands without output are not in it."""
    results = [Quote(m[1], m[2], m.span(2), "") for m in _SHELL.finditer(page)]
    for block in _CONSOLE.finditer(page):
        group = 1 if block[1] is not None else 2
        indent, at = "   " if group == 1 else "", block.start(group)
        # a command goes on where its line ends in a backslash; what follows up to the next one is its output
        for item in re.finditer(r"^ *\$ ((?:.*\\\n)*.*)\n((?:(?! *\$ ).*\n?)*)", block[group], re.MULTILINE):
            command, shown = re.sub(r"\\\n *", "", item[1]), item[2].rstrip()
            if command.startswith("pebble ") and shown.strip() and ">" not in shlex.split(command):
                start = at + item.start(2)
                results.append(Quote(command.removeprefix("pebble "), shown, (start, start + len(shown)), indent))
    return sorted(results, key=lambda quote: quote.at)


def patience(command: str) -> AbstractContextManager[object]:
    """In which the searches of ``tile`` and ``tune`` end by themselves: a busy machine finds what an idle one does."""
    return mock.patch.object(Clock, "passed", 0.0) if command in _PATIENT else contextlib.nullcontext()


def printed(quote: Quote) -> str:
    """What its command prints now, in a folder with the samples."""
    out, before, columns = io.StringIO(), Path.cwd(), os.environ.get("COLUMNS")
    with tempfile.TemporaryDirectory() as folder:
        for word in quote.words:
            for sample in SAMPLES:
                if (sample / word).is_file():
                    shutil.copy(sample / word, folder)
        os.environ["COLUMNS"] = str(WIDTH)
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), patience(quote.words[0]):
                main(quote.words)
        finally:
            os.chdir(before)
            os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)
    return out.getvalue().strip("\n").rstrip()


def plain(text: str) -> str:
    """The words of a text: not where lines break, nor rules of tables, nor the seconds of a run."""
    text = re.sub(r"-{4,}", " ", text)
    return " ".join(re.sub(r"\b[\d.]+ s\)", "s)", text).split())


def places(text: str, part: str) -> list[re.Match[str]]:
    """Where these words stand, whatever their numbers, each number a group; white space may differ."""
    pattern = "".join(
        f"({NUMBER})" if number % 2 else r"\s+".join(map(re.escape, re.split(r"\s+", words)))
        for number, words in enumerate(re.split(f"({NUMBER})", part))
    )
    return list(re.finditer(rf"(?<![\w.]){pattern}(?!\w)", text))


def numbers(text: str) -> list[str]:
    """All numbers, in their order, without signs."""
    return re.findall(NUMBER, text)


def near(shown: str, now: str) -> bool:
    """Whether two texts are equal but for numbers that are close: linear programs end elsewhere on other processors."""
    if re.sub(NUMBER, "#", shown) != re.sub(NUMBER, "#", now):
        return False
    for spec, result in zip(numbers(shown), numbers(now), strict=True):
        unit = 10.0 ** -len(spec.partition(".")[2])
        here, there = (float(text.replace(",", "")) for text in (spec, result))
        if abs(here - there) > max(1.01 * unit if "." in spec else 0, _NEAR * here):
            return False
    return True


def missing(shown: str, now: str) -> str | None:
    """The first quoted part that is not printed, in its place; None where all are.

    Numbers are those that are printed, or near them where prices of a linear program are in what is printed.
    """
    left, parts = plain(now), re.split(rf"^ *{re.escape(LEFT_OUT)}$", shown, flags=re.MULTILINE)
    priced = LAGRANGIAN in left
    for number, part in enumerate(filter(None, map(plain, parts))):
        start = left.find(part)
        end = start + len(part)
        if start < 0 and priced:
            start, end = next((at.span() for at in places(left, part) if near(part, at[0])), (-1, -1))
        if start < 0 or (number == 0 and start and plain(parts[0])):
            return part
        left = left[end:].strip()
    return left if plain(parts[-1]) and left else None


def updated(page: str) -> tuple[str, list[str]]:
    """The page with its output made anew, and the commands of stale quotes that leave something out or fail here."""
    stale = []
    for quote in reversed(quotes(page)):
        now = printed(quote)
        if missing(quote.shown, now) is None:
            continue
        fails = now.startswith("pebble: ") and not plain(quote.shown).startswith("pebble: ")  # a reader's own file
        if fails or re.search(rf"^ *{re.escape(LEFT_OUT)}$", quote.shown, re.MULTILINE):
            stale.append(quote.command)
            continue
        fresh = "\n".join(f"{quote.indent}{line}" if line else "" for line in now.split("\n"))
        page = page[: quote.at[0]] + fresh + page[quote.at[1] :]
    return page, stale[::-1]
