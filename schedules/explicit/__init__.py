"""Schedules under explicit control: the program itself says what is held, loaded and stored.

They are the upper bounds that stand beside the proven lower bounds. Each comes with closed-form traffic and with a
generator of its moves, so that the formula can be replayed, move by move, by the referee at small scale.
"""

from pebble.schedules.explicit.gemm_search import ExplicitProduct, best_gemm_schedule

__all__ = ["ExplicitProduct", "best_gemm_schedule"]
