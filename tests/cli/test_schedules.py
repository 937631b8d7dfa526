"""`pebble schedules`."""

from __future__ import annotations

import json

import pytest

from pebble.cli import main
from pebble.schedules import ALL_ORDERS, OrderParams, parse_order


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["schedules", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_list_names_every_order_with_its_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == list(ALL_ORDERS)
    assert "triton python/tutorials" in out


def test_list_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--json")
    entries = json.loads(out)["schedules"]
    assert code == 0
    assert [entry["name"] for entry in entries] == list(ALL_ORDERS)
    assert all(entry["what"] and entry["source"] for entry in entries)


def test_table_on_a_narrow_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    code, out, _ = run(capsys)
    assert code == 0
    assert max(len(line) for line in out.splitlines()) <= 60
    assert all(name in out for name in ALL_ORDERS)


def test_grid_numbers_the_tiles(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "cutlass3-4", "--grid", "5x7")
    assert code == 0
    assert out.splitlines()[-5:] == [
        " 0  4  8 12 16 20 24",
        " 1  5  9 13 17 21 25",
        " 2  6 10 14 18 22 26",
        " 3  7 11 15 19 23 27",
        "28 29 30 31 32 33 34",
    ]


def test_grid_json_with_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--sms", "132", "--tile", "128x256x64", "--multicast", "a", "--json"]
    code, out, _ = run(capsys, "deepgemm+sawtooth", "--grid", "20x20", *options)
    document = json.loads(out)
    params = OrderParams(sms=132, tile_m=128, tile_n=256, multicast="a")
    assert code == 0
    assert document["name"] == "deepgemm+sawtooth"
    assert document["sawtooth"] is True
    assert document["parameters"] == {"sms": 132, "tile_m": 128, "tile_n": 256, "multicast": "a"}
    assert document["tiles"] == parse_order("deepgemm").tiles(20, 20, params).tolist()


def test_cluster_and_raster_and_chunk_reach_the_order(capsys: pytest.CaptureFixture[str]) -> None:
    for name, options, params in (
        (
            "cutlass3-2",
            ["--cluster", "2x1", "--raster", "along-m"],
            OrderParams(cluster_m=2, raster="along-m"),
        ),
        ("xcd-2", ["--chunk", "3"], OrderParams(chunk=3)),
    ):
        _, out, _ = run(capsys, name, "--grid", "8x6", "--json", *options)
        tiles = json.loads(out)["tiles"]
        assert tiles == parse_order(name).tiles(8, 6, params).tolist()
        assert tiles != parse_order(name).tiles(8, 6).tolist()


def test_one_order_explained(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "grouped-16")
    assert code == 0
    assert "tile rows in a group; 16" in out
    assert "source: triton" in out
    _, out, _ = run(capsys, "grouped-16+sawtooth", "--json")
    document = json.loads(out)
    assert (document["name"], document["number"], document["sawtooth"]) == ("grouped-16+sawtooth", 16, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["group-4"], "did you mean grouped-8?"),
        (["grouped-0"], "from 1 to 1048576"),
        (["row", "--grid", "5"], "such as 5x7"),
        (["row", "--grid", "0x5"], "tile rows: got 0"),
        (["row", "--grid", "5x7x9"], "such as 5x7"),
        (["--grid", "5x7"], "without a name"),
        (["--sms", "4"], "without a name"),
        (["cutlass3", "--raster", "n"], "along-m"),
        (["deepgemm", "--sms", "many"], "--sms"),
    ],
)
def test_mistakes_are_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1
