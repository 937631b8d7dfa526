"""
Pebbling
========

Every move of a schedule of a 3 x 3 x 3 product with room for six values. A row is a value, a bar the time that it
spends in fast memory; loads and stores are marked, and they are the cost. Below stands how much of the room is in use:
it never exceeds the capacity, which is what the referee checks move by move.

.. code-block:: console

   $ pebble figure pebbling gemm -m 3 -n 3 -k 3 --cache 6el --out pebbling.pdf
"""

from pebble.plots.pebbling import gemm_events, pebbling_figure
from pebble.workloads import Gemm

figure = pebbling_figure(gemm_events(Gemm(3, 3, 3), 6), 6, "3 x 3 x 3, six values held at most")
