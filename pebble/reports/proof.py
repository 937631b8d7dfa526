"""``prove``, ``certify``: a bound for a reader, and a bound for a checker."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from pebble.reports.bound import Bound, bound_workload
from pebble.reports.options import spelled_out
from pebble.reports.report import Report
from pebble.reports.target import TargetOptions
from pebble.units import format_bytes
from pebble.workloads.workload import Workload


@dataclass(frozen=True, repr=False)
class Proof(Report):
    """The proof of a bound as text.

    Attributes
    ----------
    bound : Bound
    text : str
        Markdown or LaTeX.
    certificate : dict
        What the text spells out, for `pebble.verify`; the claim alone of a family that the checker does not know.
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
        fields = {key: claim[key] for key in ("capacity_elements", "elements", "bytes", "game")}
        return {"workload": self.bound.workload.label, **fields, "theorem": claim["proof"]["theorem"]}

    def _repr_markdown_(self) -> str:
        return self.text


@spelled_out(TargetOptions)
def prove(
    workload: Workload,
    form: str = "markdown",
    *,
    recompute: bool = False,
    cases: int | str | None = None,
    **where: Unpack[TargetOptions],
) -> Proof:
    """The proof of the bound for a reader, with the numbers of the instance filled in.

    Parameters
    ----------
    workload : Gemm, Ffn, Attention, ...
    form : {"markdown", "latex"}
    recompute : bool
        Whether a value may be computed twice.
    cases : int, optional
        As for `pebble.bound`.
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
    result = bound_workload(workload, recompute=recompute, cases=cases, **where)
    return Proof(result, result.prove(form), result.certificate())


@spelled_out(TargetOptions)
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
    result = bound_workload(workload, recompute=recompute, **where)
    result.certify(path)
    return result
