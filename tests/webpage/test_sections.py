"""What sections show is what the program's own simulation, formulas and referee say."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

import pebble
from pebble.errors import InputError
from pebble.families import FAMILIES
from pebble.schedules.explicit.chain_search import best_chain_plan
from pebble.schedules.explicit.ffn import ffn_chain
from pebble.schedules.tile import TileShape
from pebble.simulation import KernelConfig
from pebble.webpage import documents, gaps
from pebble.webpage.bands import bands_of, height_of
from pebble.webpage.documents import Document, read_document
from pebble.webpage.drawing import Frame, binary_ticks, decimal_ticks
from pebble.webpage.gaps import _BEST_IS_SIMULATED, Bar, gap_table, pairs, swept
from pebble.webpage.page import page_of
from pebble.webpage.pebblings import stepper_of
from pebble.webpage.walks import SIDE, blocks_of, walks_of
from pebble.workloads import Attention, Ffn, Gemm
from pebble.workloads.widths import FastMemory
from pebble.workloads.workload import Workload

WALKS: list[tuple[Workload, str, TileShape, list[int]]] = [
    (Gemm(1024, 768, 256), "grouped-4+sawtooth", TileShape(128, 128, 64), [8 * 6]),
    (Gemm(1000, 700, 250, accumulate=True), "hilbert", TileShape(128, 128, 64), [8 * 6]),
    (Ffn(512, 256, 512, gated=True), "row-fused-2", TileShape(128, 128, 64), []),
    (Ffn(512, 256, 512), "separate:row", TileShape(128, 128, 64), []),
    (Attention(512, 512, 64, heads=2, kv_heads=1, causal=True), "fa2", TileShape(128, 64, 1), [4 * 2]),
]


@pytest.mark.parametrize(("workload", "name", "tile", "tiles"), WALKS)
def test_a_walk_adds_up_to_the_simulation(workload: Workload, name: str, tile: TileShape, tiles: list[int]) -> None:
    family = FAMILIES[workload.family]
    config = KernelConfig(tile, 5, 1, 2**18)
    schedule = family.parse_schedule(name)
    grids, reads, blocks = blocks_of(family.trace(workload, schedule, config), config)
    traffic = family.simulate(workload, schedule, config)
    assert sum(block[3] for block in blocks) == traffic.dram_read_bytes > 0
    written = {tuple(tile) for block in blocks for tile in block[0]}
    assert written == {(g, r, c) for g, (_, rows, cols) in enumerate(grids) for r in range(rows) for c in range(cols)}
    assert not tiles or [rows * cols for _, rows, cols in grids] == tiles
    assert {sm for _, sm, *_ in blocks} == set(range(5))
    for _, sm, turn, _, result in blocks:
        assert 0 <= sm < 5 and turn >= 0 and len(result) == len(reads)
        assert all(0 <= hit <= touched for touched, hit in result)


def test_a_walk_of_one_block_at_a_time_by_hand() -> None:
    gemm, config = Gemm(256, 256, 64), KernelConfig(TileShape(128, 128, 64), 1, 1, 2**20)
    family = FAMILIES["gemm"]
    trace = family.trace(gemm, family.parse_schedule("row"), config)
    grids, reads, blocks = blocks_of(trace, config)
    tile = 128 * 64 * 2
    assert (grids, reads) == ((("C", 2, 2),), ("A", "B"))
    assert blocks == [
        [[[0, 0, 0]], 0, 0, 2 * tile, [[1, 0], [1, 0]]],
        [[[0, 0, 1]], 0, 1, tile, [[1, 1], [1, 0]]],
        [[[0, 1, 0]], 0, 2, tile, [[1, 0], [1, 1]]],
        [[[0, 1, 1]], 0, 3, 0, [[1, 1], [1, 1]]],
    ]


@pytest.mark.parametrize("name", ["compare-gemm-a100", "compare-mlp", "compare-attention", "compare-gemm-cache"])
def test_walks_are_small_and_of_the_orders_named(golden: Callable[..., list[str]], name: str) -> None:
    document = read_document(golden(name)[0])
    result = walks_of(document)
    assert result is not None and result.orders
    traffic = {row["name"]: row["dram_bytes"] for row in document.data["schedules"]}
    shown = [order["name"] for order in result.orders]
    left_out = {name for reason in result.left_out for name in reason.partition(": ")[0].split(", ")}
    assert set(shown) | left_out == set(traffic) and not set(shown) & left_out
    assert 3 <= len(shown) <= 12
    for order in result.orders:
        assert order["moved"] == traffic[order["name"]]
        assert all(rows <= SIDE and cols <= 2 * SIDE for _, rows, cols in order["grids"])


PROJECTIONS = {"row": 5_017_436_160, "grouped-8": 1_359_796_224, "hilbert": 1_442_807_808}


def projections(golden: Callable[..., list[str]], folder: Path, moved: dict[str, int]) -> Document:
    """A compare document of a GEMM of 8192 x 12288 x 4096 on 132 SMs and 50 MiB."""
    document = json.loads(Path(golden("compare-gemm-a100")[0]).read_text())
    document["workload"] |= {"m": 8192, "n": 12288, "k": 4096}
    document["kernel"] |= {"sms": 132, "cache_bytes": 50 * 2**20, "tile": "128x128x64"}
    document["schedules"] = [{"name": name, "dram_bytes": size} for name, size in moved.items()]
    path = folder / "qkv.json"
    path.write_text(json.dumps(document))
    return read_document(path)


@pytest.mark.parametrize("name", ["compare-gemm-a100", "compare-mlp", "compare-attention", "compare-gemm-cache", ""])
def test_walks_rank_as_the_gap_table_does(golden: Callable[..., list[str]], tmp_path: Path, name: str) -> None:
    document = read_document(golden(name)[0]) if name else projections(golden, tmp_path, PROJECTIONS)
    result = walks_of(document)
    assert result is not None
    entries = [(order["moved"], sum(block[3] for block in order["blocks"])) for order in result.orders]
    assert len(entries) >= 3
    for (traffic, fetched), (moved_next, fetched_next) in pairwise(entries):
        assert (traffic < moved_next and fetched < fetched_next) or (traffic == moved_next and fetched == fetched_next)
    assert name or [order["name"] for order in result.orders] == ["grouped-8", "hilbert", "row"]


def test_walks_that_would_rank_otherwise_are_not_shown(golden: Callable[..., list[str]], tmp_path: Path) -> None:
    turned = dict(zip(PROJECTIONS, sorted(PROJECTIONS.values()), strict=True))
    document = projections(golden, tmp_path, turned)
    result = walks_of(document)
    assert result is not None and result.orders == []
    html = pebble.report(tmp_path / "qkv.json").html
    assert "No walk is shown" in html and 'data-id="walk0"' not in html


def test_a_bound_says_for_which_memory_it_holds(golden: Callable[..., list[str]]) -> None:
    document = read_document(golden("compare-gemm-a100")[0])
    bars = {bar.name: bar for bar in gap_table(document).bars}
    legal = bars["best legal schedule known, under explicit control"]
    above = [bar for bar in bars.values() if bar.kind == "bound" and bar.traffic > legal.traffic]
    assert [bar.name for bar in above] == ["proved bound for a memory of the cache's size alone"]
    assert above[0].detail.startswith("for 40 MiB alone: a schedule that also keeps values on the SMs may move less")
    assert "proved bound: no order of this kernel moves less" in bars
    assert gap_table(read_document(golden("bound-dag")[0])).bars[0].name == "proved bound: no schedule moves less"


def test_a_name_in_a_document_opens_no_file(golden: Callable[..., list[str]], tmp_path: Path) -> None:
    document = json.loads(Path(golden("compare-gemm-a100")[0]).read_text())
    csv = tmp_path / "own.csv"
    csv.write_text("wave,slot,row,col,k_start,k_direction\n0,0,0,0,0,1\n")
    document["schedules"] = [{**document["schedules"][0], "name": str(csv)}, document["schedules"][1]]
    path = tmp_path / "d.json"
    path.write_text(json.dumps(document))
    result = walks_of(read_document(path))
    assert result is not None and len(result.orders) == 1
    assert any("unknown schedule" in reason for reason in result.left_out)


def test_hostile_sizes_end_soon(golden: Callable[..., list[str]], tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    document = json.loads(Path(golden("compare-mlp")[0]).read_text())
    document["workload"] |= {"tokens": 2**31, "d_model": 2**31, "hidden": 3}
    document["kernel"] |= {"tile": "1x65536x1", "sms": 10**29, "cache_bytes": 10**29}
    path.write_text(json.dumps(document))
    assert pebble.report(path).sections["gap"] == 1
    document = json.loads(Path(golden("solve-gemm")[0]).read_text())
    document["instance"] = "gemm -m 90 -n 90 -k 90"
    path.write_text(json.dumps(document))
    assert "values without edges" in stepper_of(read_document(path)).about


def test_bands_agree_with_the_best_plan(golden: Callable[..., list[str]]) -> None:
    document = read_document(golden("compare-mlp")[0])
    result = bands_of(document)
    assert result is not None
    fitting = [h for h in result.heights if h["moved_bytes"] is not None]
    assert fitting and all(h["room_bytes"] <= result.capacity_bytes for h in fitting)
    assert all(h["moved_bytes"] >= result.bound_bytes for h in fitting)
    assert {s["rows"] for s in result.simulated} == {128, 512, 1024, 2048, 8192}
    ffn = Ffn(640, 32, 96)
    capacity = 4000
    plan = best_chain_plan(ffn_chain(ffn), "rows", FastMemory.of_values(capacity))
    assert plan is not None
    least = min(
        spec for rows in range(1, 641) if (spec := height_of(ffn, rows, capacity, 1)["moved_bytes"]) is not None
    )
    assert plan.elements <= least <= 1.15 * plan.elements  # the plan also turns corners from band to band


@pytest.mark.parametrize("name", ["solve-gemm", "solve-gemm-search", "solve-diamond", "solve-batch", "solve-buffers"])
def test_a_stepper_ends_with_all_outputs_in_slow_memory(golden: Callable[..., list[str]], name: str) -> None:
    document = read_document(golden(name)[0])
    result = stepper_of(document)
    red: set[tuple[int, int]] = set()
    blue = {i for i, node in enumerate(result.nodes) if node["blue"]}
    before = {last: {first for first, to in result.edges if to == last} for _, last in result.edges}
    slow = most = 0
    for op, node, source, sm, _ in result.moves:
        assert node >= 0
        if op in ("load", "store"):
            assert node in blue if op == "load" else (node, sm) in red
            slow += 1
        elif op == "copy":
            assert (node, source) in red
        elif op == "compute":  # a cell has some of its operands in each update
            assert any((first, sm) in red for first in before[node])
        if op == "store":
            blue.add(node)
        elif op == "delete":
            red.remove((node, sm))
        else:
            red.add((node, sm))
        most = max(most, *(sum(at == s for _, at in red) for s in range(result.sms)))
    assert {i for i, node in enumerate(result.nodes) if node["output"]} <= blue
    assert most <= document.data["capacity"]
    copies = sum(op == "copy" for op, *_ in result.moves)
    assert slow + copies * document.data.get("omega", 0) == document.data["upper_bound"]
    places = [(node["column"], node["row"]) for node in result.nodes]
    assert len(set(places)) == len(places)


def test_gap_tables_say_what_documents_say(golden: Callable[..., list[str]]) -> None:
    document = read_document(golden("compare-gemm-a100")[0])
    table = gap_table(document)
    orders = [bar for bar in table.bars if bar.kind == "order"]
    rows = document.data["schedules"]
    assert [(bar.name, bar.traffic) for bar in orders] == [(row["name"], row["dram_bytes"]) for row in rows]
    assert [bar.ratio for bar in orders] == pytest.approx([row["ratio_to_lower_bound"] for row in rows])
    assert [bar.traffic for bar in table.bars if bar.kind != "order"] == [
        document.data[key]["bytes"] for key in ("lower_bound", "chip_bound", "cache_only_bound", "upper_bound")
    ]
    assert gap_table(read_document(golden("bound-dag")[0])).unit == "elements"
    exact = gap_table(read_document(golden("compare-gemm-exact")[0]))
    assert [bar.kind for bar in exact.bars][:2] == ["bound", "order"] and exact.bars[1].ratio == 1.0


MEASURED = """family,m,n,k,chip,dtype,tile,order,execution,dram_read_bytes,dram_write_bytes,dram_bytes
gemm,8192,8192,8192,a100-sxm4-40gb,bf16,128x128x64,row,waves,5000000000,100000000,
gemm,8192,8192,8192,a100-sxm4-40gb,bf16,128x128x64,row,free,,,4000000000
gemm,8192,8192,8192,a100-sxm4-40gb,bf16,128x128x64,row,staggered,,,4000000000
gemm,8192,8192,4096,a100-sxm4-40gb,bf16,128x128x64,row,waves,,,4000000000
gemm,8192,8192,8192,a100-sxm4-40gb,fp16,128x128x64,row,waves,,,4000000000
gemm,8192,8192,8192,a100-sxm4-40gb,bf16,128x128x64,row,waves,x,y,z
"""


def test_measured_rows_meet_their_predictions(golden: Callable[..., list[str]], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(MEASURED)
    compare = read_document(golden("compare-gemm-a100")[0])
    row = next(row for row in compare.data["schedules"] if row["name"] == "row")
    result, alone = pairs([compare, read_document(path)])
    fields = {pair.name.rpartition(", ")[2]: (pair.measured, pair.predicted) for pair in result}
    assert fields == {"waves": (5.1e9, row["dram_bytes"]), "free": (4e9, row["free_dram_bytes"])}
    assert alone == 4
    assert result[0].error == pytest.approx(max((p.error for p in result), key=abs))
    html = pebble.report(*golden("compare-gemm-a100"), path).html
    assert "2 launches" in html and "4 measured launches" in html
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="need the columns dram_bytes"):
        read_document(path)


def test_frames_put_points_inside() -> None:
    frame = Frame.around([1, 10, 100], [5, 50])
    assert frame.x(1) < frame.x(10) < frame.x(100)
    assert frame.y(5) > frame.y(50) and frame.y(0) >= frame.y(5)
    assert frame.x(10) - frame.x(1) == pytest.approx(frame.x(100) - frame.x(10))
    assert binary_ticks(1, 2**40)[1] / binary_ticks(1, 2**40)[0] >= 2**6
    assert decimal_ticks(3, 60) == [5, 10, 20, 50]


def test_a_sweep_is_told_question_by_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = {"workload": "gemm <b>", "machine": "a40", "cache_bytes": 2**20, "tile": "8x8", "status": "done"}
    rows = [
        {**place, "schedule": "row", "dram_bytes": 300, "ratio_to_lower_bound": 3.0},
        {**place, "schedule": "hilbert", "dram_bytes": 150, "ratio_to_lower_bound": 1.5},
        {**place, "machine": "l4", "schedule": "row", "dram_bytes": 400, "ratio_to_lower_bound": 4.0},
        {**place, "status": "refused", "dram_bytes": None, "schedule": "row", "reason": "no"},
        {"workload": "gemm -m 2 -n 2 -k 1", "status": "done", "capacity_pebbles": 4, "solver": "cpsat",
         "lower_bound_cost": 8, "upper_bound_cost": None},
    ]  # fmt: skip
    document = {"store": "s.duckdb", "columns": {}, "rows": rows}
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(document))
    result = swept(read_document(path))
    assert [(a.where.split(",")[0], a.orders, a.best, a.ratio) for a in result.questions] == [
        ("l4", 1, "row", 4.0),
        ("a40", 2, "hilbert", 1.5),
    ]
    assert [(g.where, g.lower, g.upper) for g in result.solved] == [("4 pebbles, cpsat", 8, None)]
    assert result.statuses == {"done": 4, "refused": 1}
    html = pebble.report(path).html
    assert "gemm &lt;b&gt;" in html and "3 questions; rows: 4 done, 1 refused" in html

    class Answer:
        def to_dict(self) -> dict[str, object]:
            return document

    monkeypatch.setattr(pebble, "results", lambda path, limit: Answer())
    assert pebble.report(tmp_path / "s.duckdb").sections == {"sweeps": 1}
    monkeypatch.setattr(documents, "MAX_STORE_ROWS", 4)
    with pytest.raises(InputError, match="got over 4 rows"):
        pebble.report(tmp_path / "s.duckdb")
    monkeypatch.setattr(gaps, "MAX_ROWS", 2)
    with pytest.raises(InputError, match="got 3 questions, expected at most 2"):
        pebble.report(path)


def test_a_profiled_launch_stands_beside_the_order_that_is_nearest(tmp_path: Path) -> None:
    rows = [
        {"name": "row", "execution": "waves", "dram_read_bytes": 90, "dram_write_bytes": 20},
        {"name": "row", "execution": "free", "dram_read_bytes": 70, "dram_write_bytes": 20},
    ]
    document = {
        "workload": {"label": "gemm"},
        "measured": {"dram_bytes": 100.0},
        "nearest": {"name": "row", "execution": "waves"},
        "schedules": rows,
    }
    path = tmp_path / "ncu.json"
    path.write_text(json.dumps(document))
    result, alone = pairs([read_document(path)])
    assert [(p.name, p.measured, p.predicted, alone) for p in result] == [
        ("gemm, profiled; nearest order: row, waves", 100.0, 110, 0)
    ]
    path.write_text(json.dumps({**document, "nearest": None}))
    assert pairs([read_document(path)]) == ([], 0)


def test_a_simulated_order_is_not_called_a_schedule_under_explicit_control(
    golden: Callable[..., list[str]], tmp_path: Path
) -> None:
    document = json.loads(Path(golden("compare-gemm-a100")[0]).read_text())
    path = tmp_path / "compared.json"

    def best() -> Bar:
        path.write_text(json.dumps(document))
        (bar,) = (bar for bar in gap_table(read_document(path)).bars if bar.name.startswith("best "))
        return bar

    assert (best().name, best().kind) == ("best legal schedule known, under explicit control", "explicit")
    row = document["schedules"][0]  # `compare` names it where no explicit schedule moves less
    document["upper_bound"] |= {"schedule": row["name"], "bytes": row["dram_bytes"]}
    assert (best().name, best().kind, best().detail) == (_BEST_IS_SIMULATED, "order", row["name"])


def test_schedules_that_are_counted_are_not_called_simulated(tmp_path: Path) -> None:
    result = pebble.compare(pebble.Gemm(512, 512, 512), gpu="h100-sxm5-80gb", buffers="connected", level="l2")
    path = tmp_path / "buffers.json"
    path.write_text(json.dumps(result.to_dict()))
    kinds = [bar.kind for bar in gap_table(read_document(path)).bars]
    assert "order" not in kinds and kinds.count("explicit") == 1 + len(result.rows())


def test_schedules_of_several_tiles_say_which(golden: Callable[..., list[str]], tmp_path: Path) -> None:
    document = json.loads(Path(golden("tune-gemm")[0]).read_text())
    document["schedules"] = [
        {**row, "tile": tile} for row in document["schedules"][:2] for tile in ("128x128x64", "128x256x64")
    ]
    path = tmp_path / "tuned.json"
    path.write_text(json.dumps(document))
    table = gap_table(read_document(path))
    orders = [bar for bar in table.bars if bar.kind == "order"]
    assert table.title.startswith("tune: ") and table.where.count("tile") == 1 and "2 tiles" in table.where
    assert len({(bar.name, bar.detail) for bar in orders}) == 4
    assert sum("tile 128x256x64" in bar.detail for bar in orders) == 2
    for row in document["schedules"]:
        row["tile"] = "128x256x64"
    path.write_text(json.dumps(document))
    table = gap_table(read_document(path))
    assert "tile 128x256x64" in table.where and not any("128x256x64" in bar.detail for bar in table.bars)


def test_orders_that_tie_are_not_best_and_most(tmp_path: Path) -> None:
    rows = [{"workload": "gemm", "schedule": name, "dram_bytes": 100} for name in ("hilbert", "row", "column")]
    path = tmp_path / "results.json"

    def shown() -> str:
        path.write_text(json.dumps({"store": "s", "columns": ["workload", "schedule", "dram_bytes"], "rows": rows}))
        return page_of([read_document(path)], "a page")[0]

    assert "best of 3: hilbert and 2 that move the same</small>" in shown()
    rows.append({"workload": "gemm", "schedule": "rowest", "dram_bytes": 200})
    assert "best of 4: hilbert and 2 that move the same; most: rowest, 200 B" in shown()
