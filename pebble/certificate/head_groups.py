"""Schedules of a layer by groups of heads, from X to the heads' outputs; then projection and FFN.

``groups`` groups of heads that share K and V go together, the last ones may be fewer. Their weights are held while the
tokens pass: a row of X, value by value where it is not held, makes Q, K and V of that token; its K and V stay until all
tokens have passed, its queries attend, head by head, to the K and V that are there. The values of a query give way to
those of its output; beside it are held a score, a partial sum for each column of the output, and three values of state.
Outputs are stored, but for the last ``columns_stay`` of all heads, which stay. The first ``rows_stay`` rows of X are
loaded once and stay until the last groups have used them, each row; all others come again for every groups of heads.

Then one of these, where what stays of the outputs is not loaded:

- ``o`` and ``mlp``: two kernels; nothing stays.
- ``handed`` and ``mlp``: the weights of the projection are held while the tokens pass, a row of P is computed from the
  outputs, value by value where they are loaded, and stored; the last ``handed`` rows stay. The FFN's first band holds
  as many rows of its input at least, whole and from its start (`rows_at_first`), so these need not be loaded.
- ``rows`` and ``weights_stay``: so many tokens are projected, a column at a time, and go through the FFN, hidden unit
  by hidden unit, all of Y's rows as partial sums. Each weight that comes is used for all rows and dropped, or all stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .reading import RefusedError, fields, flag, integer
from .statement import ClaimedWidths, Workload
from .upper import ScheduleTraffic, fits

OfPart = Callable[[int, Any, str], ScheduleTraffic]  #: what a schedule of a kernel moves: its number, spec, and place
_OTHER_WAYS = ({"o", "mlp"}, {"handed", "mlp"}, {"rows", "weights_stay"})


def check_head_groups(
    layer: Workload, capacity: int, widths: ClaimedWidths, spec: dict[str, Any], at: str, of_part: OfPart
) -> ScheduleTraffic:
    """Traffic and room of all of it."""
    ways = [way for way in _OTHER_WAYS if way <= spec.keys()]
    if len(ways) != 1:
        raise RefusedError(at, "expected o and mlp, or handed and mlp, or rows and weights_stay")
    fields(spec, at, ("kind", "groups", "rows_stay", "columns_stay", *sorted(ways[0])))
    tokens, d, _, heads, groups, key, value = layer.size.values()
    inner, n = heads * value, heads * key + groups * (key + value)
    columns = integer(spec["columns_stay"], f"{at}.columns_stay", 0, 0 if "o" in spec else inner)
    together = integer(spec["groups"], f"{at}.groups", 1, groups)
    rows = integer(spec["rows_stay"], f"{at}.rows_stay", 0, tokens)
    fits(_from_x(layer, widths, together, rows, columns), capacity, widths, at)
    passes = -(-groups // together)
    front = ScheduleTraffic(
        {"qkv.A": d * (passes * tokens - (passes - 1) * rows), "qkv.B": d * n},
        {"attention.O": tokens * (inner - columns)},
        0,
    )
    then = _kernels if "o" in spec else _handing if "handed" in spec else _bands
    rest = then(layer, widths, columns, spec, at, of_part)
    fits(rest.peak, capacity, widths, at)
    whole = front.and_then(rest)
    return replace(whole, peak=max(rest.peak, _from_x(layer, widths, together, rows, columns)))


def _from_x(layer: Workload, of: ClaimedWidths, together: int, rows: int, columns: int) -> int:
    """The most held from X to the outputs: at the tokens where what is held turns from growing to falling."""
    tokens, d, _, heads, groups, key, value = layer.size.values()
    shared, w, most = heads // groups, of.read, 0
    for first in range(0, groups, together):
        last, some = first + together >= groups, min(together, groups - first)
        q = some * shared * key
        made = q + some * (key + value)
        outputs, after = some * shared * value, (groups - first - some) * shared * value
        kept = max(0, columns - after)  # of the outputs of these groups and of earlier ones
        mine = min(kept, outputs)
        for t in sorted({0, rows - 1, rows, tokens - 1} & set(range(tokens))):
            if not first and last:
                of_x = 0
            elif not first:
                of_x = min(rows, t + 1)
            else:
                of_x = max(0, rows - t) if last else rows
            there = w * (d * made + tokens * (kept - mine) + d * of_x + t * (some * (key + value) + mine))
            projecting = of.hidden * made + w
            attending = w * (some * (key + value) + max(q, outputs)) + of.hidden * (value + 1)
            most = max(most, there + projecting, there + attending + 3 * max(of.hidden, of.partial))
    return most


def _kernels(
    layer: Workload, of: ClaimedWidths, columns: int, spec: dict[str, Any], at: str, of_part: OfPart
) -> ScheduleTraffic:
    """Projection and FFN by themselves."""
    o = of_part(2, spec["o"], f"{at}.o")
    o = replace(o, initialised=o.stores["C"] - layer.size["tokens"] * layer.size["d_model"])
    return o.times(1, "o.{}".format).and_then(of_part(3, spec["mlp"], f"{at}.mlp").times(1, "mlp.{}".format))


def _handing(
    layer: Workload, of: ClaimedWidths, columns: int, spec: dict[str, Any], at: str, of_part: OfPart
) -> ScheduleTraffic:
    """The projection with its weights held, then an FFN that finds rows of its input."""
    tokens, d, _, heads, _, _, value = layer.size.values()
    ffn = of_part(3, spec["mlp"], f"{at}.mlp").times(1, "mlp.{}".format)
    handed = integer(spec["handed"], f"{at}.handed", 0, rows_at_first(spec["mlp"], d))
    inner, away = heads * value, tokens - handed
    # a row of P is made beside all outputs from its own on; until the first that stays they fall, then they may grow
    waiting = max(columns * (tokens - t) + d * max(0, t - away) for t in {0, min(away, tokens - 1), tokens - 1})
    peak = of.read * (inner * d + waiting + 1) + of.hidden * d
    ffn.loads["mlp.X"] -= handed * d
    loads = {"o.A": tokens * (inner - columns), "o.B": inner * d}
    return ScheduleTraffic(loads, {"o.C": away * d}, peak).and_then(ffn)


def rows_at_first(spec: Any, d: int) -> int:
    """Rows of X that the first band of an FFN's schedule, itself checked, holds whole from its start."""
    if spec["kind"] == "token groups":
        return rows_at_first(spec["groups"][0]["schedule"], d)
    if spec["kind"] == "phases":
        return rows_at_first(spec["first"], d)
    if spec["kind"] != "bands" or spec["side"] != "rows":
        return 0
    band = spec["runs"][0]
    whole = band["stay"][0] == d and band["blocks"] > 1 and not band.get("spilled")
    return int(band["extent"]) if whole else 0


def _bands(
    layer: Workload, of: ClaimedWidths, columns: int, spec: dict[str, Any], at: str, of_part: OfPart
) -> ScheduleTraffic:
    """Bands of tokens through projection and FFN; no band holds more than the first, which finds most outputs."""
    tokens, d, hidden, heads, _, _, value = layer.size.values()
    rows, stay = integer(spec["rows"], f"{at}.rows", 1, tokens), flag(spec["weights_stay"], f"{at}.weights_stay")
    inner, w, u = heads * value, of.read, layer.streams
    bands, weights = 1 if stay else -(-tokens // rows), {"up": u * d * hidden, "down": hidden * d, "o": inner * d}
    beside = w * (columns * (tokens - rows) + (sum(weights.values()) if stay else 0))
    projection = w * (rows * (inner + d - 1) + 1) + of.hidden * rows
    ffn = rows * (w * d + of.partial * d + of.hidden * u) + w
    loads = {"o.A": tokens * (inner - columns), "o.B": bands * weights["o"]}
    loads |= {"mlp.Wg+Wu" if u == 2 else "mlp.W1": bands * weights["up"], "mlp.W2": bands * weights["down"]}
    return ScheduleTraffic(loads, {"mlp.Y": tokens * d}, beside + max(projection, ffn))
