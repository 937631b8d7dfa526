"""Which cache model a GPU gets unless a user names another: a policy name, and the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pebble.errors import InputError
from pebble.models.quantity import MARKS, FieldError, shorten, unknown

if TYPE_CHECKING:
    from pebble.models.caches import CachePolicy

TABLE = "cache_model"
_KEYS = ("policy", "mark", "source")


@dataclass(frozen=True)
class DefaultModel:
    """The ``[cache_model]`` table of a machine file.

    Parameters
    ----------
    policy : str
        A name that `parse_policy` reads.
    mark : str
        ``vendor``, ``measured`` or ``guess``.
    source : str
        The evidence.

    Raises
    ------
    InputError
        An unknown policy or mark.
    """

    policy: str
    mark: str = "guess"
    source: str = "user file"

    def __post_init__(self) -> None:
        for key in _KEYS:
            if not isinstance(getattr(self, key), str):
                raise FieldError(key, f"got {shorten(getattr(self, key))}, expected text in quotes.")
        try:
            self.parsed  # noqa: B018
        except InputError as error:
            raise FieldError("policy", str(error)) from None
        if self.mark not in MARKS:
            raise FieldError("mark", f"unknown mark {shorten(self.mark)}: expected one of {', '.join(MARKS)}.")

    @property
    def parsed(self) -> CachePolicy:
        """The policy, read."""
        from pebble.models.caches import parse_policy  # here: numpy need not be loaded to look at machines

        return parse_policy(self.policy)

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        return {
            "policy": self.policy,
            "what": self.parsed.description,
            "mark": self.mark,
            "source": " ".join(self.source.split()),
        }


def read_default_model(table: dict[str, Any]) -> DefaultModel:
    """The table as a file has it.

    Raises
    ------
    FieldError
        With the key of the mistake.
    """
    for key in table:
        if key not in _KEYS:
            raise FieldError(key, unknown("key", key, _KEYS))
    if "policy" not in table:
        raise FieldError("policy", 'the required key `policy` is missing; write policy = "lru".')
    return DefaultModel(**table)
