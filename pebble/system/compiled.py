"""Where compiled loops are kept, which numba asks the environment for when it is imported."""

from __future__ import annotations

import os
import stat
import sys

VARIABLE = "NUMBA_CACHE_DIR"
_NAME = "redblue-pebble"
_lost: list[str] = []  # the folder that goes with the process


def choose_folder(version: str) -> None:
    """Set the variable to the first folder that can be written: the user's choice, their cache, their part of /tmp.

    Not inside the package: files that pip does not know of would survive an uninstall, and a folder that only holds
    such files hides an editable install. Numba runs what it finds there, so in the temporary directory, where everybody
    writes, a folder must be this user's alone; if it is not, a new one is made, which lasts as long as the process.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    in_cache = os.path.join(cache, _NAME, f"numba-{version}")
    for folder in (os.environ.get(VARIABLE), in_cache if os.path.isabs(in_cache) else None):  # no home may be known
        if folder and _writable(folder):
            os.environ[VARIABLE] = folder
            return
    os.environ[VARIABLE] = _temporary(version)


def is_cached() -> bool:
    """Whether a later process finds there what this one compiled."""
    return os.environ.get(VARIABLE) not in _lost


def _writable(folder: str) -> bool:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _temporary(version: str) -> str:
    import tempfile

    if sys.platform != "win32":
        mine = os.path.join(tempfile.gettempdir(), f"{_NAME}-{os.getuid()}")
        folder = os.path.join(mine, f"numba-{version}")
        if _writable(mine) and _private(mine) and _writable(folder) and _private(folder):
            return folder
    import atexit
    import shutil

    folder = tempfile.mkdtemp(prefix=f"{_NAME}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _lost.append(folder)
    return folder


def _private(folder: str) -> bool:
    """Whether it is a folder of this user, no link, that nobody else can write."""
    if sys.platform == "win32":
        return False
    result = os.lstat(folder)
    return stat.S_ISDIR(result.st_mode) and result.st_uid == os.getuid() and not result.st_mode & 0o022
