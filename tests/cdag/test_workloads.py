"""The DAG of a workload moves at least what the workload says it must."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.cdag import attention_dag, conv2d_dag, ffn_dag, gemm_dag
from pebble.game import Game
from pebble.workloads import Attention, Conv2d, Ffn, Gemm

SMALL = st.integers(1, 3)
QUICK = settings(deadline=None, max_examples=40)


@QUICK
@given(SMALL, SMALL, SMALL, st.booleans())
def test_gemm(m: int, n: int, k: int, accumulate: bool) -> None:
    dag = gemm_dag(m, n, k, accumulate=accumulate)
    assert Game.from_dag(dag).compulsory == Gemm(m, n, k, accumulate=accumulate).compulsory_elements


@QUICK
@given(SMALL, SMALL, SMALL, SMALL, st.booleans())
def test_ffn(tokens: int, d_model: int, hidden: int, d_out: int, gated: bool) -> None:
    dag = ffn_dag(tokens, d_model, hidden, d_out, gated=gated)
    assert Game.from_dag(dag).compulsory == Ffn(tokens, d_model, hidden, d_out, gated=gated).compulsory_elements


@QUICK
@given(SMALL, SMALL, SMALL, st.sampled_from([(1, 1), (2, 1), (2, 2)]), st.integers(1, 2), st.booleans())
def test_attention(queries, more, head_dim, heads, batch, causal) -> None:
    keys = queries + more - 1
    options = {"heads": heads[0], "kv_heads": heads[1], "batch": batch, "causal": causal}
    workload = Attention(queries, keys, head_dim, **options)
    assert Game.from_dag(attention_dag(queries, keys, head_dim, **options)).compulsory == workload.compulsory_elements


@QUICK
@given(SMALL, SMALL, SMALL, st.integers(0, 3), st.integers(0, 3), SMALL, SMALL)
def test_conv2d(batch, in_channels, out_channels, extra_rows, extra_cols, kernel, stride) -> None:
    height, width = kernel + extra_rows, kernel + extra_cols
    shape = (batch, in_channels, out_channels, height, width, kernel)
    dag = conv2d_dag(*shape, stride=stride)
    assert Game.from_dag(dag).compulsory == Conv2d(*shape, stride=stride).compulsory_elements
