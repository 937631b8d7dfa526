"""Whole certificates: a statement and claims about it, checked before they are handed out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from pebble.bounds import LowerBound, NotCertifiedError
from pebble.certificate import FORMAT, VERSION, RefusedError, check
from pebble.certificate.statement import read_workload
from pebble.families.schedules import Explicit
from pebble.proof.upper import upper_claim
from pebble.system.files import check_path, write_text
from pebble.workloads.base import Workload

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

    Notes
    -----
    Some milliseconds. The certificate has passed the checker.
    """
    spec = workload_statement(workload)
    bounds = [bound for bound in (result.lower, result.separate) if bound is not None]
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
