"""
Gap
===

How much is still unknown? Each cell of the figure is a layer of a model on a GPU: the best schedule known over the
proved bound, for one memory of the size of the L2. At 1 the matter is settled; what lies above is either a schedule not
yet found or a bound not yet proved. Where every value moves just once (a dot: compulsory
traffic), nothing is left to find.

.. code-block:: console

   $ pebble figure gap --out gap.pdf
"""

from pebble.plots.gap import LAYERS, gap, gap_figure

figure = gap_figure(gap(LAYERS[:6]))
