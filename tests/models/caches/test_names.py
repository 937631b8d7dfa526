"""Names of cache models, and a model of one's own from one module."""

from __future__ import annotations

import pytest

from pebble.errors import InputError, UnknownNameError
from pebble.models.caches import parse_policy


@pytest.mark.parametrize(
    "text",
    ["lru:fifo", "set-0", "set-99", "partitions-2:opt", "opt+warm", "opt+no-write-allocate", "chiplets-8",
     "lru+llc-1MiB", "lru+pad-1", "sectored:fifo", "oldest-of-0", "partitions-0", "chiplets-8+llc-5el",
     "partitions-2+no-write-allocate", "set-4:oldest-of-2"],
)  # fmt: skip
def test_names_without_meaning(text: str) -> None:
    with pytest.raises(InputError, match="got"):
        parse_policy(text)


@pytest.mark.parametrize("text", ["lruu", "", "set", "lru+hot", "oldest-of-x", "lru+map-mixed", "+", "lru+"])
def test_unknown_names(text: str) -> None:
    with pytest.raises(UnknownNameError):
        parse_policy(text)
