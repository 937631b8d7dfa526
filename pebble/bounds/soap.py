"""The leading term that IOLB (Olivry et al., PLDI'20) and SOAP (Kwasniewski et al., SPAA'21) derive for two GEMMs."""

from math import isqrt

from pebble.bounds.base import Formula
from pebble.workloads import Ffn


def formula(ffn: Ffn, capacity: int) -> Formula:
    """2 m n (k + p) / sqrt S for a product m x k x n followed by m x n x p.

    False when k + p < 2 sqrt S, where fusing the two beats it; so it is never taken as proven on its own authority.
    """
    return Formula(
        name="iolb-soap",
        source="Olivry et al. 2020; Kwasniewski et al. 2021, leading term",
        elements=isqrt(4 * ffn.multiply_adds**2 // capacity),
        holds=False,
        note="a leading term, which treats the two products apart; false when k + p < 2 sqrt(S)",
    )
