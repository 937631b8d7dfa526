"""What an explicit schedule of an FFN or of attention says about itself, fused or kernel by kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pebble.schedules.explicit.chain import ChainPlan
from pebble.schedules.explicit.gemm_search import ExplicitProduct
from pebble.schedules.explicit.phases import Phases
from pebble.schedules.explicit.remainder import PanelsWithRemainder
from pebble.workloads import Attention, Ffn
from pebble.workloads.widths import ALIKE, FastMemory

# family -> side that is cut into bands, rule inside a band; the plain ones first
FUSED_FAMILIES = {
    "row panel": ("rows", "panel"),
    "column panel": ("hidden", "panel"),
    "hidden block": ("rows", "block"),
    "Y stationary": ("rows", "spill"),
    "bands of rows": ("rows", "any"),
    "bands of hidden units": ("hidden", "any"),
}


REMAINDER = "panel without a corner"
PHASES = "two phases"
Plan = ChainPlan | PanelsWithRemainder | Phases


def family_of_plan(plan: Plan) -> str:
    """The plainest family that a plan belongs to."""
    if not isinstance(plan, ChainPlan):
        return REMAINDER if isinstance(plan, PanelsWithRemainder) else PHASES
    panels = [b.block == 1 and (b.blocks == 1 or b.carried_first == plan.chain.k) for b, _ in plan.runs]
    spilled = [b.spilled > 0 for b, _ in plan.runs]
    if all(spilled):
        return "Y stationary"
    if all(panels) and not any(spilled):
        return "row panel" if plan.side == "rows" else "column panel"
    if not any(b.carried_first or b.carried_second for b, _ in plan.runs):
        return "hidden block"
    return "bands of rows" if plan.side == "rows" else "bands of hidden units"


@dataclass(frozen=True)
class Kernel:
    """A kernel of an unfused schedule that is no matrix product: values moved by operand, and most held at once.

    ``row_stays``, of a softmax: whether a row is held between its sum and its division, or read twice.
    """

    name: str
    loads: Mapping[str, int]
    stores: Mapping[str, int]
    peak_elements: int
    row_stays: bool = True


@dataclass(frozen=True)
class FusedSchedule:
    """A legal schedule of an FFN or of attention and its exact traffic: fused, or kernel by kernel.

    Attributes
    ----------
    family, detail : str
        How it goes about it, for a reader: a key of ``FUSED_FAMILIES``, `REMAINDER`, `PHASES`, ``"flash attention"``,
        ``"unfused"``, `row_state.FAMILY` or `token_groups.FAMILY`; ``detail`` tells bands and blocks.
    workload : Ffn or Attention
    loads, stores : mapping of str to int
        Values moved, by operand (``H`` or ``S``: hidden layer or scores), over all groups.
    peak_elements : int
        Most values held at once.
    memory : FastMemory
        The memory.
    bytes : int
        Loads plus stores, in bytes, each value at its width.
    plan : ChainPlan, PanelsApart or Phases, optional
        The bands, when fused; of one group, when there are several.
    kernels : tuple
        The kernels, when not.
    groups : tuple of (int, FusedSchedule)
        Numbers of tokens, one after the other, each with a schedule of its own; then neither plan nor kernels.
    """

    family: str
    detail: str
    workload: Ffn | Attention
    loads: Mapping[str, int]
    stores: Mapping[str, int]
    peak_elements: int
    memory: FastMemory
    bytes: int
    plan: Plan | None = None
    kernels: tuple[ExplicitProduct | ChainPlan | Kernel, ...] = ()
    groups: tuple[tuple[int, FusedSchedule], ...] = ()

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def name(self) -> str:
        """For tables; ``compulsory`` in front when nothing is moved twice."""
        text = f"{self.family}: {self.detail}"
        return f"compulsory, {text}" if self.elements == self.workload.compulsory_elements else text

    @property
    def first_rows(self) -> int:
        """Rows of X of an FFN that its first band holds from its start, whole: they may be there before."""
        if self.groups:
            return self.groups[0][1].first_rows
        plan = self.plan.first if isinstance(self.plan, Phases) else self.plan
        if not isinstance(plan, ChainPlan) or plan.side != "rows":
            return 0
        band, _ = plan.runs[0]
        return band.extent if band.carried_first == plan.chain.k and band.blocks > 1 and not band.spilled else 0

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        fields: dict[str, object] = {
            "family": self.family,
            "detail": self.detail,
            "elements": self.elements,
            "loads_elements": dict(self.loads),
            "stores_elements": dict(self.stores),
            "peak_elements": self.peak_elements,
        }
        return fields if self.memory.widths == ALIKE else fields | {"widths_bytes": self.memory.widths.to_json()}
