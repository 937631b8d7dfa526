"""What is refused, in one sentence, and what each kind of document is known by."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pebble
from pebble.cli import main
from pebble.errors import InputError
from pebble.webpage import documents
from pebble.webpage.documents import Fields, read_document, read_documents

CASES = [
    ("{", "not JSON"),
    ("[1, 2]", "no document that a page shows"),
    ("{}", "no document that a page shows"),
    ("[" * 100_000, "not JSON"),
    ('{"workload": {}, "schedules": [], "x": NaN}', "not JSON"),
    ('{"workload": {}, "schedules": [], "x": 1e999}', "not finite"),
    ('{"workload": {}, "schedules": [], "x": ' + "9" * 31 + "}", "30 digits"),
    ('{"workload": {}, "schedules": [], "x": ' + "9" * 5000 + "}", "not JSON"),
    ('{"workload": 3, "schedules": []}', "expected an object"),
    ('{"workload": {"label": 3}, "schedules": []}', "label: got 3, expected a text"),
    ('{"workload": {"label": "w"}, "schedules": {}}', "schedules: got {}, expected a list"),
    ('{"workload": {"label": "w"}, "schedules": [1]}', "expected an object"),
    ('{"workload": {"label": "w"}, "schedules": [{"name": "a", "dram_bytes": -1}]}', "dram_bytes: got -1"),
    ('{"workload": {"label": "w"}, "schedules": [{"name": "a", "dram_bytes": 1e200}]}', "dram_bytes: got 1e+200"),
    ('{"workload": {"label": "w"}, "schedules": [{"name": "a"}]}', "dram_bytes: got None"),
    ('{"capacities_bytes": [2, 1], "lower_bound_bytes": [1, 1], "schedules": []}', "rising sizes"),
    ('{"capacities_bytes": [1, 2], "lower_bound_bytes": [1], "schedules": []}', "got 1 values, expected 2"),
    ('{"instance": "x", "capacity": 3, "variant": "one-shot", "moves": [["load"]]}', "move 1"),
    ('{"instance": "x", "capacity": 3, "variant": "one-shot", "moves": []}', "got 0 moves"),
    ('{"instance": "x", "capacity": -3, "variant": "one-shot", "moves": [["load", "a"]]}', "capacity: got -3"),
]


@pytest.mark.parametrize(("text", "told"), CASES)
def test_a_wrong_file_is_one_sentence(text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "d.json"
    path.write_text(text)
    assert main(["report", str(path), "--out", str(tmp_path / "r.html")]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1 and len(error) < 500
    assert not (tmp_path / "r.html").exists()


def test_limits(golden: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="got 0 files, expected 1 to 64"):
        read_documents([])
    with pytest.raises(InputError, match="got 65 files"):
        read_documents(list(golden("solve-gemm")) * 65)
    big = tmp_path / "big.json"
    with big.open("wb") as file:
        file.truncate(documents.MAX_FILE_BYTES + 1)
    with pytest.raises(InputError, match="larger than 16 MiB"):
        read_document(big)
    row = {"name": "a", "dram_bytes": 1}
    big.write_text(json.dumps({"workload": {"label": "w"}, "schedules": [row] * 20_001}))
    with pytest.raises(InputError, match="got 20,001 schedules"):
        read_document(big)
    move = {"instance": "x", "capacity": 3, "variant": "one-shot"}
    big.write_text(json.dumps({**move, "moves": [["load", "a"]] * 20_001}))
    with pytest.raises(InputError, match="got 20,001 moves"):
        pebble.report(big)
    big.write_text(json.dumps({**move, "moves": [["load", f"a{i}"] for i in range(401)]}))
    with pytest.raises(InputError, match="got a DAG of 401 values"):
        pebble.report(big)
    monkeypatch.setattr("pebble.webpage.page.MAX_PAGE_BYTES", 1000)
    with pytest.raises(InputError, match="the page has"):
        pebble.report(*golden("solve-gemm"))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for wrong in (tmp_path, tmp_path / "nowhere.json", "a\0b"):
        with pytest.raises(InputError, match="cannot be read"):
            pebble.report(wrong)
    with pytest.raises(InputError, match="expected the name of a file"):
        pebble.report(3)
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not text"):
        pebble.report(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("compare-mlp", "compare"),
        ("compare-gemm-cluster", "compare"),
        ("curve-opt", "curve"),
        ("bound-layer", "bound"),
        ("solve-batch", "solve"),
        ("replay-legal", "replay"),
        ("simulate-fifo", "simulate"),
        ("tune-gemm", "tune"),
        ("verify-layer", "verify"),
    ],
)
def test_documents_of_commands_are_known(golden: Callable[..., list[str]], name: str, kind: str) -> None:
    assert read_document(golden(name)[0]).kind == kind


def test_fields_refuse_what_they_should() -> None:
    fields = Fields({"n": 3, "x": 0.5, "b": True, "list": [1, "a"], "long": "a" * 1000}, "f")
    assert (fields.whole("n"), fields.number("x"), fields.maybe("gone")) == (3, 0.5, None)
    assert len(fields.text("long")) == 400
    wrong: list[tuple[Callable[[str], Any], str]] = [
        (fields.whole, "x"), (fields.whole, "b"), (fields.number, "b"), (fields.numbers, "list"),
        (fields.texts, "list"), (fields.parts, "list"), (fields.part, "n"), (fields.text, "n"),
    ]  # fmt: skip
    for read, key in wrong:
        with pytest.raises(InputError, match="expected"):
            read(key)
