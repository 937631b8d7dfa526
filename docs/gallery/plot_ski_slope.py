"""
Ski slope
=========

Traffic against cache size: between the proved bound and the best schedule lies what is not known. Simulated kernels
also hold values on the SMs, so at small caches they go below the bound for one memory, never below their own.
"""

from pebble.plots.ski_slope import ski_slope, ski_slope_figure
from pebble.workloads import Gemm

figure = ski_slope_figure(ski_slope(Gemm(4096, 4096, 4096), points=40))
