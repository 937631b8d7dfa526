"""``verify``: the check of a certificate. Nothing that writes one is loaded for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebble.certificate import RefusedError, UnreadableError, check, check_file
from pebble.errors import InputError, VerificationError
from pebble.reports.report import Report
from pebble.system.files import check_path, faults, shown


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
