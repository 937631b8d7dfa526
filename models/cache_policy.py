"""Names of cache models: ``STRUCTURE[:REPLACEMENT][+OPTION...]``. Reading one does not load the simulators.

- ``lru``, ``fifo``, ``opt``, ``random``, ``oldest-of-K``: one fully associative cache; the last evicts the oldest of K
  lines drawn at random.
- ``set-W``, ``set-W-hashed``: W ways, row-major addresses; ``:fifo`` or ``:random`` instead of LRU within a set.
- ``sectored``: 128-byte lines, 32-byte sectors, fully associative LRU.
- ``partitions-P``: P parts; a line has a home in one and copies in others; ``:oldest-of-K`` or ``:random`` instead of
  LRU.
- ``chiplets-P``: a private LRU on each of P chiplets, and a memory-side cache (``+llc-256MiB``).

Options: ``+no-write-allocate`` (a written line that is not there goes straight to DRAM), ``+warm`` (the cache holds
what a first run left), ``+seed-N``, ``+map-random``, ``+map-interleaved`` or ``+map-halves`` (which SM sits in which
part), ``+pad-N`` (lines added to the pitch of rows, with sets), ``+llc-SIZE``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pebble.errors import InputError, UnknownNameError
from pebble.units import parse_size

LINE_BYTES = 128
EXAMPLES = (
    "lru", "fifo", "opt", "random", "oldest-of-4", "set-16", "set-16-hashed", "sectored", "partitions-2",
    "partitions-2:oldest-of-4", "chiplets-8+llc-256MiB", "hardware",
)  # fmt: skip
POLICIES_HELP = (
    "cache model: lru, fifo, opt, random, oldest-of-4, set-16, set-16-hashed, sectored, partitions-2[:oldest-of-4], "
    "chiplets-8+llc-256MiB, each with +no-write-allocate, +warm, +seed-N, +map-interleaved ...; hardware: the model of "
    "the GPU's machine file (lru)"
)
_NAMES = {
    "lru": "least recently used",
    "fifo": "first in, first out",
    "random": "random replacement",
    "opt": "fewest misses possible for this touch order (Belady)",
}
_MAPS = ("random", "interleaved", "halves")
_SETS = re.compile(r"set-([0-9]{1,2})(-hashed)?")
_PARTS = re.compile(r"(partitions|chiplets)-([0-9]{1,2})")
_OLDEST = re.compile(r"oldest-of-([0-9]{1,4})")
_MAX_K = 1024


@dataclass(frozen=True)
class CachePolicy:
    """A parsed name.

    Attributes
    ----------
    structure : str
        ``full``, ``sets``, ``sectored``, ``partitions`` or ``chiplets``.
    replacement : str
        ``lru``, ``fifo``, ``opt`` or ``oldest``.
    k : int
        Lines drawn by ``oldest``; 1 is random replacement.
    ways : int
        Of ``sets``.
    hashed : bool
        Whether sets are picked by a hash.
    parts : int
        Partitions or chiplets.
    last_level_bytes : int
        Memory-side cache of ``chiplets``.
    write_allocate, warm : bool
    seed : int
    sm_map : str
    pad_lines : int
    """

    structure: str
    replacement: str = "lru"
    k: int = 1
    ways: int = 0
    hashed: bool = False
    parts: int = 1
    last_level_bytes: int = 0
    write_allocate: bool = True
    warm: bool = False
    seed: int = 0
    sm_map: str = "random"
    pad_lines: int = 0

    @property
    def needs_lines(self) -> bool:
        """Whether the trace must say which sectors of a line are meant."""
        return self.structure == "sectored"

    @property
    def description(self) -> str:
        """One line for a reader."""
        order = f"oldest of {self.k} lines drawn at random" if self.replacement == "oldest" and self.k > 1 else (
            _NAMES["random" if self.replacement == "oldest" else self.replacement]
        )  # fmt: skip
        index = "hashed" if self.hashed else "modulo"
        body = {
            "full": f"{order}, fully associative",
            "sets": f"{order} in sets of {self.ways} ways, {index}, row-major addresses",
            "sectored": f"{order}, fully associative, 128-byte lines fetched by 32-byte sectors",
            "partitions": f"{order} in each of {self.parts} partitions, a line at home in one and copied into others",
            "chiplets": f"{order} in a private L2 on each of {self.parts} chiplets, then a memory-side cache of "
            f"{self.last_level_bytes / 2**20:g} MiB",
        }[self.structure]
        if self.structure == "full" and self.replacement == "opt":
            body += ", exact at line level"
        return body + (", no write-allocate" if not self.write_allocate else "") + (", warm" if self.warm else "")


def policy_title(name: str) -> str:
    """The name for a title: short ones in capitals."""
    return name.upper() if name.isalpha() and len(name) <= 4 else name


def parse_policy(text: str) -> CachePolicy:
    """Read the name of a cache model.

    Raises
    ------
    UnknownNameError
        Not a structure, replacement or option of this module.
    InputError
        A combination that has no meaning, or a number out of range.

    Examples
    --------
    >>> parse_policy("partitions-2:oldest-of-4").k
    4
    >>> parse_policy("set-16-hashed:fifo+warm").description
    'first in, first out in sets of 16 ways, hashed, row-major addresses, warm'
    """
    body, *options = text.strip().lower().split("+")
    head, colon, after = body.partition(":")
    fields: dict[str, object] = {}
    sets, parts = _SETS.fullmatch(head), _PARTS.fullmatch(head)
    if sets:
        fields.update(structure="sets", ways=int(sets[1]), hashed=bool(sets[2]))
    elif parts:
        fields.update(structure=parts[1], parts=int(parts[2]))
        if parts[1] == "chiplets":
            fields["sm_map"] = "interleaved"
    elif head == "sectored":
        fields.update(structure="sectored")
    else:
        fields.update(structure="full")
        if not head:
            raise _unknown(text)
        if colon:
            raise InputError(f"policy: got {text!r}, expected nothing after {head!r}; it is fully associative.")
        after = head
    fields.update(_replacement(after or "lru", text))
    for option in options:
        fields.update(_option(option, text))
    policy = CachePolicy(**fields)  # type: ignore[arg-type]
    _check(policy, text)
    return policy


def _unknown(text: str) -> UnknownNameError:
    return UnknownNameError("policy", text, EXAMPLES, "pebble simulate --help")


def _replacement(name: str, text: str) -> dict[str, object]:
    oldest = _OLDEST.fullmatch(name)
    if oldest:
        if not 1 <= int(oldest[1]) <= _MAX_K:
            raise InputError(f"policy: got {text!r}, expected oldest-of-1 to oldest-of-{_MAX_K}.")
        return {"replacement": "oldest", "k": int(oldest[1])}
    if name == "random":
        return {"replacement": "oldest", "k": 1}
    if name not in _NAMES:
        raise _unknown(text)
    return {"replacement": name}


def _option(option: str, text: str) -> dict[str, object]:
    if option in ("no-write-allocate", "warm"):
        return {"write_allocate": False} if option != "warm" else {"warm": True}
    name, _, value = option.partition("-")
    if name == "map" and value in _MAPS:
        return {"sm_map": value}
    if name in ("seed", "pad") and value.isdecimal() and len(value) <= 6:
        return {"seed" if name == "seed" else "pad_lines": int(value)}
    if name == "llc":
        size = parse_size(value, "policy llc")
        if size.bytes is None:
            raise InputError(f"policy: got {text!r}, expected bytes such as +llc-256MiB.")
        return {"last_level_bytes": size.bytes}
    known = ["no-write-allocate", "warm", "seed-1", "pad-1", "llc-256MiB", *(f"map-{m}" for m in _MAPS)]
    raise UnknownNameError("policy option", option, known, "pebble simulate --help")


def _check(policy: CachePolicy, text: str) -> None:
    allowed = {
        "full": ("lru", "fifo", "opt", "oldest"),
        "sets": ("lru", "fifo", "oldest"),
        "sectored": ("lru",),
        "partitions": ("lru", "oldest"),
        "chiplets": ("lru",),
    }[policy.structure]
    if policy.replacement not in allowed or (policy.structure == "sets" and policy.k != 1):
        names = ", ".join("random" if name == "oldest" else name for name in allowed)
        raise InputError(f"policy: got {text!r}, expected one of {names} with {policy.structure}.")
    if policy.structure == "sets" and not 1 <= policy.ways <= 64:
        raise InputError(f"policy: got {text!r}, expected 1 to 64 ways.")
    if policy.structure in ("partitions", "chiplets") and not 1 <= policy.parts <= 64:
        raise InputError(f"policy: got {text!r}, expected 1 to 64 parts.")
    if (policy.structure == "chiplets") != (policy.last_level_bytes > 0):
        raise InputError(f"policy: got {text!r}, expected +llc-SIZE with chiplets and only there.")
    if policy.pad_lines and policy.structure != "sets":
        raise InputError(f"policy: got {text!r}, expected +pad-N with sets only.")
    if policy.replacement == "opt" and (policy.warm or not policy.write_allocate):
        raise InputError(f"policy: got {text!r}, expected opt without options.")
    runs_allocate = policy.structure in ("sets", "full") or (
        policy.structure == "partitions" and policy.replacement == "oldest"
    )
    if not policy.write_allocate and not runs_allocate:
        raise InputError(f"policy: got {text!r}, expected +no-write-allocate with fully associative caches and sets.")
