"""Upper bounds: which kernels a schedule runs, and what they move together."""

from __future__ import annotations

from typing import Any

from .reading import RefusedError, array, choice, equal, fields, flag, integer
from .statement import Workload
from .upper import Moved, check_claim, check_gemm
from .upper_chain import Shape, check_chain

# operands of the chain -> the workload's names
_FFN = {"A": "X", "B": "W1", "D": "W2", "Y": "Y", "H": "H"}
_GATED = {**_FFN, "B": "Wg+Wu"}
_ATTENTION = {"A": "Q", "B": "K", "D": "V", "Y": "O"}


def check_upper(workload: Workload, claim: dict[str, Any], at: str) -> str:
    """Check one claim of an upper bound and say it in a sentence.

    Raises
    ------
    RefusedError
        The first step that fails.
    """
    fields(claim, at, ("claim", "capacity_elements", "elements", "bytes", "moved", "schedule"))
    capacity = integer(claim["capacity_elements"], f"{at}.capacity_elements", 3)
    if workload.family == "conv2d":
        raise RefusedError(at, "no schedule of a convolution is defined here")
    moved = _moved(workload, capacity, claim["schedule"], f"{at}.schedule")
    check_claim(claim["moved"], moved, f"{at}.moved")
    equal(claim["elements"], moved.elements, f"{at}.elements", "elements moved")
    total = 0
    for part in (moved.loads, moved.stores):
        for name, number in part.items():
            operand = workload.operands.get(name)
            total += number * (operand.width if operand is not None else workload.in_width)
    equal(claim["bytes"], total, f"{at}.bytes", "bytes moved")
    return (
        f"a schedule of {workload.label} holds at most {moved.peak:,} values and moves {moved.elements:,} "
        f"elements, {total:,} bytes"
    )


def _moved(workload: Workload, capacity: int, schedule: Any, at: str) -> Moved:
    if type(schedule) is not dict:
        raise RefusedError(at, "expected an object")
    if workload.family == "gemm":
        choice(schedule.get("kind"), f"{at}.kind", ("blocks",))
        return check_gemm(workload.size, workload.option["accumulate_into"], capacity, schedule, at)
    if choice(schedule.get("kind"), f"{at}.kind", ("bands", "kernels")) == "bands":
        one = _named(workload, check_chain(chain_shape(workload), capacity, schedule, at))
    else:
        one = _kernels(workload, capacity, schedule, at)
    groups = workload.groups
    return Moved(
        {name: groups * n for name, n in one.loads.items()},
        {name: groups * n for name, n in one.stores.items()},
        one.peak,
    )


def chain_shape(workload: Workload) -> Shape:
    """An FFN, or one group of attention, as two products in a row."""
    size = workload.size
    if workload.family == "ffn":
        streams = 2 if workload.option["gated"] else 1
        return Shape(size["tokens"], size["d_model"], size["hidden"], size["d_out"], streams)
    strict = workload.option["strict"]
    return Shape(
        workload.rows,
        size["head_dim"],
        size["keys"],
        size["value_dim"],
        state=2 if strict else 3,  # maximum, sum, and the factor for outputs that come back
        whole_rows=strict,
        one_pass=True,
        sharing=workload.sharing if workload.option["causal"] else 0,
    )


def _names(workload: Workload) -> dict[str, str]:
    if workload.family == "attention":
        return _ATTENTION
    return _GATED if workload.option["gated"] else _FFN


def _named(workload: Workload, moved: Moved) -> Moved:
    names = _names(workload)
    loads = {names[name]: n for name, n in moved.loads.items()}
    return Moved(loads, {names[name]: n for name, n in moved.stores.items()}, moved.peak)


def _kernels(workload: Workload, capacity: int, schedule: Any, at: str) -> Moved:
    """One kernel after the other, the intermediate in slow memory between them."""
    fields(schedule, at, ("kind", "kernels"))
    kernels = array(schedule["kernels"], f"{at}.kernels", 2, 4)
    kinds = tuple(k.get("kind") if type(k) is dict else None for k in kernels)
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
    middle = "S" if workload.family == "attention" else "H"
    first = {"m": shape.m, "n": shape.f, "k": shape.k}
    last = {"m": shape.m, "n": shape.l, "k": shape.f}
    loads: dict[str, int] = dict.fromkeys((*(names[x] for x in "ABDY"), middle), 0)
    stores = {middle: 0, names["Y"]: 0}
    peak = 0
    for number, kernel in enumerate(kernels):
        where = f"{at}.kernels[{number}]"
        if kinds[number] == "blocks":
            final = number + 1 == len(kernels)
            moved = check_gemm(last if final else first, False, capacity, kernel, where)
            roles = (middle, names["D"], names["Y"]) if final else (names["A"], names["B"], middle)
            for role, name in zip(roles, "ABC", strict=True):
                loads[role] += moved.loads[name]
            stores[roles[2]] += moved.stores["C"]
        elif kinds[number] == "bands":  # gate and up in one kernel
            both = Shape(shape.m, shape.k, shape.f, 0, shape.streams)
            moved = check_chain(both, capacity, kernel, where)
            loads[names["A"]] += moved.loads["A"]
            loads[names["B"]] += moved.loads["B"]
            stores[middle] += moved.stores["H"]
        else:
            passes, room = 2, 2  # gate and up, one value of each
            if kinds[number] == "softmax":
                fields(kernel, where, ("kind", "row_stays"))
                stays = flag(kernel["row_stays"], f"{where}.row_stays")
                # maximum, sum and the row; or the row twice, value by value
                passes, room = (1, shape.f + 2) if stays else (2, 3)
            else:
                fields(kernel, where, ("kind",))
            loads[middle] += passes * cells
            stores[middle] += cells
            moved = Moved({}, {}, room)
        if moved.peak > capacity:
            raise RefusedError(where, f"it holds {moved.peak:,} values, the capacity is {capacity:,}")
        peak = max(peak, moved.peak)
    return Moved(loads, stores, peak)
