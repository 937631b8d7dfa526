"""Computation DAGs as networkx graphs: families, patterns, files.

:mod:`pebble.cdag.validate` documents the node attributes, :mod:`pebble.cdag.catalogue` lists the families by
name.
"""

from pebble.cdag.attention import attention_dag
from pebble.cdag.patterns import diamond_dag, dpgrid_dag, fft_dag, stencil1d_dag, stencil2d_dag, tree_dag
from pebble.cdag.products import conv2d_dag, ffn_dag, gemm_dag, matrix_chain_dag
from pebble.cdag.validate import validate_dag

__all__ = [
    "attention_dag",
    "conv2d_dag",
    "diamond_dag",
    "dpgrid_dag",
    "ffn_dag",
    "fft_dag",
    "gemm_dag",
    "matrix_chain_dag",
    "stencil1d_dag",
    "stencil2d_dag",
    "tree_dag",
    "validate_dag",
]
