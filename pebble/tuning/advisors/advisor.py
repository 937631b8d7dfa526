"""What an advisor of tile sizes answers: a kernel that fits the chip, and by which measure it was chosen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pebble.models.kernel_fit import KernelNeeds
from pebble.models.machine import Machine
from pebble.schedules.orders import OrderParams, TileOrder
from pebble.schedules.orders.libraries import deepgemm
from pebble.schedules.orders.order import Multicast
from pebble.schedules.tables.own import FunctionOrder
from pebble.schedules.tile import TileShape
from pebble.workloads.workload import Workload


@dataclass(frozen=True)
class Advice:
    """One kernel.

    Attributes
    ----------
    tile : TileShape
        As the kernel is written: a problem may be smaller.
    stages, threads : int
        Of a block; threads with those that only load.
    sms, blocks_per_sm : int
        That it runs on.
    needs : KernelNeeds
        Of a block, as the advisor counts it.
    schedule : object
        In which order tiles are walked: what `pebble.simulate` takes.
    multicast : str
        The operand whose loads two blocks share: ``none``, ``a`` or ``b``.
    score : float
        The advisor's own measure, least first.
    of : str
        The advisor.
    scale_bytes, barrier_bytes : int
        Of the shared memory that the block needs, all stages together.
    """

    tile: TileShape
    stages: int
    threads: int
    sms: int
    blocks_per_sm: int
    needs: KernelNeeds
    schedule: Any
    multicast: Multicast
    score: float
    of: str
    scale_bytes: int = 0
    barrier_bytes: int = 0

    @property
    def slots(self) -> int:
        """Blocks that run at once."""
        return self.sms * self.blocks_per_sm


class Advisor(ABC):
    """A rule that chooses a kernel for a workload.

    Attributes
    ----------
    name : str
        The word that selects it.
    what, source : str
        What it does, and where the rule stands.
    measure : str
        What its scores are; empty where they are the modelled time itself.
    """

    name: ClassVar[str]
    what: ClassVar[str]
    source: ClassVar[str]
    measure: ClassVar[str] = ""

    @abstractmethod
    def advise(self, workload: Workload, machine: Machine, sms: int) -> list[Advice]:
        """Kernels that fit the chip, the best first.

        Raises
        ------
        InputError
            The rule is not for this workload, type or chip.
        """


def in_groups(group: int, axis: str, multicast: Multicast) -> Any:
    """DeepGEMM's walk: groups of tile rows (axis ``m``) or columns (``n``), odd widths apart where it multicasts."""
    if multicast == "none" and axis == "m":
        return TileOrder("deepgemm", group)

    def walk(rows: int, cols: int, params: OrderParams) -> Any:
        if multicast == "none":  # along n without multicast: the same walk with rows and columns changed
            return deepgemm(cols, rows, group)[:, ::-1]
        return TileOrder("deepgemm", group).tiles(rows, cols, replace(params, multicast=multicast))

    return FunctionOrder(f"deepgemm-{group} along {axis}", walk)
