"""Schedules of one workload on one GPU against the proved bound: the arrow from bounds and traffic to a report."""

from pebble.comparison.attention import compare_attention
from pebble.comparison.core import Bounded, Comparison, KernelReport, Upper
from pebble.comparison.ffn import compare_ffn
from pebble.comparison.gemm import compare_orders

__all__ = ["Bounded", "Comparison", "KernelReport", "Upper", "compare_attention", "compare_ffn", "compare_orders"]
