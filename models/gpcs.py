"""Which blocks of a wave sit in one GPC, and which GPCs on one side of the L2: where requests for a line are merged.

On an H200 the requests of the SMs of one GPC for one line cost L2 one request while the first is under way; requests
of different GPCs are never merged. Blocks of a grid of one block an SM are placed GPC by GPC. Both were measured
(``benchmarks/hardware/h200_gpc.json``). Which GPCs hang on which partition was not: of the ways to put 66 SMs on
each, the one is used whose fabric bytes are nearest to seven measured launches (``h200_l2_requests.csv``). An H100
has as many SMs and is taken to be alike; which SMs are switched off differs from chip to chip.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.models.machine import Machine

_PLACED = ((0, 8), (6, 18), (7, 18), (0, 8), (1, 16), (2, 16), (3, 16), (4, 16), (5, 16))  # GPC, blocks, in order
_NEAR = (0, 1, 2, 7)  # the GPCs of the first partition
_HOPPER, _SMS = 9.0, 132


class Gpcs(NamedTuple):
    """Where the blocks of a wave sit.

    Attributes
    ----------
    of_slot : ndarray of int64, shape (SMs,)
        The GPC of each block slot.
    part : ndarray of int64, shape (GPCs,)
        The L2 partition that each GPC hangs on.
    """

    of_slot: NDArray[np.int64]
    part: NDArray[np.int64]


def gpcs_of(machine: Machine, sms: int) -> Gpcs | None:
    """Those of a chip; None where no merging was measured, or where not all SMs run the kernel.

    Examples
    --------
    >>> from pebble.models.machine import load_machine
    >>> found = gpcs_of(load_machine("h200-sxm-141gb"), 132)
    >>> np.bincount(found.part[found.of_slot]).tolist()  # SMs on each partition
    [66, 66]
    >>> gpcs_of(load_machine("a40"), 84) is None
    True
    """
    if machine.capability != _HOPPER or machine.sms != _SMS or sms != _SMS:
        return None
    gpc, blocks = zip(*_PLACED, strict=True)
    of_slot = np.repeat(np.array(gpc, np.int64), blocks)
    return Gpcs(of_slot, np.where(np.isin(np.arange(max(gpc) + 1), _NEAR), 0, 1))
