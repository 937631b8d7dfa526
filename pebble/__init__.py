"""pebble: how little data a GPU kernel must move, proved; and how much each tile order moves.

The public names are loaded when first used, so that ``import pebble`` stays light.
"""

from __future__ import annotations

from pathlib import Path as _Path
from sys import modules as _modules
from types import ModuleType as _Module
from typing import TYPE_CHECKING, Any

_here = _Path(__file__).parent
if (_here / "pool").is_dir():  # PyPI's "Pebble" also installs a package called pebble
    raise ImportError(
        "another distribution named 'Pebble' is installed in the same place and also imports as 'pebble': "
        "run `pip uninstall Pebble` and install redblue-pebble again from where you had it."
    )

if not (_here / "models").is_dir() and (_here.parent / "models").is_dir():
    # an unpacked archive, or a checkout without symbolic links: what the links lead to lies beside this folder
    __path__.append(str(_here.parent))

__version__ = "0.1.0"

from pebble.system.compiled import choose_folder as _choose_folder  # noqa: E402  # before anything imports numba

_choose_folder(f"{__version__}-3")  # numba finds loops by the names of the records they take: new names, a new number

if TYPE_CHECKING:
    from pebble.api.audits import audit, from_torch
    from pebble.api.figures import Drawing, figure
    from pebble.api.games import replay, solve
    from pebble.api.kernels import coalesce, curve, cycles, time
    from pebble.api.lists import Listing, machines, schedules, workloads
    from pebble.api.traffic import bound, compare, simulate
    from pebble.errors import (
        GapOpenError,
        IllegalMoveError,
        InfeasibleError,
        InputError,
        PebbleError,
        SolverDisagreementError,
        UnknownNameError,
        VerificationError,
    )
    from pebble.families import workload
    from pebble.models.machine import Machine
    from pebble.reports.advise import KernelAdvice, advise
    from pebble.reports.audit import Audit
    from pebble.reports.bound import Bound
    from pebble.reports.coalesce import CoalescingReport
    from pebble.reports.curve import CurveReport
    from pebble.reports.cycles import Cycles
    from pebble.reports.dags import dag
    from pebble.reports.decode import Decode, decode
    from pebble.reports.export import Exported, export
    from pebble.reports.kernel_compare import Comparison
    from pebble.reports.kernel_time import Timing
    from pebble.reports.ncu import NcuReport, ncu
    from pebble.reports.ncu_compare import Judgement
    from pebble.reports.ncu_dims import recover_dims
    from pebble.reports.ncu_law import recover_laws
    from pebble.reports.ncu_model import recover_model
    from pebble.reports.proof import Proof, certify, prove
    from pebble.reports.replay import Replayed
    from pebble.reports.simulate import Simulation
    from pebble.reports.solve import Solution
    from pebble.reports.stream import Stream, stream
    from pebble.reports.target import find_gpu as gpu
    from pebble.reports.tile import TileAdvice, tile
    from pebble.reports.tune import Tuning, tune
    from pebble.reports.verify import Verification, verify
    from pebble.sweeps.results import Results, results
    from pebble.sweeps.sweep import Sweep, sweep
    from pebble.webpage.report import WebPage, report
    from pebble.workloads import Attention, Conv2d, Einsum, Ffn, Gemm, GroupedGemm, TransformerLayer

# name -> where it is, and what it is called there
_EXPORTS = {
    **dict.fromkeys(
        ("Attention", "Conv2d", "Einsum", "Ffn", "Gemm", "GroupedGemm", "TransformerLayer"), "pebble.workloads"
    ),
    **dict.fromkeys(("GapOpenError", "IllegalMoveError", "InfeasibleError", "InputError"), "pebble.errors"),
    **dict.fromkeys(("PebbleError", "SolverDisagreementError", "UnknownNameError"), "pebble.errors"),
    "VerificationError": "pebble.errors",
    **dict.fromkeys(("Listing", "machines", "schedules", "workloads"), "pebble.api.lists"),
    **dict.fromkeys(("Drawing", "figure"), "pebble.api.figures"),
    **dict.fromkeys(("audit", "from_torch"), "pebble.api.audits"),
    "Audit": "pebble.reports.audit",
    "Bound": "pebble.reports.bound",
    "CoalescingReport": "pebble.reports.coalesce",
    "Comparison": "pebble.reports.kernel_compare",
    "CurveReport": "pebble.reports.curve",
    "Cycles": "pebble.reports.cycles",
    "Decode": "pebble.reports.decode",
    "Exported": "pebble.reports.export",
    "Judgement": "pebble.reports.ncu_compare",
    "KernelAdvice": "pebble.reports.advise",
    "Machine": "pebble.models.machine",
    "NcuReport": "pebble.reports.ncu",
    "Proof": "pebble.reports.proof",
    "Replayed": "pebble.reports.replay",
    "Results": "pebble.sweeps.results",
    "Simulation": "pebble.reports.simulate",
    "Solution": "pebble.reports.solve",
    "Timing": "pebble.reports.kernel_time",
    "Stream": "pebble.reports.stream",
    "TileAdvice": "pebble.reports.tile",
    "Sweep": "pebble.sweeps.sweep",
    "Tuning": "pebble.reports.tune",
    "Verification": "pebble.reports.verify",
    "WebPage": "pebble.webpage.report",
    "advise": "pebble.reports.advise",
    "bound": "pebble.api.traffic",
    "certify": "pebble.reports.proof",
    "coalesce": "pebble.api.kernels",
    "compare": "pebble.api.traffic",
    "curve": "pebble.api.kernels",
    "cycles": "pebble.api.kernels",
    "dag": "pebble.reports.dags",
    "decode": "pebble.reports.decode",
    "export": "pebble.reports.export",
    "gpu": "pebble.reports.target:find_gpu",
    "ncu": "pebble.reports.ncu",
    "prove": "pebble.reports.proof",
    "recover_dims": "pebble.reports.ncu_dims",
    "recover_laws": "pebble.reports.ncu_law",
    "recover_model": "pebble.reports.ncu_model",
    "replay": "pebble.api.games",
    "results": "pebble.sweeps.results",
    "report": "pebble.webpage.report",
    "simulate": "pebble.api.traffic",
    "solve": "pebble.api.games",
    "time": "pebble.api.kernels",
    "stream": "pebble.reports.stream",
    "tile": "pebble.reports.tile",
    "sweep": "pebble.sweeps.sweep",
    "tune": "pebble.reports.tune",
    "verify": "pebble.reports.verify",
    "workload": "pebble.families",
}
__all__ = [
    "Attention",
    "Audit",
    "Bound",
    "CoalescingReport",
    "Comparison",
    "Conv2d",
    "CurveReport",
    "Cycles",
    "Decode",
    "Drawing",
    "Einsum",
    "Exported",
    "Ffn",
    "GapOpenError",
    "Gemm",
    "GroupedGemm",
    "IllegalMoveError",
    "InfeasibleError",
    "InputError",
    "Judgement",
    "KernelAdvice",
    "Listing",
    "Machine",
    "NcuReport",
    "PebbleError",
    "Proof",
    "Replayed",
    "Results",
    "Simulation",
    "Solution",
    "SolverDisagreementError",
    "Stream",
    "Sweep",
    "TileAdvice",
    "Timing",
    "TransformerLayer",
    "Tuning",
    "UnknownNameError",
    "Verification",
    "VerificationError",
    "WebPage",
    "__version__",
    "advise",
    "audit",
    "bound",
    "certify",
    "coalesce",
    "compare",
    "curve",
    "cycles",
    "dag",
    "decode",
    "export",
    "figure",
    "from_torch",
    "gpu",
    "machines",
    "ncu",
    "prove",
    "recover_dims",
    "recover_laws",
    "recover_model",
    "replay",
    "report",
    "results",
    "schedules",
    "simulate",
    "solve",
    "stream",
    "sweep",
    "tile",
    "time",
    "tune",
    "verify",
    "workload",
    "workloads",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        from pkgutil import resolve_name

        module, _, attribute = _EXPORTS[name].partition(":")
        value = resolve_name(f"{module}:{attribute or name}")
        globals()[name] = value
        return value
    raise AttributeError(f"module 'pebble' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _Room(_Module):
    """A package whose name is a call too: `pebble.schedules` holds tile orders, ``pebble.schedules()`` lists them."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._call(*arguments, **keywords)

    @property
    def _call(self) -> Any:
        from pebble.api import lists

        return vars(lists)[self.__name__.rpartition(".")[2]]

    @property
    def __signature__(self) -> Any:
        from inspect import signature

        return signature(self._call)


class _Front(_Module):
    """This package: the rooms that have the name of a call are made callable when they are first imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("schedules", "workloads") and isinstance(value, _Module):
            value.__class__ = _Room
        super().__setattr__(name, value)


_modules[__name__].__class__ = _Front
