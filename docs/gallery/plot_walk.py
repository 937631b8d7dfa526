"""
Walk
====

Tile orders coloured by time, and how many panels must stay for a use to find its panel.
"""

from pebble.plots.walk import walk_figure
from pebble.schedules.orders import OrderParams, parse_order

orders = [parse_order(name) for name in ("row", "grouped-8", "hilbert", "snake-strips-16")]
figure = walk_figure(orders, 32, 32, OrderParams())
