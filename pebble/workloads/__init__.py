"""Workloads: the families (gemm, ffn, attention, latent attention, conv2d) and the layers of named models."""

from pebble.workloads.attention import Attention
from pebble.workloads.backward import AttentionBackward, FfnBackward, GemmBackward
from pebble.workloads.conv2d import Conv2d
from pebble.workloads.einsum import Einsum
from pebble.workloads.ffn import Ffn
from pebble.workloads.gemm import Gemm
from pebble.workloads.grouped import GroupedGemm
from pebble.workloads.latent import LatentAttention
from pebble.workloads.layer import TransformerLayer
from pebble.workloads.named import model_names, model_shape, named_gemm, named_workload
from pebble.workloads.scaled import ScaledFfn, ScaledGemm
from pebble.workloads.workload import DTYPE_BYTES, Operand, Workload, check_dimension, element_bytes

__all__ = [
    "DTYPE_BYTES",
    "Attention",
    "AttentionBackward",
    "Conv2d",
    "Einsum",
    "Ffn",
    "FfnBackward",
    "Gemm",
    "GemmBackward",
    "GroupedGemm",
    "LatentAttention",
    "Operand",
    "ScaledFfn",
    "ScaledGemm",
    "TransformerLayer",
    "Workload",
    "check_dimension",
    "element_bytes",
    "model_names",
    "model_shape",
    "named_gemm",
    "named_workload",
]
