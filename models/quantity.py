"""One number of a machine: its value, unit, source and mark; the keys a machine file may hold; and which cache model
a GPU gets unless a user names another: a policy name, and the evidence for it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from pebble.errors import InputError

if TYPE_CHECKING:
    from pebble.models.caches import CachePolicy


MARKS = ("vendor", "measured", "guess")

# dimension -> unit -> how many base units (bytes, one, bytes/s, Hz, operations/s, cycles) it is
_SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
UNITS: dict[str, dict[str, int]] = {
    "size": _SIZES,
    "sms": {"SM": 1, "CU": 1},
    "cores": {"core": 1},
    "partitions": {"partition": 1},
    "registers": {"register": 1},
    "threads": {"thread": 1},
    "blocks": {"block": 1},
    "bandwidth": {"GB/s": 10**9, "TB/s": 10**12},
    "clock": {"MHz": 10**6, "GHz": 10**9},
    "throughput": {"GFLOPS": 10**9, "TFLOPS": 10**12, "TOPS": 10**12},
    "latency": {"cycles": 1},
    "energy": {"pJ/B": 1},
    "operation energy": {"pJ/op": 1},
}
_DTYPES = ("bf16", "fp16", "fp8", "fp4", "tf32", "fp32", "int8")
_WHOLE = ("size", "sms", "cores", "partitions", "registers", "threads", "blocks")
_SCALE = {unit: scale for units in UNITS.values() for unit, scale in units.items()}
MAX_NUMBER = 2**60

# Every number a machine file may hold, in the order it is shown.
FIELDS: dict[str, str] = {
    "sms": "sms",
    "cores": "cores",
    "l2_partitions": "partitions",
    "line": "size",
    "sector": "size",
    "boost_clock": "clock",
    "dram_bandwidth": "bandwidth",
    "l2_bandwidth": "bandwidth",
    "l2_peak_bandwidth": "bandwidth",
    "dsmem_bandwidth": "bandwidth",
    "memory_side_bandwidth": "bandwidth",
    "shared_bandwidth": "bandwidth",
    "network_bandwidth": "bandwidth",
    "stores.l2": "size",
    "stores.memory_side_cache": "size",
    "stores.l1_shared_per_sm": "size",
    "stores.l1_per_sm": "size",
    "stores.lds_per_sm": "size",
    "stores.registers_per_sm": "size",
    "stores.tensor_memory_per_sm": "size",
    "stores.shared_buffer": "size",
    "stores.scratchpad_per_core": "size",
    "stores.accumulators_per_core": "size",
    "stores.other_per_core": "size",
    "limits.shared_per_sm": "size",
    "limits.shared_per_block": "size",
    "limits.registers_per_thread": "registers",
    "limits.threads_per_warp": "threads",
    "limits.threads_per_block": "threads",
    "limits.threads_per_sm": "threads",
    "limits.blocks_per_sm": "blocks",
    "limits.blocks_per_cluster": "blocks",
    **{f"throughput.{dtype}": "throughput" for dtype in _DTYPES},
    **{f"throughput.{dtype}_accumulate_fp16": "throughput" for dtype in ("fp16", "fp8")},
    "sustained.dram_bandwidth": "bandwidth",
    "sustained.dram_writes": "bandwidth",
    "sustained.dram_half_writes": "bandwidth",
    **{f"sustained.{dtype}": "throughput" for dtype in _DTYPES},
    **{f"latency.{at}": "latency" for at in ("l1", "shared", "l2_near", "l2_far", "memory_side_cache", "dram")},
    **{f"energy.{of}": "energy" for of in ("dram", "shared_buffer", "network", "scratchpad")},
    **{f"energy.{dtype}": "operation energy" for dtype in _DTYPES},
}
REQUIRED = ("sms", "stores.l2", "stores.registers_per_sm")
KINDS = GPU, SCRATCHPAD = ("gpu", "scratchpad")
# of machines that are not GPUs; beside these they have what has no meaning on a GPU alone
REQUIRED_OF_SCRATCHPADS = ("cores", "stores.scratchpad_per_core", "stores.other_per_core")
OF_BOTH = re.compile("boost_clock|dram_bandwidth|throughput.*|sustained.*")
OF_SCRATCHPADS = re.compile("cores|shared_bandwidth|network_bandwidth|stores.*_per_core|stores.shared_buffer|energy.*")
TEXTS = ("name", "vendor", "compute_capability", "dram_kind", "kind", "network")
TABLES = ("stores", "limits", "throughput", "sustained", "latency", "energy")


class FieldError(InputError):
    """A mistake inside one quantity; ``key`` is where, for the line number."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True)
class Quantity:
    """One number of a machine, and how far to trust it.

    Parameters
    ----------
    value : int or float
        Above zero, finite.
    unit : str
        A unit of :data:`UNITS`; MiB = 2^20 bytes, MB = 10^6 bytes.
    source : str
        Where the number comes from.
    mark : str
        ``vendor``, ``measured`` or ``guess``.
    at_mhz : int or float, optional
        The clock that the number is stated at, where it is not the boost clock.

    Raises
    ------
    InputError
        Not a number, not above zero, or an unknown unit or mark.

    Examples
    --------
    >>> Quantity(40, "MiB", "vendor specification", "vendor").base
    41943040
    """

    value: int | float
    unit: str
    source: str = "user file"
    mark: str = "guess"
    at_mhz: int | float | None = None

    def __post_init__(self) -> None:
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FieldError("value", f"got {shorten(value)}, expected a number such as 40.")
        clock = self.at_mhz
        if clock is not None and (isinstance(clock, bool) or not isinstance(clock, int | float) or not 0 < clock < 1e6):
            raise FieldError("at_mhz", f"got {shorten(clock)}, expected a clock in MHz such as 1830.")
        check_texts(unit=self.unit, mark=self.mark, source=self.source)
        if self.unit not in _SCALE:
            raise FieldError("unit", unknown("unit", self.unit, _SCALE))
        if not 0 < value <= MAX_NUMBER:  # also false for nan
            raise FieldError("value", f"got {shorten(value)}, expected a number above zero and at most 2^60.")

    @property
    def base(self) -> int | float:
        """The number in bytes, bytes/s, Hz, operations/s or cycles; whole numbers stay exact."""
        exact = Fraction(str(self.value)) * _SCALE[self.unit]
        return int(exact) if exact.denominator == 1 else float(exact)

    def to_json(self) -> dict[str, object]:
        """The quantity as plain data."""
        clock = {} if self.at_mhz is None else {"at_mhz": self.at_mhz}
        return {"value": self.value, "unit": self.unit, "mark": self.mark, "source": self.source, **clock}

    def __str__(self) -> str:
        return f"{self.value:,} {self.unit}"


def check_texts(**texts: object) -> None:
    """Text is text, and a ``mark`` one of `MARKS`."""
    for key, value in texts.items():
        if not isinstance(value, str):
            raise FieldError(key, f"got {shorten(value)}, expected text in quotes.")
    if texts["mark"] not in MARKS:
        raise FieldError("mark", f"unknown mark {shorten(texts['mark'])}: expected one of {', '.join(MARKS)}.")


def example_of(key: str) -> str:
    """How a number is written under a key."""
    return f'{{ value = NUMBER, unit = "{next(iter(UNITS[FIELDS[key]]))}" }}'


def check_field(key: str, quantity: Quantity) -> None:
    """The unit fits the key, and counts and sizes are whole."""
    if key not in FIELDS:
        raise FieldError("value", unknown("key", key, FIELDS))
    dimension = FIELDS[key]
    if quantity.unit not in UNITS[dimension]:
        expected = ", ".join(UNITS[dimension])
        raise FieldError("unit", f"the unit {quantity.unit!r} does not fit; expected one of {expected}.")
    if dimension in _WHOLE and (not isinstance(quantity.base, int) or quantity.base > MAX_NUMBER):
        of = " of bytes" if dimension == "size" else ""
        raise FieldError("value", f"got {quantity}, expected a whole number{of} of at most 2^60.")


def missing_key(keys: set[str], kind: str = GPU) -> str:
    """What is missing from a machine of a kind with these keys, as a part of a sentence; empty when nothing is."""
    if "name" not in keys:
        return 'the required key `name` is missing; write name = "My GPU"'
    for key in REQUIRED_OF_SCRATCHPADS if kind == SCRATCHPAD else REQUIRED:
        if key not in keys:
            return f"the required key `{key}` is missing; write {key} = {example_of(key)}"
    if kind == SCRATCHPAD:
        return ""
    if "stores.l1_shared_per_sm" not in keys and not {"stores.l1_per_sm", "stores.lds_per_sm"} <= keys:
        return (
            "the required key `stores.l1_shared_per_sm` is missing (or both `stores.l1_per_sm` and "
            "`stores.lds_per_sm`, where L1 and shared memory are apart)"
        )
    return ""


def foreign_key(keys: Iterable[str], kind: str) -> str:
    """The first key that has no meaning on a machine of that kind; empty where all have one."""
    scratchpads = kind == SCRATCHPAD
    wrong = (k for k in keys if not OF_BOTH.fullmatch(k) and bool(OF_SCRATCHPADS.fullmatch(k)) != scratchpads)
    return next((key for key in wrong if key in FIELDS), "")


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not known: the nearest ones, or all of them."""
    names = list(known)
    # close matches mind the case; a reader who wrote "mib" does not
    by_lower = {candidate.lower(): candidate for candidate in names}
    near = [by_lower[low] for low in difflib.get_close_matches(name.lower(), by_lower, n=2, cutoff=0.6)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(names)}."
    return f"unknown {kind} {shorten(name)}: {hint}"


def shorten(value: object) -> str:
    """A value as Python writes it, cut to a length that fits a sentence."""
    try:
        text = repr(value)
    except ValueError:  # Python does not print integers of thousands of digits
        text = "a number of thousands of digits"
    return text if len(text) <= 40 else text[:37] + "..."


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
