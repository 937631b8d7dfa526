"""``prove``, ``certify``, ``verify``: a bound for a reader, a bound for a checker, and the check."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from pebble.certificate import RefusedError, UnreadableError, check, check_file
from pebble.errors import InputError, VerificationError
from pebble.reports.base import Report
from pebble.reports.bound import Bound, bound_workload
from pebble.reports.target import TargetOptions
from pebble.system.files import check_path, faults, shown
from pebble.units import format_bytes
from pebble.workloads.base import Workload


@dataclass(frozen=True, repr=False)
class Proof(Report):
    """The proof of a bound as text.

    Attributes
    ----------
    bound : Bound
    text : str
        Markdown or LaTeX.
    certificate : dict
        What the text spells out, for `pebble.verify`.
    """

    bound: Bound
    text: str
    certificate: dict[str, Any]

    question = "prove"

    def summary(self) -> str:
        claim = self.certificate["claims"][0]
        return f"{self.bound.workload.label}: at least {format_bytes(claim['bytes'])}, by {claim['proof']['theorem']}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per claim."""
        return [{key: c[key] for key in ("claim", "elements", "bytes")} for c in self.certificate["claims"]]

    def document(self) -> dict[str, Any]:
        claim = self.certificate["claims"][0]
        told = {key: claim[key] for key in ("capacity_elements", "elements", "bytes", "game")}
        return {"workload": self.bound.workload.label, **told, "theorem": claim["proof"]["theorem"]}

    def _repr_markdown_(self) -> str:
        return self.text


@dataclass(frozen=True, repr=False)
class Verification(Report):
    """What a certificate proves; it was accepted.

    Attributes
    ----------
    name : str
    proved : tuple of str
        A sentence per claim.
    """

    name: str
    proved: tuple[str, ...]

    question = "verify"

    def summary(self) -> str:
        return f"{self.name}: verified: {'; '.join(self.proved)}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per claim."""
        return [{"proved": sentence} for sentence in self.proved]

    def document(self) -> dict[str, Any]:
        return {"verified": True, "step": None, "why": None, "proved": list(self.proved)}


def prove(
    workload: Workload, form: str = "markdown", *, recompute: bool = False, **where: Unpack[TargetOptions]
) -> Proof:
    """The proof of the bound for a reader, with the numbers of the instance filled in.

    Parameters
    ----------
    workload : Gemm, Ffn, Attention, ...
    form : {"markdown", "latex"}
    recompute : bool
        Whether a value may be computed twice.
    **where
        Exactly one of ``gpu``, ``machine``, ``cache``, as for `pebble.bound`.

    Returns
    -------
    Proof

    Raises
    ------
    InputError
        Another form, or malformed arguments.
    """
    found = bound_workload(workload, recompute=recompute, **where)
    return Proof(found, found.prove(form), found.certificate())


def certify(workload: Workload, path: str | Path, *, recompute: bool = False, **where: Unpack[TargetOptions]) -> Bound:
    """Bound a workload and write the proof, which `verify` checks without this program's bounds.

    Parameters
    ----------
    workload, recompute, **where
        As for `pebble.prove`.
    path : str or Path
        The certificate, JSON.

    Returns
    -------
    Bound

    Raises
    ------
    InputError
        The file cannot be written.
    NotCertifiedError
        A number could not be proved: report it, it may be wrong.
    """
    found = bound_workload(workload, recompute=recompute, **where)
    found.certify(path)
    return found


def verify(certificate: str | Path | dict[str, Any]) -> Verification:
    """Check a certificate by exact arithmetic, without the bounds, schedules and solvers that wrote it.

    Parameters
    ----------
    certificate : str, Path or dict
        A file (a side file must lie beside it), or the certificate itself.

    Returns
    -------
    Verification

    Raises
    ------
    VerificationError
        It is refused; the message names the first step that fails.
    InputError
        The file cannot be read, or is not JSON.
    """
    name = "certificate" if isinstance(certificate, dict) else str(check_path("verify", certificate))
    try:
        if isinstance(certificate, dict):
            return Verification(name, tuple(check(certificate)))
        with faults(name, "", "read"):
            if not Path(name).is_file():
                raise InputError(f"{shown(name)}: it is no file that can be read, expected a certificate.")
            return Verification(name, tuple(check_file(name)))
    except UnreadableError as error:
        raise InputError(f"{shown(name)}: it is no certificate: {error.why}.") from None
    except RefusedError as error:
        refused = VerificationError(f"{name}: refused at {error.step}: {error.why}.")
        refused.refusal = error
        raise refused from None
