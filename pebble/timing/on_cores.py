"""A scratchpad machine as schedules see it: its cores in arrays, and how long each of its ways needs for what is moved.

The time is the longest of these, as if all of it overlapped: modelled, from widths that are never exceeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, isqrt, log2

from pebble.errors import InputError
from pebble.game.buffer_model import BufferModel, Topology
from pebble.models.machine import Machine
from pebble.models.rates import peak_dram, peak_operations
from pebble.schedules.explicit.dataflow import Array, Cores, Moved
from pebble.schedules.explicit.dataflow_search import Cost
from pebble.workloads.workload import Workload

TITLES = {"operations": "operations", "off_chip": "off chip", "shared": "shared buffer", "network": "network"}
_NETS = "all-to-all, ring, mesh-RxC or cluster-C"
_MOST_LINES = 64  # arrays in a line beside each other
_MOST_LAYERS = 8  # of an array
_MOST_IDLE = 0.25  # of the cores that an array in a mesh leaves idle
_ALIKE = 0.03  # a time so close to that of operations spread evenly is as good, and bytes decide
_UNEVEN = 0.25  # where the rate of operations is not known, work of the busiest core above the mean that is accepted


def cores_of(machine: Machine, buffers: BufferModel | None = None) -> Cores:
    """What a schedule may use of a machine; ``buffers`` say how many cores, and over which network they copy, if any.

    Raises
    ------
    InputError
        A network that is none of those that arrays are laid out on.
    """
    scratchpad, shared = machine.store_bytes("scratchpad_per_core"), machine.store_bytes("shared_buffer")
    count, net = machine.sms, machine.network
    if buffers is not None:
        count, net = buffers.sms, buffers.topology if buffers.kind == "connected" else ""
    arrays = tuple(arrays_on(net or "all-to-all", count, bool(net), bool(net) or shared > 0))
    return Cores(count, scratchpad, shared, arrays, bool(net))


def arrays_on(net: str, count: int, network: bool = True, sharing: bool = True) -> Iterator[Array]:
    """Arrays of cores to choose from; neighbours are as near as the network lets them be.

    Parameters
    ----------
    net : str
        As `Topology` names it.
    count : int
        Cores.
    network : bool
        Whether cores hand values on; else no hop is counted.
    sharing : bool
        Whether cores share anything, so that arrays pay.
    """
    topology = Topology(net, count)
    every = list(range(count))
    if not sharing:
        for layers in _layers(count):
            yield Array(1, 1, cores=_pieces(every, layers), layers=layers)
    elif net.startswith("mesh-"):
        yield from _in_mesh(*map(int, net.removeprefix("mesh-").split("x")))
    elif net == "ring":
        for rows, cols in _shapes(count):
            pieces = _pieces(every, rows * cols)
            yield Array(rows, cols, min(cols, count - cols) or 1, 1, pieces)
            if rows > 1 and cols > 1:
                turned = tuple(tuple(piece[j * rows + i] for i in range(rows) for j in range(cols)) for piece in pieces)
                yield Array(rows, cols, 1, min(rows, count - rows), turned)
    elif net == "all-to-all" or net.startswith("cluster-"):
        groups = [every[i : i + topology.group] for i in range(0, count, topology.group)]
        hop = int(network)
        for layers in _layers(topology.group) if network else (1,):
            for rows, cols in _shapes(topology.group // layers, _MOST_LINES // layers):
                parts = tuple(piece for group in groups for piece in _pieces(group, rows * cols * layers))
                yield Array(rows, cols, hop, hop, parts, layers, hop if layers > 1 else 0)
    else:
        raise InputError(f"network: got {net!r}, expected {_NETS}, on which schedules are laid out.")


def _pieces(cores: Sequence[int], size: int) -> tuple[tuple[int, ...], ...]:
    """As many of that size as there are, one after the other."""
    return tuple(tuple(cores[i : i + size]) for i in range(0, len(cores) - size + 1, size))


def _layers(count: int) -> list[int]:
    """Numbers of layers that arrays of so many cores may have."""
    return [1 << i for i in range(_MOST_LAYERS.bit_length()) if 1 << i <= min(count, _MOST_LAYERS)]


def _shapes(count: int, most_lines: int = _MOST_LINES) -> list[tuple[int, int]]:
    """Rows and columns of arrays of about that many cores, and lines of fewer."""
    sides = {2**i for i in range(count.bit_length())} | {i for i in range(1, isqrt(count) + 1) if count % i == 0}
    sides |= {isqrt(count), count}
    shapes = {(side, count // side) for side in sides} | {(count // side, side) for side in sides}
    lines = sides | {count // arrays for arrays in range(1, min(count, most_lines) + 1)}
    return sorted(shapes | {(side, 1) for side in lines} | {(1, side) for side in lines})


def _in_mesh(rows: int, cols: int) -> Iterator[Array]:
    """Rectangles, both ways round, as rows and columns or as layers of lines; and lines that wind through the mesh."""
    for a in range(1, rows + 1):
        for b in range(1, cols + 1):
            pieces = [
                [[(top + i) * cols + left + j for j in range(b)] for i in range(a)]
                for top in range(0, rows - a + 1, a)
                for left in range(0, cols - b + 1, b)
            ]
            if len(pieces) * a * b >= (1 - _MOST_IDLE) * rows * cols:
                straight = tuple(tuple(core for row in piece for core in row) for piece in pieces)
                turned = tuple(tuple(piece[i][j] for j in range(b) for i in range(a)) for piece in pieces)
                for line, layers, order in ((b, a, straight), (a, b, turned)):
                    yield Array(layers, line, 1, 1, order)
                    if 1 < layers <= _MOST_LAYERS:
                        yield Array(line, 1, 1, 1, order, layers, 1)
                        yield Array(1, line, 1, 1, order, layers, 1)
    snake = [i * cols + (j if i % 2 == 0 else cols - 1 - j) for i in range(rows) for j in range(cols)]
    for length in {side for shape in _shapes(rows * cols) if 1 in shape for side in shape}:
        pieces_of = tuple(tuple(snake[i : i + length]) for i in range(0, len(snake) - length + 1, length))
        yield Array(length, 1, 1, 1, pieces_of)
        yield Array(1, length, 1, 1, pieces_of)


def seconds_on_cores(machine: Machine, workload: Workload, moved: Moved) -> dict[str, float]:
    """How long each way needs, seconds; those whose width the machine file does not have are left out.

    Work of the busiest core counts as if all cores did as much.
    """
    return _seconds(_rates(machine, workload), workload, moved)


def _rates(machine: Machine, workload: Workload) -> dict[str, float]:
    """Operations and bytes a second, of the ways whose width is known."""
    peak, dram = peak_operations(machine, workload.dtype, "fp32"), peak_dram(machine)
    rates = {
        "operations": None if peak is None else peak.per_second,
        "off_chip": None if dram is None else dram.per_second,
        "shared": _width(machine, "shared_bandwidth"),
        "network": _width(machine, "network_bandwidth"),
    }
    return {name: rate for name, rate in rates.items() if rate is not None}


def _seconds(rates: Mapping[str, float], workload: Workload, moved: Moved) -> dict[str, float]:
    amounts = {
        "operations": moved.work * moved.share * workload.unmasked_flops,
        "off_chip": moved.off_chip,
        "shared": moved.shared,
        "network": moved.hop_bytes,
    }
    return {name: amounts[name] / rate for name, rate in rates.items() if amounts[name] or name == "off_chip"}


def unknown_widths(machine: Machine, workload: Workload) -> tuple[str, ...]:
    """The ways of a machine whose width its file does not have."""
    known = seconds_on_cores(machine, workload, Moved(1, 1, 1, 1, 1.0))
    ways = {"operations": True, "off_chip": True, "network": bool(machine.network)}
    ways["shared"] = bool(machine.store_bytes("shared_buffer"))
    return tuple(TITLES[name] for name, there in ways.items() if there and name not in known)


def _width(machine: Machine, key: str) -> float | None:
    quantity = machine.get(key)
    return None if quantity is None else float(quantity.base)


def unevenness(work: float, accepted: float) -> int:
    """0 where the busiest core has at most so much more than the mean; one more each time that doubles.

    In steps, for what spreads work a little better may move far more.
    """
    return max(0, ceil(log2((work - 1) / accepted))) if work > 1 + accepted else 0


def cost_on_cores(machine: Machine, workload: Workload) -> Cost:
    """What a search makes small: time, then bytes off chip, then the others; where the way off chip has no known width,
    bytes there come first. Where the rate of operations has none, cores must not be left idle to move less.
    """
    off_chip_known = machine.get("dram_bandwidth") is not None
    rates = _rates(machine, workload)  # looked up once, for a search asks for many costs
    even = _seconds(rates, workload, Moved(0, 0, 0, 0, 1.0)).get("operations", 0.0)

    def cost(moved: Moved) -> tuple[float, ...]:
        longest = max(_seconds(rates, workload, moved).values(), default=0.0)
        enough = (0 if even else unevenness(moved.work, _UNEVEN), max(longest, (1 + _ALIKE) * moved.share * even))
        others = (moved.shared + moved.hop_bytes, longest)
        return (*enough, moved.off_chip, *others) if off_chip_known else (moved.off_chip, *enough, *others)

    return cost
