"""``pebble dag`` as a user runs it."""

import json
from pathlib import Path

import pytest

from pebble.cli import main


def dag(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["dag", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_statistics(capsys: pytest.CaptureFixture[str]) -> None:
    result = dag(capsys, "gemm", "-m", "2", "-n", "2", "-k", "3")
    assert result["dag"] == "gemm -m 2 -n 2 -k 3"
    assert (result["nodes"], result["values"], result["compulsory_weight"]) == (28, 16, 16)
    assert result["minimum_capacity"] == {"in-place": 3}
    result = dag(capsys, "gemm", "-m", "2", "-n", "2", "-k", "3", "--form", "chain")
    assert result["minimum_capacity"]["one-shot-sliding"] == 3


@pytest.mark.parametrize("suffix", [".json", ".graphml", ".hdag"])
def test_a_written_dag_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path, suffix: str) -> None:
    path = str(tmp_path / f"dag{suffix}")
    words = ["attention", "--queries", "2", "--keys", "3", "--head-dim", "2", "--softmax", "online", "--dtype", "fp32"]
    written = dag(capsys, *words, "--out", path)
    assert written["out"] == path
    read = dag(capsys, path)
    assert read["dag"] == path
    for key in written.keys() - {"dag", "out", "command"}:
        assert read[key] == written[key], key
    assert dag(capsys, path, "--unit-weights")["input_weight"] * 4 == written["input_weight"]


def test_tiles(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("gemm", "-m", "256", "-n", "256", "-k", "100", "--tile", "128x128x64", "--dtype", "bf16")
    result = dag(capsys, *words)
    assert result["values"] == 4 + 4 + 4
    assert result["compulsory_weight"] == 2 * (2 * 256 * 100 + 256 * 256)
    assert dag(capsys, *words, "--unit-weights")["compulsory_weight"] == 12


def test_table_and_figure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    figure = tmp_path / "fft.svg"
    assert main(["dag", "fft", "--size", "8", "--figure", str(figure)]) == 0
    said = capsys.readouterr().out
    assert "least capacity, recompute-sliding" in said
    assert "depth" in said
    assert str(figure) in said.replace("\n  ", "")
    assert figure.read_text().startswith("<?xml")


def test_help_lists_the_families(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["dag", "--help"])
    said = capsys.readouterr().out
    assert "stencil1d --size 4 --steps 3" in " ".join(said.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "DAG missing, expected"),
        ("fff --size 4", "did you mean fft"),
        ("fft --size 6", "power of two"),
        ("fft --size 4.5", "--size: got '4.5', expected a whole number"),
        ("fft --size=-4", "size: got -4"),
        ("fft", "--size missing"),
        ("fft --size 4 --leaves 3", "fft: got --leaves, expected only --size"),
        ("gemm -m 2 -n 2 -k 2 --tile 2x2", "three extents"),
        ("gemm -m 2 -n 2 -k 2 --tile 2xx2", "--tile: got '2xx2'"),
        ("gemm -m 2 -n 2 -k 2 --form chains", "did you mean chain"),
        ("gemm -m 9999 -n 9999 -k 9999", "use larger tiles"),
        ("attention --queries 2 --keys 2 --head-dim 1 --softmax soft", "unknown --softmax 'soft'"),
        ("tree --leaves 4 --out tree.txt", "ends in .json"),
        ("tree --leaves 4 --figure tree.gif", "ends in .pdf, .svg or .png"),
        ("missing.json", "missing.json: cannot be read"),
        ("missing.json --size 3", "got --size with a file"),
        (".", "unknown|suffix"),
    ],
)
def test_mistakes_are_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["dag", *words.split()]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert any(part in said.err for part in message.split("|"))
    assert said.err.startswith("pebble: ")
    assert said.err.count("\n") == 1
    assert not list(tmp_path.iterdir())
