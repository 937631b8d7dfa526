"""Dataflows on cores with scratchpads: replayed value by value, by the referee too, and never below the bounds."""

from __future__ import annotations

from ast import literal_eval
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.bounds.memories import buffer_lower_bound, covers_memories
from pebble.cdag.products import gemm_dag
from pebble.families import accounting, family_of
from pebble.game import BufferModel, Game, Move, Pebbling, replay
from pebble.game.buffer_model import Topology
from pebble.reports.capacity import cache_capacity
from pebble.schedules.explicit.dataflow import Array, Cores, Dataflow, Face, Phase, Stream
from pebble.schedules.explicit.dataflow_search import product_face
from pebble.timing.on_cores import arrays_on
from pebble.units import Size
from pebble.workloads import Attention, Ffn, Gemm, GroupedGemm, LatentAttention
from pebble.workloads.widths import Widths
from tests.schedules.dataflow_replay import check, moved

NETS = {"all-to-all": 6, "ring": 6, "mesh-2x3": 6, "cluster-3": 6, "mesh-3x3": 9}
extent = st.integers(1, 5)


def product(stays: str, extents: tuple[int, int, int], partial: int = 4, begins: int = 0, local: bool = False) -> Face:
    a, b = Stream("A", 2), Stream("B", 3, local=local)
    return product_face(stays, extents, a, b, Stream("C", partial=partial, written=2, begins=begins))


def fused(tokens: int, hidden: int, inner: int) -> Face:
    up, down = Stream("Wg and Wu", 4), Stream("W2", 2)
    phases = (Phase(inner, Stream("X", 2), up, 8, 2), Phase(2, Stream("Y", partial=4, written=2), down, 2))
    return Face("H", tokens, hidden, Stream("H"), phases)


def attention(stays: str, rows: int, keys: int) -> Face:
    scores, groups = Stream("S", inside=4), 2
    if stays == "queries":
        return Face(
            stays, rows, 1, Stream("Q and O", 6, 16, 4), (Phase(keys, scores, Stream("K and V", 12), 22),), groups
        )
    return Face(stays, keys, 1, Stream("K and V", 12), (Phase(rows, scores, Stream("Q and O", 6, 16, 4), 12),), groups)


faces = st.one_of(
    st.builds(
        product,
        st.sampled_from("ABC"),
        st.tuples(extent, extent, extent),
        st.just(4),
        st.sampled_from((0, 2)),
        st.booleans(),
    ),
    st.builds(fused, extent, extent, extent),
    st.builds(attention, st.sampled_from(("queries", "keys")), extent, extent),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(faces, st.data())
def test_every_dataflow_is_what_a_literal_walk_counts(face: Face, data: st.DataObject) -> None:
    net = data.draw(st.sampled_from((None, *NETS)))
    shared = data.draw(st.sampled_from((0, 10**6)))
    count = 6 if net is None else NETS[net]
    arrays = tuple(arrays_on(net or "all-to-all", count, net is not None, net is not None or shared > 0))
    layers = face.phases[0].r if len(face.phases) == 1 else 1
    array = data.draw(st.sampled_from([a for a in arrays if (face.q > 1 or a.cols == 1) and a.layers <= layers]))
    step = data.draw(st.integers(1, 3))
    cores = Cores(count, 10**6, shared, arrays, net is not None, step, 1)
    block = data.draw(st.integers(1, face.p)), data.draw(st.integers(1, face.q))
    sides = [
        (i, side) for i, phase in enumerate(face.phases) for side, s in phase.sides if s.room > s.inside and not s.local
    ]
    kept = frozenset(data.draw(st.sets(st.sampled_from(sides)))) if shared else frozenset()
    check(
        Dataflow(face, cores, array, block, data.draw(st.booleans()), kept),
        None if net is None else Topology(net, count),
    )


@pytest.mark.parametrize("stays", ["A", "B", "C", "H"])
@pytest.mark.parametrize("net", ["ring", "mesh-2x3"])
def test_every_array_is_walked(stays: str, net: str) -> None:
    face = fused(4, 5, 2) if stays == "H" else product(stays, (4, 5, 3))
    arrays = tuple(arrays_on(net, 6))
    for array in arrays:
        for block in ((1, 1), (2, 1)):
            check(Dataflow(face, Cores(6, 10**6, 0, arrays, True, 1, 1), array, block), Topology(net, 6))


def by_referee(gemm: Gemm, flow: Dataflow, net: str) -> Any:
    game = Game.from_dag(gemm_dag(gemm.m, gemm.n, gemm.k, accumulate=gemm.accumulate))
    tasks = {}
    for task in game.tasks:
        i, j = literal_eval(game.names[task.target].removeprefix("C"))
        (a,) = (game.names[o] for o in task.operands if game.names[o].startswith("A"))
        tasks[i, j, literal_eval(a.removeprefix("A"))[1]] = task.name
    axes = {"C": "mnk", "A": "mkn", "B": "knm"}[flow.face.stays]  # of p, q and r
    of = {"A": "mk", "B": "kn", "C": "mn"}
    sides = {flow.face.held.name: axes[:2], flow.face.phases[0].along_p.name: axes[0] + axes[2]}
    sides[flow.face.phases[0].along_q.name] = axes[1] + axes[2]
    moves, red = [], set()
    for op, name, index, core, source in check(flow, Topology(net, flow.cores.count)).events:
        where = dict(zip(axes if op == "compute" else sides[name], index, strict=True))
        node = (
            tasks[where["m"], where["n"], where["k"]]
            if op == "compute"
            else f"{name}[{where[of[name][0]]},{where[of[name][1]]}]"
        )
        cell = f"C[{where['m']},{where['n']}]" if op == "compute" else node
        if op == "delete" and (cell, core) not in red:
            continue  # an update elsewhere has made this copy of a cell void
        if op == "compute":
            red = {pair for pair in red if pair[0] != cell}
        red = red - {(cell, core)} if op == "delete" else red | {(cell, core)} if op != "store" else red
        moves.append(Move(op, node, source, core))
    buffers = BufferModel("connected", flow.cores.count, Fraction(1), net)
    cost = Fraction(flow.moved.off_chip + flow.moved.hop_bytes)
    return replay(game, Pebbling(game.variant, flow.peak_bytes, tuple(moves), cost, buffers))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from("ABC"), st.tuples(extent, extent, extent), st.booleans(), st.data())
def test_the_referee_replays_products(
    stays: str, shape: tuple[int, int, int], accumulate: bool, data: st.DataObject
) -> None:
    gemm, net = Gemm(*shape, accumulate=accumulate), data.draw(st.sampled_from(sorted(NETS)))
    one, c = Stream("A", 1), Stream("C", partial=1, written=1, begins=int(accumulate))
    face = product_face(stays, shape, one, Stream("B", 1), c)
    arrays = tuple(arrays_on(net, NETS[net]))
    cores = Cores(NETS[net], 10**6, 0, arrays, True, 1, 1)
    block = data.draw(st.integers(1, face.p)), data.draw(st.integers(1, face.q))
    chained = [array for array in arrays if array.layers == 1 or stays != "C"]  # in the game sums are not added up
    flow = Dataflow(face, cores, data.draw(st.sampled_from(chained)), block, data.draw(st.booleans()))
    result = by_referee(gemm, flow, net)
    assert result.loads + result.stores == flow.moved.off_chip
    assert result.hops == flow.moved.hop_bytes and result.peak <= flow.peak_bytes


workloads = st.one_of(
    st.builds(Gemm, *[st.integers(2, 40)] * 3, accumulate=st.booleans()),
    st.builds(Ffn, *[st.integers(2, 24)] * 3, gated=st.booleans()),
    st.builds(
        lambda q, k, h: Attention(q, k, 4, heads=2 * h, kv_heads=h), *[st.integers(2, 24)] * 2, st.integers(1, 2)
    ),
    st.builds(LatentAttention, *[st.integers(1, 24)] * 2, st.just(4), st.just(2), st.integers(1, 3), st.integers(1, 2)),
    st.builds(
        GroupedGemm,
        st.lists(st.integers(1, 24), min_size=1, max_size=4).map(tuple),
        *[st.integers(2, 24)] * 2,
        accumulate=st.booleans(),
    ),
)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    workloads,
    st.sampled_from((None, "ring", "mesh-2x3", "all-to-all")),
    st.sampled_from((0, 1200, 4000)),
    st.integers(150, 1200),
)
def test_the_best_are_legal_and_above_the_bounds(workload: Any, net: str | None, shared: int, scratchpad: int) -> None:
    arrays = tuple(arrays_on(net or "all-to-all", 6, net is not None, net is not None or shared > 0))
    cores = Cores(6, scratchpad, shared, arrays, net is not None, 1, 1)
    flows = family_of(workload).dataflows(
        workload, cores, Widths.of(workload, 4), lambda m: (m.off_chip, m.shared + m.hop_bytes)
    )
    total = 6 * scratchpad + shared
    capacity = cache_capacity(Size(total, None, f"{total}B"), workload, 4)
    bound = family_of(workload).lower_bound(workload, capacity.elements, False, capacity.memory)
    problem, values = accounting(workload), scratchpad // workload.narrowest_bytes
    into = buffer_lower_bound(problem, values, BufferModel("connected", 6, 1)).bytes if covers_memories(problem) else 0
    for flow in flows:
        assert flow.moved[:4] == moved(flow.parts)[:4]
        assert bound.bytes <= flow.moved.off_chip
        assert into <= flow.moved.into_cores(shared > 0)
        for _, part in flow.parts:
            assert part.fits


def test_small_choices_of_an_ffn_are_walked_whole() -> None:
    ffn, net = Ffn(6, 4, 6, gated=True), "mesh-2x3"
    for shared in (0, 700):
        cores = Cores(6, 90, shared, tuple(arrays_on(net, 6)), True, 1, 1)
        flows = family_of(ffn).dataflows(ffn, cores, Widths.of(ffn, 4), lambda m: (m.off_chip, m.shared + m.hop_bytes))
        assert len(flows) == 10 and flows[0].handover.startswith("on cores")
        for flow in flows:
            for _, part in flow.parts:
                check(part, Topology(net, 6))
            assert flow.moved.off_chip >= ffn.compulsory_bytes
    assert any(flow.handover.startswith("in the shared buffer") for flow in flows)


@pytest.mark.parametrize("net", [None, "mesh-2x3", "all-to-all"])
@pytest.mark.parametrize(
    "workload",
    [
        GroupedGemm((3, 3, 5, 1), 6, 4),
        GroupedGemm((4, 4), 3, 5, accumulate=True),
        GroupedGemm(tuple(range(1, 20)), 3, 2),  # sizes that are alike share their blocks
        LatentAttention(2, 7, 2, 1, heads=2, batch=2),
        Attention(1, 9, 2, heads=2, kv_heads=1),
    ],
)
def test_choices_of_groups_and_of_attention_are_walked_whole(workload: Any, net: str | None) -> None:
    widths = Widths.of(workload, 4)
    for shared in (0, 700):
        arrays = tuple(arrays_on(net or "all-to-all", 6, net is not None, net is not None or shared > 0))
        cores = Cores(6, 90, shared, arrays, net is not None, 1, 1)
        flows = family_of(workload).dataflows(workload, cores, widths, lambda m: (m.work, m.off_chip, m.hop_bytes))
        assert len(flows) >= 2
        for flow in flows:
            played = [check(part, None if net is None else Topology(net, 6)) for _, part in flow.parts]
            assert flow.moved.off_chip >= workload.compulsory_bytes
            done = sum(n * sum(each.work.values()) for (n, _), each in zip(flow.parts, played, strict=True))
            assert done == workload.multiply_adds
            assert sum(n * part.face.share for n, part in flow.parts) == pytest.approx(1)


@pytest.mark.parametrize("net", [None, "mesh-2x3"])
def test_products_side_by_side_are_given_to_arrays_the_longest_first(net: str | None) -> None:
    workload = GroupedGemm((1, 2, 3, 3, 4, 5, 6, 7, 7, 7, 9), 6, 6)
    cores = Cores(
        6, 400, 0, tuple(arrays_on(net or "all-to-all", 6, net is not None, net is not None)), net is not None, 1, 1
    )
    flows = family_of(workload).dataflows(
        workload, cores, Widths.of(workload, 4), lambda m: (m.off_chip, m.hop_bytes, m.work)
    )
    beside = [flow for flow in flows if flow.beside]
    assert beside
    for flow in beside:
        assert flow.detail.startswith(f"{flow.beside} arrays side by side, m=1: ") and "m=3, 2 times: " in flow.detail
        busiest, jobs = [0] * flow.beside, []
        for n, part in flow.parts:
            played = check(part, None if net is None else Topology(net, 6))
            assert len(part.array.cores) == 1 and len(played.work) <= 6 // flow.beside
            jobs += [max(played.work.values())] * n
        for job in sorted(jobs, reverse=True):
            busiest[busiest.index(min(busiest))] += job
        # sides of blocks may not divide a product, and then the formula takes its last for as long as the others
        assert max(busiest) <= flow.moved.work * workload.multiply_adds / 6 <= 1.2 * max(busiest)
        assert flow.moved.share == 1 and flow.moved.work >= 1


def test_sizes_that_are_alike_share_blocks_and_are_walked_whole() -> None:
    workload = GroupedGemm((*range(1, 17), 33, 34, 35), 3, 2)
    cores = Cores(6, 4000, 0, tuple(arrays_on("ring", 6)), True, 1, 1)
    for flow in family_of(workload).dataflows(
        workload, cores, Widths.of(workload, 4), lambda m: m.off_chip + m.hop_bytes
    ):
        blocks = [part.block for _, part in flow.parts[-3:]]
        assert all(part.block[0] <= part.face.p and part.block[1] <= part.face.q for _, part in flow.parts)
        assert len({part.array for _, part in flow.parts[-3:]}) == 1, blocks
        for _, part in flow.parts:
            check(part, Topology("ring", 6))


@pytest.mark.parametrize("stays", ["A", "B", "C"])
def test_layers_that_are_far_apart(stays: str) -> None:
    layered = Array(1, 2, 1, 1, ((0, 1, 2, 3, 4, 5),), 3, 2)
    for begins in (0, 2):
        flow = Dataflow(
            product(stays, (2, 4, 5), begins=begins), Cores(6, 10**6, 0, (layered,), True, 1, 1), layered, (2, 2)
        )
        assert check(flow, Topology("ring", 6)).hops > flow.moved.copied


def test_each_size_of_a_group_may_have_a_dataflow_of_its_own() -> None:
    workload, net = GroupedGemm((1, 40), 12, 12), "mesh-2x3"
    cores = Cores(6, 150, 0, tuple(arrays_on(net, 6)), True, 1, 1)

    def cost(moved: Any) -> Any:
        return moved.off_chip + moved.hop_bytes

    *alike, own = family_of(workload).dataflows(workload, cores, Widths.of(workload, 4), cost)
    assert own.name == "each size its own" and len(alike) == 3
    assert cost(own.moved) < min(cost(flow.moved) for flow in alike)
    assert not own.beside
    one, many = (part.face.stays for _, part in own.parts)
    assert one != many
    assert own.detail.startswith(f"m=1, {one} stays: blocks of ") and f"; m=40, {many} stays: " in own.detail


@pytest.mark.parametrize("net", ["ring", "mesh-4x5", "all-to-all", "cluster-4"])
def test_arrays_are_laid_out_once_and_near(net: str) -> None:
    topology = Topology(net, 20)
    for array in arrays_on(net, 20):
        every = [core for cores in array.cores for core in cores]
        assert len(every) == len(set(every)) <= 20
        for cores in array.cores:
            rows = [cores[i : i + array.cols] for i in range(0, len(cores), array.cols)]
            assert all(topology.hops(a, b) == array.hops_q for row in rows for a, b in pairwise(row))
            down = [pair for i, pair in enumerate(pairwise(rows), 1) if i % array.rows]
            through = list(zip(rows, rows[array.rows :], strict=False))
            for lines, hops in ((down, array.hops_p), (through, array.hops_r)):
                assert all(topology.hops(a, b) == hops for x, y in lines for a, b in zip(x, y, strict=True))


def test_array_of_nothing_shared() -> None:
    alone, pairs = arrays_on("all-to-all", 3, False, False)
    assert alone == Array(1, 1, cores=((0,), (1,), (2,)))
    assert pairs == Array(1, 1, cores=((0, 1),), layers=2)
