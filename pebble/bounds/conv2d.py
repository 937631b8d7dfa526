r"""Lower bounds for a two-dimensional convolution, Y := conv(X, W), without padding.

Written as a matrix product, Y is pixels x out_channels with depth taps = in_channels * kernel^2; the row of pixel p
and the column of tap t meet in the input value X(p, t), and one input value is met by at most R = ceil(kernel /
stride)^2 pairs (p, t): along one direction, the pixels y with y stride <= i < y stride + kernel.

A segment of v products that touches a values of X, b of W, c of Y has at most R a pairs (p, t), so Loomis and Whitney
give v^2 <= R a b c; also v <= out_channels R a, v <= pixels b, v <= taps c. The least a + b + c under these is x(v),
and with the accounting of the GEMM (`pebble.bounds.gemm`: cells of Y begun free, stored at the end)

    Q >= max over h of [ sum of x(v_s) - (h - 1) S ],

which tends to 2 V / sqrt(R S). The game: loads plus stores, from an empty start, Y not read; recomputation does not
help, since only one completion of each cell is useful. The published 2 V / sqrt(R S) - 2 S counts loads only.
"""

from __future__ import annotations

from math import isqrt

from pebble.bounds.base import Formula, LowerBound
from pebble.bounds.chain import best_segments, check_capacity
from pebble.bounds.segments import FRACTION_BITS, floor_cbrt
from pebble.workloads import Conv2d

METHOD = "segment accounting for a convolution"
COMPULSORY = "compulsory"


def touched_scaled(v: int, pixels: int, channels: int, taps: int, overlap: int) -> int:
    """2^100 x(v), rounded down.

    Parameters
    ----------
    v : int
        Products of the segment.
    pixels, channels, taps : int
        The convolution as a matrix product.
    overlap : int
        R, the most pairs of a pixel and a tap that one input value serves.
    """
    if v == 0:
        return 0
    # Everything in units of 2^-100. Floors rounded down relax them: the minimum under them is still a lower bound.
    one = FRACTION_BITS
    low, mid, high = sorted(((v << one) // (channels * overlap), (v << one) // pixels, (v << one) // taps))
    cube = (v * v << (3 * one)) // overlap  # the least product a b c
    if high**3 <= cube:
        return floor_cbrt(27 * cube)
    if mid * mid * high <= cube:  # one value on its floor, the others equal
        return high + isqrt(4 * cube // high)
    return high + mid + max(low, cube // (high * mid))


def conv2d_lower_bound(conv: Conv2d, capacity: int) -> LowerBound:
    """The best proven lower bound on the traffic of a convolution through one fast memory.

    Parameters
    ----------
    conv : Conv2d
        The problem.
    capacity : int
        S, values (of the narrowest width) that fast memory holds at once.

    Returns
    -------
    LowerBound
        With and without recomputation, for every replacement policy.

    Raises
    ------
    InfeasibleError
        Capacity below 3.

    Examples
    --------
    >>> conv2d_lower_bound(Conv2d(1, 1, 1, 3, 3, 2), 100).elements
    17
    """
    check_capacity(capacity)
    shape = (conv.pixels, conv.out_channels, conv.taps, conv.overlap)
    elements, h = best_segments(lambda v: touched_scaled(v, *shape), conv.multiply_adds, capacity)
    method = METHOD
    if elements <= conv.compulsory_elements:
        elements, h, method = conv.compulsory_elements, 1, COMPULSORY
    surcharge = conv.compulsory_bytes - conv.narrowest_bytes * conv.compulsory_elements
    certificate = {
        "theorem": method,
        "capacity_elements": capacity,
        "workload": conv.to_json(),
        "pixels": conv.pixels,
        "taps": conv.taps,
        "overlap": conv.overlap,
        "segments": h,
    }
    return LowerBound(elements, conv.narrowest_bytes * elements + surcharge, method, certificate)


def published_conv2d_bounds(conv: Conv2d, capacity: int) -> tuple[Formula, ...]:
    """The published formulas on this instance: compulsory, and 2 V / sqrt(R S) - 2 S."""
    value = isqrt(4 * conv.multiply_adds**2 // (conv.overlap * capacity)) - 2 * capacity
    return (
        Formula("compulsory", "folklore", conv.compulsory_elements, True, "every value moves at least once"),
        Formula(
            "seven-nested-loops",
            "Chen et al. 2020, and the 7NL bound of 2022",
            max(0, value),
            False,
            "the theorem counts loads of a convolution that reads its output; 0 where the formula is negative",
        ),
    )
