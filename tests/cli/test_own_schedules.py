"""Tiles of the user's own in simulate, compare and export: what is right is simulated, what is not is one sentence."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pebble
from pebble.cli import main
from pebble.errors import InputError
from pebble.schedules.tables import source

GEMM = ["gemm", "-m", "512", "-n", "512", "-k", "512"]
WHERE = ["--cache", "1MiB", "--sms", "5"]
ORDERS = """
import numpy as np
def by_rows(rows, cols, params):
    return [(i, j) for i in range(rows) for j in range(cols)]
def late(rows, cols, params):
    tiles = np.array(by_rows(rows, cols, params))
    return tiles, np.arange(len(tiles)) % 8, np.ones(len(tiles), int)
def raises(rows, cols, params):
    return 1 // 0
def twice(rows, cols, params):
    return [(0, 0)] * rows * cols
def missing(rows, cols, params):
    return by_rows(rows, cols, params)[:-2]
def number(rows, cols, params):
    return 7
def backwards(rows, cols, params):
    return by_rows(rows, cols, params), None, [2] * rows * cols
def beyond(rows, cols, params):
    return by_rows(rows, cols, params), [8] * rows * cols, None
"""
ROWS = "".join(f"{i},{j}\n" for i in range(4) for j in range(4))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("orders.py").write_text(ORDERS)
    Path("bare.py").write_text("x = 1\n")
    Path("broken.py").write_text("def f(:\n")
    Path("good.csv").write_text(f"# mine\nrow, col\n{ROWS}")
    Path("swapped.json").write_text(json.dumps([[j, i] for i in range(4) for j in range(4)]))
    np.save("good.npy", np.array([(i, j) for i in range(4) for j in range(4)]))
    np.save("odd.npy", np.zeros((4, 3), int))
    Path("names.csv").write_text(f"tile_row,col\n{ROWS}")
    Path("bare.csv").write_text(ROWS)
    Path("words.csv").write_text("row,col\n0,0\n0,x\n")
    Path("half.csv").write_text("row,col,wave\n0,0,0\n")
    Path("slots.csv").write_text(
        "row,col,wave,slot\n" + "".join(f"{i},{j},{i},{j * 2}\n" for i in range(4) for j in range(4))
    )
    Path("small.csv").write_text("row,col\n0,0\n0,1\n1,0\n1,1\n")
    Path("outside.csv").write_text(f"row,col\n9,0\n{ROWS}")
    Path("empty.csv").write_text("")
    Path("other.json").write_text('{"a": 1}')
    return tmp_path


def moved(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("given", "name"),
    [("good.csv", "row"), ("good.npy", "row"), ("orders.py:by_rows", "row"), ("swapped.json", "column"),
     ("good.csv+sawtooth", "row+sawtooth"), ("orders.py:by_rows+sawtooth", "row+sawtooth")],
)  # fmt: skip
def test_own_tiles_move_what_the_same_named_order_moves(
    capsys: pytest.CaptureFixture[str], given: str, name: str
) -> None:
    own = moved(capsys, "simulate", *GEMM, *WHERE, "--schedule", given)
    named = moved(capsys, "simulate", *GEMM, *WHERE, "--schedule", name)
    assert own["schedule"] == given and own["by_operand"] == named["by_operand"]
    assert own["l2_hit_rate"] == named["l2_hit_rate"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("orders.py", "FILE.py:FUNCTION"), ("orders.py:by_row", "write for example orders.py:by_rows"),
        ("bare.py:f", "defines none"), ("broken.py:f", "SyntaxError"), ("nowhere.py:f", "No such file"),
        ("orders.py:raises", "raised ZeroDivisionError"), ("orders.py:twice", r"tile (0, 0) is there 16 times"),
        ("orders.py:missing", "tile (3, 2) and 1 more are missing"), ("orders.py:number", "returned 7"),
        ("orders.py:backwards", "k_direction of 2"), ("orders.py:beyond", "begins at a k step that is not its own 8"),
        ("nowhere.csv", "No such file"), ("names.csv", "column 'tile_row'"), ("bare.csv", "column '0'"),
        ("words.csv", "row 1 is '0,x'"), ("half.csv", "slot is missing"), ("slots.csv", "waves have 7 slots"),
        ("small.csv", "fill a grid of 2 x 2"), ("outside.csv", "tile (9, 0), number 0, is outside"),
        ("empty.csv", "got no line"), ("odd.npy", "got 4 x 3 whole numbers"), ("other.json", "pebble tune --save"),
        ("orders.py:late+sawtooth", "+sawtooth with a column k_direction"), ("rwo", "did you mean row"),
    ],
)  # fmt: skip
def test_what_is_no_schedule_is_one_sentence(capsys: pytest.CaptureFixture[str], given: str, words: str) -> None:
    assert main(["simulate", *GEMM, *WHERE, "--schedule", given]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1 and error.endswith(".\n") | error.endswith("?\n")


def test_compare_takes_them_beside_names(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "compare",
        *GEMM,
        *WHERE,
        "--schedules",
        "column",
        "--schedule",
        "good.csv",
        "--schedule",
        "orders.py:late",
    ]
    result = moved(capsys, *words)
    assert {s["name"] for s in result["schedules"]} == {"column", "good.csv", "orders.py:late"}
    assert all(s["ratio_to_lower_bound"] >= 1 for s in result["schedules"])


def test_the_front_door_takes_functions_and_tables() -> None:
    gemm = pebble.Gemm(512, 512, 512)
    by_hand = pebble.simulate(gemm, lambda rows, cols, params: [(i, j) for i in range(rows) for j in range(cols)],
                              cache="1MiB", sms=5)  # fmt: skip
    table = pebble.export("row", gemm, cache="1MiB", sms=5).table
    result = pebble.compare(gemm, ["row"], [table, Path("good.csv")], cache="1MiB", sms=5)
    assert {t.dram_bytes for t in result.orders} == {by_hand.traffic.dram_bytes}
    with pytest.raises(InputError, match="expected 5 with 1"):
        pebble.simulate(gemm, table, cache="1MiB", sms=6)


def test_a_function_orders_both_products_of_an_ffn_and_the_heads_of_an_attention(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ffn = ["ffn", "--tokens", "512", "--d-model", "256", "--hidden", "640", *WHERE]
    heads = ["attention", "--queries", "512", "--keys", "512", "--head-dim", "64", "--heads", "3", "--causal", *WHERE]
    for words, name in ((ffn, "separate:row"), (heads, "fa2-heads-first")):
        own = moved(capsys, "simulate", *words, "--schedule", "orders.py:by_rows")
        assert own["by_operand"] == moved(capsys, "simulate", *words, "--schedule", name)["by_operand"]
    assert main(["simulate", *ffn, "--schedule", "good.csv"]) == 2
    assert "phase, product, row, col" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["csv", "npy", "json"])
def test_what_is_exported_is_read_back(capsys: pytest.CaptureFixture[str], suffix: str) -> None:
    ffn = ["ffn", "--tokens", "512", "--d-model", "256", "--hidden", "640", *WHERE]
    groups = ["grouped", "--rows", "300,1,200,300", "-n", "320", "-k", "192", *WHERE]
    batch = ["gemm", "--batch", "3", "-m", "192", "-n", "256", "-k", "128", "--accumulate-into", *WHERE]
    cases = (
        (GEMM + WHERE, "grouped-2+sawtooth"),
        (ffn, "row-fused-3+sawtooth"),
        (batch, "row"),
        (groups, "hilbert+sawtooth"),
    )
    for words, name in cases:
        exported = moved(capsys, "export", name, *words, "--format", suffix, "-o", f"out.{suffix}")
        own = moved(capsys, "simulate", *words, "--schedule", f"out.{suffix}")
        named = moved(capsys, "simulate", *words, "--schedule", name)
        assert own["by_operand"] == named["by_operand"]
        assert exported["launch"]["read_bytes"] == named["dram_read_bytes"]
    if suffix == "json":  # it says itself what it is for
        assert main(["export", "out.json", "--format", "triton", "-o", "out.py"]) == 0
        assert main(["export", "out.json", "--format", "triton", "-o", "out.py", "--gpu", "a40"]) == 2
        assert "--gpu" in capsys.readouterr().err


def test_packages_add_orders(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    entry = EntryPoint("mine", "orders:by_rows", source.GROUP)
    broken = EntryPoint("broken", "nowhere_at_all:f", source.GROUP)
    monkeypatch.syspath_prepend(".")
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [entry, broken] if group == source.GROUP else []
    )
    for name, same in (("mine", "row"), ("mine+sawtooth", "row+sawtooth")):
        own = moved(capsys, "simulate", *GEMM, *WHERE, "--schedule", name)
        assert own["by_operand"] == moved(capsys, "simulate", *GEMM, *WHERE, "--schedule", same)["by_operand"]
    assert main(["simulate", *GEMM, *WHERE, "--schedule", "broken"]) == 2
    assert "cannot be loaded" in capsys.readouterr().err
    assert main(["schedules"]) == 0
    assert "mine" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("rnd.json", b"\xff\xfe\x00", "got bytes that are no text, expected [[row, col], ...]"),
        (
            "cut.json",
            b"{",
            "expected [[row, col], ...], or what `pebble export SCHEDULE WORKLOAD --format json` writes",
        ),
        ("none.csv", b"row,col\n", "got no tiles, expected one for each block: in .csv a line such as 0,0"),
    ],
)
def test_a_file_without_tiles_says_what_it_should_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert main(["simulate", *GEMM, *WHERE, "--schedule", str(path)]) == 2
    assert words in capsys.readouterr().err


def test_a_triton_file_needs_a_power_of_two_that_need_not_divide(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", "row", "gemm", "-m", "1500", "-n", "512", "-k", "64", *WHERE, "--format", "triton", "--tile"]
    assert main([*words, "96x64x64"]) == 2
    assert "got a tile of 96 in m, expected a power of two of at least 16 (--tile)" in capsys.readouterr().err
    assert main([*words, "64x64x64"]) == 0
    assert "'m': 1500" in capsys.readouterr().out.replace('"', "'")


def test_a_figure_has_bars_of_ones_own_tiles(folder: Path) -> None:
    named = ["--schedules", "row", "--schedule", "good.csv", "--figure", "f.pdf"]
    assert main(["compare", *GEMM, *WHERE, *named]) == 0
    assert Path("f.pdf").stat().st_size > 0
