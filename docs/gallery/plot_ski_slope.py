"""
Ski slope
=========

Traffic against cache size, both on a log scale. Between the cache-only bound and its best schedule lies what is not
known; on the left both fall with the root of the size, on the right they meet the compulsory traffic, where a larger
cache buys nothing. Simulated kernels also hold values on the SMs, so at small caches they go below that bound, never
below their own, the kernel bound. Marks show the L2 of GPUs.

.. code-block:: console

   $ pebble figure ski-slope gemm -m 4096 -n 4096 -k 4096 --out ski-slope.pdf
"""

from pebble.plots.curve import ski_slope, ski_slope_figure
from pebble.workloads import Gemm

figure = ski_slope_figure(ski_slope(Gemm(4096, 4096, 4096), points=40))
