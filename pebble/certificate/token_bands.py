"""Schedules of a layer, band by band: ``rows`` tokens go through all of it before the next ones start.

A band loads its rows of X; each weight that comes is used for all rows and dropped, or stays (``weights_stay``, those
of QKV and O). Its Q, K and V are complete before its queries attend, to its own tokens and to those before them: K
and V of the first ``kept`` tokens stay in fast memory until the last band, those of others are stored when they are
computed and loaded by every later band, the vectors of one group of heads at a time. Row by row the values of a query
give way to those of its output; beside it are held a score, a partial sum for each column of the output, and three
values of state. Then the projection, a column at a time; then the FFN, hidden unit by hidden unit, all of Y's rows as
partial sums. With an ``ffn`` of its own for all tokens the projection's result is stored instead.
"""

from __future__ import annotations

from typing import Any

from .reading import fields, flag, integer
from .statement import ClaimedWidths, Workload
from .upper import ScheduleTraffic, fits


def check_token_bands(
    layer: Workload, capacity: int, widths: ClaimedWidths, spec: dict[str, Any], at: str
) -> ScheduleTraffic:
    """Traffic and room of the bands; the FFN afterwards, if there is one, is not looked at."""
    fields(spec, at, ("kind", "rows", "kept", "weights_stay"), ("ffn",))
    tokens, d, hidden, heads, groups, key, value = layer.size.values()
    rows = integer(spec["rows"], f"{at}.rows", 1, tokens)
    kept = integer(spec["kept"], f"{at}.kept", 0, tokens)
    stay, fused = flag(spec["weights_stay"], f"{at}.weights_stay"), "ffn" not in spec
    side, inner = groups * (key + value), heads * value
    n, bands = heads * key + side, -(-tokens // rows)
    w, p, y, streams = widths.read, widths.hidden, widths.partial, layer.streams
    weights = d * n + inner * d

    def held(band: int) -> int:
        first = band * rows
        end = min(tokens, first + rows)
        r, old = end - first, min(kept, first)
        young = 0 if end == tokens else min(kept, end)
        found, left = (w * (stay * weights + count * side) for count in (old, young))
        qkv = found + w * (r * d + r * (n - 1) + 1) + p * r
        queries = r * heads * max(key, value)
        attention = found + w * (r * side + queries + (first - old) * (key + value)) + p * (value + 1) + 3 * max(p, y)
        projection = left + w * (r * inner + r * (d - 1) + 1) + p * r
        ffn = left + r * (w * d + y * d + p * streams) + w if fused else 0
        return max(qkv, attention, projection, ffn)

    # later bands find no fewer keys and leave no fewer, but for the last, which leaves none and may have fewer rows
    peak = max(held(bands - 1), held(max(0, bands - 2)))
    fits(peak, capacity, widths, at)
    before_last = (bands - 1) * rows
    away = max(0, before_last - kept)
    # band i loads i rows - kept vectors, where that is more than none
    none = min(bands - 1, kept // rows)
    again = rows * (bands * (bands - 1) - none * (none + 1)) // 2 - kept * (bands - 1 - none)
    times = 1 if stay else bands
    loads = {"qkv.A": tokens * d, "qkv.B": times * d * n, "o.B": times * inner * d}
    loads |= {"attention.K": again * groups * key, "attention.V": again * groups * value}
    stores = {"attention.K": away * groups * key, "attention.V": away * groups * value}
    if fused:
        loads |= {"mlp.Wg+Wu" if streams == 2 else "mlp.W1": bands * streams * d * hidden, "mlp.W2": bands * hidden * d}
    return ScheduleTraffic(loads, stores | {"mlp.Y" if fused else "o.C": tokens * d}, peak)
