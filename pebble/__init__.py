"""pebble: how little data a GPU kernel must move, proved; and how much each tile order moves.

The public names are loaded when first used, so that ``import pebble`` stays light.
"""

from __future__ import annotations

from pathlib import Path as _Path
from typing import TYPE_CHECKING, Any

if (_Path(__file__).parent / "pool").is_dir():  # PyPI's "Pebble" also installs a package called pebble
    raise ImportError(
        "another distribution named 'Pebble' is installed in the same place and also imports as 'pebble': "
        "run `pip uninstall Pebble` and reinstall redblue-pebble."
    )

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pebble.workloads import Gemm

_EXPORTS = {
    "Gemm": "pebble.workloads",
}
__all__ = ["Gemm", "__version__"]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        from importlib import import_module

        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'pebble' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
