"""Workloads: the families (gemm ...) and the layers of named models."""

from pebble.workloads.base import DTYPE_BYTES, Operand, Workload, check_dimension, element_bytes
from pebble.workloads.gemm import Gemm
from pebble.workloads.named import layer_names, model_names, model_shape, named_gemm

__all__ = [
    "DTYPE_BYTES",
    "Gemm",
    "Operand",
    "Workload",
    "check_dimension",
    "element_bytes",
    "layer_names",
    "model_names",
    "model_shape",
    "named_gemm",
]
