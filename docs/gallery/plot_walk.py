"""
Walk
====

Four tile orders on a grid of 32 x 32 tiles, coloured by time from first to last. The curves below them count, for each
number of panels that the cache can keep, how many uses find their panel still there: an order whose neighbours in time
are neighbours on the grid rises early.

.. code-block:: console

   $ pebble figure walk --schedules row,grouped-8,hilbert,snake-strips-16 --grid 32x32 --out walk.pdf
"""

from pebble.plots.walk import walk_figure
from pebble.schedules.orders import OrderParams, parse_order

orders = [parse_order(name) for name in ("row", "grouped-8", "hilbert", "snake-strips-16")]
figure = walk_figure(orders, 32, 32, OrderParams())
