"""What a compiled loop is made from, so that what is kept of it is used only while all of that is the same.

Numba asks for the file of the loop alone. Into its machine code go also the loops that it calls and the numbers that
stand by name in it, and these come from other files.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

_LOOPS = "pebble.traces.jit"
_IMPORT = re.compile(r"^from (pebble[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
_NAME = re.compile(r"\w+")


@cache
def stamp_of(module: str) -> str:
    """A digest of the source of a module that has loops, and of all that it takes them from.

    Those are the modules that it imports, and, where one of them has loops itself, those that this one imports.
    """
    digest = sha256()
    for name, source in sorted(_sources(module).items()):
        digest.update(f"{name} {len(source)}\n{source}".encode())
    return digest.hexdigest()


def _sources(module: str) -> dict[str, str]:
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = getattr(sys.modules.get(name), "__file__", None)
        if path is None or name in found or not Path(path).is_file():
            continue
        found[name] = source = Path(path).read_text(encoding="utf-8")
        imports = _IMPORT.findall(source)
        if any(origin == _LOOPS for origin, _ in imports):
            waiting += [origin for origin, _ in imports]
            waiting += [f"{origin}.{x}" for origin, names in imports for x in _NAME.findall(names)]
    return found
