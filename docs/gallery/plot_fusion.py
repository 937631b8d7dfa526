"""
Fusion
======

What does fusing a feed-forward network save? Against the size of the fast memory: the two products as separate kernels
and as one, each with its best schedule and its proved bound. Where the two bounds part, the hidden layer of a band of
tokens fits on chip and need not travel; left of that, fusing cannot help, whoever writes the kernel.

.. code-block:: console

   $ pebble figure fusion ffn --tokens 8192 --d-model 4096 --hidden 11008 --out fusion.pdf
"""

from pebble.plots.choices import fusion, fusion_figure
from pebble.workloads import Ffn

figure = fusion_figure(fusion(Ffn(8192, 4096, 11008), points=12))
