"""Who is told how far a search is."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from pebble.system.clock import Update, shown

Progress = Update
F = TypeVar("F", bound=Callable[..., Any])


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def as_progress(progress: Progress | bool) -> Progress:
    """The function that is called; of True and False one that does nothing."""
    return silent if isinstance(progress, bool) else progress


def with_bar(search: F) -> F:
    """Give a search a bar where its keyword ``progress`` is True, or not given, and somebody sees it."""

    @wraps(search)
    def run(*arguments: Any, progress: Progress | bool = True, **keywords: Any) -> Any:
        with shown(progress) as update:
            return search(*arguments, progress=progress if update is None else update, **keywords)

    return cast(F, run)
