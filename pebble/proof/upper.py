"""Certificates for upper bounds: the block parameters of an explicit schedule, in the checker's terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pebble.certificate.schedules import moved_by
from pebble.certificate.statement import Workload as Statement
from pebble.certificate.upper_chain import MAX_MASKED_BANDS
from pebble.errors import InputError
from pebble.families.parts import PartSchedule
from pebble.proof.shares import NotCertifiedError
from pebble.schedules.explicit import ExplicitSchedule
from pebble.schedules.explicit.chain import ChainPlan, kept_for_next
from pebble.schedules.explicit.fused import FusedSchedule, Kernel
from pebble.schedules.explicit.wide_chain import WideChainSchedule, WidePlan
from pebble.schedules.explicit.widths import WideGemmSchedule
from pebble.workloads import Ffn


def upper_claim(statement: Statement, schedule: PartSchedule | ExplicitSchedule | FusedSchedule) -> dict[str, Any]:
    """The claim of an upper bound: the schedule's parameters and what it moves.

    Raises
    ------
    NotCertifiedError
        The checker's own count of the traffic is another one.
    """
    parameters: dict[str, Any]
    if isinstance(schedule, PartSchedule):
        claims = []
        for piece, (_, one, _) in zip(statement.pieces, schedule.parts, strict=True):
            if not isinstance(one, ExplicitSchedule | FusedSchedule):
                raise NotCertifiedError(
                    f"certificate: the checker does not know the schedule {one.name!r}; please report it."
                )
            claims.append(upper_claim(piece.workload, one))
        parameters = {"kind": "parts", "parts": [claim["schedule"] for claim in claims]}
    else:
        parameters = _parameters(schedule)
    moved = moved_by(statement, schedule.capacity, parameters, "schedule")
    if not isinstance(schedule, PartSchedule):
        for mine, theirs in ((moved.loads, schedule.loads), (moved.stores, schedule.stores)):
            if {n: x for n, x in mine.items() if x} != {n: x for n, x in theirs.items() if x}:
                raise NotCertifiedError(
                    f"certificate: {schedule.name} announces {_plain(theirs)}, the checker counts {_plain(mine)}; "
                    "one of them has a mistake, please report it."
                )
    return {
        "claim": "upper bound",
        "capacity_elements": schedule.capacity,
        "elements": schedule.elements,
        "bytes": schedule.bytes,
        "moved": {"loads": moved.loads, "stores": moved.stores, "peak_elements": moved.peak},
        "schedule": parameters,
    }


def upper_bytes_claim(schedule: object) -> dict[str, Any] | None:
    """The claim of a schedule in a memory of bytes; None for one that the checker does not know."""
    match schedule:
        case WideGemmSchedule():
            parameters = _blocks(schedule)
        case WideChainSchedule(plan=WidePlan() as plan):
            parameters = _bands(plan.plan)
        case WideChainSchedule(kernels=(first, last)):
            if not isinstance(schedule.workload, Ffn):
                return None
            parameters = {"kind": "kernels", "kernels": [_blocks(first), _blocks(last)]}
        case _:
            return None
    widths = schedule.room.widths
    return {
        "claim": "upper bound in bytes",
        "widths_bytes": {"partial_hidden": widths.hidden, "partial_output": widths.partial},
        "capacity_bytes": schedule.room.bytes,
        "bytes": schedule.bytes,
        "schedule": parameters,
    }


def _plain(moved: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in moved.items())


def _parameters(schedule: ExplicitSchedule | FusedSchedule | ChainPlan | Kernel) -> dict[str, Any]:
    match schedule:
        case ExplicitSchedule():
            return _blocks(schedule)
        case ChainPlan():
            return _bands(schedule)
        case FusedSchedule(plan=ChainPlan() as plan):
            return _bands(plan)
        case FusedSchedule():
            return {"kind": "kernels", "kernels": [_parameters(kernel) for kernel in schedule.kernels]}
    if schedule.name == "softmax":
        row_stays = schedule.peak_elements > 3 or schedule.loads["S"] == schedule.stores["S"]
        return {"kind": "softmax", "row_stays": row_stays}
    return {"kind": "product"}


def _blocks(schedule: ExplicitSchedule | WideGemmSchedule) -> dict[str, Any]:
    nest = schedule.nest
    rows = nest.rows
    steps = nest.cols > 1
    across = [
        nest.kept_across(nest.bp, nest.bq) if steps and rows > 1 else 0,
        nest.kept_across(nest.height(rows - 1), nest.bq) if steps else 0,
    ]
    turns = {0: rows > 2, 1: rows > 3, 2: rows > 1}
    at = {0: 0, 1: 1, 2: rows - 2}
    down = [nest.kept_down(at[i], nest.width(nest.turn_column(at[i]))) if turns[i] else 0 for i in range(3)]
    return {
        "kind": "blocks",
        "stationary": schedule.stationary,
        "block": [schedule.block_p, schedule.block_q],
        "walks_first": schedule.across,
        "across": across,
        "down": down,
    }


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

        def kept(after: Any, band: Any = band, seen: int = seen) -> int:
            return kept_for_next(chain, plan.side, plan.capacity, band, after, seen)

        spilled = {"spilled": band.spilled} if band.spilled else {}
        runs.append(
            {
                "extent": band.extent,
                "count": count,
                "blocks": band.blocks,
                "stay": [band.kept_first, band.kept_second],
                "kept": [
                    kept(band) if count > 1 else 0,
                    kept(listed[number + 1][0]) if number + 1 < len(listed) else 0,
                ],
                **spilled,
            }
        )
    return {"kind": "bands", "side": plan.side, "runs": runs}
