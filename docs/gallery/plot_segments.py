"""
Segments
========

A real schedule, cut: what each segment touches was held, is loaded, or is begun. The line is the least that geometry
allows, and what is held never exceeds the capacity.
"""

from pebble.plots.segments import segments_figure
from pebble.workloads import Gemm

figure = segments_figure(Gemm(24, 24, 24), capacity=120)
