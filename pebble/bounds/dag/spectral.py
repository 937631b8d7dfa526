"""The spectral bound (Jain and Zaharia 2020), from the small eigenvalues of a Laplacian.

Order all values by when they are first in fast memory, cut the order into k pieces of at least floor(n / k). A piece P
reads the values of earlier pieces that it uses, all but the at most S held at its start; of its own values that
are used later, all but the at most S held at its end are stored in it, or, for an input, loaded in it for the first
time. Giving each edge (u, v) the weight 1 / outdegree(u), both counts of P together are at least the weight of the
edges that leave or enter P, a quadratic form of the Laplacian L in the indicator of P. Summed over P,

    cost >= max over k of floor(n / k) (lambda_1 + ... + lambda_k) - 2 (k - 1) S,

with the k smallest eigenvalues of L (Ky Fan). The published form subtracts 2 k S; at the two ends nothing is held.
Floating-point eigenvalues are lowered by a margin far above their error before they are used.
"""

from __future__ import annotations

import math

import numpy as np

from pebble.bounds.dag.windows import ONE_SHOT, DagBound, edges, same_weight
from pebble.game import Game

NAME = "spectral"
SOURCE = "Jain, Zaharia 2020"
MOST_ITEMS = 1500


def bound(game: Game, capacity: int, seconds: float) -> DagBound:
    """Holds for one-shot variants with equal weights; dense eigenvalues, O(n^3)."""
    weight = same_weight(game)
    if game.variant not in ONE_SHOT or weight is None:
        return DagBound(NAME, SOURCE, None, ONE_SHOT, "holds only for one-shot variants with equal weights")
    if game.size > MOST_ITEMS:
        return DagBound(NAME, SOURCE, None, ONE_SHOT, f"the DAG has {game.size} values, the limit is {MOST_ITEMS}")
    pairs = edges(game)
    used = sorted({i for pair in pairs for i in pair})
    index = {item: i for i, item in enumerate(used)}
    out = np.zeros(len(used))
    for u, _ in pairs:
        out[index[u]] += 1
    laplacian = np.zeros((len(used), len(used)))
    for u, v in pairs:
        i, j = index[u], index[v]
        share = 1 / out[i]
        laplacian[i, j] -= share
        laplacian[j, i] -= share
        laplacian[i, i] += share
        laplacian[j, j] += share
    values = np.linalg.eigvalsh(laplacian)
    margin = 1e-10 * len(used) * (1 + float(np.abs(laplacian).max()))
    lowered = np.maximum(values - margin, 0)
    held = capacity // weight
    best, pieces = 0.0, 1
    for k in range(1, len(used) + 1):
        value = len(used) // k * float(lowered[:k].sum()) - 2 * (k - 1) * held
        if value > best:
            best, pieces = value, k
    whole = math.ceil(best - 1e-6) * weight
    return DagBound(NAME, SOURCE, whole, ONE_SHOT, f"{pieces} pieces of {len(used)} values")
