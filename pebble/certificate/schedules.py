"""Upper bounds: which kernels a schedule runs, and what they move together.

A schedule is for a memory of so many values, or of so many bytes. Then an input and a complete cell of an intermediate
H take w, a cell of H whose first products are not all done p_H, a cell of the output p until it is stored for the last
time (its width w_o is no more), softmax state the wider of p and p_H. Traffic in bytes: every store of an output but
the last is a partial sum, stored and loaded again at p; the last store is complete. A cell of H that is spilled is
complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .corner import Corner, read_turn
from .head_groups import check_head_groups
from .reading import RefusedError, array, equal, fields, flag, integer, tagged
from .statement import (
    ALIKE,
    ATTENTION_BACKWARD,
    FFN_BACKWARD,
    GEMM_BACKWARD,
    LATENT,
    SCALED,
    SCALED_FFN,
    ClaimedWidths,
    Workload,
    read_widths,
    with_separate_operands,
)
from .token_bands import check_token_bands
from .upper import ScheduleTraffic, check_banded, check_claim, check_gemm, check_remainder, fits
from .upper_chain import Shape, check_chain, check_panels
from .upper_conv import check_conv

_PRODUCTS = {"blocks": check_gemm, "banded": check_banded, "apart": check_remainder}
TOKEN_BANDS = "token bands"
HEAD_GROUPS = "head groups"
_WITHOUT_SCHEDULES = (GEMM_BACKWARD, FFN_BACKWARD, ATTENTION_BACKWARD, SCALED, SCALED_FFN)
TOKEN_GROUPS = "token groups"
MAX_TOKEN_GROUPS = 16
_FUSED = ("bands", "panels apart", "phases")


@dataclass(frozen=True)
class Memory:
    """How much it holds, and what each value takes of it."""

    size: int
    widths: ClaimedWidths = ALIKE

    @property
    def handing_on(self) -> Memory:
        """The same for a kernel whose result is an intermediate."""
        return replace(self, widths=self.widths.handing_on)


def check_upper(workload: Workload, claim: dict[str, Any], at: str) -> str:
    """Check one claim of an upper bound for a memory of values and say it in a sentence."""
    fields(claim, at, ("claim", "capacity_elements", "elements", "bytes", "moved", "schedule"))
    capacity = integer(claim["capacity_elements"], f"{at}.capacity_elements", 3)
    traffic = traffic_of(workload, Memory(capacity), claim["schedule"], f"{at}.schedule")
    check_claim(claim["moved"], traffic, f"{at}.moved")
    equal(claim["elements"], traffic.elements, f"{at}.elements", "elements moved")
    total = sum(n * _width(workload, name) for part in (traffic.loads, traffic.stores) for name, n in part.items())
    equal(claim["bytes"], total, f"{at}.bytes", "bytes moved")
    return (
        f"a schedule of {workload.label} holds at most {traffic.peak:,} values and moves {traffic.elements:,} "
        f"elements, {total:,} bytes"
    )


def check_upper_bytes(workload: Workload, claim: dict[str, Any], at: str) -> str:
    """Check one claim of an upper bound for a memory of bytes and say it in a sentence."""
    fields(claim, at, ("claim", "widths_bytes", "capacity_bytes", "bytes", "schedule"))
    if workload.pieces and workload.family != "layer":
        raise RefusedError(f"{at}.schedule", f"no such schedule in bytes of a {workload.family} is defined here")
    widths = read_widths(workload, claim["widths_bytes"], f"{at}.widths_bytes")
    capacity = integer(claim["capacity_bytes"], f"{at}.capacity_bytes", 3)
    traffic = traffic_of(workload, Memory(capacity, widths), claim["schedule"], f"{at}.schedule")
    total = traffic_bytes(workload, traffic, widths)
    equal(claim["bytes"], total, f"{at}.bytes", "bytes moved")
    initialised = f"a partial sum takes {widths.partial} bytes"
    if workload.family not in ("gemm", "conv2d"):
        initialised += f", one of an intermediate {widths.hidden}"
    return f"a schedule of {workload.label} fits in {capacity:,} bytes where {initialised} and moves {total:,} bytes"


def traffic_bytes(workload: Workload, traffic: ScheduleTraffic, widths: ClaimedWidths) -> int:
    """Bytes of a schedule's loads and stores, each value at the width that it has then."""
    total = 2 * (widths.hidden - widths.read) * traffic.initialised
    for full in traffic.loads | traffic.stores:
        loads, stores = traffic.loads.get(full, 0), traffic.stores.get(full, 0)
        name = full.removeprefix("mlp.") if workload.family == "layer" else full
        if name in workload.operands and stores:  # an output; those stored more than once were partial sums
            outputs = workload.operands[name].elements
            total += 2 * widths.partial * (stores - outputs) + widths.written * (loads - stores + 2 * outputs)
        else:
            total += (widths.state if name == "row state" else widths.read) * (loads + stores)
    return total


def _width(workload: Workload, name: str) -> int:
    """Bytes of a value of an operand (``part.operand`` where there are parts); intermediates are like inputs."""
    part, _, operand = name.rpartition(".")
    single = next((piece.workload for piece in workload.pieces if piece.name == part), workload)
    return single.operands[operand].width if operand in single.operands else single.in_width


def traffic_of(workload: Workload, memory: Memory, schedule: Any, at: str) -> ScheduleTraffic:
    """What a schedule moves and holds; parts run one after the other, through slow memory."""
    if workload.family in _WITHOUT_SCHEDULES:
        raise RefusedError(at, f"no schedule of a {workload.family} is defined here")
    if workload.family == "conv2d":
        return _convolution(workload, memory, schedule, at)
    if workload.pieces:
        return _of_pieces(workload, memory, schedule, at)
    if workload.family == LATENT:
        return _latent(workload, memory, schedule, at)
    if workload.family == "gemm":
        return _product(workload.size, workload.option["accumulate_into"], memory, schedule, at)
    kind = tagged(schedule, at, "kind", (*_FUSED, "kernels", "kernels with row state", TOKEN_GROUPS))
    if kind == TOKEN_GROUPS:
        return _token_groups(workload, memory, schedule, at)
    if kind in _FUSED:
        if kind == "phases" and workload.family != "ffn":
            raise RefusedError(at, "two phases are defined for a network only")
        known = {"bands": check_chain, "panels apart": check_panels, "phases": check_phases}
        item = known[kind](chain_shape(workload), memory.size, schedule, at, memory.widths)
        return item.times(workload.groups, _names(workload).__getitem__)
    kernels = _with_row_state if kind == "kernels with row state" else _kernels
    return kernels(workload, memory, schedule, at).times(workload.groups)


def _of_pieces(workload: Workload, memory: Memory, schedule: Any, at: str) -> ScheduleTraffic:
    """Of a layer, or of groups of products: parts one after the other; of a layer also what keeps more on chip."""
    last, layer = len(workload.pieces) - 1, workload.family == "layer"

    def of_part(number: int, spec: Any, where: str) -> ScheduleTraffic:
        piece, handed = workload.pieces[number], layer and number < last
        traffic = traffic_of(piece.workload, memory.handing_on if handed else memory, spec, where)
        if handed:  # a result that is stored more than once is an intermediate, incomplete until the last time
            name = "O" if piece.workload.family == "attention" else "C"
            again = traffic.stores[name] - piece.workload.operands[name].elements
            traffic = replace(traffic, initialised=traffic.initialised + again)
        times = piece.count // piece.workload.groups  # one schedule moves all groups
        return traffic.times(times, f"{piece.name}.{{}}".format)

    kind = tagged(schedule, at, "kind", ("parts", TOKEN_BANDS, HEAD_GROUPS) if layer else ("parts",))
    if kind == HEAD_GROUPS:
        return check_head_groups(workload, memory.size, memory.widths, schedule, at, of_part)
    if kind == TOKEN_BANDS:
        bands = check_token_bands(workload, memory.size, memory.widths, schedule, at)
        return bands.and_then(of_part(last, schedule["ffn"], f"{at}.ffn")) if "ffn" in schedule else bands
    fields(schedule, at, ("kind", "parts"))
    whole = ScheduleTraffic({}, {}, 0)
    for number, item in enumerate(array(schedule["parts"], f"{at}.parts", last + 1, last + 1)):
        whole = whole.and_then(of_part(number, item, f"{at}.parts[{number}]"))
    return whole


def _token_groups(workload: Workload, memory: Memory, schedule: Any, at: str) -> ScheduleTraffic:
    """A network whose tokens go in groups, one after the other: each is a network that reads all weights."""
    if workload.family != "ffn":
        raise RefusedError(at, "groups of tokens are defined for a network only")
    fields(schedule, at, ("kind", "groups"))
    whole, tokens = ScheduleTraffic({}, {}, 0), 0
    for number, item in enumerate(array(schedule["groups"], f"{at}.groups", 2, MAX_TOKEN_GROUPS)):
        where = f"{at}.groups[{number}]"
        fields(item, where, ("tokens", "schedule"))
        some = integer(item["tokens"], f"{where}.tokens", 1, workload.size["tokens"])
        if type(item["schedule"]) is dict and item["schedule"].get("kind") == TOKEN_GROUPS:
            raise RefusedError(f"{where}.schedule", "groups of tokens have no groups of their own")
        part = replace(workload, size={**workload.size, "tokens": some})
        whole, tokens = whole.and_then(traffic_of(part, memory, item["schedule"], f"{where}.schedule")), tokens + some
    equal(tokens, workload.size["tokens"], f"{at}.groups", "tokens of all groups together")
    return whole


def _product(size: Mapping[str, int], accumulate: bool, memory: Memory, schedule: Any, at: str) -> ScheduleTraffic:
    """One product, in blocks of one size or in bands."""
    kind = tagged(schedule, at, "kind", tuple(_PRODUCTS))
    return _PRODUCTS[kind](dict(size), accumulate, memory.size, schedule, at, memory.widths)


def _convolution(workload: Workload, memory: Memory, schedule: Any, at: str) -> ScheduleTraffic:
    """A convolution; without overlap, the product of pixels x taps and taps x channels that it then is."""
    if tagged(schedule, at, "kind", ("convolution", *_PRODUCTS)) == "convolution":
        return check_conv(workload.size, memory.size, schedule, at, memory.widths)
    traffic = _product(product_of_windows(workload, at), False, memory, schedule, at)
    return traffic.times(1, {"A": "X", "B": "W", "C": "Y"}.__getitem__)


def product_of_windows(workload: Workload, at: str) -> dict[str, int]:
    """The sides of the product that a convolution without overlap is."""
    size = workload.size
    if size["stride"] < size["kernel"]:
        raise RefusedError(at, "windows overlap, so this is not a product of matrices without common values")
    rows, columns = (1 + (size[x] - size["kernel"]) // size["stride"] for x in ("height", "width"))
    taps = size["in_channels"] * size["kernel"] ** 2
    return {"m": size["batch"] * rows * columns, "n": size["out_channels"], "k": taps}


def _latent(workload: Workload, memory: Memory, schedule: Any, at: str) -> ScheduleTraffic:
    """Latent attention: every vector of KV once a panel of rows, or once in all; or as keys and values apart.

    ``latent panels``: rows of Q and O stay with two values of state each, rows stacked query by query. Key by key, the
    columns of KV that are keys alone pass, each through one place, then the others come and stay until the scores of
    the panel are complete and used. ``latents stay``: all of KV is held; a row of Q passes value by value, its scores
    are summed up and used, and each value of O is made and stored.
    """
    if type(schedule) is not dict or schedule.get("kind") not in ("latent panels", "latents stay"):
        traffic = traffic_of(with_separate_operands(workload), memory, schedule, at)

        def joined(by_name: Mapping[str, int]) -> dict[str, int]:
            values = {"KV": by_name.get("K", 0) + by_name.get("V", 0)} if {"K", "V"} & by_name.keys() else {}
            return {name: count for name, count in by_name.items() if name not in ("K", "V")} | values

        return replace(traffic, loads=joined(traffic.loads), stores=joined(traffic.stores))
    (rows, k, keys, l), of = workload.latent_sides, memory.widths
    seen = keys
    if schedule["kind"] == "latents stay":
        fields(schedule, at, ("kind",))
        scores = max(of.hidden * keys + of.read, of.read * keys + of.partial)
        peak = of.read * keys * k + scores + 2 * of.state
    else:
        fields(schedule, at, ("kind", "rows"))
        panel = integer(schedule["rows"], f"{at}.rows", 1, rows)
        seen = _seen_by_panels(workload, panel)
        peak = panel * (of.read * k + of.partial * l + 2 * of.state + of.hidden) + of.read * l
    fits(peak, memory.size, of, at)
    return ScheduleTraffic({"Q": rows * k, "KV": seen * k}, {"O": rows * l}, peak).times(workload.groups)


def _seen_by_panels(workload: Workload, panel: int) -> int:
    """Keys that the last row of each panel sees, all panels of one sequence."""
    size, rows = workload.size, workload.rows_of_group
    panels = -(-rows // panel)
    if not workload.option["causal"]:
        return panels * size["keys"]
    # panel i < last ends with the query ((i + 1) panel - 1) // heads; the sum of floors, by Euclid's steps
    total, count, a, b, c = 0, panels - 1, panel, panel - 1, size["heads"]
    while count:
        total += count * (count - 1) // 2 * (a // c) + count * (b // c)
        a, b = a % c, b % c
        count, b = divmod(a * count + b, c)
        a, c = c, a
    return panels * (size["keys"] - size["queries"] + 1) + total + size["queries"] - 1


def chain_shape(workload: Workload) -> Shape:
    """An FFN, or one group of attention, as two products in a row."""
    size = workload.size
    if workload.family == "ffn":
        return Shape(size["tokens"], size["d_model"], size["hidden"], size["d_out"], workload.streams)
    strict, sharing = workload.option["strict"], workload.sharing if workload.option["causal"] else 0
    state = 2 if strict else 3  # maximum, sum, and the factor for outputs that come back
    sides = workload.rows_of_group, size["head_dim"], size["keys"], size["value_dim"]
    return Shape(*sides, state=state, whole_rows=strict, one_pass=True, sharing=sharing)


def _names(workload: Workload) -> dict[str, str]:
    """Operands of the chain, and what the workload calls them."""
    if workload.family == "attention":
        return {"A": "Q", "B": "K", "D": "V", "Y": "O", "H": "S"}
    return {"A": "X", "B": "Wg+Wu" if workload.streams == 2 else "W1", "D": "W2", "Y": "Y", "H": "H"}


def _products(shape: Shape) -> tuple[dict[str, int], dict[str, int]]:
    """The sides of both products of a chain."""
    return {"m": shape.m, "n": shape.f, "k": shape.k}, {"m": shape.m, "n": shape.l, "k": shape.f}


def check_phases(shape: Shape, capacity: int, schedule: Any, at: str, widths: ClaimedWidths = ALIKE) -> ScheduleTraffic:
    """A network in two phases: a chain with the first columns of Y that also stores H, and a product.

    The product is that of H and the other columns of D. What is ``handed`` on, [leave, enter], are columns of H of the
    rows of its first block: the last rows of the last panel, where these columns come last and in the product first.
    """
    fields(schedule, at, ("kind", "columns", "first", "rest"), ("handed",))
    columns, cells = integer(schedule["columns"], f"{at}.columns", 0, shape.l - 1), shape.m * shape.f
    along, left = replace(shape, l=columns), {"m": shape.m, "n": shape.l - columns, "k": shape.f}
    tagged(schedule["first"], f"{at}.first", "kind", ("bands",))
    first = check_chain(along, capacity, schedule["first"], f"{at}.first", widths)
    for number, run in enumerate(schedule["first"]["runs"]):
        if run.get("spilled"):
            raise RefusedError(f"{at}.first.runs[{number}].spilled", "all of H is stored here")
    rest = _product(left, False, Memory(capacity, widths), schedule["rest"], f"{at}.rest")
    handed, peak = 0, max(first.peak, rest.peak)
    if "handed" in schedule:
        handed, free_capacity = _handed(along, shape.l - columns, widths, schedule, at)
        fits(free_capacity, capacity, widths, f"{at}.handed")
        peak = max(peak, free_capacity)
    loads = {"D": first.loads["D"] + rest.loads["B"], "H": rest.loads["A"] - handed}
    loads |= {"A": first.loads["A"], "B": first.loads["B"], "Y": first.loads["Y"] + rest.loads["C"]}
    return ScheduleTraffic(loads, {"H": cells - handed, "Y": first.stores["Y"] + rest.stores["C"]}, peak)


def _handed(along: Shape, left: int, widths: ClaimedWidths, schedule: dict[str, Any], at: str) -> tuple[int, int]:
    """Cells of H that pass from one phase to the other, and the room; ``left``: columns of Y in the second."""
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
    w, p, rows, extent = widths.read, widths.partial, block["width"], last["extent"]
    plain, panel_holds = w * rows * leave.plain, extent * sum(along.columns(widths))  # complete columns of its rows
    used = w * extent + widths.wider if along.l else 0
    capacity = panel_holds + plain + max(widths.hidden * along.streams * extent + w, used)
    if leave.turned:  # columns of H that are initialised come, columns of A go, rows of B are the pivot
        corner = Corner(leave.group, leave.turned, 0)
        turned = corner.footprint(extent, 0, along.streams, widths=(w, widths.hidden, w, w))
        capacity = max(capacity, panel_holds + plain + turned)
    return int(rows * leave.vectors), max(capacity, p * rows * left + enter.footprint(rows, widths=(p, w, w, p)))


def _kind(kernel: Any) -> str | None:
    """What a kernel is; a product is one whatever its blocks."""
    kind = kernel.get("kind") if type(kernel) is dict else None
    return "blocks" if kind in ("banded", "apart") else kind


def _with_row_state(workload: Workload, memory: Memory, schedule: Any, at: str) -> ScheduleTraffic:
    """Scores, then outputs, both in bands of rows; the maximum and sum of each row pass from one kernel to the other.

    All of a row's scores are computed, or loaded and used, within its band, so its two values are held with at most
    those of the band's other rows. Each is stored and loaded once.
    """
    shape = chain_shape(workload)
    if workload.family != "attention" or shape.sharing:
        raise RefusedError(at, "only attention without a mask has kernels with row state")
    fields(schedule, at, ("kind", "kernels"))
    names = {"A": "Q", "B": "K", "C": "S"}, {"A": "S", "B": "V", "C": "O"}
    passed = {"row state": 2 * shape.m}
    whole = ScheduleTraffic(dict(passed), dict(passed), 0)
    for number, (kernel, size, own) in enumerate(
        zip(
            array(schedule["kernels"], f"{at}.kernels", 2, 2),
            _products(shape),
            (memory.handing_on, memory),
            strict=True,
        )
    ):
        where = f"{at}.kernels[{number}]"
        tagged(kernel, where, "kind", ("banded",))
        traffic = _product(size, False, own, kernel, where)  # refuses bands that are none
        if kernel["axis"] != "m":
            raise RefusedError(f"{where}.axis", "the bands are of rows, whose maximum and sum stay with them")
        held = traffic.peak + 2 * memory.widths.state * max(band["width"] for band in kernel["bands"])
        fits(held, memory.size, memory.widths, where)
        initialised = 0 if number else traffic.stores["C"] - shape.m * shape.f
        traffic = traffic.times(1, names[number].__getitem__)
        whole = whole.and_then(ScheduleTraffic(traffic.loads, traffic.stores, held, initialised))
    return whole


def _kernels(workload: Workload, memory: Memory, schedule: Any, at: str) -> ScheduleTraffic:
    """One kernel after the other, the intermediate in slow memory between them."""
    fields(schedule, at, ("kind", "kernels"))
    kernels = array(schedule["kernels"], f"{at}.kernels", 2, 4)
    kinds = tuple(_kind(kernel) for kernel in kernels)
    if workload.family == "attention":
        if workload.option["causal"]:
            raise RefusedError(at, "separate kernels are defined without a mask only")
        wanted: list[tuple[str, ...]] = [("blocks", "softmax", "blocks")]
    elif workload.option["gated"]:
        wanted = [("pairs", "blocks"), ("bands", "blocks"), ("blocks", "blocks", "product", "blocks")]
    else:
        wanted = [("blocks", "blocks")]
    if kinds not in wanted:
        raise RefusedError(f"{at}.kernels", "not the kinds of kernels that compute this workload")
    shape, names = chain_shape(workload), _names(workload)
    first, last = _products(shape)
    whole = ScheduleTraffic(dict.fromkeys((names[x] for x in "ABDYH"), 0), {names["H"]: 0, names["Y"]: 0}, 0)
    for number, kernel in enumerate(kernels):
        where, final = f"{at}.kernels[{number}]", number + 1 == len(kernels)
        if kinds[number] == "blocks":
            traffic = _product(last if final else first, False, memory if final else memory.handing_on, kernel, where)
            initialised = 0 if final else traffic.stores["C"] - shape.m * shape.f
            roles = {"A": "H", "B": "D", "C": "Y"} if final else {"A": "A", "B": "B", "C": "H"}
            traffic = replace(traffic, initialised=initialised).times(
                1, {role: names[x] for role, x in roles.items()}.__getitem__
            )
        elif kinds[number] == "pairs":  # gate and up in one kernel; complete cells of H
            traffic = check_banded(first, False, memory.size, kernel, where, memory.widths.handing_on, shape.streams)
            loads = {names[x]: traffic.loads[x] for x in "AB"}
            traffic = ScheduleTraffic(loads, {names["H"]: shape.m * shape.f}, traffic.peak)
        elif kinds[number] == "bands":  # the same, which moves neither D nor Y
            both = Shape(shape.m, shape.k, shape.f, 0, shape.streams)
            traffic = check_chain(both, memory.size, kernel, where, memory.widths.handing_on)
            traffic = traffic.times(1, names.__getitem__)
        else:
            traffic = _between(shape, memory.widths, kernel, where).times(1, names.__getitem__)
            fits(traffic.peak, memory.size, memory.widths, where)
        whole = whole.and_then(traffic)
    return whole


def _between(shape: Shape, widths: ClaimedWidths, kernel: dict[str, Any], at: str) -> ScheduleTraffic:
    """A kernel over the cells of H: a softmax, or the product of gate and up."""
    passes, capacity, w = 2, 2 * widths.read, widths.read  # gate and up, one value of each
    if kernel["kind"] == "softmax":
        fields(kernel, at, ("kind", "row_stays"))
        stays = flag(kernel["row_stays"], f"{at}.row_stays")
        # maximum, sum and the row; or the row twice, value by value
        passes, capacity = (1 if stays else 2), w * (shape.f if stays else 1) + 2 * widths.hidden
    else:
        fields(kernel, at, ("kind",))
    cells = shape.m * shape.f
    return ScheduleTraffic({"H": passes * cells}, {"H": cells}, capacity)
