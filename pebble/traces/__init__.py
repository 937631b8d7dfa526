"""Traces of tile touches: what schedules make and cache models read. Neither knows the other."""

from pebble.traces.layout import Layout, OperandTiles
from pebble.traces.trace import LINE_BYTES, READ, WRITE, LockstepGemm, Trace, TraceChunk, by_lines, following

__all__ = [
    "LINE_BYTES",
    "READ",
    "WRITE",
    "Layout",
    "LockstepGemm",
    "OperandTiles",
    "Trace",
    "TraceChunk",
    "by_lines",
    "following",
]
