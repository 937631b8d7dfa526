"""Computation DAGs as networkx graphs: one family per module, files, statistics.

:mod:`pebble.dag.validate` documents the node attributes, :mod:`pebble.dag.catalogue` lists the families by
name.
"""

from pebble.dag.attention import attention_dag
from pebble.dag.conv2d import conv2d_dag
from pebble.dag.ffn import ffn_dag
from pebble.dag.fft import fft_dag
from pebble.dag.gemm import gemm_dag, matrix_chain_dag
from pebble.dag.grids import diamond_dag, dpgrid_dag
from pebble.dag.stencils import stencil1d_dag, stencil2d_dag
from pebble.dag.trees import tree_dag
from pebble.dag.validate import validate_dag

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
