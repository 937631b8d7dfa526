"""What shows that no pebbling is cheaper: proof logs, and for an in-place GEMM a potential.

The pattern table of an in-place GEMM is written as a potential that the checker verifies move by move. For other games
the claim is a pseudo-Boolean formula without solution, and the log is its refutation.

Exact (PyPI ``exact``), a proof-producing pseudo-Boolean solver, refutes the formula of
:mod:`pebble.certificate.formula` and writes a log; only its lines that lead to the contradiction are kept.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pebble.bounds import Box, Piece
from pebble.certificate.cutting_planes import HEADER
from pebble.certificate.formula import MAX_TASKS, Formula
from pebble.certificate.games import Game as CheckedGame
from pebble.certificate.potential import MAGIC, MAX_PRODUCTS, MAX_RECORDS, MAX_SIDE, Products, record_bytes
from pebble.certificate.reading import RefusedError
from pebble.errors import GapOpenError, InputError
from pebble.game import Game
from pebble.solvers.gemm_shape import GemmShape
from pebble.solvers.search import find_small_gemm
from pebble.solvers.search import gemm_table as tables
from pebble.solvers.search.gemm_model import build_model, make_classes
from pebble.system.isolation import Library, StoppedError, call

# with these Exact derives every line from numbered ones, so that lines that lead nowhere can be left out
_OPTIONS = [("inp-atmostone", "0"), ("inp-probing", "0"), ("inp-dombreaklim", "0"), ("inp-purelits", "0")]


def check_can_refute(game: Game) -> None:
    """Whether a proof log can be looked for.

    Raises
    ------
    InputError
        The solver is not installed, or the game has no formula.
    """
    if game.variant not in ("one-shot", "in-place") or len(game.tasks) > MAX_TASKS:
        raise InputError(
            f"--proof-log: got a game {game.variant} of {len(game.tasks)} computations, expected one-shot or in-place "
            f"and at most {MAX_TASKS}; leave it out, or take a smaller game."
        )
    check_can_log()


def check_can_log() -> None:
    """Whether the solver that writes proof logs is installed; InputError where not."""
    if find_spec("exact") is None:
        raise InputError(
            "--proof-log: the solver that writes the log is not installed; run `pip install 'exact>=2.2'`."
        )


def refute(
    game: CheckedGame, cost: int, first: list[int], seconds: float, tell: Callable[[str], object]
) -> tuple[Formula, str]:
    """The formula that some pebbling costs less, and a log that refutes it; ``tell`` hears what is being done.

    Raises
    ------
    GapOpenError
        No refutation was found in so many seconds.
    InputError
        There is no formula of so large a game; or it has a solution: the claimed cost is too high.
    """
    try:
        formula = Formula(game, cost - 1, first)
    except RefusedError as error:
        raise InputError(f"--proof-log: the checker makes no formula of this game: {error.why}.") from None
    size = f"{len(game.tasks)} computations, {len(formula.variables):,} variables"
    tell(
        f"Exact looks for a refutation of 'costs less than {cost}' ({size}) for at most {seconds:g} s; how long it "
        "takes cannot be told beforehand"
    )
    until = time.monotonic() + seconds
    try:
        state, log = call(
            Library.EXACT, "pebble.proof.refutation:run_exact", len(formula.variables),
            [(list(result.terms.items()), result.degree) for result in formula.constraints],
            hear=lambda *message: None, until=lambda: time.monotonic() > until,
        )  # fmt: skip
    except StoppedError:
        raise GapOpenError(
            f"--proof-log: no refutation of 'costs less than {cost}' ({size}) was found in {seconds:g} s, and no "
            "certificate is written; give it more --time-limit, or leave it out for a proof of another kind."
        ) from None
    if state != "UNSAT":
        raise InputError(f"--proof-log: the solver says {state} of 'costs less than {cost}'; please report it.")
    return formula, trimmed(log)


def run_exact(variables: int, constraints: list[tuple[list[tuple[int, int]], int]]) -> tuple[str, str]:
    """In the worker: what Exact finds, and its log.

    The log loses its name as soon as it is open, so that however this process ends, nothing of it stays on the disk.
    """
    import exact

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        solver = exact.Exact([("proof-log", str(path)), *_OPTIONS])
        log = path.with_suffix(".proof").open()
    with log:
        for x in range(1, variables + 1):
            solver.addVariable(f"x{x}", 0, 1)
        for terms, degree in constraints:
            # not x is 1 - x
            plain = [(c if x > 0 else -c, f"x{abs(x)}") for x, c in terms]
            solver.addConstraint(plain, True, degree - sum(c for x, c in terms if x < 0))
        state: str = solver.runFull(False)
        del solver  # which writes what is left of the log
        return state, log.read()


def trimmed(log: str) -> str:
    """The lines that the contradiction stands on, numbered anew.

    A log with lines that stand on all before them (``rup`` of anything but 0 >= 0) is left as it is.
    """
    lines = [words for words in (line.split() for line in log.splitlines()[1:]) if words and words[0] != "*"]
    makes = [words for words in lines if words[0] != "c"]
    if any(words[0] not in ("l", "pol", "rup") or (words[0] == "rup" and words[1] != ">=") for words in makes):
        return log
    needed = {int(words[1]) for words in lines if words[0] == "c"}
    for number in range(len(makes), 0, -1):
        if number in needed and makes[number - 1][0] == "pol":
            needed |= {int(word) for word in _numbers(makes[number - 1][1:])}
    new = {old: at for at, old in enumerate(sorted(needed), 1)}
    entries = [HEADER]
    for number, words in enumerate(makes, 1):
        if number in needed:
            entries.append(" ".join(words if words[0] != "pol" else ["pol", *_renumbered(words[1:], new)]))
    entries += [f"c {new[int(words[1])]}" for words in lines if words[0] == "c"]
    return "\n".join(entries) + "\n"


def _is_constraint(words: list[str], at: int) -> bool:
    """Whether a word is the number of a constraint, and not a factor."""
    return words[at].isdigit() and words[at + 1 : at + 2] not in (["*"], ["d"])


def _numbers(words: list[str]) -> list[str]:
    return [word for at, word in enumerate(words) if _is_constraint(words, at)]


def _renumbered(words: list[str], new: dict[int, int]) -> list[str]:
    return [str(new[int(word)]) if _is_constraint(words, at) else word for at, word in enumerate(words)]


DETAIL = 1


def _shape(game: Game) -> GemmShape | None:
    shape = find_small_gemm(game)
    if shape is None or max(shape[:3]) > MAX_SIDE or shape.m * shape.n * shape.k > MAX_PRODUCTS:
        return None
    return shape


def segments_proof(game: Game, checkable: CheckedGame) -> tuple[int, dict[str, Any], None] | None:
    """The segment bound of the GEMM that a game is."""
    shape = _shape(game)
    if shape is None:
        return None
    m, n, k = shape[:3]
    bound = Piece("", "segments", Box(m, n, k), (m * n * k,)).bound(checkable.capacity)
    proof = {"method": "segments", "m": m, "n": n, "k": k, "values": list(shape.items)}
    return bound.elements, proof | bound.claim(), None


def potential_proof(game: Game, checkable: CheckedGame, until: float) -> tuple[int, dict[str, Any], bytes] | None:
    """The table of a GEMM and the cost it proves; None when it is too large, or there is no time for it."""
    shape = _shape(game)
    if shape is None:
        return None
    m, n, k = shape[:3]
    built = _table(m, n, k, checkable.capacity, until)
    if built is None:
        return None
    reds, undones, values = built
    products = Products(m, n, k, checkable.capacity)
    bytes_r, bytes_m, _ = record_bytes(products)
    rows: dict[tuple[int, int], bytes] = {}
    for number, (red, undone) in enumerate(zip(reds, undones, strict=True)):
        rows[products.key(red, undone)] = values[number].tobytes()
        if number % 1000 == 0 and time.monotonic() > until:
            return None
    parts = [MAGIC]
    for red, undone in sorted(rows):
        parts += [red.to_bytes(bytes_r, "little"), undone.to_bytes(bytes_m, "little"), rows[red, undone]]
    start = rows[0, 0][products.offset[m * n] + m * n * k - k * m * n]
    proof = {"method": "potential", "m": m, "n": n, "k": k, "values": list(shape.items), "records": len(rows)}
    return m * n + start, proof, b"".join(parts)


def _table(m: int, n: int, k: int, capacity: int, until: float) -> tuple[list[int], list[int], Any] | None:
    """Red set, undone products and row of values of every abstract position, as the search builds them."""
    model, classes = build_model(m, n, k, capacity, DETAIL), make_classes(1 << 20)
    table = tables.build_table(model, classes, MAX_RECORDS, lambda: time.monotonic() > until)
    if table is None:
        return None
    patterns = table.patterns
    count = int(patterns.counts[0])
    reds = [int(x) for x in classes.red[patterns.node_class[:count]]]
    return reds, [int(x) for x in patterns.node_undone[:count]], np.ascontiguousarray(table.values.T)
