"""Attention: sizes, masks, grouped heads, and what is refused."""

import pytest

from pebble.errors import InputError, UnknownNameError
from pebble.workloads import Attention


def test_one_head() -> None:
    attention = Attention(8192, 8192, 128)
    assert (attention.value_dim, attention.heads, attention.kv_heads, attention.groups) == (128, 1, 1, 1)
    assert attention.multiply_adds == 2 * 8192 * 8192 * 128
    assert attention.compulsory_elements == 4 * 8192 * 128
    assert attention.compulsory_bytes == 8 * 8192 * 128
    assert attention.label == "attention queries=8192 keys=8192 head-dim=128 bf16"
    assert attention.family == "attention"


def test_grouped_heads_and_batch() -> None:
    attention = Attention(10, 30, 8, 4, heads=6, kv_heads=2, batch=5)
    assert (attention.group, attention.groups, attention.stacked_queries) == (3, 10, 30)
    assert [(o.name, o.rows, o.cols) for o in attention.operands] == [
        ("Q", 300, 8),
        ("K", 300, 8),
        ("V", 300, 4),
        ("O", 300, 4),
    ]
    assert attention.multiply_adds == 30 * 300 * 12
    assert "head-dim=8/4 batch=5 heads=6 kv-heads=2" in attention.label


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (3, 7), (1, 9)])
def test_causal_pairs(queries: int, keys: int) -> None:
    seen = sum(1 for i in range(queries) for j in range(keys) if j <= i + keys - queries)
    assert Attention(queries, keys, 2, causal=True).pairs_per_head == seen
    assert Attention(queries, keys, 2).pairs_per_head == queries * keys


def test_widths() -> None:
    attention = Attention(2, 3, 5, dtype="fp8")
    assert attention.compulsory_bytes == 10 + 15 + 15 + 2 * 10
    assert (attention.narrowest_bytes, attention.widest_bytes) == (1, 2)
    assert Attention(2, 3, 5, out_dtype="fp32", causal=True, softmax="strict").label.endswith(
        "bf16->fp32 causal strict"
    )


def test_json() -> None:
    data = Attention(2, 3, 5, heads=4, kv_heads=2, causal=True).to_json()
    assert (data["queries"], data["keys"], data["heads"], data["kv_heads"], data["causal"]) == (2, 3, 4, 2, True)
    assert data["softmax"] == "online"
    assert data["flops"] == 2 * 4 * 5 * 10


def test_refusals() -> None:
    with pytest.raises(InputError, match="kv-heads: got 3, expected a divisor of the 8 heads"):
        Attention(4, 4, 4, heads=8, kv_heads=3)
    with pytest.raises(InputError, match="keys: got 3 for 4 causal queries"):
        Attention(4, 3, 4, causal=True)
    with pytest.raises(UnknownNameError, match="softmax"):
        Attention(4, 4, 4, softmax="onlin")
    for field in ("queries", "keys", "head_dim", "heads", "batch"):
        dims: dict[str, object] = {"queries": 4, "keys": 4, "head_dim": 4, field: 0}
        with pytest.raises(InputError, match=rf"^{field.replace('_', '-')}: got 0"):
            Attention(**dims)
    with pytest.raises(InputError, match="value-dim: got -1"):
        Attention(4, 4, 4, -1)
