"""Whole blocks of named models: ``llama-2-7b:mlp`` and ``llama-3-8b:attention``, beside their linear layers."""

from __future__ import annotations

from pebble.workloads.attention import Attention
from pebble.workloads.base import check_dimension
from pebble.workloads.ffn import Ffn
from pebble.workloads.gemm import Gemm
from pebble.workloads.layer import TransformerLayer
from pebble.workloads.named import BLOCKS, model_shape, named_gemm


def named_workload(
    text: str, tokens: int, dtype: str = "bf16", out_dtype: str = "", accumulate: bool = False
) -> Gemm | Ffn | Attention | TransformerLayer:
    """A layer or block of a named model.

    Parameters
    ----------
    text : str
        ``MODEL:mlp`` (the whole FFN, gated where the model's is), ``MODEL:attention``, ``MODEL:layer`` (all of one
        layer), or ``MODEL:LAYER`` of :func:`~pebble.workloads.named.named_gemm`.
    tokens : int
        Rows of the input.
    dtype, out_dtype : str
        As for every family.
    accumulate : bool
        Linear layers only: C += A B.

    Raises
    ------
    InputError
        No colon in the text, or tokens not a whole number above zero.
    UnknownNameError
        No such model or layer.

    Notes
    -----
    ``mlp`` is the dense FFN: with experts, that of the layers that have none. ``attention`` is one sequence in
    prefill: as many keys as queries (both ``tokens``), causal, online softmax, all heads of one layer, K and V
    expanded where the model keeps them compressed (DeepSeek-V3). Biases, norms, rotary position and residual
    inputs are left out.

    Examples
    --------
    >>> named_workload("llama-2-7b:mlp", 8192).label
    'llama-2-7b:mlp (ffn tokens=8192 4096->11008->4096 bf16 gated)'
    """
    model, _, block = text.partition(":")
    if block not in BLOCKS:
        return named_gemm(text, tokens, dtype, out_dtype, accumulate)
    shape = model_shape(model)
    tokens = check_dimension("tokens", tokens)
    if block == "mlp":
        return Ffn(
            tokens, shape.hidden, shape.intermediate, gated=shape.gated, dtype=dtype, out_dtype=out_dtype, name=text
        )
    if block == "layer":
        return TransformerLayer(
            tokens,
            shape.hidden,
            shape.intermediate,
            shape.heads,
            shape.kv_heads,
            shape.head_dim,
            shape.value_head_dim,
            gated=shape.gated,
            dtype=dtype,
            out_dtype=out_dtype,
            name=text,
        )
    return Attention(
        tokens,
        tokens,
        shape.head_dim,
        shape.value_head_dim,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        causal=True,
        dtype=dtype,
        out_dtype=out_dtype,
        name=text,
    )
