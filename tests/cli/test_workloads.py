"""``pebble workloads``."""

import json

import pytest

from pebble.cli import main


def test_list(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["workloads"]) == 0
    out = capsys.readouterr().out
    assert "gate_up:28672x4096" in out
    assert "kv_b:32768x512" in out
    assert "fp8 (1 B)" in out
    assert max(map(len, out.splitlines())) <= 60


def test_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workloads", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["dtypes"] == {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1}
    assert "gemm" in data["families"]
    assert len(data["models"]) == 15
    assert data["models"]["gpt2"][2] == {
        "name": "up",
        "n": 3072,
        "k": 768,
        "aliases": ["gate_up"],
        "note": "",
    }


def test_explain(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["workloads", "llama-3-8b"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert ["gate_up", "8192", "28672", "4096", "1.92"] in rows
    assert ["gate_up", "67.1", "MB", "234.9", "MB", "469.8", "MB", "771.8", "MB"] in rows
    assert max(map(len, out.splitlines())) <= 60


def test_explain_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workloads", "llama-3-8b", "--tokens", "16", "--dtype", "fp8", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["tokens"] == 16
    down = next(layer for layer in data["layers"] if layer["name"] == "llama-3-8b:down")
    assert (down["m"], down["n"], down["k"], down["flops"]) == (16, 4096, 14336, 1_879_048_192)
    assert down["operands"]["B"] == {"rows": 14336, "cols": 4096, "bytes": 58_720_256}
    assert down["compulsory_bytes"] == 16 * 14336 + 58_720_256 + 2 * 16 * 4096


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["lama-3-8b"], "did you mean llama-3-8b"),
        (["llama-3-8b", "--tokens", "0"], "tokens: got 0"),
        (["llama-3-8b", "--tokens", "2.5"], "--tokens"),
        (["llama-3-8b", "--dtype", "bf61"], "did you mean bf16"),
        (["--tokens", "8"], "need a MODEL"),
    ],
)
def test_mistakes(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workloads", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert says in captured.err
    assert captured.err.count("\n") == 1


def test_thousands_and_a_convolution_of_one_image(capsys: pytest.CaptureFixture[str]) -> None:
    conv = ["conv2d", "--in-channels", "8", "--out-channels", "8", "--height", "16", "--width", "16", "--kernel", "3"]
    assert main(["bound", *conv, "--cache", "1KiB"]) == 0
    assert capsys.readouterr().out.startswith("conv2d batch=1 ")
    assert main(["bound", "grouped", "--rows", "1k,3", "-n", "64", "-k", "2K", "--cache", "1MiB"]) == 0
    assert capsys.readouterr().out.startswith("grouped rows=1024,3 n=64 k=2048 ")
    assert main(["bound", "gemm", "-m", "4kk", "-n", "1", "-k", "1", "--cache", "1MiB"]) == 2
    assert "-m: got '4kk', expected a whole number" in capsys.readouterr().err
