"""Loops compiled by numba when first run, so that importing a module that has some does not load numba.

A function marked `jit` stands in its module as a `Lazy`. The first call of one compiles it and puts the compiled
functions in the place of all `Lazy` names of its module, so that they call each other, and later calls go straight to
them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

_making = threading.RLock()


class Lazy:
    """Something made when it is first needed, once, whichever thread asks first."""

    def __init__(self, make: Callable[[], Any], names: dict[str, Any] | None = None) -> None:
        self._make, self._names = make, names if names is not None else {}
        self._made: Any = None

    def made(self) -> Any:
        """The thing itself, with all that its module's other lazy names stand for."""
        with _making:
            if self._made is None:
                self._made = self._make()
                for name, value in self._names.items():
                    if isinstance(value, Lazy):
                        self._names[name] = value.made()
        return self._made

    def __call__(self, *args: Any) -> Any:
        return self.made()(*args)


def jit(function: Callable[..., Any]) -> Any:
    """A loop for numba, without checks of types or bounds; its arguments are arrays and numbers."""
    return Lazy(lambda: import_module("numba").njit(cache=True, nogil=True)(function), function.__globals__)


def inner(function: Callable[..., Any]) -> Any:
    """A loop that only other loops call: it compiles faster, as nothing is made to call it from Python."""
    compiler = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return Lazy(lambda: import_module("numba").njit(**compiler)(function), function.__globals__)


def inlined(function: Callable[..., Any]) -> Any:
    """The same, put into the loops that call it."""
    compiler = {"cache": True, "nogil": True, "inline": "always"}
    return Lazy(lambda: import_module("numba").njit(**compiler)(function), function.__globals__)


def intrinsic(module: str, name: str) -> Any:
    """A building block of numba's own."""
    return Lazy(lambda: getattr(import_module(module), name))
