"""`import pebble`: its names, what each call gives back, and one sentence for whatever is wrong."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import pebble
from pebble.cli import main
from pebble.errors import InputError, PebbleError, VerificationError
from pebble.reports.base import Report

GEMM = pebble.Gemm(256, 256, 256)
WORDS = ["gemm", "-m", "256", "-n", "256", "-k", "256"]
KERNEL: dict[str, Any] = {"cache": "1MiB", "sms": 4}
DAG = nx.DiGraph([("a", "c"), ("b", "c")])
MOVES = [["load", "a"], ["load", "b"], ["compute", "c"], ["store", "c"]]


def test_every_name_loads_and_is_documented() -> None:
    assert set(pebble.__all__) == set(dir(pebble))
    for name in pebble.__all__:
        assert name == "__version__" or getattr(pebble, name).__doc__.strip()
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = pebble.nonsense


def test_importing_loads_nothing_heavy() -> None:
    heavy = [
        "numpy",
        "numba",
        "networkx",
        "matplotlib",
        "pandas",
        "scipy",
        "ortools",
        "pebble.reports",
        "pebble.bounds",
    ]
    code = f"import sys, pebble; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_bound_loads_no_figures_and_no_tables() -> None:
    code = (
        "import sys, pebble; pebble.bound(pebble.Gemm(64, 64, 64), cache='1KiB')\n"
        "print([name for name in ('matplotlib', 'pandas', 'ortools') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


# what each call gives, and the command line that asks the same

Call = tuple[Callable[[Path], Any], list[str]]
CALLS: dict[str, Call] = {
    "bound": (lambda d: pebble.bound(GEMM, cache="40KiB"), ["bound", *WORDS, "--cache", "40KiB"]),
    "bound, gpu": (
        lambda d: pebble.bound(pebble.workload("llama-3-8b:mlp", tokens=64), gpu="a40"),
        ["bound", "llama-3-8b:mlp", "--tokens", "64", "--gpu", "a40"],
    ),
    "bound, layer": (
        lambda d: pebble.bound(pebble.TransformerLayer(16, 8, 24, 2, 1, 4), cache="300el"),
        ["bound", "layer", "--tokens", "16", "--d-model", "8", "--hidden", "24", "--heads", "2", "--kv-heads", "1",
         "--head-dim", "4", "--gated", "--cache", "300el"],
    ),
    "bound, several SMs": (
        lambda d: pebble.bound(GEMM, cache="40KiB", sms=4, buffers="connected", omega=0.5),
        ["bound", *WORDS, "--cache", "40KiB", "--sms", "4", "--buffers", "connected", "--omega", "0.5"],
    ),
    "bound, DAG": (
        lambda d: pebble.bound(d / "dag.json", capacity=3),
        ["bound", "FOLDER/dag.json", "--capacity", "3"],
    ),
    "compare": (
        lambda d: pebble.compare(GEMM, ["row", "hilbert"], **KERNEL),
        ["compare", *WORDS, "--cache", "1MiB", "--sms", "4", "--schedules", "row,hilbert"],
    ),
    "simulate": (
        lambda d: pebble.simulate(GEMM, "row", **KERNEL),
        ["simulate", *WORDS, "--cache", "1MiB", "--sms", "4", "--schedule", "row"],
    ),
    "simulate, trace": (
        lambda d: pebble.simulate(trace=str(d / "trace.csv"), cache="1MiB"),
        ["simulate", "--trace", "FOLDER/trace.csv", "--cache", "1MiB"],
    ),
    "curve": (
        lambda d: pebble.curve(GEMM, "row,hilbert", points=4, **KERNEL),
        ["curve", *WORDS, "--cache", "1MiB", "--sms", "4", "--schedules", "row,hilbert", "--points", "4"],
    ),
    "solve": (
        lambda d: pebble.solve("gemm", 5, m=2, n=2, k=2),
        ["solve", "gemm", "-m", "2", "-n", "2", "-k", "2", "--capacity", "5"],
    ),
    "replay": (
        lambda d: pebble.replay(d / "dag.json", d / "moves.json", 3),
        ["replay", "FOLDER/dag.json", "FOLDER/moves.json", "--capacity", "3"],
    ),
    "prove": (
        lambda d: pebble.prove(GEMM, cache="40KiB"),
        ["prove", *WORDS, "--cache", "40KiB", "--out", "FOLDER/p.md"],
    ),
    "certify": (
        lambda d: pebble.certify(GEMM, d / "mine.json", cache="40KiB"),
        ["bound", *WORDS, "--cache", "40KiB", "--certificate", "FOLDER/theirs.json"],
    ),
    "verify": (lambda d: pebble.verify(d / "c.json"), ["verify", "FOLDER/c.json"]),
    "decode": (lambda d: pebble.decode("llama-3-8b", gpu="a40"), ["decode", "llama-3-8b", "--gpu", "a40"]),
}  # fmt: skip
OF_THE_RUN = {"command", "seconds", "states", "states_per_second", "details"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("front_door")
    from pebble.cdag.io import write_dag

    write_dag(DAG, found / "dag.json")
    (found / "moves.json").write_text(json.dumps(MOVES))
    pebble.certify(GEMM, found / "c.json", cache="40KiB")
    kernel = ["--cache", "1MiB", "--sms", "4", "--schedule", "row"]
    assert main(["simulate", *WORDS, *kernel, "--write-trace", f"{found}/trace.csv"]) == 0
    return found


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_the_document_of_its_command(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call, words = CALLS[name]
    found = call(folder)
    capsys.readouterr()
    assert main([*(word.replace("FOLDER", str(folder)) for word in words), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    told = json.loads(json.dumps(found.to_dict()))
    assert told["command"] == found.question == words[0]
    assert {k: v for k, v in told.items() if k not in OF_THE_RUN} == {
        key: value for key, value in printed.items() if key not in OF_THE_RUN and key in told
    }
    assert set(printed) - set(told) <= {"out", "format", "characters"}  # what the command did besides


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_frozen_short_and_a_table(name: str, folder: Path) -> None:
    found = CALLS[name][0](folder)
    assert isinstance(found, Report)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(found, dataclasses.fields(found)[0].name, None)  # type: ignore[arg-type]
    text = repr(found)
    assert text == f"<{type(found).__name__}: {found}>" and "\n" not in text and len(text) < 400
    rows = found.rows()
    assert rows and all(row.keys() == rows[0].keys() for row in rows[:1])
    html = found._repr_html_()
    assert html.startswith("<table>") and html.endswith("</table>")
    assert html.count("<tr>") == len(rows) + 1 and html.count("<th>") == len(rows[0])


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_a_frame(name: str, folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    found = CALLS[name][0](folder)
    frame = found.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == len(found.rows()) and list(frame.columns)[: len(found.rows()[0])] == list(found.rows()[0])


def test_without_pandas_a_frame_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pandas is not installed"):
        pebble.bound(GEMM, cache="40KiB").to_frame()


@pytest.mark.parametrize("name", CALLS)
def test_a_figure_where_there_is_one(name: str, folder: Path) -> None:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    found = CALLS[name][0](folder)
    if name in ("bound", "bound, gpu", "bound, layer", "certify", "compare", "curve"):
        assert isinstance(found.plot(), Axes)
        ax = Figure().subplots()
        assert found.plot(ax=ax) is ax
        assert ax.has_data()
    else:
        with pytest.raises(InputError, match=r"there is no figure of \w+"):
            found.plot()


def test_a_dag_and_a_machine() -> None:
    assert len(pebble.dag("gemm", m=2, n=2, k=2)) == len(pebble.dag(pebble.Gemm(2, 2, 2))) == 20
    machine = pebble.gpu("A40")
    assert isinstance(machine, pebble.Machine) and pebble.gpu(machine) is machine
    assert pebble.bound(GEMM, gpu=machine).to_dict() == pebble.bound(GEMM, gpu="a40").to_dict()
    assert pebble.workload("gemm", m=256, n=256, k=256) == GEMM


def test_the_moves_of_a_solution_are_taken_back() -> None:
    solved = pebble.solve("gemm", 5, m=2, n=2, k=2)
    played = pebble.replay("gemm", solved.moves, 5, m=2, n=2, k=2)
    assert played.legal and played.optimal and played.cost == solved.upper_bound == 13
    assert solved.optimal and solved.lower_bound == 13
    broken = pebble.replay("gemm", solved.moves[1:], 5, m=2, n=2, k=2)
    assert not broken.legal and broken.cost is None and "illegal pebbling at step" in str(broken)


def test_moves_name_the_nodes_of_the_graph() -> None:
    graph = nx.DiGraph([(1, 3), (2, 3)])
    moves = [("load", 1), ("load", 2), ("compute", 3), ("store", "3")]
    assert pebble.replay(graph, moves, 3).optimal
    played = pebble.replay(graph, [*moves[:2], ("slide", 3, 1), ("store", 3)], 2, variant="one-shot-sliding")
    assert played.legal and played.cost == 3
    pairs = nx.relabel_nodes(graph, lambda node: (0, node))
    assert pebble.replay(pairs, [(op, (0, int(node))) for op, node in moves], 3).optimal


def test_a_replay_names_its_memories() -> None:
    moves = [[*move, 1] for move in MOVES]
    played = pebble.replay(DAG, moves, 3, buffers="connected", sms=2, omega=0.25)
    assert ", connected, 2 SMs, omega 0.25, all-to-all, capacity 3 each, one-shot: legal, costs 3" in str(played)


def test_a_certificate_is_verified_from_a_dict_and_a_changed_one_is_refused(folder: Path) -> None:
    document = json.loads((folder / "c.json").read_text())
    assert pebble.verify(document).proved == pebble.verify(str(folder / "c.json")).proved
    document["claims"][0]["elements"] += 1
    with pytest.raises(VerificationError, match=r"refused at claims\[0\].elements"):
        pebble.verify(document)


def test_a_copy_that_costs_nothing_is_not_the_default() -> None:
    """omega = 0 is a price, not a missing one."""
    free, text, default = (
        pebble.bound(GEMM, cache="4KiB", sms=4, buffers="connected", omega=omega).to_dict() for omega in (0, "0", None)
    )
    assert free == text
    assert free["lower_bound"] != default["lower_bound"]


# wrong types

WRONG: dict[str, Callable[[], Any]] = {
    "bound 3": lambda: pebble.bound(3, cache="1MiB"),
    "bound None": lambda: pebble.bound(None, capacity=4),
    "bound a name": lambda: pebble.bound("gemm", cache="1MiB"),
    "bound a list": lambda: pebble.bound([1, 2], capacity=4),
    "no memory": lambda: pebble.bound(GEMM),
    "two memories": lambda: pebble.bound(GEMM, gpu="a40", cache="1MiB"),
    "cache=1": lambda: pebble.bound(GEMM, cache=1),
    "cache=[1]": lambda: pebble.bound(GEMM, cache=[1]),
    "cache=bytes": lambda: pebble.bound(GEMM, cache=b"1MiB"),
    "cache=40": lambda: pebble.bound(GEMM, cache="40"),
    "gpu=3": lambda: pebble.bound(GEMM, gpu=3),
    "machine=3": lambda: pebble.bound(GEMM, machine=3),
    "sms='x'": lambda: pebble.bound(GEMM, cache="1MiB", sms="x"),
    "sms=[1]": lambda: pebble.bound(GEMM, cache="1MiB", sms=[1]),
    "sms=2.5": lambda: pebble.bound(GEMM, cache="1MiB", sms=2.5),
    "recompute='forbidden'": lambda: pebble.bound(GEMM, cache="1MiB", recompute="forbidden"),
    "recompute on SMs": lambda: pebble.bound(GEMM, cache="1MiB", sms=4, buffers="sm-local", recompute="no"),
    "buffers=3": lambda: pebble.bound(GEMM, cache="1MiB", buffers=3),
    "buffers=[1]": lambda: pebble.bound(GEMM, cache="1MiB", buffers=[1]),
    "level=3": lambda: pebble.bound(GEMM, cache="1MiB", level=3),
    "omega=[1]": lambda: pebble.bound(GEMM, cache="1MiB", sms=4, buffers="connected", omega=[1]),
    "omega=[]": lambda: pebble.bound(GEMM, cache="1MiB", sms=4, buffers="connected", omega=[]),
    "topology=3": lambda: pebble.bound(GEMM, cache="1MiB", sms=4, buffers="connected", topology=3),
    "multicast=[1]": lambda: pebble.bound(GEMM, cache="1MiB", sms=4, buffers="sm-local", multicast=[1]),
    "DAG, capacity='x'": lambda: pebble.bound(DAG, capacity="x"),
    "DAG, capacity=[1]": lambda: pebble.bound(DAG, capacity=[1]),
    "DAG, capacity=2.5": lambda: pebble.bound(DAG, capacity=2.5),
    "DAG, no capacity": lambda: pebble.bound(DAG),
    "DAG, cache": lambda: pebble.bound(DAG, cache="1MiB"),
    "DAG, variant=3": lambda: pebble.bound(DAG, capacity=3, variant=3),
    "DAG, time_limit='x'": lambda: pebble.bound(DAG, capacity=3, time_limit="x"),
    "DAG, time_limit=nan": lambda: pebble.bound(DAG, capacity=3, time_limit=float("nan")),
    "compare 3": lambda: pebble.compare(3, **KERNEL),
    "compare a name": lambda: pebble.compare("gemm", **KERNEL),
    "compare a family without kernels": lambda: pebble.compare(pebble.GroupedGemm((2, 3), 3, 3), **KERNEL),
    "tile=5": lambda: pebble.compare(GEMM, tile=5, **KERNEL),
    "tile=tuple": lambda: pebble.compare(GEMM, tile=(128, 128), **KERNEL),
    "policy=3": lambda: pebble.compare(GEMM, policy=3, **KERNEL),
    "allow_infeasible=1": lambda: pebble.compare(GEMM, allow_infeasible=1, **KERNEL),
    "schedules=3": lambda: pebble.compare(GEMM, 3, **KERNEL),
    "schedules=None": lambda: pebble.compare(GEMM, None, **KERNEL),
    "schedules=[3]": lambda: pebble.compare(GEMM, [3], **KERNEL),
    "schedules=[]": lambda: pebble.compare(GEMM, [], **KERNEL),
    "execution=3": lambda: pebble.compare(GEMM, execution=3, **KERNEL),
    "cluster=(2, 1)": lambda: pebble.compare(GEMM, cluster=(2, 1), **KERNEL),
    "seed=[]": lambda: pebble.compare(GEMM, seed=[], **KERNEL),
    "stages=[]": lambda: pebble.compare(GEMM, stages=[], **KERNEL),
    "blocks_per_sm=None": lambda: pebble.compare(GEMM, blocks_per_sm=None, **KERNEL),
    "residual='no'": lambda: pebble.compare(GEMM, residual="no", **KERNEL),
    "an option that does not exist": lambda: pebble.compare(GEMM, tiles="1x1", **KERNEL),
    "schedule=5": lambda: pebble.simulate(GEMM, 5, **KERNEL),
    "schedule=None": lambda: pebble.simulate(GEMM, None, **KERNEL),
    "schedule=['row']": lambda: pebble.simulate(GEMM, ["row"], **KERNEL),
    "schedule of an FFN=5": lambda: pebble.simulate(pebble.Ffn(64, 64, 64), 5, **KERNEL),
    "schedule of attention=5": lambda: pebble.simulate(pebble.Attention(64, 64, 64), 5, **KERNEL),
    "simulate nothing": lambda: pebble.simulate(),
    "simulate 3": lambda: pebble.simulate(3, "row", **KERNEL),
    "trace=3": lambda: pebble.simulate(trace=3, cache="1MiB"),
    "trace=[]": lambda: pebble.simulate(trace=[], cache="1MiB"),
    "trace, policy=3": lambda: pebble.simulate(trace="x.csv", cache="1MiB", policy=3),
    "trace, an option that does not exist": lambda: pebble.simulate(trace="x.csv", cach="1MiB"),
    "sensitivity='no'": lambda: pebble.simulate(GEMM, "row", sensitivity="no", **KERNEL),
    "curve 3": lambda: pebble.curve(3, **KERNEL),
    "points=[]": lambda: pebble.curve(GEMM, "row", points=[], **KERNEL),
    "least=3": lambda: pebble.curve(GEMM, "row", least=3, **KERNEL),
    "most=3": lambda: pebble.curve(GEMM, "row", most=3, **KERNEL),
    "capacities_bytes=3": lambda: pebble.curve(GEMM, "row", capacities_bytes=3, **KERNEL),
    "capacities_bytes=['x']": lambda: pebble.curve(GEMM, "row", capacities_bytes=["x"], **KERNEL),
    "capacities_bytes=[1.5]": lambda: pebble.curve(GEMM, "row", capacities_bytes=[1.5], **KERNEL),
    "capacities_bytes=[-5]": lambda: pebble.curve(GEMM, "row", capacities_bytes=[-5], **KERNEL),
    "solve 3": lambda: pebble.solve(3, 4),
    "solve an undirected graph": lambda: pebble.solve(nx.Graph([("a", "b")]), 4),
    "capacity='x'": lambda: pebble.solve(DAG, "x"),
    "capacity=None": lambda: pebble.solve(DAG, None),
    "capacity=2.5": lambda: pebble.solve(DAG, 2.5),
    "variant=3": lambda: pebble.solve(DAG, 3, variant=3),
    "solver=3": lambda: pebble.solve(DAG, 3, solver=3),
    "solver=[]": lambda: pebble.solve(DAG, 3, solver=[]),
    "time_limit='x'": lambda: pebble.solve(DAG, 3, time_limit="x"),
    "seed='x'": lambda: pebble.solve(DAG, 3, seed="x"),
    "seed=None": lambda: pebble.solve(DAG, 3, seed=None),
    "solve, buffers=3": lambda: pebble.solve(DAG, 3, buffers=3),
    "solve, buffers=[]": lambda: pebble.solve(DAG, 3, buffers=[]),
    "solve, sms='x'": lambda: pebble.solve(DAG, 3, buffers="connected", sms="x"),
    "solve, omega=[]": lambda: pebble.solve(DAG, 3, buffers="connected", sms=2, omega=[]),
    "solve, topology=3": lambda: pebble.solve(DAG, 3, buffers="connected", sms=2, topology=3),
    "solve, tasks_per_sm=[]": lambda: pebble.solve(DAG, 3, buffers="connected", sms=2, tasks_per_sm=[]),
    "solve, m='x'": lambda: pebble.solve("gemm", 4, m="x", n=1, k=1),
    "solve, m=[]": lambda: pebble.solve("gemm", 4, m=[], n=1, k=1),
    "certify a solution to 3": lambda: pebble.solve(DAG, 3).certify(3),
    "certify a solution in 'x' seconds": lambda: pebble.solve(DAG, 3).certify("x.json", "x"),
    "replay 3": lambda: pebble.replay(3, [], 3),
    "moves=3": lambda: pebble.replay(DAG, 3, 3),
    "moves=None": lambda: pebble.replay(DAG, None, 3),
    "moves=[3]": lambda: pebble.replay(DAG, [3], 3),
    "moves=[[]]": lambda: pebble.replay(DAG, [[]], 3),
    "moves=[('load', [])]": lambda: pebble.replay(DAG, [("load", [])], 3),
    "moves=[(3, 'a')]": lambda: pebble.replay(DAG, [(3, "a")], 3),
    "moves=dict": lambda: pebble.replay(DAG, {"a": 1}, 3),
    "moves, a stray third item": lambda: pebble.replay(DAG, [("load", "a", "b")], 3),
    "moves, no such SM": lambda: pebble.replay(DAG, [("load", "a", "x")], 3, buffers="sm-local"),
    "moves, no node of the graph": lambda: pebble.replay(nx.DiGraph([(1, 2)]), [("load", 3)], 3),
    "replay, capacity=True": lambda: pebble.replay(DAG, MOVES, True),
    "solve, progress=3": lambda: pebble.solve(DAG, 3, progress=3),
    "replay of an illegal move, time_limit='x'": lambda: pebble.replay(DAG, [], 3, time_limit="x"),
    "replay, time_limit='x'": lambda: pebble.replay(DAG, MOVES, 3, time_limit="x"),
    "replay, capacity='x'": lambda: pebble.replay(DAG, MOVES, "x"),
    "replay, buffers=3": lambda: pebble.replay(DAG, MOVES, 3, buffers=3),
    "dag 3": lambda: pebble.dag(3),
    "dag None": lambda: pebble.dag(None),
    "dag, no sizes": lambda: pebble.dag("gemm"),
    "dag, m=[]": lambda: pebble.dag("gemm", m=[], n=1, k=1),
    "dag, tile=5": lambda: pebble.dag("gemm", m=2, n=1, k=1, tile=5),
    "dag, form=[]": lambda: pebble.dag("gemm", m=2, n=1, k=1, form=[]),
    "dag of a layer": lambda: pebble.dag(pebble.TransformerLayer(2, 2, 2, 1, 1, 1)),
    "prove 3": lambda: pebble.prove(3, cache="1MiB"),
    "prove a DAG": lambda: pebble.prove(DAG, cache="1MiB"),
    "form=3": lambda: pebble.prove(GEMM, 3, cache="1MiB"),
    "form=[]": lambda: pebble.prove(GEMM, [], cache="1MiB"),
    "form of a bound": lambda: pebble.bound(GEMM, cache="1MiB").prove("html"),
    "certify 3": lambda: pebble.certify(3, "x.json", cache="1MiB"),
    "path=3": lambda: pebble.certify(GEMM, 10**6, cache="1MiB"),
    "path=None": lambda: pebble.certify(GEMM, None, cache="1MiB"),
    "verify 3": lambda: pebble.verify(3),
    "verify None": lambda: pebble.verify(None),
    "verify {}": lambda: pebble.verify({}),
    "verify bytes": lambda: pebble.verify(b"x"),
    "verify a result": lambda: pebble.verify(pebble.bound(GEMM, cache="1MiB")),
    "decode 3": lambda: pebble.decode(3, cache="1MiB"),
    "decode []": lambda: pebble.decode([], cache="1MiB"),
    "decode, dtype=3": lambda: pebble.decode("llama-3-8b", 3, cache="1MiB"),
    "decode, nowhere": lambda: pebble.decode("llama-3-8b"),
    "decode, an option that does not exist": lambda: pebble.decode("llama-3-8b", cach="1MiB"),
    "gpu 3": lambda: pebble.gpu(3),
    "gpu None": lambda: pebble.gpu(None),
    "gpu 'x'": lambda: pebble.gpu("x"),
    "gpu of a file that is not there": lambda: pebble.gpu("nowhere.toml"),
    "workload 3": lambda: pebble.workload(3),
    "workload 'x'": lambda: pebble.workload("x"),
    "workload, foreign option": lambda: pebble.workload("gemm", m=1, n=1, k=1, q=2),
    "workload, dtype=[]": lambda: pebble.workload("gemm", m=1, n=1, k=1, dtype=[]),
    "workload, accumulate=3": lambda: pebble.workload("gemm", m=1, n=1, k=1, accumulate=3),
    "workload, batch='x'": lambda: pebble.workload("gemm", m=1, n=1, k=1, batch="x"),
    "workload, rows=3": lambda: pebble.workload("grouped", rows=3, n=1, k=1),
    "workload, rows=[[]]": lambda: pebble.workload("grouped", rows=[[]], n=1, k=1),
    "Gemm('a')": lambda: pebble.Gemm("a", 1, 1),
    "Gemm(None)": lambda: pebble.Gemm(None, 1, 1),
    "Gemm(1.5)": lambda: pebble.Gemm(1.5, 1, 1),
    "Gemm, dtype=3": lambda: pebble.Gemm(1, 1, 1, 3),
    "Gemm, dtype=[]": lambda: pebble.Gemm(1, 1, 1, []),
    "Gemm, out_dtype=[1]": lambda: pebble.Gemm(1, 1, 1, "bf16", [1]),
    "Gemm, accumulate='no'": lambda: pebble.Gemm(1, 1, 1, accumulate="no"),
    "Gemm, name=3": lambda: pebble.Gemm(1, 1, 1, name=3),
    "GroupedGemm, accumulate=1": lambda: pebble.GroupedGemm((1,), 1, 1, accumulate=1),
    "Ffn, gated='no'": lambda: pebble.Ffn(1, 1, 1, gated="no"),
    "Ffn, d_out='x'": lambda: pebble.Ffn(1, 1, 1, "x"),
    "Attention, softmax=3": lambda: pebble.Attention(1, 1, 1, softmax=3),
    "Attention, softmax=[]": lambda: pebble.Attention(1, 1, 1, softmax=[]),
    "Attention, causal='no'": lambda: pebble.Attention(1, 1, 1, causal="no"),
    "TransformerLayer, gated='no'": lambda: pebble.TransformerLayer(1, 1, 1, 1, 1, 1, gated="no"),
    "Conv2d, stride=[]": lambda: pebble.Conv2d(1, 1, 1, 1, 1, 1, []),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_sentence(name: str) -> None:
    with pytest.raises(PebbleError) as caught:
        WRONG[name]()
    text = str(caught.value)
    assert "\n" not in text and text.endswith((".", "?")) and 10 < len(text) < 500, text


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pebble.bound(None, cache="4el"), "workload: got NoneType"),
        (lambda: pebble.bound([GEMM], capacity=4), "workload: got list"),
        (lambda: pebble.bound(GEMM, cache="4el", foo=3), "unknown option 'foo'"),
        (lambda: pebble.bound("gemm", cache="4el"), "-m, -n, -k missing"),
        (lambda: pebble.bound(GEMM, cache="400el").plot(3), "ax: got 3, expected matplotlib Axes"),
        (lambda: pebble.solve("gemm", m=2, n=2, k=2, batch=2, capacity=5), "gemm: got --batch"),
        (lambda: pebble.solve("grouped", rows=(1, 1), n=2, k=2, capacity=5), "no computation DAG of its own"),
        (lambda: pebble.dag("llama-3-8b:layer"), "no computation DAG of its own"),
        (lambda: pebble.workload("llama-3-8b:lyer", tokens=3), "did you mean layer"),
    ],
)
def test_what_was_meant_is_said(call: Callable[[], object], said: str) -> None:
    with pytest.raises(PebbleError) as error:
        call()
    assert said in str(error.value)


def test_a_bound_by_name() -> None:
    assert (
        pebble.bound("gemm", m=4, n=5, k=6, cache="40el").lower
        == pebble.bound(pebble.Gemm(4, 5, 6), cache="40el").lower
    )
    found = pebble.bound("gemm", m=2, n=2, k=2, capacity=5)
    assert found.best.value == 13
