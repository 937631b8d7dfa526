"""The proof as a text: the numbers of the bound are in it, and its formulas and braces are balanced."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pebble.cli import main

CASES = {
    "gemm -m 8192 -n 8192 -k 8192 --cache 40MiB": 273262469,
    "gemm -m 400 -n 400 -k 10 --cache 400el --accumulate-into": 360529,
    "gemm -m 64 -n 64 -k 64 --cache 1MiB": 12288,
    "gemm -m 3 -n 3 -k 3 --cache 4el": None,
    "ffn --tokens 8192 --d-model 4096 --hidden 11008 --cache 40MiB": None,
    "ffn --tokens 400 --d-model 1 --hidden 400 --d-out 9 --cache 400el --recompute allowed": None,
    "ffn --tokens 300 --d-model 60 --hidden 200 --d-out 40 --gated --cache 500el --recompute allowed": None,
    "ffn --tokens 300 --d-model 20 --hidden 900 --d-out 90 --gated --cache 3000el": None,
    "ffn --tokens 4096 --d-model 64 --hidden 1500 --gated --cache 32KiB --accumulate fp32": None,
    "ffn --tokens 32768 --d-model 4096 --hidden 14336 --gated --gpu h100": 1_731_352_608,  # Theorem B10
    "attention --queries 32768 --keys 32768 --head-dim 128 --cache 228KiB": 604633088,
    "attention --queries 30 --keys 200 --head-dim 4 --softmax strict --heads 4 --kv-heads 2 --cache 90el": None,
    "conv2d --batch 4 --in-channels 16 --out-channels 32 --height 20 --width 20 --kernel 3 --cache 400el": None,
    "latent-attention --queries 64 --keys 1024 --heads 16 --cache 64KiB": None,
    "latent-attention --queries 30 --keys 90 --heads 3 --latent 12 --rope 5 --cache 300el --causal": None,
    "latent-attention --queries 4 --keys 9 --heads 3 --cache 9KiB --recompute allowed": None,
    "llama-3-8b:gate_up --tokens 512 --gpu a40": None,
    "ffn-backward --tokens 300 --d-model 200 --hidden 400 --cache 8KiB": None,
    "ffn-backward --tokens 434 --d-model 40 --hidden 90 --d-out 60 --gated --cache 8KiB --accumulate fp32": None,
    "ffn-backward --tokens 300 --d-model 200 --hidden 400 --recomputed --cache 8KiB --accumulate fp32": None,
    "attention-backward --queries 4096 --keys 4096 --head-dim 64 --cache 64KiB": None,
    "attention-backward --queries 60 --keys 90 --head-dim 30 --cache 2KiB --accumulate fp32": None,
    "scaled-gemm -m 640 -n 640 -k 640 --dtype-a mxfp8 --dtype-b nvfp4 --cache 8KiB": None,
    "scaled-ffn --tokens 640 --d-model 320 --hidden 640 --dtype-x mxfp8 --dtype-w nvfp4 --gated --cache 8KiB": None,
}


@pytest.mark.parametrize("case", CASES)
def test_proofs_are_well_formed(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for suffix in ("md", "tex"):
        path = tmp_path / f"proof.{suffix}"
        assert main(["prove", *case.split(), "--out", str(path)]) == 0
        said = re.search(r"at least ([\d,]+)", capsys.readouterr().out.replace("\n", " "))
        assert said is not None
        elements = int(said[1].replace(",", ""))
        assert CASES[case] in (None, elements)
        text = path.read_text()
        assert not set(text) & set(map(chr, range(32))) - {"\n"}  # as of a \\tau that was no raw string
        total = re.escape(said[1].replace(",", chr(92) + ","))
        assert re.search(rf"(Q \\ge|=) {total}\b", text)
        assert text.replace("\\_", "").replace("$$", "").count("$") % 2 == 0
        for formula in re.findall(r"\$\$?([^$]+)\$", text):
            plain = formula.replace("\\{", "").replace("\\}", "")
            assert plain.count("{") == plain.count("}"), formula
        if suffix == "tex":
            initialised, ended = re.findall(r"\\begin\{(\w+)\}", text), re.findall(r"\\end\{(\w+)\}", text)
            assert initialised[0] == ended[-1] == "document" and {"theorem", "proof", "thebibliography"} < set(
                initialised
            )
            assert sorted(initialised) == sorted(ended)
            body = text.partition("\\begin{document}")[2]  # macros may end a line with %
            outside = re.sub(r"\$[^$]*\$|^\\fitted\{.*?\}$", "", body, flags=re.DOTALL | re.MULTILINE)
            assert not re.search(r"(?<!\\)[_&#%^]", outside), re.search(r".{20}(?<!\\)[_&#%^]", outside)


def test_wrong_suffix(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "gemm", "-m", "4", "-n", "4", "-k", "4", "--cache", "8el", "--out", "proof.doc"]) == 2
    assert "expected a name that ends in .md or .tex" in capsys.readouterr().err


def test_the_command_it_names_writes_the_certificate(capsys: pytest.CaptureFixture[str]) -> None:
    words = "gemm -m 40 -n 40 -k 10 --cache 40el --dtype fp8 --out-dtype fp32"
    assert main(["prove", *words.split()]) == 0
    text = capsys.readouterr().out
    result = re.search(r"`pebble (bound [^`]+) --certificate c.json`", text)
    assert result is not None
    assert main([*result[1].split(), "--json"]) == 0


def test_a_schedule_in_bytes_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Its room and traffic in bytes, as `bound` says."""
    words = "gemm -m 1024 -n 1024 -k 4096 --cache 4MiB --accumulate fp32"
    assert main(["bound", *words.split(), "--json"]) == 0
    traffic = json.loads(capsys.readouterr().out)["upper_bound"]["bytes"]
    assert main(["prove", *words.split()]) == 0
    text = capsys.readouterr().out
    assert "## A schedule" in text and "fits in $4\\,194\\,304$ bytes" in text
    assert f"moves ${traffic:,}$ bytes".replace(",", "\\,") in text
