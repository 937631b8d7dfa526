"""Computation DAGs of workloads made of parts: products side by side, or one reading what another makes."""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx

from pebble.cdag import attention_dag, ffn_dag, gemm_dag
from pebble.workloads import GroupedGemm, TransformerLayer

Dag = nx.DiGraph


def renamed(dag: Dag, names: Mapping[str, str], prefix: str) -> Dag:
    """Every node under a prefix, or under the name given for it."""
    names = {node: names.get(node, f"{prefix}{node}") for node in dag}
    result = nx.relabel_nodes(dag, names)
    for _, data in result.nodes(data=True):
        if "accumulator" in data:
            data["accumulator"] = names[data["accumulator"]]
    return result


def joined(made: Dag, using: Dag, handed_over: Mapping[str, str], prefix: str) -> Dag:
    """Both, where inputs of the second (keys) are outputs of the first (values), which then need not be stored."""
    result = nx.compose(renamed(using, handed_over, prefix), made)
    for name in handed_over.values():
        result.nodes[name]["output"] = False
    return result


def grouped_dag(grouped: GroupedGemm, form: str = "in-place") -> Dag:
    """Independent products."""
    parts = (gemm_dag(g.m, g.n, g.k, form=form, accumulate=g.accumulate) for g in grouped.gemms)
    return nx.union_all([renamed(dag, {}, f"{number}:") for number, dag in enumerate(parts)])


def layer_dag(layer: TransformerLayer) -> Dag:
    """A transformer layer of one head: QKV, attention, output projection, FFN."""
    assert layer.heads == layer.kv_heads == 1 and layer.value_dim == layer.head_dim
    t, dim = layer.tokens, layer.head_dim
    qkv = renamed(gemm_dag(layer.qkv.m, layer.qkv.n, layer.qkv.k), {}, "qkv:")
    columns = {"Q": 0, "K": dim, "V": 2 * dim}
    read = {
        f"{name}[{i},{x}]": f"qkv:C[{i},{first + x}]"
        for name, first in columns.items()
        for i in range(t)
        for x in range(dim)
    }
    heads = joined(qkv, attention_dag(t, t, dim, causal=True), read, "att:")
    read = {f"A[{i},{x}]": f"att:O[{i},{x}]" for i in range(t) for x in range(dim)}
    product = joined(heads, gemm_dag(t, layer.d_model, dim), read, "o:")
    read = {f"X[{i},{x}]": f"o:C[{i},{x}]" for i in range(t) for x in range(layer.d_model)}
    return joined(product, ffn_dag(t, layer.d_model, layer.hidden, gated=layer.gated), read, "mlp:")
