"""What comes from a worker is data, and is believed only as far as it has the shape of an answer."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from pebble import __version__
from pebble.families import kernel_family
from pebble.sweeps.axes import read_axes
from pebble.sweeps.columns import MOST_ANSWER_BYTES, AnswerError, read_answer
from pebble.sweeps.plan import plan_of
from pebble.sweeps.work import answer
from tests.rooms import in_values

ROW = {"status": "done", "reason": None, "seconds": 0.5, "dram_bytes": 3, "l2_hit_rate": 0.5}


def content(*rows: Any, **more: Any) -> bytes:
    return json.dumps({"version": __version__, "rows": list(rows), **more}).encode()


def test_an_answer_is_read() -> None:
    assert read_answer(content(ROW), 1, __version__) == [ROW]


@pytest.mark.parametrize(
    "sent",
    [
        b"", b"\xff", b"[]", b"{}", b"[" * 100_000, content(), content(ROW, ROW), content(ROW, more=1), content(3),
        content({**ROW, "status": "fine"}), content({**ROW, "reason": "but"}), content({**ROW, "status": "failed"}),
        content({**ROW, "seconds": -1.0}), content({**ROW, "seconds": 1}), content({**ROW, "seconds": float("inf")}),
        content({**ROW, "dram_bytes": 1.5}), content({**ROW, "dram_bytes": True}), content({**ROW, "dram_bytes": "3"}),
        content({**ROW, "dram_bytes": 2**63}), content({**ROW, "l2_hit_rate": float("nan")}),
        content({**ROW, "task_id": "0"}), content({**ROW, "tile": ["x"]}), content({**ROW, "tile": "x" * (2**20 + 1)}),
        content({**ROW, "foreign": 1}), content({k: v for k, v in ROW.items() if k != "seconds"}),
        b" " * (MOST_ANSWER_BYTES + 1), pickle.dumps({"version": __version__, "rows": [ROW]}),
        json.dumps({"version": "0", "rows": [ROW]}).encode(), "text", None,
    ],
    ids=str,
)  # fmt: skip
def test_anything_else_is_refused(sent: Any) -> None:
    with pytest.raises(AnswerError):
        read_answer(sent, 1, __version__)


def ask(machine_file: str | None = None, **axes: Any) -> list[dict[str, Any]]:
    (batch,) = plan_of(read_axes(axes)).batches()
    message = json.loads(batch.message(__version__)) | {"machine_file": machine_file}
    return read_answer(answer(json.dumps(message).encode()), len(batch.tasks), __version__)


GEMM = {"family": "gemm", "m": 256, "n": 256, "k": 128}


def test_rows_are_those_of_compare() -> None:
    import pebble

    rows = ask(workloads=[GEMM], machines="a40", orders=["row", "hilbert"], tiles="32x32x32", caches="64KiB")
    cache = pebble.simulate(
        pebble.Gemm(256, 256, 128), "hilbert", cache="64KiB", sms=84, tile="32x32x32", stages=rows[1]["stages"]
    )
    assert rows[1]["dram_bytes"] == cache.traffic.dram_bytes
    assert cache.bound is not None and rows[1]["lower_bound_bytes"] == cache.bound.bound.bytes
    compared = pebble.compare(pebble.Gemm(256, 256, 128), ["row", "hilbert"], gpu="a40", tile="32x32x32")
    rows = ask(workloads=[GEMM], machines="a40", orders=["row", "hilbert"], tiles="32x32x32")
    assert {t.dram_bytes for t in compared.orders} == {row["dram_bytes"] for row in rows}
    assert {row["lower_bound_bytes"] for row in rows} == {compared.trace.bound.bytes}
    assert {row["explicit_bytes"] for row in rows} == {compared.explicit.bytes}


def test_the_best_schedule_is_that_of_compare_where_partial_sums_are_wider() -> None:
    import pebble

    shape = {"m": 8192, "n": 8192, "k": 8192}
    (row,) = ask(workloads=[{"family": "gemm", **shape}], machines="a40", sms=8, orders="row", policies="lru")
    compared = pebble.compare(pebble.Gemm(**shape), "row", gpu="a40", sms=8, policy="lru")
    assert (row["explicit_bytes"], row["explicit_schedule"]) == (compared.explicit.bytes, compared.explicit.name)
    values = compared.trace.capacity.schedule_elements  # a cell at the width of what it ends as
    assert (
        in_values(kernel_family(compared.workload).best_schedule, compared.workload, values).bytes
        < compared.explicit.bytes
    )


def test_a_kernel_that_cannot_run_is_refused_with_the_reason() -> None:
    big = {"family": "gemm", "m": 4096, "n": 4096, "k": 64}
    (row,) = ask(workloads=[big], machines="a40", orders="row", tiles="2048x2048x64")
    assert row["status"] == "refused" and "2048x2048x64" in row["reason"]


def test_a_machine_that_is_another_than_the_sweep_s_is_refused() -> None:
    from pathlib import Path

    import pebble.models

    file = (Path(pebble.models.__file__).parent / "machines" / "a2.toml").read_text()
    (row,) = ask(machine_file=file, workloads=[GEMM], machines="a40", orders="row")
    assert row["status"] == "refused" and "another hash" in row["reason"]


def test_a_game_is_solved() -> None:
    games = {"instances": [{"family": "tree", "leaves": 4}], "capacities": [3], "solvers": ["heuristic"]}
    (row,) = ask(games=games)
    assert row["lower_bound_cost"] <= row["upper_bound_cost"] and json.loads(row["schedule"])
    games["capacities"] = [1]
    (row,) = ask(games=games)
    assert row["status"] == "refused" and row["reason"]
