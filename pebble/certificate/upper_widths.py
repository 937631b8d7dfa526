"""Upper bounds in bytes: the blocks and bands of other schedules, with room and traffic by the width of each value.

What moves, and that the order is legal, is as for values. Room: an input and a complete cell of H take w, a cell of H
whose first products are not all done p_H, a cell of the output p until it is stored for the last time (its width w_o is
no more), softmax state the wider of p and p_H. Traffic: every store of an output but the last is a partial sum, stored
and loaded again at p; the last store is complete. A cell of H that is spilled is complete.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .corner import Corner, read_turn
from .reading import RefusedError, array, equal, fields, integer, tagged
from .schedules import chain_shape, product_of_windows
from .statement import Workload
from .upper import AXES, check_gemm, operand_of
from .upper_apart import check_apart
from .upper_banded import check_banded
from .upper_chain import Shape, check_chain
from .upper_conv import check_conv
from .upper_panels import check_panels
from .widths import Widths, read_widths

_KINDS = ("bands", "panels apart", "kernels", "kernels with row state", "phases")
_NOT_IN_BYTES = {"first", "enter"}
_ANY = 2**200  # room in values: here it is bytes that count


def check_upper_bytes(workload: Workload, claim: dict[str, Any], at: str) -> str:
    """Check one claim of an upper bound in bytes and say it in a sentence."""
    fields(claim, at, ("claim", "widths_bytes", "capacity_bytes", "bytes", "schedule"))
    widths = read_widths(workload, claim["widths_bytes"], f"{at}.widths_bytes")
    capacity = integer(claim["capacity_bytes"], f"{at}.capacity_bytes", 3)
    total = _moved(workload, widths, capacity, claim["schedule"], f"{at}.schedule")
    equal(claim["bytes"], total, f"{at}.bytes", "bytes moved")
    begun = f"a partial sum takes {widths.partial} bytes"
    if workload.family not in ("gemm", "conv2d"):
        begun += f", one of an intermediate {widths.hidden}"
    return f"a schedule of {workload.label} fits in {capacity:,} bytes where {begun} and moves {total:,} bytes"


def _moved(workload: Workload, widths: Widths, capacity: int, schedule: Any, at: str) -> int:
    """Bytes that a schedule moves; refused where it does not fit."""
    if workload.family == "gemm":
        return _product(workload.size, workload.option["accumulate_into"], widths, capacity, schedule, at)
    if workload.family == "conv2d":
        return _convolution(workload, widths, capacity, schedule, at)
    if workload.family not in ("ffn", "attention"):
        raise RefusedError(at, f"no schedule in bytes of a {workload.family} is defined here")
    shape = chain_shape(workload)
    if (kind := tagged(schedule, at, "kind", _KINDS)) == "bands":
        return workload.groups * _chain(shape, widths, capacity, schedule, at)
    if kind == "panels apart":
        moved = check_panels(shape, capacity, schedule, at, (widths.read, widths.hidden, widths.partial))
        inputs = sum(moved.loads[x] for x in "ABDH") + moved.stores["H"]
        return _bytes(widths, inputs, moved.loads["Y"], shape.m * shape.l)
    if kind == "kernels with row state":
        return workload.groups * _with_row_state(workload, shape, widths, capacity, schedule, at)
    if workload.family != "ffn":
        raise RefusedError(at, "two phases and separate kernels in bytes are defined for a network only")
    if kind == "phases":
        return _phases(shape, widths, capacity, schedule, at)
    fields(schedule, at, ("kind", "kernels"))
    first, last = array(schedule["kernels"], f"{at}.kernels", 2, 2)
    inside = Widths(widths.read, widths.hidden, widths.hidden, widths.read)
    up, down = {"m": shape.m, "n": shape.f, "k": shape.k}, {"m": shape.m, "n": shape.l, "k": shape.f}
    if workload.streams == 1:
        total = _product(up, False, inside, capacity, first, f"{at}.kernels[0]")
    else:  # gate and up in one kernel, which stores their product complete
        both = Shape(shape.m, shape.k, shape.f, 0, shape.streams)
        tagged(first, f"{at}.kernels[0]", "kind", ("bands",))
        total = _chain(both, inside, capacity, first, f"{at}.kernels[0]")
    return total + _product(down, False, widths, capacity, last, f"{at}.kernels[1]")


def _with_row_state(
    workload: Workload, shape: Shape, widths: Widths, capacity: int, schedule: dict[str, Any], at: str
) -> int:
    """Bytes that two kernels of attention move, between which the maximum and sum of each row pass.

    Each kernel takes the rows band by band. All of a row's scores are computed, or loaded and used, within its band, so
    its two values are held with at most those of the band's other rows. Each is stored and loaded once, at the wider of
    p and p_H.
    """
    if workload.family != "attention" or shape.sharing:
        raise RefusedError(at, "only attention without a mask has kernels with row state")
    fields(schedule, at, ("kind", "kernels"))
    of_row = 2 * max(widths.hidden, widths.partial)
    inside = Widths(widths.read, widths.hidden, widths.hidden, widths.read)
    sizes = {"m": shape.m, "n": shape.f, "k": shape.k}, {"m": shape.m, "n": shape.l, "k": shape.f}
    told = array(schedule["kernels"], f"{at}.kernels", 2, 2)
    total = 2 * of_row * shape.m
    for number, (size, width, kernel) in enumerate(zip(sizes, (inside, widths), told, strict=True)):
        where = f"{at}.kernels[{number}]"
        tagged(kernel, where, "kind", ("banded",))
        total += _product(size, False, width, capacity, kernel, where)  # refuses bands that are none
        if kernel["axis"] != "m":
            raise RefusedError(f"{where}.axis", "the bands are of rows, whose maximum and sum stay with them")
        rows: int = max(band["width"] for band in kernel["bands"])
        _product(size, False, width, max(0, capacity - of_row * rows), kernel, where)
    return total


def _convolution(workload: Workload, widths: Widths, capacity: int, schedule: Any, at: str) -> int:
    """Bytes that a convolution moves, in tiles or as the product that it is without overlap."""
    if tagged(schedule, at, "kind", ("convolution", "blocks", "banded", "apart")) != "convolution":
        return _product(product_of_windows(workload, at), False, widths, capacity, schedule, at)
    moved = check_conv(workload.size, capacity, schedule, at, (widths.read, widths.partial))
    return _bytes(widths, moved.loads["X"] + moved.loads["W"], 0, moved.stores["Y"])


def _chain(shape: Shape, widths: Widths, capacity: int, schedule: Any, at: str) -> int:
    """Bytes that two products in one kernel move, or gate and up that end in H."""
    moved = check_chain(shape, _ANY, schedule, at)
    for number, run in enumerate(schedule["runs"]):
        if shape.state and run.get("spilled"):
            raise RefusedError(f"{at}.runs[{number}].spilled", "scores before the softmax are wider than this counts")
        for key in _NOT_IN_BYTES & run.keys():  # their room is known in values alone
            raise RefusedError(f"{at}.runs[{number}].{key}", "the room of such a band in bytes is not defined here")
    _fits(_room_of_bands(shape, widths, schedule), capacity, at)
    inputs = sum(moved.loads.get(x, 0) for x in "ABDH") + moved.stores.get("H", 0)
    return _bytes(widths, inputs, moved.loads.get("Y", 0), shape.m * shape.l)


def _phases(shape: Shape, widths: Widths, capacity: int, schedule: dict[str, Any], at: str) -> int:
    """Bytes of a network in two phases: a chain with the first columns of Y that also stores H, and a product.

    The product is that of H and the other columns of D. What is ``handed`` on, [leave, enter], are columns of H of the
    rows of its first block: the last rows of the last panel, where these columns come last and in the product first.
    """
    fields(schedule, at, ("kind", "columns", "first", "rest"), ("handed",))
    columns = integer(schedule["columns"], f"{at}.columns", 0, shape.l - 1)
    along, left = replace(shape, l=columns), {"m": shape.m, "n": shape.l - columns, "k": shape.f}
    tagged(schedule["first"], f"{at}.first", "kind", ("bands",))
    total = _chain(along, widths, capacity, schedule["first"], f"{at}.first")
    for number, run in enumerate(schedule["first"]["runs"]):
        if run.get("spilled"):
            raise RefusedError(f"{at}.first.runs[{number}].spilled", "all of H is stored here")
    total += _product(left, False, widths, capacity, schedule["rest"], f"{at}.rest")
    total += widths.read * shape.m * shape.f if columns else 0  # without Y the chain has counted H
    if "handed" in schedule:
        total -= 2 * widths.read * _handed(along, shape.l - columns, widths, capacity, schedule, at)
    return total


def _handed(along: Shape, left: int, widths: Widths, capacity: int, schedule: dict[str, Any], at: str) -> int:
    """Cells of H that pass from one phase to the other; ``left``: columns of Y in the second."""
    where, runs, rest = f"{at}.handed", schedule["first"]["runs"], schedule["rest"]
    leave, enter = read_turn(schedule["handed"], where, along.k, left, along.f)
    last: dict[str, Any] = runs[-1]
    before: dict[str, Any] = runs[-2] if last["count"] == 1 and len(runs) > 1 else last
    step = 0 if before is last else 1
    panel = schedule["first"]["side"] == "rows" and last["blocks"] > 1 and last["stay"] == [along.k, along.l]
    if not panel or before["kept"][step]:
        raise RefusedError(where, "the last band keeps all of A and Y, and finds nothing that was kept for it")
    if rest["kind"] != "banded" or rest["axis"] != "m" or rest["bands"][0]["stationary"] != "C":
        raise RefusedError(where, "the first block afterwards is not one of rows of Y")
    block: dict[str, Any] = rest["bands"][0]
    if block["blocks"] > 1 or block["width"] > last["extent"]:
        raise RefusedError(where, "the first block afterwards has all columns of Y, and rows of the last band")
    came: int = sum(before["turns"][step][1][1:]) if "turns" in before else 0
    goes: int = sum(block["down" if block["count"] > 1 else "next"][0][1:])
    if max(came, goes) + leave.vectors > along.f:
        raise RefusedError(where, "a block would keep columns for both sides at once")
    w, p, rows = widths.read, widths.partial, block["width"]
    plain = w * rows * leave.plain  # complete columns beside the panel, those of the block's rows
    room = _room_of_band(along, widths, True, last) + plain
    if leave.turned:  # columns of H that are begun come, columns of A go, rows of B are the pivot
        corner = Corner(leave.group, leave.turned, 0)
        panel_holds = last["extent"] * (w * along.k + p * along.l)
        beside = corner.room(last["extent"], 0, along.streams, widths=(w, widths.hidden, w, w))
        room = max(room, panel_holds + plain + beside)
    _fits(max(room, p * rows * left + enter.room(rows, widths=(p, w, w, p))), capacity, where)
    return int(rows * leave.vectors)


def _bytes(widths: Widths, inputs: int, spilled: int, outputs: int) -> int:
    return widths.read * inputs + 2 * widths.partial * spilled + widths.written * outputs


def _fits(room: int, capacity: int, at: str) -> None:
    if room > capacity:
        raise RefusedError(at, f"it holds up to {room:,} bytes, the capacity is {capacity:,}")


def _product(size: dict[str, int], added: bool, widths: Widths, capacity: int, schedule: Any, at: str) -> int:
    """Bytes that one product moves, in equal blocks or in bands."""
    kind = tagged(schedule, at, "kind", ("blocks", "banded", "apart"))
    if kind != "blocks":
        width = {"A": widths.read, "B": widths.read, "C": widths.partial}
        moved = {"banded": check_banded, "apart": check_apart}[kind](size, added, capacity, schedule, at, width)
    else:
        moved = check_gemm(size, added, _ANY, schedule, at)
        _fits(_room_of_blocks(size, widths, schedule), capacity, at)
    outputs = size["m"] * size["n"]
    return _bytes(widths, moved.loads["A"] + moved.loads["B"], moved.stores["C"] - outputs, outputs * (1 + added))


def _room_of_blocks(size: dict[str, int], widths: Widths, schedule: dict[str, Any]) -> int:
    """The most bytes that blocks hold: with one vector and one value of the wider kind, or with vectors that stay."""
    of = {"A": widths.read, "B": widths.read, "C": widths.partial}
    outer, inner, streamed = AXES[schedule["stationary"]]
    extent = dict(zip((outer, inner), schedule["block"], strict=True))
    if schedule["walks_first"] == outer:
        outer, inner = inner, outer
    p, q, s, t = size[outer], size[inner], extent[outer], extent[inner]
    held, side_p, side_q = of[schedule["stationary"]], of[operand_of(outer, streamed)], of[operand_of(inner, streamed)]
    rows = -(-p // s)
    last_height, last_width = p - (rows - 1) * s, q - (-(-q // t) - 1) * t
    most: list[int] = [held * s * t + max(side_p, side_q) * (min(s, t) + 1)]
    for height, kept in zip((s, last_height), schedule["across"], strict=True):
        most.append(held * height * t + side_p * kept * height + side_q if kept else 0)
    # turns after even rows, after odd ones, and the last: in the last column after an even row, in the first after odd
    for width, kept in zip((last_width, t, (last_width, t)[rows % 2]), schedule["down"], strict=True):
        most.append(held * s * width + side_q * kept * width + side_p if kept else 0)
    return max(most)


def _room_of_bands(shape: Shape, widths: Widths, schedule: dict[str, Any]) -> int:
    """The most bytes that bands hold, with what stays for the next counted at its widest."""
    rows_side = schedule["side"] == "rows"
    passing = widths.read if rows_side else max(widths.read, widths.partial)
    rooms = [_room_of_band(shape, widths, rows_side, run) for run in schedule["runs"]]
    most: list[int] = []
    for number, (room, run) in enumerate(zip(rooms, schedule["runs"], strict=True)):
        to_itself, to_next = run["kept"]
        following = rooms[number + 1] if number + 1 < len(rooms) else room
        most += [room + to_itself * passing, max(room, following) + to_next * passing]
        if "turns" in run:  # check_chain has seen that these are panels, all of A and Y
            after = schedule["runs"][min(number + 1, len(rooms) - 1)]
            inside, on = (read_turn(run["turns"][i], "turns", shape.m, shape.m, shape.f) for i in range(2))
            most += [_room_of_turn(shape, widths, run, corner) for corner in (*inside, on[0])]
            most.append(_room_of_turn(shape, widths, after, on[1]))
    return max(most)


def _room_of_turn(shape: Shape, widths: Widths, run: dict[str, Any], corner: Corner) -> int:
    """The most bytes that a panel holds while columns of B and D come to stay or leave: accumulators give way too."""
    k, l, w, p = shape.k, shape.l, widths.read, widths.partial
    panel = w * k + p * l + max(p, widths.hidden) * min(shape.state, 2)
    extent: int = run["extent"]
    return extent * panel + corner.room(k, l, shape.streams, widths=(w, w, widths.hidden, p))


def _room_of_band(shape: Shape, widths: Widths, rows_side: bool, run: dict[str, Any]) -> int:
    k, l, u, w, p, wider = (
        shape.k,
        shape.l,
        shape.streams,
        widths.read,
        widths.partial,
        max(widths.read, widths.partial),
    )
    extent: int = run["extent"]
    blocks: int = run["blocks"]
    spilled: int = run.get("spilled", 0)
    first: int
    second: int
    first, second = run["stay"]
    if spilled:  # A and a column of H, then Y and a column of H, beside the columns that are not spilled
        columns = w * (shape.f - spilled)
        return extent * (columns + max(w * k + widths.hidden * u, p * l + w)) + w
    block = -(-(shape.f if rows_side else shape.m) // blocks)
    rows, cols = (extent, block) if rows_side else (block, extent)
    everything = blocks > 1 and (first, second) == (k, l)
    state = (min(shape.state, 2) if everything else shape.state) * rows * max(p, widths.hidden)
    stays = extent * (w * first + p * second) if rows_side else extent * w * (u * first + second)
    # the block under its first products, with a vector and one value; or complete, under the second
    computed = widths.hidden * u * rows * cols + w * (1 + (0 if everything else min(rows, u * cols)))
    used = w * rows * cols + wider * (1 + (0 if everything else min(rows, cols)))
    return stays + state + max(computed, used if l else 0)
