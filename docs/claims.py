"""Numbers that pages say in running text and in tables of their own: ``claims.toml`` has the words and their commands.

A claim is a template as those of ``questions`` are: its commands run, its words with their numbers filled in. These
words stand in the page, once; an empty line parts words that stand apart. How lines break makes no difference.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import quoted

DOCS = Path(__file__).resolve().parent


class Claim(NamedTuple):
    """Words of a page as a template."""

    page: Path
    words: str
    slow: bool  #: its commands take more than some seconds
    near: bool  #: a linear program is in them: see `quoted.near`


def claims() -> list[Claim]:
    """Of all pages, in their order."""
    tables = tomllib.loads((DOCS / "claims.toml").read_text())
    return [
        Claim(
            (DOCS.parent if page == "README.md" else DOCS) / page,
            item["words"],
            item.get("slow", False),
            item.get("near", False),
        )
        for page, result in tables.items()
        for item in result
    ]


def parts(said: str) -> list[str]:
    """Words that stand apart."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", said) if part.strip()]


def missing(page: str, part: str, near: bool = False) -> str | None:
    """What is wrong with these words in the page, None where they stand there; numbers may be ``near``."""
    result = quoted.places(page, part)
    if len(result) != 1:
        return f"these words stand in {len(result)} places, whatever the numbers, expected one: {part}"
    stands = " ".join(result[0][0].split())
    right = stands == part or (near and quoted.near(stands, part))
    return None if right else f"the page says: {stands}\nthe commands say: {part}"


def updated(page: str, part: str) -> str:
    """The page with the numbers of these words made anew; as it is where other words stand there."""
    result = quoted.places(page, part)
    if len(result) != 1:
        return page
    for group, now in reversed(list(enumerate(quoted.numbers(part), start=1))):
        start, end = result[0].span(group)
        page = page[:start] + now + page[end:]
    return page
