"""Optima of small games: a pebbling, replayed, and a proof that none is cheaper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .cutting_planes import MAX_LOG_BYTES, check_log
from .formula import Formula, check_first
from .games import Game, check_pebbling, read_game
from .geometry import Box
from .positions import check_positions
from .potential import check_potential, read_gemm
from .reading import RefusedError, beside, equal, fields, integer, tagged
from .segments import SegmentTerm, by_segments

METHODS = ("compulsory", "segments", "potential", "positions", "cutting planes")


def check_optimum(statement: Any, claims: list[Any], folder: Path | None) -> list[str]:
    """Check the claims about a game."""
    fields(statement, "statement", ("game",))
    game = read_game(statement["game"], "statement.game")
    size = f"{len(game.names)} values and {len(game.tasks)} computations"
    name = f"this game of {size} ({game.variant}, S = {game.capacity})"
    bounds, costs, said = [], [], []
    for number, claim in enumerate(claims):
        at = f"claims[{number}]"
        if tagged(claim, at, "claim", ("pebbling", "no cheaper pebbling")) == "pebbling":
            costs.append(check_pebbling(game, claim, at))
            said.append(f"a pebbling of {name} costs {costs[-1]}")
            continue
        fields(claim, at, ("claim", "cost", "proof"))
        lower = integer(claim["cost"], f"{at}.cost", 1, 10**12)
        proof, where = claim["proof"], f"{at}.proof"
        method = tagged(proof, where, "method", METHODS)
        if method == "compulsory":
            fields(proof, where, ("method",))
            equal(lower, game.compulsory, f"{at}.cost", "what every pebbling moves")
        elif method == "segments":
            fields(proof, where, ("method", "m", "n", "k", "values", "theorem", "segments", "shares"))
            products = read_gemm(game, proof, where)
            part = SegmentTerm(Box(products.m, products.n, products.k), products.count, 0)
            bound = by_segments(part, game.capacity, proof, where, ("method", "m", "n", "k", "values"))
            equal(lower, bound, f"{at}.cost", "moves, at least")
        elif method == "cutting planes":
            _check_log(game, lower, proof, folder, where)
        else:
            (check_potential if method == "potential" else check_positions)(game, lower, proof, folder, where)
        bounds.append(lower)
        said.append(f"no pebbling of {name} costs less than {lower}")
    if bounds and costs:
        if min(costs) < max(bounds):
            raise RefusedError(
                "claims", f"a pebbling costs {min(costs)} and none less than {max(bounds)}: one of the two is wrong"
            )
        if min(costs) == max(bounds):
            said.append(f"so the optimum is {min(costs)}")
    return said


def _check_log(game: Game, cost: int, proof: dict[str, Any], folder: Path | None, at: str) -> None:
    """The formula that a pebbling costs less, made here from the game, is refuted by the log.

    The file of it, which other checkers read with the log, is compared.
    """
    fields(proof, at, ("method", "first", "symmetries", "log"), ("formula",))
    formula = Formula(game, cost - 1, check_first(game, proof["first"], proof["symmetries"], at))
    if "formula" in proof:
        fields(proof["formula"], f"{at}.formula", ("file", "sha256"))
        if beside(folder, proof["formula"], MAX_LOG_BYTES, f"{at}.formula") != formula.opb().encode():
            raise RefusedError(f"{at}.formula.file", "it is not the formula that the game and the cost give")
    fields(proof["log"], f"{at}.log", ("file", "sha256"))
    content = beside(folder, proof["log"], MAX_LOG_BYTES, f"{at}.log")
    try:
        log = content.decode("ascii")
    except UnicodeDecodeError:
        raise RefusedError(f"{at}.log.file", "it is no text") from None
    check_log(formula.constraints, log, f"{at}.log")
