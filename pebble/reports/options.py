"""What a question takes beside its workload, in groups, and where each option has a meaning: declared once, for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, ForwardRef, TypedDict, TypeVar

from pebble.errors import InputError, UnknownNameError
from pebble.game.buffer_model import KINDS, BufferModel
from pebble.models.machine import Machine

LEVELS = ("dram", "l2")

_MEMORY = "a workload and one memory between it and DRAM, whose bytes are counted"
_BOUNDARY_OF_SMS = "--level l2 or --buffers"
_A_WORKLOAD = "a workload (a DAG has no bytes and takes --capacity NUMBER)"
_SIMULATED = "a kernel that is simulated"
_ONE_SCHEDULE = "--schedule NAME, of which the order is known"

MEANING: Mapping[str, str] = {
    "gpu": _A_WORKLOAD,
    "machine": _A_WORKLOAD,
    "cache": _A_WORKLOAD,
    "sms": "a workload that runs on SMs",
    "recompute": "a workload (of a DAG --variant says it)",
    "accumulators": _MEMORY,
    "cases": "ffn, attention or a layer, between DRAM and one memory",
    "accumulator": "a workload on a GPU and the boundary to DRAM, of which time is told",
    "energy": "the boundary to DRAM of a workload on a GPU, or `compare`, of which energy is told",
    "level": _A_WORKLOAD,
    "buffers": _A_WORKLOAD,
    "omega": _BOUNDARY_OF_SMS,
    "topology": _BOUNDARY_OF_SMS,
    "multicast": _BOUNDARY_OF_SMS,
    "capacity": "a DAG (a workload takes --cache, --gpu or --machine)",
    "variant": "a DAG (a workload takes --cache, --gpu or --machine)",
    "time_limit": "--exact (only a solver takes as long as it may)",
    "exact": "one memory, in which the solver plays",
    "residual": _SIMULATED,
    "schedules": _SIMULATED,
    "schedule": f"{_SIMULATED}, without a trace",
    "sensitivity": _ONE_SCHEDULE,
    "write_trace": _ONE_SCHEDULE,
    "beside": _ONE_SCHEDULE,
    "beside_sms": "--beside MODEL:mlp",
    "beside_schedule": "--beside MODEL:mlp",
    "promote_every": _SIMULATED,
    "tile": _SIMULATED,
    "blocks_per_sm": _SIMULATED,
    "stages": _SIMULATED,
    "policy": _SIMULATED,
    "execution": f"{_SIMULATED} (a trace says itself what runs when)",
    "cluster": f"{_SIMULATED} (a trace says itself what runs when)",
    "seed": f"{_SIMULATED} (a trace says itself what runs when)",
    "allow_infeasible": _SIMULATED,
}
"""Where an option has a meaning, for the sentence that refuses it elsewhere."""


def refuse(kind: str, options: Mapping[str, object]) -> None:
    """Refuse options that would change nothing.

    Parameters
    ----------
    kind : str
        What they were given with.
    given : mapping of str to object
        By name; None and False are not given.

    Raises
    ------
    InputError
        One is given.
    """
    for name, value in options.items():
        if value is not None and value is not False:
            option = "accumulate" if name == "accumulators" else name.replace("_", "-")
            raise InputError(f"--{option}: got it with {kind}, expected {MEANING[name]}; leave it out.")


class BoundaryOptions(TypedDict, total=False):
    """The boundary asked about, between L2 and DRAM or L2 and SMs, and what is told of a GPU at the first.

    Attributes
    ----------
    level : {"dram", "l2"}
    buffers : {"single", "sm-local", "pooled", "connected"}
    omega, topology
        Connected: the cost of a value copied between SMs, and the network.
    accumulator : {"fp32", "fp16"}
        The type that sums are kept in, which may change the peak that the floor on time uses.
    energy : {"7nm", "k40", "h100"}
        The table of an energy estimate.
    """

    level: str | None
    buffers: str | None
    omega: str | float | None
    topology: str | None
    accumulator: str | None
    energy: str | None


class BoundOptions(BoundaryOptions, total=False):
    """What `pebble.bound` takes for workloads alone: the boundary, partial sums, a read for several SMs, and cases."""

    multicast: int | str | None
    accumulators: str | None
    cases: int | str | None


class MemoryOptions(TypedDict, total=False):
    """Several memories of a game.

    Attributes
    ----------
    buffers : {"sm-local", "pooled", "connected"} or BufferModel
    sms : int
        How many.
    omega, topology
        Connected: the cost of a copy, and the network.
    """

    buffers: str | BufferModel | None
    sms: int | str | None
    omega: str | float | None
    topology: str | None


class GameOptions(MemoryOptions, total=False):
    """The memories of a game: their size where it is that of a chip, and the most tasks of an SM, or an even share.

    Attributes
    ----------
    gpu, machine, cache : str
        The shared memory of one SM of a chip, or a size.
    level : {"l2", "dram"}
        Whose reads a measured omega is in.
    """

    gpu: str | Machine | None
    machine: str | None
    cache: str | None

    tasks_per_sm: int | str | None
    balanced: bool | None
    split: str | None
    level: str | None


@dataclass(frozen=True)
class Buffers:
    """The boundary asked about, and the buffers of the SMs there; None: not given.

    Attributes
    ----------
    level : {"dram", "l2"} or None
    buffers : str or None
        Their model: single, sm-local, pooled or connected.
    omega, topology
        What a copy between SMs costs, and the network.
    multicast : int, str or None
        SMs that one read of L2 may feed.

    Raises
    ------
    UnknownNameError
        No such level or buffer model.
    InputError
        They contradict each other.
    """

    level: str | None = None
    buffers: str | None = None
    omega: str | float | None = None
    topology: str | None = None
    multicast: int | str | None = None

    def __post_init__(self) -> None:
        for what, value, known in (("level", self.level, LEVELS), ("buffer model", self.buffers, KINDS)):
            if value is not None and value not in known:
                raise UnknownNameError(what, value, known, "pebble bound --help")
        if self.l2 and self.buffers == "single":
            raise InputError("--level l2: got --buffers single, expected sm-local, pooled or connected.")
        if not self.l2:
            of_sms = {"omega": self.omega, "topology": self.topology, "multicast": self.multicast}
            refuse("the boundary to DRAM", of_sms)

    @property
    def l2(self) -> bool:
        """Whether it is the boundary between L2 and the SMs."""
        return self.level == "l2" or (self.level is None and self.buffers not in (None, "single"))

    @property
    def words(self) -> str:
        """How the command line asks for it."""
        return f"--buffers {self.buffers}" if self.level is None else f"--level {self.level}"


@dataclass(frozen=True)
class ConcurrentFfn:
    """The FFN that runs beside an attention.

    Attributes
    ----------
    model : str
        ``MODEL:mlp``.
    sms : int, str or None
        How many it gets.
    schedule : str
    """

    model: str
    sms: int | str | None
    schedule: str


F = TypeVar("F", bound=Callable[..., Any])


def split_options(options: Mapping[str, Any], group: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """Every option of a group, None where it is not given; and the other keywords, the parameters of a family."""
    names = group.__annotations__
    return {name: options.get(name) for name in names}, {key: each for key, each in options.items() if key not in names}


def spelled_out(options: type, rest: str | None = None) -> Callable[[F], F]:
    """Show the keywords of ``**options``, a typed dict, in the signature of a function: for ``help`` and notebooks.

    Parameters
    ----------
    options : type
        The typed dict.
    rest : str, optional
        What further keywords are called, where the function takes any.
    """

    def mark(function: F) -> F:
        result = signature(function)
        *own, last = result.parameters.values()
        further = [] if rest is None else [last.replace(name=rest)]
        more = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=None,
                annotation=each.__forward_arg__ if isinstance(each, ForwardRef) else each,
            )
            for name, each in options.__annotations__.items()
        ]
        vars(function)["__signature__"] = result.replace(parameters=[*own, *more, *further])
        return function

    return mark
