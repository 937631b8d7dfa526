"""What a notebook shows and takes: short tables, pictures, the best, lists of names, plain DAGs, orders that yield."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import signature
from typing import Any

import networkx as nx
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import pebble
from pebble.cli import COMMANDS
from pebble.families import DAG_FAMILIES, FAMILIES
from pebble.reports.report import for_reader
from pebble.solvers import solve
from pebble.system import clock

GEMM = pebble.Gemm(512, 512, 512)
KERNEL: dict[str, Any] = {"cache": "1MiB", "sms": 8}


# the command line and the calls take the same

DOORS: dict[str, Callable[..., Any]] = {
    name: getattr(pebble, name)
    for name in COMMANDS
    if name in pebble.__all__
    and name not in ("machines", "schedules", "workloads", "report", "results", "sweep", "ncu")
}
OF_A_COMMAND = {  # what is of a screen or a file there, or the argument of a result's method here
    "help", "json", "figure", "figure_width", "font", "style", "log", "no_title", "out", "data", "certificate",
    "proof_log", "require_optimal", "all", "explain", "save", "name", "workload", "dag", "moves", "schedule", "tile",
    "format", "latex", "top", "save_pinned", "tokens", "model", "file", "files", "certificate_file", "cert",
    "report",  # a page, which `pebble.report` makes of a document
    "badge",  # a file of one number of the answer
    "tensor_parallel",  # of a model's experts, which `pebble.integrations.moe` has
}  # fmt: skip
SAME = {"accumulate": "accumulators", "offset": "offset_bytes", "bytes": "value_bytes"}


def options_of(command: str) -> set[str]:
    parser = argparse.ArgumentParser(add_help=False)
    import_module(f"pebble.cli.{command}").add_arguments(parser)
    shapes = {p.name for family in (*FAMILIES.values(), *DAG_FAMILIES.values()) for p in family.parameters}
    result = {action.dest.removeprefix("parameter_") for action in parser._actions if action.help != argparse.SUPPRESS}
    return {SAME.get(name, name) for name in result if name not in OF_A_COMMAND and name not in shapes}


@pytest.mark.parametrize("command", DOORS)
def test_every_option_of_a_command_is_a_keyword_of_its_call(command: str) -> None:
    takes = signature(DOORS[command]).parameters
    assert options_of(command) - set(takes) == set()


@pytest.mark.parametrize("command", ["compare", "time", "simulate", "curve", "tune", "bound"])
def test_the_machine_is_a_keyword_by_name(command: str) -> None:
    takes = signature(DOORS[command]).parameters
    assert {"gpu", "machine", "cache"} <= set(takes) and "options" not in takes


# results


@pytest.fixture(scope="module")
def compared() -> pebble.Comparison:
    return pebble.compare(GEMM, ["row", "hilbert"], gpu="a40")


def test_a_comparison_is_a_short_table(compared: pebble.Comparison) -> None:
    table = compared.short_rows()
    assert {"order", "MB", "x bound", "ms at least"} <= set(table[0]) and len(table[0]) <= 6
    best = compared.best
    assert best is not None and table[0]["order"] == best.order == compared.orders[0].order
    assert float(table[0]["MB"].replace(",", "")) == pytest.approx(best.dram_bytes / 1e6, abs=0.05)
    html = compared._repr_html_()
    assert "<th>MB</th>" in html and "dram_read" not in html
    assert len(compared.rows()[0]) > 2 * len(table[0]), "every number stays in rows"


def test_what_has_the_best_says_it() -> None:
    bound = pebble.bound(GEMM, cache="64KiB")
    assert bound.best is bound.upper
    timed = pebble.time(GEMM, ["row", "hilbert"], gpu="a40")
    assert timed.best is timed.orders[0]
    solved = pebble.solve("gemm", 5, m=2, n=2, k=2)
    assert solved.best is not None and solved.best.cost == 13
    assert pebble.bound("diamond", size=3, capacity=3).best.value > 0


@pytest.mark.parametrize("ask", [
    lambda: pebble.solve("gemm", 5, m=2, n=2, k=2),
    lambda: pebble.replay([("a", "c")], [("load", "a"), ("compute", "c"), ("store", "c")], 3),
    lambda: pebble.time(GEMM, ["row", "hilbert"], gpu="a40"),
])  # fmt: skip
def test_answers_are_drawn(ask: Callable[[], Any]) -> None:
    result = ask()
    ax = Figure().subplots()
    assert result.plot(ax) is ax and ax.has_data()
    assert isinstance(result.plot(), Axes) and isinstance(result.figure(), Figure)


def test_a_pebbling_is_drawn_with_its_moves() -> None:
    solved = pebble.solve("gemm", 5, m=2, n=2, k=2)
    ax = solved.plot()
    spec = {text.get_text() for text in ax.get_legend().get_texts()}
    loads = sum(move[0] == "load" for move in solved.moves)
    stores = sum(move[0] == "store" for move in solved.moves)
    assert {f"load ({loads})", f"store ({stores})", "compute (8)"} <= spec and loads + stores == 13
    with pytest.raises(pebble.InputError, match="one of one memory"):
        pebble.solve("gemm", 3, m=1, n=2, k=1, buffers="sm-local").plot()


@pytest.mark.parametrize(
    ("key", "value", "name", "shown"),
    [
        ("dram_bytes", 1_234_567_890, "MB", "1,234.6"),
        ("dram_bytes", 40_000, "MB", "0.04"),
        ("least_time_us", 1500.0, "ms at least", "1.5"),
        ("ratio_to_lower_bound", 1.00001, "x bound", "1.00001"),
        ("legal", True, "legal", "yes"),
        ("stages", 1024, "stages", "1,024"),
        ("l2_hit_rate", None, "l2 hit rate", "-"),
    ],
)
def test_columns_for_a_reader(key: str, value: object, name: str, shown: str) -> None:
    assert for_reader(key, value) == (name, shown)


# lists of names


def test_names_are_listed() -> None:
    assert all(pebble.gpu(name).sku == name for name in pebble.machines())
    assert len(pebble.machines().to_dict()["machines"]) == len(pebble.machines())
    assert {"row", "hilbert"} <= set(pebble.schedules())
    of_ffn = pebble.schedules(pebble.Ffn(512, 256, 512)).names
    assert any(name.startswith("row-fused") for name in of_ffn)
    assert set(pebble.schedules(GEMM)) >= {"row", "row+sawtooth"}
    named = [name for name in pebble.workloads() if name.startswith("gpt2:")]
    assert {"gpt2:qkv", "gpt2:mlp", "gpt2:attention", "gpt2:layer"} <= set(named)
    assert all(pebble.workload(name, tokens=64).label for name in named)
    with pytest.raises(pebble.UnknownNameError, match="did you mean gpt2"):
        pebble.workloads("gpt22")


def test_rooms_with_the_name_of_a_list_stay_rooms() -> None:
    import pebble.schedules.orders
    import pebble.workloads.gemm

    assert pebble.schedules.orders.parse_order("row").name == "row"
    assert pebble.workloads.gemm.Gemm is pebble.Gemm
    assert list(signature(pebble.schedules).parameters) == ["workload"]


# DAGs and orders as a user has them

GRID = nx.DiGraph([((i, j), t) for i in range(4) for j in range(4) for t in ((i + 1, j), (i, j + 1)) if max(t) < 4])


def test_a_dag_is_also_edges_or_operands() -> None:
    edges = [("a", "c"), ("b", "c"), ("c", "e"), ("d", "e")]
    operands = {"c": ["a", "b"], "e": ["c", "d"]}
    for dag in (edges, operands, nx.DiGraph(edges)):
        assert pebble.solve(dag, 3).upper_bound == 4
        assert str(pebble.bound(dag, capacity=3)) == str(pebble.bound(nx.DiGraph(edges), capacity=3))
    assert set(pebble.dag(operands).edges) == set(edges)
    for dag in (edges, operands):
        with pytest.raises(pebble.InputError, match="cache: got '4KiB' with a DAG, expected its pebbles"):
            pebble.bound(dag, cache="4KiB")


@pytest.mark.parametrize(
    ("dag", "told"),
    [
        ([("a", "b", "c")], "in a list of edges"),
        ([1, 2], "in a list of edges"),
        ({"c": "ab"}, "as the operands of 'c'"),
        ({"c": 3}, "as the operands of 'c'"),
        ([([], 1)], "which have no name"),
        ([], "networkx.DiGraph, edges"),
    ],
)
def test_what_is_no_dag_is_said(dag: Any, told: str) -> None:
    with pytest.raises(pebble.InputError, match=told):
        pebble.solve(dag, 3)


def test_a_bound_is_as_strong_as_a_small_search() -> None:
    result = pebble.bound(GRID, capacity=4)
    assert result.best.value == result.upper == pebble.solve(GRID, 4).upper_bound == 6
    assert max(bound.value or 0 for bound in result.bounds if bound.name != "solver") < 6


def test_a_search_never_raises_a_bound_above_the_optimum() -> None:
    for seed in range(6):
        graph = nx.gnp_random_graph(9, 0.35, seed=seed, directed=True)
        dag = nx.DiGraph((u, v) for u, v in graph.edges if u < v)
        for variant in ("one-shot", "recompute"):
            least = 1 + max(dict(dag.in_degree()).values())
            bound = pebble.bound(dag, capacity=least, variant=variant)
            exact = solve(dag, least, variant)
            assert exact.status == "optimal" and bound.best.value <= exact.upper_bound
            assert bound.best.value >= exact.upper_bound, "so small a DAG is searched to the end"


def columns_first(rows: int, cols: int, params: object) -> Iterator[tuple[int, int]]:
    for col in range(cols):
        for row in range(rows):
            yield row, col


def test_an_order_may_be_a_generator() -> None:
    by_name = pebble.simulate(GEMM, "column", **KERNEL).traffic.dram_bytes
    assert pebble.simulate(GEMM, columns_first, **KERNEL).traffic.dram_bytes == by_name
    assert pebble.simulate(GEMM, columns_first(4, 4, None), **KERNEL).traffic.dram_bytes == by_name
    compared = pebble.compare(GEMM, "column", columns_first, **KERNEL)
    assert {t.order: t.dram_bytes for t in compared.orders} == {"column": by_name, "columns_first": by_name}
    with pytest.raises(pebble.InputError, match="columns_first"):
        pebble.simulate(GEMM, columns_first(5, 4, None), **KERNEL)


def by_columns(rows: int, cols: int) -> Iterator[tuple[int, int]]:
    for col in range(cols):
        for row in range(rows):
            yield row, col


@pytest.mark.parametrize("order", [
    lambda: [by_columns],
    lambda: by_columns,
    lambda: by_columns(4, 4),
    lambda: [by_columns(4, 4)],
    lambda: list(by_columns(4, 4)),
    lambda: [list(by_columns(4, 4))],
    lambda: iter(list(by_columns(4, 4))),
    lambda: np.array(list(by_columns(4, 4))),
])  # fmt: skip
def test_an_order_of_ones_own_stands_among_the_names(order: Callable[[], Any]) -> None:
    where: dict[str, Any] = {**KERNEL, "tile": "128x128x64", "cache": "256KiB", "sms": 2}
    named = pebble.compare(GEMM, "column", **where)
    assert named.best is not None
    (own,) = pebble.compare(GEMM, order(), **where).orders
    assert own.dram_bytes == named.best.dram_bytes
    (curve,) = pebble.curve(GEMM, order(), points=3, **where).schedules
    assert curve.dram_bytes == pebble.curve(GEMM, "column", points=3, **where).schedules[0].dram_bytes


def test_what_is_no_order_is_refused_in_the_words_of_the_caller() -> None:
    with pytest.raises(pebble.InputError, match=r"^schedules: got 3, expected all, names such as"):
        pebble.compare(GEMM, ["row", 3], **KERNEL)
    with pytest.raises(pebble.InputError, match="is there 2 times"):
        pebble.compare(GEMM, [iter([(0, 0), (0, 0)])], **KERNEL)
    with pytest.raises(pebble.InputError, match=r"^cache: got 4 with a DAG, expected its pebbles, such as capacity=4"):
        pebble.bound([("a", "b")], cache=4)
    with pytest.raises(pebble.InputError, match=r"^gpu: got 'h100' with a DAG"):
        pebble.bound(nx.DiGraph([("a", "b")]), gpu="h100")
    with pytest.raises(pebble.InputError, match=r"^cache: got 4, .* pebbles are capacity=4"):
        pebble.solve([("a", "b")], cache=4)


# interrupts and bars


def test_an_interrupted_solver_keeps_its_interval() -> None:
    def interrupt(now: object) -> None:
        raise KeyboardInterrupt

    result = pebble.solve("gemm", 12, m=4, n=4, k=4, progress=interrupt)
    assert result.result.stop_reason == "interrupted" or result.optimal
    assert result.lower_bound >= 16 and (result.upper_bound is None or result.upper_bound >= result.lower_bound)


def test_a_bar_is_shown_where_it_is_seen_and_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    entries: list[tuple[str, int, int]] = []

    class Line:
        total: int | None
        n: int

        def __init__(self, leave: bool) -> None:
            assert leave is False

        def set_description_str(self, what: str) -> None:
            entries.append((what, self.n, self.total or 0))

        def close(self) -> None:
            entries.append(("closed", 0, 0))

    monkeypatch.setattr(clock, "watched", lambda: True)
    monkeypatch.setattr(clock, "find_spec", lambda name: name)
    monkeypatch.setattr(clock, "import_module", lambda name: argparse.Namespace(tqdm=Line))
    pebble.compare(GEMM, ["row", "hilbert"], **KERNEL)
    assert {what for what, _, _ in entries[:2]} == {"hilbert", "row"}
    assert [at for _, *at in entries[:2]] == [[1, 2], [2, 2]]
    assert entries[2:] == [("closed", 0, 0)]
    for ask in (
        lambda shown: pebble.curve(GEMM, "row", points=2, progress=shown, **KERNEL),
        lambda shown: pebble.tile(GEMM, gpu="a40", progress=shown),
        lambda shown: pebble.solve("gemm", 5, m=2, n=2, k=2, progress=shown),
    ):
        entries.clear()
        ask(True)
        assert entries[-1] == ("closed", 0, 0)
        entries.clear()
        ask(False)
        assert entries == []
    with pytest.raises(pebble.InputError, match="progress: got 3"):
        pebble.compare(GEMM, "row", progress=3, **KERNEL)


def test_nobody_watches_a_file() -> None:
    assert clock.watched() == ("ipykernel" in sys.modules or sys.stderr.isatty())
