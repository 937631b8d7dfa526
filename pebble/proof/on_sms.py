"""Certificates for several SMs: of bounds of workloads, for any split of the work or balanced, and of games."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import Any

from pebble.bounds.accounting import Accounting, bytes_at_least, lower_bound
from pebble.bounds.groupings import Grouping, best_program, groupings
from pebble.bounds.line_search import LineBound
from pebble.bounds.memories import grouped_bound, of_sms
from pebble.bounds.segments import Piece, Segments
from pebble.bounds.splits import TINY, least_over_splits, least_over_whole, least_rate
from pebble.bounds.task_splits import search_order
from pebble.bounds.task_windows import fewest_touched
from pebble.certificate import FORMAT, VERSION, RefusedError
from pebble.certificate.games import read_game
from pebble.certificate.games_on_sms import windows_bound
from pebble.certificate.memories import MAX_SMS, read_memories
from pebble.errors import InputError
from pebble.game import Game
from pebble.game.buffer_model import BufferModel
from pebble.proof.certificate import checked, workload_statement, write_certificate
from pebble.proof.optimum import game_statement, proof_words, write_table
from pebble.proof.states import TooLongError, states_proof
from pebble.solvers.lower import bound_for_several
from pebble.solvers.result import Problem, SolveResult
from pebble.units import ceil_div

_MOST_TASKS = 1000
_LARGEST_WINDOW = 24


def sm_certificate(
    accounting: Accounting, capacity: int, buffers: BufferModel, most: int | None = None
) -> dict[str, Any]:
    """The certificate of what is proved of a workload on several SMs.

    Parameters
    ----------
    accounting : Accounting
        Of a Gemm, Ffn or Attention.
    capacity : int
        S, values that one SM holds, at least 3.
    buffers : BufferModel
        Sm-local or connected, on two SMs at least.
    most : int, optional
        Also what is proved where no SM does more multiply-adds: a second claim.

    Returns
    -------
    dict
        It has passed the checker. Its bounds are those of `buffer_lower_bound`; of a limit on the multiply-adds of an
        SM a few millionths less where the proof would be too long.

    Raises
    ------
    InputError
        One memory, which has certificates of its own.
    NotCertifiedError
        A number could not be proved: report it, it may be wrong.
    """
    if buffers.memories < 2:
        raise InputError(f"--certificate: got buffers {buffers}, expected sm-local or connected, on several SMs.")
    spec = of_sms(accounting)
    limits = (None,) if most is None else (None, most)
    claims = [_sm_claim(spec, capacity, buffers, limit) for limit in limits]
    statement = {"workload": workload_statement(accounting.workload)}
    return checked({"format": FORMAT, "version": VERSION, "statement": statement, "claims": claims})


def _sm_claim(spec: Accounting, capacity: int, buffers: BufferModel, most: int | None) -> dict[str, Any]:
    """One claim, for any split or with a limit on the multiply-adds of an SM."""
    sms = buffers.sms
    single, proof = _as_one(spec, sms * capacity)
    model: dict[str, Any] = {"kind": buffers.kind}
    cases = groupings(buffers.net) if buffers.kind == "connected" else (Grouping(1, (Fraction(0),)),)
    values = [grouped_bound(spec, capacity, sms, case.sms, most, single) for case in cases]
    _, multipliers = best_program(values, cases, buffers.omega)
    used = {case.sms: y for case, y in zip(cases, multipliers, strict=True) if y}
    if buffers.kind == "connected":
        model |= {"omega": str(buffers.omega), "topology": buffers.topology}
    ring = buffers.kind == "connected" and buffers.topology == "ring"
    sizes = sorted(case.sms for case in cases if case.sms < sms and (not ring or case.sms == 1 or case.sms in used))
    arcs = {size: _grouped(spec, capacity, sms, size, most) for size in sizes}
    result = {sms: single, **{size: max(single, elements) for size, (elements, _) in arcs.items()}}
    value = sum((y * result[size] for size, y in used.items()), Fraction(0))
    claim = {
        "claim": "lower bound on SMs",
        "sms": sms,
        "capacity_elements": capacity,
        "buffers": model,
        **({} if most is None else {"most_multiply_adds": most}),
        "elements": floor(value),
        "bytes": floor(spec.workload.narrowest_bytes * value) + bytes_at_least(spec.workload, 0),
        "as_one": proof,
        "groups": [{"sms": size, "proof": proof} for size, (_, proof) in arcs.items()],
    }
    if ring:
        claim["program"] = [{"sms": size, "multiplier": str(y)} for size, y in used.items()]
    return claim


def _grouped(problem: Accounting, capacity: int, sms: int, group: int, most: int | None) -> tuple[int, dict[str, Any]]:
    """What memories of so many SMs each move, and the proof of it that says most: over the reals if that is as much."""
    room, memories, groups = group * capacity, ceil_div(sms, group), problem.groups
    real = _single_memory(problem, room)
    results: list[tuple[int, dict[str, Any]]] = [(groups * real.elements, real.claim())]
    multiply_adds = problem.workload.multiply_adds
    for piece in problem.of(Piece):
        free, form = groups * (piece.initialised - piece.added), {"form": piece.form}
        limit = None
        if most is not None and groups * piece.work == multiply_adds:
            limit = min(multiply_adds, group * most)
        if piece.work <= TINY:
            whole = least_over_whole(piece.box, piece.work, room, memories, limit, groups)
            results.append((whole - free, {"theorem": "segments of whole numbers", **form}))
        wanted = least_over_splits(piece.box, piece.work, room, memories, limit, groups) - free
        if limit is not None and wanted > max(elements for elements, _ in results):
            rate, leaves = least_rate(piece.box, piece.work, room, limit, groups)
            proof = {"theorem": "segments at a rate", **form, "rate": str(rate)}
            results.append((ceil(rate * multiply_adds) - free, proof | {"leaves": [leaf.to_json() for leaf in leaves]}))
    return max(results, key=lambda result: result[0])


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


def game_certificate(
    game: Game,
    capacity: int,
    result: SolveResult,
    most: int | None,
    path: Path,
    seconds: float = 120.0,
    tell: Callable[[str], object] = lambda stage: None,
    missed: Callable[[str], object] = lambda why: None,
) -> dict[str, Any]:
    """Write the certificate of what `pebble solve` found on several SMs: the pebbling, and a proof of the bound.

    The proof is by windows of tasks or, where that says less than was found, by a closed list of states.

    Parameters
    ----------
    game : Game
    capacity : int
        Of each memory.
    result : SolveResult
    most : int or None
        Tasks that an SM may do.
    path : Path
        Where the certificate goes, a list of states beside it.
    seconds : float
        How long to look for such a list.
    tell, missed : callable
        As of `pebble.proof.optimum.solve_certificate`.

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
    if game.allowed:
        memories["allowed"] = [[q for q in range(buffers.sms) if game.may_do(t, q)] for t in range(tasks)]
    statement = {"game": game_statement(game, capacity), "memories": memories}
    largest = min(tasks, _LARGEST_WINDOW)
    touched = list(fewest_touched(game, largest))[1:]
    while len(touched) > 1 and touched[-1] == touched[-2]:  # the last goes on
        touched.pop()
    proof: dict[str, Any] = {"method": "windows", "touched": touched}
    claims: list[dict[str, Any]] = []
    if result.pebbling is not None:
        moves = [move.to_json() for move in result.moves]
        claims.append({"claim": "pebbling", "cost": str(Fraction(result.pebbling.cost)), "moves": moves})
    tell("proving a bound by windows of tasks")
    problem = Problem(game, capacity, 0, buffers, memories["most_tasks"])
    proof, bound = _best_windows(json.loads(json.dumps(statement)), proof, problem)
    wanted = Fraction(result.lower_bound)
    if bound < wanted:
        tell(f"looking for a proof that no pebbling costs less than {float(wanted):g}, for at most {seconds:g} s")
        try:
            checkable = read_game(statement["game"], "game")
            joined = read_memories(memories, tasks, "memories")
            proof, table = states_proof(game, checkable, joined, wanted, time.monotonic() + seconds)
            bound, proof["table"] = wanted, write_table(table, proof.pop("records"), path)
        except (RefusedError, TooLongError) as error:
            missed(getattr(error, "why", str(error)))
    claims.append({"claim": "no cheaper pebbling", "cost": str(bound), "proof": proof})
    document = {"format": FORMAT, "version": VERSION, "statement": statement, "claims": claims}
    tell(f"checking it: {proof_words(document)}")
    checked(document, path.parent)
    write_certificate(document, path)
    return document


def _best_windows(statement: Any, proof: dict[str, Any], problem: Problem) -> tuple[dict[str, Any], Fraction]:
    """The proof that says most, of those that the checker gets through: with splits, and with groups of SMs."""
    game, several, order = problem.game, bound_for_several(problem), search_order(problem.game)
    splits = {
        case.sms: {"weight": weight, "order": order} for case, _, weight in several.groups if weight > game.compulsory
    }
    one: dict[str, Any] = {"split": splits[1]} if 1 in splits else {}
    groups: list[dict[str, Any]] = [{"sms": case.sms, "multiplier": str(y)} for case, y, _ in several.groups if y]
    if problem.buffers.kind == "sm-local" or problem.buffers.net.uniform:  # they say nothing more there
        groups = []
    within = [group | ({"split": splits[size]} if 1 < (size := group["sms"]) in splits else {}) for group in groups]
    tried = [one | {"groups": within}, {"groups": within}, one | {"groups": groups}, one] if groups else [one]
    best, bound = proof, windows_bound(statement, proof)
    for more in tried:
        try:
            value = windows_bound(statement, proof | more)
        except RefusedError:  # all splits are more than the checker tries
            continue
        if value > bound:
            best, bound = proof | more, value
        if more == tried[0]:
            break
    return best, bound
