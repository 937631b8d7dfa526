"""Every mistake ends in one sentence that says what, got, expected; exit 2, or 4 where no schedule can exist."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pebble.cli import main

GEMM = ["gemm", "-m", "64", "-n", "64", "-k", "64"]
CASES = [
    (["bound", *GEMM, "--cache", "40"], 2, ["without a unit", "40MiB"]),
    (["bound", *GEMM, "--cache", "40XiB"], 2, ["unknown unit 'XiB'", "MiB"]),
    (["bound", *GEMM, "--cache", "-3MiB"], 2, ["-3MiB"]),
    (["bound", *GEMM, "--cache", "0MiB"], 2, ["more than zero"]),
    (["bound", *GEMM, "--cache", "many"], 2, ["many"]),
    (["bound", *GEMM, "--cache", "2el"], 4, ["at least 3"]),
    (["bound", *GEMM, "--cache", "4B"], 4, ["at least 6 bytes"]),
    (["bound", *GEMM], 2, ["--gpu", "--machine", "--cache"]),
    (["bound", *GEMM, "--cache", "1MiB", "--gpu", "a40"], 2, ["exactly one"]),
    (["bound", *GEMM, "--gpu", "a100-"], 2, ["unknown", "a100-sxm4-40gb"]),
    (["bound", *GEMM, "--gpu", "h100-sxm"], 2, ["h100-sxm5-80gb"]),
    (["bound", *GEMM, "--machine", "/nowhere.toml"], 2, ["/nowhere.toml"]),
    (["bound", *GEMM, "--cache", "1MiB", "--accumulator", "fp16"], 2, ["--accumulator", "--gpu"]),
    (["bound", *GEMM, "--cache", "1MiB", "--energy", "7nm"], 2, ["--energy", "--gpu"]),
    (["bound", *GEMM, "--gpu", "a40", "--accumulator", "fp64"], 2, ["fp64", "fp16 or fp32"]),
    (["bound", *GEMM, "--gpu", "a40", "--energy", "5nm"], 2, ["5nm", "7nm"]),
    (["bound", *GEMM, "--gpu", "a40", "--buffers", "pooled", "--energy", "7nm"], 2, ["--energy", "boundary to DRAM"]),
    (["compare", *GEMM, "--gpu", "a40", "--level", "l2", "--accumulator", "fp16"], 2, ["--accumulator", "to DRAM"]),
    (["decode", "llama-3-8b", "--cache", "1MiB", "--accumulator", "fp16"], 2, ["--accumulator", "--gpu"]),
    (["bound", *GEMM, "--cahce", "40MiB"], 2, ["--cahce", "did you mean --cache?"]),
    (["bound", *GEMM, "--xyzzy=1"], 2, ["--xyzzy=1; see `pebble bound --help`"]),
    (["figure", "ski-slope", "--out", "x.jpg"], 2, ["pebble: --out: got 'x.jpg'"]),
    (["export", "/nowhere.json"], 2, ["pebble: schedule /nowhere.json: cannot be read"]),
    (["compare", *GEMM, "--gpu", "a40", "--buffers", "pooled"], 2, ["pebble: compare: got --buffers pooled"]),
    (["time", *GEMM, "--cache", "3MiB"], 2, ["got --cache", "expected --gpu or --machine"]),
    (["solve", "/nowhere.json", "--capacity", "5"], 2, ["No such file or directory; expected the file"]),
    (["bound", "gemm", "-m", "0", "-n", "1", "-k", "1", "--cache", "1MiB"], 2, ["-m", "0"]),
    (["bound", "gemm", "-m", "-4", "-n", "1", "-k", "1", "--cache", "1MiB"], 2, ["-m", "-4"]),
    (["bound", "gemm", "-m", "2.5", "-n", "1", "-k", "1", "--cache", "1MiB"], 2, ["-m", "2.5", "whole number"]),
    (["bound", "gemm", "-m", "1", "-n", "1e3", "-k", "1", "--cache", "1MiB"], 2, ["-n", "1e3"]),
    (["bound", "gemm", "-m", "1", "-n", str(10**30), "-k", "1", "--cache", "1MiB"], 2, [str(2**32)]),
    (["bound", "gemm", "-m", "1", "-n", "1", "--cache", "1MiB"], 2, ["-k missing"]),
    (["bound", "gemm", "-m", "1", "-n", "1", "-k", "1", "--tokens", "4", "--cache", "1MiB"], 2, ["--tokens"]),
    (["bound", *GEMM, "--dtype", "bf15", "--cache", "1MiB"], 2, ["bf15", "did you mean"]),
    (["bound", "gem", "-m", "1", "--cache", "1MiB"], 2, ["did you mean gemm"]),
    (["bound", "llama-3-9b:qkv", "--tokens", "1", "--cache", "1MiB"], 2, ["llama-3-8b"]),
    (["bound", "llama-3-8b:qvk", "--tokens", "1", "--cache", "1MiB"], 2, ["qkv"]),
    (["bound", "llama-3-8b", "--tokens", "1", "--cache", "1MiB"], 2, ["llama-3-8b:qkv", "pebble audit llama-3-8b"]),
    (["audit", "llama-3-8b", "--gpu", "a40"], 2, ["without tokens", "--tokens T", "--context N"]),
    (["audit", "llama-3-8", "--tokens", "8", "--gpu", "a40"], 2, ["unknown model", "llama-3-8b"]),
    (["audit", "llama-3-8b", "--tokens", "0", "--gpu", "a40"], 2, ["--tokens: got 0"]),
    (["audit", "llama-3-8b", "--tokens", "9", "--context", "8", "--gpu", "a40"], 2, ["context: got 8", "9 tokens"]),
    (["audit", "mixtral", "--tokens", "8", "--gpu", "a40"], 2, ["mixtral", "did you mean mixtral-8x7b"]),
    (["audit", "mixtral-8x7b", "--tokens", "8", "--routing", "odd", "--gpu", "a40"], 2, ["odd", "any or even"]),
    (["audit", "gpt2", "--tokens", "8", "--dtype", "bf15", "--gpu", "a40"], 2, ["bf15", "did you mean"]),
    (["audit", "m.onnx", "--tokens", "8", "--gpu", "a40"], 2, ["m.onnx", "a model's name"]),
    (["bound", "llama-3-8b:qkv", "--cache", "1MiB"], 2, ["--tokens missing"]),
    (["bound", *GEMM, "--cache", "1MiB", "--cach", "2"], 2, ["--cach"]),
    (["boundd"], 2, ["did you mean bound"]),
    (["bound", *GEMM, "--cache"], 2, ["--cache: got nothing, expected SIZE: one memory of this size: 40MiB"]),
    (["bound", *GEMM, "--cache", "--json"], 2, ["--cache: got nothing, expected SIZE"]),
    (["bound", *GEMM, "--gpu", ""], 2, ["--gpu: got nothing, expected SKU: a GPU of `pebble machines`"]),
    (["bound", "gemm", "-m", "", "-n", "1", "-k", "1", "--cache", "1MiB"], 2, ["-m: got nothing, expected N"]),
    (["figure", "ski-slope", "-m", "512", "-n", "512", "-k", "512"], 2, ["-m: got it without WORKLOAD", "gemm"]),
    (["figure", "walk", "--tokens", "512"], 2, ["walk: got the shape of a workload", "leave it out"]),
    (["figure", "walk", "--out", ""], 2, ["--out: got nothing"]),
    (["simulate", "--trace", "t.npz", "--cache", "1MiB", "--head-dim", "3"], 2, ["--head-dim: got it without"]),
    (["export", "t.json", "--gated"], 2, ["--gated: got it without WORKLOAD"]),
    (["time", *GEMM, "--gpu", "a40", "--beside", " "], 2, ["unknown workload ''"]),
    (["bound", "batched", "-m", "8"], 2, ["unknown workload 'batched': here it is gemm with --batch."]),
    (["advise", "mlp", "--gpu", "a40"], 2, ["unknown workload 'mlp': here it is ffn", "llama-3-8b:mlp"]),
    (["advise", *GEMM, "--cache", "1MiB"], 2, ["got --cache 1MiB, expected --gpu or --machine", "`pebble compare`"]),
    (["bound", *GEMM, "--recompute"], 2, ["--recompute: got nothing, expected forbidden, allowed: whether"]),
    (["bound", *GEMM, "--recompute", "maybe"], 2, ["--recompute: got 'maybe', expected one of forbidden, allowed;"]),
    (["bound", *GEMM, "--json=3"], 2, ["--json: got '3', expected it alone"]),
    (["compare", *GEMM, "--policy"], 2, ["--policy: got nothing, expected POLICY: cache model", " ...; see "]),
    (["export", "row", *GEMM, "-o"], 2, ["-o/--out: got nothing, expected FILE: where to write it"]),
    (["replay", "a"], 2, ["MOVES, --capacity missing, expected `pebble replay DAG MOVES --capacity S`; see"]),
    (["report"], 2, ["FILE missing, expected `pebble report FILE ...`; see `pebble report --help`"]),
    (["ncu", "foo"], 2, ["ACTION: got 'foo', expected one of report, which"]),
    (["ncu", "which", "x.csv", "--rows"], 2, ["--rows: got nothing, expected N: rows", "`pebble ncu which --help`"]),
    (["schedules", "row", "--chunk", "x"], 2, ["--chunk: got 'x', expected a whole number;"]),
    (["compare", *GEMM, "--cache", "1MiB"], 2, ["--sms missing"]),
    (["compare", *GEMM, "--cache", "1MiB", "--sms", "0"], 2, ["--sms", "from 1"]),
    (["compare", *GEMM, "--cache", "1MiB", "--sms", "x"], 2, ["--sms", "'x'"]),
    (["compare", *GEMM, "--cache", "1MiB", "--sms", "4", "--schedules", "hilbrt"], 2, ["hilbert"]),
    (["compare", *GEMM, "--cache", "1MiB", "--sms", "4", "--schedules", ","], 2, ["--schedules"]),
    (["compare", *GEMM, "--cache", "1MiB", "--sms", "4", "--schedules", "grouped-0"], 2, ["grouped"]),
    (["compare", *GEMM, "--cache", "1MiB", "--sms", "4", "--tile", "128"], 2, ["128x128x64"]),
    (["compare", *GEMM, "--cache", "1MiB", "--sms", "4", "--policy", "lruu"], 2, ["lru"]),
    (["compare", *GEMM, "--cache", "1KiB", "--sms", "4"], 2, ["largest tile", "8192 bytes"]),
    (["compare", *GEMM, "--cache", "1MiB", "--sms", "4", "--figure", "out.jpg"], 2, [".pdf, .svg or .png"]),
    (["compare", *GEMM, "--cache", "1MiB", "--sms", "4", "--figure", "/no/where/out.pdf"], 2, ["folder"]),
    (["compare", *GEMM, "--cache", "1MiB", "--sms", "4", "--figure", ""], 2, [".pdf, .svg or .png"]),
    (["compare", *GEMM, "--cache", "1MiB", "--sms", "4", "--figure", "a" * 300 + ".pdf"], 2, ["too long"]),
    (["simulate", *GEMM, "--cache", "1MiB", "--sms", "4"], 2, ["--schedule"]),
    (["bound", "ffn", "--tokens", "4", "--hidden", "4", "--cache", "1MiB"], 2, ["--d-model missing"]),
    (["bound", "ffn", "--tokens", "4", "--d-model", "4", "--hidden", "4", "--causal", "--cache", "1MiB"], 2,
     ["--causal"]),
    (["bound", "attention", "--queries", "8", "--keys", "4", "--head-dim", "4", "--causal", "--cache", "1MiB"], 2,
     ["at least as many keys"]),
    (["bound", "attention", "--queries", "8", "--keys", "8", "--head-dim", "4", "--heads", "3", "--kv-heads", "2",
      "--cache", "1MiB"], 2, ["divisor"]),
    (["compare", "conv2d", "--batch", "1", "--in-channels", "1", "--out-channels", "1", "--height", "4", "--width", "4",
      "--kernel", "3", "--cache", "1MiB", "--sms", "4"], 2, ["pebble bound"]),
    (["compare", "llama-2-7b:mlp", "--tokens", "64", "--gpu", "a40", "--schedules", "row-fused"], 2, ["row-fused-8"]),
    (["compare", "llama-2-7b:attention", "--tokens", "64", "--gpu", "a40", "--schedules", "fa4"], 2, ["fa"]),
    (["compare", *GEMM, "--gpu", "a40", "--exact"], 2, ["--cache"]),
    (["compare", *GEMM, "--cache", "1MiB", "--exact", "--time-limit", "soon"], 2, ["--time-limit", "soon"]),
    (["simulate", "gemm", "-m", "1048576", "-n", "1048576", "-k", "1048576", "--schedule", "row", "--gpu", "a40"], 2,
     ["larger tiles"]),
    (["simulate", *GEMM, "--schedule", "row", "--cache", "1MiB", "--sms", "4", "--blocks-per-sm", "99"], 2, ["64"]),
    (["simulate", *GEMM, "--schedule", "row", "--cache", "64B", "--sms", "4"], 2, ["64B", "a line, 128 bytes"]),
    (["bound", *GEMM, "--cache", "40Mb"], 2, ["may mean bits", "40MB"]),
    # names that no file can have
    (["verify", "a" * 300], 2, ["cannot be read: File name too long"]),
    (["verify", "a\0b"], 2, ["null character"]),
    (["solve", "a" * 300, "--capacity", "3"], 2, ["unknown family of DAGs or file"]),
    (["solve", "a" * 300 + ".json", "--capacity", "3"], 2, ["cannot be read: File name too long"]),
    (["bound", "a" * 300 + ".json", "--capacity", "3"], 2, ["cannot be read: File name too long"]),
    (["simulate", "--trace", "a\0b.csv", "--cache", "1MiB"], 2, ["null character"]),
    (["bound", *GEMM, "--machine", "a\0b"], 2, ["null character"]),
    (["bound", *GEMM, "--cache", "1KiB", "--certificate", "."], 2, ["--certificate", "a file in a writable folder"]),
    (["solve", "tree", "--leaves", "4", "--capacity", "3", "--certificate", "."], 2, ["a file in a writable folder"]),
    (["solve", "tree", "--leaves", "4", "--capacity", "3", "--certificate", "a" * 300], 2, ["File name too long"]),
    (["dag", "tree", "--leaves", "4", "--out", "a\0b.json"], 2, ["null character"]),
    (["prove", *GEMM, "--cache", "1KiB", "--out", "a" * 300 + ".md"], 2, ["File name too long"]),
    (["figure", "pebbling", "--solution", "a\0b", "--out", "f.svg"], 2, ["null character"]),
    # traces and caches that no machine could hold
    (["compare", "gemm", "-m", "300", "-n", "500", "-k", "2147483648", "--policy", "fifo", "--gpu", "a40"], 2,
     ["100,663,296 tiles to keep, about 6 GB"]),
    (["compare", "gemm", "-m", "2147483648", "-n", "128", "-k", "128", "--policy", "hardware", "--gpu", "a40"], 2,
     ["16777216 tiles, expected at most 8388608"]),
    (["curve", "gemm", "-m", "128", "-n", "128", "-k", "4294967296", "--gpu", "a40"], 2, ["134,217,728 tiles"]),
    (["curve", "gemm", "-m", "128", "-n", "2147483648", "-k", "128", "--policy", "chiplets-8+llc-256MiB", "--cache",
      "40MiB", "--sms", "8"], 2, ["16777216 tiles"]),
    (["simulate", *GEMM, "--schedule", "row", "--cache", "1024TiB", "--sms", "4", "--policy", "set-16"], 2,
     ["8,796,093,022,208 lines of cache"]),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "parts"), CASES, ids=[" ".join(c[0])[:60] for c in CASES])
def test_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, parts: list[str]) -> None:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("pebble: ")
    assert line.endswith((".", "?"))
    for part in parts:
        assert part in line


def test_broken_machine_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "mine.toml"
    broken.write_text('name = "Mine"\nsms = { value = 4, unit = "SM"\n')
    assert main(["bound", *GEMM, "--machine", str(broken)]) == 2
    err = capsys.readouterr().err
    assert "mine.toml" in err
    assert "line" in err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "compare" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert main([]) == 2
    assert main(["versions", "--json"]) == 0
    with pytest.raises(SystemExit) as stop:
        main(["compare", "--help"])
    assert stop.value.code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pebble", "machines", "--json"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("pebble: cannot write the output")
    assert "Traceback" not in done.stderr


@pytest.mark.posix
def test_closed_standard_output() -> None:
    environ = dict(os.environ)  # without COLUMNS, which readline puts into that of the process behind Python's back
    done = subprocess.run(
        f"{sys.executable} -m pebble schedules >&-", shell=True, stderr=subprocess.PIPE, text=True, check=False,
        env=environ,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "pebble: cannot write the output: standard output is closed; write it to a file or to /dev/null."
    ]


@pytest.mark.posix
def test_closed_standard_error() -> None:
    run = f"{sys.executable} -m pebble {{}} 2>&-"
    compared = "compare gemm -m 512 -n 512 -k 512 --gpu a40 --schedules row"
    for words, code in ((compared, 0), ("bound", 2)):
        done = subprocess.run(run.format(words), shell=True, stdout=subprocess.PIPE, text=True, check=False)
        assert done.returncode == code and bool(done.stdout) == (code == 0)  # no sentence among the answers


def test_heavy_packages_are_loaded_only_when_used() -> None:
    code = (
        "import sys, pebble.cli; pebble.cli.main(['--help']); import pebble; "
        "heavy = {'numpy', 'networkx', 'ortools', 'numba', 'matplotlib', 'rich', 'pulp'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
