"""Recipes: tables of a family made from a few numbers, so that a search can turn them."""

from pebble.schedules.recipes.attention import AttentionBands
from pebble.schedules.recipes.ffn import FusedBands, SeparateBands
from pebble.schedules.recipes.gemm import GemmBands
from pebble.schedules.recipes.recipe import Flagged, Recipe, cut_heights, even_heights

SHIFTING = (AttentionBands, FusedBands, GemmBands)  # whose blocks may begin their steps at different places

__all__ = [
    "SHIFTING",
    "AttentionBands",
    "Flagged",
    "FusedBands",
    "GemmBands",
    "Recipe",
    "SeparateBands",
    "cut_heights",
    "even_heights",
]
