"""Upper bounds: which kernels a schedule runs, and what they move together."""

from __future__ import annotations

from typing import Any

from .reading import RefusedError, array, equal, fields, flag, integer, tagged
from .statement import Workload
from .upper import Moved, check_claim, check_gemm
from .upper_apart import check_apart
from .upper_banded import check_banded
from .upper_chain import Shape, check_chain
from .upper_conv import check_conv
from .upper_panels import check_panels


def check_upper(workload: Workload, claim: dict[str, Any], at: str) -> str:
    """Check one claim of an upper bound and say it in a sentence."""
    fields(claim, at, ("claim", "capacity_elements", "elements", "bytes", "moved", "schedule"))
    capacity = integer(claim["capacity_elements"], f"{at}.capacity_elements", 3)
    moved = moved_by(workload, capacity, claim["schedule"], f"{at}.schedule")
    check_claim(claim["moved"], moved, f"{at}.moved")
    equal(claim["elements"], moved.elements, f"{at}.elements", "elements moved")
    total = sum(n * _width(workload, name) for part in (moved.loads, moved.stores) for name, n in part.items())
    equal(claim["bytes"], total, f"{at}.bytes", "bytes moved")
    return (
        f"a schedule of {workload.label} holds at most {moved.peak:,} values and moves {moved.elements:,} "
        f"elements, {total:,} bytes"
    )


def _width(workload: Workload, name: str) -> int:
    """Bytes of a value of an operand (``part.operand`` where there are parts); intermediates are like inputs."""
    part, _, operand = name.rpartition(".")
    one = next((piece.workload for piece in workload.pieces if piece.name == part), workload)
    return one.operands[operand].width if operand in one.operands else one.in_width


def moved_by(workload: Workload, capacity: int, schedule: Any, at: str) -> Moved:
    """What a schedule moves and holds; parts run one after the other, through slow memory."""
    if workload.family == "conv2d":
        return _convolution(workload, capacity, schedule, at)
    if workload.pieces:
        tagged(schedule, at, "kind", ("parts",))
        fields(schedule, at, ("kind", "parts"))
        told = array(schedule["parts"], f"{at}.parts", len(workload.pieces), len(workload.pieces))
        whole = Moved({}, {}, 0)
        for number, (piece, one) in enumerate(zip(workload.pieces, told, strict=True)):
            moved = moved_by(piece.workload, capacity, one, f"{at}.parts[{number}]")
            times = piece.count // piece.workload.groups  # one schedule moves all groups
            whole = whole.and_then(moved.times(times, f"{piece.name}.{{}}".format))
        return whole
    if workload.family == "gemm":
        return _product(workload.size, workload.option["accumulate_into"], capacity, schedule, at)
    known = {"bands": check_chain, "panels apart": check_panels}
    kind = tagged(schedule, at, "kind", (*known, "kernels", "kernels with row state"))
    if kind == "kernels with row state":
        return _with_row_state(workload, capacity, schedule, at).times(workload.groups)
    if kind != "kernels":
        one = known[kind](chain_shape(workload), capacity, schedule, at)
        return one.times(workload.groups, _names(workload).__getitem__)
    return _kernels(workload, capacity, schedule, at).times(workload.groups)


def _product(size: dict[str, int], accumulate: bool, capacity: int, schedule: Any, at: str) -> Moved:
    """One product, in blocks of one size or in bands."""
    known = {"blocks": check_gemm, "banded": check_banded, "apart": check_apart}
    return known[tagged(schedule, at, "kind", known)](size, accumulate, capacity, schedule, at)


def _convolution(workload: Workload, capacity: int, schedule: Any, at: str) -> Moved:
    """A convolution; without overlap, the product of pixels x taps and taps x channels that it then is."""
    if tagged(schedule, at, "kind", ("convolution", "blocks", "banded", "apart")) == "convolution":
        return check_conv(workload.size, capacity, schedule, at)
    moved = _product(product_of_windows(workload, at), False, capacity, schedule, at)
    return moved.times(1, {"A": "X", "B": "W", "C": "Y"}.__getitem__)


def product_of_windows(workload: Workload, at: str) -> dict[str, int]:
    """The sides of the product that a convolution without overlap is."""
    size = workload.size
    if size["stride"] < size["kernel"]:
        raise RefusedError(at, "windows overlap, so this is not a product of matrices without common values")
    rows, columns = (1 + (size[x] - size["kernel"]) // size["stride"] for x in ("height", "width"))
    taps = size["in_channels"] * size["kernel"] ** 2
    return {"m": size["batch"] * rows * columns, "n": size["out_channels"], "k": taps}


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


def _kind(kernel: Any) -> str | None:
    """What a kernel is; a product is one whatever its blocks."""
    kind = kernel.get("kind") if type(kernel) is dict else None
    return "blocks" if kind in ("banded", "apart") else kind


def _with_row_state(workload: Workload, capacity: int, schedule: Any, at: str) -> Moved:
    """Scores, then outputs, both in bands of rows; the maximum and sum of each row pass from one kernel to the other.

    All of a row's scores are computed, or loaded and used, within its band, so its two values are held with at most
    those of the band's other rows. Each is stored and loaded once.
    """
    shape = chain_shape(workload)
    if workload.family != "attention" or shape.sharing:
        raise RefusedError(at, "only attention without a mask has kernels with row state")
    fields(schedule, at, ("kind", "kernels"))
    sizes = {"m": shape.m, "n": shape.f, "k": shape.k}, {"m": shape.m, "n": shape.l, "k": shape.f}
    names = {"A": "Q", "B": "K", "C": "S"}, {"A": "S", "B": "V", "C": "O"}
    passed = {"row state": 2 * shape.m}
    whole = Moved(dict(passed), dict(passed), 0)
    for number, kernel in enumerate(array(schedule["kernels"], f"{at}.kernels", 2, 2)):
        where = f"{at}.kernels[{number}]"
        tagged(kernel, where, "kind", ("banded",))
        moved = check_banded(sizes[number], False, capacity, kernel, where)  # refuses bands that are none
        if kernel["axis"] != "m":
            raise RefusedError(f"{where}.axis", "the bands are of rows, whose maximum and sum stay with them")
        held = moved.peak + 2 * max(band["width"] for band in kernel["bands"])
        if held > capacity:
            raise RefusedError(where, f"it holds {held:,} values, the capacity is {capacity:,}")
        moved = moved.times(1, names[number].__getitem__)
        whole = whole.and_then(Moved(moved.loads, moved.stores, held))
    return whole


def _kernels(workload: Workload, capacity: int, schedule: Any, at: str) -> Moved:
    """One kernel after the other, the intermediate in slow memory between them."""
    fields(schedule, at, ("kind", "kernels"))
    kernels = array(schedule["kernels"], f"{at}.kernels", 2, 4)
    kinds = tuple(_kind(kernel) for kernel in kernels)
    if workload.family == "attention":
        if workload.option["causal"]:
            raise RefusedError(at, "separate kernels are defined without a mask only")
        wanted: list[tuple[str, ...]] = [("blocks", "softmax", "blocks")]
    elif workload.option["gated"]:
        wanted = [("bands", "blocks"), ("blocks", "blocks", "product", "blocks")]
    else:
        wanted = [("blocks", "blocks")]
    if kinds not in wanted:
        raise RefusedError(f"{at}.kernels", "not the kinds of kernels that compute this workload")
    shape, names = chain_shape(workload), _names(workload)
    cells = shape.m * shape.f
    first = {"m": shape.m, "n": shape.f, "k": shape.k}
    last = {"m": shape.m, "n": shape.l, "k": shape.f}
    whole = Moved(dict.fromkeys((names[x] for x in "ABDYH"), 0), {names["H"]: 0, names["Y"]: 0}, 0)
    for number, kernel in enumerate(kernels):
        where = f"{at}.kernels[{number}]"
        if kinds[number] == "blocks":
            final = number + 1 == len(kernels)
            moved = _product(last if final else first, False, capacity, kernel, where)
            roles = {"A": "H", "B": "D", "C": "Y"} if final else {"A": "A", "B": "B", "C": "H"}
            moved = moved.times(1, lambda name, roles=roles: names[roles[name]])  # type: ignore[misc]
        elif kinds[number] == "bands":  # gate and up in one kernel, which moves neither D nor Y
            both = Shape(shape.m, shape.k, shape.f, 0, shape.streams)
            moved = check_chain(both, capacity, kernel, where).times(1, names.__getitem__)
        else:
            passes, room = 2, 2  # gate and up, one value of each
            if kinds[number] == "softmax":
                fields(kernel, where, ("kind", "row_stays"))
                stays = flag(kernel["row_stays"], f"{where}.row_stays")
                # maximum, sum and the row; or the row twice, value by value
                passes, room = (1, shape.f + 2) if stays else (2, 3)
            else:
                fields(kernel, where, ("kind",))
            moved = Moved({names["H"]: passes * cells}, {names["H"]: cells}, room)
        if moved.peak > capacity:
            raise RefusedError(where, f"it holds {moved.peak:,} values, the capacity is {capacity:,}")
        whole = whole.and_then(moved)
    return whole
