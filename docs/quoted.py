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
from pathlib import Path
from typing import NamedTuple

from pebble.cli import main

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 100
LEFT_OUT = "..."
SAMPLES = (ROOT / "benchmarks/gpu/samples", ROOT / "tests/counters/data")  # reports that pages name by their file names
_CONSOLE = re.compile(r"^\.\. code-block:: console\n\n((?:   .*\n|\n)+)|^```console\n((?:.*\n)+?)```", re.MULTILINE)
_SHELL = re.compile(r"```sh\n(?:[^\n]*&& \S*)?pebble ([^\n]+)\n```\n+(?:prints\n+)?```text\n(.*?)\n```", re.DOTALL)
_QUICK = ("bound", "coalesce", "cycles", "decode", "machines", "schedules", "stream", "time", "workloads")


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
    found = [Quote(m[1], m[2], m.span(2), "") for m in _SHELL.finditer(page)]
    for block in _CONSOLE.finditer(page):
        group = 1 if block[1] is not None else 2
        indent, at = "   " if group == 1 else "", block.start(group)
        # a command goes on where its line ends in a backslash; what follows up to the next one is its output
        for one in re.finditer(r"^ *\$ ((?:.*\\\n)*.*)\n((?:(?! *\$ ).*\n?)*)", block[group], re.MULTILINE):
            command, shown = re.sub(r"\\\n *", "", one[1]), one[2].rstrip()
            if command.startswith("pebble ") and shown.strip() and ">" not in shlex.split(command):
                start = at + one.start(2)
                found.append(Quote(command.removeprefix("pebble "), shown, (start, start + len(shown)), indent))
    return sorted(found, key=lambda quote: quote.at)


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
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                main(quote.words)
        finally:
            os.chdir(before)
            os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)
    return out.getvalue().strip("\n").rstrip()


def plain(text: str) -> str:
    """The words of a text: not where lines break, nor rules of tables, nor the seconds of a run."""
    text = re.sub(r"-{4,}", " ", text)
    return " ".join(re.sub(r"\b[\d.]+ s\)", "s)", text).split())


def missing(shown: str, now: str) -> str | None:
    """The first quoted part that is not printed, in its place; None where all are."""
    left, parts = plain(now), re.split(rf"^ *{re.escape(LEFT_OUT)}$", shown, flags=re.MULTILINE)
    for number, part in enumerate(filter(None, map(plain, parts))):
        before, found, after = left.partition(part)
        if not found or (number == 0 and before and plain(parts[0])):
            return part
        left = after.strip()
    return left if plain(parts[-1]) and left else None


def updated(page: str) -> tuple[str, list[str]]:
    """The page with its output made anew, and the commands whose quotes leave something out and are stale."""
    stale = []
    for quote in reversed(quotes(page)):
        now = printed(quote)
        if missing(quote.shown, now) is None:
            continue
        if re.search(rf"^ *{re.escape(LEFT_OUT)}$", quote.shown, re.MULTILINE):
            stale.append(quote.command)
            continue
        fresh = "\n".join(f"{quote.indent}{line}" if line else "" for line in now.split("\n"))
        page = page[: quote.at[0]] + fresh + page[quote.at[1] :]
    return page, stale[::-1]
