"""FFN and attention on P SMs.

**Attention**: each SM holds a band of r query rows with their outputs and softmax state, and K and V stream by, one key
at a time: r (d + e + 1) + d + e + 1 <= S for head dimension d, value dimension e. All queries that share K and V (the
query heads of a group) form the bands of one group, cut evenly so that the bands of all groups fill whole rounds of
SMs as well as they can. Clusters of c SMs do bands of one group in lockstep: one reads a key, the others get a copy.
Keys may be cut into parts as well: each part of a band after the first loads the outputs and the two values of softmax
state per row that the part before stored. A causal mask only leaves work out. A strict softmax needs whole rows: each
query head by itself, its queries cut evenly without a mask, with the schedule that one memory has for such a piece.

**FFN**: two GEMMs, each on its own best grid, the hidden layer through slow memory; gated: gate and up in one GEMM,
then an elementwise pass. Or rows: the tokens cut evenly among SMs, each with its own fused schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.attention import best_attention_schedule
from pebble.schedules.explicit.ffn import best_ffn_schedule
from pebble.schedules.explicit.fused import FusedSchedule
from pebble.schedules.explicit.parallel import OnSms, best_parallel_schedule
from pebble.units import ceil_div
from pebble.workloads import Attention, Ffn
from pebble.workloads.widths import FastMemory


@dataclass(frozen=True)
class ChainOnSms(OnSms):
    """A schedule's traffic at both boundaries of the SMs: loads + stores, and copies of one hop.

    The imbalance is the work of the busiest SM over the mean, minus 1.
    """

    name: str
    l2_elements: int
    remote_elements: int
    l2_read_bytes: int
    l2_write_bytes: int
    remote_bytes: int
    imbalance: float
    details: Mapping[str, object]

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {"imbalance": self.imbalance, **self.details}


def attention_on_sms(
    attention: Attention, sms: int, capacity: int, cluster: int = 1, group: int = 0, parts: int = 1
) -> ChainOnSms:
    """Bands of queries, clusters of ``cluster`` SMs that share keys, and keys cut into ``parts``, on P SMs of S values.

    ``group``: SMs that can reach each other, a multiple of the cluster where it can be; 0 for all. InfeasibleError
    where not one row fits.
    """
    wide = attention.head_dim + attention.value_dim
    state = 1 if parts == 1 else 2  # row sum, and the maximum where it must be passed on
    rows = min((capacity - wide - 1) // (wide + state), attention.stacked_queries)
    if rows < 1:
        raise InfeasibleError(
            f"capacity: got {capacity} elements per SM, expected at least {2 * wide + 2}: one query row."
        )
    group = group or sms
    clusters = sms // group * (group // cluster) + sms % group // cluster
    least = ceil_div(attention.stacked_queries, rows * cluster)  # super-bands of one group of heads
    rounds = ceil_div(least * attention.groups * parts, clusters)
    bands = max(least, rounds * clusters // (attention.groups * parts))
    band = ceil_div(attention.stacked_queries, bands * cluster)
    bands = ceil_div(attention.stacked_queries, band * cluster)
    pieces = ceil_div(attention.stacked_queries, band)
    rounds = ceil_div(bands * attention.groups * parts, clusters)
    keys = attention.groups * attention.keys * wide
    once = attention.groups * attention.stacked_queries
    passed = once * (attention.value_dim + 2) * (parts - 1)
    reads = once * attention.head_dim * parts + passed + keys * bands
    writes = once * attention.value_dim + passed
    copies = keys * (pieces - bands)
    shared = (f", keys in {parts} parts" if parts > 1 else "") + (f", clusters of {cluster}" if cluster > 1 else "")
    longest = ceil_div(attention.keys, parts)
    wider = max(attention.in_bytes, attention.out_bytes)  # of what is passed on
    return ChainOnSms(
        f"bands of {band} queries{shared}",
        reads + writes,
        copies,
        (reads - passed) * attention.in_bytes + passed * wider,
        (writes - passed) * attention.out_bytes + passed * wider,
        copies * attention.in_bytes,
        rounds * band * longest * sms / (once * attention.keys) - 1,
        {"band_rows": band, "bands_per_group": pieces, "key_parts": parts, "cluster": cluster, "rounds": rounds},
    )


def best_attention_on_sms(
    attention: Attention, sms: int, capacity: int, omega: Fraction = Fraction(0), largest_cluster: int = 1
) -> ChainOnSms:
    """The cluster size and cut of the keys that cost least, among schedules balanced to 25 % if there are any."""
    if attention.softmax == "strict":
        return _strict_on_sms(attention, sms, capacity)
    group = min(largest_cluster, sms)
    sizes = [c for c in range(1, group + 1) if c <= 16 or group % c == 0]
    most = min(attention.keys, 2 * sms)
    cuts = [p for p in range(1, most + 1) if p <= 16 or p % 8 == 0]
    results = [attention_on_sms(attention, sms, capacity, c, group, p) for c in sizes for p in cuts]
    balanced = [s for s in results if s.imbalance <= 0.25] or results
    return min(balanced, key=lambda s: (s.cost_bytes(omega), s.imbalance))


def _strict_on_sms(attention: Attention, sms: int, capacity: int) -> ChainOnSms:
    """Each query head, or an even part of its queries, on an SM of its own, which moves what one memory would."""
    heads = attention.batch * attention.heads
    cuts = 1 if attention.causal else min(attention.queries, ceil_div(sms, heads))
    share = ceil_div(attention.queries, cuts)
    full, rest = divmod(attention.queries, share)
    single = replace(attention, heads=1, kv_heads=1, batch=1)
    pieces = [
        (heads * count, _of_one_memory(replace(single, queries=queries), capacity))
        for count, queries in ((full, share), (1, rest))
        if queries
    ]
    writes = sum(
        count * number * (attention.out_bytes if name == "O" else attention.in_bytes)
        for count, s in pieces
        for name, number in s.stores.items()
    )
    busiest = ceil_div(sum(count for count, _ in pieces), sms) * share
    return ChainOnSms(
        f"{share} queries of a head per SM, {pieces[0][1].name}",
        sum(count * s.elements for count, s in pieces),
        0,
        sum(count * s.bytes for count, s in pieces) - writes,
        writes,
        0,
        busiest * sms / (heads * attention.queries) - 1,
        {"queries_per_piece": share, "pieces": sum(count for count, _ in pieces), "per_piece": pieces[0][1].to_json()},
    )


def _of_one_memory(attention: Attention, capacity: int) -> FusedSchedule:
    """The best in one memory; where no row under a mask fits, without the mask, which only leaves work out."""
    try:
        return best_attention_schedule(attention, FastMemory.of_values(capacity, attention))
    except InfeasibleError:
        if not attention.causal:
            raise
    return best_attention_schedule(replace(attention, causal=False), FastMemory.of_values(capacity, attention))


def _ffn_of_one_memory(ffn: Ffn, capacity: int) -> FusedSchedule:
    result = best_ffn_schedule(ffn, FastMemory.of_values(capacity, ffn))
    assert result is not None  # three values hold a schedule; fewer are refused
    return result


def best_ffn_on_sms(
    ffn: Ffn, sms: int, capacity: int, omega: Fraction = Fraction(0), largest_cluster: int = 1
) -> ChainOnSms:
    """Separate kernels on their best grids, or rows of tokens with a fused schedule each, whichever costs less."""
    parts = [best_parallel_schedule(g, sms, capacity, omega, largest_cluster) for g in ffn.gemms]
    between = ffn.hidden_elements if ffn.gated else 0
    separate = ChainOnSms(
        "separate kernels: " + " then ".join(p.name for p in parts),
        sum(p.l2_elements for p in parts) + 3 * between,
        sum(p.remote_elements for p in parts),
        sum(p.l2_read_bytes for p in parts) + 2 * between * ffn.in_bytes,
        sum(p.l2_write_bytes for p in parts) + between * ffn.in_bytes,
        sum(p.remote_bytes for p in parts),
        max(p.imbalance for p in parts),
        {"kernels": [p.to_json() for p in parts]},
    )
    share = ceil_div(ffn.tokens, sms)
    full, rest = divmod(ffn.tokens, share)
    # all SMs but the last do the same
    pieces = [(full, _ffn_of_one_memory(replace(ffn, tokens=share), capacity))]
    if rest:
        pieces.append((1, _ffn_of_one_memory(replace(ffn, tokens=rest), capacity)))
    elements = sum(count * s.elements for count, s in pieces)
    total = sum(count * s.bytes for count, s in pieces)
    writes = ffn.tokens * ffn.d_out * ffn.out_bytes
    rows = ChainOnSms(
        f"{share} tokens per SM, {pieces[0][1].name}",
        elements,
        0,
        total - writes,
        writes,
        0,
        share * sms / ffn.tokens - 1,
        {"per_sm": pieces[0][1].to_json()},
    )
    return min((separate, rows), key=lambda s: s.cost_bytes(omega))
