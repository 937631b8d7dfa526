"""Attributes under the names that they had before."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, ClassVar


class Renamed:
    """A class some of whose attributes had other names: these warn and work."""

    #: deprecated names of attributes, and what they are called now
    old_names: ClassVar[tuple[tuple[str, str], ...]] = ()

    if not TYPE_CHECKING:  # a type checker is to refuse the old names

        def __getattr__(self, name):
            new = dict(type(self).old_names).get(name, name)
            if new != name:
                warnings.warn(f"{type(self).__name__}.{name} is called {new}", DeprecationWarning, stacklevel=2)
            return object.__getattribute__(self, new)
