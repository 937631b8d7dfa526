"""
Fusion
======

A feed-forward network as separate kernels and fused: schedules and bounds of both.
"""

from pebble.plots.fusion import fusion, fusion_figure
from pebble.workloads import Ffn

figure = fusion_figure(fusion(Ffn(8192, 4096, 11008), points=12))
