"""
Segments
========

The proof, seen on a real schedule. It is cut, by work, into segments; what each touches was held at its start, is
loaded in it, or is begun in it (the stacked parts). The line is the least that geometry allows any segment of that much
work, and what is held never exceeds the capacity: so the rest must have been loaded, in every schedule.

.. code-block:: console

   $ pebble figure segments gemm -m 24 -n 24 -k 24 --cache 120el --out segments.pdf
"""

from pebble.plots.segments import segments_figure
from pebble.workloads import Gemm

figure = segments_figure(Gemm(24, 24, 24), capacity=120)
