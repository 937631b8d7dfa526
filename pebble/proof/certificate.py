"""Whole certificates: a statement and claims about it, checked before they are handed out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pebble.bounded import Answer, AnyWorkload
from pebble.certificate import FORMAT, VERSION, RefusedError, check
from pebble.certificate.statement import read_workload
from pebble.files import write_text
from pebble.proof.lower import NotCertifiedError, lower_claim
from pebble.proof.upper import upper_claim
from pebble.schedules.explicit import ExplicitSchedule
from pebble.schedules.explicit.fused import FusedSchedule

_DERIVED = {"name", "flops", "compulsory_elements", "compulsory_bytes"}


def bound_certificate(workload: AnyWorkload, found: Answer) -> dict[str, Any]:
    """The certificate of what `pebble bound` says of a workload.

    Parameters
    ----------
    workload : Gemm, Ffn, Attention or Conv2d
    found : Answer
        Its lower bound, its best schedule if there is one, and the bound for separate kernels if there is one.

    Raises
    ------
    NotCertifiedError
        A number could not be proved: report it, it may be wrong.

    Notes
    -----
    Some milliseconds. The certificate has passed the checker.
    """
    told = {key: value for key, value in workload.to_json().items() if key not in _DERIVED}
    statement = read_workload(told, "workload")
    claims = [lower_claim(statement, found.lower)]
    if found.separate is not None:
        claims.append(lower_claim(statement, found.separate))
    if isinstance(found.upper, ExplicitSchedule | FusedSchedule):
        claims.append(upper_claim(statement, found.upper))
    return checked({"format": FORMAT, "version": VERSION, "statement": {"workload": told}, "claims": claims})


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
    write_text(path, json.dumps(document, indent=1) + "\n", "--certificate: ")
