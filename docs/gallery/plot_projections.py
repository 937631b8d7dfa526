"""
Projections
===========

A segment of a matrix product is a set of points in a box; what it touches are its three projections, so few values
allow only so much work.
"""

from pebble.plots.projections import projections_figure
from pebble.workloads import Gemm

figure = projections_figure(Gemm(8192, 8192, 8192), capacity=40 * 2**19)
