"""Certificates for small games: the pebbling that a solver found, and a proof that none is cheaper."""

from __future__ import annotations

import hashlib
import re
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pebble.certificate import FORMAT, VERSION
from pebble.certificate.games import Game as CheckedGame
from pebble.certificate.games import read_game
from pebble.certificate.memories import Memories
from pebble.certificate.positions import MAGIC as POSITIONS_MAGIC
from pebble.certificate.positions import MAX_POSITIONS, Moves, Position
from pebble.certificate.reading import RefusedError
from pebble.errors import InputError
from pebble.game import Game
from pebble.proof.certificate import checked, write_certificate
from pebble.proof.refutation import potential_proof, refute, segments_proof
from pebble.proof.states import TooLongError, states_proof
from pebble.solvers.result import SolveResult
from pebble.solvers.several.symmetry import task_orbits
from pebble.system.files import write_bytes, write_text
from pebble.units import ceil_div

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # the checker opens no other beside a certificate
_MOST_LETTERS = 60


def game_statement(game: Game, capacity: int) -> dict[str, Any]:
    """The game as plain data, in the checker's terms."""
    roles = {
        (True, True): "input and output",
        (True, False): "input",
        (False, True): "output",
        (False, False): "between",
    }
    values = [
        [name, weight, roles[blue, out]]
        for name, weight, blue, out in zip(game.names, game.weights, game.is_input, game.is_output, strict=True)
    ]
    tasks = [[t.name, t.target, list(t.operands), list(t.after)] for t in game.tasks]
    return {"variant": str(game.variant), "capacity": capacity, "values": values, "tasks": tasks}


def solve_certificate(
    game: Game,
    capacity: int,
    result: SolveResult,
    path: Path,
    seconds: float = 120.0,
    log: bool = False,
    tell: Callable[[str], object] = lambda stage: None,
    missed: Callable[[str], object] = lambda why: None,
) -> dict[str, Any]:
    """Write the certificate of what `pebble solve` found; a table goes into a file beside it.

    Parameters
    ----------
    game : Game
    capacity : int
    result : SolveResult
        Its pebbling, and its lower bound, for which a proof is looked for.
    path : Path
        Where the certificate goes.
    seconds : float
        How long to look for a proof; what is proved by then is written.
    log : bool
        Prove it by a log of cutting planes (``.pbp`` beside the certificate) that refutes a formula (``.opb``), for
        checkers of others.
    tell : callable
        Called with what begins: the search for the proof, then the check of what was found.
    missed : callable
        Called with why there is no proof of the whole bound, where there is none.

    Returns
    -------
    dict
        The certificate. Its lower bound is the solver's, or the best that could be proved here.

    Raises
    ------
    NotCertifiedError
        The checker refuses what was found.
    GapOpenError
        A log was asked for, and none was found in time.
    InputError
        A game that the checker does not take, or a file that cannot be written.
    """
    if game.weighted_partials:
        raise InputError("--certificate: got partial sums of a weight of their own, expected one for each value.")
    statement = game_statement(game, capacity)
    try:
        checkable = read_game(statement, "game")
    except RefusedError as error:
        raise InputError(f"--certificate: the checker does not take this game: {error.step}: {error.why}.") from None
    claims: list[dict[str, Any]] = []
    if result.pebbling is not None:
        moves = [move.to_json() for move in result.moves]
        claims.append({"claim": "pebbling", "cost": result.pebbling.cost, "moves": moves})
    wanted = int(result.lower_bound)
    if log:
        claims.append(_logged(game, checkable, wanted, path, seconds, tell))
    else:
        tell(f"looking for a proof that no pebbling costs less than {wanted}, for at most {seconds:g} s")
        claims.append(_lower(game, checkable, wanted, path, (time.monotonic() + seconds, missed)))
    document = {"format": FORMAT, "version": VERSION, "statement": {"game": statement}, "claims": claims}
    tell(f"checking it: {proof_words(document)}")
    checked(document, path.parent)
    write_certificate(document, path)
    return document


def proof_words(document: dict[str, Any]) -> str:
    """By what a certificate proves its lower bound, and how long that proof is."""
    proof = document["claims"][-1]["proof"]
    entries = proof.get("table", proof).get("records")
    return f"{proof['method']}, a list of {entries:,} entries" if entries else str(proof["method"])


def _lower(
    game: Game, checkable: CheckedGame, wanted: int, path: Path, search: tuple[float, Callable[[str], object]]
) -> dict[str, Any]:
    """The claim that says most; ``search``: until when to look for a proof, and what is told why there is none."""
    until, missed = search
    best: tuple[int, dict[str, Any], bytes | None] = (checkable.compulsory, {"method": "compulsory"}, None)
    try:
        if best[0] >= wanted:
            pass
        elif game.variant == "one-shot":
            best = max(best, positions_proof(checkable, wanted, until) or best, key=_proved)
        elif game.variant == "in-place":
            best = max(best, segments_proof(game, checkable) or best, key=_proved)
            if best[0] < wanted:
                best = max(best, potential_proof(game, checkable, until) or best, key=_proved)
    except RefusedError:
        pass  # the checker has no such proofs of a game like this
    if best[0] < wanted:
        try:
            memory = Memories(1, None, "", len(checkable.tasks))
            best = (wanted, *states_proof(game, checkable, memory, wanted, until))
        except (RefusedError, TooLongError) as error:
            missed(getattr(error, "why", str(error)))
    cost, proof, table = best
    if table is not None:
        proof["table"] = write_table(table, proof.pop("records"), path)
    return {"claim": "no cheaper pebbling", "cost": cost, "proof": proof}


def _proved(proof: tuple[int, dict[str, Any], bytes | None]) -> int:
    return proof[0]


def _logged(
    game: Game, checkable: CheckedGame, cost: int, path: Path, seconds: float, tell: Callable[[str], object]
) -> dict[str, Any]:
    first, symmetries = task_orbits(game)
    formula, log = refute(checkable, cost, list(first), seconds, tell)
    proof: dict[str, Any] = {
        "method": "cutting planes",
        "first": list(first),
        "symmetries": [list(s) for s in symmetries],
    }
    for key, suffix, text in (("formula", ".opb", formula.opb()), ("log", ".pbp", log)):
        name = _name_alternative(path, suffix)
        write_text(path.with_name(name), text, "--proof-log: ")
        proof[key] = {"file": name, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    return {"claim": "no cheaper pebbling", "cost": cost, "proof": proof}


def _name_alternative(path: Path, suffix: str) -> str:
    """A file's name beside a certificate: the certificate's where the checker opens such a name, else one it opens."""
    name = path.stem + suffix
    if _PLAIN_NAME.fullmatch(name) and name != path.name:
        return name
    letters = re.sub(r"[^A-Za-z0-9-]+", "-", path.stem[:_MOST_LETTERS]).strip("-")
    distinguished = hashlib.sha256(path.name.encode(errors="surrogateescape")).hexdigest()[:12]
    return f"{letters or 'certificate'}-{distinguished}{suffix}"


def write_table(table: bytes, count: int, path: Path) -> dict[str, Any]:
    """Write the table of a proof beside a certificate, packed, and say where it is."""
    packed = zlib.compress(table, 9)
    name = _name_alternative(path, ".table")
    write_bytes(path.with_name(name), packed, "--certificate: ")
    return {"file": name, "sha256": hashlib.sha256(packed).hexdigest(), "records": count}


def positions_proof(game: CheckedGame, cost: int, until: float) -> tuple[int, dict[str, Any], bytes] | None:
    """All positions that could lead to less than a cost, as a closed list; None when there is no time for it."""
    moves = Moves(game)
    limit = cost - game.compulsory
    start = moves.settle((0, 0, 0))
    best: dict[Position, int] = {}
    levels: list[list[Position]] = [[] for _ in range(limit)]

    def meet(position: Position, excess: int) -> None:
        if excess < limit and excess < best.get(position, limit) and excess + moves.to_come(position) < limit:
            best[position] = excess
            levels[excess].append(position)

    meet(start, 0)
    for excess, level in enumerate(levels):
        while level:
            position = level.pop()
            if best[position] < excess:
                continue
            if len(best) > MAX_POSITIONS or time.monotonic() > until:
                return None
            for step_cost, gone, x in moves.moves(position):
                if excess + step_cost < limit:
                    meet(moves.after(position, gone, x), excess + step_cost)
    width = ceil_div(len(game.names), 8)
    parts = [POSITIONS_MAGIC]
    if not best:  # the start alone shows it; a list has at least one entry
        best[start] = 0
    for position, excess in sorted(best.items()):
        parts += [word.to_bytes(width, "little") for word in position]
        parts.append(excess.to_bytes(2, "little"))
    return cost, {"method": "positions", "records": len(best)}, b"".join(parts)
