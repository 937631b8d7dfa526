"""
Gap
===

Layers of models against GPUs: the best schedule known over the proved bound, at the size of the L2.
"""

from pebble.plots.gap import LAYERS, gap, gap_figure

figure = gap_figure(gap(LAYERS[:6]))
