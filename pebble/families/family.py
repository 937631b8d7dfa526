"""A workload family: everything the rest of the program asks of one, in one object.

The shape itself (dimensions, operands, operations) is a frozen dataclass of `pebble.workloads`. A family says what it
is called, what it takes, which theorem bounds it, which schedules it has, how its kernels run, and its computation
DAG. A `Family` answers what every workload has; a `KernelFamily` also has GPU kernels that can be simulated. Nothing
outside this room asks a workload for its type.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar, cast

from pebble.bounds import Accounting, Formula, LowerBound, in_bytes, lower_bound, separate_bound
from pebble.bounds.published import compulsory_formula
from pebble.cdag.catalogue import SUMS, DagFamily
from pebble.errors import InputError, UnknownNameError
from pebble.families.schedules import Explicit, Named, OnSeveralSms
from pebble.families.spaces.space import Space
from pebble.models.kernel_fit import KernelNeeds
from pebble.models.rates import LONG_STEPS, LONG_STEPS_ON_SM, drifts_far
from pebble.schedules.execution import FREE, WAVES, Execution
from pebble.schedules.kernel import InClusters, TableKernel
from pebble.schedules.tables import Launch, TileTable
from pebble.schedules.tables.own import OwnSchedule
from pebble.schedules.tables.registry import KERNELS, named_table
from pebble.schedules.tables.source import own_schedule, packaged_order
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig, Traffic, simulate_trace
from pebble.simulation.table import table_program
from pebble.traces import LINE_BYTES, Trace
from pebble.traces.program import Program
from pebble.workloads.parameters import Parameter, read_values
from pebble.workloads.widths import FastMemory
from pebble.workloads.workload import DTYPE_BYTES, Workload

W = TypeVar("W", bound=Workload)
S = TypeVar("S", bound=Named)

DTYPES = (
    Parameter(
        "--dtype", "choice", "type of the inputs: " + ", ".join(DTYPE_BYTES) + " (bf16)", choices=(*DTYPE_BYTES,)
    ),
    Parameter("--out-dtype", "choice", "type of the output (the inputs', bf16 for fp8)", choices=(*DTYPE_BYTES,)),
)


class Family(OnSeveralSms[W], Generic[W]):
    """What is asked of any family.

    Attributes
    ----------
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
    side_by_side : bool
        Whether ``compare`` sets `schedules` side by side, since no kernel is simulated.
    """

    shape: ClassVar[type]
    computes: ClassVar[str]
    example: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]
    chained: ClassVar[bool] = False
    has_residual: ClassVar[bool] = False
    recompute_helps: ClassVar[bool] = True
    side_by_side: ClassVar[bool] = False

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

    def words(self, workload: W) -> list[str]:
        """Its shape as it is written on the command line; what goes without saying is left out."""
        values, result = workload.values(), [self.name]
        shape = {p.name: value for p in self.parameters if (value := values.get(p.name)) not in (None, (), False)}
        for parameter in self.parameters:
            if parameter.name in shape and (parameter.required or not self._goes_without(parameter.name, shape)):
                result += parameter.words(shape[parameter.name])
        return result

    def _goes_without(self, name: str, shape: Mapping[str, object]) -> bool:
        """Whether the same workload is read where a parameter is left out."""
        try:
            return self.read({other: value for other, value in shape.items() if other != name}) == self.read(shape)
        except InputError:  # another parameter leans on it
            return False

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

    def lower_bound(
        self, workload: W, capacity: int, recompute: bool = False, memory: FastMemory | None = None, cases: int = 0
    ) -> LowerBound:
        """The best proven lower bound for ``capacity`` values; with recomputation allowed, if asked.

        ``memory``: the same memory in bytes, where values of several widths, or partial sums, share it;
        ``cases``: as for `pebble.bounds.lower_bound`.

        Raises
        ------
        InfeasibleError
            Capacity below the least that works.
        """
        problem = self.accounting(workload)
        if memory is None:
            return lower_bound(problem, capacity, recompute, cases)
        # a search pays where the others prove more, in bytes or in values
        plain = problem.quick
        values = lower_bound(plain, capacity, recompute)
        if in_bytes(plain, values, memory) is values:
            values = lower_bound(problem, capacity, recompute, cases)
        return in_bytes(problem, values, memory, cases)

    def instead(self, workload: W) -> str:
        """Of a family without kernels: what to ask in place of a simulation."""
        return f"there is no simulated kernel of the family {self.name}; `pebble bound` takes this one"

    def part_kernels(self, workload: W) -> Sequence[Workload]:
        """Its parts as workloads of their own, where they hand values on; else none."""
        return ()

    def separate_bound(
        self, workload: W, capacity: int, memory: FastMemory | None = None, recompute: bool = False
    ) -> LowerBound | None:
        """The least when every intermediate goes through slow memory; None where there is none.

        ``recompute`` says nothing of two products in a row: each of the two has no intermediate to compute again.
        """
        if not self.chained:
            return None
        problem = self.accounting(workload)
        bound = separate_bound(problem, capacity)
        return bound if memory is None else in_bytes(problem, bound, memory)

    def published(self, workload: W, capacity: int, processors: int = 1) -> tuple[Formula, ...]:
        """Published bounds on this instance, on ``processors`` SMs where they tell; not yet judged."""
        return (compulsory_formula(workload.compulsory_elements),)

    def schedules(self, workload: W, memory: FastMemory) -> Mapping[str, Explicit]:
        """Legal schedules that are worth a look side by side, by a short name; none where `best_schedule` says all."""
        return {}

    def best_schedule(self, workload: W, memory: FastMemory) -> Explicit | None:
        """The best legal schedule known in a memory; None where none is built or fits.

        Raises
        ------
        InfeasibleError
            Too little for any schedule that is known, in a sentence.
        """
        return min(self.schedules(workload, memory).values(), key=lambda known: known.bytes, default=None)

    def stateless_schedule(self, workload: W, memory: FastMemory) -> Explicit | None:
        """The best schedule known if what it keeps beside operands takes no room; None where it keeps nothing."""
        return None

    def reduced(self, workload: W, tile: TileShape, side: int, depth: int) -> Workload | None:
        """For pictures: at most ``side`` tiles a side, in proportion, ``depth`` steps of k; None for no picture."""
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
    baseline : tuple of str
        Those in common use, of which a user who names none would run the fastest.
    advised : tuple of str
        What ``advise`` tries beside these.
    library : tuple of (str, str)
        A library of NVIDIA's chips, and the schedule whose walk in the kernel of this family stands for it: modelled,
        not that program. Empty where none is known.
    timed : bool
        Whether they also run under the execution models of `pebble.schedules.execution`; all run in lock step.
    one_product : bool
        Whether its work is one product whose blocks are the tiles of the result.
    rounds_partial_sums : bool
        Whether some of its kernels pass a partial sum of the output on through memory at the output's width.
    hides_phases : bool
        Whether the phases of a block step overlap in the fastest kernels and do not in those modelled here.
    walks : str
        What names of schedules stand for that are also those of programs: a sentence, empty where none is.
    space : Space, optional
        What a search can try; None where no search is written.
    """

    schedules_help: ClassVar[str]
    baseline: ClassVar[tuple[str, ...]]
    advised: ClassVar[tuple[str, ...]] = ()
    library: ClassVar[tuple[str, str] | tuple[()]] = ()
    timed: ClassVar[bool] = False
    one_product: ClassVar[bool] = False
    rounds_partial_sums: ClassVar[bool] = False
    hides_phases: ClassVar[bool] = False
    walks: ClassVar[str] = ""
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

    def every_schedule(self, workload: W, tile: TileShape) -> Sequence[S]:
        """The same, and what ``baseline``, ``advised`` and ``library`` name besides: what a screen of ``all`` shows."""
        result = list(self.all_schedules(workload, tile))
        known = {schedule.name for schedule in result}
        more = dict.fromkeys(name for name in (*self.baseline, *self.advised, *self.library[1:]) if name not in known)
        return [*result, *map(self.parse_schedule, more)]

    @abstractmethod
    def parse_schedule(self, text: str) -> S:
        """A schedule by name.

        Raises
        ------
        UnknownNameError
            No such schedule.
        """

    def parse_timed(self, text: str) -> S:
        """The same, those too that keep more on chip than the stages of a block: `pebble.time` alone knows of it."""
        return self.parse_schedule(text)

    def named_schedule(self, value: object) -> S:
        """The same of whatever a user gave: what is no text is refused as no name is."""
        return self.parse_schedule(cast(str, value))

    def read_schedule(self, value: object, timed: bool = False) -> S | OwnSchedule:
        """A schedule by name; or one of the user's own: a table, a function, a file, an order of a package.

        With ``timed`` those too of `parse_timed`.

        Raises
        ------
        UnknownNameError
            No such schedule.
        InputError
            A file that is none.
        """
        own = own_schedule(value)
        if own is not None:
            return own
        try:
            return self.parse_timed(cast(str, value)) if timed else self.named_schedule(value)
        except UnknownNameError:
            packaged = packaged_order(value) if isinstance(value, str) else None
            if packaged is None and isinstance(value, str) and "," in value:
                raise InputError(
                    f"--schedule: got {value[:80]!r}, expected one; `pebble compare --schedules` takes several."
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

    def advised_execution(self, workload: W) -> Execution:
        """How blocks run where a kernel is picked: in waves, but free where all would wait for the longest."""
        return FREE if self.space is not None and self.space.uneven(workload) else WAVES

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
        return config.trace(self.program(workload, schedule, config, residual))

    def program(self, workload: W, schedule: S | OwnSchedule, config: KernelConfig, residual: bool = False) -> Program:
        """What one schedule does, block by block, in waves, free-running or by a clock; errors as for `trace`."""
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

    def in_clusters(self, workload: W, schedule: S | OwnSchedule, config: KernelConfig) -> InClusters | None:
        """Of a schedule whose SMs hand an intermediate on between them: in what clusters; of any other None."""
        return None

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
