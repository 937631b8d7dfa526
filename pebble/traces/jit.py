"""Loops compiled by numba when first run, so that importing a module that has some does not load numba.

A function marked `jit` stands in its module as a `Lazy`. The first call of one compiles it and puts the compiled
functions in the place of all `Lazy` names of its module, so that they call each other, and later calls go straight to
them. What is compiled is kept in a folder (`pebble.system.compiled`); where it is not found there, a warning says that
something is being compiled, once in a process.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, TypeVar, cast

from pebble.system.compiled import VARIABLE, is_cached
from pebble.traces.linked import pipeline
from pebble.traces.sources import stamp_of

_LINKED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_Loop = TypeVar("_Loop", bound=Callable[..., Any])

_making = threading.RLock()
_described = threading.Event()


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


def tell_compiling(what: str, how_long: str) -> None:
    """Warn, by the logger ``pebble``, that something is compiled, and say whether a later process compiles it again."""
    _described.set()
    folder = os.environ.get(VARIABLE)
    once = f"once, into {folder}" if is_cached() else f"as in every call until {VARIABLE} names a folder to write to"
    logging.getLogger("pebble").warning(f"pebble: compiling {what}, {once}: {how_long}")


class _Listener:
    """Of numba, which tells it of what it compiles, not of what it finds compiled."""

    def notify(self, event: Any) -> None:
        if event.is_start and not _described.is_set():
            tell_compiling("loops for this machine", "seconds to a minute")


@cache
def _numba() -> Any:
    event = import_module("numba.core.event")
    event.Listener.register(_Listener)
    event.register("numba:compile", _Listener())
    _forget_what_is_gone(import_module("numba.core.caching").IndexDataCacheFile)
    return import_module("numba")


def _forget_what_is_gone(kept: Any) -> None:
    """Take for not there what an earlier version of this program kept, of types that have moved since.

    Numba reads what is kept before it asks whether its source has changed, and raises where a type is not found.
    """
    for name, nothing in (("_load_index", dict), ("load", lambda: None)):
        setattr(kept, name, _or(getattr(kept, name), nothing))


def _or(read: Callable[..., Any], nothing: Callable[[], Any]) -> Callable[..., Any]:
    def safely(*args: Any) -> Any:
        try:
            return read(*args)
        except (AttributeError, ImportError):
            return nothing()

    return safely


def jit(function: _Loop) -> _Loop:
    """A loop for numba, without checks of types or bounds; its arguments are arrays and numbers.

    Its annotations are for who reads and for mypy: numba goes by what it is given. An `int` there is 64 bits here.
    """
    return _lazy(function, cache=True, nogil=True)


def inner(function: _Loop) -> _Loop:
    """A loop that only other loops call: it compiles faster, as nothing is made to call it from Python."""
    return _lazy(function, **_LINKED)


def inlined(function: _Loop) -> _Loop:
    """The same, put into the loops that call it."""
    return _lazy(function, cache=True, nogil=True, inline="always")


def merged(function: _Loop) -> _Loop:
    """A loop that only other loops call, merged into their machine code.

    A call hands over all arrays of its arguments one by one, which is most of what a small loop takes.
    """
    return _lazy(function, forceinline=True, **_LINKED)


def _lazy(function: _Loop, **compiler: object) -> _Loop:
    def make() -> Any:
        own = {"pipeline_class": pipeline()} if compiler.get("no_cpython_wrapper") else {}
        made = _numba().njit(**compiler, **own)(function)
        if kept := getattr(made._cache, "_cache_file", None):
            kept._source_stamp = stamp_of(function.__module__)
        return made

    return cast(_Loop, Lazy(make, function.__globals__))


def intrinsic(module: str, name: str) -> Any:
    """A building block of numba's own."""
    return Lazy(lambda: resolve_name(f"{module}:{name}"))
