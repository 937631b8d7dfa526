"""Two-dimensional convolution without padding: bounds only."""

from __future__ import annotations

from pebble.cdag.catalogue import DagFamily
from pebble.cdag.conv2d import conv2d_dag
from pebble.families.base import Family
from pebble.workloads import Conv2d
from pebble.workloads.parameters import needed, optional


class Conv2dFamily(Family[Conv2d]):
    """``conv2d``."""

    name = "conv2d"
    shape = Conv2d
    computes = "2-D convolution without padding (bounds only)"
    example = "conv2d --batch 32 --in-channels 256 --out-channels 256 --height 56 --width 56 --kernel 3"
    parameters = (
        *needed(
            batch="independent images",
            in_channels="channels of the input",
            out_channels="channels of the output",
            height="rows of the input",
            width="columns of the input",
            kernel="rows and columns of the kernel",
        ),
        *optional(stride="distance between outputs, in inputs (1)"),
    )

    @property
    def dag(self) -> DagFamily:
        example = "--batch 1 --in-channels 1 --out-channels 1 --height 3 --width 3 --kernel 2"
        return self.dag_of(conv2d_dag, "in-channels x out-channels", example, "convolution without padding")


CONV2D = Conv2dFamily()
