"""Al Daas, Ballard, Grigori, Kumar and Rouse, "Tight memory-independent parallel matrix multiplication communication
lower bounds", SPAA 2022: three regimes with their constants."""

from math import isqrt

from pebble.bounds.base import Formula
from pebble.bounds.segments import floor_cbrt
from pebble.workloads import Gemm


def words_per_processor(m: int, n: int, k: int, processors: int) -> tuple[int, int]:
    """Words that some processor must receive when P processors share the work and hold one copy of the data.

    Parameters
    ----------
    m, n, k : int
        Dimensions; the theorem sorts them.
    processors : int
        P, at least 1.

    Returns
    -------
    words, regime : int
        D - (mn + mk + nk) / P rounded down, at least 0, and which of the three regimes gave D.

    Examples
    --------
    >>> words_per_processor(4096, 4096, 4096, 1)
    (0, 1)
    """
    n1, n2, n3 = sorted((m, n, k), reverse=True)
    share = -(-(n1 * n2 + n1 * n3 + n2 * n3) // processors)
    if processors * n2 <= n1:
        regime, words = 1, (n1 * n2 + n1 * n3) // processors + n2 * n3
    elif processors * n3 * n3 <= n1 * n2:
        regime, words = 2, isqrt(4 * n1 * n2 * n3 * n3 // processors) + n1 * n2 // processors
    else:
        regime, words = 3, floor_cbrt(27 * (n1 * n2 * n3) ** 2 // processors**2)
    return max(0, words - share), regime


def formula(gemm: Gemm, processors: int) -> Formula:
    """The bound for P = number of SMs. It counts words into one SM, not traffic with slow memory."""
    words, regime = words_per_processor(gemm.m, gemm.n, gemm.k, processors)
    return Formula(
        name="parallel-memory-independent",
        source="Al Daas, Ballard, Grigori, Kumar, Rouse 2022",
        elements=words,
        holds=False,
        note=f"regime {regime} of 3: words received by one of P={processors} processors that split the work evenly and "
        "hold one copy of the data, not loads and stores of one fast memory",
        counts_traffic=False,
    )
