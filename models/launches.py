"""How near the time model came to measured launches of a kind: what stands behind a modelled time."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

MEASURED_DTYPE = "bf16"
_FILE = Path(__file__).parent / "launches.toml"


class Launches(NamedTuple):
    """Measured launches of one family on one chip, in bf16, none of which a rate of the model was chosen on.

    Of kernels in plain Triton; exported files, which copy tiles by tensor descriptors from Hopper on, may take less.

    Attributes
    ----------
    least_ms, most_ms : float
        The shortest and the longest.
    measured : int
    within_5_percent, within_10_percent : int
        Of these, how many took what the model says of a launch by itself.
    """

    least_ms: float
    most_ms: float
    measured: int
    within_5_percent: int
    within_10_percent: int


class ExportedFiles(NamedTuple):
    """Measured files of `pebble export` for layers of one family on one chip, in bf16, run again and again.

    Attributes
    ----------
    layers : int
    least_ms, most_ms : float
        The shortest and the longest.
    least, most : float
        The least and the most that one took, over the modelled sustained time of its schedule.
    """

    layers: int
    least_ms: float
    most_ms: float
    least: float
    most: float


def exported_files(kind: str, chip: str, milliseconds: float) -> ExportedFiles | None:
    """Those of a family, or ``decode``, that are known; None where none was measured, or none took as long as this.

    Examples
    --------
    >>> exported_files("gemm", "h200-sxm-141gb", 1.6).layers
    13
    >>> exported_files("gemm", "h200-sxm-141gb", 0.01) is exported_files("gemm", "a40", 1.6) is None
    True
    """
    result = _exported().get((kind, chip))
    return result if result is not None and result.least_ms <= milliseconds <= result.most_ms else None


def launches_like(family: str, chip: str, execution: str, milliseconds: float) -> Launches | None:
    """Those that are known; None where none was measured, or none as short or as long as this one.

    Examples
    --------
    >>> launches_like("ffn", "h200-sxm-141gb", "waves", 3.0).measured
    64
    >>> launches_like("ffn", "h200-sxm-141gb", "waves", 1e4) is launches_like("ffn", "a40", "waves", 3.0) is None
    True
    """
    result = _known().get((family, chip, execution))
    return result if result is not None and result.least_ms <= milliseconds <= result.most_ms else None


@cache
def _exported() -> dict[tuple[str, str], ExportedFiles]:
    rows = tomllib.loads(_FILE.with_name("exported.toml").read_text(encoding="utf-8"))["exported"]
    return {(row["family"], row["chip"]): ExportedFiles(*(row[name] for name in ExportedFiles._fields)) for row in rows}


@cache
def _known() -> dict[tuple[str, str, str], Launches]:
    rows = tomllib.loads(_FILE.read_text(encoding="utf-8"))["launches"]
    return {
        (row["family"], row["chip"], row["execution"]): Launches(*(row[name] for name in Launches._fields))
        for row in rows
    }
