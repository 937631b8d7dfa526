"""Who is told how far a search is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is done, how many of it, and of how many (0: not known)."""


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""
