"""Every bound says which theorem it rests on and what has checked the proof, and that is so."""

import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest

from pebble import bounds
from pebble.bounds import Theorem
from pebble.cli import main

FORMAL = Path(__file__).parents[2] / "docs/formal"
MODULES = [importlib.import_module(result.name) for result in pkgutil.walk_packages(bounds.__path__, "pebble.bounds.")]
STATED = sorted(
    {theorem for module in MODULES for theorem in vars(module).values() if isinstance(theorem, Theorem)}, key=str
)
FORMAL_ONES = sorted((theorem for theorem in STATED if theorem.coq), key=lambda theorem: theorem.coq)
COQ = {
    "gemm -m 8192 -n 8192 -k 8192 --cache 40MiB": "Theorem 7",
    "gemm -m 400 -n 400 -k 10 --cache 400el": "Theorem 1",
    "ffn --tokens 1 --d-model 2 --hidden 8 --cache 3el": "Theorem 2",
    "attention --queries 1 --keys 8 --head-dim 2 --cache 3el": "Theorem 2",
}
ON_PAPER = {
    "gemm -m 8192 -n 8192 -k 8192 --accumulate-into --cache 40MiB": "Theorem 7",
    "gemm -m 40 -n 40 -k 40 --accumulate-into --cache 20el": "Theorem 1",
    "gemm -m 40 -n 40 -k 40 --batch 3 --cache 20el": "Theorem 6",
    "gemm -m 40 -n 40 -k 40 --cache 8KiB": "compulsory traffic",
    "gemm -m 512 -n 512 -k 512 --gpu a40 --out-dtype fp32": "compulsory traffic",
    "ffn --tokens 8 --d-model 8 --hidden 8 --gated --cache 16el": "Theorem 2",
    "ffn --tokens 64 --d-model 64 --hidden 64 --cache 40el": "Theorem 8",
    "ffn --tokens 8 --d-model 8 --hidden 8 --cache 16el --recompute allowed": "Theorem 3",
    "attention --queries 40 --keys 40 --head-dim 8 --causal --cache 20el": "Theorem 2",
    "attention --queries 32768 --keys 32768 --head-dim 128 --cache 228KiB": "Theorem 9",
    "attention --queries 1 --keys 8 --head-dim 2 --heads 2 --cache 3el": "Theorem 2",
    "conv2d --batch 1 --height 9 --width 9 --in-channels 8 --out-channels 8 --kernel 3 --cache 20el": "Theorem 7",
    "llama-3-8b:layer --tokens 64 --cache 40KiB": "Theorem 6",
    "llama-2-7b:mlp --tokens 8192 --gpu a40": "Theorem 10",
    "gemm -m 4096 -n 4096 -k 4096 --cache 256KiB --accumulate fp32": "Theorem B3",
}


@pytest.mark.parametrize("line", [*COQ, *ON_PAPER])
def test_a_bound_names_its_theorem(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bound", *line.split(), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["lower_bound"]["theorem"]
    assert result["name"] == (COQ | ON_PAPER)[line]
    assert result["checked_by"] == ("Coq" if line in COQ else "paper")
    assert (result["formal_proof"] is not None) == (line in COQ)


@pytest.mark.parametrize("theorem", STATED, ids=lambda theorem: theorem.name)
def test_a_theorem_stands_where_it_says(theorem: Theorem) -> None:
    said = importlib.import_module(theorem.stated_in).__doc__ or ""
    name = re.match(r"Theorem \w+|compulsory traffic", theorem.name)
    assert name is not None
    assert name[0] in said


def test_every_theorem_that_is_stated_is_named() -> None:
    stated = {name for module in MODULES for name in re.findall(r"\*\*(Theorem \w+)\.\*\*", module.__doc__ or "")}
    named = {match[0] for theorem in STATED if (match := re.match(r"Theorem \w+", theorem.name))}
    assert stated - named == set()


def test_every_kind_of_proof_names_a_theorem() -> None:
    kinds = {kind for module in MODULES for kind in vars(module).values() if isinstance(kind, type)}
    for kind in kinds:
        if {"elements", "bytes"} & set(dir(kind)) and "to_json" in dir(kind):
            assert "theorem" in dir(kind), kind


@pytest.mark.parametrize("theorem", FORMAL_ONES, ids=lambda theorem: theorem.name)
def test_what_coq_is_said_to_check_is_there(theorem: Theorem) -> None:
    file, name = theorem.coq.split(".")
    assert re.search(rf"^(Theorem|Corollary) {name}\b", (FORMAL / f"{file}.v").read_text(), re.MULTILINE)
    assert f"Print Assumptions {name}." in (FORMAL / "Assumptions.v").read_text()
    page = (FORMAL.parent / "machine_checked.rst").read_text()
    assert {f"*{theorem.name}*", f"``{theorem.coq}``"} <= set(re.findall(r"\*[\w ]+\*|``[\w.]+``", page))


def test_a_reader_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    for line, said in ((next(iter(COQ)), "Coq accepts the proof"), (next(iter(ON_PAPER)), "on paper")):
        assert main(["prove", *line.split()]) == 0
        assert said in capsys.readouterr().out
        assert main(["bound", *line.split()]) == 0
        assert re.search(r"^proof        Theorem \d", capsys.readouterr().out, re.MULTILINE)


def test_a_dag_names_its_theorem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dag = tmp_path / "dag.json"
    assert main(["dag", "tree", "--leaves", "4", "--out", str(dag)]) == 0
    capsys.readouterr()
    for capacity, checked in (("3", "search"), ("4", "paper")):  # three pebbles need what no theorem proves
        assert main(["bound", str(dag), "--capacity", capacity, "--json"]) == 0
        lower = json.loads(capsys.readouterr().out)["lower_bound"]
        assert lower["theorem"]["name"] == lower["method"]
        assert lower["theorem"]["checked_by"] == checked and checked in lower["theorem"]["text"]


def test_a_bound_for_several_memories_names_its_theorem(capsys: pytest.CaptureFixture[str]) -> None:
    line = "gemm -m 512 -n 512 -k 512 --cache 4KiB --sms 4 --buffers sm-local"
    assert main(["bound", *line.split()]) == 0
    assert "proof        Theorem 5" in capsys.readouterr().out
