"""Kwasniewski et al., "Red-blue pebbling revisited: near optimal parallel matrix-matrix multiplication", SC'19."""

from math import isqrt

from pebble.bounds.base import Formula
from pebble.workloads import Gemm


def formula(gemm: Gemm, capacity: int) -> Formula:
    """2 V / sqrt S + mn: loads plus stores.

    False for C := AB when k < 2 sqrt S and m, n are much larger than k: with m = n = 400, k = 10, S = 400 it says
    320,000 and a legal schedule moves 207,800. So it is never taken as proven on its own authority.
    """
    return Formula(
        name="cosma",
        source="Kwasniewski et al., SC'19, Theorem 1",
        elements=isqrt(4 * gemm.multiply_adds**2 // capacity) + gemm.m * gemm.n,
        holds=False,
        note="the +mn term is false for C := AB when k < 2 sqrt(S) and m, n >> k",
    )
