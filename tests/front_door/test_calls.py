"""`import pebble`: its names, and what each call gives back."""

from __future__ import annotations

import dataclasses
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import pebble
from pebble import errors
from pebble.cli import main
from pebble.errors import InputError, VerificationError, in_python
from pebble.reports.report import Report

GEMM = pebble.Gemm(256, 256, 256)
WORDS = ["gemm", "-m", "256", "-n", "256", "-k", "256"]
KERNEL: dict[str, Any] = {"cache": "1MiB", "sms": 4}
DAG = nx.DiGraph([("a", "c"), ("b", "c")])
MOVES = [["load", "a"], ["load", "b"], ["compute", "c"], ["store", "c"]]


def test_every_name_loads_and_is_documented() -> None:
    assert set(pebble.__all__) == set(dir(pebble))
    for name in pebble.__all__:
        assert name == "__version__" or getattr(pebble, name).__doc__.strip()
    assert issubclass(pebble.InfeasibleError, pebble.PebbleError) and pebble.PebbleError is errors.PebbleError
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = pebble.nonsense


def test_a_refusal_names_keywords_in_python_and_options_on_the_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(pebble.InputError) as refused:
        pebble.compare(GEMM, cache="1MiB")
    assert str(refused.value).startswith("sms missing: expected sms=NUMBER beside cache,")
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    with pytest.raises(pebble.PebbleError, match=r"^accumulators: got it with a DAG"):
        pebble.bound(DAG, capacity=3, accumulators="off")
    with pytest.raises(pebble.InputError, match=r"^cache: got 4096, expected text with a unit"):
        pebble.bound(GEMM, cache=4096)
    with pytest.raises(pebble.UnknownNameError, match=r"listed by `pebble.machines\(\)`"):
        pebble.gpu("zzzzzz")
    assert main(["compare", *WORDS, "--cache", "1MiB"]) == 2
    spec = capsys.readouterr().err
    assert spec.startswith("pebble: --sms missing: expected --sms NUMBER beside --cache,") and spec.count("\n") == 1


@pytest.mark.parametrize(
    ("typed", "called"),
    [
        ("--sms P: expected --gpu SKU or --machine FILE.", "sms=P: expected gpu=SKU or machine=FILE."),
        ("got it with --execution even; leave it out", "got it with execution='even'; leave it out"),
        ("add --resume to go on, --points 48", "add resume to go on, points=48"),
        ("see `pebble time --help`, `pebble schedules`.", "see `help(pebble.time)`, `pebble.schedules()`."),
        ("run `pebble export --format json` first; --beside or --sweep", None),
        ("--from 1MiB --to 4MiB", "least='1MiB' most='4MiB'"),
        ("a dash -- and a-b", "a dash -- and a-b"),
    ],
)
def test_options_are_translated_outside_of_commands(typed: str, called: str | None) -> None:
    assert in_python(typed) == (called or "run `pebble export --format json` first; beside or sweep")


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
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_bound_loads_no_figures_tables_graphs_or_solvers() -> None:
    code = (
        "import sys, pebble.cli; pebble.cli.main('bound gemm -m 64 -n 64 -k 64 --cache 1KiB'.split())\n"
        "heavy = ('matplotlib', 'pandas', 'ortools', 'networkx', 'numba', 'scipy', 'pebble.solvers')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"


def test_a_certificate_is_checked_without_what_wrote_it(tmp_path: Path) -> None:
    pebble.certify(pebble.Gemm(64, 64, 64), tmp_path / "c.json", cache="1KiB")
    code = (
        f"import sys, pebble.cli; code = pebble.cli.main(['verify', {str(tmp_path / 'c.json')!r}])\n"
        "made_of = ('numpy', 'networkx', 'pebble.bounds', 'pebble.families', 'pebble.proof', 'pebble.schedules')\n"
        "print(code, [name for name in made_of if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "0 []"


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
    "compare, several SMs": (
        lambda d: pebble.compare(GEMM, cache="40KiB", sms=4, buffers="connected", omega=0.5, tile="64x64"),
        ["compare", *WORDS, "--cache", "40KiB", "--sms", "4", "--buffers", "connected", "--omega", "0.5",
         "--tile", "64x64"],
    ),
    "compare, level l2": (
        lambda d: pebble.compare(GEMM, gpu="a40", level="l2"),
        ["compare", *WORDS, "--gpu", "a40", "--level", "l2"],
    ),
    "compare, exactly": (
        lambda d: pebble.compare(GEMM, ["row", "hilbert"], exact=True, tile="128x128x128", cache="160KiB"),
        ["compare", *WORDS, "--exact", "--tile", "128x128x128", "--cache", "160KiB", "--schedules", "row,hilbert"],
    ),
    "simulate, side by side": (
        lambda d: pebble.simulate(
            pebble.workload("gpt2:attention", tokens=256), "fa2", gpu="a40", beside="gpt2:mlp", beside_sms=42
        ),
        ["simulate", "gpt2:attention", "--tokens", "256", "--schedule", "fa2", "--gpu", "a40", "--beside", "gpt2:mlp",
         "--beside-sms", "42"],
    ),
    "simulate, written": (
        lambda d: pebble.simulate(GEMM, "row", write_trace=str(d / "written.npz"), **KERNEL),
        ["simulate", *WORDS, "--cache", "1MiB", "--sms", "4", "--schedule", "row", "--write-trace",
         "FOLDER/written.npz"],
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
    "solve, several SMs, unit weights": (
        lambda d: pebble.solve("gemm", 3, m=1, n=2, k=1, tile="1x1x1", buffers="sm-local", unit_weights=True),
        ["solve", "gemm", "-m", "1", "-n", "2", "-k", "1", "--tile", "1x1x1", "--capacity", "3", "--buffers",
         "sm-local", "--unit-weights"],
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
WRITTEN = "simulate, written"
OF_THE_RUN = {"command", "seconds", "states", "states_per_second", "details"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = tmp_path_factory.mktemp("front_door")
    from pebble.cdag.io import write_dag

    write_dag(DAG, result / "dag.json")
    (result / "moves.json").write_text(json.dumps(MOVES))
    pebble.certify(GEMM, result / "c.json", cache="40KiB")
    kernel = ["--cache", "1MiB", "--sms", "4", "--schedule", "row"]
    assert main(["simulate", *WORDS, *kernel, "--write-trace", f"{result}/trace.csv"]) == 0
    return result


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_the_document_of_its_command(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call, words = CALLS[name]
    result = call(folder)
    capsys.readouterr()
    assert main([*(word.replace("FOLDER", str(folder)) for word in words), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    spec = json.loads(json.dumps(result.to_dict()))
    for document in (spec, printed):
        document.get("exact", {}).pop("seconds", None)
    assert spec["command"] == result.question == words[0]
    assert {k: v for k, v in spec.items() if k not in OF_THE_RUN} == {
        key: value for key, value in printed.items() if key not in OF_THE_RUN and key in spec
    }
    assert set(printed) - set(spec) <= {"out", "format", "characters"}  # what the command did besides


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_frozen_short_and_a_table(name: str, folder: Path) -> None:
    result = CALLS[name][0](folder)
    assert isinstance(result, Report)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(result, dataclasses.fields(result)[0].name, None)
    text = repr(result)
    assert text == f"<{type(result).__name__}: {result}>" and "\n" not in text and len(text) < 400
    rows = result.rows()
    assert rows and all(row.keys() == rows[0].keys() for row in rows[:1])
    html = result._repr_html_()
    assert html.startswith("<table>") and html.endswith("</table>")
    assert html.count("<tr>") == len(rows) + 1 and html.count("<th>") == len(result.short_rows()[0]) <= len(rows[0])


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_a_frame(name: str, folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    result = CALLS[name][0](folder)
    frame = result.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == len(result.rows()) and list(frame.columns)[: len(result.rows()[0])] == list(result.rows()[0])


def test_without_pandas_a_frame_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pandas is not installed"):
        pebble.bound(GEMM, cache="40KiB").to_frame()


@pytest.mark.parametrize("name", CALLS)
def test_a_figure_where_there_is_one(name: str, folder: Path) -> None:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    result = CALLS[name][0](folder)
    drawn = {"bound", "certify", "compare", "curve", "decode", "simulate", "solve", "replay"}
    if name.split(",")[0] in drawn and name not in (WRITTEN, "solve, several SMs, unit weights"):
        assert isinstance(result.plot(), Axes)
        ax = Figure().subplots()
        assert result.plot(ax=ax) is ax
        assert ax.has_data()
    else:
        with pytest.raises(InputError, match=r"there is no figure of \w+|expected one of one memory"):
            result.plot()


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
    spec = played.to_dict()
    assert (spec["buffers"], spec["sms"], spec["omega"], spec["topology"]) == ("connected", 2, 0.25, "all-to-all")
    assert "buffers" not in pebble.replay(DAG, MOVES, 3).to_dict()


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


def test_a_bound_by_name() -> None:
    assert (
        pebble.bound("gemm", m=4, n=5, k=6, cache="40el").lower
        == pebble.bound(pebble.Gemm(4, 5, 6), cache="40el").lower
    )
    bound = pebble.bound("gemm", m=2, n=2, k=2, capacity=5)
    assert bound.best.value == 13


def test_old_names_of_attributes_warn_and_work() -> None:
    compared = pebble.compare(pebble.Gemm(256, 256, 64), gpu="a40", schedules="row")
    with pytest.warns(DeprecationWarning, match="Comparison.beside is called alternatives"):
        assert compared.beside is compared.alternatives
    patterns = pebble.coalesce(64)
    with pytest.warns(DeprecationWarning, match="is called counted"):
        assert patterns.found is patterns.counted
    with pytest.raises(AttributeError, match="no attribute 'kept'"):
        _ = compared.kept
