"""Machines: what a chip can hold and how fast it moves data, every number with its unit, source and mark.

One TOML file per SKU. A file of your own is read by ``--machine my.toml`` and may be as short as this:

    name = "My GPU"
    sms = { value = 108, unit = "SM" }

    [stores]
    l2 = { value = 40, unit = "MiB" }
    l1_shared_per_sm = { value = 192, unit = "KiB" }
    registers_per_sm = { value = 256, unit = "KiB" }

Every number is ``{ value, unit, mark, source }``, with ``at_mhz`` where it is stated at another clock than
``boost_clock``. ``mark`` is ``vendor`` (a vendor document or a device
attribute), ``measured`` (a published measurement) or ``guess``; without one it is ``guess`` and the source
is ``user file``. MiB = 2^20 bytes, MB = 10^6 bytes. ``name``, ``sms``, ``stores.l2``,
``stores.registers_per_sm`` and ``stores.l1_shared_per_sm`` (or ``stores.l1_per_sm`` and
``stores.lds_per_sm``, where they are apart) are required: a store left out would make a lower bound too
high. Optional: ``vendor``, ``compute_capability``, ``dram_kind`` such as hbm3 (text) and

    l2_partitions  line  sector  boost_clock
    dram_bandwidth (peak)  l2_bandwidth (measured)  l2_peak_bandwidth (never exceeded, one direction)
    memory_side_bandwidth
    dsmem_bandwidth (measured: shared memory of other SMs, all SMs together)
    stores.memory_side_cache (whole chip)
    stores.tensor_memory_per_sm
    limits.shared_per_sm  limits.shared_per_block
    limits.registers_per_thread (of 32 bits)  limits.threads_per_warp
    limits.threads_per_block  limits.threads_per_sm  limits.blocks_per_sm
    limits.blocks_per_cluster (that may share what one read of L2 brings)
    throughput.bf16 fp16 fp8 fp4 tf32 fp32 int8 (dense peaks, accumulated in fp32)
    throughput.fp16_accumulate_fp16 fp8_accumulate_fp16 (where that is faster)
    sustained.dram_bandwidth (reads)  sustained.dram_writes  sustained.dram_half_writes (half of the bytes written)
    sustained.bf16 fp16 fp8 ... (what kernels reach)
    latency.l1 shared l2_near l2_far memory_side_cache dram

and a table ``cache_model`` with ``policy`` (the default of compare, simulate and curve), ``mark`` and ``source``, all
text.

A machine that is not a GPU says ``kind = "scratchpad"``: cores with a memory each under explicit control, no cache:

    name = "My accelerator"
    kind = "scratchpad"
    network = "ring"
    cores = { value = 16, unit = "core" }

    [stores]
    scratchpad_per_core = { value = 2, unit = "MiB" }
    other_per_core = { value = 64, unit = "KiB" }

These three numbers are required; ``other_per_core`` is all else that can hold a value: registers, latches of a matrix
unit. ``network``: how cores reach each other, such as ring, all-to-all or mesh-8x9; none where it is left out. Optional
are ``vendor``, ``dram_kind``, ``boost_clock``, ``dram_bandwidth`` (off chip), ``throughput``, ``sustained`` and

    shared_bandwidth (shared buffer to the cores, all together)
    network_bandwidth (all links together: a byte that takes two hops counts twice)
    stores.shared_buffer (whole chip)  stores.accumulators_per_core
    energy.dram shared_buffer network scratchpad (pJ/B; network: for each hop)  energy.bf16 ... (pJ/op)

The chip capacity is the sum of all stores, those ``_per_sm`` times ``sms``. ``limits`` say which kernels can
exist (``pebble.models.kernel_fit``) and are not added. On AMD, ``sms`` counts compute units.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from pebble.errors import InputError, UnknownNameError
from pebble.models.quantity import (
    GPU,
    SCRATCHPAD,
    DefaultModel,
    FieldError,
    Quantity,
    check_field,
    missing_key,
)
from pebble.models.stores import Store, copies_of
from pebble.system.files import parse_toml, read_bytes

MAX_FILE_BYTES = 2**20

__all__ = ["Machine", "Quantity", "Store", "load_machine", "load_machine_file", "machine_names"]


@dataclass(frozen=True)
class Machine:
    """A GPU or another accelerator, as :func:`load_machine` or :func:`load_machine_file` read it.

    Parameters
    ----------
    sku : str
        The name the command line takes, or the file's stem.
    name, vendor, compute_capability : str
        For people; the last two may be empty.
    dram_kind : str
        Such as ``hbm3``; empty where it is not known.
    kind : {"gpu", "scratchpad"}
        Whether it has caches, or cores with a memory each under explicit control.
    network : str
        Of a scratchpad machine: how cores reach each other; empty where they do not.
    quantities : tuple of (str, Quantity)
        Every number known, by its key in :data:`pebble.models.quantity.FIELDS`; the rest is not known.
    cache_model : DefaultModel, optional
        What its L2 is simulated as.
    file_sha256 : str, optional
        Of the file it was read from, so that a result can be traced to its numbers.

    Raises
    ------
    InputError
        A required number is missing, a key is unknown, or a number has the wrong unit.

    Examples
    --------
    >>> load_machine("a100-sxm4-40gb").on_chip_bytes / 2**20
    87.25
    """

    sku: str
    name: str
    vendor: str = ""
    compute_capability: str = ""
    dram_kind: str = ""
    kind: str = GPU
    network: str = ""
    quantities: tuple[tuple[str, Quantity], ...] = ()
    cache_model: DefaultModel | None = None
    file_sha256: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for key, quantity in self.quantities:
            try:
                check_field(key, quantity)
            except FieldError as error:
                raise InputError(f"machine {self.sku!r}, {key}: {error}") from None
        missing = missing_key({"name", *(key for key, _ in self.quantities)}, self.kind)
        if missing:
            raise InputError(f"machine {self.sku!r}: {missing}.")

    def get(self, key: str) -> Quantity | None:
        """The quantity of a key of :data:`pebble.models.quantity.FIELDS`, or None when it is not known."""
        return next((quantity for name, quantity in self.quantities if name == key), None)

    def _whole(self, key: str, default: int = 0) -> int:
        quantity = self.get(key)
        return default if quantity is None else int(quantity.base)

    def _optional(self, key: str) -> float | None:
        quantity = self.get(key)
        return None if quantity is None else float(quantity.base)

    @property
    def capability(self) -> float | None:
        """The compute capability as a number; None where it is not known."""
        try:
            return float(self.compute_capability)
        except ValueError:
            return None

    @property
    def cluster_blocks(self) -> int:
        """Blocks that may share what one read of L2 brings; where nothing is known, those of the whole chip."""
        known = self._whole("limits.blocks_per_cluster")
        before_clusters = self.capability is not None and self.capability < 9
        return known or (1 if before_clusters else self.sms)

    @property
    def explicit(self) -> bool:
        """Whether its memories are scratchpads under explicit control: no GPU, no cache."""
        return self.kind == SCRATCHPAD

    @property
    def core_word(self) -> str:
        """What one of its processors is called."""
        return "core" if self.explicit else "SM"

    @property
    def outside_word(self) -> str:
        """What lies outside of its processors."""
        if not self.explicit:
            return "L2"
        return "shared buffer" if self.store_bytes("shared_buffer") else "off-chip memory"

    def in_words(self, text: str) -> str:
        """A text on SMs and L2 in the words of this machine."""
        if not self.explicit:
            return text
        return text.replace("SM", self.core_word).replace("an core", "a core").replace("L2", self.outside_word)

    @property
    def sms(self) -> int:
        """Streaming multiprocessors; compute units on AMD; cores of an accelerator."""
        return self._whole("cores" if self.explicit else "sms")

    @property
    def l2_bytes(self) -> int:
        """The whole L2, all partitions together, in bytes; 0 where there is none."""
        return self._whole("stores.l2")

    @property
    def l2_partitions(self) -> int:
        """Parts of the L2 that each keep their own copy of a shared line; 1 where the file does not say."""
        return self._whole("l2_partitions", 1)

    @property
    def default_model(self) -> DefaultModel:
        """What its L2 is simulated as: the file's own choice, else an LRU in each partition."""
        if self.cache_model is not None:
            return self.cache_model
        parts, last = self.l2_partitions, self.memory_side_cache_bytes
        source = "nothing is said in the machine file; an LRU of the nominal size in each partition"
        if last:
            return DefaultModel(f"chiplets-{parts}+llc-{last}B", "guess", source)
        return DefaultModel("lru" if parts == 1 else f"partitions-{parts}", "guess", source)

    @property
    def memory_side_cache_bytes(self) -> int:
        """A cache between L2 and DRAM, in bytes; 0 where there is none."""
        return self._whole("stores.memory_side_cache")

    @property
    def line_bytes(self) -> int:
        """Bytes of a cache line; 128 where the file does not say."""
        return self._whole("line", 128)

    @property
    def sector_bytes(self) -> int:
        """Bytes of the unit between DRAM and L2; a whole line where the file does not say."""
        return self._whole("sector", self.line_bytes)

    @property
    def sm_bytes(self) -> int:
        """All storage of one SM or core, registers too: what a bound on one must grant."""
        return sum(store.each_bytes for store in self.stores if store.of_each)

    @property
    def shared_bytes_per_sm(self) -> int | None:
        """Shared memory (LDS) the blocks of one SM can have together, in bytes."""
        return self._whole("limits.shared_per_sm") or None

    @property
    def shared_bytes_per_block(self) -> int | None:
        """Shared memory (LDS) one block can have, in bytes."""
        return self._whole("limits.shared_per_block") or None

    def limit(self, name: str) -> int:
        """What one SM, block or thread can have, by its key in ``[limits]``; 0 where the file does not say."""
        return self._whole(f"limits.{name}")

    def store_bytes(self, name: str) -> int:
        """Bytes of one store, by its key in ``[stores]``; 0 where there is none."""
        return self._whole(f"stores.{name}")

    @property
    def dram_bytes_per_second(self) -> float | None:
        """Peak DRAM bandwidth."""
        return self._optional("dram_bandwidth")

    @property
    def l2_bytes_per_second(self) -> float | None:
        """L2 bandwidth where it was measured: the plateau of small footprints."""
        return self._optional("l2_bandwidth")

    @property
    def boost_hertz(self) -> float | None:
        """Boost clock."""
        return self._optional("boost_clock")

    def peak_flops(self, dtype: str) -> float | None:
        """Peak dense operations per second for inputs of a type, or None when it is not known."""
        return self._optional(f"throughput.{dtype}")

    @property
    def stores(self) -> tuple[Store, ...]:
        """Every on-chip store between DRAM and the ALUs: the terms of :attr:`on_chip_bytes`."""
        return tuple(
            Store(key, int(quantity.base), copies_of(key, self.sms))
            for key, quantity in self.quantities
            if key.startswith("stores.")
        )

    @property
    def on_chip_bytes(self) -> int:
        """The chip capacity: all that can hold a value between DRAM and the ALUs, in bytes."""
        return sum(store.total_bytes for store in self.stores)

    def to_json(self) -> dict[str, object]:
        """The machine as plain data, for ``--json``."""
        return {
            "sku": self.sku,
            "name": self.name,
            "vendor": self.vendor or None,
            "compute_capability": self.compute_capability or None,
            "dram_kind": self.dram_kind or None,
            **({"kind": self.kind, "network": self.network or None} if self.explicit else {}),
            "sms": self.sms,
            "l2_bytes": self.l2_bytes,
            "l2_partitions": self.l2_partitions,
            "dram_bytes_per_second": self.dram_bytes_per_second,
            "on_chip_bytes": self.on_chip_bytes,
            "cache_model": None if self.explicit else self.default_model.to_json(),
            "stores": [{**store._asdict(), "total_bytes": store.total_bytes} for store in self.stores],
            "quantities": {key: quantity.to_json() for key, quantity in self.quantities},
        }


_FOLDER = Path(__file__).parent / "machines"
_SCRATCHPADS = _FOLDER / "scratchpads"


def machine_names() -> tuple[str, ...]:
    """The SKUs of GPUs that come with pebble, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def scratchpad_names() -> tuple[str, ...]:
    """The accelerators that are not GPUs and come with pebble, sorted."""
    return tuple(sorted(path.stem for path in _SCRATCHPADS.glob("*.toml")))


# What people call a chip, and the commonest SKU of it.
SHORT_NAMES = {
    "4090": "rtx4090",
    "a100": "a100-sxm4-80gb",
    "b200": "b200-sxm",
    "h100": "h100-sxm5-80gb",
    "h200": "h200-sxm-141gb",
}


@cache
def load_machine(name: str) -> Machine:
    """The machine of a SKU that comes with pebble.

    Parameters
    ----------
    name : str
        As ``pebble machines`` lists it, ``a100-sxm4-40gb``; or short, ``a100``: the commonest SKU of it.

    Raises
    ------
    UnknownNameError
        No such SKU; the message names those that contain the text, else the nearest.
    """
    scratchpads = scratchpad_names()
    names = machine_names() + scratchpads
    sku = SHORT_NAMES.get(name.lower(), name.lower())
    if sku not in names:
        error = UnknownNameError("machine", name, names, "pebble machines")
        text = name.strip().lower()
        containing = [known for known in names if text and text in known]
        if containing:  # "l40" is too short for a close match, yet says plainly what is meant
            error.nearest = containing
            error.args = (f"unknown machine {name!r}: did you mean {' or '.join(containing)}?",)
        raise error
    return load_machine_file((_SCRATCHPADS if sku in scratchpads else _FOLDER) / f"{sku}.toml")


def load_machine_file(path: str | Path) -> Machine:
    """The machine of a TOML file; the format is in the module's docstring.

    Raises
    ------
    InputError
        The file cannot be read, or one sentence with the file, the line and the key of the mistake.
    """
    return read_machine_bytes(read_bytes(path, "machine file ", MAX_FILE_BYTES, "; expected a TOML file"), path)


def read_machine_bytes(content: bytes, path: str | Path) -> Machine:
    """The machine of a TOML file's content, whose name serves for messages; errors as for `load_machine_file`."""
    from pebble.models.machine_reader import read_machine

    text, data = parse_toml(content, path, "machine file ", "see `pebble machines --help`")
    return replace(read_machine(Path(path), text, data), file_sha256=hashlib.sha256(content).hexdigest())
