"""The checker: reads a certificate, checks every claim in it by exact arithmetic, and says what is proved.

It stands on the standard library alone and imports nothing of the bounds, schedules and solvers whose results it
checks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .games_on_sms import check_on_sms as check_game_on_sms
from .lower import check_bytes, check_lower
from .on_sms import check_on_sms
from .optimum import check_optimum
from .reading import MAX_FILE_BYTES, RefusedError, array, equal, fields, parse, show, tagged
from .schedules import check_upper, check_upper_bytes
from .statement import read_workload

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
        return check_game_on_sms(statement, claims)
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
