"""Names of cache models: ``BODY[:REPLACEMENT][+OPTION...]``. Reading one compiles nothing.

Each kind of model has a file of its own with its names, parameters, description and engine. Options: ``+warm``,
``+no-write-allocate``, ``+seed-N``, ``+map-random``, ``+map-interleaved``, ``+map-halves`` (which SM sits in which
part), ``+pad-N`` (lines added to the pitch of rows, with sets), ``+llc-SIZE`` (with chiplets),
``+persist-OPERAND-SHARE`` (a set-aside that keeps an operand, `pebble.models.caches.persisting`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from pebble.errors import InputError, UnknownNameError, check_text
from pebble.models.caches.chiplets import Chiplets
from pebble.models.caches.oldest_of_k import OldestOfK
from pebble.models.caches.opt import Opt
from pebble.models.caches.partitions import Partitions
from pebble.models.caches.persisting import OPTION as PERSIST
from pebble.models.caches.persisting import persisting
from pebble.models.caches.policy import CachePolicy
from pebble.models.caches.queues import Fifo, Lru
from pebble.models.caches.sectored import Sectored
from pebble.models.caches.set_associative import SetAssociative
from pebble.models.caches.sm_map import SM_MAPS
from pebble.units import parse_size

HARDWARE = "hardware"
_WHERE = "pebble simulate --help"
_KINDS: list[type[CachePolicy]] = [Lru, Fifo, Opt, OldestOfK, SetAssociative, Sectored, Partitions, Chiplets]


def register(kind: type[CachePolicy]) -> type[CachePolicy]:
    """Add a kind of cache model, for the length of the process; also a class decorator."""
    _KINDS.append(kind)
    parse_policy.cache_clear()
    return kind


def policy_names() -> tuple[str, ...]:
    """Names to show and suggest."""
    return tuple(name for kind in _KINDS for name in kind.examples)


def policies_help() -> str:
    """What ``--policy`` takes."""
    return (
        f"cache model: {', '.join(policy_names())}, each with +no-write-allocate, +warm, +seed-N, +map-interleaved "
        f"..., +persist-B-0.5 (half of it set aside for operand B); {HARDWARE}: the model of the GPU's machine file"
    )


@lru_cache(maxsize=256)
def parse_policy(text: str) -> CachePolicy:
    """Read the name of a cache model.

    Raises
    ------
    UnknownNameError
        Not a model, replacement or option.
    InputError
        A combination that has no meaning, or a number out of range.

    Examples
    --------
    >>> parse_policy("partitions-2:oldest-of-4").parts
    2
    >>> parse_policy("set-16-hashed:fifo+warm").description
    'first in, first out in sets of 16 ways, hashed, row-major addresses, warm'
    """
    body, *options = check_text("policy", text, "the name of a cache policy such as 'lru'").strip().lower().split("+")
    head, colon, after = body.partition(":")
    for kind in _KINDS:
        match = re.fullmatch(kind.pattern, head)
        if match:
            break
    else:
        raise UnknownNameError("policy", text, (*policy_names(), HARDWARE), _WHERE)
    if colon and not re.fullmatch(kind.replacements, after):
        allowed = f"one of {kind.replacements.replace('|', ', ')}" if kind.replacements else "nothing"
        raise InputError(f"policy: got {text!r}, expected {allowed} after {head!r}.")
    groups = {key: int(value) if value.isdecimal() else value for key, value in match.groupdict("").items()}
    replacement = {"replacement": after} if colon else {}
    of_persisting = [option for option in options if option.startswith(f"{PERSIST}-")]
    if len(of_persisting) > 1:
        raise InputError(f"policy: got {text!r}, expected one +{PERSIST}: a kernel has one access-policy window.")
    options_of = dict(_option(option, text, kind) for option in options if option not in of_persisting)
    fields: dict[str, Any] = {"name": text, **groups, **replacement, **options_of}
    policy = kind(**fields)
    return persisting(policy, of_persisting[0]) if of_persisting else policy


def _option(option: str, text: str, kind: type[CachePolicy]) -> tuple[str, object]:
    """The field that an option sets, and its value."""
    name, _, value = option.partition("-")
    key = option if option in ("warm", "no-write-allocate") else name
    if key in ("warm", "no-write-allocate", "pad", "llc") and key not in kind.options:
        raise InputError(f"policy: got {text!r}, expected no +{key} with {kind.examples[0]}.")
    if key in ("warm", "no-write-allocate"):
        return ("warm", True) if key == "warm" else ("write_allocate", False)
    if key == "map" and value in SM_MAPS:
        return "sm_map", value
    if key in ("seed", "pad") and value.isdecimal() and len(value) <= 6:
        return "seed" if key == "seed" else "pad_lines", int(value)
    if key == "llc":
        size = parse_size(value, "policy llc")
        if size.bytes is None:
            raise InputError(f"policy: got {text!r}, expected bytes such as +llc-256MiB.")
        return "last_level_bytes", size.bytes
    known = [
        "no-write-allocate",
        "warm",
        f"{PERSIST}-B",
        "seed-1",
        "pad-1",
        "llc-256MiB",
        *(f"map-{m}" for m in SM_MAPS),
    ]
    raise UnknownNameError("policy option", option, known, _WHERE)
