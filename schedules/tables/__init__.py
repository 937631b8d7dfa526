"""Schedules as tables: which block computes what in which wave, from which k step on and in which direction."""

from pebble.schedules.tables.table import COLUMNS, PIECE_COLUMNS, Blocks, Launch, TileTable, deal

__all__ = ["COLUMNS", "PIECE_COLUMNS", "Blocks", "Launch", "TileTable", "deal"]
