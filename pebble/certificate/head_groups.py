"""Schedules of a layer by groups of heads, from X to the heads' outputs; then projection and FFN.

A group are the heads that share K and V. From X to the outputs either

- ``groups`` and ``rows_stay``: so many groups go together, the last ones may be fewer. Their weights are held while the
  tokens pass: a row of X, value by value where it is not held, makes Q, K and V of that token; its K and V stay until
  all tokens have passed, its queries attend to the K and V that are there. The first ``rows_stay`` rows of X are loaded
  once and stay until the last groups have used them, each row; all others come again for every groups. Or
- ``tokens_held`` and ``tokens_kept``: a band of rows of X is held. For each group its K and V are computed, a column at
  a time, then K and V of tokens before it come, then for each head its Q is computed and attends. Each weight that
  comes is used for all rows and dropped. K and V of the first ``tokens_kept`` tokens stay until the last band, those of
  others are stored when the group is through and loaded by every later band.

The values of a query give way to those of its output; beside it are held a score, a partial sum for each column of the
output, and three values of state. Outputs are stored, but for the last ``columns_stay`` of all heads, which stay.

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
from typing import Any

from .reading import RefusedError, fields, flag, integer
from .statement import ClaimedWidths, Workload
from .upper import ScheduleTraffic, fits

OfPart = Callable[[int, Any, str], ScheduleTraffic]  #: what a kernel's schedule moves: its number, spec, and place
_FRONTS = ({"groups", "rows_stay"}, {"tokens_held", "tokens_kept"})
_THEN = ({"o", "mlp"}, {"handed", "mlp"}, {"rows", "weights_stay"})


def check_head_groups(
    layer: Workload, capacity: int, widths: ClaimedWidths, spec: dict[str, Any], at: str, of_part: OfPart
) -> ScheduleTraffic:
    """Traffic and room of all of it."""
    wanted = [*_one_of(_FRONTS, spec, at), *_one_of(_THEN, spec, at)]
    fields(spec, at, ("kind", "columns_stay", *wanted))
    inner = layer.size["heads"] * layer.size["value_dim"]
    columns = integer(spec["columns_stay"], f"{at}.columns_stay", 0, 0 if "o" in spec else inner)
    front = (_weights_held if "groups" in spec else _tokens_held)(layer, widths, columns, spec, at)
    front.stores["attention.O"] = layer.size["tokens"] * (inner - columns)
    then = _kernels if "o" in spec else _handing if "handed" in spec else _bands
    whole = front.and_then(then(layer, widths, columns, spec, at, of_part))
    fits(whole.peak, capacity, widths, at)
    return whole


def _one_of(ways: tuple[set[str], ...], spec: dict[str, Any], at: str) -> list[str]:
    """The names of the one way that is told."""
    told = [sorted(way) for way in ways if way <= spec.keys()]
    if len(told) != 1:
        raise RefusedError(at, "expected one of " + ", or ".join(" and ".join(sorted(way)) for way in ways))
    return told[0]


def _weights_held(layer: Workload, of: ClaimedWidths, columns: int, spec: dict[str, Any], at: str) -> ScheduleTraffic:
    """Some groups after others, all tokens passing each time."""
    tokens, d, _, heads, groups, key, value = layer.size.values()
    together = integer(spec["groups"], f"{at}.groups", 1, groups)
    rows = integer(spec["rows_stay"], f"{at}.rows_stay", 0, tokens)
    times, n = -(-groups // together), heads * key + groups * (key + value)
    loads = {"qkv.A": d * (times * tokens - (times - 1) * rows), "qkv.B": d * n}
    return ScheduleTraffic(loads, {}, _from_x(layer, of, together, rows, columns))


def _tokens_held(layer: Workload, of: ClaimedWidths, columns: int, spec: dict[str, Any], at: str) -> ScheduleTraffic:
    """Bands of tokens; what stays of a band, of outputs and of keys and values, counts from its start."""
    tokens, d, _, heads, groups, key, value = layer.size.values()
    held = integer(spec["tokens_held"], f"{at}.tokens_held", 1, tokens)
    kept = integer(spec["tokens_kept"], f"{at}.tokens_kept", 0, tokens)
    bands, side, w = -(-tokens // held), key + value, of.read
    n, state = heads * key + groups * side, 3 * max(of.hidden, of.partial)

    def room(band: int) -> int:
        start = band * held
        end = min(tokens, start + held)
        found = min(kept, start)
        stay = found if end == tokens else min(kept, end)
        always = (end - start) * d + groups * side * stay + columns * end + side * (end - found)
        making = w * ((end - start) * (key - 1) + 1) + of.hidden * (end - start)
        return w * always + max(making, w * (end - start) * max(key, value) + of.hidden * (value + 1) + state)

    # later bands find no fewer and leave no fewer, but for the last, which keeps none and may have fewer rows
    peak = max(room(bands - 1), room(max(0, bands - 2)))
    away = max(0, (bands - 1) * held - kept)
    # band i loads i held - kept vectors, where that is more than none
    none = min(bands - 1, kept // held)
    again = held * (bands * (bands - 1) - none * (none + 1)) // 2 - kept * (bands - 1 - none)
    loads = {"qkv.A": tokens * d, "qkv.B": bands * d * n}
    loads |= {"attention.K": again * groups * key, "attention.V": again * groups * value}
    return ScheduleTraffic(loads, {"attention.K": away * groups * key, "attention.V": away * groups * value}, peak)


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
    return of_part(2, spec["o"], f"{at}.o").and_then(of_part(3, spec["mlp"], f"{at}.mlp"))


def _handing(
    layer: Workload, of: ClaimedWidths, columns: int, spec: dict[str, Any], at: str, of_part: OfPart
) -> ScheduleTraffic:
    """The projection with its weights held, then an FFN that finds rows of its input."""
    tokens, d, _, heads, _, _, value = layer.size.values()
    ffn = of_part(3, spec["mlp"], f"{at}.mlp")
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
