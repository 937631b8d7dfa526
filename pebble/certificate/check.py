"""The checker: reads a certificate, checks every claim in it by exact arithmetic, and says what is proved. Of a small
game it checks a pebbling, replayed, and a proof that none is cheaper.

It stands on the standard library alone and imports nothing of the bounds, schedules and solvers whose results it
checks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .cutting_planes import MAX_LOG_BYTES, check_log
from .formula import Formula, check_first
from .games import Game, check_pebbling, read_game
from .games_on_sms import check_on_sms as check_game_on_sms
from .geometry import Box
from .lower import check_bytes, check_lower
from .on_sms import check_on_sms
from .positions import check_positions
from .potential import check_potential, read_gemm
from .reading import MAX_FILE_BYTES, RefusedError, array, equal, fields, integer, parse, referenced, show, tagged
from .schedules import check_upper, check_upper_bytes
from .segments import SegmentTerm, by_segments
from .statement import read_workload
from .states import check_states_of_one

METHODS = ("compulsory", "segments", "potential", "positions", "states", "cutting planes")
_TABLES = {"potential": check_potential, "positions": check_positions, "states": check_states_of_one}


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
            _TABLES[method](game, lower, proof, folder, where)
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
        if referenced(folder, proof["formula"], MAX_LOG_BYTES, f"{at}.formula") != formula.opb().encode():
            raise RefusedError(f"{at}.formula.file", "it is not the formula that the game and the cost give")
    fields(proof["log"], f"{at}.log", ("file", "sha256"))
    content = referenced(folder, proof["log"], MAX_LOG_BYTES, f"{at}.log")
    try:
        log = content.decode("ascii")
    except UnicodeDecodeError:
        raise RefusedError(f"{at}.log.file", "it is no text") from None
    check_log(formula.constraints, log, f"{at}.log")


_CHECKS = {
    "lower bound": check_lower,
    "lower bound in bytes": check_bytes,
    "lower bound on SMs": check_on_sms,
    "upper bound": check_upper,
    "upper bound in bytes": check_upper_bytes,
}
FORMAT = "pebble-certificate"
VERSION = 1


def check_file(path: str | Path) -> list[str]:
    """Check a certificate.

    Parameters
    ----------
    path : str or Path
        The file; a side file that it names must lie beside it.

    Returns
    -------
    list of str
        What is proved, a sentence per claim.

    Raises
    ------
    RefusedError
        Something is wrong; names the first step that fails.
    OSError
        The file cannot be read.
    """
    path = Path(path)
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    return check(parse(content), path.parent)


def check(document: Any, folder: Path | None = None) -> list[str]:
    """Check a certificate that has been read; arguments and errors as `check_file`."""
    fields(document, "certificate", ("format", "version", "statement", "claims"))
    equal(document["format"], FORMAT, "format", "format")
    equal(document["version"], VERSION, "version", "version")
    claims = array(document["claims"], "claims", 1, 16)
    statement = document["statement"]
    if type(statement) is not dict:
        raise RefusedError("statement", f"got {show(statement)}, expected an object")
    if "memories" in statement:
        return check_game_on_sms(statement, claims, folder)
    if "game" in statement:
        return check_optimum(statement, claims, folder)
    fields(statement, "statement", ("workload",))
    workload = read_workload(statement["workload"], "statement.workload")
    said = []
    for number, claim in enumerate(claims):
        at = f"claims[{number}]"
        said.append(_CHECKS[tagged(claim, at, "claim", tuple(_CHECKS))](workload, claim, at))
    _agree(claims)
    return said


def _agree(claims: list[dict[str, Any]]) -> None:
    """No schedule that was accepted moves less than a bound that was accepted says it must.

    A schedule that computes nothing again is one of both games; separate kernels are one way to fuse.
    """
    for number, upper in enumerate(claims):
        for lower in claims:
            if (lower["claim"], upper["claim"]) == ("lower bound in bytes", "upper bound in bytes"):
                alike = upper["widths_bytes"] == lower["widths_bytes"]
                fits = alike and upper["capacity_bytes"] <= lower["capacity_bytes"]
                units = ["bytes"]
            elif (lower["claim"], upper["claim"]) == ("lower bound", "upper bound"):
                fits = upper["moved"]["peak_elements"] <= lower["capacity_elements"]
                units = ["elements", "bytes"]
            else:
                continue
            spec = lower["game"]["kernels"] == "fused" or upper["schedule"]["kind"] == "kernels"
            for unit in units:
                if fits and spec and upper[unit] < lower[unit]:
                    why = f"the schedule moves {upper[unit]:,} {unit}, less than the bound of {lower[unit]:,}"
                    raise RefusedError(f"claims[{number}]", f"{why}; one of the two is wrong")
