"""
Pebbling
========

Every move of a schedule: which value is in fast memory when.
"""

from pebble.plots.pebbling import gemm_events, pebbling_figure
from pebble.workloads import Gemm

figure = pebbling_figure(gemm_events(Gemm(3, 3, 3), 6), 6, "3 x 3 x 3, six values held at most")
