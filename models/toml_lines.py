"""Lines of keys in a TOML text: the standard parser says only where the syntax broke."""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?")
_ASSIGNMENT = re.compile(r"""(?:^|[{,])\s*([A-Za-z0-9_.\-"' ]+?)\s*=""")


def line_of(text: str, key: str) -> int:
    """The line where a dotted key is set, or the nearest table above it."""
    wanted = key.split(".")
    best, best_depth = 1, 0
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.fullmatch(line)
        if header:
            table = _parts(header.group(1))
            paths = [table]
        else:
            paths = []
            names = [_parts(name) for name in _ASSIGNMENT.findall(line.split("#")[0])]
            if names:
                # `l2 = { value = 40 }`: what follows the first name lies inside it
                paths = [table + names[0], *(table + names[0] + name for name in names[1:])]
        for path in paths:
            if len(path) > best_depth and path == wanted[: len(path)]:
                best, best_depth = number, len(path)
    return best


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
