"""What moving bytes and multiplying them costs in energy, by published and measured tables: estimates, none proved.

A table is a TOML file of ``models/energy``: picojoules for a byte at each level, and for an operation of each type,
with source and mark. The tables differ several times over, by what they count and by the chip; what they agree on is
the order of the levels. No chip's own power is modelled: no leakage, no clock tree, no voltage.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pebble.errors import InputError, UnknownNameError, check_text
from pebble.models import machine as machines
from pebble.models.machine import Machine
from pebble.schedules.explicit.dataflow import Moved
from pebble.workloads.workload import Workload

_FOLDER = Path(machines.__file__).parent / "energy"
_PICO = 1e-12


@dataclass(frozen=True)
class EnergyCost:
    """Energy of one byte or one operation.

    Attributes
    ----------
    picojoules : float
    per : str
        ``byte`` or ``operation``.
    mark : str
        ``published``, or ``guess`` where the source was not looked up again.
    source : str
    """

    picojoules: float
    per: str
    mark: str
    source: str


@dataclass(frozen=True)
class EnergyTable:
    """A published table.

    Attributes
    ----------
    key, name, about : str
        What the command line takes, what it is, and what it counts.
    prices : mapping of str to Price
        By level and kind: ``dram.hbm``, ``l2``, ``shared``, ``registers``, ``operations.bf16`` ...
    """

    key: str
    name: str
    about: str
    prices: Mapping[str, EnergyCost]

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        prices = {
            key: {f"picojoules_per_{price.per}": price.picojoules, "mark": price.mark, "source": price.source}
            for key, price in self.prices.items()
        }
        return {"table": self.key, "name": self.name, "about": self.about, "prices": prices}


def energy_tables() -> tuple[str, ...]:
    """The tables there are."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


@cache
def load_energy_table(name: str) -> EnergyTable:
    """The table of that name.

    Raises
    ------
    UnknownNameError
        No such table.

    Examples
    --------
    >>> load_energy_table("7nm").prices["l2"].picojoules
    1.75
    """
    names = energy_tables()
    if check_text("--energy", name, " or ".join(names)) not in names:
        raise UnknownNameError("energy table", name, names, "pebble compare --help")
    data = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    prices: dict[str, dict[str, Any]] = {}
    for key, entry in data.items():
        if isinstance(entry, dict):
            prices |= {key: entry} if "picojoules" in entry else {f"{key}.{kind}": item for kind, item in entry.items()}
    return EnergyTable(name, data["name"], data["about"], {key: EnergyCost(**entry) for key, entry in prices.items()})


@dataclass(frozen=True)
class Energy:
    """An estimate: joules by level, those that the table prices.

    Attributes
    ----------
    joules : mapping of str to float
        ``dram``, ``l2``, ``shared``, ``operations``.
    """

    joules: Mapping[str, float]

    @property
    def total(self) -> float:
        """All of them, joules."""
        return sum(self.joules.values())

    def to_json(self) -> dict[str, float]:
        """Plain data for ``--json``."""
        return {**{f"{level}_joules": value for level, value in self.joules.items()}, "total_joules": self.total}


def estimate(
    table: EnergyTable, machine: Machine, workload: Workload, dram_bytes: int, l2_bytes: int, copied_bytes: int = 0
) -> Energy:
    """What a workload takes by a table.

    Parameters
    ----------
    table : EnergyTable
    machine : Machine
        Its kind of DRAM is priced.
    workload : Workload
        Its operations are.
    dram_bytes, l2_bytes : int
        Read and written. What passes between L2 and an SM is taken to pass through shared memory once in and once out;
        how often registers are read is not known, and is left out.
    copied_bytes : int
        From SM to SM.

    Raises
    ------
    InputError
        The table has no price of that DRAM, or bytes are copied and it has none of that.
    """
    _check_dram(table, machine)
    _check_copies(table, copied_bytes)
    amounts = {
        "dram": (_dram_key(machine), dram_bytes),
        "l2": ("l2", l2_bytes),
        "copies": ("copies", copied_bytes),
        "shared": ("shared", 2 * (l2_bytes + copied_bytes)),
        "operations": (f"operations.{workload.dtype}", workload.flops),
    }
    result = {level: (table.prices.get(key), amount) for level, (key, amount) in amounts.items()}
    spent = {level: _PICO * price.picojoules * amount for level, (price, amount) in result.items() if price}
    return Energy({level: joules for level, joules in spent.items() if joules or level != "copies"})


def estimate_on_sms(table: EnergyTable, workload: Workload, l2_bytes: float, copied_bytes: float) -> Energy:
    """What a schedule on SMs with buffers of their own takes by a table; DRAM is not in it.

    Parameters
    ----------
    table : EnergyTable
    workload : Workload
        Its operations are priced.
    l2_bytes, copied_bytes : float
        Between L2 and the SMs, and from SM to SM. Both are taken to pass through shared memory once in and once out.

    Raises
    ------
    InputError
        Bytes are copied, and the table has no price of that.

    Examples
    --------
    >>> from pebble.workloads import Gemm
    >>> found = estimate_on_sms(load_energy_table("h100"), Gemm(1, 1, 1), 1e9, 1e9)
    >>> {name: round(joules, 4) for name, joules in found.joules.items()}
    {'l2': 0.0285, 'copies': 0.03, 'operations': 0.0}
    """
    _check_copies(table, copied_bytes)
    amounts = {
        "l2": ("l2", l2_bytes),
        "copies": ("copies", copied_bytes),
        "shared": ("shared", 2 * (l2_bytes + copied_bytes)),
        "operations": (f"operations.{workload.dtype}", workload.flops),
    }
    result = {level: (table.prices.get(key), amount) for level, (key, amount) in amounts.items()}
    return Energy({level: _PICO * price.picojoules * amount for level, (price, amount) in result.items() if price})


def estimate_on_cores(table: EnergyTable, machine: Machine, workload: Workload, moved: Moved) -> Energy:
    """What a schedule on scratchpads takes: by the machine file's own numbers, by the table where it has none.

    The table's price of L2 is taken for a shared buffer, that of shared memory for a scratchpad, which every byte is
    taken to pass once in and once out; its price of a byte copied between SMs, where it has one, for each hop.

    Raises
    ------
    InputError
        Neither machine file nor table has a price of the memory off chip.
    """
    if machine.get("energy.dram") is None:
        _check_dram(table, machine)
    buffer = bool(machine.store_bytes("shared_buffer"))
    amounts = {
        "dram": (_dram_key(machine), moved.off_chip),
        "shared_buffer": ("l2", moved.shared),
        "network": ("copies", moved.hop_bytes),
        "scratchpad": ("shared", 2 * moved.into_cores(buffer)),
        workload.dtype: (f"operations.{workload.dtype}", workload.unmasked_flops),
    }
    result = {}
    for level, (key, amount) in amounts.items():
        own, price = machine.get(f"energy.{level}"), table.prices.get(key)
        picojoules = own.base if own is not None else price.picojoules if price is not None else None
        if picojoules is not None and (amount or level in ("dram", "scratchpad")):
            result["operations" if level == workload.dtype else level] = _PICO * picojoules * amount
    return Energy(result)


def _check_copies(table: EnergyTable, copied_bytes: float) -> None:
    if copied_bytes and "copies" not in table.prices:
        raise InputError(
            f"--energy: got table {table.key}, which has no price of a byte copied between SMs; expected one that has: "
            "h100."
        )


def _check_dram(table: EnergyTable, machine: Machine) -> None:
    if _dram_key(machine) not in table.prices:
        raise InputError(
            f"--energy: got table {table.key}, which has no price of the DRAM of {machine.name}; expected one that "
            "has: 7nm or k40."
        )


def _dram_key(machine: Machine) -> str:
    """HBM or anything else, which goes over the board."""
    return "dram.hbm" if machine.dram_kind.lower().startswith("hbm") else "dram.gddr"
