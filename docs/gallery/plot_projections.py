"""
Projections
===========

Why is there a bound at all? A segment of a matrix product is a set of points in a box, one point a multiply-add; the
values that it touches are its three shadows on A, B and C. Loomis and Whitney: few values in the shadows allow only so
many points. The solid is the segment that does most work for what it touches at this capacity.

.. code-block:: console

   $ pebble figure projections gemm -m 8192 -n 8192 -k 8192 --cache 40MiB --out box.pdf
"""

from pebble.plots.segments import projections_figure
from pebble.workloads import Gemm

figure = projections_figure(Gemm(8192, 8192, 8192), capacity=40 * 2**19)
