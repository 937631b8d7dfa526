"""Which cache model a GPU gets unless a user names another: a policy name, and the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pebble.errors import InputError
from pebble.models.quantity import FieldError, check_texts

if TYPE_CHECKING:
    from pebble.models.caches import CachePolicy

TABLE = "cache_model"


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
        check_texts(policy=self.policy, mark=self.mark, source=self.source)
        try:
            self.parsed  # noqa: B018
        except InputError as error:
            raise FieldError("policy", str(error)) from None

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
