"""The rules of a game: which variant, in which memories, on how many SMs, and what each may do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pebble.errors import InputError
from pebble.game import BufferModel, Game
from pebble.models.machine import Machine
from pebble.reports.on_sms import SmMemory, read_memory
from pebble.reports.sm_memory import MEASURED, read_buffers
from pebble.reports.target import chip_of, find_gpu, gpu_only, whole
from pebble.units import ceil_div

MAX_CAPACITY = 2**60
_MAX_SMS = 16


@dataclass(frozen=True)
class GameRules:
    """The game that is played, as `pebble.solve` takes it.

    Attributes
    ----------
    variant : str or None
    buffers : str, BufferModel or None
        The memories; ``sms``, ``omega``, ``topology``, ``tasks_per_sm`` and ``split`` are of several.
    unit_weights : bool
    """

    variant: str | None = None
    buffers: str | BufferModel | None = None
    sms: int | str | None = None
    omega: str | float | None = None
    topology: str | None = None
    tasks_per_sm: int | str | None = None
    split: str | None = None
    unit_weights: bool = False
    gpu: str | Machine | None = None
    machine: str | None = None
    cache: str | None = None
    level: str | None = None
    balanced: bool = False

    def memory(self, values: dict[str, Any], capacity: int | str | None) -> SmMemory:
        """The memory, or each of them; gives ``values``, of the family, a type where it is in bytes.

        Raises
        ------
        InputError
            An option missing, out of range, or without what it needs.
        """
        if self.level not in (None, "l2", "dram"):
            raise InputError(f"--level: got {self.level[:40]!r}, expected l2 or dram: what loads and stores go to.")
        if self.level is not None and self.omega != MEASURED:
            raise InputError(
                f"--level: got {self.level}, expected --omega {MEASURED} with it: it says what is measured."
            )
        size = None if capacity is None else whole("--capacity", capacity, 0, MAX_CAPACITY)
        where = {"gpu": self.gpu, "machine": self.machine, "cache": self.cache}
        return read_memory(values, size, where, self.omega, self.level)

    def share(self, tasks: int) -> int | None:
        """The most tasks of an SM, of so many: given, or with ``balanced`` an even share."""
        if not self.balanced:
            return self.most_tasks
        if self.tasks_per_sm is not None:
            raise InputError("--balanced: got --tasks-per-sm beside it, expected one of them.")
        memories = self.memories
        return None if memories is None else ceil_div(tasks, memories.sms)

    @property
    def most_tasks(self) -> int | None:
        """The most tasks of an SM.

        Raises
        ------
        InputError
            Out of range.
        """
        return None if self.tasks_per_sm is None else whole("--tasks-per-sm", self.tasks_per_sm, 1, 10**6)

    @property
    def products(self) -> tuple[int, int] | None:
        """SMs of the first and of the second product of a chain, where each product has its own.

        Raises
        ------
        InputError
            Not two numbers, as in 2:1.
        """
        if self.split is None:
            return None
        parts = str(self.split).split(":")
        if len(parts) != 2:
            raise InputError(
                f"--split: got {str(self.split)[:40]!r}, expected the SMs of each of two products, such as 2:1."
            )
        first, second = (whole("--split", part, 1, _MAX_SMS) for part in parts)
        return first, second

    def _sms_of(self, products: tuple[int, int]) -> int:
        sms = sum(products)
        if sms > _MAX_SMS or (self.sms is not None and whole("--sms", self.sms, 1, _MAX_SMS) != sms):
            expected = f"at most {_MAX_SMS} SMs in all" if sms > _MAX_SMS else f"--sms {sms}, or none"
            raise InputError(f"--split: got {self.split}, which needs {sms} SMs; expected {expected}.")
        return sms

    def placed(self, game: Game) -> Game:
        """The game, where each product has its SMs with these alone.

        Raises
        ------
        InputError
            It is no chain of two products.
        """
        if self.products is None:
            return game
        if self.memories is not None and self.memories.memories == 1:
            raise InputError(f"--split: got {self.memories}, one memory; expected sm-local or connected.")
        from pebble.solvers.several.common import product_sms

        return replace(game, allowed=product_sms(game, *self.products))

    @property
    def memories(self) -> BufferModel | None:
        """The memories, None for one.

        Raises
        ------
        InputError
            An option out of range, or without buffers.
        """
        if isinstance(self.buffers, BufferModel):
            if self.products is not None and self.buffers.sms != self._sms_of(self.products):
                raise InputError(f"--split: got {self.split} for {self.buffers.sms} SMs, expected as many.")
            return self.buffers
        if self.buffers is not None and self.buffers != "single":
            sms = 2 if self.sms is None else whole("--sms", self.sms, 1, _MAX_SMS)
            if self.products is not None:
                sms = self._sms_of(self.products)
            chip = gpu_only(find_gpu(self.gpu)) if self.gpu is not None else None
            chip = chip_of(None, self.machine) if self.machine is not None else chip
            return read_buffers(self.buffers, sms, self.omega, self.topology, chip, self.level or "l2")
        of_several = {
            "sms": self.sms,
            "omega": self.omega,
            "topology": self.topology,
            "tasks-per-sm": self.tasks_per_sm,
            "balanced": self.balanced or None,
            "split": self.split,
        }
        for option, value in of_several.items():
            if value is not None:
                raise InputError(f"--{option}: expected --buffers sm-local, pooled or connected with it.")
        return None
