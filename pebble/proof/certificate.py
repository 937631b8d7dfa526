"""Whole certificates: a statement and claims about it, checked before they are handed out; an explicit schedule is
claimed by the parameters of its blocks, in the checker's terms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from pebble.bounds import LowerBound, NotCertifiedError
from pebble.certificate import FORMAT, VERSION, RefusedError, check
from pebble.certificate.schedules import HEAD_GROUPS, TOKEN_BANDS, TOKEN_GROUPS, Memory, traffic_of
from pebble.certificate.statement import Workload as Statement
from pebble.certificate.statement import read_workload
from pebble.certificate.upper_chain import MAX_MASKED_BANDS
from pebble.errors import InputError
from pebble.families.schedules import Explicit, PartSchedule
from pebble.schedules.explicit import ExplicitProduct
from pebble.schedules.explicit.after_heads import Kernels, Projection, Then
from pebble.schedules.explicit.attention import FAMILY as ROW_STATE
from pebble.schedules.explicit.blocked import BlockedProduct
from pebble.schedules.explicit.chain import NOTHING, ChainPlan, handed_on
from pebble.schedules.explicit.conv2d import ConvProduct, ConvSchedule
from pebble.schedules.explicit.corner import Corner
from pebble.schedules.explicit.fused import FusedSchedule, Kernel
from pebble.schedules.explicit.gemm import BandedProduct, GateAndUp
from pebble.schedules.explicit.head_groups import HeadGroups
from pebble.schedules.explicit.latent import LatentSchedule
from pebble.schedules.explicit.phases import Phases
from pebble.schedules.explicit.remainder import BandsWithRemainder, PanelsWithRemainder
from pebble.schedules.explicit.token_bands import TokenBands
from pebble.system.files import check_path, write_text
from pebble.workloads.widths import ALIKE
from pebble.workloads.workload import Workload

_DERIVED = {"name", "flops", "compulsory_elements", "compulsory_bytes"}


class Answer(Protocol):
    """What is proved and known of a workload: what a certificate and a proof are written of."""

    @property
    def lower(self) -> LowerBound: ...
    @property
    def separate(self) -> LowerBound | None: ...
    @property
    def upper(self) -> Explicit | None: ...


def workload_statement(workload: Workload) -> dict[str, Any]:
    """What certificates say of a workload: what determines it, no more."""
    return {key: value for key, value in workload.to_json().items() if key not in _DERIVED}


def bound_certificate(workload: Workload, result: Answer) -> dict[str, Any]:
    """The certificate of what `pebble bound` says of a workload.

    Parameters
    ----------
    workload : Workload
    result : Answer
        Its lower bound, its best schedule if there is one, and the bound for separate kernels if there is one.

    Raises
    ------
    NotCertifiedError
        A number could not be proved: report it, it may be wrong.
    InputError
        A schedule that is too long to write.

    Notes
    -----
    Some milliseconds. The certificate has passed the checker.
    """
    spec = workload_statement(workload)
    separate = () if result.separate is None or result.separate.recompute else (result.separate,)  # none is checked
    bounds = [result.lower, *separate]
    claims = [claim for bound in bounds for claim in bound.proof.claims(bound)]
    if result.upper is not None and (claim := upper_claim(read_workload(spec, "workload"), result.upper)) is not None:
        claims.append(claim)
    return checked({"format": FORMAT, "version": VERSION, "statement": {"workload": spec}, "claims": claims})


def checked(document: dict[str, Any], folder: Path | None = None) -> dict[str, Any]:
    """The certificate itself, if the checker accepts it."""
    try:
        check(json.loads(json.dumps(document)), folder)
    except RefusedError as error:
        raise NotCertifiedError(
            f"certificate: the checker refuses what was found at {error.step}: {error.why}; please report it."
        ) from None
    return document


def write_certificate(document: dict[str, Any], path: str | Path) -> None:
    """Write a certificate as JSON.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    check_path("--certificate", path)
    write_text(path, json.dumps(document, indent=1) + "\n", "--certificate: ")


def upper_claim(statement: Statement, schedule: Explicit) -> dict[str, Any] | None:
    """The claim of an upper bound: the schedule's parameters and what it moves; None for one that no checker knows.

    Raises
    ------
    NotCertifiedError
        The checker's own count of the traffic is another one.
    """
    parameters = _of_parts(statement, schedule) if isinstance(schedule, PartSchedule) else _parameters(schedule)
    if parameters is None:
        return None
    memory = schedule.memory
    if memory.widths != ALIKE:
        if isinstance(schedule, PartSchedule) and statement.family != "layer":
            return None
        return {
            "claim": "upper bound in bytes",
            "widths_bytes": {"partial_hidden": memory.widths.hidden, "partial_output": memory.widths.partial},
            "capacity_bytes": memory.bytes,
            "bytes": schedule.bytes,
            "schedule": parameters,
        }
    traffic = traffic_of(statement, Memory(memory.bytes), parameters, "schedule")
    for mine, theirs in ((traffic.loads, schedule.loads), (traffic.stores, schedule.stores)):
        if {n: x for n, x in mine.items() if x} != {n: x for n, x in theirs.items() if x}:
            raise NotCertifiedError(
                f"certificate: {schedule.name} announces {_plain(theirs)}, the checker counts {_plain(mine)}; "
                "one of them has a mistake, please report it."
            )
    return {
        "claim": "upper bound",
        "capacity_elements": memory.bytes,
        "elements": schedule.elements,
        "bytes": schedule.bytes,
        "moved": {"loads": traffic.loads, "stores": traffic.stores, "peak_elements": traffic.peak},
        "schedule": parameters,
    }


def _of_parts(statement: Statement, schedule: PartSchedule) -> dict[str, Any] | None:
    parts = [_parameters(item) for _, item, _ in schedule.parts]
    if len(parts) != len(statement.pieces) or None in parts:
        return None
    return {"kind": "parts", "parts": parts}


def _tiles(schedule: ConvSchedule) -> dict[str, Any]:
    tile = [schedule.images, schedule.rows, schedule.columns, schedule.channels]
    more = {"passing": asdict(schedule.passing)} if schedule.passing.channels else {}
    return {"kind": "convolution", "stays": schedule.stays, "tile": tile, "kept": schedule.carried, **more}


def _remainder(schedule: BandsWithRemainder) -> dict[str, Any]:
    fields = {"stationary": schedule.stationary, "axis": schedule.axis, "bands": schedule.count}
    return {"kind": "apart", **fields, "corner": list(schedule.corner)}


def _plain(traffic: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in traffic.items())


def _parameters(schedule: Explicit | ExplicitProduct | ChainPlan | Kernel) -> dict[str, Any] | None:
    """A schedule in the checker's terms; None for one that it does not know."""
    match schedule:
        case GateAndUp():
            return {**_banded(schedule), "kind": "pairs"}
        case BandedProduct():
            return _banded(schedule)
        case BlockedProduct():
            return _blocks(schedule)
        case BandsWithRemainder():
            return _remainder(schedule)
        case ConvProduct():
            return _parameters(schedule.product)
        case ConvSchedule():
            return _tiles(schedule)
        case ChainPlan():
            return _bands(schedule)
        case FusedSchedule(plan=ChainPlan() | PanelsWithRemainder() | Phases() as plan):
            return _plan(plan)
        case FusedSchedule(groups=(_, *_)):
            groups = [{"tokens": tokens, "schedule": _parameters(group)} for tokens, group in schedule.groups]
            return {"kind": TOKEN_GROUPS, "groups": groups}
        case FusedSchedule():
            kind = "kernels with row state" if schedule.family == ROW_STATE else "kernels"
            return {"kind": kind, "kernels": [_parameters(kernel) for kernel in schedule.kernels]}
        case LatentSchedule(separate=FusedSchedule() as separate):
            return _parameters(separate)
        case LatentSchedule(rows=rows):
            return {"kind": "latent panels", "rows": rows} if rows else {"kind": "latents stay"}
        case TokenBands():
            fields = {"rows": schedule.rows, "kept": schedule.kept, "weights_stay": schedule.weights_stay}
            return {"kind": TOKEN_BANDS, **fields, **({"ffn": _parameters(schedule.ffn)} if schedule.ffn else {})}
        case HeadGroups():
            front, columns = schedule.front.to_json(), schedule.columns_stay
            return {"kind": HEAD_GROUPS, **front, "columns_stay": columns, **_afterwards(schedule.then)}
        case Kernel(name="softmax"):
            return {"kind": "softmax", "row_stays": schedule.row_stays}
        case Kernel():
            return {"kind": "product"}
    return None


def _afterwards(then: Then) -> dict[str, Any]:
    """What follows groups of heads, in the checker's terms."""
    match then:
        case Kernels():
            return {"o": _parameters(then.projection), "mlp": _parameters(then.ffn)}
        case Projection():
            return {"handed": then.handed, "mlp": _parameters(then.ffn)}
    return {"rows": then.rows, "weights_stay": then.weights_stay}


def _blocks(schedule: BlockedProduct) -> dict[str, Any]:
    nest = schedule.nest
    rows = nest.rows
    steps = nest.cols > 1
    across = [
        nest.carried_across(nest.bp, nest.bq) if steps and rows > 1 else 0,
        nest.carried_across(nest.height(rows - 1), nest.bq) if steps else 0,
    ]
    turns = {0: rows > 2, 1: rows > 3, 2: rows > 1}
    at = {0: 0, 1: 1, 2: rows - 2}
    down = [nest.carried_down(at[i], nest.width(nest.turn_column(at[i]))) if turns[i] else 0 for i in range(3)]
    return {
        "kind": "blocks",
        "stationary": schedule.stationary,
        "block": [schedule.block_p, schedule.block_q],
        "walks_first": schedule.across,
        "across": across,
        "down": down,
    }


def _corner(corner: Corner) -> list[int]:
    return [corner.group, corner.turned, corner.plain]


def _banded(schedule: BandedProduct) -> dict[str, Any]:
    return {
        "kind": "banded",
        "axis": schedule.axis,
        "bands": [
            {
                "stationary": band.stationary,
                "width": band.width,
                "count": band.count,
                "blocks": band.blocks,
                "across": _corner(steps.across),
                "down": [_corner(element) for element in steps.down],
                "next": [_corner(item) for item in steps.next],
            }
            for band, steps in zip(schedule.bands, schedule.steps, strict=True)
        ],
    }


def _plan(plan: ChainPlan | PanelsWithRemainder | Phases) -> dict[str, Any]:
    if isinstance(plan, Phases):
        handed = [_corner(plan.handed.leave), _corner(plan.handed.enter)]
        more: dict[str, Any] = {"handed": handed} if plan.handed.cells else {}
        fields = {"columns": plan.columns, "first": _bands(plan.first), "rest": _parameters(plan.rest)}
        return {"kind": "phases", **fields, **more}
    if isinstance(plan, PanelsWithRemainder):
        return {"kind": "panels apart", "side": plan.side, "panels": plan.panels, "corner": list(plan.corner)}
    return _bands(plan)


def _bands(plan: ChainPlan) -> dict[str, Any]:
    chain = plan.chain
    runs: list[dict[str, Any]] = []
    # with a mask each band sees other columns, so each is written on its own
    bands = sum(count for _, count in plan.runs)
    if chain.masked and bands > MAX_MASKED_BANDS:
        raise InputError(
            f"--certificate: the schedule has {bands:,} bands to write, expected at most {MAX_MASKED_BANDS:,}; "
            "use a larger memory or a smaller problem."
        )
    listed = [(band, 1) for band in plan.bands] if chain.masked else list(plan.runs)
    done = 0
    for number, (band, count) in enumerate(listed):
        done += band.extent * count
        seen = chain.seen(done) if plan.side == "rows" else chain.f

        after = listed[number + 1][0] if number + 1 < len(listed) else None
        handed = [
            handed_on(chain, plan.side, plan.memory, band, other, seen) if other else NOTHING
            for other in (band if count > 1 else None, after)
        ]
        more: dict[str, Any] = {"spilled": band.spilled} if band.spilled else {}
        if band.wider:
            more["first"] = band.wider
        if band.enter.vectors:
            more["enter"] = _corner(band.enter)
        if band.leave.group not in (0, band.enter.group):
            more["leave"] = _corner(band.leave)
        if any(each_item.leave.vectors for each_item in handed):
            more["turns"] = [[_corner(item.leave), _corner(item.enter)] for item in handed]
        runs.append(
            {
                "extent": band.extent,
                "count": count,
                "blocks": band.blocks,
                "stay": [band.carried_first, band.carried_second],
                "kept": [0 if element.leave.vectors else element.values for element in handed],
                **more,
            }
        )
    return {"kind": "bands", "side": plan.side, "runs": runs}
