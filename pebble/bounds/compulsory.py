"""Compulsory traffic: each input is read once and each output written once."""

from pebble.bounds.base import Formula
from pebble.workloads import Gemm


def formula(gemm: Gemm, capacity: int) -> Formula:
    """mk + kn + mn, and mn more when C is read too. Holds for every capacity, from an empty fast memory."""
    return Formula(
        name="compulsory",
        source="folklore",
        elements=gemm.compulsory_elements,
        holds=True,
        note="every input is read and every output written at least once",
    )
