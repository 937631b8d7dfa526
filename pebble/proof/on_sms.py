"""Certificates for several SMs: of bounds of workloads, any split of the work, and of games."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

from pebble.bounds.accounting import Accounting, bytes_at_least, lower_bound
from pebble.bounds.groupings import Grouping, best_program, groupings
from pebble.bounds.line_search import LineBound
from pebble.bounds.memories import of_sms
from pebble.bounds.segments import Piece, Segments
from pebble.bounds.task_splits import least_split, search_order
from pebble.bounds.task_windows import fewest_touched
from pebble.certificate import FORMAT, VERSION, RefusedError
from pebble.certificate.games_on_sms import MAX_SMS, windows_bound
from pebble.errors import InputError
from pebble.game import Game
from pebble.game.buffer_model import BufferModel
from pebble.proof.certificate import checked, workload_statement, write_certificate
from pebble.proof.optimum import game_statement
from pebble.solvers.result import SolveResult

_MOST_TASKS = 1000
_LARGEST_WINDOW = 24


def sm_certificate(accounting: Accounting, capacity: int, buffers: BufferModel) -> dict[str, Any]:
    """The certificate of what is proved of a workload on several SMs, however its work is split.

    Parameters
    ----------
    given : Accounting
        Of a Gemm, Ffn or Attention.
    capacity : int
        S, values that one SM holds, at least 3.
    buffers : BufferModel
        Sm-local or connected, on two SMs at least.

    Returns
    -------
    dict
        It has passed the checker. Its bound is that of `buffer_lower_bound` for any split, or less where that counts
        whole values: for problems of a few hundred products.

    Raises
    ------
    InputError
        One memory, which has certificates of its own.
    NotCertifiedError
        A number could not be proved: report it, it may be wrong.
    """
    if buffers.memories < 2:
        raise InputError(f"--certificate: got buffers {buffers}, expected sm-local or connected, on several SMs.")
    spec, sms = of_sms(accounting), buffers.sms
    single, proof = _as_one(spec, sms * capacity)
    model: dict[str, Any] = {"kind": buffers.kind}
    cases = groupings(buffers.net) if buffers.kind == "connected" else (Grouping(1, (Fraction(0),)),)
    arcs = {grouping.sms: _single_memory(spec, grouping.sms * capacity) for grouping in cases if grouping.sms < sms}
    result = {sms: single, **{size: max(single, spec.groups * proof.elements) for size, proof in arcs.items()}}
    value, multipliers = best_program([result[grouping.sms] for grouping in cases], cases, buffers.omega)
    used = {grouping.sms: y for grouping, y in zip(cases, multipliers, strict=True) if y}
    if buffers.kind == "connected":
        model |= {"omega": str(buffers.omega), "topology": buffers.topology}
    ring = buffers.kind == "connected" and buffers.topology == "ring"
    best = {size: proof for size, proof in sorted(arcs.items()) if not ring or size == 1 or size in used}
    claim = {
        "claim": "lower bound on SMs",
        "sms": sms,
        "capacity_elements": capacity,
        "buffers": model,
        "elements": floor(value),
        "bytes": floor(spec.workload.narrowest_bytes * value) + bytes_at_least(spec.workload, 0),
        "as_one": proof,
        "groups": [{"sms": size, "proof": proof.claim()} for size, proof in best.items()],
    }
    if ring:
        claim["program"] = [{"sms": size, "multiplier": str(y)} for size, y in used.items()]
    statement = {"workload": workload_statement(accounting.workload)}
    return checked({"format": FORMAT, "version": VERSION, "statement": statement, "claims": [claim]})


def _as_one(problem: Accounting, capacity: int) -> tuple[int, dict[str, Any]]:
    """The bound of one memory, and its proof if the checker takes it with atomic adds, else the best that it does."""
    bound = lower_bound(problem, capacity)
    if isinstance(bound.proof, Segments | LineBound) or bound.proof.claim() == {"theorem": "compulsory"}:
        return bound.elements, bound.proof.claim()
    pieces = [piece.bound(capacity, problem.spilled(capacity)) for piece in problem.of(Piece)]
    best = max(pieces, key=lambda proof: proof.elements)
    return problem.groups * best.elements, best.claim()


def _single_memory(problem: Accounting, capacity: int) -> Segments:
    """The best segment bound over the reals, which are concave."""
    pieces: list[Piece] = [replace(piece, whole_numbers=False) for piece in problem.of(Piece)]
    return max((piece.bound(capacity) for piece in pieces), key=lambda proof: proof.elements)


def game_certificate(game: Game, capacity: int, result: SolveResult, most: int | None, path: Path) -> dict[str, Any]:
    """Write the certificate of what `pebble solve` found on several SMs: the pebbling, and a bound by windows of tasks.

    Parameters
    ----------
    game : Game
    capacity : int
        Of each memory.
    result : SolveResult
    most : int or None
        Tasks that an SM may do.
    path : Path

    Raises
    ------
    InputError
        Memories or a game that the checker does not take, or a file that cannot be written.
    NotCertifiedError
        The checker refuses what was found.
    """
    buffers, tasks = result.buffers, len(game.tasks)
    if buffers.memories < 2 or not tasks:
        raise InputError(f"--certificate: got buffers {buffers}, expected single, sm-local or connected, and a task.")
    if buffers.sms > MAX_SMS or tasks > _MOST_TASKS or game.weighted_partials:
        raise InputError(
            f"--certificate: got {tasks} operations on {buffers.sms} SMs, expected at most {_MOST_TASKS} on {MAX_SMS}, "
            "with partial sums that weigh what they end as."
        )
    memories: dict[str, Any] = {"kind": buffers.kind, "sms": buffers.sms, "most_tasks": min(tasks, most or tasks)}
    if buffers.kind == "connected":
        memories |= {"omega": str(buffers.omega), "topology": buffers.topology}
    statement = {"game": game_statement(game, capacity), "memories": memories}
    largest = min(tasks, _LARGEST_WINDOW)
    touched = list(fewest_touched(game, largest))[1:]
    while len(touched) > 1 and touched[-1] == touched[-2]:  # the last goes on
        touched.pop()
    proof: dict[str, Any] = {"method": "windows", "touched": touched}
    split = least_split(game, buffers.sms, memories["most_tasks"], buffers.copies_pay)
    if game.compulsory < split.weight:
        proof["split"] = {"weight": split.weight, "order": search_order(game)}
    claims: list[dict[str, Any]] = []
    if result.pebbling is not None:
        moves = [move.to_json() for move in result.moves]
        claims.append({"claim": "pebbling", "cost": str(Fraction(result.pebbling.cost)), "moves": moves})
    stated = json.loads(json.dumps(statement))
    try:
        bound = windows_bound(stated, proof)
    except RefusedError:  # all splits are more than the checker tries: without them
        proof.pop("split", None)
        bound = windows_bound(stated, proof)
    claims.append({"claim": "no cheaper pebbling", "cost": str(bound), "proof": proof})
    document = checked({"format": FORMAT, "version": VERSION, "statement": statement, "claims": claims})
    write_certificate(document, path)
    return document
