"""What a worker does: a batch of tasks in, as JSON; a row for each out, as JSON. Nothing else passes between."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import metadata
from typing import Any

from pebble import __version__
from pebble.api.games import solve
from pebble.errors import GapOpenError, InputError, PebbleError, in_python
from pebble.families import FAMILIES, find_dag_family, kernel_family
from pebble.models.machine import Machine, load_machine, read_machine_bytes
from pebble.reports.capacity import best_in_kernel
from pebble.reports.fit import ALLOW
from pebble.reports.simulated_kernel import SimulatedKernel, read_kernel, trace_bound
from pebble.schedules.execution import parse_execution
from pebble.simulation import Traffic
from pebble.sweeps.columns import DONE, FAILED, REFUSED
from pebble.sweeps.task import GAME, canonical
from pebble.units import Size
from pebble.workloads.workload import Workload

_SOLVER_LIBRARIES = ("ortools", "PuLP", "highspy")
_LONGEST_MOVES = 2**19  # characters of JSON


def answer(message: bytes) -> bytes:
    """The rows of a batch (`Batch.message`), in its order; every fault becomes a row that says so.

    Cost: one simulation for each different walk, whose kernel and bound are computed once.
    """
    batch = json.loads(message)
    tasks: list[Mapping[str, Any]] = batch["tasks"]
    started = time.perf_counter()
    if batch["version"] != __version__:
        rows: list[dict[str, Any]] = [{} for _ in tasks]  # the version below says why
    elif tasks[0]["kind"] == GAME:
        rows = [_guarded(lambda task=task: _game(task)) for task in tasks]
    else:
        rows = _traffic(tasks, batch["machine_file"])
    common = max(0.0, time.perf_counter() - started - sum(row.get("seconds", 0.0) for row in rows))
    for row in rows:
        row["seconds"] = row.get("seconds", 0.0) + common / len(rows)
    return canonical({"version": __version__, "rows": rows}).encode()


def _guarded(work: Any) -> dict[str, Any]:
    """The row that ``work`` gives, or one that says why it gave none."""
    began = time.perf_counter()
    try:
        row = {"status": DONE, "reason": None, **work()}
    except GapOpenError as error:  # a question of time, which another attempt may have
        row = {"status": FAILED, "reason": str(error)}
    except PebbleError as error:  # the same at every attempt; a sweep has no option that allows it
        row = {
            "status": REFUSED,
            "reason": re.sub(rf"[,;] or {re.escape(in_python(ALLOW))}", "", in_python(str(error))),
        }
    except Exception as error:
        row = {"status": FAILED, "reason": f"{type(error).__name__}: {error}"[:1000]}
    return {**row, "seconds": time.perf_counter() - began}


@lru_cache(maxsize=64)
def _machine(sku: str, sha256: str, file: str | None) -> Machine:
    machine = load_machine(sku) if file is None else read_machine_bytes(file.encode(), f"{sku}.toml")
    if machine.file_sha256 != sha256:
        raise InputError(f"machine {sku}: the worker's file has another hash than the sweep's; install one version.")
    return machine


def workload_of(question: Mapping[str, Any]) -> Workload:
    """The workload of a task, checked like any other."""
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in question["workload"].items()}
    del values["family"]
    workload: Workload = FAMILIES[question["workload"]["family"]].shape(**values)
    return workload


def task_fields(question: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says of its task whether or not there is an answer."""
    if question["kind"] == GAME:
        values = {key: value for key, value in question["instance"].items() if key != "family"}
        family = find_dag_family(question["instance"]["family"])
        return {"workload": family.label(values), "family": family.name, "capacity_pebbles": question["capacity"]}
    workload, named = workload_of(question), question["machine"]
    return {
        "workload": workload.label,
        "family": workload.family,
        "machine": named and named["sku"],
        "machine_file_sha256": named and named["sha256"],
        "schedule": question["schedule"],
    }


def kernel_of(question: Mapping[str, Any], workload: Workload, machine: Machine | None) -> SimulatedKernel:
    """How the kernel of a task runs; errors as for `read_kernel`."""
    spec = {key: question[key] for key in ("tile", "sms", "stages", "policy")}
    options = {key: question[key] for key in ("blocks_per_sm", "execution")}
    if parse_execution(question["execution"]).kind in ("dynamic", "free"):  # the only ones that draw
        options["seed"] = question["seed"]
    cache = question["cache_bytes"]
    if machine is None:
        return read_kernel(workload, cache=Size(cache, None, f"{cache}B"), **spec, **options)
    kernel = read_kernel(workload, gpu=machine, **spec, **options)
    return kernel if cache is None else replace(kernel, config=replace(kernel.config, cache_bytes=cache))


def _traffic(tasks: Sequence[Mapping[str, Any]], machine_file: str | None) -> list[dict[str, Any]]:
    """The rows of schedules that share a kernel."""
    shared: dict[str, Any] = {}

    def prepare() -> dict[str, Any]:
        question = tasks[0]
        named, machine = question["machine"], None
        if named is not None:
            machine = _machine(named["sku"], named["sha256"], machine_file)
        workload = workload_of(question)
        family = kernel_family(workload)
        kernel = kernel_of(question, workload, machine)
        family.check(workload, kernel.config)
        bounded = trace_bound(workload, kernel)
        explicit = best_in_kernel(workload, bounded.capacity)
        config = kernel.config
        shared.update(family=family, workload=workload, config=config)
        return {
            "sms": config.sms,
            "cache_bytes": config.cache_bytes,
            "tile": kernel.tile,
            "stages": kernel.stages,
            "blocks_per_sm": config.blocks_per_sm,
            "policy": config.policy,
            "execution": config.execution.name,
            "flops": workload.flops,
            "capacity_bytes": bounded.capacity.bytes,
            "lower_bound_bytes": bounded.bound.bytes,
            "lower_bound_method": bounded.bound.method,
            "explicit_bytes": explicit and explicit.bytes,
            "explicit_schedule": explicit and explicit.name,
            "stop_reason": "complete",
            "version": __version__,
        }

    common = _guarded(prepare)
    if common["status"] != DONE:
        return [{**common, "seconds": 0.0} for _ in tasks]
    walks: dict[Hashable, Traffic] = {}  # schedules that walk alike move alike

    def move(name: str) -> dict[str, Any]:
        family, workload, config = shared["family"], shared["workload"], shared["config"]
        schedule = family.parse_schedule(name)
        walk = family.walk(workload, schedule, config)
        if walk not in walks:
            walks[walk] = family.simulate(workload, schedule, config)
        traffic = walks[walk]
        return {
            **common,
            "dram_read_bytes": traffic.dram_read_bytes,
            "dram_write_bytes": traffic.dram_write_bytes,
            "dram_bytes": traffic.dram_bytes,
            "dirty_residue_bytes": traffic.residue_bytes,
            "l2_hit_rate": traffic.hit_rate,
            "ratio_to_lower_bound": traffic.dram_bytes / common["lower_bound_bytes"],
        }

    return [_guarded(lambda name=task["schedule"]: move(name)) for task in tasks]


def solver_versions() -> dict[str, str]:
    """The installed solver libraries and their versions."""
    result = {}
    for name in _SOLVER_LIBRARIES:
        try:
            result[name.lower()] = metadata.version(name)
        except metadata.PackageNotFoundError:
            result[name.lower()] = "not installed"
    return result


def _game(question: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a solved game."""
    requested = dict(question["instance"])
    family = requested.pop("family")
    best = solve(
        family,
        question["capacity"],
        variant=question["variant"],
        solver=question["solver"],
        time_limit=question["time_limit"],
        seed=question["seed"],
        **requested,
    )
    result, upper = best.result, best.result.upper_bound
    moves = canonical(best.moves) if best.moves else None
    return {
        "variant": str(result.variant),
        "solver": result.solver,
        "lower_bound_cost": int(result.lower_bound),
        "lower_bound_method": ", ".join(result.proof),
        "upper_bound_cost": None if upper is None else int(upper),
        "schedule": moves if moves is None or len(moves) <= _LONGEST_MOVES else None,
        "stop_reason": result.stop_reason,
        "solver_versions": canonical(solver_versions()),
        "version": __version__,
    }
