"""Every documented command still answers what it answered when its document was recorded.

A document may gain keys; what it had must be there, equal. ``python -m tests.golden.test_golden NAME ...`` records
anew (all commands without a name): only where an answer is meant to change, and then the change is in the diff.

The wording of notes stands once, in ``notes.json``: a document has their names. To reword a note, edit it there.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pebble.cli import main
from tests.counters.forward_passes import GPT2, report_of, rows_of

HERE = Path(__file__).parent
DOCUMENTS = HERE / "documents"
NOTES = HERE / "notes.json"
SAMPLES = HERE.parents[1] / "benchmarks" / "gpu" / "samples"
COUNTERS = """tokens,store_sectors,load_sectors,fma_instructions
256,225000,18000000,565000000
512,446000,35000000,1140000000
1024,880000,71800000,2240000000
2048,1790000,140200000,4560000000
"""  # of llama-2-13b's gate, with 2 % of noise
VOLATILE = {
    "seconds",
    "version",
    "versions",
    "python",
    "platform",
    "states_per_second",
    "tasks_per_second",
    "computed_by_version",
    "page_bytes",
    "numpy",
    "networkx",
    "ortools",
    "pulp",
    "highspy",
    "numba",
    "matplotlib",
    "rich",
    "llvmlite",
    "pandas",
    "duckdb",
    "dask",
    "distributed",
    "ncu-report",
    "playwright",
}  # of the run, not of the answer
LONG = 4000  # a list of more numbers is recorded by its ends

VERIFIED = {  # what the certificate is about
    "verify-gemm": "gemm -m 8192 -n 8192 -k 8192",
    "verify-grouped": "grouped --rows 512,384,1024,128 -n 4096 -k 7168",
    "verify-layer": "llama-3-8b:layer --tokens 8192",
}

SWEEP = """
workloads = [
  { family = "gemm", m = [512, 1024], n = 512, k = 256 },
  { family = "attention", queries = 512, keys = 512, head_dim = 64 },
]
machines = ["a40", "h100-sxm5-80gb"]
orders = ["row", "hilbert", "fa2"]
policies = ["lru", "opt"]

[games]
instances = [{ family = "gemm", m = 2, n = 2, k = [1, 2] }]
capacities = [4, 5]
solvers = ["cpsat"]
"""

NEED_DUCKDB = ("sweep", "results", "report")

EDGES = [("a", "c"), ("b", "c"), ("c", "d"), ("b", "d")]
LINE = {"nodes": [{"id": node} for node in "abcd"], "edges": [{"source": u, "target": v} for u, v in EDGES]}
DEAR = "load a, load b, compute c, delete a, delete b, load b, compute d, store d"  # b goes and comes back


class Command(NamedTuple):
    name: str
    arguments: list[str]
    slow: bool


def commands() -> Iterator[Command]:
    for line in (HERE / "commands.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            label, text = line.split(": ", 1)
            name, *marks = label.split()
            yield Command(name, text.split(), "slow" in marks)


def run(command: Command, folder: Path) -> Any:
    """The document of a command."""
    quiet(["dag", "gemm", "-m", "3", "-n", "3", "-k", "3", "--form", "chain", "--out", f"{folder}/dag.json"])
    if command.name in VERIFIED:
        quiet(["bound", *VERIFIED[command.name].split(), "--cache", "40MiB", "--certificate", f"{folder}/c.json"])
    if command.name.startswith(("replay", "report")):
        (folder / "line.json").write_text(json.dumps(LINE))
        (folder / "moves.json").write_text(json.dumps([move.split() for move in DEAR.split(", ")]))
        solve = ["solve", "gemm", "-m", "2", "-n", "2", "-k", "3", "--capacity", "5", "--json"]
        (folder / "solved.json").write_text(quiet(solve))
    if command.arguments[0] in NEED_DUCKDB:
        (folder / "sweep.toml").write_text(SWEEP)
        if command.arguments[0] != "sweep":
            quiet(["sweep", f"{folder}/sweep.toml", "--store", f"{folder}/swept.duckdb", "--jobs", "1"])
    if command.name.startswith("ncu"):
        shutil.copy(SAMPLES / "h200_gemm_orders_raw.csv", folder / "report.csv")
        (folder / "counters.csv").write_text(COUNTERS)
        (folder / "forward.csv").write_text(report_of(rows_of(GPT2)))
    text = quiet([*(word.replace("FOLDER", str(folder)) for word in command.arguments), "--json"])
    return shortened(json.loads(text.replace(str(folder), "FOLDER")))


def quiet(arguments: list[str]) -> str:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = main(arguments)
    assert code == 0, (arguments, code)
    return out.getvalue()


def shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shortened(inner) for key, inner in value.items() if key not in VOLATILE}
    if isinstance(value, list) and len(value) > LONG:
        return {"length": len(value), "first": shortened(value[:20]), "last": shortened(value[-20:])}
    return [shortened(inner) for inner in value] if isinstance(value, list) else value


def differences(old: Any, new: Any, at: str = "") -> Iterator[str]:
    """Where the new document does not say what the old one said."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key not in new:
                yield f"{at}.{key}: missing"
            else:
                yield from differences(value, new[key], f"{at}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (item, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(item, other, f"{at}[{number}]")
    elif isinstance(old, float) and isinstance(new, float):
        if abs(old - new) > 1e-9 * abs(old):
            yield f"{at}: {old!r} is now {new!r}"
    elif old != new:
        yield f"{at}: {str(old)[:200]!r} is now {str(new)[:200]!r}"


def with_notes(document: Any, change: Callable[[str], str]) -> Any:
    """The document, each of its notes changed: a name to its wording, or the other way."""
    if isinstance(document, dict):
        return {
            key: list(map(change, value)) if key == "notes" else with_notes(value, change)
            for key, value in document.items()
        }
    return [with_notes(inner, change) for inner in document] if isinstance(document, list) else document


def recorded(name: str) -> Any:
    """A document as it was, its notes in words."""
    return with_notes(json.loads((DOCUMENTS / f"{name}.json").read_text()), json.loads(NOTES.read_text()).__getitem__)


def named(document: Any) -> Any:
    """A document with the names of its notes; a note that is new gets one of its first words."""
    notes: dict[str, str] = json.loads(NOTES.read_text())

    def name_of(note: str) -> str:
        words = "-".join(re.findall(r"[a-z0-9]+", note.lower())[:5])
        free = (key for key in (words, *(f"{words}-{i}" for i in range(2, 99))) if notes.get(key, note) == note)
        name = next((key for key, known in notes.items() if known == note), None) or next(free)
        notes[name] = note
        return name

    result = with_notes(document, name_of)
    NOTES.write_text(json.dumps(dict(sorted(notes.items())), indent=1) + "\n")
    return result


@pytest.mark.parametrize(
    "command", [pytest.param(c, id=c.name, marks=[pytest.mark.slow] if c.slow else []) for c in commands()]
)
def test_a_documented_command_still_says_what_it_said(command: Command, tmp_path: Path) -> None:
    if command.arguments[0] in NEED_DUCKDB:
        pytest.importorskip("duckdb", reason="the extra `sweep` is not installed")
    assert not list(differences(recorded(command.name), run(command, tmp_path)))


def test_the_comparison_can_fail() -> None:
    assert list(differences({"a": [1, 2]}, {"a": [1, 3], "b": 0})) == [".a[1]: '2' is now '3'"]
    assert list(differences({"a": 1}, {})) == [".a: missing"]


def test_the_wording_of_every_note_stands_in_one_place() -> None:
    used: set[str] = set()

    def seen(name: str) -> str:
        used.add(name)
        return name

    for path in DOCUMENTS.glob("*.json"):
        with_notes(json.loads(path.read_text()), seen)
    notes = json.loads(NOTES.read_text())
    assert used == set(notes)
    assert len(set(notes.values())) == len(notes)


def test_every_document_has_a_command() -> None:
    assert {p.stem for p in DOCUMENTS.glob("*.json")} == {c.name for c in commands()}
    assert all(re.fullmatch(r"[a-z0-9-]+", c.name) for c in commands())


if __name__ == "__main__":
    import tempfile

    for each in commands():
        if not sys.argv[1:] or each.name in sys.argv[1:]:
            with tempfile.TemporaryDirectory() as temporary:
                document = named(run(each, Path(temporary)))
            (DOCUMENTS / f"{each.name}.json").write_text(json.dumps(document, indent=1) + "\n")
            print(each.name)
