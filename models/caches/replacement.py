"""Which line leaves, as a policy's name says it: after the colon, or the name itself."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.errors import InputError
from pebble.models.caches.base import CachePolicy

_MAX_DRAWN = 1024
_OLDEST = "oldest-of-"
_ORDERS = {"lru": "least recently used", "fifo": "first in, first out"}


@dataclass(frozen=True, kw_only=True)
class Replacing(CachePolicy):
    """A model that can be had with several replacements.

    Attributes
    ----------
    replacement : str
        ``lru``, ``fifo``, ``random`` or ``oldest-of-K``, whichever of them the model takes.
    """

    replacement: str = "lru"

    def __post_init__(self) -> None:
        if self.replacement.startswith(_OLDEST) and not 1 <= self.drawn <= _MAX_DRAWN:
            raise InputError(f"policy: got {self.name!r}, expected {_OLDEST}1 to {_OLDEST}{_MAX_DRAWN}.")

    @property
    def drawn(self) -> int:
        """Lines drawn at random, the oldest of which leaves; 0 where none is drawn."""
        if self.replacement.startswith(_OLDEST):
            return int(self.replacement.removeprefix(_OLDEST))
        return int(self.replacement == "random")

    @property
    def order(self) -> str:
        """Which line leaves, in words."""
        if self.drawn > 1:
            return f"oldest of {self.drawn} lines drawn at random"
        return "random replacement" if self.drawn else _ORDERS[self.replacement]

    @property
    def what(self) -> str:
        return f"{self.order}, fully associative"
