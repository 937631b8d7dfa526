"""From a sweep file to tasks: canonical, each once, every mistake in one sentence with its line."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pebble import models
from pebble.errors import InputError, PebbleError
from pebble.families import workload
from pebble.models.machine import machine_names
from pebble.schedules.orders import all_schedules
from pebble.sweeps import plan as room
from pebble.sweeps.axes import read_axes
from pebble.sweeps.plan import Plan, plan_of
from pebble.sweeps.task import canonical
from pebble.sweeps.work import workload_of
from pebble.workloads import model_names
from pebble.workloads.named import model_layers

GEMM = {"family": "gemm", "m": 64, "n": 64, "k": 64}


def plan(**axes: Any) -> Plan:
    return plan_of(read_axes(axes))


def test_every_layer_on_every_machine_in_every_order() -> None:
    result = plan(workloads="*:*", tokens=512, machines="all")
    layers = sum(len(model_layers(model)) for model in model_names())
    assert len(result.tasks) == len(result.ids) == layers * len(machine_names()) * len(all_schedules())
    assert len(result.batches()) == layers * len(machine_names())


def test_an_id_is_the_hash_of_the_canonical_form() -> None:
    (task,) = plan(workloads=[GEMM], machines="a40", orders="row").tasks
    assert json.loads(task.text) == task.question and canonical(json.loads(task.text)) == task.text
    assert task.id == hashlib.sha256(task.text.encode()).hexdigest()
    assert workload_of(task.question) == workload("gemm", m=64, n=64, k=64)


def test_equal_questions_have_equal_ids_however_they_are_written() -> None:
    single = plan(workloads=[GEMM], machines=["a40"], orders=["row", "grouped"], caches=["1MiB"], tiles=["32X32x32"])
    other = plan(
        workloads=[{"k": 64, "n": 64, "m": [64, 64], "dtype": "bf16", "family": "GEMM"}],
        machines=["A40", "a40"],
        orders=["grouped-8", "ROW", "row"],
        caches="1024KiB",
        tiles="32x32x32",
        policies="hardware",
    )
    assert single.ids == other.ids and len(other.tasks) == 2


@pytest.mark.parametrize(
    "more",
    [
        {"tiles": "32x32x32"}, {"caches": "2MiB"}, {"sms": 3}, {"policies": "opt"}, {"stages": 2}, {"blocks_per_sm": 2},
        {"executions": "free"}, {"seed": 1}, {"dtypes": "fp8"}, {"machines": "a2"}, {"orders": "column"},
    ],
)  # fmt: skip
def test_every_axis_makes_another_question(more: dict[str, Any]) -> None:
    base: dict[str, Any] = {"workloads": [GEMM], "machines": "a40", "orders": "row"}
    assert not plan(**base).ids & plan(**base | more).ids


def test_what_a_store_has_is_not_asked_again() -> None:
    result = plan(workloads=[GEMM], machines="a40", orders=["row", "column", "snake"])
    done = frozenset(task.id for task in result.tasks[:2])
    ((left,),) = (batch.tasks for batch in result.batches(done))
    assert left == result.tasks[2] and result.batches(result.ids) == []


def test_games_and_lists_that_are_one_value() -> None:
    games = {"instances": [{"family": "gemm", "m": 2, "n": 2, "k": [1, 2]}], "capacities": [3, 4], "solvers": "search"}
    assert len(plan(games=games).tasks) == 4
    grouped = {"family": "grouped", "rows": [8, 16], "n": 64, "k": [32, 64]}
    assert len(plan(workloads=[grouped], machines="a40", orders="row").tasks) == 2  # tokens per expert are one value


def test_a_machine_file_travels_with_its_tasks(tmp_path: Path) -> None:
    source = Path(models.__file__).parent / "machines" / "a40.toml"
    (tmp_path / "mine.toml").write_bytes(source.read_bytes())
    (tmp_path / "s.toml").write_text(
        'workloads = [{ family = "gemm", m = 64, n = 64, k = 64 }]\nmachines = ["mine.toml"]\norders = "row"\n'
    )
    (batch,) = plan_of(read_axes(tmp_path / "s.toml")).batches()
    assert batch.machine_file == source.read_text()
    assert batch.tasks[0].question["machine"]["sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('workloads = ["gpt2:qkv"', "line 1: not TOML"),
        ('tokens = 5\nmachine = ["a40"]', "line 2, machine: unknown key"),
        ("\n\ntokens = [0]", "line 3, tokens: got 0, expected whole numbers above zero"),
        ("tokens = [true]", "line 1, tokens: got True"),
        ("orders = [3]", "line 1, orders: got 3, expected texts"),
        ('seed = "x"', "line 1, seed: got 'x', expected a whole number"),
        ("games = 1", "line 1, games: got 1, expected a table"),
        ("[games]\nfoo = 1", "line 2, games.foo: unknown key"),
        ('tokens = 5\nworkloads = "gpt2:x"\nmachines = "a40"', "line 2, unknown layer"),
        ('tokens = 5\nworkloads = "gpt2:o"\nmachines = "a4"', "line 3, unknown machine 'a4': did you mean a40?"),
        ('workloads = "gpt2:o"\nmachines = "a40"', "line 1, workloads: got 'gpt2:o' without tokens"),
        ('tokens = 5\nworkloads = "gpt2:o"\nmachines = "a40"\norders = "rwo"', "line 4, unknown schedule"),
        ('tokens = 5\nworkloads = "gpt2:o"\nmachines = "a40"\ncaches = "7"', "line 4, caches: got '7' without a unit"),
        ('tokens = 5\nworkloads = "gpt2:o"', "expected machines, or caches with sms"),
        ('tokens = 5\nworkloads = "gpt2:o"\ncaches = "30MiB"', "got caches without sms, expected both"),
        ('tokens = 5\nworkloads = "gpt2"\nmachines = "a40"', "line 2, workloads: got 'gpt2', expected a layer"),
        ('[games]\ninstances = [{ family = "diamond", size = 3 }]', "without capacities"),
        ('[games]\ninstances = [{ family = "gemm", m = 2, n = 2, k = 1 }]\ncapacities = 4\nvariants = "x"', "line 4, "),
        ('[games]\ncapacities = 4\ninstances = [{ family = "gemm", m = 0, n = 2, k = 1 }]', "line 3, "),
        ("[games]\n\nsolvers = 'x'", "line 3, unknown solver"),
        ("", "nothing to do"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(text + "\n")
    with pytest.raises(PebbleError) as error:
        plan_of(read_axes(file))
    assert told in str(error.value) and "\n" not in str(error.value)


def test_a_sweep_that_is_too_large_is_refused_before_it_is_built() -> None:
    sides = list(range(1, 5001))
    with pytest.raises(InputError, match="more than 1,000,000 tasks"):
        plan(workloads=[{"family": "gemm", "m": sides, "n": sides, "k": sides}], machines="a40")


FFN = {"family": "ffn", "tokens": 4096, "d_model": 64, "hidden": 64}
CACHES = [f"{number}KiB" for number in range(1000, 3000)]


@pytest.mark.parametrize(
    "axes",
    [
        {"workloads": [GEMM], "caches": CACHES, "sms": list(range(1, 252)), "orders": ["row", "column"]},
        {"workloads": [GEMM | {"m": list(range(1, 2600))}], "machines": "all", "orders": "all"},
        {"workloads": [GEMM | {"m": list(range(1, 2600))}], "machines": "all", "tiles": "32x32x32"},
        {"workloads": [FFN], "caches": CACHES, "sms": [1, 2, 3, 4],
         "tiles": ["64x64x64", "9x64x64"], "orders": ["ALL"]},
        {"games": {"instances": [{"family": "gemm", "m": list(range(1, 1001)), "n": 2, "k": 2}],
                   "capacities": list(range(3, 504)), "solvers": ["search", "cpsat"]}},
        {"games": {"instances": [{"family": "gemm", "m": 2, "n": 2, "k": 2}], "capacities": list(range(3, 9000))},
         "workloads": [GEMM], "caches": CACHES, "sms": list(range(1, 252)), "orders": ["row", "column"]},
    ],
)  # fmt: skip
def test_a_product_that_is_too_large_is_refused_before_a_task_is_written(
    axes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "Task", None)  # writing one, or fitting a kernel, would fail otherwise
    monkeypatch.setattr(room, "kernel_of", None)
    with pytest.raises(InputError, match="more than 1,000,000 tasks, expected at most so many; shorten an axis"):
        plan(**axes)


@pytest.mark.parametrize("more", [{}, {"machines": "a40"}, {"machines": "a40", "tiles": ["64x64x64", "999x999x999"]}])
@pytest.mark.parametrize(
    "orders", ["all", ["row", "all", "separate:row", "row-fused-4"], ["row", "separate:row", "fa1"]]
)
def test_tasks_are_never_counted_too_high(more: dict[str, Any], orders: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = {"family": "attention", "queries": 300, "keys": 300, "head_dim": 512, "dtype": "fp32"}  # the tile is halved
    axes = {"workloads": [GEMM, FFN | {"tokens": [1, 300, 4096]}, wide], "orders": orders, **more}
    if not more:
        axes |= {"caches": ["1MiB", "1024KiB"], "sms": [4, 5]}
    result = len(plan(**axes).tasks)
    monkeypatch.setattr(room, "MOST_TASKS", result)
    assert len(plan(**axes).tasks) == result
    monkeypatch.setattr(room, "MOST_TASKS", result - 1)
    with pytest.raises(InputError, match="tasks, expected at most so many"):
        plan(**axes)


def test_a_list_without_entries_leaves_nothing_to_do() -> None:
    with pytest.raises(InputError, match="nothing to do"):
        plan(workloads=[GEMM | {"m": []}], machines="a40", orders="row")


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(InputError, match="larger than 1 MiB"):
        read_axes(tmp_path / "s.toml")
