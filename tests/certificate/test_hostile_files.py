"""Files that are no certificates end in one sentence, and each byte is looked at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pebble.certificate.reading import MAX_FILE_BYTES, without_texts
from pebble.cli import main

GOOD = {"format": "pebble-certificate", "version": 1, "statement": {"workload": {}}, "claims": []}
HUGE = "9" * 5000
FILES: dict[str, bytes] = {
    "empty": b"",
    "not JSON": b"hello",
    "binary": bytes(range(256)),
    "a number": b"5",
    "null": b"null",
    "a list": b"[]",
    "deep lists": b"[" * 200_000 + b"]" * 200_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "deep in a text": b'{"format": "' + b"[" * 50_000 + b'"}',
    "closing only": b"]" * 1000,
    "float": b'{"format": 1.5}',
    "infinity": b'{"format": Infinity}',
    "nan": b'{"format": NaN}',
    "exponent": b'{"format": 1e999999999}',
    "huge number": f'{{"format": {HUGE}}}'.encode(),
    "twice the same key": b'{"format": 1, "format": 2}',
    "other format": json.dumps({**GOOD, "format": "other"}).encode(),
    "other version": json.dumps({**GOOD, "version": 2}).encode(),
    "version true": json.dumps({**GOOD, "version": True}).encode(),
    "no claims": json.dumps(GOOD).encode(),
    "too many claims": json.dumps({**GOOD, "claims": [{}] * 1000}).encode(),
    "claims an object": json.dumps({**GOOD, "claims": {}}).encode(),
    "unknown family": json.dumps({**GOOD, "statement": {"workload": {"family": "x"}}, "claims": [{}]}).encode(),
    "family a list": json.dumps({**GOOD, "statement": {"workload": {"family": []}}, "claims": [{}]}).encode(),
    "surrogate": b'{"format": "\\ud800"}',
    "unclosed text": b'{"format": "',
    "backslashes": b'"' + b"\\" * 100_001,
    "unclosed text of quotes": b'"' + b'\\"' * 1_000_000,
    "unclosed text of quotes that ends in a backslash": b'"' + b'\\"' * 1_000_000 + b"\\",
    "brackets in an unclosed text": b'{"' + b"[" * 1_000_000,
}


NO_DOCUMENTS = {"empty", "not JSON", "binary", "closing only", *(name for name in FILES if "unclosed" in name)}
NO_DOCUMENTS |= {"backslashes"}


@pytest.mark.parametrize("name", FILES)
def test_one_sentence(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(FILES[name])
    assert b'"' not in without_texts(FILES[name])  # from a quote that is left, the rest was searched in vain
    assert main(["verify", str(path)]) == (2 if name in NO_DOCUMENTS else 5)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("pebble: ") and said.err.count("\n") == 1 and len(said.err) < 600


def test_too_large(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES * 8)  # a sparse file
    assert main(["verify", str(path)]) == 5
    assert "larger than" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_no_file(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path / name)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        "bound gemm -m 64 -n 64 -k 64 --cache 4KiB --buffers pooled --sms 2",
        "bound {folder}/d.json --capacity 3",
        "solve diamond --size 2 --capacity 3 --buffers pooled --sms 2",
        "bound gemm -m 4 -n 4 -k 4 --cache 8el --certificate {folder}/none/c.json",
        "solve diamond --size 2 --capacity 3 --certificate {folder}/none/c.json",
    ],
)
def test_what_has_no_certificate(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dag", "diamond", "--size", "2", "--out", str(tmp_path / "d.json")]) == 0
    capsys.readouterr()
    words = words.format(folder=tmp_path)
    extra = [] if "--certificate" in words else ["--certificate", str(tmp_path / "c.json")]
    assert main([*words.split(), *extra]) == 2
    said = capsys.readouterr().err
    assert said.startswith("pebble: --certificate") and said.count("\n") == 1
    assert not (tmp_path / "c.json").exists()


def test_round_trip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    assert (
        main(["bound", "gemm", "-m", "400", "-n", "400", "-k", "10", "--cache", "400el", "--certificate", str(path)])
        == 0
    )
    capsys.readouterr()
    assert main(["verify", str(path)]) == 0
    assert "200,529" in capsys.readouterr().out
    assert main(["verify", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verified"] is True
    path.write_text(path.read_text().replace("200529", "200530"))
    assert main(["verify", str(path), "--json"]) == 5
    said = json.loads(capsys.readouterr().out)
    assert (said["verified"], said["step"]) == (False, "claims[0].elements")
