"""From the axes of a sweep to its tasks: every combination once, in canonical form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from pebble.errors import InputError, PebbleError, UnknownNameError
from pebble.families import FAMILIES, KernelFamily, find_dag_family, kernel_family, read_workload
from pebble.game import Variant
from pebble.models.caches import parse_policy
from pebble.models.machine import MAX_FILE_BYTES, Machine, load_machine, machine_names, read_machine_bytes
from pebble.reports.fit import HARDWARE
from pebble.reports.target import gpu_only
from pebble.schedules.execution import parse_execution
from pebble.schedules.tile import TileShape
from pebble.solvers import SOLVERS
from pebble.sweeps.axes import Axes
from pebble.sweeps.task import GAME, MOST_TASKS, TRAFFIC, Batch, Task, batches_of, canonical
from pebble.sweeps.work import kernel_of
from pebble.system.files import read_bytes
from pebble.units import parse_size
from pebble.workloads import model_names
from pebble.workloads.named import model_layers
from pebble.workloads.parameters import Parameter, read_values
from pebble.workloads.workload import Workload, element_bytes

_ALL = "all"


@dataclass(frozen=True)
class Plan:
    """What a sweep computes.

    Attributes
    ----------
    tasks : tuple of Task
        Each once, in the order in which they are begun.
    machine_files : mapping of str to str
        The text of machine files of the user's own, by SHA-256.
    """

    tasks: tuple[Task, ...]
    machine_files: Mapping[str, str]

    @cached_property
    def ids(self) -> frozenset[str]:
        """The ids of all tasks."""
        return frozenset(task.id for task in self.tasks)

    def batches(self, done: frozenset[str] = frozenset()) -> list[Batch]:
        """What is left to do."""
        return batches_of((task for task in self.tasks if task.id not in done), self.machine_files)


def plan_of(axes: Axes) -> Plan:
    """The tasks of some axes.

    Raises
    ------
    InputError
        An entry that cannot be read, nothing to do, or too much: `MOST_TASKS`.
    UnknownNameError
        A name that no registry knows.
    """
    files: dict[str, str] = {}
    tasks: dict[str, Task] = {}
    instances = _instances(axes)
    for task in itertools.chain(_traffic(axes, files, len(instances) * _each_instance(axes)), _games(axes, instances)):
        tasks.setdefault(task.id, task)
        if len(tasks) > MOST_TASKS:
            raise _too_many()
    if not tasks:
        raise InputError("sweep: got nothing to do, expected `workloads` with `machines` or `caches`, or [games].")
    return Plan(tuple(tasks.values()), files)


def _too_many() -> InputError:
    return InputError(
        f"sweep: got more than {MOST_TASKS:,} tasks, expected at most so many; shorten an axis, such as orders, "
        "machines or capacities, or split the sweep into several."
    )


def _workloads(axes: Axes) -> Iterator[Workload]:
    if axes.tokens and not any(isinstance(entry, str) for entry in axes.workloads):
        raise InputError(
            f"tokens: got {list(axes.tokens)[:4]} without a layer of a named model, expected one among the workloads, "
            "such as 'llama-3-8b:gate_up'; a table has its own sizes; leave it out."
        )
    for number, entry in enumerate(axes.workloads, start=1):
        if isinstance(entry, str):
            if ":" not in entry:
                raise InputError(
                    f"workloads: got {entry[:80]!r}, expected a layer such as 'llama-3-8b:gate_up', a pattern such as "
                    "'*:*', or a table such as { family = \"gemm\", m = 8192, n = 8192, k = 8192 }."
                )
            if not axes.tokens:
                raise InputError(f"workloads: got {entry!r} without tokens, expected for example tokens = [8192].")
            names = list(_layers(entry)) if "*" in entry else [entry]
            types: Sequence[str | None] = axes.dtypes or (None,)
            for name, tokens, dtype in itertools.product(names, axes.tokens, types):
                yield read_workload(name, {"tokens": tokens, "dtype": dtype})
        else:
            yield from _table(entry, f"workloads, entry {number}", axes.dtypes)


def _layers(pattern: str) -> Iterator[str]:
    """The linear layers of named models whose names match."""
    results = [f"{model}:{layer.name}" for model in model_names() for layer in model_layers(model)]
    matching = [name for name in results if fnmatchcase(name, pattern.lower())]
    if not matching:
        raise UnknownNameError("layer", pattern, results, "pebble workloads")
    yield from matching


def _table(entry: Mapping[str, Any], where: str, dtypes: Sequence[str]) -> Iterator[Workload]:
    """The workloads of ``{ family, ... }``: a list of counts stands for one workload each."""
    values = dict(entry)
    family = values.pop("family", None)
    if not isinstance(family, str) or family.lower() not in FAMILIES:
        raise UnknownNameError(f"family ({where})", str(family), FAMILIES, "pebble workloads")
    for item in _expanded(values, FAMILIES[family.lower()].parameters):
        for dtype in [None] if "dtype" in item or not dtypes else dtypes:
            yield read_workload(family, {"dtype": dtype, **item})


def _expanded(values: Mapping[str, Any], parameters: Iterable[Parameter]) -> Iterator[dict[str, Any]]:
    listed = {p.name for p in parameters if p.kind in ("counts", "extents")}  # where a list is one value
    axes = [value if isinstance(value, list) and key not in listed else [value] for key, value in values.items()]
    if math.prod(map(len, axes)) > MOST_TASKS:
        raise _too_many()
    for combination in itertools.product(*axes):
        yield dict(zip(values, combination, strict=True))


def _machines(axes: Axes, files: dict[str, str]) -> list[Machine]:
    results = []
    for name in axes.machines:
        if name.lower() == _ALL:
            results += [load_machine(sku) for sku in machine_names()]
        elif name.lower().endswith(".toml"):
            path = Path(axes.folder) / name
            content = read_bytes(path, "machine file ", MAX_FILE_BYTES)
            machine = read_machine_bytes(content, path)
            files[machine.file_sha256] = content.decode("utf-8")
            results.append(machine)
        else:
            results.append(load_machine(name.lower()))
    return [gpu_only(machine) for machine in results]


def _chips(axes: Axes, files: dict[str, str]) -> list[Machine | None]:
    """The machines, or None for the one that caches and sms describe; empty where there are no workloads."""
    with axes.at("machines"):
        machines: list[Machine | None] = [*_machines(axes, files)]
    if not axes.workloads:
        if machines or axes.caches:
            raise InputError("sweep: got machines or caches without workloads, expected both.")
        return []
    if machines:
        return machines
    there, lacking = ("caches", "sms") if axes.caches else ("sms", "caches")
    if not axes.caches and not axes.sms:
        raise InputError("sweep: got workloads alone, expected machines, or caches with sms, beside them.")
    if not axes.caches or not axes.sms:
        raise InputError(f"sweep: got {there} without {lacking}, expected both where no machines are named.")
    return [None]


def _check_kernels(axes: Axes) -> None:
    """Refuse what no kernel can have, whatever the workload."""
    with axes.at("tiles"):
        for text in axes.tiles:
            TileShape.parse(text)
    with axes.at("policies"):
        for text in axes.policies:
            if text.partition("+")[0] != HARDWARE:
                parse_policy(text)
            elif not axes.machines:
                raise InputError("policies: got hardware without machines, whose cache model is meant.")
    with axes.at("dtypes"):
        for dtype in axes.dtypes:
            element_bytes(dtype.lower())
    with axes.at("caches"):
        for text in axes.caches:
            parse_size(text, "caches")


def _traffic(axes: Axes, files: dict[str, str], others: int) -> Iterator[Task]:
    """The tasks of workloads, refused before the first is written out where, with ``others``, there are too many."""
    machines = _chips(axes, files)
    if not machines:
        return
    _check_kernels(axes)
    with axes.at("executions"):
        executions = [parse_execution(name, "1x1", axes.seed).name for name in axes.executions] or ["waves"]
    tiles: list[str | None] = [tile.lower() for tile in axes.tiles]
    policies = [None if policy == HARDWARE else policy for policy in axes.policies]
    caches = {parse_size(text, "caches").to_bytes(1) for text in axes.caches if not text.lower().endswith("el")}
    lists = (
        caches, {machine and machine.file_sha256 for machine in machines}, axes.sms, policies, executions, axes.stages,
        axes.blocks_per_sm,
    )  # fmt: skip
    each, tasks = math.prod(max(1, len(set(item))) for item in lists), others
    result: dict[Workload, None] = {}
    with axes.at("workloads"):
        for workload in _workloads(axes):
            kernel_family(workload)  # refused where it has none
            if workload not in result:
                result[workload] = None
                tasks += each * _schedules_at_least(axes, workload)
            if max(tasks, len(result)) > MOST_TASKS:
                break
    if max(tasks, len(result)) > MOST_TASKS:  # a million tasks take most of a minute to write out, and so do kernels
        raise _too_many()
    workloads = list(result)
    with axes.at("orders"):
        _check_orders(axes, workloads)
    kernels = itertools.product(
        workloads,
        machines,
        axes.caches or (None,),
        axes.sms or (None,),
        tiles or [None],
        policies or [None],
        executions,
        axes.stages or (None,),
        axes.blocks_per_sm or (1,),
    )
    for workload, machine, cache, sms, tile, policy, execution, stages, blocks in kernels:
        question: dict[str, Any] = {
            "kind": TRAFFIC,
            "workload": _plain(workload),
            "machine": machine and {"sku": machine.sku, "sha256": machine.file_sha256},
            "cache_bytes": cache and parse_size(cache, "caches").to_bytes(workload.narrowest_bytes),
            "sms": sms,
            "tile": tile,
            "policy": policy,
            "execution": execution,
            "seed": axes.seed,
            "stages": stages,
            "blocks_per_sm": blocks,
        }
        for name in _schedules(axes, workload, partial(_tile, question, workload, machine)):
            yield Task({**question, "schedule": name})


def _plain(workload: Workload) -> dict[str, Any]:
    lists = {key: list(value) if isinstance(value, tuple) else value for key, value in workload.values().items()}
    return {"family": workload.family, **lists}


def _check_orders(axes: Axes, workloads: Sequence[Workload]) -> None:
    """An order that no workload of the sweep has is a mistake; one that some have is not."""
    families = list(dict.fromkeys(kernel_family(workload) for workload in workloads))
    for name in axes.orders:
        if families and name.lower() != _ALL and not any(_named(family, name) for family in families):
            families[0].parse_schedule(name)  # says what is wrong with it


@lru_cache(maxsize=2**14)
def _named(family: KernelFamily[Any, Any], name: str) -> str | None:
    """The schedule as its family calls it; None where it has none of that name."""
    try:
        return str(family.parse_schedule(name).name)
    except PebbleError:
        return None


def _schedules_at_least(axes: Axes, workload: Workload) -> int:
    """Pairs of a tile and a schedule of a workload, at least, without fitting a kernel.

    A kernel has the tile that was named or, where that does not fit, the family's own; or, where none was named and
    that does not fit, a part of it: a smaller tile has no fewer schedules.
    """
    family = kernel_family(workload)
    default = family.default_tile(workload)

    def count(tile: TileShape) -> int:
        return len(_schedules(axes, workload, lambda: family.cut_tile(tile, workload)))

    if not axes.orders or _ALL in (name.lower() for name in axes.orders):
        least = count(default)
        named = {tile.lower() for tile in axes.tiles}
        return sum(min(least, count(TileShape.parse(tile, default.bk))) for tile in named) if named else least
    return count(default) * max(1, len({tile.lower() for tile in axes.tiles}))


def _schedules(axes: Axes, workload: Workload, tile: Callable[[], TileShape]) -> dict[str, None]:
    """The schedules that the orders mean, each once; ``tile`` is asked only where they depend on it."""
    family = kernel_family(workload)
    names: dict[str, None] = {}
    for name in axes.orders or (_ALL,):
        if name.lower() == _ALL:
            names |= {schedule.name: None for schedule in family.all_schedules(workload, tile())}
        else:
            known = _named(family, name)
            names |= {known: None} if known else {}
    return names


def _tile(question: dict[str, Any], workload: Workload, machine: Machine | None) -> TileShape:
    try:
        return kernel_of(question, workload, machine).config.tile
    except InputError:  # the tasks will say why
        family = kernel_family(workload)
        return family.cut_tile(family.default_tile(workload), workload)


def _check_games(axes: Axes) -> None:
    games = axes.games
    with axes.at("games.instances"):
        if games.instances and not games.capacities:
            raise InputError("games: got instances without capacities, expected for example capacities = [4, 5].")
    with axes.at("games.solvers"):
        for solver in games.solvers:
            if solver not in SOLVERS:
                raise UnknownNameError("solver", solver, SOLVERS, "pebble solve --help")
    with axes.at("games.variants"):
        for text in games.variants:
            Variant.parse(text)
    with axes.at("games.time_limit"):
        if not 0 < games.time_limit <= 1e9 or not math.isfinite(games.time_limit):
            raise InputError(f"games: time_limit: got {games.time_limit}, expected seconds above 0, such as 60.")


def _each_instance(axes: Axes) -> int:
    """Games of one instance."""
    games = axes.games
    return math.prod(max(1, len(set(item))) for item in (games.capacities, games.variants, games.solvers))


def _games(axes: Axes, instances: Sequence[Mapping[str, Any]]) -> Iterator[Task]:
    games = axes.games
    axes_of_each = (games.capacities, games.variants or (None,), games.solvers or ("auto",))
    for instance, capacity, variant, solver in itertools.product(instances, *axes_of_each):
        yield Task(
            {
                "kind": GAME,
                "instance": instance,
                "capacity": capacity,
                "variant": variant,
                "solver": solver,
                "time_limit": float(games.time_limit),
                "seed": games.seed,
            }
        )


def _instances(axes: Axes) -> list[dict[str, Any]]:
    """The DAGs of ``[games]``, each once and each parameter named.

    Raises
    ------
    InputError
        An entry that cannot be read, or too many games.
    UnknownNameError
        A name that no registry knows.
    """
    _check_games(axes)
    result: dict[str, dict[str, Any]] = {}
    for entry in axes.games.instances:
        values = dict(entry)
        name = values.pop("family", None)
        with axes.at("games.instances"):
            family = find_dag_family(str(name))
            for item in _expanded(values, family.parameters):
                read = read_values(family.name, family.parameters, item)
                lists = {key: list(value) if isinstance(value, tuple) else value for key, value in read.items()}
                instance = {"family": family.name, **lists}
                result[canonical(instance)] = instance
                if len(result) * _each_instance(axes) > MOST_TASKS:
                    raise _too_many()
    return list(result.values())
