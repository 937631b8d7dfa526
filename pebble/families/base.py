"""A workload family: everything the rest of the program asks of one, in one object.

The shape itself (dimensions, operands, operations) is a frozen dataclass of `pebble.workloads`. A family says what it
is called, what it takes, which theorem bounds it, which schedules it has, how its kernels run, and its computation
DAG. A `Family` answers what every workload has; a `KernelFamily` also has GPU kernels that can be simulated. Nothing
outside this room asks a workload for its type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar, cast

from pebble.bounds import Accounting, Formula, LowerBound, in_bytes, lower_bound, separate_bound
from pebble.bounds.published import compulsory_formula
from pebble.cdag.catalogue import SUMS, DagFamily
from pebble.errors import InputError, UnknownNameError
from pebble.families.schedules import Explicit, Named, OnSms
from pebble.families.spaces.space import Space
from pebble.game.buffer_model import BufferModel
from pebble.models.kernel_fit import KernelNeeds
from pebble.models.speeds import LONG_STEPS, LONG_STEPS_ON_SM, drifts_far
from pebble.schedules.kernel import TableKernel
from pebble.schedules.tables import Launch, TileTable
from pebble.schedules.tables.named import named_table
from pebble.schedules.tables.own import OwnSchedule
from pebble.schedules.tables.registry import KERNELS
from pebble.schedules.tables.source import own_schedule, packaged_order
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig, Traffic, simulate_trace
from pebble.simulation.table import run_table, table_program
from pebble.traces import LINE_BYTES, Trace
from pebble.traces.program import Program
from pebble.workloads.base import DTYPE_BYTES, Workload
from pebble.workloads.parameters import Parameter, read_values
from pebble.workloads.widths import Room

W = TypeVar("W", bound=Workload)
S = TypeVar("S", bound=Named)

DTYPES = (
    Parameter(
        "--dtype", "choice", "type of the inputs: " + ", ".join(DTYPE_BYTES) + " (bf16)", choices=(*DTYPE_BYTES,)
    ),
    Parameter("--out-dtype", "choice", "type of the output (the inputs', bf16 for fp8)", choices=(*DTYPE_BYTES,)),
)


class Family(ABC, Generic[W]):
    """What is asked of any family.

    Attributes
    ----------
    name : str
        The word that selects it.
    shape : type
        Its workloads.
    computes, example : str
        What it is, in a line, and how it is written.
    parameters : tuple of Parameter
        Beside the data types.
    chained : bool
        Whether its workloads have intermediates, which separate kernels would pass through memory.
    has_residual : bool
        Whether an input can be read again and added to the output.
    recompute_helps : bool
        Whether computing a value twice may lower the optimum, so that a bound must say which game it is for.
    """

    name: ClassVar[str]
    shape: ClassVar[type]
    computes: ClassVar[str]
    example: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]
    chained: ClassVar[bool] = False
    has_residual: ClassVar[bool] = False
    recompute_helps: ClassVar[bool] = True

    def make(self, **values: Any) -> Workload:
        """A workload from parameters that have been read."""
        workload: Workload = self.shape(**values)
        return workload

    def read(self, values: Mapping[str, object]) -> Workload:
        """A workload from the command line or from keywords.

        Raises
        ------
        InputError
            A parameter missing, foreign to the family, or malformed.
        UnknownNameError
            An unknown choice.
        """
        return self.make(**read_values(self.name, (*self.parameters, *DTYPES), values))

    def own(self, workload: Workload) -> W | None:
        """The workload, if it is one of this family."""
        return cast(W, workload) if isinstance(workload, self.shape) else None

    @property
    def simulated(self) -> KernelFamily[Any, Any] | None:
        """The family itself where it has kernels to simulate; else None."""
        return None

    @abstractmethod
    def accounting(self, workload: W) -> Accounting:
        """What the theorems need to know of a workload."""

    def lower_bound(self, workload: W, capacity: int, recompute: bool = False, room: Room | None = None) -> LowerBound:
        """The best proven lower bound for ``capacity`` values; with recomputation allowed, if asked.

        ``room``: the same memory in bytes, where values of several widths, or partial sums, share it.

        Raises
        ------
        InfeasibleError
            Capacity below the least that works.
        """
        told = self.accounting(workload)
        if room is None:
            return lower_bound(told, capacity, recompute)
        # prices are looked for where lines prove more, in bytes or in values
        plain = replace(told, priced=False)
        values = lower_bound(plain, capacity, recompute)
        if in_bytes(plain, values, room) is values:
            values = lower_bound(told, capacity, recompute)
        return in_bytes(told, values, room)

    def instead(self, workload: W) -> str:
        """Of a family without kernels: what to ask in place of a simulation."""
        return f"there is no simulated kernel of the family {self.name}; `pebble bound` takes this one"

    def separate_bound(self, workload: W, capacity: int, room: Room | None = None) -> LowerBound | None:
        """The least when every intermediate goes through slow memory; None where there is none."""
        if not self.chained:
            return None
        told = self.accounting(workload)
        found = separate_bound(told, capacity)
        return found if room is None else in_bytes(told, found, room)

    def published(self, workload: W, capacity: int, processors: int = 1) -> tuple[Formula, ...]:
        """Published bounds on this instance, on ``processors`` SMs where they tell; not yet judged."""
        return (compulsory_formula(workload.compulsory_elements),)

    def best_schedule(self, workload: W, room: Room) -> Explicit | None:
        """The best legal schedule known in a memory; None where none is built or fits.

        Raises
        ------
        InfeasibleError
            Too little for any schedule that is known, in a sentence.
        """
        return None

    def stateless_schedule(self, workload: W, room: Room) -> Explicit | None:
        """The best schedule known if what it keeps beside operands takes no room; None where it keeps nothing."""
        return None

    def reduced(self, workload: W, tile: TileShape, side: int, depth: int) -> Workload | None:
        """For pictures: at most ``side`` tiles a side, in proportion, ``depth`` steps of k; None for no picture."""
        return None

    def best_on_sms(self, workload: W, sms: int, capacity: int, omega: Fraction, group: int) -> OnSms:
        """The best schedule known on ``sms`` memories of ``capacity`` values, copies within groups of ``group``.

        Raises
        ------
        InputError
            The family is not bounded for several SMs.
        """
        raise InputError(
            f"buffers: got {self.name}, expected gemm, ffn or attention: only these are bounded for several SMs."
        )

    def best_in_buffers(self, workload: W, capacity: int, buffers: BufferModel) -> OnSms | None:
        """The best schedule known under a buffer model; None for one memory, which has schedules of its own.

        In a ring, a mesh or two partitions no copies are used: what is shown is the sm-local schedule.
        """
        if buffers.memories == 1:
            return None
        group = 1
        if buffers.kind == "connected" and (buffers.net.group < buffers.sms or buffers.net.uniform):
            group = buffers.net.group
        return self.best_on_sms(workload, buffers.sms, capacity, buffers.omega, group)

    def busiest_sm(self, workload: W, capacity: int, sms: int) -> dict[str, int] | None:
        """What is proved of the SM that does most, as plain data; None where nothing is."""
        return None

    def best_multicast(self, workload: W, sms: int, capacity: int, multicast: int) -> OnSms | None:
        """The best schedule known in which a read of L2 feeds up to ``multicast`` SMs; None where none is built."""
        return None

    @property
    def dag(self) -> DagFamily | None:
        """Its computation DAG at small scale, if it has one."""
        return None

    def dag_of(self, build: Callable[..., Any], tiles: str, example: str, computes: str) -> DagFamily:
        """The DAG family with this family's parameters."""
        return DagFamily(self.name, f"{computes}; tiles over {tiles}", build, (*self.parameters, *SUMS), example)


class KernelFamily(Family[W], Generic[W, S]):
    """A family with GPU kernels.

    Attributes
    ----------
    schedules_help : str
        What the names of its schedules are.
    daily : tuple of str
        Those in daily use, of which a user who names none would run the fastest.
    timed : bool
        Whether they also run under the execution models of `pebble.schedules.execution`; all run in lock step.
    rounds_partial_sums : bool
        Whether some of its kernels pass a partial sum of the output on through memory at the output's width.
    hides_phases : bool
        Whether the phases of a block step overlap in the fastest kernels and do not in those modelled here.
    space : Space, optional
        What a search can try; None where no search is written.
    """

    schedules_help: ClassVar[str]
    daily: ClassVar[tuple[str, ...]]
    timed: ClassVar[bool] = False
    rounds_partial_sums: ClassVar[bool] = False
    hides_phases: ClassVar[bool] = False
    space: ClassVar[Space[Any, Any] | None] = None

    @property
    def simulated(self) -> KernelFamily[Any, Any]:
        return self

    @property
    def kernel(self) -> type[TableKernel]:
        """The kernel that walks its tables."""
        return KERNELS[self.name]

    def default_tile(self, workload: W) -> TileShape:
        """128 x 128 and 128 bytes of k."""
        return TileShape(128, 128, LINE_BYTES // workload.in_bytes)

    @abstractmethod
    def cut_tile(self, tile: TileShape, workload: W) -> TileShape:
        """The tile, cut short where it is larger than the problem."""

    def tile_text(self, tile: TileShape) -> str:
        """The tile as this family writes it."""
        return str(tile)

    @abstractmethod
    def all_schedules(self, workload: W, tile: TileShape) -> Sequence[S]:
        """Every schedule that ``all`` stands for."""

    @abstractmethod
    def parse_schedule(self, text: str) -> S:
        """A schedule by name.

        Raises
        ------
        UnknownNameError
            No such schedule.
        """

    def read_schedule(self, given: object) -> S | OwnSchedule:
        """A schedule by name; or one of the user's own: a table, a function, a file, an order of a package.

        Raises
        ------
        UnknownNameError
            No such schedule.
        InputError
            A file that is none.
        """
        own = own_schedule(given)
        if own is not None:
            return own
        try:
            return self.parse_schedule(given)  # type: ignore[arg-type]  # it says what it got
        except UnknownNameError:
            packaged = packaged_order(given) if isinstance(given, str) else None
            if packaged is None and isinstance(given, str) and "," in given:
                raise InputError(
                    f"--schedule: got {given[:80]!r}, expected one; `pebble compare --schedules` takes several."
                ) from None
            if packaged is None:
                raise
            return packaged

    @abstractmethod
    def kernel_needs(self, workload: W, tile: TileShape, stages: int = 1) -> KernelNeeds:
        """What a block keeps on its SM; the most that any kernel of the family keeps."""

    def advised_needs(self, workload: W, tile: TileShape, stages: int = 1) -> KernelNeeds:
        """The same of a kernel that an advisor offers."""
        return self.kernel_needs(workload, tile, stages)

    def k_tile(self, workload: W, tile: TileShape) -> tuple[int, int, bool]:
        """Of a step of a block: columns that its rows meet, values of each, and whether the rows stay on the SM."""
        return tile.bn, tile.bk, False

    def values_held(self, workload: W, config: KernelConfig, stages: int = 1) -> int:
        """Values that all running blocks hold together, besides the cache."""
        return config.wave_blocks * self.kernel_needs(workload, config.tile, stages).values

    def bytes_held(self, workload: W, config: KernelConfig, stages: int = 1) -> int:
        """Bytes that all running blocks hold together, besides the cache: accumulators in fp32."""
        needs = self.kernel_needs(workload, config.tile, stages)
        return config.wave_blocks * (needs.accumulator_bytes + needs.shared_bytes)

    def trace(self, workload: W, schedule: S | OwnSchedule, config: KernelConfig, residual: bool = False) -> Trace:
        """What one schedule touches, in order.

        Raises
        ------
        InputError
            Too long, or a tile that the schedule cannot take.
        """
        if isinstance(schedule, OwnSchedule):
            return run_table(self.table(workload, schedule, config), config, residual)
        return self.named_trace(workload, schedule, config, residual)

    def named_trace(self, workload: W, schedule: S, config: KernelConfig, residual: bool) -> Trace:
        """`trace` of a schedule that has a name."""
        return config.trace(self.named_program(workload, schedule, config, residual))

    def program(self, workload: W, schedule: S | OwnSchedule, config: KernelConfig, residual: bool = False) -> Program:
        """What one schedule does, block by block, in waves or free-running; errors as for `trace`."""
        if isinstance(schedule, OwnSchedule):
            return table_program(self.table(workload, schedule, config), config, residual)
        return self.named_program(workload, schedule, config, residual)

    @abstractmethod
    def named_program(self, workload: W, schedule: S, config: KernelConfig, residual: bool) -> Program:
        """`program` of a schedule that has a name."""

    def table(self, workload: W, schedule: S | OwnSchedule, config: KernelConfig) -> TileTable:
        """A schedule as the table that a kernel walks; errors as for `OwnSchedule.table` and `named_table`."""
        launch = Launch(
            config.tile, config.sms, config.blocks_per_sm, policy=config.policy, cache_bytes=config.cache_bytes
        )
        if isinstance(schedule, OwnSchedule):
            return schedule.table(workload, launch, config.order_params)
        return named_table(workload, schedule, launch)

    def simulate(self, workload: W, schedule: S | OwnSchedule, config: KernelConfig, residual: bool = False) -> Traffic:
        """What one schedule moves; errors as for `trace`."""
        trace = self.trace(workload, schedule, config, residual)
        return simulate_trace(schedule.name, trace, config.cache_bytes, config.policy)

    def walk(self, workload: W, schedule: S | OwnSchedule, config: KernelConfig) -> Hashable:
        """A key that two schedules share when they touch the same tiles in the same sequence."""
        return schedule if isinstance(schedule, OwnSchedule) else schedule.name

    def check(self, workload: W, config: KernelConfig) -> None:
        """Refuse what is too large to simulate, before any work is done for it.

        Raises
        ------
        InputError
            With the number that is too large.
        """

    def more_in_buffers(
        self, workload: W, capacity: int, buffers: BufferModel, tile: TileShape
    ) -> Iterator[tuple[str, OnSms]]:
        """Schedules under a buffer model that are worth a look beside `best_in_buffers`, each with a name."""
        return iter(())

    def grid(self, workload: W, tile: TileShape) -> tuple[int, int] | None:
        """Rows and columns of the grid of tiles that its schedules walk; None where they walk something else."""
        return None

    def sm_intensity(self, workload: W, tile: TileShape) -> float | None:
        """Operations of a block for each byte that it loads from L2, by a formula of the tile; None without one."""
        return None

    def loops(self, workload: W, tile: TileShape) -> Sequence[tuple[int, int]]:
        """Of each of its matrix products, steps of k in a tile, and tiles."""
        return ()

    def drifts(self, workload: W, schedule: str, config: KernelConfig) -> str:
        """Why blocks of a schedule that run free do not drift as the model says; empty where launches agree with it."""
        for steps, tiles in self.loops(workload, config.tile):
            if drifts_far(steps, tiles, config.sms):
                return (
                    f"with {steps:,} steps of k in a tile and {steps * tiles // config.sms:,} on an SM (from "
                    f"{LONG_STEPS} and {LONG_STEPS_ON_SM:,} on) blocks drift further apart than the model says, and "
                    "most launches move more than it says"
                )
        return ""

    def notes(self, residual: bool) -> tuple[str, ...]:
        """What a reader of simulated traffic must know of this family's kernels."""
        return ()
