"""Traces in files: what is written is read back, and every mistake gets one sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pebble.errors import InputError
from pebble.models.caches import parse_policy
from pebble.schedules.attention_names import parse_attention_schedule
from pebble.schedules.execution import parse_execution
from pebble.schedules.gemm import GemmKernel
from pebble.schedules.orders import parse_order
from pebble.schedules.tile import TileShape
from pebble.traces import Trace, by_lines
from pebble.traces.files import read_trace, write_trace
from pebble.traces.touches import timed_trace
from pebble.workloads import Attention, Gemm
from tests.schedules.lockstep import attention_trace, lockstep_trace

GEMM, TILE = Gemm(60, 320, 200), TileShape(16, 64, 64)
CSV = """\
# pebble trace 1
# a remark
# operand A rows=64 cols=256 tile_rows=16 tile_cols=64 element_bytes=2
# operand C rows=64 cols=64 tile_rows=16 tile_cols=64 element_bytes=2 copies=2
# sms 4

operand, row, col, op, sm, copy
A,0,0,r,0,0
# in between
A,0,3,r,1,0
C,3,0,W,3,1
"""


def traces() -> dict[str, Trace]:
    tiles = parse_order("morton").tiles(*TILE.grid(GEMM)[:2])
    attention = Attention(128, 96, 64, heads=2, kv_heads=1, causal=False)
    return {
        "tiles": lockstep_trace(GEMM, tiles, TILE, 6, sms=3),
        "lines": by_lines(lockstep_trace(GEMM, tiles, TILE, 6)),
        "stream-k": timed_trace(GemmKernel(GEMM, TILE).timed(parse_order("row"), 5, parse_execution("stream-k")), 5),
        "heads": attention_trace(attention, parse_attention_schedule("fa2"), 32, 32, 4),
    }


@pytest.mark.parametrize("suffix", ["csv", "npz"])
@pytest.mark.parametrize("name", ["tiles", "lines", "stream-k", "heads"])
@pytest.mark.parametrize("policy", ["lru", "opt", "partitions-2", "set-4"])
def test_what_is_written_is_read_back(tmp_path: Path, suffix: str, name: str, policy: str) -> None:
    trace = traces()[name]
    path = tmp_path / f"trace.{suffix}"
    write_trace(trace, path)
    again = read_trace(path)
    assert again.touches == sum(len(c.ids) for c in trace.chunks())
    assert again.sms == trace.sms
    assert again.tile_lines.tolist() == trace.tile_lines.tolist()
    model = parse_policy(policy).simulate
    result, expected = model(again, 3000), model(trace, 3000)
    for field in ("accesses", "read_misses", "write_misses", "write_backs", "residue"):
        assert getattr(result, field) == getattr(expected, field)


def write(folder: Path, text: str) -> Path:
    path = folder / "t.csv"
    path.write_text(text)
    return path


def test_a_csv_by_hand(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, CSV))
    assert trace.operand_names == ("A", "C")
    chunk = next(trace.chunks())
    assert chunk.ids.tolist() == [0, 3, 16 + 4 + 3]
    assert chunk.ops.tolist() == [0, 0, 1]
    assert chunk.sm is not None
    assert chunk.sm.tolist() == [0, 1, 3]
    without = read_trace(write(tmp_path, CSV.replace(", sm, ", ", other, ")))
    assert without.sms == 0
    assert next(without.chunks()).sm is None


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("A,0,3,r,1,0", "A,0,4,r,1,0", "touch 2: got col 4 of operand A, expected 0 to 3"),
        ("A,0,3,r,1,0", "A,4,0,r,1,0", "got row 4"),
        ("A,0,3,r,1,0", "A,0,0,r,1,1", "got copy 1"),
        ("A,0,3,r,1,0", "B,0,0,r,1,0", "line 10: got operand 'B'"),
        ("A,0,3,r,1,0", "A,0,0,x,1,0", "line 10: got op 'x'"),
        ("A,0,3,r,1,0", "A,-1,0,r,1,0", "line 10: got '-1'"),
        ("A,0,3,r,1,0", "A,0", "line 10"),
        ("A,0,3,r,1,0", "A,0,3,r,100000,0", "expected 0 to 99999"),
        ("tile_cols=64 element_bytes=2\n", "tile_cols=60 element_bytes=2\n", "expected a multiple of 128 bytes"),
        ("rows=64 cols=256", "rows=0 cols=256", "got rows=0"),
        ("element_bytes=2\n", "bytes=2\n", "line 3: got 'bytes=2'"),
        ("# operand A", "# operand C", "expected one of ['C', 'C']"),
        ("row, col, op", "line, col, op", "columns row are missing"),
        ("# sms 4", "# sms four", "line 5: got 'four'"),
        ("# sms 4", "# sms", "line 5"),
        ("A,0,0,r,0,0\n# in between\nA,0,3,r,1,0\nC,3,0,W,3,1\n", "", "no touch"),
        (CSV, "", "columns operand, row, col, op are missing"),
    ],
)
def test_mistakes_in_a_csv(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in CSV
    with pytest.raises(InputError) as error:
        read_trace(write(tmp_path, CSV.replace(old, new)))
    assert says in str(error.value)


def arrays() -> dict[str, Any]:
    return {
        "operand": np.array([0, 0], np.uint8), "row": np.array([0, 1]), "col": np.array([0, 0]),
        "op": np.array([0, 1], np.uint8), "names": np.array(["A"]), "shapes": np.array([[1, 32, 64, 16, 64, 2]]),
    }  # fmt: skip


def test_a_small_npz(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, **arrays())
    assert next(read_trace(path).chunks()).ids.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("op", np.array([0, 2]), "expected 0 (read) or 1 (write)"),
        ("op", np.array([0.0, 1.0]), "expected 2 integers"),
        ("row", np.array([0]), "expected 2 integers"),
        ("row", np.array([0, 2]), "touch 2: got row 2"),
        ("operand", np.array([0, 1]), "got operand 1"),
        ("shapes", np.array([[32, 64, 16, 64, 2]]), "expected integers of shape (1, 6)"),
        ("names", np.array([{"a": 1}], dtype=object), "plain arrays"),
        ("col", None, "arrays col are missing"),
    ],
)
def test_mistakes_in_an_npz(tmp_path: Path, name: str, value: Any, says: str) -> None:
    data = arrays() | {name: value}
    path = tmp_path / "t.npz"
    np.savez(path, **{key: array for key, array in data.items() if array is not None})
    with pytest.raises(InputError) as error:
        read_trace(path)
    assert says in str(error.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path / "none.npz", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_trace(path)
    (tmp_path / "bad.npz").write_bytes(b"PK nothing")
    (tmp_path / "bad.csv").write_bytes(b"\xff\xfe\x00")
    for name in ("bad.npz", "bad.csv"):
        with pytest.raises(InputError, match="it is not"):
            read_trace(tmp_path / name)
    with pytest.raises(InputError, match="ends in"):
        write_trace(traces()["tiles"], tmp_path / "t.txt")
    with pytest.raises(InputError, match="folder"):
        write_trace(traces()["tiles"], tmp_path / "no" / "t.csv")
